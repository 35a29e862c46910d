"""The tables of tables.py, what is measured on each, and the loss of every test row."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import accuracy_data
from accuracy_data import HELD_SHARE, Parts
from accuracy_models import ABSOLUTE, CLASSES, HIGH, LOW, SQUARED, Rows

OURS = "convexboost"
PEERS = ("LightGBM", "XGBoost", "HistGradientBoosting", "CatBoost")
TEST, TRAINING = "test", "training"  #: the rows that are tested on
NUMBERS = (SQUARED, ABSOLUTE, LOW, HIGH)
AUC, LOG_LOSS, ERROR, RMSE = "1 − AUC", "log-loss", "error", "RMSE"
MEASURES = {
    CLASSES: (AUC, LOG_LOSS, ERROR),
    **{objective: accuracy_data.MEASURES[objective] for objective in NUMBERS},
    SQUARED: (RMSE,),
}
LEAST_PROBABILITY = 1e-15  #: a class that was given less counts as if it were given this much


def folder() -> Path:
    """Return the folder of the tables."""
    found = Path(os.environ.get("CONVEXBOOST_DATA", "../shared/data")) / "tables"
    if not found.is_dir():
        raise SystemExit(f"there is no folder {found}: set CONVEXBOOST_DATA to the folder with the data sets")
    return found


@functools.cache
def meta(name: str) -> dict[str, Any]:
    """Return what is known about a table."""
    return json.loads((folder() / name / "meta.json").read_text(encoding="utf-8"))


def names() -> list[str]:
    """Return the tables, the smallest first."""
    found = [path.parent.name for path in folder().glob("*/meta.json")]
    return sorted(found, key=lambda name: (meta(name)["rows"] * meta(name)["features"], name))


def objectives(name: str) -> tuple[str, ...]:
    """Return what models are fitted to."""
    return NUMBERS if meta(name)["task"] == "regression" else (CLASSES,)


def measures(name: str, objective: str) -> tuple[str, ...]:
    """Return what is measured of a model that was fitted to an objective."""
    return tuple(m for m in MEASURES[objective] if m != AUC or meta(name)["task"] == "binary")


@functools.lru_cache(maxsize=1)
def load(name: str) -> Parts:
    """Load a table: categorical columns have that dtype, an empty field is missing, classes are numbered."""
    about = meta(name)
    is_class = about["task"] != "regression"
    text = [*about["categorical"], *([about["target"]] if is_class else [])]
    X = pd.read_csv(
        folder() / name / "table.csv.gz",
        dtype=dict.fromkeys(text, str),
        keep_default_na=False,
        na_values=[""],
        encoding="utf-8",
    )
    target = X.pop(about["target"])
    X = X.astype({c: "category" if c in about["categorical"] else float for c in X.columns})
    if is_class:
        y = target.map({label: code for code, label in enumerate(about["classes"])}).to_numpy(dtype=int)
    else:
        y = target.to_numpy(dtype=float)
    order = np.random.default_rng(about["split_seed"]).permutation(len(y))
    rows, n_test = Rows(X, y), len(y) // 4
    return Parts(rows.take(np.sort(order[n_test:])), rows.take(np.sort(order[:n_test])))


def parts(name: str, which: str, limit: int | None = None) -> Parts:
    """Return rows to train on and to test on: those of the fixed split, or a split of its training rows."""
    whole = load(name)
    return whole if which == TEST else held_out(whole.train, name, seed=1, limit=limit)


def held_out(rows: Rows, name: str, seed: int, limit: int | None = None) -> Parts:
    """Hold out a quarter of some rows, of which at most `limit` are used.

    A held-out row whose class has no training row is dropped: no model could name it.
    """
    order = np.random.default_rng(seed).permutation(len(rows.y))[:limit]
    n_held = int(HELD_SHARE * len(order))
    train, held = rows.take(np.sort(order[n_held:])), rows.take(np.sort(order[:n_held]))
    if objectives(name) == NUMBERS:
        return Parts(train, held)
    classes = np.unique(train.y)
    held = held.take(np.flatnonzero(np.isin(held.y, classes)))
    return Parts(*(part._replace(y=np.searchsorted(classes, part.y)) for part in (train, held)))


def method(objective: str) -> str:
    """Return the method that predicts what `losses` wants."""
    return "predict_proba" if objective == CLASSES else "predict"


def losses(objective: str, rows: Rows, P: np.ndarray) -> dict[str, np.ndarray]:
    """Return the loss of each row; for two classes also the label and the score, which AUC is made of."""
    if objective == SQUARED:  # the root is taken of the mean
        return {RMSE: (P - rows.y) ** 2}
    if objective != CLASSES:
        return accuracy_data.losses(objective, rows, P)
    given = np.clip(P[np.arange(len(P)), rows.y], LEAST_PROBABILITY, 1.0)
    found = {LOG_LOSS: -np.log(given), ERROR: (P.argmax(axis=1) != rows.y).astype(float)}
    return found if P.shape[1] != 2 else {**found, "label": rows.y.astype(float), "score": P[:, 1]}
