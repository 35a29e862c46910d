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
    """

    name: ClassVar[str] = "class_stump"
    kind: ClassVar[int] = CLASS
