"""What a loader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


class Fold(NamedTuple):
    """One fold of a ranking set: row numbers."""

    train: Rows
    vali: Rows
    test: Rows


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs, targets and the split that others use."""

    name: str
    X: NDArray[Any]  #: (n_samples, n_features); categories are codes 0, 1, ...
    y: NDArray[Any]  #: class numbers 0, 1, ... (int64), or numbers and grades (float64)
    feature_names: tuple[str, ...]
    train: Rows  #: row numbers
    test: Rows
    target_names: tuple[str, ...] = ()  #: the label of each class number
    categorical: tuple[int, ...] = ()  #: the columns of X that are categories
    qid: NDArray[np.int64] | None = None  #: the query of each row; rows of a query are adjacent
    folds: tuple[Fold, ...] = ()  #: the official folds; `train` and `test` are those of the first

    def split(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return X_train, X_test, y_train, y_test, in the order of scikit-learn's `train_test_split`."""
        train, test = _compact(self.train), _compact(self.test)
        return self.X[train], self.X[test], self.y[train], self.y[test]

    def __repr__(self) -> str:
        rows, features = self.X.shape
        split = f"{len(self.train)} train, {len(self.test)} test"
        return f"Dataset({self.name!r}, {rows} rows ({split}), {features} features)"


@dataclass(frozen=True, eq=False)
class Grid:
    """A map for planning."""

    name: str
    values: NDArray[Any]  #: (height, width)
    spacing: tuple[float, float] = (1.0, 1.0)  #: size of a cell down and across, in degrees for real terrain
    symbols: tuple[str, ...] = ()  #: the symbol of each value, where values are codes


def _compact(rows: Rows) -> Rows | slice:
    """Turn adjacent rows into a slice, which takes a view where an index array would copy."""
    adjacent = len(rows) > 0 and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows)))
    return slice(int(rows[0]), int(rows[-1]) + 1) if adjacent else rows


def drawn_split(n_samples: int) -> tuple[Rows, Rows]:
    """Draw a fifth of the rows for testing: the same rows on every machine."""
    # PCG64's raw numbers never change; what a Generator makes of them may, with the version of NumPy.
    order = np.argsort(np.random.PCG64(0).random_raw(n_samples), kind="stable")
    n_test = n_samples // 5
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def leading_split(n_train: int, n_samples: int) -> tuple[Rows, Rows]:
    """Train on the first rows and test on the others."""
    return np.arange(n_train), np.arange(n_train, n_samples)


def five_folds(n_rows: list[int]) -> tuple[Fold, ...]:
    """Fold k of LETOR trains on parts k, k + 1, k + 2, validates on k + 3 and tests on k + 4, modulo 5."""
    parts = np.split(np.arange(sum(n_rows)), np.cumsum(n_rows)[:-1])
    rotations = ([parts[(k + i) % 5] for i in range(5)] for k in range(5))
    return tuple(Fold(np.concatenate(r[:3]), r[3], r[4]) for r in rotations)
