"""Every fit with a user's loss begins with a look at it, and its first rounds are compared."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from convexboost.checks._declared import UNUSED, USE, forgets_weights, has_weights
from convexboost.checks._mistakes import look
from convexboost.checks._report import DoubtfulError, LossError, LossWarning
from convexboost.checks._trial import CLOSE, DEFINED, ROUNDING, STABLE, Trial, edge_of_finite, quiet
from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array
from convexboost.losses._custom import is_users
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss
from convexboost.losses._pieces import Pieces
from convexboost.losses._refit import Place
from convexboost.losses._scores import Lookup

#: Evaluations of a fit that are watched.
WATCHED = 5
DETAILS = "Run check_loss(loss, y) for details."


def watch(objective: BoundLoss, loss: Loss | None = None) -> BoundLoss:
    """Look at a user's loss before training (`LossError`), and keep an eye on the first rounds.

    Objectives of this library are returned as they are.  The estimators do this by themselves; for `boost`:
    ``boost(watch(objective), hypotheses)``.  The link of `loss` is looked at too.
    """
    if not is_users(objective):
        return objective
    who = Trial(objective, None, np.random.default_rng(0), thorough=False).who
    doubts, noise = [], ROUNDING
    try:
        with quiet():
            noise = look(objective, loss).noise
    except DoubtfulError as doubt:
        doubts.append(f"{doubt} {DETAILS}")
    except LossError as mistake:
        raise LossError(f"{mistake} {DETAILS}") from None
    watched = Watched(
        objective,
        who,
        noise,
        [bool(doubts)],
        space=objective.space,
        n_outputs=objective.n_outputs,
        l2=objective.l2,
    )
    if forgets_weights(objective) and has_weights(objective):
        doubts.append(f"{who}: {UNUSED.format('but `sample_weight` is given')}. {USE}")
    for message in doubts:
        warnings.warn(message, LossWarning, stacklevel=4)
    return watched


@dataclass(frozen=True, repr=False)
class Watched(BoundLoss):
    """An objective whose first evaluations are compared with each other."""

    inner: BoundLoss
    who: str
    noise: float
    warned: list[bool]
    seen: list[Any] = field(default_factory=list)  #: scores, value and subgradient of the evaluation before
    counter: list[int] = field(default_factory=lambda: [WATCHED])

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """Ask the objective."""
        return self.inner.evaluate(F)

    def loss_constants(self) -> Constants:
        """Ask the objective."""
        return self.inner.loss_constants()

    @property
    def _same(self) -> BoundLoss:
        """Return the objective with the ridge term and the envelope that it has by now."""
        return replace(self.inner, l2=self.l2, envelope=self.envelope)

    def parts(self) -> Iterator[tuple[slice, BoundLoss]]:
        """Ask the objective."""
        return self._same.parts()

    def start(self) -> Array:
        """Ask the objective."""
        return self.inner.start()

    def value(self, F: Array) -> float:
        """Ask the objective."""
        return self.inner.value(F)

    def prox(self, F: Array, size: float) -> Array | None:
        """Ask the objective."""
        return self.inner.prox(F, size)

    def pieces(self) -> Pieces | None:
        """Ask the objective."""
        return self.inner.pieces()

    def losses(self, F: Array) -> tuple[Array, Array]:
        """Ask the objective; only those of single rows answer."""
        return self.inner.losses(F)  # type: ignore[attr-defined]

    def support(self, U: Array, F: Array) -> tuple[Array, Array] | None:
        """Ask the objective."""
        return self.inner.support(U, F)

    def search_floor(self) -> float:
        """Ask the objective."""
        return self.inner.search_floor()

    def gap(self, F: Array, value: float, gradient: Gradient, n_threads: int) -> float:
        """Ask the objective."""
        return self.inner.gap(F, value, gradient, n_threads)

    def gap_within_reach(self, F: Array, value: float, gradient: Gradient, n_threads: int) -> float:
        """Ask the objective."""
        return self.inner.gap_within_reach(F, value, gradient, n_threads)

    def curvature(self, base: Array) -> float:
        """Ask the objective."""
        return self.inner.curvature(base)

    def best_shifts(self, at: Place, leaf: Any, n_leaves: int) -> Array:
        """Ask the objective."""
        return self._same.best_shifts(at, leaf, n_leaves)

    def best_shift(self, F: Array, leaf: Any, leaves: Any) -> Array | None:
        """Ask the objective."""
        return self._same.best_shift(F, leaf, leaves)

    def advance(
        self, F: Array, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[float, Gradient]:
        """Ask the objective, and compare with the evaluation before."""
        value, gradient = self.inner.advance(F, lookup, before, n_threads)
        if self.counter[0] > 0:
            self.counter[0] -= 1
            now = F.copy(), value, gradient.values.copy()
            if self.envelope > 0.0 and gradient.norm > 0.0 and math.isfinite(value) and value != 0.0:
                self._compare_prox(*now)
            if self.seen:
                self._compare(self.seen.pop(), now)
            if self.counter[0] > 0 and math.isfinite(value):
                self.seen.append(now)
        return value, gradient

    def _compare(self, old: tuple[Array, float, Array], new: tuple[Array, float, Array]) -> None:
        """⟨∇₁, D⟩ ≤ R₂ − R₁ ≤ slope left of F₂ ≤ ⟨∇₂, D⟩ ≤ slope right of F₂, along D = F₂ − F₁."""
        (F1, R1, G1), (F2, R2, G2) = old, new
        D, h = F2 - F1, 1e-3
        with quiet():
            if not (math.isfinite(R2) and np.isfinite(G2).all()):
                return self._not_finite(F1, F2)
            rise, first, last = R2 - R1, self.space.inner(G1, D), self.space.inner(G2, D)
            left = (R2 - self.inner.value(F2 - h * D)) / h
            right = (self.inner.value(F2 + h * D) - R2) / h
            G, F = (np.maximum(np.abs(A), np.abs(B)) for A, B in ((G1, G2), (F1, F2)))
            scale = abs(R1) + abs(R2) + self.space.inner(G, F + np.abs(D))
            slack = CLOSE * (abs(left) + abs(right)) + 10 * self.noise * scale / h
        if not min(left, right) - slack <= last <= max(left, right) + slack:
            raise LossError(
                f"{self.who}: after a round the gradient says that the slope along its step is {last:.6g}, "
                f"but that of the value is {(left + right) / 2:.6g}. Value and gradient must belong to the "
                f"same loss. {DETAILS}"
            )
        convex = first - slack <= rise <= left + slack and left <= right + slack
        if not convex and not self.warned[0]:
            self.warned[0] = True
            warnings.warn(
                f"{self.who}: it is not convex: between the scores of two rounds its slope falls (it begins "
                f"with {first:.6g}, is {rise:.6g} on average, and ends with {left:.6g} and {right:.6g}). "
                f"Guarantees are for convex losses. {DETAILS}",
                LossWarning,
                stacklevel=2,
            )
        return None

    def _compare_prox(self, F: Array, R: float, G: Array) -> None:
        """R(X) + ‖X − F‖²/(2 size) ≤ R(F) for the prox X of F: it is the least of all."""
        size = abs(R) / self.space.norm(G) ** 2
        X = self.inner.prox(F.copy(), size)
        assert X is not None
        with quiet():
            found = self.inner.value(X) + self.space.norm(X - F) ** 2 / (2.0 * size)
        if not found <= R + CLOSE * abs(R):
            raise LossError(
                f"{self.who}: `prox` with size {size:.3g} is not the minimiser of R + ‖f − F‖²/(2 size): "
                f"that is {found:.6g} there, and {R:.6g} at `F` itself. {DETAILS}"
            )

    def _not_finite(self, F1: Array, F2: Array) -> None:
        """Raise, unless R had become huge on the way from F1 to F2: that is divergence."""
        steep, F = edge_of_finite(self.inner.evaluate, F1, F2)
        if not steep:
            what = "gradient" if math.isfinite(self.inner.evaluate(F)[0]) else "value"
            size = np.abs(F).max()
            raise LossError(
                f"{self.who}: the {what} is not finite at the scores of an early round, of size {size:.3g}. "
                f"{STABLE if size > 30 else DEFINED} {DETAILS}"
            )
