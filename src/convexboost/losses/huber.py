"""Huber's loss."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexboost.core.space import Array, FunctionSpace
from convexboost.losses import Constants, Loss, Pointwise, RowLoss, is_positive


@dataclass(frozen=True)
class Huber(RowLoss):
    """l(f, y) = Σ_k ½ r² where |r| ≤ δ, else δ (|r| − δ/2), r = f_k − y_k.  Smooth with constant 1.

    Parameters
    ----------
    delta : float, default=1.0
        The error δ from which the loss is linear, in the unit of the targets.

    """

    delta: float = 1.0

    name: ClassVar[str] = "huber"
    task: ClassVar[str] = "regression"
    has_best_constant = has_prox = True

    def __post_init__(self) -> None:
        if not is_positive(self.delta):
            raise ValueError(f"`delta` must be positive and finite, got {self.delta!r}")

    def formula(self, f: str = "f") -> str:
        """huber(f − y)."""
        return f"huber({f} − y; {self.delta:g})"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return Huber's loss and the residual, cut off at ±δ."""
        residual = F - y
        G = residual.clip(-self.delta, self.delta)
        return np.sum(G * (residual - 0.5 * G), axis=1), G

    def constants(self, n_outputs: int) -> Constants:
        """Λ = 1, ‖∇R‖ ≤ δ √k."""
        return Constants(lipschitz=self.delta * math.sqrt(n_outputs), smoothness=1.0, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Search the sign change of the slope, output by output: exact up to rounding."""
        outputs = (Pointwise(self, y[:, [k]], space=space, n_outputs=1) for k in range(n_outputs))
        return np.concatenate([output.search_start() for output in outputs])

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Return a point between F and y, at most δ · `size` from F."""
        return F - size * ((F - y) / (1.0 + size)).clip(-self.delta, self.delta)

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """A wide and a narrow middle."""
        return (cls(), cls(0.3))
