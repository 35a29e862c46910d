"""What `certificate=True` costs: the same fit with and without, one thread.

    python benchmarks/certificate.py [--rounds N]

The two take turns; the ratio is the median over the pairs, in processor time, which other programs disturb
less than the clock.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import Any

import common
from common import median, number, table
from convexboost import ConvexBoostClassifier
from peers import Problem

GOAL = 1.10
SETS = ("letter", "pendigits", "satimage", "connect4")


def seconds(problem: Problem, rounds: int, certificate: bool) -> float:
    """Return the processor time of one fit."""
    model = ConvexBoostClassifier(
        "multiclass_hinge",
        "stump",
        n_rounds=rounds,
        early_stopping=False,
        n_jobs=1,
        certificate=certificate,
        categorical_features=problem.categorical,
    )
    gc.collect()
    began = time.process_time()
    model.fit(problem.X, problem.y)
    return time.process_time() - began


def measure(problem: Problem, arguments: argparse.Namespace) -> dict[str, Any]:
    """Time both in turn."""
    seconds(problem, 3, True)  # compiles
    pairs = [
        [seconds(problem, arguments.rounds, certificate) for certificate in (False, True)]
        for _ in range(arguments.repeats)
    ]
    ratios = [certified / plain for plain, certified in pairs]
    common.note(f"{problem.name}: {', '.join(map(number, ratios))}")
    return {
        "plain": median(plain for plain, _ in pairs),
        "certified": median(certified for _, certified in pairs),
        "ratio": median(ratios),
        "ratios": ratios,
    }


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = [
        (
            name,
            number(found["plain"]),
            number(found["certified"]),
            f"{found['ratio']:.3f} ({min(found['ratios']):.3f} to {max(found['ratios']):.3f})",
            common.verdict(found["ratio"] <= GOAL),
        )
        for name, found in results["sets"].items()
    ]
    return "\n\n".join(
        [
            f"Processor seconds of {arguments.rounds:,} rounds of `residual` with the multiclass hinge on "
            f"one thread; median of {arguments.repeats} pairs. Goal: a ratio of at most {GOAL:.2f}.",
            table(("data", "without", "with a certificate", "ratio (smallest to largest)", "goal"), rows),
        ]
    )


def main() -> None:
    parser = common.parser(__doc__, repeats=7)
    parser.add_argument("--rounds", type=int, default=1000)
    arguments = common.parse(parser, rounds=20)
    arguments.threads = 1
    results = {
        "rounds": arguments.rounds,
        "goal": GOAL,
        "sets": {name: measure(Problem.load(name), arguments) for name in SETS},
    }
    title = "What a certificate costs"
    common.publish(arguments, "certificate", title, page(results, arguments), results)


if __name__ == "__main__":
    main()
