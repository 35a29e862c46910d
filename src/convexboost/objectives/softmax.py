"""The multinomial logistic loss."""

import math
from typing import Any, ClassVar

import numpy as np

from convexboost.core import Array, Constants, FunctionSpace
from convexboost.objectives._base import LinkLoss


class Softmax(LinkLoss):
    """l(f, y) = log Σ_k exp f_k − f_y.  Smooth with constant ½, ‖∇R‖ ≤ √2; scores are log-probabilities."""

    name: ClassVar[str] = "softmax"
    task: ClassVar[str] = "classification"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return −log P(y) and the probabilities minus the indicator of y."""
        rows = np.arange(len(y))
        top = F.max(axis=1, keepdims=True)
        G = np.exp(F - top)
        total = G.sum(axis=1, keepdims=True)
        losses = np.log(total[:, 0]) + top[:, 0] - F[rows, y]
        G /= total
        G[rows, y] -= 1.0
        return losses, G

    def link(self, F: Array) -> Array:
        """Return exp f_k / Σ exp f."""
        P = np.exp(F - F.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        return P

    def constants(self, n_outputs: int) -> Constants:
        """Λ = ½, ‖∇R‖ ≤ √2."""
        return Constants(lipschitz=math.sqrt(2), smoothness=0.5, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the log of the class shares, centred; a class without weight counts as half a row."""
        shares = np.array([space.mean(y == k) for k in range(n_outputs)])
        logs = np.log(np.where(shares > 0.0, shares, 0.5 / space.n_samples))
        return logs - logs.mean()
