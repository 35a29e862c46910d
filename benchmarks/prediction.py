"""B3: seconds to predict 1,000,000 rows with the models of B1, from raw X.

python benchmarks/prediction.py        (after benchmarks/training.py, whose settings it reads)
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import common
import peers
from common import geometric_mean, median, number, spread, table
from peers import LIGHTGBM, XGBOOST, Problem, Setting
from training import OURS, classifier

GOAL = 20.0
WARM_UP = 1000  #: rows


def models(problem: Problem, one: dict[str, Any], threads: int) -> dict[str, tuple[Any, str]]:
    """Train ours, XGBoost and LightGBM again as in B1; each with the form in which it reads its inputs."""
    found: dict[str, tuple[Any, str]] = {
        OURS: (classifier(problem, one["loss"], one["rounds"], threads), peers.NUMBERS)
    }
    for peer in (XGBOOST, LIGHTGBM):
        setting = Setting(**one["settings"][peer.name])
        if setting.reached:
            found[peer.name] = peers.fit(setting, problem, threads), setting.encoding
    return found


def compare(problem: Problem, one: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Time the predictions of one data set."""
    rows = np.random.default_rng(0).integers(len(problem.y), size=arguments.rows)
    X, tasks = problem.X[rows], {}
    for name, (model, encoding) in models(problem, one, arguments.threads).items():
        inputs = problem.encode(X, encoding)
        model.predict(inputs[:WARM_UP])
        tasks[name] = lambda model=model, inputs=inputs: model.predict(inputs)
    seconds = common.alternate(tasks, arguments.repeats)
    own = median(seconds[OURS])
    rounds = {OURS: one["rounds"], **{name: s["rounds"] for name, s in one["settings"].items()}}
    return {
        "seconds": seconds,
        "rounds": {name: rounds[name] for name in seconds},
        "ratios": {name: median(s) / own for name, s in seconds.items() if name != OURS},
    }


def page(found: dict[str, Any], results: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = [
        [data, name, one["rounds"][name], spread(s), number(one["ratios"][name]) if name != OURS else ""]
        for data, one in found.items()
        for name, s in one["seconds"].items()
    ]
    least = results["least"]
    return "\n\n".join(
        [
            f"`predict` on {arguments.rows:,} rows drawn from the training rows, with the models of B1 "
            "([training.md](training.md)). Ratio: seconds of the peer / ours. Against XGBoost: least "
            f"{number(least)} (goal {GOAL:g}: {common.verdict(least >= GOAL)}), geometric mean "
            f"{number(results['mean'])}.",
            table(("data", "library", "rounds", "seconds", "ratio"), rows),
            "From the matrix X (category columns, where a peer uses them, are made beforehand); medians of "
            f"alternating runs, after a prediction of {WARM_UP} rows that compiles or loads what is needed.",
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = common.parse(parser, rows=50_000)
    known = common.load(arguments.out).get("training")
    if known is None:
        raise SystemExit(f"no results of benchmarks/training.py in {arguments.out}: run it first")
    found = {}
    for name, one in known["data"].items():
        if one["rounds"]:
            found[name] = compare(Problem.load(name), one, arguments)
    ratios = [one["ratios"][XGBOOST.name] for one in found.values()]
    results = {"data": found, "least": min(ratios), "mean": geometric_mean(ratios), "goal": GOAL}
    common.publish(
        arguments, "prediction", "B3: prediction of many rows", page(found, results, arguments), results
    )


if __name__ == "__main__":
    main()
