"""``convexboost fit``: from a file with data to a file with a model."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from convexboost.cli.models import ENDING
from convexboost.cli.output import CommandError, check_file, folder_of, show
from convexboost.cli.rows import Data, Roles, Rows
from convexboost.cli.settings import ESTIMATORS, SettingsError, make, parse_sets, read_config, task_of
from convexboost.estimators._base import BaseConvexBoost
from convexboost.estimators._input import Given


class FitOptions(NamedTuple):
    """What the command line says."""

    data: Path
    target: str | None = None
    task: str | None = None
    loss: str | None = None
    learner: str | None = None
    valid: Path | None = None
    weight: str | None = None
    query: str | None = None
    drop: Sequence[str] = ()
    config: Path | None = None
    sets: Sequence[str] = ()
    out: Path | None = None
    form: str | None = None
    verbose: int | None = None
    as_json: bool = False


def run(given: FitOptions) -> None:
    """Read, train, save, and say what was done."""
    options, parameters = read_config(given.config)
    parameters |= {name: value for name in ("loss", "learner") if (value := getattr(given, name)) is not None}
    parameters |= parse_sets(given.sets)
    given = _merged(given, options)
    out = given.out or _named_after(given.data)
    check_file(out, "--out")
    if out.exists() and given.data.exists() and out.samefile(given.data):
        raise SettingsError(f"`--out` must not be the file with the data, got {out}")
    if given.task is not None and given.task not in ESTIMATORS:
        raise SettingsError(f"`--task` must be one of {', '.join(ESTIMATORS)}, got {given.task!r}")
    roles = Roles(given.target, given.weight, given.query, given.drop)
    data = Data(given.data, given.form, roles)
    task, why = given.task or task_of(parameters.get("loss")), ""
    if task is None:
        task, why = data.task()
    estimator = make(task, {"verbose": int(sys.stderr.isatty()), **parameters})
    if given.verbose is not None:
        estimator.set_params(verbose=given.verbose)
    rows = data.rows(task)
    notes = list(rows.notes)
    valid = None
    if given.valid is not None:
        valid = _validation(given, roles, estimator, rows, task)
    began = time.perf_counter()
    try:
        with _told(notes):
            model = _fitted(estimator, task, rows, valid)
    except KeyboardInterrupt:
        if "model_" not in vars(estimator):
            raise
        words = "interrupted"
        if out.exists():
            words += f"; {out} is left as it was"
            out = out.with_name(f"{out.name}.partial")
        with folder_of(out):
            estimator.save(out)
        words += f"; {out} holds the model of {estimator.n_rounds_} rounds"
        raise KeyboardInterrupt(words) from None
    seconds = time.perf_counter() - began
    with folder_of(out):
        model.save(out)
    for note in dict.fromkeys(notes):
        print(f"note: {note}", file=sys.stderr)
    show(_summary(model, task, why, rows, seconds, out), given.as_json)


def _named_after(data: Path) -> Path:
    """Return the model file of a data file: sales.2023.csv.gz gives sales.2023."""
    if str(data) == "-":
        raise SettingsError("`--out` is needed: standard input has no name to call the model after")
    return Path(f"{Path(data.name.removesuffix('.gz')).stem}{ENDING}")


def _merged(given: FitOptions, options: Mapping[str, Any]) -> FitOptions:
    """Take from the configuration what the command line leaves open."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if getattr(given, name) in (None, (), []):
            found[name] = Path(value) if name in ("valid", "out") else value
    if isinstance(found.get("drop"), str):
        found["drop"] = [found["drop"]]
    return given._replace(**found)


def _validation(given: FitOptions, roles: Roles, estimator: BaseConvexBoost, rows: Rows, task: str) -> Rows:
    """Read the rows to validate on, whose columns must hold what those of the training rows hold."""
    assert given.valid is not None
    learned = make(task, estimator.get_params(deep=False))
    with _refused():
        learned._training_rows(Given(rows.X, rows.y), None)  # learns the columns and the classes
    return Data(given.valid, given.form, roles._replace(drop=()), learned).rows(task)


def _fitted(estimator: BaseConvexBoost, task: str, rows: Rows, valid: Rows | None) -> BaseConvexBoost:
    arguments: dict[str, Any] = {"sample_weight": rows.weight}
    groups = "qid" if task == "ranking" else "groups"
    if rows.query is not None:
        arguments[groups] = rows.query
    if valid is not None:
        arguments |= {"X_val": valid.X, "y_val": valid.y, "sample_weight_val": valid.weight}
        if valid.query is not None:
            arguments[f"{groups}_val"] = valid.query
    with _refused():
        fitted: BaseConvexBoost = estimator.fit(rows.X, rows.y, **arguments)
    return fitted


@contextmanager
def _refused() -> Iterator[None]:
    """Turn what the estimators refuse into an error of the command."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise CommandError(str(error)) from error


@contextmanager
def _told(notes: list[str]) -> Iterator[None]:
    """Collect the warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    notes += [str(warning.message) for warning in caught]


def _summary(
    model: BaseConvexBoost, task: str, why: str, rows: Rows, seconds: float, out: Path
) -> dict[str, Any]:
    n_rows, n_columns = rows.shape
    return {
        "model": str(out),
        "task": task,
        "why": why,
        "rows": n_rows,
        "columns": n_columns,
        "loss": str(model.loss_),
        "learner": str(model._settled.settled_learner),
        "rounds": model.n_rounds_,
        "best round": model.best_round_,
        "output": model._settled.options.output,
        **model._losses_of_model(),
        "stopped": model.stop_reason_,
        "seconds": round(seconds, 3),
    }
