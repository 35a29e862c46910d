"""What every loss promises."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from convexboost.core.hypotheses import ZERO, Direction, Hypothesis, Move
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._loss import RowLoss
from convexboost.losses._objective import BoundLoss
from tests.contracts.conftest import LOSSES, count_classes, groups_of, loss, outputs, space_of, targets

N = 30
#: Losses that only scale when y and F do, with the power.
HOMOGENEOUS = {"absolute": 1, "quantile": 1, "quantiles": 1, "half_squared": 2}


@dataclass
class Problem:
    loss: Any
    n_classes: int | None
    y: Array
    space: FunctionSpace
    objective: BoundLoss
    rng: np.random.Generator
    groups: Any = None

    @property
    def shape(self):
        return len(self.y), self.objective.n_outputs

    @property
    def is_row_wise(self):
        return isinstance(self.loss, RowLoss)

    def bind(self, rows, space):
        """The same loss on some of the rows, or on some of them twice."""
        groups = None if self.groups is None else self.groups[rows]
        return self.loss.bind(self.y[rows], space, n_classes=self.n_classes, groups=groups)

    def value(self, F):
        return self.at(F).value()

    def gradient(self, F):
        return self.at(F).gradient().values

    def at(self, F):
        """Scores placed at F, by way of an offset."""
        return self.objective.scores(None, np.zeros(F.shape[1]), F)

    def constant(self, c):
        return np.tile(c, (self.shape[0], 1))


def make(spec, n_outputs, weights, seed=0):
    rng = np.random.default_rng([seed, n_outputs])
    y, space = targets(spec, rng, N, n_outputs), space_of(rng, N, weights)
    n_classes, groups = count_classes(spec, n_outputs), groups_of(spec, N)
    objective = loss(spec).bind(y, space, n_classes=n_classes, groups=groups)
    assert objective.n_outputs == n_outputs
    return Problem(loss(spec), n_classes, objective.y, space, objective, rng, groups)


@pytest.fixture(
    params=[(spec, k, w) for spec in LOSSES for k in outputs(spec) for w in ("uniform", "weighted")], ids=str
)
def problem(request):
    return make(*request.param)


@pytest.fixture
def row_problem(problem):
    """For what is promised of single rows."""
    if not problem.is_row_wise:
        pytest.skip("couples rows")
    return problem


def points(problem):
    """Ordinary scores and the awkward ones: ties, kinks, a rounding error away from them, tiny and huge."""
    rng, shape = problem.rng, problem.shape
    whole = rng.integers(-2, 3, shape).astype(float)
    pair = np.full(shape, -60.0)  # two outputs tied, the others far below: where a softmax bends most
    pair[:, :2] = 0.0
    found = {
        "random": rng.normal(size=shape),
        "start": problem.constant(problem.objective.start()),
        "zero": np.zeros(shape),
        "tiny": 1e-13 * rng.normal(size=shape),
        "huge": 1e6 * rng.normal(size=shape),
        "whole": whole,
        "whole, shaken": whole * (1 + 1e-15) + 1e-15,
        "pair": pair + 0.01 * rng.normal(size=shape),
    }
    if problem.loss.task == "regression":
        Y = np.broadcast_to(problem.y, shape).copy()
        found["on the target"] = Y
        found["shaken target"] = Y * (1 + rng.choice([-1, 0, 1], shape) * 2e-16)
        found["half on the target"] = np.where(rng.random(shape) < 0.5, Y, Y + whole)
        found["near the target"] = Y + rng.choice([-1, -0.3, -0.1, 0.1, 0.3, 1], shape)  # widths of tubes
    return found


def test_subgradient_inequality_in_every_row(row_problem):
    """l(f') ≥ l(f) + ⟨g, f' − f⟩, from every point to every other."""
    problem = row_problem
    for F in points(problem).values():
        losses, G = problem.loss.evaluate(F, problem.y)
        for F2 in points(problem).values():
            slope = np.sum(G * (F2 - F), axis=1)
            scale = (
                1
                + np.abs(losses)
                + np.abs(F).max(axis=1)
                + np.abs(F2).max(axis=1)
                + np.abs(G * (F2 - F)).sum(axis=1)
            )
            assert np.all(problem.loss.value(F2, problem.y) - losses - slope >= -1e-11 * scale)


def test_prox_is_where_its_displacement_is_a_subgradient(row_problem):
    """x = F − size · u with u in ∂l(x): l(f) ≥ l(x) + ⟨u, f − x⟩ for every f."""
    problem = row_problem
    for size in (0.01, 1.0, 300.0):
        for name, F in points(problem).items():
            X = problem.loss.prox(F, problem.y, size)
            if X is None or name == "huge":
                continue
            losses, U = problem.loss.value(X, problem.y), (F - X) / size
            for F2 in points(problem).values():
                slope = np.sum(U * (F2 - X), axis=1)
                scale = 1 + np.abs(losses) + np.abs(U * (F2 - X)).sum(axis=1) + np.abs(F2).max(axis=1)
                scale *= 1 + (1 + np.abs(F).max(axis=1)) / size  # the rounding of U
                assert np.all(problem.loss.value(F2, problem.y) - losses - slope >= -1e-11 * scale)


def test_support_is_below_the_loss_and_touches_it(row_problem):
    """l(f) ≥ −l*(u) + ⟨u, f⟩ for any u asked for, with equality where u is a subgradient."""
    problem, rng = row_problem, np.random.default_rng(2)
    loss, y = problem.loss, problem.y
    ordinary = {name: F for name, F in points(problem).items() if name != "huge"}
    base = next(iter(ordinary.values()))
    if not loss.has_support:  # a loss with kinks whose prox is known needs it for certificates
        assert not loss.has_prox or problem.objective.constants.smoothness is not None or is_exp(loss)
        return
    for F in ordinary.values():
        losses, G = loss.evaluate(F, y)
        u, values = loss.support(G, base, y)
        np.testing.assert_allclose(u, G, rtol=0, atol=1e-15)
        scale = 1 + np.abs(losses) + np.abs(F).max(axis=1) + np.abs(base).max(axis=1)
        assert np.all(np.abs(values + np.sum(u * (F - base), axis=1) - losses) <= 1e-11 * scale)
        for wanted in (3 * rng.normal(size=F.shape), rng.random(F.shape) / F.shape[1]):
            u, values = loss.support(wanted, base, y)
            assert np.all(loss.value(F, y) - values - np.sum(u * (F - base), axis=1) >= -1e-11 * scale)


def is_exp(loss):
    """Smooth, but without a constant for it."""
    return loss.name in ("exponential", "poisson")


def test_pieces_add_up_to_the_loss(problem):
    if not problem.objective.has_pieces:
        pytest.skip("not piecewise linear")
    pieces = problem.objective.pieces()
    for F in points(problem).values():
        heights = np.full(len(pieces.weight), -np.inf)
        np.maximum.at(heights, pieces.group, pieces.slopes @ F.ravel() + pieces.constants)
        value = pieces.constant + np.sum(pieces.linear * F) + pieces.weight @ heights
        assert value == pytest.approx(problem.value(F), rel=1e-9, abs=1e-9 * (1 + np.abs(F).max()))


def test_subgradient_inequality_in_function_space(problem):
    """R[F'] ≥ R[F] + ⟨∇, F' − F⟩ with the weights inside the inner product."""
    for F in points(problem).values():
        R, G = problem.value(F), problem.gradient(F)
        for _ in range(5):
            F2 = F + problem.rng.normal(size=F.shape) * 10.0 ** problem.rng.uniform(-2, 1)
            bound = R + problem.space.inner(G, F2 - F)
            assert problem.value(F2) >= bound - 1e-11 * (1 + abs(R) + np.abs(F).max())


def test_finite_differences(problem):
    eps = 1e-6
    for F in (problem.rng.normal(size=problem.shape), 3 * problem.rng.normal(size=problem.shape) + 1):
        G = problem.gradient(F)
        for _ in range(10):
            D = problem.rng.normal(size=F.shape) * (problem.rng.random(F.shape) < 0.3)
            numeric = (problem.value(F + eps * D) - problem.value(F - eps * D)) / (2 * eps)
            assert numeric == pytest.approx(problem.space.inner(G, D), rel=1e-6, abs=1e-7)


def test_lipschitz_constant(problem):
    """For a row loss it holds in every row, because a space may put all its weight there."""
    L = problem.objective.constants.lipschitz
    if L is None:
        pytest.skip("not Lipschitz")
    for F in points(problem).values():
        if problem.is_row_wise:
            G = problem.loss.evaluate(F, problem.y)[1]
            assert np.sqrt((G * G).sum(axis=1)).max() <= L * (1 + 1e-12)
        assert problem.at(F).gradient().norm <= L * (1 + 1e-12)


def test_lipschitz_constant_is_reached(row_problem):
    """Nothing smaller would do: some row of some point comes within a few percent."""
    problem = row_problem
    L = problem.objective.constants.lipschitz
    if L is None:
        pytest.skip("not Lipschitz")
    worst = [10.0 * sign * problem.rng.normal(size=problem.shape) for sign in (-1, 1)]
    worst += [problem.constant(np.full(problem.shape[1], sign * 1e3)) for sign in (-1, 1)]
    norms = [np.sqrt((problem.loss.evaluate(F, problem.y)[1] ** 2).sum(axis=1)).max() for F in worst]
    assert max(norms) > 0.95 * L


def test_smoothness(row_problem):
    problem = row_problem
    smoothness = problem.objective.constants.smoothness
    if smoothness is None:
        pytest.skip("not smooth")
    for F in points(problem).values():
        for length in (1e-3, 1.0, 30.0):
            F2 = F + length * problem.rng.normal(size=F.shape)
            G, G2 = (problem.loss.evaluate(A, problem.y)[1] for A in (F, F2))
            change, distance = (np.sqrt((A * A).sum(axis=1)) for A in (G2 - G, F2 - F))
            assert np.all(change <= smoothness * distance * (1 + 1e-9) + 1e-9)


def test_strong_convexity(row_problem):
    problem = row_problem
    strong = problem.objective.constants.strong_convexity
    assert strong >= 0.0
    for F in points(problem).values():
        F2 = F + problem.rng.normal(size=F.shape)
        losses, G = problem.loss.evaluate(F, problem.y)
        gain = problem.loss.value(F2, problem.y) - losses - np.sum(G * (F2 - F), axis=1)
        scale = 1 + np.abs(losses) + np.abs(F).max(axis=1)
        assert np.all(gain >= strong / 2 * np.sum((F2 - F) ** 2, axis=1) - 1e-10 * scale)


def test_minimum(problem):
    minimum = problem.objective.constants.minimum
    if minimum is None:
        pytest.skip("no known minimum")
    for F in points(problem).values():
        if problem.is_row_wise:
            assert problem.loss.value(F, problem.y).min() >= minimum
        assert problem.value(F) >= minimum


def test_value_is_the_first_half_of_evaluate(problem):
    for F in points(problem).values():
        if problem.is_row_wise:
            np.testing.assert_array_equal(
                problem.loss.value(F, problem.y), problem.loss.evaluate(F, problem.y)[0]
            )
        assert problem.objective.value(F) == pytest.approx(problem.objective.evaluate(F)[0], rel=1e-14)


def test_evaluate_leaves_its_arguments_alone_and_returns_fresh_arrays(row_problem):
    problem = row_problem
    F = problem.rng.normal(size=problem.shape)
    F_before, y_before = F.copy(), problem.y.copy()
    losses, G = problem.loss.evaluate(F, problem.y)
    assert losses.shape == problem.shape[:1]
    assert G.shape == problem.shape
    kept = G.copy()
    problem.loss.evaluate(F + 1, problem.y)
    np.testing.assert_array_equal(G, kept)
    np.testing.assert_array_equal(F, F_before)
    np.testing.assert_array_equal(problem.y, y_before)


@pytest.mark.parametrize("weights", ["uniform", "weighted", "uneven"])
@pytest.mark.parametrize(("spec", "n_outputs"), [(spec, k) for spec in LOSSES for k in outputs(spec)])
def test_best_constant(spec, n_outputs, weights):
    for seed in range(3):
        problem = make(spec, n_outputs, weights, seed)
        rng, best = problem.rng, problem.objective.start()
        assert best.shape == (n_outputs,)

        def risk(c, problem=problem):
            return problem.value(problem.constant(c))

        tolerance = 1e-9 * (1 + abs(risk(best)))
        for scale in (1e-3, 0.1, 1.0, 5.0):
            for _ in range(10):
                assert risk(best) <= risk(best + scale * rng.normal(size=n_outputs)) + tolerance
                assert risk(best) <= risk(scale * rng.normal(size=n_outputs)) + tolerance
        simplex = np.vstack([best, best + np.eye(n_outputs)])
        options = {"initial_simplex": simplex, "xatol": 1e-10, "fatol": 1e-12, "maxiter": 2000}
        found = minimize(risk, best, method="Nelder-Mead", options=options)
        assert risk(best) <= found.fun + 1e-8 * (1 + abs(found.fun))


def test_weight_two_is_the_row_twice(problem):
    rng = problem.rng
    counts = rng.integers(1, 4, N)
    twice = np.repeat(np.arange(N), counts)
    weighted = problem.bind(slice(None), FunctionSpace.of(N, counts))
    repeated = problem.bind(twice, FunctionSpace.of(len(twice)))
    np.testing.assert_allclose(weighted.start(), repeated.start(), rtol=1e-12, atol=1e-12)
    F, zero = rng.normal(size=problem.shape), np.zeros(problem.shape[1])
    a, b = weighted.scores(None, zero, F), repeated.scores(None, zero, F[twice])
    assert a.value() == pytest.approx(b.value(), rel=1e-12)
    np.testing.assert_allclose(a.gradient().values[twice], b.gradient().values, rtol=1e-12)
    assert a.gradient().norm == pytest.approx(b.gradient().norm, rel=1e-12)


def test_order_of_rows_does_not_matter(problem):
    order = problem.rng.permutation(N)
    other = problem.bind(order, FunctionSpace(problem.space.weight[order]))
    np.testing.assert_allclose(other.start(), problem.objective.start(), rtol=1e-12, atol=1e-12)
    F = problem.rng.normal(size=problem.shape)
    scores = other.scores(None, np.zeros(problem.shape[1]), F[order])
    assert scores.value() == pytest.approx(problem.value(F), rel=1e-12)
    np.testing.assert_allclose(scores.gradient().values, problem.gradient(F)[order], rtol=1e-12, atol=1e-15)


def test_link(problem):
    if not problem.loss.has_link:
        pytest.skip("scores stand for themselves")
    expected = EXPECTED[problem.loss.task if problem.n_classes else problem.loss.name]
    for F in points(problem).values():
        before, P = F.copy(), problem.loss.link(F)
        np.testing.assert_array_equal(F, before)
        assert np.isfinite(P).all()
        if problem.n_classes:
            assert P.shape == (N, problem.n_classes)
            assert P.min() >= 0.0
            np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
        else:
            assert P.shape == F.shape
    at_start = problem.loss.link(problem.objective.start()[None])[0]
    np.testing.assert_allclose(at_start, expected(problem), rtol=1e-9)


def class_shares(problem):
    return [problem.space.mean(problem.y == k) for k in range(problem.n_classes)]


#: What the best constant stands for, by task or, among regression losses, by name.
EXPECTED = {
    "classification": class_shares,
    "binary": class_shares,
    "poisson": lambda problem: problem.space.weight @ problem.y,
    "quantiles": lambda problem: problem.objective.start(),
}


@pytest.mark.parametrize("unit", [1e5, 1e-5])
@pytest.mark.parametrize("spec", [spec for spec in LOSSES if spec.partition(":")[0] in HOMOGENEOUS])
def test_units(spec, unit):
    power = HOMOGENEOUS[spec.partition(":")[0]]
    problem = make(spec, outputs(spec)[-1], "weighted")
    other = problem.loss.bind(problem.y * unit, problem.space)
    F = problem.rng.normal(size=problem.shape)
    assert other.value(F * unit) == pytest.approx(unit**power * problem.objective.value(F), rel=1e-12)
    np.testing.assert_allclose(other.start(), unit * problem.objective.start(), rtol=1e-12)
    _, G = other.evaluate(F * unit)
    np.testing.assert_allclose(G, unit ** (power - 1) * problem.gradient(F), rtol=1e-9)
    on_target = other.evaluate(np.broadcast_to(other.y * (1 + 2e-16), problem.shape))[1]
    assert np.abs(on_target).max() <= 1e-9 * unit


def test_ridge(problem):
    """(l2/2) ‖F − start‖², wherever the scores were placed."""
    rng, l2 = problem.rng, 0.3
    ridge = problem.objective.with_l2(l2)
    start, offset = rng.normal(size=problem.shape[1]), rng.normal(size=problem.shape)
    base = start + offset
    plain, scores = problem.objective.scores(None, start, offset), ridge.scores(None, start, offset)
    assert scores.value() == plain.value()
    D = rng.normal(size=problem.shape)
    for s in (plain, scores):
        s.restore((base + D, []))
    penalty = l2 / 2 * problem.space.norm(D) ** 2
    assert scores.value() == pytest.approx(plain.value() + penalty, rel=1e-12)
    np.testing.assert_allclose(
        scores.gradient().values, plain.gradient().values + l2 * D, rtol=1e-9, atol=1e-12
    )
    assert scores.along(ZERO)(1.0) == pytest.approx(scores.value(), rel=1e-12)
    assert scores.rescaled(0.0) == pytest.approx(problem.value(base), rel=1e-12)
    half = problem.value(base + D / 2) + penalty / 4
    assert scores.rescaled(0.5) == pytest.approx(half, rel=1e-12)
    scores.move(Move(ZERO, 0.0, shrink=0.5))
    assert scores.value() == pytest.approx(half, rel=1e-12)
    assert scores.distance() == pytest.approx(problem.space.norm(D) / 2, rel=1e-12)


def test_ridge_constants(problem):
    before, after = problem.objective.constants, problem.objective.with_l2(0.25).constants
    assert after.strong_convexity == before.strong_convexity + 0.25
    assert after.lipschitz is None
    assert after.minimum == before.minimum
    if before.smoothness is not None:
        assert after.smoothness == before.smoothness + 0.25
    assert problem.objective.with_l2(0.0).constants == before


class Table(Hypothesis):
    """A function on the rows as a table: what stumps and trees are."""

    def __init__(self, codes, table):
        self.codes, self.table = codes, table

    def add_to(self, F, inputs, weight):
        F += weight * self.table[self.codes]

    def lookup(self, inputs, weight):
        return self.codes, weight * self.table


@pytest.mark.parametrize("kind", [np.uint8, np.int32])
def test_scores_come_back_with_the_same_bits(problem, kind):
    """The kernel that moves F and evaluates the loss may round R unlike the evaluation of a restored F."""
    n, k = problem.shape
    for l2 in (0.0, 0.3):
        scores = problem.objective.with_l2(l2).scores(None, problem.objective.start())
        for _ in range(5):
            h = Table(problem.rng.integers(0, 5, n).astype(kind), problem.rng.normal(size=(5, k)))
            scores.move(Move(Direction(((0.3, h),), 1.0), 0.3))
            value = scores.value()
            again = problem.objective.with_l2(l2).scores(None, problem.objective.start())
            again.restore(scores.state())
            assert again.value() == scores.value() == value
            np.testing.assert_array_equal(again.gradient().values, scores.gradient().values)


def test_pickle(problem):
    again = pickle.loads(pickle.dumps(problem.objective))
    F = problem.rng.normal(size=problem.shape)
    assert again.value(F) == problem.objective.value(F)


def test_declaration(problem):
    """A name, a task, and constants that are numbers."""
    assert problem.loss.name in LOSSES
    constants = problem.objective.constants
    for value in (constants.lipschitz, constants.smoothness, constants.minimum):
        assert value is None or math.isfinite(value)


@pytest.mark.parametrize("spec", LOSSES)
def test_wrong_number_of_targets(spec):
    y = targets(spec, np.random.default_rng(0), 10, outputs(spec)[0])
    with pytest.raises(ValueError, match=r"`y` must have 7 rows like `X`, got 10"):
        loss(spec).bind(y, FunctionSpace.of(7))


@pytest.mark.parametrize("spec", [spec for spec in LOSSES if loss(spec).task == "regression"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_must_be_finite(spec, bad):
    with pytest.raises(ValueError, match=r"`y` must be finite, got \[(nan|inf)\] in row 2"):
        loss(spec).bind(np.array([0.0, 1.0, bad]), FunctionSpace.of(3))
