"""Boosting for any convex loss: smooth or not, pointwise or coupling samples.

Estimators: `ConvexBoostClassifier`, `ConvexBoostRegressor`, `ConvexBoostRanker`; they boost trees unless
another `learner` is named.  Without scikit-learn: `boost`.  To try out a loss of your own: `check_loss`.
Pictures: `ConvergenceDisplay`, `EdgeDisplay`, `CertificateDisplay`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

__all__ = [
    "CertificateDisplay",
    "ConvergenceDisplay",
    "ConvexBoostClassifier",
    "ConvexBoostRanker",
    "ConvexBoostRegressor",
    "EdgeDisplay",
    "FunctionSpace",
    "boost",
    "check_loss",
]

_HOMES = {
    "CertificateDisplay": "convexboost.inspection.displays",
    "ConvergenceDisplay": "convexboost.inspection.displays",
    "EdgeDisplay": "convexboost.inspection.displays",
    "ConvexBoostClassifier": "convexboost.estimators",
    "ConvexBoostRanker": "convexboost.estimators",
    "ConvexBoostRegressor": "convexboost.estimators",
    "FunctionSpace": "convexboost.core.space",
    "boost": "convexboost.boosting.training",
    "check_loss": "convexboost.checks",
}

if TYPE_CHECKING:
    from convexboost.boosting.training import boost
    from convexboost.checks import check_loss
    from convexboost.core.space import FunctionSpace
    from convexboost.estimators import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
    from convexboost.inspection.displays import CertificateDisplay, ConvergenceDisplay, EdgeDisplay


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'convexboost' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
