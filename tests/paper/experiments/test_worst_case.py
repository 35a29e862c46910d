"""Weak learners with exactly the edge that they are asked for."""

import numpy as np
import pytest

from convexboost.core.gradients import Gradient
from convexboost.core.space import FunctionSpace
from convexboost.learners.finite import FiniteSet
from convexboost.paper.worst_case import Coordinates, Miser, Scatter
from convexboost.registry import available

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow


def target_of(H, values):
    target = H.zero(values.shape[1])
    target.add(Gradient(values, H.space))
    return target


def random_case(seed, n_samples=9, n_outputs=2):
    rng = np.random.default_rng(seed)
    space = FunctionSpace.of(n_samples, rng.uniform(0.2, 2.0, n_samples))
    return space, rng.normal(size=(n_samples, n_outputs)) * rng.exponential(size=(n_samples, 1)) ** 3


@pytest.mark.parametrize("edge", [0.05, 0.3, 0.7, 0.99, 1.0])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", [Scatter, Miser])
def test_the_edge_is_exact(kind, seed, edge):
    """Also where one point alone has a larger edge."""
    space, values = random_case(seed)
    target = target_of(kind(space, edge), values)
    for _ in range(5):  # and for what is left over
        h = target.project(np.random.default_rng(seed))
        assert h.edge == pytest.approx(edge, rel=1e-6)
        target.subtract(h)
        if edge == 1.0:
            break


def test_the_miser_touches_few_points():
    space = FunctionSpace.of(16)
    h = Miser(space, 0.5).fit(np.ones((16, 1)), np.random.default_rng(0))
    assert np.flatnonzero(h.evaluate(np.arange(16))[:, 0]).tolist() == [0, 1, 2, 3]
    shuffled = Miser(space, 0.5, seed=3)
    assert sorted(shuffled.order) == list(range(16))
    assert np.array_equal(shuffled.order, Miser(space, 0.5, seed=3).order)


def test_one_point_has_edge_one():
    space = FunctionSpace.of(1)
    for kind in (Scatter, Miser):
        assert target_of(kind(space, 0.5), np.ones((1, 1))).project(np.random.default_rng(0)).edge == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_coordinates_are_the_finite_set(seed):
    space, values = random_case(seed, n_outputs=1)
    ours = target_of(Coordinates(space), values).project(np.random.default_rng(0))
    slow = target_of(FiniteSet(np.eye(9)[:, :, None], space), values).project(np.random.default_rng(0))
    assert (ours.norm, ours.edge) == pytest.approx((slow.norm, slow.edge))


@pytest.mark.parametrize("edge", [0.0, -0.1, 1.1, np.nan])
def test_an_impossible_edge_is_refused(edge):
    with pytest.raises(ValueError, match=r"`edge` must lie in \(0, 1\]"):
        Miser(FunctionSpace.of(3), edge)


def test_they_are_not_offered_to_users():
    assert not {"Scatter", "Miser", "Coordinates"} & {
        c.__name__ for c in available("convexboost.learners").values()
    }
