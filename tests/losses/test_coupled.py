"""Losses that couple rows: what they promise, against slow and obvious references."""

from __future__ import annotations

import itertools
import math
import pickle
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.space import FunctionSpace
from convexboost.losses import (
    Absolute,
    CVaR,
    HalfSquared,
    Laplacian,
    MulticlassHinge,
    Quantile,
    Ridge,
    Softmax,
    Structured,
    TotalVariation,
    WorstGroup,
    maximum,
)
from convexboost.losses._groups import Groups

pytestmark = pytest.mark.one_in(3)  # the others: make test-slow

N = 24
LABELS = 3
PATHS = [(0, 1, 2, 5, 8), (0, 1, 4, 5, 8), (0, 1, 4, 7, 8), (0, 3, 4, 5, 8), (0, 3, 4, 7, 8), (0, 3, 6, 7, 8)]


class Slope:
    """l(f, y) = f · y: a user's own loss, the simplest there is."""

    def __init__(self, lipschitz=None):
        self.constants = {} if lipschitz is None else {"lipschitz": lipschitz, "smoothness": 0.0}

    def evaluate(self, F, y):
        return (F * y).sum(axis=1), np.array(y)


# -- oracles -------------------------------------------------------------------------------------------------


def best_class(F, y, label):
    """Each row is a structure, each class an output."""
    value = F[0] + (1.0 - y[0])
    counts = np.eye(F.shape[1])[[value.argmax()]]
    return counts, float(1.0 - (counts * y).sum())


def viterbi(F, y, label):
    """Labels of a chain; neighbours differ by 1 at most; the margin is the number of wrong labels."""
    gains = F + 1.0 - y
    best, back = gains[0], []
    for row in gains[1:]:
        allowed = np.abs(np.subtract.outer(np.arange(LABELS), np.arange(LABELS))) <= 1
        before = np.where(allowed, best[:, None], -np.inf)
        back.append(before.argmax(axis=0))
        best = before.max(axis=0) + row
    path = [int(best.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    counts = np.eye(LABELS)[path[::-1]]
    return counts, float(np.sum(counts * (1.0 - y)))


def every_labelling(F, y, label):
    """The same by enumeration."""
    found = []
    for labels in itertools.product(range(LABELS), repeat=len(F)):
        if all(abs(a - b) <= 1 for a, b in itertools.pairwise(labels)):
            counts = np.eye(LABELS)[list(labels)]
            margin = float(np.sum(counts * (1.0 - y)))
            found.append((margin + np.sum(F * counts), margin, counts))
    _, margin, counts = max(found, key=lambda entry: entry[0])
    return counts, margin


def best_path(F, y, label):
    """Right and down through a map of three by three cells; the margin is the number of wrong cells."""
    gains = (F + 1.0 - y).reshape(3, 3)
    best = np.full((4, 4), -np.inf)
    best[1, 0] = 0.0
    for i, j in itertools.product(range(3), repeat=2):
        best[i + 1, j + 1] = gains[i, j] + max(best[i, j + 1], best[i + 1, j])
    counts, (i, j) = np.zeros((3, 3)), (2, 2)
    while i >= 0 and j >= 0:
        counts[i, j] = 1.0
        i, j = (i - 1, j) if best[i, j + 1] > best[i + 1, j] else (i, j - 1)
    counts = counts.reshape(9, 1)
    return counts, float(np.sum(counts * (1.0 - y)))


# -- problems ------------------------------------------------------------------------------------------------


@dataclass
class Problem:
    loss: Any
    y: Any
    groups: Any
    space: FunctionSpace
    n_classes: int | None
    rng: np.random.Generator

    def __post_init__(self):
        self.objective = self.bind(slice(None), self.space)
        self.shape = self.space.n_samples, self.objective.n_outputs

    def bind(self, rows, space):
        groups = None if self.groups is None else self.groups[rows]
        return self.loss.bind(self.y[rows], space, self.n_classes, groups)


RING = np.column_stack([np.arange(N), np.roll(np.arange(N), 1)])
CHORDS = np.array([[0, 5], [3, 17], [2, 2], [9, 20], [5, 0]])
EDGES = np.vstack([RING, CHORDS])
STRENGTHS = np.random.default_rng(5).uniform(0.0, 2.0, len(EDGES))
TOWNS = np.array(["Ulm", "Rom", "Bonn", "Oslo", "Prag"])
ROADS = np.array([["Ulm", "Rom"], ["Rom", "Bonn"], ["Oslo", "Bonn"], ["Paris", "Ulm"], ["Prag", "Ulm"]])

#: name: loss, kind of the targets, kind of the groups
CASES = {
    "cvar": (CVaR("absolute", 0.7), "numbers", None),
    "cvar of quantile": (CVaR("quantile:0.9", 0.35), "numbers", None),
    "cvar of squares": (CVaR(HalfSquared(), 0.5), "numbers", None),
    "cvar of softmax": (CVaR("softmax", 0.8), "classes", None),
    "cvar of hinge": (CVaR(MulticlassHinge(), 0.6), "classes", None),
    "cvar of expression": (CVaR(Absolute() + 0.5 * Quantile(0.8), 0.75), "numbers", None),
    "cvar of own": (CVaR(Slope(), 0.5), "numbers", None),
    "cvar, maximum": (CVaR("absolute", 0.9999), "numbers", None),
    "worst": (WorstGroup("absolute"), "numbers", "labels"),
    "worst of hinge": (WorstGroup("multiclass_hinge"), "classes", "labels"),
    "worst, smooth": (WorstGroup("softmax", smooth=0.2), "classes", "labels"),
    "worst of squares, smooth": (WorstGroup("half_squared", smooth=1.0), "numbers", "labels"),
    "variation": (TotalVariation(EDGES, 0.7, STRENGTHS), "numbers", None),
    "variation, nodes": (TotalVariation(ROADS, 2.0), "numbers", "towns"),
    "laplacian": (Laplacian(EDGES, 0.7, STRENGTHS), "numbers", None),
    "laplacian, nodes": (Laplacian(ROADS, 2.0), "numbers", "towns"),
    "fused": (Absolute() + 0.5 * TotalVariation(EDGES), "numbers", None),
    "classes on a graph": (0.5 * (Softmax() + Laplacian(ROADS)), "classes", "towns"),
    "structured": (Structured(best_class, bound=math.sqrt(2.0)), "counts", "rows"),
    "chain": (Structured(viterbi, bound=math.sqrt(8.0)), "chains", "chains"),
    "planning": (Structured(best_path, bound=math.sqrt(6.0)).affine(-1), "paths", "maps"),
    "sum": (CVaR("absolute", 0.8) + 0.3 * WorstGroup("half_squared"), "numbers", "labels"),
    "maximum": (maximum(CVaR("absolute", 0.8), HalfSquared()), "numbers", None),
}
GRAPHS = {"variation", "laplacian", "fused"}  #: they speak of row numbers
STRUCTURES = {"structured", "chain", "planning"}
STARTS = {}  #: kept: a search takes its time


def make(name, weights="weighted", seed=0):
    loss, kind, grouping = CASES[name]
    rng = np.random.default_rng([seed, len(name)])
    n = {"paths": 27}.get(kind, N)
    sample_weight = None if weights == "uniform" else rng.uniform(0.3, 3.0, n)
    n_classes = LABELS if kind == "classes" else None
    groups = {
        None: None,
        "labels": rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.1, 0.1]),
        "towns": rng.choice(TOWNS, n),
        "rows": rng.permutation(n),
        "chains": np.arange(n) // 4,
        "maps": np.arange(n) // 9,
    }[grouping]
    y = {
        "numbers": lambda: 2.0 * rng.normal(size=(n, 2)) + 1.0,
        "classes": lambda: np.concatenate([np.arange(LABELS), rng.integers(0, LABELS, n)])[:n],
        "counts": lambda: np.eye(LABELS)[rng.integers(0, LABELS, n)],
        "chains": lambda: np.eye(LABELS)[np.tile([0, 1, 1, 2], n // 4)],
        "paths": lambda: (
            np.isin(np.arange(9), PATHS[2]).astype(float).repeat(3).reshape(9, 3).T.reshape(n, 1)
        ),
    }[kind]()
    problem = Problem(loss, y, groups, FunctionSpace.of(n, sample_weight), n_classes, rng)
    key = name, weights, seed
    problem.start = lambda: (
        STARTS[key] if key in STARTS else STARTS.setdefault(key, problem.objective.start())
    )
    return problem


@pytest.fixture(params=[(name, w) for name in CASES for w in ("uniform", "weighted")], ids=str)
def problem(request):
    return make(*request.param)


def points(problem):
    """Ordinary scores, and awkward ones: ties, kinks, a rounding error away from them."""
    rng, shape = problem.rng, problem.shape
    whole = rng.integers(-2, 3, shape).astype(float)
    found = {
        "random": rng.normal(size=shape),
        "start": np.tile(problem.start(), (shape[0], 1)),
        "zero": np.zeros(shape),
        "tiny": 1e-13 * rng.normal(size=shape),
        "large": 1e4 * rng.normal(size=shape),
        "whole": whole,
        "whole, shaken": whole * (1 + 1e-15) + 1e-15,
        "all alike": np.tile(rng.normal(size=shape[1]), (shape[0], 1)),
    }
    if problem.y.shape == shape:
        found["on the target"] = problem.y.astype(float)
        found["one off the target"] = problem.y + rng.choice([-1.0, 1.0], shape)
        found["half on the target"] = np.where(rng.random(shape) < 0.5, problem.y, problem.y + whole)
    return found


# -- what every one of them promises -------------------------------------------------------------------------


def test_subgradient_inequality(problem):
    objective, others = problem.objective, points(problem).values()
    for F in others:
        R, G = objective.evaluate(F)
        nearby = [F + problem.rng.normal(size=F.shape) * 10.0 ** problem.rng.uniform(-3, 1) for _ in range(4)]
        for F2 in [*others, *nearby]:
            slack = 1e-10 * (1 + abs(R) + objective.space.norm(G) * (np.abs(F).max() + np.abs(F2).max()))
            assert objective.value(F2) >= R + objective.space.inner(G, F2 - F) - slack


def test_finite_differences(problem):
    objective, eps = problem.objective, 1e-6
    F = problem.rng.normal(size=problem.shape)
    G = objective.evaluate(F)[1]
    for _ in range(10):
        D = problem.rng.normal(size=F.shape) * (problem.rng.random(F.shape) < 0.3)
        numeric = (objective.value(F + eps * D) - objective.value(F - eps * D)) / (2 * eps)
        assert numeric == pytest.approx(objective.space.inner(G, D), rel=1e-6, abs=1e-7)


def test_constants_hold(problem):
    objective = problem.objective
    constants, space = objective.constants, objective.space
    for F in points(problem).values():
        R, G = objective.evaluate(F)
        if constants.lipschitz is not None:
            assert space.norm(G) <= constants.lipschitz * (1 + 1e-12)
        if constants.minimum is not None:
            assert constants.minimum <= R
        for length in (1e-2, 1.0, 10.0):
            F2 = F + length * problem.rng.normal(size=F.shape) * (problem.rng.random((len(F), 1)) < 0.3)
            if constants.smoothness is not None:
                change = space.norm(objective.evaluate(F2)[1] - G)
                assert change <= constants.smoothness * space.norm(F2 - F) * (1 + 1e-9) + 1e-9
            gain = objective.value(F2) - R - space.inner(G, F2 - F)
            least = constants.strong_convexity / 2 * space.norm(F2 - F) ** 2
            assert gain >= least - 1e-9 * (1 + abs(R) + np.abs(F).max() ** 2 * 1e-4)


def test_value_is_the_first_half_of_evaluate_and_scores_are_left_alone(problem):
    for F in points(problem).values():
        before = F.copy()
        assert problem.objective.value(F) == pytest.approx(problem.objective.evaluate(F)[0], rel=1e-14)
        np.testing.assert_array_equal(F, before)


@pytest.mark.parametrize("name", [name for name in CASES if name not in GRAPHS])
def test_order_of_rows_does_not_matter(name):
    problem = make(name)
    n = problem.shape[0]
    order = problem.rng.permutation(n)
    if name in STRUCTURES:  # whole structures change places
        order = np.concatenate([np.flatnonzero(problem.groups == g) for g in problem.rng.permutation(n)])
    other = problem.bind(order, FunctionSpace(problem.space.weight[order]))
    for F in points(problem).values():
        (R, G), (R2, G2) = problem.objective.evaluate(F), other.evaluate(F[order])
        assert pytest.approx(R, rel=1e-12) == R2
        np.testing.assert_allclose(G2, G[order], rtol=1e-9, atol=1e-12 * (1 + np.abs(G).max()))


@pytest.mark.parametrize("name", [name for name in CASES if name not in GRAPHS])
def test_weight_two_is_the_row_twice(name):
    """For structures, the structure twice."""
    problem = make(name)
    n = problem.shape[0]
    counts = problem.rng.integers(1, 4, n)
    if name in STRUCTURES:
        counts = problem.rng.integers(1, 4, n)[np.unique(problem.groups, return_inverse=True)[1]]
        copies = [(i, g) for i in range(3) for g in np.unique(problem.groups)]
        pick = [np.flatnonzero((problem.groups == g) & (counts > i)) for i, g in copies]
        twice = np.concatenate(pick)
        labels = np.concatenate([np.full(len(rows), c) for c, rows in enumerate(pick)])
    else:
        twice = np.repeat(np.arange(n), counts)
        labels = None if problem.groups is None else problem.groups[twice]
    weighted = problem.bind(slice(None), FunctionSpace.of(n, counts))
    space = FunctionSpace.of(len(twice))
    repeated = problem.loss.bind(problem.y[twice], space, problem.n_classes, labels)
    for name, F in points(problem).items():
        (R, G), (R2, G2) = weighted.evaluate(F), repeated.evaluate(F[twice])
        assert pytest.approx(R, rel=1e-11) == R2, name
        np.testing.assert_allclose(G2, G[twice], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(2))
def test_start_is_the_best_constant(name, seed):
    problem = make(name, seed=seed)

    def risk(c):
        return problem.objective.value(np.tile(c, (problem.shape[0], 1)))

    if name == "cvar of own":  # no minimum: any start will do
        return
    best = problem.objective.start()
    assert best.shape == problem.shape[1:]
    for start in (best, np.zeros_like(best), problem.rng.normal(size=best.shape)):
        found = minimize(risk, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11})
        assert risk(best) <= found.fun + 1e-5 * (1 + abs(found.fun))


def test_ridge_and_copies(problem):
    ridge = problem.objective.with_l2(0.25)
    assert ridge.constants.strong_convexity == problem.objective.constants.strong_convexity + 0.25
    F = problem.rng.normal(size=problem.shape)
    for again in (pickle.loads(pickle.dumps(problem.objective)), deepcopy(problem.objective)):
        assert again.value(F) == problem.objective.value(F)


@pytest.mark.parametrize("name", CASES)
def test_loss_is_a_value(name):
    """Equal to its copies, hashable, printable."""
    loss = CASES[name][0]
    assert str(loss) == loss.formula()
    assert repr(loss)
    if "own" in name:  # that is up to the user's class
        return
    for again in (pickle.loads(pickle.dumps(loss)), deepcopy(loss)):
        assert again == loss
        if name != "planning":  # an affine map holds arrays of its own
            assert hash(again) == hash(loss)


@pytest.mark.parametrize(
    ("loss", "formula"),
    [
        (CVaR("absolute", 0.95), "CVaR_0.95 [|f − y|]"),
        (CVaR(Absolute() + HalfSquared()), "CVaR_0.9 [|f − y| + ½ (f − y)²]"),
        (WorstGroup("absolute"), "max_g mean_g [|f − y|]"),
        (WorstGroup("absolute", 0.1), "0.1 log mean over g of exp(mean_g [|f − y|] / 0.1)"),
        (Absolute() + TotalVariation(RING, 0.5), "|f − y| + 0.5 mean_ij |f_i − f_j|"),
        (Absolute() + Laplacian(RING), "|f − y| + 0.5 mean_ij ‖f_i − f_j‖²"),
        (Structured(best_class), "mean_i max_ŷ [margin(y, ŷ) + ⟨f, ŷ − y⟩]"),
    ],
)
def test_formula(loss, formula):
    assert str(loss) == formula


# -- CVaR ----------------------------------------------------------------------------------------------------


def tail_by_program(losses, weight, level):
    """min t + Σ p u/(1 − level), u ≥ l − t, u ≥ 0."""
    n = len(losses)
    found = linprog(
        np.append(weight / (1 - level), 1.0),
        A_ub=np.column_stack([-np.eye(n), -np.ones(n)]),
        b_ub=-losses,
        bounds=[*[(0, None)] * n, (None, None)],
    )
    return found.fun


@pytest.mark.parametrize("level", [0.01, 0.3, 0.5, 0.75, 0.9, 0.97, 0.999])
@pytest.mark.parametrize("weights", ["uniform", "weighted"])
def test_cvar_is_the_linear_program(level, weights):
    problem = make("cvar", weights)
    objective = CVaR("absolute", level).bind(problem.y, problem.space)
    for F in points(problem).values():
        losses = Absolute().value(F, problem.y)
        value = tail_by_program(losses, problem.space.weight, level)
        assert objective.value(F) == pytest.approx(value, rel=1e-7, abs=1e-9)


def test_cvar_is_the_mean_of_the_worst_rows():
    y, rng = np.zeros(20), np.random.default_rng(0)
    F = rng.normal(size=(20, 1))
    worst = np.sort(np.abs(F[:, 0]))[::-1]
    for count in range(1, 20):
        objective = CVaR("absolute", 1 - count / 20).bind(y, FunctionSpace.of(20))
        assert objective.value(F) == pytest.approx(worst[:count].mean(), rel=1e-12)


@pytest.mark.parametrize("level", [0.3, 0.7, 0.9])
def test_cvar_of_errors_is_the_error(level):
    """Of losses that are 0 or 1: min(1, error/(1 − level)), so there is no other tail to lower."""
    for errors in range(21):
        y = (np.arange(20) < errors).astype(float)
        objective = CVaR(Slope(), level).bind(y, FunctionSpace.of(20))
        assert objective.value(np.ones((20, 1))) == pytest.approx(min(1.0, errors / 20 / (1 - level)))


def test_a_value_in_torch_has_a_tail():
    torch = pytest.importorskip("torch")

    class Value:
        def value(self, F, y):
            return torch.abs(F - y).sum(dim=1)

    problem = make("cvar")
    F = problem.rng.normal(size=problem.shape)
    found = CVaR(Value(), 0.7).bind(problem.y, problem.space).evaluate(F)
    expected = problem.objective.evaluate(F)
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


def test_cvar_shares_ties_by_weight():
    """Half of the weight is the tail: 0.3 of it is above, the other 0.2 comes from rows that tie."""
    space = FunctionSpace(np.array([0.3, 0.1, 0.3, 0.3]))
    objective = CVaR("absolute", 0.5).bind(np.zeros(4), space)
    value, G = objective.evaluate(np.array([[3.0], [2.0], [-2.0 * (1 + 1e-15)], [1.0]]))
    assert value == pytest.approx((0.3 * 3 + 0.2 * 2) / 0.5)
    np.testing.assert_allclose(G[:, 0], [2.0, 1.0, -1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("spec", ["absolute", "softmax"])
def test_cvar_at_level_0_is_the_loss(spec):
    kind = "cvar" if spec == "absolute" else "cvar of softmax"
    problem = make(kind)
    loss = CVaR(spec, 0)
    mean, same = (thing.bind(problem.y, problem.space, problem.n_classes) for thing in (loss, loss.loss))
    assert mean.constants == same.constants
    np.testing.assert_array_equal(mean.start(), same.start())
    almost = CVaR(spec, 1e-12).bind(problem.y, problem.space, problem.n_classes)
    for F in points(problem).values():
        (R, G), (R2, G2) = mean.evaluate(F), same.evaluate(F)
        assert R == R2
        np.testing.assert_array_equal(G, G2)
        assert almost.value(F) == pytest.approx(R, rel=1e-9)


def test_cvar_of_less_than_a_row_is_the_maximum():
    problem = make("cvar, maximum")
    for F in points(problem).values():
        top = Absolute().value(F, problem.y).max()
        assert problem.objective.value(F) == pytest.approx(top, rel=1e-12)


def test_cvar_grows_with_the_level():
    problem = make("cvar")
    F = problem.rng.normal(size=problem.shape)
    values = [CVaR("absolute", a).bind(problem.y, problem.space).value(F) for a in np.linspace(0, 0.99, 30)]
    assert np.all(np.diff(values) >= -1e-12)


def test_cvar_constants_are_reached():
    y = np.zeros(20)
    objective = CVaR("absolute", 0.9).bind(y, FunctionSpace.of(20))
    F = np.random.default_rng(0).normal(size=(20, 1))
    assert objective.space.norm(objective.evaluate(F)[1]) == pytest.approx(objective.constants.lipschitz)
    objective = CVaR("absolute", 0.99).bind(y, FunctionSpace.of(20))
    assert objective.constants.lipschitz == pytest.approx(math.sqrt(20))
    assert objective.space.norm(objective.evaluate(F)[1]) == pytest.approx(objective.constants.lipschitz)


@pytest.mark.parametrize("bad", [-0.1, 1.0, 1.5, math.nan, "high"])
def test_bad_level(bad):
    with pytest.raises(ValueError, match=r"`level` must lie in \[0, 1\), got"):
        CVaR("absolute", bad)


def test_inner_loss_by_name_object_or_class():
    assert CVaR("quantile:0.9") == CVaR(Quantile(0.9))
    assert WorstGroup(Absolute) == WorstGroup("absolute")
    assert CVaR("softmax").task == "classification"
    with pytest.raises(ValueError, match=r"`loss` must be one of .*, got 'absolut'; did you mean 'absolute'"):
        CVaR("absolut")
    for coupled in (WorstGroup("absolute"), TotalVariation(RING), Absolute() + Ridge(1.0)):
        with pytest.raises(ValueError, match="`loss` of CVaR must be a loss of single rows"):
            CVaR(coupled)
    with pytest.raises(ValueError, match="must have a method `evaluate`"):
        WorstGroup(3.0)


def test_what_is_not_a_number_stays_so():
    objective = CVaR("absolute", 0.5).bind(np.zeros(4), FunctionSpace.of(4))
    assert math.isnan(objective.value(np.full((4, 1), np.nan)))
    assert objective.value(np.full((4, 1), np.inf)) == math.inf


# -- WorstGroup ----------------------------------------------------------------------------------------------


def risks(problem, F):
    """The mean loss in every group, by loops."""
    losses = problem.loss.loss.value(F, problem.objective.targets)
    found = []
    for label in sorted(set(problem.groups)):
        rows = [n for n in range(len(F)) if problem.groups[n] == label]
        weight = sum(problem.space.weight[n] for n in rows)
        found.append(sum(problem.space.weight[n] * losses[n] for n in rows) / weight)
    return np.array(found)


@pytest.mark.parametrize("name", ["worst", "worst of hinge"])
def test_worst_group_by_loops(name):
    problem = make(name)
    for F in points(problem).values():
        assert problem.objective.value(F) == pytest.approx(risks(problem, F).max(), rel=1e-12)


@pytest.mark.parametrize("name", ["worst, smooth", "worst of squares, smooth"])
def test_smooth_worst_group_by_loops(name):
    problem = make(name)
    mu = problem.loss.smooth
    for F in points(problem).values():
        found = risks(problem, F)
        top = found.max()
        expected = top + mu * math.log(np.mean(np.exp((found - top) / mu)))
        value = problem.objective.value(F)
        assert value == pytest.approx(expected, rel=1e-12)
        assert top - mu * math.log(len(found)) - 1e-12 * top <= value <= top * (1 + 1e-12)


def test_groups_that_tie_share():
    space, groups = FunctionSpace.of(6), np.array([0, 0, 0, 1, 1, 2])
    objective = WorstGroup("absolute").bind(np.zeros(6), space, groups=groups)
    value, G = objective.evaluate(np.array([[1.0], [3.0], [-2.0], [-2.0 * (1 + 1e-15)], [2.0], [1.9]]))
    assert value == pytest.approx(2.0)
    np.testing.assert_allclose(G[:, 0], [1.0, 1.0, -1.0, -1.5, 1.5, 0.0])


def test_worst_group_constants_are_reached():
    """Lipschitz: the smallest group is the worst.  Smoothness: two groups of linear losses pull apart."""
    groups = np.array([0] * 15 + [1] * 5)
    objective = WorstGroup("absolute").bind(np.zeros(20), FunctionSpace.of(20), groups=groups)
    F = np.where(groups == 1, 3.0, 1.0)[:, None]
    assert objective.space.norm(objective.evaluate(F)[1]) == pytest.approx(objective.constants.lipschitz)

    loss, y, groups = (
        WorstGroup(Slope(lipschitz=1.0), smooth=0.3),
        np.repeat([1.0, -1.0], 10),
        np.repeat([0, 1], 10),
    )
    objective = loss.bind(y, FunctionSpace.of(20), groups=groups)
    eps, zero = 1e-4, np.zeros((20, 1))
    change = objective.space.norm(objective.evaluate(zero + eps)[1] - objective.evaluate(zero)[1])
    assert objective.constants.smoothness == pytest.approx(1 / 0.3)
    assert change / eps == pytest.approx(objective.constants.smoothness, rel=1e-3)


def test_worst_group_errors():
    with pytest.raises(ValueError, match="`groups` are needed by the loss"):
        WorstGroup("absolute").bind(np.zeros(3), FunctionSpace.of(3))
    with pytest.raises(ValueError, match="`groups` must have 3 rows like `y`, got 2"):
        WorstGroup("absolute").bind(np.zeros(3), FunctionSpace.of(3), groups=[0, 1])
    for bad in (0.0, -1.0, math.inf, "much"):
        with pytest.raises(ValueError, match="`smooth` must be positive or None, got"):
            WorstGroup("absolute", smooth=bad)


# -- graphs --------------------------------------------------------------------------------------------------


def by_loops(loss, F, weight, groups):
    """Σ w d(F̄_i, F̄_j)/Σ w, edge by edge."""
    node = list(range(len(F))) if groups is None else list(groups)
    means = {}
    for label in set(node):
        rows = [n for n in range(len(F)) if node[n] == label]
        means[label] = sum(weight[n] * F[n] for n in rows) / sum(weight[n] for n in rows)
    strengths = np.ones(len(loss.edges)) if loss.weights is None else loss.weights
    value = total = 0.0
    for (i, j), w in zip(loss.edges.tolist(), strengths, strict=True):
        if i in means and j in means and i != j:
            d = means[i] - means[j]
            value += w * (np.abs(d).sum() if isinstance(loss, TotalVariation) else d @ d / 2)
            total += w
    return loss.strength * value / total


@pytest.mark.parametrize("name", ["variation", "variation, nodes", "laplacian", "laplacian, nodes"])
def test_graph_by_loops(name):
    problem = make(name)
    for F in points(problem).values():
        expected = by_loops(problem.loss, F, problem.space.weight, problem.groups)
        assert problem.objective.value(F) == pytest.approx(expected, rel=1e-10, abs=1e-12 * np.abs(F).max())


@pytest.mark.parametrize("kind", [TotalVariation, Laplacian])
def test_adjacency_matrix(kind):
    """Symmetric or one triangle of it: the same graph as the list of edges."""
    rng = np.random.default_rng(0)
    lower = np.tril(rng.uniform(size=(N, N)) * (rng.random((N, N)) < 0.2))
    i, j = np.nonzero(lower)
    F, space = rng.normal(size=(N, 2)), FunctionSpace.of(N, rng.uniform(1, 2, N))
    expected = kind(np.column_stack([i, j]), 0.5, lower[i, j]).couple(space, 2, None)
    for matrix in (sp.csr_array(lower), sp.coo_matrix(lower + lower.T), sp.csc_array(lower.T)):
        loss = kind(matrix, 0.5)
        found = loss.couple(space, 2, None)
        assert found.value(F) == pytest.approx(expected.value(F), rel=1e-12)
        np.testing.assert_allclose(found.evaluate(F)[1], expected.evaluate(F)[1], rtol=1e-9, atol=1e-12)
        assert pickle.loads(pickle.dumps(loss)) == loss
        assert hash(deepcopy(loss)) == hash(loss)
        by_label = loss.couple(space, 2, np.arange(N))
        assert by_label.value(F) == pytest.approx(expected.value(F), rel=1e-12)


@pytest.mark.parametrize("kind", [TotalVariation, Laplacian])
def test_row_numbers_as_labels_may_be_sliced(kind):
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(N)[: N // 2])
    F = rng.normal(size=(N, 1))
    inside = [(i, j) for i, j in EDGES if i in rows and j in rows]
    where = {row: place for place, row in enumerate(rows)}
    space = FunctionSpace.of(len(rows))
    found = kind(EDGES).couple(space, 1, rows)
    expected = kind([[where[i], where[j]] for i, j in inside]).couple(space, 1, None)
    assert found.value(F[rows]) == pytest.approx(expected.value(F[rows]), rel=1e-12)


@pytest.mark.parametrize("kind", [object, "U12"])
def test_labels_of_another_text_dtype(kind):
    problem = make("variation, nodes")
    other = problem.loss.couple(problem.space, 2, problem.groups.astype(kind))
    F = problem.rng.normal(size=problem.shape)
    assert other.value(F) == problem.objective.value(F)


def test_no_edges_are_left():
    objective = TotalVariation([["a", "b"]]).couple(FunctionSpace.of(3), 1, np.array(["x", "y", "y"]))
    value, G = objective.evaluate(np.array([[1.0], [2.0], [3.0]]))
    assert value == 0.0
    assert not G.any()
    assert objective.constants.lipschitz == 0.0
    assert Laplacian(np.zeros((0, 2), int)).couple(FunctionSpace.of(3), 1, None).constants.smoothness == 0.0


def test_variation_constant_is_reached():
    """On a graph with two sides, at scores that differ between the sides, every edge pulls the same way."""
    i = np.arange(10)
    space = FunctionSpace.of(11, np.random.default_rng(0).uniform(1, 3, 11))
    objective = TotalVariation(np.column_stack([i, i + 1]), 0.7).couple(space, 2, None)
    F = np.tile((np.arange(11) % 2)[:, None], 2).astype(float)
    assert space.norm(objective.evaluate(F)[1]) == pytest.approx(objective.constants.lipschitz)


@pytest.mark.parametrize("seed", range(5))
def test_laplacian_smoothness_is_within_twice_the_eigenvalue(seed):
    rng = np.random.default_rng(seed)
    edges, weights = rng.integers(0, 12, (20, 2)), rng.uniform(0.1, 2.0, 20)
    space = FunctionSpace.of(12, rng.uniform(0.5, 2.0, 12))
    objective = Laplacian(edges, 0.8, weights).couple(space, 1, None)
    # The gradient is linear in F: its matrix, made symmetric by the weights.
    columns = [objective.evaluate(np.eye(12)[:, [n]])[1][:, 0] for n in range(12)]
    root = np.sqrt(space.weight)
    M = root[:, None] * np.array(columns).T / root
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    largest = np.linalg.eigvalsh(M)[-1]
    assert largest * (1 - 1e-12) <= objective.constants.smoothness <= 2 * largest


def test_laplacian_smoothness_of_one_edge_is_exact():
    objective = Laplacian([[0, 1]]).couple(FunctionSpace.of(2), 1, None)
    F = np.array([[1.0], [-1.0]])
    change = objective.space.norm(objective.evaluate(F)[1])
    assert change / objective.space.norm(F) == pytest.approx(objective.constants.smoothness) == 4.0


def test_repeated_edges_add_up_and_direction_does_not_matter():
    space, F = FunctionSpace.of(3), np.array([[0.0], [1.0], [5.0]])
    twice = TotalVariation([[0, 1], [1, 0], [1, 2]]).couple(space, 1, None)
    weighted = TotalVariation([[0, 1], [1, 2]], weights=[2, 1]).couple(space, 1, None)
    assert twice.value(F) == pytest.approx(weighted.value(F)) == 2.0


def test_equality_of_graphs():
    assert TotalVariation(EDGES) == TotalVariation(EDGES.tolist())
    assert TotalVariation(EDGES) != TotalVariation(EDGES, 0.5)
    assert TotalVariation(EDGES) != Laplacian(EDGES)
    assert TotalVariation(EDGES) != TotalVariation(EDGES[::-1])
    assert len({TotalVariation(ROADS), TotalVariation(ROADS.copy())}) == 1
    edges = EDGES.copy()
    loss = TotalVariation(edges)
    edges[0] = 7
    assert loss == TotalVariation(EDGES)
    assert eval(repr(loss)) == loss
    assert eval(repr(Laplacian(EDGES[:3], 0.5, [1.0, 2.0, 3.0]))) == Laplacian(
        EDGES[:3], 0.5, [1.0, 2.0, 3.0]
    )
    many = TotalVariation(np.column_stack([np.arange(99), np.arange(1, 100)]))
    assert repr(many) == "TotalVariation(<99 edges>, strength=1)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": [0, 1]}, r"`edges` must have shape \(m, 2\), got \(2,\)"),
        ({"edges": [[0, 1, 2]]}, r"`edges` must have shape \(m, 2\), got \(1, 3\)"),
        ({"edges": sp.csr_array((3, 4))}, r"`edges` must be a square matrix, got shape \(3, 4\)"),
        (
            {"edges": sp.eye_array(3), "weights": [1.0]},
            "`weights` and a matrix as `edges` cannot be combined",
        ),
        ({"edges": [[0, 1]], "weights": [1.0, 2.0]}, r"`weights` must have shape \(1,\), got \(2,\)"),
        (
            {"edges": [[0, 1]], "weights": [-1.0]},
            "weights of `edges` must be finite and not negative, got -1",
        ),
        ({"edges": -sp.eye_array(3)}, "weights of `edges` must be finite and not negative, got -1"),
        ({"edges": [[0, 1]], "strength": 0.0}, "`strength` must be positive, got 0.0"),
    ],
)
def test_bad_graph(options, message):
    for kind in (TotalVariation, Laplacian):
        with pytest.raises(ValueError, match=message):
            kind(**options)


@pytest.mark.parametrize(
    ("edges", "groups", "message"),
    [
        ([[0, 5]], None, "`edges` joins row 5, but there are 5 rows.*give `groups`"),
        ([[0, -1]], None, "`edges` joins row -1, but there are 5 rows"),
        ([[0.0, 1.0]], None, r"`edges` must be row numbers unless `groups` are given, got .*0\.0"),
        ([["a", "b"]], None, "`edges` must be row numbers unless `groups` are given, got .*'a'"),
        (sp.eye_array(6), None, "`edges` has 6 nodes, but there are 5 rows"),
        ([["a", "b"]], np.arange(5), "`edges` must hold labels like those in `groups`, got"),
        ([[0, 1]], np.array(list("abcde")), "`edges` must hold labels like those in `groups`, got"),
    ],
)
def test_edges_that_do_not_fit_the_rows(edges, groups, message):
    with pytest.raises(ValueError, match=message):
        (Absolute() + TotalVariation(edges)).bind(np.zeros(5), FunctionSpace.of(5), groups=groups)


def test_couplings_alone_have_no_targets():
    with pytest.raises(ValueError, match="has no targets: add it to a loss"):
        ConvexBoostRegressor(TotalVariation(RING)).fit(np.zeros((N, 1)), np.zeros(N))
    for loss in (TotalVariation(RING) + Laplacian(RING), TotalVariation(RING).affine(2.0)):
        with pytest.raises(ValueError, match="has no targets: add it to a loss"):
            ConvexBoostRegressor(loss).fit(np.zeros((N, 1)), np.zeros(N))


# -- Structured ----------------------------------------------------------------------------------------------


def test_structured_contains_the_multiclass_hinge():
    problem = make("structured")
    y = problem.y.argmax(axis=1)
    hinge = MulticlassHinge().bind(y, problem.space, LABELS)
    assert problem.objective.constants.lipschitz == pytest.approx(hinge.constants.lipschitz)
    for F in (problem.rng.normal(size=problem.shape), 5 * problem.rng.normal(size=problem.shape)):
        (R, G), (R2, G2) = problem.objective.evaluate(F), hinge.evaluate(F)
        assert pytest.approx(R, rel=1e-12) == R2
        np.testing.assert_allclose(G, G2, rtol=1e-12, atol=1e-12)
    for F in points(problem).values():
        assert problem.objective.value(F) == pytest.approx(hinge.value(F), rel=1e-12, abs=1e-12)
    assert hinge.value(np.tile(problem.objective.start(), (N, 1))) == pytest.approx(
        hinge.value(np.tile(hinge.start(), (N, 1))), rel=1e-6
    )


def test_chains_by_enumeration():
    problem = make("chain")
    slow = Structured(every_labelling).bind(problem.y, problem.space, groups=problem.groups)
    for name, F in points(problem).items():
        (R, G), (R2, G2) = problem.objective.evaluate(F), slow.evaluate(F)
        assert pytest.approx(R, rel=1e-12, abs=1e-12) == R2
        if name in ("random", "large"):
            np.testing.assert_allclose(G, G2, atol=1e-12)


def test_planning_by_enumeration():
    """The demonstration's cost minus the smallest cost − margin, for costs f on the cells."""
    problem = make("planning", weights="uniform")
    for name, F in points(problem).items():
        cost, demonstration = F.reshape(3, 9), PATHS[2]
        value, G = 0.0, np.zeros((3, 9))
        for i in range(3):
            augmented = [sum(cost[i, s] - (s not in demonstration) for s in path) for path in PATHS]
            value += (sum(cost[i, s] for s in demonstration) - min(augmented)) / 3
            best = PATHS[int(np.argmin(augmented))]
            G[i] = 27 / 3 * (np.isin(range(9), demonstration).astype(float) - np.isin(range(9), best))
        assert problem.objective.value(F) == pytest.approx(value, rel=1e-9, abs=1e-12)
        if name in ("random", "large"):
            np.testing.assert_allclose(problem.objective.evaluate(F)[1], G.reshape(27, 1), atol=1e-12)


def test_structured_constant_is_reached():
    """Two paths without a common cell but the ends; every map is wrong."""
    space, y = FunctionSpace.of(9), np.isin(np.arange(9), PATHS[0]).astype(float)[:, None]
    objective = Structured(best_path, bound=math.sqrt(6.0)).bind(y, space, groups=np.zeros(9))
    F = 10.0 * np.isin(np.arange(9), PATHS[-1])[:, None]
    assert space.norm(objective.evaluate(F)[1]) == pytest.approx(objective.constants.lipschitz)
    assert Structured(best_path).bind(y, space, groups=np.zeros(9)).constants.lipschitz is None


def test_weights_of_structures():
    """The mean of the rows' weights, or what the groups say."""
    problem = make("chain")
    F = problem.rng.normal(size=problem.shape)
    means = np.array([problem.space.weight[problem.groups == g].mean() for g in range(6)])
    one = FunctionSpace.of(4)
    values = np.array(
        [
            Structured(viterbi).bind(problem.y[rows], one, groups=np.zeros(4)).value(F[rows])
            for rows in np.split(np.arange(N), 6)
        ]
    )
    assert problem.objective.value(F) == pytest.approx(means @ values / means.sum(), rel=1e-12)
    given = Groups(problem.groups, np.repeat([1.0, 2.0, 3.0, 1.0, 1.0, 2.0], 4))
    objective = problem.loss.bind(problem.y, problem.space, groups=given)
    assert objective.value(F) == pytest.approx(np.array([1, 2, 3, 1, 1, 2]) @ values / 10, rel=1e-12)


def test_structures_of_any_size_count_equally():
    rng, sizes = np.random.default_rng(0), [2, 6, 4, 3, 5, 4]
    groups, y, F = (
        np.repeat(np.arange(6), sizes),
        np.eye(LABELS)[np.ones(N, int)],
        rng.normal(size=(N, LABELS)),
    )
    values = []
    for i, size in enumerate(sizes):
        counts, margin = every_labelling(F[groups == i], y[:size], i)
        values.append(margin + np.sum(F[groups == i] * (counts - y[:size])))
    objective = Structured(viterbi).bind(y, FunctionSpace.of(N), groups=groups)
    assert objective.value(F) == pytest.approx(np.mean(values), rel=1e-12)
    # Structures may be mixed, as long as the parts of each stay in order.
    order = np.argsort(rng.random(N))
    for i in range(6):
        order[groups[order] == i] = np.sort(order[groups[order] == i])
    other = Structured(viterbi).bind(y, FunctionSpace.of(N), groups=groups[order])
    np.testing.assert_allclose(other.evaluate(F[order])[1], objective.evaluate(F)[1][order], rtol=1e-12)


def bad_oracle(F, y, label):
    return np.roll(y, 1, axis=1), -1.0 if label == "c" else 1.0


def test_an_oracle_that_misses_the_maximum():
    y, groups = np.eye(3), np.array(["a", "b", "c"])
    objective = Structured(bad_oracle).bind(y, FunctionSpace.of(3), groups=groups)
    with pytest.raises(ValueError, match=r"`oracle` .* is 1 worse than the truth for the structure .*'c'"):
        objective.evaluate(np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones((1, 3)), "`oracle` must return counts and a margin, got ndarray"),
        ((np.ones(3), 1.0), r"`oracle` must return counts of shape \(1, 3\) .* got \(3,\)"),
    ],
)
def test_bad_answers(answer, message):
    objective = Structured(lambda F, y, label: answer).bind(np.eye(3), FunctionSpace.of(3), groups=[0, 1, 2])
    with pytest.raises(ValueError, match=message):
        objective.evaluate(np.zeros((3, 3)))


def test_bad_structured():
    with pytest.raises(ValueError, match="`oracle` must be callable, got 3"):
        Structured(3)
    with pytest.raises(ValueError, match="`bound` must be positive or None, got -1"):
        Structured(best_class, bound=-1)
    with pytest.raises(ValueError, match="`groups` are needed by the loss"):
        Structured(best_class).bind(np.eye(3), FunctionSpace.of(3))


# -- calculus ------------------------------------------------------------------------------------------------


def test_sums_and_multiples():
    problem = make("sum")
    a, b = CVaR("absolute", 0.8), WorstGroup("half_squared")
    parts = [loss.bind(problem.y, problem.space, groups=problem.groups) for loss in (a, b)]
    F = problem.rng.normal(size=problem.shape)
    (R, G), (R1, G1), (R2, G2) = problem.objective.evaluate(F), *(part.evaluate(F) for part in parts)
    assert pytest.approx(R1 + 0.3 * R2) == R
    np.testing.assert_allclose(G, G1 + 0.3 * G2)
    assert problem.loss.needs_groups
    assert not problem.loss.whole_groups
    assert CASES["planning"][0].whole_groups
    assert (Absolute() + TotalVariation(RING)).takes_groups
    assert (2 * WorstGroup("absolute")).bind(
        problem.y, problem.space, groups=problem.groups
    ).constants == replace(
        WorstGroup("absolute").bind(problem.y, problem.space, groups=problem.groups).constants,
        lipschitz=2 * math.sqrt(2) / math.sqrt(parts[1].mass.min()),
    )


def test_affine_map_of_a_coupled_loss():
    problem, A = make("cvar"), np.array([[1.0, 0.5, 0.0], [-1.0, 2.0, 1.0]])
    loss = CVaR("absolute", 0.7)
    mapped = loss.affine(A, [1.0, -1.0]).bind(problem.y, problem.space)
    assert mapped.n_outputs == 3
    F = problem.rng.normal(size=(N, 3))
    R, G = problem.objective.evaluate(F @ A.T + [1.0, -1.0])
    assert mapped.value(F) == pytest.approx(R)
    np.testing.assert_allclose(mapped.evaluate(F)[1], G @ A)


# -- through the estimators ----------------------------------------------------------------------------------

rng = np.random.default_rng(3)
X = rng.normal(size=(60, 3))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * rng.standard_t(2, 60)
CLASS = np.digitize(Y, [0.3, 1.2])
PEOPLE = np.where(X[:, 2] > 0.8, "few", "many")
NODE = np.arange(60)
LINE = np.column_stack([np.argsort(X[:, 0])[:-1], np.argsort(X[:, 0])[1:]])
CHAINS = np.repeat(np.arange(15), 4)
STEPS_UP = np.sort(CLASS.reshape(15, 4), axis=1)
# Neighbours differ by 1 at most: chains that do not are made all 1.
CHAIN_Y = np.eye(3)[np.where(np.diff(STEPS_UP).max(axis=1, keepdims=True) > 1, 1, STEPS_UP).ravel()]

#: name: estimator, loss, targets, groups
FITS = {
    "cvar": (ConvexBoostRegressor, CVaR("absolute", 0.8), Y, None),
    "cvar of own": (ConvexBoostRegressor, CVaR(HalfSquared() + Absolute(), 0.8), Y, None),
    "cvar, classes": (ConvexBoostClassifier, CVaR("softmax", 0.8), CLASS, None),
    "worst": (ConvexBoostRegressor, WorstGroup("absolute"), Y, PEOPLE),
    "worst, classes": (ConvexBoostClassifier, WorstGroup("softmax", smooth=0.1), CLASS, PEOPLE),
    "variation": (ConvexBoostRegressor, Absolute() + TotalVariation(LINE, 0.5), Y, NODE),
    "laplacian": (ConvexBoostRegressor, HalfSquared() + Laplacian(LINE, 0.5), Y, NODE),
    "laplacian, classes": (ConvexBoostClassifier, Softmax() + Laplacian(LINE, 0.5), CLASS, NODE),
    "structured": (ConvexBoostRegressor, Structured(viterbi, bound=math.sqrt(8.0)), CHAIN_Y, CHAINS),
}


def fit(name, **options):
    estimator, loss, y, groups = FITS[name]
    options = {"learner": "stump", "n_rounds": 20, "early_stopping": False, "random_state": 0, **options}
    return estimator(loss, **options).fit(X, y, groups=groups)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", FITS)
def test_every_algorithm_gains(name, algorithm):
    step = "inverse_sqrt:0.3" if algorithm in ("dual_averaging", "error_feedback") else "auto"
    model = fit(name, algorithm=algorithm, step=step, n_rounds=40)
    objective = model.history_["objective"]
    assert np.nanmin(objective) < objective[0]
    assert model.predict(X).shape[0] == 60


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FITS)
def test_certificates_stay_below_what_a_longer_run_reaches(name):
    """C2 with a ridge term, C1 without, for the distance that the longer run travelled."""
    _, _, y, groups = FITS[name]
    short, long = fit(name, l2=0.3, certificate=True), fit(name, l2=0.3, n_rounds=150)
    reached = np.nanmin(long.history_["objective"])
    assert short.certificate_.ridge().value <= reached + 1e-9
    bound = long.certify(X, y, groups=groups, polish=50).best().value
    assert 0.3 * reached <= bound <= reached + 1e-9

    short, long = fit(name, certificate=True), fit(name, n_rounds=150)
    radius = FunctionSpace.of(60).norm(long.model_.predict(X) - long.model_.start)
    assert short.certificate_.ball(radius).value <= np.nanmin(long.history_["objective"]) + 1e-9


@pytest.mark.parametrize("name", FITS)
def test_early_stopping_holds_out_rows(name):
    model = fit(name, early_stopping=True, validation_fraction=0.3, n_iter_no_change=5)
    assert np.isfinite(model.history_["validation"]).all()


def test_early_stopping_keeps_structures_whole():
    seen = []

    def spy(F, y, label):
        seen.append((label, len(F)))
        return viterbi(F, y, label)

    loss = 2 * Structured(spy)
    ConvexBoostRegressor(loss, n_rounds=3, early_stopping=True, random_state=0).fit(X, CHAIN_Y, groups=CHAINS)
    assert {size for _, size in seen} == {4}
    assert {label for label, _ in seen} == set(range(15))
    with pytest.raises(ValueError, match="`early_stopping` holds out 1 of 1 groups and leaves none"):
        ConvexBoostRegressor(loss, early_stopping=True).fit(X[:4], CHAIN_Y[:4], groups=CHAINS[:4])


def test_row_numbers_and_early_stopping_do_not_go_together():
    model = ConvexBoostRegressor(Absolute() + TotalVariation(LINE), early_stopping=True)
    with pytest.raises(ValueError, match=r"`edges` joins row \d+, but there are \d+ rows.*give `groups`"):
        model.fit(X, Y)
    weight = np.ones(60)
    weight[7] = 0.0
    with pytest.raises(ValueError, match=r"`edges` joins row 59, but there are 59 rows"):
        model.set_params(early_stopping=False).fit(X, Y, weight)
    model.set_params(n_rounds=3).fit(X, Y, weight, groups=NODE)


def test_row_numbers_are_labels():
    loss = Absolute() + TotalVariation(LINE, 0.5)
    a = ConvexBoostRegressor(loss, n_rounds=10).fit(X, Y)
    b = ConvexBoostRegressor(loss, n_rounds=10).fit(X, Y, groups=NODE)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-9)


@pytest.mark.parametrize("name", FITS)
def test_clone_and_pickle(name):
    _, loss, y, groups = FITS[name]
    model = fit(name, n_rounds=5)
    again = clone(model)
    assert again.loss == loss
    np.testing.assert_array_equal(again.fit(X, y, groups=groups).predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_probabilities():
    for name in ("cvar, classes", "worst, classes", "laplacian, classes"):
        P = fit(name).predict_proba(X)
        np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_groups_are_asked_for():
    with pytest.raises(ValueError, match="`groups` is needed by the loss max_g"):
        ConvexBoostRegressor(WorstGroup("absolute")).fit(X, Y)
    with pytest.raises(ValueError, match=r"`groups` was given, but the loss CVaR_0\.9 .* does not use it"):
        ConvexBoostRegressor(CVaR("absolute")).fit(X, Y, groups=PEOPLE)
    with pytest.raises(ValueError, match="`loss` must be a regression loss"):
        ConvexBoostRegressor(CVaR("softmax")).fit(X, Y)


def test_cvar_lowers_the_tail():
    """Beside the model of the mean, on the rows trained on, with few bins: both cannot be had at once."""
    tail = CVaR("absolute", 0.8)
    mean, risky = (
        ConvexBoostRegressor(loss, "stump:3", n_rounds=300).fit(X, Y).predict(X)
        for loss in ("absolute", tail)
    )
    objective = tail.bind(Y, FunctionSpace.of(60))
    assert objective.value(risky[:, None]) < 0.97 * objective.value(mean[:, None])
    assert np.abs(risky - Y).mean() > np.abs(mean - Y).mean()


@pytest.mark.parametrize("loss", [WorstGroup("absolute"), WorstGroup("absolute", smooth=0.01)])
def test_worst_group_serves_the_few(loss):
    """The few want the opposite of the many: the mean forgets them, the worst group cannot."""
    y, groups = np.where(NODE % 5 == 0, -1.0, 1.0) * np.sign(X[:, 0]), NODE % 5 == 0
    mean = ConvexBoostRegressor("absolute", n_rounds=200).fit(X[:, :1], y)
    fair = ConvexBoostRegressor(loss, n_rounds=200).fit(X[:, :1], y, groups=groups)

    def worst(model):
        losses = np.abs(model.predict(X[:, :1]) - y)
        return max(losses[groups].mean(), losses[~groups].mean())

    assert worst(fair) < 0.8 * worst(mean)


def test_strong_variation_makes_neighbours_equal():
    plain, pulled = (
        ConvexBoostRegressor(Absolute() + TotalVariation(LINE, s), n_rounds=200).fit(X, Y)
        for s in (1e-6, 5.0)
    )

    def variation(model):
        return np.abs(np.diff(model.predict(X)[LINE], axis=1)).mean()

    assert variation(pulled) < 0.1 * variation(plain)


def test_cross_validation_with_nodes():
    for train, test in GroupKFold(3).split(X, Y, NODE // 5):
        model = ConvexBoostRegressor(Absolute() + Laplacian(LINE), n_rounds=3)
        model.fit(X[train], Y[train], groups=NODE[train], X_val=X[test], y_val=Y[test], groups_val=NODE[test])
        assert np.isfinite(model.history_["validation"]).all()


def test_a_chain_is_learned():
    """The scores of a fitted model, decoded, give back most labels of the chains trained on."""
    model = fit("structured", n_rounds=300)
    F = model.predict(X)
    found = np.concatenate([viterbi(part, np.zeros((4, 3)), None)[0] for part in np.split(F, 15)])
    assert (found.argmax(axis=1) == CHAIN_Y.argmax(axis=1)).mean() > 0.8
