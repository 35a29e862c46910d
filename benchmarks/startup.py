"""First contact: import, a first fit with empty and full cache, the prediction of one row, binning.

    python benchmarks/startup.py

First fits run in fresh processes and are measured in CPU seconds, which other processes on the machine change
little.  One row is predicted by models of 300 trees, ours and those of the peers; binning is compared with
LightGBM's `Dataset(...).construct()`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import common
import data
from common import Seconds, median, number, spread, table
from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump

try:
    from catboost import CatBoostClassifier, CatBoostRegressor
    from lightgbm import Dataset, LGBMClassifier, LGBMRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from xgboost import XGBClassifier, XGBRegressor
except ModuleNotFoundError as error:
    raise SystemExit(f"this benchmark needs {error.name}: pip install --group bench") from None

COLD_GOAL = 10.0  #: CPU seconds of a first fit
WARM_GOAL = 3.0  #: CPU seconds of a process that imports and fits
ROW_GOAL = 0.5  #: milliseconds
WHOLE = "whole process"
ESTIMATORS = ("ConvexBoostRegressor", "ConvexBoostClassifier")

#: Runs in a fresh process: CPU seconds from its start.
CHILD = """
import json, sys, time
import numpy as np
name, n_rows = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.normal(size=(n_rows, 10))
y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)
if name == "ConvexBoostClassifier":
    y = (y > 0.0).astype(int)
stamps = [time.process_time()]
import convexboost
Estimator = getattr(convexboost, name)
stamps.append(time.process_time())
for _ in range(2):
    model = Estimator().fit(X, y)
    stamps.append(time.process_time())
model.predict(X[:1])
stamps.append(time.process_time())
names = ("import", "first fit", "second fit", "first prediction")
print(json.dumps({**dict(zip(names, np.diff(stamps).tolist())), "whole process": stamps[2]}))
"""


def first_fits(arguments: argparse.Namespace) -> dict[str, dict[str, Seconds]]:
    """Import and fit in fresh processes, cold and then warm, with what the cold one has left in the cache."""
    found: dict[str, dict[str, Seconds]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ESTIMATORS:
            command = ["-c", CHILD, name, str(arguments.first_rows)]
            parts: dict[str, Seconds] = {}
            for i in range(arguments.repeats):
                for state in ("cold", "warm"):
                    one = common.fresh(command, NUMBA_CACHE_DIR=f"{folder}/{name}{i}")
                    common.note(f"{name}, {state}: {one}")
                    for part, seconds in one.items():
                        parts.setdefault(f"{part}, {state}", []).append(seconds)
            found[name] = parts
    return found


def one_row(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the milliseconds of a call that predicts one row: the median of many, libraries in turn."""
    rng, n = np.random.default_rng(0), 2000
    X = rng.normal(size=(n, 20))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    trees, threads = arguments.trees, arguments.threads
    ours: dict[str, Any] = {"n_rounds": trees, "early_stopping": False, "n_jobs": threads}
    boost = {"n_estimators": trees, "n_jobs": threads}
    cat = {"iterations": trees, "thread_count": threads, "verbose": 0, "allow_writing_files": False}
    hist: dict[str, Any] = {"max_iter": trees, "early_stopping": False}
    regressors = {
        "convexboost": ConvexBoostRegressor(**ours),
        "LightGBM": LGBMRegressor(**boost, verbose=-1),
        "XGBoost": XGBRegressor(**boost),
        "CatBoost": CatBoostRegressor(**cat),
        "HistGradientBoosting": HistGradientBoostingRegressor(**hist),
    }
    classifiers = {
        "convexboost": ConvexBoostClassifier(**ours),
        "LightGBM": LGBMClassifier(**boost, verbose=-1),
        "XGBoost": XGBClassifier(**boost),
        "CatBoost": CatBoostClassifier(**cat),
        "HistGradientBoosting": HistGradientBoostingClassifier(**hist),
    }
    row = X[:1].copy()
    tasks: dict[str, dict[str, Callable[[Any], Any]]] = {
        "predict of a regressor": {name: m.fit(X, y).predict for name, m in regressors.items()},
        "predict_proba, two classes": {
            name: m.fit(X, (y > 0.0).astype(int)).predict_proba for name, m in classifiers.items()
        },
    }
    found: dict[str, dict[str, float]] = {}
    for what, calls in tasks.items():
        times: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            call(row)
        for _ in range(arguments.calls):
            for name, call in calls.items():
                began = time.perf_counter()
                call(row)
                times[name].append(1e3 * (time.perf_counter() - began))
        found[what] = {name: statistics.median(ms) for name, ms in times.items()}
        common.note(f"{what}: {found[what]}")
    return found


def binning(arguments: argparse.Namespace) -> dict[str, Seconds]:
    """Alternate between our binning and LightGBM's, on one thread and on all."""
    rng = np.random.default_rng(0)
    problems = {
        "letter": np.ascontiguousarray(data.letter()[0]),
        "pendigits": np.ascontiguousarray(data.pendigits()[0]),
        "california": np.ascontiguousarray(data.california_housing()[0]),
        f"random, {arguments.rows:,} x 50": rng.random((arguments.rows, 50)),
    }
    found = {}
    for name, X in problems.items():
        for threads in sorted({1, arguments.threads}):
            parameters = {"verbose": -1, "num_threads": threads, "max_bin": 255}
            tasks = {
                "ours": partial(bind, X, threads),
                "LightGBM": lambda X=X, p=parameters: Dataset(X, label=X[:, 0], params=p).construct(),
            }
            for task in tasks.values():
                task()  # compiles or loads
            found[f"{name}, {threads} thread" + "s" * (threads > 1)] = common.alternate(
                tasks, arguments.repeats
            )
    return found


def bind(X: np.ndarray, threads: int) -> Any:
    return Stump().bind(X, FunctionSpace.of(len(X)), None, threads)


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    starts, rows, bins = results["starts"], results["one_row"], results["binning"]
    goals = {"first fit, cold": COLD_GOAL, f"{WHOLE}, warm": WARM_GOAL}
    fits = []
    for part in starts[ESTIMATORS[0]]:
        line = [part]
        for name in ESTIMATORS:
            cell, goal = spread(starts[name][part]), goals.get(part)
            reached = goal and common.verdict(median(starts[name][part]) <= goal)
            line.append(f"{cell}; at most {goal:g}: {reached}" if goal else cell)
        fits.append(line)
    libraries = list(next(iter(rows.values())))
    one_row = [
        [what, f"{number(found['convexboost'])}; {common.verdict(found['convexboost'] <= ROW_GOAL)}"]
        + [number(found[name]) for name in libraries[1:]]
        for what, found in rows.items()
    ]
    binned = [
        [name, spread(s["ours"]), spread(s["LightGBM"]), number(median(s["LightGBM"]) / median(s["ours"]))]
        for name, s in bins.items()
    ]
    return "\n\n".join(
        [
            f"CPU seconds in fresh processes: import of the estimator, two fits at the defaults on "
            f"{arguments.first_rows} rows of 10 numbers, and the first prediction, with the Numba cache "
            "empty (cold: all kernels are compiled) and warm. The whole process counts from its start to "
            "the end of the first fit, with the interpreter and NumPy.",
            table(("", *ESTIMATORS), fits),
            f"Milliseconds to predict one row, a NumPy array of 20 numbers, with {arguments.trees} trees: "
            f"the median of {arguments.calls:,} calls, the libraries in turn. Wanted: at most {ROW_GOAL:g}.",
            table(("", *libraries), one_row),
            "Binning from raw X (float64, C order), at most 255 bins, against "
            "`lightgbm.Dataset(X).construct()`, which looks at no more than 200,000 rows to place its bins. "
            "Ratio: LightGBM / ours, at least 1 wanted.",
            table(("data", "ours, s", "LightGBM, s", "ratio"), binned),
        ]
    )


def main() -> None:
    parser = common.parser(__doc__, repeats=3)
    parser.add_argument("--first-rows", type=int, default=300, help="of the first fits")
    parser.add_argument("--trees", type=int, default=300, help="of the models that predict one row")
    parser.add_argument("--calls", type=int, default=1000, help="that predict one row")
    parser.add_argument("--rows", type=int, default=500_000, help="of the random matrix to bin")
    arguments = common.parse(parser, first_rows=100, trees=20, calls=10, rows=20_000)
    results = {"starts": first_fits(arguments), "one_row": one_row(arguments), "binning": binning(arguments)}
    common.publish(arguments, "startup", "First contact", page(results, arguments), results)


if __name__ == "__main__":
    main()
