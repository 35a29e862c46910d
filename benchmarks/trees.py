"""Trees beside those of the peers: seconds per round, seconds to predict, and the loss they come to.

    python benchmarks/trees.py [--rows 1000000] [--data letter ...]

The same for everybody: 31 leaves, 255 bins, 20 rows in a leaf, learning rate 0.1, and the threads.  A round
is one tree of vectors for ours, a tree per class for the peers (XGBoost: also one of vectors; CatBoost:
always one, symmetric, of depth 5).  Seconds per round are the slope between a short and a long fit, so that
reading and binning the rows do not count.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

import common
from common import Seconds, median, note, number, table, timed
from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.learners.tree import Tree
from peers import Problem  # first: it says what to install where a peer is missing

# isort: split
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from xgboost import XGBClassifier, XGBRegressor

LEAVES, BINS, MIN_ROWS, RATE = 31, 255, 20, 0.1
DEPTH = 5  #: of a symmetric tree: 32 leaves
SOFTMAX, HINGE, SQUARED, ABSOLUTE = "softmax", "multiclass_hinge", "half_squared", "absolute"
BEST, AUTO = "best", "auto"  #: our splits; "auto": random cuts where there are several outputs
LIGHTGBM, XGBOOST, VECTORS, CATBOOST = "LightGBM", "XGBoost", "XGBoost, vectors", "CatBoost"
PEERS = (LIGHTGBM, XGBOOST, VECTORS, CATBOOST)
NUMBERS, CLASSES = "random numbers", "random classes"  #: the data sets that are made here
DATA = ("letter", "connect4", "california_housing", NUMBERS, CLASSES)
FEATURES, N_CLASSES = 50, 10

#: Numbers read in the long fit: rounds · rows · columns · outputs, which is to take some seconds.
WORK = 6e8
LEAST_ROUNDS, MOST_ROUNDS = 6, 300
SHORT = 6  #: the short fit has that many times fewer rounds
TRIES = 5  #: of a slope, where noise makes it negative
WARM_UP = 2  #: rounds of a fit that is not timed: compiles or loads what is needed
PREDICTED, MANY_ROWS = (100, 20), 500_000  #: rounds of the models that predict, with few rows and with many
QUICK_ROWS = 2000

ONE_OUTPUT_GOAL = 1.3  #: times LightGBM's seconds per tree, at most
CLASSES_GOAL, GOAL_CLASSES = 2.0, 10  #: times faster than the fastest peer, from so many classes on
PREDICTION_GOAL = 1.0  #: times LightGBM's seconds, at most

Fit = Callable[[int, int], Any]  #: (rounds, threads) -> fitted estimator


# -- the contestants -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A data set and what the peers minimise on it."""

    data: str
    loss: str
    X: np.ndarray
    y: np.ndarray
    most_rounds: int = MOST_ROUNDS

    @property
    def n_outputs(self) -> int:
        return int(self.y.max()) + 1 if self.loss == SOFTMAX else 1

    @property
    def rounds(self) -> tuple[int, int]:
        """Return the rounds of the short and of the long fit."""
        most = int(np.clip(WORK / (self.X.size * self.n_outputs), LEAST_ROUNDS, self.most_rounds))
        return most // SHORT, most

    def ours(self, loss: str, splits: str) -> Fit:
        learner = Tree(max_leaves=LEAVES, min_samples_leaf=MIN_ROWS, max_bins=BINS, splits=splits)
        kind = ConvexBoostRegressor if self.n_outputs == 1 else ConvexBoostClassifier
        fixed = {"step": f"refit:{RATE}", "output": "last", "early_stopping": False, "random_state": 0}
        return lambda rounds, threads: kind(loss, learner, n_rounds=rounds, n_jobs=threads, **fixed).fit(
            self.X, self.y
        )

    def lightgbm(self, rounds: int, threads: int) -> Any:
        kind = LGBMRegressor if self.n_outputs == 1 else LGBMClassifier
        model = kind(
            objective="regression_l1" if self.loss == ABSOLUTE else None,
            n_estimators=rounds,
            num_leaves=LEAVES,
            max_bin=BINS,
            min_child_samples=MIN_ROWS,
            learning_rate=RATE,
            n_jobs=threads,
            verbose=-1,
        )
        return model.fit(self.X, self.y)

    def xgboost(self, strategy: str) -> Fit:
        kind = XGBRegressor if self.n_outputs == 1 else XGBClassifier
        fixed = {"objective": "reg:absoluteerror"} if self.loss == ABSOLUTE else {}
        return lambda rounds, threads: kind(
            n_estimators=rounds,
            tree_method="hist",
            grow_policy="lossguide",
            max_leaves=LEAVES,
            max_depth=0,
            max_bin=BINS,
            min_child_weight=MIN_ROWS * self._curvature,
            learning_rate=RATE,
            multi_strategy=strategy,
            n_jobs=threads,
            **fixed,
        ).fit(self.X, self.y)

    @property
    def _curvature(self) -> float:
        """A row's second derivative at the start, by which XGBoost measures its least leaf."""
        share = 1.0 / self.n_outputs
        return 1.0 if self.n_outputs == 1 else 2.0 * share * (1.0 - share)

    def catboost(self, rounds: int, threads: int) -> Any:
        kind = CatBoostRegressor if self.n_outputs == 1 else CatBoostClassifier
        model = kind(
            loss_function={SOFTMAX: "MultiClass", SQUARED: "RMSE", ABSOLUTE: "MAE"}[self.loss],
            iterations=rounds,
            depth=DEPTH,
            border_count=BINS,
            learning_rate=RATE,
            bootstrap_type="No",
            random_strength=0,
            metric_period=rounds,  # the others do not look at the loss either
            thread_count=threads,
            allow_writing_files=False,
            verbose=False,
        )
        return model.fit(self.X, self.y)

    @property
    def losses(self) -> tuple[str, ...]:
        """Return what ours minimises; no peer has the hinge."""
        return (SOFTMAX, HINGE) if self.data == "letter" else (self.loss,)

    @property
    def own(self) -> dict[str, tuple[str, str]]:
        """Return the names of ours, each with its loss and its splits (with one output "auto" is "best")."""
        return {
            f"ours, {loss}, {splits}": (loss, splits)
            for loss in self.losses
            for splits in ((BEST,) if self.n_outputs == 1 else (BEST, AUTO))
        }

    @property
    def contestants(self) -> dict[str, Fit]:
        """Return all that is timed."""
        peers: dict[str, Fit] = {LIGHTGBM: self.lightgbm, XGBOOST: self.xgboost("one_output_per_tree")}
        if self.n_outputs > 1:
            peers[VECTORS] = self.xgboost("multi_output_tree")
        ours = {name: self.ours(*variant) for name, variant in self.own.items()}
        return {**ours, **peers, CATBOOST: self.catboost}

    def measures(self, model: Any, softmax: bool) -> dict[str, float]:
        """Return the loss of a model on the training rows; of a classifier the errors as well."""
        if self.n_outputs == 1:
            left = np.ravel(model.predict(self.X)) - self.y
            name, loss = (ABSOLUTE, np.abs(left)) if self.loss == ABSOLUTE else (SQUARED, left**2 / 2)
            return {name: float(loss.mean())}
        found = {"error": float(np.mean(np.ravel(model.predict(self.X)) != self.y))}
        if softmax:
            P = model.predict_proba(self.X)[np.arange(len(self.y)), self.y]
            found["log-loss"] = float(-np.log(np.maximum(P, 1e-300)).mean())
        return found


def random_rows(n_samples: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Random floats, with numbers or classes from a linear model with noise."""
    rng = np.random.default_rng(0)
    X = rng.random((n_samples, FEATURES))
    scores = (X - 0.5) @ rng.normal(size=(FEATURES, n_outputs))
    scores += rng.normal(size=scores.shape)
    return X, scores[:, 0] if n_outputs == 1 else scores.argmax(axis=1)


def cases(name: str, arguments: argparse.Namespace) -> list[Case]:
    """Return what is measured on a data set."""
    if name in (NUMBERS, CLASSES):
        X, y = random_rows(arguments.rows, 1 if name == NUMBERS else N_CLASSES)
    else:
        problem = Problem.load(name)
        every = max(len(problem.y) // QUICK_ROWS, 1) if arguments.quick else 1
        X, y = np.ascontiguousarray(problem.X[::every], float), problem.y[::every]
    losses = {NUMBERS: (SQUARED,), "california_housing": (SQUARED, ABSOLUTE)}.get(name, (SOFTMAX,))
    most = LEAST_ROUNDS if arguments.quick else MOST_ROUNDS
    return [Case(name, loss, X, y, most) for loss in losses]


# -- training --------------------------------------------------------------------------------------------


def slope(fit: Fit, rounds: tuple[int, int], threads: int) -> tuple[float, Any]:
    """Return the seconds per round between two fits, and the longer one."""
    for _ in range(TRIES):
        seconds, models = zip(*(timed(lambda n=n: fit(n, threads)) for n in rounds), strict=True)
        found = (seconds[1] - seconds[0]) / (rounds[1] - rounds[0])
        if found > 0.0:
            return found, models[1]
        note("the noise was longer than the rounds: once more")
    return seconds[1] / rounds[1], models[1]  # too much, for it counts the start


def train(case: Case, arguments: argparse.Namespace) -> dict[str, Any]:
    """Time the rounds of everybody in turn."""
    contestants = case.contestants
    for fit in contestants.values():
        fit(WARM_UP, arguments.threads)
    seconds: Seconds = {name: [] for name in contestants}
    measures = {}
    for repeat in range(arguments.repeats):
        for name, fit in contestants.items():
            found, model = slope(fit, case.rounds, arguments.threads)
            seconds[name].append(found)
            note(f"{case.data}, {case.loss}, {name}: {1e3 * found:.4g} ms per round")
            if repeat == 0:
                measures[name] = case.measures(model, case.own.get(name, (SOFTMAX,))[0] == SOFTMAX)
    rivals = {name: seconds[name] for name in PEERS if name in seconds}
    rivals["fastest"] = [min(repeat) for repeat in zip(*rivals.values(), strict=True)]
    return {
        "rows": len(case.y),
        "outputs": case.n_outputs,
        "rounds": case.rounds,
        "variants": case.own,
        "seconds": seconds,
        "measures": measures,
        "ratios": {
            name: {rival: ratios(seconds[name], theirs) for rival, theirs in rivals.items()}
            for name in case.own
        },
    }


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return our seconds / theirs in each repeat."""
    return [a / b for a, b in zip(ours, theirs, strict=False)]


# -- prediction ------------------------------------------------------------------------------------------


def predict(case: Case, arguments: argparse.Namespace) -> dict[str, Any]:
    """Time `predict` and the raw scores of ours and LightGBM on the training rows."""
    rounds = min(PREDICTED[len(case.y) >= MANY_ROWS], case.most_rounds)
    own, peer = (fit(rounds, arguments.threads) for fit in (case.ours(case.loss, BEST), case.lightgbm))
    scores = own.predict if case.n_outputs == 1 else own.decision_function
    tasks: dict[str, Callable[[int], Any]] = {
        "scores, ours": lambda threads: limited(scores, case.X, threads),
        f"scores, {LIGHTGBM}": lambda threads: peer.booster_.predict(
            case.X, raw_score=True, num_threads=threads
        ),
        "predict, ours": lambda threads: limited(own.predict, case.X, threads),
        f"predict, {LIGHTGBM}": lambda threads: peer.predict(case.X, num_threads=threads),
    }
    found = {}
    for threads in sorted({1, arguments.threads}):
        for task in tasks.values():
            task(threads)
        seconds = common.alternate(
            {name: lambda task=task, threads=threads: task(threads) for name, task in tasks.items()},
            arguments.repeats,
        )
        for what in ("scores", "predict"):
            ours, theirs = seconds[f"{what}, ours"], seconds[f"{what}, {LIGHTGBM}"]
            found[f"{what}, {threads}"] = {
                "what": what,
                "threads": threads,
                "seconds": {"ours": ours, LIGHTGBM: theirs},
                "ratios": ratios(ours, theirs),
            }
    return {"rows": len(case.y), "rounds": rounds, "found": found}


def limited(task: Callable[[np.ndarray], Any], X: np.ndarray, threads: int) -> Any:
    """Predict with so many threads: ours takes as many as joblib sees cores."""
    with mock.patch.dict(os.environ, LOKY_MAX_CPU_COUNT=str(threads)):
        return task(X)


# -- the page --------------------------------------------------------------------------------------------


def middle(values: Sequence[float], unit: float = 1.0) -> str:
    """Return the median, and the range where there is one."""
    centre, low, high = (number(unit * f(values)) for f in (median, min, max))
    return centre if len(values) == 1 else f"{centre} ({low} to {high})"


def splits_of(splits: str, outputs: int) -> str:
    return "best" if splits == BEST or outputs == 1 else "random (default)"


def goal(one: dict[str, Any], name: str) -> tuple[str, bool] | None:
    """Return what a line of the ratios is to reach, and whether it does."""
    found = one["ratios"][name]
    if one["outputs"] == 1:
        reached = median(found[LIGHTGBM]) <= ONE_OUTPUT_GOAL
        return f"at most {ONE_OUTPUT_GOAL:g} x {LIGHTGBM}", reached
    if one["outputs"] >= GOAL_CLASSES:
        reached = median(found["fastest"]) <= 1.0 / CLASSES_GOAL
        return f"at most {1.0 / CLASSES_GOAL:g} x the fastest peer", reached
    return None


def label(key: str, one: dict[str, Any]) -> str:
    return f"{key.split(',')[0]}, {one['rows']:,} rows"


def ratio_table(trained: dict[str, Any]) -> str:
    rows = []
    for key, one in trained.items():
        for name, (loss, splits) in one["variants"].items():
            found = one["ratios"][name]
            cells = [middle(found[rival]) if rival in found else "" for rival in (*PEERS, "fastest")]
            wanted = goal(one, name)
            last = f"{wanted[0]}: {common.verdict(wanted[1])}" if wanted else ""
            how = splits_of(splits, one["outputs"])
            rows.append([label(key, one), one["outputs"], loss, how, *cells, last])
    return table(("data", "outputs", "our loss", "splits", *PEERS, "fastest peer", "goal"), rows)


def seconds_table(trained: dict[str, Any]) -> str:
    rows = []
    for key, one in trained.items():
        for name, seconds in one["seconds"].items():
            loss, splits = one["variants"].get(name, ("", ""))
            who = f"ours, {loss}, {splits_of(splits, one['outputs'])}" if loss else name
            measured = ", ".join(f"{what} {value:.4g}" for what, value in one["measures"][name].items())
            rounds = "{} and {}".format(*one["rounds"])
            rows.append([label(key, one), who, middle(seconds, 1e3), rounds, measured])
    header = ("data", "library", "ms per round", "rounds", "training rows after the longer fit")
    return table(header, rows)


def prediction_table(predicted: dict[str, Any]) -> str:
    rows = []
    for key, one in predicted.items():
        for line in one["found"].values():
            ours, theirs = line["seconds"]["ours"], line["seconds"][LIGHTGBM]
            speed = [number(one["rows"] / median(seconds)) for seconds in (ours, theirs)]
            reached = common.verdict(median(line["ratios"]) <= PREDICTION_GOAL)
            cells = [middle(ours), middle(theirs), *speed, middle(line["ratios"]), reached]
            rows.append([label(key, one), one["rounds"], line["what"], line["threads"], *cells])
    header = ("data", "rounds", "what", "threads", "ours, s", f"{LIGHTGBM}, s", "ours, rows/s")
    return table((*header, f"{LIGHTGBM}, rows/s", "ratio", f"at most {PREDICTION_GOAL:g}"), rows)


def page(trained: dict[str, Any], predicted: dict[str, Any], arguments: argparse.Namespace) -> str:
    goals = [found for one in trained.values() for name in one["variants"] if (found := goal(one, name))]
    reached = sum(there for _, there in goals)
    lines = [line for one in predicted.values() for line in one["found"].values()]
    not_slower = sum(median(line["ratios"]) <= PREDICTION_GOAL for line in lines)
    return "\n\n".join(
        [
            f"Trees of {LEAVES} leaves, {BINS} bins, at least {MIN_ROWS} rows in a leaf, learning rate "
            f"{RATE:g} for everybody. Of the goals for training {reached} of {len(goals)} are reached, of "
            f"those for prediction {not_slower} of {len(lines)}.",
            "## Training",
            "Our seconds per round / those of the peer (below 1: a round of ours is faster): median of the "
            f"ratios within a repeat, and their range; interleaved repeats: {arguments.repeats}.",
            ratio_table(trained),
            "A round is one tree with a vector in each leaf for ours, and a tree per class for LightGBM and "
            "XGBoost (`one_output_per_tree`; “vectors”: `multi_output_tree`). CatBoost's tree is symmetric, "
            f"of depth {DEPTH}, with a vector in each leaf and no least number of rows in it: another kind "
            "of work. XGBoost's least leaf is a sum of second derivatives: that of "
            f"{MIN_ROWS} rows at the start. No peer has the multiclass hinge: its lines compare with the "
            "peers' softmax. Columns of categories are taken as numbers by everybody. “fastest peer” is the "
            "fastest in each repeat.",
            seconds_table(trained),
            "Seconds per round are the slope between a short and a long fit, which leaves out reading and "
            f"binning the rows; before them everybody fits {WARM_UP} rounds that are not timed. The last "
            "column is the loss after the longer fit, the same number of rounds for everybody. With several "
            "classes a tree per class has as many times more leaves as one tree of vectors, and a round of "
            "them lowers the loss more: a faster round is not yet a faster fit.",
            "## Prediction",
            "The training rows, from the matrix X; “scores” are raw scores (`decision_function`, "
            "`booster_.predict(raw_score=True)`), “predict” is what the estimators answer. Ours has the best "
            f"splits. Ratio: our seconds / those of {LIGHTGBM}.",
            prediction_table(predicted),
            f"The random sets have {FEATURES} columns of floats and numbers or {N_CLASSES} classes from a "
            "linear model with noise.",
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the random sets (1,000,000)")
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA, help="only these")
    arguments = common.parse(parser, rows=QUICK_ROWS)
    trained, predicted = {}, {}
    for name in arguments.data:
        for case in cases(name, arguments):
            trained[f"{name}, {case.loss}"] = train(case, arguments)
            if case.loss != ABSOLUTE:  # predicts as the squares do
                predicted[name] = predict(case, arguments)
    results = {"training": trained, "prediction": predicted}
    common.publish(arguments, "trees", "Trees", page(trained, predicted, arguments), results)


if __name__ == "__main__":
    main()
