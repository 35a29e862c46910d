"""Sums over the rows of each bin, in fixed point.

`codes` is (n_features, n_samples) uint8; bin b of feature j is row offsets[j] + b of every table.
"""

from typing import Any

import numpy as np
from numba import njit

#: Rows handled together: their gradients stay in the cache while all features are visited.
BLOCK = 512
#: Tables that rows are added to in turn (a power of two): rows next to each other are in the same leaf as a
#: rule, and one need not wait for the other.
APART = 4


@njit(cache=True, nogil=True)
def _fixed(number):
    return np.int64(np.rint(number))


@njit(cache=True, nogil=True)
def _quantise(G, weight, factor, begin, end, block):
    """Block = weight·G·factor, rounded, for rows begin … end − 1; return how many entries are not zero."""
    count = 0
    for n in range(begin, end):
        scale = weight[n] * factor
        for k in range(G.shape[1]):
            value = _fixed(G[n, k] * scale)
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
    total = np.zeros(n_outputs, np.int64)
    for n in range(len(G)):
        scale = weight[n] * factor
        for k in range(n_outputs):
            total[k] += _fixed(G[n, k] * scale)
    for j in range(first, last):
        rest = offsets[j] + default[j]
        for k in range(n_outputs):
            out[rest, k] += total[k]
        for i in range(pointers[j], pointers[j + 1]):
            b, n = offsets[j] + codes[i], indices[i]
            scale = weight[n] * factor
            for k in range(n_outputs):
                value = _fixed(G[n, k] * scale)
                out[b, k] += value
                out[rest, k] -= value


@njit(cache=True, nogil=True)
def add_pairs(codes, offsets, features, column, weight, factor, first, last, out):
    """out[bin of n, column[n]] += weight[n]·factor, rounded: what bins share with the values of a column.

    For features[first:last].
    """
    block = np.empty(BLOCK, np.int64)
    for begin in range(0, len(weight), BLOCK):
        end = min(begin + BLOCK, len(weight))
        for n in range(begin, end):
            block[n - begin] = _fixed(weight[n] * factor)
        for i in range(first, last):
            own, offset = codes[features[i]], offsets[features[i]]
            for n in range(begin, end):
                out[offset + own[n], column[n]] += block[n - begin]


@njit(cache=True, nogil=True)
def add_pairs_sparse(
    pointers, indices, codes, default, offsets, features, column, weight, factor, first, last, out
):
    """As `add_pairs`, for columns that store only the rows outside their default bin."""
    total = np.zeros(out.shape[1], np.int64)
    for n in range(len(weight)):
        total[column[n]] += _fixed(weight[n] * factor)
    for j in features[first:last]:
        rest = offsets[j] + default[j]
        for c in range(len(total)):
            out[rest, c] += total[c]
        for i in range(pointers[j], pointers[j + 1]):
            n = indices[i]
            w = _fixed(weight[n] * factor)
            out[offsets[j] + codes[i], column[n]] += w
            out[rest, column[n]] -= w


def leaf_tables(n_leaves: int, n_outputs: int, dtype: type = float) -> Any:
    """Return zeros for the sums in leaves, tables of weight and outputs that are to be added up."""
    return np.zeros((APART if n_outputs == 1 else 1, n_leaves, 1 + n_outputs), dtype)


# As in kernels/trees.py: one output is known to the compiler, and unsigned indices are faster.


@njit(cache=True, nogil=True)
def _add_lookup(F, codes, table, start, stop, K):
    for n in range(np.uint64(start), np.uint64(stop)):
        c = np.uint64(codes[n])
        for k in range(np.uint64(K)):
            F[n, k] += table[c, k]


@njit(cache=True, nogil=True)
def add_lookup(F, codes, table, start, stop):
    """F[n, :] += table[codes[n], :] for rows start … stop − 1."""
    if F.shape[1] == 1:
        _add_lookup(F, codes, table, start, stop, 1)
    else:
        _add_lookup(F, codes, table, start, stop, F.shape[1])


@njit(cache=True, nogil=True)
def _add_leaf_sums(leaf, weight, columns, out, K):
    for n in range(np.uint64(len(leaf))):
        row, w = out[n & np.uint64(len(out) - 1), np.uint64(leaf[n])], weight[n]
        row[0] += w
        for k in range(np.uint64(K)):
            row[np.uint64(1) + k] += w * columns[n, k]


@njit(cache=True, nogil=True)
def add_leaf_sums(leaf, weight, columns, out):
    """Add weight and, behind it, weight · columns to `leaf_tables`."""
    if columns.shape[1] == 1:
        _add_leaf_sums(leaf, weight, columns, out, 1)
    else:
        _add_leaf_sums(leaf, weight, columns, out, columns.shape[1])


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def dot(A, B):
    """Return the inner product of two tables; always in the same order."""
    a, b, total = A.ravel(), B.ravel(), 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


def fixed_point_factor(largest: float) -> float:
    """Return a power of two that brings any mean of numbers up to `largest` just under 2^61."""
    return float(np.ldexp(1.0, 61 - int(np.ceil(np.log2(largest))))) if largest > 0.0 else 1.0
