"""Rows that are spread over processes give the model of one process, bit for bit."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.core.communicator import RanksDifferError
from convexboost.estimators._input import Given
from convexboost.learners import Tree
from convexboost.losses import Absolute, CVaR, Quantile, WorstGroup
from tests.spmd import run_ranks

N = 400


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def parts_of(n, size, how, rng):
    """Return the rows of each rank."""
    if how == "even":
        return np.array_split(rng.permutation(n), size)
    rank = rng.choice(size, n, p=np.arange(1, size + 1) ** 3 / (np.arange(1, size + 1) ** 3).sum())
    return [np.flatnonzero(rank == r) for r in range(size)]


def data(kind, rng, n=N):
    X = np.round(rng.normal(size=(n, 4)), 2)
    X[rng.random((n, 4)) < 0.05] = np.nan
    X[: n // 10] = X[n // 10 : 2 * (n // 10)]  # copies
    f = np.nan_to_num(X[:, 0]) + np.sin(3 * np.nan_to_num(X[:, 1]))
    if kind == "two":
        return X, (f + rng.normal(size=n) > 0).astype(int)
    if kind == "five":
        return X, np.digitize(f + 0.5 * rng.normal(size=n), [-1.5, -0.5, 0.5, 1.5])
    if kind == "counts":
        return X, rng.poisson(np.exp(0.5 * f)).astype(float)
    return X, f + 0.3 * rng.normal(size=n)


def bits(model):
    """Return everything that two models must have in common."""
    start, rounds = model.model_.start, model.history_
    return [start.tobytes(), *(rounds[name].tobytes() for name in rounds if name != "seconds")]


def check(model, X, y, size, how="uneven", **more):
    """Fit alone and spread; compare."""
    rng = np.random.default_rng(5)
    parts = parts_of(len(y), size, how, rng)
    if "groups" in more and model._task == "ranking":
        owner = rng.integers(0, size, int(more["groups"].max()) + 1)
        parts = [np.flatnonzero(owner[more["groups"]] == r) for r in range(size)]
    alone = type(model)(**model.get_params(deep=False))
    alone._fit(Given(X, y, **more))

    def program(communicator):
        rows = parts[communicator.rank]
        own = {name: value[rows] for name, value in more.items()}
        found = type(model)(**model.get_params(deep=False))
        found._fit(Given(X[rows], y[rows], **own, communicator=communicator))
        return found

    for found in run_ranks(size, program):
        assert bits(found) == bits(alone)
        np.testing.assert_array_equal(found._scores(X), alone._scores(X))
        assert found.stop_reason_ == alone.stop_reason_
        assert found._rows_of_fit == alone._rows_of_fit
    return alone


REGRESSION = ["half_squared", "absolute", "huber", "quantile:0.9", "quantiles", "epsilon_insensitive:0.1"]


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("learner", ["tree", "stump", "additive"])
@pytest.mark.one_in(6)
def test_regression(loss, learner, rng):
    X, y = data("numbers", rng)
    model = ConvexBoostRegressor(loss, learner, n_rounds=8, random_state=0, n_jobs=1)
    check(model, X, y, 3)


@pytest.mark.parametrize("loss", ["softmax", "multiclass_hinge"])
@pytest.mark.parametrize("kind", ["two", "five"])
@pytest.mark.parametrize("learner", ["tree", "stump", "additive"])
@pytest.mark.one_in(4)
def test_classification(loss, kind, learner, rng):
    X, y = data(kind, rng)
    model = ConvexBoostClassifier(loss, learner, n_rounds=8, random_state=0, n_jobs=1)
    check(model, X, y, 3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "exponential"])
@pytest.mark.one_in(3)
def test_two_classes(loss, rng):
    X, y = data("two", rng)
    check(ConvexBoostClassifier(loss, n_rounds=8, random_state=0, n_jobs=1), X, y, 2)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("how", ["even", "uneven"])
@pytest.mark.one_in(2)
def test_sizes(size, how, rng):
    X, y = data("numbers", rng)
    check(ConvexBoostRegressor("absolute", n_rounds=8, random_state=0, n_jobs=1), X, y, size, how)


@pytest.mark.parametrize("kind", ["whole", "real"])
@pytest.mark.parametrize("loss", ["half_squared", "absolute", "poisson"])
@pytest.mark.one_in(3)
def test_weights(kind, loss, rng):
    X, y = data("counts", rng)
    weight = rng.integers(0, 4, len(y)).astype(float) if kind == "whole" else rng.random(len(y))
    model = ConvexBoostRegressor(loss, n_rounds=8, random_state=0, n_jobs=1)
    check(model, X, y, 3, sample_weight=weight)


@pytest.mark.parametrize(
    "loss", [CVaR(Absolute(), 0.7), WorstGroup(Quantile(0.8)), WorstGroup("absolute", 0.3)]
)
@pytest.mark.parametrize("learner", ["tree", "stump"])
@pytest.mark.one_in(3)
def test_tails_and_groups(loss, learner, rng):
    X, y = data("numbers", rng)
    more = {"groups": rng.integers(0, 4, len(y))} if loss.needs_groups else {}
    check(ConvexBoostRegressor(loss, learner, n_rounds=8, random_state=0, n_jobs=1), X, y, 3, **more)


@pytest.mark.parametrize("learner", ["tree", "stump"])
def test_ranking(learner, rng):
    X, y = data("numbers", rng)
    queries = rng.integers(0, 40, len(y))
    model = ConvexBoostRanker(learner=learner, n_rounds=8, random_state=0, n_jobs=1)
    check(model, X, np.round(y), 3, groups=queries)


@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual", "dual_averaging", "error_feedback"])
@pytest.mark.parametrize("learner", ["tree", "stump"])
@pytest.mark.one_in(5)
def test_algorithms(algorithm, learner, rng):
    X, y = data("numbers", rng, 200)
    model = ConvexBoostRegressor("absolute", learner, algorithm, n_rounds=5, random_state=0, n_jobs=1)
    check(model, X, y, 2)


@pytest.mark.parametrize(
    "step", ["auto", "inverse_sqrt", "adanorm", "polyak", "line_search", "refit", "constant:0.1"]
)
@pytest.mark.one_in(4)
def test_steps(step, rng):
    X, y = data("numbers", rng, 200)
    algorithm = "naive" if step == "line_search" else "residual"
    model = ConvexBoostRegressor("huber", "tree", algorithm, step=step, n_rounds=5, random_state=0, n_jobs=1)
    check(model, X, y, 2)


@pytest.mark.parametrize("splits", ["best", "random", "mixed"])
@pytest.mark.parametrize("kind", ["numbers", "five"])
@pytest.mark.one_in(3)
def test_cuts_and_rows_that_are_drawn(splits, kind, rng):
    X, y = data(kind, rng)
    estimator = ConvexBoostRegressor if kind == "numbers" else ConvexBoostClassifier
    learner = Tree(splits=splits, subsample=0.7, colsample_bytree=0.6, max_leaves=8)
    check(estimator(learner=learner, n_rounds=8, random_state=0, n_jobs=1), X, y, 3)


@pytest.mark.parametrize("kind", ["numbers", "five"])
@pytest.mark.parametrize("learner", ["tree", "additive"])
@pytest.mark.one_in(2)
def test_categories(kind, learner, rng):
    """Columns with few levels, and with many, which trees turn into statistics."""
    X, y = data(kind, rng)
    X[:, 2], X[:, 3] = rng.integers(0, 5, N), rng.integers(0, 60, N)
    X[rng.random(N) < 0.1, 3] = np.nan
    estimator = ConvexBoostRegressor if kind == "numbers" else ConvexBoostClassifier
    model = estimator(learner=learner, n_rounds=8, random_state=0, n_jobs=1, categorical_features=[2, 3])
    check(model, X, y, 3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.one_in(2)
def test_bins_of_a_sample(weighted, rng, monkeypatch):
    """More different rows than bins are chosen from."""
    monkeypatch.setattr("convexboost.learners._bins.MAX_QUANTILE_ROWS", 100)
    X, y = data("numbers", rng)
    more = {"sample_weight": rng.random(N)} if weighted else {}
    check(ConvexBoostRegressor(n_rounds=5, random_state=0, n_jobs=1), X, y, 3, **more)


@pytest.mark.parametrize("learner", ["tree", "stump"])
@pytest.mark.one_in(2)
def test_sparse(learner, rng):
    X, y = data("numbers", rng)
    X = np.where(rng.random(X.shape) < 0.6, 0.0, np.nan_to_num(X))
    check(ConvexBoostRegressor(learner=learner, n_rounds=5, random_state=0, n_jobs=1), sp.csr_array(X), y, 3)


@pytest.mark.parametrize("kind", ["two", "five"])
@pytest.mark.one_in(2)
def test_weights_of_classes(kind, rng):
    X, y = data(kind, rng)
    model = ConvexBoostClassifier(n_rounds=5, random_state=0, n_jobs=1, class_weight="balanced")
    check(model, X, np.array(["a", "b", "c", "d", "e"])[y], 3)


def test_rows_to_validate_on_which_not_every_rank_has(rng):
    """A rank without such rows has one of weight 0."""
    X, y = data("numbers", rng)
    new, targets = data("numbers", rng, 60)
    model = ConvexBoostRegressor("absolute", n_rounds=20, random_state=0, n_jobs=1, n_iter_no_change=3)
    alone = ConvexBoostRegressor(**model.get_params(deep=False)).fit(X, y, X_val=new, y_val=targets)

    def program(communicator):
        own, held = slice(communicator.rank, None, 3), slice(None) if communicator.rank == 0 else slice(1)
        weight = np.ones(len(targets[held])) * (communicator.rank == 0)
        found = ConvexBoostRegressor(**model.get_params(deep=False))
        rows = {"X_val": new[held], "y_val": targets[held], "sample_weight_val": weight}
        found._fit(Given(X[own], y[own], **rows, communicator=communicator))
        return found

    for found in run_ranks(3, program):
        assert bits(found) == bits(alone)


def test_a_checkpoint_goes_on_with_other_ranks(rng, tmp_path):
    X, y = data("numbers", rng)
    settings = {"loss": "absolute", "random_state": 0, "n_jobs": 1}
    alone = ConvexBoostRegressor(n_rounds=9, **settings).fit(X, y)
    for size, n_rounds in ((3, 4), (2, 6), (1, 9), (4, 9)):

        def program(communicator, size=size, n_rounds=n_rounds):
            own = np.arange(N) % size == communicator.rank
            found = ConvexBoostRegressor(
                n_rounds=n_rounds, **settings, checkpoint=tmp_path / "run", checkpoint_every=1
            )
            found._fit(Given(X[own], y[own], communicator=communicator))
            return found

        models = run_ranks(size, program)
    for found in models:
        assert bits(found) == bits(alone)


def test_callbacks_are_asked_on_rank_0_only(rng):
    X, y = data("numbers", rng)

    def program(communicator):
        heard = []

        def stop(record):
            heard.append(record.round)
            return "enough" if record.round == 3 else None

        found = ConvexBoostRegressor(n_rounds=9, random_state=0, n_jobs=1, callbacks=[stop])
        own = np.arange(N) % 2 == communicator.rank
        found._fit(Given(X[own], y[own], communicator=communicator))
        return found, heard

    (first, heard), (second, nothing) = run_ranks(2, program)
    assert heard == [0, 1, 2, 3]
    assert nothing == []
    assert first.stop_reason_ == second.stop_reason_ == "enough"


def test_ranks_that_differ_raise(rng):
    X, y = data("numbers", rng)

    def program(communicator):
        own = np.arange(N) % 2 == communicator.rank
        learner = Tree(min_samples_leaf=10 + communicator.rank)
        model = ConvexBoostRegressor(learner=learner, n_rounds=30, random_state=0, n_jobs=1)
        model._fit(Given(X[own], y[own], communicator=communicator))

    with pytest.raises(RanksDifferError):
        run_ranks(2, program)


def test_categories_that_not_every_rank_has(rng):
    """Nor does every rank have a value in each column."""
    X, y = data("numbers", rng, 90)
    names, flags = rng.choice(["a", "c"], 90), rng.random(90) < 0.5
    names[::3] = "b"  # each rank has every third row
    table = pd.DataFrame({"x": X[:, 0], "name": pd.Categorical(names), "flag": pd.array(flags, "boolean")})
    table.loc[table.index[::3], "flag"] = pd.NA
    y = y + (names == "c") + flags
    alone = ConvexBoostRegressor(n_rounds=20, random_state=0, n_jobs=1).fit(table, y)

    def program(communicator):
        own = slice(communicator.rank, None, 3)
        found = ConvexBoostRegressor(n_rounds=20, random_state=0, n_jobs=1)
        found._fit(Given(table.iloc[own], y[own], communicator=communicator))
        return found

    for found in run_ranks(3, program):
        assert bits(found) == bits(alone)
        np.testing.assert_array_equal(found.predict(table), alone.predict(table))


def test_columns_that_hold_different_things():
    def program(communicator):
        values = [["a", "b"], [1.0, 2.0]][communicator.rank]
        table = pd.DataFrame({"x": pd.Categorical(values)})
        ConvexBoostRegressor()._fit(Given(table, np.arange(2.0), communicator=communicator))

    with pytest.raises(ValueError, match=r"column 'x' of `X` holds .* and .* in different partitions"):
        run_ranks(2, program)


def test_queries_that_are_drawn(rng):
    X, y = data("numbers", rng)
    model = ConvexBoostRanker(learner=Tree(subsample=0.5), n_rounds=6, random_state=0, n_jobs=1)
    check(model, X, np.round(y), 3, groups=rng.integers(0, 40, len(y)))


EMPTY = {
    "hinge": (ConvexBoostClassifier, "two"),
    "softmax": (ConvexBoostClassifier, "five"),
    "quantiles": (ConvexBoostRegressor, "numbers"),
    "ranking_hinge": (ConvexBoostRanker, "numbers"),
    CVaR(Absolute(), 0.5): (ConvexBoostRegressor, "numbers"),
}


@pytest.mark.parametrize("loss", EMPTY, ids=str)
def test_a_rank_whose_rows_all_have_weight_0(loss, rng):
    estimator, kind = EMPTY[loss]
    X, y = data(kind, rng, 120)
    weight, queries = (
        rng.integers(1, 4, 120) * (np.arange(120) % 3 > 0).astype(float),
        np.arange(120) // 3 % 10,
    )
    more, rank = {}, np.arange(120) % 3
    if estimator is ConvexBoostRanker:  # whole queries
        more, rank, y = {"groups": queries}, np.where(weight > 0, queries % 2 + 1, 0), np.round(y)
    settings = {"loss": loss, "n_rounds": 5, "random_state": 0, "n_jobs": 1}
    alone = estimator(**settings)
    alone._fit(Given(X, y, weight, **more))

    def program(communicator):
        own = rank == communicator.rank
        found = estimator(**settings)
        parts = {name: value[own] for name, value in more.items()}
        found._fit(Given(X[own], y[own], weight[own], **parts, communicator=communicator))
        return found

    for found in run_ranks(3, program):
        assert bits(found) == bits(alone)


class Coupled:
    """A user's loss of all rows together."""

    def total(self, F, y):
        return float(np.abs(F - y).max()), np.zeros_like(F)


REFUSED = {
    "learner": {"learner": "network"},
    "loss": {"loss": Coupled()},
    "certificate": {"certificate": True},
    "scoring": {"scoring": "neg_mean_absolute_error"},
    "warm_start": {"warm_start": True},
    "early_stopping": {"early_stopping": True},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_all_rows_in_one_process_is_refused(name, rng):
    X, y = data("numbers", rng)

    def program(communicator):
        model = ConvexBoostRegressor(n_rounds=2, **REFUSED[name])
        model._fit(Given(X, y, communicator=communicator))

    with pytest.raises(ValueError, match=f"`{name}`"):
        run_ranks(2, program)


def test_a_large_l2_and_an_offset(rng):
    X, y = data("numbers", rng)
    model = ConvexBoostRegressor("absolute", l2=0.5, n_rounds=8, random_state=0, n_jobs=1)
    check(model, X, y, 3, offset=rng.normal(size=len(y)))
