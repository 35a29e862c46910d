"""Losses from losses: values, subgradients, constants and print-outs of sums, multiples, maps and maxima."""

import pickle

import numpy as np
import pytest

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.core.protocols import Constants
from convexboost.core.space import FunctionSpace
from convexboost.estimators._validation import N_FOLDS
from convexboost.losses import Absolute, HalfSquared, MulticlassHinge, Quantile, Ridge, Softmax, maximum
from convexboost.losses._calculus import Composite, Coupling, Expression, RowExpression
from convexboost.losses._loss import Loss, RowLoss
from convexboost.losses._objective import BoundLoss, Pointwise

A = np.array([[1.0, 0.5, 0.0], [-1.0, 2.0, 1.0]])


class Spread(Coupling):
    """Σ_n p_n ‖f_n − mean‖₁: a coupling of all rows, as a plain example."""

    name = "spread"

    def couple(self, space, n_outputs, groups):
        return _Spread(space=space, n_outputs=n_outputs)

    def __repr__(self):
        return "Spread()"


class _Spread(BoundLoss):
    def evaluate(self, F):
        p = self.space.weight[:, None]
        D = F - (p * F).sum(axis=0)
        S = np.sign(D)
        return float((p * np.abs(D)).sum()), S - (p * S).sum(axis=0)

    def loss_constants(self):
        return Constants(lipschitz=2 * np.sqrt(self.n_outputs), minimum=0.0)


EXPRESSIONS = {
    "sum": Absolute() + HalfSquared(),
    "multiple": 2.5 * Quantile(0.8),
    "nested": 0.5 * (Absolute() + 3 * HalfSquared()) + Quantile(0.1),
    "map": Absolute().affine(A, [1.0, -2.0]),
    "number": HalfSquared().affine(-2.0, 0.5),
    "maximum": maximum(Absolute(), 0.3 * HalfSquared(), Quantile(0.9)),
    "maximum of maps": maximum(Absolute().affine(2.0), HalfSquared().affine(1.0, 3.0)),
    "coupled": Absolute() + 0.7 * Spread(),
    "coupled maximum": maximum(HalfSquared() + Spread(), 2 * Absolute()),
    "coupled map": (Absolute() + Spread()).affine(A),
    "ridge": Absolute() + Ridge(0.2) + 2 * Ridge(0.05),
    "coupled ridge": Spread() + HalfSquared() + Ridge(0.2),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=EXPRESSIONS)
def bound(request, rng):
    y, weight = rng.normal(size=(25, 2)), rng.uniform(0.5, 2, 25)
    return EXPRESSIONS[request.param].bind(y, FunctionSpace.of(25, weight))


def points(bound, rng):
    """Random points, whole numbers (ties), the targets, and near the start."""
    shape = (25, bound.n_outputs)
    out = [rng.normal(size=shape) * size for size in (1e-3, 1.0, 30.0)]
    out += [rng.integers(-2, 3, shape).astype(float), np.tile(bound.start(), (25, 1))]
    return out


@pytest.mark.one_in(2)
def test_subgradient_inequality(bound, rng):
    for F in points(bound, rng):
        value, G = bound.evaluate(F)
        assert value == pytest.approx(bound.value(F), rel=1e-12)
        for other in points(bound, rng):
            gap = bound.value(other) - value - bound.space.inner(G, other - F)
            assert gap >= -1e-10 * (1 + abs(value) + np.abs(other).max() ** 2)


def test_finite_differences(bound, rng):
    F, D = rng.normal(size=(2, 25, bound.n_outputs))
    numeric = (bound.value(F + 1e-6 * D) - bound.value(F - 1e-6 * D)) / 2e-6
    assert numeric == pytest.approx(bound.space.inner(bound.evaluate(F)[1], D), rel=1e-5, abs=1e-7)


def test_constants_hold(bound, rng):
    constants = bound.loss_constants()
    for F in points(bound, rng):
        value, G = bound.evaluate(F)
        if constants.lipschitz is not None:
            assert bound.space.norm(G) <= constants.lipschitz * (1 + 1e-12)
        if constants.minimum is not None:
            assert value >= constants.minimum - 1e-12
        D = rng.normal(size=F.shape)
        other, H = bound.evaluate(F + D)
        distance = bound.space.norm(D)
        assert other - value - bound.space.inner(G, D) >= constants.strong_convexity / 2 * distance**2 - 1e-9
        if constants.smoothness is not None:
            assert bound.space.norm(H - G) <= constants.smoothness * distance * (1 + 1e-9)


def test_start_is_the_best_constant(bound, rng):
    best = bound.start()
    value = bound.value(np.tile(best, (25, 1)))
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            c = best + size * rng.normal(size=best.shape)
            assert value <= bound.value(np.tile(c, (25, 1))) + 1e-8 * (1 + abs(value))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_pickle_and_repr(name):
    loss = EXPRESSIONS[name]
    if "Spread" not in repr(loss):
        names = {c.__name__: c for c in (Absolute, HalfSquared, Quantile, Ridge)} | {"maximum": maximum}
        assert repr(eval(repr(loss), names)) == repr(loss)
    assert repr(pickle.loads(pickle.dumps(loss))) == repr(loss)


def test_rows_stay_rows():
    """Pointwise parts keep the fast path; what couples rows does not."""
    y, space = np.zeros((5, 2)), FunctionSpace.of(5)
    assert isinstance(EXPRESSIONS["nested"], RowLoss)
    assert isinstance(EXPRESSIONS["nested"].bind(y, space), Pointwise)
    ridge = EXPRESSIONS["ridge"].bind(y, space)
    assert isinstance(ridge, Pointwise)
    assert ridge.l2 == pytest.approx(0.3)
    assert not isinstance(EXPRESSIONS["coupled"], RowLoss)
    assert isinstance(EXPRESSIONS["coupled"].bind(y, space), Composite)


def test_exact_constants():
    y, space = np.zeros((5, 2)), FunctionSpace.of(5)

    def constants(loss):
        return loss.bind(y, space).constants

    L = np.sqrt(2.0)
    assert constants(2 * Absolute() + Quantile(0.9)).lipschitz == pytest.approx(2.9 * L)
    assert constants(3 * HalfSquared()) == Constants(None, 3.0, 3.0, 0.0)
    assert constants(HalfSquared().affine(-2.0)) == Constants(None, 4.0, 4.0, 0.0)
    mapped = constants(HalfSquared().affine(A))
    assert mapped.smoothness == pytest.approx(np.linalg.norm(A, 2) ** 2)
    assert mapped.strong_convexity == 0.0  # three scores, two of them seen
    assert constants(HalfSquared().affine(A[:, :2])).strong_convexity == pytest.approx(
        np.linalg.svd(A[:, :2])[1].min() ** 2
    )
    top = constants(maximum(3 * HalfSquared(), HalfSquared()))
    assert top.smoothness is None
    assert top.strong_convexity == 1.0
    assert constants(maximum(Absolute(), 2 * Absolute())).lipschitz == pytest.approx(2 * L)
    assert constants(Absolute() + HalfSquared()).lipschitz is None


def test_formulas():
    assert str(0.5 * Absolute() + HalfSquared()) == "0.5 |f − y| + ½ (f − y)²"
    assert str(Absolute().affine(2.0, 1.0)) == "|(2 f + 1) − y|"
    assert str(maximum(Absolute(), HalfSquared())) == "max(|f − y|, ½ (f − y)²)"
    assert str(Absolute() + Ridge(0.1)) == "|f − y| + 0.05 ‖f − start‖²"
    assert str(2 * Softmax()) == "2 (log Σ_k exp f_k − f_y)"
    assert str(2 * (Absolute() + HalfSquared())) == "2 |f − y| + 2 ½ (f − y)²"
    assert repr(2 * Absolute() + Quantile(0.9)) == "2 * Absolute() + Quantile(quantile=0.9)"


def test_a_sum_of_the_same_loss_is_a_multiple(rng):
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    a = ConvexBoostRegressor(Absolute() + Absolute(), "stump", n_rounds=30).fit(X, y)
    b = ConvexBoostRegressor(2 * Absolute(), "stump", n_rounds=30).fit(X, y)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-9)


def test_ridge_is_the_estimators_l2(rng):
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    a = ConvexBoostRegressor(Absolute() + Ridge(0.3), "stump", n_rounds=30, certificate=True).fit(X, y)
    b = ConvexBoostRegressor("absolute", "stump", l2=0.3, n_rounds=30, certificate=True).fit(X, y)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert a.certificate_.gap() == b.certificate_.gap()
    both = ConvexBoostRegressor(
        Absolute() + Ridge(0.1), "stump", l2=0.2, n_rounds=30, early_stopping=False
    ).fit(X, y)
    np.testing.assert_allclose(a.predict(X), both.predict(X), rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual", "dual_averaging", "error_feedback"])
def test_coupled_expressions_train(algorithm, rng):
    X = rng.normal(size=(120, 3))
    y = np.sign(X[:, 0]) + 0.1 * rng.normal(size=120)
    step = "inverse_sqrt:0.5" if algorithm == "repeated" else "auto"
    loss = Absolute() + 0.1 * Spread()
    model = ConvexBoostRegressor(loss, "stump", algorithm, step=step, n_rounds=40, l2=0.01).fit(X, y)
    objective = model.history_["objective"]
    assert objective.min() < 0.6 * objective[0]


def test_links_survive_what_keeps_their_meaning(rng):
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    for loss in (2 * Softmax(), Softmax() + Ridge(0.1), Softmax() + Spread(), Softmax().affine(np.eye(3))):
        P = ConvexBoostClassifier(loss, n_rounds=5).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
    for loss in (Softmax() + MulticlassHinge(), maximum(Softmax(), MulticlassHinge())):
        assert not hasattr(ConvexBoostClassifier(loss), "predict_proba")


def test_maps_change_the_number_of_outputs(rng):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    model = ConvexBoostRegressor(HalfSquared().affine(A), n_rounds=20).fit(X, y)
    assert model.predict(X).shape == (60, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: -1 * Absolute(), r"a loss times -1 is not convex: the factor must be positive"),
        (lambda: 0 * Absolute(), r"a loss times 0 is not convex"),
        (lambda: Absolute() + Softmax(), r"losses of one task can be combined, got regression and class"),
        (lambda: maximum(Absolute()), r"`maximum` needs two losses at least"),
        (lambda: maximum(Absolute(), Ridge(1.0)), r"a ridge term can only be added"),
        (lambda: Ridge(-1.0), r"`l2` must be positive, got -1.0"),
        (lambda: Absolute().affine(0.0), r"`A` must be a number other than 0 or a matrix, got 0.0"),
        (lambda: Absolute().affine(A, np.eye(2)), r"`b` must be a number or a vector"),
        (lambda: bind(Absolute().affine(A), 3), r"`A` must have 3 rows, one per output of the loss"),
        (lambda: bind(Absolute().affine(1.0, [1.0, 2.0]), 3), r"`b` must have 3 entries, one per output"),
        (lambda: bind(Absolute() + Absolute().affine(A), 2), r"as many outputs each, got \[2, 3\]"),
        (lambda: bind(Ridge(1.0), 1), r"must be added to a loss"),
        (lambda: bind(maximum(Absolute(), Absolute() + Ridge(1.0)), 1), r"a ridge term can only be added"),
        (lambda: ConvexBoostRegressor(Ridge(1.0)).fit([[1.0], [2.0]], [1.0, 2.0]), r"has no targets: add it"),
    ],
)
def test_bad_expressions(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def bind(loss, n_outputs):
    return loss.bind(np.zeros((4, n_outputs)), FunctionSpace.of(4))


def test_only_losses_combine():
    with pytest.raises(TypeError):
        Absolute() + 1.0
    with pytest.raises(TypeError):
        Absolute() * Absolute()


def test_types():
    assert isinstance(EXPRESSIONS["sum"], RowExpression)
    assert isinstance(EXPRESSIONS["coupled"], Expression)
    assert all(isinstance(loss, Loss) for loss in EXPRESSIONS.values())


def test_a_ridge_term_is_the_l2_of_an_estimator():
    """Also where an estimator decides by itself: rows are held out for early stopping."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    a = ConvexBoostRegressor(Absolute() + Ridge(0.1), n_rounds=20, random_state=0).fit(X, y)
    b = ConvexBoostRegressor(Absolute(), l2=0.1, n_rounds=20, random_state=0).fit(X, y)
    assert a.n_members_ == N_FOLDS
    np.testing.assert_array_equal(a.history_["validation"], b.history_["validation"])
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
