"""Boosting for any convex loss: smooth or not, pointwise or coupling samples.

- Estimators as in scikit-learn: `ConvexBoostClassifier`, `ConvexBoostRegressor`, `ConvexBoostRanker`.
- Losses are in `convexboost.losses`, weak learners in `convexboost.learners`, both as names or as objects:
  ``ConvexBoostRegressor(loss=Quantile(0.9), learner=Tree(max_leaves=15))``.  `check_loss` tries out a loss of
  your own.
- Without scikit-learn: `boost` trains an objective on a set of hypotheses in a `FunctionSpace`; the result
  has an `AdditiveModel`.  `Training` does it round by round, with states to save and restore.  Both take
  `Options`.  Algorithms and step rules are in `convexboost.boosting`.  `certify` bounds the distance to the
  optimum.
- What may stop a run or show how far it is: `convexboost.callbacks`.
- Model files: `save` of an estimator and `load`, which raises `ModelFormatError` (docs/model-file.md).
- Pictures of a run: `ConvergenceDisplay`, `EdgeDisplay`, `CertificateDisplay`; of a model:
  `ImportanceDisplay`, `ContributionDisplay`, `ShapeFunctionDisplay`.
"""

from typing import TYPE_CHECKING

from convexboost.core.lazy import lazy

__version__ = "0.2.0"

__all__ = [
    "AdditiveModel",
    "CertificateDisplay",
    "ContributionDisplay",
    "ConvergenceDisplay",
    "ConvexBoostClassifier",
    "ConvexBoostRanker",
    "ConvexBoostRegressor",
    "EdgeDisplay",
    "FunctionSpace",
    "ImportanceDisplay",
    "ModelFormatError",
    "Options",
    "ShapeFunctionDisplay",
    "Training",
    "boost",
    "certify",
    "check_loss",
    "load",
]

if TYPE_CHECKING:
    from convexboost.boosting.options import Options
    from convexboost.boosting.training import Training, boost
    from convexboost.checks import check_loss
    from convexboost.core.model import AdditiveModel
    from convexboost.core.space import FunctionSpace
    from convexboost.estimators import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
    from convexboost.estimators._saved import load
    from convexboost.inspection.certify import certify
    from convexboost.inspection.displays import CertificateDisplay, ConvergenceDisplay, EdgeDisplay
    from convexboost.inspection.model_displays import (
        ContributionDisplay,
        ImportanceDisplay,
        ShapeFunctionDisplay,
    )
    from convexboost.persistence import ModelFormatError

__getattr__, __dir__ = lazy(
    __name__,
    {
        "convexboost.boosting.options": ["Options"],
        "convexboost.boosting.training": ["Training", "boost"],
        "convexboost.checks": ["check_loss"],
        "convexboost.core.model": ["AdditiveModel"],
        "convexboost.core.space": ["FunctionSpace"],
        "convexboost.estimators": ["ConvexBoostClassifier", "ConvexBoostRanker", "ConvexBoostRegressor"],
        "convexboost.estimators._saved": ["load"],
        "convexboost.inspection.certify": ["certify"],
        "convexboost.inspection.displays": ["CertificateDisplay", "ConvergenceDisplay", "EdgeDisplay"],
        "convexboost.persistence": ["ModelFormatError"],
        "convexboost.inspection.model_displays": [
            "ContributionDisplay",
            "ImportanceDisplay",
            "ShapeFunctionDisplay",
        ],
    },
)
