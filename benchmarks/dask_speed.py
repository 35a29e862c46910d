"""Training on a Dask cluster beside xgboost.dask and lightgbm.dask, and beside our own single process.

    python benchmarks/dask_speed.py                           # 2,000,000 x 50, 2 workers with 1 thread each
    python benchmarks/dask_speed.py --rows 100000 --rounds 20

One output (squared error) and 10 classes (log-loss), trees with 31 leaves, learning rate 0.1, 255 bins, the
rest as each library has it.  The rows are made on the workers, are in their memory before the clock starts,
and never come to the client.  A library has a cluster of its own and a short fit before, so that code is
loaded and compiled.  Seconds of a round are the difference of a long and a short fit over that of their
rounds; the rest is what a fit takes besides its rounds.  Seconds to the same loss are those to the test loss
of the library that ends with the highest.  Libraries take turns; the seconds of fits are medians.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

N_TEST = 20_000
N_CLASSES = 10
LEAVES, RATE = 31, 0.1


@dataclass(frozen=True)
class Task:
    """What is learnt."""

    name: str
    classes: bool

    def rows(self, seed: int, n: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, n_columns)).astype(np.float32)
        f = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + np.abs(X[:, 3]) + X[:, 4:9].sum(axis=1) / 2
        f += 0.5 * rng.normal(size=n)
        cuts = np.linspace(-2.0, 3.0, N_CLASSES - 1)
        return X, np.digitize(f, cuts) if self.classes else f

    def loss(self, found: np.ndarray, y: np.ndarray) -> float:
        """Return the mean loss: of probabilities, or of predictions."""
        if self.classes:
            return float(-np.log(np.clip(found[np.arange(len(y)), y], 1e-15, 1.0)).mean())
        return float(0.5 * ((found - y) ** 2).mean())


TASKS = (Task("one output", False), Task("10 classes", True))

Curve = list[float]  #: the test loss after each round


def ours(task: Task, rounds: int, client: Client, X: Any, y: Any) -> Callable[[np.ndarray], Any]:
    from convexboost.dask import DaskConvexBoostClassifier, DaskConvexBoostRegressor
    from convexboost.learners import Tree

    kind = DaskConvexBoostClassifier if task.classes else DaskConvexBoostRegressor
    parameters = {"n_rounds": rounds, "learning_rate": RATE, "early_stopping": False, "random_state": 0}
    model = kind(learner=Tree(max_leaves=LEAVES), **parameters, client=client).fit(X, y).to_local()
    return model.staged_predict_proba if task.classes else model.staged_predict


def xgboost(task: Task, rounds: int, client: Client, X: Any, y: Any) -> Callable[[np.ndarray], Any]:
    from xgboost import dask as xgb

    kind = xgb.DaskXGBClassifier if task.classes else xgb.DaskXGBRegressor
    parameters = {"n_estimators": rounds, "learning_rate": RATE, "max_bin": 255}
    model = kind(**parameters, max_leaves=LEAVES, max_depth=0, grow_policy="lossguide", tree_method="hist")
    model.client = client
    booster = model.fit(X, y).get_booster()

    def staged(inputs: np.ndarray) -> Any:
        for k in range(1, rounds + 1):
            yield booster.inplace_predict(inputs, iteration_range=(0, k))

    return staged


def lightgbm(task: Task, rounds: int, client: Client, X: Any, y: Any) -> Callable[[np.ndarray], Any]:
    import lightgbm as lgb

    kind = lgb.DaskLGBMClassifier if task.classes else lgb.DaskLGBMRegressor
    parameters = {"n_estimators": rounds, "learning_rate": RATE, "num_leaves": LEAVES, "verbose": -1}
    booster = kind(**parameters, tree_learner="data", client=client).fit(X, y).to_local().booster_

    def staged(inputs: np.ndarray) -> Any:
        for k in range(1, rounds + 1):
            yield booster.predict(inputs, num_iteration=k)

    return staged


LIBRARIES = {"convexboost.dask": ours, "xgboost.dask": xgboost, "lightgbm.dask": lightgbm}


class Measured(NamedTuple):
    """What a turn of a library found."""

    short: float  #: seconds of a short fit
    long: float  #: seconds of a long one
    curve: Curve


def on_a_cluster(library: Callable[..., Any], task: Task, options: Any) -> Measured:
    """Measure fits on a fresh cluster."""
    parts = 2 * options.workers
    with (
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, dashboard_address=":0", silence_logs=40
        ) as cluster,
        Client(cluster) as client,
    ):
        n = options.rows // parts
        made = [dask.delayed(task.rows, nout=2)(1 + k, n, options.columns) for k in range(parts)]
        X = da.concatenate([da.from_delayed(one[0], (n, options.columns), np.float32) for one in made])
        kind = int if task.classes else float
        y = da.concatenate([da.from_delayed(one[1], (n,), kind) for one in made])
        X, y = client.persist([X, y])
        wait([X, y])

        def seconds(rounds: int) -> tuple[float, Any]:
            began = time.perf_counter()
            model = library(task, rounds, client, X, y)
            return time.perf_counter() - began, model

        return _measured(seconds, task, options)


def in_one_process(task: Task, options: Any) -> Measured:
    """Measure our own single process, with as many threads as there are workers."""
    from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
    from convexboost.learners import Tree

    parts = 2 * options.workers
    rows = [task.rows(1 + k, options.rows // parts, options.columns) for k in range(parts)]
    X, y = (np.concatenate([one[k] for one in rows]) for k in range(2))
    del rows
    kind = ConvexBoostClassifier if task.classes else ConvexBoostRegressor

    def seconds(rounds: int) -> tuple[float, Any]:
        parameters = {"n_rounds": rounds, "learning_rate": RATE, "early_stopping": False, "random_state": 0}
        began = time.perf_counter()
        model = kind(learner=Tree(max_leaves=LEAVES), **parameters, n_jobs=options.workers).fit(X, y)
        taken = time.perf_counter() - began
        return taken, model.staged_predict_proba if task.classes else model.staged_predict

    return _measured(seconds, task, options)


def _measured(seconds: Callable[[int], tuple[float, Any]], task: Task, options: Any) -> Measured:
    seconds(2)
    (few, _), (many, staged) = seconds(_few(options.rounds)), seconds(options.rounds)
    inputs, targets = task.rows(0, N_TEST, options.columns)
    return Measured(few, many, [task.loss(f, targets) for f in staged(inputs)])


def _few(rounds: int) -> int:
    return max(2, rounds // 10)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="names of libraries, with commas; all of them otherwise")
    parser.add_argument("--task", default="", help="the name of one; both otherwise")
    options = parser.parse_args()
    size = f"{options.rows:,} x {options.columns}"
    print(f"{size}, {options.workers} workers with 1 thread, {options.rounds} rounds")
    for task in (task for task in TASKS if options.task in ("", task.name)):
        turns = {
            name: functools.partial(on_a_cluster, library)
            for name, library in LIBRARIES.items()
            if not options.only or name in options.only.split(",")
        }
        if not options.only or "convexboost" in options.only.split(","):
            turns[f"convexboost, {options.workers} threads"] = in_one_process
        found: dict[str, list[Measured]] = {name: [] for name in turns}
        for _ in range(options.repeats):
            for name, turn in turns.items():
                found[name].append(turn(task, options))
        target = max(measured[-1].curve[-1] for measured in found.values())
        print(f"\n{task.name}\n")
        print(f"| library | s per round | rest, s | test loss | s to {target:.4f} | whole fits, s |")
        print("| --- | --- | --- | --- | --- | --- |")
        for name, measured in found.items():
            few, many = (float(np.median(column)) for column in list(zip(*measured, strict=True))[:2])
            per_round = (many - few) / (options.rounds - _few(options.rounds))
            rest, curve = many - per_round * options.rounds, measured[-1].curve
            needed = 1 + next(k for k, loss in enumerate(curve) if loss <= target)
            took = f"{per_round:.3f} | {rest:.1f} | {curve[-1]:.4f} | {rest + needed * per_round:.1f}"
            fits = ", ".join(f"{turn.long:.1f}" for turn in measured)
            print(f"| {name} | {took} | {fits} |", flush=True)


if __name__ == "__main__":
    main()
