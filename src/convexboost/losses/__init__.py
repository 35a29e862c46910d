"""Convex losses, one per file.

An estimator takes a loss by name (``loss="quantile:0.9"``) or as an object (``loss=Quantile(0.9)``).  Every
loss can be imported from here.  Losses can be added, multiplied by numbers, and combined: `maximum`, `Ridge`
and the couplings `Laplacian` and `TotalVariation`.  `as_loss` turns an object with a method `evaluate`,
`total` or `value` into a `Loss`; estimators do so by themselves.

A loss of your own may also be a subclass of `RowLoss` (a mean over rows) or of `Loss`.  `bind` fixes the
targets and returns the objective: a `BoundLoss`, which is a `Pointwise` for a `RowLoss`.  `Constants` says
what is known of an objective.  A file in this folder whose class has a `name` is found by listing the folder.
"""

from typing import TYPE_CHECKING

from convexboost.core.lazy import lazy

__all__ = [
    "Absolute",
    "BoundLoss",
    "CVaR",
    "Constants",
    "Coupling",
    "EpsilonInsensitive",
    "Exponential",
    "HalfSquared",
    "Hinge",
    "Huber",
    "Laplacian",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Pointwise",
    "Poisson",
    "Quantile",
    "Quantiles",
    "RankingHinge",
    "Ridge",
    "RowLoss",
    "Softmax",
    "SquaredHinge",
    "Structured",
    "TotalVariation",
    "WorstGroup",
    "as_loss",
    "is_positive",
    "maximum",
]

if TYPE_CHECKING:
    from convexboost.core.protocols import Constants
    from convexboost.losses._calculus import Coupling, Ridge, maximum
    from convexboost.losses._custom import as_loss
    from convexboost.losses._loss import Loss, RowLoss, is_positive
    from convexboost.losses._objective import BoundLoss, Pointwise
    from convexboost.losses.absolute import Absolute
    from convexboost.losses.cvar import CVaR
    from convexboost.losses.epsilon_insensitive import EpsilonInsensitive
    from convexboost.losses.exponential import Exponential
    from convexboost.losses.half_squared import HalfSquared
    from convexboost.losses.hinge import Hinge
    from convexboost.losses.huber import Huber
    from convexboost.losses.laplacian import Laplacian
    from convexboost.losses.logistic import Logistic
    from convexboost.losses.multiclass_hinge import MulticlassHinge
    from convexboost.losses.poisson import Poisson
    from convexboost.losses.quantile import Quantile
    from convexboost.losses.quantiles import Quantiles
    from convexboost.losses.ranking_hinge import RankingHinge
    from convexboost.losses.softmax import Softmax
    from convexboost.losses.squared_hinge import SquaredHinge
    from convexboost.losses.structured import Structured
    from convexboost.losses.total_variation import TotalVariation
    from convexboost.losses.worst_group import WorstGroup

__getattr__ = lazy(
    __name__,
    {
        "BoundLoss": "convexboost.losses._objective",
        "Constants": "convexboost.core.protocols",
        "Coupling": "convexboost.losses._calculus",
        "Loss": "convexboost.losses._loss",
        "Pointwise": "convexboost.losses._objective",
        "Ridge": "convexboost.losses._calculus",
        "RowLoss": "convexboost.losses._loss",
        "as_loss": "convexboost.losses._custom",
        "is_positive": "convexboost.losses._loss",
        "maximum": "convexboost.losses._calculus",
    },
)
