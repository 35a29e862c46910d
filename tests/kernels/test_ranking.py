import numpy as np
import pytest

from convexboost.kernels.ranking import Pairs


def slow_count(grades, queries, weight, f, limit):
    """For each row the weight of better rows i with limit_i < f_n, and of worse rows j with f_j > limit_n."""
    n = len(f)
    better, worse = np.zeros(n), np.zeros(n)
    for i in range(n):
        for j in range(n):
            if queries[i] == queries[j] and grades[i] > grades[j] and f[j] > limit[i]:
                better[j] += weight[i]
                worse[i] += weight[j]
    return better, worse


@pytest.mark.parametrize("seed", range(12))
def test_same_as_all_pairs(seed):
    rng = np.random.default_rng(seed)
    n = 50
    queries = rng.integers(0, 1 + seed % 7, n)
    grades = rng.integers(0, 2 + seed % 4, n) / 2 if seed % 3 else rng.normal(size=n)
    f = rng.integers(-3, 4, n) / 2 if seed % 2 else rng.normal(size=n)
    weight = rng.integers(1, 5, n).astype(float)
    pairs = Pairs.of(grades, queries, weight)
    for limit in (f - 1.0, f, np.nextafter(f, -np.inf), np.full(n, -np.inf), np.full(n, np.inf)):
        found = pairs.count(f, limit)
        for one, expected in zip(found, slow_count(grades, queries, weight, f, limit), strict=True):
            np.testing.assert_array_equal(one * pairs.unit, expected)  # whole weights: to the last bit
    np.testing.assert_array_equal(pairs.all(), pairs.count(f, np.full(n, -np.inf)))


def test_queries_without_a_pair_are_left_out():
    grades, queries = np.array([1.0, 1.0, 0.0, 2.0, 5.0]), np.array([3, 3, 8, 8, 9])
    pairs = Pairs.of(grades, queries, np.ones(5))
    assert pairs.n_queries == 1
    assert sorted(pairs.rows) == [2, 3]
    assert Pairs.of(grades, np.arange(5), np.ones(5)).n_queries == 0
    centred = pairs.centre(np.array([7.0, 8.0, 10.0, 12.0, 9.0]))
    assert centred[3] - centred[2] == 2.0
    assert min(abs(centred[2:4])) == 0.0


def test_scores_that_are_no_numbers_end_the_sweep():
    """A run that diverges must come back, whatever it counts."""
    pairs = Pairs.of(np.array([0.0, 1.0, 2.0]), np.zeros(3, int), np.ones(3))
    for f in (np.array([np.nan, 1.0, np.inf]), np.full(3, np.nan)):
        pairs.count(f, f - 1.0)
