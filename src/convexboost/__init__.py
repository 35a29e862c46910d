"""Boosting for any convex loss: smooth or not, pointwise or coupling samples.

Estimators: `ConvexBoostClassifier`, `ConvexBoostRegressor`, `ConvexBoostRanker`; they boost trees unless
another `learner` is named.  Without scikit-learn: `boost`.  To try out a loss of your own: `check_objective`.
Pictures: `ConvergenceDisplay`, `EdgeDisplay`, `CertificateDisplay`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "CertificateDisplay",
    "ConvergenceDisplay",
    "ConvexBoostClassifier",
    "ConvexBoostRanker",
    "ConvexBoostRegressor",
    "EdgeDisplay",
    "FunctionSpace",
    "boost",
    "check_objective",
]

_HOMES = {
    "CertificateDisplay": "convexboost.displays",
    "ConvergenceDisplay": "convexboost.displays",
    "EdgeDisplay": "convexboost.displays",
    "ConvexBoostClassifier": "convexboost.estimators",
    "ConvexBoostRanker": "convexboost.estimators",
    "ConvexBoostRegressor": "convexboost.estimators",
    "FunctionSpace": "convexboost.core",
    "boost": "convexboost.train",
    "check_objective": "convexboost.checks",
}

if TYPE_CHECKING:
    from convexboost.checks import check_objective
    from convexboost.core import FunctionSpace
    from convexboost.displays import CertificateDisplay, ConvergenceDisplay, EdgeDisplay
    from convexboost.estimators import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
    from convexboost.train import boost


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'convexboost' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
