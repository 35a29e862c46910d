"""How a tree in the making is stored: its rows, columns, rules, nodes and the room for its sums.

Bin b of the j-th feature is row (j << shift) + b of a histogram; the last bin of a feature holds its missing
values.  Weights and targets are whole numbers (`target.quantise`): sums are exact, whatever the order of the
rows and the number of threads, and a difference of histograms leaves exactly 0 in an empty bin.

With one output, weight and target are one number of 64 bits, the weight in its lower half.  Weights are not
negative and their sums have 31 bits, so nothing is carried from one half to the other.  With several outputs
they are a row of numbers of 32 bits.  A split is a set of bins that go left, 256 bits, for numeric and
categorical features alike.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convexboost.core.space import MOST_COUNTS
from convexboost.kernels.vectors import FEW_WORDS, WORDS

#: Features whose codes are copied together for a small node.
CHUNK = 64
#: Where a table of bins ends: behind it are the sums of the two sides of a cut that was drawn.
SIDES = 256
#: All weights, and all weights times targets, add up to at most this: a sum has 32 bits.
LARGEST = MOST_COUNTS


class Features(NamedTuple):
    """The features that a tree may split."""

    codes: Any  #: uint8, (n_rows, n_features): their bins, row by row
    columns: Any  #: uint8, (n_all_features, n_rows): the bins of all features, column by column
    numbers: Any  #: int64: which of all features they are
    n_bins: Any  #: int64: the number of bins, the missing one included
    categorical: Any  #: bool; None where no feature is
    monotone: Any  #: int64: 1 where leaf values must rise along a feature, −1 where they must fall, else 0
    shift: Any  #: uint64: a feature has 1 << shift rows in a histogram


class Rows(NamedTuple):
    """The rows that a tree is grown on."""

    values: Any  #: weight and weight times target: int64, (n_all_rows,), or int32, (n_all_rows, width)
    order: Any  #: int32: their numbers; those of a node are order[begin:end]
    spare: Any  #: int32: as long as `order`, for the rows that go right


class Rules(NamedTuple):
    """Which splits are allowed, in the units of `Rows.values`, and who makes them.

    `seed` is None where all trees of a learner try all cuts: no code for drawn ones is compiled.
    """

    max_leaves: int
    max_depth: int
    min_weight: float  #: of a leaf; positive
    min_gain: float
    l2: float  #: added to the weight of a leaf
    category_l2: float  #: added to the weight of a category, and of a leaf that a set of categories makes
    tie: float  #: means that differ by less may be equal but for rounding
    seed: int | None  #: of the one cut that is drawn for each feature and node; −1: all cuts are tried
    few: int = 0  #: nodes of at most this many rows have no histogram: their splits are found row by row
    max_rows: float = math.inf  #: nodes with more rows are left to the caller of `grow`, who has threads


#: The columns of `Nodes.numbers`.
BEGIN, END = 0, 1  #: the rows of a node are order[begin:end]
SLOT = 2  #: the number of its histogram, −1 where it has few rows
DEPTH = 3
SPLIT = 4  #: the feature of its best split, as it is numbered in `Features`
FEATURE = 5  #: the number of the feature that it splits among all features, −1 for a leaf
CHILD = 6  #: its left child; the right one is next to it
PATH = 7  #: its path from the root, in bits: 1, then 0 for left and 1 for right; cuts are drawn by it
N_NUMBERS = 8
#: The bits of a path that are kept: the last ones.
WAY = 2**61 - 1


class Nodes(NamedTuple):
    """The nodes of a tree in the making; children come in pairs, after their parent."""

    numbers: Any  #: int64, (n_nodes, N_NUMBERS)
    gains: Any  #: float64: of their best splits
    masks: Any  #: uint64, (n_nodes, 4): a bit for each bin that goes left

    @classmethod
    def root(cls, n_rows: int, max_leaves: int) -> Nodes:
        """Return a tree that is a leaf, with room to grow."""
        n_nodes = 2 * max_leaves - 1
        numbers = np.zeros((n_nodes, N_NUMBERS), np.int64)
        numbers[0, END] = n_rows
        numbers[:, FEATURE] = numbers[:, CHILD] = -1
        numbers[0, PATH] = 1
        return cls(numbers, np.zeros(n_nodes), np.zeros((n_nodes, 4), np.uint64))


class Room(NamedTuple):
    """Where splits are searched; kept from one tree to the next.  A cell is as in `Rows.values`."""

    hists: Any  #: cells, (n_slots or 1, rows of a histogram)
    table: Any  #: cells, (SIDES + 2,): the histogram of one feature; behind it two sums of rows
    used: Any  #: int64: the bins of `table` that are not 0; the last entry is their number; None: no table
    plain: Any  #: int64: 0, 1, 2, …
    total: Any  #: float64, (width,): the sum of a node
    sums: Any  #: float64, (2, width)
    codes: Any  #: uint8, (CHUNK, n_rows): the bins of some features in a node of few rows, column by column
    values: Any  #: int32, (width + 1, n_rows): its weights and targets; last, −1 for rows to sum, else 0

    @classmethod
    def of(cls, n_slots: int, n_bins: int, n_outputs: int, few: int, has_tables: bool = True) -> Room:
        """Return room for so many histograms, and for nodes of so few rows.

        These need tables of bins unless all cuts are drawn and no feature is categorical.
        """
        width = n_columns(n_outputs)
        return cls(
            _cells(n_outputs, n_slots or 1, n_bins if n_slots else 0),
            _cells(n_outputs, SIDES + 2),
            np.zeros(257, np.int64) if has_tables else None,
            np.arange(257),
            np.empty(width),
            np.empty((2, width)),
            np.empty((CHUNK, few + CHUNK), np.uint8),
            np.empty((width + 1, few), np.int32),
        )


def n_columns(n_outputs: int) -> int:
    """Return how many numbers of 32 bits a cell has: two, or whole groups of words."""
    if n_outputs < FEW_WORDS:
        return 2 if n_outputs == 1 else FEW_WORDS
    return -(-(n_outputs + 1) // WORDS) * WORDS


def cells(columns: NDArray[np.int32]) -> NDArray[Any]:
    """Return rows of `n_columns` numbers as `Rows.values` has them; the memory is shared."""
    return columns.view(np.int64)[..., 0] if columns.shape[-1] == 2 else columns


def weights_of(cells: NDArray[Any]) -> NDArray[np.int64]:
    """Return the weights of some cells."""
    return (cells & 0xFFFFFFFF if cells.ndim == 1 else cells[:, 0]).astype(np.int64)


def _cells(n_outputs: int, *shape: int) -> NDArray[Any]:
    return cells(np.zeros((*shape, n_columns(n_outputs)), np.int32))


def n_slots(n_rows: int, max_leaves: int, few: int) -> int:
    """Return how many histograms a tree needs: one for each node with more than `few` rows, and a spare one.

    None where there is no such node.
    """
    return min(max_leaves, n_rows // (few + 1)) + 1 if n_rows > few else 0
