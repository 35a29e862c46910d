"""Seconds of one evaluation of the ranking hinge as a query grows, and of one round on MQ2008.

    python benchmarks/ranking.py

Random scores and grades: all rows in one query, and the same rows in queries of 20.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import common
from common import Seconds, median, number, table
from convexboost import ConvexBoostRanker, FunctionSpace
from convexboost.datasets import load_mq2008
from convexboost.losses.ranking_hinge import PairwiseHinge, RankingHinge
from convexboost.metrics import ndcg

#: 10 times the rows may cost at most so many times the seconds; all pairs would cost 100 times.
GOAL = 30.0
#: name -> (number of grades, None for all different; rows in a query, None for all of them)
KINDS: dict[str, tuple[int | None, int | None]] = {
    "one query, 5 grades": (5, None),
    "one query, all grades different": (None, None),
    "queries of 20, 5 grades": (5, 20),
}


def mq2008() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the training part of fold 1."""
    data = load_mq2008()
    return data.X[data.train], data.y[data.train], data.qid[data.train]


def make(kind: str, n: int) -> tuple[PairwiseHinge, np.ndarray]:
    """Return an objective and scores."""
    (n_grades, size), rng = KINDS[kind], np.random.default_rng(0)
    y = rng.integers(0, n_grades, n) if n_grades else rng.permutation(n)
    objective = RankingHinge().bind(y, FunctionSpace.of(n), groups=np.arange(n) // (size or n))
    F = rng.normal(size=(n, 1))
    objective.evaluate(F)  # compiles, and finds the sum of the weights
    return objective, F


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = [
        [kind, f"{int(n):,}", number(1e3 * median(s)), number(1e9 * median(s) / int(n))]
        for kind, sizes in results["seconds"].items()
        for n, s in sizes.items()
    ]
    growth = results["growth"]
    return "\n\n".join(
        [
            f"One evaluation (value and subgradient) on one thread, random scores, {arguments.repeats} "
            "repeats. Most that ten times the rows cost, in times the seconds: "
            f"{number(growth)} (at most {GOAL:g}: {common.verdict(growth <= GOAL)}).",
            table(("rows in", "rows", "ms", "ns per row"), rows),
            f"MQ2008, training part of fold 1, {arguments.rounds} rounds of `residual` with stumps: "
            f"{number(1e3 * results['round'])} ms per round (median); mean NDCG@10 of that many rows: "
            f"{number(1e3 * median(results['ndcg']))} ms.",
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=100)
    arguments = common.parse(parser, sizes=[1_000, 10_000], rounds=10)
    seconds: dict[str, Seconds] = {}
    for kind in KINDS:
        problems = {str(n): make(kind, n) for n in arguments.sizes}
        tasks = {n: lambda o=o, F=F: o.evaluate(F) for n, (o, F) in problems.items()}
        seconds[kind] = common.alternate(tasks, arguments.repeats)
    X, y, qid = mq2008()
    model = ConvexBoostRanker(
        learner="stump", n_rounds=arguments.rounds, early_stopping=False, n_jobs=arguments.threads
    ).fit(X, y, qid)
    scores = model.predict(X)
    small, large = min(arguments.sizes), max(arguments.sizes)
    decades = np.log10(large / small)
    growth = max((median(s[str(large)]) / median(s[str(small)])) ** (1 / decades) for s in seconds.values())
    results = {
        "seconds": seconds,
        "growth": growth,
        "round": common.per_round(model.history_, 1),
        "ndcg": common.alternate({"ndcg": lambda: ndcg(y, scores, qid)}, arguments.repeats)["ndcg"],
    }
    common.publish(arguments, "ranking", "The ranking hinge", page(results, arguments), results)


if __name__ == "__main__":
    main()
