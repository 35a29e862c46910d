"""What is tried, in the order of `search`.

One inequality finds most mistakes: l(B) ≥ l(A) + ⟨gradient at A, B − A⟩ for all pairs of points, whether they
are close to each other (`same_function`) or not (`subgradients`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from convexboost.checks._declared import check_constants, check_link, check_prox, check_start, check_value
from convexboost.checks._names import name_gradient, shape_hint, show
from convexboost.checks._probe import SINGLE, Point, Probe
from convexboost.checks._report import DoubtfulError, LossError
from convexboost.core.space import Array
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss


def look(objective: BoundLoss, loss: Loss | None = None) -> Probe:
    """Try a loss with few evaluations (7 of one of all rows); a full check must confirm what looks wrong.

    `loss` is the loss of the model, of which the objective's own may be a part: it has the link.
    """
    try:
        probe = search(Probe(objective, None, np.random.default_rng(0), thorough=False))
    except LossError:
        probe = search(Probe(objective, None, np.random.default_rng(0), thorough=True))
    check_link(probe, loss or probe.loss)
    return probe


def search(probe: Probe) -> Probe:
    """Raise `LossError` at the first mistake."""
    ordinary = ordinary_points(probe)
    other_rows(probe, ordinary[-1])
    same_function(probe, ordinary)
    if probe.thorough or probe.by_rows:
        special_points(probe)
    if probe.thorough:
        for a, b in pairwise(ordinary):
            probe.kinks |= kink_between(probe, a, b)
    subgradients(probe)
    check_constants(probe)
    check_value(probe)
    if probe.thorough:
        check_start(probe)
        check_prox(probe)
        check_link(probe, probe.loss)
    return probe


# -- points -----------------------------------------------------------------------------------------------


def units(probe: Probe) -> list[tuple[float, Any]]:
    """Return sizes of scores, with a centre each: that of the targets, and 1."""
    y = probe.y
    if y is None or y.dtype.kind != "f":
        return [(1.0, 0.0)]
    size = float(y.std()) or float(np.abs(y).max()) or 1.0
    centre = y.mean(axis=0) if y.shape[1] == probe.shape[1] else float(y.mean())
    near = 0.3 < size < 3 and np.abs(centre).max() < 3
    return [(size, centre)] if near else [(size, centre), (1.0, 0.0)]


def ordinary_points(probe: Probe) -> list[Point]:
    """Random scores; the first are good for a look at a single call too."""
    found = units(probe)
    sizes = [(s, c, f) for s, c in found for f in (1.0, 1.0, 0.1)]
    if not probe.thorough:
        sizes = [sizes[0], sizes[-1]]
    draws = [(s, c + s * f * probe.rng.normal(size=probe.shape)) for s, c, f in sizes]
    G, kept = one_call(probe, draws[0][1], draws[0][0])
    for s, F in draws[1:]:
        probe.at(f"random scores of size {s:.3g}", F, s)
    if not np.array_equal(G, kept, equal_nan=True):
        what = "the gradient it returned is overwritten by the next call"
        probe.fail(what, "Return a new array every time, not a buffer kept for it.")
    for point in probe.points:
        share = point.noise / (4 * point.scale)
        probe.noise = max(probe.noise, min(float(share[point.finite].max(initial=0.0)), 1e-5))
    return list(probe.points)


def special_points(probe: Probe) -> None:
    """On the targets, ties, the start, tiny and huge scores."""
    rng, shape, y = probe.rng, probe.shape, probe.y
    s, c = units(probe)[0]
    tied = rng.integers(-2, 3, shape).astype(float)
    found: list[tuple[str, Any, float]] = [("0", 0.0, s), ("tied scores", tied, s)]
    if y is not None and y.dtype.kind == "f" and y.shape[1] in (1, shape[1]):
        found += [("scores on the targets", y, s)]
    if probe.thorough:
        large = 1e6 * max(s, 1.0)
        found += [
            ("the start", probe.objective.start(), s),
            ("tied scores", c + s * tied, s),
            ("nearly tied scores", tied * (1 + 1e-15) + 1e-15, s),
            ("tiny scores", 1e-13 * rng.normal(size=shape), s),
            *(("large scores", large * F, large) for F in (rng.normal(size=shape), np.ones(1), -np.ones(1))),
        ]
    for name, F, unit in found:
        probe.at(name, F, unit)


# -- one call ---------------------------------------------------------------------------------------------


def one_call(probe: Probe, F: Array, unit: float) -> tuple[Array, Array]:
    """Shapes, arguments left alone, no randomness; return the gradient, and a copy of it."""
    kept, y = F.copy(), None if probe.y is None else probe.y.copy()
    try:
        losses, G = probe.evaluate(F)
    except LossError:
        raise
    except ValueError as error:
        explain_shape(probe, error, kept)
        raise
    if not np.array_equal(F, kept):
        row = int(np.flatnonzero((kept != F).any(axis=1))[0])
        what = f"it writes into `F`, e.g. in row {row}: {show(kept[row])} became {show(F[row])}"
        probe.fail(what, "Work on a copy: F belongs to the training.")
    if y is not None and not np.array_equal(probe.y, y):
        row = int(np.flatnonzero((probe.y != y).reshape(len(y), -1).any(axis=1))[0])
        probe.fail(f"it writes into `y`, e.g. in row {row}", "Work on a copy.")
    if np.shares_memory(G, F):
        probe.fail("it returns the array `F` it was given, or a view of it, as gradient", "Return a copy.")
    if _is_single(losses) or _is_single(G):
        probe.noise = SINGLE
    first = losses.copy(), G.copy()
    for name, a, b in zip(("value", "gradient"), first, probe.evaluate(F.copy()), strict=True):
        if not np.array_equal(a, b, equal_nan=True):
            at = np.unravel_index(int(np.nanargmax(np.abs(a - b))), a.shape)
            probe.fail(
                f"two calls with the same scores give two {name}s, e.g. {a[at]:.6g} and {b[at]:.6g}: it is "
                "random or remembers earlier calls",
                "A loss must be a function of F and y.",
            )
    sizes = np.where(np.isfinite(G), np.abs(first[1]), 0.0)
    probe.typical = np.maximum(sizes, np.median(sizes, axis=0 if probe.by_rows else None))
    probe.keep(f"random scores of size {unit:.3g}", F, *first, unit)
    return G, first[1]


def explain_shape(probe: Probe, error: ValueError, F: Array) -> None:
    """Add to a message about a wrong shape what it looks like."""
    hint = ""
    if probe.method == "value":  # torch
        hint = "Sum over the outputs, value.sum(dim=1), for a loss per row, or over everything."
    elif probe.method:
        method = getattr(probe.loss.user, probe.method)  # may be where the error is from
        found = method(F, probe.y, **probe.objective.extras)
        hint = shape_hint(probe, found)
    if hint:
        raise LossError(f"{error}. {hint}") from None


def _is_single(x: Array) -> bool:
    """Return whether numbers come from float32: they fit into it, but are not short ones such as ½."""
    return bool((x == x.astype(np.float32)).all() and (x != x.astype(np.float16)).any())


def other_rows(probe: Probe, point: Point) -> None:
    """The loss of a row is its own: other rows do not change it."""
    n = probe.shape[0]
    by_rows = probe.objective.by_rows
    if by_rows is None or n < 3:
        return
    rows = np.arange(0, n, 2)
    try:
        part = by_rows.loss.evaluate(point.F[rows], probe.y[rows])[0]
    except (ValueError, IndexError) as error:
        hint = "It is called with blocks of rows; do not keep arrays of all rows in the object."
        probe.fail(f"it fails on {len(rows)} of the {n} rows ({error})", hint)
    losses = point.losses[rows]
    off = np.abs(part - losses) / (np.abs(losses) + point.noise[rows] + 1e-300)
    off = np.where(np.isfinite(losses), off, 0.0)
    if off.max() <= max(1e-9, 100 * probe.noise):
        return
    i = int(np.argmax(off))
    numbers = f"row {rows[i]}: {losses[i]:.6g} among {n} rows, {part[i]:.6g} among {len(rows)}"
    if abs(np.median(part[losses != 0] / losses[losses != 0]) - n / len(rows)) < 1e-6 * n:
        hint = "Return each row's own loss and gradient, without 1/N."
        probe.fail(f"the losses are divided by the number of rows ({numbers})", hint)
    probe.fail(
        f"the loss of a row depends on the other rows ({numbers})",
        "Losses of all rows at once belong into the method `total`; or was y, of shape "
        f"{np.shape(probe.y)}, broadcast against ({n},)?",
    )


# -- value and gradient -----------------------------------------------------------------------------------


def directions(probe: Probe) -> list[Array]:
    """Return random directions; some change few scores only, to tell rows and outputs apart."""
    rng, (n, k) = probe.rng, probe.shape
    found = [rng.normal(size=(n, k))]
    if k > 1 and (probe.thorough or probe.by_rows):
        found.append(np.eye(k)[rng.integers(0, k, n)])
    if probe.thorough and not probe.by_rows:
        for row in rng.integers(0, n, 4):
            D = np.zeros((n, k))
            D[row] = rng.normal(size=k)
            found.append(D)
    return found


def same_function(probe: Probe, points: Sequence[Point]) -> None:
    """The gradient must have the slopes of the value; if it has others, find out which."""
    ways = (1e-3, 1e-5) if probe.thorough else (1e-4,)
    slopes = [probe.slope(a, D, h) for a in points for D in directions(probe) for h in ways]
    worst = max(slopes, key=lambda slope: float(slope.misses.max()))
    if worst.misses.any():
        what, hint = name_gradient(probe, slopes)
        piece = int(np.argmax(worst.misses))
        where = f"row {piece}, f = {show(worst.point.F[piece])}: " if probe.by_rows else ""
        numbers = f"the gradient says {worst.claimed[piece]:.6g}, the value {worst.middle[piece]:.6g}"
        probe.fail(f"{what} ({where}of the slope along a line {numbers})", hint)


def not_convex(probe: Probe, a: Point, b: Point, t: float, losses: Array, piece: int) -> None:
    """Give the line and three points on it."""
    first, second, third = a.losses[piece], losses[piece], b.losses[piece]
    points = f"three points on a line (from {a.name} to {b.name})"
    if probe.by_rows:
        F = a.F[piece] + t * (b.F[piece] - a.F[piece])
        points = f"f = {show(a.F[piece])}, {show(F)} and {show(b.F[piece])} of row {piece}"
    hint = "Boosting is sure to reach the minimum only of convex losses."
    if is_concave(probe):
        hint = "It is concave: a likelihood must be given with a minus sign."
    elif "large scores" in (a.name, b.name):
        hint = "It happens at large scores: is a probability or the exponent clipped?"
    probe.fail(
        f"it is not convex: at {points} the values are {first:.6g}, {second:.6g} and {third:.6g}, and the "
        f"second lies {second - first - t * (third - first):.3g} above the line through the others",
        hint,
        DoubtfulError,
    )


def is_concave(probe: Probe) -> bool:
    """Return whether minus the value is convex, as far as random lines tell."""
    for _ in range(5):
        A, B = probe.rng.normal(size=(2, *probe.shape))
        a, m, b = (probe.values(F) for F in (A, (A + B) / 2, B))
        if (m < (a + b) / 2 - 1e-9 * (np.abs(a) + np.abs(b))).any():
            return False
    return True


# -- kinks ------------------------------------------------------------------------------------------------


def kink_between(probe: Probe, a: Point, b: Point) -> bool:
    """Halve the line to where the slope changes most; keep both sides of the jump as points."""
    D = b.F - a.F
    first, last = probe.dot(a.G, D), probe.dot(b.G, D)
    whole, low, high = last - first, np.zeros(len(first)), np.ones(len(first))
    for _ in range(52):
        t = (low + high) / 2
        slope = probe.dot(probe.evaluate(a.F + t[:, None] * D)[1], D)
        upper = last - slope > slope - first
        low, first = np.where(upper, t, low), np.where(upper, slope, first)
        high, last = np.where(upper, high, t), np.where(upper, last, slope)
    for t in (low, high):
        probe.at("scores at a jump of the slope", a.F + t[:, None] * D, a.unit)
    jump = np.abs(last - first) > 1e-3 * np.abs(whole) + 1e-9 * probe.dot(probe.typical, np.abs(D))
    return bool(jump.any())


def subgradients(probe: Probe) -> None:
    """l(B) ≥ l(A) + ⟨gradient at A, B − A⟩ for all pairs of points: kinks cannot hide from it."""
    worst: tuple[float, Any] = (0.0, None)
    for a, b in permutations(probe.points, 2):
        excess = probe.excess(a, b)
        piece = int(np.argmax(excess))
        if excess[piece] > worst[0]:
            worst = excess[piece], (a, b, piece)
    if worst[1] is not None:
        not_a_subgradient(probe, *worst[1])


def not_a_subgradient(probe: Probe, a: Point, b: Point, piece: int) -> None:
    """At a kink, or where the value is not convex, or at special scores."""
    D = b.F - a.F
    D = D / np.abs(probe.pieces(D)[piece]).max()
    claimed = float(probe.dot(a.G, D)[piece])
    slopes = [probe.slope(a, D, h) for h in (1e-2, 1e-4)]
    if max(s.misses[piece] for s in slopes) < 1e-3:
        for t in (0.5, 0.25, 0.75, 0.1, 0.9, 0.01, 0.99):  # locally all is well
            losses = probe.values(a.F + t * (b.F - a.F))
            line = a.losses + t * (b.losses - a.losses) + a.noise + b.noise
            if losses[piece] > line[piece]:
                not_convex(probe, a, b, t, losses, piece)
        return
    low, high = slopes[-1].low[piece], slopes[-1].high[piece]
    row = piece if probe.by_rows else int(np.argmax(np.abs(a.G * D).sum(axis=1)))
    where = f"row {row}, f = {show(a.F[row])}"
    if high - low > 0.05 * (abs(high) + abs(low)):
        probe.fail(
            f"at a kink ({where}; {a.name}) the gradient {show(a.G[row])} is no subgradient: along a line "
            f"the slopes to the two sides are {low:.6g} and {high:.6g}, it says {claimed:.6g}",
            "Any number between the two will do, e.g. 0 at a minimum; mind scores exactly at a kink.",
        )
    probe.fail(
        f"value and gradient belong to different losses at {a.name} ({where}: along a line the gradient "
        f"says {claimed:.6g}, the slope of the value is {(low + high) / 2:.6g})",
        "Is a number clipped or rounded in one of them and not in the other?",
    )
