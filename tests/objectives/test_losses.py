"""The formulas, by hand.  What all losses share is in tests/contracts."""

import math

import numpy as np
import pytest

from convexboost.core import FunctionSpace
from convexboost.objectives.absolute import Absolute
from convexboost.objectives.half_squared import HalfSquared
from convexboost.objectives.multiclass_hinge import MulticlassHinge
from convexboost.objectives.quantile import Quantile
from convexboost.objectives.softmax import Softmax

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
