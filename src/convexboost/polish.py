"""Dual polish: better lower bounds after a run (theory: Section 4.4).

A bound is a number for each u that is a subgradient of the loss somewhere, row by row: with a(u) the constant
of that cut, a(u) − ‖Πu‖²/(2 l2).  `Polish` climbs it in two ways, by turns: new cuts where the best mean of
those known is smallest (better where many rows matter), and, for a loss with a `prox`, accelerated proximal
steps on all rows of u at once (better where few do).  Models within a radius D and without l2 are
reached through D ‖Πu‖ = min_μ ‖Πu‖²/(2μ) + μ D²/2.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from convexboost.certificates import FEW, Ball, Bundle, Domain, Ridge
from convexboost.core import Array, FunctionSpace, Gradient, HypothesisSet

#: Proximal steps between two choices of μ, and between two cuts that are kept.
PERIOD = 10


class RowLoss(Protocol):
    """What polishing needs of an objective: the loss at any scores of the rows."""

    @property
    def n_outputs(self) -> int: ...
    @property
    def space(self) -> FunctionSpace: ...
    @property
    def l2(self) -> float: ...

    def value(self, F: Array) -> float:
        """R[F] without the ridge term."""

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient, without the ridge term."""

    def prox(self, F: Array, size: float) -> Array | None:
        """argmin_f l(f, y) + ‖f − F‖²/(2 size), row by row, if there is a formula."""


class Cut(NamedTuple):
    """A lower bound of the loss on f₀ + span(H): constant + ⟨slope, f − f₀⟩."""

    constant: float
    slope: Array  #: Πu in coordinates, (rank, n_outputs)
    rows: Array  #: u


class Polish:
    """Lower bounds of an objective, better with every step.

    `base` is f₀ at the training points, `F` the scores to begin at.  The domain is all of span(H) if l2 > 0,
    else the models within `radius` of f₀.
    """

    def __init__(
        self,
        objective: RowLoss,
        hypotheses: HypothesisSet,
        base: Array,
        F: Array,
        bundle: Bundle,
        radius: float | None = None,
    ) -> None:
        if objective.l2 <= 0.0 and radius is None:
            raise ValueError("`radius` is needed to polish a bound where `l2` is 0")
        self.loss, self.hypotheses, self.bundle = objective, hypotheses, bundle
        self.base = np.empty(F.shape)
        self.base[:] = base
        self.domain: Domain = Ridge(objective.l2) if objective.l2 > 0.0 else Ball(float(radius or 0.0))
        self.objective = math.inf  #: the smallest found on the way, within the domain
        self.lower = -math.inf
        value, G = objective.evaluate(F)
        self._first = self._cut(value, G, F)

    def run(self, steps: int, seconds: float = math.inf, tolerance: float = 1e-4) -> float:
        """Take up to so many steps, until the gap is this share of the objective; return the bound."""
        end = time.perf_counter() + seconds
        if self._first is None:
            return self.lower
        best = self._first
        self._keep(best)
        ways = [self._minimise()]
        if self.loss.prox(self.base, 1.0) is not None:
            ways.append(self._ascend())
        for way in itertools.islice(itertools.cycle(ways), steps):
            cut = next(way)
            bound = cut.constant - self.domain.gain(float(np.sum(cut.slope**2)))
            if bound > self.lower:
                self.lower, best = bound, cut
            done = self.objective - self.lower <= tolerance * abs(self.objective)
            if done or time.perf_counter() > end:
                break
        self._keep(best)
        return self.lower

    def _ascend(self) -> Iterator[Cut]:
        """Accelerated proximal ascent, with restarts (O'Donoghue and Candès)."""
        cut = self._first
        assert cut is not None
        u, slope = cut.rows, cut.slope
        w, w_slope, momentum, size = u, slope, 1.0, self._size(slope)
        for step in itertools.count(1):
            point = self._at(w_slope / -size) + w / size
            X = self.loss.prox(point, 1.0 / size)
            assert X is not None
            found = self._cut(self.loss.value(X), size * (point - X), X)
            assert found is not None
            yield found
            if np.einsum("nk,nk->", found.rows - u, w - found.rows) > 0.0:
                momentum = 1.0
            if step % PERIOD == 0:
                self._keep(found)
                momentum, size = (momentum, size) if self.loss.l2 > 0.0 else (1.0, self._size(found.slope))
            after = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
            ahead, momentum = (momentum - 1.0) / after, after
            w = found.rows + ahead * (found.rows - u)
            w_slope = found.slope + ahead * (found.slope - slope)
            u, slope = found.rows, found.slope

    def _minimise(self) -> Iterator[Cut]:
        """Cutting planes: a new cut where the best mean of those known is smallest."""
        while True:
            _, mean = self.bundle.mean()
            slope = mean.reshape(-1, self.loss.n_outputs)
            F = self._at(slope / -self._size(slope))
            cut = self._cut(*self.loss.evaluate(F), F)
            assert cut is not None
            self._keep(cut)
            yield cut

    def _size(self, slope: Array) -> float:
        """l2, or the μ for which the minimum is at the border of the ball."""
        return 1.0 / self.domain.rate(max(float(np.sum(slope**2)), 1e-24))

    def _at(self, coordinates: Array) -> Array:
        """Return the scores there, and note the objective."""
        F = self.base.copy()
        self.hypotheses.at(coordinates).add_to(F, self.hypotheses.inputs)
        square = float(np.sum(coordinates**2))
        if self.loss.l2 > 0.0 or square <= getattr(self.domain, "radius", 0.0) ** 2 * (1.0 + 1e-9):
            self.objective = min(self.objective, self.loss.value(F) + self.loss.l2 / 2.0 * square)
        return F

    def _cut(self, value: float, G: Array, F: Array) -> Cut | None:
        """Return the cut at F, None where span(H) is too large to be known."""
        target = self.hypotheses.zero(self.loss.n_outputs)
        target.add(Gradient(G, self.loss.space))
        slope = target.coordinates(dear=True)
        return None if slope is None else Cut(value - self.loss.space.inner(G, F - self.base), slope, G)

    def _keep(self, cut: Cut) -> None:
        self.bundle.append(cut.constant, cut.slope.ravel())
        self.lower = max(self.lower, self.bundle.improve(self.domain, FEW))
