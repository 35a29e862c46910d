"""Losses with one slope below the target and another above it: a quantile is best."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from convexboost.core.compiling import kernel
from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import KINK
from convexboost.kernels import parallel
from convexboost.losses._leaves import leaf_quantiles, residual_sign, weighted_quantile
from convexboost.losses._loss import RowLoss
from convexboost.losses._pieces import Pieces
from convexboost.losses._scores import Lookup


@kernel(allocates=False, inline="always")
def _sweep_of(F: Any, y: Any, lookup: Any, slopes: Any, out: Any, start: Any, stop: Any, K: Any) -> None:
    (codes, table), (below, above), (losses, G) = lookup, slopes, out
    for n in range(np.uint64(start), np.uint64(stop)):
        c, loss = np.uint64(codes[n]), 0.0
        for k in range(np.uint64(K)):
            f = F[n, k] + table[c, k]
            over, target = f - y[n, k], y[n, k]
            slope = above if over > 0.0 else below
            F[n, k], G[n, k] = f, slope if abs(over) > KINK * abs(target) else 0.0
            loss += slope * over
        losses[n] = loss


@kernel(allocates=False)
def _sweep(F: Any, y: Any, lookup: Any, slopes: Any, out: Any, start: Any, stop: Any) -> None:
    """Add table[codes] to F; write the losses and a subgradient.

    One output is passed as a literal: the compiler removes the loop.
    """
    if F.shape[1] == 1:
        _sweep_of(F, y, lookup, slopes, out, start, stop, 1)
    else:
        _sweep_of(F, y, lookup, slopes, out, start, stop, F.shape[1])


class TwoSlopes(RowLoss):
    """l(f, y) = Σ_k max(a (f_k − y_k), b (f_k − y_k)), a < 0 < b.  Not smooth.  At the kink: 0."""

    task: ClassVar[str] = "regression"
    has_best_constant = has_best_shifts = has_prox = has_support = has_pieces = True
    quantile: float  #: the minimiser, −a/(b − a)

    @property
    @abstractmethod
    def slopes(self) -> tuple[float, float]:
        """Return a and b."""

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the losses, and the slope below or above the target."""
        (below, above), over, sign = self.slopes, F - y, residual_sign(F, y)
        losses = np.where(over > 0.0, above * over, below * over).sum(axis=1)
        return losses, np.where(sign > 0.0, above, np.where(sign < 0.0, below, 0.0))

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
        G, losses, slopes = np.empty(F.shape), np.empty(len(F)), self.slopes

        def task(start: int, stop: int) -> None:
            _sweep(F, y, lookup, slopes, (losses, G), start, stop)

        parallel.run(task, len(F), 4 * F.size, n_threads)
        return space.mean(losses), Gradient(G, space)

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ √k max(−a, b)."""
        return Constants(lipschitz=math.sqrt(n_outputs) * max(map(abs, self.slopes)), minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the weighted quantile."""
        return weighted_quantile(y, space, self.quantile)

    def best_shifts(self, F: Array, y: Any, space: FunctionSpace, leaf: Any, n_leaves: int) -> Array:
        """Return the quantile of the residuals in each leaf."""
        return leaf_quantiles(y - F, space, leaf, n_leaves, self.quantile)

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Move towards y, by at most `size` times the slope."""
        below, above = self.slopes
        return F - np.minimum(np.maximum(F - y, size * below), size * above)

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """Slopes lie in [a, b], and l*(u) = ⟨u, y⟩."""
        U = U.clip(*self.slopes)
        return U, np.einsum("nk,nk->n", U, F - y)

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """Slope a below y, b above."""
        return Pieces.above(y, *self.slopes, space)
