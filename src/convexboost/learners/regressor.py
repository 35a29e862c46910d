"""Any scikit-learn regressor as weak learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from convexboost.core.space import Array
from convexboost.learners._sklearn import EstimatorSet, Fitted, Wrapper, fit_weighted, seeded


@dataclass(frozen=True, eq=False)
class Regression(Fitted):
    """A fitted regressor."""

    estimator: Any

    def evaluate(self, X: Any) -> Array:
        """Return its predictions as a matrix."""
        return np.asarray(self.estimator.predict(X), float).reshape(X.shape[0], -1)


class RegressorSet(EstimatorSet):
    """Regressors fitted to Δ by least squares (eq. projnorm of the paper)."""

    def fit(self, values: Array, rng: np.random.Generator) -> Regression:
        """Fit a fresh copy to the rows of Δ."""
        estimator = seeded(clone(self.estimator), rng)
        single = values.shape[1] == 1
        if not single and not get_tags(estimator).target_tags.multi_output:
            from sklearn.multioutput import MultiOutputRegressor  # slow to import, and seldom needed

            estimator = MultiOutputRegressor(estimator)
        return Regression(
            fit_weighted(estimator, self.inputs.X, values.ravel() if single else values, self.space)
        )


@dataclass(frozen=True)
class Regressor(Wrapper):
    """Any scikit-learn regressor; with several outputs one that predicts them all, else one per output.

    Parameters
    ----------
    estimator : scikit-learn estimator
        It is copied and fitted in every round.

    """

    kind = RegressorSet
