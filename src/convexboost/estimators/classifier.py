"""ConvexBoostClassifier."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from convexboost.core.atomic import unchanged_on_error
from convexboost.core.space import Array, in_range
from convexboost.core.text import shown
from convexboost.core.tolerances import blocks
from convexboost.estimators._base import BaseConvexBoost
from convexboost.estimators._frames import is_missing


def _has_link(estimator: ConvexBoostClassifier) -> bool:
    loss = getattr(estimator, "loss_", None) or estimator._loss()
    if not loss.has_link:
        raise AttributeError(
            f"`loss` {estimator.loss!r} gives no probabilities; use loss='softmax', or calibrate"
        )
    return True


class ConvexBoostClassifier(ClassifierMixin, BaseConvexBoost):
    """Classification by boosting, for any convex loss.

    Parameters
    ----------
    loss : str or Loss, default="softmax"
        "softmax" (has `predict_proba`), "multiclass_hinge" (Crammer and Singer); for two classes also
        "logistic", "exponential", "hinge", "squared_hinge"; a Loss; or your own (docs/add-a-loss.md).
    learner : str, learner or scikit-learn estimator, default="tree"
        "tree", "stump", "class_stump", "sign_stump", "additive" (all stumps at once), "network", an object
        such as ``Tree(max_leaves=15)``, or any scikit-learn regressor or classifier.
    algorithm : str, default="residual"
        "naive", "repeated", "residual" (Algorithms 1, 2, 3), "dual_averaging", "error_feedback".
    class_weight : dict, "balanced" or None, default=None
        What the weight of each row is multiplied by, {label: weight}; 1 for labels that are not in it.
        "balanced": all classes get the same weight in total, and the rows keep theirs.

    The other parameters and the attributes are those of `ConvexBoostRegressor`, with what "auto" means for
    trees, the default learner; early_stopping="auto" finds the number of rounds for losses that give
    probabilities, not for hinges.  In addition:

    Attributes
    ----------
    classes_ : array
        The class labels, sorted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from convexboost import ConvexBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConvexBoostClassifier(loss="multiclass_hinge", n_rounds=50).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True

    """

    _task = "classification"
    _tasks = ("classification", "binary", "any")

    def __init__(
        self,
        loss: Any = "softmax",
        learner: Any = "tree",
        algorithm: Any = "residual",
        *,
        n_rounds: Any = "auto",
        max_weak_learners: int | None = None,
        step: Any = "auto",
        output: str = "best",
        residual_decay: Any = "auto",
        accuracy: float | None = None,
        l2: float = 0.0,
        envelope: Any = "auto",
        early_stopping: Any = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 50,
        certificate: bool = False,
        stop_when_gap_below: float | None = None,
        class_weight: Any = None,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        offset: Any = None,
        groups: Any = None,
        groups_val: Any = None,
    ) -> ConvexBoostClassifier:
        """Fit to class labels of any kind.

        `offset` is a fixed score per row and class; training then starts from it, not from the best constant,
        and predictions are what was learned on top of it.  `groups` is a label per row, for losses that know
        groups; `groups_val` the same for `X_val`.
        """
        with unchanged_on_error(self):
            self._fit(X, y, sample_weight, X_val, y_val, offset, groups, groups_val)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores (n_samples, n_classes); for two classes the difference, (n_samples,)."""
        return _decision(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest score."""
        winner = _winner(self._scores(X))
        return self.classes_[winner]

    @available_if(_has_link)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class."""
        check_is_fitted(self)
        return _probabilities(self.loss_.link(self._scores(X)))

    @available_if(_has_link)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the log of the probability of each class."""
        return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield the decision function after each round."""
        yield from map(_decision, self._staged_scores(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predicted classes after each round."""
        for F in self._staged_scores(X):
            yield self.classes_[_winner(F)]

    @available_if(_has_link)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Yield the class probabilities after each round."""
        for F in self._staged_scores(X):
            yield _probabilities(self.loss_.link(F))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.class_weight
        if not (given is None or isinstance(given, dict) or (isinstance(given, str) and given == "balanced")):
            raise ValueError(f"`class_weight` must be None, 'balanced' or a dict, got {given!r}")
        for label, weight in given.items() if isinstance(given, dict) else ():
            if not (isinstance(weight, Real) and 0 <= float(weight) < math.inf):
                raise ValueError(
                    f"`class_weight` must hold finite, non-negative weights, got {weight!r} for {label!r}"
                )

    def _weigh_classes(self, y: Any, weight: Any) -> Any:
        if self.class_weight is None:
            return weight
        labels, numbers = np.unique(column_or_1d(y), return_inverse=True)
        weight = np.ones(len(numbers)) if weight is None else weight
        if self.class_weight == "balanced":
            totals = np.bincount(numbers, weight)
            # A class without weight has no rows in the space.
            factors = totals.sum() / (np.count_nonzero(totals) * np.where(totals > 0.0, totals, 1.0))
        else:
            given = self.class_weight
            unknown = [label for label in given if label not in labels]
            if unknown and not all(label in given for label in labels):  # a slip; else more than needed
                raise ValueError(f"`class_weight` holds a class that `y` does not: {shown(unknown[0])}")
            factors = in_range(np.array([given.get(label, 1.0) for label in labels], float))
        weighed = weight * factors[numbers]
        if not (weighed > 0.0).any():
            raise ValueError(f"`class_weight` must leave some weight, got {self.class_weight!r}")
        return weighed

    def _check_targets(self, y: Any) -> NDArray[Any]:
        y = column_or_1d(y, warn=True)
        missing = [label for label in y if is_missing(label)] if y.dtype == object else []
        if missing:
            raise ValueError(f"`y` must not contain missing labels, got {missing[0]!r}")
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y", estimator_name=type(self).__name__)
        try:
            sorted(set(y) if y.dtype == object else ())
        except TypeError:
            kinds = sorted({type(label).__name__ for label in y})
            raise ValueError(f"`y` must hold labels of one kind, got {' and '.join(kinds)}") from None
        check_classification_targets(y)
        return y

    def _encode_targets(self, y: Any) -> tuple[NDArray[np.int32], int]:
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                "`y` must hold at least 2 classes with positive weight, got one class: "
                f"{shown(self.classes_[0])}"
            )
        loss = self._loss()
        n_classes = len(self.classes_)
        if loss.task == "binary" and n_classes > 2:
            # The second sentence is what scikit-learn's checks look for.
            raise ValueError(
                f"`loss` {self.loss!r} is for two classes, but `y` has {n_classes}: use {loss.multiclass!r}. "
                "Only binary classification is supported."
            )
        return self._class_numbers(y), n_classes

    def _n_classes(self) -> int:
        return len(self.classes_)

    def _encode_validation_targets(self, y: Any, parameter: str = "y_val") -> NDArray[np.int32]:
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            where = "`y` does not" if parameter == "y_val" else "the model does not know"
            raise ValueError(f"`{parameter}` holds a class that {where}: {shown(unknown[0])}")
        return self._class_numbers(y)

    def _class_numbers(self, y: Any) -> NDArray[np.int32]:
        out = np.empty(len(y), np.int32)
        for rows in blocks(len(y)):
            out[rows] = np.searchsorted(self.classes_, y[rows])
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):  # reported by fit
            tags.classifier_tags.multi_class = self._loss().task != "binary"
        return tags


def _decision(F: Array) -> Array:
    if F.shape[1] == 1:  # the score of a two-class loss
        return F[:, 0]
    return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F


def _winner(F: Array) -> NDArray[np.intp]:
    return (F[:, 0] > 0.0).astype(np.intp) if F.shape[1] == 1 else F.argmax(axis=1)


def _probabilities(P: Array) -> Array:
    """Return a column per class; a link may give that of the second class alone."""
    return np.column_stack([1.0 - P, P]) if P.ndim == 1 or P.shape[1] == 1 else P
