"""A search for the constant that minimises a convex objective, for losses without a formula for it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog, minimize

from convexboost.core.space import Array
from convexboost.core.tolerances import BETTER, TIE

#: Returns R and its slope at a constant.
Risk = Callable[[Array], tuple[float, Array]]

#: A slope below this share of the largest slope met counts as 0.
FLAT = 1e-12
#: The search in a smooth objective has succeeded if the slope is below this share of the first one.
SMALL = 1e-7
MAX_CUTS = 60


def minimise(risk: Risk, n_outputs: int, targets: Array | None = None) -> Array:
    """Minimise R over constants, starting at 0; with one output, return the smallest minimiser.

    A minimiser within rounding of a target is replaced by that target: losses often have their kink there.
    """
    best = np.zeros(n_outputs)
    value = risk(best)[0]
    if not math.isfinite(value):
        return best
    if n_outputs > 1:
        found = _smooth(risk, best)
        if np.abs(risk(found)[1]).max() <= SMALL * max(np.abs(risk(best)[1]).max(), 1e-300):
            return found
    for attempt in (_by_coordinates, _cutting_planes)[: 1 if n_outputs == 1 else 2]:
        found = _snap(attempt(risk, best), targets)
        reached = risk(found)[0]
        if reached < value - BETTER * max(abs(value), 1e-300):
            best, value = found, reached
    return best


def _by_coordinates(risk: Risk, start: Array) -> Array:
    """Minimise one coordinate after the other: exact for a sum of losses of one output each."""
    found = start.copy()
    for k in range(len(start)):

        def slope(x: float, k: int = k) -> float:
            at = found.copy()
            at[k] = x
            return float(risk(at)[1][k])

        found[k] = _root(slope, found[k])
    return found


def _root(slope: Callable[[float], float], start: float) -> float:
    """Return the smallest x at which a non-decreasing slope is at least 0; `start` if there is none."""
    steepest = abs(slope(start))

    def negative(x: float) -> bool:
        nonlocal steepest
        s = slope(x)
        steepest = max(steepest, abs(s))
        return not s >= -FLAT * steepest

    low, high, width = start, start, 1.0
    while negative(high):
        low, high, width = high, high + width, 4 * width
        if width > 1e30:
            return start
    width = max(high - low, 1.0)
    while not negative(low):
        low, high, width = low - width, low, 4 * width
        if width > 1e30:
            return start
    while high - low > 1e-15 * max(abs(low), abs(high)):
        middle = low + (high - low) / 2
        if not low < middle < high or high - low < 1e-300:
            break
        low, high = (middle, high) if negative(middle) else (low, middle)
    return high


def _snap(found: Array, targets: Array | None) -> Array:
    """Replace numbers within rounding of a target by that target."""
    if targets is None or targets.shape[1:] not in ((1,), found.shape):
        return found
    nearest = np.take_along_axis(targets, np.abs(targets - found).argmin(axis=0)[None], axis=0)[0]
    close = np.abs(nearest - found) <= 1e3 * TIE * np.maximum(np.abs(nearest), np.abs(found))
    return np.where(close, nearest, found)


def _smooth(risk: Risk, start: Array) -> Array:
    """Minimise a smooth objective."""
    return minimize(risk, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-11}).x


def _cutting_planes(risk: Risk, start: Array) -> Array:
    """Minimise an objective with kinks: minimise all cuts so far, near the best point (Kelley 1960)."""
    best, box = start, 1.0
    value, slope = risk(best)
    slopes, constants = [slope], [value - slope @ best]
    for _ in range(MAX_CUTS):
        k = len(best)
        found = linprog(
            np.append(np.zeros(k), 1.0),
            A_ub=np.column_stack([np.array(slopes), -np.ones(len(slopes))]),
            b_ub=-np.array(constants),
            bounds=[*zip(best - box, best + box, strict=True), (None, None)],
        )
        if found.status != 0 or found.fun >= value - BETTER * max(abs(value), 1e-300):
            break
        at = best + _within(found.x[:k] - best, np.array(slopes))
        reached, slope = risk(at)
        slopes.append(slope)
        constants.append(reached - slope @ at)
        if reached < value:
            best, value, box = at, reached, box if np.abs(at - best).max() < box * 0.99 else 2 * box
        else:
            box = max(box / 2, 1e-12)
    return best


def _within(step: Array, slopes: Array) -> Array:
    """Drop the part of a step along which R does not change, such as the same number for all classes."""
    _, sizes, directions = np.linalg.svd(slopes, full_matrices=False)
    directions = directions[sizes > SMALL * max(sizes[0], 1e-300)]
    return directions.T @ (directions @ step)
