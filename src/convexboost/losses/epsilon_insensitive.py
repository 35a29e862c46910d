"""The ε-insensitive loss of support vector regression."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import KINK
from convexboost.losses._leaves import leaf_quantiles, weighted_quantile
from convexboost.losses._loss import Loss, RowLoss, is_positive
from convexboost.losses._pieces import Pieces


@dataclass(frozen=True)
class EpsilonInsensitive(RowLoss):
    """l(f, y) = Σ_k max(0, |f_k − y_k| − ε).  Not smooth.  At the kinks: 0.

    Parameters
    ----------
    epsilon : float, default=0.1
        The error ε up to which the loss is 0, in the unit of the targets.

    """

    epsilon: float = 0.1

    name: ClassVar[str] = "epsilon_insensitive"
    task: ClassVar[str] = "regression"
    has_best_constant = has_best_shifts = has_prox = has_support = has_pieces = True

    def __post_init__(self) -> None:
        if self.epsilon != 0 and not is_positive(self.epsilon):
            raise ValueError(f"`epsilon` must be finite and not negative, got {self.epsilon!r}")

    def formula(self, f: str = "f") -> str:
        """max(0, |f − y| − ε)."""
        return f"max(0, |{f} − y| − {self.epsilon:g})"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return what the error exceeds ε by, and its sign where it does."""
        residual = F - y
        excess = np.abs(residual) - self.epsilon
        close = KINK * np.maximum(np.abs(F), np.abs(y))
        return np.maximum(excess, 0.0).sum(axis=1), np.where(excess > close, np.sign(residual), 0.0)

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ √k."""
        return Constants(lipschitz=math.sqrt(n_outputs), minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the middle of all minimisers.

        max(0, |r| − ε) = ½ |r − ε| + ½ |r + ε| − ε, so they are the medians of all y − ε and y + ε.
        """
        ends = np.vstack([y - self.epsilon, y + self.epsilon])
        twice = space.take(np.tile(np.arange(len(y)), 2))
        return (weighted_quantile(ends, twice, 0.5) - weighted_quantile(-ends, twice, 0.5)) / 2.0

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Move towards the tube around y, by at most `size`."""
        residual = F - y
        return F - np.sign(residual) * (np.abs(residual) - self.epsilon).clip(0.0, size)

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """Slopes lie in [−1, 1], and l*(u) = ⟨u, y⟩ + ε Σ|u_k|."""
        U = U.clip(-1.0, 1.0)
        return U, np.einsum("nk,nk->n", U, F - y) - self.epsilon * np.abs(U).sum(axis=1)

    def best_shifts(self, F: Array, y: Any, space: FunctionSpace, leaf: Any, n_leaves: int) -> Array:
        """Return the middle of all minimisers in each leaf, as for the best constant."""
        ends = np.vstack([y - F - self.epsilon, y - F + self.epsilon])
        twice, leaf = space.take(np.tile(np.arange(len(leaf)), 2)), np.tile(leaf, 2)
        low, high = (leaf_quantiles(sign * ends, twice, leaf, n_leaves, 0.5) for sign in (1.0, -1.0))
        return (low - high) / 2.0

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """max(r − ε, −r − ε, 0)."""
        size, flat = y.size, y.ravel()
        one = sp.eye_array(size)
        return Pieces(
            constant=0.0,
            linear=np.zeros(y.shape),
            slopes=sp.vstack([one, -one, sp.csr_array((size, size))], "csr"),
            constants=np.concatenate([-flat - self.epsilon, flat - self.epsilon, np.zeros(size)]),
            group=np.tile(np.arange(size), 3),
            weight=np.repeat(space.weight, y.shape[1]),
        )

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """A narrow and a wide tube, and none."""
        return (cls(), cls(1), cls(0))
