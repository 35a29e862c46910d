"""From the root of a tree to the leaf of each row."""

from typing import Any, NamedTuple

import numpy as np

from convexboost.core.bits import local_array
from convexboost.core.compiling import kernel

#: Rows that go down a tree together: their state stays in the nearest cache.
BLOCK = 256


class Branches(NamedTuple):
    """The nodes of one or more trees, one tree after the other."""

    feature: Any  #: int32: the feature that a node splits, −1 for a leaf
    child: Any  #: int32: its left child; the right one is next to it
    masks: Any  #: uint64, (n_nodes, 4): a bit for each bin that goes left
    leaf_of_node: Any  #: int32: the number of the leaf


@kernel(inline="always")
def _walk(codes, begin, root, branches, at, active):
    """Find the leaf at[i] of every row begin + i: all rows go one level down, then the next.

    The steps of different rows do not wait for each other, and no branch has to be predicted.
    """
    feature, child, masks = branches.feature, branches.child, branches.masks
    for i in range(len(at)):
        at[i] = root
        active[i] = i
    n_active = len(at) if feature[root] >= 0 else 0
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


@kernel
def descend(codes, branches, start, stop, out):
    """out[n] = number of the leaf of row n in one tree, for rows start … stop − 1."""
    at, active = local_array(BLOCK, np.int32), local_array(BLOCK, np.int32)
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        _walk(codes, begin, 0, branches, at[:size], active)
        for i in range(size):
            out[begin + i] = branches.leaf_of_node[at[i]]


@kernel
def add_trees(F, codes, roots, branches, values, start, stop):
    """F[n] += the values of all trees at row n, for rows start … stop − 1; tree t begins at roots[t]."""
    at, active = local_array(BLOCK, np.int32), local_array(BLOCK, np.int32)
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        for t in range(len(roots)):
            _walk(codes, begin, roots[t], branches, at[:size], active)
            for i in range(size):
                leaf = branches.leaf_of_node[at[i]]
                for k in range(F.shape[1]):
                    F[begin + i, k] += values[leaf, k]
