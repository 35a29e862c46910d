"""Rows that validate: some held out, or folds of the training rows, one for each member of an ensemble.

The fold of a row depends on its inputs: the order of the rows does not matter, and no seed is drawn.  Rows
with the same inputs are dealt to the folds in turn, like independent rows, and a row of weight w like w
copies.  All that is needed of the other rows are counts: of different rows, of copies, and of classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.communicator import ALONE, Communicator, distinct
from convexboost.core.space import Array, FunctionSpace, as_columns
from convexboost.kernels.hashing import Fingerprints, fingerprints, fingerprints_of_groups, scramble

N_FOLDS = 5
#: With fewer different rows, or groups, validation is too noisy.
MIN_INPUTS, MIN_GROUPS = 30, 20
#: Weights without a common unit are dealt in this part of the mean weight.
FINE = 2**20


def folds_of_rows(
    X: Any, y: Any, weight: Array | None, is_classes: bool, communicator: Communicator = ALONE
) -> Array | None:
    """Return the share of each row in each fold, (n_folds, n_samples); None where folds say nothing.

    A column adds up to 1, but to 0 for rows that are always trained on: those of a class that would be
    missing in a training part.
    """
    targets = as_columns(y).astype(float)
    share, n_different = deal(fingerprints(X), targets, weight, communicator)
    if is_classes:
        n_classes = int(communicator.largest(y.max(initial=-1))) + 1
        held = np.array([np.bincount(y[part > 0.0], minlength=n_classes) for part in share])
        in_one_fold = np.count_nonzero(communicator.add(held), axis=0) <= 1
        share[:, in_one_fold[y]] = 0.0
    return share if n_different >= MIN_INPUTS and _all_used(share, communicator) else None


def folds_of_groups(
    X: Any, groups: Any, counts: NDArray[np.bool_], communicator: Communicator = ALONE
) -> Array | None:
    """Return the share of each row in each fold, the same within a group; None where folds say nothing.

    `groups` are numbered; `counts` says which have something to validate with.
    """
    # Copies of a group stay together.
    found, copy_of = distinct(fingerprints_of_groups(X, groups), communicator)
    share = deal(found)[0][:, copy_of]
    share[:, ~counts] = 0.0
    that_count = communicator.add(np.bincount(copy_of[counts], minlength=len(found)))
    enough = np.count_nonzero(that_count) >= MIN_GROUPS and _all_used(share, communicator)
    return share[:, groups] if enough else None


def _all_used(share: Array, communicator: Communicator) -> bool:
    """Return whether each fold holds out some row."""
    used: NDArray[np.int64] = np.any(share, axis=1).astype(np.int64)
    return bool(communicator.add(used).all())


def deal(
    inputs: Fingerprints,
    targets: Array | None = None,
    weight: Array | None = None,
    communicator: Communicator = ALONE,
) -> tuple[Array, int]:
    """Deal rows to the folds: return their shares, (n_folds, n_samples), and how many rows are different.

    Rows with the same inputs are laid side by side, sorted by their targets, and cut into parts of about the
    mean weight of different rows (1 where few are repeated); the parts go to the folds in turn.  Where all
    rows are repeated equally often, or weights are large throughout, each row is therefore in one fold.
    """
    n = len(inputs)
    amount = _amounts(n, weight, communicator)
    targets = np.empty((n, 0)) if targets is None else targets
    if communicator.size == 1:
        return _deal(inputs, targets, amount, communicator)
    # Rows with the same inputs meet on one rank, which sends their shares back.
    owner = scramble(inputs + np.uint64(1)) % np.uint64(communicator.size)
    sent = [np.flatnonzero(owner == rank) for rank in range(communicator.size)]
    arrived = communicator.exchange([(inputs[rows], targets[rows], amount[rows]) for rows in sent])
    met = [np.concatenate(part) for part in zip(*arrived, strict=True)]
    share, n_different = _deal(met[0], met[1], met[2], communicator)
    ends = np.cumsum([len(part[0]) for part in arrived])
    back, out = communicator.exchange(np.split(share, ends[:-1], axis=1)), np.empty((N_FOLDS, n))
    for rows, part in zip(sent, back, strict=True):
        out[:, rows] = part
    return out, n_different


def _deal(
    inputs: Fingerprints, targets: Array, amount: NDArray[np.int64], communicator: Communicator
) -> tuple[Array, int]:
    """Do what `deal` does, for rows whose copies are all here."""
    n = len(inputs)
    order = np.lexsort((amount, *targets.T, inputs))
    is_first, is_new = np.ones((2, n), bool)
    is_first[1:] = inputs[order][1:] != inputs[order][:-1]  # of its inputs
    is_new[1:] = (targets[order][1:] != targets[order][:-1]).any(axis=1) | is_first[1:]
    group = np.cumsum(is_first) - 1
    sum_, n_different = map(int, communicator.add(np.array([amount.sum(), np.count_nonzero(is_new)])))
    ends = np.cumsum(amount[order])
    begins = ends - amount[order]
    before = begins[is_first]  # what comes before each group
    total = np.diff(np.append(before, ends[-1:]))
    unit = max(int(sum_ / n_different + 0.5), 1)
    n_parts = np.maximum(total // unit, 1)
    begins, ends = begins - before[group], ends - before[group]
    first, last = (np.minimum(at // unit, n_parts[group] - 1) for at in (begins, ends - 1))
    # A row may lie in several parts: one entry for each.
    n_entries = last - first + 1
    entry = np.repeat(np.arange(n), n_entries)
    part = first[entry] + np.arange(len(entry)) - (np.cumsum(n_entries) - n_entries)[entry]
    part_end = np.where(part == n_parts[group[entry]] - 1, total[group[entry]], (part + 1) * unit)
    inside = np.minimum(ends[entry], part_end) - np.maximum(begins[entry], part * unit)
    turn = (scramble(inputs[order][entry]) >> np.uint64(33)).astype(np.int64)
    share = np.zeros((N_FOLDS, n))
    np.add.at(share, ((turn + part) % N_FOLDS, order[entry]), inside / amount[order][entry])
    return share, n_different


def _amounts(n: int, weight: Array | None, communicator: Communicator) -> NDArray[np.int64]:
    """Return the weights as whole numbers."""
    space = FunctionSpace.of(n, weight, communicator=communicator)
    if space.counts is not None:
        return space.counts[0].astype(np.int64)
    return np.maximum(np.rint(space.weight * space.n_points * FINE), 1.0).astype(np.int64)


def held_out_rows(n_rows: int, fraction: float, classes: Any, rng: Any) -> tuple[Any, Any]:
    """Return the rows to keep and to hold out, stratified for classes where there are enough of each."""
    from sklearn.model_selection import train_test_split  # slow to import, and seldom needed

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
