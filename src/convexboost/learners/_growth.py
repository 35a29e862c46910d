"""Growing one tree: the weights of the rows in whole numbers, and the work that is shared out to threads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.communicator import ALONE, Communicator
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.sums import total
from convexboost.core.text import brief
from convexboost.core.tolerances import BETTER
from convexboost.kernels import parallel
from convexboost.kernels.target import Curvature
from convexboost.kernels.trees.data import (
    BEGIN,
    END,
    LARGEST,
    SLOT,
    SPLIT,
    Features,
    Nodes,
    Room,
    Rows,
    Rules,
    weights_of,
)
from convexboost.kernels.trees.growth import divide, grow, partition
from convexboost.kernels.trees.histograms import add_part

#: Not even nodes without rows are small.
NONE_IS_SMALL = -1
#: Nodes whose histogram takes more additions than this are shared out between threads.
THREADED = 2e6
#: The weight of a leaf may fall short of the least one by this share at most, to allow for rounding.
MAX_ROUNDING = 1e-5
#: Means of targets that are further apart, relative to the length of the targets, are different.
MAX_TIE = 1e-3
#: A row counts at least and at most this often, by its curvature: one that the model got badly wrong has
#: hardly any, and must not decide alone; a leaf must not be a single row.
LEAST_CURVATURE, MOST_CURVATURE = 0.1, 4.0
#: A row of mean curvature counts this often at most; more would not change a split.
FINEST = 2.0**12


def power_above(length: float) -> float:
    """Return a power of two above a length: rounding of the length hardly ever changes it."""
    return math.ldexp(1.0, max(math.frexp(1.0001 * length)[1], -900))


@dataclass(frozen=True, eq=False)
class WholeWeights:
    """The weights of rows in whole numbers that add up to at most LARGEST.

    Weights that are multiples of a common unit are counted exactly: a row of weight 2 is the row twice.
    Other weights are rounded to 1/LARGEST of their sum, which can only decide between splits whose gains
    agree to about nine digits.
    """

    whole: NDArray[np.int32]
    exact: Array  #: the weights themselves where `whole` is rounded, else empty
    unit: float  #: the weight that 1 stands for
    least: int = 1  #: the smallest of all, where they are rounded

    __repr__ = brief

    @classmethod
    def of(cls, space: FunctionSpace) -> WholeWeights:
        """Count the weights where they have a common unit; else round."""
        if space.counts is not None:
            whole, unit = space.counts
            return cls(whole.astype(np.int32), np.empty(0), unit)
        unit = total(space.weight, space.communicator) / LARGEST
        rounded = np.maximum(np.rint(space.weight / unit), 1.0)
        least = -space.communicator.largest(-rounded.min(initial=LARGEST))
        return cls(rounded.astype(np.int32), space.weight, unit, int(least))

    @property
    def unit_of_rows(self) -> float:
        """Return the factor from `whole` to weights; 1 where `exact` holds the weights."""
        return 1.0 if len(self.exact) else self.unit

    @property
    def rounding(self) -> float:
        """Return the largest relative error of a sum of weights."""
        return min(0.5 / self.least, MAX_ROUNDING) if len(self.exact) else BETTER

    @cached_property
    def fineness(self) -> float:
        """Return how often a row of mean curvature counts: weights add up to LARGEST at most.

        A power of two, at least 1 where weights are counted, so that a row of weight 2 stays the row twice.
        """
        if len(self.exact):
            return 0.25
        return min(max(2.0 ** math.floor(math.log2(LARGEST * self.unit / 2.0)), 1.0), FINEST)

    def curved(self, curvature: Array, mean: float) -> Curvature:
        """Return how often rows count; one of mean curvature counts `fineness` times."""
        usual = self.fineness
        return Curvature(curvature, usual / mean, LEAST_CURVATURE * usual, MOST_CURVATURE * usual, usual)

    def rounding_of_means(self, norm: float) -> float:
        """Return how far apart two equal means of targets may be; `norm` is the length of the targets.

        A row of weight w is rounded by w/2 at most, or by 1/2 where its weight is rounded too.
        """
        most = 1.0 / self.least if len(self.exact) else 1.0
        return min(most, MAX_TIE * norm * self.unit)


class Buffers:
    """Large arrays that every tree overwrites, kept from one tree to the next."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[np.int32]] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Return the array of this name: zeros if it is new or had another shape, else with old contents."""
        found = self._arrays.get(name)
        if found is None or found.shape != shape:
            found = self._arrays[name] = np.zeros(shape, np.int32)
        return found


class Growth:
    """A tree in the making.

    The kernel splits small nodes; large ones are split here, on several threads.  Where rows are spread over
    processes all nodes are split here, and each histogram is added up over the processes.
    """

    def __init__(
        self,
        features: Features,
        rows: Rows,
        rules: Rules,
        room: Room,
        n_threads: int,
        communicator: Communicator = ALONE,
    ) -> None:
        #: for each row of a histogram
        self.operations = features.codes.shape[1] * len(room.total)
        if communicator.size > 1:
            rules = rules._replace(few=NONE_IS_SMALL, max_rows=float(NONE_IS_SMALL))
        elif n_threads > 1:
            rules = rules._replace(max_rows=max(THREADED / self.operations, float(rules.few)))
        self.features, self.rows, self.rules = features, rows, rules
        self.room, self.n_threads, self.communicator = room, n_threads, communicator
        self.nodes = Nodes.root(len(rows.order), rules.max_leaves)

    def run(self) -> Nodes:
        """Split the best leaf until the rules forbid it; return the nodes."""
        numbers, rules, n_nodes, new = self.nodes.numbers, self.rules, 1, 0
        while True:
            n_rows, n_leaves = numbers[new, END] - numbers[new, BEGIN], (n_nodes + 1) // 2
            if n_rows > rules.max_rows and n_leaves < rules.max_leaves:
                self._add_histogram(new)
            n_nodes, large = grow(self.features, self.rows, self.nodes, self.room, rules, n_nodes, new)
            if large < 0:
                return Nodes(*(column[:n_nodes] for column in self.nodes))
            feature = self.features.numbers[numbers[large, SPLIT]]
            middle, left_is_small = self._partition(large, feature), self._left_is_small(large)
            new = divide(numbers, large, n_nodes, middle, feature, rules.few, left_is_small)
            n_nodes += 2

    def _add_histogram(self, node: int) -> None:
        """Make the histogram of a large node."""
        slot = int(self.nodes.numbers[node, SLOT])
        self.room.hists[slot][:] = self.communicator.add(self._histogram(node))

    def _histogram(self, node: int) -> NDArray[Any]:
        """Return the histogram of the rows here, made in parts: whole numbers add up in any order."""
        begin, end, slot = (int(self.nodes.numbers[node, k]) for k in (BEGIN, END, SLOT))
        found: list[NDArray[Any]] = []

        def task(start: int, stop: int) -> None:
            out = np.zeros_like(self.room.hists[slot])
            add_part(self.features, self.rows, begin + start, begin + stop, out)
            found.append(out)

        parallel.run(task, end - begin, float(end - begin) * self.operations, self.n_threads)
        for more in found[1:]:
            found[0] += more
        return found[0]

    def _left_is_small(self, node: int) -> bool:
        """Return whether less weight goes left than right: the same on all processes."""
        split, slot = (int(self.nodes.numbers[node, k]) for k in (SPLIT, SLOT))
        first, n_bins = split << int(self.features.shift), int(self.features.n_bins[split])
        weight = weights_of(self.room.hists[slot][first : first + n_bins])
        bits = np.unpackbits(self.nodes.masks[node].view(np.uint8), bitorder="little")[:n_bins]
        return 2 * int(weight[bits > 0].sum()) <= int(weight.sum())

    def _partition(self, node: int, feature: int) -> int:
        """Put the rows of a node that go left before the others; return where the others begin."""
        begin, end, order = *(int(self.nodes.numbers[node, k]) for k in (BEGIN, END)), self.rows.order
        counts: dict[int, tuple[int, int]] = {}

        def task(start: int, stop: int) -> None:
            first, last = begin + start, begin + stop
            count = partition(self.features.columns[feature], self.rows, first, last, self.nodes.masks[node])
            counts[first] = (count, last - first - count)

        parallel.run(task, end - begin, 4.0 * float(end - begin), self.n_threads)
        at = begin
        for first in sorted(counts):
            count = counts[first][0]
            order[at : at + count] = order[first : first + count]
            at += count
        middle = at
        for first in sorted(counts):
            count = counts[first][1]
            order[at : at + count] = self.rows.spare[first : first + count]
            at += count
        return int(middle)
