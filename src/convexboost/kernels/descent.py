"""From the root of a tree to the leaf of each row."""

from typing import Any, NamedTuple

import numpy as np

from convexboost.core.bits import local_array
from convexboost.core.compiling import kernel, part

#: Rows that go down a tree together: their state stays in the nearest cache.
BLOCK = 256


class Branches(NamedTuple):
    """The nodes of one or more trees, one tree after the other."""

    feature: Any  #: int32: the feature that a node splits, −1 for a leaf
    child: Any  #: int32: its left child; the right one is next to it
    masks: Any  #: uint64, (n_nodes, 4): a bit for each bin that goes left
    leaf_of_node: Any  #: int32: the number of the leaf


index = np.uint64
ONE = index(1)


@part
def _walk(codes, begin, size, root, branches, at, active):
    """Find the leaf at[i] of the rows begin + i, i < size: all rows go one level down, then the next.

    The steps of different rows do not wait for each other, and no branch has to be predicted.
    """
    feature, child, masks = branches.feature, branches.child, branches.masks
    for i in range(index(size)):
        at[i] = root
        active[i] = i
    n_active = index(size if feature[root] >= 0 else 0)
    while n_active > 0:
        kept = index(0)
        for a in range(n_active):
            row = index(active[a])
            node = index(at[row])
            c = codes[index(begin) + row, index(feature[node])]
            bit = np.int32(masks[node, index(c >> 6)] >> index(c & 63) & ONE)
            below = child[node] + np.int32(1) - bit
            at[row] = below
            active[kept] = row
            kept += index(feature[index(below)] >= 0)
        n_active = kept


@part
def part_rows(column, order, spare, begin, end, mask):
    """Move the rows that go left to order[begin:] and the others to spare[begin:]; return how many go left.

    `column` holds the codes of one feature: neighbouring rows share lines of the cache.
    """
    goes_left = local_array(256, np.uint8)
    for b in range(256):
        goes_left[b] = mask[b >> 6] >> index(b & 63) & ONE
    left, right = index(begin), index(begin)
    for i in range(index(begin), index(end)):
        n = order[i]
        goes = index(goes_left[column[index(n)]])
        order[left] = n  # write to both, advance in one: no branch has to be predicted
        spare[right] = n
        left += goes
        right += ONE - goes
    return np.int64(left) - begin


@kernel(allocates=False)
def descend(columns, branches, order, spare, ends, out):
    """out[n] = number of the leaf of row n in one tree, for the rows in `order`.

    Node by node: order[ends[i, 0] : ends[i, 1]] become the rows of node i.
    """
    ends[0, 0], ends[0, 1] = 0, len(order)
    for node in range(len(ends)):
        begin, end, feature = ends[node, 0], ends[node, 1], branches.feature[node]
        if feature < 0:
            for i in range(index(begin), index(end)):
                out[index(order[i])] = branches.leaf_of_node[node]
        else:
            middle = begin + part_rows(columns[feature], order, spare, begin, end, branches.masks[node])
            for i in range(index(middle), index(end)):
                order[i] = spare[i - index(middle - begin)]
            child = branches.child[node]
            ends[child, 0], ends[child, 1] = begin, middle
            ends[child + 1, 0], ends[child + 1, 1] = middle, end


@kernel(allocates=False)
def add_trees(F, codes, roots, branches, values, start, stop):
    """F[n] += the values of all trees at row n, for rows start … stop − 1; tree t begins at roots[t]."""
    at, active, leaf_of_node = (
        local_array(BLOCK, np.int32),
        local_array(BLOCK, np.int32),
        branches.leaf_of_node,
    )
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        for t in range(index(len(roots))):
            _walk(codes, begin, size, roots[t], branches, at, active)
            for i in range(index(size)):
                leaf, n = index(leaf_of_node[index(at[i])]), index(begin) + i
                for k in range(index(F.shape[1])):
                    F[n, k] += values[leaf, k]
