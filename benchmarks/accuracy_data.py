"""The data sets of accuracy.py, what is measured on each, and the loss of every test example.

Ours is imported where it is needed: the memory of a peer is measured without it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from accuracy_models import ABSOLUTE, CLASSES, HIGH, LEVELS, LOW, QUANTILES, RANKING, SQUARED, Rows

SETS = {
    CLASSES: ("letter", "pendigits", "satimage", "connect4"),
    **dict.fromkeys(
        (ABSOLUTE, LOW, HIGH, SQUARED), ("california_housing", "bike_sharing", "abalone", "airfoil")
    ),
    RANKING: ("mq2008", "ohsumed"),
}
MEASURES = {
    CLASSES: ("error",),
    ABSOLUTE: ("absolute error",),
    LOW: ("pinball 0.1",),
    HIGH: ("pinball 0.9",),
    SQUARED: ("squared error",),
    RANKING: ("disagreement", "1 − NDCG@10"),
    QUANTILES: ("mean pinball",),
}
MAX_TUNING_ROWS = 10_000  #: of the training part, those to validate on included
HELD_SHARE = 0.25


class Parts(NamedTuple):
    """A data set, or a fold of it; `held` is the official validation part, where there is one."""

    train: Rows
    test: Rows
    held: Rows | None = None


def parts(name: str, fold: int | None, limit: int | None) -> Parts:
    """Load a data set, for --quick the first `limit` rows of each part."""
    from convexboost import datasets

    data = datasets.load(name)
    X: Any = data.X
    if data.categorical:
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        X = X.astype({f"x{j}": _categories(data.X[:, j]) for j in data.categorical})
    rows = Rows(X, data.y, data.qid)
    if fold is None:
        taken = [data.train, data.test]
    else:
        taken = [data.folds[fold].train, data.folds[fold].test, data.folds[fold].vali]
    return Parts(*(rows.take(which[:limit]) for which in taken))


def _categories(codes: np.ndarray) -> pd.CategoricalDtype:
    return pd.CategoricalDtype(range(int(codes.max()) + 1))


def tuning_parts(whole: Parts, objective: str) -> tuple[Rows, Rows]:
    """Return rows to train on and rows to validate on, from the training part alone."""
    if whole.held is not None:
        return whole.train, whole.held
    order = np.random.default_rng(0).permutation(len(whole.train.y))[:MAX_TUNING_ROWS]
    labels = whole.train.y[order] if objective == CLASSES else None
    train, held = train_test_split(order, test_size=HELD_SHARE, random_state=0, stratify=labels)
    return whole.train.take(train), whole.train.take(held)


def losses(objective: str, rows: Rows, P: np.ndarray) -> dict[str, np.ndarray]:
    """Return the loss of each example (of each query with different grades) in every measure."""
    if objective == RANKING:
        return _query_losses(rows, P)
    y, (measure,) = rows.y, MEASURES[objective]
    if objective == CLASSES:
        return {measure: (y != P).astype(float)}
    if objective == QUANTILES:
        return {measure: np.mean([_pinball(P[:, k], y, q) for k, q in enumerate(LEVELS)], axis=0)}
    if objective in (LOW, HIGH):
        return {measure: _pinball(P, y, float(objective.partition(":")[2]))}
    return {measure: np.abs(P - y) ** (2 if objective == SQUARED else 1)}


def _pinball(P: np.ndarray, y: np.ndarray, q: float) -> np.ndarray:
    return np.maximum(q * (y - P), (1 - q) * (P - y))


def _query_losses(rows: Rows, P: np.ndarray) -> dict[str, np.ndarray]:
    """Return also the pairs of each query, by which the share in the wrong order is weighted."""
    from convexboost.metrics import disagreement, ndcg

    wrong, gains, pairs = [], [], []
    for q in np.unique(rows.queries):
        which = rows.queries == q
        y, f, one = rows.y[which], P[which], np.zeros(which.sum())
        if y.min() < y.max():
            wrong.append(disagreement(y, f, one))
            gains.append(1.0 - ndcg(y, f, one))
            pairs.append(np.sum(y[:, None] > y))
    return {"disagreement": np.array(wrong), "1 − NDCG@10": np.array(gains), "pairs": np.array(pairs, float)}


def weight_of(measure: str, found: dict[str, np.ndarray]) -> np.ndarray:
    """Return what each example counts."""
    return found["pairs"] if measure == "disagreement" else np.ones(len(found[measure]))
