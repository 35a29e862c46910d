"""The multiclass hinge of Crammer and Singer."""

import math
from typing import Any, ClassVar

import numpy as np
from numba import njit

from convexboost.core import KINK, Array, Constants, FunctionSpace
from convexboost.objectives._base import Loss


@njit(cache=True, nogil=True)
def _evaluate(F: Array, y: Any, kink: float, losses: Array, G: Array) -> None:
    """l = max(0, 1 + max_{k ≠ y} f_k − f_y); subgradient (mean of the tied e_k) − e_y where l > 0."""
    for n in range(len(y)):
        own, rival = F[n, y[n]], -np.inf
        for k in range(F.shape[1]):
            if k != y[n] and F[n, k] > rival:
                rival = F[n, k]
        loss = 1.0 + rival - own
        losses[n] = max(loss, 0.0)
        close = kink * (abs(own) + 1.0)
        if loss > close:
            tied = 0
            for k in range(F.shape[1]):
                tied += k != y[n] and F[n, k] >= rival - close
            for k in range(F.shape[1]):
                if k != y[n] and F[n, k] >= rival - close:
                    G[n, k] = 1.0 / tied
            G[n, y[n]] = -1.0


class MulticlassHinge(Loss):
    """l(f, y) = max_k (1[k ≠ y] + f_k − f_y).  Not smooth, ‖∇R‖ ≤ √2; gradients have zero row sums.

    At a kink: 0 where the loss is 0, else the mean over the tied classes, so that the order of the classes
    does not matter and the first direction, where all of them tie, is one of descent.
    """

    name: ClassVar[str] = "multiclass_hinge"
    task: ClassVar[str] = "classification"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the hinge and e_k − e_y, k the strongest rival, in the rows that violate it."""
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
