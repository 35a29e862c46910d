"""What the two wrappers of scikit-learn estimators share."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from convexboost.core.plain import Plain
from convexboost.core.space import FunctionSpace
from convexboost.learners._dense import DenseHypothesis, DenseSet
from convexboost.learners._learner import MORE_LEVELS, Learner


class Fitted(DenseHypothesis):
    """A scikit-learn estimator that was fitted."""

    estimator: Any

    def key(self) -> Hashable | None:
        """Return the splits of a single tree."""
        tree = getattr(self.estimator, "tree_", None)
        return None if tree is None else (tree.feature.tobytes(), tree.threshold.tobytes())

    @classmethod
    def to_plain(cls, hypotheses: Sequence[Self]) -> Plain:
        """Refuse: only scikit-learn knows what its estimators are made of."""
        raise ValueError(
            "a model of scikit-learn estimators cannot be written as plain arrays: use skops.io.dump for the "
            "fitted estimator, or a learner such as 'tree'"
        )


class EstimatorSet(DenseSet):
    """Copies of a scikit-learn estimator that are fitted to Δ."""

    def __init__(self, estimator: Any, X: Any, space: FunctionSpace) -> None:
        super().__init__(X, space)
        self.estimator = estimator


@dataclass(frozen=True)
class Wrapper(Learner):
    """A scikit-learn estimator as weak learner."""

    estimator: Any

    #: What the estimator becomes when it meets inputs.
    kind: ClassVar[type[EstimatorSet]]
    is_slow = True

    @property
    def allows_missing(self) -> bool:  # type: ignore[override]
        """Return whether the estimator says that it allows NaN."""
        return bool(get_tags(self.estimator).input_tags.allow_nan)

    @property
    def allows_sparse(self) -> bool:  # type: ignore[override]
        """Return whether the estimator says that it takes sparse matrices."""
        return bool(get_tags(self.estimator).input_tags.sparse)

    def stronger(self) -> Any:
        """Return the estimator with deeper trees if it has a `max_depth`, else "tree"."""
        depth = self.estimator.get_params(deep=False).get("max_depth")
        if depth is None:
            return super().stronger()
        return copy.deepcopy(self.estimator).set_params(max_depth=int(depth) + MORE_LEVELS)

    def bind(
        self,
        X: Any,
        space: FunctionSpace,
        categorical: Any = None,
        n_threads: int = 1,
        *,
        mapper: Any = None,
        names: Any = None,
        groups: Any = None,
        targets: Any = None,
    ) -> EstimatorSet:
        """Keep the training inputs as they are."""
        return self.kind(self.estimator, X, space)


def seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """Give every unset `random_state` a seed from `rng`, so that a run can be repeated."""
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if (name == "random_state" or name.endswith("__random_state")) and value is None:
            estimator.set_params(**{name: int(rng.integers(2**31))})
    return estimator


def fit_weighted(estimator: Any, X: Any, y: Any, space: FunctionSpace) -> Any:
    """Fit with the weights of the space; an estimator that takes none must not need any."""
    if has_fit_parameter(estimator, "sample_weight"):
        return estimator.fit(X, y, sample_weight=space.weight * space.total)
    if np.ptp(space.weight) > 1e-12 * space.weight.max():
        raise ValueError(
            f"`learner` {type(estimator).__name__} takes no `sample_weight` in fit, but the rows are weighted"
        )
    return estimator.fit(X, y)
