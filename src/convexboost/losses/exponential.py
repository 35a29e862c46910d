"""The exponential loss, AdaBoost's."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._exp import exponential, prox_exponential
from convexboost.losses._margin import MarginLoss, log_odds, signs


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """l(f, y) = exp −m, m = ±f the margin.  Neither Lipschitz nor smooth; the score is half the log-odds.

    Margins below −300 continue the loss by its tangent, so that values stay finite.
    """

    name: ClassVar[str] = "exponential"
    multiclass = "softmax"
    link_steps = (("times", 2.0), ("sigmoid",))
    has_link = has_best_constant = has_curvatures = has_prox = True

    def formula(self, f: str = "f") -> str:
        """exp(∓f)."""
        return f"exp(−(2y − 1) {f})"

    def of_margin(self, margin: Array) -> tuple[Array, Array]:
        """Return exp −m and minus that."""
        losses, slope = exponential(-margin)
        return losses, -slope

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Move the margin to the root m of m − size · exp −m = margin, by Wright's ω."""
        sign = signs(y)
        return sign * -prox_exponential(-(sign * F), size)

    def link(self, F: Array) -> Array:
        """Return 1/(1 + exp 2f) and 1/(1 + exp −2f)."""
        return expit(2.0 * np.column_stack([-F, F]))

    def curvatures(self, y: Any, G: Array) -> Array:
        """Return exp −m."""
        return np.abs(G)

    def constants(self, n_outputs: int) -> Constants:
        """Return that it is never below 0."""
        return Constants(minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return half the log-odds of the shares."""
        return 0.5 * log_odds(y, space)
