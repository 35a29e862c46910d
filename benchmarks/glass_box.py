"""B2: test error and seconds of ours and of interpret's EBM, both additive in the features.

    python benchmarks/glass_box.py

Ours (`learner="additive"`, `algorithm="naive"`) is stopped by its own validation split, EBM by its own; EBM
has main effects only and one bag.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import common
from common import geometric_mean, median, number, spread, table
from convexboost import ConvexBoostClassifier
from peers import Problem

try:
    from interpret.glassbox import ExplainableBoostingClassifier
except ModuleNotFoundError as error:
    raise SystemExit(f"this benchmark needs {error.name}: pip install --group bench") from None

DATA = ("letter", "satimage", "pendigits")
LOSSES = ("softmax", "multiclass_hinge")  #: the first, the default and EBM's own, is the one compared
DEFAULT_RATE = 0.015  #: EBM's
RATES = (DEFAULT_RATE, 0.05, 0.15, 0.3)
OURS = {"learner": "additive", "algorithm": "naive"}
LIMIT = 10_000  #: rounds of ours; early stopping ends it long before
SPEED_GOAL = 30.0
RESAMPLES = 10_000


def ours(loss: str, problem: Problem, arguments: argparse.Namespace) -> ConvexBoostClassifier:
    options = {**OURS, "n_rounds": LIMIT, "early_stopping": True, "random_state": 0, **arguments.ours}
    return ConvexBoostClassifier(loss, n_jobs=arguments.threads, **options).fit(problem.X, problem.y)


def ebm(rate: float, X: np.ndarray, y: np.ndarray, threads: int) -> ExplainableBoostingClassifier:
    model = ExplainableBoostingClassifier(
        interactions=0, outer_bags=1, learning_rate=rate, n_jobs=threads, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a multiclass model has no interactions, it says
        return model.fit(X, y)


def search(problem: Problem, threads: int, rates: tuple[float, ...]) -> tuple[float, dict[float, float]]:
    """Return EBM's learning rate with the lowest log-loss on a held-out fifth, and all the log-losses."""
    X, X_held, y, y_held = train_test_split(
        problem.X, problem.y, test_size=0.2, stratify=problem.y, random_state=0
    )
    losses = {rate: float(log_loss(y_held, ebm(rate, X, y, threads).predict_proba(X_held))) for rate in rates}
    common.note(f"EBM on {problem.name}: held-out log-loss by rate {losses}")
    return min(losses, key=losses.__getitem__), losses


@dataclass(frozen=True)
class Difference:
    """Error of ours minus EBM's on the same test rows, with a 95 % interval by bootstrap of the rows."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, own: np.ndarray, other: np.ndarray) -> Difference:
        difference = own.astype(int) - other.astype(int)
        shares = [np.mean(difference == value) for value in (-1, 0, 1)]
        counts = np.random.default_rng(0).multinomial(len(own), shares, size=RESAMPLES)  # of rows drawn
        means = (counts[:, 2] - counts[:, 0]) / len(own)
        return cls(float(difference.mean()), *map(float, np.quantile(means, [0.025, 0.975])))

    @property
    def not_worse(self) -> bool:
        return self.low <= 0.0

    def __str__(self) -> str:
        return f"{100 * self.mean:+.2f} [{100 * self.low:+.2f}, {100 * self.high:+.2f}]"


def compare(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one data set: each loss of ours, EBM with the rate found and with its default rate."""
    threads, problem, test = arguments.threads, Problem.load(name), Problem.load(name, test=True)
    for loss in LOSSES:
        ours(loss, problem, arguments)  # compiles
    rate, losses = search(problem, threads, RATES[2:] if arguments.quick else RATES)
    tasks: dict[str, Any] = {loss: lambda loss=loss: ours(loss, problem, arguments) for loss in LOSSES}
    for r in dict.fromkeys((rate, DEFAULT_RATE)):
        tasks[f"EBM {r:g}"] = lambda r=r: ebm(r, problem.X, problem.y, threads)
    kept: dict[str, Any] = {}
    seconds = common.alternate(
        {label: lambda label=label, task=task: kept.update({label: task()}) for label, task in tasks.items()},
        arguments.repeats,
    )
    wrong = {label: np.asarray(model.predict(test.X)) != test.y for label, model in kept.items()}
    reference = f"EBM {rate:g}"
    return {
        "rate": rate,
        "held_out_log_loss": {f"{r:g}": loss for r, loss in losses.items()},
        "reference": reference,
        "seconds": seconds,
        "errors": {label: float(w.mean()) for label, w in wrong.items()},
        "rounds": {loss: [kept[loss].n_rounds_, kept[loss].best_round_] for loss in LOSSES},
        "differences": {
            loss: {r: vars(Difference.of(wrong[loss], wrong[r])) for r in wrong if r not in LOSSES}
            for loss in LOSSES
        },
        "ratios": {
            loss: {r: median(seconds[r]) / median(seconds[loss]) for r in wrong if r not in LOSSES}
            for loss in LOSSES
        },
    }


def page(found: dict[str, Any], results: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = []
    for name, one in found.items():
        others = [label for label in one["seconds"] if label not in LOSSES]
        for label, seconds in one["seconds"].items():
            row = [name, label, f"{one['errors'][label]:.2%}", spread(seconds)]
            if label in LOSSES:
                trained, best = one["rounds"][label]
                row[1] = f"ours, {label} ({trained} rounds, best {best})"
                cells = [
                    [str(Difference(**one["differences"][label][r])), number(one["ratios"][label][r])]
                    for r in (one["reference"], others[-1])
                ]
                row += [cell for pair in cells for cell in pair]
            else:
                row += ["", "", "", ""]
            rows.append(row)
    searched = ", ".join(f"{name} {one['rate']:g}" for name, one in found.items())
    changed = f" except {json.dumps(arguments.ours)}" if arguments.ours else ""
    rates = ", ".join(next(iter(found.values()))["held_out_log_loss"])
    return "\n\n".join(
        [
            f"Difference: test error of ours minus EBM's in percentage points, with a 95 % interval (paired "
            f"bootstrap of the test rows, {RESAMPLES} resamples). Ratio: seconds of EBM / ours. For "
            f"{LOSSES[0]} against EBM with the rate searched: error not worse on {results['not_worse']} of "
            f"{len(found)} sets ({common.verdict(results['not_worse'] == len(found))}), least ratio "
            f"{number(results['least'])} (goal {SPEED_GOAL:g}: "
            f"{common.verdict(results['least'] >= SPEED_GOAL)}), geometric mean {number(results['mean'])}.",
            table(
                (
                    "data",
                    "model",
                    "test error",
                    "seconds",
                    "difference, rate searched",
                    "ratio",
                    f"difference, default rate {DEFAULT_RATE:g}",
                    "ratio",
                ),
                rows,
            ),
            f"Ours: {json.dumps(OURS)}, `early_stopping=True`, at most {LIMIT} rounds, all else at its "
            f"defaults{changed}. "
            "EBM: `interactions=0, outer_bags=1`, its own validation split (15 %); learning rates "
            f"{rates} searched by the log-loss on a held-out fifth of the training rows: {searched}. A worse "
            "error is one whose interval lies above 0. Medians of alternating runs from raw X; a fit "
            "beforehand compiles the Numba kernels or reads them from the cache.",
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--ours", type=json.loads, default={}, help="parameters of ours, as a JSON object")
    arguments = common.parse(parser, data=["pendigits"])
    found = {name: compare(name, arguments) for name in arguments.data}
    judged = [
        (one["ratios"][LOSSES[0]], one["differences"][LOSSES[0]], one["reference"]) for one in found.values()
    ]
    ratios = [ratio[reference] for ratio, _, reference in judged]
    results = {
        "data": found,
        "least": min(ratios),
        "mean": geometric_mean(ratios),
        "not_worse": sum(Difference(**d[reference]).not_worse for _, d, reference in judged),
        "goal": SPEED_GOAL,
    }
    common.publish(
        arguments, "glass_box", "B2: glass boxes, ours and EBM", page(found, results, arguments), results
    )


if __name__ == "__main__":
    main()
