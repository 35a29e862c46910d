"""Stumps that name a class."""

from dataclasses import dataclass
from typing import ClassVar

from convexboost.kernels.stumps import CLASS
from convexboost.learners._stump_learner import StumpLearner


@dataclass(frozen=True)
class ClassStump(StumpLearner):
    """One split of one feature, one class per leaf: the h' of Theorem 2.

    The output is 1 for the leaf's class and −1/(K−1) for the others, times a coefficient of either sign.
    Needs at least two outputs.

    Parameters
    ----------
    max_bins : int, default=255
        Number of bins of a column at most, without the one for missing values; 255 is the most.
    max_table_mb : float, default=512
        Memory in MiB for the table of bin pairs.  A larger table is not kept: training is then slower, and
        the model is the same.

    """

    name: ClassVar[str] = "class_stump"
    kind: ClassVar[int] = CLASS
    needs_output_per_class = True
