"""The compiled search for the best mean of cuts against a slow twin, compiled and not."""

import math

import numpy as np
import pytest

from convexboost.kernels.cuts import exchange_weights


def slow(constants, products, weights, steps, l2, radius):
    """One exchange of weight after the other, in NumPy."""
    w, Qw = weights.copy(), products @ weights
    for _ in range(steps):
        s = float(w @ Qw)
        rate = 1.0 / l2 if l2 > 0.0 else radius / math.sqrt(max(s, 1e-300))
        slopes = constants - rate * Qw
        to, used = int(np.argmax(slopes)), np.flatnonzero(w > 0.0)
        origin = int(used[np.argmin(slopes[used])])
        if slopes[to] - slopes[origin] <= 1e-13 * max(abs(slopes[to]), abs(slopes[origin])):
            break
        difference = products[to] - products[origin]
        rise, q = constants[to] - constants[origin], Qw[to] - Qw[origin]
        c = difference[to] - difference[origin]
        if l2 > 0.0:
            size = (l2 * rise - q) / c if c > 0.0 else math.inf
        elif (rise / radius) ** 2 >= c:
            size = math.inf
        else:
            slope = rise / radius
            size = (slope * math.sqrt(max(s - q * q / c, 0.0) / (1.0 - slope * slope / c)) - q) / c
        size = min(max(size, 0.0), float(w[origin]))
        if size == 0.0:
            break
        w[to] += size
        w[origin] = 0.0 if size == w[origin] else w[origin] - size
        Qw = Qw + size * difference
    return w


@pytest.mark.parametrize(("l2", "radius"), [(0.3, math.inf), (0.0, 2.0), (0.0, 1e-3)])
@pytest.mark.parametrize("seed", range(5))
def test_like_the_slow_twin(l2, radius, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    slopes = rng.normal(size=(n, 12))
    constants, products, weights = rng.normal(size=n), slopes @ slopes.T, rng.dirichlet(np.ones(n))
    for steps in (0, 1, 3, 50):
        expected = slow(constants, products, weights, steps, l2, radius)
        w = weights.copy()
        exchange_weights(constants, products, w, products @ weights, steps, l2, radius)
        np.testing.assert_allclose(w, expected, rtol=1e-12, atol=1e-14)
        assert w.min() >= 0.0
        assert w.sum() == pytest.approx(1.0)
