"""Nodes of few rows, whose sums are found row by row: they need no histogram."""

import numpy as np

from convexboost.core.compiling import part
from convexboost.kernels.trees.data import CHUNK, SIDES
from convexboost.kernels.trees.histograms import add_cell
from convexboost.kernels.vectors import lowest_bit

NO_BITS, FIVE = np.uint64(0), np.uint64(5)

index = np.uint64


@part
def copy_values(values, order, begin, end, out, total):
    """Copy weights and targets column by column, and add them up."""
    if values.ndim == 1:
        sum_ = np.int64(0)
        for i in range(index(end - begin)):
            value = values[index(order[index(begin) + i])]
            out[index(0), i], out[index(1), i] = np.int32(value), value >> 32
            sum_ += value
        total[0], total[1] = np.int32(sum_), sum_ >> 32
    else:
        for k in range(index(len(total))):
            sum_ = np.int64(0)
            for i in range(index(end - begin)):
                value = values[index(order[index(begin) + i]), k]
                out[k, i] = value
                sum_ += value
            total[k] = sum_


@part
def copy_codes(codes, order, begin, end, first, out):
    """Copy the bins of up to CHUNK features, column by column."""
    count = index(min(CHUNK, codes.shape[1] - first))
    for i in range(index(end - begin)):
        n = index(order[index(begin) + i])
        for j in range(count):
            out[j, i] = codes[n, index(first) + j]


@part
def draw_sides(codes, at, n_rows, missing, chance, values, table):
    """Draw a cut of the column `at`; return the last bin that goes left, −1 if there is none.

    Behind the table are written the sum of the rows that go left, and that of the rows with missing values.
    Where all rows but those with missing values are in one bin, they go left.
    """
    at, size, chosen = index(at), index(n_rows), index(len(values) - 1)
    low, high = np.uint8(missing), np.uint8(0)
    for i in range(size):
        low, high = min(low, codes[at, i]), max(high, codes[at, i])
    has_missing, last = np.int64(high) == missing, np.int32(high)
    if has_missing:
        last = np.int32(0)
        for i in range(size):
            c = np.int32(codes[at, i])
            last = max(last, np.int32(c * np.int32(c != missing)))
    if low > last or (low == last and not has_missing):
        return -1
    cut = np.int64(low) + int(chance * (np.int64(last) - np.int64(low))) if low < last else missing - 1
    if table.ndim == 1:
        table[SIDES + 1] = 0
    else:
        table[SIDES + 1, 0] = 0
    first, last_bin = np.uint8(0), np.uint8(cut)
    for side in range(2 if has_missing else 1):
        for i in range(size):
            values[chosen, i] = -np.int32((codes[at, i] >= first) & (codes[at, i] <= last_bin))
        first, last_bin, sum_of_all = np.uint8(missing), np.uint8(missing), np.int64(0)
        for k in range(chosen):
            sum_ = np.int32(0)
            for i in range(size):
                sum_ = np.int32(sum_ + (values[k, i] & values[chosen, i]))
            if table.ndim == 1:
                sum_of_all += np.int64(sum_) << np.int64(k << FIVE)
            else:
                table[SIDES + side, k] = sum_
        if table.ndim == 1:
            table[SIDES + side] = sum_of_all
    return cut


@part
def tabulate(values, codes, order, begin, end, feature, table, used):
    """Make the histogram of one feature; return how many bins hold rows: `used` receives them."""
    j, count = index(feature), 0
    for i in range(used[256]):
        if table.ndim == 1:
            table[used[i]] = 0
        else:
            for k in range(table.shape[1]):
                table[used[i], k] = 0
    w0, w1, w2, w3 = NO_BITS, NO_BITS, NO_BITS, NO_BITS
    for i in range(index(begin), index(end)):
        n = index(order[i])
        c = index(codes[n, j])
        word, bit = c >> index(6), index(1) << (c & index(63))
        w0 |= bit if word == index(0) else NO_BITS
        w1 |= bit if word == index(1) else NO_BITS
        w2 |= bit if word == index(2) else NO_BITS
        w3 |= bit if word == index(3) else NO_BITS
        add_cell(table, c, values, n)
    for first, word in ((0, w0), (64, w1), (128, w2), (192, w3)):
        while word != NO_BITS:
            used[count] = first + lowest_bit(word)
            word &= word - index(1)
            count += 1
    used[256] = count
    return count
