"""Sums over the rows of each leaf."""

from typing import Any

import numpy as np

from convexboost.kernels.compiling import kernel

#: Tables that rows are added to in turn (a power of two).  Neighbouring rows are often in the same leaf, and
#: an addition need not wait for the one before.
N_TABLES = 4


def leaf_tables(n_leaves: int, n_outputs: int, dtype: type = float) -> Any:
    """Return zeros, (n_tables, n_leaves, 1 + n_outputs); the tables are added up in the end."""
    return np.zeros((N_TABLES if n_outputs == 1 else 1, n_leaves, 1 + n_outputs), dtype)


@kernel
def _add_leaf_sums(leaf, weight, columns, out, K):
    for n in range(np.uint64(len(leaf))):
        row, w = out[n & np.uint64(len(out) - 1), np.uint64(leaf[n])], weight[n]
        row[0] += w
        for k in range(np.uint64(K)):
            row[np.uint64(1) + k] += w * columns[n, k]


@kernel
def add_leaf_sums(leaf, weight, columns, out):
    """Add weight and, behind it, weight · columns to `leaf_tables`."""
    if columns.shape[1] == 1:
        _add_leaf_sums(leaf, weight, columns, out, 1)
    else:
        _add_leaf_sums(leaf, weight, columns, out, columns.shape[1])


@kernel
def _add_exact_leaf_sums(leaf, weight, columns, units, scale, out, K):
    for n in range(np.uint64(len(leaf))):
        row, factor = out[n & np.uint64(len(out) - 1), np.uint64(leaf[n])], weight[n] * scale
        row[0] += np.int64(np.rint(weight[n] * units))
        for k in range(np.uint64(K)):
            row[np.uint64(1) + k] += np.int64(np.rint(columns[n, k] * factor))


@kernel
def add_exact_leaf_sums(leaf, weight, columns, units, scale, out):
    """As `add_leaf_sums` in whole numbers: adds units · weight and scale · weight · columns, rounded."""
    if columns.shape[1] == 1:
        _add_exact_leaf_sums(leaf, weight, columns, units, scale, out, 1)
    else:
        _add_exact_leaf_sums(leaf, weight, columns, units, scale, out, columns.shape[1])
