"""Seconds for exact Shapley values of trees: ours against LightGBM's and XGBoost's `pred_contrib`.

python benchmarks/explanations.py
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import lightgbm
import numpy as np
import xgboost

import common
from common import median, number, spread, table
from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.learners import Tree

OURS, LIGHTGBM, XGBOOST = "convexboost", "LightGBM", "XGBoost"
LEAVES, COLUMNS = 31, 20
#: Numbers of outputs: 1 is regression, more are classes.
OUTPUTS = (1, 5, 10)
#: Peers must take this many times our seconds for several outputs.
GOAL = 1.0


def problem(n_rows: int, n_outputs: int) -> tuple[Any, Any]:
    """Return inputs and targets, numbers or classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, COLUMNS))
    signal = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + X[:, 3:].sum(axis=1) / 4.0
    y = signal + rng.normal(size=n_rows) / 4.0
    if n_outputs == 1:
        return X, y
    return X, np.digitize(y, np.quantile(y, np.linspace(0.0, 1.0, n_outputs + 1)[1:-1]))


def tasks(X: Any, y: Any, n_outputs: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train the three on the same rows, for the same number of rounds; return what explains some rows."""
    rounds, threads, rows = arguments.rounds, arguments.threads, X[: arguments.rows]
    kind = ConvexBoostRegressor if n_outputs == 1 else ConvexBoostClassifier
    learner = Tree(max_leaves=LEAVES, splits="best")
    ours = kind(learner=learner, n_rounds=rounds, early_stopping=False, n_jobs=threads).fit(X, y)
    objective = {} if n_outputs == 1 else {"num_class": n_outputs}
    light = lightgbm.train(
        {
            "objective": "multiclass" if objective else "regression",
            "num_leaves": LEAVES,
            "num_threads": threads,
            "verbose": -1,
            **objective,
        },
        lightgbm.Dataset(X, y),
        rounds,
    )
    inputs = xgboost.DMatrix(X, y)
    xgb = xgboost.train(
        {
            "objective": "multi:softprob" if objective else "reg:squarederror",
            "grow_policy": "lossguide",
            "max_leaves": LEAVES,
            "max_depth": 0,
            "nthread": threads,
            **objective,
        },
        inputs,
        rounds,
    )
    some = xgboost.DMatrix(rows, nthread=threads)
    found = {
        OURS: lambda: ours.predict_contributions(rows),
        LIGHTGBM: lambda: light.predict(rows, pred_contrib=True, num_threads=threads),
        XGBOOST: lambda: xgb.predict(some, pred_contribs=True),
    }
    check(ours, found[OURS](), rows)
    return found


def check(model: Any, found: Any, rows: Any) -> None:
    """Insist that the contributions add up to the scores."""
    scores = model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)
    error = float(np.abs(found.sum(axis=1) - scores).max())
    assert error < 1e-9, error


def page(found: dict[int, Any], arguments: argparse.Namespace) -> str:
    rows = []
    for n_outputs, seconds in found.items():
        own = median(seconds[OURS])
        for name, taken in seconds.items():
            trees = arguments.rounds * (1 if name == OURS else n_outputs)
            ratio = "" if name == OURS else number(median(taken) / own)
            rows.append([n_outputs, name, trees, spread(taken), ratio])
    least = results(found)["least"]
    return "\n\n".join(
        [
            f"Exact path-dependent Shapley values of {arguments.rows:,} rows and {COLUMNS} columns, after "
            f"{arguments.rounds} rounds of trees with {LEAVES} leaves. A round of ours is one tree whose "
            "leaves hold a number for every output; that of the peers is a tree for each output. Ratio: "
            f"seconds of the peer / ours. For several outputs the least is {number(least)} (goal {GOAL:g}: "
            f"{common.verdict(least >= GOAL)}).",
            table(("outputs", "library", "trees", "seconds", "ratio"), rows),
            "Ours add up to the scores within 1e-9, which the program checks. Medians of alternating runs, "
            "after a first one that compiles or loads what is needed.",
        ]
    )


def results(found: dict[int, Any]) -> dict[str, Any]:
    """Return the figures of the page."""
    ratios = {
        n: {name: median(taken) / median(one[OURS]) for name, taken in one.items() if name != OURS}
        for n, one in found.items()
    }
    least = min(ratio for n, one in ratios.items() if n > 1 for ratio in one.values())
    return {"seconds": {str(n): one for n, one in found.items()}, "ratios": ratios, "least": least}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = common.parse(parser, rows=100, rounds=5)
    os.sched_setaffinity(0, common.cpus()[: arguments.threads])  # prediction uses all cores that it may
    found = {}
    for n_outputs in OUTPUTS:
        X, y = problem(max(5 * arguments.rows, 1000), n_outputs)
        ready = tasks(X, y, n_outputs, arguments)
        for task in ready.values():
            task()
        found[n_outputs] = common.alternate(ready, arguments.repeats)
    title = "Shapley values of trees, for one output and for several"
    common.publish(arguments, "explanations", title, page(found, arguments), results(found))


if __name__ == "__main__":
    main()
