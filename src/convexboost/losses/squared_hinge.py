"""The squared hinge of two classes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._margin import MarginLoss, signs


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """l(f, y) = max(0, 1 − m)², m = ±f the margin.  Smooth with constant 2."""

    name: ClassVar[str] = "squared_hinge"
    multiclass = "multiclass_hinge"
    has_best_constant = has_prox = True

    def formula(self, f: str = "f") -> str:
        """max(0, 1 ∓ f)²."""
        return f"max(0, 1 − (2y − 1) {f})²"

    def of_margin(self, margin: Array) -> tuple[Array, Array]:
        """Return (1 − m)² and −2 (1 − m) where the margin is below 1."""
        short = np.maximum(1.0 - margin, 0.0)
        return short * short, -2.0 * short

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Move the margin part of the way to 1, if it is below 1."""
        sign = signs(y)
        margin = sign * F
        return sign * (margin + np.maximum(1.0 - margin, 0.0) * (2.0 * size / (1.0 + 2.0 * size)))

    def constants(self, n_outputs: int) -> Constants:
        """Λ = 2."""
        return Constants(smoothness=2.0, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the share of class 1 minus that of class 0."""
        low, high = space.masses(y, 2)
        return np.array([(high - low) / (high + low)])
