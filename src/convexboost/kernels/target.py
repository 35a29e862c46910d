"""The vector Δ that trees are grown on: its update, and its rows in whole numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convexboost.core.compiling import kernel
from convexboost.core.space import Array

index = np.uint64
ZERO, ONE = index(0), index(1)


class Update(NamedTuple):
    """D ← factor (D − table[leaf]) + scale G."""

    factor: float
    leaf: Any  #: int32, (n,)
    table: Any  #: float64, (n_leaves, n_outputs)
    scale: float
    G: Any  #: float64, as D


@kernel(allocates=False)
def update_target(D, update, start, stop):
    """Update rows start … stop − 1."""
    factor, leaf, table, scale, G = update
    for i in range(np.uint64(start), np.uint64(stop)):
        out = np.uint64(leaf[i])
        for k in range(np.uint64(D.shape[1])):
            D[i, k] = factor * (D[i, k] - table[out, k]) + scale * G[i, k]


class Curvature(NamedTuple):
    """How much rows count where splits are chosen: factor · values, cut off at both ends."""

    values: Any  #: float64, (n,); empty: all rows count once
    factor: float = 1.0
    least: float = 1.0
    most: float = 1.0
    usual: float = 1.0  #: how much a row of mean curvature counts


def quantise(
    D: Array, counts: Any, weight: Array, scale: float, curvature: Curvature, out: NDArray[np.int32]
) -> None:
    """Write weight times curvature and, behind it, weight · scale · D in whole numbers.

    `counts` are the weights in whole numbers.  Where they are exact, `weight` is empty and a row with weight
    2 is exactly the row twice: its curvature is rounded first.
    """
    _quantise(D[:, 0] if D.shape[1] == 1 else D, counts, weight, scale, curvature, out)


@kernel(allocates=False)
def _quantise(D, counts, weight, scale, curvature, out):
    """Do so; where there is one output, D is a vector."""
    is_exact, is_curved = len(weight) == 0, len(curvature.values) > 0
    for i in range(index(len(D))):
        count = counts[i]
        factor, times = (scale, count) if is_exact else (scale * weight[i], np.int32(1))
        out[i, ZERO] = count
        if is_curved:
            share = min(max(curvature.values[i] * curvature.factor, curvature.least), curvature.most)
            bent = count * max(np.rint(share), 1.0) if is_exact else max(np.rint(count * share), 1.0)
            out[i, ZERO] = np.int32(bent)
        if D.ndim == 1:
            out[i, ONE] = times * np.int32(np.rint(D[i] * factor))
        else:
            for k in range(index(D.shape[1])):
                out[i, ONE + k] = times * np.int32(np.rint(D[i, k] * factor))
