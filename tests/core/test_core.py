import math
import pickle

import numpy as np
import pytest

from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import ZERO, Direction, Hypothesis, Move, merge
from convexboost.core.model import AdditiveModel
from convexboost.core.space import FunctionSpace


class Monomial(Hypothesis):
    """x ↦ x^power in every output.  Monomials of one power can be merged."""

    def __init__(self, power):
        self.power = power

    def add_to(self, F, inputs, weight):
        F += weight * inputs[:, None] ** self.power

    @classmethod
    def merge(cls, terms):
        powers = {}
        for weight, h in terms:
            powers[h.power] = powers.get(h.power, 0.0) + weight
        return [(weight, cls(power)) for power, weight in powers.items()]


class Alone(Monomial):
    """The same, but not merged."""

    @classmethod
    def merge(cls, terms):
        return terms


class Identity:
    def prepare(self, X):
        return X


X = np.linspace(-1.0, 2.0, 7)
MOVES = [
    Move(Direction(((0.5, Monomial(1)),), 1.0), 0.5),
    Move(Direction(((1.0, Monomial(2)), (-0.3, Alone(1)), (0.2, Monomial(1))), 1.0), 0.1, shrink=0.5),
    Move(ZERO, 0.0),
    Move(Direction(((-2.0, Alone(3)),), 1.0), 2.0, shrink=0.8),
]


def value(direction):
    F = np.zeros((len(X), 2))
    direction.add_to(F, X)
    return F


@pytest.fixture
def path():
    """The model and the scores after each round, moved as `Scores.move` does."""
    start = np.array([1.0, -2.0])
    model, F = AdditiveModel(start, Identity()), np.tile(start, (len(X), 1))
    points = [F.copy()]
    for move in MOVES:
        model.append(move)
        F = start + move.shrink * (F - start) + value(move.direction)
        points.append(F)
    return model, points


# --- function space ----------------------------------------------------------------------------------------


def test_weights_sum_to_one_and_do_not_depend_on_their_unit():
    weight = np.array([1.0, 2.0, 5.0])
    a, b = FunctionSpace.of(3, weight), FunctionSpace.of(3, 1e6 * weight)
    np.testing.assert_allclose(a.weight, [0.125, 0.25, 0.625])
    np.testing.assert_allclose(a.weight, b.weight)
    np.testing.assert_array_equal(FunctionSpace.of(4).weight, 0.25)


def test_inner_norm_and_mean():
    space = FunctionSpace.of(2, np.array([1.0, 3.0]))
    F, G = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [-1.0, 2.0]])
    assert space.inner(F, G) == pytest.approx(0.25 * 1.0 + 0.75 * 5.0)
    assert space.norm(F) == pytest.approx(math.sqrt(0.25 * 5.0 + 0.75 * 25.0))
    assert space.mean(np.array([4.0, 8.0])) == 7.0
    assert space.n_samples == 2


def test_gradient_divides_partials_by_the_weight():
    """R = Σ p_n f_n²/2 has partials p_n f_n and functional gradient f_n."""
    space, F = FunctionSpace.of(3, np.array([1.0, 2.0, 5.0])), np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(space.gradient(space.weight[:, None] * F), F)


def test_norm_of_a_gradient():
    space, F = FunctionSpace.of(3), np.arange(6.0).reshape(3, 2)
    assert Gradient(F, space).norm == space.norm(F)


# --- directions --------------------------------------------------------------------------------------------


def test_multiples_of_a_direction():
    h = Direction(((2.0, Monomial(1)), (1.0, Alone(2))), 3.0, 0.5, 0.7)
    for other, factor in ((h * -2.0, -2.0), (-2.0 * h, -2.0), (-h, -1.0), (h * 0.0, 0.0)):
        np.testing.assert_allclose(value(other), factor * value(h))
        assert other.norm == abs(factor) * 3.0
        assert (other.edge, other.intrinsic_edge) == (0.5, 0.7)
        assert other.n_weak_learners == 2


def test_zero():
    assert (ZERO.norm, ZERO.n_weak_learners) == (0.0, 0)
    np.testing.assert_array_equal(value(ZERO), 0.0)
    np.testing.assert_array_equal(value(-ZERO * 3.0), 0.0)


def test_merge_by_kind():
    terms = [(1.0, Monomial(1)), (2.0, Alone(1)), (3.0, Monomial(1)), (4.0, Monomial(2)), (5.0, Alone(1))]
    merged = merge(terms)
    assert len(merged) == 4
    np.testing.assert_allclose(value(Direction(tuple(merged), 0.0)), value(Direction(tuple(terms), 0.0)))
    assert merge([]) == []


# --- additive models ---------------------------------------------------------------------------------------


def test_model_replays_the_moves(path):
    model, points = path
    assert model.n_rounds == 4
    np.testing.assert_allclose(model.predict(X), points[-1], rtol=1e-12)


def test_stages(path):
    model, points = path
    stages = list(model.staged_predict(X))
    assert len(stages) == 4
    for stage, point in zip(stages, points[1:], strict=True):
        np.testing.assert_allclose(stage, point, rtol=1e-12)


def test_stages_are_independent_arrays(path):
    stages = path[0].staged_predict(X)
    first = next(stages)
    kept = first.copy()
    first += 1.0
    second = next(stages)
    np.testing.assert_allclose(second, path[1][2], rtol=1e-12)
    assert not np.array_equal(first, kept)


@pytest.mark.parametrize("n_rounds", range(5))
def test_truncated(path, n_rounds):
    model, points = path
    short = model.truncate(n_rounds)
    assert short.n_rounds == n_rounds
    np.testing.assert_allclose(short.predict(X), points[n_rounds], rtol=1e-12)


def test_truncated_model_grows_alone(path):
    model, points = path
    short = model.truncate(2)
    short.append(MOVES[0])
    np.testing.assert_allclose(model.predict(X), points[-1], rtol=1e-12)


def test_a_model_that_grows_after_a_prediction(path):
    model, points = path
    short = model.truncate(2)
    short.predict(X)
    for move in MOVES[2:]:
        short.append(move)
    np.testing.assert_allclose(short.predict(X), points[-1], rtol=1e-12)


def test_a_prediction_does_not_add_to_the_pickle(path):
    model, _ = path
    before = pickle.dumps(model)
    F = model.predict(X)
    after = pickle.dumps(model)
    assert after == before
    np.testing.assert_array_equal(pickle.loads(after).predict(X), F)


@pytest.mark.parametrize("n_rounds", [-1, 5])
def test_truncated_outside(path, n_rounds):
    with pytest.raises(ValueError, match=rf"`n_rounds` must lie between 0 and 4, got {n_rounds}"):
        path[0].truncate(n_rounds)


@pytest.mark.parametrize("n_rounds", range(5))
def test_average_of_the_points_where_a_subgradient_was_taken(path, n_rounds):
    model, points = path
    average = model.truncate(n_rounds).average()
    expected = np.mean(points[: max(n_rounds, 1)], axis=0)
    np.testing.assert_allclose(average.predict(X), expected, rtol=1e-12)


def test_model_of_no_rounds():
    model = AdditiveModel(np.array([3.0]), Identity())
    np.testing.assert_array_equal(model.predict(X), np.full((7, 1), 3.0))
    assert list(model.staged_predict(X)) == []


def test_masses_of_a_part_are_those_of_its_rows():
    """Where weights can be counted, and where they cannot."""
    rng = np.random.default_rng(0)
    for weight in (rng.integers(2, 5, 40), rng.uniform(0.5, 2.0, 40)):
        space, kind = FunctionSpace.of(40, weight), rng.integers(0, 4, 40)
        for part, rows in ((space, slice(None)), (space.part(slice(10, 30)), slice(10, 30))):
            expected = np.bincount(kind[rows], space.weight[rows], 4)
            np.testing.assert_allclose(part.masses(kind[rows]), expected, rtol=1e-13)
