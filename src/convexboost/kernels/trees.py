"""Growing a tree with vector leaves on binned rows, best leaf first.

`codes` is (n_samples, n_features) uint8; bin b of feature j is row (j << shift) + b of a histogram, its last
bin the missing values.  A row of `V` is the weight of a sample and, behind it, weight times target, in whole
numbers (`quantise`): sums are exact, whatever the order of the rows and the number of threads, and a
difference of histograms leaves exactly 0 in an empty bin.  A node's rows are `order[begin:end]`; its split is
a set of bins that go left, 256 bits, whatever kind of feature it is on.
"""

import numpy as np
from numba import njit

from convexboost.core.space import MOST_COUNTS
from convexboost.kernels.vectors import FEW_WORDS, WORDS, add_few_words, add_words

#: Rows handled together: their codes and values stay in the cache while all features are visited.
BLOCK = 256
#: Rows of fewer features are not worth a copy.
NARROW = 16
#: Numbers of a histogram that stays in the nearest cache as a whole.
SMALL = 8192
#: Rows of which sums of real numbers are kept apart: the same blocks for any number of threads.
ROWS = 16384
#: Columns of `nodes`: where its rows are, where its histogram is, how deep it lies; −1 or the feature it
#: splits and its first child (the second is next to it).
BEGIN, END, SLOT, DEPTH, FEATURE, CHILD = 0, 1, 2, 3, 4, 5
#: A split must beat the best so far by this share, so that rounding does not decide.
BETTER = 1e-9
#: All weights, and all weights times targets, add up to at most so much: a sum has 32 bits.
LARGEST = MOST_COUNTS


def n_columns(n_outputs: int) -> int:
    """Return the width of V: two, or whole groups of words."""
    if n_outputs < FEW_WORDS:
        return 2 if n_outputs == 1 else FEW_WORDS
    return -(-(n_outputs + 1) // WORDS) * WORDS


@njit(cache=True, nogil=True)
def _add_row(out, to, values, at, width):
    """out.flat[to : to + width] += values.flat[at : at + width]."""
    if width == FEW_WORDS:
        add_few_words(out, to, values, at)
    else:
        for k in range(np.uint64(0), np.uint64(width), np.uint64(WORDS)):
            add_words(out, to + k, values, at + k)


# -- the target ------------------------------------------------------------------------------------------


# A loop over one output, known to the compiler, is none: hence `K`, a parameter of its own.  Unsigned indices
# are not asked whether they count from the end.


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _renew(D, factor, leaf, table, G, scale, weight, start, stop, K):
    total = 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        out, square = np.uint64(leaf[i]), 0.0
        for k in range(np.uint64(K)):
            d = factor * (D[i, k] - table[out, k]) + scale * G[i, k]
            D[i, k] = d
            square += d * d
        total += weight[i] * square
    return total


@njit(cache=True, nogil=True)
def renew(D, factor, leaf, table, G, scale, weight, first, last, squares):
    """D ← factor (D − table[leaf]) + scale G; squares[b] = Σ weight ‖D‖² over the rows of block b."""
    n, K = D.shape
    for b in range(first, last):
        start, stop = b * ROWS, min((b + 1) * ROWS, n)
        if K == 1:
            squares[b] = _renew(D, factor, leaf, table, G, scale, weight, start, stop, 1)
        else:
            squares[b] = _renew(D, factor, leaf, table, G, scale, weight, start, stop, K)


@njit(cache=True, nogil=True)
def _quantise(D, whole, weight, scale, start, stop, V, K):
    for i in range(np.uint64(start), np.uint64(stop)):
        V[i, 0] = whole[i]
        factor = scale if len(weight) == 0 else scale * weight[i]
        times = whole[i] if len(weight) == 0 else np.int32(1)
        for k in range(np.uint64(K)):
            V[i, np.uint64(1) + k] = times * np.int32(np.rint(D[i, k] * factor))


@njit(cache=True, nogil=True)
def quantise(D, whole, weight, scale, start, stop, V):
    """Write weight and weight · D · scale in whole numbers; `weight` is empty where `whole` says it all.

    Then a row with weight 2 is exactly the row twice.
    """
    if D.shape[1] == 1:
        _quantise(D, whole, weight, scale, start, stop, V, 1)
    else:
        _quantise(D, whole, weight, scale, start, stop, V, D.shape[1])


@njit(cache=True, nogil=True)
def _leaf_sums(leaf, D, weight, units, scale, start, stop, out, K):
    for i in range(np.uint64(start), np.uint64(stop)):
        row, factor = out[i & np.uint64(len(out) - 1), np.uint64(leaf[i])], weight[i] * scale
        row[0] += np.int64(np.rint(weight[i] * units))
        for k in range(np.uint64(K)):
            row[np.uint64(1) + k] += np.int64(np.rint(D[i, k] * factor))


@njit(cache=True, nogil=True)
def leaf_sums(leaf, D, weight, units, scale, start, stop, out):
    """Add units · weight and scale · weight · D, in whole numbers, to `leaf_tables`."""
    if D.shape[1] == 1:
        _leaf_sums(leaf, D, weight, units, scale, start, stop, out, 1)
    else:
        _leaf_sums(leaf, D, weight, units, scale, start, stop, out, D.shape[1])


# -- growing ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _add_pairs(codes, shift, V, order, begin, end, out):
    """Do what `add_histogram` does, for one output.

    A sample's two numbers are one of 64 bits: weights are not negative and their sums have 31 bits, so
    nothing is carried from one half to the other.  Two rows at a time: they do not wait for each other.
    """
    pairs, sums = V.view(np.int64), out.view(np.int64)
    for i in range(np.uint64(begin), np.uint64(end), np.uint64(2)):
        is_last = i + np.uint64(1) == np.uint64(end)
        m = np.uint64(order[i])
        n = m if is_last else np.uint64(order[i + np.uint64(1)])
        v, w = pairs[m, 0], np.int64(0) if is_last else pairs[n, 0]
        for j in range(np.uint64(codes.shape[1])):
            sums[(j << shift) | np.uint64(codes[m, j]), 0] += v
            sums[(j << shift) | np.uint64(codes[n, j]), 0] += w


@njit(cache=True, nogil=True)
def add_histogram(codes, shift, V, order, begin, end, out):
    """out[bin of n] += V[n] for the rows order[begin:end] and all features."""
    n_features, width = codes.shape[1], V.shape[1]
    if width == 2 and n_features < NARROW:
        _add_pairs(codes, shift, V, order, begin, end, out)
        return
    block, plain = np.empty((BLOCK, n_features), np.uint8), np.arange(BLOCK)
    values = np.empty((BLOCK, width), np.int32)
    for start in range(begin, end, BLOCK):
        size = np.uint64(min(BLOCK, end - start))
        for i in range(size):  # these loads do not wait for each other
            n = np.uint64(order[start + i])
            for j in range(n_features):
                block[np.uint64(i), np.uint64(j)] = codes[n, np.uint64(j)]
            for k in range(width):
                values[np.uint64(i), np.uint64(k)] = V[n, np.uint64(k)]
        if width == 2:
            _add_pairs(block, shift, values, plain, 0, size, out)
        elif out.size <= SMALL:  # one feature after the other: rows next to each other may be in the same bin
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


@njit(cache=True, nogil=True)
def _scramble(x):
    """Return a whole number that looks random (SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _draw(seed, a, b):
    """Return a number in [0, 1) that depends on nothing else."""
    x = (
        np.uint64(seed)
        + np.uint64(a + 1) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(b + 1) * np.uint64(0xD1B54A32D192ED03)
    )
    return np.float64(_scramble(x) >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True, nogil=True)
def fingerprint(codes, out):
    """Write a number for each row that depends on its bins alone."""
    for n in range(len(codes)):
        x = np.uint64(0)
        for j in range(codes.shape[1]):
            x = x * np.uint64(0x100000001B3) + np.uint64(codes[n, j])
        out[n] = _scramble(x)


@njit(cache=True, nogil=True)
def draw_rows(fingerprints, D, scale, seed, share, out):
    """Draw rows by their fingerprints and what they have to gain, coarsely: rounding hardly ever matters."""
    for n in range(len(D)):
        x = 0.0
        for k in range(D.shape[1]):
            x += (k + 1) * D[n, k]
        out[n] = _draw(seed, np.int64(fingerprints[n] >> np.uint64(1)), np.int64(np.rint(scale * x))) < share


@njit(cache=True, nogil=True)
def _sorted_bins(table, bins, key):
    """Sort category bins by mean, along the direction in which they differ most; return their number."""
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


@njit(cache=True, nogil=True)
def _goes_left(mask, b):
    """Return whether a bin is in the set."""
    return (mask[b >> 6] >> np.uint64(b & 63) & np.uint64(1)) > np.uint64(0)


@njit(cache=True, nogil=True)
def _send_left(mask, b):
    """Put a bin into the set."""
    mask[b >> 6] |= np.uint64(1) << np.uint64(b & 63)


@njit(cache=True, nogil=True)
def _is_monotone(left, total, l2, sign, rounding):
    """Return whether the leaf values move by `sign` from left to right, in every output.

    An output may be the same on both sides, but for the rounding of `quantise`: the split is for the others.
    """
    for k in range(1, len(left)):
        right = (total[k] - left[k]) / (total[0] - left[0] + l2)
        if sign * (right - left[k] / (left[0] + l2)) < -rounding:
            return False
    return True


@njit(cache=True, nogil=True)
def _draw_cut(table, bins, count, place):
    """Return a cut between the first and the last bin that hold rows, −1 if there are no two such bins."""
    first, last = 0, count - 1
    while first < last and table[bins[first], 0] <= 0:
        first += 1
    while first < last and table[bins[last], 0] <= 0:
        last -= 1
    return first + int(place * (last - first)) if first < last else -1


@njit(cache=True, nogil=True)
def _write_mask(table, is_categorical, bins, missing_left, total, mask):
    """Send these bins left, and say where everything goes that was not seen in this node.

    Missing values, if there were none, go with the many; categories without rows go with the missing ones.
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


@njit(cache=True, nogil=True, error_model="numpy")
def _scan_one(table, bins, count, left, total, base, rules, sign, only, best, pairs, scores):
    """Return what `_scan` does, for one output: all scores first, by vector instructions.

    A bin is one number of 64 bits, as in `_add_pairs`; so is a sum of bins.
    """
    least, l2, weight, sum_ = rules[0], rules[1], total[0], total[1]
    rows, pair = table.view(np.int64), np.int64(left[1]) << 32 | np.int64(left[0])
    for i in range(count):
        pair += rows[np.uint64(bins[np.uint64(i)]), np.uint64(0)]
        pairs[np.uint64(i)] = pair
    first, last = (0, count) if only < 0 else (only, only + 1)
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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _scan(table, bins, count, left, total, base, rules, sign, only, best):
    """Return (gain, cut) for the best prefix of `bins` that beats `best`; (best, −1) if none does.

    `left` comes with what goes left anyway and is used up; with `only` ≥ 0 no other cut is looked at.
    """
    least, l2, width, cut = rules[0], rules[1], table.shape[1], -1
    for i in range(count):
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
        if gain > best * (1.0 + BETTER) and (sign == 0 or _is_monotone(left, total, l2, sign, rules[3])):
            best, cut = gain, i
    return best, cut


@njit(cache=True, nogil=True)
def find_split(hist, shift, n_bins, categorical, monotone, total, rules, seed, node, mask):
    """Return the gain and the feature of a node's best split; `mask` receives the bins that go left.

    `rules` are: least weight of a leaf (positive), l2, whether cuts are drawn at random, and how much of the
    difference between two means may be rounding.  A numeric split sends a prefix of the bins left and the
    missing ones to the better side; a categorical one a prefix of the categories, missing among them, in the
    order of their means.  For one output the best set of categories is such a prefix, unless a leaf would be
    too light.
    """
    width, random = hist.shape[1], rules[2] > 0.0
    best_gain, best_feature, best_cut, best_missing = 0.0, -1, -1, False
    base = 0.0
    for k in range(1, width):
        base += total[k] * total[k]
    base /= total[0] + rules[1]
    left = np.empty(width)
    bins, best_bins, key = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(257)
    plain, pairs, scores = np.arange(257), np.empty(256, np.int64), np.empty(256)
    for j in range(len(n_bins)):
        first = j << np.int64(shift)
        last = n_bins[j] - 1
        table = hist[first : first + n_bins[j]]
        order, count = plain, last
        if categorical[j]:
            order, count = bins, _sorted_bins(table, bins, key)
        has_missing = table[last, 0] > 0 and not categorical[j]
        only = -1
        if random:
            only = _draw_cut(table, order, count, _draw(seed, node, j))
            if only < 0 and has_missing:
                only = count - 1
            if only < 0:
                continue
        for side in range(2 if has_missing else 1):  # where missing values go: right, then left
            for k in range(width):
                left[k] = table[last, k] if side == 1 else 0.0
            size = count if has_missing and side == 0 else count - 1
            sign = monotone[j]
            if width == 2:
                gain, cut = _scan_one(
                    table, order, size, left, total, base, rules, sign, only, best_gain, pairs, scores
                )
            else:
                gain, cut = _scan(table, order, size, left, total, base, rules, sign, only, best_gain)
            if cut >= 0:
                best_gain, best_feature, best_cut, best_missing = gain, j, cut, side == 1
                best_bins[: cut + 1] = order[: cut + 1]
    if best_feature >= 0:
        first = best_feature << np.int64(shift)
        table = hist[first : first + n_bins[best_feature]]
        _write_mask(table, categorical[best_feature], best_bins[: best_cut + 1], best_missing, total[0], mask)
    return best_gain, best_feature


@njit(cache=True, nogil=True)
def partition(column, order, spare, begin, end, mask):
    """Move the rows that go left to the front, put the others into spare[begin:]; return how many go left.

    `column` holds the codes of one feature: rows that are near each other are in one line of the cache.
    """
    goes_left = np.empty(256, np.uint8)
    for b in range(256):
        goes_left[b] = _goes_left(mask, b)
    left, right = np.uint64(begin), np.uint64(begin)
    for i in range(begin, end):
        n = order[np.uint64(i)]
        goes = np.uint64(goes_left[np.uint64(column[np.uint64(n)])])
        order[left] = n  # both are written and one of them counts: no branch to guess
        spare[right] = n
        left += goes
        right += np.uint64(1) - goes
    return np.int64(left) - begin


@njit(cache=True, nogil=True)
def divide(nodes, node, n_nodes, middle, feature):
    """Give a node two children, whose rows meet at `middle`; return the one with fewer rows."""
    begin, end = nodes[node, BEGIN], nodes[node, END]
    small = n_nodes if middle - begin <= end - middle else n_nodes + 1
    large = 2 * n_nodes + 1 - small
    for child in (n_nodes, n_nodes + 1):
        nodes[child, BEGIN] = begin if child == n_nodes else middle
        nodes[child, END] = middle if child == n_nodes else end
        nodes[child, DEPTH] = nodes[node, DEPTH] + 1
        nodes[child, FEATURE] = -1
    nodes[large, SLOT], nodes[small, SLOT] = nodes[node, SLOT], (n_nodes + 1) // 2
    nodes[node, FEATURE], nodes[node, CHILD] = feature, n_nodes
    return small


@njit(cache=True, nogil=True)
def _add_up(table, out):
    """Out = the sum of all bins."""
    if len(out) == 2:  # as in `_add_pairs`
        rows, pair = table.view(np.int64), np.int64(0)
        for b in range(len(rows)):
            pair += rows[b, 0]
        out[0], out[1] = np.int32(pair), pair >> 32
        return
    out[:] = 0.0
    for b in range(len(table)):
        for k in range(len(out)):
            out[k] += table[b, k]


@njit(cache=True, nogil=True)
def _best_leaf(nodes, gains, n_nodes, min_gain):
    """Return the leaf with the largest gain above a limit, −1 if there is none."""
    best = -1
    for node in range(n_nodes):
        better = gains[node] > (min_gain if best < 0 else gains[best] * (1.0 + BETTER))
        if nodes[node, FEATURE] < 0 and better:
            best = node
    return best


@njit(cache=True, nogil=True)
def grow(
    codes,
    columns,
    features,
    shift,
    n_bins,
    categorical,
    monotone,
    V,
    order,
    spare,
    hists,
    nodes,
    gains,
    splits,
    masks,
    rules,
    limits,
    seed,
    n_nodes,
    new,
):
    """Split the best leaf until no more may be; return (number of nodes, node left to the caller or −1).

    `codes` has the chosen features, row by row; `columns` has all of them, column by column, and `features`
    says which the chosen ones are.  `new` is the smaller of two new nodes (the root is alone): its histogram
    is there, that of its sibling still that of their parent.  `limits` are the largest number of leaves, the
    depth, the least gain, and the largest number of rows of a node split here: the caller has threads for
    larger ones.
    """
    max_leaves, max_depth, min_gain, max_rows = int(limits[0]), int(limits[1]), limits[2], limits[3]
    total = np.empty(V.shape[1])
    while (n_nodes + 1) // 2 < max_leaves:
        large = new
        if new > 0:
            large = new + 1 if new % 2 == 1 else new - 1
            mine, theirs = hists[nodes[large, SLOT]].reshape(-1), hists[nodes[new, SLOT]].reshape(-1)
            for b in range(len(mine)):
                mine[b] -= theirs[b]
        for node in range(min(new, large), max(new, large) + 1):
            gains[node] = 0.0
            hist = hists[nodes[node, SLOT]]
            _add_up(hist[: n_bins[0]], total)
            if nodes[node, DEPTH] < max_depth and total[0] >= 2.0 * rules[0]:
                gains[node], splits[node] = find_split(
                    hist, shift, n_bins, categorical, monotone, total, rules, seed, node, masks[node]
                )
        best = _best_leaf(nodes, gains, n_nodes, min_gain)
        if best < 0:
            break
        begin, end = nodes[best, BEGIN], nodes[best, END]
        if end - begin > max_rows:
            return n_nodes, best
        feature = features[splits[best]]
        middle = begin + partition(columns[feature], order, spare, begin, end, masks[best])
        order[middle:end] = spare[begin : begin + end - middle]
        new = divide(nodes, best, n_nodes, middle, feature)
        n_nodes += 2
        if (n_nodes + 1) // 2 < max_leaves:  # else nobody will ask
            hist = hists[nodes[new, SLOT]]
            hist[:] = 0
            add_histogram(codes, shift, V, order, nodes[new, BEGIN], nodes[new, END], hist)
    return n_nodes, -1


@njit(cache=True, nogil=True)
def leaf_of_rows(order, nodes, leaf_of_node, n_nodes, out):
    """out[n] = number of the leaf of row n, for the rows in `order`."""
    for node in range(n_nodes):
        if nodes[node, FEATURE] < 0:
            for i in range(nodes[node, BEGIN], nodes[node, END]):
                out[order[i]] = leaf_of_node[node]


# -- walking down ----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _walk(codes, begin, size, root, feature, child, masks, at, active):
    """Find the leaf at[i] of every row begin + i < begin + size: all rows one level down, and again.

    The steps of different rows do not wait for each other, and there is no branch to guess.
    """
    for i in range(size):
        at[i] = root
        active[i] = i
    n_active = size if feature[root] >= 0 else 0
    while n_active > 0:
        kept = 0
        for a in range(n_active):
            row = np.uint64(active[np.uint64(a)])
            node = np.uint64(at[row])
            c = codes[np.uint64(begin) + row, np.uint64(feature[node])]
            bit = np.int32(masks[node, np.uint64(c >> 6)] >> np.uint64(c & 63) & np.uint64(1))
            below = child[node] + np.int32(1) - bit
            at[row] = below
            active[np.uint64(kept)] = row
            kept += feature[np.uint64(below)] >= 0
        n_active = kept


@njit(cache=True, nogil=True)
def descend(codes, feature, child, masks, leaf_of_node, start, stop, out):
    """out[n] = number of the leaf of row n, for any rows start … stop − 1."""
    at, active = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        _walk(codes, begin, size, 0, feature, child, masks, at, active)
        for i in range(size):
            out[begin + i] = leaf_of_node[at[i]]


@njit(cache=True, nogil=True)
def add_trees(F, codes, roots, feature, child, masks, leaf_of_node, values, start, stop):
    """F[n] += the values of every tree at row n; trees are laid one after the other, `roots` says where."""
    at, active = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        for t in range(len(roots)):
            _walk(codes, begin, size, roots[t], feature, child, masks, at, active)
            for i in range(size):
                leaf = leaf_of_node[at[i]]
                for k in range(F.shape[1]):
                    F[begin + i, k] += values[leaf, k]
