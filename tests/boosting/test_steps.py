"""Step rules, seen through the records of short runs."""

import itertools
import math

import numpy as np
import pytest

from convexboost.boosting.steps import (
    DOUBLE,
    STEPS,
    AdaNorm,
    Auto,
    Constant,
    InverseSqrt,
    InverseTime,
    LineSearch,
    Polyak,
    search,
)
from convexboost.boosting.training import boost
from convexboost.core.hypotheses import ZERO
from convexboost.core.space import FunctionSpace
from convexboost.learners.additive import Additive
from convexboost.learners.finite import FiniteSet
from convexboost.learners.stump import Stump
from convexboost.losses.absolute import Absolute
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.softmax import Softmax

N = 60
rng = np.random.default_rng(4)
X = rng.normal(size=(N, 3))
Y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=N)
LABELS = np.digitize(Y, [-0.5, 0.5])
SPACE = FunctionSpace.of(N)


def run(loss, step, algorithm="naive", unit=1.0, l2=0.0, n_rounds=10, **options):
    y = LABELS if loss.task == "classification" else unit * Y
    objective = loss.bind(y, SPACE).with_l2(l2)
    H = Stump(max_bins=16).bind(X, SPACE)
    return boost(objective, H, algorithm=algorithm, step=step, n_rounds=n_rounds, output="last", **options)


def sizes(result):
    return result.history["step"][1:]


def lengths(result):
    """‖h_t‖ of each round, from the model itself."""
    found = []
    path = result.path
    for i, eta in enumerate(sizes(result)):
        F = np.zeros((N, len(path.start)))
        for weight, h in path.terms[path.ends[i] : path.ends[i + 1]]:
            h.add_to(F, path.mapper.prepare(X), weight)
        found.append(SPACE.norm(F) / eta if eta > 0.0 else math.nan)
    return np.array(found)


def test_schedules():
    t = np.arange(1, 11)
    np.testing.assert_allclose(sizes(run(HalfSquared(), Constant(0.3))), 0.3)
    np.testing.assert_allclose(sizes(run(HalfSquared(), InverseSqrt(0.3))), 0.3 / np.sqrt(t))
    np.testing.assert_allclose(sizes(run(HalfSquared(), InverseTime(0.3))), 0.3 / t)


def test_inverse_time_from_strong_convexity():
    t = np.arange(1, 11)
    np.testing.assert_allclose(sizes(run(HalfSquared(), "inverse_time")), 1 / t)
    np.testing.assert_allclose(sizes(run(Absolute(), "inverse_time", l2=0.25)), 4 / t)
    with pytest.raises(ValueError, match=r"'inverse_time' needs a scale .* or a strongly convex objective"):
        run(Absolute(), "inverse_time")


def test_polyak():
    result = run(MulticlassHinge(), Polyak(0.5))
    gaps = result.history["objective"][:-1]
    np.testing.assert_allclose(sizes(result), 0.5 * gaps / lengths(result) ** 2, rtol=1e-9)


def test_polyak_with_a_target():
    result = run(MulticlassHinge(), Polyak(2.0, target=0.8), n_rounds=20)
    gaps = np.maximum(result.history["objective"][:-1] - 0.8, 0.0)
    moved = gaps > 0
    assert 0 < moved.sum() < len(gaps)  # it gets below the target, and stays
    np.testing.assert_allclose(sizes(result)[moved], 2 * gaps[moved] / lengths(result)[moved] ** 2, rtol=1e-9)
    np.testing.assert_array_equal(sizes(result)[~moved], 0.0)


def test_polyak_in_error_feedback_subtracts_the_correlation_with_the_residual():
    """Theorem F: (R − R* − ⟨∇, e⟩)/‖∇‖² with a dense set, where nothing is projected on a span."""
    atoms = rng.normal(size=(4, N, 1))
    objective = Absolute().bind(Y, SPACE)
    H = FiniteSet(atoms, SPACE)
    result = boost(objective, H, algorithm="error_feedback", step="polyak", n_rounds=6, output="last")
    F, e = objective.scores(H.inputs, objective.start()), np.zeros((N, 1))
    for i, eta in enumerate(sizes(result)):
        G = F.gradient().values
        expected = max(F.value() - SPACE.inner(G, e), 0.0) / SPACE.norm(G) ** 2
        assert eta == pytest.approx(expected, rel=1e-9)
        moved = result.path.truncate(i + 1).predict(np.arange(N))
        e = e + eta * G + (moved - F.F)
        F.restore((moved, []))


def test_adanorm():
    result = run(MulticlassHinge(), AdaNorm(0.7), algorithm="residual")
    np.testing.assert_allclose(sizes(result), 0.7 / np.sqrt(np.cumsum(lengths(result) ** 2)), rtol=1e-9)


def test_line_search_of_a_quadratic():
    """The projection of the gradient of ½‖F − y‖² is the best step itself."""
    np.testing.assert_allclose(sizes(run(HalfSquared(), "line_search")), 1.0, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e-5, 1.0, 1e5])
def test_line_search_finds_the_minimum_in_any_unit(unit):
    """Each step is at least as good as any other along the same direction; the objective never rises."""
    result = run(Absolute(), LineSearch(), unit=unit, n_rounds=6)
    assert (np.diff(result.history["objective"]) <= 1e-15 * unit).all()
    objective = Absolute().bind(unit * Y, SPACE)
    for i, eta in enumerate(sizes(result)):
        before = result.path.truncate(i).predict(X)
        h = result.path.truncate(i + 1).predict(X) - before
        assert eta > 0.0
        best = min(objective.value(before + a * h) for a in np.linspace(0.0, 3.0, 301))
        assert result.records[i + 1].objective <= best + 1e-6 * unit


def test_line_search_never_rises_with_residual():
    result = run(MulticlassHinge(), "line_search", algorithm="residual", n_rounds=20)
    assert (np.diff(result.history["objective"]) <= 1e-12).all()


@pytest.mark.parametrize("unit", [1e5, 1e-5])
@pytest.mark.parametrize("step", ["auto", "polyak", "line_search"])
@pytest.mark.parametrize("algorithm", ["naive", "residual"])
def test_no_unit(step, algorithm, unit):
    """Rules without a scale multiply the predictions by 1e5 when y is."""
    for loss, power in ((Absolute(), 1), (HalfSquared(), 2)):
        a, b = (run(loss, step, algorithm, unit=u, random_state=0) for u in (1.0, unit))
        first, scaled = a.path.truncate(1).predict(X), b.path.truncate(1).predict(X)
        np.testing.assert_allclose(scaled, unit * first, rtol=1e-5, atol=1e-5 * unit)
        # Later on kinks amplify rounding.
        early = slice(0, 5)
        objectives = a.history["objective"][early]
        np.testing.assert_allclose(b.history["objective"][early], unit**power * objectives, rtol=1e-3)


# --- how auto begins ---------------------------------------------------------------------------------------

STRONG, WEAK = Additive(max_bins=16, n_steps=20, smooth=False), Stump(max_bins=2)
REGRESSION, CLASSIFICATION = (HalfSquared(), Absolute()), (MulticlassHinge(), Softmax())


class First:
    """The first round of a run: where it stands, its direction, and R along it."""

    def __init__(self, loss, learner, noise=0.0, unit=1.0):
        y = Y + noise * np.random.default_rng(1).normal(size=N)
        y = np.digitize(y, [-0.5, 0.5]) if loss.task == "classification" else unit * y
        objective, H = loss.bind(y, SPACE), learner.bind(X, SPACE)
        self.scores = objective.scores(H.inputs, objective.start())
        delta = H.zero(objective.n_outputs)
        delta.add(self.scores.gradient())
        self.h = delta.project(rng)
        self.ray = self.scores.along(self.h * (-1.0 / self.h.norm))
        self.bound = self.scores.value() / (math.sqrt(2) * self.scores.gradient().norm)  # all floors are 0

    def begin(self):
        memory = {}
        move = Auto()(1, self.scores, self.h, memory)
        assert move.size * self.h.norm == pytest.approx(memory["a"], rel=1e-12)
        assert move.direction.norm == pytest.approx(memory["a"], rel=1e-12)
        assert move.shrink == 1.0
        return memory["a"]


@pytest.mark.parametrize("loss", REGRESSION + CLASSIFICATION, ids=lambda loss: loss.name)
def test_auto_begins_near_the_minimum_of_a_strong_direction(loss):
    first = First(loss, Additive(max_bins=6, n_steps=20, smooth=False), noise=0.3)
    minimiser = search(first.scores, first.h) * first.h.norm
    assert minimiser / 4 <= first.begin() <= 2 * minimiser
    if loss.name != "absolute":  # elsewhere the distance bound alone would be too short
        assert first.bound < minimiser / 2


@pytest.mark.parametrize("loss", REGRESSION + CLASSIFICATION, ids=lambda loss: loss.name)
@pytest.mark.parametrize("learner", [STRONG, WEAK], ids=["strong", "weak"])
@pytest.mark.parametrize("noise", [0.0, 1.0, 10.0])
def test_auto_doubles_its_first_step_while_that_helps(loss, learner, noise):
    first = First(loss, learner, noise)
    a = first.begin()
    doublings = round(math.log2(a / first.bound))
    assert a == pytest.approx(2**doublings * first.bound, rel=1e-12)
    start = first.scores.value()
    gains = [start - first.ray(2**i * first.bound) for i in range(doublings + 2)]
    for before, after in itertools.pairwise(gains[:-1]):
        assert after > max(DOUBLE * before, 1e-9 * start)
    assert gains[-1] <= max(DOUBLE * gains[-2], 1e-9 * start)


@pytest.mark.parametrize("loss", REGRESSION, ids=lambda loss: loss.name)
def test_auto_keeps_the_distance_bound_where_doubling_does_not_help(loss):
    first = First(loss, WEAK, noise=10.0)
    assert first.ray(2 * first.bound) > first.ray(first.bound)
    assert first.begin() == first.bound


@pytest.mark.parametrize("learner", [STRONG, WEAK], ids=["strong", "weak"])
@pytest.mark.parametrize("loss", REGRESSION, ids=lambda loss: loss.name)
@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_the_first_step_of_auto_has_the_unit_of_y(loss, learner, unit):
    assert First(loss, learner, unit=unit).begin() == unit * First(loss, learner).begin()


def test_auto_begins_once():
    """In the first round only, and not where the direction comes after the step, or there is none."""
    first = First(HalfSquared(), STRONG)
    F, before = first.scores.F.copy(), first.scores.value()
    memory = {}
    Auto()(1, first.scores, ZERO, memory)
    assert memory["a"] == first.bound
    Auto()(2, first.scores, first.h, memory)
    assert memory["a"] == first.bound
    memory = {}
    Auto().size(1, first.scores, first.h.norm, memory)
    assert memory["a"] == first.bound
    assert first.begin() > first.bound
    np.testing.assert_array_equal(first.scores.F, F)  # looking ahead moves nothing
    assert first.scores.value() == before


@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated"])
def test_auto_with_a_strong_learner(algorithm):
    """The first round of a run is that step, and the rest follows from it."""
    first = First(HalfSquared(), STRONG)
    result = boost(
        HalfSquared().bind(Y, SPACE), STRONG.bind(X, SPACE), algorithm=algorithm, n_rounds=3, output="last"
    )
    assert result.records[1].step == pytest.approx(first.begin() / first.h.norm, rel=1e-12)
    assert result.records[1].objective == pytest.approx(first.ray(first.begin()), rel=1e-9)
    assert result.records[1].objective < first.ray(first.bound)


def test_auto_does_not_run_to_a_minimum_at_infinity():
    """Separable classes: R falls along the whole line, but most of it is gained early."""
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    space = FunctionSpace.of(20)
    result = boost(Softmax().bind((x[:, 0] > 0).astype(int), space), Stump().bind(x, space), n_rounds=1)
    start, after = (record.objective for record in result.records)
    assert 0.001 * start < after < 0.4 * start


@pytest.mark.parametrize("step", STEPS)
def test_nothing_to_do(step):
    """Targets that the start already meets: no step fails on a gradient of 0."""
    space, H = FunctionSpace.of(4), Stump().bind(X[:4], FunctionSpace.of(4))
    spec = "inverse_time:1" if step == "inverse_time" else step
    for loss, y in ((Absolute(), np.ones(4)), (HalfSquared(), np.ones(4))):
        result = boost(loss.bind(y, space), H, step=spec, n_rounds=5)
        assert result.records[-1].objective == 0.0
        np.testing.assert_array_equal(result.model.predict(X[:4]), 1.0)


@pytest.mark.parametrize("cls", [Constant, InverseSqrt, InverseTime, AdaNorm])
@pytest.mark.parametrize("scale", [0, -1.0, math.inf, math.nan, "big"])
def test_scale_must_be_positive(cls, scale):
    with pytest.raises(ValueError, match=rf"`scale` of a step must be positive, got {scale!r}"):
        cls(scale)


@pytest.mark.parametrize("scale", [np.float32(0.5), np.int64(2), np.float64(0.1)])
def test_numpy_numbers_are_numbers(scale):
    assert Constant(scale).scale == scale


@pytest.mark.parametrize("factor", [0, -1.0, math.nan])
def test_factor_of_polyak_must_be_positive(factor):
    with pytest.raises(ValueError, match=rf"`factor` of a step must be positive, got {factor!r}"):
        Polyak(factor)


def test_steps_lower_smooth_objectives():
    """A sanity check of every rule on an easy problem."""
    for step in STEPS:
        spec = f"{step}:0.5" if step in ("inverse_time", "inverse_sqrt", "constant", "adanorm") else step
        result = run(Softmax(), spec, n_rounds=40)
        assert result.records[-1].objective < 0.9 * result.records[0].objective, step
