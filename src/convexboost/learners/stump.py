"""Stumps with vector leaves."""

from dataclasses import dataclass
from typing import ClassVar

from convexboost.kernels.stumps import VECTOR
from convexboost.learners._stump_learner import StumpLearner


@dataclass(frozen=True)
class Stump(StumpLearner):
    """One split of one feature, a free vector in each leaf.

    Missing values have a leaf of their own.  A categorical feature is split into one category against
    the rest, or into a prefix of its categories sorted by mean gradient.  The best of all stumps is found
    exactly, from histograms with at most `max_bins` bins (weighted quantiles).

    Parameters
    ----------
    max_bins : int, default=255
        Number of bins of a column at most, without the one for missing values; 255 is the most.
    max_table_mb : float, default=512
        Memory in MiB for the table of bin pairs.  A larger table is not kept: training is then slower, and
        the model is the same.

    """

    name: ClassVar[str] = "stump"
    kind: ClassVar[int] = VECTOR
