"""Sums over the rows of each bin, in fixed point: exact, whatever the order of the rows."""

from typing import Any, NamedTuple

import numpy as np

from convexboost.core.compiling import kernel

#: Rows handled together: their gradients stay in the cache while all features are visited.
BLOCK = 512


class DenseBins(NamedTuple):
    """The bins of all rows and features; bin b of feature j is row offsets[j] + b of a table."""

    codes: Any  #: uint8, (n_features, n_rows)
    offsets: Any  #: int64, (n_features + 1,)


class SparseBins(NamedTuple):
    """The bins of all rows and features, except that of each feature where most rows are."""

    pointers: Any  #: int64: the entries of feature j are pointers[j] … pointers[j + 1] − 1
    indices: Any  #: int64: the row of each entry
    codes: Any  #: uint8: the bin of each entry
    default: Any  #: int64: for each feature, the bin of all other rows
    offsets: Any  #: int64: as in `DenseBins`


def fixed_point_factor(largest: float) -> float:
    """Return a power of two that brings any mean of numbers up to `largest` just under 2^61."""
    return float(np.ldexp(1.0, min(61 - int(np.ceil(np.log2(largest))), 1000))) if largest > 0.0 else 1.0


@kernel
def _fixed(number):
    return np.int64(np.rint(number))


@kernel
def _quantise(G, weight, factor, begin, end, block):
    """Write weight·G·factor, rounded, for rows begin … end − 1; return how many entries are not zero."""
    count = 0
    for n in range(begin, end):
        scale = weight[n] * factor
        for k in range(G.shape[1]):
            value = _fixed(G[n, k] * scale)
            block[n - begin, k] = value
            count += value != 0
    return count


@kernel
def add_rows(bins, features, G, weight, factor, out):
    """out[bin of n, :] += weight[n]·G[n, :]·factor, rounded, for some features.

    If most entries are zero, only the others are visited.
    """
    codes, offsets, K = bins.codes, bins.offsets, G.shape[1]
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
            for j in features:
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
        for j in features:
            column, offset = codes[j], offsets[j]
            for i in range(count):
                out[offset + column[rows[i]], outputs[i]] += values[i]


@kernel
def add_rows_sparse(bins, features, G, weight, factor, out):
    """Do what `add_rows` does, for `SparseBins`."""
    pointers, indices, codes, default, offsets = bins
    n_outputs = G.shape[1]
    total = np.zeros(n_outputs, np.int64)
    for n in range(len(G)):
        scale = weight[n] * factor
        for k in range(n_outputs):
            total[k] += _fixed(G[n, k] * scale)
    for j in features:
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


@kernel
def add_pairs(bins, features, column, weight, factor, out):
    """out[bin of n, column[n]] += weight[n]·factor, rounded, for some features.

    This is the weight that each bin shares with each value of a column.
    """
    block = np.empty(BLOCK, np.int64)
    for begin in range(0, len(weight), BLOCK):
        end = min(begin + BLOCK, len(weight))
        for n in range(begin, end):
            block[n - begin] = _fixed(weight[n] * factor)
        for j in features:
            own, offset = bins.codes[j], bins.offsets[j]
            for n in range(begin, end):
                out[offset + own[n], column[n]] += block[n - begin]


@kernel
def add_pairs_sparse(bins, features, column, weight, factor, out):
    """Do what `add_pairs` does, for `SparseBins`."""
    pointers, indices, codes, default, offsets = bins
    total = np.zeros(out.shape[1], np.int64)
    for n in range(len(weight)):
        total[column[n]] += _fixed(weight[n] * factor)
    for j in features:
        rest = offsets[j] + default[j]
        for c in range(len(total)):
            out[rest, c] += total[c]
        for i in range(pointers[j], pointers[j + 1]):
            n = indices[i]
            w = _fixed(weight[n] * factor)
            out[offsets[j] + codes[i], column[n]] += w
            out[rest, column[n]] -= w
