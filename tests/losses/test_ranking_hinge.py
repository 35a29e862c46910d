"""The ranking hinge against all pairs written out; the contract tests have the rest."""

import numpy as np
import pytest

from convexboost.core.space import FunctionSpace
from convexboost.kernels import parallel, ranking
from convexboost.losses._groups import Groups
from convexboost.losses.ranking_hinge import RankingHinge
from tests import reference

N = 40


def problem(seed):
    """Grades, queries (some with one row), weights and scores that tie in every other problem."""
    rng = np.random.default_rng(seed)
    queries = np.append(rng.integers(0, 6, N - 2), [98, 99])
    grades = rng.integers(0, 1 + seed % 5 + 1, N) if seed % 3 else rng.normal(size=N)
    weight, query_weight = rng.uniform(0.1, 3.0, N), rng.uniform(0.2, 4.0, 100)[queries]
    f = rng.normal(size=N) if seed % 2 else rng.integers(-2, 3, N).astype(float)
    return rng, grades, queries, weight, query_weight, f


def bind(grades, queries, weight=None, query_weight=None):
    whole = None if weight is None else weight if query_weight is None else weight * query_weight
    return RankingHinge().bind(
        grades, FunctionSpace.of(len(grades), whole), groups=Groups(queries, query_weight)
    )


@pytest.mark.parametrize("seed", range(30))
def test_same_as_all_pairs(seed):
    rng, grades, queries, weight, query_weight, f = problem(seed)
    order = rng.permutation(N)
    for w, v in ((None, None), (weight, None), (weight, query_weight)):
        value, G = bind(grades, queries, w, v).evaluate(f[:, None])
        expected, g = reference.ranking_hinge(f, grades, queries, w, v)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(G[:, 0], g, rtol=1e-10, atol=1e-12)
        parts = (x if x is None else x[order] for x in (grades, queries, w, v))
        other, G_other = bind(*parts).evaluate(f[order][:, None])
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(G_other[:, 0], G[order, 0], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_weight_two_is_the_row_twice_to_the_last_bit_of_the_counts(seed):
    rng, grades, queries, _, _, f = problem(seed)
    counts = rng.integers(1, 4, N)
    twice = np.repeat(np.arange(N), counts)
    a, b = bind(grades, queries, counts), bind(grades[twice], queries[twice])
    limit = f - 1.0
    for whole, single in zip(a.pairs.count(f, limit), b.pairs.count(f[twice], limit[twice]), strict=True):
        np.testing.assert_array_equal(whole[twice] * a.pairs.unit, single * b.pairs.unit)
    assert a.value(f[:, None]) == pytest.approx(b.value(f[twice, None]), rel=1e-13)
    assert a.constants.lipschitz == pytest.approx(b.constants.lipschitz, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_query_weight_two_is_the_query_twice_under_another_name(seed):
    _, grades, queries, weight, _, f = problem(seed)
    double = queries % 2 == 0
    a = bind(grades, queries, weight, 1.0 + double)
    more = np.append(np.arange(N), np.flatnonzero(double))
    labels = np.append(queries, queries[double] + 1000)
    b = bind(grades[more], labels, weight[more])
    (value, G), (other, H) = a.evaluate(f[:, None]), b.evaluate(f[more, None])
    assert value == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(G[more], H, rtol=1e-11, atol=1e-13)
    assert a.constants.lipschitz == pytest.approx(b.constants.lipschitz, rel=1e-12)


def test_only_the_order_of_the_grades_matters():
    _, grades, queries, weight, _, f = problem(1)
    a, b = (bind(x, queries, weight).evaluate(f[:, None]) for x in (grades, -np.exp(-3.0 * grades) - 7.0))
    assert a[0] == b[0]
    np.testing.assert_array_equal(a[1], b[1])


def test_shifting_a_query_changes_nothing():
    """Even by much more than the differences: no digits are lost but those of the scores."""
    _, grades, queries, weight, _, f = problem(2)
    objective, shift = bind(grades, queries, weight), 2.0**30 * queries
    a, b = objective.evaluate(f[:, None]), objective.evaluate((f + shift)[:, None])
    assert a[0] == pytest.approx(b[0], rel=1e-12)
    np.testing.assert_array_equal(a[1], b[1])


def test_lipschitz_constant_is_reached_with_two_grades():
    """Turn the order upside down, and every pair pulls the same way."""
    rng = np.random.default_rng(0)
    grades, queries, weight = rng.integers(0, 2, N), rng.integers(0, 4, N), rng.uniform(0.2, 2.0, N)
    objective = bind(grades, queries, weight)
    G = objective.evaluate(-5.0 * grades[:, None])[1]
    assert objective.space.norm(G) == pytest.approx(objective.constants.lipschitz, rel=1e-12)


def test_kink():
    """A margin of 1, or a rounding error from it, has subgradient 0."""
    objective = bind(np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1]))
    for f in ([1.0, 0.0, 1.0 - 1e-14, 0.0], [1.3, 0.1 + 0.2, 0.4, 0.4 - 1.0]):
        np.testing.assert_array_equal(objective.evaluate(np.array(f)[:, None])[1], 0.0)
    np.testing.assert_array_equal(objective.evaluate(np.zeros((4, 1)))[1][:, 0], [-2.0, 2.0, -2.0, 2.0])


def test_perfect_and_reversed():
    grades = np.array([3.0, 2.0, 1.0, 0.0])
    objective = bind(grades, np.zeros(4))
    assert objective.value(grades[:, None]) == 0.0
    assert objective.value(-grades[:, None]) == pytest.approx(1.0 + 10.0 / 6.0)
    assert objective.value(np.zeros((4, 1))) == 1.0
    np.testing.assert_array_equal(objective.start(), [0.0])


def test_threads_change_no_bit(monkeypatch):
    _, grades, queries, weight, _, f = problem(3)
    objective = bind(grades, queries, weight)
    value, gradient = objective.advance(f[:, None].copy(), None, None, 1)
    monkeypatch.setattr(parallel, "MIN_OPERATIONS", 1)
    for n_threads in (2, 3):
        other, again = objective.advance(f[:, None].copy(), None, None, n_threads)
        assert other == value
        np.testing.assert_array_equal(again.values, gradient.values)


def test_a_hundred_thousand_rows_in_one_query():
    """All pairs are 5e9, which nobody could wait for; every grade is another."""
    n = 100_000
    rng = np.random.default_rng(0)
    grades = rng.permutation(n).astype(float)
    objective = bind(grades, np.zeros(n, int))
    value, G = objective.evaluate((grades / n)[:, None])
    # f_i − f_j = d / n for n − d pairs with a difference of d: mean 1/3
    assert value == pytest.approx(1.0 - 1.0 / 3.0, rel=1e-4)
    row = np.argmax(grades)
    assert G[row, 0] == pytest.approx(-2.0, rel=1e-3)


def test_extreme_weights():
    """Whole numbers hold them: one row with almost all of the weight, and sums that nearly fill 62 bits."""
    rng = np.random.default_rng(0)
    grades, queries, f = rng.integers(0, 3, N), np.zeros(N, int), rng.normal(size=N)
    weight = 10.0 ** rng.uniform(-6, 6, N)
    value, G = bind(grades, queries, weight).evaluate(f[:, None])
    expected, g = reference.ranking_hinge(f, grades, queries, weight)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(G[:, 0], g, rtol=1e-6, atol=1e-12 * np.abs(g).max())
    pairs = ranking.Pairs.of(np.arange(1e5), np.zeros(100_000, np.int64), np.full(100_000, 3.7))
    assert pairs.weight.sum(dtype=float) < 2.0**ranking.SUM_BITS
    better, worse = pairs.all()
    assert better[0] == worse[-1] == pairs.weight[1:].sum() > 0


def test_bad_input():
    space = FunctionSpace.of(4)
    with pytest.raises(ValueError, match="`groups` are needed by the loss ranking_hinge"):
        RankingHinge().bind([0, 1, 0, 1], space)
    with pytest.raises(ValueError, match="`groups` must have 4 rows like `y`, got 3"):
        RankingHinge().bind([0, 1, 0, 1], space, groups=[0, 0, 0])
    with pytest.raises(ValueError, match="two different grades in some query, but in every query all tie"):
        RankingHinge().bind([0, 1, 0, 1], space, groups=["a", "b", "a", "b"])
    with pytest.raises(ValueError, match="`y` must hold one grade per row, got 2 columns"):
        RankingHinge().bind(np.zeros((4, 2)), space, groups=np.zeros(4))
    with pytest.raises(ValueError, match=r"`y` must be finite, got \[nan\] in row 1"):
        RankingHinge().bind([0, np.nan, 0, 1], space, groups=np.zeros(4))


def test_too_many_pairs_to_write_out(monkeypatch):
    monkeypatch.setattr("convexboost.losses.ranking_hinge.MAX_PLACES", 100)
    with pytest.raises(ValueError, match="`exact` needs fewer pairs of rows"):
        bind(np.arange(20.0), np.zeros(20)).pieces()


def test_in_a_sum():
    """With a ridge term, and twice."""
    _, grades, queries, _, _, f = problem(4)
    loss = 2.0 * RankingHinge()
    assert loss.task == "ranking"
    assert loss.needs_groups
    objective = loss.bind(grades, FunctionSpace.of(N), groups=queries)
    once = bind(grades, queries)
    assert objective.value(f[:, None]) == pytest.approx(2.0 * once.value(f[:, None]))
    assert objective.constants.lipschitz == pytest.approx(2.0 * once.constants.lipschitz)
    assert str(RankingHinge()) == "max(0, 1 − f_i + f_j)"
