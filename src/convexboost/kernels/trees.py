"""Growing a tree with vector leaves on binned rows, best leaf first.

Bin b of the j-th feature is row (j << shift) + b of a histogram; the last bin of a feature holds its missing
values.  Weights and targets are whole numbers (`target.quantise`): sums are exact, whatever the order of the
rows and the number of threads, and a difference of histograms leaves exactly 0 in an empty bin.  A split is a
set of bins that go left, 256 bits, for numeric and categorical features alike.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from convexboost.core.space import MOST_COUNTS
from convexboost.core.tolerances import BETTER
from convexboost.kernels.compiling import kernel
from convexboost.kernels.hashing import draw
from convexboost.kernels.vectors import (
    FEW_WORDS,
    WORDS,
    add_few_words,
    add_pair,
    add_words,
    lowest_bit,
    read_pair,
)

#: Rows whose codes and values are copied next to each other: they stay in the cache for all features.
BLOCK = 256
#: Rows of fewer features are not worth a copy.
NARROW = 16
#: A histogram of at most this many numbers stays in the nearest cache.
SMALL = 8192
#: Features whose codes are copied together for a small node.
CHUNK = 64
NO_BITS = np.uint64(0)
#: All weights, and all weights times targets, add up to at most this: a sum has 32 bits.
LARGEST = MOST_COUNTS


class Features(NamedTuple):
    """The features that a tree may split."""

    codes: Any  #: uint8, (n_rows, n_features): their bins, row by row
    columns: Any  #: uint8, (n_all_features, n_rows): the bins of all features, column by column
    numbers: Any  #: int64: which of all features they are
    n_bins: Any  #: int64: the number of bins, the missing one included
    categorical: Any  #: bool
    monotone: Any  #: int64: 1 where leaf values must rise along a feature, −1 where they must fall, else 0
    shift: Any  #: uint64: a feature has 1 << shift rows in a histogram


class Rows(NamedTuple):
    """The rows that a tree is grown on."""

    values: Any  #: int32, (n_all_rows, `n_columns`): weight and, behind it, weight times target
    order: Any  #: int32: their numbers; those of a node are order[begin:end]
    spare: Any  #: int32: as long as `order`, for the rows that go right


class Rules(NamedTuple):
    """Which splits are allowed, in the units of `Rows.values`, and who makes them."""

    max_leaves: int
    max_depth: int
    min_weight: float  #: of a leaf; positive
    min_gain: float
    l2: float  #: added to the weight of a leaf
    category_l2: float  #: added to the weight of a category, and of a leaf that a set of categories makes
    tie: float  #: means that differ by less may be equal but for rounding
    is_random: bool  #: one cut drawn for each feature and node, instead of all of them
    seed: int  #: of these cuts
    few: int = 0  #: nodes of at most this many rows have no histogram: their splits are found row by row
    max_rows: float = math.inf  #: nodes with more rows are left to the caller of `grow`, who has threads


#: A node of a tree in the making; children come in pairs, after their parent.  Nodes are an array of records:
#: a kernel needs time to take each array that it is given, and small trees are grown in 100 µs.
NODE = np.dtype(
    [
        ("begin", np.int64),  # its rows are order[begin:end]
        ("end", np.int64),
        ("slot", np.int64),  # the number of its histogram, −1 where it has few rows
        ("depth", np.int64),
        ("gain", np.float64),  # of its best split
        ("split", np.int64),  # the feature of that split, as it is numbered in `Features`
        ("feature", np.int64),  # the number of the feature that it splits among all features, −1 for a leaf
        ("child", np.int64),  # its left child; the right one is next to it
    ]
)


def root(n_rows: int, max_leaves: int) -> tuple[Any, Any]:
    """Return a tree that is a leaf, with room to grow.

    That is an array of `NODE`, and masks, uint64, (n_nodes, 4): the bins that go left.
    """
    nodes = np.zeros(2 * max_leaves - 1, NODE)
    nodes["end"][0] = n_rows
    nodes["feature"] = nodes["child"] = -1
    return nodes, np.zeros((len(nodes), 4), np.uint64)


def n_columns(n_outputs: int) -> int:
    """Return the width of `Rows.values`: two, or whole groups of words."""
    if n_outputs < FEW_WORDS:
        return 2 if n_outputs == 1 else FEW_WORDS
    return -(-(n_outputs + 1) // WORDS) * WORDS


# -- histograms ----------------------------------------------------------------------------------------


@kernel(inline="always")
def _add_row(out, to, values, at, width):
    """out.flat[to : to + width] += values.flat[at : at + width]."""
    if width == FEW_WORDS:
        add_few_words(out, to, values, at)
    else:
        for k in range(np.uint64(0), np.uint64(width), np.uint64(WORDS)):
            add_words(out, to + k, values, at + k)


@kernel(inline="always")
def _add_pairs(codes, shift, V, order, begin, end, out):
    """Do what `add_histogram` does, for one output.

    Weight and target of a row are added as one number of 64 bits: weights are not negative and their sums
    have 31 bits, so nothing is carried from one half to the other.  Two rows at a time, because the additions
    for one do not wait for the other.
    """
    for i in range(np.uint64(begin), np.uint64(end), np.uint64(2)):
        is_last = i + np.uint64(1) == np.uint64(end)
        m = np.uint64(order[i])
        n = m if is_last else np.uint64(order[i + np.uint64(1)])
        v, w = read_pair(V, m), np.int64(0) if is_last else read_pair(V, n)
        for j in range(np.uint64(codes.shape[1])):
            add_pair(out, (j << shift) | np.uint64(codes[m, j]), v)
            add_pair(out, (j << shift) | np.uint64(codes[n, j]), w)


@kernel
def add_histogram(features, rows, begin, end, out):
    """out[bin of n] += values[n] for the rows order[begin:end] and all features."""
    codes, shift, V, order = features.codes, features.shift, rows.values, rows.order
    n_features, width = codes.shape[1], V.shape[1]
    if width == 2 and n_features < NARROW:
        _add_pairs(codes, shift, V, order, begin, end, out)
        return
    block, plain = np.empty((BLOCK, n_features), np.uint8), np.empty(BLOCK, np.int32)
    values = np.empty((BLOCK, width), np.int32)
    for i in range(BLOCK):
        plain[i] = i
    for start in range(begin, end, BLOCK):
        size = np.uint64(min(BLOCK, end - start))
        for i in range(size):  # copied first: the loads do not wait for each other
            n = np.uint64(order[start + i])
            for j in range(n_features):
                block[np.uint64(i), np.uint64(j)] = codes[n, np.uint64(j)]
            for k in range(width):
                values[np.uint64(i), np.uint64(k)] = V[n, np.uint64(k)]
        if width == 2:
            _add_pairs(block, shift, values, plain, np.int64(0), np.int64(size), out)  # compiled once
        elif out.size <= SMALL:  # row by row: neighbouring rows are often in the same bin of a feature
            for i in range(size):
                at = np.uint64(i) * np.uint64(width)
                for j in range(np.uint64(n_features)):
                    to = ((j << shift) | np.uint64(block[np.uint64(i), j])) * np.uint64(width)
                    _add_row(out, to, values, at, width)
        else:
            for j in range(n_features):
                first = np.uint64(j) << shift
                for i in range(size):
                    b = first | np.uint64(block[np.uint64(i), np.uint64(j)])
                    to, at = b * np.uint64(width), np.uint64(i) * np.uint64(width)
                    _add_row(out, to, values, at, width)


# -- few rows ------------------------------------------------------------------------------------------


class Room(NamedTuple):
    """Where splits are searched; kept from one tree to the next."""

    hists: Any  #: int32, (n_slots or 1, rows of a histogram, width)
    # For one feature at a time:
    left: Any  #: float64, (width,): the sum of the bins that go left
    bins: Any  #: int64: in the order in which they are cut
    key: Any  #: float64: by which categories are sorted
    plain: Any  #: int64: 0, 1, 2, …
    pairs: Any  #: int64: sums of bins
    scores: Any  #: float64: of cuts
    # For a node of few rows:
    codes: Any  #: uint8, (CHUNK, n_rows): the bins of some features, column by column
    values: Any  #: int32, (width, n_rows): weights and targets, column by column
    chosen: Any  #: int32: −1 for the rows that are summed, 0 for the others
    table: Any  #: int32, (256, width): the histogram of a feature
    used: Any  #: int64: the bins of `table` that are not 0; the last entry is their number
    sides: Any  #: int32, (2, width): the sum of the rows that go left, and of those with missing values

    @classmethod
    def of(cls, n_slots: int, n_bins: int, width: int, few: int) -> Room:
        """Return room for so many histograms, and for nodes of so few rows."""
        return cls(
            np.zeros((n_slots or 1, n_bins if n_slots else 0, width), np.int32),
            np.empty(width),
            np.empty(257, np.int64),
            np.empty(257),
            np.arange(257),
            np.empty(257, np.int64),
            np.empty(257),
            np.empty((CHUNK, few + CHUNK), np.uint8),
            np.empty((width, few), np.int32),
            np.empty(few, np.int32),
            np.zeros((256, width), np.int32),
            np.zeros(257, np.int64),
            np.zeros((2, width), np.int32),
        )


@kernel
def _copy_values(room, rows, begin, end, total):
    """Copy weights and targets, and add them up."""
    order, V = rows.order, rows.values
    for k in range(np.uint64(len(total))):
        sum_ = np.int64(0)
        for i in range(np.uint64(end - begin)):
            value = V[np.uint64(order[np.uint64(begin) + i]), k]
            room.values[k, i] = value
            sum_ += value
        total[k] = sum_


@kernel
def _copy_codes(room, codes, order, begin, end, first):
    """Copy the bins of up to CHUNK features."""
    count = np.uint64(min(CHUNK, codes.shape[1] - first))
    for i in range(np.uint64(end - begin)):
        n = np.uint64(order[np.uint64(begin) + i])
        for j in range(count):
            room.codes[j, i] = codes[n, np.uint64(first) + j]


@kernel
def _extent(room, at, size, missing):
    """Return the first and the last bin that hold rows, without the missing one, and whether that does."""
    low, high, codes = np.uint8(missing), np.uint8(0), room.codes
    for i in range(np.uint64(size)):
        low, high = min(low, codes[at, i]), max(high, codes[at, i])
    some, last = np.int64(high) == missing, np.int32(high)
    if some:
        last = np.int32(0)
        for i in range(np.uint64(size)):
            c = np.int32(codes[at, i])
            last = max(last, np.int32(c * np.int32(c != missing)))
    return np.int64(low), np.int64(last), some


@kernel
def _sum_chosen(room, size, side):
    """Write the sum of the rows that are chosen."""
    values, chosen, sides = room.values, room.chosen, room.sides
    for k in range(np.uint64(len(values))):
        sum_ = np.int32(0)
        for i in range(np.uint64(size)):
            sum_ = np.int32(sum_ + (values[k, i] & chosen[i]))
        sides[side, k] = sum_


@kernel
def _draw_sides(room, at, size, missing, place):
    """Draw a cut and write the sums of its sides; return the last bin that goes left, −1 if there is none.

    Where all rows but those with missing values are in one bin, they go left.
    """
    low, high, some = _extent(room, at, size, missing)
    if low > high or (low == high and not some):
        return -1
    cut = low + int(place * (high - low)) if low < high else missing - 1
    codes, chosen, top = room.codes, room.chosen, np.uint8(cut)
    for i in range(np.uint64(size)):
        chosen[i] = -np.int32(codes[at, i] <= top)
    _sum_chosen(room, size, np.uint64(0))
    room.sides[1, 0] = 0
    if some:
        for i in range(np.uint64(size)):
            chosen[i] = -np.int32(codes[at, i] == np.uint8(missing))
        _sum_chosen(room, size, np.uint64(1))
    return cut


@kernel
def _tabulate(room, codes, rows, begin, end, feature):
    """Make the histogram of one feature; return how many bins hold rows: `room.used` receives them."""
    order, V, table, used = rows.order, rows.values, room.table, room.used
    width, j, count = V.shape[1], np.uint64(feature), 0
    for i in range(used[256]):
        for k in range(width):
            table[used[i], k] = 0
    w0, w1, w2, w3 = NO_BITS, NO_BITS, NO_BITS, NO_BITS
    for i in range(begin, end):
        n = np.uint64(order[i])
        c = np.uint64(codes[n, j])
        part, bit = c >> np.uint64(6), np.uint64(1) << (c & np.uint64(63))
        w0 |= bit if part == np.uint64(0) else NO_BITS
        w1 |= bit if part == np.uint64(1) else NO_BITS
        w2 |= bit if part == np.uint64(2) else NO_BITS
        w3 |= bit if part == np.uint64(3) else NO_BITS
        if width == 2:
            add_pair(table, c, read_pair(V, n))
        else:
            _add_row(table, c * np.uint64(width), V, n * np.uint64(width), width)
    for first, word in ((0, w0), (64, w1), (128, w2), (192, w3)):
        while word != NO_BITS:
            used[count] = first + lowest_bit(word)
            word &= word - np.uint64(1)
            count += 1
    used[256] = count
    return count


# -- splits --------------------------------------------------------------------------------------------


@kernel(inline="always")
def _sorted_bins(table, bins, key, l2):
    """Sort the bins of categories by their means, `l2` added to their weights; return how many there are.

    Means of several outputs are compared along the direction in which a category differs most from all.
    """
    width = table.shape[1]
    total, count = np.zeros(width), 0
    for b in range(len(table)):
        if table[b, 0] > 0.0:
            bins[count] = b
            count += 1
            for k in range(width):
                total[k] += table[b, k]
    if count == 0:
        return 0
    direction, most = np.zeros(width), 0.0
    for i in range(count):
        b = bins[i]
        size = 0.0
        for k in range(1, width):
            d = table[b, k] - table[b, 0] * total[k] / total[0]
            size += d * d
        size /= table[b, 0]
        if size > most * (1.0 + BETTER):
            most = size
            for k in range(1, width):
                direction[k] = table[b, k] / table[b, 0] - total[k] / total[0]
    largest = 0.0
    for i in range(count):
        b, value = bins[i], 0.0
        for k in range(1, width):
            value += direction[k] * (table[b, k] - table[b, 0] * total[k] / total[0])
        value /= table[b, 0] + l2
        key[b] = value
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


@kernel(inline="always")
def _goes_left(mask, b):
    """Return whether a bin is in the set."""
    return (mask[b >> 6] >> np.uint64(b & 63) & np.uint64(1)) > np.uint64(0)


@kernel(inline="always")
def _send_left(mask, b):
    """Put a bin into the set."""
    mask[b >> 6] |= np.uint64(1) << np.uint64(b & 63)


@kernel(inline="always")
def _is_monotone(left, total, l2, sign, tie):
    """Return whether the leaf values move by `sign` from left to right, in every output.

    An output may be equal on both sides, up to the rounding of `quantise`.
    """
    for k in range(1, len(left)):
        right = (total[k] - left[k]) / (total[0] - left[0] + l2)
        if sign * (right - left[k] / (left[0] + l2)) < -tie:
            return False
    return True


@kernel(inline="always")
def _draw_cut(table, bins, count, place):
    """Return a cut between the first and the last bin that hold rows, −1 if there are no two such bins."""
    first, last = 0, count - 1
    while first < last and table[bins[first], 0] <= 0:
        first += 1
    while first < last and table[bins[last], 0] <= 0:
        last -= 1
    return first + int(place * (last - first)) if first < last else -1


@kernel(inline="always")
def _write_mask(found, missing, missing_left, total, mask):
    """Send bins left, and decide where bins go that have no rows in this node.

    Missing values go with the larger part of the rows, and categories go with the missing values.
    """
    table, bins, size, top, lost = found
    weight = 0.0
    for w in range(4):
        mask[w] = 0
    for i in range(size):
        weight += table[bins[i], 0]
        if top < 0:
            _send_left(mask, bins[i])
    for w in range(top // 64 + 1):
        inside = np.uint64(63 - min(63, top - 64 * w))
        mask[w] = np.uint64(0xFFFFFFFFFFFFFFFF) >> inside
    if table[lost, 0] <= 0:
        missing_left = weight > (total - weight) * (1.0 + BETTER)
    elif top < 0:
        missing_left = _goes_left(mask, missing)
    if missing_left:
        _send_left(mask, missing)
        if top < 0:
            for b in range(missing):
                if table[b, 0] <= 0:
                    _send_left(mask, b)


class _Found(NamedTuple):
    """The best cut of a feature."""

    table: Any  #: sums of the bins
    bins: Any  #: those that go left come first
    size: int  #: how many go left
    top: int  #: the last bin that goes left, in their order; −1: `bins` are categories
    lost: int  #: the row of the table for missing values


class _Cuts(NamedTuple):
    """The cuts of one feature in a node: a prefix of `bins` goes left."""

    table: Any  #: the histogram of the feature
    bins: Any  #: in the order in which they are cut
    size: int  #: how many bins there are
    sign: int  #: how leaf values must move from left to right; 0: in any way
    only: int  #: the one cut that is tried; −1: all of them
    l2: float  #: added to the weight of a leaf


@kernel(error_model="numpy")
def _scan_one(cuts, left, total, base, rules, best, pairs, scores):
    """Return what `_scan` does, for one output: all scores first, by vector instructions.

    A bin is one number of 64 bits, as in `_add_pairs`; so is a sum of bins.
    """
    table, bins, size, sign, only, l2 = cuts
    least, weight, sum_ = rules.min_weight, total[0], total[1]
    pair = np.int64(left[1]) << 32 | np.int64(left[0])
    first, last = (0, size) if only < 0 else (only, only + 1)
    for i in range(last):
        pair += read_pair(table, bins[np.uint64(i)])
        pairs[np.uint64(i)] = pair
    while first < last and np.int32(pairs[first]) < least:
        first += 1
    while first < last and weight - np.int32(pairs[last - 1]) < least:
        last -= 1
    bar, hits, cut = best * (1.0 + BETTER) + base, 0, -1
    for i in range(np.uint64(first), np.uint64(max(first, last))):
        w, g = np.float64(np.int32(pairs[i])), np.float64(pairs[i] >> 32)
        a, c, r = w + l2, weight - w + l2, sum_ - g
        scores[i] = (g * g * c + r * r * a) / (a * c)
        hits += scores[i] > bar
    if hits == 0:
        return best, cut
    for i in range(first, last):
        if scores[i] > bar and (table[bins[i], 0] > 0 or only >= 0):
            w, g = np.float64(np.int32(pairs[i])), np.float64(pairs[i] >> 32)
            if sign == 0 or sign * ((sum_ - g) * (w + l2) - g * (weight - w + l2)) >= 0.0:
                best, cut = scores[i] - base, i
                bar = best * (1.0 + BETTER) + base
    return best, cut


@kernel(fastmath={"reassoc", "contract"})
def _scan(cuts, left, total, base, rules, best):
    """Return (gain, cut) for the best cut that beats `best`; (best, −1) if none does.

    `left` is the sum of the bins that go left in any case, and is overwritten; `base` is the score of the
    node without a split.
    """
    table, bins, size, sign, only, l2 = cuts
    least, width, cut = rules.min_weight, table.shape[1], -1
    for i in range(size):
        b = bins[i]
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


@kernel
def find_split(room, features, rows, total, rules, nodes, node, mask):
    """Return the gain and the feature of a node's best split; `mask` receives the bins that go left.

    A numeric split sends a prefix of the bins left and the missing values to the better side.  A categorical
    one sends a prefix of the categories left, missing values being one of them, in the order of their means.
    Without `category_l2` the best set of categories is such a prefix for one output, unless a leaf would be
    too light.

    The sums of the bins come from the histogram, or from the rows where there are few of them.  A cut that is
    drawn needs the sum of one side only.
    """
    codes, n_bins, width, best_gain, best_feature = features.codes, features.n_bins, len(total), 0.0, -1
    begin, end = nodes["begin"][node], nodes["end"][node]
    has_few, copied = end - begin <= rules.few, 0
    base = 0.0
    for k in range(1, width):
        base += total[k] * total[k]
    base /= total[0] + rules.l2
    left, bins, plain, hist = room.left, room.bins, room.plain, room.hists[max(nodes["slot"][node], 0)]
    for j in range(len(n_bins)):
        last, is_category = n_bins[j] - 1, features.categorical[j]
        table, order, count, lost, only, top = room.table, plain, last, last, -1, -1
        if has_few and rules.is_random and not is_category:
            if j >= copied:
                copied = j - j % CHUNK + CHUNK
                _copy_codes(room, codes, rows.order, begin, end, copied - CHUNK)
            top = _draw_sides(room, np.uint64(j % CHUNK), end - begin, last, draw(rules.seed, node, j))
            if top < 0:
                continue
            table, lost, only, count = room.sides, 1, 0, 2 if top < last - 1 else 1
        elif has_few:
            order, count = room.used, _tabulate(room, codes, rows, begin, end, j)
            count -= table[last, 0] > 0
        else:
            first = j << np.int64(features.shift)
            table = hist[first : first + n_bins[j]]
        l2 = rules.l2
        if is_category:
            l2 += rules.category_l2
            order, count = bins, _sorted_bins(table[: n_bins[j]], bins, room.key, rules.category_l2)
        has_missing = table[lost, 0] > 0 and not is_category
        if rules.is_random and only < 0:
            only = _draw_cut(table, order, count, draw(rules.seed, node, j))
            if only < 0 and has_missing:
                only = count - 1
            if only < 0:
                continue
        for side in range(2 if has_missing and only < count - 1 else 1):  # missing values: right, then left
            for k in range(width):
                left[k] = table[lost, k] if side == 1 else 0.0
            size = count if has_missing and side == 0 else count - 1
            cuts = _Cuts(table, order, size, features.monotone[j], only, l2)
            if width == 2:
                gain, cut = _scan_one(cuts, left, total, base, rules, best_gain, room.pairs, room.scores)
            else:
                gain, cut = _scan(cuts, left, total, base, rules, best_gain)
            if cut >= 0:
                best_gain, best_feature = gain, j
                highest = -1 if is_category else (top if top >= 0 else order[cut])
                found = _Found(table, order, cut + 1, highest, lost)
                _write_mask(found, last, side == 1, total[0], mask)
    return best_gain, best_feature


# -- growing ---------------------------------------------------------------------------------------------


@kernel(inline="always")
def partition(column, rows, begin, end, mask):
    """Move the rows that go left to order[begin:] and the others to spare[begin:]; return how many go left.

    `column` holds the codes of one feature: neighbouring rows share lines of the cache.
    """
    order, spare = rows.order, rows.spare
    goes_left = np.empty(256, np.uint8)
    for b in range(256):
        goes_left[b] = _goes_left(mask, b)
    left, right = np.uint64(begin), np.uint64(begin)
    for i in range(begin, end):
        n = order[np.uint64(i)]
        goes = np.uint64(goes_left[np.uint64(column[np.uint64(n)])])
        order[left] = n  # write to both, advance in one: no branch has to be predicted
        spare[right] = n
        left += goes
        right += np.uint64(1) - goes
    return np.int64(left) - begin


@kernel(inline="always")
def divide(nodes, node, n_nodes, middle, feature, few):
    """Give a node two children, whose rows meet at `middle`; return the one with fewer rows.

    The larger child takes over the histogram of its parent, from which that of the smaller one is subtracted.
    """
    begin, end = nodes["begin"][node], nodes["end"][node]
    small = n_nodes if middle - begin <= end - middle else n_nodes + 1
    large = 2 * n_nodes + 1 - small
    slot = -1
    if min(middle - begin, end - middle) > few:
        for other in range(n_nodes):
            slot = max(slot, nodes["slot"][other])
        slot += 1
    for child in (n_nodes, n_nodes + 1):
        nodes["begin"][child] = begin if child == n_nodes else middle
        nodes["end"][child] = middle if child == n_nodes else end
        nodes["depth"][child] = nodes["depth"][node] + 1
    nodes["slot"][large], nodes["slot"][small] = nodes["slot"][node], slot
    nodes["feature"][node], nodes["child"][node] = feature, n_nodes
    return small


def n_slots(n_rows: int, max_leaves: int, few: int) -> int:
    """Return how many histograms a tree needs: one for each node with more than `few` rows, and a spare one.

    None where there is no such node.
    """
    return min(max_leaves, n_rows // (few + 1)) + 1 if n_rows > few else 0


@kernel(inline="always")
def _add_up(table, out):
    """Out = the sum of all bins."""
    if len(out) == 2:  # as in `_add_pairs`
        pair = np.int64(0)
        for b in range(len(table)):
            pair += read_pair(table, b)
        out[0], out[1] = np.int32(pair), pair >> 32
        return
    out[:] = 0.0
    for b in range(len(table)):
        for k in range(len(out)):
            out[k] += table[b, k]


@kernel(inline="always")
def _best_leaf(nodes, n_nodes, min_gain):
    """Return the leaf with the largest gain above a limit, −1 if there is none."""
    gain, feature, best = nodes["gain"], nodes["feature"], -1
    for node in range(n_nodes):
        better = gain[node] > (min_gain if best < 0 else gain[best] * (1.0 + BETTER))
        if feature[node] < 0 and better:
            best = node
    return best


@kernel
def grow(features, rows, nodes, masks, room, rules, n_nodes, new):
    """Split the best leaf until the rules forbid it; return (number of nodes, node left to the caller or −1).

    `new` is the root, or the smaller of the two newest nodes; the histogram of its sibling is still the one
    of their parent.  A node of more than `rules.max_rows` rows is left to the caller, who splits it on
    several threads and calls again; the histogram of such a node must be there already.
    """
    total, hists = np.empty(rows.values.shape[1]), room.hists
    spare = len(hists) - 1
    while (n_nodes + 1) // 2 < rules.max_leaves:
        large = new if new == 0 else (new + 1 if new % 2 == 1 else new - 1)
        begin, end = nodes["begin"][new], nodes["end"][new]
        if nodes["end"][large] - nodes["begin"][large] > rules.few:
            own = hists[nodes["slot"][new] if nodes["slot"][new] >= 0 else spare]
            if end - begin <= rules.max_rows:
                own[:] = 0
                add_histogram(features, rows, begin, end, own)
            if new > 0:
                mine, theirs = hists[nodes["slot"][large]].reshape(-1), own.reshape(-1)
                for b in range(len(mine)):
                    mine[b] -= theirs[b]
        for node in range(min(new, large), max(new, large) + 1):
            nodes["gain"][node] = 0.0
            begin, end = nodes["begin"][node], nodes["end"][node]
            if end - begin > rules.few:
                _add_up(hists[nodes["slot"][node]][: features.n_bins[0]], total)
            else:
                _copy_values(room, rows, begin, end, total)
            if nodes["depth"][node] < rules.max_depth and total[0] >= 2.0 * rules.min_weight:
                gain, split = find_split(room, features, rows, total, rules, nodes, node, masks[node])
                nodes["gain"][node], nodes["split"][node] = gain, split
        best = _best_leaf(nodes, n_nodes, rules.min_gain)
        if best < 0:
            break
        begin, end = nodes["begin"][best], nodes["end"][best]
        if end - begin > rules.max_rows:
            return n_nodes, best
        feature = features.numbers[nodes["split"][best]]
        middle = begin + partition(features.columns[feature], rows, begin, end, masks[best])
        for i in range(end - middle):
            rows.order[middle + i] = rows.spare[begin + i]
        new = divide(nodes, best, n_nodes, middle, feature, rules.few)
        n_nodes += 2
    return n_nodes, -1


@kernel
def leaf_of_rows(order, nodes, leaf_of_node, out):
    """out[n] = number of the leaf of row n, for the rows in `order`."""
    for node in range(len(nodes)):
        if nodes["feature"][node] < 0:
            for i in range(nodes["begin"][node], nodes["end"][node]):
                out[order[i]] = leaf_of_node[node]
