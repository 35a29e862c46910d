"""The page of tables.py: summary and goals, losses, CPU seconds, memory and the search."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import accuracy_models as models
import tables_data as data
import tables_picture
from accuracy_data import MAX_TUNING_ROWS
from accuracy_page import precise, space
from accuracy_statistics import (
    CLIP,
    LEVEL,
    RESAMPLES,
    Outcome,
    bootstrap,
    clipped,
    mean_ranks,
    one_minus_auc,
    outcome,
    redraws,
)
from common import geometric_mean, number, table, verdict
from tables_data import AUC, LOG_LOSS, MEASURES, OURS, PEERS, RMSE

ORDER = tuple(measure for measures in MEASURES.values() for measure in measures)
MOST_CPU, MOST_MEMORY, MOST_WORSE = 3.0, 1.5, 0.1
LEAST_GAIN, N_GAINS = 0.98, 2
METHOD = """\
- The split of each table is fixed in its `meta.json`: a quarter of the rows is the test part. Everything of
  ours was chosen on training rows (`--rows training` tests on a quarter of those).
- Nothing is set but the loss, the seed (0) and one thread. Every library gets the data frame: categorical
  columns as categories, missing values as such; CatBoost gets categories as words, a missing one as the word
  "nan". All libraries have all of these losses.
- Classes are measured by the predicted probabilities: 1 − AUC (two classes), log-loss (a probability counts
  as at least {least:g}), and the error of the most probable class. The absolute and the pinball errors are
  those of models fitted to that loss.
- Paired bootstrap over test rows, {resamples:,} resamples: ▲ ours significantly better than this peer, ▼
  significantly worse ({level:.0f} % interval of the difference). It is not corrected for the number of
  comparisons. The best peer of a row is the one that turned out best on the test part, which favours the
  peers.
- Ties share the better rank; a library that failed has the last one. A ratio that goes into a geometric mean
  counts as at least {low} and at most {high}, so that no table decides alone.
- CPU seconds are those of the process, from data frame to model and from data frame to predictions
  (probabilities for classes), in a process where each library has fitted a small frame before.{repeats}
- Search: {trials} trials for each library, table and loss, from {space}; a Latin hypercube, the same points
  for all ([accuracy.md](accuracy.md) has the names of the parameters). On at most {rows:,} training rows, a
  quarter of them held out; a trial trains at most {rounds:,} rounds and stops when the library's own
  validation loss has not improved for {patience}. Setting and rounds are those with the least loss on the
  held-out rows (log-loss for classes), then a fit to the whole training part. Limit: {limit:g} s for the
  trials of a library, table and loss: no trial begins later, and one that has a process of its own
  (`--jobs 1`) is lost when it runs into the limit."""


class Row:
    """A table and a measure: the results of each library, None where there is none yet."""

    def __init__(
        self,
        set: str,
        objective: str,
        measure: str,
        results: dict[str, dict[str, Any] | None],
        resamples: int = RESAMPLES,
    ) -> None:
        self.set, self.objective, self.measure, self.resamples = set, objective, measure, resamples
        self.missing = [name for name, found in results.items() if found is None]
        there = {name: found for name, found in results.items() if found is not None}
        self.failed = {name: found["failed"] for name, found in there.items() if "failed" in found}
        self.results = {name: found for name, found in there.items() if "failed" not in found}

    @cached_property
    def values(self) -> dict[str, float]:
        """Return the measure of each library that has one."""
        if not self.results:
            return {}
        return dict(zip(self.results, map(float, self._measure_all()), strict=True))

    @cached_property
    def drawn(self) -> dict[str, np.ndarray]:
        """Return the measure of each library on resampled test rows."""
        if self.measure == AUC:
            drawn = np.array([self._measure_all(counts) for counts in redraws(self._n, self.resamples)])
        else:
            drawn = self._root(bootstrap(self._losses, np.ones(self._n), self.resamples))
        return dict(zip(self.results, drawn.T, strict=True))

    def _measure_all(self, counts: np.ndarray | None = None) -> np.ndarray:
        if self.measure == AUC:
            counts = np.ones(self._n) if counts is None else counts
            return np.array([share(counts) for share in self._shares])
        return self._root(self._losses.mean(axis=0))

    def _root(self, values: np.ndarray) -> np.ndarray:
        return np.sqrt(values) if self.measure == RMSE else values

    @cached_property
    def _losses(self) -> np.ndarray:
        return np.column_stack([found["losses"][self.measure] for found in self.results.values()])

    @cached_property
    def _shares(self) -> list[Callable[[np.ndarray], float]]:
        kept = [found["losses"] for found in self.results.values()]
        return [one_minus_auc(np.array(one["label"]), np.array(one["score"])) for one in kept]

    @property
    def _n(self) -> int:
        return len(
            next(iter(self.results.values()))["losses"][LOG_LOSS if self.measure == AUC else self.measure]
        )

    @property
    def seconds(self) -> dict[str, dict[str, float]]:
        """Return the CPU seconds of fit and prediction of each library."""
        return {name: {key: found[key] for key in ("fit", "predict")} for name, found in self.results.items()}

    def cost(self, name: str) -> float:
        """Return the CPU seconds of a library, fit and prediction."""
        return max(sum(self.seconds[name].values()), 1e-3)

    @property
    def peers(self) -> dict[str, float]:
        """Return the measure of each peer that has one."""
        return {name: value for name, value in self.values.items() if name != OURS}

    @property
    def best_peer(self) -> str:
        """Return the peer with the least loss on the test part."""
        return min(self.peers, key=self.peers.__getitem__)

    @property
    def is_complete(self) -> bool:
        """Return whether all libraries were run, and ours and a peer have a result."""
        return not self.missing and OURS in self.results and len(self.results) > 1

    def against(self, peer: str) -> Outcome:
        """Compare ours with a peer."""
        pair = (OURS, peer)
        values = np.array([self.values[name] for name in pair])
        return outcome(values, np.column_stack([self.drawn[name] for name in pair]))


# -- the summary -----------------------------------------------------------------------------------------


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return ranks, ratios, significant differences and cost by measure, over the complete rows."""
    found = {}
    for measure in ORDER:
        of_it = [row for row in rows if row.measure == measure and row.is_complete]
        if not of_it:
            continue
        failed_last = [row.values | dict.fromkeys(row.failed, np.inf) for row in of_it]
        outcomes = {row.set: row.against(row.best_peer) for row in of_it}
        found[measure] = {
            "tables": len(of_it),
            "mean ranks": mean_ranks(failed_last, ties="min"),
            "ratio": geometric_mean(clipped(row.values[OURS], row.peers[row.best_peer]) for row in of_it),
            "better": [name for name, one in outcomes.items() if one.better],
            "worse": [name for name, one in outcomes.items() if one.worse],
            "cost": _costs(of_it),
        }
    return found


def _costs(rows: Sequence[Row]) -> dict[str, float]:
    """Return the CPU seconds of ours over those of each peer, in the geometric mean."""
    return {
        peer: geometric_mean(row.cost(OURS) / row.cost(peer) for row in rows if peer in row.results)
        for peer in PEERS
        if any(peer in row.results for row in rows)
    }


def summary_section(rows: Sequence[Row]) -> str:
    """Return the table of the summary, and what is not in it."""
    found = summary(rows)
    if not found:
        return "No table is complete yet: " + _what_is_missing(rows)
    header = ["measure", "tables", *(f"rank, {name}" for name in (OURS, *PEERS)), "ours / best peer"]
    header += ["significantly better", "significantly worse", *(f"CPU, ours / {peer}" for peer in PEERS)]
    lines = [
        [
            measure,
            one["tables"],
            *(_rank(one["mean ranks"], name) for name in (OURS, *PEERS)),
            f"{one['ratio']:.3f}",
            _named(one["better"]),
            _named(one["worse"]),
            *(number(one["cost"][peer]) if peer in one["cost"] else "" for peer in PEERS),
        ]
        for measure, one in found.items()
    ]
    left_out = sorted({row.set for row in rows if not row.is_complete})
    note = f"\n\nLeft out, because not all libraries were run: {', '.join(left_out)}." if left_out else ""
    return table(header, lines) + note


def _rank(ranks: dict[str, float], name: str) -> str:
    if name not in ranks:
        return ""
    text = f"{ranks[name]:.2f}"
    return f"**{text}**" if ranks[name] == min(ranks.values()) else text


def _named(names: Sequence[str]) -> str:
    return f"{len(names)}: {', '.join(names)}" if names else "0"


def _what_is_missing(rows: Sequence[Row]) -> str:
    counts = {name: sum(name in row.missing for row in by_fit(rows)) for name in (OURS, *PEERS)}
    n = len(by_fit(rows))
    return "; ".join(f"{name} lacks {count} of {n} fits" for name, count in counts.items()) + "."


def by_fit(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each table and loss."""
    return list({(row.set, row.objective): row for row in rows}.values())


def goals(rows: Sequence[Row]) -> str:
    """Return what became of the goals at the defaults."""
    found, done = summary(rows), [row for row in rows if row.is_complete]
    if not found:
        return ""
    first = [m for m, one in found.items() if one["mean ranks"][OURS] <= min(one["mean ranks"].values())]
    ratios = {m: one["ratio"] for m, one in found.items()}
    n_worse = sum(len(one["worse"]) for one in found.values())
    n_better = sum(len(one["better"]) for one in found.values())
    costs = _costs(by_fit(done))
    loss = {
        peer: geometric_mean(
            clipped(row.values[OURS], row.values[peer]) for row in done if peer in row.values
        )
        for peer in costs
    }
    ahead = [peer for peer in costs if loss[peer] > 1 and costs[peer] > 1]
    gains = sum(ratio <= LEAST_GAIN for ratio in ratios.values())
    n, n_low = len(found), sum(ratio <= 1 for ratio in ratios.values())
    lines = [
        f"best mean rank in every measure: in {len(first)} of {n} ({verdict(len(first) == n)})",
        f"ours / best peer at most 1 in every measure: in {n_low} of {n} ({verdict(n_low == n)}); "
        f"at most {LEAST_GAIN} in {N_GAINS}: in {gains} ({verdict(gains >= N_GAINS)})",
        "significantly worse than the best peer on at most a tenth of the pairs of table and measure: on "
        f"{n_worse} of {len(done)} ({verdict(n_worse <= MOST_WORSE * len(done))}); "
        f"significantly better on {n_better}",
        "CPU seconds, ours / peer, geometric mean over all fits: "
        + ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in costs.items())
        + f" (at most {MOST_CPU:g} times LightGBM's: {verdict(costs.get('LightGBM', 0.0) <= MOST_CPU)})",
        "loss, ours / peer, geometric mean over all rows: "
        + ", ".join(f"{peer} {ratio:.3f}" for peer, ratio in loss.items())
        + f"; peers with both lower loss and lower CPU time on average: {', '.join(ahead) or 'none'} "
        f"({verdict(not ahead)})",
    ]
    if memory := _memory_ratios(rows):
        lines.append(
            f"peak memory of a fit, ours / LightGBM, geometric mean: {memory['peak']:.2f} of the process "
            f"(at most {MOST_MEMORY}: {verdict(memory['peak'] <= MOST_MEMORY)}), "
            f"{memory['rise']:.2f} of what is added during the fit"
        )
    n_done, n_all = len({row.set for row in done}), len({row.set for row in rows})
    head = "Goals:" if len(done) == len(rows) else f"Goals, so far on {n_done} of {n_all} tables:"
    return f"{head}\n\n" + "\n".join(f"- {line}" for line in lines)


# -- the parts of the page -------------------------------------------------------------------------------


def losses_section(rows: Sequence[Row]) -> str:
    """Return the losses of all libraries, and who failed."""
    lines = [[row.set, row.measure, *_cells(row), _ratio(row)] for row in _in_order(rows) if row.results]
    failed = {(name, row.set, why): None for row in rows for name, why in row.failed.items()}
    notes = [f"- {name} on {where}: {why}" for name, where, why in failed]
    shown = table(("table", "measure", OURS, *PEERS, "ours / best peer"), lines)
    return "\n\n".join([shown, *(["Failed:\n\n" + "\n".join(notes)] if notes else [])])


def _in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: ORDER.index(row.measure))


def _cells(row: Row) -> list[str]:
    best, shown = min(row.values.values()), []
    for name in (OURS, *PEERS):
        if name not in row.values:
            shown.append("failed" if name in row.failed else "")
            continue
        text = precise(row.values[name])
        text = f"**{text}**" if row.values[name] == best else text
        mark = row.against(name).mark if name != OURS and OURS in row.values else ""
        shown.append(f"{text} {mark}".strip())
    return shown


def _ratio(row: Row) -> str:
    if not (OURS in row.values and row.peers):
        return ""
    one = row.against(row.best_peer)
    return f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f}) {one.mark}".strip()


def cost_section(rows: Sequence[Row]) -> str:
    """Return the CPU seconds of fit and prediction."""
    lines = []
    for row in by_fit(rows):
        about, seconds = data.meta(row.set), row.seconds
        if seconds:
            both = [
                f"{number(seconds[name]['fit'])} + {number(seconds[name]['predict'])}"
                if name in seconds
                else ""
                for name in (OURS, *PEERS)
            ]
            lines.append([row.set, f"{about['rows']:,} x {about['features']}", row.objective, *both])
    return table(("table", "size", "loss", OURS, *PEERS), lines)


def memory_section(rows: Sequence[Row]) -> str:
    """Return the peak memory of the fits, where it was measured."""
    lines = []
    for row in by_fit(rows):
        kept = {name: found.get("memory") for name, found in row.results.items()}
        if any(kept.values()):
            cells = [
                f"{one['peak']:,.0f} ({one['peak'] - one['before']:,.0f})" if (one := kept.get(name)) else ""
                for name in (OURS, *PEERS)
            ]
            lines.append([row.set, row.objective, *cells])
    if not lines:
        return "Not measured (`--memory`)."
    about = "MiB at the peak of a fit in a process of its own, in brackets what the fit added."
    return f"{about}\n\n" + table(("table", "loss", OURS, *PEERS), lines)


def _memory_ratios(rows: Sequence[Row]) -> dict[str, float]:
    """Return ours / LightGBM, of the whole process and of what a fit adds."""
    pairs = [
        (row.results[OURS]["memory"], row.results["LightGBM"]["memory"])
        for row in by_fit(rows)
        if all((row.results.get(name) or {}).get("memory") for name in (OURS, "LightGBM"))
    ]
    if not pairs:
        return {}
    rises = [[max(one["peak"] - one["before"], 1.0) for one in pair] for pair in pairs]
    return {
        "peak": geometric_mean(ours["peak"] / peer["peak"] for ours, peer in pairs),
        "rise": geometric_mean(ours / peer for ours, peer in rises),
    }


def search_section(rows: Sequence[Row], n_tables: int) -> str:
    """Return the losses after the search, and which searches were not finished."""
    done = [row for row in rows if row.results]
    if not done:
        return "Not run (`--search`). [An older run](tables_search.md) has a page of its own."
    tables = list(dict.fromkeys(row.set for row in done))
    parts = [f"Run on {len(tables)} of {n_tables} tables: {', '.join(tables)}.", summary_section(done)]
    parts.append(losses_section(done))
    cut = [
        f"- {name} on {row.set}, {row.objective}: {found['trials'][0]} of {found['trials'][1]} trials"
        for row in by_fit(done)
        for name, found in row.results.items()
        if found["trials"][0] < found["trials"][1]
    ]
    if cut:
        parts.append(
            "Searches that were not finished in time (the best finished trial counts):\n\n" + "\n".join(cut)
        )
    lines = [
        [row.set, row.objective, *(_search_seconds(row.results.get(name)) for name in (OURS, *PEERS))]
        for row in by_fit(done)
    ]
    parts.append("CPU seconds of the trials:\n\n" + table(("table", "loss", OURS, *PEERS), lines))
    return "\n\n".join(parts)


def untuned_section(rows: Sequence[Row], tuned: Sequence[Row]) -> str:
    """Return how ours at its defaults compares with what the searches found."""
    searched = {(row.set, row.measure): row for row in tuned if OURS in row.results and row.peers}
    pairs = [(row, searched[row.set, row.measure]) for row in rows if (row.set, row.measure) in searched]
    lines = []
    for measure in ORDER:
        own = [(row.values[OURS], to) for row, to in pairs if row.measure == measure and OURS in row.values]
        if own:
            lines.append(
                [
                    measure,
                    len(own),
                    sum(value < to.values[OURS] for value, to in own),
                    f"{geometric_mean(clipped(value, to.values[OURS]) for value, to in own):.3f}",
                    f"{geometric_mean(clipped(value, min(to.peers.values())) for value, to in own):.3f}",
                ]
            )
    if not lines:
        return ""
    header = ("measure", "tables", "our default better than our search on", "ratio to our search")
    about = "Ours at its defaults, the mean of five members, against the single models of the searches:"
    return f"{about}\n\n" + table((*header, "ratio to the best peer after its search"), lines)


def _search_seconds(found: dict[str, Any] | None) -> str:
    return number(found["search"]) if found else ""


# -- the page --------------------------------------------------------------------------------------------


def repeats(rows: Sequence[Row]) -> str:
    """Say how many runs the seconds are medians of."""
    counts: dict[str, set[int]] = {}
    for row in rows:
        for name, found in row.results.items():
            if found and "runs" in found:
                counts.setdefault(name, set()).add(found["runs"])
    each = [f"{name} {' or '.join(map(str, sorted(found)))}" for name, found in counts.items()]
    return f"Medians of interleaved runs, as many as: {', '.join(each)}."


def body(
    rows: Sequence[Row], tuned: Sequence[Row], points: tables_picture.Picture, arguments: argparse.Namespace
) -> str:
    """Return the page."""
    n_tables = len({row.set for row in rows})
    method = METHOD.format(
        least=data.LEAST_PROBABILITY,
        resamples=arguments.resamples,
        level=100 * LEVEL,
        low=CLIP[0],
        high=CLIP[1],
        repeats=f" {repeats(rows)} {arguments.note}".rstrip(),
        trials=arguments.trials,
        space=space(),
        rows=MAX_TUNING_ROWS,
        rounds=arguments.rounds,
        patience=models.PATIENCE,
        limit=arguments.limit,
    )
    tested = "test rows" if arguments.rows == data.TEST else "a quarter of the **training** rows"
    sections = [
        f"{n_tables} tables, losses on {tested}, the lower the better; the best of a row in bold.",
        "## Summary of the defaults",
        summary_section(rows),
        goals(rows),
        "## Losses at the defaults",
        losses_section(rows),
        "## CPU seconds at the defaults (fit + prediction)",
        cost_section(rows),
        "## Peak memory",
        memory_section(rows),
        "## One search for all",
        search_section(tuned, n_tables),
        untuned_section(rows, tuned),
        "## Loss against cost",
        tables_picture.section(points, arguments),
        "## What was fixed in advance",
        method,
    ]
    return "\n\n".join(section for section in sections if section)
