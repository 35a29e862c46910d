"""From numbers to bins, and from numbers straight to the sum of per-feature tables."""

from typing import Any, NamedTuple

import numpy as np

from convexboost.core.bits import local_array
from convexboost.core.compiling import kernel, part

#: Rows that take the steps of a binary search together: their values and bins stay in the cache.
BLOCK = 512


class Cuts(NamedTuple):
    """Where numeric features are cut: the cuts of features[i] are values[ends[i] : ends[i + 1]]."""

    features: Any  #: int64
    values: Any  #: float64
    ends: Any  #: int64


index = np.uint64


@part
def _find(X, j, begin, n_rows, cuts, first, last, values, bins):
    """bins[i] = bin of X[begin + i, j]: how many cuts are below it; the one after the last if it is missing.

    The cuts are cuts[first:last].  All rows take each step of the binary search together, without branches
    that depend on a value.
    """
    size, n_rows = last - first, index(n_rows)
    for i in range(n_rows):
        values[i] = X[index(begin) + i, j]
        bins[i] = first
    while size > 1:
        half = size >> 1
        for i in range(n_rows):
            bins[i] += half * (cuts[index(bins[i] + half - 1)] < values[i])
        size -= half
    for i in range(n_rows):
        if size == 1:
            bins[i] += cuts[index(bins[i])] < values[i]
        bins[i] = last - first + 1 if values[i] != values[i] else bins[i] - first


@kernel(allocates=False)
def encode(X, cuts, out, start, stop):
    """out[j, n] = bin of X[n, j], for rows start … stop − 1 and the features of `cuts`."""
    features, numbers, ends = cuts
    values, bins = local_array(BLOCK, np.float64), local_array(BLOCK, np.int64)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for i in range(len(features)):
            j = features[i]
            _find(X, j, begin, end - begin, numbers, ends[i], ends[i + 1], values, bins)
            for n in range(index(end - begin)):
                out[j, index(begin) + n] = bins[n]


@kernel(allocates=False)
def add_tables(F, X, cuts, tables, table_ends, start, stop):
    """F[n, :] += Σ_j table_j[bin of X[n, j]], rows start … stop − 1: an ensemble of any length in one pass.

    The table of features[i], with the missing bin last, is tables[table_ends[i] : table_ends[i + 1]].
    """
    features, numbers, ends = cuts
    values, bins = local_array(BLOCK, np.float64), local_array(BLOCK, np.int64)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for i in range(len(features)):
            _find(X, features[i], begin, end - begin, numbers, ends[i], ends[i + 1], values, bins)
            for n in range(begin, end):
                row = table_ends[i] + bins[n - begin]
                for k in range(F.shape[1]):
                    F[n, k] += tables[row, k]


@kernel(allocates=False)
def add_codes(F, codes, features, tables, ends, start, stop):
    """Do what `add_tables` does, for rows whose bins are known: codes is (n_features, n_samples).

    Four features at a time, added in their order, so that scores are read and written once for the four.
    """
    K, n_features = F.shape[1], len(features)
    whole = n_features - n_features % 4
    for begin in range(start, stop, BLOCK // 4):
        end = min(begin + BLOCK // 4, stop)
        for i in range(0, whole, 4):
            c0, c1, c2, c3 = features[i], features[i + 1], features[i + 2], features[i + 3]
            e0, e1, e2, e3 = ends[i], ends[i + 1], ends[i + 2], ends[i + 3]
            for n in range(begin, end):
                r0, r1, r2, r3 = e0 + codes[c0, n], e1 + codes[c1, n], e2 + codes[c2, n], e3 + codes[c3, n]
                for k in range(K):
                    F[n, k] = F[n, k] + tables[r0, k] + tables[r1, k] + tables[r2, k] + tables[r3, k]
        for i in range(whole, n_features):
            column, first = codes[features[i]], ends[i]
            for n in range(begin, end):
                row = first + column[n]
                for k in range(K):
                    F[n, k] += tables[row, k]
