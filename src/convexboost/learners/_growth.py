"""A tree in the making: what lies between the learner and the kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief
from convexboost.kernels import parallel
from convexboost.kernels.trees import BETTER, LARGEST, add_histogram, divide, grow, partition

#: Nodes with histograms of more operations than this are shared out between threads.
THREADED = 2e6


def power_above(length: float) -> float:
    """Return a power of two above a length: rounding, or the order of rows, hardly ever change it."""
    return math.ldexp(1.0, max(math.frexp(1.0001 * length)[1], -900))


#: The share of a leaf's weight that rounding may decide about at most.
MAX_ROUNDING = 1e-5
#: Means of targets that are further apart, relative to the length of the targets, are different.
MAX_TIE = 1e-3


@dataclass(frozen=True, eq=False)
class WholeWeights:
    """The weights of rows in whole numbers that add up to at most LARGEST.

    Where all weights are multiples of a common unit, they are counted: a row of weight 2 is exactly the row
    twice.  Other weights are rounded to 1/LARGEST of their sum, which can only decide between splits whose
    gains agree to about nine digits.
    """

    whole: NDArray[np.int32]
    exact: Array  #: the weights themselves where `whole` is rounded, else empty
    unit: float  #: what 1 weighs

    __repr__ = brief

    @classmethod
    def of(cls, space: FunctionSpace) -> WholeWeights:
        """Count the weights where they have a common unit; else round."""
        if space.counts is not None:
            whole, unit = space.counts
            return cls(whole.astype(np.int32), np.empty(0), unit)
        unit = float(space.weight.sum()) / LARGEST
        return cls(np.maximum(np.rint(space.weight / unit), 1.0).astype(np.int32), space.weight, unit)

    @property
    def unit_of_rows(self) -> float:
        """Return what a count of 1 weighs; 1 where the weights are given beside them."""
        return 1.0 if len(self.exact) else self.unit

    @property
    def rounding(self) -> float:
        """Return by what share a sum of weights may be wrong."""
        return min(0.5 / float(self.whole.min()), MAX_ROUNDING) if len(self.exact) else BETTER

    def rounding_of_means(self, norm: float) -> float:
        """Return how far apart two equal means of targets may be; `norm` is the length of the targets.

        A row of weight w is rounded by w/2 at most, or by 1/2 where its weight is rounded too.
        """
        most = 1.0 / float(self.whole.min()) if len(self.exact) else 1.0
        return min(most, MAX_TIE * norm * self.unit)


class Buffers:
    """Arrays that are used again for every tree."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[np.int32]] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Return an array of this shape: zeros, or what was left in it."""
        found = self._arrays.get(name)
        if found is None or found.shape != shape:
            found = self._arrays[name] = np.zeros(shape, np.int32)
        return found


class Growth:
    """The arrays that the kernels write to, and the work on large nodes, which is shared out."""

    def __init__(
        self,
        inputs: Any,
        features: NDArray[np.int64],
        n_bins: NDArray[np.int64],
        categorical: NDArray[np.bool_],
        monotone: NDArray[np.int64],
        V: NDArray[np.int32],
        order: NDArray[np.int32],
        max_leaves: int,
        room: Buffers,
    ) -> None:
        self.features, self.V, self.order, self.max_leaves = features, V, order, max_leaves
        self.n_threads, self.codes, self.columns = inputs.n_threads, inputs.codes, inputs.columns
        if len(features) < len(n_bins):
            self.codes = np.ascontiguousarray(self.codes[:, features])
        self.n_bins, self.categorical, self.monotone = (
            column[features] for column in (n_bins, categorical, monotone)
        )
        self.shift = np.uint64(int(self.n_bins.max() - 1).bit_length())
        self.spare = room.take("spare", (len(V),))
        self.hists = room.take("hists", (max_leaves, len(features) << int(self.shift), V.shape[1]))
        max_nodes = 2 * max_leaves - 1
        self.nodes = np.full((max_nodes, 6), -1, np.int64)
        self.nodes[0, :4] = 0, len(order), 0, 0
        self.gains, self.splits = np.zeros(max_nodes), np.full(max_nodes, -1, np.int64)
        self.masks = np.zeros((max_nodes, 4), np.uint64)

    def run(self, rules: Array, max_depth: float, min_gain: float, seed: int) -> tuple[Any, Any]:
        """Grow; return the nodes and the bins that go left in each."""
        max_rows = THREADED / (len(self.features) * self.V.shape[1]) if self.n_threads > 1 else math.inf
        limits = np.array([self.max_leaves, min(max_depth, 2 * self.max_leaves), min_gain, max_rows], float)
        n_nodes, new = 1, 0
        while new >= 0:
            if (n_nodes + 1) // 2 < self.max_leaves:
                self._add_histogram(new)
            n_nodes, large = grow(
                self.codes,
                self.columns,
                self.features,
                self.shift,
                self.n_bins,
                self.categorical,
                self.monotone,
                self.V,
                self.order,
                self.spare,
                self.hists,
                self.nodes,
                self.gains,
                self.splits,
                self.masks,
                rules,
                limits,
                seed,
                n_nodes,
                new,
            )
            new = -1
            if large >= 0:
                middle = self._partition(large)
                new = divide(self.nodes, large, n_nodes, middle, self.features[self.splits[large]])
                n_nodes += 2
        return self.nodes[:n_nodes], self.masks[:n_nodes]

    def _add_histogram(self, node: int) -> None:
        """Make the histogram of a node, in parts: sums of whole numbers can be taken in any order."""
        begin, end, slot = self.nodes[node, :3]
        found: list[NDArray[np.int32]] = []

        def task(start: int, stop: int) -> None:
            out = np.zeros(self.hists.shape[1:], np.int32)
            add_histogram(self.codes, self.shift, self.V, self.order, begin + start, begin + stop, out)
            found.append(out)

        operations = float(end - begin) * len(self.features) * self.V.shape[1]
        parallel.run(task, end - begin, operations, self.n_threads)
        self.hists[slot] = found[0]
        for more in found[1:]:
            self.hists[slot] += more

    def _partition(self, node: int) -> int:
        """Put the rows of a node that go left before the others; return where these begin."""
        begin, end = self.nodes[node, :2]
        column = self.columns[self.features[self.splits[node]]]
        counts: dict[int, tuple[int, int]] = {}

        def task(start: int, stop: int) -> None:
            first, last = begin + start, begin + stop
            count = partition(column, self.order, self.spare, first, last, self.masks[node])
            counts[first] = (count, last - first - count)

        parallel.run(task, end - begin, 4.0 * float(end - begin), self.n_threads)
        at = begin
        for first in sorted(counts):
            count = counts[first][0]
            self.order[at : at + count] = self.order[first : first + count]
            at += count
        middle = at
        for first in sorted(counts):
            count = counts[first][1]
            self.order[at : at + count] = self.spare[first : first + count]
            at += count
        return int(middle)
