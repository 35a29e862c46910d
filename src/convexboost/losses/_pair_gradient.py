"""Subgradients whose rows are differences of two unit vectors, as those of the multiclass hinge."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.compiling import kernel
from convexboost.core.gradients import BinnedRows, Gradient
from convexboost.core.space import Array, Codes, FunctionSpace
from convexboost.kernels import parallel
from convexboost.kernels.histogram import BLOCK, DenseBins


@kernel
def _add_to_bins(bins, features, rows, plus, minus, weight, factor, out):  # type: ignore[no-untyped-def]
    """out[bin of n, plus] += weight[n]·factor, rounded, out[bin of n, minus] −= it; n = rows[i], plus[i] ≥ 0.

    An empty `rows` means all of them.
    """
    for begin in range(0, len(plus), BLOCK):
        end = min(begin + BLOCK, len(plus))
        for j in features:
            column, offset = bins.codes[j], bins.offsets[j]
            for i in range(begin, end):
                if plus[i] >= 0:
                    n = rows[i] if len(rows) > 0 else i
                    b, w = offset + column[n], np.int64(np.rint(weight[n] * factor))
                    out[b, plus[i]] += w
                    out[b, minus[n]] -= w


@kernel
def _add_to_leaves(leaf, weight, plus, minus, out):  # type: ignore[no-untyped-def]
    """Add the weight of each row to its leaf and, behind it, weight · (e_plus − e_minus); 0 if plus is −1."""
    for n in range(np.uint64(len(leaf))):
        row, w = out[np.uint64(leaf[n])], weight[n]
        row[0] += w
        if plus[n] >= 0:
            row[1 + plus[n]] += w
            row[1 + minus[n]] -= w


class Counted(NamedTuple):
    """A histogram in fixed point, and the rows it is of."""

    rows: BinnedRows
    table: NDArray[np.int64]


class Change(NamedTuple):
    """What changed since an earlier gradient."""

    counted: list[Counted]  #: the histogram of the earlier gradient; empty if it has none
    rows: NDArray[np.int64]  #: that differ
    plus: Codes  #: of the earlier gradient in these rows


class PairGradient(Gradient):
    """A subgradient with rows e_plus − e_minus, or 0 where plus is −1: two numbers a row instead of K.

    One that follows another corrects its histogram for the rows that changed.  The sums are whole numbers, so
    the result does not depend on that.
    """

    is_worth_keeping = True

    def __init__(self, plus: Codes, minus: Codes, n_outputs: int, space: FunctionSpace) -> None:
        self.plus, self.minus, self.n_outputs, self.space = plus, minus, n_outputs, space
        self.since: Change | None = None
        self._counted: list[Counted] = []  #: its histogram, until the next gradient takes it over

    @cached_property
    def values(self) -> Array:  # type: ignore[override]
        """Return the dense form."""
        return self.rows(slice(None))

    def rows(self, rows: slice) -> Array:
        """Return its values in some rows."""
        plus, minus = self.plus[rows], self.minus[rows]
        found = np.flatnonzero(plus >= 0)
        values = np.zeros((len(plus), self.n_outputs))
        values[found, plus[found]] = 1.0
        values[found, minus[found]] = -1.0
        return values

    @cached_property
    def norm(self) -> float:
        """√(2 · weight of the rows that are not 0)."""
        return math.sqrt(2.0 * self.space.mass(self.plus >= 0))

    def follow(self, previous: Gradient | None) -> PairGradient:
        """Note what changed since `previous`, if that is of this kind."""
        if isinstance(previous, PairGradient):
            rows = np.flatnonzero(self.plus != previous.plus)
            self.since = Change(previous._counted, rows, previous.plus[rows])
        return self

    def leaf_sums(self, leaf: Any, n_leaves: int) -> Array:
        """Return Σ p_n and, behind it, Σ p_n ∇_n over the rows of each leaf."""
        out, (weight, unit) = np.zeros((n_leaves, 1 + self.n_outputs)), self.space.whole
        _add_to_leaves(leaf, weight, self.plus, self.minus, out)
        return self.space.communicator.add(out) * unit

    def histogram(self, rows: BinnedRows) -> Array | None:
        """Return Σ p_n ∇_n over the rows of each bin, from the histogram of the gradient before if it can."""
        codes, since = rows.dense_codes, self.since
        if codes is None:
            return None
        if since is not None and since.counted and since.counted[0].rows is rows:
            table = since.counted.pop().table
            self._add(table, codes, rows, since.rows, since.plus, -1)
            self._add(table, codes, rows, since.rows, self.plus[since.rows], 1)
        else:
            table = np.zeros((rows.offsets[-1], self.n_outputs), np.int64)
            self._add(table, codes, rows, np.empty(0, np.int64), self.plus, 1)
        self._counted[:] = [Counted(rows, table)]
        return self.space.communicator.add(table) / rows.unit

    def _add(self, table: Any, codes: Any, binned: BinnedRows, rows: Any, plus: Any, sign: int) -> None:
        bins, factor, weight = DenseBins(codes, binned.offsets), sign * binned.unit, self.space.weight

        def task(first: int, last: int) -> None:
            _add_to_bins(bins, np.arange(first, last), rows, plus, self.minus, weight, factor, table)

        parallel.run(task, binned.n_features, 2 * len(plus) * binned.n_features, binned.n_threads)
