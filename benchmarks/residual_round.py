"""B5: one round of `residual` on letter, in units of one pass over the score matrix in NumPy.

    python benchmarks/residual_round.py

The unit is `np.add(A, B, out=C)` on arrays of the shape of the scores: read, read, write.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import common
from common import Seconds, median, number, table
from convexboost import ConvexBoostClassifier
from peers import Problem

GOAL = 4.0
PASSES = 1000
UNIT = "np.add"


def numpy_pass(shape: tuple[int, int]) -> float:
    """Return the median seconds of reading two matrices and writing one."""
    A, B, C = (np.ones(shape) for _ in range(3))
    stamps = []
    for _ in range(PASSES):
        np.add(A, B, out=C)
        stamps.append(time.perf_counter())
    return float(np.median(np.diff(stamps)))


def ours(problem: Problem, rounds: tuple[int, int], threads: int) -> float:
    """Return the median seconds of the rounds from the first to the last of interest, in one fit."""
    first, last = rounds
    model = ConvexBoostClassifier(
        "multiclass_hinge", "stump", n_rounds=last, early_stopping=False, n_jobs=threads
    )
    return common.per_round(model.fit(problem.X, problem.y).history_, first, last)


def measure(problem: Problem, arguments: argparse.Namespace) -> Seconds:
    """Alternate between the unit, ours on one thread and ours on all."""
    shape = len(problem.y), int(problem.y.max()) + 1
    seconds: Seconds = {}
    for _ in range(arguments.repeats):
        seconds.setdefault(UNIT, []).append(numpy_pass(shape))
        for threads in sorted({1, arguments.threads}):
            name = f"{threads} thread" + "s" * (threads > 1)
            seconds.setdefault(name, []).append(ours(problem, arguments.rounds, threads))
    return seconds


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    first, last = arguments.rounds
    rows = [
        [name, number(1e6 * median(s)), " to ".join(number(1e6 * f(s)) for f in (min, max)), ""]
        for name, s in results["seconds"].items()
    ]
    for row in rows[1:]:
        ratio = results["ratios"][row[0]]
        row[-1] = f"{number(ratio)} ({common.verdict(ratio <= GOAL)})"
    shape = " x ".join(f"{n:,}" for n in results["shape"])
    return "\n\n".join(
        [
            f"Median seconds of rounds {first} to {last} of `residual` with the multiclass hinge on letter "
            f"(scores {shape}, float64), and of `np.add(A, B, out=C)` on such arrays (one thread), "
            f"{arguments.repeats} alternating repeats. Ratio: round / NumPy, at most {GOAL:g}.",
            table(("what", "µs", "from … to", "ratio"), rows),
        ]
    )


def main() -> None:
    parser = common.parser(__doc__, repeats=7)
    parser.add_argument("--rounds", type=int, nargs=2, default=[100, 500], help="first and last that count")
    arguments = common.parse(parser, rounds=[10, 30])
    problem = Problem.load("letter")
    ours(problem, (1, 3), arguments.threads)  # compiles
    seconds = measure(problem, arguments)
    unit = median(seconds[UNIT])
    results = {
        "shape": [len(problem.y), int(problem.y.max()) + 1],
        "seconds": seconds,
        "ratios": {name: median(s) / unit for name, s in seconds.items() if name != UNIT},
        "goal": GOAL,
    }
    title = "B5: one residual round against one pass over the scores"
    common.publish(arguments, "residual_round", title, page(results, arguments), results)


if __name__ == "__main__":
    main()
