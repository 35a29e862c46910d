import numpy as np
import pytest

from convexboost.kernels import histogram
from convexboost.kernels.histogram import (
    add_lookup,
    add_pairs,
    add_pairs_sparse,
    add_rows,
    add_rows_sparse,
    dot,
    fixed_point_factor,
)
from tests import reference
from tests.kernels.conftest import Binned

FACTOR = 2.0**50


def in_parts(add, n_features, shape):
    """Run a kernel over the features in two calls, as two threads would."""
    out = np.zeros(shape, np.int64)
    for first, last in ((0, 1), (1, n_features)):
        add(first, last, out)
    return out


def test_rows_are_summed_exactly(binned):
    shape = (binned.offsets[-1], binned.G.shape[1])
    out = in_parts(
        lambda first, last, out: add_rows(
            binned.codes, binned.offsets, binned.G, binned.weight, FACTOR, first, last, out
        ),
        len(binned.codes),
        shape,
    )
    twin = reference.fixed_point_histogram(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR)
    np.testing.assert_array_equal(out, twin)
    floats = reference.histogram(binned.codes, binned.offsets, binned.G, binned.weight)
    np.testing.assert_allclose(out / FACTOR, floats, atol=1e-13)


def test_rows_of_sparse_columns_give_the_same_bits(binned):
    out = in_parts(
        lambda first, last, out: add_rows_sparse(
            *binned.compressed(), binned.offsets, binned.G, binned.weight, FACTOR, first, last, out
        ),
        len(binned.codes),
        (binned.offsets[-1], binned.G.shape[1]),
    )
    twin = reference.fixed_point_histogram(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR)
    np.testing.assert_array_equal(out, twin)


def test_rows_beyond_one_block_and_zero_entries():
    binned = Binned.random(0, n=histogram.BLOCK + 3, widths=(3,))
    binned.G[::2] = 0.0
    binned.G[:, 1] = 0.0
    out = np.zeros((3, 3), np.int64)
    add_rows(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR, 0, 1, out)
    twin = reference.fixed_point_histogram(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR)
    np.testing.assert_array_equal(out, twin)


def test_kernels_add_to_what_is_there(binned):
    out = np.full((binned.offsets[-1], binned.G.shape[1]), 7, np.int64)
    add_rows(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR, 0, len(binned.codes), out)
    twin = reference.fixed_point_histogram(binned.codes, binned.offsets, binned.G, binned.weight, FACTOR)
    np.testing.assert_array_equal(out, 7 + twin)


def test_pairs(binned):
    column, width, features = binned.codes[1], 5, np.arange(len(binned.codes))[::-1]
    weight = np.rint(binned.weight * FACTOR).astype(np.int64)
    shape = (binned.offsets[-1], width)
    out = in_parts(
        lambda first, last, out: add_pairs(
            binned.codes, binned.offsets, features, column, binned.weight, FACTOR, first, last, out
        ),
        len(binned.codes),
        shape,
    )
    twin = reference.shared_mass(binned.codes, binned.offsets, column, weight, width)
    np.testing.assert_array_equal(out, twin)
    out = in_parts(
        lambda first, last, out: add_pairs_sparse(
            *binned.compressed(), binned.offsets, features, column, binned.weight, FACTOR, first, last, out
        ),
        len(binned.codes),
        shape,
    )
    np.testing.assert_array_equal(out, twin)


def test_dot():
    A, B = np.random.default_rng(2).normal(size=(2, 37, 3))
    np.testing.assert_allclose(dot(A, B), np.sum(A * B), rtol=1e-13)


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
    codes, offsets = np.zeros((1, n), np.uint8), np.array([0, 1])
    add_rows(codes, offsets, np.full((n, 1), value), np.full(n, 1 / n), factor, 0, 1, out)
    assert out[0, 0] / factor == pytest.approx(value, rel=1e-14)
