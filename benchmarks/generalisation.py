"""The factorial behind the defaults: what makes boosted trees hold on rows they have not seen.

    python benchmarks/generalisation.py screen --jobs 16
    python benchmarks/generalisation.py focus --jobs 16
    python benchmarks/generalisation.py rounds --jobs 16
    python benchmarks/generalisation.py stopping --seconds 1500
    python benchmarks/generalisation.py page

Cross-validation on the *training parts* of the data sets; the test parts are not read.  `screen` draws
settings from the whole factorial (decay x step x rate x envelope x split randomness x leaves x smallest
leaf) and `focus` from the better part of it, with shrinkage and subsampling; both are scored at the best
round.  `rounds` compares a few candidates after fixed numbers of rounds, also on scikit-learn's small sets.
`stopping` keeps whole curves: of the held-out loss, and of the loss in folds inside the training rows; `page`
scores every rule that chooses the number of rounds from the latter by the former.
Each stops after --seconds and leaves a JSON file in --out; `page` makes docs/generalisation tables of them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import joblib
import numpy as np
from sklearn import datasets as sklearn_sets
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from common import table
from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor, datasets
from convexboost.core.space import Array
from convexboost.learners.tree import Tree

CLASS_LOSSES = ("multiclass_hinge", "softmax")
NUMBER_LOSSES = ("absolute", "quantile:0.9", "quantile:0.1", "half_squared")
CLASSES = ("letter", "pendigits", "satimage", "connect4")
NUMBERS = ("california_housing", "bike_sharing", "abalone", "airfoil")
#: Small sets that come with scikit-learn, for `rounds`.
SMALL = {
    "iris": lambda: sklearn_sets.load_iris(return_X_y=True),
    "wine": lambda: sklearn_sets.load_wine(return_X_y=True),
    "breast_cancer": lambda: sklearn_sets.load_breast_cancer(return_X_y=True),
    "digits": lambda: sklearn_sets.load_digits(return_X_y=True),
    "gaussian_quantiles": lambda: sklearn_sets.make_gaussian_quantiles(
        n_samples=1500, n_features=8, n_classes=4, random_state=0
    ),
    "diabetes": lambda: sklearn_sets.load_diabetes(return_X_y=True),
    "friedman1": lambda: sklearn_sets.make_friedman1(1000, noise=1.0, random_state=0),
    "friedman3": lambda: sklearn_sets.make_friedman3(600, noise=0.1, random_state=0),
}
STAGES: dict[str, dict[str, Any]] = {
    "screen": {
        "rows": 4000,
        "rounds": 400,
        "factors": {
            "decay": (0.0, 0.5, 0.8, 1.0),
            "step": ("constant", "refit", "auto"),
            "rate": (0.03, 0.1, 0.3),
            "envelope": (0.0, 0.3, 1.0),
            "splits": ("best", "random"),
            "max_leaves": (8, 31, 128),
            "min_samples_leaf": (1, 5, 20),
        },
    },
    "focus": {
        "rows": 4000,
        "rounds": 800,
        "factors": {
            "decay": (0.0, 0.5, 0.8, 0.9),
            "step": ("refit",),
            "rate": (0.05, 0.1),
            "envelope": (0.0, 1.0, 3.0),
            "splits": ("best", "random"),
            "max_leaves": (16, 31, 64, 128),
            "min_samples_leaf": (3, 10, 20),
            "reg_lambda": (0.0, 3.0),
            "subsample": (1.0, 0.6),
            "colsample_bytree": (1.0, 0.6),
        },
    },
    "rounds": {
        "rows": 8000,
        "rounds": 600,
        "factors": {
            "decay": (0.0, 0.5, 0.7),
            "step": ("refit",),
            "rate": (0.05, 0.1),
            "envelope": (0.0, 3.0),
            "splits": ("auto",),
            "max_leaves": (31,),
            "min_samples_leaf": (5, 20),
        },
    },
}
PATIENCE = 60
CHECKPOINTS = (50, 100, 150, 200, 300, 400, 500, 600)


def rows(name: str, count: int) -> tuple[Any, Any, list[int] | None]:
    """Return some rows of the training part, always the same."""
    if name in SMALL:
        X, y = SMALL[name]()
        return X, y, None
    found = datasets.load(name)
    X, _, y, _ = found.split()
    order = np.random.default_rng(zlib.crc32(name.encode())).permutation(len(y))[:count]
    return X[order], y[order], list(found.categorical) or None


def is_classes(loss: str) -> bool:
    return loss in CLASS_LOSSES


def stopping(patience: int | None) -> dict[str, Any]:
    """Return the parameters that stop early after this many rounds without improvement; None: not at all."""
    default = ConvexBoostRegressor().n_iter_no_change
    return {"early_stopping": patience is not None, "n_iter_no_change": patience or default}


def run(stage: str, name: str, loss: str, fold: int, config: dict[str, Any]) -> dict[str, Any] | None:
    """Train one setting on two thirds of the rows and score it on the others."""
    X, y, categorical = rows(name, STAGES[stage]["rows"])
    splitter = (StratifiedKFold if is_classes(loss) else KFold)(3, shuffle=True, random_state=0)
    train, held = list(splitter.split(X, y))[fold]
    limits = ("max_leaves", "splits", "min_samples_leaf", "reg_lambda", "subsample", "colsample_bytree")
    step, rate = config["step"], config["rate"]
    if step == "constant" and loss == "softmax":
        rate *= 10  # its gradients are small
    if step == "constant" and loss in NUMBER_LOSSES[:3]:
        rate *= np.std(y)  # and these have no units
    model = (ConvexBoostClassifier if is_classes(loss) else ConvexBoostRegressor)(
        loss,
        Tree(**{key: config[key] for key in limits if key in config}),
        "residual",
        residual_decay=config["decay"],
        step=step if step == "auto" else f"{step}:{rate}",
        envelope=config["envelope"],
        n_rounds=STAGES[stage]["rounds"],
        **stopping(None if stage == "rounds" else PATIENCE),
        categorical_features=categorical,
        random_state=0,
        n_jobs=1,
    )
    began = time.perf_counter()
    try:
        model.fit(X[train], y[train], X_val=X[held], y_val=y[held])
    except ValueError as error:
        if "prox" in str(error):
            return None  # no envelope for this loss
        raise
    path = model.history_["validation"]
    out = {
        "set": name,
        "loss": loss,
        "fold": fold,
        **config,
        "value": float(np.nanmin(path)),
        "best_round": int(model.best_round_),
        "seconds": time.perf_counter() - began,
    }
    if stage == "rounds":
        out["path"] = [float(path[min(t, len(path) - 1)]) for t in CHECKPOINTS]
    if is_classes(loss):
        out["error"] = float(1 - model.score(X[held], y[held]))
        if stage == "rounds":
            stages = list(model.staged_predict(X[held]))
            wrong = [float(np.mean(y[held] != P)) for P in stages]
            out["errors"] = [wrong[min(t, len(wrong)) - 1] for t in CHECKPOINTS if wrong]
    return out


def problems(stage: str) -> list[tuple[str, str]]:
    names = [*CLASSES, *NUMBERS, *(SMALL if stage == "rounds" else ())]
    numbers = {*NUMBERS, "diabetes", "friedman1", "friedman3"}
    return [(n, loss) for n in names for loss in (NUMBER_LOSSES if n in numbers else CLASS_LOSSES)]


def collect(arguments: argparse.Namespace) -> None:
    stage, rng = arguments.stage, np.random.default_rng(arguments.seed)
    factors = STAGES[stage]["factors"]
    full = [dict(zip(factors, values, strict=True)) for values in itertools.product(*factors.values())]
    full = [c for c in full if not (c["step"] == "auto" and c["rate"] != 0.1)]
    chosen = [full[i] for i in rng.permutation(len(full))[: arguments.configs]]
    tasks = [(n, loss, f, c) for f in range(3) for c in chosen for n, loss in problems(stage)]
    if stage == "rounds":  # all settings on the first fold before the others
        tasks = [t for f in range(3) for t in _shuffled([t for t in tasks if t[2] == f], rng)]
    else:
        tasks = _shuffled(tasks, rng)
    end = time.time() + arguments.seconds

    def one(task: Any) -> Any:
        return None if time.time() > end else run(stage, *task)

    found = joblib.Parallel(arguments.jobs, batch_size=1)(joblib.delayed(one)(task) for task in tasks)
    save(arguments, stage, [f for f in found if f], len(tasks))


def save(arguments: argparse.Namespace, stage: str, found: list[Any], n_tasks: int) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"{stage}.json").write_text(json.dumps(found))
    print(f"{len(found)} of {n_tasks} runs in {arguments.out / stage}.json")


def _shuffled(tasks: list[Any], rng: np.random.Generator) -> list[Any]:
    return [tasks[i] for i in rng.permutation(len(tasks))]


# -- how many rounds ---------------------------------------------------------------------------------------

QUERIES = ("mq2008", "ohsumed")
#: Noisy targets, besides those of SMALL.
NOISY = {
    "friedman1, noise 5": lambda: sklearn_sets.make_friedman1(600, noise=5.0, random_state=1),
    "friedman2, noise 300": lambda: sklearn_sets.make_friedman2(600, noise=300.0, random_state=2),
}
STOPPING: dict[str, Any] = {
    "quick": ("diabetes", "friedman1", *NOISY, "breast_cancer", "wine"),
    "rows": {"numbers": 2000, "classes": 1200, "queries": 2500},
    "cap": 1000,
    "patience": 60,  # of the runs inside; rules may have less
}


def stopping_tasks() -> list[tuple[str, str, int]]:
    """Return (set, loss, fold): all sets once, then classes and queries again, then numbers."""
    numbers = dict.fromkeys(("diabetes", "friedman1", *NOISY), NUMBER_LOSSES)
    numbers |= dict.fromkeys(NUMBERS, ("absolute", "quantile:0.1", "half_squared"))
    queries = dict.fromkeys(QUERIES, ("ranking_hinge",))
    classes = dict.fromkeys(("breast_cancer", "wine", "digits", *CLASSES), CLASS_LOSSES)
    problems = [(n, loss) for n, losses in (numbers | queries | classes).items() for loss in losses]
    others = [problem for problem in problems if problem[0] not in numbers]
    order = [(problems, 0), (others, 1), (problems, 1), (problems, 2)]
    return list(dict.fromkeys((*problem, fold) for part, fold in order for problem in part))


def stopping_rows(name: str, kind: str) -> tuple[Any, Any, Any, list[int] | None]:
    """Return X, y, queries and categories of some rows of the training part; whole queries."""
    count = STOPPING["rows"][kind]
    if name in NOISY:
        return *NOISY[name](), None, None
    if kind != "queries":
        X, y, categorical = rows(name, count)
        return X[:count], y[:count], None, categorical
    found = datasets.load(name)
    assert found.qid is not None
    X, y, qid = (part[found.train] for part in (found.X, found.y, found.qid))
    order = np.random.default_rng(zlib.crc32(name.encode())).permutation(np.unique(qid))
    sizes = np.array([np.count_nonzero(qid == q) for q in order])
    chosen = np.isin(qid, order[np.cumsum(sizes) <= count])
    return X[chosen], y[chosen], qid[chosen], None


def stopping_curves(
    model: Any, part: tuple[Any, Any, Any], train: Any, held: Any, patience: int | None
) -> dict[str, Any]:
    """Train on some rows; return the loss on the others after each round, and for classes the error."""
    X, y, qid = part
    options = {} if qid is None else {"qid": qid[train], "qid_val": qid[held]}
    known = np.isin(y[held], y[train]) if is_classes(model.loss) else np.ones(len(held), bool)
    held = held[known]
    model.set_params(**stopping(patience))
    began = time.perf_counter()
    model.fit(X[train], y[train], X_val=X[held], y_val=y[held], **options)
    out: dict[str, Any] = {"seconds": round(time.perf_counter() - began, 3)}
    out["loss"] = [float(f"{v:.7g}") for v in model.history_["validation"]]
    if is_classes(model.loss):
        stages = model.staged_predict(X[held])
        out["error"] = [float(f"{np.mean(y[held] != P):.5f}") for P in stages]
    return out


def stopping_run(name: str, loss: str, fold: int) -> dict[str, Any]:
    """Hold out a fifth of the rows, train on the others, and on parts of them."""
    kind = "classes" if is_classes(loss) else "queries" if name in QUERIES else "numbers"
    X, y, qid, categorical = stopping_rows(name, kind)
    splitter = {"classes": StratifiedKFold, "numbers": KFold, "queries": GroupKFold}[kind]
    estimator = {
        "classes": ConvexBoostClassifier,
        "numbers": ConvexBoostRegressor,
        "queries": ConvexBoostRanker,
    }[kind]
    model = estimator(loss, "tree", n_rounds=STOPPING["cap"], output="last")
    model.set_params(categorical_features=categorical, random_state=0, n_jobs=1)
    train, held = list(splitter(5, shuffle=True, random_state=0).split(X, y, qid))[fold]
    out = {"set": name, "loss": loss, "fold": fold, "rows": len(train)}
    out["outside"] = stopping_curves(model, (X, y, qid), train, held, None)
    part = (X[train], y[train], None if qid is None else qid[train])
    for count in (3, 5) if name in STOPPING["quick"] else (3,):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class with fewer members than folds
            inside = list(splitter(count, shuffle=True, random_state=1).split(*part))
        out[f"inside {count}"] = [
            stopping_curves(model, part, *each, STOPPING["patience"]) for each in inside
        ]
    return out


def collect_stopping(arguments: argparse.Namespace) -> None:
    """Train on what the tasks say and an earlier call has not done, until the time is up."""
    path = arguments.out / "stopping.json"
    before = json.loads(path.read_text()) if path.exists() else []
    done = {(r["set"], r["loss"], r["fold"]) for r in before}
    tasks = [task for task in stopping_tasks() if task not in done]
    end = time.time() + arguments.seconds

    def one(task: Any) -> Any:
        return None if time.time() > end else stopping_run(*task)

    found = joblib.Parallel(arguments.jobs, batch_size=1)(joblib.delayed(one)(task) for task in tasks)
    save(arguments, "stopping", before + [f for f in found if f], len(before) + len(tasks))


# -- the tables ------------------------------------------------------------------------------------------

#: Losses that behave alike, and whether they are scored by the error.
GROUPS = {
    "absolute, quantiles": (NUMBER_LOSSES[:3], False),
    "squared": (NUMBER_LOSSES[3:], False),
    "hinge": (CLASS_LOSSES[:1], True),
    "softmax": (CLASS_LOSSES[1:], True),
}
#: Added to errors before ratios are taken: a handful of rows must not count for much.
HALF_A_PERCENT = 0.005


def excess(found: list[dict[str, Any]], scores: list[float], by_error: bool) -> Array:
    """Return how much worse each run is than the best of its data set, loss and fold, as a log ratio."""
    values = np.asarray(scores) + (HALF_A_PERCENT if by_error else 0.0)
    keys = [(r["set"], r["loss"], r["fold"]) for r in found]
    best: dict[Any, float] = {}
    for key, value in zip(keys, values, strict=True):
        best[key] = min(best.get(key, np.inf), value)
    return np.log(values / np.array([best[key] for key in keys]))


def effects(stage: str, found: list[dict[str, Any]]) -> str:
    """Return the mean excess of each level of each factor; a linear model takes out what else differs."""
    lines = []
    for factor, levels in STAGES[stage]["factors"].items():
        if len(levels) < 2:
            continue
        for level in levels:
            cells = []
            for losses, by_error in GROUPS.values():
                runs = [r for r in found if r["loss"] in losses]
                out = excess(runs, [r["error" if by_error else "value"] for r in runs], by_error)
                chosen = np.array([r[factor] == level for r in runs])
                cells.append(f"{100 * out[chosen].mean():.0f}" if chosen.any() else "")
            lines.append([factor, level, *cells])
    return table(["factor", "level", *GROUPS], lines)


def fixed_rounds(found: list[dict[str, Any]], small: bool) -> str:
    """Return the mean excess of each candidate after fixed numbers of rounds."""
    lines = []
    for group, (losses, by_error) in GROUPS.items():
        runs = [r for r in found if r["loss"] in losses and (r["set"] in SMALL) == small]
        key = "errors" if by_error else "path"
        runs = [r for r in runs if len(r.get(key, ())) == len(CHECKPOINTS)]
        at_best = [min(r[key]) for r in runs]
        floor = excess(runs, at_best, by_error) - np.log(np.array(at_best) + HALF_A_PERCENT * by_error)
        paths = np.log(np.array([r[key] for r in runs]) + HALF_A_PERCENT * by_error) + floor[:, None]
        for rate, envelope in itertools.product((0.05, 0.1), (0.0, 3.0)):
            chosen = np.array([r["rate"] == rate and r["envelope"] == envelope for r in runs])
            if chosen.any():
                means = [f"{100 * m:.0f}" for m in paths[chosen].mean(axis=0)]
                lines.append([group, rate, envelope, *means])
    return table(["losses", "rate", "envelope", *map(str, CHECKPOINTS)], lines)


# The rules of `stopping`: from the curves inside, and perhaps a cap, to a number of rounds.

Curves = list[Array]
PATIENCE_INSIDE = 50


def ended(path: list[float], cap: int) -> Array:
    """Return a curve as it would be with this cap and PATIENCE_INSIDE."""
    values = np.array(path[: cap + 1])
    is_best = values <= np.minimum.accumulate(values)
    since = np.arange(len(values)) - np.maximum.accumulate(np.where(is_best, np.arange(len(values)), 0))
    stop = np.flatnonzero(since >= PATIENCE_INSIDE)
    return values[: stop[0] + 1] if len(stop) else values


def inside(run: dict[str, Any], folds: int, cap: int) -> Curves:
    """Return the curves of the loss inside, all as long as the longest."""
    curves = [ended(part["loss"], cap) for part in run[f"inside {folds}"]]
    length = max(map(len, curves))
    return [np.append(path, np.full(length - len(path), path[-1])) for path in curves]


def one_standard_error(curves: Curves) -> int:
    """Return the first round that the best one does not beat by a standard error of their difference."""
    P = np.array(curves)
    best = P.mean(axis=0).argmin()
    D = P - P[:, [best]]
    error = D.std(axis=0, ddof=1) / np.sqrt(len(P))
    return int(np.argmax(D.mean(axis=0) <= error))


#: Name → (folds inside, cap, from the curves to the rounds); no folds: the cap itself.
RULES: dict[str, tuple[int, int, Any]] = {
    "always 100": (0, 100, None),
    "always 200": (0, 200, None),
    "always 500": (0, 500, None),
    "always 1,000": (0, 1000, None),
    "a third held out, at most 500": (3, 500, lambda c: np.argmin(c[0])),
    "a third held out, at most 1,000": (3, 1000, lambda c: np.argmin(c[0])),
    "3 folds, at most 500": (3, 500, lambda c: np.argmin(np.mean(c, axis=0))),
    "3 folds, at most 1,000": (3, 1000, lambda c: np.argmin(np.mean(c, axis=0))),
    "3 folds, times 1.5, at most 1,000": (3, 1000, lambda c: 1.5 * np.argmin(np.mean(c, axis=0))),
    "3 folds, times 2, at most 1,000": (3, 1000, lambda c: 2 * np.argmin(np.mean(c, axis=0))),
    "3 folds, mean of the best rounds, at most 1,000": (3, 1000, lambda c: np.mean(np.argmin(c, axis=1))),
    "3 folds, one standard error, at most 1,000": (3, 1000, one_standard_error),
    "5 folds, at most 1,000": (5, 1000, lambda c: np.argmin(np.mean(c, axis=0))),
}
#: Column → (is it for this run?, by the error?).
COLUMNS: dict[str, tuple[Any, bool]] = {
    "numbers, the four sets": (lambda r: r["set"] in NUMBERS, False),
    "numbers, small or noisy": (lambda r: r["loss"] in NUMBER_LOSSES and r["set"] not in NUMBERS, False),
    "ranking": (lambda r: r["set"] in QUERIES, False),
    "softmax": (lambda r: r["loss"] == "softmax", False),
    "its error": (lambda r: r["loss"] == "softmax", True),
    "hinge": (lambda r: r["loss"] == "multiclass_hinge", False),
    "its error ": (lambda r: r["loss"] == "multiclass_hinge", True),
}


def chosen_rounds(run: dict[str, Any], rule: str) -> int:
    folds, cap, choose = RULES[rule]
    return cap if folds == 0 else int(np.clip(choose(inside(run, folds, cap)), 1, cap))


def work(run: dict[str, Any], rule: str) -> float:
    """Return the rounds trained in all, those on a part of the rows counted in part."""
    folds, cap, _ = RULES[rule]
    parts = run[f"inside {folds}"][: 1 if "held out" in rule else folds] if folds else []
    trained = sum(len(ended(part["loss"], cap)) - 1 for part in parts)
    return chosen_rounds(run, rule) + (trained * (folds - 1) / folds if folds else 0.0)


def outside_excess(run: dict[str, Any], rounds: int, by_error: bool) -> float:
    """Return how much worse the loss outside is after these rounds than after the best number of them."""
    path = np.array(run["outside"]["error" if by_error else "loss"])
    path = path + HALF_A_PERCENT if by_error else path[1:]
    return float(np.log(path[min(rounds, len(path)) - 1] / path.min()))


def stopping_rules(found: list[dict[str, Any]]) -> str:
    """Return the mean excess of each rule with its standard error, and its work (always 500 rounds: 1)."""
    lines = []
    for rule, (folds, _, _) in RULES.items():
        cells = []
        for fits, by_error in COLUMNS.values():
            runs = [r for r in found if fits(r)]
            if any(folds and f"inside {folds}" not in r for r in runs):
                runs = []
            values = [100 * outside_excess(r, chosen_rounds(r, rule), by_error) for r in runs]
            error = np.std(values) / np.sqrt(len(values)) if values else 0.0
            cells.append(f"{np.mean(values):.1f} ± {error:.1f}" if values else "")
        runs = [r for r in found if folds == 0 or f"inside {folds}" in r]
        lines.append([rule, *cells, f"{np.mean([work(r, rule) for r in runs]) / 500:.1f}"])
    return table(["rule", *COLUMNS, "work"], lines)


def page(arguments: argparse.Namespace) -> None:
    """Print the tables of docs/generalisation.md, of the stages that were run."""
    paths = {stage: arguments.out / f"{stage}.json" for stage in (*STAGES, "stopping")}
    found = {stage: json.loads(path.read_text()) for stage, path in paths.items() if path.exists()}
    for stage in (s for s in ("screen", "focus") if s in found):
        print(f"### `{stage}`: {len(found[stage]):,} runs\n\n{effects(stage, found[stage])}\n")
    for small in (False, True) if "rounds" in found else ():
        which = "scikit-learn's small sets" if small else "the eight sets, up to 8,000 rows"
        print(f"### `rounds`, {which}\n\n{fixed_rounds(found['rounds'], small)}\n")
    if "stopping" in found:
        count = len(found["stopping"])
        print(f"### `stopping`: {count} runs outside\n\n{stopping_rules(found['stopping'])}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=[*STAGES, "stopping", "page"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--configs", type=int, default=200, help="drawn from the full factorial")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("convexboost-generalisation"))
    arguments = parser.parse_args()
    {"page": page, "stopping": collect_stopping}.get(arguments.stage, collect)(arguments)


if __name__ == "__main__":
    main()
