"""Sums over rows against exact arithmetic, in any order and any partition.

Run compiled, and again with NUMBA_DISABLE_JIT=1, as the kernels are.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from convexboost.core.sums import TERMS, CellSums, ExactSum

rng = np.random.default_rng(0)


def wide(n, low=-300, high=300):
    return rng.normal(size=n) * 10.0 ** rng.uniform(low, high, n)


def cancelling(n):
    x = wide(n)
    return rng.permutation(np.concatenate([x, -x, [1e-300, 5e-324, 1.0]]))


TERMS_OF = {
    "none": np.empty(0),
    "one": np.array([-0.1]),
    "zeros": np.array([0.0, -0.0, 0.0]),
    "normal": rng.normal(size=3 * TERMS + 7),
    "wide": wide(3000),
    "cancelling": cancelling(1500),
    "large and small": np.array([1e300, 1.0, 1e-300, -1e300, 1e-300, -1.0]),
    "subnormal": rng.integers(-(2**52), 2**52, 5000) * 5e-324,
    "subnormal and normal": np.concatenate([rng.integers(-9, 9, 100) * 5e-324, rng.normal(size=100)]),
    "largest": np.array([1.7e308, -1.7e308, 1.7e308, 2.0**1021, -(2.0**1022), 1e-308]),
    "just below an even": np.array([1.0, 2.0**-53, -(2.0**-106)]),
    "just above an even": np.array([1.0, 2.0**-53, 2.0**-1074]),
    "many of one sign": np.full(5 * TERMS, 0.1),
    "mantissas full": np.full(5 * TERMS, -np.nextafter(2.0, 0.0)),
}


def exact(x, weight=None):
    weight = np.ones(len(x)) if weight is None else weight
    return float(
        sum((Fraction(float(a)) * Fraction(float(w)) for a, w in zip(x, weight, strict=True)), Fraction())
    )


def total(x):
    return float(ExactSum().add(x))


@pytest.mark.parametrize("name", TERMS_OF)
def test_correctly_rounded(name):
    x = TERMS_OF[name]
    assert total(x) == exact(x)


@pytest.mark.parametrize("name", TERMS_OF)
def test_same_bits_for_any_order_and_partition(name):
    x = TERMS_OF[name]
    whole = ExactSum().add(x)
    for _ in range(5):
        shuffled = rng.permutation(x)
        cuts = np.sort(rng.integers(0, len(x) + 1, 4))
        parts = [ExactSum().add(part) for part in np.split(shuffled, cuts)]
        np.testing.assert_array_equal(ExactSum().merge(parts).digits, whole.digits)


def test_same_bits_for_any_threads():
    x = wide(20_000, -20, 20)
    expected = ExactSum().add(x).digits
    for n_threads in (1, 2, 3):
        with ThreadPoolExecutor(n_threads) as pool:
            parts = pool.map(lambda part: ExactSum().add(part), np.array_split(x, 7))
            np.testing.assert_array_equal(ExactSum().merge(parts).digits, expected)


def test_workers_add_up_their_digits():
    """What a cluster does: an addition of whole numbers, and nothing else."""
    x = cancelling(2000)
    workers = [ExactSum().add(part) for part in np.array_split(x, 1000)]
    reduced = ExactSum()
    reduced.digits = np.sum([worker.digits for worker in workers], axis=0)
    assert float(reduced) == math.fsum(x)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([1.0, np.inf], np.inf),
        ([-np.inf, 1e308, 1e308], -np.inf),
        ([np.inf, np.inf, 3.0], np.inf),
        ([np.inf, -np.inf], np.nan),
        ([1.0, np.nan], np.nan),
        ([np.nan, np.inf], np.nan),
        ([1.7e308, 1.7e308], np.inf),
        ([-1.7e308, -1.7e308, 5.0], -np.inf),
    ],
)
def test_not_finite(terms, expected):
    np.testing.assert_equal(total(terms), expected)
    np.testing.assert_equal(total(terms[::-1]), expected)


def test_sum_may_pass_what_a_float_can_hold():
    assert total(np.repeat([1.7e308, -1.7e308, 2.0], 3000)) == 6000.0
    assert float(ExactSum(over=2).add([1.7e308, 1.7e308])) == 1.7e308


def test_mean_is_rounded_once():
    x = rng.normal(size=2001)
    expected = float(sum(map(Fraction, x.tolist())) / 2001)
    assert float(ExactSum(over=2001).add(x)) == expected


def test_weights_round_the_product_of_a_row_only():
    x, weight = wide(3000, -30, 30), rng.uniform(size=3000)
    assert float(ExactSum().add(x, weight)) == math.fsum(x * weight)


@pytest.mark.parametrize("name", TERMS_OF)
def test_counts_are_copies(name):
    x = TERMS_OF[name]
    x = x[np.abs(x) < 1e300]
    counts = rng.integers(1, 6, len(x))
    weighted = ExactSum(over=7).add(x, counts.astype(float), counted=True)
    copies = ExactSum(over=7).add(rng.permutation(np.repeat(x, counts)))
    np.testing.assert_array_equal(weighted.digits, copies.digits)


def test_large_counts_are_exact():
    x, counts = rng.normal(size=500), rng.integers(1, 2**26, 500).astype(float)
    assert float(ExactSum().add(x, counts, counted=True)) == exact(x, counts)


def test_counts_of_terms_that_are_not_finite():
    counts = np.array([2.0, 3.0])
    with np.errstate(all="ignore"):  # without the compiler NumPy warns
        assert float(ExactSum().add([np.inf, 1.0], counts, counted=True)) == np.inf
        assert math.isnan(float(ExactSum().add([np.nan, 1.0], counts, counted=True)))
        assert float(ExactSum().add([1.7e308, 1.0], counts, counted=True)) == np.inf  # the product overflows


def test_columns():
    X, weight = wide(4000, -9, 9).reshape(1000, 4), rng.uniform(size=1000)
    found = ExactSum(4).add(X[:300], weight[:300]).add(np.asfortranarray(X[300:]), weight[300:])
    assert found.columns().tolist() == [math.fsum(column) for column in (X * weight[:, None]).T]


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_products(n_outputs):
    F, G = rng.normal(size=(2, 3000, n_outputs))
    weight = rng.uniform(size=3000)
    rows = np.zeros(3000)
    for k in range(n_outputs):
        rows += F[:, k] * G[:, k]
    assert float(ExactSum().add_products(F, G)) == math.fsum(rows)
    assert float(ExactSum().add_products(F, G, weight)) == math.fsum(rows * weight)
    order = rng.permutation(3000)
    assert float(ExactSum().add_products(F[order], G[order])) == math.fsum(rows)


# --- cells -------------------------------------------------------------------------------------------------


def cells_of(cell, X, weight, n_cells):
    return [[exact(column[cell == c], weight[cell == c]) for column in X.T] for c in range(n_cells)]


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e300])
def test_cells(n_outputs, scale):
    X = scale * rng.standard_t(2, size=(2000, n_outputs))
    cell, weight = rng.integers(0, 5, 2000).astype(np.int32), np.full(2000, 1 / 2000)
    bound = scale * math.sqrt(float(np.mean((X / scale) ** 2, axis=0).max()))
    found = CellSums(7, n_outputs, bound).add(cell, X, weight).values()
    expected = np.array(cells_of(cell, X, weight, 7))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-17 * bound)
    np.testing.assert_array_equal(found[5:], 0.0)


def test_cells_beside_an_outlier():
    """A row of 1e12 costs the cells of the others no digit that a float has."""
    X, cell = rng.normal(size=(5000, 1)), rng.integers(1, 9, 5000)
    X[0], cell[0] = 1e12, 0
    weight = np.full(5000, 1 / 5000)
    found = CellSums(9, 1, float(np.linalg.norm(X)) / math.sqrt(5000)).add(cell, X, weight).values()
    expected = np.array([[math.fsum((X[:, 0] * weight)[cell == c])] for c in range(9)])
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_cells_are_the_same_for_any_order_and_partition():
    X, cell, weight = rng.normal(size=(999, 2)), rng.integers(0, 4, 999), rng.uniform(size=999) / 999
    whole = CellSums(4, 2, 999.0 * np.abs(X).max()).add(cell, X, weight)
    order = rng.permutation(999)
    parts = [
        CellSums(4, 2, 999.0 * np.abs(X).max()).add(cell[rows], X[rows], weight[rows])
        for rows in np.array_split(order, 5)
    ]
    np.testing.assert_array_equal(parts[0].merge(parts[1:]).values(), whole.values())


def test_cells_of_counts_are_copies():
    X, cell, counts = rng.normal(size=(500, 2)), rng.integers(0, 4, 500), rng.integers(1, 5, 500)
    bound = float(np.abs(X).max() * counts.sum())
    weighted = CellSums(4, 2, bound).add(cell, X, counts.astype(float), counted=True)
    twice = CellSums(4, 2, bound).add(
        np.repeat(cell, counts), np.repeat(X, counts, axis=0), np.ones(counts.sum()), counted=True
    )
    np.testing.assert_array_equal(weighted.digits, twice.digits)


@pytest.mark.parametrize("bound", [math.inf, math.nan])
def test_cells_without_a_finite_bound(bound):
    found = CellSums(2, 1, bound).add(np.array([0]), np.array([[math.nan]]), np.ones(1))
    assert np.isnan(found.values()).all()


def test_cells_of_zeros():
    found = CellSums(2, 1, 0.0).add(np.array([0]), np.zeros((1, 1)), np.ones(1))
    np.testing.assert_array_equal(found.values(), 0.0)
