"""Two relatives of Algorithm 3 with better constants; same protocol, proven in docs (Theorems E and F)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from convexboost.boosting.algorithms import Algorithm, Naive, Repeated, Residual, Round, State
from convexboost.core.hypotheses import Move
from convexboost.core.protocols import Constants

if TYPE_CHECKING:
    from convexboost.boosting.steps import Step


def _need_schedule(algorithm: str, step: Step) -> None:
    if not step.is_schedule:
        raise ValueError(
            f"`algorithm` {algorithm!r} fixes the step before it projects: `step` {step.name!r} does not fit"
        )


@dataclass(frozen=True)
class DualAveraging(Algorithm):
    """Theorem E: f_t = f_0 − η_t Σ_{j ≤ t} h_j, with h and Δ as in Algorithm 3.

    Needs no bound on the iterates, and its guarantee is for the plain average, at any time.
    """

    @property
    def name(self) -> str:
        """Return the name by which the estimators know it."""
        return "dual_averaging"

    def check(self, step: Step, constants: Constants) -> None:
        """Only schedules fit."""
        _need_schedule(self.name, step)

    def round(self, s: State) -> Round:
        """Rescale the whole ensemble from η_{t−1} to η_t, then add −η_t h."""
        s.t += 1
        delta = s.target = s.target or s.zero()
        delta.add(s.F.gradient())
        h = s.project(delta)
        eta = s.step.size(s.t, s.F, h.norm, s.memory)
        last = s.memory.get("last") or eta
        move = Move(h * -eta, eta, shrink=eta / last if eta > 0.0 else 1.0)
        s.memory["last"] = eta or last
        s.F.move(move)
        delta.subtract(h)
        return Round(h, move)


@dataclass(frozen=True)
class ErrorFeedback(Algorithm):
    """Theorem F: e ← e + η_t ∇;  f ← f − proj(e);  e ← e − proj(e).

    The same as Algorithm 3 for a constant step.  The step size is inside e, so any positive sequence works,
    Polyak's rule among them (Section 7.2).
    """

    @property
    def name(self) -> str:
        """Return the name by which the estimators know it."""
        return "error_feedback"

    def check(self, step: Step, constants: Constants) -> None:
        """Only schedules fit."""
        _need_schedule(self.name, step)

    def round(self, s: State) -> Round:
        """Scale the subgradient before it is accumulated; the projection is then taken whole."""
        s.t += 1
        e = s.target = s.target or s.zero()
        gradient = s.F.gradient()
        eta = s.step.size_before_projection(s.t, s.F, gradient, e, s.memory)
        e.add(gradient, eta)
        h = s.project(e)
        move = Move(-h, eta)
        s.F.move(move)
        e.subtract(h)
        return Round(h, move)


ALGORITHMS: dict[str, type[Algorithm]] = {
    "naive": Naive,
    "repeated": Repeated,
    "residual": Residual,
    "dual_averaging": DualAveraging,
    "error_feedback": ErrorFeedback,
}
