"""Exact sums over rows: nanoseconds a row beside NumPy, and seconds of a round beside another checkout.

    python benchmarks/sums.py                            # the sums alone
    python benchmarks/sums.py --against /path/to/src     # and rounds, in pairs, beside that source folder

A pair is a fit here and one there, in fresh processes, one after the other; the figure is the median of the
ratios of the pairs, with the median seconds of a round (of the processor: other processes do not count).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = str(Path(__file__).parents[1] / "src")
#: Name: rows, columns, learner, loss, rounds.
FITS = {
    "tree, 1,000,000 x 10": (1_000_000, 10, "tree", "half_squared", 12),
    "stump, 1,000,000 x 10": (1_000_000, 10, "stump", "half_squared", 40),
    "tree, 500 x 10": (500, 10, "tree", "half_squared", 400),
    "stump, 500 x 10": (500, 10, "stump", "absolute", 400),
}
FIT = """
import json, sys, numpy as np
from convexboost import ConvexBoostRegressor
n, columns, learner, loss, rounds, threads = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(n, columns))
y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + rng.normal(size=n)
stamps = []
import time
def stamp(*_): stamps.append(time.process_time())
fixed = {"early_stopping": False, "n_jobs": threads}
ConvexBoostRegressor(loss, learner, n_rounds=3, **fixed).fit(X[:300], y[:300])
ConvexBoostRegressor(loss, learner, n_rounds=rounds, callbacks=[stamp], **fixed).fit(X, y)
print(float(np.median(np.diff(stamps))))
"""


def nanoseconds(call: Callable[[], object], n_rows: int, repeats: int) -> float:
    """Return the best time a row: other processes can only add to it."""
    call()
    best = min(_seconds(call) for _ in range(repeats))
    return 1e9 * best / n_rows


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def sums(n_rows: int, repeats: int) -> list[tuple[str, float, float]]:
    """Return (name, ours, NumPy's) in nanoseconds a row."""
    from convexboost.core.sums import CellSums, ExactSum

    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=n_rows), rng.uniform(size=n_rows)
    counts, wide = rng.integers(1, 5, n_rows).astype(float), x * 10.0 ** rng.uniform(-100, 100, n_rows)
    X, F, cell = x[:, None], rng.normal(size=(n_rows, 5)), rng.integers(0, 31, n_rows).astype(np.int32)
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "Σ x": (lambda: float(ExactSum().add(x)), x.sum),
        "Σ x, 200 orders of magnitude": (lambda: float(ExactSum().add(wide)), wide.sum),
        "Σ w x": (lambda: float(ExactSum().add(x, weight)), lambda: np.einsum("n,n->", weight, x)),
        "Σ w x, w counted": (
            lambda: float(ExactSum().add(x, counts, True)),
            lambda: np.einsum("n,n->", counts, x),
        ),
        "Σ w f g, 1 output": (
            lambda: float(ExactSum().add_products(X, X, weight)),
            lambda: np.einsum("n,nk,nk->", weight, X, X),
        ),
        "Σ w f g, 5 outputs": (
            lambda: float(ExactSum().add_products(F, F, weight)),
            lambda: np.einsum("n,nk,nk->", weight, F, F),
        ),
        "31 cells, 1 output": (
            lambda: CellSums(31, 1, float(n_rows)).add(cell, X, weight).values(),
            lambda: np.bincount(cell, weight * x),
        ),
        "31 cells, 5 outputs": (
            lambda: CellSums(31, 5, float(n_rows)).add(cell, F, weight).values(),
            lambda: [np.bincount(cell, weight * column) for column in F.T],
        ),
    }
    return [(name, *(nanoseconds(f, n_rows, repeats) for f in calls)) for name, calls in pairs.items()]


def round_seconds(source: str, fit: tuple[object, ...], threads: int) -> float:
    """Return the median seconds of a round, in a fresh process with this source folder."""
    environment = os.environ | {"PYTHONPATH": source}
    command = [sys.executable, "-c", FIT, json.dumps([*fit, threads])]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--against", help="source folder of another checkout")
    parser.add_argument("--fits", nargs="*", default=list(FITS), choices=list(FITS))
    arguments = parser.parse_args()
    print("| sum | ours, ns a row | NumPy, ns a row |\n| --- | ---: | ---: |")
    for name, ours, numpy in sums(arguments.rows, arguments.repeats):
        print(f"| {name} | {ours:.2f} | {numpy:.2f} |")
    if not arguments.against:
        return
    print("\n| round | here, ms | there, ms | here / there, median of pairs |\n| --- | ---: | ---: | ---: |")
    for name in arguments.fits:
        found = [
            [round_seconds(source, FITS[name], arguments.threads) for source in (HERE, arguments.against)]
            for _ in range(arguments.pairs)
        ]
        here, there = (1e3 * statistics.median(column) for column in zip(*found, strict=True))
        ratios = [a / b for a, b in found]
        print(
            f"| {name} | {here:.3f} | {there:.3f} | {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}) |"
        )


if __name__ == "__main__":
    main()
