"""Growing a tree with vector leaves on binned rows, best leaf first.

`codes` is (n_samples, n_features) uint8; bin b of feature j is row offsets[j] + b of a histogram.  A row of
`V` is the weight of a sample and, behind it, weight times target, in whole numbers of a unit (`in_units`):
sums are then exact, whatever the order of the rows, and a difference of histograms leaves exactly 0 in an
empty bin.  A node's rows are `order[begin:end]`; its split is a set of bins that go left, 256 bits, whatever
kind of feature it is on.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: Rows handled together: their values stay in the cache while all features are visited.
BLOCK = 256
#: Columns of `nodes`: where its rows are, where its histogram is, how deep it lies; −1 or the feature it
#: splits and its first child (the second is next to it).
BEGIN, END, SLOT, DEPTH, FEATURE, CHILD = 0, 1, 2, 3, 4, 5
#: A split must beat the best so far by this share, so that rounding does not decide.
BETTER = 1e-9


def in_units(V: NDArray[np.float64]) -> None:
    """Round each column to multiples of a power of two so small that every sum of its rows is exact."""
    # A little more than the sum of absolute values: neither its rounding nor the order of rows can matter.
    exponent = np.frexp(1.0001 * np.abs(V).sum(axis=0))[1] - 52
    unit = np.maximum(np.ldexp(1.0, exponent), 2.0**-1000)
    V /= unit
    np.rint(V, out=V)
    V *= unit


@njit(cache=True, nogil=True)
def add_histogram(codes, offsets, V, order, begin, end, features, first, last, out):
    """out[bin of n] += V[n] for the rows order[begin:end] and features[first:last]."""
    width = V.shape[1]
    block = np.empty((BLOCK, width))
    rows = np.empty(BLOCK, np.int64)
    for start in range(begin, end, BLOCK):
        size = min(BLOCK, end - start)
        for i in range(size):
            n = order[start + i]
            rows[i] = n
            for k in range(width):
                block[i, k] = V[n, k]
        if width == 2:
            for i in range(size):
                n, v0, v1 = rows[i], block[i, 0], block[i, 1]
                for f in range(first, last):
                    j = features[f]
                    b = offsets[j] + codes[n, j]
                    out[b, 0] += v0
                    out[b, 1] += v1
        else:
            for f in range(first, last):
                j = features[f]
                offset = offsets[j]
                for i in range(size):
                    b = offset + codes[rows[i], j]
                    for k in range(width):
                        out[b, k] += block[i, k]


@njit(cache=True, nogil=True)
def _score(sums, l2):
    """‖sum‖²/(weight + l2): the square of the projected length."""
    if sums[0] <= 0.0:
        return 0.0
    total = 0.0
    for k in range(1, len(sums)):
        total += sums[k] * sums[k]
    return total / (sums[0] + l2)


@njit(cache=True, nogil=True)
def _draw(seed, a, b):
    """Return a number in [0, 1) that depends on nothing else (SplitMix64)."""
    x = (
        np.uint64(seed)
        + np.uint64(a + 1) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(b + 1) * np.uint64(0xD1B54A32D192ED03)
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.float64(x >> np.uint64(11)) / 9007199254740992.0


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
            key[bins[i]] = np.rint(key[bins[i]] / (BETTER * largest))
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
def _is_monotone(left, right, l2, sign):
    """Return whether the leaf values move by `sign` from left to right, in every output."""
    if sign == 0:
        return True
    for k in range(1, len(left)):
        if sign * (right[k] / (right[0] + l2) - left[k] / (left[0] + l2)) < 0.0:
            return False
    return True


@njit(cache=True, nogil=True)
def _draw_cut(table, bins, count, place):
    """Return a cut between the first and the last bin that hold rows, −1 if there are no two such bins."""
    first, last = 0, count - 1
    while first < last and table[bins[first], 0] <= 0.0:
        first += 1
    while first < last and table[bins[last], 0] <= 0.0:
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
    if table[n_bins, 0] <= 0.0:
        missing_left = weight > (total - weight) * (1.0 + BETTER)
    elif is_categorical:
        missing_left = _goes_left(mask, n_bins)
    if missing_left:
        _send_left(mask, n_bins)
        if is_categorical:
            for b in range(n_bins):
                if table[b, 0] <= 0.0:
                    _send_left(mask, b)


@njit(cache=True, nogil=True)
def find_split(hist, offsets, categorical, monotone, features, total, rules, seed, node, mask):
    """Return the gain and the feature of a node's best split; `mask` receives the bins that go left.

    `rules` are: least weight of a leaf (positive), l2, whether cuts are drawn at random.  A numeric split
    sends a prefix of the bins left and the missing ones to the better side; a categorical one a prefix of the
    categories, missing among them, in the order of their means.
    """
    least, l2, random = rules[0], rules[1], rules[2] > 0.0
    width = hist.shape[1]
    best_gain, best_feature, best_cut, best_missing = 0.0, -1, -1, False
    base = _score(total, l2)
    left, right = np.empty(width), np.empty(width)
    bins, best_bins, key = np.empty(257, np.int64), np.empty(257, np.int64), np.empty(257)
    for f in range(len(features)):
        j = features[f]
        table = hist[offsets[j] : offsets[j + 1]]
        n_bins = len(table) - 1
        missing = table[n_bins]
        if categorical[j]:
            count = _sorted_bins(table, bins, key)
        else:
            count = n_bins
            for b in range(n_bins):
                bins[b] = b
        has_missing = missing[0] > 0.0 and not categorical[j]
        only = -1
        if random:
            only = _draw_cut(table, bins, count, _draw(seed, node, j))
            if only < 0 and has_missing:
                only = count - 1
            if only < 0:
                continue
        for side in range(2 if has_missing else 1):  # where missing values go: right, then left
            for k in range(width):
                left[k] = missing[k] if side == 1 else 0.0
            for i in range(count if has_missing and side == 0 else count - 1):
                b = bins[i]
                if table[b, 0] <= 0.0 and i != only:
                    continue
                for k in range(width):
                    left[k] += table[b, k]
                if left[0] < least or i < only:
                    continue
                if total[0] - left[0] < least or (only >= 0 and i > only):
                    break
                gain, other = 0.0, 0.0
                for k in range(1, width):
                    r = total[k] - left[k]
                    gain += left[k] * left[k]
                    other += r * r
                gain = gain / (left[0] + l2) + other / (total[0] - left[0] + l2) - base
                if gain > best_gain * (1.0 + BETTER):
                    for k in range(width):
                        right[k] = total[k] - left[k]
                    if _is_monotone(left, right, l2, monotone[j]):
                        best_gain, best_feature, best_cut, best_missing = gain, j, i, side == 1
                        if categorical[j]:
                            best_bins[: i + 1] = bins[: i + 1]
    if best_feature >= 0:
        table = hist[offsets[best_feature] : offsets[best_feature + 1]]
        if not categorical[best_feature]:
            best_bins[:] = np.arange(len(best_bins))
        _write_mask(table, categorical[best_feature], best_bins[: best_cut + 1], best_missing, total[0], mask)
    return best_gain, best_feature


@njit(cache=True, nogil=True)
def partition(codes, order, spare, begin, end, feature, mask):
    """Put the rows of a node that go left before the others; return where these begin."""
    left, right = begin, 0
    for i in range(begin, end):
        n = order[i]
        c = codes[n, feature]
        if _goes_left(mask, c):
            order[left] = n
            left += 1
        else:
            spare[right] = n
            right += 1
    for i in range(right):
        order[left + i] = spare[i]
    return left


@njit(cache=True, nogil=True)
def grow(
    codes,
    offsets,
    categorical,
    monotone,
    features,
    V,
    order,
    spare,
    hists,
    nodes,
    totals,
    gains,
    splits,
    masks,
    rules,
    limits,
    seed,
    n_nodes,
    waiting,
    threshold,
):
    """Split the best leaf until no more may be; return (number of nodes, node that waits or −1).

    A histogram of more than `threshold` operations is left to the caller, who has threads; `waiting` is then
    the node it was made for.  `limits` are the largest number of leaves, the depth, and the least gain.
    """
    max_leaves, max_depth, min_gain = int(limits[0]), int(limits[1]), limits[2]
    small = waiting
    while True:
        if small < 0:
            n_leaves = (n_nodes + 1) // 2
            best = -1
            if n_leaves < max_leaves:
                for node in range(n_nodes):
                    better = gains[node] > (min_gain if best < 0 else gains[best] * (1.0 + BETTER))
                    if nodes[node, FEATURE] < 0 and better:
                        best = node
            if best < 0:
                return n_nodes, -1
            begin, end = nodes[best, BEGIN], nodes[best, END]
            middle = partition(codes, order, spare, begin, end, splits[best], masks[best])
            nodes[best, FEATURE], nodes[best, CHILD] = splits[best], n_nodes
            small = n_nodes if middle - begin <= end - middle else n_nodes + 1
            large = 2 * n_nodes + 1 - small
            for child in (n_nodes, n_nodes + 1):
                nodes[child, BEGIN] = begin if child == n_nodes else middle
                nodes[child, END] = middle if child == n_nodes else end
                nodes[child, DEPTH] = nodes[best, DEPTH] + 1
                nodes[child, FEATURE] = -1
            nodes[large, SLOT], nodes[small, SLOT] = nodes[best, SLOT], (n_nodes + 1) // 2
            n_nodes += 2
            hists[nodes[small, SLOT]] = 0.0
            size = nodes[small, END] - nodes[small, BEGIN]
            if (n_nodes + 1) // 2 < max_leaves:  # else nobody will ask
                if size * len(features) * V.shape[1] > threshold:
                    return n_nodes, small
                add_histogram(
                    codes,
                    offsets,
                    V,
                    order,
                    nodes[small, BEGIN],
                    nodes[small, END],
                    features,
                    0,
                    len(features),
                    hists[nodes[small, SLOT]],
                )
        if (n_nodes + 1) // 2 >= max_leaves:
            return n_nodes, -1
        if small > 0:
            large = small + 1 if small % 2 == 1 else small - 1
            hists[nodes[large, SLOT]] -= hists[nodes[small, SLOT]]
        else:
            large = small
        for node in (small, large):
            gains[node] = 0.0
            hist = hists[nodes[node, SLOT]]
            j = features[0]
            for k in range(V.shape[1]):
                totals[node, k] = 0.0
                for b in range(offsets[j], offsets[j + 1]):
                    totals[node, k] += hist[b, k]
            if nodes[node, DEPTH] < max_depth and totals[node, 0] >= 2.0 * rules[0]:
                gains[node], splits[node] = find_split(
                    hist,
                    offsets,
                    categorical,
                    monotone,
                    features,
                    totals[node],
                    rules,
                    seed,
                    node,
                    masks[node],
                )
            if node == large and small == 0:
                break
        small = -1


@njit(cache=True, nogil=True)
def leaf_of_rows(order, nodes, leaf_of_node, n_nodes, out):
    """out[n] = number of the leaf of row n, for the rows in `order`."""
    for node in range(n_nodes):
        if nodes[node, FEATURE] < 0:
            for i in range(nodes[node, BEGIN], nodes[node, END]):
                out[order[i]] = leaf_of_node[node]


@njit(cache=True, nogil=True)
def leaf_sums(leaf, V, out):
    """out[leaf of n] += V[n]."""
    for n in range(len(leaf)):
        c = leaf[n]
        for k in range(V.shape[1]):
            out[c, k] += V[n, k]


@njit(cache=True, nogil=True)
def descend(codes, feature, child, masks, leaf_of_node, start, stop, out):
    """out[n] = number of the leaf of row n, for any rows start … stop − 1."""
    for n in range(start, stop):
        node = 0
        while feature[node] >= 0:
            c = codes[n, feature[node]]
            node = child[node] + 1 - np.int64(masks[node, c >> 6] >> np.uint64(c & 63) & np.uint64(1))
        out[n] = leaf_of_node[node]


@njit(cache=True, nogil=True)
def add_trees(F, codes, roots, feature, child, masks, leaf_of_node, values, start, stop):
    """F[n] += the values of every tree at row n; trees are laid one after the other, `roots` says where."""
    K = F.shape[1]
    for begin in range(start, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        for t in range(len(roots)):
            root = roots[t]
            for n in range(begin, end):
                node = root
                while feature[node] >= 0:
                    c = codes[n, feature[node]]
                    node = child[node] + 1 - np.int64(masks[node, c >> 6] >> np.uint64(c & 63) & np.uint64(1))
                leaf = leaf_of_node[node]
                for k in range(K):
                    F[n, k] += values[leaf, k]
