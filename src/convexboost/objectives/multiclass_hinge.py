"""The multiclass hinge of Crammer and Singer."""

import math
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numba import njit

from convexboost.core import KINK, Array, Constants, FunctionSpace, Gradient, PairGradient
from convexboost.kernels import parallel
from convexboost.objectives._base import Lookup, Loss, Pieces


@njit(cache=True, nogil=True)
def _sweep(
    F: Array, y: Any, codes: Any, table: Array, kink: float, losses: Array, rivals: Any, a: int, b: int
) -> int:
    """Add table[codes] to F, then find the loss and the strongest rival (−1: none) of rows a … b − 1.

    Returns how many rows have tied rivals.
    """
    K, tied = F.shape[1], 0
    whole = K - K % 4
    for n in range(a, b):
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
        losses[n] = max(loss, 0.0)
        violated = loss > close
        tied += violated and hits > 1
        rivals[n] = where if violated else -1
        F[n, y[n]] = own
    return tied


@njit(cache=True, nogil=True)
def _prox(F: Array, y: Any, size: float, out: Array) -> None:
    """Out = F − size (p − e_y), p the point of the simplex nearest to F/size + e_y + (1 − e_y)/size."""
    K = F.shape[1]
    p = np.empty(K)
    for n in range(len(F)):
        top = -np.inf
        for k in range(K):
            p[k] = F[n, k] + 1.0
            if k == y[n]:
                p[k] += size - 1.0
            top = max(top, p[k])
        # Michelot: the threshold under which p is 0, raised until it stays
        level, before = -np.inf, K + 1
        while True:
            total, count = 0.0, 0
            for k in range(K):
                if p[k] > level:
                    total += p[k] - top
                    count += 1
            if count == 0 or count >= before:
                break
            level, before = top + (total - size) / count, count
        for k in range(K):
            out[n, k] = F[n, k] - max(p[k] - level, 0.0)
        out[n, y[n]] += size


class MulticlassHinge(Loss):
    """l(f, y) = max_k (1[k ≠ y] + f_k − f_y).  Not smooth, ‖∇R‖ ≤ √2; gradients have zero row sums.

    At a kink: 0 where the loss is 0, else the mean over the tied classes, so that the order of the classes
    does not matter and the first direction, where all of them tie, is one of descent.
    """

    name: ClassVar[str] = "multiclass_hinge"
    task: ClassVar[str] = "classification"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the hinge and e_k − e_y, k the strongest rival, in the rows that violate it."""
        losses, rivals, _ = self._pass(F, y, None, 1)
        G = np.zeros(F.shape)
        rows = np.flatnonzero(rivals >= 0)
        others = np.where(np.arange(F.shape[1]) == y[rows, None], -np.inf, F[rows])
        close = KINK * (np.abs(F[rows, y[rows]]) + 1.0)
        tied = others >= (others.max(axis=1) - close)[:, None]
        G[rows] = tied / tied.sum(axis=1, keepdims=True)
        G[rows, y[rows]] = -1.0
        return losses, G

    def value(self, F: Array, y: Any) -> Array:
        """Return the hinge alone."""
        return self._pass(F, y, None, 1)[0]

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
        losses, rivals, tied = self._pass(F, y, lookup, n_threads)
        if tied:
            return space.mean(losses), Gradient(self.evaluate(F, y)[1], space)
        return space.mean(losses), PairGradient(rivals, y, F.shape[1], space).follow(before)

    def _pass(self, F: Array, y: Any, lookup: Lookup | None, n_threads: int) -> tuple[Array, Any, int]:
        losses, rivals, ties = np.empty(len(F)), np.empty(len(F), np.int32), []
        codes, table = lookup or (np.empty(0, np.uint8), np.empty((0, F.shape[1])))

        def task(a: int, b: int) -> None:
            ties.append(_sweep(F, y, codes, table, KINK, losses, rivals, a, b))

        parallel.run(task, len(F), 2 * F.size, n_threads)
        return losses, rivals, sum(ties)

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ √2."""
        return Constants(lipschitz=math.sqrt(2), minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return a margin of 1 for a class with more than half of the weight, else 0."""
        shares = np.array([space.mean(y == k) for k in range(n_outputs)])
        winner = (np.arange(n_outputs) == shares.argmax()) & (shares > 0.5)
        return winner - winner.mean()

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Lower the strongest classes and raise the own one."""
        out = np.empty(F.shape)
        _prox(F, y, size, out)
        return out

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """max_k (1[k ≠ y] + f_k) − f_y."""
        n, own = space.n_samples, np.eye(n_outputs)[y]
        return Pieces(
            constant=0.0,
            linear=-space.weight[:, None] * own,
            slopes=sp.eye_array(n * n_outputs, format="csr"),
            constants=(1.0 - own).ravel(),
            group=np.repeat(np.arange(n), n_outputs),
            weight=space.weight,
        )
