"""An experiment as pieces of work that can be stopped, resumed and reported.

A `Study` has units; each unit trains one model and returns a `Curve`.  An experiment is a module with

    def study(quick: bool) -> Study: ...                     # the units and their settings
    def sections(results: Results) -> list[Section]: ...     # figures and tables
    def verdicts(results: Results) -> list[Verdict]: ...     # the paper's claims

and hands the last two to its `Study`.  A unit (`callback` is a callback for `boost` or an estimator):

    def run(callback):
        model = ConvexBoostClassifier(..., callbacks=[callback]).fit(X, y)
        errors = {"test_error": ...}  # one number per round, NaN where it was not computed
        return Curve.of(model.history_, "letter", "residual", extras=errors, facts={"distinct stumps": 40})

Sections, figures and verdicts come from `reports.content`; curves are drawn by `line_figure`.
`sections` and `verdicts` get the runs that exist: `results.fact(key, name)` is NaN for a missing run (and
the verdict then "not decided"), and an interrupted curve may lack extra columns and facts.

`Study.run` writes each finished unit to OUT/runs/STUDY/KEY.FINGERPRINT.json and skips those already there.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import convexboost
from convexboost.boosting.training import Callback, Record
from convexboost.core.atomic import write_atomically
from convexboost.paper.curve import LABELS, Curve, Results, line_figure, plain
from convexboost.reports.content import Block, Report, Section, Table, Text, Verdict, VerdictList
from convexboost.reports.environment import commit, environment, now
from convexboost.reports.markdown import write_markdown

__all__ = [
    "Curve",
    "Outcome",
    "Progress",
    "Results",
    "Study",
    "Unit",
    "UnitState",
    "compose",
    "line_figure",
    "publish",
]


@dataclass(frozen=True)
class Unit:
    """One piece of work: train one model.

    A key is a file name; `settings` is everything that the result depends on and is JSON-able, so that a
    changed one is a new unit; `weak_learners` is the total of the progress bar.
    """

    key: str
    title: str
    run: Callable[[Callback], Curve]
    settings: Mapping[str, Any]
    weak_learners: int

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", self.key):
            raise ValueError(f"`key` must consist of letters, digits, - and _, got {self.key!r}")

    @property
    def fingerprint(self) -> str:
        """Return a short hash of the settings and the version of the library."""
        text = json.dumps([plain(self.settings), convexboost.__version__], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]


class Progress:
    """Reports the progress of a study; this one prints nothing."""

    def begin(self, unit: Unit) -> None:
        """A unit begins."""

    def record(self, unit: Unit, record: Record) -> None:
        """A round is done."""

    def end(self, unit: Unit, state: UnitState) -> None:
        """A unit has ended, or was there already."""


@dataclass(frozen=True)
class UnitState:
    """How far a unit got."""

    words: str  #: "done", "taken from an earlier run", "interrupted", "failed" or "not begun"
    seconds: float = math.nan
    made: str = ""  #: when, with which commit
    why: str = ""  #: it failed


DONE, REUSED, INTERRUPTED, FAILED = "done", "taken from an earlier run", "interrupted", "failed"
NOT_BEGUN = UnitState("not begun")


@dataclass(frozen=True)
class Outcome:
    """The results of a study, and how far each unit got."""

    results: Results
    states: dict[str, UnitState]  #: by key, of every unit
    interrupted: bool

    @property
    def complete(self) -> bool:
        """Return whether every unit has its result."""
        return all(state.words in (DONE, REUSED) for state in self.states.values())


@dataclass(frozen=True)
class Study:
    """An experiment: its units, and what is made of their curves."""

    name: str
    title: str
    intro: str
    settings: Mapping[str, Any]
    units: Sequence[Unit]
    sections: Callable[[Results], list[Section]]
    verdicts: Callable[[Results], list[Verdict]]

    def __post_init__(self) -> None:
        keys = [unit.key for unit in self.units]
        if len(set(keys)) < len(keys):
            raise ValueError(f"`units` must have different keys, got {keys}")

    def path(self, out: Path, unit: Unit, partial: bool = False) -> Path:
        """Return where the result of a unit is kept."""
        part = ".partial" if partial else ""
        return out / "runs" / self.name / f"{unit.key}.{unit.fingerprint}{part}.json"

    def run(self, out: Path, progress: Progress | None = None, fresh: bool = False) -> Outcome:
        """Run the units that are not in `out` yet; `fresh`: all of them.

        A unit that raises is noted and the others go on.  Ctrl-C ends the study and keeps what is there.
        """
        progress = progress or Progress()
        results = Results()
        states = {unit.key: NOT_BEGUN for unit in self.units}
        (out / "runs" / self.name).mkdir(parents=True, exist_ok=True)
        with _interruptions() as asked:
            try:
                for unit in self.units:
                    curve, state = (None, NOT_BEGUN) if fresh else _load(self.path(out, unit))
                    if curve is None:
                        progress.begin(unit)
                        curve, state = self._attempt(unit, out, progress, asked)
                    states[unit.key] = state
                    if curve is not None:
                        results[unit.key] = curve
                    progress.end(unit, states[unit.key])
                    if asked:
                        break
            except KeyboardInterrupt:  # between two units
                asked.append(True)
        return Outcome(results, states, bool(asked))

    def found(self, out: Path) -> Outcome:
        """Run nothing: return what is there already."""
        loaded = {unit.key: _load(self.path(out, unit)) for unit in self.units}
        results = Results((key, curve) for key, (curve, _) in loaded.items() if curve is not None)
        return Outcome(results, {key: state for key, (_, state) in loaded.items()}, True)

    def _attempt(
        self, unit: Unit, out: Path, progress: Progress, asked: list[bool]
    ) -> tuple[Curve | None, UnitState]:
        began, records = time.perf_counter(), list[Record]()

        def callback(record: Record) -> bool:
            records.append(record)
            progress.record(unit, record)
            return bool(asked)  # a true value stops the training

        try:
            curve: Curve | None = unit.run(callback)
        except KeyboardInterrupt:
            asked.append(True)
            curve = None
        except Exception as error:
            return None, UnitState(FAILED, time.perf_counter() - began, _made(), _why(error))
        seconds = time.perf_counter() - began
        if asked:  # `boost` returns when it is interrupted, so there may be a curve
            if curve is None:
                curve = _so_far(unit, records)
            if curve is None:
                return None, UnitState(INTERRUPTED, seconds, _made())
            curve = replace(curve, partial=True)
        assert curve is not None
        state = UnitState(INTERRUPTED if asked else DONE, seconds, _made())
        _save(self.path(out, unit, partial=bool(asked)), unit, curve, state)
        if not asked:
            self.path(out, unit, partial=True).unlink(missing_ok=True)
        return curve, state

    def report(self, outcome: Outcome) -> list[Section]:
        """Return the sections of this study: claims, figures, runs, settings."""
        verdicts = self.verdicts(outcome.results.complete)
        counted, others = ([v for v in verdicts if v.counts is which] for which in (True, False))
        found = [Section(self.title, [Text(self.intro), VerdictList(counted)])]
        if others:
            found.append(
                Section("Our own questions and settings", [Text(OURS), VerdictList(others)], level=2)
            )
        found += [replace(section, level=2) for section in self._figures(outcome)]
        files = Text(
            f"Every round of every run is in `data/{self.name}/` beside the report, one CSV file each."
        )
        last: list[Block] = [_runs(self, outcome), Text(_took(outcome)), files, _settings(self)]
        return [*found, Section("Runs and settings", last, level=2)]

    def _figures(self, outcome: Outcome) -> list[Section]:
        """An experiment that did not expect a run to be missing must not cost the partial report."""
        try:
            return self.sections(outcome.results)
        except Exception as error:
            if outcome.complete:
                raise
            words = f"The runs that are there are not enough to draw: {_why(error)}."
            return [Section("Figures", [Text(words)])]

    def write_csv(self, outcome: Outcome, out: Path) -> None:
        """Write every curve in full to OUT/data/STUDY/KEY.csv."""
        folder = out / "data" / self.name
        folder.mkdir(parents=True, exist_ok=True)
        for key, curve in outcome.results.items():
            write_atomically(folder / f"{key}.csv", curve.csv().encode())


OURS = """
The same rules with choices that the paper does not make, and questions that follow from none of its
sentences. None of these answers counts as the paper's.
"""


def _runs(study: Study, outcome: Outcome) -> Table:
    rows = []
    for unit in study.units:
        state, curve = outcome.states[unit.key], outcome.results.get(unit.key)
        last = [curve[name][-1] if curve is not None else math.nan for name in LABELS]
        words = f"{state.words}: {state.why}" if state.why else state.words
        if state.words == REUSED:
            words += f" ({state.made})"
        rows.append((unit.title, last[0], last[1], last[3], state.seconds, words))
    columns = ("run", "weak learners", "gradients", "last objective", "seconds in all", "state")
    return Table(columns, rows)


def _took(outcome: Outcome) -> str:
    """Say how long the runs took, whenever they were made."""
    seconds = [state.seconds for state in outcome.states.values() if state.words in (DONE, REUSED)]
    return (
        f"{len(seconds)} of {len(outcome.states)} runs are there. One after the other they took "
        f"{sum(seconds) / 60:.1f} minutes on {os.cpu_count()} cores, beside whatever else ran there."
    )


def _settings(study: Study) -> Table:
    return Table(("setting", "value"), [(key, str(value)) for key, value in study.settings.items()])


def _so_far(unit: Unit, records: list[Record]) -> Curve | None:
    """Return the curve of a unit that was interrupted, from the records that were made."""
    if not records:
        return None
    history = {name: np.array([getattr(record, name) for record in records], float) for name in LABELS}
    named = unit.settings
    return Curve.of(history, str(named.get("dataset", "")), str(named.get("algorithm", unit.title)))


def _why(error: Exception) -> str:
    """Return the message; for an unexpected error also the place."""
    if isinstance(error, OSError) and str(error):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def _made() -> str:
    here = commit()
    return f"{now()}, {here}" if here else now()


def _save(path: Path, unit: Unit, curve: Curve, state: UnitState) -> None:
    kept = {
        "key": unit.key,
        "settings": plain(unit.settings),
        "seconds": state.seconds,
        "made": state.made,
        "curve": curve.json(),
    }
    write_atomically(path, json.dumps(kept, allow_nan=False).encode())


def _load(path: Path) -> tuple[Curve | None, UnitState]:
    """Read a finished unit; a file that cannot be read does not count."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Curve.from_json(found["curve"]), UnitState(REUSED, found["seconds"], found["made"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, NOT_BEGUN


def compose(
    title: str, lead: str, done: Sequence[tuple[Study, Outcome]], command: str, seconds: float
) -> Report:
    """Put studies together into one report that says what is missing."""
    sections = [section for study, outcome in done for section in study.report(outcome)]
    footer = {"command": command, "made": now(), "took": f"{seconds:.1f} s"} | environment()
    return Report(title, sections, lead, _warning(done, command), footer)


def publish(study: Study, outcome: Outcome, folder: Path, command: str) -> Path:
    """Write a study to a folder that is small enough to be kept with the code: README.md, PNG and CSV.

    A page that is partial says so at its top.
    """
    footer = {"command": f"`{command}`", "made": now()} | environment()
    first, *others = study.report(outcome)
    if warning := _warning([(study, outcome)], command):
        first = replace(first, blocks=[Text(warning), *first.blocks])
    return write_markdown([first, *others], folder, footer)


def _warning(done: Sequence[tuple[Study, Outcome]], command: str) -> str:
    units = [(u, outcome.states[u.key]) for study, outcome in done for u in study.units]
    open_ = [unit for unit, state in units if state.words in (INTERRUPTED, NOT_BEGUN.words)]
    failed = [(unit.title, state.why) for unit, state in units if state.words == FAILED]
    words = []
    if open_:
        words.append(
            f"**This report is partial**: {len(units) - len(open_) - len(failed)} of {len(units)} runs are "
            f"there. The same command completes it: `{command}`"
        )
    if failed:
        words.append(f"**{len(failed)} of {len(units)} runs failed.** The same command tries them again.")
        words.append("\n".join(_reasons(failed)))
    return "\n\n".join(words)


def _reasons(failed: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Name each reason once: data that are missing fail many runs."""
    for why in dict.fromkeys(why for _, why in failed):
        first, *others = (title for title, found in failed if found == why)
        yield f"- {first}{f', and {len(others)} more' if others else ''}: {why}"


@contextmanager
def _interruptions() -> Iterator[list[bool]]:
    """Note Ctrl-C even where somebody swallows it, as `boost` does to keep the finished rounds."""
    asked: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(*_: Any) -> None:
        asked.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
