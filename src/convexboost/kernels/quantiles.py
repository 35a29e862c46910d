"""Weighted quantiles of many leaves, by selection.

Rows in one process are selected by pivots.  Rows that are spread over processes are selected by counting: the
leaves' quantiles are found eight bits at a time, from counts that are added up over the processes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.communicator import Communicator
from convexboost.core.compiling import kernel, part

#: Bits found at a time, and the number of their values.
DIGIT_BITS, DIGITS = 8, 256
SIGN = np.uint64(1 << 63)

index = np.uint64
ZERO, ONE = index(0), index(1)


@part
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


@kernel(allocates=False)
def count_wanted(leaf, units, shares, out):
    """out[l] += Σ share · units of the rows of leaf l, rounded for each row, and how many rows there are."""
    for i in range(index(len(leaf))):
        c = index(leaf[i])
        out[c, ZERO] += np.int64(np.rint(shares[i] * units[i]))
        out[c, ONE] += 1


def select(
    values: Any, units: Any, leaf: Any, wanted: NDArray[np.int64], communicator: Communicator
) -> NDArray[np.float64]:
    """Return the smallest value of each leaf and column with at least wanted[leaf] units at or below it.

    0 where nothing is wanted; else the units of a leaf, of all processes, must add up to what is wanted.
    """
    out = np.zeros((len(wanted), values.shape[1]))
    if communicator.size == 1:
        n_leaves, n = len(wanted), len(leaf)
        room = (
            np.zeros(n_leaves + 1, np.int64),
            np.empty(n_leaves, np.int64),
            np.empty(n),
            np.empty_like(units),
        )
        _select_here(values, units, leaf, wanted, room, out)
        return out + 0.0  # −0 is 0
    keys = (np.ascontiguousarray(values, float) + 0.0).view(np.uint64)
    keys = np.where(keys & SIGN, ~keys, keys | SIGN)  # in the order of the numbers
    found = np.zeros(out.shape, np.uint64)
    left = np.repeat(wanted[:, None], out.shape[1], axis=1)
    for shift in range(64 - DIGIT_BITS, -1, -DIGIT_BITS):
        counts = np.zeros((*out.shape, DIGITS), np.int64)
        _count_digits(keys, units, leaf, found, shift, counts)
        reached = np.cumsum(communicator.add(counts), axis=2)
        digit = (reached < left[:, :, None]).sum(axis=2).clip(max=DIGITS - 1)
        reached = np.concatenate([np.zeros((*out.shape, 1), np.int64), reached], axis=2)
        left = left - np.take_along_axis(reached, digit[:, :, None], axis=2)[:, :, 0]
        found = found << np.uint64(DIGIT_BITS) | digit.astype(np.uint64)
    bits = np.where(found & SIGN, found ^ SIGN, ~found)
    return np.where(wanted[:, None] > 0, np.ascontiguousarray(bits).view(np.float64), 0.0)


@kernel(allocates=False)
def _count_digits(keys, units, leaf, found, shift, counts):
    """counts[l, k, d] += units of the rows of leaf l whose digit is d and whose bits above it were found."""
    for i in range(len(leaf)):
        c = leaf[i]
        for k in range(keys.shape[1]):
            above = keys[i, k] >> np.uint64(shift)
            if above >> np.uint64(DIGIT_BITS) == found[c, k]:
                counts[c, k, np.int64(above & np.uint64(DIGITS - 1))] += units[i]


@kernel(allocates=False)
def _select_here(residuals, units, leaf, wanted, room, out):
    """out[l, k] = the smallest value of column k in leaf l with at least wanted[l] units at or below it.

    The `room` is four arrays to be overwritten, the first of them zeros: a kernel that makes arrays of its
    own needs Numba's runtime, which takes 15 MiB.
    """
    n_leaves, n, (ends, place, values, weights) = len(out), len(leaf), room
    for i in range(index(n)):
        ends[index(leaf[i]) + ONE] += 1
    for c in range(n_leaves):
        ends[c + 1] += ends[c]
    for k in range(index(residuals.shape[1])):
        for c in range(n_leaves):
            place[c] = ends[c]
        for i in range(index(n)):
            own = index(leaf[i])
            at = index(place[own])
            values[at], weights[at] = residuals[i, k], units[i]
            place[own] += 1
        for c in range(n_leaves):
            if ends[c + 1] > ends[c] and wanted[c] > 0:
                out[c, k] = _select(values, weights, ends[c], ends[c + 1], wanted[c])
