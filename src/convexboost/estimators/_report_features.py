"""The part of a model's page that is about features: importances, and curves.

A model that is a sum of functions of one feature shows these functions, which are exact.  Others show the
partial dependence: the mean score when a feature has the same value in all rows given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convexboost.core.space import Array
from convexboost.estimators._frames import DATETIMES, ZONED
from convexboost.reports.content import Bars, Block, Line, LineFigure, Section, Text

MOST_BARS = 20  #: features with their importances
MOST_CURVES = 8  #: features with a curve
MOST_LEVELS = 16  #: of a category
MOST_LINES = 6  #: outputs in one figure
MOST_PIECES = 150  #: of a step function that is drawn as it is
GRID = 40  #: values of a feature at which partial dependence is computed
ROWS = 400  #: over which it is averaged
EXACT = "The model is a sum of these functions of one feature and a constant: the curves are exact."
PARTIAL = (
    "Partial dependence: the mean score of the rows given when a feature has the same value in all of them."
)
YEAR = 365.2425 * 86400.0


def sections(model: Any, X: Any) -> list[Section]:
    """Return the sections."""
    try:
        gains = model.importances("total_gain")
    except ValueError as error:
        return [Section("Features", [Text(f"There are no importances: {error}.")])]
    names, total = model._naming().features, max(float(gains.sum()), 1e-300)
    order = [int(j) for j in np.argsort(-gains, kind="stable") if gains[j] > 0.0]
    if not order:
        return [Section("Features", [Text("The model is a constant: it uses no feature.")])]
    bars = [(names[j], float(gains[j] / total)) for j in order[:MOST_BARS]]
    rest = len(names) - len(bars)
    caption = "The share of each feature in the gain of all splits."
    caption += f" {rest} more features have less or none." if rest else ""
    found = [Section("Features", [Bars("Importances", bars, caption, are_shares=True)])]
    words, curves = _exact(model), True
    if words is None:
        words, curves = (None if X is None else _partial_dependence(model, X, order)), False
    if words is None:
        return found
    ranked = sorted(words, key=lambda curve: order.index(curve.column) if curve.column in order else 10**9)
    blocks: list[Block] = [Text(EXACT if curves else PARTIAL)]
    blocks += [_figure(model, curve) for curve in ranked[:MOST_CURVES]]
    return [*found, Section("Curves of features", blocks, level=2)]


class Curve(NamedTuple):
    """What a feature adds to the scores, (n_points, n_outputs), at numbers or at levels."""

    column: int
    values: Array
    points: Array | None = None
    levels: tuple[str, ...] = ()
    has_steps: bool = False


def _exact(model: Any) -> list[Curve] | None:
    try:
        functions = model.shape_functions()
    except ValueError:
        return None
    found = []
    for function in functions:
        if function.cuts is None:
            levels = tuple(map(str, function.levels))
            found.append(Curve(function.column, function.values, levels=levels))
        else:
            points, values = _steps(np.asarray(function.cuts, float), function.values)
            found.append(Curve(function.column, values, points, has_steps=True))
    return found


def _steps(cuts: Array, values: Array) -> tuple[Array, Array]:
    """Return the corners of a step function, or as many of its values as a figure needs."""
    if len(cuts) == 0:
        return np.zeros(1), values[:1]
    margin = 0.04 * (cuts[-1] - cuts[0]) or max(abs(cuts[0]) * 0.1, 1.0)
    if len(cuts) <= MOST_PIECES:
        ends = np.concatenate([[cuts[0] - margin], cuts, [cuts[-1] + margin]])
        return np.repeat(ends, 2)[1:-1], np.repeat(values, 2, axis=0)
    points = np.linspace(cuts[0] - margin, cuts[-1] + margin, 2 * MOST_PIECES)
    return points, values[np.searchsorted(cuts, points)]


def _partial_dependence(model: Any, X: Any, order: list[int]) -> list[Curve]:
    X = model._check_inputs(X)
    X = np.array(X.toarray() if hasattr(X, "toarray") else X, float)
    rows = np.random.default_rng(0).permutation(len(X))[:ROWS]
    found = []
    for j in order[:MOST_CURVES]:
        column = X[:, j][~np.isnan(X[:, j])]
        if len(column) == 0:
            continue
        if model._columns.categorical[j]:
            levels, counts = np.unique(column, return_counts=True)
            points: Array = levels[np.argsort(-counts, kind="stable")][:MOST_LEVELS]
        else:
            points = np.unique(np.quantile(column, np.linspace(0.01, 0.99, GRID), method="nearest"))
        part = X[rows]
        mean = _mean_score(model, part)
        values = []
        for point in points:
            part[:, j] = point
            values.append(_mean_score(model, part))
        if model._columns.categorical[j]:
            naming = model._naming()
            names = tuple(str(naming.level(j, point)) for point in points)
            found.append(Curve(j, np.array(values) - mean, levels=names))
        else:
            found.append(Curve(j, np.array(values), points))
    return found


def _mean_score(model: Any, X: Array) -> Array:
    """Return the mean of the scores that a user sees."""
    F: NDArray[Any] = model._combined(model.model_.predict(X))
    return np.asarray(F.mean(axis=0))


def _figure(model: Any, curve: Curve) -> Block:
    name, kind = model._naming().features[curve.column], model._columns.kinds[curve.column]
    outputs = _outputs(model, curve.values.shape[1])
    if curve.points is None:
        return _levels(name, curve, outputs)
    points, label = curve.points, name
    if kind in (DATETIMES, ZONED):
        points, label = 1970.0 + points / YEAR, f"{name} (year)"
    what = "adds to the score" if curve.has_steps else "mean score"
    if len(outputs) == 1:
        lines = [Line(what, points, curve.values[:, 0], colour="residual")]
    else:
        lines = [Line(output, points, curve.values[:, k]) for k, output in enumerate(outputs)]
    return LineFigure(name, lines, label, what)


def _levels(name: str, curve: Curve, outputs: list[str]) -> Bars:
    """Return bars for the levels that differ most from the mean; of several outputs, for each."""
    values = curve.values[:, : len(outputs)]
    strength = np.abs(values - values.mean(axis=0)).max(axis=1)
    shown = np.argsort(-strength, kind="stable")[: max(MOST_LEVELS // len(outputs), 2)]
    shown = shown[np.argsort(-values[shown, 0], kind="stable")]
    bars = [
        (curve.levels[i] if len(outputs) == 1 else f"{curve.levels[i]}, {output}", float(values[i, k]))
        for i in shown
        for k, output in enumerate(outputs)
    ]
    more = len(values) - len(shown)
    words = "What each level adds to the mean score."
    return Bars(name, bars, f"{words} {more} more are closer to it." if more > 0 else words)


def _outputs(model: Any, n_outputs: int) -> list[str]:
    """Return the names of the first outputs."""
    names = model._naming().outputs
    words = ["score"] if n_outputs == 1 else [str(name) for name in names]
    return words[: min(n_outputs, MOST_LINES)]
