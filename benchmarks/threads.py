"""Threads: the same bits, no loss on few rows, scaling on many, and two threads beside a busy process.

    python benchmarks/threads.py [--counts 1 2 4 8 16] [--rows 1000000]

Needs nothing but the library itself: the data are random.
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
from scaling import CLASSES, FEATURES, make

COUNTS = (1, 2, 4, 8, 16)
FIRST = 5  #: the rounds before this one are not counted
WHOLE, BEFORE, ROUND = "whole fit", "before the rounds", "per round"  #: whose seconds are kept
BUSY_GOAL = 2.0
SLOWER_GOAL = 1.1  #: times as long as one thread, on few rows: no slower but for the noise
LARGE, SMALL = "many", "few"


def fit(X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> tuple[Seconds, ConvexBoostClassifier]:
    """Return the seconds of a fit by phase, and the model."""
    model = ConvexBoostClassifier(
        "multiclass_hinge", "stump", n_rounds=rounds, early_stopping=False, n_jobs=threads
    )
    seconds, _ = timed(lambda: model.fit(X, y))
    before = seconds - float(model.history_["seconds"][-1])
    return {WHOLE: [seconds], BEFORE: [before], ROUND: [common.per_round(model.history_, FIRST)]}, model


def same(one: ConvexBoostClassifier, other: ConvexBoostClassifier, X: np.ndarray) -> bool:
    """Return whether two models agree bit for bit, in every objective and in the scores of some rows."""
    some = X[:100_000]
    return np.array_equal(one.history_["objective"], other.history_["objective"]) and np.array_equal(
        one.decision_function(some), other.decision_function(some)
    )


def keep(found: dict[str, Seconds], key: str, seconds: Seconds) -> None:
    for name, values in seconds.items():
        found.setdefault(key, {}).setdefault(name, []).extend(values)
    common.note(f"{key}: " + ", ".join(f"{name} {values[0]:.4g} s" for name, values in seconds.items()))


def scaling(name: str, arguments: argparse.Namespace) -> dict[str, Seconds]:
    """Alternate between the numbers of threads; the models must not differ."""
    X, y = make(arguments.size[name])
    compile_all(X, y, max(arguments.counts))
    found: dict[str, Seconds] = {}
    reference = None
    for _ in range(arguments.repeats):
        for count in arguments.counts:
            seconds, model = fit(X, y, arguments.rounds[name], count)
            keep(found, str(count), seconds)
            reference = reference or model
            if not same(model, reference, X):
                raise RuntimeError(
                    f"the model with {count} threads differs from that with {arguments.counts[0]}"
                )
    return found


def compile_all(X: np.ndarray, y: np.ndarray, threads: int) -> None:
    fit(X[:2000], y[:2000], 20, threads)


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


def child(n_samples: int, rounds: int, threads: int, repeats: int) -> dict[str, Seconds]:
    """Two threads on the processors of this process, alone and while the last one is kept busy."""
    X, y = make(n_samples)
    compile_all(X, y, threads)
    found: dict[str, Seconds] = {}
    for _ in range(repeats):
        for state, cpu in (("alone", None), ("busy", common.cpus()[-1])):
            with busy(cpu):
                keep(found, state, fit(X, y, rounds, threads)[0])
    return found


def beside_busy(arguments: argparse.Namespace) -> dict[str, dict[str, Seconds]]:
    """Two threads on two processors, in processes of their own."""
    found = {}
    for name in (SMALL, LARGE):
        task = {
            "n_samples": arguments.size[name],
            "rounds": arguments.rounds[name],
            "threads": 2,
            "repeats": arguments.repeats,
        }
        found[name] = common.fresh([__file__, "--child", json.dumps(task)], on=common.cpus()[:2])
    return found


def scaling_table(found: dict[str, Seconds]) -> str:
    one = next(iter(found.values()))
    rows = []
    for count, seconds in found.items():
        row = [count]
        for name, values in seconds.items():
            unit = 1e3 if name == ROUND else 1.0
            row += [number(unit * median(values)), f"{median(one[name]) / median(values):.2f}"]
        rows.append(row)
    names = [f"{name}, {'ms' if name == ROUND else 's'}" for name in one]
    return table(("threads", *(cell for name in names for cell in (name, "speed-up"))), rows)


def busy_table(found: dict[str, dict[str, Seconds]], arguments: argparse.Namespace) -> str:
    rows = []
    for name, states in found.items():
        row = [f"{arguments.size[name]:,}"]
        for phase in (ROUND, WHOLE):
            alone, beside = (median(states[state][phase]) for state in ("alone", "busy"))
            ratio = f"{beside / alone:.2f} ({common.verdict(beside / alone <= BUSY_GOAL)})"
            row += [number(1e3 * alone), number(1e3 * beside), ratio]
        rows.append(row)
    header = [cell for phase in (ROUND, WHOLE) for cell in (f"{phase}, alone, ms", "one busy, ms", "ratio")]
    return table(("rows", *header), rows)


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    small = results[SMALL]
    within = {count: s for count, s in small.items() if int(count) <= len(common.cpus())}
    first = median(next(iter(small.values()))[ROUND])
    worst = max(median(s[ROUND]) / first for s in within.values())
    parts = [
        f"{FEATURES} columns of random floats, {CLASSES} classes, multiclass hinge, residual, medians of "
        f"{arguments.repeats} alternating repeats. The models agreed bit for bit for every number of threads "
        f"({', '.join(small)}).",
        f"{arguments.size[LARGE]:,} rows, {arguments.rounds[LARGE]} rounds. “{BEFORE.capitalize()}” are the "
        f"checks of the input and the binning:",
        scaling_table(results[LARGE]),
        f"{arguments.size[SMALL]:,} rows, {arguments.rounds[SMALL]} rounds. With no more threads than cores "
        f"a round took at most {worst:.2f} times as long as on {next(iter(small))} (at most "
        f"{SLOWER_GOAL:g}: {common.verdict(worst <= SLOWER_GOAL)}):",
        scaling_table(small),
    ]
    if results["busy"]:
        parts += [
            "Two threads on two processors, alone and while another process keeps one of the two busy (at "
            f"most {BUSY_GOAL:g} times as long):",
            busy_table(results["busy"], arguments),
        ]
    return "\n\n".join(parts)


def main() -> None:
    parser = common.parser(__doc__, repeats=3)
    parser.add_argument("--counts", type=int, nargs="+", help="of threads (1, 2, 4 … all cores)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="where there are many")
    parser.add_argument("--few", type=int, default=16_000, help="rows where there are few")
    parser.add_argument("--rounds", type=json.loads, default={LARGE: 30, SMALL: 200}, help="a JSON object")
    arguments = common.parse(parser, rows=20_000, few=2_000, rounds={LARGE: 10, SMALL: 20})
    if arguments.child:
        print(json.dumps(child(**arguments.child)))
        return
    arguments.counts = arguments.counts or [n for n in COUNTS if n <= max(4, arguments.threads)]
    arguments.size = {LARGE: arguments.rows, SMALL: arguments.few}
    results: dict[str, Any] = {name: scaling(name, arguments) for name in (SMALL, LARGE)}
    results["busy"] = beside_busy(arguments) if len(common.cpus()) > 1 and sys.platform == "linux" else {}
    common.publish(arguments, "threads", "Threads", page(results, arguments), results)


if __name__ == "__main__":
    main()
