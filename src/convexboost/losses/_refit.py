"""The leaf refit: new values for the leaves of a tree, such that R is about as small as they can make it.

`refit` takes a direction with one hypothesis that is constant on leaves, and returns the same hypothesis with
other values.  The values are −shifts: a move by −1 times the refitted direction adds a shift to the scores of
each leaf.  `best_shifts` finds them in one of five ways, the first that applies.

1. Rows are coupled, so leaves are too: a **proximal step** in the values of all leaves at once
   (`proximal_step`).

In the others R is a sum over the leaves, and each leaf has a problem of its own:

2. The loss has a **formula** for the best shift: medians of the residuals, say.
3. It has a formula and there is a ridge term: in each output the minimum lies between the formula and the
   minimum of the ridge term alone, and a search finds it.
4. The loss has second derivatives: a **Newton step**, shortened so that R cannot rise (`damped_newton`).
5. Else a **search along the leaf's gradient**, or along the direction found where its gradients are those of
   an envelope: these know more of the kinks (`_Trial.search`).

In 4 and 5 the value 0 counts like `PRIOR_ROWS` rows, because the best value of a pure leaf may be infinite.

A hypothesis may have constraints (monotone trees).  Leaves that must have the same value then get
`_common_value`, and the refit is given up if the constraints take away all that was gained.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Direction
from convexboost.core.space import Array
from convexboost.core.tolerances import ROUNDING
from convexboost.kernels.leaves import leaf_sums

if TYPE_CHECKING:
    from convexboost.losses._objective import BoundLoss, Pointwise
    from convexboost.losses._scores import LocalScores

#: The value 0 counts like this many rows in a leaf whose best value is searched.
PRIOR_ROWS = 1.0
#: The share of a slope that may be left by a search: a step goes only a small part of the way in any case.
NEAR = 0.05
#: The most evaluations of an objective for one refit.
EVALUATIONS = 8
#: A slope this much smaller than at the start is rounding.
FLAT = 1e-9


@dataclass
class Leaves:
    """The leaves of a direction, and the scores at which they are refitted."""

    objective: BoundLoss
    F: Array
    base: Array  #: the scores that a ridge term pulls to
    leaf: Any  #: of each row
    values: Array  #: of the leaves, in the direction found
    curvature: Callable[[], float]  #: a second derivative of R, for the first length that a search tries
    gradient: Gradient | None = None  #: a subgradient at F without the ridge term, if known
    n_threads: int = 1

    def __len__(self) -> int:
        return len(self.values)

    def sums(self, columns: Array) -> Array:
        """Return Σ p_n and, behind it, Σ p_n columns_n over the rows of each leaf."""
        return leaf_sums(columns, self.objective.space, self.leaf, len(self), n_threads=self.n_threads)

    def means(self, columns: Array) -> Array:
        """Return the mean of the rows of each leaf, 0 where it has none."""
        sums = self.sums(columns)
        return sums[:, 1:] / np.maximum(sums[:, :1], 1e-300)

    @property
    def prior(self) -> float:
        """Return the second derivative of the rows that the value 0 counts like."""
        return PRIOR_ROWS * self.objective.space.row * self.curvature()


def refit(scores: LocalScores, direction: Direction) -> Direction | None:
    """Return the direction with leaf values that make R[F − direction] about as small as they can.

    None where it has no leaves, or constraints on them leave nothing to gain that way.
    """
    if len(direction.terms) != 1:
        return None
    ((weight, h),) = direction.terms
    found = h.leaves(scores.inputs)
    if found is None:
        return None
    leaves = scores.leaves(found[0], weight * found[1])
    shifts = best_shifts(leaves)
    best = -shifts
    refitted = h.with_values(best, partial(_common_value, leaves, shifts))
    values = refitted.leaves(scores.inputs)[1]  # type: ignore[index]
    result = Direction(((1.0, refitted),), math.nan)  # not a projection, so its length is not needed
    is_best = values is best or np.array_equal(values, best)
    if not is_best and not scores.along(result)(-1.0) <= scores.value():
        return None
    return result


def best_shifts(leaves: Leaves) -> Array:
    """Return what to add to the scores of each leaf to lower R."""
    rows = leaves.objective.by_rows
    if rows is None:
        return _proximal(leaves)
    if rows.loss.has_best_shifts:
        formula = rows.loss.best_shifts(leaves.F, rows.y, rows.space, leaves.leaf, len(leaves))
        return formula if leaves.objective.l2 == 0.0 else _between(formula, leaves, rows)
    if rows.loss.has_curvatures:
        return _newton(leaves, rows)
    return _along_gradient(leaves, rows)


def _common_value(leaves: Leaves, shifts: Array, chosen: Any, k: int) -> float:
    """Return the best value, in output k, that the chosen leaves can have in common.

    Where there is no formula for it, the mean of their best values.
    """
    rows = leaves.objective.by_rows
    if rows is not None and rows.loss.has_best_shifts and leaves.objective.l2 == 0.0:
        inside = np.flatnonzero(np.isin(leaves.leaf, chosen))
        one = np.zeros(len(inside), np.int64)
        found = rows.loss.best_shifts(leaves.F[inside], rows.y[inside], rows.space.take(inside), one, 1)
        return -float(found[0, k])
    mass = leaves.objective.space.masses(leaves.leaf, len(leaves))[chosen]
    return -float(np.average(shifts[chosen, k], weights=np.maximum(mass, 1e-300)))


# -- five ways ----------------------------------------------------------------------------------------------


def _proximal(leaves: Leaves) -> Array:
    """Lower R in the values of all leaves at once."""
    objective, leaf, l2 = leaves.objective, leaves.leaf, leaves.objective.l2
    mass = objective.space.masses(leaf, len(leaves))

    def risk(shifts: Array) -> tuple[float, Array]:
        F = leaves.F + shifts[leaf]
        value, G = objective.evaluate(F)
        value += l2 / 2 * objective.space.norm(F - leaves.base) ** 2
        return value, leaves.means(G + l2 * (F - leaves.base))

    return proximal_step(risk, mass, objective.n_outputs, 1.0 / leaves.curvature())


def _between(formula: Array, leaves: Leaves, rows: Pointwise) -> Array:
    """Search between the formula and the minimum of the ridge term.

    Losses with a formula are sums over the outputs, so each output is searched on its own.
    """
    trial = _Trial(leaves, rows, prior=0.0)  # the best values are finite
    ridge = leaves.means(leaves.base - leaves.F)
    ends = np.minimum(formula, ridge), np.maximum(formula, ridge)
    return trial.search(np.where(trial.slopes_at_zero > 0.0, *ends), 1.0, apart=True)


def _newton(leaves: Leaves, rows: Pointwise) -> Array:
    """Make a damped Newton step from the sums of first and second derivatives in each leaf."""
    G, l2 = _gradient(leaves, rows).values, leaves.objective.l2
    C = rows.curvatures(G, leaves.n_threads)
    if l2 > 0.0:
        G, C = G + l2 * (leaves.F - leaves.base), C + l2
    first, second = (leaves.sums(derivatives)[:, 1:] for derivatives in (G, C))
    return damped_newton(rows.loss.newton_steps * first, second, leaves.prior, rows.loss.couples_outputs)


def _along_gradient(leaves: Leaves, rows: Pointwise) -> Array:
    """Search along the gradient of each leaf, or along the direction found."""
    trial, first = _Trial(leaves, rows, leaves.prior), 1.0 / leaves.curvature()
    toward = -trial.slopes_at_zero / np.maximum(trial.mass, 1e-300)
    if leaves.objective.envelope > 0.0:
        toward = -leaves.values
    if rows.n_outputs > 1 and not rows.has_classes:
        # Outputs with targets of their own may be far from them in different units, so each is searched on
        # its own first.  As a rule that is the minimum; if it is not, the search below keeps R from rising.
        toward, first = trial.search(toward, first, apart=True), 1.0
    return trial.search(toward, first)


class _Trial:
    """Scores that are moved leaf by leaf, and the slopes of R there."""

    def __init__(self, leaves: Leaves, rows: Pointwise, prior: float) -> None:
        self.leaves, self.rows, self.prior = leaves, rows, prior
        self.gradient = _gradient(leaves, rows)
        sums = self._sums(leaves.F)
        self.mass, self.slopes_at_zero = sums[:, :1], sums[:, 1:]
        self.F, self.shifts = leaves.F.copy(), np.zeros((len(leaves), rows.n_outputs))

    def _sums(self, F: Array) -> Array:
        """Return the weight of each leaf and, behind it, the sums of the gradient at F."""
        leaves, l2 = self.leaves, self.leaves.objective.l2
        short = self.gradient.leaf_sums(leaves.leaf, len(leaves))
        sums = leaves.sums(self.gradient.values) if short is None else short
        if l2 > 0.0:
            sums[:, 1:] += l2 * leaves.sums(F - leaves.base)[:, 1:]
        return sums

    def slopes(self, shifts: Array) -> Array:
        """Move there, in the pass that evaluates the loss, and return the slopes in each leaf."""
        move = (self.leaves.leaf, shifts - self.shifts)
        self.gradient = self.rows.advance(self.F, move, self.gradient, self.leaves.n_threads)[1]
        self.shifts = shifts
        return self._sums(self.F)[:, 1:] + self.prior * shifts

    def search(self, toward: Array, first: float, apart: bool = False) -> Array:
        """Return the best multiple of a direction in each leaf or, `apart`, in each leaf and output.

        `first` is the first multiple that is tried.
        """

        def along(slopes: Array) -> Array:
            return (toward * slopes).ravel() if apart else (toward * slopes).sum(axis=1)

        def slopes(steps: Array) -> Array:
            return along(self.slopes(steps.reshape(len(toward), -1) * toward))

        return roots(slopes, along(self.slopes_at_zero), first).reshape(len(toward), -1) * toward


def _gradient(leaves: Leaves, rows: Pointwise) -> Gradient:
    return leaves.gradient or rows.advance(leaves.F.copy(), None, None, leaves.n_threads)[1]


# -- the arithmetic -----------------------------------------------------------------------------------------


def damped_newton(first: Array, second: Array, prior: float, coupled: bool) -> Array:
    """Return leaf values from sums of derivatives: Newton's, shortened so that R cannot rise.

    For losses whose second derivative l″ changes by a factor of at most eˢ on a way of length s, a step of
    d = −l′/l″ shortened to log(1 + d) lowers Σ l: l′s + l″(eˢ − s − 1) is then smallest.  It is still
    negative at s = log(1 + 2d), so `first` may be up to 2 l′.  With outputs that are coupled as in softmax s
    is the range of the values, and Σ l″ over the outputs bounds half the Hessian (Gershgorin);
    log(1 + range)/range times Newton's step still lowers Σ l.
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
    A point counts as the root where at most a share `near` of the value at 0 is left.  It is never beyond the
    root (but for rounding), so that a convex function with these slopes has not risen.  A function without a
    root in sight stops at the last point tried; one that is not negative at 0 stays there.
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
        found |= below & (slope >= enough - rounding)
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
