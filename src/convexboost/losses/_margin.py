"""Losses of two classes: a convex function of the margin, which is f for class 1 and −f for class 0."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._loss import RowLoss


class MarginLoss(RowLoss):
    """l(f, y) = φ(m), m = f if y is 1 and −f if y is 0: one score for two classes."""

    task: ClassVar[str] = "binary"
    defining = ("evaluate", "of_margin")

    @abstractmethod
    def of_margin(self, margin: Array) -> tuple[Array, Array]:
        """Return φ and a subgradient of it, for margins of any shape."""

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return φ(m), and its slope turned back to f."""
        sign = signs(y)
        losses, slope = self.of_margin(sign * F)
        return losses[:, 0], sign * slope

    def check(self, y: Any) -> None:
        """Refuse what is neither 0 nor 1."""
        bad = np.flatnonzero((y != 0) & (y != 1))
        if len(bad):
            raise ValueError(f"`y` must be 0 or 1, the class numbers, got {y[bad[0]]} in row {bad[0]}")


def signs(y: Any) -> Array:
    """Return 1 for class 1 and −1 for class 0, (n, 1)."""
    return np.asarray(2.0 * y - 1.0)[:, None]


def log_odds(y: Any, space: FunctionSpace) -> Array:
    """Return the log of share 1 over share 0; a class without weight counts as half a row."""
    shares = space.masses(y, 2)
    logs = np.log(np.where(shares > 0.0, shares, 0.5 * space.row))
    return logs[1:] - logs[:1]
