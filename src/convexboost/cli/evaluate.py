"""``convexboost evaluate``: how good a model is on the rows of a file."""

from __future__ import annotations

from pathlib import Path

from convexboost.cli.models import load
from convexboost.cli.output import CommandError, show
from convexboost.cli.rows import Data, Roles
from convexboost.estimators._measures import Measured, measures


def run(model: Path, data: Path, roles: Roles, form: str | None, as_json: bool) -> None:
    """Load, read, measure, print."""
    estimator = load(model)
    task = estimator._task
    file = Data(data, form, roles, estimator)
    if task == "ranking" and not file.has_queries:
        raise CommandError(f"`--query` is needed: {model} is a ranker")
    rows = file.rows(task)
    assert rows.y is not None
    try:
        found = measures(estimator, Measured(rows.X, rows.y, rows.weight, rows.query))
    except ValueError as error:
        raise CommandError(f"{file.name}: {error}") from error
    show({"model": str(model), "task": task, "rows": rows.shape[0], **found}, as_json)
