"""How a mistake is named: undo one known mistake after the other, until value and gradient agree.

Every function returns what is wrong and what to do about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from convexboost.core.space import Array

if TYPE_CHECKING:
    from convexboost.checks._probe import Probe, Slope

Named = tuple[str, str]
Undo = Callable[[Array, Array], Array]  #: (F, G) to the gradient it should have been

OWN = "Return the gradient of each row's own loss: no 1/N and no weights, they are in the inner product."
PARTIALS = "`total` wants ordinary partial derivatives of the value, which contain the weights (1/N)."


def name_gradient(probe: Probe, slopes: list[Slope]) -> Named:
    """A gradient that does not have the slopes of the value."""
    if all((s.claimed[s.point.finite] == 0).all() for s in slopes):
        hint = "With PyTorch: do not detach, and do not leave torch (NumPy, float, item) inside `value`."
        return "the gradient is 0 everywhere, but the value changes", hint
    ratio = common_ratio(probe, slopes, lambda F, G: G)
    if ratio is not None and abs(ratio - 1) > 5e-3:
        return name_factor(probe, ratio)
    for undo, what, hint in suspects(probe):
        if common_ratio(probe, slopes, undo) is not None:
            return f"the gradient {what}", hint
    where = wrong_outputs(probe, slopes) or wrong_rows(probe, slopes)
    hint = "The gradient must be the derivative of the value in `F`."
    return f"value and gradient belong to different losses{where}", hint


def suspects(probe: Probe) -> Iterator[tuple[Undo, str, str]]:
    """Mistakes that are more than a factor: how to undo them, and their names."""
    p = probe.objective.space.weight[:, None]
    if np.ptp(p) > 1e-9 and probe.by_rows:
        yield lambda F, G: G / p, "is multiplied by the sample weights", OWN
    elif np.ptp(p) > 1e-9:
        yield lambda F, G: G / p, "has the sample weights twice", "Multiply by them once."
        hint = f"{PARTIALS} Multiply row n by weight[n]."
        yield lambda F, G: G * p, "lacks the weights: it is that of the row losses", hint
    hint = "Multiply it with the derivative of what the score is mapped to (chain rule)."
    for chain, name in (
        (_sigmoid_chain, "the probability, 1/(1 + exp(−f))"),
        (lambda F, G: G * np.exp(F), "exp(f)"),
        (_softmax_chain, "the probabilities (softmax of f)"),
    ):
        if chain is not _softmax_chain or probe.shape[1] > 1:
            yield chain, f"is with respect to {name}, not to the score", hint


def common_ratio(probe: Probe, slopes: list[Slope], undo: Undo) -> float | None:
    """Return the r for which ⟨undone gradient, D⟩ = r · slope everywhere, if there is one."""
    table = [(probe.dot(undo(s.point.F, s.point.G), s.D), s.low, s.high) for s in slopes]
    claimed, low, high = np.concatenate(table, axis=1)
    middle, spread = (low + high) / 2, (high - low) / 2
    known = np.isfinite(claimed + middle + spread) & (spread <= 0.03 * np.abs(middle)) & (middle != 0)
    if known.sum() < 4:
        return None
    claimed, middle, spread = claimed[known], middle[known], spread[known]
    r = float(np.median(claimed / middle))
    fits = np.abs(claimed - r * middle) <= abs(r) * (2 * spread + 5e-3 * np.abs(middle))
    return r if r != 0.0 and fits.mean() >= 0.98 else None


def name_factor(probe: Probe, r: float) -> Named:
    """Say where such a factor comes from."""

    def near(x: float) -> bool:
        return abs(abs(r) - x) <= 5e-3 * x

    gradient = "the gradient has the wrong sign and" if r < 0 else "the gradient"
    if near(1.0):
        return gradient.removesuffix(" and"), "Return the gradient itself, not minus it (the residual)."
    k, rows = probe.shape[1], (probe.all_rows, probe.shape[0])
    for count, name, axis in (
        *((n, f"the number of rows, {n}", "rows") for n in rows),
        *((n * k, f"rows · outputs, {n * k}", "rows") for n in rows),
        (k, f"the number of outputs, {k} (a factor {abs(r):.4g})", "outputs"),
    ):
        divided = near(1 / count)
        if divided or near(count):
            value, other = ("sum", "mean") if divided else ("mean", "sum")
            hint = f"The value is a {value} over the {axis}, the gradient that of a {other}: use one of them."
            if axis == "rows" and (probe.by_rows or not divided):
                hint = OWN if probe.by_rows else PARTIALS
            return f"{gradient} is {'divided' if divided else 'multiplied'} by {name}", hint
    hint = f"Multiply the gradient by {1 / r:.4g}, or the value by {r:.4g}."
    if near(2) or near(0.5):
        hint = "The gradient of (f − y)² is 2 (f − y), that of ½ (f − y)² is f − y."
    return f"{gradient} is off by the factor {abs(r):.4g}", hint


def wrong_outputs(probe: Probe, slopes: list[Slope]) -> str:
    """Say which outputs are wrong, if others are right."""
    points = {id(s.point): s.point for s in slopes}.values()
    along = np.eye(probe.shape[1])[:, None, :] * np.ones((probe.shape[0], 1))
    wrong = [any(probe.slope(point, D).misses.any() for point in points) for D in along]
    return f" in output {show(np.flatnonzero(wrong))} only" if 0 < sum(wrong) <= len(wrong) // 2 else ""


def wrong_rows(probe: Probe, slopes: list[Slope]) -> str:
    """Say which rows are wrong, if others are right."""
    wrong = np.any([s.misses > 0 for s in slopes], axis=0)
    if not probe.by_rows or wrong.mean() > 0.9:
        return ""
    text = f" in {wrong.sum()} of {len(wrong)} rows"
    if probe.has_classes and len(np.unique(probe.y[wrong])) < len(np.unique(probe.y)):
        text += f", all of class {show(np.unique(probe.y[wrong]))}"
    return text


def shape_hint(probe: Probe, found: Any) -> str:
    """Say what the wrong shape of what a user's method returned looks like; nothing if it is right."""
    (n, k), method = probe.shape, probe.method
    if not isinstance(found, tuple | list) or len(found) != 2:
        return "End the method with `return losses, gradient`."
    value, G = (np.shape(part) for part in found)
    crossed = f"An array of shape ({n},) met one of shape ({n}, 1): y has shape {np.shape(probe.y)}."
    if method == "evaluate" and value != (n,):
        summed = "Sum over the outputs, axis=1." if len(value) == 2 else "Return one loss per row."
        return crossed if value == (n, n) else summed
    if method == "total" and math.prod(value) != 1:
        return "Add up the rows, each times its weight."
    if (n, k) == G or (k == 1 and (n,) == G):
        return ""
    hints = {
        (k, n): "It is transposed, return gradient.T.",
        (n,): f"It is one number per row, but there are {k} outputs: give a column for each.",
        (k,): "It is summed over the rows: give one row for each.",
        (n, n): crossed,
    }
    return hints.get(G, "Give one entry for each score.")


def _sigmoid_chain(F: Array, G: Array) -> Array:
    p = 1 / (1 + np.exp(-F))
    return G * p * (1 - p)


def _softmax_chain(F: Array, G: Array) -> Array:
    P = np.exp(F - F.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P * (G - (P * G).sum(axis=1, keepdims=True))


def show(f: Any) -> str:
    """Write a few numbers."""
    f = np.atleast_1d(f).ravel()
    text = ", ".join(f"{x:.6g}" for x in f[:5]) + (", …" if len(f) > 5 else "")
    return text if len(f) == 1 else f"({text})"
