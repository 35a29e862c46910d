"""Quantiles of leaves against sorting, by pivots and by counting."""

import numpy as np
import pytest

from convexboost.core.communicator import ALONE
from convexboost.kernels.quantiles import count_wanted, select
from tests.spmd import run_ranks


def slow(values, units, wanted):
    order = np.argsort(values, kind="stable")
    return values[order][np.searchsorted(np.cumsum(units[order]), wanted)]


@pytest.mark.parametrize("n", [1, 2, 7, 200])
@pytest.mark.parametrize("ties", [0, 1, 9])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_same_as_sorting(n, ties, size):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = np.round(rng.normal(size=(n, 2)), ties)
        units, leaf = rng.integers(1, 5, n) * 10**9, rng.integers(0, 6, n).astype(np.int32)
        sums = np.bincount(leaf, units, 7).astype(np.int64)
        wanted = np.minimum(np.maximum((rng.random(7) * sums).astype(np.int64), 1), sums)
        rank = rng.integers(0, size, n)

        def program(communicator, values=values, units=units, leaf=leaf, wanted=wanted, rank=rank):
            here = rank == communicator.rank
            return select(values[here], units[here], leaf[here], wanted, communicator)

        for out in run_ranks(size, program) if size > 1 else [select(values, units, leaf, wanted, ALONE)]:
            for c in range(7):
                rows = leaf == c
                for k in range(2):
                    assert out[c, k] == (slow(values[rows, k], units[rows], wanted[c]) if rows.any() else 0.0)


def test_infinities_and_zeros_of_both_signs():
    values = np.array([[-np.inf], [-0.0], [0.0], [np.inf], [-1.0]])
    units, leaf = np.ones(5, np.int64), np.zeros(5, np.int32)
    for wanted, expected in ((1, -np.inf), (2, -1.0), (3, 0.0), (4, 0.0), (5, np.inf)):

        def program(communicator, wanted=wanted):
            here = np.arange(5) % 2 == communicator.rank
            return select(values[here], units[here], leaf[here], np.array([wanted]), communicator)

        alone = select(values, units, leaf, np.array([wanted]), ALONE)
        for found in (alone, *run_ranks(2, program)):
            assert found[0, 0] == expected
            assert not np.signbit(found[0, 0]) or expected < 0.0


def test_what_is_wanted_of_each_leaf():
    out = np.zeros((3, 2), np.int64)
    count_wanted(np.array([0, 2, 2]), np.array([10, 4, 6]), np.array([0.5, 1.0, 0.25]), out)
    np.testing.assert_array_equal(out, [[5, 1], [0, 0], [4 + 2, 2]])
