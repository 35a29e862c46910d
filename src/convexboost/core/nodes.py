"""The trees of a model in the terms of its inputs: one table that text, frames and exports read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.space import Array
from convexboost.core.text import brief


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of all trees of a model, one tree after the other; the root of a tree is its first node.

    The score of a row is `start` plus the values of its leaves in all trees.  Columns are those of X with
    categories numbered, as `model.predict` reads it.

    A split on numbers has a `cut`: values up to it go left; it is ∞ where all values go left and only missing
    ones go right.  A split on categories has a set of levels that go left (`levels_of`); those of `levels`
    that are not in it go right, and `unseen_left` says where all others go.  Leaves have −1 in `column`,
    `left`, `right` and `level_set`.

    A function of one column (a stump, a part of an additive model) is a tree that splits this column only.
    """

    tree: NDArray[np.int32]  #: the number of the tree
    column: NDArray[np.int32]  #: the column of X that a node splits
    left: NDArray[np.int32]  #: its children, as numbers of nodes in this table
    right: NDArray[np.int32]
    cut: Array  #: NaN where there is none
    level_set: NDArray[np.int32]  #: the number of its set of levels, −1 where it has a cut
    missing_left: NDArray[np.bool_]
    unseen_left: NDArray[np.bool_]
    #: how much a split lowers the weighted mean of squares: of what the tree was fitted to or, in a function
    #: of one column, of the function around its mean; 0 for leaves
    gain: Array
    cover: Array  #: training rows in a node, by weight
    leaf: NDArray[np.int32]  #: the number of a leaf, −1 for splits
    values: Array  #: (n_leaves, n_outputs), the weight of the tree included
    level_sets: tuple[Array, ...] = field(default=(), repr=False)  #: levels that go left, sorted
    #: of each categorical column, sorted
    levels: Mapping[int, Array] = field(default_factory=dict, repr=False)
    start: Array = field(default_factory=lambda: np.empty(0))  #: (n_outputs,): the constant of the model

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.tree)

    @property
    def n_trees(self) -> int:
        """Return the number of trees."""
        return int(self.tree[-1]) + 1 if len(self) else 0

    @property
    def roots(self) -> NDArray[np.intp]:
        """Return the first node of each tree."""
        return np.flatnonzero(np.diff(self.tree, prepend=-1))

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Return which nodes are leaves."""
        return self.column < 0

    def levels_of(self, node: int) -> Array:
        """Return the levels that go left at a split on categories."""
        return self.level_sets[self.level_set[node]]

    def apply(self, X: Array) -> NDArray[np.int32]:
        """Return the node where each row ends in each tree, (n_rows, n_trees)."""
        out = np.empty((len(X), self.n_trees), np.int32)
        for tree, root in enumerate(self.roots):
            waiting = [(int(root), np.arange(len(X)))]
            while waiting:
                node, rows = waiting.pop()
                if self.column[node] < 0:
                    out[rows, tree] = node
                    continue
                goes_left = self._goes_left(node, X[rows, self.column[node]])
                waiting.append((int(self.left[node]), rows[goes_left]))
                waiting.append((int(self.right[node]), rows[~goes_left]))
        return out

    def _goes_left(self, node: int, values: Array) -> NDArray[np.bool_]:
        """Return which values of the column go left at a split."""
        if self.level_set[node] < 0:
            goes_left = values <= self.cut[node]
        else:
            goes_left = np.isin(values, self.levels_of(node))
            if self.unseen_left[node]:
                goes_left |= ~np.isin(values, self.levels[int(self.column[node])])
        return np.where(np.isnan(values), self.missing_left[node], goes_left)

    @classmethod
    def joined(cls, parts: Sequence[Nodes], start: Array) -> Nodes:
        """Lay tables of the same columns one after the other, as one model with this constant."""
        parts = [part for part in parts if len(part)]
        sets = tuple(one for part in parts for one in part.level_sets)
        if not parts:
            return replace(_nothing(len(start)), start=start)
        trees, nodes, leaves, known = (
            np.cumsum([0, *sizes[:-1]])
            for sizes in (
                [part.n_trees for part in parts],
                [len(part) for part in parts],
                [len(part.values) for part in parts],
                [len(part.level_sets) for part in parts],
            )
        )

        def joined(name: str, shifts: NDArray[np.intp]) -> NDArray[np.int32]:
            """Numbers of the parts follow each other; −1 stays."""
            moved = [
                np.where(array < 0, -1, array + shift).astype(np.int32)
                for array, shift in zip((getattr(part, name) for part in parts), shifts, strict=True)
            ]
            return np.concatenate(moved)

        def laid(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            joined("tree", trees),
            laid("column"),
            joined("left", nodes),
            joined("right", nodes),
            laid("cut"),
            joined("level_set", known),
            laid("missing_left"),
            laid("unseen_left"),
            laid("gain"),
            laid("cover"),
            joined("leaf", leaves),
            laid("values"),
            sets,
            parts[0].levels,
            start,
        )


def _nothing(n_outputs: int) -> Nodes:
    """Return a table without a node."""
    none, numbers, sides = np.empty(0, np.int32), np.empty(0), np.empty(0, bool)
    return Nodes(
        none, none, none, none, numbers, none, sides, sides, numbers, numbers, none, np.empty((0, n_outputs))
    )
