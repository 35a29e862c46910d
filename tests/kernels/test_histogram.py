import numpy as np
import pytest

from convexboost.kernels import histogram
from convexboost.kernels.histogram import (
    DenseBins,
    add_pairs,
    add_pairs_sparse,
    add_rows,
    add_rows_sparse,
    fixed_point_factor,
)
from convexboost.kernels.leaves import N_TABLES, add_exact_leaf_sums, add_leaf_sums, leaf_tables
from convexboost.kernels.lookup import add_lookup
from tests import reference
from tests.kernels.conftest import Binned

FACTOR = 2.0**50


def in_parts(add, features, shape):
    """Run a kernel over the features in two calls, as two threads would."""
    out = np.zeros(shape, np.int64)
    for part in (features[:1], features[1:]):
        add(part, out)
    return out


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_are_summed_exactly(binned, is_sparse):
    """Sparse columns give the same bits."""
    kernel, bins = (add_rows_sparse, binned.sparse_bins) if is_sparse else (add_rows, binned.bins)
    out = in_parts(
        lambda features, out: kernel(bins, features, binned.G, binned.weight, FACTOR, out),
        np.arange(len(binned.codes)),
        (binned.offsets[-1], binned.G.shape[1]),
    )
    twin = reference.fixed_point_histogram(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR)
    np.testing.assert_array_equal(out, twin)
    floats = reference.histogram(binned.codes, binned.offsets, binned.G, binned.weight)
    np.testing.assert_allclose(out / FACTOR, floats, atol=1e-13)


def test_rows_beyond_one_block_and_zero_entries():
    binned = Binned.random(0, n=histogram.BLOCK + 3, widths=(3,))
    binned.G[::2] = 0.0
    binned.G[:, 1] = 0.0
    out = np.zeros((3, 3), np.int64)
    add_rows(binned.bins, np.arange(1), binned.G, binned.weight, FACTOR, out)
    twin = reference.fixed_point_histogram(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR)
    np.testing.assert_array_equal(out, twin)


def test_kernels_add_to_what_is_there(binned):
    out = np.full((binned.offsets[-1], binned.G.shape[1]), 7, np.int64)
    add_rows(binned.bins, np.arange(len(binned.codes)), binned.G, binned.weight, FACTOR, out)
    twin = reference.fixed_point_histogram(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR)
    np.testing.assert_array_equal(out, 7 + twin)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_pairs(binned, is_sparse):
    kernel, bins = (add_pairs_sparse, binned.sparse_bins) if is_sparse else (add_pairs, binned.bins)
    column, width, features = binned.codes[1], 5, np.arange(len(binned.codes))[::-1].copy()
    weight = np.rint(binned.weight * FACTOR).astype(np.int64)
    out = in_parts(
        lambda features, out: kernel(bins, features, column, binned.weight, FACTOR, out),
        features,
        (binned.offsets[-1], width),
    )
    twin = reference.shared_mass(binned.codes, binned.offsets, column, weight, width)
    np.testing.assert_array_equal(out, twin)


def test_lookup_in_parts(binned):
    F, table = binned.G.copy(), np.random.default_rng(9).normal(size=(9, binned.G.shape[1]))
    add_lookup(F, binned.codes[2], table, 0, 13)
    np.testing.assert_array_equal(F[13:], binned.G[13:])
    add_lookup(F, binned.codes[2], table, 13, len(F))
    np.testing.assert_array_equal(F, reference.add_lookup(binned.G, binned.codes[2], table))


@pytest.mark.parametrize("largest", [1e-280, 1e-5, 0.5, 1.0, 1.0000001, 3.0, 4.0, 1e5, 1e300])
def test_factor_uses_the_range_and_stays_inside(largest):
    factor = fixed_point_factor(largest)
    assert np.frexp(factor)[0] == 0.5  # a power of two: multiplying by it rounds nothing
    assert 2.0**60 < largest * factor <= 2.0**61


def test_factor_of_nothing():
    assert fixed_point_factor(0.0) == 1.0


def test_largest_mean_does_not_overflow():
    """All rows at the largest value, in one bin: the sum is just under 2^61."""
    n, value = 100, 1.7
    out, factor = np.zeros((1, 1), np.int64), fixed_point_factor(value)
    bins = DenseBins(np.zeros((1, n), np.uint8), np.array([0, 1]))
    add_rows(bins, np.arange(1), np.full((n, 1), value), np.full(n, 1 / n), factor, out)
    assert out[0, 0] / factor == pytest.approx(value, rel=1e-14)


def test_sums_in_leaves(binned):
    """Weight and weight times columns, as real and as whole numbers, in parts."""
    rng = np.random.default_rng(0)
    n, n_leaves, K = len(binned.G), 3, binned.G.shape[1]
    leaf = rng.integers(0, n_leaves, n).astype(np.int32)
    rows = np.column_stack([np.ones(n), binned.G])
    expected = np.array([binned.weight[leaf == c] @ rows[leaf == c] for c in range(n_leaves)])
    sums, exact = leaf_tables(n_leaves, K), leaf_tables(n_leaves, K, np.int64)
    assert sums.shape == (N_TABLES if K == 1 else 1, n_leaves, 1 + K)
    for part in (slice(0, 10), slice(10, n)):
        add_leaf_sums(leaf[part], binned.weight[part], binned.G[part], sums)
        add_exact_leaf_sums(leaf[part], binned.weight[part], binned.G[part], 2.0**50, 2.0**40, exact)
    np.testing.assert_allclose(sums.sum(axis=0), expected, atol=1e-14)
    units = 2.0 ** np.append(50, np.full(K, 40))
    np.testing.assert_allclose(exact.sum(axis=0) / units, expected, atol=1e-10)
