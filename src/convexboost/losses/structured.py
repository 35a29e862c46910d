"""Structured outputs by maximum margin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.sums import ExactSum
from convexboost.core.text import shown
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss, is_positive, prepare
from convexboost.losses._objective import BoundLoss

#: How far below 0 rounding may put a value, relative to the numbers it is made of.
SLACK = 1e-9


@dataclass(frozen=True)
class Structured(Loss):
    """R[F] = Σ_i ω_i max over outputs ŷ of margin(y_i, ŷ) + ⟨F_i, μ(ŷ) − μ(y_i)⟩, over structures i; Σ ω = 1.

    Taskar, Guestrin and Koller (2003), Tsochantaridis et al. (2005).  The rows with the same label in
    `groups` are the parts of one structure (positions of a sentence, cells of a map), in the order of the
    rows.  Row n of the targets holds μ_n: how often the true output uses part n, one column per output of
    the model.  The score of an output is the sum of the scores of the parts that it uses, ⟨F_i, μ⟩.

    Parameters
    ----------
    oracle : callable
        ``oracle(F_i, y_i, label) -> (counts, margin)``: of all outputs, that with the largest
        margin + ⟨F_i, counts⟩, exactly.  The outputs must be the same for all F_i, and the truth one of them,
        with margin 0: then the loss is convex and never negative.  A negative value, which only an oracle
        that missed the maximum can give, is an error.  At a kink any of the best outputs will do.
    bound : float, optional
        An upper bound of the Euclidean norm ‖counts − y_i‖.  With it the Lipschitz constant is known, and the
        bounds that need one.

    Structures count equally, or ω_i is proportional to the mean sample weight of their rows: weight 2 for all
    rows of a structure is the structure twice.  All of them must be kept or left out together; early
    stopping does that.

    For costs instead of scores write ``Structured(oracle).affine(-1)``: the oracle still gets scores, which
    are the negative of the model's costs.  That is maximum margin planning (Ratliff, Bagnell and Zinkevich
    2006): R is the mean of the demonstration's cost minus the smallest cost − margin of all paths.

    """

    oracle: Callable[[Array, Array, Any], tuple[Any, float]]
    bound: float | None = None

    name: ClassVar[str] = "structured"
    task: ClassVar[str] = "regression"
    needs_groups = True
    whole_groups = True

    def __post_init__(self) -> None:
        if not callable(self.oracle):
            raise ValueError(f"`oracle` must be callable, got {self.oracle!r}")
        if self.bound is not None and not is_positive(self.bound):
            raise ValueError(f"`bound` must be positive or None, got {self.bound!r}")

    def formula(self, f: str = "f") -> str:
        """Mean over the structures of the largest margin + score difference."""
        return f"mean_i max_ŷ [margin(y, ŷ) + ⟨{f}, ŷ − y⟩]"

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Fix the true outputs and find the rows of each structure."""
        y, n_outputs = prepare(self, y, space, None)
        given = Groups.needed(groups, self, len(y))
        order = np.argsort(given.numbers, kind="stable")
        size = np.bincount(given.numbers)
        numbers, weight = given.numbers, given.weight
        omega = (space.masses(numbers) if weight is None else np.bincount(numbers, weight)) / size
        return Structures(
            self,
            y,
            tuple(np.split(order, np.cumsum(size)[:-1])),
            given.labels,
            omega / omega.sum(),
            space=space,
            n_outputs=n_outputs,
        )

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """The truth, or counts that are a tenth nearer to their mean, with margin 1."""
        return (cls(_truth_or_smoother, bound=3.0),)


def _truth_or_smoother(F: Array, y: Array, label: Any) -> tuple[Array, float]:
    other = 0.9 * y + 0.1 * y.mean(axis=0)
    return (other, 1.0) if 1.0 + np.sum(F * (other - y)) > 0.0 else (y, 0.0)


@dataclass(frozen=True, repr=False)
class Structures(BoundLoss):
    """The structures of a data set."""

    loss: Structured
    truth: Array
    rows: tuple[NDArray[np.int64], ...]  #: of each structure
    labels: NDArray[Any]  #: of each row
    omega: Array  #: the weight of each structure

    @property
    def source(self) -> Structured:
        """Return the loss."""
        return self.loss

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient: ω_i (μ(ŷ) − μ(y))/p."""
        value, partials = 0.0, np.empty(F.shape)
        for omega, rows in zip(self.omega, self.rows, strict=True):
            found, difference = self._ask(F[rows], self.truth[rows], self.labels[rows[0]])
            value += omega * found
            partials[rows] = omega * difference
        return float(value), self.space.gradient(partials)

    def _ask(self, F: Array, y: Array, label: Any) -> tuple[float, Array]:
        """Return the largest margin + score difference of a structure, and how its counts differ from y."""
        found = self.loss.oracle(F, y.copy(), label)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise ValueError(
                f"`oracle` must return counts and a margin, got {type(found).__name__} for {shown(label)}"
            )
        counts, margin = np.asarray(found[0], float), float(found[1])
        if counts.shape != F.shape:
            raise ValueError(
                f"`oracle` must return counts of shape {F.shape} for the structure {shown(label)}, got "
                f"{counts.shape}"
            )
        difference = counts - y
        gains = F * difference
        value = margin + float(ExactSum().add(gains.ravel()))
        if value < -SLACK * (1.0 + abs(margin) + float(np.abs(gains).sum())):
            raise ValueError(
                f"`oracle` returned an output that is {-value:g} worse than the truth for the structure "
                f"{shown(label)}: it must find the largest margin + score, the truth (margin 0) included"
            )
        return max(value, 0.0), difference

    def loss_constants(self) -> Constants:
        """‖∇R‖² = Σ_i ω_i² Σ_n ‖μ̂_n − μ_n‖²/p_n ≤ bound² Σ_i ω_i²/min p_n.  Never negative; kinks."""
        if self.loss.bound is None:
            return Constants(minimum=0.0)
        least = np.array([self.space.weight[rows].min() for rows in self.rows])
        slope = float(self.loss.bound) * math.sqrt(float(np.sum(self.omega**2 / least)))
        return Constants(lipschitz=slope, minimum=0.0)
