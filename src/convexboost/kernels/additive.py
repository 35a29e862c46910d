"""Projections on all functions of one feature at a time, instead of on the best stump of all."""

import numpy as np

from convexboost.core.compiling import kernel
from convexboost.core.tolerances import NOTHING


@kernel
def average_projections(table, mass, offsets, whole, out):
    """Fill `out` with, for each feature, the mean of the projections of the vector on all its stumps.

    Where whole[j] is true, with its projection on all functions of the feature: the mean of each bin.
    Missing values, the last bin of a feature, have a value of their own.  Every feature has the constant
    function, so the constant is divided between them: the sum over the features has it once.
    """
    K, n_features = table.shape[1], len(offsets) - 1
    extra = np.zeros(K)
    for b in range(offsets[0], offsets[1]):
        for k in range(K):
            extra[k] += table[b, k] * (1.0 - 1.0 / n_features)
    extra /= mass[offsets[0] : offsets[1]].sum()
    left, rights = np.empty((256, K)), np.empty(K)
    for j in range(n_features):
        first, last = offsets[j], offsets[j + 1] - 1
        for b in range(first, last + 1):
            for k in range(K):
                out[b, k] = table[b, k] / mass[b] if mass[b] > 0.0 else 0.0
        if not whole[j]:
            _average_stumps(table[first:last], mass[first:last], left, rights, out[first:last])
        for b in range(first, last + 1):
            for k in range(K):
                out[b, k] -= extra[k]


@kernel
def _average_stumps(table, mass, left, rights, out):
    """Fill `out` with the mean of the projections on all stumps of one feature without its missing bin."""
    n_bins, K = table.shape
    weight = 0.0
    left[0] = 0.0
    for b in range(n_bins):  # left[b] = sum over the bins up to b
        weight += mass[b]
        for k in range(K):
            left[b, k] = table[b, k] + (left[b - 1, k] if b > 0 else 0.0)
    if weight <= 0.0:
        return
    total = left[n_bins - 1].copy()
    rights[:] = 0.0
    reached, cuts = 0.0, 0
    for b in range(n_bins):  # the share of the cuts before b, which lies to their right
        reached += mass[b]
        for k in range(K):
            out[b, k] = rights[k]
        if mass[b] > 0.0 and weight - reached > NOTHING:
            cuts += 1
            for k in range(K):
                rights[k] += (total[k] - left[b, k]) / (weight - reached)
                left[b, k] /= reached
        else:
            left[b] = 0.0
    rights[:] = 0.0
    for b in range(n_bins - 1, -1, -1):  # and that of the cuts after it
        for k in range(K):
            rights[k] += left[b, k]
            out[b, k] = (out[b, k] + rights[k]) / cuts if cuts > 0 else total[k] / weight
