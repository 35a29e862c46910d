"""Sums, means and quantiles of the rows in each leaf."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convexboost.core.space import Array, FunctionSpace
from convexboost.core.sums import total, whole
from convexboost.core.tolerances import KINK
from convexboost.kernels import quantiles
from convexboost.kernels.leaves import leaf_sums


def residual_sign(F: Array, y: Array) -> Array:
    """sgn(F − y), and 0 within rounding of the kink."""
    difference = F - y
    return np.sign(difference) * (np.abs(difference) > KINK * np.abs(y))


def leaf_quantiles(residuals: Array, space: FunctionSpace, leaf: Any, n_leaves: int, q: Any) -> Array:
    """Return the weighted q-quantile of each column in each leaf, 0 where a leaf has no rows.

    As in `weighted_quantile`, the smallest value with at least a share q of the weight at or below it; in
    whole numbers, so that neither rows before a leaf nor their order can matter.  With a `q` for each row,
    the smallest value with at least Σ q · weight at or below it.
    """
    units, shares = space.parts_of_all, np.full(len(leaf), q, float)
    # Less by the rounding of all rows, so that a row of weight 2 is the row twice.
    wanted = np.zeros((n_leaves, 2), np.int64)
    quantiles.count_wanted(leaf, units, shares, wanted)
    wanted = space.communicator.add(wanted)
    least = np.where(wanted[:, 1] > 0, np.maximum(wanted[:, 0] - wanted[:, 1] - 256, 1), 0)
    return quantiles.select(residuals, units, leaf, least, space.communicator)


def leaf_means(columns: Array, space: FunctionSpace, leaf: Any, n_leaves: int) -> Array:
    """Return the weighted mean of the rows of each leaf, 0 where it has none."""
    sums = leaf_sums(columns, space.uncounted, leaf, n_leaves)
    return sums[:, 1:] / np.maximum(sums[:, :1], 1e-300)


def weighted_quantile(y: Array, space: FunctionSpace, q: float) -> Array:
    """Return the smallest value with at least a share q of the weight at or below it, column by column."""
    counts = whole(space.whole[0], space.communicator)[0]
    # The tolerance makes a row of weight 2 and the row twice give the same quantile.
    wanted = math.ceil(q * total(counts, space.communicator) * (1 - 1e-12))
    one = np.zeros(len(y), np.int32)
    least = np.array([max(wanted, 1)])
    return quantiles.select(y, counts.astype(np.int64), one, least, space.communicator)[0]
