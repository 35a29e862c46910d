"""``convexboost inspect``: what a fitted model is, how its training went, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from convexboost.cli.models import load
from convexboost.cli.output import CommandError, check_file, check_picture, folder_of, show
from convexboost.cli.rows import Data, Roles
from convexboost.estimators._base import BaseConvexBoost
from convexboost.inspection.findings import Diagnosis


class Page(NamedTuple):
    """The page to write, and the rows to show on it."""

    out: Path
    data: Path | None = None
    roles: Roles = Roles()
    form: str | None = None


def run(
    path: Path,
    figure: Path | None = None,
    page: Page | None = None,
    *,
    pickles: bool = False,
    as_json: bool = False,
) -> None:
    """Load, print, draw."""
    if page is not None:
        check_file(page.out, "--html")
    model = load(path, pickles=pickles)
    if figure is not None:
        check_picture(figure, "--figure")
        with folder_of(figure):
            draw(model, figure)
    if page is not None:
        write_page(model, page)
    if as_json:
        show(facts(model, path), as_json=True)
        return
    console = Console(highlight=False)
    console.print(f"[bold]{type(model).__name__}[/] in {escape(str(path))}")
    console.print(_settings(model))
    console.print(_numbers(model))
    if model.certificate_ is not None:
        console.print(f"\n[bold]Certificate[/]\n{escape(str(model.certificate_))}")
    console.print("\n[bold]Diagnosis[/]")
    _tell(console, model.diagnose())
    if figure is not None:
        console.print(f"\npicture: {escape(str(figure))}", soft_wrap=True)
    if page is not None:
        console.print(f"\npage: {escape(str(page.out))}", soft_wrap=True)


def write_page(model: BaseConvexBoost, page: Page) -> None:
    """Write the page about the model."""
    if page.data is None:
        with folder_of(page.out):
            model.report(page.out)
        return
    data = Data(page.data, page.form, page.roles, model)
    has_targets = data.has_targets and (model._task != "ranking" or data.has_queries)
    rows = data.rows(model._task if has_targets else None)
    qid = rows.query if has_targets and model._task == "ranking" else None
    try:
        with folder_of(page.out):
            model.report(page.out, rows.X, rows.y, rows.weight if has_targets else None, qid=qid)
    except ValueError as error:
        raise CommandError(f"{data.name}: {error}") from error


def facts(model: BaseConvexBoost, path: Path) -> dict[str, Any]:
    """Return what is printed as plain values."""
    history = model.history_
    found: dict[str, Any] = {
        "model": str(path),
        "estimator": type(model).__name__,
        "task": model._task,
        "features": list(map(str, model._columns.names)),
        "loss": str(model.loss_),
        "learner": str(model._settled.settled_learner),
        "algorithm": model._settled.options.algorithm.name,
        "step": model._settled.options.step.name,
        "output": model.output,
        "members": model.n_members_,
        "rounds": model.n_rounds_,
        "best round": model.best_round_,
        "weak learners": int(history["weak_learners"][-1]),
        "seconds": float(history["seconds"][-1]),
        "stopped": model.stop_reason_,
    }
    measured = model._losses_of_model()
    found |= {name: measured.get(name) for name in ("objective", "validation", "score")}
    diagnosis = model.diagnose()
    certificate = model.certificate_
    return found | {
        "gap": None if certificate is None else float(certificate.gap()),
        "diagnosis": list(diagnosis.lines),
        "warnings": [finding.title for finding in diagnosis.warnings],
    }


def draw(model: BaseConvexBoost, path: Path) -> Path:
    """Draw the convergence and the edges side by side."""
    from matplotlib.figure import Figure

    from convexboost.inspection.displays import ConvergenceDisplay, EdgeDisplay

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    ConvergenceDisplay.from_estimator(model, ax=left)
    EdgeDisplay.from_estimator(model, ax=right)
    for ax, title in ((left, "Convergence"), (right, "Edges")):
        ax.set_title(title)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.5)
    figure.savefig(path, dpi=150)
    return path


def _settings(model: BaseConvexBoost) -> Table:
    history = model.history_
    rows = {
        "loss": model.loss if isinstance(model.loss, str) else model.loss_.name,
        "learner": model.learner,
        "algorithm": model.algorithm,
        "step": model.step,
        "output": f"{model.output}, of round {_handed_out(model)}",
        "members": model.n_members_,
        "rounds": f"{model.n_rounds_}, {history['weak_learners'][-1]:.0f} weak learners, "
        f"{history['seconds'][-1]:.3g} s",
        "stopped": model.stop_reason_,
    }
    return _table(rows)


def _handed_out(model: BaseConvexBoost) -> str:
    of_model = model._round_of_model()
    return f"0 to {model.n_rounds_ - 1}, their mean" if of_model is None else str(of_model)


def _numbers(model: BaseConvexBoost) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for column in ("start", "last", "best", "in round"):
        table.add_column(column, justify="right")
    for name in ("objective", "validation"):
        values = model.history_[name]
        if not np.isnan(values).all():
            best = int(np.nanargmin(values))
            cells = (values[0], values[-1], values[best])
            table.add_row(name, *(f"{value:.6g}" for value in cells), f"{best}")
    return table


def _table(rows: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in rows.items():
        table.add_row(name, escape(str(value)))
    return table


def _tell(console: Console, diagnosis: Diagnosis) -> None:
    """Print the sentences, warnings in colour."""
    warned = {finding.title for finding in diagnosis.warnings}
    for line in diagnosis.lines:
        title, colon, rest = line.partition(": ")
        colour = "yellow" if title in warned else "bold"
        console.print(f"[{colour}]{escape(title)}[/]{colon}{escape(rest)}" if colon else escape(line))
