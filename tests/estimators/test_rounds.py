"""early_stopping="auto" with trees: rounds chosen by validation inside the training rows, a fit on all."""

import math
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.estimators import _auto, _trials, _validation
from convexboost.learners.tree import Tree
from convexboost.losses.absolute import Absolute
from convexboost.losses.cvar import CVaR
from convexboost.losses.total_variation import TotalVariation

N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = X[:, 0] + 2.0 * RNG.normal(size=N)
C = np.digitize(X[:, 0] + X[:, 1] + 0.7 * RNG.normal(size=N), [-0.7, 0.7])
QID = np.arange(N) // 6
WEIGHT = RNG.integers(1, 4, N)
TWICE = RNG.permutation(np.repeat(np.arange(N), WEIGHT))
CASES = {
    "half_squared": (ConvexBoostRegressor, Y, {}),
    "absolute": (ConvexBoostRegressor, Y, {"loss": "absolute"}),
    "quantile": (ConvexBoostRegressor, Y, {"loss": "quantile:0.8", "learner": Tree(splits="random")}),
    "two outputs": (ConvexBoostRegressor, np.column_stack([Y, X[:, 1]]), {}),
    "softmax": (ConvexBoostClassifier, C, {}),
    "logistic": (ConvexBoostClassifier, C > 0, {"loss": "logistic"}),
    "ranking": (ConvexBoostRanker, C, {"n_rounds": 15}),
}


def make(estimator, **options):
    defaults = {"learner": "tree", "n_rounds": 60, "n_iter_no_change": 10, "random_state": 0, "n_jobs": 1}
    return estimator(**(defaults | options))


def fit(model, X, y, rows=slice(None), **options):
    if isinstance(model, ConvexBoostRanker):
        options["qid"] = QID[rows]
    return model.fit(X[rows], y[rows], **options)


def model_and_targets(name):
    estimator, y, options = CASES[name]
    return make(estimator, **options), y


# --- the contract ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_a_fit_on_all_rows_with_the_rounds_chosen(name):
    model, y = model_and_targets(name)
    fit(model, X, y)
    assert len(model.validation_curve_) <= model.n_rounds + 1
    longer = 2 if isinstance(model, ConvexBoostClassifier) else 1
    assert model.n_rounds_ == min(longer * np.argmin(model.validation_curve_), model.n_rounds) > 0
    assert np.isnan(model.history_["validation"]).all()
    same = clone(model).set_params(early_stopping=False, n_iter_no_change=50, n_rounds=model.n_rounds_)
    np.testing.assert_array_equal(fit(same, X, y).predict(X), model.predict(X))
    assert same.validation_curve_ is None


@pytest.mark.parametrize("name", CASES)
def test_weight_two_is_the_row_twice(name):
    model, y = model_and_targets(name)
    a = fit(clone(model), X, y, sample_weight=WEIGHT)
    b = fit(clone(model), X, y, TWICE)
    assert a.n_rounds_ == b.n_rounds_
    np.testing.assert_allclose(a.validation_curve_, b.validation_curve_, rtol=1e-9)
    np.testing.assert_allclose(a.model_.predict(X), b.model_.predict(X), atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_and_threads_do_not_matter(name):
    model, y = model_and_targets(name)
    a = fit(clone(model), X, y)
    b = fit(clone(model).set_params(n_jobs=2), X, y, RNG.permutation(N))
    assert a.n_rounds_ == b.n_rounds_
    np.testing.assert_allclose(a.validation_curve_, b.validation_curve_, rtol=1e-9)
    c = fit(clone(model).set_params(n_jobs=2), X, y)
    np.testing.assert_array_equal(a.validation_curve_, c.validation_curve_)
    np.testing.assert_array_equal(a.model_.predict(X), c.model_.predict(X))


def test_the_curve_is_that_of_the_folds():
    model = make(ConvexBoostRegressor, loss="absolute").fit(X, Y)
    fold = _validation.folds_of_rows(X, Y[:, None], None, False)
    curves = []
    for k in range(_validation.N_FOLDS):
        kept, held = fold != k, fold == k
        part = clone(model).set_params(early_stopping=True)
        part.fit(X[kept], Y[kept], X_val=X[held], y_val=Y[held])
        curves.append(part.history_["validation"])
    expected = _validation.mean_curve(curves, np.bincount(fold))
    np.testing.assert_allclose(model.validation_curve_, expected)


def test_query_weight_two_is_the_query_twice():
    y, weight = C, np.where(QID % 3 == 0, 2.0, 1.0)
    again = np.flatnonzero(weight == 2.0)
    rows = np.append(np.arange(N), again)
    labels = np.append(QID, 1000 + QID[again])
    a = make(ConvexBoostRanker, n_rounds=15).fit(X, y, QID, query_weight=weight)
    b = make(ConvexBoostRanker, n_rounds=15).fit(X[rows], y[rows], labels)
    assert a.n_rounds_ == b.n_rounds_
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-9)


# --- does it help? -----------------------------------------------------------------------------------------


def test_noise_stops_early_and_a_clean_target_does_not():
    grid, clean = make_friedman1(1200, noise=0.0, random_state=0)
    train, new = slice(300), slice(300, None)
    noisy = clean + np.random.default_rng(1).normal(scale=8.0, size=1200)
    model = ConvexBoostRegressor(learner="tree", n_rounds=150)
    fixed = clone(model).set_params(early_stopping=False, n_iter_no_change=50).fit(grid[train], noisy[train])
    model.fit(grid[train], noisy[train])
    assert model.n_rounds_ < 75
    assert model.score(grid[new], clean[new]) > fixed.score(grid[new], clean[new]) + 0.05
    assert model.fit(grid[train], clean[train]).n_rounds_ > 140


# --- folds -------------------------------------------------------------------------------------------------


def test_equal_rows_have_equal_fingerprints():
    A = RNG.integers(-1, 2, (500, 3)).astype(float)
    A[A == 1] = np.nan
    A[A == 0] = np.where(RNG.random(np.count_nonzero(A == 0)) < 0.5, 0.0, -0.0)
    found = _validation.fingerprints(A)
    _, rows = np.unique(np.nan_to_num(A, nan=7.0) + 0.0, axis=0, return_inverse=True)
    _, same = np.unique(found, return_inverse=True)
    assert len(set(zip(rows.ravel(), same, strict=True))) == rows.max() + 1 == same.max() + 1
    for form in (sp.csr_array, sp.csc_array, sp.coo_array):
        np.testing.assert_array_equal(_validation.fingerprints(form(A)), found)
    assert len(np.unique(_validation.fingerprints(np.vstack([X, X[:, ::-1], X + 1.0])))) == 3 * N


def test_folds_are_even_and_keep_copies_together():
    rows = np.repeat(np.arange(N), 2)
    fold = _validation.folds_of_rows(X[rows], Y[rows, None], None, False)
    assert np.bincount(fold).tolist() == [160, 160, 160]
    np.testing.assert_array_equal(fold[::2], fold[1::2])
    fold = _validation.folds_of_rows(X, C, None, True)
    for k in range(3):
        assert np.ptp(np.bincount(fold[k == C])) <= 1
    assert len({*zip(fold, np.arange(N) % 3, strict=True)}) == 9  # not the order


def test_one_fold_of_many(monkeypatch):
    monkeypatch.setattr(_validation, "MANY_INPUTS", N)
    fold = _validation.folds_of_rows(X, Y[:, None], None, False)
    assert np.bincount(fold + 1).tolist() == [160, 80]
    model = make(ConvexBoostRegressor, loss="absolute").fit(X, Y)
    kept, held = fold < 0, fold == 0
    part = clone(model).set_params(early_stopping=True)
    part.fit(X[kept], Y[kept], X_val=X[held], y_val=Y[held])
    np.testing.assert_allclose(model.validation_curve_, part.history_["validation"])


def test_queries_stay_whole_and_those_without_pairs_are_spread_apart():
    counts = np.arange(40) % 2 == 0
    fold = _validation.folds_of_groups(X, QID, counts)
    assert all(len(np.unique(fold[q == QID])) == 1 for q in range(40))
    of_query = fold[::6]
    assert np.ptp(np.bincount(of_query[counts])) <= 1
    assert np.ptp(np.bincount(of_query[~counts])) <= 1
    assert _validation.folds_of_groups(X, QID, np.arange(40) < 19) is None


def test_a_class_that_would_be_missing_is_always_trained_on():
    y = C.copy()
    y[0], y[1] = 3, 3
    fold = _validation.folds_of_rows(X[[0, *range(N)]], y[[0, *range(N)]], None, True)
    assert len({*fold[:3]}) > 1  # two members: one is always there
    y[1] = 4
    fold = _validation.folds_of_rows(X, y, None, True)
    assert fold[:2].tolist() == [-1, -1]
    assert (fold[2:] >= 0).all()


def test_a_class_with_a_single_member():
    y = C.copy()
    y[0] = 7
    model = make(ConvexBoostClassifier).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert np.isfinite(model.validation_curve_).all()
    assert model.predict(X).shape == (N,)


def test_classes_with_single_members_only():
    assert _validation.folds_of_rows(X, np.arange(N), None, True) is None


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_two_classes_one_with_a_single_member(loss):
    model = make(ConvexBoostClassifier, loss=loss).fit(X, np.arange(N) == 5)
    assert np.isfinite(model.validation_curve_).all()


def test_curves_of_different_length_and_with_missing_values():
    curve = _validation.mean_curve([np.array([4.0, 2.0]), np.array([4.0, 3.0, 1.0])], [3.0, 1.0])
    np.testing.assert_allclose(curve, [4.0, 2.25, 1.75])
    assert _validation.best_round(curve) == 2
    assert _validation.best_round(np.array([1.0, 2.0])) == 1  # one round at least
    assert _validation.best_round(np.array([5.0, 1.0 + 1e-13, 1.0])) == 1  # rounding decides nothing
    assert _validation.best_round(np.array([1.0, 1.0 + 1e-15, 1.0 - 1e-15])) == 1  # nor without a gain
    diverged = _validation.mean_curve([np.array([1.0, np.nan, np.inf])], [1.0])
    assert _validation.best_round(diverged) == 1


# --- where there is nothing to choose ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"learner": "stump"}, {}),
        ({"learner": "additive", "n_rounds": 3}, {}),
        ({"output": "average"}, {}),
        ({"certificate": True}, {}),
        ({"stop_when_gap_below": 1e-9}, {}),
        ({}, {"offset": np.zeros(N)}),
        ({}, {"X_val": X, "y_val": Y}),
        ({"loss": CVaR("absolute", 0.5)}, {}),
        ({"loss": Absolute() + TotalVariation(np.column_stack([np.arange(N - 1), np.arange(1, N)]))}, {}),
        ({"early_stopping": False}, {}),
    ],
)
def test_the_number_of_rounds_is_the_one_given(options, given):
    model = make(ConvexBoostRegressor, **({"n_rounds": 5, "n_iter_no_change": 50} | options)).fit(
        X, Y, **given
    )
    assert model.n_rounds_ == model.n_rounds
    assert model.validation_curve_ is None


@pytest.mark.parametrize("loss", ["multiclass_hinge", "hinge"])
def test_hinges_of_classes_do_not_validate(loss):
    model = make(ConvexBoostClassifier, loss=loss, n_rounds=5, n_iter_no_change=50).fit(X, C > 0)
    assert model.validation_curve_ is None
    assert model.n_rounds_ == 5


def test_auto_rounds(monkeypatch):
    """500, but at most 1000 where the number is looked for."""
    assert (_auto.ROUNDS, _auto.MAX_ROUNDS) == (500, 1000)
    monkeypatch.setattr(_auto, "ROUNDS", 4)
    monkeypatch.setattr(_auto, "MAX_ROUNDS", 8)
    model = make(ConvexBoostRegressor, n_rounds="auto")
    assert model.fit(X, X[:, 0]).n_rounds_ == len(model.validation_curve_) - 1 == 8
    assert model.fit(X[:59], X[:59, 0]).n_rounds_ == 4
    assert model.set_params(learner="stump", n_iter_no_change=50).fit(X, X[:, 0]).n_rounds_ == 4
    assert _trials.run(model, X, X[:, 0])[0].weak_learners == 4


def few_inputs():
    """Return fifty inputs, which determine the target."""
    A = np.array([(i % 10, i // 10 % 5) for i in range(N)], float)
    return A, A.sum(axis=1)


def repeated_inputs():
    """Return one column with 120 numbers, each twice, with other targets."""
    return (np.arange(N) % 120)[:, None].astype(float), Y


@pytest.mark.parametrize(
    ("A", "y"), [(X[:59], Y[:59]), few_inputs(), repeated_inputs()], ids=["few rows", "few", "repeated"]
)
def test_inputs_that_say_nothing_about_new_ones(A, y):
    model = make(ConvexBoostRegressor, n_rounds=5).fit(A, y)
    assert model.validation_curve_ is None
    assert model.n_rounds_ == 5


def test_few_queries():
    model = make(ConvexBoostRanker, n_rounds=5).fit(X, C, np.arange(N) // 13)
    assert model.validation_curve_ is None
    assert model.n_rounds_ == 5


# --- users -------------------------------------------------------------------------------------------------


def test_callbacks_see_the_last_fit_only(capsys):
    seen = []
    model = make(ConvexBoostRegressor, callbacks=[lambda record: seen.append(record.round)], verbose=1)
    model.fit(X, Y)
    assert seen == list(range(model.n_rounds_ + 1))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [f"validation, fold {k} of 3" for k in (1, 2, 3)]
    assert lines[3].startswith("round     0")


def test_an_interrupt_in_a_fold_ends_the_fit(monkeypatch):
    def interrupted(self, rng):
        raise KeyboardInterrupt

    monkeypatch.setattr("convexboost.learners._tree_set.TreeTarget.project", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(ConvexBoostRegressor).fit(X, Y)


def test_sparse_missing_and_categories():
    A = np.where(np.abs(X) < 0.7, 0.0, np.round(X, 1))
    dense = make(ConvexBoostRegressor).fit(A, Y)
    sparse = make(ConvexBoostRegressor).fit(sp.csr_array(A), Y)
    np.testing.assert_array_equal(sparse.validation_curve_, dense.validation_curve_)
    A[::7, 1] = np.nan
    frame = pd.DataFrame(A, columns=list("abcd"))
    frame["e"] = pd.Categorical(np.array(["ash", "birch", None], object)[C])
    model = make(ConvexBoostRegressor).fit(frame, Y)
    assert model.validation_curve_ is not None
    order = RNG.permutation(N)
    again = make(ConvexBoostRegressor).fit(frame.iloc[order], Y[order])
    assert again.n_rounds_ == model.n_rounds_


class Doubled:
    """A user's loss without anything declared."""

    def evaluate(self, F, y):
        r = F - y
        return (r * r).sum(axis=1), 2.0 * r


def test_a_loss_of_a_user():
    model = make(ConvexBoostRegressor, loss=Doubled()).fit(X, Y)
    assert model.validation_curve_ is not None
    assert model.n_rounds_ == np.argmin(model.validation_curve_)


@pytest.mark.parametrize("value", ["maybe", None, 2])
def test_bad_values(value):
    with pytest.raises(ValueError, match=r"`early_stopping` must be 'auto', True or False, got "):
        make(ConvexBoostRegressor, early_stopping=value).fit(X, Y)


# --- parts of the rows without a best constant of their own ------------------------------------------------


class Counts:
    """A user's Poisson loss: its start does not exist where no event was seen."""

    constants: ClassVar = {"minimum": 0.0}

    def evaluate(self, F, y):
        return (np.exp(F) - y * F + xlogy(y, y) - y).sum(axis=1), np.exp(F) - y

    def start(self, y, weight):
        return [math.log(weight @ y[:, 0])]

    def link(self, F):
        return np.exp(F)


def rare_events(seed, n=300, events=3):
    rng = np.random.default_rng(seed)
    A, y = rng.normal(size=(n, 3)), np.zeros(n)
    y[rng.choice(n, events, replace=False)] = 1.0
    return A, y


def in_one_fold(seed):
    """Return whether all events lie in one fold: then its training part has none."""
    A, y = rare_events(seed)
    return len(np.unique(_validation.folds_of_rows(A, y[:, None], None, False)[y > 0.0])) == 1


@pytest.mark.parametrize("loss", ["poisson", Counts()])
def test_a_fold_without_an_event(loss):
    """It starts where all rows start; weight 2 is still the row twice."""
    seeds = [seed for seed in range(60) if in_one_fold(seed)]
    assert len(seeds) >= 3
    model = make(ConvexBoostRegressor, loss=loss, n_rounds=5)
    for seed in seeds:
        A, y = rare_events(seed)
        found = clone(model).fit(A, y)
        assert np.isfinite(found.validation_curve_).all()
        assert 0.002 < found.predict(A).mean() < 0.05  # the mean of y is 0.01
    counts = np.random.default_rng(0).integers(2, 4, len(y))
    copies = np.repeat(np.arange(len(y)), counts)
    a, b = clone(model).fit(A, y, counts), clone(model).fit(A[copies], y[copies])
    np.testing.assert_allclose(a.predict(A), b.predict(A), rtol=1e-9)


@pytest.mark.parametrize("loss", ["poisson", Counts()])
def test_no_event_left_after_holding_out(loss):
    """A single event, in the validation part of some seeds."""
    A, y = rare_events(0, 60, 1)
    for seed in range(12):
        model = make(ConvexBoostRegressor, loss=loss, n_rounds=3, early_stopping=True, random_state=seed)
        assert np.isfinite(model.fit(A, y).predict(A)).all()
