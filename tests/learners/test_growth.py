"""Weights in whole numbers."""

import numpy as np
import pytest

from convexboost.core.space import FunctionSpace
from convexboost.kernels.trees.data import LARGEST
from convexboost.learners._growth import WholeWeights

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow


def counted(weight):
    return WholeWeights.of(FunctionSpace.of(len(weight), weight))


@pytest.mark.parametrize("scale", [1.0, 0.1, 1 / 3, 2.0**-40, 1e6])
@pytest.mark.parametrize("most", [2, 3, 10, 1000, 100_000])
@pytest.mark.parametrize("seed", range(5))
def test_multiples_of_a_unit_are_counted(scale, most, seed):
    """The smallest weight need not be the unit: 2 and 3 are counted in ones."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(max(most // 2, 1), most + 1, rng.integers(1, 300))
    found = counted(scale * counts)
    assert len(found.exact) == 0
    np.testing.assert_array_equal(found.whole, counts // np.gcd.reduce(counts))
    np.testing.assert_allclose(found.whole * found.unit, counts / counts.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    "weight",
    [
        np.random.default_rng(0).uniform(0.5, 1.0, 500),
        np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0]),
        np.array([1.0, 1e-10]),
        np.array([1e9, 1e9, 1.0]),
    ],
)
def test_others_are_rounded(weight):
    found = counted(weight)
    assert len(found.exact) == len(weight)
    assert found.whole.sum() <= LARGEST + len(weight) / 2
    share = weight / weight.sum()
    assert (np.abs(found.whole * found.unit - share) <= found.unit).all()


def test_the_order_of_weights_does_not_matter():
    rng = np.random.default_rng(0)
    for weight in (rng.integers(2, 9, 200) / 7, rng.uniform(size=200)):
        order = rng.permutation(200)
        a, b = counted(weight), counted(weight[order])
        np.testing.assert_array_equal(a.whole[order], b.whole)
