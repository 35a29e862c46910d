"""What a user waits for before the first round: import, kernels, binning.

    python benchmarks/startup.py

Import and first fit are measured in fresh processes, with the Numba cache warm and empty; binning against
LightGBM's `Dataset(...).construct()`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from functools import partial
from typing import Any

import numpy as np

import common
import data
from common import Seconds, median, number, spread, table
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump

try:
    from lightgbm import Dataset
except ModuleNotFoundError as error:
    raise SystemExit(f"this benchmark needs {error.name}: pip install --group bench") from None

IMPORT = "import the classifier"
IMPORT_GOAL, WARM_GOAL, COLD_GOAL = 1.0, 1.0, 20.0
STATES = ("warm", "cold")

#: Runs in a fresh process.  X and y are read before the clock starts.
CHILD = """
import json, sys, time
import numpy as np
with np.load(sys.argv[1]) as file:
    X, y = file["X"], file["y"]
stamps = [time.perf_counter()]
import convexboost
stamps.append(time.perf_counter())
from convexboost import ConvexBoostClassifier
stamps.append(time.perf_counter())
for _ in range(2):
    model = ConvexBoostClassifier(**json.loads(sys.argv[2]))
    model.fit(X, y)
    stamps.append(time.perf_counter())
model.predict(X)
stamps.append(time.perf_counter())
names = ("import convexboost", "import the classifier", "first fit", "second fit", "predict")
print(json.dumps(dict(zip(names, np.diff(stamps).tolist()))))
"""

#: What the classifier cannot do without, in a fresh process of its own.
BARE_CHILD = """
import json, time
import numpy as np
began = time.perf_counter()
import numba, sklearn.base
print(json.dumps({"import scikit-learn and Numba alone": time.perf_counter() - began}))
"""


def settings(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return what is fitted: nothing but the rounds is set for the default."""
    every = {
        "default": {"n_rounds": arguments.rounds},
        "stumps": {"loss": "multiclass_hinge", "learner": "stump", "n_rounds": arguments.stump_rounds},
    }
    return {name: setting for name, setting in every.items() if setting["n_rounds"]}


def first_fits(arguments: argparse.Namespace, setting: dict[str, Any]) -> dict[str, Seconds]:
    """Import, fit and predict in fresh processes: once to fill the cache, then warm and cold in turn."""
    with tempfile.TemporaryDirectory() as folder:
        X, y, _ = data.letter()
        np.savez(f"{folder}/letter.npz", X=X, y=y)
        setting = {**setting, "n_jobs": arguments.threads}
        command = ["-c", CHILD, f"{folder}/letter.npz", json.dumps(setting)]
        found: dict[str, Seconds] = {state: {} for state in STATES}
        common.fresh(command, NUMBA_CACHE_DIR=f"{folder}/warm")
        for i in range(arguments.repeats):
            for state, cache in (("warm", "warm"), ("cold", f"cold{i}")):
                one = common.fresh(command, NUMBA_CACHE_DIR=f"{folder}/{cache}")
                one["in all"] = sum(one.values()) - one["second fit"]
                one |= common.fresh(["-c", BARE_CHILD])
                common.note(f"{state}: {one}")
                for name, seconds in one.items():
                    found[state].setdefault(name, []).append(seconds)
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
    starts, bins = results["starts"], results["binning"]
    goals = {("warm", IMPORT): IMPORT_GOAL, ("warm", "first fit"): WARM_GOAL, ("cold", "in all"): COLD_GOAL}
    rows = []
    for what in starts["default"]["warm"]:
        row = [what]
        for found, state in itertools.product(starts.values(), STATES):
            cell, goal = spread(found[state][what]), goals.get((state, what))
            reached = goal and common.verdict(median(found[state][what]) <= goal)
            row.append(f"{cell}; at most {goal:g}: {reached}" if goal else cell)
        rows.append(row)
    binned = [
        [name, spread(s["ours"]), spread(s["LightGBM"]), number(median(s["LightGBM"]) / median(s["ours"]))]
        for name, s in bins.items()
    ]
    return "\n\n".join(
        [
            "Seconds in fresh processes: import of the package and of `ConvexBoostClassifier`, two fits on "
            "letter (16,000 rows) and a prediction of the same rows, with the Numba cache warm and empty. "
            f"Default: trees and softmax, {arguments.rounds} rounds; stumps: the multiclass hinge, "
            f"{arguments.stump_rounds} rounds. “In all” leaves out the second fit; NumPy is loaded before "
            "the clock starts. The last row is the part of the import that is not ours, in a process of its "
            "own.",
            table(("", *(f"{name}, {cache} cache" for name in starts for cache in ("warm", "empty"))), rows),
            "Binning from raw X (float64, C order), at most 255 bins, against "
            "`lightgbm.Dataset(X).construct()`, which looks at no more than 200,000 rows to place its bins. "
            "Ratio: LightGBM / ours, at least 1 wanted.",
            table(("data", "ours, s", "LightGBM, s", "ratio"), binned),
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of trees")
    parser.add_argument("--stump-rounds", type=int, default=500, help="0: trees alone")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the random matrix")
    arguments = common.parse(parser, rounds=2, stump_rounds=0, rows=20_000)
    starts = {name: first_fits(arguments, setting) for name, setting in settings(arguments).items()}
    results = {"starts": starts, "binning": binning(arguments)}
    common.publish(arguments, "startup", "Import, first fit, binning", page(results, arguments), results)


if __name__ == "__main__":
    main()
