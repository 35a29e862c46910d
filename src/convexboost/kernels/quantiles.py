"""Weighted quantiles of many leaves, by selection."""

import numpy as np

from convexboost.core.compiling import kernel


@kernel
def _select(values, units, low, high, wanted):
    """Return the smallest of values[low:high] with at least `wanted` units at or below it; overwrites them.

    The values that are kept move to the front: each one is written, but the place advances only if it is
    kept, so that no branch has to be predicted.
    """
    pivot = values[low]
    while low < high:
        a, b, c = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        less, equal = 0, 0
        for i in range(np.uint64(low), np.uint64(high)):
            less += units[i] if values[i] < pivot else 0
            equal += units[i] if values[i] == pivot else 0
        if less < wanted <= less + equal:
            break
        is_below = wanted <= less
        wanted -= 0 if is_below else less + equal
        kept = np.uint64(low)
        for i in range(np.uint64(low), np.uint64(high)):
            value = values[i]
            values[kept], units[kept] = value, units[i]
            kept += np.uint64(value < pivot if is_below else value > pivot)
        high = np.int64(kept)
    return pivot


@kernel
def leaf_quantiles(residuals, weight, units, leaf, q, out):
    """out[l, k] = the smallest value of column k in leaf l with at least Σ q · weight at or below it.

    `q` has a number for each row.  Weights are rounded to whole numbers of units.
    """
    n_leaves, n = len(out), len(leaf)
    ends, wanted = np.zeros(n_leaves + 1, np.int64), np.zeros(n_leaves, np.int64)
    whole = np.empty(n, np.int64)
    for i in range(n):
        whole[i] = np.int64(np.rint(weight[i] * units))
    for i in range(n):
        ends[leaf[i] + 1] += 1
        wanted[leaf[i]] += np.int64(np.rint(q[i] * whole[i]))
    for c in range(n_leaves):
        ends[c + 1] += ends[c]
    place, values, weights = np.empty(n_leaves, np.int64), np.empty(n), np.empty(n, np.int64)
    for k in range(residuals.shape[1]):
        for c in range(n_leaves):
            place[c] = ends[c]
        for i in range(n):
            at = place[leaf[i]]
            values[at], weights[at] = residuals[i, k], whole[i]
            place[leaf[i]] = at + 1
        for c in range(n_leaves):
            count = ends[c + 1] - ends[c]
            if count > 0:
                # Less by the rounding of all rows, so that a row of weight 2 is the row twice.
                least = max(wanted[c] - count - 256, 1)
                out[c, k] = _select(values, weights, ends[c], ends[c + 1], least)
