"""Half the squared error."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import BLOCK
from convexboost.kernels import parallel
from convexboost.losses._leaves import leaf_means
from convexboost.losses._loss import RowLoss
from convexboost.losses._scores import Lookup


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _rows(
    F: Array, y: Array, weight: Array, codes: Any, table: Array, G: Array, start: int, stop: int, K: int
) -> float:
    total = 0.0
    for n in range(np.uint64(start), np.uint64(stop)):
        c, square = np.uint64(codes[n]), 0.0
        for k in range(np.uint64(K)):
            f = F[n, k] + table[c, k]
            F[n, k], G[n, k] = f, f - y[n, k]
            square += G[n, k] * G[n, k]
        total += weight[n] * square
    return 0.5 * total


@njit(cache=True, nogil=True)
def _sweep(
    F: Array,
    y: Array,
    weight: Array,
    codes: Any,
    table: Array,
    G: Array,
    values: Array,
    first: int,
    last: int,
) -> None:
    """Add table[codes] to F; G = F − y, values[b] = Σ weight ½ ‖G‖² over block b."""
    n, K = F.shape
    for b in range(first, last):
        start, stop = b * BLOCK, min((b + 1) * BLOCK, n)
        if K == 1:  # known to the compiler
            values[b] = _rows(F, y, weight, codes, table, G, start, stop, 1)
        else:
            values[b] = _rows(F, y, weight, codes, table, G, start, stop, K)


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
        G, values = np.empty(F.shape), np.empty(-(-len(F) // BLOCK))

        def task(first: int, last: int) -> None:
            _sweep(F, y, space.weight, *lookup, G, values, first, last)

        parallel.run(task, len(values), 2 * F.size, n_threads)
        return math.fsum(values), Gradient(G, space)

    def constants(self, n_outputs: int) -> Constants:
        """Λ = λ = 1."""
        return Constants(smoothness=1.0, strong_convexity=1.0, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the weighted mean."""
        return np.array([space.mean(column) for column in y.T])

    def best_shifts(self, F: Array, y: Any, weight: Array, leaf: Any, n_leaves: int) -> Array:
        """Return the mean of the residuals in each leaf."""
        return leaf_means(y - F, weight, leaf, n_leaves)

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Return a point between F and y."""
        return (F + size * y) / (1.0 + size)
