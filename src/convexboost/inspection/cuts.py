"""Cuts: affine functions below the loss, their means, and the lower bounds they give (theory: Section 4).

A subgradient ℓ of the loss at x is a *cut*: for every f

    loss(f) ≥ a + ⟨ℓ, f − f₀⟩,    a = loss(x) − ⟨ℓ, x − f₀⟩.

A mean of cuts is a cut too, for any algorithm, steps and edges.  Its minimum over f₀ + span(H),
ridge term included, is a number that no model gets below.  With A and u the means of a and ℓ, and Π the
projector on span(H):

    C2   l2 > 0                                A − ‖Πu‖²/(2 l2)
    C1   models with ‖f − f₀‖ ≤ D              A − D ‖Πu‖
    C1'  models f₀ + Σ α h/‖h‖, Σ|α| ≤ B       A − B max_h |⟨u, h⟩|/‖h‖

The weights of the mean are free; `maximise` finds the best ones.

A bound must hold in floating point.  The constant of a cut is lowered by its rounding error
(`constant_error`), its slope is lengthened by its own (`slack`), and rows too light to show in the
coordinates of the slope count as if every function of them were in span(H) (`light`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.protocols import HypothesisSet, Objective, Target
from convexboost.core.space import Array
from convexboost.core.tolerances import KINK, TIE
from convexboost.kernels.cuts import exchange_weights

#: Cuts kept.  When there are more, the best mean so far replaces the two with the least weight.
MAX_CUTS = 40
#: Exchanges of weight between two cuts: after each new cut, and when a bound is asked for.
FEW, MANY = 40, 10_000
#: Error of a value, relative to the numbers it is computed from; kinks are known to `KINK` only.
VALUE_ROUNDING = 2.0 * KINK
#: Error of a product of two slopes, relative to their lengths.
PRODUCT_ROUNDING = 64.0 * float(np.finfo(float).eps)


def constant_error(value: float, slope: float, magnitude: float, additions: int = 0) -> float:
    """Return the rounding error of a cut's constant.

    `value` is the objective there, `slope` the length of its subgradients, `magnitude` that of the scores,
    which are the result of this many `additions`.
    """
    eps = float(np.finfo(float).eps)
    # Losses within TIE of the largest count as the largest in CVaR and WorstGroup.
    return 2.0 * TIE * abs(value) + (KINK + (8 + additions) * eps) * slope * magnitude


def lipschitz(objective: Objective) -> float:
    """Return a bound on the slopes of the loss; 0 where none is known."""
    return objective.loss_constants().lipschitz or 0.0


# -- cuts ------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """A lower bound of the loss on f₀ + span(H): constant + ⟨slope, f − f₀⟩."""

    constant: float
    slope: Array  #: Πu in coordinates, flat
    slack: float = 0.0  #: the rounding error of its length
    light: float = 0.0  #: the length of u on the rows that its coordinates may not show

    @property
    def length(self) -> float:
        """‖Πu‖ at most."""
        return _at_most(float(np.linalg.norm(self.slope)), self.slack, self.light)

    def line(self, strength: float | None) -> LinearBound:
        """Return the bounds for all distances and weights; `strength` is `Target.strength` of the slope."""
        return LinearBound(self.constant, self.length, _at_most(strength, self.slack, self.light))


def _at_most(length: float | None, slack: float, light: float) -> float:
    """Return what a length that was computed can be at most; NaN where it is not known."""
    return math.nan if length is None else math.hypot(length, light) + slack


@dataclass(frozen=True)
class LinearBound:
    """A mean of cuts as a line: no model within D of the start is below constant − D · slope."""

    constant: float
    slope: float = math.nan  #: ‖Πu‖ at most; NaN where span(H) is too large to be known
    strength: float = math.nan  #: max_h |⟨u, h⟩|/‖h‖; NaN for learners that need not find the best h

    def atoms(self, weight: float) -> float:
        """Return the bound for ensembles of total weight at most `weight`."""
        return self.constant - weight * self.strength


@dataclass
class CutSum:
    """A sum of cuts, whose slope is kept as a `Target`."""

    slope: Target
    hypotheses: HypothesisSet
    constant: float = 0.0
    length: float = 0.0  #: sum of the lengths of the slopes …
    light: float = 0.0  #: … and of their parts on rows that coordinates may not show
    count: int = 0

    def add(self, constant: float, slope: Gradient) -> None:
        """Add a cut."""
        self.slope.add(slope)
        self.constant += constant
        self.length += slope.norm
        self.light += self.hypotheses.light(slope)
        self.count += 1

    def combine(self, other: CutSum) -> None:
        """Add another sum."""
        self.slope.combine(other.slope)
        self.constant += other.constant
        self.length += other.length
        self.light += other.light
        self.count += other.count

    def mean(self) -> Cut | None:
        """Return the mean; None where its slope is not cheap to know."""
        coordinates = self.slope.coordinates()
        if coordinates is None:
            return None
        slack = VALUE_ROUNDING * self.length + self.hypotheses.rounding * self.length
        n = self.count
        return Cut(self.constant / n, coordinates.ravel() / n, slack / n, self.light / n)

    def line(self) -> LinearBound:
        """Return the mean as a line; of no cuts, one that bounds nothing."""
        if self.count == 0:
            return LinearBound(-math.inf)
        strength, mean, n = self.slope.strength(), self.mean(), self.count
        strength = None if strength is None else strength / n
        if mean is not None:
            return mean.line(strength)
        slack, light = VALUE_ROUNDING * self.length / n, self.light / n
        return LinearBound(self.constant / n, strength=_at_most(strength, slack, light))

    def state(self) -> Any:
        """Return what `restore` needs, picklable."""
        return self.slope.state(), self.constant, self.length, self.light, self.count

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        slope, self.constant, self.length, self.light, self.count = state
        self.slope.restore(slope)


# -- the best mean of some cuts --------------------------------------------------------------------------


class Domain(Protocol):
    """The models a bound is about: what they can gain from a slope u, as a function of s = ‖Πu‖²."""

    @property
    def l2(self) -> float:
        """Return the weight of the ridge term, 0 without one."""

    @property
    def radius(self) -> float:
        """Return how far from the start the models are at most."""

    def gain(self, s: float) -> float:
        """Return the most that ⟨−u, f − f₀⟩, less the ridge term, can be."""

    def rate(self, s: float) -> float:
        """Return twice the derivative of `gain`."""


@dataclass(frozen=True)
class AllModels:
    """All models, with the ridge term (l2/2) ‖f − f₀‖²."""

    l2: float
    radius: ClassVar[float] = math.inf

    def gain(self, s: float) -> float:
        """‖u‖²/(2 l2)."""
        return s / (2.0 * self.l2)

    def rate(self, s: float) -> float:
        """1/l2."""
        return 1.0 / self.l2


@dataclass(frozen=True)
class Ball:
    """The models with ‖f − f₀‖ ≤ radius, without a ridge term."""

    radius: float
    l2: ClassVar[float] = 0.0

    def gain(self, s: float) -> float:
        """D ‖u‖."""
        return self.radius * math.sqrt(s)

    def rate(self, s: float) -> float:
        """D/‖u‖."""
        return self.radius / math.sqrt(max(s, 1e-300))


def maximise(constants: Array, products: Array, domain: Domain, weights: Array, steps: int) -> Array:
    """Improve the weights of a mean of cuts: max Σ ω a − gain(ωᵀ Q ω) over the simplex.

    Every step yields a valid mean, so it may stop at any time.
    """
    w = weights.copy()
    exchange_weights(constants, products, w, products @ weights, steps, domain.l2, domain.radius)
    return w


def lower_bound(
    constants: Array, products: Array, domain: Domain, weights: Array, slack: Array | float = 0.0
) -> float:
    """Σ ω a − gain((‖Σ ω Πℓ‖ + Σ ω slack)²), the slopes' rounding error included."""
    lengths = float(np.sum(weights * np.sqrt(products.diagonal())))
    square = max(float(weights @ products @ weights), 0.0) + PRODUCT_ROUNDING * lengths * lengths
    return float(constants @ weights) - domain.gain((math.sqrt(square) + float(np.sum(weights * slack))) ** 2)


class Bundle:
    """At most `MAX_CUTS` cuts in span(H), and the weights of their best mean so far."""

    def __init__(self) -> None:
        self.constants, self.weights, self.products = np.zeros(0), np.zeros(0), np.zeros((0, 0))
        self.slack, self.light = np.zeros(0), np.zeros(0)
        self.coordinates: list[Array] = []

    def __len__(self) -> int:
        return len(self.constants)

    def append(self, cut: Cut) -> None:
        """Add a cut, of no weight unless it is the first."""
        if len(self) == MAX_CUTS:
            self._merge()
        n = len(self)
        self.coordinates = [*self.coordinates, cut.slope]
        self.constants = np.append(self.constants, cut.constant)
        self.slack, self.light = np.append(self.slack, cut.slack), np.append(self.light, cut.light)
        self.weights = np.append(self.weights, float(n == 0))
        products = np.empty((n + 1, n + 1))
        products[:n, :n] = self.products
        # einsum without BLAS: the sums do not depend on the number of threads
        row = [np.einsum("j,j->", other, self.coordinates[n]) for other in self.coordinates]
        # Light rows are one more coordinate: by Cauchy-Schwarz two slopes have at most light · light' there
        products[n] = products[:, n] = np.array(row) + self.light * cut.light
        self.products = products

    def mean(self) -> Cut:
        """Return the best mean so far."""
        terms = [w * row for w, row in zip(self.weights, self.coordinates, strict=True) if w > 0.0]
        lengths = float(np.sum(self.weights * np.sqrt(self.products.diagonal())))
        slack = float(np.sum(self.weights * self.slack)) + PRODUCT_ROUNDING * lengths
        light = float(np.sum(self.weights * self.light))
        return Cut(float(np.sum(self.weights * self.constants)), np.sum(terms, axis=0), slack, light)

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
            out.append(self.mean())
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
        self.append(mean)
        self.weights[-1] = 1.0
