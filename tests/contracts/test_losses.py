"""What every loss promises."""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from convexboost.core.hypotheses import ZERO, Direction, Hypothesis, Move
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._loss import RowLoss
from convexboost.losses._objective import BoundLoss
from tests.contracts.conftest import (
    BY_LABEL,
    FILES,
    LOSSES,
    TORCH,
    bind,
    count_classes,
    groups_of,
    loss,
    outputs,
    space_of,
    targets,
)

pytestmark = pytest.mark.one_in(4)  # the others: make test-slow

N = 30
#: Losses that only scale when y and F do, with the power.
HOMOGENEOUS = {"absolute": 1, "quantile": 1, "quantiles": 1, "half_squared": 2}


@dataclass
class Problem:
    case: tuple[str, int, str]
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

    def bind(self, rows, space, groups=None):
        """The same loss on some of the rows, or on some of them twice."""
        if groups is None and self.groups is not None:
            groups = self.groups[rows]
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


def make(label, n_outputs, weights, seed=0):
    rng = np.random.default_rng([seed, n_outputs])
    y, space = targets(label, rng, N, n_outputs), space_of(rng, N, weights)
    objective = bind(label, y, space, n_outputs)
    assert objective.n_outputs == n_outputs
    if y.dtype.kind == "i":
        y = y.astype(np.int32)
    return Problem(
        (label, n_outputs, weights),
        loss(label),
        count_classes(label, n_outputs),
        y,
        space,
        objective,
        rng,
        groups_of(label, N),
    )


CASES = [(label, k, w) for label in FILES for k in outputs(label) for w in ("uniform", "weighted")]
CASES += [(label, k, "weighted") for label in LOSSES if label not in FILES for k in outputs(label)]
#: To look at what the losses declare.  Those of PyTorch declare nothing.
MADE = {case: make(*case) for case in CASES if case[0] not in TORCH}


def cases(has):
    """Return the cases whose problem has a property: a test is not collected for the others."""
    return [case for case, problem in MADE.items() if has(problem)]


def over(some):
    """Run a test over some cases, each as `problem`; equal weights are slow but for the first outputs."""

    def marks(label, k, weights):
        return [pytest.mark.slow] if weights == "uniform" and k != outputs(label)[0] else []

    params = [pytest.param(case, marks=marks(*case), id=str(case)) for case in some]
    return pytest.mark.parametrize("problem", params, indirect=True)


@cache
def start(case):
    """The best constant, which may be the result of a search."""
    return make(*case).objective.start()


@pytest.fixture
def problem(request):
    return make(*request.param)


ROWS = cases(lambda p: p.is_row_wise)
COUPLED = [case for case in CASES if case not in ROWS]
#: The file's own constants are the smallest that will do; those of expressions are bounds.
OWN_ROWS = [case for case in ROWS if case[0] in FILES]
LIPSCHITZ = cases(lambda p: p.objective.constants.lipschitz is not None)
SMOOTH = cases(lambda p: p.objective.constants.smoothness is not None)
MINIMUM = cases(lambda p: p.objective.constants.minimum is not None)
PROX = cases(lambda p: p.is_row_wise and p.loss.has_prox)
SUPPORT = cases(lambda p: p.objective.has_support)
PIECES = cases(lambda p: p.objective.has_pieces)
CURVATURES = cases(lambda p: p.is_row_wise and p.loss.has_curvatures)
LINK = cases(lambda p: p.loss.has_link)


def points(problem):
    """Ordinary scores and the awkward ones: ties, kinks, a rounding error away from them, tiny and huge."""
    rng, shape = problem.rng, problem.shape
    whole = rng.integers(-2, 3, shape).astype(float)
    pair = np.full(shape, -60.0)  # two outputs tied, the others far below: where a softmax bends most
    pair[:, :2] = 0.0
    found = {
        "random": rng.normal(size=shape),
        "start": problem.constant(start(problem.case)),
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


@over(ROWS)
def test_subgradient_inequality_in_every_row(problem):
    """l(f') ≥ l(f) + ⟨g, f' − f⟩, from every point to every other."""
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


@over(PROX)
def test_prox_is_where_its_displacement_is_a_subgradient(problem):
    """x = F − size · u with u in ∂l(x): l(f) ≥ l(x) + ⟨u, f − x⟩ for every f."""
    for size in (0.01, 1.0, 300.0):
        for name, F in points(problem).items():
            X = problem.loss.prox(F, problem.y, size)
            if name == "huge":
                continue
            losses, U = problem.loss.value(X, problem.y), (F - X) / size
            for F2 in points(problem).values():
                slope = np.sum(U * (F2 - X), axis=1)
                scale = 1 + np.abs(losses) + np.abs(U * (F2 - X)).sum(axis=1) + np.abs(F2).max(axis=1)
                scale *= 1 + (1 + np.abs(F).max(axis=1)) / size  # the rounding of U
                assert np.all(problem.loss.value(F2, problem.y) - losses - slope >= -1e-11 * scale)


@over(SUPPORT)
def test_support_is_below_the_loss_and_touches_it(problem):
    """l(f) ≥ −l*(u) + ⟨u, f⟩ for any u asked for, with equality where u is a subgradient."""
    rng = np.random.default_rng(2)
    loss, y = problem.loss, problem.y
    ordinary = {name: F for name, F in points(problem).items() if name != "huge"}
    base = next(iter(ordinary.values()))
    for F in ordinary.values():
        losses, G = loss.evaluate(F, y)
        u, values = loss.support(G, base, y)
        np.testing.assert_allclose(u, G, rtol=0, atol=1e-15)
        scale = 1 + np.abs(losses) + np.abs(F).max(axis=1) + np.abs(base).max(axis=1)
        assert np.all(np.abs(values + np.sum(u * (F - base), axis=1) - losses) <= 1e-11 * scale)
        for wanted in (3 * rng.normal(size=F.shape), rng.random(F.shape) / F.shape[1]):
            u, values = loss.support(wanted, base, y)
            assert np.all(loss.value(F, y) - values - np.sum(u * (F - base), axis=1) >= -1e-11 * scale)


@over(CURVATURES)
def test_curvatures_are_second_derivatives(problem):
    """Output by output; and |l‴| ≤ l″, so that a damped Newton step is safe."""
    eps, y = 1e-5, problem.y
    for F in (problem.rng.normal(size=problem.shape), np.zeros(problem.shape)):
        found = problem.loss.curvatures(y, problem.loss.evaluate(F, y)[1])
        for k in range(problem.shape[1]):
            up, down = F.copy(), F.copy()
            up[:, k] += eps
            down[:, k] -= eps
            G = [problem.loss.evaluate(A, y)[1] for A in (up, down)]
            np.testing.assert_allclose(found[:, k], (G[0] - G[1])[:, k] / (2 * eps), rtol=1e-5, atol=1e-8)
            near = [problem.loss.curvatures(y, g)[:, k] for g in G]
            assert np.all(np.abs(near[0] - near[1]) / (2 * eps) <= found[:, k] * (1 + 1e-6) + 1e-9)


@over(PIECES)
def test_pieces_add_up_to_the_loss(problem):
    pieces = problem.objective.pieces()
    for F in points(problem).values():
        heights = np.full(len(pieces.weight), -np.inf)
        np.maximum.at(heights, pieces.group, pieces.slopes @ F.ravel() + pieces.constants)
        value = pieces.constant + np.sum(pieces.linear * F) + pieces.weight @ heights
        assert value == pytest.approx(problem.value(F), rel=1e-9, abs=1e-9 * (1 + np.abs(F).max()))


@over(CASES)
def test_subgradient_inequality_in_function_space(problem):
    """R[F'] ≥ R[F] + ⟨∇, F' − F⟩ with the weights inside the inner product."""
    for F in points(problem).values():
        R, G = problem.value(F), problem.gradient(F)
        for _ in range(5):
            F2 = F + problem.rng.normal(size=F.shape) * 10.0 ** problem.rng.uniform(-2, 1)
            bound = R + problem.space.inner(G, F2 - F)
            assert problem.value(F2) >= bound - 1e-11 * (1 + abs(R) + np.abs(F).max())


@over(CASES)
def test_finite_differences(problem):
    eps = 1e-6
    for F in (problem.rng.normal(size=problem.shape), 3 * problem.rng.normal(size=problem.shape) + 1):
        G = problem.gradient(F)
        for _ in range(10):
            D = problem.rng.normal(size=F.shape) * (problem.rng.random(F.shape) < 0.3)
            numeric = (problem.value(F + eps * D) - problem.value(F - eps * D)) / (2 * eps)
            assert numeric == pytest.approx(problem.space.inner(G, D), rel=1e-6, abs=1e-7)


@over(LIPSCHITZ)
def test_lipschitz_constant(problem):
    """For a row loss it holds in every row, because a space may put all its weight there."""
    L = problem.objective.constants.lipschitz
    for F in points(problem).values():
        if problem.is_row_wise:
            G = problem.loss.evaluate(F, problem.y)[1]
            assert np.sqrt((G * G).sum(axis=1)).max() <= L * (1 + 1e-12)
        assert problem.at(F).gradient().norm <= L * (1 + 1e-12)


@over([case for case in LIPSCHITZ if case in OWN_ROWS])
def test_lipschitz_constant_is_reached(problem):
    """Nothing smaller would do: some row of some point comes within a few percent."""
    L = problem.objective.constants.lipschitz
    worst = [10.0 * sign * problem.rng.normal(size=problem.shape) for sign in (-1, 1)]
    worst += [problem.constant(np.full(problem.shape[1], sign * 1e3)) for sign in (-1, 1)]
    norms = [np.sqrt((problem.loss.evaluate(F, problem.y)[1] ** 2).sum(axis=1)).max() for F in worst]
    assert max(norms) > 0.95 * L


@over(SMOOTH)
def test_smoothness(problem):
    """The gradient changes at most Λ times as much as the scores; for a row loss in every row."""
    smoothness = problem.objective.constants.smoothness
    for F in points(problem).values():
        for length in (1e-3, 1.0, 30.0):
            F2 = F + length * problem.rng.normal(size=F.shape)
            change, distance = problem.gradient(F2) - problem.gradient(F), F2 - F
            assert problem.space.norm(change) <= smoothness * problem.space.norm(distance) * (1 + 1e-9) + 1e-9
            if problem.is_row_wise:
                change, distance = (np.sqrt((A * A).sum(axis=1)) for A in (change, distance))
                assert np.all(change <= smoothness * distance * (1 + 1e-9) + 1e-9)


@over([case for case in SMOOTH if case in OWN_ROWS])
def test_smoothness_is_reached(problem):
    """Nothing smaller would do: some row bends that much at 0, or where it is tied with its target."""
    wanted, found = 0.95 * problem.objective.constants.smoothness, 0.0
    for F in points(problem).values():
        for j, k in itertools.combinations_with_replacement(range(problem.shape[1]), 2):
            step = np.zeros(problem.shape)
            step[:, j] += 1e-3
            step[:, k] -= 1e-3 if k != j else 0.0
            change = problem.gradient(F + step) - problem.gradient(F)
            found = max(found, np.sqrt((change**2).sum(axis=1) / (step**2).sum(axis=1)).max())
    assert found > wanted


@pytest.mark.parametrize("l2", [0.0, 0.3])
@over(CASES)
def test_strong_convexity(problem, l2):
    """R[F'] ≥ R[F] + ⟨∇, F' − F⟩ + (λ/2) ‖F' − F‖², the ridge term included."""
    objective = problem.objective.with_l2(l2)
    strong, rng = objective.constants.strong_convexity, problem.rng
    assert strong >= l2
    scores = objective.scores(None, rng.normal(size=problem.shape[1]))

    def at(F):
        scores.restore((F, []))
        return scores.value(), scores.gradient().values

    for name, F in points(problem).items():
        if name == "huge":
            continue
        R, G = at(F)
        for length in (0.1, 1.0, 10.0):
            D = length * rng.normal(size=F.shape)
            bound = R + problem.space.inner(G, D) + strong / 2 * problem.space.norm(D) ** 2
            assert at(F + D)[0] >= bound - 1e-10 * (1 + abs(R) + np.abs(F).max() + np.abs(G * D).max())


@over(cases(lambda p: p.objective.constants.strong_convexity > 0))
def test_strong_convexity_is_reached(problem):
    """Nothing larger would do: somewhere R bends no more than that."""
    strong, space = problem.objective.constants.strong_convexity, problem.space
    ratios = []
    for F in points(problem).values():
        D = problem.rng.normal(size=F.shape)
        change = problem.gradient(F + D) - problem.gradient(F)
        ratios.append(space.inner(change, D) / space.norm(D) ** 2)
    assert min(ratios) == pytest.approx(strong, rel=1e-3)


@over(MINIMUM)
def test_minimum(problem):
    minimum = problem.objective.constants.minimum
    for F in points(problem).values():
        if problem.is_row_wise:
            assert problem.loss.value(F, problem.y).min() >= minimum
        assert problem.value(F) >= minimum


@over(CASES)
def test_value_is_the_first_half_of_evaluate(problem):
    for F in points(problem).values():
        if problem.is_row_wise:
            np.testing.assert_array_equal(
                problem.loss.value(F, problem.y), problem.loss.evaluate(F, problem.y)[0]
            )
        assert problem.objective.value(F) == pytest.approx(problem.objective.evaluate(F)[0], rel=1e-14)


@over(ROWS)
def test_evaluate_leaves_its_arguments_alone_and_returns_fresh_arrays(problem):
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


@pytest.mark.one_in(4)
@pytest.mark.parametrize("weights", ["uniform", "weighted", "uneven"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
@pytest.mark.parametrize(("label", "n_outputs"), [(label, k) for label in LOSSES for k in outputs(label)])
def test_best_constant(label, n_outputs, seed, weights):
    problem = make(label, n_outputs, weights, seed)
    rng, best = problem.rng, problem.objective.start()
    assert best.shape == (n_outputs,)

    def risk(c):
        return problem.value(problem.constant(c))

    lowest = risk(best)
    tolerance = 1e-9 * (1 + abs(lowest))
    for scale in (1e-3, 0.1, 1.0, 5.0):
        for _ in range(10):
            assert lowest <= risk(best + scale * rng.normal(size=n_outputs)) + tolerance
            assert lowest <= risk(scale * rng.normal(size=n_outputs)) + tolerance
    simplex = np.vstack([best, best + np.eye(n_outputs)])
    options = {"initial_simplex": simplex, "xatol": 1e-10, "fatol": 1e-12, "maxiter": 2000}
    found = minimize(risk, best, method="Nelder-Mead", options=options)
    rounding = 1e-13 * np.abs(found.x).max()  # a simplex may wander off where R does not depend on constants
    assert lowest <= found.fun + 1e-8 * (1 + abs(found.fun)) + rounding


@over(CASES)
def test_weight_two_is_the_row_twice(problem):
    rng = problem.rng
    whole = problem.loss.whole_groups  # then a weight belongs to a group, and the copies are another one
    counts = rng.integers(1, 4, N if not whole else 4)[problem.groups if whole else slice(None)]
    twice = np.repeat(np.arange(N), counts)
    copy = np.arange(len(twice)) - np.repeat(np.cumsum(counts) - counts, counts)
    groups = problem.groups[twice] + 4 * copy if whole else None
    weighted = problem.bind(slice(None), FunctionSpace.of(N, counts))
    repeated = problem.bind(twice, FunctionSpace.of(len(twice)), groups)
    np.testing.assert_allclose(weighted.start(), repeated.start(), rtol=1e-12, atol=1e-12)
    F, zero = rng.normal(size=problem.shape), np.zeros(problem.shape[1])
    a, b = weighted.scores(None, zero, F), repeated.scores(None, zero, F[twice])
    assert a.value() == pytest.approx(b.value(), rel=1e-12)
    np.testing.assert_allclose(a.gradient().values[twice], b.gradient().values, rtol=1e-12)
    assert a.gradient().norm == pytest.approx(b.gradient().norm, rel=1e-12)


@over(CASES)
def test_order_of_rows_does_not_matter(problem):
    order = problem.rng.permutation(N)
    other = problem.bind(order, FunctionSpace(problem.space.weight[order]))
    np.testing.assert_allclose(other.start(), start(problem.case), rtol=1e-12, atol=1e-12)
    F = problem.rng.normal(size=problem.shape)
    scores = other.scores(None, np.zeros(problem.shape[1]), F[order])
    assert scores.value() == pytest.approx(problem.value(F), rel=1e-12)
    rounding = 1e-15 if problem.is_row_wise else 1e-13  # which rows count is decided by a sum over rows
    G = problem.gradient(F)[order]
    np.testing.assert_allclose(scores.gradient().values, G, rtol=1e-12, atol=rounding)


@over(LINK)
def test_link(problem):
    link = problem.loss.link
    for F in points(problem).values():
        before, P = F.copy(), link(F)
        np.testing.assert_array_equal(F, before)
        assert np.isfinite(P).all()
        if problem.n_classes:
            assert P.shape == (N, problem.n_classes)
            assert P.min() >= 0.0
            np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
        else:
            assert P.shape == F.shape


def class_shares(problem):
    return [problem.space.mean(problem.y == k) for k in range(problem.n_classes)]


#: What the best constant stands for, by task or, among regression losses, by name.
MEANING = {
    "classification": class_shares,
    "binary": class_shares,
    "poisson": lambda problem: problem.space.weight @ problem.y,
    "quantiles": lambda problem: problem.objective.start(),
}


def meaning(problem):
    return MEANING.get(problem.loss.task if problem.n_classes else problem.loss.name)


@over([case for case in LINK if case in OWN_ROWS and meaning(MADE[case])])
def test_what_the_best_constant_stands_for(problem):
    at_start = problem.loss.link(problem.objective.start()[None])[0]
    np.testing.assert_allclose(at_start, meaning(problem)(problem), rtol=1e-9)


@pytest.mark.parametrize("unit", [1e5, 1e-5])
@pytest.mark.parametrize("label", [label for label in FILES if label.partition(" ")[0] in HOMOGENEOUS])
def test_units(label, unit):
    power = HOMOGENEOUS[label.partition(" ")[0]]
    problem = make(label, outputs(label)[-1], "weighted")
    other = problem.loss.bind(problem.y * unit, problem.space)
    F = problem.rng.normal(size=problem.shape)
    assert other.value(F * unit) == pytest.approx(unit**power * problem.objective.value(F), rel=1e-12)
    np.testing.assert_allclose(other.start(), unit * problem.objective.start(), rtol=1e-12)
    _, G = other.evaluate(F * unit)
    np.testing.assert_allclose(G, unit ** (power - 1) * problem.gradient(F), rtol=1e-9)
    on_target = other.evaluate(np.broadcast_to(other.y * (1 + 2e-16), problem.shape))[1]
    assert np.abs(on_target).max() <= 1e-9 * unit


@over(CASES)
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


@over(CASES)
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
@over(CASES)
def test_scores_come_back_with_the_same_bits(problem, kind):
    """The kernel that moves F and evaluates the loss may round R unlike the evaluation of a restored F."""
    (n, k), base = problem.shape, start(problem.case)
    for l2 in (0.0, 0.3):
        scores = problem.objective.with_l2(l2).scores(None, base)
        for _ in range(5):
            h = Table(problem.rng.integers(0, 5, n).astype(kind), problem.rng.normal(size=(5, k)))
            scores.move(Move(Direction(((0.3, h),), 1.0), 0.3))
            value = scores.value()
            again = problem.objective.with_l2(l2).scores(None, base)
            again.restore(scores.state())
            assert again.value() == scores.value() == value
            np.testing.assert_array_equal(again.gradient().values, scores.gradient().values)


@over(CASES)
def test_pickle(problem):
    again = pickle.loads(pickle.dumps(problem.objective))
    F = problem.rng.normal(size=problem.shape)
    assert again.value(F) == problem.objective.value(F)


@over(CASES)
def test_declaration(problem):
    """A name, a task, a formula, and constants that are numbers."""
    assert problem.loss.name
    assert problem.loss.task in ("regression", "classification", "binary", "ranking", "any")
    assert problem.loss.formula("g") != problem.loss.formula("f") == str(problem.loss)
    constants = problem.objective.constants
    for value in (constants.lipschitz, constants.smoothness, constants.minimum):
        assert value is None or math.isfinite(value)


@pytest.mark.parametrize("label", LOSSES)
def test_wrong_number_of_targets(label):
    y = targets(label, np.random.default_rng(0), 10, outputs(label)[0])
    with pytest.raises(ValueError, match=r"must have 7 rows like `[Xy]`, got 10"):
        loss(label).bind(y, FunctionSpace.of(7), groups=groups_of(label, 10))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("label", [label for label in BY_LABEL if loss(label).task == "regression"])
def test_targets_must_be_finite(label, bad):
    with pytest.raises(ValueError, match=r"`y` must be finite, got \[(nan|inf)\] in row 2"):
        loss(label).bind(np.array([0.0, 1.0, bad]), FunctionSpace.of(3), groups=groups_of(label, 3))


#: What the losses in the folder declare, so that none of it is lost unnoticed.
DECLARED = {
    "absolute": "best_constant best_shifts lipschitz minimum pieces prox support",
    "cvar": "best_constant lipschitz minimum reweights",
    "epsilon_insensitive": "best_constant best_shifts lipschitz minimum pieces prox support",
    "exponential": "best_constant curvatures link minimum prox",
    "half_squared": "best_constant best_shifts minimum prox smoothness strong_convexity",
    "hinge": "best_constant best_shifts lipschitz minimum pieces prox support",
    "huber": "best_constant lipschitz minimum prox smoothness",
    "laplacian": "minimum smoothness takes_groups",
    "logistic": "best_constant curvatures link lipschitz minimum newton_steps smoothness",
    "multiclass_hinge": "best_constant lipschitz minimum pieces prox support",
    "poisson": "best_constant curvatures link minimum positive_only prox",
    "quantile": "best_constant best_shifts lipschitz minimum pieces prox support",
    "quantiles": "best_constant best_shifts link lipschitz minimum one_target pieces prox support",
    "ranking_hinge": "best_constant lipschitz minimum needs_groups pieces takes_groups",
    "softmax": "best_constant couples_outputs curvatures link lipschitz minimum smoothness",
    "squared_hinge": "best_constant minimum prox smoothness",
    "structured": "lipschitz minimum needs_groups takes_groups whole_groups",
    "total_variation": "lipschitz minimum takes_groups",
    "worst_group": "best_constant lipschitz minimum needs_groups reweights takes_groups",
}


def declared(problem):
    """What a loss says of itself, by the names of the declarations."""
    loss, objective = problem.loss, problem.objective
    found = {name: getattr(objective.constants, name) for name in Constants.__dataclass_fields__}
    found["strong_convexity"] = objective.constants.strong_convexity or None
    flags = ["takes_groups", "needs_groups", "whole_groups", "reweights", "one_target", "positive_only"]
    flags += ["has_link"]
    if problem.is_row_wise:
        flags += ["has_prox", "has_support", "has_pieces", "has_curvatures", "has_best_shifts"]
        flags += ["has_best_constant", "couples_outputs"]
        found["newton_steps"] = loss.newton_steps if loss.newton_steps != 1.0 else None
    else:
        found["pieces"] = objective.has_pieces or None
        found["best_constant"] = type(objective).start is not BoundLoss.start or None
    for flag in flags:
        found[flag.removeprefix("has_")] = getattr(loss, flag) or None
    return {name for name, value in found.items() if value is not None}


@pytest.mark.parametrize("name", DECLARED)
def test_nothing_that_was_declared_is_lost(name):
    problem = make(name, outputs(name)[0], "weighted")
    assert " ".join(sorted(declared(problem))) == DECLARED[name]
    assert problem.objective.constants.minimum == 0.0


@pytest.mark.parametrize("name", [name for name in DECLARED if not FILES[name].couples_rows])
def test_a_multiple_keeps_what_its_loss_declares(name):
    problem = make(name, outputs(name)[0], "weighted")
    loss = 2.0 * problem.loss
    for flag in ("prox", "support", "pieces", "curvatures", "best_shifts", "best_constant", "link"):
        assert getattr(loss, f"has_{flag}") == getattr(problem.loss, f"has_{flag}")
    assert (loss.newton_steps, loss.couples_outputs) == (
        problem.loss.newton_steps,
        problem.loss.couples_outputs,
    )
