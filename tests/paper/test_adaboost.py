"""AdaBoost is Algorithm 1 with the exponential loss, ±1 stumps and line search; scikit-learn is the judge."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import AdaBoostClassifier

from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.space import FunctionSpace
from convexboost.learners.sign_stump import SignStump
from convexboost.losses import Exponential

T = 25


class BestStump(ClassifierMixin, BaseEstimator):
    """The ±1 stump with the smallest weighted error; a scikit-learn tree minimises the Gini index instead."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        space = FunctionSpace.of(len(y), sample_weight)
        H = SignStump().bind(X, space)
        target = H.zero(1)
        target.add(Gradient(y[:, None].astype(float), space))
        self.direction_, self.mapper_ = target.project(np.random.default_rng(0)), H.mapper
        return self

    def predict(self, X):
        values = np.zeros((len(X), 1))
        self.direction_.add_to(values, self.mapper_.prepare(X))
        return np.where(values[:, 0] > 0, 1, -1)


@pytest.fixture(scope="module")
def data():
    """At most 32 values per feature, so that every one is a bin whatever the weights."""
    X, y = load_breast_cancer(return_X_y=True)
    cuts = np.quantile(X, np.linspace(0, 1, 33)[1:-1], axis=0)
    return np.stack([np.searchsorted(c, x) for c, x in zip(cuts.T, X.T, strict=True)], axis=1).astype(
        float
    ), 2 * y - 1


@pytest.fixture(scope="module")
def ours(data):
    X, y = data
    space = FunctionSpace.of(len(y))
    return boost(
        Exponential().bind((y + 1) // 2, space),
        SignStump().bind(X, space),
        algorithm="naive",
        step="line_search",
        n_rounds=T,
        start=np.zeros(1),
        output="last",
    )


@pytest.fixture(scope="module")
def theirs(data):
    """The fitted AdaBoost, and the sample weights it gave to each round."""
    X, y = data
    weights = []

    class Noted(BestStump):
        def fit(self, X, y, sample_weight=None):
            weights.append(sample_weight / sample_weight.sum())
            return super().fit(X, y, sample_weight)

    return AdaBoostClassifier(Noted(), n_estimators=T).fit(X, y), np.array(weights)


def stumps(model, X):
    """(coefficient, ±1 values at X) of every round."""
    for weight, h in model.terms:
        values = np.zeros((len(X), 1))
        h.add_to(values, model.mapper.prepare(X), np.sign(weight))
        yield abs(weight), values[:, 0]


def scores_before_each_round(model, X):
    alphas, values = zip(*stumps(model, X), strict=True)
    steps = np.array(alphas)[:, None] * np.array(values)
    return np.vstack([np.zeros(len(X)), np.cumsum(steps, axis=0)])


def test_same_stumps_and_coefficients(data, ours, theirs):
    """Scikit-learn's SAMME coefficient is log((1 − error)/error), twice the exact step."""
    X, _ = data
    model = theirs[0]
    assert len(model.estimators_) == T
    for (alpha, values), estimator, weight in zip(
        stumps(ours.path, X), model.estimators_, model.estimator_weights_, strict=True
    ):
        assert np.array_equal(values, estimator.predict(X))
        assert 2 * alpha == pytest.approx(weight, rel=1e-5)


def test_same_sample_weights(data, ours, theirs):
    """AdaBoost's weights are the exponential loss's: w_n ∝ exp(−y_n f(x_n))."""
    X, y = data
    weights = np.exp(-y * scores_before_each_round(ours.path, X)[:-1])
    assert np.allclose(weights / weights.sum(axis=1, keepdims=True), theirs[1], rtol=1e-4)


def test_same_predictions(data, ours, theirs):
    X, _ = data
    assert np.array_equal(np.sign(ours.model.predict(X)[:, 0]), theirs[0].predict(X))


def test_edges_are_those_of_theorem_1(data, ours, theirs):
    """γ_t = δ_t √(N_eff/N), and δ_t = 1 − 2 error_t."""
    N = len(data[1])
    effective = 1 / np.sum(theirs[1] ** 2, axis=1)
    delta = 1 - 2 * theirs[0].estimator_errors_
    assert np.allclose(ours.history["edge"][1:], delta * np.sqrt(effective / N), rtol=1e-4)


def test_training_error_bound(data, ours, theirs):
    """R(f_T) = Π √(1 − δ_t²) is AdaBoost's bound on the training error."""
    X, y = data
    R = ours.history["objective"]
    delta = 1 - 2 * theirs[0].estimator_errors_
    assert np.allclose(R, np.concatenate([[1.0], np.cumprod(np.sqrt(1 - delta**2))]), rtol=1e-6)
    errors = np.mean(np.sign(scores_before_each_round(ours.path, X)) != y, axis=1)
    assert np.all(errors <= R + 1e-12)
    assert R[-1] < 0.2
