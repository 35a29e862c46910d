"""What the two wrappers of scikit-learn estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from convexboost.core.space import FunctionSpace


def seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """Give every unset `random_state` a seed from `rng`, so that a run can be repeated."""
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if (name == "random_state" or name.endswith("__random_state")) and value is None:
            estimator.set_params(**{name: int(rng.integers(2**31))})
    return estimator


def fit_weighted(estimator: Any, X: Any, y: Any, space: FunctionSpace) -> Any:
    """Fit with the weights of the space; an estimator that takes none must not need any."""
    if has_fit_parameter(estimator, "sample_weight"):
        return estimator.fit(X, y, sample_weight=space.weight * space.total)
    if np.ptp(space.weight) > 1e-12 * space.weight.max():
        raise ValueError(
            f"`learner` {type(estimator).__name__} takes no `sample_weight` in fit, but the rows are weighted"
        )
    return estimator.fit(X, y)
