"""From splits between bins to splits between values: trees on binned columns as a table of `Nodes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from convexboost.core.nodes import Nodes
from convexboost.core.space import Array
from convexboost.core.text import brief

#: Bins of a column at most, the missing one included.
N_BITS = 256


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a categorical column, and the bins that they are in."""

    levels: Array  #: sorted
    bins: NDArray[np.uint8]  #: of each level
    unseen: int  #: the bin of levels that training did not see
    missing: int  #: the bin of missing values

    __repr__ = brief

    def bins_of(self, levels: Array) -> NDArray[np.int64]:
        """Return the bins of levels, these among them; the others were not seen."""
        out = np.full(len(levels), self.unseen, np.int64)
        out[np.searchsorted(levels, self.levels)] = self.bins
        return out


class Binned(Protocol):
    """A column of bins: of numbers, or of categories."""

    @property
    def n_bins(self) -> int:
        """Return the number of bins, without the missing one."""

    @property
    def cuts(self) -> Array | None:
        """Return where numbers are cut."""

    def levels_in_bins(self) -> Levels | None:
        """Return the levels of categories, None for numbers."""


@dataclass(frozen=True, eq=False)
class BinTrees:
    """Trees on bins, one after the other; children follow their parent, the right one next to the left."""

    tree: NDArray[np.int32]
    feature: NDArray[np.int32]  #: the binned column of each node, −1 for a leaf
    child: NDArray[np.int32]  #: the left one, counted from the first node of all
    masks: NDArray[np.uint64]  #: the bins that go left, (n_nodes, 4)
    gain: Array  #: of each node
    leaf: NDArray[np.int32]  #: the number of each node's leaf among all, if it is one
    cover: Array  #: of each leaf
    values: Array  #: of each leaf

    __repr__ = brief

    def cover_of_nodes(self) -> Array:
        """Return the cover of each node, that of its leaves."""
        out, split = np.where(self.feature < 0, self.cover[self.leaf], 0.0), self.feature >= 0
        for node in np.flatnonzero(split)[::-1]:
            out[node] = out[self.child[node]] + out[self.child[node] + 1]
        return out

    def nodes(self, columns: Sequence[Binned], sources: NDArray[np.int64]) -> Nodes:
        """Return the table; `sources` has the column of X that each binned column is made of."""
        n_nodes, split = len(self.feature), self.feature >= 0
        cut, level_set = np.full(n_nodes, np.nan), np.full(n_nodes, -1, np.int32)
        missing_left, unseen_left = np.zeros((2, n_nodes), bool)
        sets: list[Array] = []
        levels = _levels_of_sources(columns, sources)
        for j in np.unique(self.feature[split]):
            column, found = columns[j], np.flatnonzero(self.feature == j)
            masks, which = np.unique(self.masks[found], axis=0, return_inverse=True)
            goes_left, which = bits(masks), which.ravel()
            known = column.levels_in_bins()
            if known is None:
                assert column.cuts is not None
                cuts = np.concatenate([[-np.inf], column.cuts, [np.inf]])
                cut[found] = cuts[goes_left[:, : column.n_bins].sum(axis=1)][which]
                missing_left[found] = unseen_left[found] = goes_left[which, column.n_bins]
            else:
                all_levels = levels[int(sources[j])]
                level_set[found] = len(sets) + which
                sets.extend(all_levels[side] for side in goes_left[:, known.bins_of(all_levels)])
                missing_left[found] = goes_left[which, known.missing]
                unseen_left[found] = goes_left[which, known.unseen]
        return Nodes(
            self.tree,
            np.where(split, sources[self.feature], -1).astype(np.int32),
            np.where(split, self.child, -1).astype(np.int32),
            np.where(split, self.child + 1, -1).astype(np.int32),
            cut,
            level_set,
            missing_left,
            unseen_left,
            np.where(split, self.gain, 0.0),
            self.cover_of_nodes(),
            np.where(split, -1, self.leaf).astype(np.int32),
            self.values,
            tuple(sets),
            levels,
        )


def _levels_of_sources(columns: Sequence[Binned], sources: NDArray[np.int64]) -> dict[int, Array]:
    """Return the levels of each categorical column of X.

    A statistic knows those in the rows of its member only.
    """
    found: dict[int, list[Array]] = {}
    for column, source in zip(columns, sources.tolist(), strict=True):
        known = column.levels_in_bins()
        if known is not None:
            found.setdefault(source, []).append(known.levels)
    return {source: np.unique(np.concatenate(levels)) for source, levels in found.items()}


def bits(masks: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of 256 bins go left, (n_nodes, 256)."""
    little = np.ascontiguousarray(masks.astype("<u8")).view(np.uint8)
    return np.unpackbits(little, axis=1, bitorder="little").astype(bool)


def mask_of(bins: Any) -> NDArray[np.uint64]:
    """Return the mask that sends these bins left."""
    goes_left = np.zeros(N_BITS, np.uint8)
    goes_left[bins] = 1
    return np.packbits(goes_left, bitorder="little").view("<u8").astype(np.uint64)
