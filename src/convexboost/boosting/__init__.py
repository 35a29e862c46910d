"""Training without scikit-learn: algorithms, steps and the driver.

- `boost` trains an objective on a set of hypotheses and returns a `Result`, with one `Record` per round, a
  `History` of them as columns and a `Stop` that says why training ended.  `Training` does the same round by
  round.  Both take `Options`.
- Algorithms of the paper: `Naive`, `Repeated`, `Residual`; variants of the last: `DualAveraging`,
  `ErrorFeedback`.  An algorithm of your own is a subclass of `Algorithm`: it turns a `State` into a `Round`.
- Step rules: `Constant`, `InverseSqrt`, `InverseTime`, `Polyak`, `AdaNorm`, `LineSearch`, `Refit`, `Auto`.
  A rule of your own is a subclass of `Step`: it returns a `Move`.

Estimators and `Options` take algorithms and steps by name (``step="polyak"``) or as objects
(``step=Polyak(target=0.3)``).
"""

from typing import TYPE_CHECKING

from convexboost.core.lazy import lazy

__all__ = [
    "AdaNorm",
    "Algorithm",
    "Auto",
    "Constant",
    "DualAveraging",
    "ErrorFeedback",
    "History",
    "InverseSqrt",
    "InverseTime",
    "LineSearch",
    "Move",
    "Naive",
    "Options",
    "Polyak",
    "Record",
    "Refit",
    "Repeated",
    "Residual",
    "Result",
    "Round",
    "State",
    "Step",
    "Stop",
    "Training",
    "boost",
]

if TYPE_CHECKING:
    from convexboost.boosting.algorithms import Algorithm, Naive, Repeated, Residual, Round, State
    from convexboost.boosting.options import Options
    from convexboost.boosting.steps import (
        AdaNorm,
        Auto,
        Constant,
        InverseSqrt,
        InverseTime,
        LineSearch,
        Polyak,
        Refit,
        Step,
    )
    from convexboost.boosting.training import History, Record, Result, Stop, Training, boost
    from convexboost.boosting.variants import DualAveraging, ErrorFeedback
    from convexboost.core.hypotheses import Move

__getattr__, __dir__ = lazy(
    __name__,
    {
        "convexboost.boosting.algorithms": ["Algorithm", "Naive", "Repeated", "Residual", "Round", "State"],
        "convexboost.boosting.options": ["Options"],
        "convexboost.boosting.steps": [
            "AdaNorm",
            "Auto",
            "Constant",
            "InverseSqrt",
            "InverseTime",
            "LineSearch",
            "Polyak",
            "Refit",
            "Step",
        ],
        "convexboost.boosting.training": ["History", "Record", "Result", "Stop", "Training", "boost"],
        "convexboost.boosting.variants": ["DualAveraging", "ErrorFeedback"],
        "convexboost.core.hypotheses": ["Move"],
    },
)
