"""The logistic loss of two classes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._margin import MarginLoss, log_odds


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """l(f, y) = log(1 + exp −m), m = ±f the margin.  Smooth with constant ¼; the score is the log-odds.

    It is softmax of two classes with the scores ∓f/2.  A Newton step in each of these moves f twice as far
    as Newton's step in f.  The leaf refit takes two steps at once, so that a learning rate means the same for
    two classes as for more.
    """

    name: ClassVar[str] = "logistic"
    multiclass = "softmax"
    link_steps = (("sigmoid",),)
    has_link = has_best_constant = has_curvatures = True
    newton_steps = 2.0

    def formula(self, f: str = "f") -> str:
        """log(1 + exp(∓f))."""
        return f"log(1 + exp(−(2y − 1) {f}))"

    def of_margin(self, margin: Array) -> tuple[Array, Array]:
        """Return log(1 + exp −m) and −P(the other class)."""
        small = np.exp(-np.abs(margin))
        losses = np.log1p(small) - np.minimum(margin, 0.0)
        other = np.maximum(small, margin < 0.0)  # 1 where the margin is negative: `np.where` is slower
        return losses, -other / (1.0 + small)

    def curvatures(self, y: Any, G: Array) -> Array:
        """Return P (1 − P)."""
        P = np.abs(G)
        return P * (1.0 - P)

    def link(self, F: Array) -> Array:
        """Return 1/(1 + exp f) and 1/(1 + exp −f)."""
        return expit(np.column_stack([-F, F]))

    def constants(self, n_outputs: int) -> Constants:
        """Λ = ¼, ‖∇R‖ ≤ 1."""
        return Constants(lipschitz=1.0, smoothness=0.25, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the log-odds of the shares."""
        return log_odds(y, space)
