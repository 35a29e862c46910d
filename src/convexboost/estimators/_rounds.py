"""How many rounds: folds inside the training rows, and what their validation curves say.

Every distinct input falls into one fold, which its content decides: weight 2 is the row twice, copies of a
row do not leak from training into validation, and neither the order of the rows nor a seed matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.space import Array
from convexboost.core.tolerances import as_good_as
from convexboost.kernels.hashing import fingerprints, hash_entries

Folds = NDArray[np.int64]

#: Rounds unless a number is asked for: always, and at most where validation finds the number.
ROUNDS, MAX_ROUNDS = 500, 1000
N_FOLDS = 3
#: Fewer distinct inputs, or groups, than these say nothing.
MIN_INPUTS, MIN_GROUPS = 60, 20
#: With so many, one fold says enough.
MANY_INPUTS, MANY_GROUPS = 10_000, 1000
#: Where more of the weight than this lies on inputs that were seen with different targets, new rows will have
#: inputs that were seen too, and folds that part the inputs ask the wrong question.
MAX_REPEATED = 0.5
#: Probabilities are at their best after fewer rounds than the classes: a few that are too sure cost much.
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
