"""Sums, means and quantiles of the rows in each leaf."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.space import Array
from convexboost.core.tolerances import KINK
from convexboost.kernels import quantiles
from convexboost.kernels.leaves import add_leaf_sums, leaf_tables


def residual_sign(F: Array, y: Array) -> Array:
    """sgn(F − y), and 0 within rounding of the kink."""
    difference = F - y
    return np.sign(difference) * (np.abs(difference) > KINK * np.abs(y))


def leaf_quantiles(residuals: Array, weight: Array, leaf: Any, n_leaves: int, q: Any) -> Array:
    """Return the weighted q-quantile of each column in each leaf, 0 where a leaf has no rows.

    As in `weighted_quantile`, the smallest value with at least a share q of the weight at or below it; in
    whole numbers, so that neither rows before a leaf nor their order can matter.  With a `q` for each row,
    the smallest value with at least Σ q · weight at or below it.
    """
    out = np.zeros((n_leaves, residuals.shape[1]))
    quantiles.leaf_quantiles(residuals, weight, 2.0**60, leaf, np.full(len(leaf), q, float), out)
    return out


def leaf_sums(columns: Array, weight: Array, leaf: Any, n_leaves: int) -> Array:
    """Return Σ p_n and, behind it, Σ p_n columns_n over the rows of each leaf."""
    out = leaf_tables(n_leaves, columns.shape[1])
    add_leaf_sums(leaf, weight, np.ascontiguousarray(columns), out)
    return out.sum(axis=0)


def gradient_sums(gradient: Gradient, leaf: Any, n_leaves: int) -> Array:
    """Return Σ p_n and, behind it, Σ p_n ∇_n over the rows of each leaf."""
    short = gradient.leaf_sums(leaf, n_leaves)
    return leaf_sums(gradient.values, gradient.space.weight, leaf, n_leaves) if short is None else short


def leaf_means(columns: Array, weight: Array, leaf: Any, n_leaves: int) -> Array:
    """Return the weighted mean of the rows of each leaf, 0 where it has none."""
    sums = leaf_sums(columns, weight, leaf, n_leaves)
    return sums[:, 1:] / np.maximum(sums[:, :1], 1e-300)


def weighted_quantile(y: Array, weight: Array, q: float) -> Array:
    """Return the smallest value with at least a share q of the weight at or below it, column by column."""
    out = np.empty(y.shape[1])
    for k in range(y.shape[1]):
        order = np.argsort(y[:, k], kind="stable")
        reached = np.cumsum(weight[order])
        # The tolerance makes a row of weight 2 and the row twice give the same quantile.
        out[k] = y[order[np.searchsorted(reached, q * reached[-1] * (1 - 1e-12)).clip(max=len(y) - 1)], k]
    return out
