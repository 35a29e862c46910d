"""Weak learners, one per file.

An estimator takes a learner by name (``learner="tree"``) or as an object (``learner=Tree(max_leaves=15)``):

- `Tree`: trees with vector leaves, the default
- `Stump`, `SignStump`, `ClassStump`: one split of one column
- `Additive`: a function of each column, in every round
- `Network`: a small neural network
- `Regressor`, `Classifier`: any scikit-learn estimator (estimators wrap it by themselves)

A learner of your own is a subclass of `Learner`; `Defaults` declares what "auto" means with it.  `DenseSet`,
`DenseHypothesis` and `RawMapper` serve anything that can be fitted to the rows of a matrix, and
`categorical_mask` checks which columns are categorical.  `FiniteSet` is a finite set of given functions.
A file in this folder whose class has a `name` is found by listing it.
"""

from typing import TYPE_CHECKING

from convexboost.core.lazy import lazy

__all__ = [
    "Additive",
    "ClassStump",
    "Classifier",
    "Defaults",
    "DenseHypothesis",
    "DenseSet",
    "FiniteSet",
    "Learner",
    "Network",
    "RawMapper",
    "Regressor",
    "SignStump",
    "Stump",
    "Tree",
    "categorical_mask",
]

if TYPE_CHECKING:
    from convexboost.learners._bins import categorical_mask
    from convexboost.learners._dense import DenseHypothesis, DenseSet, RawMapper
    from convexboost.learners._learner import Defaults, Learner
    from convexboost.learners.additive import Additive
    from convexboost.learners.class_stump import ClassStump
    from convexboost.learners.classifier import Classifier
    from convexboost.learners.finite import FiniteSet
    from convexboost.learners.network import Network
    from convexboost.learners.regressor import Regressor
    from convexboost.learners.sign_stump import SignStump
    from convexboost.learners.stump import Stump
    from convexboost.learners.tree import Tree

__getattr__ = lazy(
    __name__,
    {
        "Defaults": "convexboost.learners._learner",
        "DenseHypothesis": "convexboost.learners._dense",
        "DenseSet": "convexboost.learners._dense",
        "FiniteSet": "convexboost.learners.finite",
        "Learner": "convexboost.learners._learner",
        "RawMapper": "convexboost.learners._dense",
        "categorical_mask": "convexboost.learners._bins",
    },
)
