"""The table of nodes says what the model predicts: a slow evaluation, row by row, gives the same scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.core.space import FunctionSpace
from convexboost.estimators._validation import N_FOLDS
from convexboost.learners.tree import Tree
from tests.contracts.conftest import LEARNERS
from tests.contracts.test_learners import KINDS, model, problem
from tests.reference import evaluate_nodes, leaf_of_row

WITHOUT = ["network", "regressor", "classifier"]
WITH = [name for name in LEARNERS if name not in WITHOUT]


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def check(model, *inputs):
    nodes = model.nodes()
    for X in inputs:
        np.testing.assert_allclose(evaluate_nodes(nodes, dense(X)), model.predict(X), rtol=0, atol=1e-12)
        ends = [[leaf_of_row(nodes, t, x) for t in range(nodes.n_trees)] for x in dense(X)]
        np.testing.assert_array_equal(nodes.apply(dense(X)), np.reshape(ends, (X.shape[0], -1)))
    split = ~nodes.is_leaf
    np.testing.assert_array_equal(nodes.leaf[~split], np.arange(len(nodes.values)))
    assert (np.isnan(nodes.cut) == (nodes.is_leaf | (nodes.level_set >= 0))).all()
    np.testing.assert_array_equal(nodes.tree[nodes.roots], np.arange(nodes.n_trees))
    children = nodes.cover[nodes.left[split]] + nodes.cover[nodes.right[split]]
    np.testing.assert_allclose(children, nodes.cover[split], rtol=1e-9)
    assert (nodes.gain >= 0.0).all()
    assert (nodes.gain[nodes.is_leaf] == 0.0).all()
    return nodes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WITH)
def test_nodes_give_the_scores(name, kind):
    inputs, Y, weight, _ = problem(kind)
    space = FunctionSpace.of(len(Y), weight)
    given = model(name, inputs.X, Y, space, inputs.categorical, 6)
    nodes = check(given, inputs.X, inputs.new)
    rows = np.array([leaf_of_row(nodes, t, x) for x in dense(inputs.X) for t in range(nodes.n_trees)])
    count = np.zeros(len(nodes))
    np.add.at(count, rows, np.repeat(space.weight * space.n_rows, nodes.n_trees))
    np.testing.assert_allclose(nodes.cover[nodes.is_leaf], count[nodes.is_leaf], rtol=1e-6, atol=1e-9)
    check(given.truncate(0), inputs.X)
    check(given.average(), inputs.X)


@pytest.mark.parametrize("name", WITHOUT)
def test_other_hypotheses_say_so(name):
    inputs, Y, weight, _ = problem("plain")
    given = model(name, inputs.X, Y, FunctionSpace.of(len(Y), weight), inputs.categorical, 2)
    with pytest.raises(ValueError, match="has no nodes"):
        given.nodes()


def frame(rng, n):
    """Numbers with gaps, a column of few levels, one of many, and one that is all text."""
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    X.loc[rng.random(n) < 0.2, "a"] = np.nan
    X["few"] = rng.integers(0, 5, n).astype(float)
    X["many"] = rng.integers(0, 300, n).astype(float)
    X.loc[rng.random(n) < 0.1, ["few", "many"]] = np.nan
    X["text"] = pd.Categorical(rng.choice(list("abcdefghijklmnop"), n))
    return X


@pytest.mark.filterwarnings("ignore:column .* has .* levels")
@pytest.mark.parametrize(
    "learner",
    ["stump", "additive", Tree(), Tree(monotone_constraints={"b": 1}), Tree(splits="random")],
    ids=["stump", "additive", "tree", "monotone", "random"],
)
@pytest.mark.parametrize("n_classes", [0, 2, 4])
@pytest.mark.one_in(3)
def test_frames_levels_and_members(learner, n_classes):
    rng = np.random.default_rng(n_classes)
    n = 3000
    X, new = frame(rng, n), frame(rng, 200)
    new.loc[:50, "many"], new.loc[:20, "few"] = 10_000.0, 77.0  # not seen in training
    new["text"] = pd.Categorical(rng.choice(["a", "b", "z", None], 200))
    y = X["b"] + 3.0 * np.sin(X["many"].fillna(0.0)) + (X["text"] == "c") + X["a"].fillna(2.0)
    n_rounds = 60 if learner == "stump" else 10
    options = {"n_rounds": n_rounds, "categorical_features": ["few", "many", "text"]}
    if n_classes:
        classes = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
        estimator = ConvexBoostClassifier(learner=learner, **options).fit(X, classes)
    else:
        estimator = ConvexBoostRegressor(learner=learner, **options).fit(X, y)
    assert estimator.n_members_ == N_FOLDS
    nodes = check(estimator.model_, *(estimator._check_inputs(Z) for Z in (X[:150], new)))
    assert set(nodes.column[nodes.level_set >= 0]) <= {2, 3, 4}
    assert 3 in nodes.column
    copy = type(estimator.model_).from_plain(*estimator.model_.to_plain(), estimator._settled.settled_learner)
    again = copy.nodes()
    for name in ("cut", "level_set", "missing_left", "unseen_left", "gain", "cover", "values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(nodes, name))
