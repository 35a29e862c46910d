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
    """

    name: ClassVar[str] = "stump"
    kind: ClassVar[int] = VECTOR
