"""The span of binned stumps, from the weights that bins share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular
from threadpoolctl import ThreadpoolController

from convexboost.core.cached import cached_property
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.kernels.stumps import PairSums, leaf_counts
from convexboost.learners._bin_function import BinFunction
from convexboost.learners._bins import BinnedSample

#: Memory for the pair table, at most.
MAX_TABLE_BYTES = 512 * 2**20
#: Bins that add less than this to the square of a length are left out of the basis of the span …
NEGLIGIBLE = 1e-12
#: … so rows lighter than this may not be seen in it.
LIGHT = 100.0 * NEGLIGIBLE


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Use one thread for BLAS inside this context, so that the number of threads does not change a result."""
    return _blas().limit(limits=1)


@dataclass(frozen=True)
class Span:
    """span(H) of binned stumps: all additive functions of the bins (theory: Section 4.5).

    A pivoted Cholesky factor of the pair table picks bins whose indicators are a basis.  The other bins add
    only rounding, or rows of weight below `LIGHT`.
    """

    basis: NDArray[np.int64]  #: bins whose indicators are a basis
    factor: Array  #: the Cholesky factor of their pair table

    __repr__ = brief

    def whiten(self, table: Array) -> Array:
        """Map Πv to Euclidean coordinates: ⟨Πv, Πw⟩ = ⟨whiten(v), whiten(w)⟩."""
        with one_blas_thread():
            out: Array = solve_triangular(self.factor, table[self.basis], lower=True, check_finite=False)
        return out

    def unwhiten(self, coordinates: Array, n_bins: int) -> Array:
        """Return a function of the span with these coordinates, as its values in all bins."""
        table = np.zeros((n_bins, coordinates.shape[1]))
        with one_blas_thread():
            table[self.basis] = solve_triangular(
                self.factor, coordinates, lower=True, trans="T", check_finite=False
            )
        return table

    @cached_property
    def rounding(self) -> float:
        """Return the relative error of `whiten`: the condition number of the factor times a few roundings."""
        if len(self.factor) == 0:
            return 0.0
        reciprocal, _ = lapack.dtrcon(self.factor, uplo="L")
        return 8.0 * float(np.finfo(float).eps) / max(float(reciprocal), 1e-8)

    @classmethod
    def of(cls, pairs: Array) -> Span:
        """Factorise the whole pair table."""
        tolerance = NEGLIGIBLE * float(pairs.diagonal().max())
        with one_blas_thread():
            factor, pivots, rank, _ = lapack.dpstrf(pairs, lower=1, tol=tolerance)
        return cls(pivots[:rank].astype(np.int64) - 1, np.tril(factor[:rank, :rank]))


class PairTable:
    """C[bin a, bin b] = weight of the rows in both, as running sums over the bins of each feature.

    The block of a feature is counted when a stump on it is first subtracted.  If the table would take more
    than `max_bytes`, only the columns that a stump needs are counted, each time: the same integers, so the
    same model, at the cost of a pass over the rows.
    """

    def __init__(self, sample: BinnedSample, max_bytes: int) -> None:
        n_bins = int(sample.mapper.offsets[-1])
        self.sample, self.fits = sample, 8 * n_bins**2 <= max_bytes
        running = np.zeros((n_bins, n_bins) if self.fits else (0, 0), np.int64)
        self.sums = PairSums(running, np.zeros(sample.n_features, bool), sample.unit)

    def count(self, j: int) -> None:
        """Count the block of feature j; C is symmetric, so the blocks of other features hold parts of it."""
        running, ready = self.sums.running, self.sums.ready
        if not ready[j]:
            first, width = self.sample.mapper.offsets[j], self.sample.mapper.columns[j].n_bins + 1
            own = slice(first, first + width)
            block = self.sample.shared_counts(self.sample.column(j), width, np.flatnonzero(~ready))
            known = np.repeat(ready, np.diff(self.sample.mapper.offsets))
            block[known] = self._columns(own)[known]
            np.cumsum(block.T, axis=0, out=running[own])
            ready[j] = True

    def shares(self, h: BinFunction) -> NDArray[np.int64]:
        """Return the weight that leaves of h share with bins, in fixed point: (n_leaves, total bins)."""
        if not self.fits:
            column = h.leaf_of_bin[self.sample.column(h.feature)]
            return np.ascontiguousarray(self.sample.shared_counts(column, len(h.values)).T)
        self.count(h.feature)
        shares = np.empty((len(h.values), len(self.sums.running)), np.int64)
        first = self.sample.mapper.offsets[h.feature]
        leaf_counts(self.sums.running, first, h.leaf_of_bin, len(h.leaf_of_bin), shares)
        return shares

    def whole(self) -> Array:
        """Return C."""
        for j in range(self.sample.n_features):
            self.count(j)
        return self._columns(slice(None)) / self.sample.unit

    def _columns(self, columns: slice) -> NDArray[np.int64]:
        """Return columns of C, in fixed point, as far as their rows have been counted."""
        begins, running = self.sample.mapper.offsets[:-1], self.sums.running
        C = np.diff(running[:, columns], axis=0, prepend=0)
        C[begins] = running[begins, columns]
        return C
