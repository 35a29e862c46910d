import numpy as np
import pytest

from convexboost.core.hypotheses import Direction, Hypothesis, Move
from convexboost.core.space import FunctionSpace
from convexboost.losses._leaves import residual_sign, weighted_quantile
from convexboost.losses.half_squared import HalfSquared


class Rows(Hypothesis):
    """A hypothesis known by its values at the rows."""

    def __init__(self, values):
        self.values = values

    def add_to(self, F, inputs, weight):
        F += weight * self.values


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def scores(rng):
    space = FunctionSpace.of(6, rng.uniform(1, 2, 6))
    objective = HalfSquared().bind(rng.normal(size=(6, 2)), space)
    return objective.scores(None, np.array([1.0, -1.0]))


def direction(rng, factor=1.0):
    return Direction(((factor, Rows(rng.normal(size=(6, 2)))),), 1.0)


def test_move_shrinks_towards_the_start_and_adds(scores, rng):
    a, b = direction(rng), direction(rng, 0.5)
    scores.move(Move(a, 1.0))
    scores.move(Move(b, 1.0, shrink=0.25))
    expected = np.array([1.0, -1.0]) + 0.25 * a.terms[0][1].values + 0.5 * b.terms[0][1].values
    np.testing.assert_allclose(scores.F, expected, rtol=1e-14)


def test_value_and_gradient_follow_a_move(scores, rng):
    before = scores.value(), scores.gradient().values
    scores.move(Move(direction(rng), 1.0))
    assert scores.value() != before[0]
    assert not np.array_equal(scores.gradient().values, before[1])


def test_along_and_rescaled_do_not_move(scores, rng):
    scores.move(Move(direction(rng), 1.0))
    before, F, value, h = scores.state(), scores.F.copy(), scores.value(), direction(rng)
    ray = scores.along(h)
    at_two, at_half = ray(2.0), scores.rescaled(0.5)
    assert ray(0.0) == pytest.approx(value)
    np.testing.assert_array_equal(scores.F, F)
    assert scores.value() == value
    scores.move(Move(h * 2.0, 1.0))
    assert scores.value() == pytest.approx(at_two, rel=1e-12)
    scores.restore(before)
    scores.move(Move(Direction((), 0.0), 0.0, shrink=0.5))
    assert scores.value() == pytest.approx(at_half, rel=1e-12)


def test_distance_is_from_the_start(scores, rng):
    assert scores.distance() == 0.0
    h = direction(rng)
    scores.move(Move(h, 1.0))
    assert scores.distance() == pytest.approx(scores.objective.space.norm(h.terms[0][1].values))


def test_state_is_independent_of_later_moves(scores, rng):
    value, state = scores.value(), scores.state()
    scores.move(Move(direction(rng), 1.0))
    moved = scores.value()
    scores.restore(state)
    assert scores.value() == value
    scores.move(Move(direction(rng), 1.0))
    scores.restore(state)
    assert scores.value() == value != moved


def test_offset_is_fixed(rng):
    space, offset = FunctionSpace.of(6), rng.normal(size=(6, 2))
    scores = HalfSquared().bind(rng.normal(size=(6, 2)), space).scores(None, np.ones(2), offset)
    scores.move(Move(direction(rng), 1.0))
    scores.move(Move(Direction((), 0.0), 0.0, shrink=0.0))
    np.testing.assert_allclose(scores.F, 1.0 + offset, rtol=1e-14)


def test_residual_sign():
    F = np.array([[2.0, 1.0, 1.0, 1.0 + 1e-15, 1e9 + 1e-6, 1e9 + 1e-4, 1e-20]])
    y = np.array([[1.0, 2.0, 1.0, 1.0, 1e9, 1e9, 2e-20]])
    np.testing.assert_array_equal(residual_sign(F, y), [[1.0, -1.0, 0.0, 0.0, 0.0, 1.0, -1.0]])


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.9])
def test_weighted_quantile(q, rng):
    """The smallest value with at least a share q of the weight at or below it."""
    y, weight = np.round(rng.normal(size=(50, 2)), 1), rng.integers(1, 5, 50).astype(float)
    found = weighted_quantile(y, FunctionSpace.of(50, weight), q)
    for k in range(2):
        reached = [value for value in y[:, k] if weight[y[:, k] <= value].sum() >= q * weight.sum() - 1e-9]
        assert found[k] == min(reached)


def test_weighted_quantile_of_repeated_rows(rng):
    """Rounding of the cumulated weights does not move it: shares such as 3/10 · 10 are reached exactly."""
    for n in range(2, 40):
        y, counts = rng.normal(size=(n, 1)), rng.integers(1, 4, n)
        repeated = np.repeat(y, counts, axis=0)
        for q in (0.1, 0.25, 0.3, 0.5, 0.7, 0.9):
            weighted = weighted_quantile(y, FunctionSpace.of(n, counts), q)
            assert weighted == weighted_quantile(repeated, FunctionSpace.of(len(repeated)), q)
