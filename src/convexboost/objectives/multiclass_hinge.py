"""The multiclass hinge of Crammer and Singer."""

import math
from typing import Any, ClassVar

import numpy as np
from numba import njit

from convexboost.core import KINK, Array, Constants, FunctionSpace, Gradient, PairGradient
from convexboost.kernels import parallel
from convexboost.objectives._base import Lookup, Loss

#: x ^ (x >> 63 & SIGN) turns the bits of a float into an integer of the same order, and back.
SIGN = np.int64(2**63 - 1)
LOWEST = np.int64(-0x7FF0000000000001)  #: what −∞ becomes


@njit(cache=True, nogil=True)
def _sweep(
    F: Array,
    y: Any,
    codes: Any,
    table: Array,
    guess: Any,
    kink: float,
    losses: Array,
    rivals: Any,
    a: int,
    b: int,
) -> int:
    """Add table[codes] to F, then find the loss and the strongest rival (−1: none) of rows a … b − 1.

    Empty `codes` are all 0, an empty `guess` is −1 throughout.  `guess` holds the rivals of the last round:
    almost all of them still stand, and then one look at the other classes is enough.  Their maximum is that
    of integers, which compilers turn into vector instructions.  Returns how many rows have tied rivals.
    """
    K, tied = F.shape[1], 0
    bits, top_bits = F.view(np.int64), losses.view(np.int64)
    for n in range(a, b):
        c = codes[n] if len(codes) > 0 else 0
        own_class, rival = y[n], guess[n] if len(guess) > 0 else -1
        top = LOWEST
        for k in range(K):
            F[n, k] += table[c, k]
            x = bits[n, k]
            is_other = (k != own_class) & (k != rival)
            top = max(top, x ^ (x >> 63 & SIGN) if is_other else LOWEST)
        top_bits[n] = top ^ (top >> 63 & SIGN)
        own, others, guessed = F[n, own_class], losses[n], F[n, rival] if rival >= 0 else -np.inf
        best = max(others, guessed)
        close = kink * (abs(own) + 1.0)
        loss = 1.0 + best - own
        losses[n] = max(loss, 0.0)
        violated = loss > close
        if violated and others >= guessed - close:  # seldom: another rival, or a tie
            hits, rival = 0, 0
            for k in range(K):
                hit = (F[n, k] >= best - close) & (k != own_class)
                hits += hit
                rival += k * hit
            tied += hits > 1
        rivals[n] = rival if violated else -1
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
        losses, rivals, _ = self._pass(F, y, None, None, 1)
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
        return self._pass(F, y, None, None, 1)[0]

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
        losses, rivals, tied = self._pass(F, y, lookup, before, n_threads)
        if tied:
            return space.mean(losses), Gradient(self.evaluate(F, y)[1], space)
        return space.mean(losses), PairGradient(rivals, y, F.shape[1], space).follow(before)

    def _pass(
        self, F: Array, y: Any, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[Array, Any, int]:
        losses, rivals, ties = np.empty(len(F)), np.empty(len(F), np.int32), []
        codes, table = lookup or (np.empty(0, np.uint8), np.zeros((1, F.shape[1])))
        guess = before.plus if isinstance(before, PairGradient) else np.empty(0, np.int32)

        def task(a: int, b: int) -> None:
            ties.append(_sweep(F, y, codes, table, guess, KINK, losses, rivals, a, b))

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
