"""The multiclass hinge of Crammer and Singer."""

import math
from typing import Any, ClassVar

import numpy as np
from numba import njit

from convexboost.core import BLOCK, KINK, Array, Constants, FunctionSpace, Gradient, PairGradient
from convexboost.kernels import parallel
from convexboost.objectives._base import Lookup, Loss


@njit(cache=True, nogil=True)
def _sweep(
    F: Array,
    y: Any,
    weight: Array,
    codes: Any,
    table: Array,
    kink: float,
    rivals: Any,
    values: Array,
    first: int,
    last: int,
) -> int:
    """Add table[codes] to F, then find the strongest rival (−1: none) of each row in blocks first … last − 1.

    `values` are the weighted sums of the losses, block by block.  Returns how many rows have tied rivals.
    """
    K, tied = F.shape[1], 0
    whole = K - K % 4
    for block in range(first, last):
        total = 0.0
        for n in range(block * BLOCK, min((block + 1) * BLOCK, len(F))):
            if len(codes) > 0:
                c = codes[n]
                for k in range(K):
                    F[n, k] += table[c, k]
            own = F[n, y[n]]
            F[n, y[n]] = -np.inf
            m0 = m1 = m2 = m3 = -np.inf  # four maxima at once: each waits only for itself
            for k in range(0, whole, 4):
                m0, m1 = max(m0, F[n, k]), max(m1, F[n, k + 1])
                m2, m3 = max(m2, F[n, k + 2]), max(m3, F[n, k + 3])
            for k in range(whole, K):
                m0 = max(m0, F[n, k])
            best = max(max(m0, m1), max(m2, m3))
            close = kink * (abs(own) + 1.0)
            hits, where = 0, 0  # no branches: which rows are violated cannot be predicted
            for k in range(K):
                hit = F[n, k] >= best - close
                hits += hit
                where += k * hit
            loss = 1.0 + best - own
            total += weight[n] * max(loss, 0.0)
            violated = loss > close
            tied += violated and hits > 1
            rivals[n] = where if violated else -1
            F[n, y[n]] = own
        values[block] = total
    return tied


class MulticlassHinge(Loss):
    """l(f, y) = max_k (1[k ≠ y] + f_k − f_y).  Not smooth, ‖∇R‖ ≤ √2; gradients have zero row sums.

    At a kink: 0 where the loss is 0, else the mean over the tied classes, so that the order of the classes
    does not matter and the first direction, where all of them tie, is one of descent.
    """

    name: ClassVar[str] = "multiclass_hinge"
    task: ClassVar[str] = "classification"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the hinge and e_k − e_y, k the strongest rival, in the rows that violate it."""
        rows = np.arange(len(F))
        own, others = F[rows, y], F.copy()
        others[rows, y] = -np.inf
        best = others.max(axis=1)
        losses, close = 1.0 + best - own, KINK * (np.abs(own) + 1.0)
        violated = losses > close
        tied = (others >= (best - close)[:, None]) & violated[:, None]
        G = tied / np.maximum(tied.sum(axis=1, keepdims=True), 1)
        G[rows, y] = np.where(violated, -1.0, 0.0)
        return np.maximum(losses, 0.0), G

    def advance(
        self,
        F: Array,
        y: Any,
        space: FunctionSpace,
        lookup: Lookup | None,
        before: Gradient | None,
        n_threads: int,
    ) -> tuple[float, Gradient]:
        """Move, evaluate and compare with the last subgradient in one pass over the scores."""
        n_blocks = -(-len(F) // BLOCK)
        rivals, values, ties = np.empty(len(F), np.int32), np.empty(n_blocks), []
        codes, table = lookup or (np.empty(0, np.uint8), np.empty((0, F.shape[1])))

        def task(first: int, last: int) -> None:
            ties.append(_sweep(F, y, space.weight, codes, table, KINK, rivals, values, first, last))

        parallel.run(task, n_blocks, 2 * F.size, n_threads)
        if any(ties):
            return super().advance(F, y, space, None, before, n_threads)
        return sum(values.tolist()), PairGradient(rivals, y, F.shape[1], space).follow(before)

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ √2."""
        return Constants(lipschitz=math.sqrt(2), minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return a margin of 1 for a class with more than half of the weight, else 0."""
        shares = space.shares(y, n_outputs)
        winner = (np.arange(n_outputs) == shares.argmax()) & (shares > 0.5 + KINK)
        return winner - winner.mean()
