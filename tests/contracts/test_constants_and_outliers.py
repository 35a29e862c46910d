"""A constant in the loss changes nothing, and one outlier little: neither says how far a step should go."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.boosting.training import boost
from convexboost.core.protocols import Constants
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.losses import Absolute, CVaR, WorstGroup, as_loss

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(300, 4))
TRUE = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + (X[:, 2] > 0)
Y = TRUE + 0.1 * rng.normal(size=300)
GROUPS = np.arange(300) % 3
COUNTS = rng.poisson(np.exp(TRUE)).astype(float)


class Rows:
    def __init__(self, c=0.0):
        self.c = c

    def evaluate(self, F, y):
        return np.abs(F - y).sum(axis=1) + self.c, np.sign(F - y)


class WithProx(Rows):
    def prox(self, F, y, size):
        return y + np.sign(F - y) * np.maximum(np.abs(F - y) - size, 0.0)


class Pinball(Rows):
    """Its subgradient at the target is not 0, so the target is not known to be the minimum."""

    def evaluate(self, F, y):
        over = F - y
        return np.maximum(-0.8 * over, 0.2 * over).sum(axis=1) + self.c, np.where(over > 0, 0.2, -0.8)


class Square(Rows):
    def evaluate(self, F, y):
        return 0.5 * ((F - y) ** 2).sum(axis=1) + self.c, F - y


class Poisson(Rows):
    """The negative log likelihood, which is negative where y is large."""

    def evaluate(self, F, y):
        return (np.exp(F) - y * F)[:, 0] + self.c, np.exp(F) - y

    def link(self, F):
        return np.exp(F)


class Total:
    def __init__(self, c=0.0):
        self.c = c

    def total(self, F, y, weight):
        return float(weight @ np.abs(F - y).sum(axis=1)) + self.c, weight[:, None] * np.sign(F - y)


class Coupled:
    """Rows are pulled together: to move each score to its best value alone is of no use."""

    def __init__(self, c=0.0):
        self.c = c

    def total(self, F, y):
        away, error = F - F.mean(), F - y
        return float(0.5 * (error**2).mean() + (away**2).mean()) + self.c, (error + 2 * away) / len(F)


class Logistic:
    """Its minimum is at infinity."""

    def __init__(self, c=0.0):
        self.c = c

    n_outputs = 1

    def evaluate(self, F, y):
        sign = 2.0 * np.reshape(y, (-1, 1)) - 1.0
        return np.logaddexp(0.0, -sign * F)[:, 0] + self.c, -sign / (1.0 + np.exp(sign * F))

    def link(self, F):
        P = 1.0 / (1.0 + np.exp(-F))
        return np.hstack([1.0 - P, P])


LOSSES = {
    "rows": Rows,
    "prox": WithProx,
    "pinball": Pinball,
    "square": Square,
    "poisson": Poisson,
    "total": Total,
    "coupled": Coupled,
    "cvar": lambda c: CVaR(Rows(c), 0.5),
}
LEARNERS = {
    "tree": "tree",
    "stump": "stump",
    "additive": "additive",
    "sklearn": DecisionTreeRegressor(max_depth=2, random_state=0),
}


def predictions(loss, learner, y=Y, groups=None, rounds=30, **options):
    model = ConvexBoostRegressor(
        loss, learner, n_rounds=rounds, early_stopping=False, random_state=0, **options
    )
    return model.fit(X, y, **({} if groups is None else {"groups": groups})).predict(X)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", LOSSES)
def test_a_constant_in_the_loss_does_not_matter(name, learner):
    y = COUNTS if name == "poisson" else Y
    expected = predictions(LOSSES[name](0.0), LEARNERS[learner], y)
    unit = np.ptp(expected)
    assert unit > 0.1
    for c in (1000.0, -5.0):
        found = predictions(LOSSES[name](c), LEARNERS[learner], y)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * unit)


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_constant_hardly_matters_to_the_worst_group(learner):
    """Which groups tie for the worst is decided up to rounding, and that of a large constant is larger."""
    objective = WorstGroup("absolute").bind(Y, FunctionSpace.of(300), groups=GROUPS)
    start = objective.value(np.tile(objective.start(), (300, 1)))
    reached = [
        objective.value(predictions(WorstGroup(Rows(c)), LEARNERS[learner], groups=GROUPS)[:, None])
        for c in (0.0, 10.0, 1000.0, -5.0)
    ]
    assert reached[0] < 0.9 * start
    assert max(reached) - min(reached) < 0.1 * (start - reached[0])


@pytest.mark.parametrize("step", ["auto", "refit:0.5"])
@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual"])
def test_a_constant_does_not_matter_to_any_step(algorithm, step):
    found = [predictions(Rows(c), "stump", algorithm=algorithm, step=step) for c in (0.0, 1000.0)]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-7 * np.ptp(found[0]))


@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual"])
def test_a_constant_hardly_matters_to_line_search(algorithm):
    """It stops at kinks, and rounding decides on which side."""
    start = np.abs(Y - np.median(Y)).mean()
    reached = [
        np.abs(predictions(Rows(c), "stump", algorithm=algorithm, step="line_search") - Y).mean()
        for c in (0.0, 1000.0)
    ]
    assert reached[0] < 0.8 * start
    assert abs(reached[1] - reached[0]) < 0.1 * (start - reached[0])


def test_a_constant_does_not_matter_with_several_outputs_and_a_ridge_term():
    y = np.column_stack([Y, 100.0 * X[:, 3] + Y])
    found = [predictions(Square(c), "tree", y, l2=0.1) for c in (0.0, 1000.0)]
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_a_constant_does_not_matter_with_a_minimum_at_infinity():
    found = [
        ConvexBoostClassifier(Logistic(c), "stump", n_rounds=40, early_stopping=False).fit(X, Y > 0.5)
        for c in (0.0, 1000.0, -5.0)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.decision_function(X), found[0].decision_function(X), rtol=1e-7)


@pytest.mark.parametrize("accuracy", [0.5, 1.0])
def test_a_constant_does_not_change_the_number_of_projections(accuracy):
    counts = [
        ConvexBoostRegressor(
            Rows(c), "stump", "repeated", accuracy=accuracy, n_rounds=4, early_stopping=False
        )
        .fit(X, Y)
        .history_["weak_learners"]
        for c in (0.0, 1000.0)
    ]
    np.testing.assert_array_equal(*counts)


@pytest.mark.parametrize("learner", ["tree", "stump", "additive"])
def test_a_users_poisson_comes_near_the_built_in_one(learner):
    # The user's has no `prox`: trees take the plain gradient of both, and the same kind of cuts.
    losses = (Poisson(), "poisson")
    own, builtin = (predictions(loss, learner, COUNTS, rounds=200, envelope=0.0) for loss in losses)
    mean = np.exp(TRUE)
    assert np.abs(own - mean).mean() < 1.1 * np.abs(builtin - mean).mean() + 1e-9


@pytest.mark.parametrize("shift", [-1.0, 0.0, 1e6])
def test_divergence_is_measured_by_what_can_be_gained(shift):
    """A start of value 0 used to make every rise a divergence, and a large constant none."""

    class Shifted(Absolute):
        def evaluate(self, F, y):
            losses, G = super().evaluate(F, y)
            return losses + shift, G

        def constants(self, n_outputs):
            return Constants()

    space = FunctionSpace.of(len(Y))
    shift = shift if shift >= 0 else -Absolute().bind(Y, space).evaluate(np.full((300, 1), np.median(Y)))[0]

    def stop(step):
        return boost(Shifted().bind(Y, space), Stump().bind(X, space), step=step, n_rounds=20).stop

    assert stop("inverse_sqrt:1").kind != "diverged"
    assert stop("constant:1e5").kind == "diverged"


# --- outliers ----------------------------------------------------------------------------------------------

ROBUST = ["absolute", "huber", "quantile:0.5", "quantile:0.8", "epsilon_insensitive"]
#: A run with an outlier may have so many times the error of one without it, in the other rows.
FACTOR = 1.4


@pytest.mark.one_in(3)
@pytest.mark.parametrize("learner", ["tree", "stump", "additive"])
@pytest.mark.parametrize("loss", ROBUST)
def test_one_outlier_hardly_matters(loss, learner):
    g = np.random.default_rng(1)
    X = g.uniform(-2, 2, size=(1000, 4))
    true = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + (X[:, 2] > 0)
    y = true + 0.1 * g.normal(size=1000)

    def error(y):
        model = ConvexBoostRegressor(loss, learner, n_rounds=100, early_stopping=False, random_state=0)
        return np.abs(model.fit(X, y).predict(X) - true)[1:].mean()

    without = error(y)
    for outlier in (1e5, -1e8):
        y[0] = outlier
        assert error(y) < FACTOR * without, outlier


def test_a_minimum_that_is_far_too_low_hardly_matters():
    class Careless(Rows):
        constants = Constants(minimum=0.0)

    with_minimum, without = (
        np.abs(predictions(loss, "stump", rounds=100) - TRUE).mean() for loss in (Careless(1e4), Rows(1e4))
    )
    assert with_minimum < FACTOR * without


@pytest.mark.parametrize("learner", ["tree", "stump"])
def test_an_outlier_and_weights(learner):
    """What is left of the slopes is a mean over rows: weight 2 is the row twice, and their order is free."""
    y = Y.copy()
    y[7] = 1e5
    weight = 1.0 + (np.arange(300) % 2)
    twice = np.repeat(np.arange(300), weight.astype(int))[::-1]
    options = {"n_rounds": 10, "early_stopping": False, "random_state": 0}
    a = ConvexBoostRegressor("absolute", learner, **options).fit(X, y, weight).predict(X)
    b = ConvexBoostRegressor("absolute", learner, **options).fit(X[twice], y[twice]).predict(X)
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


# --- no silence --------------------------------------------------------------------------------------------


def test_a_run_that_learns_nothing_is_no_secret():
    model = ConvexBoostRegressor("absolute", "stump", step="constant:100", n_rounds=200, early_stopping=False)
    with pytest.warns(ConvergenceWarning, match="none of 200 rounds lowered the objective"):
        model.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ConvexBoostRegressor("absolute", "stump", n_rounds=200, early_stopping=False).fit(X, np.zeros(300))
        ConvexBoostRegressor("absolute", "stump", n_rounds=200, early_stopping=False).fit(0 * X, Y)


def test_floor_of_a_users_loss():
    space = FunctionSpace.of(300)
    assert as_loss(Rows(7.0)).bind(Y, space).floor == pytest.approx(7.0, rel=1e-12)
    assert as_loss(Pinball(7.0)).bind(1e-9 * Y, space).floor == pytest.approx(7.0, rel=1e-12)
    lowest = np.mean(COUNTS - COUNTS * np.log(np.maximum(COUNTS, 1.0)))
    assert as_loss(Poisson()).bind(COUNTS, space).floor == pytest.approx(lowest, rel=1e-9)
    assert as_loss(Logistic(-3.0)).bind((Y > 0.5).astype(int), space, n_classes=2).floor == pytest.approx(
        -3.0
    )
    assert CVaR(Rows(7.0), 0.5).bind(Y, space).floor == pytest.approx(7.0, rel=1e-12)
    assert Absolute().bind(Y, space).floor == 0.0
