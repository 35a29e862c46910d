"""Losses and CPU seconds on tables of mixed columns: ours against the peers, all at their defaults.

    convexboost bench tables [--only ours] [--tables NAME ...] [--rows training] [--repeats N]
    convexboost bench tables --search | --pareto | --memory
    convexboost bench tables --summary | --page

A table is a folder of CONVEXBOOST_DATA/tables with a fixed split.  Every library gets the data frame and one
thread; each has fitted a small frame before it is timed.  A result is kept in --runs by library, version (of
ours: a checksum of the source), table and loss, with the loss of every test row: a peer is computed once, and
ours again when our code changes.  `--rows training` tests on a quarter of the training rows and trains on the
others: development needs no test rows.  Nothing is chosen by the test rows, and only they make the page.

--search tunes every library with the same trials.  --pareto fits one grid of rounds and rates, without early
stopping, and draws loss against CPU seconds.  --memory measures the peak memory of each default fit in a
process of its own.  With --timeout a default fit that takes longer has failed, and the page says so.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

import accuracy_models as models
import common
import tables_data as data
import tables_page as page
from accuracy_data import MAX_TUNING_ROWS
from accuracy_models import CLASSES, SQUARED, Rows
from runs import Runs, Spec
from tables_data import LOG_LOSS, TEST, TRAINING
from tables_page import Row
from tables_picture import Picture, Point

N_TRIALS = 12
MAX_ROUNDS = 1000  #: of a trial
LIMIT = 600.0  #: seconds for the search of a library on a table
PARETO_ROUNDS, PARETO_RATES = (30, 100, 300, 1000), (0.03, 0.1, 0.3)
QUICK = {
    "trials": 2,
    "rounds": 10,
    "pareto_rounds": (3, 10),
    "pareto_rates": (0.1, 0.3),
    "resamples": 200,
    "limit_rows": 200,
    "rows": TRAINING,
    "tables": ["forest_fires", "credit_approval", "vehicle"],
    "search": True,
    "pareto": True,
    "jobs": 0,
}


class Ours(models.Ours):
    """Our estimators with the losses of their defaults."""

    objectives: ClassVar = {**models.Ours.objectives, CLASSES: {}}


LIGHTGBM, XGBOOST, CATBOOST, HISTGB = models.PEERS
#: By the name on the command line.
SHORT = {"ours": Ours(), "lightgbm": LIGHTGBM, "xgboost": XGBOOST, "histgb": HISTGB, "catboost": CATBOOST}
LIBRARIES = {library.name: library for library in SHORT.values()}


# -- one fit ---------------------------------------------------------------------------------------------


def run(spec: Spec) -> dict[str, Any]:
    """Do what a spec says; a library that cannot is noted, not hidden."""
    library, objective = LIBRARIES[spec["library"]], spec["objective"]
    whole = data.parts(spec["set"], spec["rows"], spec["limit"])
    kind = objective if objective != CLASSES else "two" if len(np.unique(whole.train.y)) == 2 else "several"
    began = time.process_time()
    try:
        if spec["trial"]:
            found = _trial(library, spec, data.held_out(whole.train, spec["set"], 0, MAX_TUNING_ROWS))
        else:
            warm(library.name, kind)
            began = time.process_time()
            model = library.make(objective, spec["setting"], spec["seed"])
            found = _memory(library, model, whole) if spec["memory"] else _fit(library, model, spec, whole)
    except Exception as error:
        found = {"failed": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"}
    return {**found, "commit": common._commit(), "seconds": time.process_time() - began}


def _fit(library: models.Library, model: Any, spec: Spec, whole: data.Parts) -> dict[str, Any]:
    """Fit and test; of repeated fits only the seconds are kept."""
    objective = spec["objective"]
    fit, _ = cpu(lambda: library.fit(model, whole.train))
    predict, P = cpu(lambda: library.predict(model, whole.test.X, data.method(objective)))
    found: dict[str, Any] = {"fit": fit, "predict": predict, "rounds": library.n_rounds(model)}
    if spec["repeat"] == 0:
        found["losses"] = {
            key: value.tolist() for key, value in data.losses(objective, whole.test, P).items()
        }
    return found


def _trial(library: models.Library, spec: Spec, parts: data.Parts) -> dict[str, Any]:
    """Train until the validation loss stops improving; find the best number of rounds."""
    objective, chosen_by = spec["objective"], measure_of_choice(spec["objective"])

    def score(P: np.ndarray) -> dict[str, float]:
        return {chosen_by: float(data.losses(objective, parts.test, P)[chosen_by].mean())}

    model = library.make(objective, spec["setting"], spec["seed"])
    library.fit(model, parts.train, parts.test)
    return dict(models.best_rounds(library, model, parts.test.X, score, data.method(objective)))


def _memory(library: models.Library, model: Any, whole: data.Parts) -> dict[str, Any]:
    """Return the MiB of the process before a fit, and the most during it."""
    before = _status("VmRSS")
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")  # the high-water mark starts anew
    library.fit(model, whole.train)
    return {"before": before, "peak": _status("VmHWM")}


def _status(key: str) -> float:
    path = Path("/proc/self/status")
    if not path.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = [line for line in path.read_text().splitlines() if line.startswith(f"{key}:")]
    return int(line.split()[1]) / 1024


def cpu(task: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a task, and what it returns."""
    began = time.process_time()
    result = task()
    return time.process_time() - began, result


@functools.cache
def warm(name: str, kind: str) -> None:
    """Fit and predict a small frame, so that imports and compilation are not timed."""
    rng, library = np.random.default_rng(0), LIBRARIES[name]
    X = pd.DataFrame({"a": rng.normal(size=400), "b": pd.Categorical(rng.integers(0, 4, 400).astype(str))})
    y = {"two": (X["a"] + rng.normal(size=400) > 0).to_numpy(dtype=int), "several": rng.integers(0, 4, 400)}
    objective = CLASSES if kind in y else kind
    rows = Rows(X, y.get(kind, X["a"].to_numpy()))
    model = library.fit(library.make(objective, {}, 0), rows)
    library.predict(model, rows.X, data.method(objective))


def measure_of_choice(objective: str) -> str:
    """Return the measure by which a search and the picture compare models: the loss that is fitted."""
    return LOG_LOSS if objective == CLASSES else data.MEASURES[objective][0]


# -- the work --------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """A library on a table with an objective."""

    set: str
    objective: str
    library: str


def cells(arguments: argparse.Namespace) -> list[Cell]:
    """Return the work, the smallest table first and the libraries in turn."""
    wanted = [SHORT[name].name for name in arguments.only or SHORT]
    return [
        Cell(name, objective, library)
        for name in data.names()
        if not arguments.tables or name in arguments.tables
        for objective in data.objectives(name)
        for library in wanted
    ]


def spec_of(cell: Cell, arguments: argparse.Namespace, **changes: Any) -> Spec:
    """Return the spec of a fit at the defaults, with changes."""
    plain = {"setting": {}, "seed": 0, "trial": False, "memory": False, "repeat": 0}
    return {**cell._asdict(), **plain, "rows": arguments.rows, "limit": arguments.limit_rows, **changes}


def trial_specs(cell: Cell, arguments: argparse.Namespace) -> list[Spec]:
    """Return the trials of a search."""
    library = LIBRARIES[cell.library]
    return [
        spec_of(cell, arguments, setting={**setting, library.rounds: arguments.rounds}, trial=True)
        for setting in models.trials(library, arguments.trials)
    ]


def tuned_spec(cell: Cell, arguments: argparse.Namespace, trials: list[dict[str, Any]]) -> Spec | None:
    """Return the fit with the best setting of a search, None if no trial was finished."""
    chosen_by = measure_of_choice(cell.objective)
    done = [trial for trial in trials if "scores" in trial]
    if not done:
        return None
    best = min(done, key=lambda trial: trial["scores"][chosen_by])
    rounds = {LIBRARIES[cell.library].rounds: best["rounds"][chosen_by]}
    return spec_of(cell, arguments, setting={**best["spec"]["setting"], **rounds})


def search(runs: Runs, cell: Cell) -> None:
    """Try the settings until the time is used up, then fit the best one."""
    arguments, left, done = runs.arguments, runs.arguments.limit, []
    for spec in trial_specs(cell, arguments):
        if left <= 0 and runs.find(spec) is None:
            break
        done.append({"spec": spec, **runs.make(spec, timeout=max(left, 1.0))})
        left -= done[-1]["seconds"]
    if spec := tuned_spec(cell, arguments, done):
        runs.make(spec, apart=False)


def grid(cell: Cell, arguments: argparse.Namespace) -> Iterator[tuple[float, int, Spec]]:
    """Yield the rates, the rounds and the fits of the picture."""
    library = LIBRARIES[cell.library]
    for rate in arguments.pareto_rates:
        for rounds in arguments.pareto_rounds:
            setting = {library.words["rate"]: rate, library.rounds: rounds}
            yield rate, rounds, spec_of(cell, arguments, setting=setting)


def in_picture(cell: Cell) -> bool:
    """Return whether the picture has this objective: classes and squares stand for all."""
    return cell.objective in (CLASSES, SQUARED)


def work(runs: Runs) -> None:
    """Make what was asked for and is not there."""
    arguments = runs.arguments
    todo = cells(arguments)
    for repeat in range(arguments.repeats):
        for cell in todo:
            spec = spec_of(cell, arguments, repeat=repeat)
            runs.make(spec, apart=arguments.timeout is not None, timeout=arguments.timeout)
    for cell in todo:
        if arguments.memory:
            runs.make(spec_of(cell, arguments, memory=True), apart=True, timeout=arguments.limit)
        if arguments.search:
            search(runs, cell)
        if arguments.pareto and in_picture(cell):
            for _, _, spec in grid(cell, arguments):
                runs.make(spec, apart=False)


# -- what came out ---------------------------------------------------------------------------------------


def collect(runs: Runs, tuned: bool = False) -> list[Row]:
    """Read the rows of the defaults, or of the search, from the folder of results."""
    arguments = argparse.Namespace(**{**vars(runs.arguments), "only": None})
    rows: list[Row] = []
    grouped: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells(arguments):
        grouped.setdefault((cell.set, cell.objective), []).append(cell)
    for (name, objective), members in grouped.items():
        results = {cell.library: (_tuned if tuned else _default)(runs, cell) for cell in members}
        for measure in data.measures(name, objective):
            rows.append(Row(name, objective, measure, results, arguments.resamples))
    return rows


def _default(runs: Runs, cell: Cell) -> dict[str, Any] | None:
    """Return a result, with the median of the seconds of all repeats and the peak memory."""
    specs = [spec_of(cell, runs.arguments, repeat=repeat) for repeat in range(runs.arguments.repeats)]
    first, *others = [runs.find(spec) for spec in specs]
    if first is None or "failed" in first:
        return first
    every = [first, *(found for found in others if found is not None)]
    memory = runs.find(spec_of(cell, runs.arguments, memory=True)) or {}
    seconds = {key: common.median(found[key] for found in every) for key in ("fit", "predict")}
    return {**first, **seconds, "runs": len(every), "memory": memory if "peak" in memory else None}


def _tuned(runs: Runs, cell: Cell) -> dict[str, Any] | None:
    specs = trial_specs(cell, runs.arguments)
    trials = [found for found in map(runs.find, specs) if found is not None]
    if not trials:
        return None
    spec, done = tuned_spec(cell, runs.arguments, trials), sum("scores" in trial for trial in trials)
    if spec is None:
        why = {trial["failed"] for trial in trials}
        return {"failed": f"no trial was finished in {runs.arguments.limit:g} s ({min(why)})"}
    found = runs.find(spec)
    seconds = sum(trial["seconds"] for trial in trials)
    return None if found is None else {**found, "trials": (done, len(specs)), "search": seconds}


def picture(runs: Runs) -> Picture:
    """Read the points of the picture: loss and CPU seconds of every library, rate and number of rounds."""
    arguments = argparse.Namespace(**{**vars(runs.arguments), "only": None})
    found: dict[str, dict[Point, tuple[float, float] | None]] = {}
    for cell in filter(in_picture, cells(arguments)):
        at = found.setdefault(cell.set, {})
        at[Point(cell.library)] = _loss_and_seconds(cell, runs.find(spec_of(cell, arguments)))
        for rate, rounds, spec in grid(cell, arguments):
            at[Point(cell.library, rate, rounds)] = _loss_and_seconds(cell, runs.find(spec))
    return Picture.of(found)


def _loss_and_seconds(cell: Cell, result: dict[str, Any] | None) -> tuple[float, float] | None:
    if result is None or "failed" in result:
        return None
    loss = float(np.mean(result["losses"][measure_of_choice(cell.objective)]))
    return loss**0.5 if cell.objective == SQUARED else loss, result["fit"]


def publish(runs: Runs) -> None:
    """Write the page and the picture from the results there are."""
    arguments = runs.arguments
    rows, tuned, points = collect(runs), collect(runs, tuned=True), picture(runs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if points.tables:
        points.draw(arguments.out / "tables_pareto.png")
    body = page.body(rows, tuned, points, arguments)
    results = {
        "rows": [
            {"set": row.set, "measure": row.measure, "values": row.values, "seconds": row.seconds}
            for row in rows
        ],
        "summary": page.summary(rows),
        "tuned": page.summary(tuned),
    }
    common.publish(arguments, "tables", "Tables of mixed columns", body, results)


def main() -> None:
    parser = common.parser(__doc__, repeats=1)
    parser.add_argument("--only", nargs="+", choices=SHORT, help="fit these libraries alone, write no page")
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="these tables alone")
    parser.add_argument("--rows", choices=(TEST, TRAINING), default=TEST, help="to test on (test)")
    parser.add_argument("--search", action="store_true", help="also tune every library")
    parser.add_argument("--pareto", action="store_true", help="also fit the grid of the picture")
    parser.add_argument("--memory", action="store_true", help="also measure the peak memory of each fit")
    parser.add_argument("--trials", type=int, default=N_TRIALS, help=f"of each search ({N_TRIALS})")
    parser.add_argument("--rounds", type=int, default=MAX_ROUNDS, help=f"of a trial at most ({MAX_ROUNDS})")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds for a search ({LIMIT:g})")
    parser.add_argument(
        "--jobs",
        type=int,
        choices=(0, 1),
        default=1,
        help="0: trials share a process, and one that runs into the limit is finished (1: a process each)",
    )
    parser.add_argument(
        "--timeout", type=float, help="seconds for a default fit, which then has a process of its own (none)"
    )
    parser.add_argument("--note", default="", help="a sentence for the page, on how the runs were made")
    parser.add_argument("--runs", type=Path, help="folder of the results of fits (build/tables)")
    parser.add_argument("--retry", action="store_true", help="try again what failed")
    parser.add_argument("--page", action="store_true", help="fit nothing: write the page of what is there")
    parser.add_argument("--summary", action="store_true", help="fit nothing: print the summary")
    parser.set_defaults(threads=1, limit_rows=None, resamples=page.RESAMPLES)
    parser.set_defaults(pareto_rounds=PARETO_ROUNDS, pareto_rates=PARETO_RATES)
    arguments = common.parse(parser, **QUICK)
    if arguments.child:
        print(json.dumps(run(arguments.child)))
        return
    if unknown := set(arguments.tables or ()) - set(data.names()):
        raise SystemExit(f"--tables must name tables of {data.folder()}, got {min(unknown)}")
    if arguments.page and arguments.rows == TRAINING and not arguments.quick:
        raise SystemExit("--page is made from the test rows: leave --rows training out, or use --summary")
    arguments.runs = arguments.runs or (
        arguments.out / "tables-runs" if arguments.quick else common.ROOT / "build" / "tables"
    )
    runs = Runs(arguments, run, Path(__file__).resolve(), LIBRARIES)
    if not (arguments.page or arguments.summary):
        work(runs)
    if arguments.summary or arguments.only or (arguments.rows == TRAINING and not arguments.quick):
        print(page.summary_section(collect(runs)))
    else:
        publish(runs)


if __name__ == "__main__":
    main()
