"""The vector Δ that trees are grown on: its update, and its rows in whole numbers."""

from typing import Any, NamedTuple

import numpy as np

from convexboost.core.compiling import kernel


class Update(NamedTuple):
    """D ← factor (D − table[leaf]) + scale G."""

    factor: float
    leaf: Any  #: int32, (n,)
    table: Any  #: float64, (n_leaves, n_outputs)
    scale: float
    G: Any  #: float64, as D


@kernel
def update_target(D, update, start, stop):
    """Update rows start … stop − 1."""
    factor, leaf, table, scale, G = update
    for i in range(np.uint64(start), np.uint64(stop)):
        out = np.uint64(leaf[i])
        for k in range(np.uint64(D.shape[1])):
            D[i, k] = factor * (D[i, k] - table[out, k]) + scale * G[i, k]


@kernel(inline="always")
def _quantise(D, counts, weight, scale, out, K):
    for i in range(np.uint64(len(D))):
        out[i, 0] = counts[i]
        factor = scale if len(weight) == 0 else scale * weight[i]
        times = counts[i] if len(weight) == 0 else np.int32(1)
        for k in range(np.uint64(K)):
            out[i, np.uint64(1) + k] = times * np.int32(np.rint(D[i, k] * factor))


@kernel
def quantise(D, counts, weight, scale, out):
    """Write weight and, behind it, weight · scale · D in whole numbers.

    `counts` are the weights in whole numbers.  Where they are exact, `weight` is empty and a row with weight
    2 is exactly the row twice.
    """
    if D.shape[1] == 1:
        _quantise(D, counts, weight, scale, out, 1)
    else:
        _quantise(D, counts, weight, scale, out, D.shape[1])
