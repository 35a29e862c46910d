"""The pinball loss."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._leaves import leaf_quantiles, residual_sign, weighted_quantile
from convexboost.losses._loss import Loss, RowLoss
from convexboost.losses._pieces import Pieces


@dataclass(frozen=True)
class Quantile(RowLoss):
    """l(f, y) = Σ_k max(q (y_k − f_k), (1 − q) (f_k − y_k)): its minimiser is the q-quantile.

    Not smooth.  At the kink: 0.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile q, between 0 and 1.

    """

    quantile: float = 0.5

    name: ClassVar[str] = "quantile"
    task: ClassVar[str] = "regression"
    has_best_constant = has_best_shifts = has_prox = has_support = has_pieces = True
    recalibrates = True

    def __post_init__(self) -> None:
        if not (isinstance(self.quantile, Real) and 0 < self.quantile < 1):
            raise ValueError(f"`quantile` must lie in (0, 1), got {self.quantile!r}")

    def formula(self, f: str = "f") -> str:
        """max(q (y − f), (1 − q) (f − y))."""
        return f"max({self.quantile:g} (y − {f}), {1 - self.quantile:g} ({f} − y))"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the pinball loss, and −q below, 1 − q above the target."""
        q, over, sign = self.quantile, F - y, residual_sign(F, y)
        losses = np.where(over > 0, (1 - q) * over, -q * over).sum(axis=1)
        return losses, np.where(sign > 0, 1 - q, np.where(sign < 0, -q, 0.0))

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ √k max(q, 1 − q)."""
        return Constants(lipschitz=math.sqrt(n_outputs) * max(self.quantile, 1 - self.quantile), minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the weighted quantile."""
        return weighted_quantile(y, space.whole[0], self.quantile)

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Move towards y, by at most `size` times the slope."""
        return F - (F - y).clip(-size * self.quantile, size * (1 - self.quantile))

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """Slopes lie in [−q, 1 − q], and l*(u) = ⟨u, y⟩."""
        U = U.clip(-self.quantile, 1 - self.quantile)
        return U, np.einsum("nk,nk->n", U, F - y)

    def best_shifts(self, F: Array, y: Any, weight: Array, leaf: Any, n_leaves: int) -> Array:
        """Return the quantile of the residuals in each leaf."""
        return leaf_quantiles(y - F, weight, leaf, n_leaves, self.quantile)

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """Slope −q below y, 1 − q above."""
        return Pieces.above(y, -self.quantile, 1 - self.quantile, space)

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """The median, and two other quantiles."""
        return (cls(), cls(0.9), cls(0.15))
