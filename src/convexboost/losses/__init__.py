"""Convex losses, one per file.

An estimator takes a loss by name (``loss="quantile:0.9"``) or as an object (``loss=Quantile(0.9)``).  Every
loss can be imported from here.  Losses can be added, multiplied by numbers, and combined: `maximum`, `Ridge`
and the couplings `Laplacian` and `TotalVariation`.  `as_loss` turns an object with a method `evaluate`,
`total` or `value` into a `Loss`; estimators do so by themselves.

A loss of your own may also be a subclass of `RowLoss` (a mean over rows) or of `Loss`.  `bind` fixes the
targets and returns the objective: a `BoundLoss`, which is a `Pointwise` for a `RowLoss`.  `Constants` says
what is known of an objective.  Scores within the relative distance `KINK` of a kink count as lying on it.
A file in this folder whose class has a `name` is found by listing the folder.
"""

from typing import TYPE_CHECKING

from convexboost.core.lazy import lazy

__all__ = [
    "KINK",
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
    from convexboost.core.tolerances import KINK
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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "convexboost.core.protocols": ["Constants"],
        "convexboost.core.tolerances": ["KINK"],
        "convexboost.losses._calculus": ["Coupling", "Ridge", "maximum"],
        "convexboost.losses._custom": ["as_loss"],
        "convexboost.losses._loss": ["Loss", "RowLoss", "is_positive"],
        "convexboost.losses._objective": ["BoundLoss", "Pointwise"],
        "convexboost.losses.absolute": ["Absolute"],
        "convexboost.losses.cvar": ["CVaR"],
        "convexboost.losses.epsilon_insensitive": ["EpsilonInsensitive"],
        "convexboost.losses.exponential": ["Exponential"],
        "convexboost.losses.half_squared": ["HalfSquared"],
        "convexboost.losses.hinge": ["Hinge"],
        "convexboost.losses.huber": ["Huber"],
        "convexboost.losses.laplacian": ["Laplacian"],
        "convexboost.losses.logistic": ["Logistic"],
        "convexboost.losses.multiclass_hinge": ["MulticlassHinge"],
        "convexboost.losses.poisson": ["Poisson"],
        "convexboost.losses.quantile": ["Quantile"],
        "convexboost.losses.quantiles": ["Quantiles"],
        "convexboost.losses.ranking_hinge": ["RankingHinge"],
        "convexboost.losses.softmax": ["Softmax"],
        "convexboost.losses.squared_hinge": ["SquaredHinge"],
        "convexboost.losses.structured": ["Structured"],
        "convexboost.losses.total_variation": ["TotalVariation"],
        "convexboost.losses.worst_group": ["WorstGroup"],
    },
)
