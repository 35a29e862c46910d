"""The formulas, by hand.  What all losses share is in tests/contracts."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn import metrics

from convexboost.core.space import FunctionSpace
from convexboost.losses.absolute import Absolute
from convexboost.losses.epsilon_insensitive import EpsilonInsensitive
from convexboost.losses.exponential import Exponential
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.hinge import Hinge
from convexboost.losses.huber import Huber
from convexboost.losses.logistic import Logistic
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.poisson import Poisson
from convexboost.losses.quantile import Quantile
from convexboost.losses.quantiles import Quantiles
from convexboost.losses.softmax import Softmax
from convexboost.losses.squared_hinge import SquaredHinge
from convexboost.registry import available

F = np.array([[3.0, 0.0], [1.0, 1.0]])
Y = np.array([[1.0, 0.5], [1.0, 3.0]])
SCORES = np.array([[0.5, 0.2, -1.0], [2.0, 0.0, 0.0]])
LABELS = np.array([0, 0])


@pytest.mark.parametrize(
    ("loss", "losses", "G"),
    [
        (HalfSquared(), [2.125, 2.0], [[2.0, -0.5], [0.0, -2.0]]),
        (Absolute(), [2.5, 2.0], [[1.0, -1.0], [0.0, -1.0]]),
        (Quantile(0.9), [0.2 + 0.45, 1.8], [[0.1, -0.9], [0.0, -0.9]]),
        (Huber(1.0), [1.5 + 0.125, 1.5], [[1.0, -0.5], [0.0, -1.0]]),
        (EpsilonInsensitive(0.5), [1.5, 1.5], [[1.0, 0.0], [0.0, -1.0]]),
        (
            Poisson(),
            [math.exp(3) - 4 + 0.5 + 0.5 * math.log(0.5), 2 * math.e - 8 + 3 * math.log(3)],
            [[math.exp(3) - 1, 0.5], [math.e - 1, math.e - 3]],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_regression(loss, losses, G):
    found = loss.evaluate(F, Y)
    np.testing.assert_allclose(found[0], losses)
    np.testing.assert_allclose(found[1], G)


def test_multiclass_hinge():
    losses, G = MulticlassHinge().evaluate(SCORES, LABELS)
    np.testing.assert_allclose(losses, [0.7, 0.0])
    np.testing.assert_array_equal(G, [[-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])


def test_softmax():
    losses, G = Softmax().evaluate(SCORES, LABELS)
    weights = np.exp(SCORES)
    P = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(losses, -np.log(P[:, 0]))
    np.testing.assert_allclose(G, P - [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(Softmax().link(SCORES), P)


def test_softmax_of_huge_scores():
    losses, G = Softmax().evaluate(np.array([[1e5, 0.0], [0.0, 1e5]]), np.array([0, 0]))
    np.testing.assert_array_equal(losses, [0.0, 1e5])
    np.testing.assert_array_equal(G, [[0.0, 0.0], [-1.0, 1.0]])


@pytest.mark.parametrize(
    ("loss", "constants"),
    [
        (HalfSquared(), (None, 1.0, 1.0)),
        (Absolute(), (math.sqrt(3), None, 0.0)),
        (Quantile(0.2), (0.8 * math.sqrt(3), None, 0.0)),
        (MulticlassHinge(), (math.sqrt(2), None, 0.0)),
        (Softmax(), (math.sqrt(2), 0.5, 0.0)),
        (Huber(2.0), (2.0 * math.sqrt(3), 1.0, 0.0)),
        (EpsilonInsensitive(), (math.sqrt(3), None, 0.0)),
        (Poisson(), (None, None, 0.0)),
        (Quantiles((0.2, 0.5, 0.6)), (pytest.approx(math.sqrt(0.64 + 0.25 + 0.36)), None, 0.0)),
        (Logistic(), (1.0, 0.25, 0.0)),
        (Exponential(), (None, None, 0.0)),
        (Hinge(), (1.0, None, 0.0)),
        (SquaredHinge(), (None, 2.0, 0.0)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_constants(loss, constants):
    found = loss.constants(3)
    assert (found.lipschitz, found.smoothness, found.strong_convexity) == constants


def test_softmax_smoothness_is_reached():
    """At p = (½, ½, 0) the Hessian has eigenvalue ½ along e_1 − e_2."""
    at, step = np.array([[0.0, 0.0, -50.0]]), 1e-4 * np.array([[1.0, -1.0, 0.0]])
    G, G2 = (Softmax().evaluate(A, np.array([0]))[1] for A in (at, at + step))
    assert np.linalg.norm(G2 - G) / np.linalg.norm(step) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("quantile", [0, 1, -0.5, 1.5, math.nan])
def test_quantile_must_lie_inside(quantile):
    with pytest.raises(ValueError, match=rf"`quantile` must lie in \(0, 1\), got {quantile}"):
        Quantile(quantile)


def test_hinge_start_is_a_majority_or_nothing():
    y = np.array([0, 1, 1, 2])
    loss = MulticlassHinge()
    np.testing.assert_array_equal(loss.bind(y, FunctionSpace.of(4)).start(), [0, 0, 0])
    start = loss.bind(y, FunctionSpace.of(4, np.array([1.0, 2, 2, 1]))).start()
    np.testing.assert_allclose(start, [-1 / 3, 2 / 3, -1 / 3])


def test_softmax_start_of_a_class_that_does_not_occur():
    start = Softmax().bind(np.array([0, 0, 1]), FunctionSpace.of(3), n_classes=3).start()
    assert np.isfinite(start).all()
    assert start[2] < start[1] < start[0]


MARGINS = np.array([[-1.0], [0.5], [1.0], [3.0]])


@pytest.mark.parametrize(
    ("loss", "losses", "slopes"),
    [
        (Logistic(), np.log1p(np.exp(-MARGINS[:, 0])), -1 / (1 + np.exp(MARGINS[:, 0]))),
        (Exponential(), np.exp(-MARGINS[:, 0]), -np.exp(-MARGINS[:, 0])),
        (Hinge(), [2.0, 0.5, 0.0, 0.0], [-1.0, -1.0, 0.0, 0.0]),
        (SquaredHinge(), [4.0, 0.25, 0.0, 0.0], [-4.0, -1.0, 0.0, 0.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_margin(loss, losses, slopes):
    """The margin is f for class 1, −f for class 0."""
    for label, sign in ((1, 1.0), (0, -1.0)):
        found, G = loss.evaluate(sign * MARGINS, np.full(4, label))
        np.testing.assert_allclose(found, losses)
        np.testing.assert_allclose(G[:, 0], sign * np.asarray(slopes))


@pytest.mark.parametrize("far", [350.0, 1e6])
def test_exp_is_continued_by_its_tangent(far):
    top = math.exp(300)
    for loss, y, sign in ((Poisson(), np.zeros((1, 1)), 1.0), (Exponential(), np.array([0]), 1.0)):
        losses, G = loss.evaluate(np.array([[sign * far]]), y)
        assert losses[0] == pytest.approx(top * (1 + far - 300), rel=1e-12)
        assert G[0, 0] == pytest.approx(sign * top, rel=1e-12)
        losses, G = loss.evaluate(np.array([[-far]]), y)
        assert losses[0] == pytest.approx(math.exp(-far) if far < 700 else 0.0, rel=1e-9)


def test_prox_beyond_the_tangent():
    """A slope of exp 300 against a step that small."""
    size, top = 1e-130, math.exp(300)
    for F in (299.0, 300.0, 302.0, 400.0):
        x = Poisson().prox(np.array([[F]]), np.zeros((1, 1)), size)[0, 0]
        assert x + size * math.exp(min(x, 300)) == pytest.approx(F, rel=1e-12)
        assert (x > 300) == (F - size * top > 300)


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    F, labels = rng.normal(size=(50, 1)), rng.integers(0, 2, 50)
    return F, labels, rng.poisson(1.5, 50).astype(float), rng.uniform(0.5, 2, 50)


def test_against_scikit_learn(rows):
    F, labels, counts, weight = rows
    space, f = FunctionSpace.of(50, weight), F[:, 0]

    def risk(loss, y):
        return loss.bind(y, space).value(F if not isinstance(loss, Quantiles) else np.tile(F, (1, 3)))

    log_loss = metrics.log_loss(labels, Logistic().link(F)[:, 1], sample_weight=weight)
    assert risk(Logistic(), labels) == pytest.approx(log_loss, rel=1e-12)
    hinge = metrics.hinge_loss(labels, f, sample_weight=weight)
    assert risk(Hinge(), labels) == pytest.approx(hinge, rel=1e-12)
    deviance = metrics.mean_poisson_deviance(counts, np.exp(f), sample_weight=weight)
    assert risk(Poisson(), counts) == pytest.approx(deviance / 2, rel=1e-12)
    pinball = [metrics.mean_pinball_loss(counts, f, sample_weight=weight, alpha=q) for q in (0.1, 0.5, 0.9)]
    assert risk(Quantiles(), counts) == pytest.approx(sum(pinball), rel=1e-12)


SMOOTH = [Huber(0.7), Poisson(), Logistic(), Exponential(), SquaredHinge()]


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_best_constant_is_that_of_a_numerical_search(loss, rows):
    _, labels, counts, weight = rows
    objective = loss.bind(labels if loss.task == "binary" else counts, FunctionSpace.of(50, weight))
    options = {"xatol": 1e-12}
    found = minimize_scalar(
        lambda c: objective.value(np.full((50, 1), c)), bounds=(-20, 20), method="bounded", options=options
    )
    assert objective.start()[0] == pytest.approx(found.x, abs=1e-6)


@pytest.mark.parametrize(
    "loss",
    [Huber(0.7), EpsilonInsensitive(0.4), Poisson(), Exponential(), Hinge(), SquaredHinge()],
    ids=lambda loss: loss.name,
)
@pytest.mark.parametrize("size", [0.02, 1.0, 50.0])
def test_prox_is_that_of_a_numerical_search(loss, size, rows):
    F, labels, counts, _ = rows
    F, y = 3 * F[:8], labels[:8] if loss.task == "binary" else counts[:8, None]
    X = loss.prox(F, y, size)
    for n in range(8):
        found = minimize_scalar(
            lambda x, n=n: loss.value(np.array([[x]]), y[[n]])[0] + (x - F[n, 0]) ** 2 / (2 * size),
            bounds=(-60, 60),
            method="bounded",
            options={"xatol": 1e-12},
        )
        assert X[n, 0] == pytest.approx(found.x, abs=2e-6)


@pytest.mark.parametrize(("labels", "start"), [([0, 1], 0), ([0, 1, 1], 1), ([0, 0, 1], -1), ([1, 1], 1)])
def test_hinge_starts_at_the_majority(labels, start):
    assert Hinge().bind(np.array(labels), FunctionSpace.of(len(labels))).start() == start


def test_binary_start_of_a_class_that_does_not_occur():
    for loss in (Logistic(), Exponential(), Hinge(), SquaredHinge()):
        start = loss.bind(np.zeros(3, int), FunctionSpace.of(3)).start()
        assert np.isfinite(start).all()
        assert start[0] < 0


def test_epsilon_insensitive_starts_in_the_middle_of_its_minimisers():
    space = FunctionSpace.of(2)
    assert EpsilonInsensitive(0.5).bind(np.array([5.0, 5.0]), space).start() == pytest.approx([5.0])
    assert EpsilonInsensitive(3.0).bind(np.array([0.0, 2.0]), space).start() == pytest.approx([1.0])


def test_epsilon_of_zero_is_the_absolute_error(rows):
    F, _, counts, _ = rows
    for A in (F, counts[:, None] * (1 + 2e-16)):
        for a, b in zip(
            EpsilonInsensitive(0.0).evaluate(A, counts[:, None]),
            Absolute().evaluate(A, counts[:, None]),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)


def test_sorted_quantiles_never_cost_more():
    rng = np.random.default_rng(0)
    loss, y, F = Quantiles((0.05, 0.3, 0.6, 0.9)), rng.normal(size=(500, 1)), rng.normal(size=(500, 4))
    before, after = loss.value(F, y), loss.value(loss.link(F), y)
    assert (after <= before + 1e-12).all()
    assert (after < before - 1e-3).any()


@pytest.mark.parametrize(
    "given", [(0.5, 0.5), (0.9, 0.1), (0.0, 0.5), (0.5, 1.0), (), 0.5, ("a",), (math.nan,)]
)
def test_quantiles_must_increase(given):
    with pytest.raises(ValueError, match=r"`quantiles` must be increasing numbers in \(0, 1\), got"):
        Quantiles(given)


def test_quantiles_take_any_sequence():
    assert Quantiles([0.2, 0.8]) == Quantiles(np.array([0.2, 0.8])) == Quantiles((0.2, 0.8))
    assert hash(Quantiles([0.2, 0.8])) == hash(Quantiles((0.2, 0.8)))


@pytest.mark.parametrize(
    ("loss", "wrong", "message"),
    [
        (Huber, 0.0, "`delta` must be positive and finite, got 0.0"),
        (Huber, math.nan, "`delta` must be positive and finite, got nan"),
        (Huber, "1", "`delta` must be positive and finite, got '1'"),
        (EpsilonInsensitive, -0.1, "`epsilon` must be finite and not negative, got -0.1"),
        (EpsilonInsensitive, math.inf, "`epsilon` must be finite and not negative, got inf"),
    ],
)
def test_arguments_out_of_range(loss, wrong, message):
    with pytest.raises(ValueError, match=message):
        loss(wrong)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (Poisson(), [1.0, 0.0, -2.0], r"`y` must not be negative, got -2 in row 2"),
        (Quantiles(), np.zeros((3, 2)), r"`y` must have one column for the loss 'quantiles', got 2"),
        (Hinge(), [0, 1, -1], r"`y` must be 0 or 1, the class numbers, got -1 in row 2"),
        (Logistic(), [0, 1, 2], r"`loss` 'logistic' is for two classes, but `y` has 3: use 'softmax'"),
    ],
)
def test_targets_outside_of_the_domain(loss, y, message):
    with pytest.raises(ValueError, match=message):
        loss.bind(np.asarray(y), FunctionSpace.of(3))


def test_poisson_of_zeros_has_no_start():
    """It can be evaluated, as on validation rows."""
    objective = Poisson().bind(np.zeros(3), FunctionSpace.of(3))
    assert objective.value(np.zeros((3, 1))) == 1.0
    with pytest.raises(ValueError, match="`y` must not be all 0"):
        objective.start()


def test_binary_losses_name_one_for_more_classes():
    losses = available("convexboost.losses")
    for cls in losses.values():
        if cls.task == "binary":
            assert losses[cls.multiclass].task == "classification"


def test_prox_of_huge_scores_does_not_cancel():
    for size in (1e-3, 1.0, 1e3):
        F = np.array([[1e4], [1e6], [1e9]])
        X = Poisson().prox(F, np.zeros((3, 1)), size)
        np.testing.assert_allclose(X + size * np.exp(X), F, rtol=1e-13)


def test_class_that_does_not_occur_counts_as_half_a_row():
    objective = Logistic().bind(np.ones(4, int), FunctionSpace.of(4))
    assert objective.start()[0] == pytest.approx(math.log(1 / 0.125))


def test_hinge_within_rounding_of_its_kinks():
    """A margin of 1 less a rounding error has slope 0; shares that differ by one are a tie."""
    for margin in (1.0, 1.0 - 1e-15, 1.0 + 1e-15):
        assert Hinge().evaluate(np.array([[margin]]), np.array([1]))[1] == 0.0
    weight = np.array([0.1, 0.2, 0.3])
    assert weight[:2].sum() != weight[2]
    assert Hinge().bind(np.array([0, 0, 1]), FunctionSpace.of(3, weight)).start() == 0.0


@pytest.mark.parametrize(
    "loss", [Absolute(), Quantile(0.8), Quantiles((0.2, 0.7)), EpsilonInsensitive(1e-4)], ids=str
)
@pytest.mark.parametrize("far", [0.0, 1.0, 1e6, 1.7e9])
def test_a_kink_is_no_wider_than_rounding(loss, far):
    """Beyond some roundings of the scores a subgradient is one: l(f') ≥ l(f) + ⟨g, f' − f⟩."""
    y = np.full((4, 1), far)
    k = loss.count_outputs(1)
    apart = far * 2.0**-44 + 1e-12
    F = np.repeat(y + apart * np.array([[-3.0], [-1.0], [1.0], [3.0]]), k, axis=1)
    F += np.sign(F - y) * getattr(loss, "epsilon", 0.0)
    losses, G = loss.evaluate(F, y)
    for other in F:
        rise = np.sum(G * (other - F), axis=1)
        assert (loss.value(np.tile(other, (4, 1)), y) >= losses + rise - 4e-16 * (far + 1.0)).all()
