import numpy as np
import pytest

from convexboost.kernels.binning import BLOCK, Cuts, add_tables, encode


@pytest.mark.parametrize("n_cuts", [0, 1, 2, 3, 7, 8, 100, 254])
def test_encode_is_searchsorted(n_cuts):
    """Of the listed features and rows, and of nothing else."""
    rng = np.random.default_rng(n_cuts)
    cuts = [np.sort(rng.normal(size=n)) for n in (n_cuts, 3)]
    values = np.concatenate([rng.normal(size=BLOCK + 50), *cuts, [np.nan, -np.inf, np.inf]])
    X = np.column_stack([values, values, values[::-1]])
    codes = np.full(X.shape[::-1], 255, np.uint8)
    features, ends = np.array([2, 0]), np.cumsum([0, *map(len, cuts)])
    for start, stop in ((2, 30), (30, len(X))):
        encode(X, Cuts(features, np.concatenate(cuts), ends), codes, start, stop)
    expected = np.full_like(codes, 255)
    for j, c in zip(features, cuts, strict=True):
        found = np.where(np.isnan(X[:, j]), len(c) + 1, np.searchsorted(c, X[:, j]))
        expected[j, 2:] = found[2:]
    np.testing.assert_array_equal(codes, expected)


def test_tables_are_looked_up_and_added():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    features, cuts = np.array([2, 0]), [np.array([-1.0, 0.0, 0.5]), np.array([])]
    tables = [rng.normal(size=(len(c) + 2, 2)) for c in cuts]
    F = rng.normal(size=(40, 2))
    expected = F.copy()
    for j, c, table in zip(features, cuts, tables, strict=True):
        codes = np.where(np.isnan(X[:, j]), len(c) + 1, np.searchsorted(c, X[:, j]))
        expected[10:30] += table[codes[10:30]]
    ends = [np.cumsum([0, *map(len, parts)]) for parts in (cuts, tables)]
    add_tables(F, X, Cuts(features, np.concatenate(cuts), ends[0]), np.concatenate(tables), ends[1], 10, 30)
    np.testing.assert_array_equal(F, expected)
