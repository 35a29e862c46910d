"""``convexboost reproduce``: the paper's experiments, with a report."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import matplotlib  # noqa: F401  (the report needs both: better to miss them now than after hours)
import plotly  # noqa: F401
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from convexboost.boosting.training import Record
from convexboost.cli.output import CommandError, check_folder
from convexboost.paper import study as studies
from convexboost.paper.study import Outcome, Study, Unit, UnitState, compose, publish
from convexboost.reports.content import Report, Verdict, number
from convexboost.reports.page import write

#: What can be reproduced, in the order of "all"; each module has a function study(quick).
EXPERIMENTS = ("classification", "ranking", "planning", "counterexample")
STYLES = {True: "green", False: "red", None: "yellow"}
TITLE = "Generalized Boosting Algorithms for Convex Optimization, reproduced"
LEAD = """
The experiments of Grubb and Bagnell (ICML 2011), run anew with convexboost. For every claim there is a rule
that was fixed in the code, the numbers it looks at, and the answer. What was not reproduced is shown like
everything else.
"""


class ReproduceError(CommandError):
    """There is nothing to reproduce under this name."""


def run(what: str, quick: bool, out: Path, fresh: bool, pages: Path | None = None) -> int:
    """Run, report, and return the exit status: 0, 1 where runs failed, 130 after Ctrl-C.

    `pages` is where the small pages go, one folder for each experiment; by default to `out`/results.
    """
    console, began = Console(highlight=False), time.perf_counter()
    wanted = names(what)
    check_folder(out, "--out")
    if pages is not None:
        check_folder(pages, "--pages")
    chosen = [load(name, quick) for name in wanted]
    done = run_all(chosen, out, console, fresh)
    seconds = time.perf_counter() - began
    report = compose(TITLE, LEAD, done, command(what, quick, out), seconds)
    path = save(report, done, out)
    for study, outcome in done:
        publish(study, outcome, (pages or out / "results") / study.name, command(study.name, quick, out))
    for study, outcome in done:
        console.print("")
        console.print(_summary(study, outcome))
    print_verdicts(console, report.verdicts)
    if report.warning:
        console.print(f"\n[yellow]{escape(report.warning.replace('**', ''))}[/]")
    console.print(f"\nreport: {escape(str(path))}    total: {seconds:.0f} s", soft_wrap=True)
    if any(outcome.interrupted for _, outcome in done):
        return 130
    return 0 if all(outcome.complete for _, outcome in done) else 1


def names(what: str) -> list[str]:
    """Return the experiments that are meant."""
    if what == "all":
        return list(EXPERIMENTS)
    if what not in EXPERIMENTS:
        raise ReproduceError(f"`what` must be one of {', '.join(EXPERIMENTS)} or all, got {what!r}")
    return [what]


def load(name: str, quick: bool) -> Study:
    """Make the study of an experiment."""
    made: Study = import_module(f"convexboost.paper.{name}").study(quick=quick)
    return made


def command(what: str, quick: bool, out: Path) -> str:
    """Return what the reader types to get the report, or the rest of it."""
    return f"convexboost reproduce {what}{' --quick' if quick else ''} --out {out}"


def run_all(chosen: Sequence[Study], out: Path, console: Console, fresh: bool) -> list[tuple[Study, Outcome]]:
    """Run one study after the other; after Ctrl-C the others only look for what is there."""
    done: list[tuple[Study, Outcome]] = []
    with Bars(console, sum(len(study.units) for study in chosen)) as bars:
        for study in chosen:
            stopped = any(outcome.interrupted for _, outcome in done)
            done.append((study, study.found(out) if stopped else study.run(out, bars, fresh)))
    return done


def save(report: Report, done: Sequence[tuple[Study, Outcome]], out: Path) -> Path:
    """Write the report and the curves beside it."""
    for study, outcome in done:
        study.write_csv(outcome, out)
    return write(report, out)


class Bars(studies.Progress):
    """A bar for the unit at work, and one for all of them."""

    PAUSE = 0.05  #: seconds between updates: the display must not cost more than the training

    def __init__(self, console: Console, units: int) -> None:
        self.console, self.last = console, 0.0
        self.task: TaskID | None = None
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self.all = self.bars.add_task("all runs", total=units, words=f"0 of {units}")

    def __enter__(self) -> Bars:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def begin(self, unit: Unit) -> None:
        """Open a bar."""
        self.task = self.bars.add_task(escape(unit.title), total=unit.weak_learners, words="")

    def record(self, unit: Unit, record: Record) -> None:
        """Move it."""
        now = time.perf_counter()
        if self.task is not None and now - self.last > self.PAUSE:
            self.last = now
            edge = record.intrinsic_edge if math.isnan(record.edge) else record.edge
            words = (
                f"{record.weak_learners} weak learners  objective {record.objective:.4g}  edge {number(edge)}"
            )
            self.bars.update(self.task, completed=record.weak_learners, words=words)

    def end(self, unit: Unit, state: UnitState) -> None:
        """Close it, and say in a line how it went."""
        if self.task is not None:
            self.bars.remove_task(self.task)
            self.task = None
        self.bars.advance(self.all)
        task = self.bars.tasks[0]
        self.bars.update(self.all, words=f"{task.completed:.0f} of {task.total:.0f}")
        style = {studies.FAILED: "red", studies.INTERRUPTED: "yellow"}.get(state.words, "green")
        words = f"{state.words}: {state.why}" if state.why else f"{state.words}, {state.seconds:.1f} s"
        self.console.print(f"{escape(unit.title)}  [{style}]{escape(words)}[/]")


def _summary(study: Study, outcome: Outcome) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(study.title.lower())
    for column in ("learners", "gradients", "objective", "lowest", "seconds"):
        table.add_column(column, justify="right")
    for unit in study.units:
        if (curve := outcome.results.get(unit.key)) is not None:
            last = [curve[name][-1] for name in ("weak_learners", "gradient_evaluations", "objective")]
            cells = [*last, curve["objective"].min(), curve["seconds"][-1]]
            words = f"{unit.title} (interrupted)" if curve.partial else unit.title
            table.add_row(escape(words), *(number(float(cell)) for cell in cells))
    return table


def print_verdicts(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print each claim of the paper, its rule with the numbers, and the answer."""
    for verdict in verdicts:
        if not verdict.counts:  # they are in the report
            continue
        style = STYLES[verdict.holds]
        console.print(f"\n[bold {style}]{verdict.text}[/]  “{escape(verdict.claim)}”")
        for c in verdict.comparisons:
            console.print(f"    {escape(c.rule)}  [dim]({number(c.value)} {c.relation} {number(c.limit)})[/]")
