"""The mean of the largest losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.sums import total
from convexboost.kernels.quantiles import select
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss
from convexboost.losses._reweighted import Reweighted, Reweighting


@dataclass(frozen=True)
class CVaR(Reweighting):
    """R[F] = min_t t + E(l − t)₊/(1 − level): the mean of the worst 1 − level share of the row losses l.

    Conditional value at risk (Rockafellar and Uryasev 2000) of any row loss: ``CVaR("absolute", 0.9)``,
    ``CVaR(Softmax())``.  `level` 0 is the mean, and a level that leaves less than one row is the maximum.

    It is a maximum over weights, max Σ q_n l_n with 0 ≤ q_n ≤ p_n/(1 − level) and Σ q = 1; the subgradient is
    (q_n/p_n) g_n.  At the kink, where losses tie at the quantile, the tied rows share what is left of q in
    proportion to their weight.

    This is the tail of the convex loss, a surrogate, not of the 0/1 error: of that, the tail of a classifier
    is min(1, error/(1 − level)), so nothing that has more errors can have a better one (Zhai et al. 2021).

    Parameters
    ----------
    loss : str, RowLoss or object
        The row loss l: a name such as "quantile:0.9", a `RowLoss`, or a loss of your own.
    level : float, default=0.9
        The share of the rows, those with the smallest losses, that does not count: in [0, 1).

    """

    loss: Any
    level: float = 0.9

    name: ClassVar[str] = "cvar"

    def __post_init__(self) -> None:
        if not (isinstance(self.level, Real) and 0 <= self.level < 1):
            raise ValueError(f"`level` must lie in [0, 1), got {self.level!r}")
        self._find_loss()

    def formula(self, f: str = "f") -> str:
        """CVaR at a level of the loss."""
        return f"CVaR_{self.level:g} [{self.loss.formula(f)}]"

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Fix the targets."""
        rows = self.loss.bind(y, space, n_classes)
        if self.level == 0:
            return rows
        return Tail(rows, float(self.level), space=space, n_outputs=rows.n_outputs)

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """Regression and classification."""
        return (cls("absolute", 0.5), cls("softmax", 0.9), cls("half_squared", 0))


@dataclass(frozen=True, repr=False)
class Tail(Reweighted):
    """The mean of the worst 1 − level share of the rows."""

    level: float

    def reweight(self, losses: Array) -> tuple[float, Array]:
        """Count rows above the quantile 1/(1 − level) times; those at the quantile fill up the share."""
        share = 1.0 - self.level
        low, high = self.tie(self._quantile(losses, share))
        above = losses > high
        tied = (losses >= low) & ~above
        left = share - self.space.mass(above)
        mass = self.space.mass(tied) or math.nan  # none are tied where the losses are not numbers
        ratios = above / share + tied * max(left, 0.0) / (share * mass)
        return self.space.mean(ratios * losses), ratios

    def _quantile(self, losses: Array, share: float) -> float:
        """Return the largest loss such that rows with at least a share of the weight lose as much."""
        (weight, unit), communicator = self.space.whole, self.space.communicator
        units, one = weight.astype(np.int64), np.zeros(len(losses), np.int32)
        wanted = min(max(math.ceil(share / unit), 1), int(total(weight, communicator)))
        return -float(select(-losses[:, None], units, one, np.array([wanted]), communicator)[0, 0])

    def loss_constants(self) -> Constants:
        """‖∇R‖² = Σ p (q/p)² |g|² ≤ L² max q/p, and q/p is at most 1/(1 − level) and 1/p.

        What bounds l from below bounds R.  Rows below the quantile have q = 0: not strongly convex.  Which
        rows are above it changes suddenly: not smooth.
        """
        inner = self.rows.loss_constants()
        least = -self.space.communicator.largest(-self.space.weight.min(initial=1.0))
        most = min(1.0 / (1.0 - self.level), 1.0 / least)
        slope = None if inner.lipschitz is None else inner.lipschitz * math.sqrt(most)
        return Constants(lipschitz=slope, minimum=inner.minimum)
