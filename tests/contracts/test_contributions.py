"""Contributions are Shapley values: they add up to the scores, and agree with the definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from convexboost.boosting.training import boost
from convexboost.core.space import FunctionSpace
from convexboost.learners.tree import Tree
from convexboost.losses.half_squared import HalfSquared
from tests.contracts.test_learners import KINDS, model, problem
from tests.contracts.test_nodes import WITH, WITHOUT
from tests.reference import expectation_of_known, shapley, shapley_interactions

#: The first rows of the mixed data have levels that were not seen, the next ones missing values.
ROWS = [0, 1, 12, 13, 30]


@pytest.fixture(params=[(name, kind) for name in WITH for kind in KINDS], ids=str)
def case(request):
    name, kind = request.param
    inputs, Y, weight, _ = problem(kind)
    given = model(name, inputs.X, Y, FunctionSpace.of(len(Y), weight), inputs.categorical, 4)
    new = inputs.new.toarray() if sp.issparse(inputs.new) else inputs.new
    return given, inputs, new


def test_they_add_up_to_the_scores(case):
    given, inputs, new = case
    for X in (inputs.X, inputs.new):
        scores = given.predict(X)
        found = given.contributions(X)
        assert found.shape == (X.shape[0], X.shape[1] + 1, scores.shape[1])
        np.testing.assert_allclose(found.sum(axis=1), scores, rtol=0, atol=1e-12)
        against = given.contributions(X, new[:7])
        np.testing.assert_allclose(against.sum(axis=1), scores, rtol=0, atol=1e-12)
        np.testing.assert_allclose(against[0, -1], given.predict(new[:7]).mean(axis=0), rtol=0, atol=1e-12)
        pairs = given.interactions(X)
        np.testing.assert_allclose(pairs.sum(axis=2), found, rtol=0, atol=1e-12)
        np.testing.assert_allclose(pairs, pairs.transpose(0, 2, 1, 3), rtol=0, atol=1e-12)
    nothing = given.truncate(0).contributions(inputs.X)
    np.testing.assert_array_equal(nothing[:, :-1], 0.0)
    np.testing.assert_array_equal(nothing[:, -1], given.predict(inputs.X) * 0.0 + given.start)


def test_they_are_shapley_values_of_the_means_in_proportion(case):
    given, _, new = case
    nodes, n_columns = given.nodes(), min(new.shape[1], 6)  # the other columns are constant
    assert nodes.column.max() < n_columns
    found, pairs = given.contributions(new), given.interactions(new)
    for n in ROWS[::2]:

        def value(known, x=new[n]):
            return expectation_of_known(nodes, x, known)

        np.testing.assert_allclose(found[n, :n_columns], shapley(value, n_columns), rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[n, -1], value(frozenset()), rtol=0, atol=1e-12)
        expected = shapley_interactions(value, n_columns)
        np.testing.assert_allclose(pairs[n, :n_columns, :n_columns], expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(pairs[n, n_columns:-1], 0.0)


def test_they_are_shapley_values_against_a_background(case):
    given, _, new = case
    n_columns, background = min(new.shape[1], 6), new[10:20]
    found = given.contributions(new, background)
    for n in ROWS:

        def value(known, x=new[n]):
            mixed = background.copy()
            mixed[:, list(known)] = x[list(known)]
            return given.predict(mixed).mean(axis=0)

        np.testing.assert_allclose(found[n, :n_columns], shapley(value, n_columns), rtol=0, atol=1e-12)


def test_deep_trees_with_columns_twice_on_a_path_and_statistics():
    rng = np.random.default_rng(3)
    n = 300
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 4, n), rng.integers(0, 30, n)])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.column_stack([np.sin(3.0 * X[:, 0]), np.cos(X[:, 3]) * X[:, 1]])
    y = np.nan_to_num(y) + 0.1 * rng.normal(size=(n, 2))
    space = FunctionSpace.of(n)
    H = Tree(max_leaves=24, min_samples_leaf=2).bind(X, space, [2, 3], targets=-y)
    given = boost(HalfSquared().bind(y, space), H, n_rounds=3, output="last", step="line_search").model
    assert given.mapper.statistics
    new = X[:40].copy()
    new[0, 2:] = 99.0
    found, pairs = given.contributions(new), given.interactions(new)
    against = given.contributions(new, X[:20])
    nodes = given.nodes()
    for n in range(4):
        expected = shapley_interactions(lambda known, x=new[n]: expectation_of_known(nodes, x, known), 4)
        np.testing.assert_allclose(pairs[n, :4, :4], expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[n, :4], expected.sum(axis=1), rtol=0, atol=1e-12)

        def value(known, x=new[n]):
            mixed = X[:20].copy()
            mixed[:, list(known)] = x[list(known)]
            return given.predict(mixed).mean(axis=0)

        np.testing.assert_allclose(against[n, :4], shapley(value, 4), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", WITHOUT)
def test_other_hypotheses_say_so(name):
    inputs, Y, weight, _ = problem("plain")
    given = model(name, inputs.X, Y, FunctionSpace.of(len(Y), weight), inputs.categorical, 2)
    for call in (given.contributions, given.interactions):
        with pytest.raises(ValueError, match="has no contributions"):
            call(inputs.X)
