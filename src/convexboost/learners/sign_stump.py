"""Stumps that answer yes or no."""

from dataclasses import dataclass
from typing import ClassVar

from convexboost.kernels.stumps import SIGN
from convexboost.learners._stump_learner import StumpLearner


@dataclass(frozen=True)
class SignStump(StumpLearner):
    """One split of one feature, +1 or −1 per leaf: AdaBoost's weak learner (Theorem 1).

    With several outputs all of them share the split and the signs: h(x) = ±u for one vector u.

    Parameters
    ----------
    max_bins : int, default=255
        Number of bins of a column at most, without the one for missing values; 255 is the most.
    max_table_mb : float, default=512
        Memory in MiB for the table of bin pairs.  A larger table is not kept: training is then slower, and
        the model is the same.

    """

    name: ClassVar[str] = "sign_stump"
    kind: ClassVar[int] = SIGN
