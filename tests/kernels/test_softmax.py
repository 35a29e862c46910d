import numpy as np
from scipy.special import log_softmax, softmax

from convexboost.core.space import FunctionSpace
from convexboost.losses.softmax import Softmax


def test_same_as_scipy_also_far_from_zero():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 30.0, 1e3):
        F, y = scale * rng.normal(size=(40, 5)), rng.integers(0, 5, 40)
        losses, G = Softmax().evaluate(F, y)
        np.testing.assert_allclose(losses, -log_softmax(F, axis=1)[np.arange(40), y], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(G, softmax(F, axis=1) - np.eye(5)[y], atol=1e-14)


def test_move_and_evaluate():
    rng = np.random.default_rng(1)
    F, y, space = rng.normal(size=(30, 3)), rng.integers(0, 3, 30), FunctionSpace.of(30)
    codes, table = rng.integers(0, 4, 30).astype(np.uint8), rng.normal(size=(4, 3))
    moved = F + table[codes]
    value, gradient = Softmax().advance(F, y, space, (codes, table), None, 1)
    np.testing.assert_array_equal(F, moved)
    losses, G = Softmax().evaluate(moved, y)
    assert value == space.mean(losses)
    np.testing.assert_array_equal(gradient.values, G)
