"""A residual that is forgotten (Theorems K, K', M, N, P), and steps that may grow (Theorem O)."""

from dataclasses import replace

import numpy as np
import pytest

from convexboost import ConvexBoostRegressor
from convexboost.boosting.algorithms import Residual
from convexboost.boosting.steps import Auto, Constant, InverseSqrt
from convexboost.boosting.training import boost
from convexboost.boosting.variants import ErrorFeedback
from convexboost.core.space import FunctionSpace
from convexboost.learners.finite import FiniteSet
from convexboost.learners.tree import Tree
from convexboost.losses.absolute import Absolute
from convexboost.paper import bounds, counterexample
from tests.paper.problems import N_SAMPLES, make
from tests.paper.traces import assert_below, measured, run, squares

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

T = 40
X = np.random.default_rng(0).normal(size=(N_SAMPLES, 3))
SPACE = FunctionSpace.of(N_SAMPLES)
DECAYS = [0.0, 0.5, 0.7, 0.95, 1.0]


def residuals(o, kept):
    """‖Δ_1‖ … ‖Δ_T‖ from Δ_t = β_t Δ_{t−1} + g_t − h_t."""
    delta, lengths = np.zeros_like(o.g[0]), []
    for beta, g, h in zip(kept, o.g, o.h, strict=True):
        delta = beta * delta + g - h
        lengths.append(np.linalg.norm(delta))
    return np.array(lengths)


def check_theorem_k(problem, algorithm):
    o = run(problem, algorithm, InverseSqrt(), T)
    kept = np.array([algorithm.kept(t) for t in o.t])
    delta = residuals(o, kept)
    assert_below(delta, bounds.c_decayed(o.edge.min(), kept.max()) * o.g_norm.max())
    found = bounds.theorem_k(o.eta, o.h_norm, delta, o.d[:-1], kept)
    a_priori = bounds.theorem_k_a_priori(o.eta, o.d[:-1], o.g_norm, o.edge, kept)
    assert not found.failed + a_priori.failed
    assert_below(o.average_gap, found.curve)
    assert_below(found.curve, a_priori.curve)
    return o, found, a_priori


@pytest.mark.parametrize("decay", DECAYS)
def test_theorem_k(convex, decay):
    """Every decay: what is forgotten costs at most (1 − β) c_β D G."""
    o, found, a_priori = check_theorem_k(convex, Residual(decay))
    if decay == 1.0:  # then it is Theorem A
        given = o.eta, o.d[:-1], o.g_norm, o.edge
        np.testing.assert_allclose(a_priori.curve, bounds.theorem_a_a_priori(*given).curve)
        np.testing.assert_allclose(
            found.curve, bounds.theorem_a(o.eta, o.h_norm, o.delta_norm, o.d[:-1]).curve
        )


def test_theorem_k_with_a_decay_that_tends_to_1(convex):
    check_theorem_k(convex, Residual(0.7, until=10))


def test_only_theorem_k_is_claimed_for_a_decay():
    o = run(make("absolute", "low_rank", 0), Residual(0.7), InverseSqrt(), T)
    delta = residuals(o, np.full(T, 0.7))
    found = bounds.bounds_of(replace(measured(o, "residual"), decay=0.7, delta=delta))
    assert [(b.name, b.kind) for b in found[1:]] == [("Theorem K", "measured"), ("Theorem K", "a priori")]
    assert_below(found[0].curve, found[1].curve)


def test_the_floor_vanishes_where_the_decay_tends_to_1():
    """mean(1 − β_t) → 0: the bound falls like ln T/√T or faster, and with a constant decay it does not."""
    t = np.arange(1, 100_001)
    step, given = 1 / np.sqrt(t), (1.0, 1.0, 0.5)
    constant = bounds.theorem_k_a_priori(step, *given, np.full(len(t), 0.7)).curve
    algorithm = Residual(0.7, until=100)
    tending = bounds.theorem_k_a_priori(step, *given, np.array([algorithm.kept(i) for i in t])).curve
    assert constant[-1] > 0.9 * constant[9_999] > 0.5
    assert tending[-1] < 0.4 * tending[9_999]


def test_kept():
    algorithm = Residual(0.7, until=100)
    assert [algorithm.kept(t) for t in (1, 100)] == [0.7, 0.7]
    assert algorithm.kept(300) == pytest.approx(0.9)
    assert {Residual(0.7).kept(t) for t in (1, 10**6)} == {0.7}
    assert (Residual(0.0).name, Residual(0.0, until=3).name) == ("naive", "residual")
    with pytest.raises(ValueError, match=r"`until` must be a positive integer or None, got 0"):
        Residual(0.7, until=0)


# Theorem N: points with a hypothesis each, R = mean of a_i |f_i|


@pytest.mark.one_in(3)
@pytest.mark.parametrize("steep", [1, 2, 5])
@pytest.mark.parametrize("decay", [0.5, 0.7, 0.9])
def test_theorem_n(decay, steep):
    """m points of slope a starve one of slope 1 exactly from a = 1/(1 − β^m) on."""
    ratio = bounds.starvation_ratio(decay, steep)
    for factor in (1 + 1e-6, 1.5):
        starved = counterexample.run(Residual(decay), 300, slopes=(*[factor * ratio] * steep, 1.0))
        assert np.all(starved.points[:, -1] == 1.0)
    fed = counterexample.run(Residual(decay), 5000, slopes=(*[0.98 * ratio] * steep, 1.0))
    assert fed.points[-1, -1] < 1.0
    assert np.abs(fed.points[-500:]).max() < 0.3  # every point tends to 0, and so does R


def test_the_example_of_the_issue():
    """R = ½(5|f₁| + |f₂|): decay 0.7 repeats the failure of naive; the paper and `until` do not."""
    assert bounds.starvation_ratio(0.7) == pytest.approx(10 / 3)
    runs = {
        algorithm: counterexample.run(algorithm, 1500, slopes=(5.0, 1.0))
        for algorithm in (Residual(0.0), Residual(0.7), Residual(0.7, until=100), Residual())
    }
    moved = {algorithm: bool(np.any(done.points[:, 1] != 1.0)) for algorithm, done in runs.items()}
    assert list(moved.values()) == [False, False, True, True]
    best = [done.objective.min() for done in runs.values()]
    assert min(best[:2]) >= 0.5
    assert max(best[2:]) < 0.05
    covered = counterexample.run("error_feedback", 1500, slopes=(5.0, 1.0), step="auto")
    assert covered.objective.min() < 0.05


def test_leaf_refit_does_not_help_a_starved_point():
    """The best step along each hypothesis halves f₁ in every round; f₂ waits for the residual."""
    for algorithm, starves in ((Residual(0.7), True), (Residual(0.7, until=20), False), (Residual(), False)):
        points = counterexample.run(algorithm, 40, slopes=(5.0, 1.0), step="refit:0.1").points
        assert np.all(points[:, 1] == 1.0) == starves


def test_theorem_k_prime():
    """R is sharp: below a ratio of slopes there is no floor."""
    decay, gamma = 0.7, np.sqrt(0.5)
    for slope, holds in ((1.5, True), (2.0, True), (2.5, False)):
        G, sharpness = np.sqrt((slope**2 + 1) / 2), np.sqrt(0.5)
        done = counterexample.run(Residual(decay), 2000, slopes=(slope, 1.0))
        D = np.sqrt(np.mean(done.points[:-1] ** 2, axis=1))
        step = 1 / np.sqrt(np.arange(1, 2001))
        bound = bounds.theorem_k_prime(step, D, np.full(2000, G), np.full(2000, gamma), decay, sharpness)
        assert bool(bound.failed) != holds
        if holds:
            average = np.cumsum(done.objective[:-1]) / np.arange(1, 2001)
            assert_below(average, bound.curve)
            assert bound.curve[-1] < 0.1 * bound.curve[9]


# Theorem M: smooth objectives


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize(
    "case",
    [("half_squared", "low_rank", 1), ("half_squared", "stumps", 0), ("softmax", "low_rank", 0)],
    ids=str,
)
def test_theorem_m(case, decay):
    """Every decay makes the gradients vanish, at a rate of 1/T in their squares."""
    problem = make(*case)
    smoothness = problem.objective.constants.smoothness
    edge = run(problem, Residual(decay), Constant(0.2 / smoothness), T).edge.min() / 2  # less than there is
    step = bounds.theorem_m_step(smoothness, edge, decay)
    o = run(problem, Residual(decay), Constant(step), 4 * T)
    assert o.edge.min() >= edge
    bound = bounds.theorem_m(o.eta, o.R[0] - problem.minimum, edge, smoothness, decay)
    assert not bound.failed
    assert_below(o.mean(squares(o.g)), bound.curve)
    too_long = bounds.theorem_m(1.01 * o.eta, 1.0, edge, smoothness, decay)
    assert too_long.failed == ("the step is at most ρ/2ΛB",)


# Theorem O: `auto`


def test_theorem_o(convex):
    """The scale of `auto` may grow; iterates must be bounded, as in the paper."""
    o = run(convex, Residual(), Auto(), T)
    moved = np.diff(o.z, axis=0)
    plain = np.all(np.isclose(moved, -o.eta[:, None] * o.h), axis=1)  # no round enlarged the ensemble
    n = len(plain) if plain.all() else int(np.argmin(plain))
    assert n >= 16
    found = bounds.theorem_o(o.eta[:n], o.h_norm[:n], o.delta_norm[:n], o.d[:n])
    assert not found.failed
    assert_below(o.average_gap[:n], found.curve)


def test_theorem_o_is_theorem_a_where_steps_fall(convex):
    o = run(convex, Residual(), InverseSqrt(), T)
    given = o.eta, o.h_norm, o.delta_norm, o.d[:-1]
    np.testing.assert_allclose(bounds.theorem_o(*given).curve, bounds.theorem_a(*given).curve)


# Theorem P: leaf refit


@pytest.mark.parametrize("decay", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("loss", ["half_squared", "softmax"])
def test_theorem_p(loss, decay):
    """Smooth and strongly convex: refitted leaves converge with every decay; the objective never rises."""
    problem = make(loss, "full_span", 0, 0.1)  # the trees reach every function of the rows, too
    H = Tree(max_leaves=4, min_samples_leaf=1).bind(X, SPACE)
    options = {"algorithm": Residual(decay), "step": "refit:0.3", "n_rounds": 200}
    R = boost(problem.objective, H, start=problem.start, **options).history["objective"]
    assert np.all(np.diff(R) <= 1e-12)
    assert R[-1] - problem.minimum < 1e-3 * (R[0] - problem.minimum)


@pytest.mark.parametrize(
    "algorithm", [Residual(0.0), Residual(0.7), Residual(0.7, until=10), Residual()], ids=str
)
def test_leaf_refit_is_stuck_at_a_kink(algorithm):
    """R = ½(|w₁ − w₂| + ⅕|w₁ + w₂|) at w = (1, 1): no hypothesis alone lowers it, so no rule for Δ helps."""
    space = FunctionSpace.of(2)
    H = FiniteSet(np.array([[1.0, 0.2], [-1.0, 0.2]])[:, :, None], space)
    objective, at_kink = Absolute().bind(np.zeros(2), space), np.array([[0.0], [0.4]])

    def best(step, n_rounds):
        options = {"algorithm": algorithm, "step": step, "n_rounds": n_rounds}
        return boost(objective, H, start=np.zeros(1), offset=at_kink, **options).history["objective"].min()

    assert best("refit:0.1", 30) == pytest.approx(0.2)
    if algorithm.kept(10**9) == pytest.approx(1.0):
        assert best("inverse_sqrt:0.2", 1500) < 0.02


# The setting that the theorems cover


def test_one_word_leaves_nothing_that_the_theorems_do_not_cover():
    """algorithm="error_feedback" with trees: no decay, no leaf refit, no envelope, a schedule of steps."""
    y = np.abs(X[:, 0]) + X[:, 1]
    for word, covered in (("residual", False), ("error_feedback", True), ("dual_averaging", True)):
        model = ConvexBoostRegressor("absolute", "tree", word, n_rounds=3, early_stopping=False).fit(X, y)
        options = model._settled.options
        assert (model._settled.envelope == 0.0) == covered
        assert (options.algorithm.decay == 1.0) == covered
        assert options.step.is_schedule == covered
        assert options.step.refits_leaves != covered


def test_error_feedback_with_auto_steps_keeps_theorem_f(convex):
    o = run(convex, ErrorFeedback(), Auto(), T, scales_gradient=True)
    found = bounds.theorem_f(o.eta, o.h_norm, o.delta_norm, convex.d_1)
    assert not found.failed
    assert_below(o.weighted_gap(o.eta), found.curve)
