"""Algorithms 1, 2 and 3 of Grubb & Bagnell (2011): the paper and only it.

One round of each, one statement for one line of the pseudo-code.  F are the scores (they live in the
objective), Δ is the vector that is projected (it lives in the hypothesis set).  The subgradient is taken
at f_{t−1}; the guarantees are about the average or the best of these points, not about the last one.
docs/paper-map.md lists what was corrected in the print, and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from convexboost.boosting.steps import Step
from convexboost.core.hypotheses import Direction, Move
from convexboost.core.numbers import is_number, is_positive, is_whole
from convexboost.core.protocols import Constants, HypothesisSet, Scores, Target

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass
class State:
    """Everything an algorithm knows between two rounds."""

    F: Scores
    H: HypothesisSet
    n_outputs: int
    step: Step
    rng: Generator
    target: Target | None = None  #: Δ, for the algorithms that carry it from round to round
    t: int = 0  #: rounds begun
    memory: dict[str, Any] = field(default_factory=dict)  #: of the step rule
    budget: float = math.inf  #: weak learners that may still be trained

    def zero(self) -> Target:
        """Δ = 0."""
        return self.H.zero(self.n_outputs)


@dataclass(frozen=True)
class Round:
    """What happened in a round: the direction found and how F moved."""

    h: Direction
    move: Move


class Algorithm:
    """One round at a time; the driver in training.py does the rest."""

    #: Whether a round adds one hypothesis; the estimators' step "auto" may then refit its leaves.
    adds_one_hypothesis: ClassVar[bool] = False
    #: The part of what a projection leaves over that is kept for the next round.
    decay: float = 1.0

    @property
    def name(self) -> str:
        """Return the name by which the estimators know it."""
        return type(self).__name__.lower()

    def check(self, step: Step, constants: Constants) -> None:
        """Raise ValueError if the step rule does not fit.  By default every rule fits."""

    def round(self, state: State) -> Round:
        """One round: move F, and return what happened."""
        raise NotImplementedError


@dataclass(frozen=True)
class Naive(Algorithm):
    """Algorithm 1: project the subgradient, step, forget what was left over."""

    decay = 0.0
    adds_one_hypothesis: ClassVar[bool] = True

    def round(self, s: State) -> Round:
        """Move f by −η proj(∇)."""
        s.t += 1
        delta = s.zero()
        delta.add(s.F.gradient())
        h = delta.project(s.rng)
        move = s.step(s.t, s.F, h, s.memory)
        s.F.move(move)
        return Round(h, move)


@dataclass(frozen=True)
class Repeated(Algorithm):
    """Algorithm 2': in round t project, subtract the projection, and repeat, t times in all.

    With `accuracy` (the paper's "alternative version") the number of projections adapts instead: they go
    on until the next projected length is at most a threshold, sqrt(λ accuracy/2) for a λ-strongly convex
    objective, else accuracy/(2 radius), where `radius` bounds the distance to the optimum (None: twice
    the distance travelled so far, at least (R − floor)/‖∇‖); at least one and never more than `cap`.  What
    the projection error then costs is at most accuracy/2 if `radius` is measured in the atomic norm of H, and
    up to 1/edge times that in L²(P) (theory 7.1: the residual's own norm has a floor outside span(H)).
    """

    accuracy: float | None = None
    radius: float | None = None
    cap: int = 1000
    decay = 0.0

    def __post_init__(self) -> None:
        for name in ("accuracy", "radius"):
            value = getattr(self, name)
            if value is not None and not is_positive(value):
                raise ValueError(f"`{name}` must be positive, got {value!r}")
        if not is_whole(self.cap, 1):
            raise ValueError(f"`cap` must be a positive integer, got {self.cap!r}")

    def round(self, s: State) -> Round:
        """Move f by −η (proj(∇) + proj(∇ − proj(∇)) + …)."""
        s.t += 1
        delta = s.zero()
        delta.add(s.F.gradient())
        count = s.t if self.accuracy is None else self.cap
        h = delta.pursue(int(min(count, s.budget)), s.rng, self._threshold(s))
        move = s.step(s.t, s.F, h, s.memory)
        s.F.move(move)
        return Round(h, move)

    def _threshold(self, s: State) -> float:
        if self.accuracy is None:
            return 0.0
        if s.F.constants.strong_convexity > 0:
            return math.sqrt(s.F.constants.strong_convexity * self.accuracy / 2)
        radius = self.radius
        if radius is None:
            radius = max(2 * s.F.distance(), s.F.gap() / max(s.F.gradient().norm, 1e-300))
        return self.accuracy / (2 * max(radius, 1e-300))


@dataclass(frozen=True)
class Residual(Algorithm):
    """Algorithm 3: what a projection leaves over is added to the next subgradient.

    `decay` multiplies the residual between rounds: 1 is the paper, 0 is Algorithm 1.  A line search has no
    guarantee here: −h need not be a direction of descent.
    """

    decay: float = 1.0
    adds_one_hypothesis: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (is_number(self.decay) and 0 <= self.decay <= 1):
            raise ValueError(f"`decay` must lie in [0, 1], got {self.decay!r}")

    @property
    def name(self) -> str:
        """Return "residual", or "naive" where nothing is kept."""
        return "residual" if self.decay > 0.0 else "naive"

    def round(self, s: State) -> Round:
        """Δ ← Δ + ∇;  f ← f − η proj(Δ);  Δ ← Δ − proj(Δ)."""
        s.t += 1
        delta = s.target = s.target or s.zero()
        delta.scale(self.decay)
        delta.add(s.F.gradient())
        h = delta.project(s.rng)
        move = s.step(s.t, s.F, h, s.memory)
        s.F.move(move)
        delta.subtract(h)
        return Round(h, move)
