"""How good a fitted model is on rows, in the measures of its task."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning

from convexboost.metrics import disagreement, ndcg


class Measured(NamedTuple):
    """Rows with their targets."""

    X: Any
    y: NDArray[Any]
    weight: Any = None
    query: Any = None


def measures(model: Any, rows: Measured) -> dict[str, float]:
    """Return the measures of a task by their names."""
    of_task = {"classification": _classification, "regression": _regression, "ranking": _ranking}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        found = of_task[model._task](model, rows)
    return {name: float(value) for name, value in found.items()}


def _classification(model: Any, rows: Measured) -> dict[str, Any]:
    (X, y, weight, _), classes = rows, model.classes_
    predicted = model.predict(X)
    found = {
        "accuracy": metrics.accuracy_score(y, predicted, sample_weight=weight),
        "balanced accuracy": metrics.balanced_accuracy_score(y, predicted, sample_weight=weight),
        "F1 (macro)": metrics.f1_score(y, predicted, average="macro", sample_weight=weight),
    }
    has_all = bool(np.isin(classes, y).all())
    P = model.predict_proba(X) if model.loss_.has_link else None
    if P is not None:
        found["log loss"] = metrics.log_loss(y, P, labels=classes, sample_weight=weight)
    if has_all and len(classes) == 2:
        second = y == classes[1]
        scores = model.decision_function(X)
        found["ROC AUC"] = metrics.roc_auc_score(second, scores, sample_weight=weight)
        if P is not None:
            found["Brier score"] = metrics.brier_score_loss(second, P[:, 1], sample_weight=weight)
    elif has_all and P is not None:
        P = P / P.sum(axis=1, keepdims=True)
        found["ROC AUC (one versus rest)"] = metrics.roc_auc_score(
            y, P, multi_class="ovr", sample_weight=weight
        )
    return found


def _regression(model: Any, rows: Measured) -> dict[str, Any]:
    X, y, weight, _ = rows
    predicted = model.predict(X)
    if predicted.shape != np.shape(y):  # several quantiles of one target
        return {"D²": model.score(X, y, weight)}
    return {
        "R²": metrics.r2_score(y, predicted, sample_weight=weight),
        "RMSE": metrics.root_mean_squared_error(y, predicted, sample_weight=weight),
        "MAE": metrics.mean_absolute_error(y, predicted, sample_weight=weight),
        "median absolute error": metrics.median_absolute_error(y, predicted, sample_weight=weight),
        "mean residual": np.average(y - predicted, weights=weight, axis=0).mean(),
        "share below the prediction": np.average(y < predicted, weights=weight, axis=0).mean(),
    }


def _ranking(model: Any, rows: Measured) -> dict[str, Any]:
    X, y, weight, query = rows
    scores = model.predict(X)
    return {
        "NDCG@5": ndcg(y, scores, query, k=5),
        "NDCG@10": ndcg(y, scores, query),
        "pairs in the wrong order": disagreement(y, scores, query, weight),
    }
