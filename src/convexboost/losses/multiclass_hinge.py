"""The multiclass hinge of Crammer and Singer."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numba import njit

from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import KINK, TIE
from convexboost.kernels import parallel
from convexboost.losses._loss import Loss, RowLoss
from convexboost.losses._pair_gradient import PairGradient
from convexboost.losses._pieces import Pieces
from convexboost.losses._scores import Lookup

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
    first: bool,
    rivals: Any,
    losses: Array,
) -> int:
    """Add table[codes] to F, then find the strongest rival (−1: none) of each row, and its loss.

    Empty `codes` are all 0, an empty `guess` is −1 throughout.  `guess` holds the rivals of the last round:
    almost all of them still stand, and then one look at the other classes is enough.  Their maximum is that
    of integers, which compilers turn into vector instructions.  Returns how many rows have tied rivals; if
    `first`, the one of the lowest class counts alone, and there are no ties.
    """
    K, tied = F.shape[1], 0
    top_of_others = np.empty(1)
    bits, top_bits = F.view(np.int64), top_of_others.view(np.int64)
    for n in range(len(F)):
        c = codes[n] if len(codes) > 0 else 0
        own_class, rival = y[n], guess[n] if len(guess) > 0 else -1
        top = LOWEST
        for k in range(K):
            F[n, k] += table[c, k]
            x = bits[n, k]
            is_other = (k != own_class) & (k != rival)
            top = max(top, x ^ (x >> 63 & SIGN) if is_other else LOWEST)
        top_bits[0] = top ^ (top >> 63 & SIGN)
        own, others, guessed = F[n, own_class], top_of_others[0], F[n, rival] if rival >= 0 else -np.inf
        best = max(others, guessed)
        close = kink * (abs(own) + 1.0)
        loss = 1.0 + best - own
        losses[n] = max(loss, 0.0)
        violated = loss > close
        if violated and others >= guessed - close:  # seldom: another rival, or a tie
            hits, rival = 0, 0
            for k in range(K):
                hit = (F[n, k] >= best - close) & (k != own_class) & (not first or hits == 0)
                hits += hit
                rival += k * hit
            tied += hits > 1
        rivals[n] = rival if violated else -1
    return tied


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _prox(F: Array, y: Any, size: float, out: Array) -> None:
    """Out = F − size (p − e_y), p the point of the simplex nearest to F/size + e_y + (1 − e_y)/size."""
    K = F.shape[1]
    p = np.empty(K)
    for n in range(len(F)):
        for k in range(K):
            p[k] = F[n, k] + 1.0
        p[y[n]] += size - 1.0
        top = p.max()
        # Michelot: the threshold under which p is 0, raised until it stays; p adds up to `size`
        level, before = top - size, K + 1
        while True:
            total, count = 0.0, 0
            for k in range(K):  # without a branch: by vector instructions
                is_above = p[k] > level
                total += p[k] - top if is_above else 0.0
                count += is_above
            if count == 0 or count >= before:
                break
            level, before = top + (total - size) / count, count
        for k in range(K):
            out[n, k] = F[n, k] - max(p[k] - level, 0.0)
        out[n, y[n]] += size


@dataclass(frozen=True)
class MulticlassHinge(RowLoss):
    """l(f, y) = max_k (1[k ≠ y] + f_k − f_y).  Not smooth, ‖∇R‖ ≤ √2; gradients have zero row sums.

    At a kink: 0 where the loss is 0, else what `ties` says.

    Parameters
    ----------
    ties : {"mean", "first"}, default="mean"
        Where several classes are the strongest rival, as all are at the start.  "mean": the mean of their
        subgradients, so that the order of the classes does not matter and the first direction is one of
        descent.  "first": that of the class with the lowest number, an ordinary argmax, as one reads the
        paper.  Both are subgradients; neither depends on the order of the rows.

    """

    ties: str = "mean"
    name: ClassVar[str] = "multiclass_hinge"
    task: ClassVar[str] = "classification"
    has_best_constant = has_prox = has_support = has_pieces = True

    def __post_init__(self) -> None:
        if self.ties not in ("mean", "first"):
            raise ValueError(f"`ties` must be 'mean' or 'first', got {self.ties!r}")

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """Return one for each way to treat ties."""
        return cls(), cls(ties="first")

    def formula(self, f: str = "f") -> str:
        """max_k (1[k ≠ y] + f_k − f_y)."""
        return f"max_k (1[k ≠ y] + {f}_k − {f}_y)"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the hinge and e_k − e_y, k the strongest rival, in the rows that violate it."""
        rows = np.arange(len(F))
        own, others = F[rows, y], F.copy()
        others[rows, y] = -np.inf
        best = others.max(axis=1)
        losses, close = 1.0 + best - own, KINK * (np.abs(own) + 1.0)
        violated = losses > close
        tied = (others >= (best - close)[:, None]) & violated[:, None]
        if self.ties == "first":
            tied &= np.cumsum(tied, axis=1) == 1
        G = tied / np.maximum(tied.sum(axis=1, keepdims=True), 1)
        G[rows, y] = np.where(violated, -1.0, 0.0)
        return np.maximum(losses, 0.0), G

    def value(self, F: Array, y: Any) -> Array:
        """Return the hinge alone."""
        rows = np.arange(len(F))
        others = F.copy()
        others[rows, y] = -np.inf
        return np.maximum(1.0 + others.max(axis=1) - F[rows, y], 0.0)

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
        rivals, losses, ties = np.empty(len(F), np.int32), np.empty(len(F)), []
        codes, table = lookup or (np.empty(0, np.uint8), np.zeros((1, F.shape[1])))
        guess = before.plus if isinstance(before, PairGradient) else np.empty(0, np.int32)

        def task(start: int, stop: int) -> None:
            rows = slice(start, stop)
            own = F[rows], y[rows], codes[rows], table, guess[rows]
            ties.append(_sweep(*own, KINK, self.ties == "first", rivals[rows], losses[rows]))

        parallel.run(task, len(F), 2 * F.size, n_threads)
        if space.communicator.any(any(ties)):
            return super().advance(F, y, space, None, before, n_threads)
        return space.mean(losses), PairGradient(rivals, y, F.shape[1], space).follow(before)

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ √2."""
        return Constants(lipschitz=math.sqrt(2), minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return a margin of 1 for a class with more than half of the weight, else 0."""
        shares = space.masses(y, n_outputs)
        winner = (np.arange(n_outputs) == shares.argmax()) & (shares > 0.5 + TIE)
        return winner - winner.mean()

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Lower the strongest classes and raise the own one."""
        out = np.empty(F.shape)
        _prox(F, y, size, out)
        return out

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """Slopes are Σ_k s_k (e_k − e_y) with s ≥ 0 and Σ s ≤ 1 over the rivals k, and l* is −Σ s."""
        rows, S = np.arange(len(y)), np.maximum(U, 0.0)
        S[rows, y] = 0.0
        S /= np.maximum(S.sum(axis=1, keepdims=True), 1.0)
        values = np.einsum("nk,nk->n", S, 1.0 + F - F[rows, y][:, None])
        S[rows, y] = -S.sum(axis=1)
        return S, values

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
