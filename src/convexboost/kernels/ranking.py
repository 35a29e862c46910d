"""Counting pairs of rows in O(n log n): for each row the weight of better and of worse rows past a limit.

Weights are whole numbers here, so that sums are exact: neither the order of tied scores nor the number of
threads can change them, and a row of weight 2 is the row twice to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convexboost.core.communicator import ALONE, Communicator
from convexboost.core.compiling import kernel
from convexboost.core.space import Array
from convexboost.kernels import parallel

#: Bits of a weight, at most: sample weights that are whole multiples of each other stay so, although they
#: have been divided by their sum, with a rounding error.
BITS = 48
#: Bits of the sum over a query, at most.
SUM_BITS = 62
#: Operations per row, of the sort and the two sweeps.
OPERATIONS = 100
#: A query is sorted from scratch if its rows move by more places than this on average.
MOVES = 4


@kernel
def _add(tree, index, weight):
    """Add to entry `index` (from 1) of a Fenwick tree."""
    while index < len(tree):
        tree[index] += weight
        index += index & -index


@kernel
def _sum(tree, index):
    """Return the sum of the entries 1 … index."""
    total = 0
    while index > 0:
        total += tree[index]
        index -= index & -index
    return total


@kernel
def _sort(f, order):
    """Sort `order` by f, in place: by insertion where it is nearly sorted already."""
    moves = MOVES * len(order)
    for k in range(1, len(order)):
        row, place = order[k], k
        while place > 0 and f[order[place - 1]] > f[row]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = row
        moves -= k - place
        if moves < 0:
            order[:] = np.argsort(f)
            return


@kernel
def _count(f, limit, queries, orders, better, worse, first, last):
    """Count in queries first … last − 1; `limit` does not fall where f rises.

    `orders` are a guess how the scores are ordered, e.g. from the last round; they are sorted in place.  Then
    there are two sweeps.  Upwards, the tree holds the rows whose limit has been passed, by falling grades.
    Downwards, it holds the rows whose score is above the limit, by rising grades.
    """
    starts, grade, weight = queries
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        _sort(f[begin:end], orders[begin:end])
        order = orders[begin:end] + begin
        n, n_grades = end - begin, grade[begin:end].max() + 1
        tree = np.zeros(n_grades + 1, np.int64)
        passed = 0
        for k in range(n):
            row = order[k]
            while passed < n and limit[order[passed]] < f[row]:
                i = order[passed]
                _add(tree, n_grades - grade[i], weight[i])
                passed += 1
            better[row] = _sum(tree, n_grades - 1 - grade[row])
        tree[:] = 0
        passed = n - 1
        for k in range(n - 1, -1, -1):
            row = order[k]
            while passed >= 0 and f[order[passed]] > limit[row]:
                j = order[passed]
                _add(tree, grade[j] + 1, weight[j])
                passed -= 1
            worse[row] = _sum(tree, grade[row])


class _Queries(NamedTuple):
    """The rows of all queries, one query after the other."""

    starts: NDArray[np.int64]  #: where each query begins, and the end
    grade: NDArray[np.int64]  #: 0, 1, … within the query
    weight: NDArray[np.int64]  #: in units


@dataclass(frozen=True)
class Pairs:
    """The pairs (i, j) of rows of one query where i has the higher grade."""

    n_rows: int
    rows: NDArray[np.int64]  #: query after query, those without a pair left out
    starts: NDArray[np.int64]  #: where each query begins in `rows`, and the end
    grade: NDArray[np.int64]  #: of `rows`: 0, 1, … within the query
    weight: NDArray[np.int64]  #: of `rows`, in units
    unit: float  #: the weight that 1 stands for, a power of 2
    latest: list[NDArray[np.int64]]  #: one array: how the scores counted last were ordered, query by query

    @classmethod
    def of(
        cls, grades: Array, queries: NDArray[np.int64], weight: Array, communicator: Communicator = ALONE
    ) -> Pairs:
        """Sort the rows; `queries` are numbers, `weight` is positive.

        Other queries may be elsewhere: only the unit of the weights is the same everywhere.
        """
        order = np.lexsort((grades, queries))
        query, grade = queries[order], grades[order]
        begins, rises = np.ones(len(order), bool), np.zeros(len(order), bool)
        begins[1:] = query[1:] != query[:-1]
        rises[1:] = (grade[1:] != grade[:-1]) & ~begins[1:]
        number = np.cumsum(begins) - 1
        kept = np.bincount(number, rises)[number] > 0
        level = np.cumsum(rises)
        level -= level[np.flatnonzero(begins)][number]
        rows = order[kept]
        starts = np.append(np.flatnonzero(begins[kept]), len(rows))
        sums = np.add.reduceat(weight[rows], starts[:-1]) if len(rows) else np.zeros(0)
        most, sum_ = (communicator.largest(part.max(initial=0.0)) for part in (weight[rows], sums))
        bits = 0
        if most > 0.0:
            bits = min(BITS - int(np.frexp(most)[1]), SUM_BITS - int(np.frexp(1.0001 * sum_)[1]))
        whole = np.rint(np.ldexp(weight[rows], bits)).astype(np.int64)
        places = np.arange(len(rows)) - np.repeat(starts[:-1], np.diff(starts))
        return cls(len(order), rows, starts, level[kept], whole, float(np.ldexp(1.0, -bits)), [places])

    @property
    def n_queries(self) -> int:
        """Return the number of queries that have a pair."""
        return len(self.starts) - 1

    def count(self, f: Array, limit: Array, n_threads: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return for each row n the weight, in units, of its violated pairs.

        First the better rows i with limit_i < f_n, then the worse rows j with f_j > limit_n.  The limit is a
        function of f that does not fall.
        """
        better, worse = np.zeros((2, self.n_rows), np.int64)
        f, limit = f[self.rows], limit[self.rows]
        above, below = np.empty((2, len(self.rows)), np.int64)
        orders = self.latest[0].copy()  # another thread may be counting, too
        queries = _Queries(self.starts, self.grade, self.weight)

        def task(first: int, last: int) -> None:
            _count(f, limit, queries, orders, above, below, first, last)

        parallel.run(task, self.n_queries, OPERATIONS * len(f), n_threads)
        better[self.rows], worse[self.rows] = above, below
        self.latest[0] = orders
        return better, worse

    def all(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return for each row the weight, in units, of all better and of all worse rows."""
        return self.count(np.zeros(self.n_rows), np.full(self.n_rows, -np.inf))

    def centre(self, f: Array) -> Array:
        """Shift the lowest score of each query to 0: differences then lose no digits."""
        out = np.zeros(self.n_rows)
        lowest = np.minimum.reduceat(f[self.rows], self.starts[:-1]) if len(self.rows) else np.zeros(0)
        out[self.rows] = f[self.rows] - np.repeat(lowest, np.diff(self.starts))
        return out
