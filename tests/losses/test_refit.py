"""Leaf values that minimise R: formulas against brute force, the search, ridge, constraints, units."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_poisson_deviance

from convexboost import ConvexBoostRegressor
from convexboost.boosting.algorithms import Residual
from convexboost.boosting.steps import Refit, search
from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Move
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.learners.tree import Tree
from convexboost.losses._custom import as_loss
from convexboost.losses._leaves import leaf_means, leaf_quantiles, weighted_quantile
from convexboost.losses._refit import NEAR, Leaves, _common_value, best_shifts, proximal_step, roots
from convexboost.losses.absolute import Absolute
from convexboost.losses.cvar import CVaR
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
from convexboost.losses.ranking_hinge import RankingHinge
from convexboost.losses.softmax import Softmax
from convexboost.losses.total_variation import TotalVariation
from convexboost.losses.worst_group import WorstGroup
from tests.contracts.conftest import ONE_EACH, bind, outputs, targets
from tests.learners.test_tree import constraints

pytestmark = pytest.mark.one_in(3)  # the others: make test-slow

N = 60


def shifts_of(objective, F, leaf, n_leaves, base=0.0, curvature=1.0, values=None):
    """What to add in each leaf; the values of the direction matter with an envelope only."""
    values = np.zeros((n_leaves, F.shape[1])) if values is None else values
    return best_shifts(Leaves(objective, F, np.broadcast_to(base, F.shape), leaf, values, lambda: curvature))


class Pinball:
    """A user's loss: |f − y| with slopes 1 and 3, no formula, nothing declared."""

    def __repr__(self):
        return "Pinball()"

    def evaluate(self, F, y):
        r = F - y
        return np.where(r > 0, 3 * r, -r).sum(axis=1), np.where(r > 0, 3.0, np.where(r < 0, -1.0, 0.0))


class UsersHuber:
    """Nothing declared."""

    def evaluate(self, F, y):
        r = F - y
        G = r.clip(-1.0, 1.0)
        return (G * (r - 0.5 * G)).sum(axis=1), G


class WholeTree(Refit):
    """One number for the whole tree."""

    def __call__(self, t, scores, h, memory):
        eta = self.rate * search(scores, h)
        return Move(h * -eta, eta)


@dataclass
class Problem:
    objective: object
    F: np.ndarray
    leaf: np.ndarray
    n_leaves: int = 6

    @classmethod
    def of(cls, loss, n_outputs=1, seed=0, l2=0.0, unit=1.0):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=(N, 1 if isinstance(loss, Quantiles) else n_outputs)) * 3 * unit
        if loss.task == "binary":
            y = rng.integers(0, 2, N)
        elif isinstance(loss, Poisson):
            y = np.round(np.abs(y))
        else:
            y = np.round(y / unit, 1) * unit  # ties
        space = FunctionSpace.of(N, np.round(rng.uniform(0.5, 3, N)))
        objective = loss.bind(y, space, n_classes=2 if loss.task == "binary" else None).with_l2(l2)
        F = rng.normal(size=(N, objective.n_outputs)) * unit
        return cls(objective, np.round(F / unit, 1) * unit, rng.choice([0, 1, 2, 4, 5], N))

    def shifts(self, base=0.0, curvature=1.0):
        return shifts_of(self.objective, self.F, self.leaf, self.n_leaves, base, curvature)

    def leaf_value(self, leaf, shift):
        """The loss of one leaf at a shift."""
        rows = self.leaf == leaf
        return self.objective.space.weight[rows] @ self.objective.losses(self.F + shift)[0][rows]


FORMULAS = [
    (Absolute(), 2),
    (Quantile(0.1), 1),
    (Quantile(0.9), 3),
    (Quantiles((0.2, 0.5, 0.95)), 3),
    (EpsilonInsensitive(0.35), 2),
    (HalfSquared(), 2),
    (Hinge(), 1),
    (2.5 * Absolute(), 1),
]


@pytest.mark.parametrize(("loss", "n_outputs"), FORMULAS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_formulas_are_minima_leaf_by_leaf(loss, n_outputs, seed):
    problem = Problem.of(loss, n_outputs, seed)
    shifts = problem.shifts()
    np.testing.assert_array_equal(shifts[3], 0.0)  # no rows
    for leaf in set(problem.leaf.tolist()):
        value = problem.leaf_value(leaf, shifts[leaf])
        for k in range(shifts.shape[1]):
            for c in np.concatenate([np.arange(-8.0, 8.0, 0.05), shifts[leaf, k] + np.array([-1e-4, 1e-4])]):
                other = shifts[leaf].copy()
                other[k] = c
                assert value <= problem.leaf_value(leaf, other) * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_leaf_quantiles_are_quantiles_of_the_leaves(q):
    rng = np.random.default_rng(0)
    y = np.round(rng.normal(size=(500, 2)), 1)
    weight, leaf = rng.integers(1, 4, 500) / 1000, rng.integers(0, 9, 500)
    leaf[leaf == 4] = 3
    found = leaf_quantiles(y, FunctionSpace.of(500, weight), leaf, 10, q)
    for number in range(10):
        rows = leaf == number
        space = FunctionSpace.of(np.count_nonzero(rows), weight[rows]) if rows.any() else None
        expected = np.zeros(2) if space is None else weighted_quantile(y[rows], space, q)
        np.testing.assert_array_equal(found[number], expected)


def test_leaf_quantiles_of_repeated_rows():
    """Half of a leaf's weight lies at or below a row: rounding in what came before must not decide."""
    rng = np.random.default_rng(0)
    y, leaf = rng.normal(size=(3000, 1)), np.sort(rng.integers(0, 500, 3000))
    counts = rng.integers(1, 3, 3000)
    twice = np.repeat(np.arange(3000), counts)
    order = rng.permutation(len(twice))
    space, spread = FunctionSpace.of(3000, counts), FunctionSpace.of(len(twice))
    a = leaf_quantiles(y, space, leaf, 500, 0.5)
    b = leaf_quantiles(y[twice][order], spread, leaf[twice][order], 500, 0.5)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(300))
def test_formulas_for_leaves_of_repeated_rows(seed):
    """Scores on a grid: the slope in a leaf is often exactly 0 on a whole interval."""
    rng = np.random.default_rng(seed)
    n, n_leaves = int(rng.integers(5, 400)), int(rng.integers(1, 4))
    F, leaf = rng.integers(-3, 4, (n, 1)) / 2.0, rng.integers(0, n_leaves, n)
    counts = rng.integers(1, 4, n)
    copies = rng.permutation(np.repeat(np.arange(n), counts))
    space, even = FunctionSpace.of(n, counts), FunctionSpace.of(len(copies))
    for given in (Hinge(), Absolute(), Quantile(0.3), EpsilonInsensitive(0.5)):
        y = rng.integers(0, 2, n) if given.task == "binary" else rng.integers(-3, 4, (n, 1)) / 2.0
        a = given.best_shifts(F, y, space, leaf, n_leaves)
        b = given.best_shifts(F[copies], y[copies], even, leaf[copies], n_leaves)
        np.testing.assert_array_equal(a, b)


NEWTON = [Poisson(), Exponential(), Logistic(), Softmax()]


@pytest.mark.parametrize("given", NEWTON, ids=lambda given: given.name)
def test_curvatures_are_second_derivatives_that_change_slowly(given):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(50, 3 if given.task == "classification" else 1))
    y = rng.poisson(1.0, size=F.shape).astype(float) if given.task == "regression" else rng.integers(0, 2, 50)
    found = given.curvatures(y, given.evaluate(F, y)[1])
    for k in range(F.shape[1]):
        shift = np.eye(F.shape[1])[k]

        def second(s, shift=shift, k=k):
            at = F + s * shift
            return given.curvatures(y, given.evaluate(at, y)[1])[:, k]

        slope = (given.evaluate(F + 1e-5 * shift, y)[1] - given.evaluate(F - 1e-5 * shift, y)[1]) / 2e-5
        np.testing.assert_allclose(found[:, k], slope[:, k], rtol=1e-6, atol=1e-9)
        for s in (-2.0, -0.1, 0.3, 1.5):
            assert (second(s) <= found[:, k] * np.exp(abs(s)) * (1 + 1e-9)).all()


@pytest.mark.parametrize("given", NEWTON, ids=lambda given: given.name)
@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0])
def test_newton_steps_do_not_rise(given, spread):
    """In every leaf, also far out, where Newton's own step overshoots; and with a ridge term."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n, leaf = 60, rng.integers(0, 8, 60)
        counts = rng.poisson(1.0, size=(n, 1)).astype(float)
        y = counts if given.task == "regression" else rng.integers(0, 2, n)
        for l2 in (0.0, 0.1):
            objective = given.bind(y, FunctionSpace.of(n, rng.random(n) + 0.1)).with_l2(l2)
            F = spread * rng.normal(size=(n, objective.n_outputs))
            shifts = shifts_of(objective, F, leaf, 8, curvature=0.01)
            for number in range(8):
                one = (shifts * (np.arange(8) == number)[:, None])[leaf]
                before, after = (
                    objective.value(at) + l2 / 2 * objective.space.norm(at) ** 2 for at in (F, F + one)
                )
                assert after <= before * (1 + 1e-12)


@pytest.mark.parametrize("given", NEWTON, ids=lambda given: given.name)
def test_in_a_pure_leaf_zero_counts_as_a_row(given):
    """The best value is infinite: what is found is Newton's step against the pull of one row, shortened."""
    n, curvature = 40, 0.3
    space, leaf = FunctionSpace.of(n), np.repeat([0, 1], n // 2)
    y = np.repeat([[0.0], [2.0]], n // 2, axis=0) if given.task == "regression" else leaf.astype(np.int32)
    objective = given.bind(y, space)
    F = np.zeros((n, objective.n_outputs))
    found = shifts_of(objective, F, leaf, 2, F, curvature)
    G = objective.losses(F)[1]
    newton = -G[:20].sum(axis=0) / (given.curvatures(y, G)[:20].sum(axis=0) + curvature)
    newton *= given.newton_steps
    length = np.ptp(newton) if len(newton) > 1 else np.abs(newton)
    np.testing.assert_allclose(found[0], newton * np.log1p(length) / length, rtol=1e-12)
    sure = F + 5.0 * np.sign(found[leaf])  # where the model is sure already little is left to do
    assert np.abs(shifts_of(objective, sure, leaf, 2, F, curvature)[0]).max() < 0.5


def test_leaves_of_two_classes_move_as_far_with_one_output_as_with_two():
    rng = np.random.default_rng(0)
    y, leaf, f = rng.integers(0, 2, 60), rng.integers(0, 8, 60), rng.normal(size=(60, 1))
    space = FunctionSpace.of(60, rng.random(60) + 0.1)
    one = shifts_of(Logistic().bind(y, space), f, leaf, 8, curvature=0.3)
    two = shifts_of(Softmax().bind(y, space), np.hstack([-f, f]) / 2, leaf, 8, curvature=0.3)
    np.testing.assert_allclose(one[:, 0], two[:, 1] - two[:, 0], rtol=1e-12)


@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_leaves_without_counts_do_not_run_away(rate):
    """Rare events: half the leaves hold none, by chance.  The log rate used to fall by 8 · rate a round."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.poisson(0.02, 2000)
    X_new, y_new = rng.normal(size=(2000, 5)), rng.poisson(0.02, 2000)
    model = ConvexBoostRegressor("poisson", "tree", step=Refit(rate), n_rounds=20, output="last").fit(X, y)
    found = mean_poisson_deviance(y_new, model.predict(X_new))
    constant = mean_poisson_deviance(y_new, np.full(2000, y.mean()))
    assert found < (1.05 if rate < 1.0 else 2.0) * constant


@pytest.mark.parametrize("make", [lambda: "huber:1", lambda: UsersHuber()], ids=["built in", "user's"])
def test_huber_far_from_its_targets(make):
    """Gradients of at most δ = 1 say nothing about how far to go, with targets in the hundreds."""
    X, y = make_friedman1(600, random_state=0)
    y = 100 * y
    options = {"learner": "tree", "n_rounds": 60, "random_state": 0}
    error, other = (
        np.abs(ConvexBoostRegressor(loss, **options).fit(X[:400], y[:400]).predict(X[400:]) - y[400:]).mean()
        for loss in (make(), "absolute")
    )
    assert error < 1.3 * other


@pytest.mark.parametrize("name", ONE_EACH)
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_refit_never_raises_the_objective(name, l2):
    """At rate 1, for every loss: formula, search, or one number for the whole tree where rows are coupled."""
    rng = np.random.default_rng(1)
    n_outputs = outputs(name)[0]
    y = targets(name, rng, N, n_outputs)
    space = FunctionSpace.of(N, rng.uniform(0.5, 2, N))
    objective = bind(name, y, space, n_outputs)
    X = rng.normal(size=(N, 3))
    constrained = Tree(min_samples_leaf=4, monotone_constraints=[1, -1, 0])
    for learner in (Tree(min_samples_leaf=4), constrained, Stump()):
        result = boost(
            objective.with_l2(l2),
            learner.bind(X, space),
            step=Refit(1.0),
            n_rounds=8,
            output="last",
            random_state=0,
        )
        history = result.history["objective"]
        assert (np.diff(history) <= 1e-12 * abs(history[0])).all()
        assert history[-1] < history[0]


COUPLED = {
    "cvar": CVaR(Absolute(), 0.8),
    "cvar squared": CVaR(HalfSquared(), 0.9),
    "worst group": WorstGroup(Absolute()),
    "graph": Absolute() + TotalVariation(np.column_stack([np.arange(299), np.arange(1, 300)]), 2.0),
    "ranking": RankingHinge(),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", COUPLED)
@pytest.mark.parametrize("decay", [0.7, 1.0])
def test_coupled_rows_never_stall(name, decay):
    """Along one direction for the whole tree R falls little or not at all: kinks, and Δ is not ∇."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 5))
    y = np.round(10 * np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] * rng.standard_t(3, 300))
    space, groups = FunctionSpace.of(300), np.arange(300) % 10
    objective = COUPLED[name].bind(y, space, groups=groups if COUPLED[name].takes_groups else None)
    H = Tree(min_samples_leaf=10).bind(X, space)
    options = {"n_rounds": 60, "output": "last", "random_state": 0, "algorithm": Residual(decay)}
    history = boost(objective, H, step=Refit(0.1), **options).history["objective"]
    assert (np.diff(history) < 0.0).all()
    whole = boost(objective, H, step=WholeTree(0.1), **options).history["objective"]
    assert history[-1] < whole[-1]


def test_a_proximal_step_follows_a_kink():
    """|a − b| + 0.1 (a + b)²: from a = b no gradient of the first term descends."""

    def risk(v):
        (a,), (b,) = v + 3.0
        side = 1.0 if a >= b else -1.0
        value = abs(a - b) + 0.1 * (a + b) ** 2
        return value, 2.0 * np.array([[side + 0.2 * (a + b)], [-side + 0.2 * (a + b)]])  # over the mass

    found = proximal_step(risk, np.array([0.5, 0.5]), 1, 1.0)
    assert risk(found)[0] < 0.5 * risk(np.zeros((2, 1)))[0]
    assert (found < 0).all()


def test_a_proximal_step_solves_a_quadratic_in_its_own_metric():
    rng = np.random.default_rng(0)
    mass, target = rng.uniform(0.5, 2.0, 7), rng.normal(size=(7, 3))

    def risk(v):
        return 0.5 * float(mass @ ((v - target) ** 2).sum(axis=1)), v - target

    found = proximal_step(risk, mass, 3, 1.0)
    assert risk(found)[0] < 0.1 * risk(np.zeros((7, 3)))[0]
    np.testing.assert_allclose(found / target, found[0, 0] / target[0, 0])


def test_a_proximal_step_survives_what_is_not_finite():
    def risk(v):
        return (math.inf, np.full((1, 1), np.nan)) if v[0, 0] < -0.1 else (v[0, 0], np.ones((1, 1)))

    assert -0.1 <= proximal_step(risk, np.ones(1), 1, 1.0)[0, 0] < 0.0


# --- the search --------------------------------------------------------------------------------------------


def test_roots_are_found_from_below_and_apart():
    at = np.array([0.0, 1e-3, 0.3, 1.0, 7.0, 400.0])
    functions = [
        lambda x: x - at,
        lambda x: np.sign(x - at),
        lambda x: np.expm1(np.minimum(x - at, 50.0)),
        lambda x: (x - at) ** 3,
        lambda x: np.where(x > at, 1e9, -1e-9),
    ]
    for f in functions:
        start = f(np.zeros(6))
        few, many = (roots(f, start, 1.0, near, rounds) for near, rounds in ((0.0, 8), (0.0, 300)))
        for found in (few, many):
            assert (f(found) <= 1e-9 * np.abs(start)).all()
        np.testing.assert_allclose(many, at, rtol=2e-3)
        for i in range(6):
            np.testing.assert_array_equal(
                few[i], roots(lambda x, i=i, f=f: f(np.tile(x, 6))[[i]], start[[i]], 1.0, 0.0)[0]
            )
    asked = []
    np.testing.assert_allclose(
        roots(lambda x: asked.append(1) or x - at, -at, 1.0)[:5], at[:5], rtol=1.1 * NEAR, atol=1e-2
    )
    assert len(asked) <= 8


def test_no_root_in_sight():
    assert np.isfinite(roots(lambda x: -np.ones(1), -np.ones(1), 0.5)).all()
    for nowhere in (np.ones(2), np.full(2, np.nan)):
        assert roots(lambda x, nowhere=nowhere: nowhere, nowhere, 0.5).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("given", [Huber(1.0), Pinball(), 0.5 * Huber(1.0) + Absolute()], ids=str)
def test_search_lowers_every_leaf(given):
    loss = as_loss(given) if isinstance(given, Pinball) else given
    problem = Problem.of(loss, 1)
    shifts = problem.shifts()

    def value(leaf, c):
        return problem.leaf_value(leaf, c) + problem.objective.space.row * float(c) ** 2 / 2

    for leaf in set(problem.leaf.tolist()):
        before, after = value(leaf, 0.0), value(leaf, shifts[leaf, 0])
        best = min(value(leaf, c) for c in np.arange(-8.0, 8.0, 0.01))
        assert after <= before
        assert after - best <= 0.15 * (before - best) + 1e-9


def test_outputs_with_targets_of_their_own_are_searched_apart():
    """A number for both would stop at the nearer of the two."""
    rng = np.random.default_rng(0)
    space, leaf, F = FunctionSpace.of(N), rng.integers(0, 3, N), np.zeros((N, 2))
    y = np.column_stack([rng.normal(size=N) + 3.0, 100.0 * (rng.normal(size=N) - 3.0)])
    for given in (Huber(1.0), as_loss(UsersHuber())):
        both = shifts_of(given.bind(y, space), F, leaf, 3, F, 0.01)
        for k in (0, 1):
            alone = shifts_of(given.bind(y[:, [k]], space), F[:, :1], leaf, 3, 0.0, 0.01)
            np.testing.assert_allclose(both[:, [k]], alone, rtol=0.1)


def test_a_formula_with_a_ridge_term_has_no_prior_row():
    """½ (s − y)² + l2/2 s², a row in each leaf: s = y/(1 + l2), but for what the search leaves over."""
    y, l2 = np.array([[2.0], [-3.0], [0.5]]), 0.5
    objective = HalfSquared().bind(y, FunctionSpace.of(3)).with_l2(l2)
    F = np.zeros((3, 1))
    shifts = shifts_of(objective, F, np.arange(3), 3)
    np.testing.assert_allclose(shifts, y / (1 + l2), rtol=NEAR * (1 + l2))


@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize(
    "given",
    [Absolute(), Quantile(0.8), EpsilonInsensitive(0.3), HalfSquared(), 2.5 * Absolute(), as_loss(Pinball())],
    ids=lambda given: given.name,
)
def test_several_outputs_and_a_ridge_term(given, seed):
    """Nearly all that leaf values can gain is gained, also where a ridge term leads away from the targets."""
    rng = np.random.default_rng(seed)
    K, units = 3, 10.0 ** rng.uniform(-2, 2, 3) if seed % 2 else np.ones(3)
    y, leaf = (rng.normal(size=(N, K)) + 2 * rng.normal(size=K)) * units, rng.integers(0, 2, N)
    space = FunctionSpace.of(N, rng.uniform(0.5, 2, N))
    objective = given.bind(y, space).with_l2(10.0 ** rng.uniform(-2, 1))
    base = np.tile(objective.start(), (N, 1))
    F = base + (rng.normal(size=(2, K)) * units)[leaf]

    def value(shifts):
        at = F + shifts[leaf]
        return objective.value(at) + objective.l2 / 2 * space.norm(at - base) ** 2

    def one(x, i, k):
        shifts = np.zeros((2, K))
        shifts[i, k] = x
        return value(shifts)

    best = np.zeros((2, K))
    for i in range(2):
        for k in range(K):
            far = 20.0 * units[k]
            best[i, k] = minimize_scalar(
                one, (-far, far), args=(i, k), bounds=(-far, far), options={"xatol": 1e-9}
            ).x
    found = shifts_of(objective, F, leaf, 2, base, objective.curvature(base))
    gained, possible = (value(np.zeros((2, K))) - value(shifts) for shifts in (found, best))
    assert possible > 0.0
    assert gained >= 0.95 * possible


def test_along_the_direction_found_where_gradients_are_those_of_an_envelope():
    """And nothing rises, although −values need not be a way down in every leaf."""
    rng = np.random.default_rng(0)
    n, n_leaves = 80, 5
    leaf, y, F = rng.integers(0, n_leaves, n).astype(np.int32), rng.integers(0, 3, n), rng.normal(size=(n, 3))
    objective = MulticlassHinge().bind(y, FunctionSpace.of(n)).with_envelope(2.0)
    values = leaf_means(objective.losses(F)[1], objective.space, leaf, n_leaves)
    values += 0.1 * rng.normal(size=(n_leaves, 3))
    shifts = shifts_of(objective, F, leaf, n_leaves, curvature=0.5, values=values)
    moved = np.abs(shifts).max(axis=1) > 0.0
    assert moved.any()
    np.testing.assert_allclose(shifts[moved] / shifts[moved][:, :1], values[moved] / values[moved][:, :1])
    for number in range(n_leaves):
        one = (shifts * (np.arange(n_leaves) == number)[:, None])[leaf]
        assert objective.value(F + one) <= objective.value(F) * (1 + 1e-12)


class Distance:
    """A user's loss of two outputs that belong together: ‖f − y‖."""

    def evaluate(self, F, y):
        r = F - y
        length = np.sqrt((r**2).sum(axis=1))
        return length, r / np.maximum(length, 1e-12)[:, None]


def test_outputs_that_belong_together_do_not_rise():
    problem = Problem.of(as_loss(Distance()), 2)
    shifts = problem.shifts(curvature=0.3)
    for leaf in set(problem.leaf.tolist()):
        assert problem.leaf_value(leaf, shifts[leaf]) < problem.leaf_value(leaf, 0.0)


@pytest.mark.parametrize("unit", [1e-5, 1e5])
@pytest.mark.parametrize("name", ["absolute", "epsilon", "half_squared", "user", "sum", "huber"])
def test_units_of_the_targets_do_not_matter(name, unit):
    def make(u):
        return {
            "absolute": Absolute(),
            "epsilon": EpsilonInsensitive(0.3 * u),
            "half_squared": HalfSquared(),
            "user": as_loss(Pinball()),
            "sum": Absolute() + Quantile(0.2),
            "huber": Huber(0.7 * u),
        }[name]

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    y = X[:, 0] + rng.normal(size=N)
    space = FunctionSpace.of(N)
    found = []
    for u in (1.0, unit):
        objective = make(u).bind(u * y, space)
        objective = objective.with_envelope(2.0) if name in ("absolute", "epsilon") else objective
        H = Tree(min_samples_leaf=4).bind(X, space)
        result = boost(objective, H, step=Refit(0.5), n_rounds=6, output="last", random_state=0)
        found.append(result.model.predict(X) / u)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-9)


def test_ridge_is_part_of_what_is_minimised():
    problem = Problem.of(Absolute(), 1, l2=2.0)
    base, p = np.full((N, 1), 0.5), problem.objective.space.weight
    shifts = problem.shifts(base=base)

    def total(leaf, c):
        rows = problem.leaf == leaf
        return problem.leaf_value(leaf, c) + p[rows] @ (problem.F + c - base)[rows, 0] ** 2

    for leaf in set(problem.leaf.tolist()):
        assert total(leaf, shifts[leaf]) <= total(leaf, 0.0) + 1e-15


# --- constraints -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6, 7, 8])  # 4 has no such tree
@pytest.mark.parametrize("q", [0.2, 0.5])
def test_refit_within_constraints_is_exact(q, seed):
    """For quantiles, against a linear program over the leaf values."""
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(80, 2)), rng.uniform(0.5, 2.0, 80)
    space = FunctionSpace.of(80, weight)
    y, F = rng.normal(size=(80, 1)), rng.normal(size=(80, 1))
    H = Tree(monotone_constraints=[1, -1], min_samples_leaf=5, splits="random").bind(X, space)
    objective = Quantile(q).bind(y, space)
    scores = objective.scores(H.inputs, np.zeros(1), F)
    delta = H.zero(1)
    delta.add(Gradient(rng.normal(size=(80, 1)), space))
    found = (delta.project(rng) for _ in range(50))  # some cuts that are drawn leave no room for others
    h = next(h for h in found if h.terms and len(constraints(h.terms[0][1])) > 3)
    tree, leaf = h.terms[0][1], H.inputs.leaves(h.terms[0][1])
    n_leaves, pairs = len(tree.values), constraints(tree)
    # Variables: the shift of each leaf, and what each row is above and below its target.
    order = np.zeros((len(pairs), n_leaves + 160))
    for i, (low, high) in enumerate(pairs):  # values are minus the shifts
        order[i, high], order[i, low] = 1.0, -1.0
    rows = np.hstack([np.eye(n_leaves)[leaf], -np.eye(80), np.eye(80)])
    cost = np.concatenate([np.zeros(n_leaves), (1 - q) * space.weight, q * space.weight])
    bounds = [(None, None)] * n_leaves + [(0, None)] * 160
    best = linprog(cost, order, np.zeros(len(pairs)), rows, (y - F)[:, 0], bounds).fun
    leaves = Leaves(objective, F, np.zeros_like(F), leaf, np.zeros((n_leaves, 1)), lambda: 1.0)
    shifts = best_shifts(leaves)
    found = tree.with_values(-shifts, partial(_common_value, leaves, shifts))
    assert all(found.values[low] <= found.values[high] for low, high in pairs)
    assert objective.value(F - found.values[leaf]) == pytest.approx(best, rel=1e-9)
    refitted = scores.refitted(h)
    if best <= scores.value() * (1 - 1e-9):
        np.testing.assert_array_equal(refitted.terms[0][1].values, found.values)


def test_refit_that_constraints_spoil_is_not_taken():
    """Leaf by leaf the medians are fine, their monotone neighbours are worse than standing still."""
    x = np.repeat([[0.0], [1.0]], 50, axis=0)
    y = np.concatenate([np.repeat([0.0, 100.0], [24, 26]), np.repeat([0.0, -100.0], [24, 26])])[:, None]
    space = FunctionSpace.of(100)
    H = Tree(monotone_constraints=[1]).bind(x, space)
    scores = Absolute().bind(y, space).scores(H.inputs, np.zeros(1))
    delta = H.zero(1)
    delta.add(Gradient(np.where(x > 0.5, -1.0, 1.0), space))
    h = delta.project(np.random.default_rng(0))
    refitted = scores.refitted(h)
    if refitted is not None:
        assert scores.along(refitted)(-1.0) <= scores.value()
    move = Refit(1.0)(1, scores, h, {})
    before = scores.value()
    scores.move(move)
    assert scores.value() <= before


# --- the envelope ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [Absolute(), Quantile(0.8), Quantiles(), EpsilonInsensitive(0.2), Hinge(), Exponential(), Poisson()],
    ids=lambda given: given.name,
)
def test_gradient_of_the_envelope(given):
    """Finite differences of min_G R[G] + ‖G − F‖²/(2 size)."""
    problem = Problem.of(given, 2 if given.task == "regression" and given.name != "quantiles" else 1)
    objective, space = problem.objective.with_envelope(1.7), problem.objective.space
    rng = np.random.default_rng(5)
    F = problem.F + 0.01 * rng.normal(size=problem.F.shape)
    value, G = objective.evaluate(F)
    size = 1.7 * value / space.norm(G) ** 2

    def envelope(F):
        P = objective.prox(F, size)
        return objective.value(P) + space.norm(P - F) ** 2 / (2 * size)

    scores = objective.scores(None, np.zeros(F.shape[1]), F)
    assert scores.value() == pytest.approx(value)  # R itself
    gradient = scores.gradient().values
    for _ in range(5):
        D = rng.normal(size=F.shape)
        slope = (envelope(F + 1e-5 * D) - envelope(F - 1e-5 * D)) / 2e-5
        assert space.inner(gradient, D) == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_envelope_needs_a_prox():
    y = np.arange(4.0)
    with pytest.raises(ValueError, match=r"`envelope`=2.0 needs a loss with a `prox`"):
        as_loss(Pinball()).bind(y, FunctionSpace.of(4)).with_envelope(2.0)
    with pytest.raises(ValueError, match="`envelope`"):
        CVaR(Absolute(), 0.5).bind(y, FunctionSpace.of(4)).with_envelope(1.0)
    assert as_loss(Pinball()).bind(y, FunctionSpace.of(4)).with_envelope(0.0).envelope == 0.0
