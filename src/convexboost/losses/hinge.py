"""The hinge of two classes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import KINK, TIE
from convexboost.losses._leaves import leaf_quantiles
from convexboost.losses._margin import MarginLoss, signs
from convexboost.losses._pieces import Pieces


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """l(f, y) = max(0, 1 − m), m = ±f the margin.  Not smooth, ‖∇R‖ ≤ 1.  At the kink: 0."""

    name: ClassVar[str] = "hinge"
    multiclass = "multiclass_hinge"
    has_best_constant = has_best_shifts = has_prox = has_support = has_pieces = True

    def formula(self, f: str = "f") -> str:
        """max(0, 1 ∓ f)."""
        return f"max(0, 1 − (2y − 1) {f})"

    def of_margin(self, margin: Array) -> tuple[Array, Array]:
        """Return 1 − m and −1 where the margin is below 1."""
        short = 1.0 - margin
        return np.maximum(short, 0.0), np.where(short > KINK * (np.abs(margin) + 1.0), -1.0, 0.0)

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Move the margin towards 1 from below, by at most `size`."""
        sign = signs(y)
        margin = sign * F
        return sign * (margin + (1.0 - margin).clip(0.0, size))

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """Slopes of the margin are −s with s in [0, 1], and l*(−s) = −s."""
        sign = signs(y)
        s = (-sign * U).clip(0.0, 1.0)
        return -sign * s, (s * (1.0 - sign * F))[:, 0]

    def constants(self, n_outputs: int) -> Constants:
        """‖∇R‖ ≤ 1."""
        return Constants(lipschitz=1.0, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the sign of the majority, 0 in a tie.

        With shares p the minimisers are 1 if p₁ > p₀ > 0, [1, ∞) if p₀ = 0, [−1, 1] in a tie.
        """
        low, high = space.masses(y, 2)
        return np.array([0.0 if abs(high - low) <= TIE else np.sign(high - low)])

    def best_shifts(self, F: Array, y: Any, space: FunctionSpace, leaf: Any, n_leaves: int) -> Array:
        """Return the middle of all minimisers in each leaf.

        The slope in a leaf goes from minus the weight of class 1 up to the weight of class 0, by the
        weight of a row at each shift that brings the row to its margin.
        """
        low = leaf_quantiles(signs(y) - F, space, leaf, n_leaves, y == 1)
        high = leaf_quantiles(F - signs(y), space, leaf, n_leaves, y != 1)
        return (low - high) / 2.0

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """max(1 − m, 0)."""
        n = space.n_samples
        return Pieces(
            constant=0.0,
            linear=np.zeros((n, 1)),
            slopes=sp.vstack([sp.diags_array(-signs(y)[:, 0]), sp.csr_array((n, n))], "csr"),
            constants=np.repeat([1.0, 0.0], n),
            group=np.tile(np.arange(n), 2),
            weight=space.weight,
        )
