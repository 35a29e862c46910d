"""Weak learners, one per file.

An estimator takes a learner by name (``learner="tree"``) or as an object (``learner=Tree(max_leaves=15)``):

- `Tree`: trees with vector leaves, the default
- `Stump`, `SignStump`, `ClassStump`: one split of one column
- `Additive`: a function of each column, in every round
- `Network`: a small neural network
- `Regressor`, `Classifier`: any scikit-learn estimator (estimators wrap it by themselves)

A learner of your own is a subclass of `Learner`; `Defaults` declares what "auto" means with it:

- It binds itself to inputs and becomes a `HypothesisSet`, which projects a `Target`, the sum of a `Gradient`
  and what earlier projections left over.  The projection is a `Direction`: hypotheses with weights.
- A `Mapper` turns a user's X into `PreparedInputs`; a `Hypothesis` is a function of these.  Both can be
  written as `Plain` data.  A `Position` is the sum of all moves, for certificates.
- `DenseSet`, `DenseHypothesis` and `RawMapper` implement most of this for anything that can be fitted to the
  rows of a matrix; `categorical_mask` checks which columns are categorical.
- `FiniteSet` is a finite set of given functions.

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
    "Direction",
    "FiniteSet",
    "Gradient",
    "Hypothesis",
    "HypothesisSet",
    "Learner",
    "Mapper",
    "Network",
    "Plain",
    "Position",
    "PreparedInputs",
    "RawMapper",
    "Regressor",
    "SignStump",
    "Stump",
    "Target",
    "Tree",
    "categorical_mask",
]

if TYPE_CHECKING:
    from convexboost.core.gradients import Gradient
    from convexboost.core.hypotheses import Direction, Hypothesis
    from convexboost.core.plain import Plain
    from convexboost.core.protocols import HypothesisSet, Mapper, Position, PreparedInputs, Target
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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "convexboost.core.gradients": ["Gradient"],
        "convexboost.core.hypotheses": ["Direction", "Hypothesis"],
        "convexboost.core.plain": ["Plain"],
        "convexboost.core.protocols": ["HypothesisSet", "Mapper", "Position", "PreparedInputs", "Target"],
        "convexboost.learners._bins": ["categorical_mask"],
        "convexboost.learners._dense": ["DenseHypothesis", "DenseSet", "RawMapper"],
        "convexboost.learners._learner": ["Defaults", "Learner"],
        "convexboost.learners.additive": ["Additive"],
        "convexboost.learners.class_stump": ["ClassStump"],
        "convexboost.learners.classifier": ["Classifier"],
        "convexboost.learners.finite": ["FiniteSet"],
        "convexboost.learners.network": ["Network"],
        "convexboost.learners.regressor": ["Regressor"],
        "convexboost.learners.sign_stump": ["SignStump"],
        "convexboost.learners.stump": ["Stump"],
        "convexboost.learners.tree": ["Tree"],
    },
)
