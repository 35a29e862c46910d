"""Model files and one-row latency: ours, ours in onnxruntime, XGBoost's UBJSON and LightGBM's text.

python benchmarks/serving.py
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import onnxruntime
import xgboost

import common
import convexboost
from common import median, number, table
from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.learners import Tree

LEAVES, FEATURES = 31, 20
#: One-row calls in a measurement of the latency.
CALLS = 200


class Served(NamedTuple):
    """A model in a file, and how to use it."""

    trees: int
    path: Path
    load: Callable[[], Any]
    predict: Callable[[Any, Any], Any]  #: from the loaded model and a row


def rows(n: int, task: str) -> tuple[Any, Any]:
    """Return floats with some missing, and targets: a number, or one of five classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, f if task == "regression" else np.digitize(f, np.quantile(f, [0.2, 0.4, 0.6, 0.8]))


def served(task: str, rounds: int, n: int, folder: Path) -> dict[str, Served]:
    """Train every library with so many rounds, and write its files; each predicts in one thread."""
    X, y = rows(n, task)
    is_regression = task == "regression"
    ours = (ConvexBoostRegressor if is_regression else ConvexBoostClassifier)(
        learner=Tree(max_leaves=LEAVES), n_rounds=rounds, early_stopping=False, n_jobs=1
    ).fit(X, y)
    ours.save(folder / "model.cbm")
    ours.to_onnx(folder / "model.onnx")
    several = {"objective": "multi:softprob", "num_class": 5}
    kind = {"objective": "reg:squarederror"} if is_regression else several
    peer = xgboost.train(
        {**kind, "max_leaves": LEAVES, "grow_policy": "lossguide", "max_depth": 0, "nthread": 1, "eta": 0.1},
        xgboost.DMatrix(X, y),
        rounds,
    )
    peer.save_model(folder / "model.ubj")
    kind = {"objective": "l2"} if is_regression else {"objective": "multiclass", "num_class": 5}
    light = lightgbm.train(
        {**kind, "num_leaves": LEAVES, "num_threads": 1, "verbose": -1}, lightgbm.Dataset(X, y), rounds
    )
    light.save_model(folder / "model.txt")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    onnx = str(folder / "model.onnx")
    each = rounds if is_regression else 5 * rounds

    def one_thread(model: Any) -> Any:
        model.set_param({"nthread": 1})
        return model

    return {
        "convexboost": Served(
            rounds,
            folder / "model.cbm",
            lambda: convexboost.load(folder / "model.cbm"),
            lambda model, row: model.predict(row),
        ),
        "convexboost, onnxruntime": Served(
            rounds,
            Path(onnx),
            lambda: onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"]),
            lambda session, row: session.run(None, {"X": row}),
        ),
        "XGBoost, UBJSON": Served(
            each,
            folder / "model.ubj",
            lambda: one_thread(xgboost.Booster(model_file=folder / "model.ubj")),
            lambda model, row: model.inplace_predict(row),
        ),
        "LightGBM, text": Served(
            each,
            folder / "model.txt",
            lambda: lightgbm.Booster(model_file=folder / "model.txt"),
            lambda model, row: model.predict(row, num_threads=1),
        ),
    }


def cpu(task: Callable[[], Any]) -> float:
    """Return the processor time of a task: other processes do not count."""
    began = time.process_time()
    task()
    return time.process_time() - began


def measure(models: dict[str, Served], X: Any, repeats: int) -> dict[str, dict[str, float]]:
    """Measure loading and one-row calls in turn."""
    loads: dict[str, list[float]] = {name: [] for name in models}
    calls: dict[str, list[float]] = {name: [] for name in models}
    batches: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(repeats):
        for name, one in models.items():
            loads[name].append(cpu(one.load))
            model = one.load()
            one.predict(model, X[:1])
            calls[name].append(
                cpu(lambda m=model, p=one.predict: [p(m, X[i : i + 1]) for i in range(CALLS)]) / CALLS
            )
            batches[name].append(cpu(lambda m=model, p=one.predict: p(m, X)))
    return {
        name: {
            "trees": one.trees,
            "bytes": one.path.stat().st_size,
            "load": median(loads[name]),
            "call": median(calls[name]),
            "batch": median(batches[name]),
        }
        for name, one in models.items()
    }


def page(found: dict[str, dict[str, dict[str, float]]], arguments: argparse.Namespace) -> str:
    lines = [
        [
            task,
            name,
            one["trees"],
            number(one["bytes"] / 2**20),
            number(1e3 * one["load"]),
            number(1e6 * one["call"]),
            number(1e3 * one["batch"]),
        ]
        for task, models in found.items()
        for name, one in models.items()
    ]
    header = ("task", "model", "trees", "MiB", "load, ms", "one row, µs", "1,000 rows, ms")
    return "\n\n".join(
        [
            f"Models of {arguments.rounds} rounds with {LEAVES} leaves, trained on {arguments.rows:,} rows "
            f"and {FEATURES} columns of floats, 5 % of them missing. With five classes a tree of ours has a "
            "vector in each leaf; the others grow a tree per class.",
            table(header, lines),
            "Processor time of one thread, medians of alternating measurements in one process, after a first "
            "prediction. Loading is from the file to a model that can predict; ours checks the checksum and "
            "every number. Our file also holds the history of training, the parameters, and gain and cover "
            f"of every split. One row: mean of {CALLS} calls of `predict` with a NumPy array.",
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--rows", type=int, default=20_000)
    arguments = common.parse(parser, rounds=10, rows=2000)
    found = {}
    for task in ("regression", "five classes"):
        with tempfile.TemporaryDirectory() as folder:
            models = served(task, arguments.rounds, arguments.rows, Path(folder))
            found[task] = measure(models, rows(1000, task)[0], arguments.repeats)
    common.publish(
        arguments, "serving", "Model files and one-row latency", page(found, arguments), {"data": found}
    )


if __name__ == "__main__":
    main()
