"""The absolute error."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._leaves import leaf_quantiles, residual_sign, weighted_quantile
from convexboost.losses._loss import RowLoss
from convexboost.losses._pieces import Pieces


@dataclass(frozen=True)
class Absolute(RowLoss):
    """l(f, y) = Σ_k |f_k − y_k|.  Not smooth; the best constant is the median.  At the kink: 0."""

    name: ClassVar[str] = "absolute"
    task: ClassVar[str] = "regression"
    has_best_constant = has_best_shifts = has_prox = has_support = has_pieces = True
    recalibrates = True

    def formula(self, f: str = "f") -> str:
        """|f − y|."""
        return f"|{f} − y|"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return Σ |f − y| and sgn(f − y)."""
        return np.abs(F - y).sum(axis=1), residual_sign(F, y)

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ √k."""
        return Constants(lipschitz=math.sqrt(n_outputs), minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the weighted median."""
        return weighted_quantile(y, space.whole[0], 0.5)

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Move towards y by at most `size`."""
        return F - (F - y).clip(-size, size)

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """Slopes lie in [−1, 1], and l*(u) = ⟨u, y⟩."""
        U = U.clip(-1.0, 1.0)
        return U, np.einsum("nk,nk->n", U, F - y)

    def best_shifts(self, F: Array, y: Any, weight: Array, leaf: Any, n_leaves: int) -> Array:
        """Return the quantile of the residuals in each leaf."""
        return leaf_quantiles(y - F, weight, leaf, n_leaves, 0.5)

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """Slope −1 below y, 1 above."""
        return Pieces.above(y, -1.0, 1.0, space)
