"""The part of a model's page that is about rows: how good it is on them, and some predictions taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import confusion_matrix

from convexboost.core.space import Array
from convexboost.estimators._measures import Measured, measures
from convexboost.estimators._trials import _take
from convexboost.reports.content import (
    Bars,
    Block,
    Facts,
    Line,
    LineFigure,
    Matrix,
    Section,
    Table,
    Text,
    number,
)

HINT = (
    "Made without rows: with `report(path, X, y)`, or `convexboost inspect MODEL --html OUT --data FILE`, "
    "it also shows how good the model is on them, and takes some predictions apart."
)
MOST_POINTS = 400  #: rows in a picture
MOST_PARTS = 8  #: features of a prediction that are shown
MOST_CLASSES = 20  #: of a confusion matrix
BINS = 10  #: of a calibration curve


def sections(model: Any, X: Any, rows: Measured | None) -> list[Section]:
    """Return the sections."""
    if X is None:
        return []
    found = [] if rows is None else [_quality(model, rows)]
    return [*found, _explained(model, X, None if rows is None else rows.y)]


# --- how good the model is ---------------------------------------------------------------------------------


def _quality(model: Any, rows: Measured) -> Section:
    blocks: list[Block] = [Facts([("rows", len(rows.y)), *measures(model, rows).items()])]
    if is_classifier(model):
        blocks += _classes(model, rows)
    elif model._task == "regression" and rows.y.ndim == 1 and model.predict(_take(rows.X, [0])).ndim == 1:
        blocks += _residuals(model, rows)
    return Section("On the rows given", blocks)


def _classes(model: Any, rows: Measured) -> list[Block]:
    blocks: list[Block] = []
    if model.loss_.has_link:
        blocks.append(_calibration(model, rows))
    classes = model.classes_
    if len(classes) <= MOST_CLASSES:
        counts = confusion_matrix(
            rows.y, model.predict(rows.X), labels=classes, sample_weight=rows.weight
        ).tolist()
        names = [str(label) for label in classes]
        blocks.append(
            Matrix("Confusion", names, names, counts, "Rows are true classes, columns predicted ones.")
        )
    return blocks


def _calibration(model: Any, rows: Measured) -> LineFigure:
    """Compare probabilities with frequencies, in bins with equally many rows."""
    P, classes = model.predict_proba(rows.X), model.classes_
    if len(classes) == 2:
        predicted, happened = P[:, 1], rows.y == classes[1]
        what = f"the class {classes[1]}"
    else:
        predicted, happened = P.max(axis=1), rows.y == classes[P.argmax(axis=1)]
        what = "the most likely class"
    weight = np.ones(len(predicted)) if rows.weight is None else rows.weight
    parts = np.array_split(np.argsort(predicted, kind="stable"), min(BINS, len(predicted)))
    parts = [part for part in parts if weight[part].sum() > 0.0]
    mean = [np.average(predicted[part], weights=weight[part]) for part in parts]
    share = [np.average(happened[part], weights=weight[part]) for part in parts]
    ideal = Line("ideal", [0.0, 1.0], [0.0, 1.0], dash="dot", colour="naive")
    return LineFigure(
        "Calibration",
        [Line("the model", mean, share, colour="residual"), ideal],
        "probability predicted",
        "share that came true",
        caption=f"For {what}, in {len(parts)} bins with equally many rows.",
    )


def _residuals(model: Any, rows: Measured) -> list[Block]:
    predicted = np.asarray(model.predict(rows.X))
    residuals = rows.y - predicted
    shown = np.sort(np.random.default_rng(0).permutation(len(predicted))[:MOST_POINTS])
    low, high = float(min(predicted.min(), rows.y.min())), float(max(predicted.max(), rows.y.max()))
    some = f"{len(shown)} of {len(predicted)} rows." if len(shown) < len(predicted) else ""
    actual = LineFigure(
        "Predicted and true",
        [
            Line("rows", predicted[shown], rows.y[shown], colour="residual", kind="marker"),
            Line("ideal", [low, high], [low, high], dash="dot", colour="naive"),
        ],
        "prediction",
        "true value",
        caption=some,
    )
    scatter = LineFigure(
        "Residuals",
        [
            Line("rows", predicted[shown], residuals[shown], colour="residual", kind="marker"),
            Line("zero", [predicted.min(), predicted.max()], [0.0, 0.0], dash="dot", colour="naive"),
        ],
        "prediction",
        "true value − prediction",
        caption=some,
    )
    shares = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    table = Table(
        [f"{share:.0%}" for share in shares],
        [[float(value) for value in np.quantile(residuals, shares)]],
        "Quantiles of the residuals",
    )
    return [actual, scatter, table]


# --- predictions taken apart -------------------------------------------------------------------------------


def _explained(model: Any, X: Any, y: NDArray[Any] | None) -> Section:
    chosen = _chosen(model, X, y)
    rows = _take(X, [row for _, row in chosen])
    try:
        parts = model.predict_contributions(rows)
    except ValueError as error:
        return Section("Rows explained", [Text(f"Predictions of this model cannot be taken apart: {error}.")])
    names, predictions = model._naming().features, model.predict(rows)
    blocks: list[Block] = [
        Text(
            "What each feature adds to the score of a row, as exact Shapley values: with the mean score they "
            "add up to its score."
        )
    ]
    for k, (why, row) in enumerate(chosen):
        values = parts[k] if parts.ndim == 2 else parts[k][:, _output(model, predictions[k])]
        label = "" if y is None else f"; the truth is {_short(y[row])}"
        title = f"{why}: row {row + 1}"
        bars = _bars(values, [f"{name} = {_value(rows, k, j)}" for j, name in enumerate(names)])
        words = f"Predicted {_words(predictions[k])}{label}. "
        words += f"Mean score {number(float(values[-1]))}, score {number(float(values.sum()))}."
        blocks.append(Bars(title, bars, words))
    return Section("Rows explained", blocks)


def _bars(values: Array, names: list[str]) -> list[tuple[str, float]]:
    order = np.argsort(-np.abs(values[:-1]), kind="stable")
    shown = [int(j) for j in order[:MOST_PARTS] if values[j] != 0.0]
    bars = [(names[j], float(values[j])) for j in shown]
    rest = float(np.delete(values[:-1], shown).sum())
    others = len(names) - len(shown)
    if others and rest != 0.0:
        bars.append((f"{others} others", rest))
    return bars or [("no feature", 0.0)]


def _chosen(model: Any, X: Any, y: NDArray[Any] | None) -> list[tuple[str, int]]:
    """Return rows worth a look, each with the reason."""
    if is_classifier(model):
        scores = np.asarray(model.decision_function(X))
        ordered = np.sort(scores, axis=1) if scores.ndim == 2 else None
        margin = np.abs(scores) if ordered is None else ordered[:, -1] - ordered[:, -2]
        found = [("Most certain", int(margin.argmax())), ("Least certain", int(margin.argmin()))]
        if y is not None:
            wrong = np.flatnonzero(model.predict(X) != y)
            if len(wrong):
                found.append(("Most certain and wrong", int(wrong[margin[wrong].argmax()])))
    else:
        predicted = np.asarray(model.predict(X))
        single = predicted if predicted.ndim == 1 else predicted[:, predicted.shape[1] // 2]
        order = np.argsort(single, kind="stable")
        found = [
            ("Highest prediction", int(order[-1])),
            ("Median prediction", int(order[len(order) // 2])),
            ("Lowest prediction", int(order[0])),
        ]
        if (
            y is not None
            and np.shape(y) == np.shape(predicted)
            and model._task == "regression"
            and y.ndim == 1
        ):
            found.append(("Largest error", int(np.abs(y - predicted).argmax())))
    return [(why, row) for row, why in {row: why for why, row in reversed(found)}.items()][::-1]


def _output(model: Any, prediction: Any) -> int:
    """Return the output whose score is taken apart: that of the predicted class, or the middle one."""
    if is_classifier(model):
        return int(np.flatnonzero(model.classes_ == prediction)[0])
    return len(prediction) // 2


def _value(rows: Any, k: int, j: int) -> str:
    return _short(rows.iloc[k, j] if hasattr(rows, "iloc") else rows[k, j])


def _words(prediction: Any) -> str:
    return ", ".join(map(_short, prediction)) if np.ndim(prediction) else _short(prediction)


def _short(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "missing" if np.isnan(value) else f"{value:.5g}"
    text = str(value)
    return text.removesuffix(" 00:00:00") if len(text) <= 40 else f"{text[:39]}…"
