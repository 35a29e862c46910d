"""Algorithms 1, 2 and 3 of Grubb & Bagnell (2011).

One round of each, one statement for one line of the pseudo-code.  F are the scores (they live in the
objective), Δ is the vector that is projected (it lives in the hypothesis set).  The subgradient is taken
at f_{t−1}; the guarantees are about the average or the best of these points, not about the last one.

Not in print, besides the corrections that docs/paper-map.md lists:

- `Repeated` rescales the sum of its projections (Algorithm 2'; `rescale=False` is Algorithm 2), and gives the
  "alternative version" a threshold (`accuracy`, `radius`, `cap`), which the paper only announces.
- `Residual` may forget (`decay`, `until`).  The paper keeps everything; "auto" of trees does not.
- A round may take any `Step`.  The theorems of the paper are about 1/√t, 2/(λt), 1/(λt), and 1/Λ or a line
  search with `Naive`.
- A round may take gradients of an envelope instead of subgradients: that is the objective's matter.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from convexboost.boosting.steps import Step
from convexboost.core.hypotheses import Direction, Move
from convexboost.core.numbers import is_number, is_positive, is_whole
from convexboost.core.protocols import Constants, HypothesisSet, Scores, Target

if TYPE_CHECKING:
    from numpy.random import Generator

#: Projections of a round with an `accuracy` at most: where ‖Πr‖ is known, so that it ends, and elsewhere.
MOST, MOST_UNSURE = 100_000, 1000


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
    found: list[Direction] = field(default_factory=list)  #: by the weak learners, in this round
    known: Sequence[Direction] = ()  #: what they find in it, where an earlier run has found that already

    def zero(self) -> Target:
        """Δ = 0."""
        return self.H.zero(self.n_outputs)

    def project(self, delta: Target) -> Direction:
        """Return proj(Δ), found with a view to the refit of its leaves where there will be one."""
        if not (delta.uses_curvature and self.step.refits_leaves):
            return self._find(lambda: delta.project(self.rng))
        curvature = self.F.curvature_of_rows()
        return self._find(lambda: delta.project_to_refit(self.rng, curvature))

    def pursue(self, delta: Target, count: float, tolerance: float, rescale: bool) -> Direction:
        """Return the sum of up to `count` projections, each of what the ones before left over of Δ."""
        return self._find(lambda: delta.pursue(int(min(count, self.budget)), self.rng, tolerance, rescale))

    def _find(self, train: Callable[[], Direction]) -> Direction:
        place = len(self.found)
        self.found.append(self.known[place] if place < len(self.known) else train())
        return self.found[-1]


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
    #: Its theorem for λ-strongly convex objectives asks for the step η_t = inverse_time/(λt).
    inverse_time: ClassVar[float] = 1.0

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
        h = s.project(delta)
        move = s.step(s.t, s.F, h, s.memory)
        s.F.move(move)
        return Round(h, move)


@dataclass(frozen=True)
class Repeated(Algorithm):
    """Algorithm 2' of docs/paper-map.md: in round t project, subtract, repeat, t times in all, then rescale.

    The sum of the projections is rescaled to be the projection of ∇ on its own line; Theorems 4 and 5 need
    that (errata 19 and 23).  `rescale=False` is Algorithm 2, with the inner update as it must be (erratum 7).

    With `accuracy` (the paper's "alternative version") the number of projections adapts instead: they go on
    until the part r of ∇ that is left over in span(H) has ‖Πr‖ ≤ τ.  The projection error then adds at most
    accuracy/2 to the average gap (theory, "Repeated"):

    - λ-strongly convex: τ = √(λ accuracy/2), against every model;
    - else τ = accuracy/(2 radius), against the models within `radius` of the iterates.  None: twice the
      distance of the iterate from the start, so against the models that are no further from the start than
      the iterate; and no less than (R − floor)/‖∇‖, which nothing better can be closer than.

    Stumps, additive functions and finite sets know ‖Πr‖.  Other sets do not know their span: there ‖r‖ ≤ τ
    decides, which is safe, but may ask for more projections than there is use for, or may never be true.
    A round ends after `cap` projections in any case (None: MOST where ‖Πr‖ is known, else MOST_UNSURE); if
    ‖Πr‖ ≤ τ is not certain then, there is a warning.  A small ε costs thousands of stumps in a round.
    """

    accuracy: float | None = None
    radius: float | None = None
    cap: int | None = None
    rescale: bool = True
    decay = 0.0
    inverse_time: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        for name in ("accuracy", "radius"):
            value = getattr(self, name)
            if value is not None and not is_positive(value):
                raise ValueError(f"`{name}` must be positive, got {value!r}")
        if self.cap is not None and not is_whole(self.cap, 1):
            raise ValueError(f"`cap` must be a positive integer or None, got {self.cap!r}")
        if not isinstance(self.rescale, bool):
            raise ValueError(f"`rescale` must be True or False, got {self.rescale!r}")

    def round(self, s: State) -> Round:
        """Move f by −η (proj(∇) + proj(∇ − proj(∇)) + …)."""
        s.t += 1
        delta = s.zero()
        delta.add(s.F.gradient())
        count, tolerance = (s.t, 0.0) if self.accuracy is None else (self._cap(delta), self._tolerance(s))
        h = s.pursue(delta, count, tolerance, self.rescale)
        is_cut = self.accuracy is not None and not s.known and h.n_weak_learners == count
        if is_cut and delta.length() > tolerance:
            warnings.warn(
                f"`accuracy`={self.accuracy!r} may be missed: {count} projections in a round (`cap`) "
                "were not enough to be sure of it",
                stacklevel=2,
            )
        move = s.step(s.t, s.F, h, s.memory)
        s.F.move(move)
        return Round(h, move)

    def _cap(self, delta: Target) -> int:
        """Return the most projections of a round."""
        if self.cap is not None:
            return self.cap
        return MOST if delta.knows_length else MOST_UNSURE

    def _tolerance(self, s: State) -> float:
        """Return τ."""
        assert self.accuracy is not None
        if s.F.constants.strong_convexity > 0:
            return math.sqrt(s.F.constants.strong_convexity * self.accuracy / 2)
        radius, slope = self.radius, s.F.gradient().norm
        if radius is None:
            radius = max(2 * s.F.distance(), s.F.gap() / slope if slope > 0.0 else 0.0)
        return self.accuracy / (2 * radius) if radius > 0.0 else math.inf


@dataclass(frozen=True)
class Residual(Algorithm):
    """Algorithm 3: what a projection leaves over is added to the next subgradient.

    Not in print: `decay` multiplies the residual between rounds.  1 is the paper, 0 is Algorithm 1.  Below
    1 there is a floor on objectives with kinks (Theorems K and N), none on smooth ones (Theorem M).  With
    `until` only the first rounds forget that much: in round t > until the factor is
    1 − (1 − decay) until/t, and the floor vanishes.

    A line search has no guarantee here: −h need not be a direction of descent.
    """

    decay: float = 1.0
    until: int | None = None
    adds_one_hypothesis: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (is_number(self.decay) and 0 <= self.decay <= 1):
            raise ValueError(f"`decay` must lie in [0, 1], got {self.decay!r}")
        if self.until is not None and not is_whole(self.until, 1):
            raise ValueError(f"`until` must be a positive integer or None, got {self.until!r}")

    @property
    def name(self) -> str:
        """Return "residual", or "naive" where nothing is ever kept."""
        return "naive" if self.decay == 0.0 and self.until is None else "residual"

    def kept(self, t: int) -> float:
        """Return the part of the residual that round t keeps."""
        if self.until is None or t <= self.until:
            return self.decay
        return 1.0 - (1.0 - self.decay) * self.until / t

    def round(self, s: State) -> Round:
        """Δ ← Δ + ∇;  f ← f − η proj(Δ);  Δ ← Δ − proj(Δ)."""
        s.t += 1
        delta = s.target = s.target or s.zero()
        delta.scale(self.kept(s.t))
        delta.add(s.F.gradient())
        h = s.project(delta)
        move = s.step(s.t, s.F, h, s.memory)
        s.F.move(move)
        delta.subtract(h)
        return Round(h, move)
