"""The sums of all bins of a node."""

import numpy as np

from convexboost.core.bits import local_array, local_table
from convexboost.core.compiling import kernel, part
from convexboost.kernels.vectors import WORDS, FEW_WORDS, add_few_words, add_words

#: Rows whose codes and values are copied next to each other: they stay in the cache for all features.
BLOCK = 256
#: Features that are copied together.
COPIED = 256
#: Rows of fewer features are not worth a copy.
NARROW = 16
#: A histogram of at most this many numbers stays in the nearest cache.
SMALL = 8192

index = np.uint64


@part
def weight_of(table, b):
    """Return the weight of a cell."""
    if table.ndim == 1:
        return np.int64(np.int32(table[b]))
    return np.int64(table[b, 0])


@part
def number_of(table, b, k):
    """Return the k-th number of a cell."""
    if table.ndim == 1:
        return np.int64(np.int32(table[b])) if k == 0 else table[b] >> 32
    return np.int64(table[b, k])


@part
def add_cell(out, to, values, n):
    """out[to] += values[n]."""
    if out.ndim == 1:
        out[to] += values[n]
    else:
        width = index(out.shape[1])
        if width == FEW_WORDS:
            add_few_words(out, to * width, values, n * width)
        else:
            for k in range(index(0), width, index(WORDS)):
                add_words(out, to * width + k, values, n * width + k)


@part
def _add_rows(codes, values, order, rows, features, shift, out):
    """Add rows to the bins of some features; both are given as (first, end), and the first code is theirs.

    Two rows at a time, because the additions for one do not wait for the other.
    """
    begin, end = index(rows[0]), index(rows[1])
    first, count = index(features[0]), index(features[1] - features[0])
    for i in range(begin, end, index(2)):
        is_last = i + index(1) == end
        m = index(order[i])
        n = m if is_last else index(order[i + index(1)])
        v, w = values[m], np.int64(0) if is_last else values[n]
        for j in range(count):
            place = (first + j) << shift
            out[place | index(codes[m, j])] += v
            out[place | index(codes[n, j])] += w


@part
def _add_one(values, codes, order, shift, begin, end, out):
    """Do what `add_histogram` does, for one output."""
    n_features = codes.shape[1]
    if n_features < NARROW:
        _add_rows(codes, values, order, (begin, end), (0, n_features), shift, out)
        return
    block, plain = local_table(BLOCK, COPIED, np.uint8), local_array(BLOCK, np.int32)
    copies = local_array(BLOCK, np.int64)
    for i in range(BLOCK):
        plain[i] = i
    for first in range(0, n_features, COPIED):
        last = min(first + COPIED, n_features)
        for start in range(begin, end, BLOCK):
            size = min(BLOCK, end - start)
            for i in range(index(size)):  # copied first: the loads do not wait for each other
                n = index(order[index(start) + i])
                copies[i] = values[n]
                for j in range(index(last - first)):
                    block[i, j] = codes[n, index(first) + j]
            _add_rows(block, copies, plain, (0, size), (first, last), shift, out)


@part
def _add_several(values, codes, order, shift, begin, end, out):
    """Do what `add_histogram` does, for several outputs."""
    n_features, width = codes.shape[1], values.shape[1]
    block, copies = np.empty((BLOCK, n_features), np.uint8), np.empty((BLOCK, width), np.int32)
    for start in range(begin, end, BLOCK):
        size = index(min(BLOCK, end - start))
        for i in range(size):  # copied first: the loads do not wait for each other
            n = index(order[index(start) + i])
            for j in range(index(n_features)):
                block[i, j] = codes[n, j]
            for k in range(index(width)):
                copies[i, k] = values[n, k]
        if out.size <= SMALL:  # row by row: neighbouring rows are often in the same bin of a feature
            for i in range(size):
                for j in range(index(n_features)):
                    add_cell(out, (j << shift) | index(block[i, j]), copies, i)
        else:
            for j in range(index(n_features)):
                for i in range(size):
                    add_cell(out, (j << shift) | index(block[i, j]), copies, i)


@part
def add_histogram(values, codes, order, shift, begin, end, out):
    """out[bin of n] += values[n] for the rows order[begin:end] and all features."""
    if values.ndim == 1:
        _add_one(values, codes, order, shift, begin, end, out)
    else:
        _add_several(values, codes, order, shift, begin, end, out)


@kernel
def add_part(features, rows, begin, end, out):
    """Do what `add_histogram` does, for a thread."""
    add_histogram(rows.values, features.codes, rows.order, features.shift, begin, end, out)


@part
def clear(hist):
    """Set all sums to 0."""
    if hist.ndim == 1:
        for b in range(index(len(hist))):
            hist[b] = 0
    else:
        for b in range(index(len(hist))):
            for k in range(index(hist.shape[1])):
                hist[b, k] = 0


@part
def subtract(hist, other):
    """hist -= other."""
    if hist.ndim == 1:
        for b in range(index(len(hist))):
            hist[b] -= other[b]
    else:
        for b in range(index(len(hist))):
            for k in range(index(hist.shape[1])):
                hist[b, k] -= other[b, k]


@part
def add_up(hist, n_bins, out):
    """Write the sum of the first bins, those of a feature."""
    if hist.ndim == 1:
        sum_ = np.int64(0)
        for b in range(n_bins):
            sum_ += hist[b]
        out[0], out[1] = np.int32(sum_), sum_ >> 32
    else:
        for k in range(len(out)):
            out[k] = 0.0
        for b in range(n_bins):
            for k in range(len(out)):
                out[k] += hist[b, k]
