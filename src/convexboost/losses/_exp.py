"""exp f, continued by its tangent where it would overflow: finite, convex, and seldom another value."""

from __future__ import annotations

import numpy as np
from scipy.special import wrightomega

from convexboost.core.space import Array

#: Beyond it exp is a straight line; squares of its slope are still finite.
LIMIT = 300.0


def exponential(F: Array) -> tuple[Array, Array]:
    """Return the continued exp and its derivative."""
    slope = np.exp(np.minimum(F, LIMIT))
    return slope * (1.0 + np.maximum(F - LIMIT, 0.0)), slope


def prox_exponential(F: Array, size: float) -> Array:
    """argmin_x exp x + (x − F)²/(2 size): the root of x + size · exp x = F."""
    omega = wrightomega(F + np.log(size))
    # ω + log ω = F + log size gives x twice; the form without cancellation is taken.
    root = np.where(omega > 1.0, np.log(np.maximum(omega, 1.0)) - np.log(size), F - omega)
    return np.maximum(root, F - size * np.exp(LIMIT))  # the slope never exceeds exp LIMIT
