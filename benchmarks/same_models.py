"""Does a change of the code change the models?  Fit 40 configurations before and after it, and compare.

    python benchmarks/same_models.py main               # main against the working tree
    python benchmarks/same_models.py main~3 main        # two commits
    python benchmarks/same_models.py .                  # the working tree twice: is it deterministic?
    python benchmarks/same_models.py main --only "tree: CVaR" "network: squares"

For each configuration two hashes are compared: one of the predictions for 200 new rows, one of the history
(number of rounds, objective, validation loss, lower bound, certified gap).  Not a bit may differ.  Where the
predictions differ, the table gives the largest difference relative to their spread.  The exit status is 1
unless all configurations are the same.

The sources of each tree are copied to ~/.cache/convexboost/same_models, into a folder named after their
content.  What Numba compiles is kept there too, so only the first run of a tree compiles.  On two idle cores
that run takes about 90 seconds, the next ones 25.  The seconds in the table are for information only; those
of a first run include compilation.

Names differ between trees.  The configurations use the new names; the functions under "names" fall back to
the old ones.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import common

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "convexboost" / "same_models"
#: How many trees the cache keeps: those used last.
KEPT = 20
#: What stands for the working tree where a revision is expected.
WORKING_TREE = "."
SAME = "same"
#: Rows to predict.
N_NEW = 200

# -- names: what may be called differently in the trees --------------------------------------------------

#: Parameter: what it was called before.
OLD_NAMES = {
    "subsample": "row_share",
    "colsample_bytree": "column_share",
    "reg_lambda": "leaf_l2",
    "min_split_gain": "min_gain",
    "monotone_constraints": "monotone",
}


def make(cls: type[Any], *arguments: Any, **parameters: Any) -> Any:
    """Make an object, with the names that its class has for the parameters."""
    known = inspect.signature(cls).parameters
    named = {name if name in known else OLD_NAMES.get(name, name): x for name, x in parameters.items()}
    return cls(*arguments, **named)


def losses() -> Any:
    """Return the module that losses are imported from."""
    new = importlib.util.find_spec("convexboost.losses")
    is_new = new is not None and new.origin is not None  # a folder that git left behind has no origin
    return importlib.import_module("convexboost.losses" if is_new else "convexboost.objectives")


def loss(name: str, *arguments: Any, **parameters: Any) -> Any:
    """Make a loss (or call a function of losses) by the name it is imported by."""
    return make(getattr(losses(), name), *arguments, **parameters)


def learner(name: str, **parameters: Any) -> Any:
    """Make a learner by the name of its class."""
    home = importlib.import_module("convexboost.learners")
    if not hasattr(home, name):
        module = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        home = importlib.import_module(f"convexboost.learners.{module}")
    return make(getattr(home, name), **parameters)


def estimator(task: str, *arguments: Any, **parameters: Any) -> Any:
    """Make a classifier, regressor or ranker: seeded, 100 rounds and one thread unless told otherwise."""
    cls = getattr(importlib.import_module("convexboost"), f"ConvexBoost{task.title()}")
    return make(cls, *arguments, **{"random_state": 0, "n_rounds": 100, "n_jobs": 1, **parameters})


def history(model: Any) -> list[Any]:
    """Return what a fitted model remembers of its rounds."""
    columns = [model.history_.get(name, ()) for name in ("objective", "validation", "lower_bound")]
    gap = () if model.certificate_ is None else model.certificate_.gap()
    return [model.n_rounds_, *columns, gap]


def predictions(model: Any, X: Any) -> list[Any]:
    """Return all kinds of predictions that a fitted model has; labels must be numbers."""
    names = ("decision_function", "predict_proba", "predict")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


# -- data ------------------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Rows to train on, and new ones."""

    X: Any
    y: Any
    X_new: Any


def split(X: Any, y: Any, n_rows: int) -> Data:
    """Shuffle; keep so many rows for training, and others to predict."""
    order = np.random.default_rng(0).permutation(X.shape[0])
    new, old = order[:N_NEW], order[N_NEW : N_NEW + n_rows]
    rows = X.iloc if hasattr(X, "iloc") else X
    return Data(rows[old], y[old], rows[new])


@cache
def diabetes() -> Data:
    return split(*load_diabetes(return_X_y=True), 242)


@cache
def cancer() -> Data:
    return split(*load_breast_cancer(return_X_y=True), 369)


@cache
def digits() -> Data:
    return split(*load_digits(return_X_y=True), 500)


@cache
def made() -> Data:
    """Return numbers, with a target that has outliers."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 6))
    y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.standard_t(2, size=1000)
    return split(X, y, 600)


@cache
def classes() -> Data:
    """Return three overlapping classes."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 5))
    return split(X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=1000), [-0.7, 0.7]), 600)


@cache
def large() -> Data:
    """Return enough rows for two threads."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6200, 40))
    return split(X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=6200) > 0).astype(int), 6000)


def counts() -> Data:
    data, rng = made(), np.random.default_rng(4)
    return data._replace(y=rng.poisson(np.exp(np.clip(0.5 * data.X[:, 0] + 0.3 * data.X[:, 1], -3, 3))))


def several() -> Data:
    data = made()
    return data._replace(y=np.column_stack([data.y, data.X[:, 4] ** 2, data.y - data.X[:, 5]]))


def choices() -> Data:
    data = classes()
    return data._replace(X=data.X[:150], y=np.eye(3)[data.y[:150]])


def holes(data: Data) -> Data:
    """Make a tenth of the numbers missing."""
    rng = np.random.default_rng(5)
    X, X_new = (np.where(rng.random(X.shape) < 0.1, np.nan, X) for X in (data.X, data.X_new))
    return data._replace(X=X, X_new=X_new)


def sparse(data: Data) -> Data:
    """Leave out small numbers."""
    X, X_new = (sp.csr_array(np.where(np.abs(X) < 0.8, 0.0, X)) for X in (data.X, data.X_new))
    return data._replace(X=X, X_new=X_new)


@cache
def table() -> Data:
    """Return a frame with two categorical columns and missing values, and its target."""
    rng = np.random.default_rng(6)
    towns, sizes = np.array(["Bonn", "Oslo", "Prag", "Rom", "Ulm", None]), np.array(["S", "M", "L"])
    town, size, age = rng.integers(6, size=900), rng.integers(3, size=900), rng.uniform(18, 80, 900)
    y = np.array([1.0, -1.0, 0.5, 2.0, 0.0, -2.0])[town] + 0.05 * age * size + rng.normal(size=900)
    frame = pd.DataFrame(
        {
            "town": pd.Categorical(towns[town]),
            "age": np.where(rng.random(900) < 0.1, np.nan, age),
            "size": pd.Categorical(sizes[size], ["S", "M", "L"]),
            "noise": rng.normal(size=900),
        }
    )
    return split(frame, y, 600)


def graded() -> Data:
    data = made()
    return data._replace(y=np.digitize(data.y, [-2, 0, 2]))


def weights(data: Data) -> Any:
    return np.random.default_rng(7).integers(0, 4, size=len(data.y)).astype(float)


def labels(data: Data, n_labels: int) -> Any:
    return np.random.default_rng(8).integers(n_labels, size=len(data.y))


# -- losses of a user ------------------------------------------------------------------------------------


class LogCosh:
    """A loss of single rows."""

    task = "regression"

    def evaluate(self, F: Any, y: Any) -> tuple[Any, Any]:
        R = F - y
        return (np.logaddexp(R, -R) - np.log(2.0)).sum(axis=1), np.tanh(R)


class Spread:
    """A loss of all rows at once, and of groups: squares, and the variance of the groups' mean errors."""

    task = "regression"

    def total(self, F: Any, y: Any, weight: Any, groups: Any) -> tuple[float, Any]:
        R, number = F - y, np.unique(groups, return_inverse=True)[1]
        mass = np.bincount(number, weight)
        mean = np.bincount(number, weight * R[:, 0]) / mass
        away = mean - mass @ mean
        partials = weight[:, None] * (R + away[number][:, None])
        return float(0.5 * weight @ R[:, 0] ** 2 + 0.5 * mass @ away**2), partials


def best_choice(F: Any, y: Any, label: Any) -> tuple[Any, float]:
    """Return the choice with the largest margin + score: an oracle for `Structured`."""
    best = np.argmax(F + 1.0 - y)
    choice = np.eye(F.shape[1])[[best]]
    return choice, float(1.0 - y[0, best])


# -- configurations --------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A model, and what it is fitted to."""

    model: Any
    data: Data
    fit: dict[str, Any]


def classifier(data: Data, *arguments: Any, fit: Any = None, **parameters: Any) -> Case:
    return Case(estimator("classifier", *arguments, **parameters), data, fit or {})


def regressor(data: Data, *arguments: Any, fit: Any = None, **parameters: Any) -> Case:
    return Case(estimator("regressor", *arguments, **parameters), data, fit or {})


def ranker(data: Data, *arguments: Any, fit: Any = None, **parameters: Any) -> Case:
    return Case(estimator("ranker", *arguments, **parameters), data, {"qid": labels(data, 40), **(fit or {})})


def with_threads(n_jobs: int) -> Case:
    tree = learner("Tree", max_leaves=15, subsample=0.7, colsample_bytree=0.5)
    return classifier(large(), "softmax", tree, n_rounds=60, early_stopping=False, n_jobs=n_jobs)


def neighbours(data: Data) -> Any:
    """Return edges from each row to that with the next larger number in column 0."""
    order = np.argsort(data.X[:, 0])
    return np.column_stack([order[:-1], order[1:]])


def validation(data: Data, n_rows: int = 150) -> tuple[Data, dict[str, Any]]:
    """Take some of the rows as X_val and y_val."""
    rest = data._replace(X=data.X[n_rows:], y=data.y[n_rows:])
    return rest, {"X_val": data.X[:n_rows], "y_val": data.y[:n_rows]}


def validated() -> Case:
    data, fit = validation(cancer())
    return classifier(data, "logistic", n_rounds=500, early_stopping=True, n_iter_no_change=10, fit=fit)


def with_offset() -> Case:
    data = counts()
    fit = {"offset": 0.3 * data.X[:, 0], "sample_weight": weights(data)}
    return regressor(data, "poisson", fit=fit)


def monotone() -> Case:
    tree = learner(
        "Tree", monotone_constraints={0: 1, 4: -1}, reg_lambda=2.0, min_split_gain=1e-4, max_depth=4
    )
    return regressor(made(), "absolute", tree, early_stopping=False)


CONFIGURATIONS: dict[str, Callable[[], Case]] = {
    # the defaults, which look for the number of rounds in folds
    "defaults: regressor": lambda: regressor(diabetes(), n_rounds="auto"),
    "defaults: classifier": lambda: classifier(classes(), n_rounds="auto"),
    "defaults: ranker": lambda: ranker(graded()),
    # trees
    "tree: absolute, weights": lambda: regressor(made(), "absolute", fit={"sample_weight": weights(made())}),
    "tree: quantile 0.9, early stopping": lambda: regressor(
        made(), "quantile:0.9", n_rounds=500, early_stopping=True, n_iter_no_change=10
    ),
    "tree: quantiles, no envelope": lambda: regressor(made(), "quantiles", envelope=0.0),
    "tree: huber, several outputs": lambda: regressor(several(), "huber", early_stopping=False),
    "tree: epsilon, envelope 5": lambda: regressor(
        made(), loss("EpsilonInsensitive", 0.2), envelope=5.0, early_stopping=False
    ),
    "tree: poisson, offset and weights": with_offset,
    "tree: monotone": monotone,
    "tree: logistic, X_val": validated,
    "tree: exponential, class weights": lambda: classifier(
        cancer(), "exponential", class_weight="balanced", early_stopping=False
    ),
    "tree: hinge, missing values": lambda: classifier(holes(cancer()), "hinge"),
    "tree: multiclass hinge, digits": lambda: classifier(digits(), "multiclass_hinge"),
    "tree: softmax, frame": lambda: classifier(
        table()._replace(y=np.digitize(table().y, [0, 3])), early_stopping=False
    ),
    "tree: squares, frame": lambda: regressor(table()),
    "tree: random splits, sparse X": lambda: regressor(
        sparse(made()), "half_squared", learner("Tree", splits="random", min_samples_leaf=3), output="last"
    ),
    "tree: samples of rows and columns, 1 thread": lambda: with_threads(1),
    "tree: samples of rows and columns, 2 threads": lambda: with_threads(2),
    "tree: l2, certificate": lambda: regressor(diabetes(), "huber", l2=0.1, certificate=True),
    # losses that couple rows
    "tree: CVaR": lambda: regressor(made(), loss("CVaR", "absolute", 0.8)),
    "tree: worst group": lambda: classifier(
        classes(), loss("WorstGroup", "softmax"), fit={"groups": labels(classes(), 4)}
    ),
    "stump: total variation": lambda: regressor(
        made(), loss("Absolute") + 0.5 * loss("TotalVariation", neighbours(made())), "stump", output="last"
    ),
    "tree: laplacian": lambda: regressor(
        made(), loss("HalfSquared") + loss("Laplacian", neighbours(made()), 0.5)
    ),
    "stump: structured": lambda: regressor(
        choices(), loss("Structured", best_choice), "stump", fit={"groups": np.arange(150)}
    ),
    "stump: maximum of losses": lambda: regressor(
        made(), loss("maximum", loss("Absolute"), 0.5 * loss("HalfSquared")), "stump"
    ),
    "tree: own loss of rows": lambda: regressor(made(), LogCosh()),
    "tree: own loss of groups": lambda: regressor(made(), Spread(), fit={"groups": labels(made(), 5)}),
    # other learners, algorithms and steps
    "stump: huber, naive, line search": lambda: regressor(
        made(), loss("Huber", 0.5), learner("Stump", max_bins=32), "naive", step="line_search"
    ),
    "stump: softmax, repeated, budget, sparse X": lambda: classifier(
        sparse(classes()), "softmax", "stump", "repeated", max_weak_learners=300
    ),
    "stump: squares, certified gap, frame": lambda: regressor(
        table(), "half_squared", "stump", l2=1.0, n_rounds=500, certificate=True, stop_when_gap_below=0.5
    ),
    "sign stump: squared hinge, dual averaging": lambda: classifier(
        cancer(), "squared_hinge", learner("SignStump"), "dual_averaging", step="inverse_sqrt:0.3"
    ),
    "class stump: multiclass hinge, average": lambda: classifier(
        digits(), "multiclass_hinge", learner("ClassStump"), output="average"
    ),
    "additive: absolute, error feedback, Polyak": lambda: regressor(
        holes(made()), "absolute", learner("Additive", n_steps=2), "error_feedback", step="polyak"
    ),
    "additive: logistic, inverse time": lambda: classifier(
        cancer(), "logistic", "additive", step="inverse_time", l2=0.1
    ),
    "network: squares": lambda: regressor(
        holes(made()), "half_squared", learner("Network", hidden=4), step="adanorm", n_rounds=30
    ),
    "network: softmax": lambda: classifier(classes(), "softmax", "network", n_rounds=25),
    "scikit-learn regressor: quantile": lambda: regressor(
        made(), loss("Quantile", 0.3), DecisionTreeRegressor(max_depth=3), residual_decay=0.5
    ),
    "scikit-learn classifier: softmax": lambda: classifier(
        classes(), "softmax", DecisionTreeClassifier(max_depth=3), step="constant:0.3"
    ),
    "ranker: stump, weights": lambda: ranker(
        graded(), "ranking_hinge", "stump", output="last", fit={"sample_weight": weights(graded())}
    ),
}


# -- fitting one tree ------------------------------------------------------------------------------------


def digest(arrays: list[Any]) -> str:
    """Return the SHA-256 of arrays of numbers and their shapes."""
    out = hashlib.sha256()
    for array in arrays:
        A = np.ascontiguousarray(array, np.float64)
        A = np.where(np.isnan(A), np.nan, A)  # one NaN for all
        out.update(f"{A.shape}".encode() + A.tobytes())
    return out.hexdigest()


def fit(name: str) -> dict[str, Any]:
    """Fit one configuration; return hashes, predictions and seconds, or what went wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, data, options = CONFIGURATIONS[name]()
            seconds, _ = common.timed(lambda: model.fit(data.X, data.y, **options))
            found = [np.asarray(values, float) for values in predictions(model, data.X_new)]
            return {
                "predictions": digest(found),
                "history": digest(history(model)),
                "rounds": int(model.n_rounds_),
                "seconds": seconds,
                "values": [values.tolist() for values in found[:-1] or found],  # without the labels
            }
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def fit_all(source: Path, names: list[str]) -> None:
    """Fit configurations with the package in this folder; print a line of JSON for each."""
    import convexboost

    if not Path(convexboost.__file__).is_relative_to(source):
        sys.exit(f"convexboost was imported from {convexboost.__file__}, not from {source}")
    for name in names:
        print(json.dumps({"name": name, **fit(name)}), flush=True)


# -- two trees -------------------------------------------------------------------------------------------


def snapshot(revision: str) -> Path:
    """Copy the sources of a tree to the cache; return the folder.  The same sources have the same folder."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="new-") as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        if revision == WORKING_TREE:
            shutil.copytree(common.ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        else:
            git = ["git", "-C", str(common.ROOT), "archive", revision, "src"]
            archive = subprocess.run(git, stdout=subprocess.PIPE, check=False)
            if archive.returncode:
                sys.exit(f"git has no sources of {revision!r}")
            subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
        content = hashlib.sha256()
        for path in sorted(tree.rglob("*.py")):
            content.update(f"{path.relative_to(tree)}\0".encode() + path.read_bytes())
        home = CACHE / content.hexdigest()[:16]
        if not home.exists():
            tree.rename(home)
    os.utime(home)
    used = sorted((path for path in CACHE.iterdir() if not path.name.startswith("new-")), key=_last_use)
    for path in used[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)
    return home


def _last_use(path: Path) -> float:
    return path.stat().st_mtime


def results(tree: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    """Fit the configurations with the sources of a tree, in a process of its own."""
    source = tree / "src"
    command = [sys.executable, __file__, "--fit", str(source), "--only", *names]
    # Numba does not see that a function or constant of another file has changed: a cache for each content.
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(tree / "numba")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield from map(json.loads, child.stdout or ())
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        common.note(f"the process ended with status {child.returncode}")


def fit_tree(tree: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """Return the result of each configuration in a tree."""
    common.note(f"{tree}{'' if (tree / 'numba').exists() else ', to be compiled'}")
    found, began = {}, time.perf_counter()
    for one in results(tree, names):
        name = one["name"]
        found[name] = one
        common.note(one["error"] if "error" in one else f"{one['seconds']:7.2f} s  {name}")
    common.note(f"{time.perf_counter() - began:7.2f} s in all")
    return {name: found.get(name, {"error": "no result: the process had ended"}) for name in names}


def shown(revision: str) -> str:
    """Return what a revision is, for people."""
    if revision == WORKING_TREE:
        return "the working tree"
    git = ["git", "-C", str(common.ROOT), "log", "-1", "--format=%h (%s)", revision]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def verdict(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Compare two results."""
    if "error" in before or "error" in after:
        return "**error** " + " and ".join(
            when for when, one in (("before", before), ("after", after)) if "error" in one
        )
    if before["predictions"] != after["predictions"]:
        return f"**different** {distance(before['values'], after['values'])}"
    return SAME if before["history"] == after["history"] else "**history different**"


def distance(before: list[Any], after: list[Any]) -> str:
    """Return the largest difference of predictions, as a share of their spread before."""
    pairs = [(np.array(a), np.array(b)) for a, b in zip(before, after, strict=False)]
    if len(before) != len(after) or any(a.shape != b.shape for a, b in pairs):
        return "(not of the same shape)"
    return f"{max(float(np.abs(a - b).max() / (np.ptp(a) or 1.0)) for a, b in pairs):.1e}"


def row(name: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return a line of the table."""
    hashes = [one.get(key, "error")[:8] for key in ("predictions", "history") for one in (before, after)]
    seconds = [f"{one['seconds']:.2f}" if "seconds" in one else "" for one in (before, after)]
    return [name, *hashes, verdict(before, after), *seconds]


def compare(before: str, after: str, names: list[str]) -> bool:
    """Fit both trees and print the table; return whether all models are the same."""
    trees = snapshot(before), snapshot(after)
    old, new = (fit_tree(tree, names) for tree in trees)
    rows = [row(name, old[name], new[name]) for name in names]
    sums = [f"{sum(one.get('seconds', 0.0) for one in tree.values()):.2f}" for tree in (old, new)]
    header = ["configuration", "predictions before", "after", "history before", "after", "result"]
    print(f"Before: {shown(before)}. After: {shown(after)}.\n")
    print(common.table([*header, "seconds before", "after"], [*rows, ["sum", *[""] * 5, *sums]]), end="\n\n")
    for when, tree in (("before", old), ("after", new)):
        for name, one in tree.items():
            if "error" in one:
                print(f"{when}, {name}: {one['error']}")
    n_same = sum(verdict(old[name], new[name]) == SAME for name in names)
    print(f"{n_same} of {len(names)} the same")
    return n_same == len(names)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", nargs="?", help='a git revision, or "." for the working tree')
    parser.add_argument("after", nargs="?", default=WORKING_TREE, help="the same (the working tree)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these configurations")
    parser.add_argument("--list", action="store_true", help="print the names of the configurations")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.only or list(CONFIGURATIONS)
    unknown = [name for name in names if name not in CONFIGURATIONS]
    if unknown:
        parser.error(f"no configuration is called {unknown[0]!r}; --list prints the names")
    if arguments.list:
        print("\n".join(names))
    elif arguments.fit:
        fit_all(arguments.fit, names)
    elif arguments.before is None:
        parser.error("BEFORE is missing")
    elif not compare(arguments.before, arguments.after, names):
        sys.exit(1)


if __name__ == "__main__":
    main()
