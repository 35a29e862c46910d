"""Half the squared error."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexboost.core import Array, Constants, FunctionSpace
from convexboost.objectives._base import RowLoss, leaf_means


@dataclass(frozen=True)
class HalfSquared(RowLoss):
    """l(f, y) = ½ ‖f − y‖².  Smooth and strongly convex with constant 1; the best constant is the mean."""

    name: ClassVar[str] = "half_squared"
    task: ClassVar[str] = "regression"

    def formula(self, f: str = "f") -> str:
        """½ (f − y)²."""
        return f"½ ({f} − y)²"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return ½ ‖f − y‖² and f − y."""
        G = F - y
        return 0.5 * np.einsum("nk,nk->n", G, G), G

    def constants(self, n_outputs: int) -> Constants:
        """Λ = λ = 1."""
        return Constants(smoothness=1.0, strong_convexity=1.0, minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the weighted mean."""
        return np.array([space.mean(column) for column in y.T])

    def best_shifts(self, F: Array, y: Any, weight: Array, leaf: Any, n_leaves: int) -> Array:
        """Return the mean of the residuals in each leaf."""
        return leaf_means(y - F, weight, leaf, n_leaves)

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Return a point between F and y."""
        return (F + size * y) / (1.0 + size)
