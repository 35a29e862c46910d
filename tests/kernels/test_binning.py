import numpy as np
import pytest

from convexboost.kernels.binning import add_tables, encode


@pytest.mark.parametrize("n_cuts", [0, 1, 2, 3, 7, 8, 100, 254])
def test_encode_is_searchsorted(n_cuts):
    rng = np.random.default_rng(n_cuts)
    cuts = np.sort(rng.normal(size=n_cuts))
    values = np.concatenate([rng.normal(size=50), cuts, [np.nan, -np.inf, np.inf]])
    codes = np.empty(len(values), np.uint8)
    encode(values, cuts, codes)
    expected = np.where(np.isnan(values), n_cuts + 1, np.searchsorted(cuts, values))
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
    add_tables(F, X, features, np.concatenate(cuts), ends[0], np.concatenate(tables), ends[1], 10, 30)
    np.testing.assert_array_equal(F, expected)
