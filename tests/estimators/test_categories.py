"""Categorical columns with many levels, from the data frame to the model."""

import numpy as np
import pandas as pd
import pytest

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.core.model import AdditiveModel
from convexboost.estimators._validation import N_FOLDS
from convexboost.learners import Tree


def table(n=3000, n_levels=100, seed=0):
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n)
    y = rng.normal(size=n_levels)[level] + 0.1 * rng.normal(size=n)
    frame = pd.DataFrame({"x": rng.normal(size=n), "level": pd.Categorical([f"level {i}" for i in level])})
    return frame, y + frame["x"].to_numpy()


def test_a_thousand_levels():
    X, y = table(20_000, 1000)
    model = ConvexBoostRegressor(random_state=0, n_rounds=100).fit(X[:15_000], y[:15_000])
    assert model.score(X[15_000:], y[15_000:]) > 0.92


@pytest.mark.parametrize("estimator", [ConvexBoostRegressor, ConvexBoostClassifier])
def test_the_order_of_the_rows_does_not_matter(estimator):
    X, y = table(600, 30)
    y = (
        y
        if estimator is ConvexBoostRegressor
        else np.where(y > 0.5, "high", np.where(y < -0.5, "low", "mid"))
    )
    order = np.random.default_rng(0).permutation(len(y))
    one = estimator(random_state=0, n_rounds=20, n_jobs=1).fit(X, y)
    other = estimator(random_state=0, n_rounds=20, n_jobs=2).fit(X.iloc[order], y[order])
    assert one.n_members_ > 1
    assert len(one.model_.mapper.statistics) >= one.n_members_
    np.testing.assert_array_equal(one._scores(X), other._scores(X))


def test_weight_2_is_the_row_twice():
    X, y = table(600, 30)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    settings = {"random_state": 0, "n_rounds": 20, "early_stopping": False}
    weighted = ConvexBoostRegressor(**settings).fit(X, y, sample_weight=weight)
    copied = ConvexBoostRegressor(**settings).fit(X.iloc[copies], y[copies])
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-9)


def test_new_levels_are_all_alike():
    X, y = table(600, 30)
    model = ConvexBoostRegressor(random_state=0, n_rounds=20).fit(X, y)
    new = pd.DataFrame({"x": [0.0, 0.0], "level": pd.Categorical(["new", "newer"])})
    one, other = model.predict(new)
    assert one == other
    assert y.min() < one < y.max()


def test_a_random_column_does_no_harm():
    rng = np.random.default_rng(0)
    n = 4000
    X = pd.DataFrame({"x": rng.normal(size=n), "id": pd.Categorical(rng.integers(0, n // 4, n))})
    y = rng.normal(size=n)
    model = ConvexBoostRegressor(random_state=0).fit(X[: n // 2], y[: n // 2])
    assert -0.02 < model.score(X[n // 2 :], y[n // 2 :]) < 0.01


def test_plain_arrays_carry_the_statistics_of_all_members():
    X, y = table(600, 30)
    model = ConvexBoostRegressor(random_state=0, n_rounds=10).fit(X, y)
    again = AdditiveModel.from_plain(*model.model_.to_plain(), Tree())
    inputs = model._check_inputs(X)
    np.testing.assert_array_equal(again.predict(inputs), model.model_.predict(inputs))
    assert again.mapper.sources.tolist() == model.model_.mapper.sources.tolist() == [0, 1, *[1] * N_FOLDS]


def test_certify_reads_new_rows():
    X, y = table(600, 30)
    model = ConvexBoostRegressor(random_state=0, n_rounds=10).fit(X, y)
    assert model.certify(X, y).gap() >= 0.0
