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
    learner = resolve("learner", spec, available("convexboost.learners"))
    # Estimators of other libraries need not have scikit-learn's base class.
    if hasattr(learner, "fit") and hasattr(learner, "predict"):
        if is_classifier(learner):
            return Classifier(learner)
        if is_regressor(learner):
            return Regressor(learner)
    if not isinstance(learner, Learner):
        raise ValueError(f"`learner` must be a name, a learner or a scikit-learn estimator, got {spec!r}")
    return learner
