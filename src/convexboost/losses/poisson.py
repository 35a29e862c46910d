"""Half the Poisson deviance."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._exp import exponential, prox_exponential
from convexboost.losses._loss import RowLoss


@dataclass(frozen=True)
class Poisson(RowLoss):
    """l(f, y) = Σ_k exp f_k − y_k f_k + y_k log y_k − y_k, for counts y ≥ 0; exp f is the mean.

    Neither Lipschitz nor smooth.  Scores above 300 continue exp by its tangent, so that values stay finite.
    """

    name: ClassVar[str] = "poisson"
    task: ClassVar[str] = "regression"
    positive_only = True
    link_steps = (("exp",),)
    has_link = has_best_constant = has_curvatures = has_prox = True

    def formula(self, f: str = "f") -> str:
        """e^f − y f + y log y − y."""
        return f"exp {f} − y {f} + y log y − y"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return half the deviance and exp f − y."""
        mean, slope = exponential(F)
        losses = (mean - y) + (xlogy(y, y) - y * F)
        return np.maximum(losses, 0.0).sum(axis=1), slope - y

    def link(self, F: Array) -> Array:
        """Return the mean, exp f."""
        return exponential(F)[0]

    def constants(self, n_outputs: int) -> Constants:
        """Return that it is never below 0."""
        return Constants(minimum=0.0)

    def check(self, y: Any) -> None:
        """Refuse negative targets."""
        bad = np.flatnonzero((y < 0).any(axis=1))
        if len(bad):
            raise ValueError(f"`y` must not be negative, got {y[bad[0]].min():g} in row {bad[0]}")

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the log of the weighted mean."""
        mean = np.array([space.mean(column) for column in y.T])
        if not (mean > 0.0).all():
            raise ValueError(f"`y` must not be all 0, got so in output {mean.argmin()}: its best mean is 0")
        return np.log(mean)

    def curvatures(self, y: Any, G: Array) -> Array:
        """Return exp f."""
        return np.maximum(G + y, 0.0)

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Return the root of f + size · exp f = F + size · y, by Wright's ω."""
        return prox_exponential(F + size * y, size)
