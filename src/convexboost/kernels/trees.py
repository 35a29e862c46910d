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
from convexboost.kernels.vectors import FEW_WORDS, WORDS, add_few_words, add_pair, add_words, read_pair

#: Rows whose codes and values are copied next to each other: they stay in the cache for all features.
BLOCK = 256
#: Rows of fewer features are not worth a copy.
NARROW = 16
#: A histogram of at most this many numbers stays in the nearest cache.
SMALL = 8192
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
    tie: float  #: means that differ by less may be equal but for rounding
    is_random: bool  #: one cut drawn for each feature and node, instead of all of them
    seed: int  #: of these cuts
    max_rows: float = math.inf  #: nodes with more rows are left to the caller of `grow`, who has threads


#: A node of a tree in the making; children come in pairs, after their parent.  Nodes are an array of records:
#: a kernel needs time to take each array that it is given, and small trees are grown in 100 µs.
NODE = np.dtype(
    [
        ("begin", np.int64),  # its rows are order[begin:end]
        ("end", np.int64),
        ("slot", np.int64),  # the number of its histogram
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


# -- splits --------------------------------------------------------------------------------------------


@kernel(inline="always")
def _sorted_bins(table, bins, key):
    """Sort the bins of categories by their means, and return how many there are.

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
            value += direction[k] * (table[b, k] / table[b, 0] - total[k] / total[0])
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
def _write_mask(table, is_categorical, bins, missing_left, total, mask):
    """Send these bins left, and decide where bins go that have no rows in this node.

    Missing values go with the larger part of the rows, and categories go with the missing values.
    """
    mask[:] = 0
    n_bins, weight = len(table) - 1, 0.0
    for b in bins:
        _send_left(mask, b)
        weight += table[b, 0]
    if table[n_bins, 0] <= 0:
        missing_left = weight > (total - weight) * (1.0 + BETTER)
    elif is_categorical:
        missing_left = _goes_left(mask, n_bins)
    if missing_left:
        _send_left(mask, n_bins)
        if is_categorical:
            for b in range(n_bins):
                if table[b, 0] <= 0:
                    _send_left(mask, b)


class _Cuts(NamedTuple):
    """The cuts of one feature in a node: a prefix of `bins` goes left."""

    table: Any  #: the histogram of the feature
    bins: Any  #: in the order in which they are cut
    sign: int  #: how leaf values must move from left to right; 0: in any way
    only: int  #: the one cut that is tried; −1: all of them


@kernel(error_model="numpy")
def _scan_one(cuts, left, total, base, rules, best, pairs, scores):
    """Return what `_scan` does, for one output: all scores first, by vector instructions.

    A bin is one number of 64 bits, as in `_add_pairs`; so is a sum of bins.
    """
    table, bins, sign, only = cuts
    least, l2, weight, sum_ = rules.min_weight, rules.l2, total[0], total[1]
    pair = np.int64(left[1]) << 32 | np.int64(left[0])
    for i in range(len(bins)):
        pair += read_pair(table, bins[np.uint64(i)])
        pairs[np.uint64(i)] = pair
    first, last = (0, len(bins)) if only < 0 else (only, only + 1)
    while first < last and np.int32(pairs[first]) < least:
        first += 1
    while first < last and weight - np.int32(pairs[last - 1]) < least:
        last -= 1
    bar, hits, cut = best * (1.0 + BETTER) + base, 0, -1
    lefts, found = pairs[first:last], scores[first:last]
    for i in range(len(lefts)):
        w, g = np.float64(np.int32(lefts[i])), np.float64(lefts[i] >> 32)
        a, c, r = w + l2, weight - w + l2, sum_ - g
        found[i] = (g * g * c + r * r * a) / (a * c)
        hits += found[i] > bar
    if hits == 0:
        return best, cut
    for i in range(len(lefts)):
        if found[i] > bar and (table[bins[first + i], 0] > 0 or only >= 0):
            w, g = np.float64(np.int32(lefts[i])), np.float64(lefts[i] >> 32)
            if sign == 0 or sign * ((sum_ - g) * (w + l2) - g * (weight - w + l2)) >= 0.0:
                best, cut = found[i] - base, first + i
                bar = best * (1.0 + BETTER) + base
    return best, cut


@kernel(fastmath={"reassoc", "contract"})
def _scan(cuts, left, total, base, rules, best):
    """Return (gain, cut) for the best cut that beats `best`; (best, −1) if none does.

    `left` is the sum of the bins that go left in any case, and is overwritten; `base` is the score of the
    node without a split.
    """
    table, bins, sign, only = cuts
    least, l2, width, cut = rules.min_weight, rules.l2, table.shape[1], -1
    for i in range(len(bins)):
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
def find_split(hist, features, total, rules, node, mask):
    """Return the gain and the feature of a node's best split; `mask` receives the bins that go left.

    A numeric split sends a prefix of the bins left and the missing values to the better side.  A categorical
    one sends a prefix of the categories left, missing values being one of them, in the order of their means.
    For one output the best set of categories is such a prefix, unless a leaf would be too light.
    """
    width, n_bins, categorical, shift = hist.shape[1], features.n_bins, features.categorical, features.shift
    best_gain, best_feature, best_cut, best_side = 0.0, -1, -1, 0
    base = 0.0
    for k in range(1, width):
        base += total[k] * total[k]
    base /= total[0] + rules.l2
    left = np.empty(width)
    bins, best_bins, key = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(257)
    plain, pairs, scores = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(257)
    for b in range(len(plain)):
        plain[b] = b
    for j in range(len(n_bins)):
        first = j << np.int64(shift)
        last = n_bins[j] - 1
        table = hist[first : first + n_bins[j]]
        order, count = plain, last
        if categorical[j]:
            order, count = bins, _sorted_bins(table, bins, key)
        has_missing = table[last, 0] > 0 and not categorical[j]
        only = -1
        if rules.is_random:
            only = _draw_cut(table, order, count, draw(rules.seed, node, j))
            if only < 0 and has_missing:
                only = count - 1
            if only < 0:
                continue
        for side in range(2 if has_missing else 1):  # where missing values go: right, then left
            for k in range(width):
                left[k] = table[last, k] if side == 1 else 0.0
            size = count if has_missing and side == 0 else count - 1
            cuts = _Cuts(table, order[: max(size, 0)], features.monotone[j], only)
            if width == 2:
                gain, cut = _scan_one(cuts, left, total, base, rules, best_gain, pairs, scores)
            else:
                gain, cut = _scan(cuts, left, total, base, rules, best_gain)
            if cut >= 0:
                best_gain, best_feature, best_cut, best_side = gain, j, cut, side
                for i in range(cut + 1):
                    best_bins[i] = order[i]
    if best_feature >= 0:
        first = best_feature << np.int64(shift)
        table, lefts = hist[first : first + n_bins[best_feature]], best_bins[: best_cut + 1]
        _write_mask(table, categorical[best_feature], lefts, best_side == 1, total[0], mask)
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
def divide(nodes, node, n_nodes, middle, feature):
    """Give a node two children, whose rows meet at `middle`; return the one with fewer rows.

    The larger child takes over the histogram of its parent, from which that of the smaller one is subtracted.
    """
    begin, end = nodes["begin"][node], nodes["end"][node]
    small = n_nodes if middle - begin <= end - middle else n_nodes + 1
    large = 2 * n_nodes + 1 - small
    for child in (n_nodes, n_nodes + 1):
        nodes["begin"][child] = begin if child == n_nodes else middle
        nodes["end"][child] = middle if child == n_nodes else end
        nodes["depth"][child] = nodes["depth"][node] + 1
    nodes["slot"][large], nodes["slot"][small] = nodes["slot"][node], (n_nodes + 1) // 2
    nodes["feature"][node], nodes["child"][node] = feature, n_nodes
    return small


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
def grow(features, rows, nodes, masks, hists, rules, n_nodes, new):
    """Split the best leaf until the rules forbid it; return (number of nodes, node left to the caller or −1).

    `new` is the root, or the smaller of the two newest nodes; the histogram of its sibling is still the one
    of their parent.  A node of more than `rules.max_rows` rows is left to the caller, who splits it on
    several threads and calls again; the histogram of such a node must be there already.
    """
    total = np.empty(rows.values.shape[1])
    while (n_nodes + 1) // 2 < rules.max_leaves:
        begin, end = nodes["begin"][new], nodes["end"][new]
        if end - begin <= rules.max_rows:
            hist = hists[nodes["slot"][new]]
            hist[:] = 0
            add_histogram(features, rows, begin, end, hist)
        large = new
        if new > 0:
            large = new + 1 if new % 2 == 1 else new - 1
            mine, theirs = hists[nodes["slot"][large]].reshape(-1), hists[nodes["slot"][new]].reshape(-1)
            for b in range(len(mine)):
                mine[b] -= theirs[b]
        for node in range(min(new, large), max(new, large) + 1):
            nodes["gain"][node] = 0.0
            hist = hists[nodes["slot"][node]]
            _add_up(hist[: features.n_bins[0]], total)
            if nodes["depth"][node] < rules.max_depth and total[0] >= 2.0 * rules.min_weight:
                gain, split = find_split(hist, features, total, rules, node, masks[node])
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
        new = divide(nodes, best, n_nodes, middle, feature)
        n_nodes += 2
    return n_nodes, -1


@kernel
def leaf_of_rows(order, nodes, leaf_of_node, out):
    """out[n] = number of the leaf of row n, for the rows in `order`."""
    for node in range(len(nodes)):
        if nodes["feature"][node] < 0:
            for i in range(nodes["begin"][node], nodes["end"][node]):
                out[order[i]] = leaf_of_node[node]
