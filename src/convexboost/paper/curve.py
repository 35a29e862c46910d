"""One training run as columns, to be kept, compared and drawn."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convexboost.core.space import Array
from convexboost.reports.content import Line, LineFigure

#: The columns that every curve has, and what an axis calls them.
LABELS = {
    "weak_learners": "weak learners",
    "gradient_evaluations": "gradient evaluations",
    "seconds": "seconds",
    "objective": "objective",
}
AXES = ("weak_learners", "gradient_evaluations", "seconds")
#: The paper's algorithms: Algorithms 1, 2 and 3; the last two are new in it.
PAPER = ("naive", "repeated", "residual")
NEW = PAPER[1:]


@dataclass(frozen=True)
class Curve:
    """One training run: columns with one entry per round (0 is the start), labels, and facts.

    Columns of another length are refused; where a number was not taken in every round, the rest is NaN.
    Facts are whatever JSON can hold: numbers for tables and verdicts, lists for maps.
    """

    dataset: str
    algorithm: str
    columns: Mapping[str, Array]
    variant: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    partial: bool = False  #: the run was interrupted

    def __post_init__(self) -> None:
        missing = set(LABELS) - set(self.columns)
        lengths = {name: len(column) for name, column in self.columns.items()}
        if missing or len(set(lengths.values())) > 1:
            raise ValueError(f"`columns` must have {', '.join(LABELS)}, equally long, got {lengths}")

    @classmethod
    def of(
        cls,
        history: Mapping[str, Array],
        dataset: str,
        algorithm: str,
        *,
        variant: str = "",
        facts: Mapping[str, Any] | None = None,
        extras: Mapping[str, Array] | None = None,
    ) -> Curve:
        """Take the columns from `history_` or `Result.history`, and further ones from `extras`."""
        columns = {name: np.asarray(history[name], float) for name in LABELS}
        columns |= {name: np.asarray(column, float) for name, column in (extras or {}).items()}
        return cls(dataset, algorithm, columns, variant, dict(facts or {}))

    @property
    def name(self) -> str:
        """Return what a legend calls it."""
        words = f"{self.algorithm}, {self.variant}" if self.variant else self.algorithm
        return f"{words} (interrupted)" if self.partial else words

    def __getitem__(self, column: str) -> Array:
        return self.columns[column]

    def lowest(self, weak_learners: float = math.inf) -> float:
        """Return the lowest objective within a number of weak learners."""
        return float(self["objective"][self["weak_learners"] <= weak_learners].min())

    def reached(self, level: float, column: str = "weak_learners") -> float:
        """Return the entry of a column when the objective first was at most `level`; NaN if it never was."""
        there = np.flatnonzero(self["objective"] <= level)
        return float(self[column][there[0]]) if len(there) else math.nan

    def json(self) -> dict[str, Any]:
        """Return plain values; NaN and infinities are written as text, because JSON has none."""
        return {
            "dataset": self.dataset,
            "algorithm": self.algorithm,
            "variant": self.variant,
            "partial": self.partial,
            "facts": plain(dict(self.facts)),
            "columns": {name: plain(np.asarray(c).tolist()) for name, c in self.columns.items()},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Curve:
        """Undo `json`."""
        columns = {name: np.array([float(v) for v in c]) for name, c in found["columns"].items()}
        facts = {name: from_plain(value) for name, value in found["facts"].items()}
        return cls(found["dataset"], found["algorithm"], columns, found["variant"], facts, found["partial"])

    def csv(self) -> str:
        """Return the columns as CSV."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*(np.asarray(c, float).tolist() for c in self.columns.values()), strict=True))
        return file.getvalue()


def spaced_rounds(weak_learners: Array, count: int) -> list[int]:
    """Choose about `count` rounds, the first and the last included, evenly on a logarithmic axis."""
    last = len(weak_learners) - 1
    marks = np.geomspace(1.0, max(weak_learners[-1], 1.0), count)
    rounds = np.searchsorted(weak_learners, marks * (1.0 - 1e-9)).clip(max=last)
    return sorted({0, last, *rounds.tolist()})


_NOT_IN_JSON = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def plain(value: Any) -> Any:
    """Make a value JSON-able: arrays become lists, NaN and infinities become words."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def from_plain(value: Any) -> Any:
    """Undo `plain`."""
    if isinstance(value, dict):
        return {key: from_plain(v) for key, v in value.items()}
    if isinstance(value, list):
        return [from_plain(v) for v in value]
    return _NOT_IN_JSON.get(value, value) if isinstance(value, str) else value


class Results(dict[str, Curve]):
    """The curves of the finished units by key; of an interrupted unit as far as it came."""

    @property
    def complete(self) -> Results:
        """Return those that were not interrupted."""
        return Results((key, curve) for key, curve in self.items() if not curve.partial)

    def fact(self, key: str, name: str) -> float:
        """Return a number for a verdict; NaN where the run is not there or was interrupted."""
        return float(self[key].facts[name]) if key in self.complete else math.nan


def line_figure(
    title: str,
    curves: Sequence[Curve],
    y: str,
    *,
    x: str = "weak_learners",
    ylabel: str = "",
    best: bool = False,
    log_y: bool = True,
    extra: Sequence[Line] = (),
) -> LineFigure:
    """Draw one column of several curves, one colour per algorithm; `best`: the smallest value so far.

    The reader may have any of `AXES` on the horizontal axis; `x` is shown first.

    `extra` are further lines (a bound, a published number).  Rounds where y is NaN are left out, and so are
    curves without this column: a run that was interrupted may have only the columns of `LABELS`.
    """
    dashes = ("solid", "dash", "dot")
    variants = {
        a: list({c.variant: 0 for c in curves if c.algorithm == a}) for a in {c.algorithm for c in curves}
    }
    lines = []
    for curve in curves:
        if y not in curve.columns:  # interrupted before it was computed
            continue
        known = ~np.isnan(curve[y])
        values = curve[y][known]
        dash = dashes[variants[curve.algorithm].index(curve.variant) % len(dashes)]
        values = np.minimum.accumulate(values) if best else values
        others = {LABELS[name]: curve[name][known] for name in AXES if name != x}
        lines.append(Line(curve.name, curve[x][known], values, curve.algorithm, dash, others))
    words = ylabel or LABELS.get(y, y.replace("_", " "))
    xlabel = LABELS.get(x, x.replace("_", " "))
    return LineFigure(title, [*lines, *extra], xlabel, words, log_x=True, log_y=log_y)
