"""Sums over the rows of each bin, in fixed point.

`codes` is (n_features, n_samples) uint8; bin b of feature j is row offsets[j] + b of every table.
"""

import numpy as np
from numba import njit

#: Rows handled together: their gradients stay in the cache while all features are visited.
BLOCK = 512


@njit(cache=True, nogil=True)
def _quantise(G, weight, factor, begin, end, block):
    """Block = weight·G·factor, rounded, for rows begin … end − 1; return how many entries are not zero."""
    count = 0
    for n in range(begin, end):
        scale = weight[n] * factor
        for k in range(G.shape[1]):
            value = np.int64(np.rint(G[n, k] * scale))
            block[n - begin, k] = value
            count += value != 0
    return count


@njit(cache=True, nogil=True)
def add_rows(codes, offsets, G, weight, factor, first, last, out):
    """out[bin of n, :] += weight[n]·G[n, :]·factor, rounded, for features first … last − 1.

    Where most entries are zero only the others are visited.
    """
    K = G.shape[1]
    block = np.empty((BLOCK, K), np.int64)
    rows, outputs, values = (
        np.empty(BLOCK * K, np.int64),
        np.empty(BLOCK * K, np.int64),
        np.empty(BLOCK * K, np.int64),
    )
    for begin in range(0, len(G), BLOCK):
        end = min(begin + BLOCK, len(G))
        count = _quantise(G, weight, factor, begin, end, block)
        if 4 * count >= (end - begin) * K:
            for j in range(first, last):
                column, offset = codes[j], offsets[j]
                for n in range(begin, end):
                    b = offset + column[n]
                    for k in range(K):
                        out[b, k] += block[n - begin, k]
            continue
        count = 0
        for n in range(begin, end):
            for k in range(K):
                if block[n - begin, k] != 0:
                    rows[count], outputs[count], values[count] = n, k, block[n - begin, k]
                    count += 1
        for j in range(first, last):
            column, offset = codes[j], offsets[j]
            for i in range(count):
                out[offset + column[rows[i]], outputs[i]] += values[i]


@njit(cache=True, nogil=True)
def add_rows_sparse(pointers, indices, codes, default, offsets, G, weight, factor, first, last, out):
    """As `add_rows`, for columns that store only the rows outside their default bin."""
    n_outputs = G.shape[1]
    quantised = np.empty(G.shape, np.int64)
    total = np.zeros(n_outputs, np.int64)
    for n in range(len(G)):
        scale = weight[n] * factor
        for k in range(n_outputs):
            quantised[n, k] = np.int64(np.rint(G[n, k] * scale))
            total[k] += quantised[n, k]
    for j in range(first, last):
        rest = offsets[j] + default[j]
        for k in range(n_outputs):
            out[rest, k] += total[k]
        for i in range(pointers[j], pointers[j + 1]):
            b, n = offsets[j] + codes[i], indices[i]
            for k in range(n_outputs):
                out[b, k] += quantised[n, k]
                out[rest, k] -= quantised[n, k]


@njit(cache=True, nogil=True)
def add_signs(codes, offsets, rows, plus, minus, weight, sign, first, last, out):
    """out[bin of n, plus] += sign·weight[n] and out[bin of n, minus] −= it, for rows[i] with plus[i] ≥ 0.

    An empty `rows` means all of them.
    """
    for begin in range(0, len(plus), BLOCK):
        end = min(begin + BLOCK, len(plus))
        for j in range(first, last):
            column, offset = codes[j], offsets[j]
            for i in range(begin, end):
                if plus[i] >= 0:
                    n = rows[i] if len(rows) > 0 else i
                    b, w = offset + column[n], sign * weight[n]
                    out[b, plus[i]] += w
                    out[b, minus[n]] -= w


@njit(cache=True, nogil=True)
def add_pairs(codes, offsets, column, weight, first, last, out):
    """out[bin of n, column[n]] += weight[n]: how much weight each bin shares with each value of a column."""
    n_samples = len(weight)
    for j in range(first, last):
        own = codes[j]
        for n in range(n_samples):
            out[offsets[j] + own[n], column[n]] += weight[n]


@njit(cache=True, nogil=True)
def add_pairs_sparse(pointers, indices, codes, default, offsets, column, weight, total, first, last, out):
    """As `add_pairs`, for columns that store only the rows outside their default bin."""
    for j in range(first, last):
        rest = offsets[j] + default[j]
        for c in range(len(total)):
            out[rest, c] += total[c]
        for i in range(pointers[j], pointers[j + 1]):
            n = indices[i]
            out[offsets[j] + codes[i], column[n]] += weight[n]
            out[rest, column[n]] -= weight[n]


@njit(cache=True, nogil=True)
def add_lookup(F, codes, table, start, stop):
    """F[n, :] += table[codes[n], :] for rows start … stop − 1."""
    for n in range(start, stop):
        c = codes[n]
        for k in range(F.shape[1]):
            F[n, k] += table[c, k]


def fixed_point_factor(largest: float) -> float:
    """Return a power of two that brings any mean of numbers up to `largest` just under 2^61."""
    return float(np.ldexp(1.0, 61 - int(np.ceil(np.log2(largest))))) if largest > 0.0 else 1.0
