"""Shapley values of trees with vector leaves, for all outputs at once.

The value of a set of known columns is the mean of a tree over the others: at a split on an unknown column a
row goes both ways, in the proportion of the training rows (path-dependent), or as rows of a background do.

**Path-dependent.**  Take the leaf ℓ with value v.  For each column j on its path let q_j be 1 if the row
satisfies all conditions on j, else 0, and p_j the share of training rows that do, in the proportions of the
splits.  The Shapley weights s! (d − s − 1)! / d! are ∫ tˢ (1 − t)ᵈ⁻ˢ⁻¹ dt over [0, 1], so

    φ_i = v (q_i − p_i) ∫ Π_{j≠i} (q_j t + p_j (1 − t)) dt.

The integrand is a polynomial of degree d − 1, and Gauss-Legendre quadrature with ⌈d/2⌉ points is exact.  At
each point the product G over all columns is handed down from the root, and the sums S of v G over leaves go
back up.  A node n on column i contributes S_n (q_n − p_n) / (q_n t + p_n (1 − t)) for the leaves below it,
and takes back the contribution of the node above it on the same column.  A row costs O(nodes · d/2)
operations for each tree and output (Linear TreeSHAP, Yu et al. 2022, has the same order by other means).

**Interactions** are ½ v (q_i − p_i) (q_j − p_j) ∫ Π_{k≠i,j}, by the same quadrature, pair by pair and leaf by
leaf.

**Interventional.**  For a row and a background row, a leaf counts if every column on its path is satisfied by
one of the two.  With a columns satisfied by the row only, and b by the other only, columns of the first kind
get v (a − 1)! b! / (a + b)!, those of the second −v a! (b − 1)! / (a + b)!.

Rows are taken in blocks, so that every operation is a vector instruction.
"""

from typing import Any, NamedTuple

import numpy as np

from convexboost.core.compiling import kernel, part

#: Rows that are worked on together.
BLOCK = 16
#: Columns on a path at most, for interventional values: they are bits of a word.
MOST_COLUMNS = 64

index = np.uint64
ONE = index(1)


class Paths(NamedTuple):
    """The nodes of trees, one tree after the other, as they are reached from the root."""

    ends: Any  #: int64: the nodes of tree t are ends[t] … ends[t + 1] − 1
    feature: Any  #: int32: the binned column that a node splits, −1 for a leaf
    masks: Any  #: uint64, (n_nodes, 4): the bins that go left
    leaf: Any  #: int32: the number of a leaf
    parent: Any  #: int32: −1 for a root
    is_left: Any  #: bool: whether it is the left child
    column: Any  #: int32: the column of X that its parent splits
    previous: Any  #: int32: the nearest node above with the same `column`, −1 where there is none
    share: Any  #: float64: p of this column, as far as the node
    slot: Any  #: int32: the number of this column among those of the path
    n_columns: Any  #: int32: how many different columns are on the path


class Quadrature(NamedTuple):
    """Gauss-Legendre quadrature on [0, 1] with 1, 2, … points: row m has m points."""

    points: Any
    weights: Any


@kernel(allocates=False)
def find_paths(paths, child, cover, sources):
    """Fill the last seven columns of `paths`; `child` is the left one, `cover` the rows of each node."""
    parent, previous, column = paths.parent, paths.previous, paths.column
    for t in range(len(paths.ends) - 1):
        root = paths.ends[t]
        parent[root] = previous[root] = column[root] = paths.slot[root] = -1
        paths.n_columns[root], paths.share[root], paths.is_left[root] = 0, 1.0, False
        for node in range(root, paths.ends[t + 1]):
            if paths.feature[node] < 0:
                continue
            for side in range(2):
                below = child[node] + side
                parent[below], paths.is_left[below] = node, side == 0
                column[below] = sources[paths.feature[node]]
                up = node
                while up >= 0 and column[up] != column[below]:
                    up = parent[up]
                previous[below] = up
                share = cover[below] / cover[node] if cover[node] > 0.0 else 0.5
                paths.share[below] = share * (paths.share[up] if up >= 0 else 1.0)
                paths.slot[below] = paths.slot[up] if up >= 0 else paths.n_columns[node]
                paths.n_columns[below] = paths.n_columns[node] + (up < 0)


class Work(NamedTuple):
    """A tree, and what is known of a block of rows in each of its nodes, counted from the root."""

    first: int  #: the number of the root
    n_nodes: int
    points: Any  #: of the quadrature
    weights: Any
    handed: Any  #: (n_nodes, 3, n_points): the factor of G from the parent to a node, by state
    state: Any  #: uint8, (n_nodes, BLOCK): whether a row satisfies the conditions on the node's column
    G: Any  #: (n_nodes, n_points, BLOCK)


#: States: the row satisfies the column's conditions up to this node; all but that of this node; it failed
#: before.
SATISFIED, FAILS, FAILED = 0, 1, 2


@part(allocates=True)
def _work(paths, quadrature, tree):
    """Make room for a tree, and find the factors of G."""
    first, end, most = paths.ends[tree], paths.ends[tree + 1], 1
    for node in range(first, end):
        most = max(most, paths.n_columns[node])
    n_nodes, n_points = end - first, (most + 1) // 2
    handed = np.empty((n_nodes, 3, n_points))
    points, weights = quadrature.points[n_points, :n_points], quadrature.weights[n_points, :n_points]
    for i in range(1, n_nodes):
        p, up = paths.share[first + i], paths.previous[first + i]
        for m in range(n_points):
            t = points[m]
            before, lost = 1.0, 0.0
            if up >= 0:
                before = t + paths.share[up] * (1.0 - t)
                lost = p / paths.share[up] if paths.share[up] > 0.0 else 0.0
            handed[i, SATISFIED, m] = (t + p * (1.0 - t)) / before
            handed[i, FAILS, m] = p * (1.0 - t) / before
            handed[i, FAILED, m] = lost
    state = np.zeros((n_nodes, BLOCK), np.uint8)
    return Work(first, n_nodes, points, weights, handed, state, np.empty((n_nodes, n_points, BLOCK)))


@part
def _hand_down(codes, paths, work, begin, size):
    """Find the state of each row of a block in each node, and G."""
    first, state, handed, G = work.first, work.state, work.handed, work.G
    n_points = index(len(work.points))
    for m in range(n_points):
        for r in range(index(BLOCK)):
            G[0, m, r] = 1.0
    for i in range(index(1), index(work.n_nodes)):
        node = index(first) + i
        above, up = index(paths.parent[node]), paths.previous[node]
        j, is_left = index(paths.feature[above]), paths.is_left[node]
        for r in range(index(size)):
            c = codes[index(begin) + r, j]
            bit = paths.masks[above, index(c >> 6)] >> index(c & 63) & ONE
            failed = up >= 0 and state[index(up - first), r] != SATISFIED
            state[i, r] = FAILED if failed else (SATISFIED if (bit == ONE) == is_left else FAILS)
        above -= index(first)
        for m in range(n_points):
            u0, u1, u2 = handed[i, 0, m], handed[i, 1, m], handed[i, 2, m]
            for r in range(index(BLOCK)):
                s = state[i, r]
                G[i, m, r] = G[above, m, r] * (u0 if s == 0 else (u1 if s == 1 else u2))


@kernel
def add_contributions(out, codes, paths, values, quadrature, start, stop):
    """out[j, k, n] += φ_j of output k at row n, for rows start … stop − 1; `values` are those of leaves."""
    for tree in range(len(paths.ends) - 1):
        work = _work(paths, quadrature, tree)
        n_points = len(work.points)
        back = np.empty((work.n_nodes, 2, n_points))
        for below in range(1, work.n_nodes):
            p, up = paths.share[work.first + below], paths.previous[work.first + below]
            for m in range(n_points):
                t, w, taken = work.points[m], work.weights[m], 0.0
                if up >= 0:
                    taken = (1.0 - paths.share[up]) * w / (t + paths.share[up] * (1.0 - t))
                back[below, SATISFIED, m] = (1.0 - p) * w / (t + p * (1.0 - t)) - taken
                back[below, FAILS, m] = -w / (1.0 - t) - taken
        S, found = np.empty((work.n_nodes, n_points, BLOCK)), np.empty(BLOCK)
        for begin in range(start, stop, BLOCK):
            size = min(BLOCK, stop - begin)
            _hand_down(codes, paths, work, begin, size)
            for k in range(out.shape[1]):
                for last in range(work.n_nodes - 1):
                    i = index(work.n_nodes - 1 - last)
                    node = index(work.first) + i
                    if paths.feature[node] < 0:
                        _scale(work.G, i, values[index(paths.leaf[node]), index(k)], S)
                    _hand_back(paths, work, i, back, S, found)
                    j = index(paths.column[node])
                    for r in range(index(size)):
                        out[j, index(k), index(begin) + r] += found[r]


@part
def _scale(G, i, v, S):
    """S[i] = v G[i]."""
    for m in range(index(G.shape[1])):
        for r in range(index(BLOCK)):
            S[i, m, r] = v * G[i, m, r]


@part
def _hand_back(paths, work, i, back, S, found):
    """Find the contribution of node i; the sum over its leaves goes to its parent, the right child first."""
    node = index(work.first) + i
    above, is_left = index(paths.parent[node] - work.first), paths.is_left[node]
    for r in range(index(BLOCK)):
        found[r] = 0.0
    for m in range(index(len(work.points))):
        b0, b1 = back[i, 0, m], back[i, 1, m]
        for r in range(index(BLOCK)):
            s = work.state[i, r]
            found[r] += S[i, m, r] * (b0 if s == 0 else (b1 if s == 1 else 0.0))
        if is_left:
            for r in range(index(BLOCK)):
                S[above, m, r] += S[i, m, r]
        else:
            for r in range(index(BLOCK)):
                S[above, m, r] = S[i, m, r]


@kernel
def add_interactions(out, codes, paths, values, quadrature, start, stop):
    """out[i, j, k, n] += φ_ij of output k at row n for i ≠ j, rows start … stop − 1."""
    found = np.empty(BLOCK)
    for tree in range(len(paths.ends) - 1):
        work = _work(paths, quadrature, tree)
        lowest = np.empty(2 * len(work.points), np.int64)  # the last node of each column on a path
        for begin in range(start, stop, BLOCK):
            size = min(BLOCK, stop - begin)
            _hand_down(codes, paths, work, begin, size)
            for leaf in range(work.first, work.first + work.n_nodes):
                d = paths.n_columns[leaf]
                if paths.feature[leaf] >= 0 or d < 2:
                    continue
                lowest[:] = -1
                node = leaf
                while paths.parent[node] >= 0:
                    if lowest[paths.slot[node]] < 0:
                        lowest[paths.slot[node]] = node
                    node = paths.parent[node]
                for a in range(d):
                    for b in range(a + 1, d):
                        _pair(paths, work, leaf, lowest[a], lowest[b], found)
                        i, j = paths.column[lowest[a]], paths.column[lowest[b]]
                        for k in range(out.shape[2]):
                            v = 0.5 * values[paths.leaf[leaf], k]
                            for r in range(size):
                                out[i, j, k, begin + r] += v * found[r]
                                out[j, i, k, begin + r] += v * found[r]


@part
def _pair(paths, work, leaf, a, b, found):
    """Find (q_a − p_a) (q_b − p_b) ∫ Π over the other columns, for the rows of a block."""
    first, state = work.first, work.state
    p, o = paths.share[a], paths.share[b]
    for r in range(BLOCK):
        found[r] = 0.0
    for m in range(len(work.points)):
        t, w = work.points[m], work.weights[m]
        p1, o1, z = (1.0 - p) / (t + p * (1.0 - t)), (1.0 - o) / (t + o * (1.0 - t)), -1.0 / (1.0 - t)
        for r in range(BLOCK):
            x, y = (p1 if state[a - first, r] == 0 else z), (o1 if state[b - first, r] == 0 else z)
            found[r] += w * x * y * work.G[leaf - first, m, r]


@part
def _satisfied(codes, n, paths, first, n_nodes, bits):
    """bits[i] = the columns on the path to node i whose conditions row n satisfies; those not there too."""
    bits[0] = ~index(0)
    for i in range(1, n_nodes):
        node = first + i
        above = paths.parent[node]
        c = codes[n, paths.feature[above]]
        goes_left = (paths.masks[above, c >> 6] >> index(c & 63) & ONE) == ONE
        bits[i] = bits[above - first]
        if goes_left != paths.is_left[node]:
            bits[i] &= ~(ONE << index(paths.slot[node]))


@part
def _count(word):
    """Return the number of bits that are 1."""
    count = 0
    while word != index(0):
        word &= word - ONE
        count += 1
    return count


@kernel
def add_against(out, codes, background, paths, values, start, stop):
    """out[j, k, n] += φ_j of output k at row n, against the mean over the background rows."""
    n_outputs, n_others = out.shape[1], len(background)
    table = np.zeros((MOST_COLUMNS + 1, MOST_COLUMNS + 1))  # (a − 1)! b! / (a + b)! / n_others
    for b in range(MOST_COLUMNS):
        for a in range(1, MOST_COLUMNS + 1 - b):
            w = 1.0 / (a + b)
            for c in range(1, b + 1):  # 1 / ((a + b) · C(a + b − 1, b))
                w *= c / (a + b - c)
            table[a, b] = w / n_others
    for tree in range(len(paths.ends) - 1):
        first, n_nodes = paths.ends[tree], paths.ends[tree + 1] - paths.ends[tree]
        bits, others = np.empty(n_nodes, np.uint64), np.empty((n_others, n_nodes), np.uint64)
        weight, columns = np.empty(MOST_COLUMNS), np.empty(MOST_COLUMNS, np.int64)
        for n in range(n_others):
            _satisfied(background, n, paths, first, n_nodes, others[n])
        for n in range(start, stop):
            _satisfied(codes, n, paths, first, n_nodes, bits)
            for i in range(1, n_nodes):
                leaf = first + i
                if paths.feature[leaf] >= 0:
                    continue
                theirs, d = ~bits[i], paths.n_columns[leaf]  # only the background may satisfy these
                b, lost = _count(theirs), 0.0
                weight[:d] = 0.0
                for other in range(n_others):
                    mine = ~others[other, i]  # only the row may satisfy these
                    if mine & theirs != index(0):
                        continue
                    a = _count(mine)
                    lost += table[b, a]
                    w = table[a, b]
                    while mine != index(0):
                        lowest = mine & (~mine + ONE)
                        weight[_count(lowest - ONE)] += w
                        mine ^= lowest
                node = leaf
                while paths.parent[node] >= 0:
                    columns[paths.slot[node]] = paths.column[node]
                    node = paths.parent[node]
                for s in range(d):
                    w = weight[s] - (lost if theirs >> index(s) & ONE else 0.0)
                    if w != 0.0:
                        for k in range(n_outputs):
                            out[columns[s], k, n] += w * values[paths.leaf[leaf], k]
