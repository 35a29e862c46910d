"""Step rules: how far to go along a direction.

A rule is a frozen set of hyper-parameters; what it learns on the way is in `memory`, which belongs to the
algorithm's state.  `size` gives η_t from the round and the length of the direction; a rule that looks at
the objective along the direction overrides `__call__` instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from scipy.optimize import brentq

from convexboost.core.hypotheses import ZERO, Direction, Move
from convexboost.core.protocols import Constants, Scores

Memory = dict[str, Any]

#: `auto` doubles its first step while that gains so many times as much.
DOUBLE = 1.1
#: From this round on `auto` may enlarge the ensemble, by this factor at a time, while more than this share
#: of the start is left to gain.  Earlier, or closer to the floor, it would buy confidence, not accuracy.
ENLARGE_FROM, ENLARGE, ENLARGE_ABOVE = 20, 2**0.5, 0.3


def _positive(**parameters: float) -> None:
    for name, value in parameters.items():
        if not (isinstance(value, Real) and 0 < value < math.inf):
            raise ValueError(f"`{name}` of a step must be positive, got {value!r}")


class Step:
    """A rule for the step size."""

    name: ClassVar[str]
    #: False if η_t depends on more than the round and a length, so that dual averaging and error feedback,
    #: which need it before the projection, cannot use the rule.
    is_schedule: ClassVar[bool] = True

    def check(self, constants: Constants) -> None:
        """Raise ValueError if the rule needs something of the objective that it does not have."""

    def size(self, t: int, scores: Scores, norm: float, memory: Memory, owed: float = 0.0) -> float:
        """η_t for round t, a direction of length `norm`, and ⟨∇, e⟩ = `owed` in error feedback."""
        raise NotImplementedError

    def __call__(self, t: int, scores: Scores, h: Direction, memory: Memory) -> Move:
        """Move by −η_t h."""
        eta = self.size(t, scores, h.norm, memory)
        return Move(h * -eta, eta)


@dataclass(frozen=True)
class Constant(Step):
    """η_t = scale: 1/Λ on a smooth objective (Theorem 3), Theorem B's scale with `residual`."""

    scale: float = 1.0
    name: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        _positive(scale=self.scale)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory, owed: float = 0.0) -> float:
        """Return the scale."""
        return self.scale


@dataclass(frozen=True)
class InverseSqrt(Step):
    """η_t = scale/√t (Theorems 5 and 7)."""

    scale: float = 1.0
    name: ClassVar[str] = "inverse_sqrt"

    def __post_init__(self) -> None:
        _positive(scale=self.scale)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory, owed: float = 0.0) -> float:
        """Return scale/√t."""
        return self.scale / math.sqrt(t)


@dataclass(frozen=True)
class InverseTime(Step):
    """η_t = scale/t; by default 1/(λ t), for λ-strongly convex objectives (Theorems 4 and 6)."""

    scale: float | None = None
    name: ClassVar[str] = "inverse_time"

    def __post_init__(self) -> None:
        if self.scale is not None:
            _positive(scale=self.scale)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory, owed: float = 0.0) -> float:
        """Return scale/t."""
        return (1.0 / scores.constants.strong_convexity if self.scale is None else self.scale) / t

    def check(self, constants: Constants) -> None:
        """Without a scale the objective must be strongly convex."""
        if self.scale is None and constants.strong_convexity <= 0.0:
            raise ValueError(
                "`step` 'inverse_time' needs a scale ('inverse_time:0.5') or a strongly convex objective "
                "(`l2` > 0)"
            )


@dataclass(frozen=True)
class Polyak(Step):
    """η_t = factor · (R[F] − target − ⟨∇, e⟩)₊/‖h‖²; `target` is R* or a floor of it.

    By default the target is the loss's known minimum.  ⟨∇, e⟩ is what error feedback owes; with it the rule
    has a proof (Theorem F, Section 7.2).
    """

    factor: float = 1.0
    target: float | None = None
    name: ClassVar[str] = "polyak"

    def __post_init__(self) -> None:
        _positive(factor=self.factor)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory, owed: float = 0.0) -> float:
        """Return the Polyak step."""
        target = scores.constants.minimum if self.target is None else self.target
        assert target is not None  # checked
        gap = scores.value() - target - owed
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

    def __post_init__(self) -> None:
        _positive(scale=self.scale)

    def size(self, t: int, scores: Scores, norm: float, memory: Memory, owed: float = 0.0) -> float:
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
    """`rate` times leaf values that lower R most; Δ still loses the projection.

    Exact, leaf by leaf, where the loss has a formula (squared and absolute error, quantiles, hinge); a Newton
    step, shortened so that R cannot rise, for softmax, logistic, exponential and poisson; a search along each
    leaf's gradient for other losses of single rows; a proximal step in the values of all leaves where rows
    are coupled (losses/_refit.py).  For a direction without leaves, the best step for the whole of it.  R
    never rises for a rate of at most 1.
    """

    rate: float = 0.1
    name: ClassVar[str] = "refit"
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
    eta = float(brentq(slope, 0.0, high, xtol=1e-15 * high, rtol=1e-14))
    return eta if ray(-eta) < scores.value() else 0.0


@dataclass(frozen=True)
class Auto(Step):
    """AdaNorm with a scale that finds itself: η_t = a_t/√(Σ_{j ≤ t} ‖h_j‖²).

    Theorem A'' wants a ≈ D/√2, where D is the distance to the optimum.  By convexity D ≥ (R − R*)/‖∇‖, so a
    starts at (R − floor)/(√2 ‖∇‖), R − floor being what can be gained (`Scores.gap`); it is doubled while the
    first step then gains at least a tenth more (the stronger the learner, the further it pays to go).  Half
    the distance travelled takes over when it is larger (looked up in rounds 3, 4, 5, 7, 9, 12, …, each a
    quarter later).  From round 20 on, in the same rounds, the whole ensemble is enlarged by √2 if that lowers
    the objective and this is still far from its floor: one evaluation and no weak learner, to make up for a
    scale that was too small.  Nothing depends on the units of y, or on a constant in the loss.
    """

    name: ClassVar[str] = "auto"

    def size(self, t: int, scores: Scores, norm: float, memory: Memory, owed: float = 0.0) -> float:
        """Return a_t over the root of the sum of squares so far; `a` follows the distance travelled."""
        self._begin(scores, memory)
        self._follow(t, scores, memory, enlarge=False)
        return self._eta(norm, memory)

    def __call__(self, t: int, scores: Scores, h: Direction, memory: Memory) -> Move:
        """Move by −η_t h, and now and then enlarge the ensemble."""
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
