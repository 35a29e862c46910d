"""Rows that validate: some held out, or folds of the training rows whose curves choose the number of rounds.

Every distinct input falls into one fold, which depends on its content: weight 2 is the row twice, copies of a
row do not leak from training into validation, and neither the order of the rows nor a seed matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from convexboost.core.space import Array
from convexboost.core.tolerances import as_good_as
from convexboost.kernels.hashing import fingerprints, hash_entries

Folds = NDArray[np.int64]

N_FOLDS = 3
#: With fewer distinct inputs, or groups, validation is too noisy.
MIN_INPUTS, MIN_GROUPS = 60, 20
#: From these numbers on one fold is enough.
MANY_INPUTS, MANY_GROUPS = 10_000, 1000
#: Where more of the weight than this lies on inputs that occur with different targets, new rows will have
#: inputs that were trained on too, and folds that keep equal inputs together measure something else.
MAX_REPEATED = 0.5
#: The log loss is lowest after fewer rounds than the error rate: a few overconfident rows cost much.
LONGER_FOR_CLASSES = 2
#: Differences this small against the whole gain are rounding.
TIE = 1e-9


def folds_of_rows(X: Any, y: Any, weight: Array | None, is_classes: bool) -> Folds | None:
    """Return the fold of each row, −1 for rows that are always trained on; None where folds say nothing.

    Classes are spread evenly, and one that would be missing in a training part is always trained on.
    """
    found, first, unit = np.unique(fingerprints(X), return_index=True, return_inverse=True)
    targets = y if is_classes else fingerprints(y)
    repeated = np.bincount(unit, targets != targets[first][unit])[unit] > 0
    if len(found) < MIN_INPUTS or np.average(repeated, weights=weight) > MAX_REPEATED:
        return None
    if not is_classes:
        return _deal(np.zeros(len(found), np.int64), MANY_INPUTS)[unit]
    stratum = np.full(len(found), np.iinfo(np.int64).max)
    np.minimum.at(stratum, unit, y)
    fold = _deal(stratum, MANY_INPUTS)[unit]
    n_folds, n_classes = int(fold.max()) + 1, int(y.max()) + 1
    low, high = np.full(n_classes, n_folds), np.full(n_classes, -1)
    np.minimum.at(low, y, fold)
    np.maximum.at(high, y, fold)
    fold[(low == high)[y]] = -1
    return fold if len(np.unique(fold[fold >= 0])) == n_folds else None


def folds_of_groups(X: Any, groups: Any, counts: NDArray[np.bool_]) -> Folds | None:
    """Return the fold of each row, the same for all rows of a group; None where folds say nothing.

    `groups` are numbered; `counts` says which have something to validate with, and these are spread evenly.
    """
    row, n_groups = fingerprints(X), int(groups.max()) + 1
    _, distinct = np.unique(row + hash_entries(groups + 1.0, np.array([X.shape[1]])), return_index=True)
    content = np.zeros(n_groups, np.uint64)
    np.add.at(content, groups[distinct], row[distinct])  # distinct rows: one of weight 2 is the row twice
    found, unit = np.unique(content, return_inverse=True)
    useful = np.bincount(unit, counts, len(found)) > 0
    if np.count_nonzero(useful) < MIN_GROUPS:
        return None
    return _deal(useful.astype(np.int64), MANY_GROUPS)[unit][groups]


def _deal(stratum: NDArray[np.int64], many: int) -> Folds:
    """Deal sorted fingerprints to the folds in turn, stratum after stratum."""
    fold = np.empty(len(stratum), np.int64)
    fold[np.argsort(stratum, kind="stable")] = np.arange(len(stratum)) % N_FOLDS
    return fold if len(stratum) < many else np.where(fold == 0, 0, -1)


def held_out_rows(n_rows: int, fraction: float, classes: Any, rng: Any) -> tuple[Any, Any]:
    """Return the rows to keep and to hold out, stratified for classes where there are enough of each."""
    n_held = int(np.ceil(fraction * n_rows))
    if n_held >= n_rows:
        raise ValueError(
            f"`early_stopping` holds out {n_held} of n_samples={n_rows} rows and leaves none; "
            "give `X_val` and `y_val` instead"
        )
    stratify = None
    if classes is not None:
        counts = np.bincount(classes)
        counts = counts[counts > 0]
        stratify = classes if counts.min() >= 2 and min(n_held, n_rows - n_held) >= len(counts) else None
    kept, held = train_test_split(np.arange(n_rows), test_size=n_held, random_state=rng, stratify=stratify)
    return kept, held


def held_out_groups(numbers: Any, fraction: float, rng: Any) -> tuple[Any, Any]:
    """Return masks of the rows to keep and to hold out: whole groups."""
    n_groups = int(numbers.max()) + 1
    n_held = int(np.ceil(fraction * n_groups))
    if n_held >= n_groups:
        raise ValueError(
            f"`early_stopping` holds out {n_held} of {n_groups} groups and leaves none; "
            "give `X_val` and `y_val` instead"
        )
    held = np.isin(numbers, rng.permutation(n_groups)[:n_held])
    return ~held, held


def mean_curve(curves: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return the mean of validation curves; one that ended early stays where it ended."""
    length = max(map(len, curves))
    padded = [np.append(curve, np.full(length - len(curve), curve[-1])) for curve in curves]
    return np.average(np.where(np.isnan(padded), np.inf, padded), axis=0, weights=weights)


def best_round(curve: Array) -> int:
    """Return the first round that is as good as any, and at least 1."""
    best, first = float(curve.min()), float(curve[0])
    gain = first - best
    # 1e-12 of the value is rounding, 1e-9 of the gain a plateau
    worst = max(as_good_as(best, first), best + TIE * (gain if np.isfinite(gain) else 0.0))
    return max(1, int(np.argmax(curve <= worst)))
