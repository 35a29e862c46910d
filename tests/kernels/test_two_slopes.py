import numpy as np
import pytest

from convexboost.core.space import FunctionSpace
from convexboost.core.tolerances import BLOCK
from convexboost.losses.absolute import Absolute
from convexboost.losses.quantile import Quantile


@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.9)], ids=repr)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n", [30, 2 * BLOCK + 5])
def test_move_and_evaluate(n, n_outputs, loss):
    rng = np.random.default_rng(0)
    F, y = rng.normal(size=(2, n, n_outputs))
    space = FunctionSpace.of(n, rng.random(n))
    codes, table = rng.integers(0, 4, n).astype(np.int32), rng.normal(size=(4, n_outputs))
    y[:5] = (F + table[codes])[:5]  # at the kink
    moved = F + table[codes]
    value, gradient = loss.advance(F, y, space, (codes, table), None, 1)
    np.testing.assert_array_equal(F, moved)
    losses, G = loss.evaluate(moved, y)
    assert value == space.mean(losses)
    np.testing.assert_array_equal(gradient.values, G)
    assert not G[:5].any()
