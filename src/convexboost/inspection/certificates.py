"""Certified lower bounds: how far from optimal a model can be at most (theory: Section 4).

A subgradient ℓ of the loss at x is a *cut*: for every f

    loss(f) ≥ a + ⟨ℓ, f − f₀⟩,    a = loss(x) − ⟨ℓ, x − f₀⟩.

A mean of cuts is a cut too, whatever the algorithm, the steps and the edges.  Its minimum over f₀ + span(H),
ridge term included, is a number that no model gets below.  With A and u the means of a and ℓ, and Π the
projector on span(H):

    C2   l2 > 0                                A − ‖Πu‖²/(2 l2)
    C1   models with ‖f − f₀‖ ≤ D              A − D ‖Πu‖
    C1'  models f₀ + Σ α h/‖h‖, Σ|α| ≤ B       A − B max_h |⟨u, h⟩|/‖h‖

The weights of the mean are free.  `maximise` finds the best ones: more than the uniform, the tail and the
greedy mean could do, since those are among them.

A bound must hold in floating point.  The constant of a cut is lowered by its rounding error
(`constant_error`), its slope is lengthened by its own (`slack`), and rows too light to be seen in the
coordinates of the slope count as if every function of them were in span(H) (`light`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Direction, Move
from convexboost.core.protocols import HypothesisSet, Objective, Scores, Target
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.core.tolerances import KINK, TIE

#: Cuts kept.  When there are more, the best mean so far takes the place of the two least useful ones.
MAX_CUTS = 40
#: A cut is the mean over a block of rounds: at least so many, and this share of the rounds so far.
MIN_BLOCK, BLOCK_SHARE = 20, 0.1
#: Exchanges of weight between two cuts for each new one, and when a bound is asked for.
FEW, MANY = 40, 10_000
#: Error of a value, relative to the numbers it is computed from; kinks are known to `KINK` only.
VALUE_ROUNDING = 2.0 * KINK
#: Error of a product of two slopes, relative to their lengths.
PRODUCT_ROUNDING = 64.0 * float(np.finfo(float).eps)


def constant_error(value: float, slope: float, magnitude: float, additions: int = 0) -> float:
    """Return the error of a cut's constant.

    `value` is the objective there, `slope` the length of its subgradients, `magnitude` that of the scores,
    which are the result of so many `additions`.
    """
    eps = float(np.finfo(float).eps)
    # Losses within TIE of the largest count as the largest in CVaR and WorstGroup.
    return 2.0 * TIE * abs(value) + (KINK + (8 + additions) * eps) * slope * magnitude


# -- the best mean of some cuts --------------------------------------------------------------------------


class Domain(Protocol):
    """The models a bound is about: what they can gain from a slope u, as a function of s = ‖Πu‖²."""

    def gain(self, s: float) -> float:
        """Return the most that ⟨−u, f − f₀⟩, less the ridge term, can be."""

    def rate(self, s: float) -> float:
        """Return twice the derivative of `gain`."""

    def exchange(self, rise: float, s: float, q: float, c: float) -> float:
        """argmax_θ rise · θ − gain(s + 2 q θ + c θ²)."""


@dataclass(frozen=True)
class Ridge:
    """All models, with the ridge term (l2/2) ‖f − f₀‖²."""

    l2: float

    def gain(self, s: float) -> float:
        """‖u‖²/(2 l2)."""
        return s / (2.0 * self.l2)

    def rate(self, s: float) -> float:
        """1/l2."""
        return 1.0 / self.l2

    def exchange(self, rise: float, s: float, q: float, c: float) -> float:
        """Return the vertex of a parabola."""
        return (self.l2 * rise - q) / c if c > 0.0 else math.inf


@dataclass(frozen=True)
class Ball:
    """The models with ‖f − f₀‖ ≤ radius, without a ridge term."""

    radius: float

    def gain(self, s: float) -> float:
        """D ‖u‖."""
        return self.radius * math.sqrt(s)

    def rate(self, s: float) -> float:
        """D/‖u‖."""
        return self.radius / math.sqrt(max(s, 1e-300))

    def exchange(self, rise: float, s: float, q: float, c: float) -> float:
        """Return where D ‖u‖ has the slope `rise`, if it ever has."""
        slope = rise / self.radius
        if slope * slope >= c:
            return math.inf
        return (slope * math.sqrt(max(s - q * q / c, 0.0) / (1.0 - slope * slope / c)) - q) / c


def maximise(constants: Array, products: Array, domain: Domain, weights: Array, steps: int) -> Array:
    """Improve the weights of a mean of cuts: max Σ ω a − gain(ωᵀ Q ω) over the simplex.

    Each step moves weight from the worst cut in use to the best one, as far as it pays.  Every result is a
    valid mean, so it may stop at any time.
    """
    w, Qw = weights.copy(), products @ weights
    for _ in range(steps):
        s = float(w @ Qw)
        slopes = constants - domain.rate(s) * Qw
        to = int(np.argmax(slopes))
        used = np.flatnonzero(w > 0.0)
        origin = int(used[np.argmin(slopes[used])])
        if slopes[to] - slopes[origin] <= 1e-13 * max(abs(slopes[to]), abs(slopes[origin])):
            break
        difference = products[to] - products[origin]
        size = domain.exchange(
            float(constants[to] - constants[origin]),
            s,
            float(Qw[to] - Qw[origin]),
            float(difference[to] - difference[origin]),
        )
        size = min(max(size, 0.0), float(w[origin]))
        if size == 0.0:
            break
        w[to] += size
        w[origin] = 0.0 if size == w[origin] else w[origin] - size
        Qw = Qw + size * difference
    return w


def lower_bound(
    constants: Array, products: Array, domain: Domain, weights: Array, slack: Array | float = 0.0
) -> float:
    """Σ ω a − gain((‖Σ ω Πℓ‖ + Σ ω slack)²), the slopes' rounding error included."""
    lengths = float(np.sum(weights * np.sqrt(products.diagonal())))
    square = max(float(weights @ products @ weights), 0.0) + PRODUCT_ROUNDING * lengths * lengths
    return float(constants @ weights) - domain.gain((math.sqrt(square) + float(np.sum(weights * slack))) ** 2)


# -- what is known at the end ----------------------------------------------------------------------------


@dataclass(frozen=True)
class LowerBound:
    """No model that satisfies `assumption` has an objective below `value`."""

    name: str
    value: float
    assumption: str


class Attained(NamedTuple):
    """A model that exists: no bound that speaks of it can be above its objective."""

    objective: float
    distance: float = math.inf  #: ‖f − f₀‖; ∞ where it is not known
    weight: float = math.inf  #: Σ|α|‖h‖; ∞ where it is not known


@dataclass(frozen=True)
class Line:
    """A mean of cuts as a line: A − D · slope bounds the models within D of the start from below."""

    constant: float
    slope: float = math.nan  #: ‖Πu‖ at most; NaN where span(H) is too large to be known
    strength: float = math.nan  #: max_h |⟨u, h⟩|/‖h‖; NaN for learners that need not find the best h

    @classmethod
    def of(
        cls, constant: float, slope: Array | None, slack: float, light: float, strength: float | None
    ) -> Line:
        """Make a line from a cut and the `Target.strength` of its slope."""
        return cls(
            constant,
            math.nan if slope is None else math.hypot(float(np.linalg.norm(slope)), light) + slack,
            math.nan if strength is None else math.hypot(strength, light) + slack,
        )

    def atoms(self, weight: float) -> float:
        """Return the bound for ensembles of total weight at most `weight`."""
        return self.constant - weight * self.strength


@dataclass(frozen=True)
class Certificate:
    """What a run has proved about the best objective that its weak learner can reach."""

    objective: float  #: the smallest found, or that of the model asked about
    average: float  #: mean over the points where a subgradient was taken; the averaged model is no worse
    minimum: float | None  #: what is known of the loss
    l2: float
    distance: float  #: ‖f − f₀‖ at the end; NaN where span(H) is not known
    constants: Array  #: a of each cut
    products: Array | None  #: ⟨Πℓ, Πℓ'⟩ of all pairs; None where span(H) is too large to be known
    uniform: Line  #: the mean over all rounds
    tail: Line  #: the mean over the last half, or quarter, of them
    knows_span: bool = True  #: False: the bounds hold for all functions, so they may be far below
    found: tuple[LowerBound, ...] = ()  #: bounds found in other ways, without an assumption
    radius: float | None = None  #: what to tell of C1 …
    weight: float | None = None  #: … and of C1'
    met: float = math.inf  #: an objective that was met while the bound was improved
    slack: Array | float = 0.0  #: of each cut: the length that its slope may lack
    attained: tuple[Attained, ...] = ()  #: models that a bound must not be above
    _weights: dict[Any, Array] = field(default_factory=dict, repr=False, compare=False)

    __repr__ = brief

    def floor(self) -> LowerBound | None:
        """Return the known minimum of the loss."""
        if self.minimum is None:
            return None
        return self._held(LowerBound("floor", self.minimum, f"the loss is never below {self.minimum:g}"))

    def ridge(self) -> LowerBound | None:
        """C2: needs l2 > 0 and nothing else."""
        if self.l2 <= 0.0 or self.products is None:
            return None
        text = f"holds for {self._who}; l2 = {self.l2:g}"
        return self._held(LowerBound("C2", self._bound(Ridge(self.l2)), text))

    def ball(self, radius: float) -> LowerBound | None:
        """C1: models within `radius` of the start, in L²(P)."""
        if not radius > 0.0:
            raise ValueError(f"`radius` must be positive, got {radius!r}")
        if self.products is None:
            return None
        text = f"holds for {self._who} with ‖f − f₀‖ ≤ {radius:g}; this run went {self.distance:.3g} far"
        return self._held(LowerBound("C1", self._bound(Ball(radius)), text), radius=radius)

    def atoms(self, weight: float) -> LowerBound | None:
        """C1': ensembles of total weight at most `weight`; needs a weak learner that finds the best h."""
        if not weight > 0.0:
            raise ValueError(f"`weight` must be positive, got {weight!r}")
        value = max(line.atoms(weight) for line in (self.uniform, self.tail))
        text = f"holds for ensembles of total weight Σ|α|‖h‖ ≤ {weight:g}"
        return None if math.isnan(value) else self._held(LowerBound("C1'", value, text), weight=weight)

    def best(self, radius: float | None = None, weight: float | None = None) -> LowerBound:
        """Return the largest bound that needs no assumption, or none but those given."""
        found = [self.floor(), self.ridge(), *map(self._held, self.found)]
        found += [self.ball(radius)] if radius is not None else []
        found += [self.atoms(weight)] if weight is not None else []
        nothing = LowerBound("none", -math.inf, "the loss has no known minimum and l2 is 0")
        return max((bound for bound in found if bound is not None), key=lambda b: b.value, default=nothing)

    def gap(self, radius: float | None = None, weight: float | None = None) -> float:
        """Return how far the best objective found is at most above the optimum."""
        return self.objective - self.best(radius, weight).value

    def settle(self, domain: Domain) -> None:
        """Use the best single cut for a domain, instead of looking for the best mean."""
        singles = np.eye(len(self.constants))
        self._weights[domain] = max(singles, key=lambda weights: self._value(domain, weights))

    def __str__(self) -> str:
        return "\n".join([*self._proved(), *self._assumed()])

    def _proved(self) -> Iterator[str]:
        """Say what holds without an assumption."""
        bound, floor = self.best(), self.floor()
        if math.isnan(self.average):
            yield f"Objective of the model: {self.objective:.6g}."
        else:
            yield f"Best objective found: {self.objective:.6g}; mean over the rounds: {self.average:.6g}."
        if bound.name in ("C2", "exact"):
            yield (
                f"No model gets below {bound.value:.6g}, so it is at most {self._above(bound)} above the "
                f"optimum.  The bound {bound.assumption}."
            )
        if self.l2 > 0.0 and self.products is not None and bound.name != "C2":
            yield (
                "The ridge bound C2 is vacuous so far: it does not rise above the known floor.  More rounds "
                "or a larger l2 would help."
            )
            if not self.knows_span:
                yield "So would learner='stump': for this learner the bound is about every function whatever."
        if bound.name == "floor" and floor is not None:
            yield f"It is at most {self._above(floor)} above the optimum, because {floor.assumption}."
        if self.products is None and self.uniform.constant == -math.inf:
            yield "No round was finished, so C1 and C2 are missing."
        elif self.products is None:
            yield (
                "There are too many bins to look for the span of the weak learners here, so C1 and C2 are "
                "missing; `certify` looks for it up to 4,096 bins."
            )
        if self.met < self.objective:
            yield f"While the bound was improved, a model with the objective {self.met:.6g} was met."
        if bound.name == "none":
            yield "Nothing is certified without an assumption: the loss has no known minimum and l2 is 0."

    def _assumed(self) -> Iterator[str]:
        """Say what holds under an assumption."""
        best = self.best().value
        for name, size, make in (("C1", self.radius, self.ball), ("C1'", self.weight, self.atoms)):
            bound = None if size is None else make(size)
            if bound is not None and bound.value > best:
                yield (
                    f"{name}, {bound.value:.6g}, {bound.assumption}: among them it is at most "
                    f"{self._above(bound)} above the best."
                )
            elif bound is not None:
                yield f"{name} is vacuous for {size:.3g}: it does not rise above {best:.6g}."
        if self.l2 <= 0.0 and not math.isnan(self.average) and not math.isnan(self.uniform.slope):
            above = self.average - self.uniform.constant
            yield (
                f"Within a distance D of the start the mean is at most {above:.3g} + "
                f"{self.uniform.slope:.3g} D above the best model; this run went {self.distance:.3g} far.  "
                "`ball(D)` gives a better bound."
            )

    def _above(self, bound: LowerBound) -> str:
        gap = self.objective - bound.value
        return f"{gap:.3g} ({gap / self.objective:.1%} of it)" if self.objective > 0.0 else f"{gap:.3g}"

    @property
    def _who(self) -> str:
        return "every sum of these weak learners" if self.knows_span else "every function whatever"

    def _held(self, bound: LowerBound, radius: float = math.inf, weight: float = math.inf) -> LowerBound:
        """Lower a bound to what was attained by a model it speaks of: the last defence against rounding."""
        models = (Attained(self.objective), Attained(self.met), *self.attained)
        least = min(
            (m.objective for m in models if m.distance <= radius and m.weight <= weight), default=math.inf
        )
        return replace(bound, value=least) if bound.value > least else bound

    def _bound(self, domain: Domain) -> float:
        """Return the best bound of a mean, before `_held`."""
        value, n = partial(self._value, domain), len(self.constants)
        if domain not in self._weights:
            assert self.products is not None
            start = max([np.full(n, 1.0 / n), *np.eye(n)], key=value)
            better = maximise(self.constants, self.products, domain, start, MANY)
            self._weights[domain] = max(start, better, key=value)
        return value(self._weights[domain])

    def _value(self, domain: Domain, weights: Array) -> float:
        assert self.products is not None
        return lower_bound(self.constants, self.products, domain, weights, self.slack)


class Bundle:
    """At most `MAX_CUTS` cuts in span(H), and the weights of their best mean so far."""

    def __init__(self) -> None:
        self.constants, self.weights, self.products = np.zeros(0), np.zeros(0), np.zeros((0, 0))
        self.slack, self.light = np.zeros(0), np.zeros(0)
        self.coordinates: list[Array] = []

    def __len__(self) -> int:
        return len(self.constants)

    def append(self, constant: float, coordinates: Array, slack: float = 0.0, light: float = 0.0) -> None:
        """Add a cut, of no weight unless it is the first."""
        if len(self) == MAX_CUTS:
            self._merge()
        n = len(self)
        self.coordinates = [*self.coordinates, coordinates.ravel()]
        self.constants = np.append(self.constants, constant)
        self.slack, self.light = np.append(self.slack, slack), np.append(self.light, light)
        self.weights = np.append(self.weights, float(n == 0))
        products = np.empty((n + 1, n + 1))
        products[:n, :n] = self.products
        # einsum without BLAS: the sums do not depend on the number of threads
        row = [np.einsum("j,j->", other, self.coordinates[n]) for other in self.coordinates]
        # Light rows are one more coordinate: by Cauchy-Schwarz two slopes have at most light · light' there
        products[n] = products[:, n] = np.array(row) + self.light * light
        self.products = products

    def mean(self) -> tuple[float, Array, float, float]:
        """Return the best mean so far: its constant, its slope, and the slack and the light part of that."""
        terms = [w * row for w, row in zip(self.weights, self.coordinates, strict=True) if w > 0.0]
        lengths = float(np.sum(self.weights * np.sqrt(self.products.diagonal())))
        slack = float(np.sum(self.weights * self.slack)) + PRODUCT_ROUNDING * lengths
        light = float(np.sum(self.weights * self.light))
        return float(np.sum(self.weights * self.constants)), np.sum(terms, axis=0), slack, light

    def improve(self, domain: Domain, steps: int) -> float:
        """Find better weights, from those so far or from the last cut alone; return the bound they give."""

        def value(weights: Array) -> float:
            return lower_bound(self.constants, self.products, domain, weights, self.slack)

        alone = np.zeros(len(self))
        alone[-1] = 1.0
        start = max(self.weights, alone, key=value)
        self.weights = max(start, maximise(self.constants, self.products, domain, start, steps), key=value)
        return value(self.weights)

    def with_mean(self) -> Bundle:
        """Return the bundle with its best mean as one more cut, whose length is known best."""
        out = Bundle()
        out.restore(self.state())
        if len(self) > 0:
            out.append(*self.mean())
        return out

    def state(self) -> Any:
        """Return what `restore` needs, picklable; nothing here is changed in place."""
        return self.constants, self.coordinates, self.products, self.slack, self.light, self.weights

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        self.constants, self.coordinates, self.products, self.slack, self.light, self.weights = state

    def _merge(self) -> None:
        """Put the best mean so far in the place of the two cuts with the least weight."""
        mean = self.mean()
        keep = np.sort(np.argsort(self.weights, kind="stable")[2:])
        self.constants, self.coordinates = self.constants[keep], [self.coordinates[i] for i in keep]
        self.products, self.weights = self.products[np.ix_(keep, keep)], np.zeros(len(keep))
        self.slack, self.light = self.slack[keep], self.light[keep]
        self.append(*mean)
        self.weights[-1] = 1.0


# -- during a run ----------------------------------------------------------------------------------------


@dataclass
class Sum:
    """A sum of cuts."""

    slope: Target
    hypotheses: HypothesisSet
    constant: float = 0.0
    length: float = 0.0  #: sum of the lengths of the slopes …
    light: float = 0.0  #: … and of their parts on rows that coordinates may not see
    count: int = 0

    def cut(self, constant: float, slope: Gradient) -> None:
        """Add a cut."""
        self.slope.add(slope)
        self.constant += constant
        self.length += slope.norm
        self.light += self.hypotheses.light(slope)
        self.count += 1

    def add(self, other: Sum) -> None:
        """Add another sum."""
        self.slope.combine(other.slope)
        self.constant += other.constant
        self.length += other.length
        self.light += other.light
        self.count += other.count

    def mean(self) -> tuple[float, Array | None, float, float]:
        """Return the mean: constant, slope (None where that is not cheap to know), slack and light part."""
        coordinates, slack = self.slope.coordinates(), VALUE_ROUNDING * self.length
        constant, light = self.constant / self.count, self.light / self.count
        if coordinates is None:
            return constant, None, slack / self.count, light
        slack += self.hypotheses.rounding * self.length
        return constant, coordinates.ravel() / self.count, slack / self.count, light

    def line(self) -> Line:
        """Return the mean as a line; of no cuts, one that bounds nothing."""
        if self.count == 0:
            return Line(-math.inf)
        strength = self.slope.strength()
        return Line.of(*self.mean(), None if strength is None else strength / self.count)

    def state(self) -> Any:
        """Return what `restore` needs, picklable."""
        return self.slope.state(), self.constant, self.length, self.light, self.count

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        slope, self.constant, self.length, self.light, self.count = state
        self.slope.restore(slope)


class Watch:
    """Collects the cuts of a run.

    `observe` comes before each round and `follow` after it.  Both cost what the bins cost; a pass over
    span(H) is made only at the end of a block of rounds.
    """

    def __init__(self, objective: Objective, hypotheses: HypothesisSet) -> None:
        self._hypotheses, self._n_outputs = hypotheses, objective.n_outputs
        self._position = hypotheses.origin(objective.n_outputs)
        self._l2, self._minimum = getattr(objective, "l2", 0.0), objective.constants.minimum
        self._steepest = lipschitz(objective)
        self._magnitude = 0.0  #: ‖F‖, the largest met
        self._weight = 0.0  #: Σ|α|‖h‖; ∞ where that is not known
        self._start = math.inf  #: the objective of f₀
        self._block, self._total, self._window, self._tail = (self._zero() for _ in range(4))
        self._bundle = Bundle()
        self._values = 0.0  #: their sum
        self._norms = (math.nan, math.nan)  #: of the subgradient and of ΠΔ
        self.objective = math.inf
        self.lower = -math.inf if self._minimum is None else self._minimum  #: without an assumption

    def observe(self, F: Scores) -> None:
        """Take the cut at F."""
        value, gradient = F.value(), F.gradient()
        part, penalty = gradient.loss_part, gradient.penalty
        correlation = self._position.dot(part)
        self._magnitude = max(self._magnitude, F.magnitude())
        rounds = self._total.count + self._block.count
        if rounds == 0:
            self._start = value
        error = constant_error(value, max(part.norm, self._steepest), self._magnitude, rounds)
        self._block.cut(value - penalty - correlation - error, part)
        self._values += value
        self.objective = min(self.objective, value)
        # ‖ℓ + l2 z‖² for z = f − f₀, (l2/2) ‖z‖² being the penalty
        square = part.norm**2 + 2.0 * self._l2 * (correlation + penalty)
        self._norms = (math.sqrt(max(square, 0.0)), math.nan)

    def follow(self, move: Move, residual: Target | None) -> None:
        """F has moved, and this is what is left of Δ, if the algorithm keeps it."""
        self._position.move(move)
        terms = move.direction.terms
        self._weight = move.shrink * self._weight + (move.direction.norm if len(terms) <= 1 else math.inf)
        if self._block.count >= max(MIN_BLOCK, BLOCK_SHARE * self._total.count):
            self._close()
            left = None if residual is None else residual.coordinates()
            self._norms = (self._norms[0], math.nan if left is None else float(np.linalg.norm(left)))

    def record(self, h: Direction) -> dict[str, float]:
        """Return what a `Record` shows of this."""
        count = self._total.count + self._block.count
        return {
            "gradient_norm": self._norms[0],
            "length": h.norm,
            "residual_norm": self._norms[1],
            "average": self._values / count if count else math.nan,
            "lower_bound": self.lower,
        }

    def certificate(self, F: Scores) -> Certificate:
        """Return what is known after the last round."""
        if self._block.count > 0:
            self._close()
        bundle, distance = self._bundle.with_mean(), F.distance()
        weight = math.inf if math.isnan(self._weight) else self._weight
        return Certificate(
            objective=min(self.objective, F.value()),
            average=self._values / self._total.count if self._total.count else math.nan,
            minimum=self._minimum,
            l2=self._l2,
            distance=distance,
            constants=bundle.constants,
            products=bundle.products if len(bundle) else None,
            uniform=self._total.line(),
            tail=(self._tail if self._tail.count else self._total).line(),
            knows_span=self._hypotheses.knows_span,
            slack=bundle.slack,
            attained=(Attained(self._start, 0.0, 0.0), Attained(F.value(), distance, weight)),
        )

    def state(self) -> dict[str, Any]:
        """Return everything that changes, picklable."""
        sums = (self._block, self._total, self._window, self._tail)
        return {
            "position": self._position.state(),
            "sums": [s.state() for s in sums],
            "bundle": self._bundle.state(),
            "numbers": (self._values, self._norms, self.objective, self.lower),
            "sizes": (self._magnitude, self._weight, self._start),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self._position.restore(state["position"])
        self._block, self._total, self._window, self._tail = (self._zero() for _ in range(4))
        for total, saved in zip(
            (self._block, self._total, self._window, self._tail), state["sums"], strict=True
        ):
            total.restore(saved)
        self._bundle.restore(state["bundle"])
        self._values, self._norms, self.objective, self.lower = state["numbers"]
        self._magnitude, self._weight, self._start = state["sizes"]

    def _zero(self) -> Sum:
        return Sum(self._hypotheses.zero(self._n_outputs), self._hypotheses)

    def _close(self) -> None:
        """Turn the block into one cut."""
        block, self._block = self._block, self._zero()
        for total in (self._total, self._window):
            total.add(block)
        if 2 * self._window.count >= self._total.count:  # half of all rounds: a complete window
            self._tail, self._window = self._window, self._zero()
        constant, slope, slack, light = block.mean()
        if slope is None:
            return
        self._bundle.append(constant, slope, slack, light)
        if self._l2 > 0.0:
            self.lower = max(self.lower, self._bundle.improve(Ridge(self._l2), FEW))


def lipschitz(objective: Any) -> float:
    """Return a bound on the slopes of the loss; 0 where none is known."""
    find = getattr(objective, "loss_constants", None)
    constants = objective.constants if find is None else find()
    return constants.lipschitz or 0.0
