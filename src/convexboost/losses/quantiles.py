"""Several quantiles at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._leaves import leaf_quantiles, residual_sign, weighted_quantile
from convexboost.losses._loss import Loss, RowLoss
from convexboost.losses._pieces import Pieces


@dataclass(frozen=True)
class Quantiles(RowLoss):
    """l(f, y) = Σ_k max(q_k (y − f_k), (1 − q_k) (f_k − y)): output k is the q_k-quantile of the one target.

    Predictions are the sorted scores: quantiles that cross are put in order, which never raises this loss
    (Chernozhukov, Fernández-Val and Galichon 2010).  Not smooth.  At the kinks: 0.

    Parameters
    ----------
    quantiles : sequence of float, default=(0.1, 0.5, 0.9)
        The quantiles q_k, between 0 and 1 and increasing.

    """

    quantiles: Sequence[float] = (0.1, 0.5, 0.9)

    name: ClassVar[str] = "quantiles"
    task: ClassVar[str] = "regression"
    one_target = True
    link_steps = (("sort",),)
    has_link = has_best_constant = has_best_shifts = has_prox = has_support = has_pieces = True
    recalibrates = True

    def __post_init__(self) -> None:
        given = self.quantiles
        fine = (
            np.ndim(given) == 1 and len(given) > 0 and all(isinstance(q, Real) and 0 < q < 1 for q in given)
        )
        if not fine or any(a >= b for a, b in pairwise(given)):
            raise ValueError(f"`quantiles` must be increasing numbers in (0, 1), got {given!r}")
        object.__setattr__(self, "quantiles", tuple(map(float, given)))

    def formula(self, f: str = "f") -> str:
        """Σ_k max(q_k (y − f_k), (1 − q_k) (f_k − y))."""
        return f"Σ_k max(q_k (y − {f}_k), (1 − q_k) ({f}_k − y))"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the sum of the pinball losses, and −q below, 1 − q above the target."""
        q, over, sign = np.array(self.quantiles), F - y, residual_sign(F, y)
        losses = np.where(over > 0, (1 - q) * over, -q * over).sum(axis=1)
        return losses, np.where(sign > 0, 1 - q, np.where(sign < 0, -q, 0.0))

    def link(self, F: Array) -> Array:
        """Return the scores in order."""
        return np.sort(F, axis=1)

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖² ≤ Σ_k max(q_k, 1 − q_k)²."""
        return Constants(lipschitz=math.hypot(*(max(q, 1 - q) for q in self.quantiles)), minimum=0.0)

    def check(self, y: Any) -> None:
        """Refuse more than one target."""
        if y.shape[1] != 1:
            raise ValueError(f"`y` must have one column for the loss 'quantiles', got {y.shape[1]}")

    def count_outputs(self, n_outputs: int) -> int:
        """Return one output per quantile."""
        return len(self.quantiles)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the weighted quantiles."""
        return np.concatenate([weighted_quantile(y, space, q) for q in self.quantiles])

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Move towards y, by at most `size` times the slope."""
        q = np.array(self.quantiles)
        return F - (F - y).clip(-size * q, size * (1 - q))

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """Slopes lie in [−q, 1 − q], and l*(u) = ⟨u, y⟩."""
        q = np.array(self.quantiles)
        U = U.clip(-q, 1 - q)
        return U, np.einsum("nk,nk->n", U, F - y)

    def best_shifts(self, F: Array, y: Any, space: FunctionSpace, leaf: Any, n_leaves: int) -> Array:
        """Return the quantiles of the residuals in each leaf."""
        found = [
            leaf_quantiles(y - F[:, [k]], space, leaf, n_leaves, q) for k, q in enumerate(self.quantiles)
        ]
        return np.hstack(found)

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """−q (f − y) + max(f − y, 0)."""
        Y, below = np.tile(y, n_outputs), np.outer(space.weight, self.quantiles)
        return replace(Pieces.above(Y, 0.0, 1.0, space), constant=float(np.sum(below * Y)), linear=-below)

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """Three quantiles and a single one."""
        return (cls(), cls((0.3,)))
