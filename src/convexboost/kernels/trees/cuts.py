"""The cuts of one feature in a node, and the set of bins that the best one sends left."""

from typing import Any, NamedTuple

import numpy as np

from convexboost.core.bits import local_array
from convexboost.core.compiling import part
from convexboost.core.tolerances import BETTER
from convexboost.kernels.trees.histograms import number_of, weight_of

index = np.uint64
ALL_BITS, NO_BITS, ONE = index(0xFFFFFFFFFFFFFFFF), index(0), index(1)


class Cuts(NamedTuple):
    """The cuts of one feature in a node: a prefix of `bins` goes left."""

    first: int  #: bin 0 of the feature in its table
    bins: Any  #: in the order in which they are cut
    size: int  #: how many bins there are
    sign: int  #: how leaf values must move from left to right; 0: in any way
    only: int  #: the one cut that is tried; −1: all of them
    missing: int  #: the bin of missing values in the table
    missing_left: bool  #: whether they go left in any case
    l2: float  #: added to the weight of a leaf


@part
def scan(table, cuts, total, left, base, rules, best):
    """Return (gain, cut) for the best cut that beats `best`; (best, −1) if none does.

    `base` is the score of the node without a split; `left` is overwritten.  For one output, all scores are
    found first, by vector instructions.
    """
    if table.ndim > 1:
        return _scan_several(table, cuts, total, left, base, rules, best)
    first_bin, bins, size, sign, only, missing, missing_left, l2 = cuts
    pairs, scores = local_array(257, np.int64), local_array(257, np.float64)
    least, weight, sum_ = rules.min_weight, total[0], total[1]
    pair = table[first_bin + missing] if missing_left else np.int64(0)
    first, last = (0, size) if only < 0 else (only, only + 1)
    for i in range(index(last)):
        pair += table[index(first_bin + bins[i])]
        pairs[i] = pair
    while first < last and np.int32(pairs[first]) < least:
        first += 1
    while first < last and weight - np.int32(pairs[last - 1]) < least:
        last -= 1
    bar, hits, cut = best * (1.0 + BETTER) + base, 0, -1
    for i in range(index(first), index(max(first, last))):
        w, g = np.float64(np.int32(pairs[i])), np.float64(pairs[i] >> 32)
        a, c, r = w + l2, weight - w + l2, sum_ - g
        scores[i] = (g * g * c + r * r * a) / (a * c)
        hits += scores[i] > bar
    if hits == 0:
        return best, cut
    for i in range(first, last):
        if scores[i] > bar and (only >= 0 or weight_of(table, first_bin + bins[i]) > 0):
            w, g = np.float64(np.int32(pairs[i])), np.float64(pairs[i] >> 32)
            if sign == 0 or sign * ((sum_ - g) * (w + l2) - g * (weight - w + l2)) >= 0.0:
                best, cut = scores[i] - base, i
                bar = best * (1.0 + BETTER) + base
    return best, cut


@part(fastmath={"reassoc", "contract"})
def _is_monotone(left, total, l2, sign, tie):
    """Return whether the leaf values move by `sign` from left to right, in every output.

    An output may be equal on both sides, up to the rounding of `quantise`.
    """
    for k in range(1, len(left)):
        right = (total[k] - left[k]) / (total[0] - left[0] + l2)
        if sign * (right - left[k] / (left[0] + l2)) < -tie:
            return False
    return True


@part(fastmath={"reassoc", "contract"})
def _scan_several(table, cuts, total, left, base, rules, best):
    """Return what `scan` does, for several outputs."""
    first, bins, size, sign, only, missing, missing_left, l2 = cuts
    least, width, cut = rules.min_weight, table.shape[1], -1
    for k in range(width):
        left[k] = table[first + missing, k] if missing_left else 0.0
    for i in range(size):
        b = first + bins[i]
        if table[b, 0] <= 0 and i != only:
            continue
        for k in range(width):
            left[k] += table[b, k]
        if left[0] < least or i < only:
            continue
        if total[0] - left[0] < least or (only >= 0 and i > only):
            break
        a, c, squares, others = left[0] + l2, total[0] - left[0] + l2, 0.0, 0.0
        for k in range(1, width):
            r = total[k] - left[k]
            squares += left[k] * left[k]
            others += r * r
        gain = squares / a + others / c - base
        if gain > best * (1.0 + BETTER) and (sign == 0 or _is_monotone(left, total, l2, sign, rules.tie)):
            best, cut = gain, i
    return best, cut


@part
def draw_cut(table, first_bin, bins, count, chance):
    """Return a cut between the first and the last bin that hold rows, −1 if there are no two such bins."""
    first, last = 0, count - 1
    while first < last and weight_of(table, first_bin + bins[first]) <= 0:
        first += 1
    while first < last and weight_of(table, first_bin + bins[last]) <= 0:
        last -= 1
    return first + int(chance * (last - first)) if first < last else -1


@part
def sort_categories(table, first, n_bins, bins, sums, l2):
    """Sort the bins of categories by their means, `l2` added to their weights; return how many there are.

    Means of several outputs are compared along the direction in which a category differs most from all.
    """
    total, direction, key, count = sums[0], sums[1], local_array(257, np.float64), 0
    width = len(total)
    for k in range(width):
        total[k] = direction[k] = 0.0
    for b in range(n_bins):
        if weight_of(table, first + b) > 0:
            bins[count] = b
            count += 1
            for k in range(width):
                total[k] += number_of(table, first + b, k)
    if count == 0:
        return 0
    most = 0.0
    for i in range(count):
        b = first + bins[i]
        size, weight = 0.0, weight_of(table, b)
        for k in range(1, width):
            d = number_of(table, b, k) - weight * total[k] / total[0]
            size += d * d
        size /= weight
        if size > most * (1.0 + BETTER):
            most = size
            for k in range(1, width):
                direction[k] = number_of(table, b, k) / weight - total[k] / total[0]
    largest = 0.0
    for i in range(count):
        b, value = first + bins[i], 0.0
        weight = weight_of(table, b)
        for k in range(1, width):
            value += direction[k] * (number_of(table, b, k) - weight * total[k] / total[0])
        value /= weight + l2
        key[bins[i]] = value
        largest = max(largest, abs(value))
    if largest > 0.0:
        for i in range(count):  # rounding must not decide the order
            key[bins[i]] = np.rint(key[bins[i]] / (1e-6 * largest))
    for i in range(1, count):  # insertion sort: few bins
        b = bins[i]
        at = i
        while at > 0 and key[bins[at - 1]] > key[b]:
            bins[at] = bins[at - 1]
            at -= 1
        bins[at] = b
    return count


@part
def write_mask(table, cuts, cut, top, n_bins, total, mask):
    """Send bins left, and decide where bins go that have no rows in this node.

    All bins up to `top` go left or, where it is −1, the first categories of `cuts`.  Missing values go with
    the larger part of the rows, and categories go with the missing values.
    """
    first, bins, _, _, _, lost, missing_left, _ = cuts
    weight, missing = 0, n_bins - 1
    for w in range(4):
        mask[w] = ALL_BITS if top >= 64 * w + 63 else NO_BITS
    if top >= 0:
        mask[top >> 6] = ALL_BITS >> index(63 - (top & 63))
    for i in range(cut + 1):
        b = bins[i]
        weight += weight_of(table, first + b)
        if top < 0:
            mask[b >> 6] |= ONE << index(b & 63)
            missing_left = missing_left or b == missing
    if weight_of(table, first + lost) <= 0:
        missing_left = weight > (total - weight) * (1.0 + BETTER)
    if missing_left:
        for b in range(0 if top < 0 else missing, missing + 1):
            if b == missing or weight_of(table, first + b) <= 0:
                mask[b >> 6] |= ONE << index(b & 63)
