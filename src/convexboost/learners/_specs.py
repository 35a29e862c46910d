"""From what a user gives as `learner` to a learner."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier, is_regressor

from convexboost.learners._learner import Learner
from convexboost.learners.classifier import Classifier
from convexboost.learners.regressor import Regressor
from convexboost.registry import available, resolve


def as_learner(spec: Any) -> Learner:
    """Return the learner that a name, a learner, or a scikit-learn regressor or classifier stands for."""
    # Estimators of other libraries need not have scikit-learn's base class.
    if hasattr(spec, "fit") and hasattr(spec, "predict"):
        if is_classifier(spec):
            return Classifier(spec)
        if is_regressor(spec):
            return Regressor(spec)
    learner = resolve("learner", spec, available("convexboost.learners"))
    if not isinstance(learner, Learner):
        raise ValueError(f"`learner` must be a name, a learner or a scikit-learn estimator, got {spec!r}")
    return learner
