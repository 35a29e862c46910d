"""The best mean of some cuts: a quadratic, or square-root, program over the simplex."""

import math

import numpy as np

from convexboost.core.compiling import kernel


@kernel
def exchange_weights(constants, products, w, Qw, steps, l2, radius):
    """Improve the weights w in place: max Σ w a − gain(wᵀ Q w), where Qw = Q w is kept up to date.

    The gain of s is s/(2 l2) where l2 > 0, else radius √s.  Each step moves weight from the worst cut in use
    to the best one, as far as that pays.
    """
    for _ in range(steps):
        s = np.dot(w, Qw)
        rate = 1.0 / l2 if l2 > 0.0 else radius / math.sqrt(max(s, 1e-300))
        slopes = constants - rate * Qw
        to, origin = np.argmax(slopes), -1
        for i in range(len(w)):
            if w[i] > 0.0 and (origin < 0 or slopes[i] < slopes[origin]):
                origin = i
        if slopes[to] - slopes[origin] <= 1e-13 * max(abs(slopes[to]), abs(slopes[origin])):
            break
        difference = products[to] - products[origin]
        rise, q, c = (
            constants[to] - constants[origin],
            Qw[to] - Qw[origin],
            difference[to] - difference[origin],
        )
        size = _farthest(rise, s, q, c, l2, radius)
        size = min(max(size, 0.0), w[origin])
        if size == 0.0:
            break
        w[to] += size
        w[origin] = 0.0 if size == w[origin] else w[origin] - size
        Qw += size * difference


@kernel
def _farthest(rise, s, q, c, l2, radius):
    """argmax_θ rise · θ − gain(s + 2 q θ + c θ²)."""
    if l2 > 0.0:  # the vertex of a parabola
        return (l2 * rise - q) / c if c > 0.0 else math.inf
    slope = rise / radius
    if slope * slope >= c:  # radius √s never has the slope `rise`
        return math.inf
    return (slope * math.sqrt(max(s - q * q / c, 0.0) / (1.0 - slope * slope / c)) - q) / c
