"""Categories as numbers: how the loss falls, on average, in the rows of a level.

Cuts between many levels fit noise.  A number for each level, the mean of the first gradient over its rows, is
cut like any other number.  A training row must not see its own target, so the rows are dealt into parts, and
each gets the mean of the other parts.  The part depends on the content of the row, never on its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.communicator import distinct
from convexboost.core.levels import places
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief
from convexboost.kernels.hashing import fingerprints, fingerprints_of_groups, scramble
from convexboost.learners._bins import Codes, Column, dense_column
from convexboost.learners._nodes import Levels

#: Columns with more levels are replaced by statistics; cuts between few levels do not fit noise.
MOST_LEVELS = 9
#: Rows of the mean that are added to each level: rare levels are close to the mean of all rows.
PRIOR_ROWS = 10.0
#: Parts that the training rows are dealt into.
N_PARTS = 5
#: Statistics of a column at most, where a loss has several outputs.
MOST_DIRECTIONS = 3
#: A direction counts if the levels differ in it by this share of the first one at least.
LEAST_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class LevelStatistic:
    """A number for each level of a categorical column, cut into bins.

    Codes 0 … n_bins − 1 are numbers, n_bins is "missing".  A level that was not seen in training has the
    number 0, the mean of all rows; so has a training row whose level occurs in no other part.
    """

    source: int  #: the column of X
    levels: Array  #: sorted
    values: Array  #: the number of each level
    cuts: Array  #: between the bins

    __repr__ = brief

    @property
    def n_bins(self) -> int:
        """Return the number of bins, without the missing one."""
        return len(self.cuts) + 1

    @cached_property
    def _codes(self) -> Codes:
        """Return the bin of each level, then that of a level that was not seen, then the missing one."""
        return np.append(np.searchsorted(self.cuts, np.append(self.values, 0.0)), self.n_bins).astype(
            np.uint8
        )

    def levels_in_bins(self) -> Levels:
        """Return the levels of the column and the bins of their numbers."""
        *bins, unseen, missing = self._codes
        return Levels(self.levels, np.array(bins, np.uint8), int(unseen), int(missing))

    def encode(self, values: Array) -> Codes:
        """Return the bin of each value of the column."""
        return self._codes[places(self.levels, values) + np.isnan(values)]


@dataclass(frozen=True)
class _Sums:
    """Sums over the rows of each level and part, in rows."""

    gradients: Array  #: (n_levels, N_PARTS, n_outputs)
    rows: Array  #: (n_levels, N_PARTS)

    @classmethod
    def of(cls, cell: NDArray[np.int64], n_levels: int, G: Array, space: FunctionSpace) -> _Sums:
        """Add up the rows of cells level · N_PARTS + part; those after the last level are left out."""
        n_cells = n_levels * N_PARTS
        bound = space.communicator.largest(np.abs(G).max(initial=0.0))
        found = space.added([space.exact_sums(np.minimum(cell, n_cells), G, n_cells + 1, bound)])
        gradients = found.values()[:-1].reshape(n_levels, N_PARTS, -1) / space.row
        return cls(gradients, found.masses()[:-1].reshape(n_levels, N_PARTS) / space.row)

    def along(self, directions: Array) -> _Sums:
        """Return the sums of the gradients along some directions, (n_outputs, n_directions)."""
        return _Sums(self.gradients @ directions, self.rows)

    def directions(self) -> Array:
        """Return the directions in which the means of levels differ most, (n_outputs, at most a few)."""
        if self.gradients.shape[2] == 1:
            return np.ones((1, 1))
        total, rows = self.gradients.sum(axis=1), self.rows.sum(axis=1)
        total = total / max(np.abs(total).max(), 1e-300)
        size, vectors = np.linalg.eigh(total.T @ (total / (rows + PRIOR_ROWS)[:, None]))
        found = vectors[:, ::-1][:, :MOST_DIRECTIONS]
        found = found[:, size[::-1][:MOST_DIRECTIONS] >= LEAST_SHARE * size[-1]]
        largest = np.take_along_axis(found, np.abs(found).argmax(axis=0)[None, :], axis=0)
        return np.ascontiguousarray(found * np.sign(largest))

    def of_levels(self) -> Array:
        """Return the shrunken mean of each level, for new rows: (n_levels, n_directions)."""
        return self.gradients.sum(axis=1) / (self.rows.sum(axis=1) + PRIOR_ROWS)[:, None]

    def of_other_parts(self) -> Array:
        """Return the shrunken mean of each level without a part, (n_levels, N_PARTS, n_directions).

        Where a level determines the whole row, all its rows are in one part.  If that is so for most rows,
        and levels are not rare, it is the mean of all rows of the level.
        """
        others = 1.0 - np.eye(N_PARTS)
        rows = self.rows @ others
        is_supported, all_rows = rows > 0.0, self.rows.sum()
        if self.rows[is_supported].sum() < all_rows / 2 and all_rows >= PRIOR_ROWS * len(rows):
            return np.repeat(self.of_levels()[:, None, :], N_PARTS, axis=1)
        sums = np.einsum("lpk,pq->lqk", self.gradients, others)
        return np.asarray(sums / (rows + PRIOR_ROWS)[:, :, None])


def level_statistics(
    X: Any, columns: Sequence[int], targets: Array, space: FunctionSpace, max_bins: int, groups: Any = None
) -> tuple[list[LevelStatistic], list[Codes]]:
    """Return statistics of categorical columns for new rows, and their bins in the training rows.

    `targets` are gradients, (n_samples, n_outputs), at the constant where training begins.  A column whose
    levels do not differ has no statistics.  With `groups` the rows of a group are in one part: their
    gradients may add up to 0, and would then tell each other's targets.
    """
    statistics: list[LevelStatistic] = []
    codes: list[Codes] = []
    if len(columns) == 0:
        return statistics, codes
    G = targets - space.means(targets)
    content = fingerprints(X) if groups is None else fingerprints_of_groups(X, groups)[groups]
    part = (scramble(content) % np.uint64(N_PARTS)).astype(np.int64)
    for j in columns:
        levels, level = distinct(dense_column(X, j), space.communicator)  # missing values are the last level
        levels = levels[~np.isnan(levels)]
        if len(levels) < 2 or not space.communicator.any(G.any()):
            continue
        sums = _Sums.of(level * N_PARTS + part, len(levels), G, space)
        sums = sums.along(sums.directions())
        of_levels, of_cells, used = sums.of_levels(), sums.of_other_parts(), sums.rows > 0.0
        for k in range(of_levels.shape[1]):
            cuts = Column.numeric(of_cells[used, k], sums.rows[used], max_bins).cuts
            assert cuts is not None
            statistics.append(LevelStatistic(j, levels, of_levels[:, k], cuts))
            bins = np.searchsorted(cuts, of_cells[:, :, k])
            bins = np.concatenate([bins, np.full((1, N_PARTS), len(cuts) + 1)]).astype(np.uint8)
            codes.append(bins[np.minimum(level, len(levels)), part])
    return statistics, codes
