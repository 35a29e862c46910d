"""Functions of one column each: the curves of stumps and additive models, as trees and as contributions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convexboost.core.explained import Explained
from convexboost.core.nodes import Nodes
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.learners._nodes import Binned, BinTrees, mask_of


class OneColumn(NamedTuple):
    """A function of one binned column."""

    column: int
    table: Array  #: the value in each bin, (n_bins + 1, n_outputs)
    cover: Array  #: the training rows in each bin, by weight

    @property
    def mean(self) -> Array:
        """Return the mean over the training rows."""
        total = self.cover.sum()
        return np.asarray(self.cover @ self.table / total) if total > 0.0 else self.table.mean(axis=0)


@dataclass(frozen=True)
class ExplainedFunctions(Explained):
    """A sum of functions of one column each: a column contributes its function, less its mean."""

    functions: list[OneColumn]

    __repr__ = brief

    def expectation(self) -> Array:
        """Return the sum of the means."""
        return np.sum([f.mean for f in self.functions], axis=0)

    def add_contributions(self, out: Array, inputs: Any, background: Any) -> None:
        """Look up the function of each column."""
        for f in self.functions:
            mean = f.mean if background is None else f.table[background.column(f.column)].mean(axis=0)
            out[f.column] += (f.table - mean)[inputs.column(f.column)].T

    def add_interactions(self, out: Array, inputs: Any) -> None:
        """Add nothing: columns do not interact."""


def nodes_of_functions(functions: Sequence[OneColumn], mapper: Any) -> Nodes:
    """Return a tree for each column."""
    return trees_of_functions(functions, mapper.columns).nodes(mapper.columns, mapper.sources)


def trees_of_functions(functions: Sequence[tuple[int, Array, Array]], columns: Sequence[Binned]) -> BinTrees:
    """Return functions of one column each, (column, value of each bin, cover of each bin), as trees.

    A tree halves the pieces on which its function is constant again and again.  The gain of a split is what
    it explains of the variance of the function, so the gains of a tree add up to this variance.
    """
    nodes: list[tuple[int, int, int, NDArray[np.uint64], float, int]] = []  # as in `BinTrees`
    covers: list[float] = []
    values: list[Array] = []
    for tree, (j, table, cover) in enumerate(functions):
        total = max(float(cover.sum()), 1e-300)
        pieces, is_ordered = _pieces(table, columns[j])
        waiting = deque([(0, len(pieces))])
        child = len(nodes) + 1
        while waiting:
            first, last = waiting.popleft()
            if last - first == 1:
                nodes.append((tree, -1, -1, np.zeros(4, np.uint64), 0.0, len(values)))
                covers.append(float(cover[pieces[first]].sum()))
                values.append(table[pieces[first][0]])
                continue
            # Missing values are the last piece of numbers, and alone on the right of the root.
            middle = last - 1 if is_ordered and last == len(pieces) else (first + last) // 2
            left, right = (np.concatenate(pieces[a:b]) for a, b in ((first, middle), (middle, last)))
            below = np.concatenate(pieces[:middle]) if is_ordered else left  # of numbers, all up to a cut
            nodes.append((tree, j, child, mask_of(below), _gain(table, cover, left, right) / total, -1))
            child += 2
            waiting.extend([(first, middle), (middle, last)])
    numbers, features, children, masks, gains, leaves = zip(*nodes, strict=True)
    return BinTrees(
        np.array(numbers, np.int32),
        np.array(features, np.int32),
        np.array(children, np.int32),
        np.stack(masks),
        np.array(gains),
        np.array(leaves, np.int32),
        np.array(covers),
        np.stack(values),
    )


def _pieces(table: Array, column: Binned) -> tuple[list[NDArray[np.intp]], bool]:
    """Return the bins that share a value, and whether they are numbers, with missing values last.

    Bins of numbers make a piece only where they are neighbours.
    """
    if (table == table[0]).all():
        return [np.arange(len(table))], False
    if column.levels_in_bins() is not None:
        order = np.lexsort(table.T[::-1])
        ends = np.flatnonzero((table[order][1:] != table[order][:-1]).any(axis=1)) + 1
        return np.split(order, ends), False
    n_bins = column.n_bins
    ends = np.flatnonzero((table[1:n_bins] != table[: n_bins - 1]).any(axis=1)) + 1
    return [*np.split(np.arange(n_bins), ends), np.array([n_bins])], True


def _gain(table: Array, cover: Array, left: NDArray[np.intp], right: NDArray[np.intp]) -> float:
    """Return how much of the sum of squares around their mean two sides explain."""
    a, b = float(cover[left].sum()), float(cover[right].sum())
    if a <= 0.0 or b <= 0.0:
        return 0.0
    apart = cover[left] @ table[left] / a - cover[right] @ table[right] / b
    return float(a * b / (a + b) * (apart @ apart))
