"""The page of accuracy.py: rows of the table, the goals, and what was fixed in advance."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

import accuracy_models as models
import common
from accuracy_data import MAX_TUNING_ROWS, MEASURES
from accuracy_models import CLASSES, LEVELS, LIBRARIES
from accuracy_statistics import LEVEL, RESAMPLES, Outcome, compare, goals, mean
from common import number, table

DEFAULTS, TUNED = "defaults", "tuned"
ENTRIES = ("convexboost, hinge", "convexboost, softmax")  #: what stands for ours on classes
PEERS = tuple(peer.name for peer in models.PEERS)
FIXED = """\
- The splits are those of `convexboost.datasets`: official test parts where there are any, else a fifth of the
  rows, always the same; for ranking the five official folds, trained on the training part of each; every
  query is tested once, and the queries of all folds are taken together.
- Categorical columns go to every library as categories.
- Seeds: {seeds}, of the defaults {default_seeds} (losses averaged over them; one where the defaults of a
  library draw nothing). One thread.
- Search: {trials} trials for each library and row, from {space}; a Latin hypercube, the same points for all.
  On at most {rows:,} rows of the training part, a quarter of them held out (ranking: the official validation
  part of each fold). A trial trains at most {rounds:,} rounds and stops when the library's own validation
  loss has not improved for {patience}; of its rounds and of the trials those are taken that have the least
  loss of the row's measure on the held-out rows. Then a fit to the whole training part with that setting and
  number of rounds. Only this is tested.
- Paired bootstrap over test examples (queries for ranking), {resamples:,} resamples: ▲ ours significantly
  better than this peer, ▼ significantly worse ({level:.0f} % interval of the difference), = neither; two
  marks where there are two of ours. It covers the drawing of test examples, not that of training sets, and is
  not corrected for the number of rows. The best peer of a row is the one that turned out best on the test
  part, which favours the peers.
- A fit that takes longer than {timeout:g} s has failed. A peer that failed is left out of that row; a
  trial that failed is lost.
- A mean rank is over the rows that a library has: HistGradientBoosting does not rank queries.
- The settings of ours do not know which data set they are used on."""


class Row(NamedTuple):
    """A row of the table: the losses of each library, seeds averaged, folds one after the other."""

    set: str
    objective: str
    measure: str
    losses: dict[str, np.ndarray]
    weight: np.ndarray | None
    failed: dict[str, str]  #: library -> why
    missing: list[str]  #: not run yet
    crossing: dict[str, float]

    @property
    def values(self) -> dict[str, float]:
        """Return the measure of each library that has one."""
        return {name: float(mean(found, self.weight)) for name, found in self.losses.items()}

    @property
    def ours(self) -> list[str]:
        """Return our entries in this row."""
        return [name for name in self.losses if name not in PEERS]

    @property
    def best_peer(self) -> str:
        """Return the peer with the least loss on the test part."""
        return min((name for name in self.losses if name in PEERS), key=self.values.__getitem__)

    @property
    def is_complete(self) -> bool:
        """Return whether all were run, and one of ours and a peer have a result."""
        return not self.missing and bool(self.ours) and any(name in PEERS for name in self.losses)

    def against(self, ours: str, peer: str | None = None) -> Outcome:
        """Compare one of ours with a peer, by default the best."""
        return compare(self.losses[ours], self.losses[peer or self.best_peer], self.weight)


def summary(rows: list[Row]) -> dict[str, Any]:
    """Return the goals, with the hinge and with softmax standing for ours on classes."""
    return {entry: _summary(rows, entry) for entry in ENTRIES}


def _summary(rows: list[Row], entry: str) -> dict[str, Any]:
    """Name ours `convexboost` in every row, whatever it was trained with."""
    values, outcomes, used = [], [], []
    for row in rows:
        ours = entry if row.objective == CLASSES else "convexboost"
        if not row.is_complete or ours not in row.losses:
            continue
        of_peers = {name: value for name, value in row.values.items() if name in PEERS}
        values.append({"convexboost": row.values[ours], **of_peers})
        outcomes.append(row.against(ours))
        used.append(f"{row.set}, {row.measure}")
    if not values:
        return {"rows": 0}
    found = goals("convexboost", values, outcomes)
    lost, won = ([used[n] for n in found[key]] for key in ("worse", "better"))
    return {**found, "worse": lost, "better": won, "rows": len(values)}


def half_section(half: str, rows: list[Row], found: dict[str, Any]) -> str:
    """Return the tables of a half."""
    about = {
        DEFAULTS: "Nothing is set but the objective, the seed and one thread.",
        TUNED: "The same search for every library and row, then the best setting with every seed.",
    }[half]
    if not any(row.losses for row in rows):
        return f"## {half.capitalize()}\n\n{about} Not run yet."
    columns = ("hinge / loss", "softmax", *PEERS)
    lines = [[row.set, row.measure, *_cells(row), _against(row)] for row in rows]
    notes = [
        f"{name} on {row.set}, {row.measure}: {why}." for row in rows for name, why in row.failed.items()
    ]
    incomplete = [f"{row.set}, {row.measure}" for row in rows if not row.is_complete]
    if incomplete:
        notes.append(f"Not complete, and left out of the summary: {'; '.join(incomplete)}.")
    sections = [
        f"## {half.capitalize()}",
        about,
        table(("data set", "measure", *columns, "ours / best peer"), lines),
        *(["\n".join(f"- {text}" for text in notes)] if notes else []),
        *(_goals(entry, found[entry], len(rows)) for entry in ENTRIES),
    ]
    return "\n\n".join(sections)


def _cells(row: Row) -> list[str]:
    """Return a row's numbers: the best in bold, peers marked by how ours compare with them."""
    values = row.values
    best = min(values.values(), default=np.nan)
    first = ENTRIES[0] if row.objective == CLASSES else "convexboost"
    shown = []
    for name in (first, ENTRIES[1], *PEERS):
        if name not in values:
            shown.append("failed" if name in row.failed else "")
            continue
        text = f"**{precise(values[name])}**" if values[name] == best else precise(values[name])
        marks = [row.against(ours, name).mark for ours in row.ours] if name in PEERS else []
        shown.append(f"{text} {' '.join(mark or '=' for mark in marks)}".strip())
    return shown


def _against(row: Row) -> str:
    if not (row.ours and any(name in PEERS for name in row.losses)):
        return ""
    outcomes = [row.against(ours) for ours in row.ours]
    return "; ".join(f"{o.ratio:.3f} ({o.low:.3f} to {o.high:.3f}) {o.mark}".strip() for o in outcomes)


def precise(value: float) -> str:
    """Return four figures, without an exponent."""
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _goals(entry: str, found: dict[str, Any], n_rows: int) -> str:
    loss = entry.partition(", ")[2]
    if not found["rows"]:
        return f"With {loss} on classes: no row is complete."
    order = sorted(found["mean ranks"].items(), key=lambda pair: pair[1])
    listed = ", ".join(f"{name} {rank:.2f}" for name, rank in order)
    worse = "; ".join(found["worse"]) or "none"
    all_rows = found["rows"] == n_rows
    partly = "" if all_rows else f" ({found['rows']} of {n_rows} rows are there: a goal not missed is open)"

    def verdict(reached: bool, for_good: bool = False) -> str:
        return common.verdict(reached) if all_rows or for_good else "open"

    return "\n".join(
        [
            f"With **{loss}** on classes{partly}:\n",
            f"- mean ranks: {listed} (goal, ours first: {verdict(found['is first'])})",
            f"- geometric mean of ours / best peer: {found['geometric mean']:.3f} "
            f"(goal, at most 1: {verdict(found['geometric mean'] <= 1)})",
            f"- significantly worse than the best peer on {len(found['worse'])} rows: {worse} "
            f"(goal, on none: {verdict(not found['worse'], for_good=bool(found['worse']))}); "
            f"significantly better on {len(found['better'])}",
        ]
    )


def quantiles_section(rows: list[Row]) -> str:
    """Return the table of several quantiles at once."""
    lines = [
        [
            row.set,
            name,
            precise(value),
            f"{100 * row.crossing[name]:.2f} %",
            "" if name not in PEERS or "convexboost" not in row.losses else _ratio(row, name),
        ]
        for row in rows
        for name, value in row.values.items()
    ]
    levels = ", ".join(map(str, LEVELS))
    return "\n\n".join(
        [
            "## Several quantiles at once",
            f"One model for the quantiles {levels}, at the defaults: ours `quantiles` (one tree with vector "
            "leaves a round; predictions are put in order, so they cannot cross), XGBoost "
            "`reg:quantileerror` with a list, CatBoost `MultiQuantile`. Crossing: the share of test rows "
            "with a higher quantile below a lower one.",
            table(("data set", "library", "mean pinball", "crossing", "ours / this"), lines)
            if lines
            else "Not run yet.",
        ]
    )


def _ratio(row: Row, peer: str) -> str:
    outcome = row.against("convexboost", peer)
    return f"{outcome.ratio:.3f} ({outcome.low:.3f} to {outcome.high:.3f}) {outcome.mark}".strip()


def method(arguments: argparse.Namespace) -> str:
    """Say what was fixed in advance."""
    words = [
        [library.name, ", ".join(f"{key}: `{word}`" for key, word in library.words.items())]
        for library in (LIBRARIES["convexboost"], *models.PEERS)
    ]
    objectives = [
        [library.name, *(_objective(library, objective) for objective in MEASURES)]
        for library in LIBRARIES.values()
    ]
    return "\n\n".join(
        [
            "## What was fixed in advance",
            FIXED.format(
                seeds=arguments.repeats,
                default_seeds=arguments.default_seeds,
                trials=arguments.trials,
                space=space(),
                rows=MAX_TUNING_ROWS,
                rounds=arguments.rounds,
                patience=models.PATIENCE,
                resamples=RESAMPLES,
                level=100 * LEVEL,
                timeout=arguments.timeout,
            ),
            table(("library", *MEASURES), objectives),
            table(("library", "what is searched"), words),
            "CatBoost's trees have 2^depth leaves, and `random_strength` (0 to 2) is drawn instead of a "
            "least leaf, which they do not have. HistGradientBoosting draws no rows. Ours draws cuts at "
            "random (`splits`) in the half of the trials with the smaller shares of columns, and has all "
            "columns there. Ranking: each library's "
            "default objective.",
        ]
    )


def space() -> str:
    """Return what is searched, and between which ends."""
    return "; ".join(
        f"{name} {number(low)} to {number(high)}{' (log)' * log}"
        for name, (low, high, log) in models.SPACE.items()
    )


def _objective(library: models.Library, objective: str) -> str:
    if objective not in library.objectives:
        return ""
    return ", ".join(f"`{value}`" for value in library.objectives[objective].values()) or "default"


def body(
    halves: dict[str, list[Row]], found: dict[str, Any], several: list[Row], arguments: argparse.Namespace
) -> str:
    """Return the page."""
    return "\n\n".join(
        [
            "Errors on test parts, the lower the better; the best of a row in bold. No times are compared.",
            *(half_section(half, rows, found[half]) for half, rows in halves.items()),
            quantiles_section(several),
            method(arguments),
        ]
    )
