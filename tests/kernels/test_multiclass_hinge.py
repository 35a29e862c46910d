import numpy as np

from convexboost.core import KINK
from convexboost.objectives.multiclass_hinge import _evaluate
from tests import reference


def evaluate(F, y):
    losses, G = np.empty(len(F)), np.zeros(F.shape)
    _evaluate(F, y, KINK, losses, G)
    return losses, G


def test_same_as_the_formula():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        F, y = rng.normal(size=(50, 4)) * scale, rng.integers(0, 4, 50)
        losses, G = evaluate(F, y)
        twin_losses, twin_G = reference.multiclass_hinge(F, y)
        np.testing.assert_allclose(losses, twin_losses, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(G, twin_G)


def test_ties_and_exact_kinks():
    """Whole scores tie all the time; tied rivals share, and a loss of exactly 0 has subgradient 0."""
    rng = np.random.default_rng(1)
    F, y = rng.integers(-2, 3, (200, 3)).astype(float), rng.integers(0, 3, 200)
    losses, G = evaluate(F, y)
    twin_losses, twin_G = reference.multiclass_hinge(F, y)
    np.testing.assert_array_equal(losses, twin_losses)
    np.testing.assert_array_equal(G, twin_G)
    assert (losses == 0).any()


def test_rounding_does_not_decide():
    """Scores a rounding error away from a tie or the kink are treated as the tie or the kink."""
    y = np.array([0, 0, 0])
    F = np.array([[0.0, 0.5, 0.5 + 1e-13], [1.0 - 1e-13, 0.0, -1.0], [0.1 + 0.2, 0.3 - 1.0, -5.0]])
    _, G = evaluate(F, y)
    np.testing.assert_array_equal(G, [[-1.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
