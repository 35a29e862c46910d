"""The loss of the group that fares worst."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from convexboost.core.communicator import distinct
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss, is_positive
from convexboost.losses._objective import BoundLoss
from convexboost.losses._reweighted import Reweighted, Reweighting


@dataclass(frozen=True)
class WorstGroup(Reweighting):
    """R[F] = max_g R_g, with R_g the mean loss in group g: group distributionally robust optimisation.

    Sagawa et al. (2020), of any row loss: ``WorstGroup("softmax")``, the groups given to `fit`.  Means are by
    sample weight.  At the kink, groups that tie share the subgradient.  Groups without rows (among those held
    out, say) do not take part.

    Parameters
    ----------
    loss : str, RowLoss or object
        The row loss: a name such as "quantile:0.9", a `RowLoss`, or a loss of your own.
    smooth : float, optional
        μ > 0 replaces the maximum by μ log((1/G) Σ_g exp(R_g/μ)) (Nesterov 2005): smooth where the loss is,
        and at most μ log G below the maximum.

    """

    loss: Any
    smooth: float | None = None

    name: ClassVar[str] = "worst_group"
    needs_groups = True

    def __post_init__(self) -> None:
        if self.smooth is not None and not is_positive(self.smooth):
            raise ValueError(f"`smooth` must be positive or None, got {self.smooth!r}")
        self._find_loss()

    def formula(self, f: str = "f") -> str:
        """max_g of the mean loss in g."""
        inner = f"mean_g [{self.loss.formula(f)}]"
        if self.smooth is None:
            return f"max_g {inner}"
        return f"{self.smooth:g} log mean over g of exp({inner} / {self.smooth:g})"

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Fix the targets and the groups."""
        given = Groups.needed(groups, self, space.n_samples)
        rows = self.loss.bind(y, space, n_classes)
        labels, number = distinct(given.labels, space.communicator)
        mass = space.masses(number, len(labels))
        return GroupMaximum(rows, number, mass, self.smooth, space=space, n_outputs=rows.n_outputs)

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """The maximum, and a smooth one."""
        return (cls("absolute"), cls("softmax", smooth=0.3))


@dataclass(frozen=True, repr=False)
class GroupMaximum(Reweighted):
    """The largest mean loss of a group, or a smooth version of it."""

    group: NDArray[np.int64]  #: of each row
    mass: Array  #: P_g, the weight of each group
    smooth: float | None

    def kinds(self) -> NDArray[Any]:
        """Return targets and groups."""
        return np.column_stack([self.rows.y, self.group])

    def of_kinds(self, kinds: NDArray[Any], space: FunctionSpace) -> Self:
        """Return the objective of one row of each kind; every group is still there, with its weight."""
        y = self.rows.y
        targets = kinds[:, :-1].astype(y.dtype).reshape(len(kinds), *y.shape[1:])
        return replace(super().of_kinds(targets, space), group=kinds[:, -1].astype(np.int64))

    def reweight(self, losses: Array) -> tuple[float, Array]:
        """R = Σ_g s_g R_g at the kink; every row of group g counts s_g/P_g times."""
        bound = self.space.communicator.largest(np.abs(losses).max(initial=0.0))
        sums = self.space.exact_sums(self.group, losses[:, None], len(self.mass), bound)
        risks = self.space.added([sums]).values()[:, 0] / self.mass
        if self.smooth is None:
            value = float(risks.max())
            shares = (risks >= self.tie(value)[0]).astype(float)
            shares /= max(shares.sum(), 1.0)
        else:
            total = float(logsumexp(risks / self.smooth))
            value = self.smooth * (total - math.log(len(risks)))
            shares = np.exp(risks / self.smooth - total)
        return value, (shares / self.mass)[self.group]

    def loss_constants(self) -> Constants:
        """‖∇R‖ ≤ L/√P_min, and with `smooth` the smoothness Λ/P_min + L²/(2 μ P_min).

        ‖∇R‖² = Σ_g (s_g/P_g)² Σ_{n in g} p_n |g_n|² ≤ L² Σ_g s_g²/P_g.  The second derivative along D is
        Σ_g s_g R_g''[D, D] + (variance of R_g'[D] under s)/μ.  With ‖D_g‖ the norm of the rows of g,
        R_g''[D, D] ≤ Λ ‖D_g‖²/P_g and R_g'[D]² ≤ L² ‖D_g‖²/P_g; diag(s) − s sᵀ has no eigenvalue above 1/2.
        Groups better than the worst hardly count: not strongly convex.
        """
        inner, least = self.rows.loss_constants(), float(self.mass.min())
        smoothness = None
        if self.smooth is not None and inner.smoothness is not None and inner.lipschitz is not None:
            smoothness = (inner.smoothness + inner.lipschitz**2 / (2.0 * self.smooth)) / least
        slope = None if inner.lipschitz is None else inner.lipschitz / math.sqrt(least)
        return Constants(lipschitz=slope, smoothness=smoothness, minimum=inner.minimum)
