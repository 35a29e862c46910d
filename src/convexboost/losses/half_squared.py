"""Half the squared error."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexboost.core.compiling import kernel
from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.kernels import parallel
from convexboost.losses._leaves import leaf_means
from convexboost.losses._loss import RowLoss
from convexboost.losses._scores import Lookup


@kernel(allocates=False)
def _sweep(F: Any, y: Any, codes: Any, table: Any, G: Any, start: Any, stop: Any) -> None:
    """Add table[codes] to F; G = F − y.  One output is a vector: the compiler removes the loop."""
    for n in range(np.uint64(start), np.uint64(stop)):
        c = np.uint64(codes[n])
        if F.ndim == 1:
            f = F[n] + table[c]
            F[n], G[n] = f, f - y[n]
        else:
            for k in range(np.uint64(F.shape[1])):
                f = F[n, k] + table[c, k]
                F[n, k], G[n, k] = f, f - y[n, k]


@dataclass(frozen=True)
class HalfSquared(RowLoss):
    """l(f, y) = ½ ‖f − y‖².  Smooth and strongly convex with constant 1; the best constant is the mean."""

    name: ClassVar[str] = "half_squared"
    task: ClassVar[str] = "regression"
    has_best_constant = has_best_shifts = has_prox = True

    def formula(self, f: str = "f") -> str:
        """½ (f − y)²."""
        return f"½ ({f} − y)²"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return ½ ‖f − y‖² and f − y."""
        G = F - y
        return 0.5 * np.einsum("nk,nk->n", G, G), G

    def advance(
        self,
        F: Array,
        y: Any,
        space: FunctionSpace,
        lookup: Lookup | None,
        before: Gradient | None,
        n_threads: int,
    ) -> tuple[float, Gradient]:
        """Move and evaluate in one pass over the scores."""
        if lookup is None:
            return super().advance(F, y, space, None, before, n_threads)
        G, squares = np.empty(F.shape), []
        codes, table = lookup
        vectors = (F[:, 0], y[:, 0], codes, table[:, 0], G[:, 0]) if F.shape[1] == 1 else None

        def task(start: int, stop: int) -> None:
            rows = slice(start, stop)
            _sweep(*(vectors or (F, y, codes, table, G)), start, stop)
            squares.append(space.part(rows).exact_inner(G[rows], G[rows]))

        parallel.run(task, len(F), 2 * F.size, n_threads)
        return 0.5 * float(space.added(squares)), Gradient(G, space)

    def constants(self, n_outputs: int) -> Constants:
        """Λ = λ = 1."""
        return Constants(smoothness=1.0, strong_convexity=1.0, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the weighted mean."""
        return space.means(y)

    def best_shifts(self, F: Array, y: Any, space: FunctionSpace, leaf: Any, n_leaves: int) -> Array:
        """Return the mean of the residuals in each leaf."""
        return leaf_means(y - F, space, leaf, n_leaves)

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Return a point between F and y."""
        return (F + size * y) / (1.0 + size)
