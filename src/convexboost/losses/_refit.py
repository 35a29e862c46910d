"""The leaf values that lower an objective most, by search: where there is no formula for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.space import Array
from convexboost.core.tolerances import ROUNDING

#: The value 0 counts like so many rows in a leaf whose best value is searched: a pure leaf would have none.
PRIOR_ROWS = 1.0
#: So much of a slope may be left: a step is a small part of the way in any case.
NEAR = 0.05
#: How often an objective is evaluated at most to refit a tree.
EVALUATIONS = 8
#: A slope this much smaller than at the start is rounding.
FLAT = 1e-9


class Place(NamedTuple):
    """Where leaves are refitted."""

    F: Array
    base: Array  #: what a ridge term pulls to
    gradient: Gradient | None  #: a subgradient at F without the ridge term, if known
    values: Array  #: of the leaves, in the direction found
    curvature: float  #: how R bends, in its own units
    n_threads: int


def damped_newton(first: Array, second: Array, prior: float, coupled: bool) -> Array:
    """Return leaf values from sums of derivatives: Newton's, shortened so that R cannot rise.

    For losses whose second derivative l″ changes by a factor of at most eˢ on a way of length s, a step of
    d = −l′/l″ shortened to log(1 + d) lowers Σ l: l′s + l″(eˢ − s − 1) is then smallest.  With outputs that
    are coupled as in softmax s is the range of the values, and Σ l″ over the outputs bounds half the Hessian
    (Gershgorin); log(1 + range)/range times Newton's step still lowers Σ l.
    """
    step = -first / np.maximum(second + prior, 1e-300)
    length = np.ptp(step, axis=1, keepdims=True) if coupled else np.abs(step)
    return step * np.where(length > 0.0, np.log1p(length) / np.maximum(length, 1e-300), 1.0)


def roots(
    slopes: Callable[[Array], Array],
    at_zero: Array,
    first: float,
    near: float = NEAR,
    evaluations: int = EVALUATIONS,
) -> Array:
    """Return a root ≥ 0 of each of many non-decreasing functions, by a few evaluations of them all.

    `at_zero` are their values at 0.
    Found is where at most a share `near` of the value at 0 is left.  It is never beyond the root (but for
    rounding), so that a convex function with these slopes has not risen; one without a root in sight stops at
    the last point tried, one that is not negative at 0 stays there.
    """
    count, low_slope = len(at_zero), at_zero
    low, high, at = np.zeros(count), np.full(count, np.inf), np.full(count, first)
    high_slope = np.full(count, np.nan)
    found, enough, rounding = ~(low_slope < 0.0), near * low_slope, FLAT * np.abs(low_slope)
    for _ in range(evaluations):
        if found.all():
            break
        slope = slopes(np.where(found, low, at))
        below = (slope <= rounding) & ~found  # rounding must not decide whether a root was met
        low, low_slope = np.where(below, at, low), np.where(below, slope, low_slope)
        high, high_slope = np.where(below, high, at), np.where(below, high_slope, slope)
        found |= below & (slope >= enough)
        with np.errstate(all="ignore"):
            share = (low_slope - enough / 2.0) / (low_slope - high_slope)
            inside = low + np.clip(np.nan_to_num(share, nan=0.5), 0.1, 0.9) * (high - low)
            at = np.where(np.isinf(high), 4.0 * at, inside)
    return low


def proximal_step(
    risk: Callable[[Array], tuple[float, Array]],
    mass: Array,
    n_outputs: int,
    size: float,
    evaluations: int = EVALUATIONS,
) -> Array:
    """Return leaf values v with R(v) < R(0), near argmin R(v) + ‖v‖²/(2 size); 0 if none was met.

    `risk` returns R and its gradient in the inner product ⟨u, v⟩ = Σ mass_l ⟨u_l, v_l⟩.  A bundle method: −v
    is `size` times the best mean of the gradients met so far and the new one (Kiwiel's aggregate cut, a
    Frank-Wolfe step on the dual), so it finds its way along a kink, where no single gradient descends.
    `size` is doubled while R falls and the way still leads down, and halved where R is above the start.
    """

    def inner(u: Array, v: Array) -> float:
        return float(np.einsum("l,lk,lk->", mass, u, v))

    best = np.zeros((len(mass), n_outputs))
    start, slope = risk(best)
    lowest = constant = start  # constant + ⟨slope, v⟩ is never above R(v)
    flat = FLAT * inner(slope, slope)  # rounding must not decide where nothing changes any more
    for _ in range(evaluations):
        v = -size * slope
        value, G = risk(v)
        if not math.isfinite(value):
            size /= 2.0
            continue
        if value < lowest - ROUNDING * abs(start):
            best, lowest = v, value
        rise, turn = value - inner(G, v) - constant, G - slope
        goes_on = value < start and inner(G, slope) > flat
        share = (rise - size * inner(slope, turn)) / max(size * inner(turn, turn), 1e-300)
        share = min(max(share, 0.0), 1.0)
        constant, slope = constant + share * rise, slope + share * turn
        size *= 2.0 if goes_on else 0.5 if value >= start else 1.0
    return best
