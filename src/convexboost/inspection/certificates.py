"""Certificates: how far from optimal a model can be at most, as the numbers and the text a user prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.inspection.cuts import MANY, AllModels, Ball, Domain, LinearBound, lower_bound, maximise


@dataclass(frozen=True)
class LowerBound:
    """No model that satisfies `assumption` has an objective below `value`."""

    name: str
    value: float
    assumption: str


class Attained(NamedTuple):
    """A model that exists: no bound that holds for it can be above its objective."""

    objective: float
    distance: float = math.inf  #: ‖f − f₀‖; ∞ where it is not known
    weight: float = math.inf  #: Σ|α|‖h‖; ∞ where it is not known


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
    uniform: LinearBound  #: the mean over all rounds
    tail: LinearBound  #: the mean over the last half, or quarter, of them
    knows_span: bool = True  #: False: the bounds hold for all functions, so they may be far below
    found: tuple[LowerBound, ...] = ()  #: bounds found in other ways, without an assumption
    radius: float | None = None  #: the assumption of C1 in the text …
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
        return self._held(LowerBound("C2", self._bound(AllModels(self.l2)), text))

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
                yield "So would learner='stump': for this learner the bound holds for every function."
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
        return "every sum of these weak learners" if self.knows_span else "every function"

    def _held(self, bound: LowerBound, radius: float = math.inf, weight: float = math.inf) -> LowerBound:
        """Lower a bound to the objective of a model that it holds for: the last defence against rounding."""
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
