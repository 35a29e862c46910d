"""From numbers to bins, and from numbers straight to the sum of per-feature tables."""

import numpy as np
from numba import njit

#: Rows handled together: their scores stay in the cache while all features are visited.
BLOCK = 128


@njit(cache=True, nogil=True)
def _bin(value, cuts, first, last):
    """Return how many of cuts[first:last] are below the value: a binary search without branches."""
    base, size = first, last - first
    while size > 1:
        half = size // 2
        base += half * (cuts[base + half - 1] < value)
        size -= half
    return base - first + (size == 1 and cuts[base] < value)


@njit(cache=True, nogil=True)
def encode(values, cuts, out):
    """out[n] = bin of values[n]; missing values have the bin after the last."""
    missing = len(cuts) + 1
    for n in range(len(values)):
        value = values[n]
        out[n] = missing if np.isnan(value) else _bin(value, cuts, 0, len(cuts))


@njit(cache=True, nogil=True)
def add_tables(F, X, features, cuts, cut_ends, tables, table_ends, start, stop):
    """F[n, :] += Σ_j table_j[bin of X[n, j]], rows start … stop − 1: an ensemble of any length in one pass.

    Feature i of the list is column features[i]; its cuts end at cut_ends[i + 1], its table (with the missing
    bin last) at table_ends[i + 1].
    """
    for n in range(start, stop):
        for i in range(len(features)):
            value = X[n, features[i]]
            if np.isnan(value):
                row = table_ends[i + 1] - 1
            else:
                row = table_ends[i] + _bin(value, cuts, cut_ends[i], cut_ends[i + 1])
            for k in range(F.shape[1]):
                F[n, k] += tables[row, k]


@njit(cache=True, nogil=True)
def add_codes(F, codes, features, tables, ends, start, stop):
    """As `add_tables`, for rows whose bins are known: codes is (n_features, n_samples)."""
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for i in range(len(features)):
            column, first = codes[features[i]], ends[i]
            for n in range(begin, end):
                row = first + column[n]
                for k in range(F.shape[1]):
                    F[n, k] += tables[row, k]
