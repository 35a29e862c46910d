"""Every fit with a user's loss begins with a short check of it, and its first rounds are compared."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from convexboost.checks._declared import UNUSED, USE, has_weights
from convexboost.checks._mistakes import look
from convexboost.checks._probe import CLOSE, DEFINED, ROUNDING, STABLE, Probe, edge_of_finite, quiet
from convexboost.checks._report import DoubtfulError, LossError, LossWarning
from convexboost.core.gradients import Gradient
from convexboost.core.space import Array
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss

#: Evaluations of a fit that are compared.
COMPARED = 5
DETAILS = "Run check_loss(loss, y) for details."


def guarded(objective: BoundLoss, loss: Loss | None = None) -> BoundLoss:
    """Check a user's loss before training (`LossError`), and compare the evaluations of the first rounds.

    Objectives without code of a user are returned as they are.  The estimators do this by themselves; for
    `boost`: ``boost(guarded(objective), hypotheses)``.  The link of `loss` is checked too.
    """
    if not objective.is_custom:
        return objective
    probe = Probe(objective, None, np.random.default_rng(0), thorough=False)
    doubts, noise = [], ROUNDING
    try:
        with quiet():
            noise = look(objective, loss).noise
    except DoubtfulError as doubt:
        doubts.append(f"{doubt} {DETAILS}")
    except LossError as mistake:
        raise LossError(f"{mistake} {DETAILS}") from None
    observed = replace(objective, observer=FirstRounds(probe, noise, warned=bool(doubts)))
    if not objective.uses_weights and has_weights(objective):
        doubts.append(f"{probe.who}: {UNUSED.format('but `sample_weight` is given')}. {USE}")
    for message in doubts:
        warnings.warn(message, LossWarning, stacklevel=4)
    return observed


class Evaluation(NamedTuple):
    """Scores, and R and a subgradient there."""

    F: Array
    R: float
    G: Array


class FirstRounds:
    """Compares the first evaluations of an objective with each other."""

    def __init__(self, probe: Probe, noise: float, warned: bool) -> None:
        self.who, self.name, self.noise, self.warned = probe.who, probe.name, noise, warned
        self.left = COMPARED
        self._last: Evaluation | None = None

    def __call__(self, objective: BoundLoss, F: Array, value: float, gradient: Gradient) -> None:
        """Compare an evaluation with the one before."""
        if self.left == 0:
            return
        self.left -= 1
        now = Evaluation(F.copy(), value, gradient.values.copy())
        if objective.envelope > 0.0 and gradient.norm > 0.0 and math.isfinite(value) and value != 0.0:
            self._compare_prox(objective, now)
        last, self._last = self._last, None
        if last is not None:
            self._compare(objective, last, now)
        if self.left > 0 and math.isfinite(value):
            self._last = now

    def _compare(self, objective: BoundLoss, old: Evaluation, new: Evaluation) -> None:
        """⟨∇₁, D⟩ ≤ R₂ − R₁ ≤ slope left of F₂ ≤ ⟨∇₂, D⟩ ≤ slope right of F₂, along D = F₂ − F₁."""
        (F1, R1, G1), (F2, R2, G2), inner = old, new, objective.space.inner
        D, h = F2 - F1, 1e-3
        with quiet():
            if not (math.isfinite(R2) and np.isfinite(G2).all()):
                return self._not_finite(objective, F1, F2)
            rise, first, last = R2 - R1, inner(G1, D), inner(G2, D)
            left = (R2 - objective.value(F2 - h * D)) / h
            right = (objective.value(F2 + h * D) - R2) / h
            G, F = (np.maximum(np.abs(A), np.abs(B)) for A, B in ((G1, G2), (F1, F2)))
            scale = abs(R1) + abs(R2) + inner(G, F + np.abs(D))
            slack = CLOSE * (abs(left) + abs(right)) + 10 * self.noise * scale / h
        if not min(left, right) - slack <= last <= max(left, right) + slack:
            raise LossError(
                f"{self.who}: after a round the gradient says that the slope along its step is {last:.6g}, "
                f"but that of the value is {(left + right) / 2:.6g}. Value and gradient must belong to the "
                f"same loss. {DETAILS}"
            )
        convex = first - slack <= rise <= left + slack and left <= right + slack
        if not convex and not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.who}: it is not convex: between the scores of two rounds its slope falls (it begins "
                f"with {first:.6g}, is {rise:.6g} on average, and ends with {left:.6g} and {right:.6g}). "
                f"Guarantees are for convex losses. {DETAILS}",
                LossWarning,
                stacklevel=2,
            )
        return None

    def _compare_prox(self, objective: BoundLoss, now: Evaluation) -> None:
        """R(X) + ‖X − F‖²/(2 size) ≤ R(F) for the prox X of F, which minimises the left-hand side."""
        (F, R, G), norm = now, objective.space.norm
        size = abs(R) / norm(G) ** 2
        X = objective.prox(F.copy(), size)
        with quiet():
            found = objective.value(X) + norm(X - F) ** 2 / (2.0 * size)
        if not found <= R + CLOSE * abs(R):
            raise LossError(
                f"{self.name}: `prox` with size {size:.3g} is not the minimiser of R + ‖f − F‖²/(2 size): "
                f"that is {found:.6g} there, and {R:.6g} at `F` itself. {DETAILS}"
            )

    def _not_finite(self, objective: BoundLoss, F1: Array, F2: Array) -> None:
        """Raise, unless R had become huge on the way from F1 to F2: that is divergence."""
        steep, F = edge_of_finite(objective.evaluate, F1, F2)
        if not steep:
            what = "gradient" if math.isfinite(objective.evaluate(F)[0]) else "value"
            size = np.abs(F).max()
            raise LossError(
                f"{self.who}: the {what} is not finite at the scores of an early round, of size {size:.3g}. "
                f"{STABLE if size > 30 else DEFINED} {DETAILS}"
            )
