"""How much lower an objective can get: its floor where no minimum is declared, and the share of outliers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from convexboost.core.space import Array
from convexboost.core.tolerances import ROUNDING

#: After half of Polyak's step, (R − floor)/‖∇‖²/2, the slopes of the rows are usually at least this share
#: of what they were: 0.15 to 1 on 11 data sets.  With one outlier in 1,000 rows, which made up most of R, it
#: was 0.001.
LEFT = 0.1
#: A step that leaves less is shortened until this share is left, which is usual on most data sets.
USUAL = 2 / 3
#: The step is found to within a factor 2^STEP, among factors from 2^−MOST to 2^MOST.
STEP, MOST = 1 / 16, 512.0
#: Binary digits that are kept of a gap to a searched floor: the others would change with a constant that is
#: added to the loss.
DIGITS = 40
#: A factor just below 1, so that rounding does not decide a comparison of equal numbers.
ALMOST = 1.0 - 1e-9
#: At most this many evaluations for the smallest losses.
EVALUATIONS = 100
#: Relative accuracy of the scores found; a score beyond FAR counts as infinite.
CLOSE, FAR = 1e-12, 1e18


def lowest(
    evaluate: Callable[[Array], tuple[Any, Array]], shape: tuple[int, ...], targets: Array | None
) -> Any:
    """Return the smallest losses over all scores: one for each row, or one number for all rows.

    `evaluate` returns losses and a subgradient.  Each score is moved on its own to the point where its slope
    changes sign.  The result is exact for a sum of functions of one score each, and where the smallest loss
    of a row is at its `targets` (None: there are none, or they are classes).  Only slopes decide where to
    search, so a constant added to the loss does not change the scores.
    """
    with np.errstate(all="ignore"):
        best, origin = np.array(math.inf), np.zeros(shape)
        if targets is not None and targets.shape == shape:
            best, slopes = evaluate(targets.copy())
            origin = np.where(slopes == 0.0, targets, origin)
        losses, first = evaluate(origin.copy())
        toward = -np.sign(np.nan_to_num(first))
        low = np.zeros(shape)
        high, at = np.where(toward == 0.0, 0.0, np.inf), np.abs(toward)
        counts: Any = True  # rows that are still searched: what is found in others must not depend on these
        for _ in range(EVALUATIONS):
            best = np.where(np.isfinite(losses) & counts, np.fmin(best, losses), best)
            is_open = low < (1.0 - CLOSE) * high
            if not is_open.any():
                break
            counts = is_open.any(axis=1) if np.ndim(losses) == 1 else True
            losses, slopes = evaluate(origin + at * toward)
            gain = -slopes * toward  # per unit of a further move
            end = (np.abs(gain) <= ROUNDING * np.abs(first)) | (at > FAR)
            low = np.where((gain > 0.0) | end, at, low)
            high = np.where((gain > 0.0) & ~end, high, at)
            near = np.where(low > 0.0, np.sqrt(low * high), high / 16.0)
            between = np.where(high > 4.0 * low, near, (low + high) / 2.0)
            at = np.where(np.isinf(high), 16.0 * at, between)
    return best


def rounded(gap: float) -> float:
    """Return the gap without its last digits, which are rounding errors of a constant added to the loss."""
    mantissa, exponent = math.frexp(gap)
    return math.ldexp(round(mantissa * 2.0**DIGITS), exponent - DIGITS) if math.isfinite(gap) else gap


def within_reach(gap: float, norm: float, left: Callable[[float], Array]) -> float:
    """Return R − floor = `gap`, or less if most of it belongs to a few rows that are far away.

    `norm` is ‖∇‖; `left(size)` returns how much of the slopes is left after a step of that size along −∇, for
    each output.  It is enough if one output has enough left: outputs may have different units.
    """
    if not (0.0 < gap < math.inf and 0.0 < norm < math.inf):
        return gap
    half, enough = gap / norm**2 / 2.0, LEFT * ALMOST * left(0.0)
    return gap if _is_left(enough, left(half)) else usual_gap(norm, left, half)


def usual_gap(norm: float, left: Callable[[float], Array], half: float = 1.0) -> float:
    """Return the gap for which half of Polyak's step leaves the usual share of the slopes.

    The step is searched from `half`, longer or shorter; `norm` and `left` are those of `within_reach`.
    """
    enough = USUAL * ALMOST * left(0.0)

    def leaves(exponent: float) -> bool:
        return _is_left(enough, left(half * 2.0**exponent))

    grows = leaves(0.0)
    near, far = 0.0, 1.0 if grows else -1.0
    while leaves(far) == grows and abs(far) < MOST:
        near, far = far, 2.0 * far
    while abs(far - near) > STEP:
        middle = (near + far) / 2.0
        near, far = (middle, far) if leaves(middle) == grows else (near, middle)
    return 2.0 * half * 2.0 ** min(near, far) * norm**2


def _is_left(enough: Array, left: Array) -> bool:
    """Return whether enough of the slopes is left in some output."""
    return bool(((left >= enough) & (enough > 0.0)).any())
