"""B4: seconds per weak learner inside `repeated`, for few and for many rows in the same bins.

    python benchmarks/weak_learner.py

Times `Target.pursue`, the inner loop of Algorithm 2, on letter (few bins) and on random numbers in 16 x 250
bins.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import common
from common import Seconds, median, number, table, timed
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.losses.multiclass_hinge import MulticlassHinge
from peers import Problem

GOAL = 1.1
FEATURES, BINS, CLASSES = 16, 250, 26

Rows = tuple[np.ndarray, np.ndarray]


def letter(n_samples: int, rng: np.random.Generator) -> Rows:
    """All rows of letter and then rows drawn from it, so that the bins are the same for any number."""
    problem = Problem.load("letter")
    rows = np.arange(len(problem.y))
    rows = np.concatenate([rows, rng.integers(len(rows), size=n_samples)])[:n_samples]
    return problem.X[rows], problem.y[rows]


def many_bins(n_samples: int, rng: np.random.Generator) -> Rows:
    """Whole numbers below 250 in 16 columns, each of which occurs, and classes that depend on them."""
    X = rng.integers(BINS, size=(n_samples, FEATURES)).astype(float)
    X[:BINS] = np.arange(BINS)[:, None]
    directions = np.random.default_rng(1).normal(size=(FEATURES, CLASSES))
    return X, (X @ directions + rng.gumbel(size=(n_samples, CLASSES)) * 100).argmax(axis=1)


class Pursuit:
    """Stumps bound to some rows, and the first gradient of the multiclass hinge on them."""

    def __init__(self, rows: Rows, threads: int) -> None:
        X, y = rows
        space = FunctionSpace.of(len(y))
        objective = MulticlassHinge().bind(y, space)
        self.stumps = Stump().bind(X, space, None, threads)
        self.gradient = objective.scores(self.stumps.inputs, objective.start()).gradient()
        self.n_samples, self.n_outputs = len(y), objective.n_outputs
        self.n_bins = int(sum(column.n_bins for column in self.stumps.mapper.columns))

    def seconds(self, count: int) -> float:
        """Return the seconds per weak learner of one pursuit."""
        target = self.stumps.zero(self.n_outputs)
        target.add(self.gradient)
        seconds, direction = timed(lambda: target.pursue(count, np.random.default_rng(0)))
        return seconds / direction.n_weak_learners


def compare(make: Callable[..., Rows], arguments: argparse.Namespace) -> dict[str, Any]:
    """Alternate between the numbers of rows."""
    pursuits = [Pursuit(make(n, np.random.default_rng(0)), arguments.threads) for n in arguments.sizes]
    if len({pursuit.n_bins for pursuit in pursuits}) != 1:
        raise RuntimeError("the bins differ between the sizes")
    first = {str(p.n_samples): p.seconds(arguments.count) for p in pursuits}  # counts the pair table
    seconds: Seconds = {n: [] for n in first}
    for _ in range(arguments.repeats):
        for pursuit in pursuits:
            seconds[str(pursuit.n_samples)].append(pursuit.seconds(arguments.count))
    small, large = (median(s) for s in seconds.values())
    return {"bins": pursuits[0].n_bins, "seconds": seconds, "first": first, "ratio": large / small}


def page(found: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = []
    for name, one in found.items():
        for n, seconds in one["seconds"].items():
            steady = " to ".join(number(1e6 * f(seconds)) for f in (min, max))
            first = number(arguments.count * one["first"][n])
            rows.append([name, one["bins"], f"{int(n):,}", number(1e6 * median(seconds)), steady, first, ""])
        rows[-1][-1] = f"{number(one['ratio'])} ({common.verdict(one['ratio'] <= GOAL)})"
    header = ("data", "bins", "rows", "µs per weak learner", "from … to", "first pursuit, s", "ratio")
    return "\n\n".join(
        [
            f"`Target.pursue({arguments.count})` on the first gradient of the multiclass hinge ({CLASSES} "
            f"classes), medians of {arguments.repeats} alternating repeats. Ratio: many rows / few rows, "
            f"at most {GOAL:g}.",
            table(header, rows),
            "The first pursuit also counts the pair table, which a fit does once; it is not in the other "
            "columns. (The first of all includes loading or compiling the kernels.)",
        ]
    )


def main() -> None:
    parser = common.parser(__doc__, repeats=15)
    parser.add_argument("--sizes", type=int, nargs=2, default=[16_000, 1_600_000], help="numbers of rows")
    parser.add_argument("--count", type=int, default=200, help="weak learners in one pursuit (200)")
    arguments = common.parse(parser, sizes=[16_000, 48_000], count=20)
    found = {make.__name__: compare(make, arguments) for make in (letter, many_bins)}
    common.publish(
        arguments,
        "weak_learner",
        "B4: seconds per weak learner do not depend on the rows",
        page(found, arguments),
        {"data": found, "goal": GOAL},
    )


if __name__ == "__main__":
    main()
