"""Dual polish: better lower bounds after a run (theory: Section 4.4).

A bound is a number for each u that is a subgradient of the loss somewhere, row by row: with a(u) the constant
of that cut, a(u) − ‖Πu‖²/(2 l2).  `Polish` increases it in two ways, which alternate: new cuts where the best
mean of those known is smallest (better where many rows matter), and, for a loss with a `prox`, accelerated
proximal steps on all rows of u at once (better where few do).  Models within a radius D and without l2 are
reached through D ‖Πu‖ = min_μ ‖Πu‖²/(2μ) + μ D²/2.

A proximal step only proposes a u.  A cut is made of it by the conjugate of the loss, or it is replaced by a
mean of subgradients that the loss returned (`_near`).
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.protocols import HypothesisSet, Objective, Target
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import KINK
from convexboost.inspection.certificates import Attained
from convexboost.inspection.cuts import (
    FEW,
    MANY,
    VALUE_ROUNDING,
    AllModels,
    Ball,
    Bundle,
    Cut,
    Domain,
    LinearBound,
    constant_error,
    lipschitz,
)

#: Steps between two searches for the best mean; those in between only improve it.
SEARCH = 50
#: Proximal steps between two choices of μ, and between two cuts that are kept.
PERIOD = 10
#: ‖Πu‖ below this share of ‖u‖ does not make μ smaller: proximal steps would be too long for their digits.
SHORT = 1e-6
#: A point beside a kink is this far from it, relative to the scores: the loss can then tell the sides apart.
BESIDE = 8.0 * KINK
#: Subgradients beside a kink whose mean a row of u may be, with several outputs; one output needs one.
MAX_SIDES = 4


class RowObjective(Objective, Protocol):
    """What polishing needs of an objective: the loss at any scores of the rows."""

    @property
    def space(self) -> FunctionSpace: ...

    def value(self, F: Array) -> float:
        """R[F] without the ridge term."""

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient, without the ridge term."""

    @property
    def has_prox(self) -> bool: ...
    @property
    def has_support(self) -> bool: ...

    def prox(self, F: Array, size: float) -> Array:
        """argmin_f l(f, y) + ‖f − F‖²/(2 size), row by row, where `has_prox`."""

    def losses(self, F: Array) -> tuple[Array, Array]:
        """Return the losses of the rows and their subgradients; only asked where there is a `prox`."""

    def support(self, U: Array, F: Array) -> tuple[Array, Array]:
        """Return slopes near U that the rows' losses have, and −l* + ⟨u, F⟩ for each, if `has_support`."""


class RowCut(NamedTuple):
    """A cut, and the subgradient u at the rows that it was made of."""

    cut: Cut
    u: Array  #: (n_samples, n_outputs)

    @property
    def slope(self) -> Array:
        """Πu in coordinates, (rank, n_outputs)."""
        return self.cut.slope.reshape(-1, self.u.shape[1])


class Polish:
    """Lower bounds of an objective, better with every step.

    `base` is f₀ at the training points, `F` the scores to begin at.  The domain is all of span(H) if l2 > 0,
    else the models within `radius` of f₀.  With a `weight` the best line for C1' is kept as well.
    """

    def __init__(
        self,
        objective: RowObjective,
        hypotheses: HypothesisSet,
        base: Array,
        F: Array,
        bundle: Bundle,
        radius: float | None = None,
        weight: float | None = None,
    ) -> None:
        if objective.l2 <= 0.0 and radius is None:
            raise ValueError("`radius` is needed to polish a bound where `l2` is 0")
        self.loss, self.hypotheses, self.bundle, self.weight = objective, hypotheses, bundle, weight
        self.base = np.empty(F.shape)
        self.base[:] = base
        self.domain: Domain = AllModels(objective.l2) if objective.l2 > 0.0 else Ball(float(radius or 0.0))
        self.met = Attained(math.inf)  #: the best model found on the way, within the domain
        self.lower = -math.inf
        self.best: RowCut | None = None  #: the best single cut
        self.line: LinearBound | None = None  #: the best for C1', if a `weight` is given
        self._steepest, self._height = lipschitz(objective), objective.space.norm(self.base)
        self._start = objective.value(self.base)
        value, G = objective.evaluate(F)
        self._length = objective.space.norm(G) or self._steepest or 1.0
        self._first = self._cut_at(value, G, F)

    @property
    def objective(self) -> float:
        """Return the smallest objective found on the way."""
        return self.met.objective

    def run(self, steps: int, seconds: float = math.inf, tolerance: float = 1e-4) -> float:
        """Take at most `steps` steps, until the gap is `tolerance` times the objective; return the bound."""
        end = time.perf_counter() + seconds
        if self._first is None:
            return self.lower
        self.best = self.best or self._first
        self._keep(self._first)
        ways = [self._minimise()]
        if self.loss.has_prox:
            ways.append(self._ascend())
        for step, way in enumerate(itertools.islice(itertools.cycle(ways), steps), 1):
            found = next(way)
            bound = found.cut.constant - self.domain.gain(found.cut.length**2)
            if bound > self.lower:
                self.lower, self.best = bound, found
            if step % SEARCH == 0:
                self.lower = max(self.lower, self.bundle.improve(self.domain, MANY))
            gap = self.objective - self.lower
            done = math.isfinite(gap) and gap <= tolerance * abs(self.objective)
            if done or time.perf_counter() > end:
                break
        return self.lower

    def _ascend(self) -> Iterator[RowCut]:
        """Accelerated proximal ascent, with restarts (O'Donoghue and Candès)."""
        first = self._first
        assert first is not None
        u, slope = first.u, first.slope
        w, w_slope, momentum, size = u, slope, 1.0, self._size(slope)
        for step in itertools.count(1):
            point = self._at(w_slope / -size) + w / size
            X = self.loss.prox(point, 1.0 / size)
            found = self._near(size * (point - X), X, np.abs(point))
            yield found
            if np.einsum("nk,nk->", found.u - u, w - found.u) > 0.0:
                momentum = 1.0
            if step % PERIOD == 0:
                self._keep(found)
                momentum, size = (momentum, size) if self.loss.l2 > 0.0 else (1.0, self._size(found.slope))
            after = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
            ahead, momentum = (momentum - 1.0) / after, after
            w = found.u + ahead * (found.u - u)
            w_slope = found.slope + ahead * (found.slope - slope)
            u, slope = found.u, found.slope

    def _minimise(self) -> Iterator[RowCut]:
        """Cutting planes: a new cut where the best mean of those known is smallest."""
        while True:
            slope = self.bundle.mean().slope.reshape(-1, self.loss.n_outputs)
            F = self._at(slope / -self._size(slope))
            cut = self._cut_at(*self.loss.evaluate(F), F)
            assert cut is not None
            self._keep(cut)
            yield cut

    def _size(self, slope: Array) -> float:
        """l2, or the μ for which the minimum is at the border of the ball."""
        return 1.0 / self.domain.rate(max(float(np.linalg.norm(slope)), SHORT * self._length) ** 2)

    def _at(self, coordinates: Array) -> Array:
        """Return the scores there, and note the objective."""
        F = self.base.copy()
        self.hypotheses.at(coordinates).add_to(F, self.hypotheses.inputs)
        distance, length = self.loss.space.norm(F - self.base), float(np.linalg.norm(coordinates))
        # the length, since F − f₀ has lost its digits where f₀ is large
        if length <= self.domain.radius * (1.0 + 1e-9):
            value = self.loss.value(F) + self.loss.l2 / 2.0 * distance**2
            self.met = min(self.met, Attained(value, distance))
        return F

    def _near(self, wanted: Array, X: Array, reach: Array) -> RowCut:
        """Return the cut at X whose u is near the one wanted.

        Where the loss knows its conjugate, that is the constant of any u.  Else u is made of subgradients at
        X and beside it: where X is at a kink, u is a mean of subgradients on its sides.  The one beside X in
        the direction of what is missing is the extreme one in that direction.  A mean of cuts is a cut, row
        by row, so the result is valid for any `wanted`.
        """
        if self.loss.has_support:
            return self._supported(*self.loss.support(wanted, self.base))
        beside = BESIDE * (np.abs(X) + reach).max(axis=1)
        slope, constant = self._row_cuts(X)
        slopes, constants, weights = [slope], [constant], [np.ones(len(X))]
        for _ in range(1 if self.loss.n_outputs == 1 else MAX_SIDES):
            missing = wanted - _mean(weights, slopes)
            length = np.sqrt(np.einsum("nk,nk->n", missing, missing))
            if not (length > KINK * self._length).any():
                break
            away = np.divide(beside, length, out=np.zeros_like(length), where=length > 0.0)
            slope, constant = self._row_cuts(X + away[:, None] * missing)
            slopes.append(slope)
            constants.append(constant)
            weights.append(np.zeros(len(X)))
            _approach(wanted, slopes, weights)
        u, space = _mean(weights, slopes), self.loss.space
        error = self._error(self.loss.value(X), space.norm(u), space.norm(X))
        cut = self._cut(space.mean(_mean(weights, constants)) - error, u)
        assert cut is not None
        return cut

    def _supported(self, u: Array, values: Array) -> RowCut:
        """Return the cut with slopes u and these values of the rows at f₀."""
        error = self._error(self._start, self.loss.space.norm(u), self._height)
        cut = self._cut(self.loss.space.mean(values) - error, u)
        assert cut is not None
        return cut

    def _row_cuts(self, F: Array) -> tuple[Array, Array]:
        """Return subgradients at F, and the constants of the cuts of the rows."""
        losses, G = self.loss.losses(F)
        return G, losses - np.einsum("nk,nk->n", G, F - self.base)

    def _cut_at(self, value: float, G: Array, F: Array) -> RowCut | None:
        """Return the cut at F, None where span(H) is too large to be known."""
        space = self.loss.space
        error = self._error(value, space.norm(G), space.norm(F))
        return self._cut(value - space.inner(G, F - self.base) - error, G)

    def _error(self, value: float, slope: float, magnitude: float) -> float:
        return constant_error(value, max(slope, self._steepest), max(magnitude, self._height))

    def _cut(self, constant: float, u: Array) -> RowCut | None:
        target, gradient = self.hypotheses.zero(self.loss.n_outputs), Gradient(u, self.loss.space)
        target.add(gradient)
        slope = target.coordinates(even_if_slow=True)
        if slope is None:
            return None
        slack = (VALUE_ROUNDING + self.hypotheses.rounding) * gradient.norm
        cut = Cut(constant, slope.ravel(), slack, self.hypotheses.light(gradient))
        self._note(cut, target)
        return RowCut(cut, u)

    def _keep(self, found: RowCut) -> None:
        self.bundle.append(found.cut)
        self.lower = max(self.lower, self.bundle.improve(self.domain, FEW))
        if self.weight is not None:
            mean, target = self.bundle.mean(), self.hypotheses.zero(self.loss.n_outputs)
            target.subtract(self.hypotheses.at(-mean.slope))
            self._note(mean, target)

    def _note(self, cut: Cut, target: Target) -> None:
        """Keep the line of a cut if it is the best for C1'."""
        strength = None if self.weight is None else target.strength()
        if self.weight is None or strength is None:
            return
        line = cut.line(strength)
        if self.line is None or line.atoms(self.weight) > self.line.atoms(self.weight):
            self.line = line


def _mean(weights: list[Array], values: list[Array]) -> Array:
    """Return the weighted mean of rows, or of numbers for the rows."""
    return sum(
        (w[:, None] if value.ndim == 2 else w) * value for w, value in zip(weights, values, strict=True)
    )  # type: ignore[return-value]


def _approach(wanted: Array, slopes: list[Array], weights: list[Array]) -> None:
    """Change the weights of each row, in place, so that the mean comes as near as it can to what is wanted.

    One slope after the other gains or loses weight, as far as that helps; twice.
    """
    for j in 2 * [*reversed(range(len(slopes)))]:
        mean = _mean(weights, slopes)
        toward = slopes[j] - mean
        square = np.einsum("nk,nk->n", toward, toward)
        gain = np.einsum("nk,nk->n", wanted - mean, toward)
        least = -weights[j] / np.maximum(1.0 - weights[j], 1e-300)
        share = np.divide(gain, square, out=np.zeros_like(gain), where=square > 0.0).clip(least, 1.0)
        for i in range(len(weights)):
            weights[i] = np.maximum(weights[i] * (1.0 - share) + (share if i == j else 0.0), 0.0)
