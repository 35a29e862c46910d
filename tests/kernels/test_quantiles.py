"""Quantiles of leaves against sorting."""

import numpy as np
import pytest

from convexboost.kernels.quantiles import leaf_quantiles


def slow(values, units, q):
    order = np.argsort(values, kind="stable")
    wanted = np.rint(q * units).sum()
    return values[order][np.searchsorted(np.cumsum(units[order]), max(wanted - len(values) - 256, 1))]


@pytest.mark.parametrize("n", [1, 2, 7, 200])
@pytest.mark.parametrize("ties", [0, 1, 9])
def test_the_same_as_sorting(n, ties):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        residuals = np.round(rng.normal(size=(n, 2)), ties)
        weight, unit = rng.integers(1, 5, n).astype(float), 1e9
        units = (weight * unit).astype(np.int64)
        leaf, q = rng.integers(0, 6, n).astype(np.int32), rng.random(n)
        out = np.full((7, 2), -9.0)
        leaf_quantiles(residuals, weight, unit, leaf, q, out)
        for c in range(7):
            rows = leaf == c
            for k in range(2):
                expected = slow(residuals[rows, k], units[rows], q[rows]) if rows.any() else -9.0
                assert out[c, k] == expected
