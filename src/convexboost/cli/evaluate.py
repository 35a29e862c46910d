"""``convexboost evaluate``: how good a model is on the rows of a file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from convexboost.cli.models import load
from convexboost.cli.output import CommandError, show
from convexboost.cli.rows import Data, Roles, Rows
from convexboost.metrics import disagreement, ndcg


def run(model: Path, data: Path, roles: Roles, form: str | None, as_json: bool) -> None:
    """Load, read, measure, print."""
    estimator = load(model)
    task = estimator._task
    file = Data(data, form, roles, estimator)
    if task == "ranking" and not file.has_queries:
        raise CommandError(f"`--query` is needed: {model} is a ranker")
    rows = file.rows(task)
    try:
        found = measure(estimator, rows)
    except ValueError as error:
        raise CommandError(f"{file.name}: {error}") from error
    show({"model": str(model), "task": task, "rows": rows.shape[0], **found}, as_json)


def measure(model: Any, rows: Rows) -> dict[str, float]:
    """Return the measures of a task, by name."""
    assert rows.y is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics._classification.UndefinedMetricWarning)
        found = {"classification": _classification, "regression": _regression, "ranking": _ranking}[
            model._task
        ](model, rows, rows.y)
    return {name: float(value) for name, value in found.items()}


def _classification(model: Any, rows: Rows, y: NDArray[Any]) -> dict[str, Any]:
    weight, predicted = rows.weight, model.predict(rows.X)
    found = {
        "accuracy": metrics.accuracy_score(y, predicted, sample_weight=weight),
        "balanced accuracy": metrics.balanced_accuracy_score(y, predicted, sample_weight=weight),
        "F1 (macro)": metrics.f1_score(y, predicted, average="macro", sample_weight=weight),
    }
    present = np.isin(model.classes_, y)
    if model.loss_.has_link:
        P = model.predict_proba(rows.X)
        found["log loss"] = metrics.log_loss(y, P, labels=model.classes_, sample_weight=weight)
        if len(model.classes_) == 2 and present.all():
            found["Brier score"] = metrics.brier_score_loss(
                y == model.classes_[1], P[:, 1], sample_weight=weight
            )
    if len(model.classes_) == 2 and present.all():
        found["ROC AUC"] = metrics.roc_auc_score(
            y == model.classes_[1], model.decision_function(rows.X), sample_weight=weight
        )
    elif model.loss_.has_link and present.all():
        P = model.predict_proba(rows.X)
        found["ROC AUC (one versus rest)"] = metrics.roc_auc_score(
            y, P / P.sum(axis=1, keepdims=True), multi_class="ovr", sample_weight=weight
        )
    return found


def _regression(model: Any, rows: Rows, y: NDArray[Any]) -> dict[str, Any]:
    weight, predicted = rows.weight, model.predict(rows.X)
    if predicted.ndim == 2:  # several quantiles of one target
        return {"D²": model.score(rows.X, y, weight)}
    return {
        "R²": metrics.r2_score(y, predicted, sample_weight=weight),
        "RMSE": metrics.root_mean_squared_error(y, predicted, sample_weight=weight),
        "MAE": metrics.mean_absolute_error(y, predicted, sample_weight=weight),
        "median absolute error": metrics.median_absolute_error(y, predicted, sample_weight=weight),
        "mean residual": np.average(y - predicted, weights=weight),
        "share below the prediction": np.average(y < predicted, weights=weight),
    }


def _ranking(model: Any, rows: Rows, y: NDArray[Any]) -> dict[str, Any]:
    scores = model.predict(rows.X)
    return {
        "NDCG@5": ndcg(y, scores, rows.query, k=5),
        "NDCG@10": ndcg(y, scores, rows.query),
        "pairs in the wrong order": disagreement(y, scores, rows.query, rows.weight),
    }
