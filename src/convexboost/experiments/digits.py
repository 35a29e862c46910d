"""The three algorithms side by side on the digits that ship with scikit-learn: multiclass hinge, stumps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from convexboost.core import Array
from convexboost.estimators import ConvexBoostClassifier
from convexboost.learners._histogram import BinFunction
from convexboost.train import Record

PAPER = ("naive", "repeated", "residual")


@dataclass(frozen=True)
class Curves:
    """One algorithm's run."""

    algorithm: str
    history: dict[str, Array]
    train_error: Array  #: after each round, from round 1
    test_error: Array
    distinct_stumps: int


def compare(weak_learners: int, watch: Callable[[str, Record], Any] | None = None) -> list[Curves]:
    """Train each algorithm with the same budget of weak learners."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    curves = []
    for algorithm in PAPER:

        def callback(record: Record, algorithm: str = algorithm) -> None:
            if watch is not None:
                watch(algorithm, record)

        model = ConvexBoostClassifier(
            loss="multiclass_hinge",
            algorithm=algorithm,
            n_rounds=weak_learners,
            max_weak_learners=weak_learners,
            output="last",
            callbacks=[callback],
        ).fit(X, y)
        curves.append(
            Curves(
                algorithm,
                model.history_,
                _errors(model, X, y),
                _errors(model, X_test, y_test),
                len({_split(h) for _, h in model.model_.terms}),
            )
        )
    return curves


def _errors(model: ConvexBoostClassifier, X: Array, y: Any) -> Array:
    return np.array([np.mean(predicted != y) for predicted in model.staged_predict(X)])


def _split(h: Any) -> tuple[int, bytes]:
    assert isinstance(h, BinFunction)
    return h.feature, h.leaf_of_bin.tobytes()
