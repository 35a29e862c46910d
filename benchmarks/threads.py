"""Seconds per round for 1, 2, 4, 8, 16 threads, on many rows and on few, and beside a busy process.

    python benchmarks/threads.py

The models must be the same bit for bit whatever the number of threads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import common
from common import Seconds, median, number, table, timed
from convexboost import ConvexBoostClassifier
from peers import Problem
from scaling import CLASSES, FEATURES, make

COUNTS = (1, 2, 4, 8, 16)
FIRST = 5  #: the rounds before this one are not counted
BUSY_GOAL = 2.0
LARGE, SMALL = "random", "letter"


def rows(name: str, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    if name == LARGE:
        return make(n_samples)
    problem = Problem.load(name)
    return problem.X, problem.y


def fit(X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> tuple[float, ConvexBoostClassifier]:
    """Return the seconds of the whole fit, and the model."""
    model = ConvexBoostClassifier("multiclass_hinge", n_rounds=rounds, n_jobs=threads)
    return timed(lambda: model.fit(X, y))


def same(one: ConvexBoostClassifier, other: ConvexBoostClassifier, X: np.ndarray) -> bool:
    """Return whether two models agree bit for bit, in every objective and in the scores of some rows."""
    some = X[:100_000]
    return np.array_equal(one.history_["objective"], other.history_["objective"]) and np.array_equal(
        one.decision_function(some), other.decision_function(some)
    )


def scaling(name: str, counts: list[int], arguments: argparse.Namespace) -> dict[str, Seconds]:
    """Alternate between the numbers of threads; the models must not differ."""
    X, y = rows(name, arguments.rows)
    fit(X[:2000], y[:2000], 3, max(counts))  # compiles
    found: dict[str, Seconds] = {str(count): {"per_round": [], "fit": []} for count in counts}
    reference = None
    for _ in range(arguments.repeats):
        for count in counts:
            seconds, model = fit(X, y, arguments.rounds[name], count)
            found[str(count)]["fit"].append(seconds)
            found[str(count)]["per_round"].append(common.per_round(model.history_, FIRST))
            common.note(f"{name}, {count} threads: {found[str(count)]['per_round'][-1]:.4g} s per round")
            reference = reference or model
            if not same(model, reference, X):
                raise RuntimeError(
                    f"{name}: the model with {count} threads differs from that with {counts[0]}"
                )
    return found


@contextmanager
def busy(cpu: int | None) -> Iterator[None]:
    """Keep a processor busy with another process."""
    if cpu is None:
        yield
        return
    code = f"import os; os.sched_setaffinity(0, [{cpu}])\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def child(name: str, n_samples: int, rounds: int, threads: int) -> dict[str, float]:
    X, y = rows(name, n_samples)
    fit(X[:2000], y[:2000], 3, threads)
    seconds, model = fit(X, y, rounds, threads)
    return {"fit": seconds, "per_round": common.per_round(model.history_, FIRST)}


def beside_busy(arguments: argparse.Namespace) -> dict[str, dict[str, Seconds]]:
    """Two threads on two processors, alone and while another process keeps one of the two busy."""
    found: dict[str, dict[str, Seconds]] = {}
    for name in (SMALL, LARGE):
        task = {"name": name, "n_samples": arguments.rows, "rounds": arguments.rounds[name], "threads": 2}
        two = common.cpus()[:2]
        for _ in range(arguments.repeats):
            for state, cpu in (("alone", None), ("busy", two[1])):
                with busy(cpu):
                    one = common.fresh([__file__, "--child", json.dumps(task)], on=two)
                common.note(f"{name}, {state}: {one}")
                for key, value in one.items():
                    found.setdefault(name, {}).setdefault(state, {}).setdefault(key, []).append(value)
    return found


def scaling_table(found: dict[str, Seconds]) -> str:
    one = found["1"]
    return table(
        ("threads", "ms per round", "from … to", "times one thread", "whole fit, s", "times one thread"),
        [
            [
                count,
                number(1e3 * median(s["per_round"])),
                " to ".join(number(1e3 * f(s["per_round"])) for f in (min, max)),
                f"{median(one['per_round']) / median(s['per_round']):.2f}",
                number(median(s["fit"])),
                f"{median(one['fit']) / median(s['fit']):.2f}",
            ]
            for count, s in found.items()
        ],
    )


def busy_table(found: dict[str, dict[str, Seconds]]) -> str:
    rows = []
    for name, states in found.items():
        alone, beside = (median(states[state]["per_round"]) for state in ("alone", "busy"))
        fits = [median(states[state]["fit"]) for state in ("alone", "busy")]
        ratio = f"{beside / alone:.2f} ({common.verdict(beside / alone <= BUSY_GOAL)})"
        rows.append([name, number(1e3 * alone), number(1e3 * beside), ratio, f"{fits[1] / fits[0]:.2f}"])
    return table(("data", "alone, ms per round", "one of two busy", "ratio", "ratio of the whole fits"), rows)


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    small = results[SMALL]
    worst = max(median(s["per_round"]) / median(small["1"]["per_round"]) for s in small.values())
    parts = [
        f"Multiclass hinge, residual. The models agreed bit for bit for every number of threads "
        f"({', '.join(small)}). Medians of {arguments.repeats} alternating repeats.",
        f"{arguments.rows:,} rows, {FEATURES} columns of random floats, {CLASSES} classes, "
        f"{arguments.rounds[LARGE]} rounds:",
        scaling_table(results[LARGE]),
        f"letter (16,000 rows), {arguments.rounds[SMALL]} rounds; the slowest number of threads took "
        f"{worst:.2f} times as long per round as one thread:",
        scaling_table(small),
    ]
    if results["busy"]:
        parts += [
            "Two threads on two processors, alone and while another process keeps one of the two busy (at "
            f"most {BUSY_GOAL:g} times as long):",
            busy_table(results["busy"]),
        ]
    return "\n\n".join(parts)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the random data")
    parser.add_argument("--rounds", type=json.loads, default={LARGE: 40, SMALL: 300}, help="a JSON object")
    arguments = common.parse(parser, rows=20_000, rounds={LARGE: 10, SMALL: 20})
    if arguments.child:
        print(json.dumps(child(**arguments.child)))
        return
    counts = [count for count in COUNTS if count <= arguments.threads]
    results: dict[str, Any] = {name: scaling(name, counts, arguments) for name in (SMALL, LARGE)}
    results["busy"] = beside_busy(arguments) if len(common.cpus()) > 1 and sys.platform == "linux" else {}
    common.publish(arguments, "threads", "Threads", page(results, arguments), results)


if __name__ == "__main__":
    main()
