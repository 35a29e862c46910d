"""From numbers to bins, and from numbers straight to the sum of per-feature tables."""

import numpy as np
from numba import njit

#: Rows handled together: their columns stay in the cache, and one search serves them all.
BLOCK = 512


@njit(cache=True, nogil=True)
def _find(X, j, begin, end, cuts, values, bins):
    """bins[n − begin] = bin of X[n, j]: how many cuts are below it; the one after the last if it is missing.

    All rows take each step of the binary search together: no branch depends on a value, which no processor
    could predict.
    """
    size = len(cuts)
    for n in range(begin, end):
        values[n - begin] = X[n, j]
        bins[n - begin] = 0
    while size > 1:
        half = size // 2
        for i in range(end - begin):
            bins[i] += half * (cuts[bins[i] + half - 1] < values[i])
        size -= half
    for i in range(end - begin):
        if size == 1:
            bins[i] += cuts[bins[i]] < values[i]
        if np.isnan(values[i]):
            bins[i] = len(cuts) + 1


@njit(cache=True, nogil=True)
def encode(X, features, cuts, cut_ends, out, start, stop):
    """out[j, n] = bin of X[n, j], for rows start … stop − 1 and the listed features.

    The cuts of feature i of the list end at cut_ends[i + 1].
    """
    values, bins = np.empty(BLOCK), np.empty(BLOCK, np.int64)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for i in range(len(features)):
            j = features[i]
            _find(X, j, begin, end, cuts[cut_ends[i] : cut_ends[i + 1]], values, bins)
            for n in range(begin, end):
                out[j, n] = bins[n - begin]


@njit(cache=True, nogil=True)
def add_tables(F, X, features, cuts, cut_ends, tables, table_ends, start, stop):
    """F[n, :] += Σ_j table_j[bin of X[n, j]], rows start … stop − 1: an ensemble of any length in one pass.

    As in `encode`; the table of a feature (with the missing bin last) ends at table_ends[i + 1].
    """
    values, bins = np.empty(BLOCK), np.empty(BLOCK, np.int64)
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for i in range(len(features)):
            _find(X, features[i], begin, end, cuts[cut_ends[i] : cut_ends[i + 1]], values, bins)
            for n in range(begin, end):
                row = table_ends[i] + bins[n - begin]
                for k in range(F.shape[1]):
                    F[n, k] += tables[row, k]


@njit(cache=True, nogil=True)
def add_codes(F, codes, features, tables, ends, start, stop):
    """As `add_tables`, for rows whose bins are known: codes is (n_features, n_samples).

    Four features at a time, added in their order: the scores are read and written once for the four.
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
