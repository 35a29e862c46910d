"""The sums of all bins of a node."""

import numpy as np

from convexboost.core.bits import local_array, local_table
from convexboost.core.compiling import kernel, part
from convexboost.kernels.vectors import FEW_WORDS, WORDS, add_few_words, add_words

#: Rows whose codes and values are copied next to each other: they stay in the cache for all features.
BLOCK = 256
#: Features that are copied together.
COPIED = 256
#: Rows of fewer features are not worth a copy.
NARROW = 16
#: A histogram of at most this many numbers stays in the nearest cache.
SMALL = 8192

index = np.uint64
ZERO, ONE, TWO = index(0), index(1), index(2)
N_ROWS, N_COPIED = index(BLOCK), index(COPIED)


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
def _add_several(values, codes, order, shift, begin, end, out):
    """Do what `add_histogram` does, for several outputs."""
    n_features = index(codes.shape[1])
    block, rows = local_table(BLOCK, COPIED, np.uint8), local_array(BLOCK, np.uint64)
    for first in range(ZERO, n_features, N_COPIED):
        count = N_COPIED if first + N_COPIED < n_features else n_features - first
        for start in range(begin, end, BLOCK):
            size = index(min(BLOCK, end - start))
            for i in range(size):  # copied first: the loads do not wait for each other
                rows[i] = order[index(start) + i]
                for j in range(count):
                    block[i, j] = codes[rows[i], first + j]
            if out.size <= SMALL:  # row by row: neighbouring rows are often in the same bin of a feature
                for i in range(size):
                    for j in range(count):
                        add_cell(out, ((first + j) << shift) | index(block[i, j]), values, rows[i])
            else:
                for j in range(count):
                    for i in range(size):
                        add_cell(out, ((first + j) << shift) | index(block[i, j]), values, rows[i])


@part
def add_histogram(values, codes, order, shift, begin, end, out):
    """out[bin of n] += values[n] for the rows order[begin:end] and all features.

    Codes and values are copied in blocks, unless there are few features.  Two rows are added at a time,
    because the additions for one do not wait for the other.
    """
    if values.ndim > 1:
        _add_several(values, codes, order, shift, begin, end, out)
        return
    n_features, is_narrow = index(codes.shape[1]), codes.shape[1] < NARROW
    block, plain = local_table(BLOCK, COPIED, np.uint8), local_array(BLOCK, np.int32)
    copies = local_array(BLOCK, np.int64)
    last_row = index(end)
    for i in range(N_ROWS):
        plain[i] = i
    for first in range(ZERO, n_features, N_COPIED):
        last = first + N_COPIED if first + N_COPIED < n_features else n_features
        start = index(begin)
        while start < last_row:
            # The rows at `some`, and where their codes and values are.
            bins, cells, some, m, stop = codes, values, order, start, last_row
            if not is_narrow:
                size = N_ROWS if last_row - start > N_ROWS else last_row - start
                for i in range(size):  # copied first: the loads do not wait for each other
                    n = index(order[start + i])
                    copies[i] = values[n]
                    for j in range(last - first):
                        block[i, j] = codes[n, first + j]
                bins, cells, some, m, stop = block, copies, plain, ZERO, size
            for i in range(m, stop, TWO):
                a, is_last = index(some[i]), i + ONE == stop
                b = a if is_last else index(some[i + ONE])
                v, w = cells[a], np.int64(0) if is_last else cells[b]
                for j in range(last - first):
                    place = (first + j) << shift
                    out[place | bins[a, j]] += v
                    out[place | bins[b, j]] += w
            start += stop - m


@kernel(allocates=False)
def add_part(features, rows, begin, end, out):
    """Do what `add_histogram` does, for a thread."""
    add_histogram(rows.values, features.codes, rows.order, features.shift, begin, end, out)


@part
def clear(hist, n_bins, shift):
    """Set the sums of all features to 0."""
    for j in range(index(len(n_bins))):
        first = j << shift
        for b in range(first, first + index(n_bins[j])):
            if hist.ndim == 1:
                hist[b] = 0
            else:
                for k in range(index(hist.shape[1])):
                    hist[b, k] = 0


@part
def subtract(hist, other, n_bins, shift):
    """Hist -= other, for all features."""
    for j in range(index(len(n_bins))):
        first = j << shift
        for b in range(first, first + index(n_bins[j])):
            if hist.ndim == 1:
                hist[b] -= other[b]
            else:
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
