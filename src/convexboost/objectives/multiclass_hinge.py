"""The multiclass hinge of Crammer and Singer."""

import math
from typing import Any, ClassVar

import numpy as np
from numba import njit

from convexboost.core import KINK, Array, Constants, FunctionSpace
from convexboost.objectives._base import Loss


@njit(cache=True, nogil=True)
def _evaluate(F: Array, y: Any, kink: float, losses: Array, G: Array) -> None:
    """L = max(0, 1 + max_{k ≠ y} f_k − f_y); subgradient e_k̂ − e_y where l > 0 (lowest k̂ on ties)."""
    for n in range(len(y)):
        own = F[n, y[n]]
        rival, best = -1, -np.inf
        unit = abs(own) + 1.0
        for k in range(F.shape[1]):
            if k != y[n] and F[n, k] > best + kink * unit:
                rival, best = k, F[n, k]
        loss = 1.0 + best - own
        losses[n] = max(loss, 0.0)
        if loss > kink * unit:
            G[n, rival] = 1.0
            G[n, y[n]] = -1.0


class MulticlassHinge(Loss):
    """l(f, y) = max_k (1[k ≠ y] + f_k − f_y).  Not smooth, ‖∇R‖ ≤ √2; gradients have zero row sums.

    At a kink: 0 where the loss is 0, else the lowest of the tied classes.
    """

    name: ClassVar[str] = "multiclass_hinge"
    task: ClassVar[str] = "classification"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the hinge and e_k̂ − e_y in the rows that violate it."""
        losses, G = np.empty(len(F)), np.zeros(F.shape)
        _evaluate(F, y, KINK, losses, G)
        return losses, G

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ √2."""
        return Constants(lipschitz=math.sqrt(2), minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return a margin of 1 for a class with more than half of the weight, else 0."""
        shares = np.array([space.mean(y == k) for k in range(n_outputs)])
        winner = (np.arange(n_outputs) == shares.argmax()) & (shares > 0.5)
        return winner - winner.mean()
