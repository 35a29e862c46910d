"""The results of a check: an error, a warning, or a report."""

from __future__ import annotations

from dataclasses import dataclass

from convexboost.losses._users import LossError

__all__ = ["DoubtfulError", "LossError", "LossReport", "LossWarning"]


class DoubtfulError(LossError):
    """A mistake that training survives: in a fit it is a warning."""


class LossWarning(UserWarning):
    """A loss may not be what it should be."""


@dataclass(frozen=True)
class LossReport:
    """What `check_loss` did and learned; print it."""

    loss: str
    evaluations: int
    n_points: int
    coupled: bool  #: whether it is a loss of all rows at once
    kinks: bool  #: whether a jump of the slope was found
    lipschitz: float  #: the largest norm of a subgradient met at ordinary scores
    minimum: float  #: the smallest objective met
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = (
            f"{self.loss}: no mistake found, at {self.n_points} points ({self.evaluations} evaluations).",
            "It has kinks." if self.kinks else "It looks smooth.",
            f"Slopes up to {self.lipschitz:.3g} at ordinary scores; smallest objective {self.minimum:.6g}.",
            "It is a loss of all rows at once." if self.coupled else "Every row stands for itself.",
            *self.notes,
        )
        return "\n".join(lines)
