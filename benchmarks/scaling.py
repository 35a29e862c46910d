"""B6: seconds per round and memory per row as the number of rows grows.

    python benchmarks/scaling.py

Every size runs in a process of its own.  50 columns of random floats, 5 classes, multiclass hinge, residual.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

import common
from common import median, number, table
from convexboost import ConvexBoostClassifier

FEATURES, CLASSES = 50, 5
#: Bytes per row that may come on top of X: the codes, the scores and a little, half as much again.
BUDGET = 1.5 * (FEATURES + 8 * CLASSES + 16)
FIRST = 10  #: the rounds before this one are not counted
CHUNK = 100_000


def make(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Random floats, and classes that depend on some of them; no large temporaries."""
    rng = np.random.default_rng(0)
    X, y = np.empty((n_samples, FEATURES)), np.empty(n_samples, np.int64)
    for start in range(0, n_samples, CHUNK):
        part = X[start : start + CHUNK]
        rng.random(out=part)
        noise = rng.normal(scale=0.3, size=(len(part), CLASSES))
        y[start : start + CHUNK] = (part[:, :CLASSES] + part[:, CLASSES : 2 * CLASSES] ** 2 + noise).argmax(
            axis=1
        )
    return X, y


def fit(
    X: np.ndarray, y: np.ndarray, rounds: int, threads: int, callback: Any = None
) -> ConvexBoostClassifier:
    callbacks = [callback] if callback else None
    return ConvexBoostClassifier(
        "multiclass_hinge",
        "stump",
        n_rounds=rounds,
        early_stopping=False,
        n_jobs=threads,
        callbacks=callbacks,
    ).fit(X, y)


def child(n_samples: int, rounds: int, threads: int) -> dict[str, float]:
    """Measure one size; memory is what comes on top of X and y and of the loaded libraries."""
    fit(*make(1000), 3, threads)  # compiles or loads the kernels
    X, y = make(n_samples)
    gc.collect()
    before, during = resident(), []
    reset_peak()
    history = fit(X, y, rounds, threads, lambda record: during.append(resident()) or False).history_
    return {
        "per_round": common.per_round(history, min(FIRST, rounds // 2)),
        "steady": (max(during) - before) / n_samples,
        "peak": (max(peak(), *during) - before) / n_samples,
    }


def resident() -> int:
    """Return the resident memory in bytes."""
    return _status("VmRSS")


def reset_peak() -> None:
    """Make the kernel forget the highest resident memory so far (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Return the highest resident memory since `reset_peak`, in bytes."""
    return _status("VmHWM")


def _status(key: str) -> int:
    return 1024 * int(re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Alternate between the sizes."""
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(arguments.repeats):
        for n in arguments.sizes:
            task = {"n_samples": n, "rounds": arguments.rounds, "threads": arguments.threads}
            one = common.fresh([__file__, "--child", json.dumps(task)])
            common.note(f"{n:,} rows: {one}")
            for key, value in one.items():
                found.setdefault(str(n), {}).setdefault(key, []).append(value)
    return found


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = [
        [
            f"{int(n):,}",
            number(1e3 * median(one["per_round"])),
            " to ".join(number(1e3 * f(one["per_round"])) for f in (min, max)),
            number(1e9 * median(one["per_round"]) / int(n)),
            number(median(one["steady"])),
            number(median(one["peak"])),
        ]
        for n, one in results["sizes"].items()
    ]
    growth, memory = results["growth"], results["memory"]
    return "\n\n".join(
        [
            f"{FEATURES} columns of random floats, {CLASSES} classes, multiclass hinge, residual, "
            f"{arguments.rounds} rounds, {arguments.repeats} repeats, each in a process of its own. From the "
            f"smallest to the largest size the seconds per round grew {number(growth)} times as much as the "
            f"rows (at most 1: {common.verdict(growth <= 1)}). Memory on top of X and y at the largest size: "
            f"{number(memory)} bytes per row at its peak, with the budget 1.5 (d + 8 K + 16) = "
            f"{number(BUDGET)}: {common.verdict(memory <= BUDGET)}.",
            table(
                ("rows", "ms per round", "from … to", "ns per row", "bytes per row, in the rounds", "peak"),
                rows,
            ),
            f"X is 8 d = {8 * FEATURES} bytes per row, C order. Resident memory is read after every round "
            "(“in the rounds”); the peak is the kernel's high-water mark over the whole fit, with binning. "
            "Both are above what was resident just before the fit; for few rows the fixed part dominates.",
        ]
    )


def main() -> None:
    parser = common.parser(__doc__, repeats=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000, 4_000_000])
    parser.add_argument("--rounds", type=int, default=60)
    arguments = common.parse(parser, sizes=[10_000, 40_000], rounds=10)
    if arguments.child:
        print(json.dumps(child(**arguments.child)))
        return
    found = measure(arguments)
    small, large = min(arguments.sizes), max(arguments.sizes)
    times = [median(found[str(n)]["per_round"]) for n in (small, large)]
    results = {
        "sizes": found,
        "growth": times[1] / times[0] / (large / small),
        "memory": median(found[str(large)]["peak"]),
        "budget": BUDGET,
    }
    common.publish(arguments, "scaling", "B6: more rows", page(results, arguments), results)


if __name__ == "__main__":
    main()
