"""Sums over the rows of each leaf."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexboost.core.space import Array, FunctionSpace
from convexboost.core.sums import CellSums
from convexboost.kernels import parallel


def leaf_sums(
    columns: Array,
    space: FunctionSpace,
    leaf: Any,
    n_leaves: int,
    bound: float | None = None,
    n_threads: int = 1,
) -> Array:
    """Return Σ p_n and, behind it, Σ p_n columns_n over the rows of each leaf, (n_leaves, 1 + n_columns).

    `bound` is at least Σ p_n |columns_n|, a norm, say; it is the largest entry if None.
    """
    found: list[CellSums] = []
    if bound is None:
        bound = space.communicator.largest(np.abs(columns).max(initial=0.0))

    def task(start: int, stop: int) -> None:
        rows = slice(start, stop)
        found.append(space.part(rows).exact_sums(leaf[rows], columns[rows], n_leaves, bound))

    parallel.run(task, len(columns), 2.0 * columns.size, n_threads)
    return space.added(found).table()
