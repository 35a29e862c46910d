"""Leaf values that respect monotone constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.hypotheses import Pooled
from convexboost.core.space import Array

if TYPE_CHECKING:
    from convexboost.learners._tree_function import TreeFunction


def nearest_monotone(tree: TreeFunction, values: Array, pooled: Pooled) -> Array:
    """Return the best leaf values that are monotone, from the best without constraints, output by output.

    `pooled` is the best common value of some leaves: their mean gives the projection of `values`.

    Monotone means: at a split on such a feature no value on the low side exceeds one on the high side.  Two
    inputs that differ only in that feature part at such a split, so this is enough, whatever the other
    features; a positive multiple of such a tree, and a sum, is monotone again.

    From the leaves up: let both sides be at their best already.  With a bound m between them the best of
    either side is the one without it, cut off at m (true of isotonic regression for convex losses under any
    partial order), and what that costs is convex in m.  So the leaves that are cut have the value m, and m is
    the best common value of just these.

    Projected, v* lies in a convex cone, so ⟨values, v*⟩ = ‖v*‖² ≥ 0: its coefficient is never negative.
    """
    if tree.monotone is None:
        return values
    found, below = values.copy(), _leaves_below(tree)
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:
        j = tree.feature[node]
        if j >= len(tree.monotone) or tree.monotone[j] == 0:  # statistics of categories have no direction
            continue
        sign = tree.monotone[j]
        low, high = (below[tree.child[node] + side] for side in ((0, 1) if sign > 0 else (1, 0)))
        for k in range(values.shape[1]):
            a, b = found[low, k], found[high, k]
            if a.max() > b.min():
                m = _meeting_point(low, a, high, b, pooled, k)
                found[low, k], found[high, k] = np.minimum(a, m), np.maximum(b, m)
    return found


def _meeting_point(low: Any, a: Array, high: Any, b: Array, pooled: Pooled, k: int) -> float:
    """Return the best m for min(a, m), max(b, m): between two levels the same leaves are cut.

    Where the best common value is a level, as a quantile may be, the leaf of that level has no say beyond it.
    """
    levels = np.unique(np.concatenate([a, b]))
    levels = levels[(levels >= b.min()) & (levels <= a.max())]
    first, last = 0, len(levels) - 2
    while True:
        i = (first + last) // 2
        m = pooled(np.concatenate([low[a >= levels[i + 1]], high[b <= levels[i]]]), k)
        if m >= levels[i + 1] and i < last:
            first = i + 1
        elif m <= levels[i] and i > first:
            last = i - 1
        else:
            return float(np.clip(m, levels[i], levels[i + 1]))


def means(values: Array, mass: Array) -> Pooled:
    """Return the mean of some leaves, as their best common value."""
    return lambda leaves, k: float(np.average(values[leaves, k], weights=np.maximum(mass[leaves], 1e-300)))


def _leaves_below(tree: TreeFunction) -> list[NDArray[np.int64]]:
    """Return the leaves under each node."""
    below: list[Any] = [None] * len(tree.feature)
    for node in range(len(tree.feature) - 1, -1, -1):
        if tree.feature[node] < 0:
            below[node] = np.array([tree.leaf_of_node[node]])
        else:
            below[node] = np.concatenate([below[tree.child[node]], below[tree.child[node] + 1]])
    return below
