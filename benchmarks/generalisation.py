"""The factorial behind the defaults: what makes boosted trees hold on rows they have not seen.

    python benchmarks/generalisation.py --jobs 16 --out DIR

decay x refit x envelope x rate x split randomness x leaves, by cross-validation on the *training parts* of
the data sets; the test parts are not read.  Every run is scored at its best round (the number of rounds is
what early stopping finds), by its own loss and, for classes, by the error.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
import zlib
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import joblib
import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor, datasets
from convexboost.learners.tree import Tree

MAX_ROWS = 4000
MAX_ROUNDS = 800
PATIENCE = 60
CLASSES = dict.fromkeys(("letter", "pendigits", "satimage", "connect4"), ("multiclass_hinge", "softmax"))
NUMBERS = dict.fromkeys(
    ("california_housing", "bike_sharing", "abalone", "airfoil"),
    ("absolute", "quantile:0.9", "quantile:0.1", "half_squared"),
)
FACTORS = {
    "decay": (0.0, 0.5, 0.8, 0.9),
    "step": ("refit",),
    "rate": (0.05, 0.1),
    "envelope": (0.0, 1.0, 3.0),
    "splits": ("best", "random"),
    "max_leaves": (16, 31, 64, 128),
    "min_samples_leaf": (3, 10, 20),
    "leaf_l2": (0.0, 3.0),
    "row_share": (1.0, 0.6),
    "column_share": (1.0, 0.6),
}


def rows(name):
    """Some rows of the training part, always the same."""
    found = datasets.load(name)
    X, _, y, _ = found.split()
    order = np.random.default_rng(zlib.crc32(name.encode())).permutation(len(y))[:MAX_ROWS]
    return X[order], y[order], list(found.categorical) or None


def run(name, loss, fold, config):
    X, y, categorical = rows(name)
    classes = name in CLASSES
    splitter = (StratifiedKFold if classes else KFold)(3, shuffle=True, random_state=0)
    train, held = list(splitter.split(X, y))[fold]
    tree = Tree(
        max_leaves=config["max_leaves"],
        splits=config["splits"],
        min_samples_leaf=config["min_samples_leaf"],
        leaf_l2=config["leaf_l2"],
        row_share=config["row_share"],
        column_share=config["column_share"],
    )
    step = config["step"]
    rate = config["rate"] if step != "constant" or loss != "softmax" else 10 * config["rate"]
    scale = np.std(y) if not classes else 1.0
    make = ConvexBoostClassifier if classes else ConvexBoostRegressor
    if step == "constant" and not classes and loss != "half_squared":
        rate *= scale  # the gradient has no units
    model = make(
        loss,
        tree,
        "residual" if config["decay"] > 0 else "naive",
        residual_decay=config["decay"],
        step=step if step == "auto" else f"{step}:{rate}",
        envelope=config["envelope"],
        n_rounds=MAX_ROUNDS,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        categorical_features=categorical,
        random_state=0,
        n_jobs=1,
    )
    began = time.perf_counter()
    try:
        model.fit(X[train], y[train], X_val=X[held], y_val=y[held])
    except ValueError as error:
        return None if "prox" in str(error) else {"error": str(error)}
    out = {
        "set": name,
        "loss": loss,
        "fold": fold,
        **config,
        "start": float(model.history_["validation"][0]),
        "value": float(np.nanmin(model.history_["validation"])),
        "best_round": int(model.best_round_),
        "rounds": int(model.n_rounds_),
        "seconds": time.perf_counter() - began,
    }
    if classes:
        out["error"] = float(1 - model.score(X[held], y[held]))
    return out


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--configs", type=int, default=100, help="drawn from the full factorial")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("generalisation"))
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    full = [dict(zip(FACTORS, values, strict=True)) for values in itertools.product(*FACTORS.values())]
    full = [c for c in full if not (c["step"] == "auto" and c["rate"] != 0.1)]
    chosen = [full[i] for i in rng.permutation(len(full))[: arguments.configs]]
    problems = [(n, loss) for n, losses in {**CLASSES, **NUMBERS}.items() for loss in losses]
    tasks = [(n, loss, f, c) for f in range(3) for c in chosen for n, loss in problems]
    tasks = [tasks[i] for i in rng.permutation(len(tasks))]
    end = time.time() + arguments.seconds

    def one(task):
        return None if time.time() > end else run(*task)

    found = joblib.Parallel(arguments.jobs, batch_size=1)(joblib.delayed(one)(task) for task in tasks)
    found = [f for f in found if f]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"factorial_{arguments.seed}.json").write_text(json.dumps(found))
    print(len(found), "of", len(tasks), "runs", sum("error" in f and "set" not in f for f in found), "failed")


if __name__ == "__main__":
    main()
