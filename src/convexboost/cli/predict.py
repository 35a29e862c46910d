"""``convexboost predict``: a model's answers for the rows of a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from convexboost.cli.models import load
from convexboost.cli.output import CommandError, check_file, folder_of
from convexboost.cli.rows import Data, Roles
from convexboost.cli.tables import ENDINGS, Letor
from convexboost.core.atomic import write_atomically
from convexboost.estimators._base import BaseConvexBoost

JSON = (".json", ".jsonl")  #: endings of files with a line of JSON per row


def run(
    model: Path,
    data: Path,
    out: Path | None,
    *,
    proba: bool,
    scores: bool,
    keep: Sequence[str],
    form: str | None,
    as_json: bool,
) -> None:
    """Load, read, predict, write."""
    if proba and scores:
        raise CommandError("`--proba` and `--scores` cannot be combined")
    if out is not None:
        if out.suffix.lower() not in (*ENDINGS["csv"], *ENDINGS["parquet"], *JSON):
            endings = ", ".join((*ENDINGS["csv"], *ENDINGS["parquet"], *JSON))
            raise CommandError(f"`--out` must end in one of {endings}, got {out}")
        check_file(out, "--out")
    estimator = load(model)
    if proba:
        check_probabilities(estimator, model)
    file = Data(data, form, Roles(), estimator)
    X = file.rows(None).X
    try:
        answers = table(estimator, X, proba=proba, scores=scores)
    except ValueError as error:
        raise CommandError(f"{file.name}: {error}") from error
    if keep:
        answers = pd.concat([_kept(file, keep), answers], axis=1)
    _write(answers, out, as_json)


def check_probabilities(model: BaseConvexBoost, path: Path) -> None:
    """Refuse to give probabilities where there are none."""
    if not is_classifier(model):
        raise CommandError(f"`--proba` needs a classifier, but {path} is a {type(model).__name__}")
    if not model.loss_.has_link:
        raise CommandError(f"`--proba`: the loss {model.loss_} gives no probabilities; try --scores")


def table(model: Any, X: Any, *, proba: bool = False, scores: bool = False) -> pd.DataFrame:
    """Return the answers as columns with names."""
    if proba:
        return pd.DataFrame(model.predict_proba(X), columns=[f"proba_{label}" for label in model.classes_])
    if scores:
        values = model.decision_function(X) if is_classifier(model) else model._scores(X)
        name = "score"
    else:
        values, name = model.predict(X), "prediction"
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim == 1:
        return pd.DataFrame({name: values})
    labels = model.classes_ if is_classifier(model) else np.arange(1, values.shape[1] + 1)
    return pd.DataFrame(values, columns=[f"{name}_{label}" for label in labels])


def _kept(file: Data, keep: Sequence[str]) -> pd.DataFrame:
    if isinstance(file.file, Letor):
        raise CommandError(f"`--keep` is not used: {file.name} has no names of columns")
    return pd.DataFrame({name: file.file.column(name, "--keep").to_pandas() for name in keep})


def _write(answers: pd.DataFrame, out: Path | None, as_json: bool) -> None:
    """Write CSV, Parquet or a line of JSON per row."""
    if out is None:
        stream = sys.stdout
        if as_json:
            answers.to_json(stream, orient="records", lines=True, double_precision=15, date_format="iso")
        else:
            answers.to_csv(stream, index=False, lineterminator="\n")
        stream.flush()
        return
    buffer = io.BytesIO()
    if out.suffix.lower() in ENDINGS["parquet"]:
        answers.to_parquet(buffer, index=False)
    elif as_json or out.suffix.lower() in JSON:
        answers.to_json(buffer, orient="records", lines=True, double_precision=15, date_format="iso")
    else:
        answers.to_csv(
            buffer, index=False, lineterminator="\n", sep="\t" if out.suffix.lower() == ".tsv" else ","
        )
    with folder_of(out):
        write_atomically(out, buffer.getvalue())
