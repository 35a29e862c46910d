"""A row of weight w is w rows, and rows have no order: for every loss, learner and way to draw."""

import numpy as np
import pytest
from sklearn.base import clone

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.learners.tree import Tree
from convexboost.losses import CVaR, WorstGroup

N = 150

LOSSES = {
    "half_squared": ConvexBoostRegressor,
    "absolute": ConvexBoostRegressor,
    "huber": ConvexBoostRegressor,
    "quantile:0.3": ConvexBoostRegressor,
    "quantiles": ConvexBoostRegressor,
    "epsilon_insensitive": ConvexBoostRegressor,
    "poisson": ConvexBoostRegressor,
    "hinge": ConvexBoostClassifier,
    "squared_hinge": ConvexBoostClassifier,
    "logistic": ConvexBoostClassifier,
    "exponential": ConvexBoostClassifier,
    "softmax": ConvexBoostClassifier,
    "multiclass_hinge": ConvexBoostClassifier,
}
TREES = {
    "best": {"learner": Tree(splits="best")},
    "random": {"learner": Tree(splits="random")},
    "shares": {"learner": Tree(subsample=0.7, colsample_bytree=0.5, min_samples_leaf=5)},
    "auto rounds": {"learner": Tree(), "early_stopping": "auto", "n_iter_no_change": 5},
    "ridge": {"learner": Tree(splits="best"), "l2": 0.1},
}
LEARNERS = {
    "stump": {"learner": "stump"},
    "additive": {"learner": "additive"},
}
SMOOTH = ["half_squared", "huber", "poisson", "squared_hinge", "logistic", "exponential", "softmax"]
WAYS = {**TREES, **LEARNERS}
CASES = [
    *((loss, way) for loss in LOSSES for way in WAYS),
    # With kinks a line search ends on one, and rounding decides on which side.
    *((loss, "line search") for loss in SMOOTH),
]
WAYS["line search"] = {"learner": Tree(splits="best"), "step": "line_search"}


def problem(loss, seed):
    """Numbers, some of them missing, and categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.3 * rng.normal(size=N)
    X[:, 2] = rng.integers(0, 6, N)
    X[rng.random(N) < 0.2, 3] = np.nan
    if loss == "poisson":
        y = rng.poisson(np.exp(y)).astype(float)
    if LOSSES[loss] is ConvexBoostClassifier:
        y = np.digitize(y, [0.0] if loss not in ("softmax", "multiclass_hinge") else [-0.5, 0.5])
    return X, y, rng


def fit(loss, options, X, y, sample_weight=None):
    defaults = {
        "n_rounds": 10,
        "early_stopping": False,
        "random_state": 0,
        "n_jobs": 1,
        "categorical_features": [2],
    }
    return LOSSES[loss](loss, **(defaults | options)).fit(X, y, sample_weight)


def same(a, b, X):
    assert a.n_rounds_ == b.n_rounds_
    np.testing.assert_allclose(a.model_.predict(X), b.model_.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("loss", "way"), CASES)
def test_a_weight_is_a_number_of_copies(loss, way):
    """Weights of 2 and 3 have the unit 1, which no row has."""
    options = WAYS[way]
    for seed, (low, high) in enumerate([(2, 3), (3, 5)]):
        X, y, rng = problem(loss, seed)
        counts = rng.integers(low, high + 1, N)
        copies = rng.permutation(np.repeat(np.arange(N), counts))
        same(fit(loss, options, X, y, counts), fit(loss, options, X[copies], y[copies]), X)


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("loss", "way"), CASES)
def test_rows_have_no_order(loss, way):
    options = WAYS[way]
    X, y, rng = problem(loss, 2)
    for weight in (np.ones(N), rng.integers(2, 4, N), rng.uniform(0.5, 2.0, N)):
        order = rng.permutation(N)
        a, b = fit(loss, options, X, y, weight), fit(loss, options, X[order], y[order], weight[order])
        same(a, b, X)


def scaled_fits(fit, weight, powers):
    """Return the predictions with weights that are multiplied by powers of two."""
    return [fit(np.ldexp(weight, power)) for power in powers]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("learner", ["stump", "additive", "tree", "network"])
@pytest.mark.parametrize("loss", ["half_squared", "absolute", "softmax"])
def test_the_unit_of_weights_does_not_change_a_bit(loss, learner):
    """Neither where their sum overflows nor where they have lost most of their bits.

    `min_samples_leaf` of trees is a sum of weights: it means the same for all shares, and nothing for large
    weights.
    """
    X, y, rng = problem(loss, 0)
    X, counts = np.nan_to_num(X), rng.integers(1, 4, N).astype(float)
    shares, large = [-1074, -1060, -1000, -30, -2], [100, 1000, 1022]
    for powers in [shares, large] if learner == "tree" else [[*shares, 0, *large]]:
        first, *others = scaled_fits(
            lambda weight: fit(loss, {"learner": learner, "n_rounds": 3}, X, y, weight).model_.predict(X),
            counts,
            powers,
        )
        assert np.isfinite(first).all()
        assert np.ptp(first[:, 0]) > 0.0
        for other in others:
            np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("parameter", ["sample_weight", "query_weight"])
def test_the_unit_of_weights_in_ranking(parameter):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(N, 3)), rng.integers(0, 3, N), np.arange(N) // 6
    weight = rng.integers(1, 4, N // 6)[qid].astype(float)
    model = ConvexBoostRanker(learner="stump", n_rounds=5, n_jobs=1)
    first, *others = scaled_fits(
        lambda weight: model.fit(X, y, qid, **{parameter: weight}).predict(X),
        weight,
        [0, -1074, -600, 1000, 1022],
    )
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1e308, 1: 1.5e308}, {0: 1e-320, 1: 3e-320}])
def test_the_unit_of_weights_with_class_weights(class_weight):
    X, y, _rng = problem("logistic", 0)
    options = {"class_weight": class_weight, "learner": "stump"}
    first, *others = scaled_fits(
        lambda weight: fit("logistic", options, X, y, weight).model_.predict(X),
        np.ones(N),
        [0, -1074, 1000, 1023],
    )
    assert np.isfinite(first).all()
    assert np.ptp(first) > 0.0
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_weights_that_vanish_beside_others_are_0():
    X, y, rng = problem("half_squared", 0)
    weight = np.where(rng.random(N) < 0.5, 1e200, 1e-200)
    for learner in ("stump", "tree"):
        a = fit("half_squared", {"learner": learner}, X, y, weight)
        b = fit("half_squared", {"learner": learner}, X, y, np.where(weight > 1.0, weight, 0.0))
        np.testing.assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("learner", ["stump", "tree"])
@pytest.mark.parametrize("loss", ["half_squared", "absolute", "huber"])
@pytest.mark.parametrize("make", [WorstGroup, CVaR])
def test_losses_that_reweight_rows(make, loss, learner):
    """They start where groups, or rows, tie: rounding must not decide which of them count."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(N, 3))
        y = X[:, 0] + rng.normal(size=N) * (0.5 + (X[:, 1] > 0.0))
        groups = rng.integers(0, 3, N)
        model = ConvexBoostRegressor(
            make(loss), learner, n_rounds=3, random_state=0, n_jobs=1, early_stopping=False
        )
        counts = rng.integers(2, 4, N)
        copies = rng.permutation(np.repeat(np.arange(N), counts))

        def fit(rows, weight=None, X=X, y=y, groups=groups, model=model):
            options = {"groups": groups[rows]} if model.loss.needs_groups else {}
            return clone(model).fit(X[rows], y[rows], weight, **options)

        same(fit(np.arange(N)), fit(rng.permutation(N)), X)
        same(fit(np.arange(N), counts), fit(copies), X)
