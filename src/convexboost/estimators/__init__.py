"""scikit-learn estimators."""

from convexboost.estimators.classifier import ConvexBoostClassifier
from convexboost.estimators.ranker import ConvexBoostRanker
from convexboost.estimators.regressor import ConvexBoostRegressor

__all__ = ["ConvexBoostClassifier", "ConvexBoostRanker", "ConvexBoostRegressor"]
