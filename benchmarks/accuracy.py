"""Errors on test sets: ours against LightGBM, XGBoost, CatBoost and HistGradientBoosting.

    convexboost bench accuracy [--half defaults|tuned] [--jobs N] [--repeats SEEDS] [--only SET ...]

A row is a data set and a measure.  Two halves: every library at its defaults, and every library tuned with
the same budget.  Every fit runs in a process of its own, on one thread, with a time limit; its result is
kept in --runs by what was asked, so that the program can be stopped and taken up again, and the work split
between machines (--part 1/4 ... --part 4/4, then the program again with all of --runs in one folder).
With --only the page has the names of the sets: accuracy_letter.md.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import accuracy_models as models
import accuracy_page as page
import common
from accuracy_data import MEASURES, SETS, losses, parts, tuning_parts, weight_of
from accuracy_models import LIBRARIES, QUANTILES, RANKING, SQUARED, Rows
from accuracy_page import DEFAULTS, TUNED, Row
from accuracy_statistics import mean
from common import note
from runs import Runs, Spec

N_TRIALS = 12
MAX_ROUNDS = 1000  #: of a trial
TIMEOUT = 1800.0  #: seconds for a fit
QUICK = {"repeats": 1, "trials": 2, "rounds": 20, "rows": 200, "folds": 1, "jobs": 0}
QUICK_ONLY = ("pendigits", "airfoil", "mq2008")


# -- one fit, in a process of its own --------------------------------------------------------------------


def run(spec: Spec) -> dict[str, Any]:
    """Do what a spec says: a trial of a search, or a fit that is tested."""
    library, objective = LIBRARIES[spec["library"]], spec["objective"]
    whole = parts(spec["set"], spec["fold"], spec["rows"])
    began = time.perf_counter()
    if spec["trial"]:
        found = _trial(library, objective, spec["setting"], *tuning_parts(whole, objective))
    else:
        model = library.fit(library.make(objective, spec["setting"], spec["seed"]), whole.train)
        P = library.predict(model, whole.test.X)
        found = {"losses": {key: v.tolist() for key, v in losses(objective, whole.test, P).items()}}
        found["rounds"] = library.n_rounds(model)
        if objective == QUANTILES:
            found["crossing"] = float((np.diff(P, axis=1) < 0).any(axis=1).mean())
    return {**found, "seconds": time.perf_counter() - began}


def _trial(
    library: models.Library, objective: str, setting: models.Setting, train: Rows, held: Rows
) -> dict[str, Any]:
    """Train until the validation loss stops improving; find the best number of rounds by each measure."""

    def score(P: np.ndarray) -> dict[str, float]:
        found = losses(objective, held, P)
        return {m: float(mean(found[m], weight_of(m, found))) for m in MEASURES[objective]}

    model = library.fit(library.make(objective, setting, 0), train, held)
    return models.best_rounds(library, model, held.X, score)


# -- the work --------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A library on a data set (a fold of it) with an objective."""

    set: str
    objective: str
    fold: int | None
    library: str


def cells(only: list[str] | None, n_folds: int = 5) -> list[Cell]:
    """Return all the work, the extra table of several quantiles last."""
    wanted = {**SETS, QUANTILES: SETS[SQUARED]}
    return [
        Cell(name, objective, fold, library.name)
        for objective, names in wanted.items()
        for name in names
        if not only or name in only
        for fold in (range(n_folds) if objective == RANKING else (None,))
        for library in LIBRARIES.values()
        if objective in library.objectives
    ]


def runs_of(arguments: argparse.Namespace) -> Runs:
    """Return the results in the folder that was asked for."""
    return Runs(arguments, run, Path(__file__).resolve(), LIBRARIES)


def spec_of(
    cell: Cell, arguments: argparse.Namespace, setting: models.Setting, seed: int, trial: bool
) -> Spec:
    rest = {"setting": dict(setting), "seed": seed, "trial": trial, "rows": arguments.rows}
    return {**cell._asdict(), **rest}


def default_specs(cell: Cell, arguments: argparse.Namespace) -> list[Spec]:
    """Return the fits at the defaults, one for each seed if these matter."""
    seeds = arguments.default_seeds if LIBRARIES[cell.library].draws else 1
    return [spec_of(cell, arguments, {}, seed, trial=False) for seed in range(seeds)]


def trial_specs(cell: Cell, arguments: argparse.Namespace) -> list[Spec]:
    """Return the trials of a search."""
    library = LIBRARIES[cell.library]
    return [
        spec_of(cell, arguments, {**setting, library.rounds: arguments.rounds}, 0, trial=True)
        for setting in models.trials(library, arguments.trials)
    ]


def tuned_specs(cell: Cell, measure: str, trials: list[dict[str, Any]], arguments: Any) -> list[Spec]:
    """Return the fits with the best setting of a search; none if all trials failed."""
    done = [trial for trial in trials if "scores" in trial]
    if not done:
        return []
    best = min(done, key=lambda trial: trial["scores"][measure])
    setting = {**best["spec"]["setting"], LIBRARIES[cell.library].rounds: best["rounds"][measure]}
    return [spec_of(cell, arguments, setting, seed, trial=False) for seed in range(arguments.repeats)]


def work(cell: Cell, half: str, runs: Runs) -> None:
    """Do all that a cell needs in a half."""
    if half == DEFAULTS:
        for spec in default_specs(cell, runs.arguments):
            runs.make(spec)
        return
    for spec in trial_specs(cell, runs.arguments):
        runs.make(spec)
    trials = [runs.find(spec) for spec in trial_specs(cell, runs.arguments)]
    for measure in MEASURES[cell.objective]:
        for spec in tuned_specs(cell, measure, trials, runs.arguments):  # type: ignore[arg-type]
            runs.make(spec)


def do_all(runs: Runs, todo: list[tuple[Cell, str]]) -> None:
    """Work through the cells, several at a time."""
    arguments = runs.arguments
    for cell, half in todo:
        plan = default_specs(cell, arguments) if half == DEFAULTS else trial_specs(cell, arguments)
        count = sum(runs.find(spec) is None for spec in plan)
        if half == TUNED:
            count += arguments.repeats * len(MEASURES[cell.objective]) * (count > 0)
        runs.planned[cell.library] = runs.planned.get(cell.library, 0) + count
    note(f"{sum(runs.planned.values())} fits to do (at most), results in {runs.folder}")
    if arguments.jobs == 0:  # no pool: the limit of OpenMP's threads holds in this thread alone
        for cell, half in todo:
            work(cell, half, runs)
        return
    pool = ThreadPoolExecutor(arguments.jobs)
    try:
        for done in [pool.submit(work, cell, half, runs) for cell, half in todo]:
            done.result()
    finally:  # interrupted: finish what is running, begin nothing new
        pool.shutdown(cancel_futures=True)


# -- what came out ---------------------------------------------------------------------------------------


def collect(runs: Runs, half: str, objectives: list[str], only: list[str] | None) -> list[Row]:
    """Read the rows of a half from the folder of results."""
    grouped: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells(only, runs.arguments.folds):
        if cell.objective in objectives:
            grouped.setdefault((cell.set, cell.objective), []).append(cell)
    return [
        _row(runs, half, name, objective, measure, members)
        for (name, objective), members in grouped.items()
        for measure in MEASURES[objective]
    ]


def _row(runs: Runs, half: str, name: str, objective: str, measure: str, members: list[Cell]) -> Row:
    row = Row(name, objective, measure, {}, None, {}, [], {})
    for library in dict.fromkeys(cell.library for cell in members):
        folds = [_results(runs, half, cell, measure) for cell in members if cell.library == library]
        if any(results is None for results in folds):
            if f"{library}:{name}" in runs.arguments.without:
                row.failed[library] = "left out (--without)"
            else:
                row.missing.append(library)
            continue
        failed = [result["failed"] for results in folds for result in results if "failed" in result]
        if failed:
            row.failed[library] = failed[0]
            continue
        arrays = [[{k: np.array(v) for k, v in r["losses"].items()} for r in results] for results in folds]
        row.losses[library] = np.concatenate([np.mean([a[measure] for a in fold], axis=0) for fold in arrays])
        weight = np.concatenate([weight_of(measure, fold[0]) for fold in arrays])
        row = row._replace(weight=weight)
        if objective == QUANTILES:
            row.crossing[library] = float(np.mean([r["crossing"] for results in folds for r in results]))
    return row


def _results(runs: Runs, half: str, cell: Cell, measure: str) -> list[dict[str, Any]] | None:
    """Return the results of all seeds, None if one is missing."""
    if half == DEFAULTS:
        specs = default_specs(cell, runs.arguments)
    else:
        trials = [runs.find(spec) for spec in trial_specs(cell, runs.arguments)]
        if any(trial is None for trial in trials):
            return None
        specs = tuned_specs(cell, measure, trials, runs.arguments)  # type: ignore[arg-type]
        if not specs:
            return [{"failed": "all trials failed"}]
    found = [runs.find(spec) for spec in specs]
    return None if any(result is None for result in found) else found  # type: ignore[return-value]


def main() -> None:
    parser = common.parser(__doc__, repeats=3)
    parser.add_argument("--half", choices=(DEFAULTS, TUNED), help="run this half alone (both)")
    parser.add_argument("--default-seeds", type=int, help="of the fits at the defaults (as --repeats)")
    parser.add_argument("--jobs", type=int, default=2, help="fits at a time; 0: in this process (2)")
    parser.add_argument("--trials", type=int, default=N_TRIALS, help=f"of each search ({N_TRIALS})")
    parser.add_argument("--rounds", type=int, default=MAX_ROUNDS, help=f"of a trial at most ({MAX_ROUNDS})")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help=f"seconds for a fit ({TIMEOUT:g})")
    parser.add_argument("--only", nargs="+", choices=sorted({n for s in SETS.values() for n in s}))
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="LIBRARY:SET", help="leave out what takes too long"
    )
    parser.add_argument("--part", help="i/n: do this part of the work, and write no page")
    parser.add_argument("--runs", type=Path, help="folder of the results of fits (build/accuracy)")
    parser.add_argument("--retry", action="store_true", help="try again what failed")
    parser.add_argument("--page", action="store_true", help="fit nothing: write the page of what is there")
    parser.set_defaults(threads=1, rows=None, folds=5)
    arguments = common.parse(parser, **QUICK, only=list(QUICK_ONLY))
    if arguments.child:
        print(json.dumps(run(arguments.child)))
        return
    arguments.runs = arguments.runs or (
        arguments.out / "accuracy-runs" if arguments.quick else common.ROOT / "build" / "accuracy"
    )
    arguments.default_seeds = arguments.default_seeds or arguments.repeats
    known = {f"{library}:{name}" for library in LIBRARIES for names in SETS.values() for name in names}
    if unknown := set(arguments.without) - known:
        raise SystemExit(f"--without must name a library and a set, like LightGBM:letter, got {min(unknown)}")
    runs = runs_of(arguments)
    if not arguments.page:
        do_all(runs, todo(arguments))
    if not arguments.part:
        publish(runs)


def todo(arguments: argparse.Namespace) -> list[tuple[Cell, str]]:
    """Return the cells of the halves asked for, or the part of them asked for."""
    halves = [arguments.half] if arguments.half else [DEFAULTS, TUNED]
    all_of_it = [
        (cell, half)
        for half in halves
        for cell in cells(arguments.only, arguments.folds)
        if half == DEFAULTS or cell.objective != QUANTILES
        if f"{cell.library}:{cell.set}" not in arguments.without
    ]
    if not arguments.part:
        return all_of_it
    part, n_parts = map(int, arguments.part.split("/"))
    if not 1 <= part <= n_parts:
        raise SystemExit(f"--part must be i/n with i from 1 to n, got {arguments.part}")
    return all_of_it[part - 1 :: n_parts]


def publish(runs: Runs) -> None:
    """Write the page from the results there are."""
    arguments = runs.arguments
    halves = {half: collect(runs, half, list(SETS), arguments.only) for half in (DEFAULTS, TUNED)}
    found = {half: page.summary(rows) for half, rows in halves.items()}
    several = collect(runs, DEFAULTS, [QUANTILES], arguments.only)
    body = page.body(halves, found, several, arguments)
    results = {
        half: {
            "rows": [
                {"set": row.set, "measure": row.measure, "values": row.values, "missing": row.missing}
                for row in rows
            ],
            "goals": found[half],
        }
        for half, rows in halves.items()
    }
    name, title = "accuracy", "Accuracy on test sets"
    if arguments.only and not arguments.quick:  # a page of its own
        name, title = "_".join([name, *arguments.only]), f"{title}: {', '.join(arguments.only)}"
    common.publish(arguments, name, title, body, results)


if __name__ == "__main__":
    main()
