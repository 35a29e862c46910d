"""Step rules: how far to go along a direction.

A rule is a frozen set of hyper-parameters; what it learns on the way is in `memory`, which belongs to the
algorithm's state.  `size` gives η_t from the round and the length of the direction, `size_before_projection`
does so for error feedback, and a rule that looks at the objective along the direction overrides `__call__`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from scipy.optimize import brentq

from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import ZERO, Direction, Move
from convexboost.core.numbers import is_number, is_positive
from convexboost.core.protocols import Constants, Scores, Target

Memory = dict[str, Any]

#: A step shorter than this has lost digits, and changes nothing.
SHORTEST = 1e-280
#: `auto` doubles its first step while that multiplies the gain by at least this factor.
DOUBLE = 1.1
#: From round ENLARGE_FROM on `auto` may multiply the ensemble by ENLARGE, while more than the share
#: ENLARGE_ABOVE of what could be gained at the start is left.  Earlier, or closer to the floor, that makes
#: the scores larger but not more accurate.
ENLARGE_FROM, ENLARGE, ENLARGE_ABOVE = 20, 2**0.5, 0.3


def _positive(**parameters: float) -> None:
    for name, value in parameters.items():
        if not is_positive(value):
            raise ValueError(f"`{name}` of a step must be positive, got {value!r}")


class Step:
    """A rule for the step size."""

    name: ClassVar[str]
    #: Whether `size` gives η_t.  Dual averaging and error feedback need that; a line search has no `size`.
    is_schedule: ClassVar[bool] = True
    #: The parameter that a learning rate sets; None: the rule has none.
    rate_parameter: ClassVar[str | None] = None
    #: Whether leaves get values of their own, whatever the length of the gradient: it may be an envelope's.
    refits_leaves: ClassVar[bool] = False

    def with_rate(self, rate: float) -> Self:
        """Return the rule with its scale, factor or rate set."""
        if self.rate_parameter is None:
            raise ValueError(
                f"`learning_rate`={rate!r} and `step` {self.name!r} cannot be combined: this step finds its "
                "size by itself"
            )
        return replace(self, **{self.rate_parameter: rate})  # type: ignore[type-var]

    def check(self, constants: Constants) -> None:
        """Raise ValueError if the rule needs something of the objective that it does not have."""

    def settled(self, constants: Constants, inverse_time: float) -> Self:
        """Return the rule for an objective with these constants and an algorithm's `inverse_time`."""
        return self

    def size(self, t: int, scores: Scores, norm: float, memory: Memory) -> float:
        """η_t for round t and a direction of length `norm`."""
        raise NotImplementedError

    def size_before_projection(
        self, t: int, scores: Scores, gradient: Gradient, residual: Target, memory: Memory
    ) -> float:
        """η_t for round t of error feedback, which adds η_t ∇ to the residual e and projects the sum."""
        return self.size(t, scores, gradient.norm, memory)

    def __call__(self, t: int, scores: Scores, h: Direction, memory: Memory) -> Move:
        """Move by −η_t h."""
        eta = self.size(t, scores, h.norm, memory)
        return Move(h * -eta, eta)


@dataclass(frozen=True)
class Constant(Step):
    """η_t = scale: 1/Λ on a smooth objective (Theorem 3), Theorem B's scale with `residual`."""

    scale: float = 1.0
    name: ClassVar[str] = "constant"
    rate_parameter: ClassVar[str | None] = "scale"

    def __post_init__(self) -> None:
        _positive(scale=self.scale)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory) -> float:
        """Return the scale."""
        return self.scale


@dataclass(frozen=True)
class InverseSqrt(Step):
    """η_t = scale/√t (Theorems 5 and 7)."""

    scale: float = 1.0
    name: ClassVar[str] = "inverse_sqrt"
    rate_parameter: ClassVar[str | None] = "scale"

    def __post_init__(self) -> None:
        _positive(scale=self.scale)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory) -> float:
        """Return scale/√t."""
        return self.scale / math.sqrt(t)


@dataclass(frozen=True)
class InverseTime(Step):
    """η_t = scale/t.

    Without a scale, what the theorem of the algorithm asks for on a λ-strongly convex objective: 2/(λt) with
    `repeated` (Theorem 4), 1/(λt) with `residual` (Theorem 6).
    """

    scale: float | None = None
    name: ClassVar[str] = "inverse_time"
    rate_parameter: ClassVar[str | None] = "scale"

    def __post_init__(self) -> None:
        if self.scale is not None:
            _positive(scale=self.scale)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory) -> float:
        """Return scale/t."""
        assert self.scale is not None  # settled
        return self.scale / t

    def settled(self, constants: Constants, inverse_time: float) -> Self:
        """Return the rule with its scale: `inverse_time`/λ where there is none."""
        if self.scale is not None:
            return self
        return replace(self, scale=inverse_time / constants.strong_convexity)

    def check(self, constants: Constants) -> None:
        """Without a scale the objective must be strongly convex."""
        if self.scale is None and constants.strong_convexity <= 0.0:
            raise ValueError(
                "`step` 'inverse_time' needs a scale ('inverse_time:0.5') or a strongly convex objective "
                "(`l2` > 0)"
            )


@dataclass(frozen=True)
class Polyak(Step):
    """η_t = factor · (R[F] − target)₊/‖h‖²; `target` is R*, or a lower bound of it.

    By default the target is the loss's known minimum.  Error feedback has a residual e that is not yet in F;
    there η_t = factor · (R[F] − target − ⟨∇, e⟩)₊/‖∇‖², which has a proof (Theorem F, Section 7.2).
    """

    factor: float = 1.0
    target: float | None = None
    name: ClassVar[str] = "polyak"
    rate_parameter: ClassVar[str | None] = "factor"

    def __post_init__(self) -> None:
        _positive(factor=self.factor)
        if self.target is not None and not is_number(self.target):
            raise ValueError(f"`target` of a step must be a number or None, got {self.target!r}")

    def size(self, t: int, scores: Scores, norm: float, memory: Memory) -> float:
        """Return the Polyak step."""
        return self._size(scores, 0.0, norm)

    def size_before_projection(
        self, t: int, scores: Scores, gradient: Gradient, residual: Target, memory: Memory
    ) -> float:
        """Return the Polyak step for F − e."""
        correlation, squared = residual.inner(gradient)
        return self._size(scores, correlation, squared**0.5)

    def _size(self, scores: Scores, correlation: float, norm: float) -> float:
        target = scores.constants.minimum if self.target is None else self.target
        assert target is not None  # checked
        gap = scores.value() - target - correlation
        return self.factor * max(gap, 0.0) / (norm * norm) if norm > 0.0 else 0.0

    def check(self, constants: Constants) -> None:
        """A target must be given where the loss has no known minimum."""
        if self.target is None and constants.minimum is None:
            raise ValueError(
                "`step` 'polyak' needs a target (Polyak(target=...)): the loss has no known minimum"
            )


@dataclass(frozen=True)
class AdaNorm(Step):
    """η_t = scale/√(Σ_{j ≤ t} ‖h_j‖²): adapts to the measured lengths (Theorem A'')."""

    scale: float = 1.0
    name: ClassVar[str] = "adanorm"
    rate_parameter: ClassVar[str | None] = "scale"

    def __post_init__(self) -> None:
        _positive(scale=self.scale)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory) -> float:
        """Return scale over the root of the sum of squares so far."""
        memory["squares"] = memory.get("squares", 0.0) + norm * norm
        return self.scale / math.sqrt(memory["squares"]) if memory["squares"] > 0.0 else 0.0


@dataclass(frozen=True)
class LineSearch(Step):
    """The best step along −h.  Proven for `naive` on smooth objectives (Theorem 3); elsewhere a heuristic.

    With `residual` −h need not be a direction of descent; the step is then 0 and only Δ changes.
    """

    name: ClassVar[str] = "line_search"
    is_schedule: ClassVar[bool] = False

    def __call__(self, t: int, scores: Scores, h: Direction, memory: Memory) -> Move:
        """Minimise the convex function η ↦ R[F − η h] over η ≥ 0."""
        eta = search(scores, h, memory.get("eta")) if h.norm > 0.0 else 0.0
        if eta > 0.0:
            memory["eta"] = eta
        return Move(h * -eta, eta)


@dataclass(frozen=True)
class Refit(Step):
    """`rate` times the leaf values that lower R most; the projection is still what is subtracted from Δ.

    The loss chooses how the values are found (losses/_refit.py): a formula for each leaf, a Newton step that
    is shortened so that R cannot rise, a search along the gradient of each leaf, or, where rows are coupled,
    a proximal step in the values of all leaves.  A direction without leaves gets the best step for the whole
    of it.  R never rises for a rate of at most 1.
    """

    rate: float = 0.1
    name: ClassVar[str] = "refit"
    rate_parameter: ClassVar[str | None] = "rate"
    refits_leaves: ClassVar[bool] = True
    is_schedule: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _positive(rate=self.rate)

    def __call__(self, t: int, scores: Scores, h: Direction, memory: Memory) -> Move:
        """Move by `rate` times the refitted leaves."""
        if h.norm == 0.0:
            return Move(h, 0.0)
        refitted = scores.refitted(h)
        if refitted is None:
            eta = self.rate * search(scores, h, memory.get("eta"))
            memory["eta"] = eta / self.rate or memory.get("eta")
            return Move(h * -eta, eta)
        return Move(refitted * -self.rate, self.rate)


def search(scores: Scores, h: Direction, guess: float | None = None) -> float:
    """argmin_{η ≥ 0} R[F − η h], where the slope changes its sign."""
    ray = scores.along(h)

    def slope(eta: float) -> float:
        return -ray.slope(-eta)

    if not slope(0.0) < 0.0:
        return 0.0
    high = guess or _distance_bound(scores.gap(), scores) / h.norm
    for _ in range(40):  # the minimum may be far nearer than the guess
        if slope(high / 2.0) < 0.0:
            break
        high /= 2.0
    for _ in range(100):
        if slope(high) >= 0.0:
            break
        high *= 2.0
    else:
        return high  # no minimum in sight
    if high < SHORTEST:
        return 0.0
    eta = float(brentq(slope, 0.0, high, xtol=1e-15 * high, rtol=1e-14))
    return eta if ray(-eta) < scores.value() else 0.0


@dataclass(frozen=True)
class Auto(Step):
    """AdaNorm with a scale that finds itself: η_t = a_t/√(Σ_{j ≤ t} ‖h_j‖²).

    Theorem A'' wants a ≈ D/√2, where D is the distance to the optimum.  By convexity D ≥ (R − R*)/‖∇‖, so a
    starts at (R − floor)/(√2 ‖∇‖), R − floor being what can be gained (`Scores.gap`); it is doubled while the
    first step then gains at least a tenth more (the stronger the learner, the further it pays to go).  Half
    the distance travelled replaces it when that is larger, checked in rounds 3, 4, 5, 7, 9, 12, …, each a
    quarter later than the one before.  From round 20 on the whole ensemble is enlarged by √2 in these rounds
    if that lowers the objective and this is still far from its floor.  That costs one evaluation and no weak
    learner, and makes up for a scale that was too small.  Nothing depends on the units of y, or on a constant
    that is added to the loss.
    """

    name: ClassVar[str] = "auto"

    def size(self, t: int, scores: Scores, norm: float, memory: Memory) -> float:
        """Return a_t over the root of the sum of squares so far; `a` follows the distance travelled."""
        self._begin(scores, memory)
        self._follow(t, scores, memory, enlarge=False)
        return self._eta(norm, memory)

    def __call__(self, t: int, scores: Scores, h: Direction, memory: Memory) -> Move:
        """Move by −η_t h; in some rounds enlarge the ensemble too."""
        self._begin(scores, memory, h)
        shrink = self._follow(t, scores, memory, enlarge=True)
        eta = self._eta(h.norm, memory)
        return Move(h * -eta, eta, shrink)

    def _begin(self, scores: Scores, memory: Memory, h: Direction = ZERO) -> None:
        """Choose a for the first round; `h` is its direction, where that is known.

        `start` is what can be gained there.
        """
        if "a" in memory:
            return
        gap, start = scores.gap(), scores.value()
        a = _distance_bound(gap, scores) / math.sqrt(2)
        if a > 0.0 and h.norm > 0.0:
            ray = scores.along(h * (-1.0 / h.norm))
            gain, further = start - ray(a), start - ray(2 * a)
            nothing = max(1e-9 * gap, 1e-13 * abs(start))  # rounding must not decide
            while further > max(DOUBLE * gain, nothing) and math.isfinite(2 * a):
                a, gain, further = 2 * a, further, start - ray(4 * a)
        memory.update(a=a, start=gap, squares=0.0, next=3)

    def _follow(self, t: int, scores: Scores, memory: Memory, enlarge: bool) -> float:
        """Update a; return the factor by which the ensemble should grow."""
        factor = 1.0
        if t >= memory["next"]:
            memory["next"] = math.ceil(1.25 * t)
            may = enlarge and t >= ENLARGE_FROM
            may = may and ENLARGE_ABOVE * memory["start"] < scores.gap() < memory["start"]
            if may and scores.rescaled(ENLARGE) < scores.value():
                factor = ENLARGE
            memory["a"] = max(memory["a"], factor * scores.distance() / 2)
        return factor

    def _eta(self, norm: float, memory: Memory) -> float:
        memory["squares"] += norm * norm
        return float(memory["a"] / math.sqrt(memory["squares"])) if memory["squares"] > 0.0 else 0.0


def _distance_bound(gap: float, scores: Scores) -> float:
    """(R − floor)/‖∇‖: no minimiser is closer than this if the floor is reached."""
    slope = scores.gradient().norm
    return gap / slope if slope > 0.0 else 0.0


STEPS: dict[str, type[Step]] = {
    cls.name: cls for cls in (Auto, Constant, InverseSqrt, InverseTime, Polyak, AdaNorm, LineSearch, Refit)
}
