"""What each trick bought: the same fit, or the same prediction, with one of them switched off.

    python benchmarks/ablation.py

Each trick is switched off by replacing a method of the library; that it does not change the model is checked.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numba import njit

import common
from common import geometric_mean, median, number, replaced, spread, table
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Hypothesis
from convexboost.core.model import AdditiveModel
from convexboost.learners._bin_function import BinFunction
from convexboost.learners._bins import BinMapper
from convexboost.learners._span import PairTable
from convexboost.learners._stumps import StumpSet
from convexboost.learners.stump import Stump
from convexboost.losses._pair_gradient import PairGradient
from convexboost.losses._scores import LocalScores
from convexboost.losses.multiclass_hinge import MulticlassHinge
from peers import Problem
from phases import SETS, fit

#: How far an objective (or a score) may be from that of the library, relatively.
TOLERANCE = 1e-6
L2 = 0.01

WITH, WITH_L2, PREDICTION = "fit", f"fit, l2 = {L2:g}", "prediction"


# -- tricks, each switched off ---------------------------------------------------------------------------


@contextmanager
def switched(owner: Any, name: str, wrap: Callable[..., Any]) -> Iterator[None]:
    """Replace a method, and complain if nobody called it: then nothing was switched off."""
    calls = 0

    def counting(method: Callable[..., Any]) -> Callable[..., Any]:
        replacement = wrap(method)

        def inside(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            return replacement(*arguments, **options)

        return inside

    with replaced(owner, name, counting):
        yield
    if not calls:
        raise RuntimeError(f"{owner.__name__}.{name} is not what the library calls any more")


@contextmanager
def no_changed_rows() -> Iterator[None]:
    """The histogram of the subgradient is summed over all rows in every round."""
    with switched(PairGradient, "follow", lambda _: lambda self, previous: self):
        yield


@contextmanager
def no_pair_gradients() -> Iterator[None]:
    """Subgradients are dense, K numbers a row (and so do not say which rows changed)."""

    def wrap(advance: Callable[..., Any]) -> Callable[..., Any]:
        def dense(*arguments: Any) -> tuple[float, Gradient]:
            value, gradient = advance(*arguments)
            return value, Gradient(gradient.values, gradient.space)

        return dense

    with switched(MulticlassHinge, "advance", wrap):
        yield


@contextmanager
def no_fused_pass() -> Iterator[None]:
    """The scores are moved in one pass and evaluated in another."""

    def wrap(move: Callable[..., Any]) -> Callable[..., Any]:
        def at_once(self: LocalScores, how: Any) -> None:
            move(self, how)
            _ = self.F  # carries the move out

        return at_once

    with switched(LocalScores, "move", wrap):
        yield


@njit(cache=True)
def _sum_leaves(block, leaves, counts):
    counts[:] = 0
    for i in range(len(leaves)):
        for b in range(counts.shape[1]):
            counts[leaves[i], b] += block[i, b]


@contextmanager
def no_running_sums() -> Iterator[None]:
    """The pair table holds the bins themselves: a stump adds up a row for every bin of its feature."""
    blocks: dict[int, np.ndarray] = {}

    def shares(self: PairTable, h: BinFunction) -> np.ndarray:
        if h.feature not in blocks:
            block = self.sample.shared_counts(self.sample.column(h.feature), len(h.leaf_of_bin))
            blocks[h.feature] = np.ascontiguousarray(block.T)
        block = blocks[h.feature]
        counts = np.empty((len(h.values), block.shape[1]), np.int64)
        _sum_leaves(block, h.leaf_of_bin, counts)
        return counts

    with switched(PairTable, "shares", lambda _: shares):
        yield


@contextmanager
def no_symbolic_ridge() -> Iterator[None]:
    """The ridge term of the subgradient is summed over the rows, not taken from the pair table."""

    def wrap(histogram: Callable[..., Any]) -> Callable[..., Any]:
        def dense(self: StumpSet, gradient: Gradient) -> np.ndarray:
            if gradient.l2 > 0.0:
                gradient = Gradient(gradient.values, gradient.space)
            return histogram(self, gradient)

        return dense

    with switched(StumpSet, "histogram", wrap):
        yield


@contextmanager
def no_collapse() -> Iterator[None]:
    """The model is added up stump by stump."""

    def terms(self: AdditiveModel) -> list[Any]:
        return [(weight * self.multipliers[-1], h) for weight, h in self.terms]

    with switched(AdditiveModel, "collapse", lambda _: terms):
        yield


@contextmanager
def no_row_pass() -> Iterator[None]:
    """The tables are added feature by feature, each in a pass of its own."""
    with switched(BinFunction, "pack", lambda _: Hypothesis.pack.__func__):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Predict on one thread, so that the comparisons are of the work and not of its division."""

    def wrap(prepare: Callable[..., Any]) -> Callable[..., Any]:
        def alone(self: BinMapper, X: Any) -> Any:
            inputs = prepare(self, X)
            inputs.n_threads = 1
            return inputs

        return alone

    with replaced(BinMapper, "prepare", wrap):
        yield


PAIR_TABLE = (
    "`max_table_mb=0`: what a stump shares with each bin is counted over the rows (no edge recorded)."
)
THREADS = "One thread instead of all (small tasks never use more than one)."

#: Name of the trick, what it is compared with, how it is switched off, and what that means.
TRICKS: tuple[tuple[str, str, Callable[[], Any], dict[str, Any], str], ...] = (
    ("pair table", WITH, nullcontext, {"learner": Stump(max_table_mb=0)}, PAIR_TABLE),
    ("running sums in it", WITH, no_running_sums, {}, no_running_sums.__doc__),
    ("changed rows", WITH, no_changed_rows, {}, no_changed_rows.__doc__),
    ("pair gradients", WITH, no_pair_gradients, {}, no_pair_gradients.__doc__),
    ("fused score pass", WITH, no_fused_pass, {}, no_fused_pass.__doc__),
    ("symbolic ridge", WITH_L2, no_symbolic_ridge, {"l2": L2}, no_symbolic_ridge.__doc__),
    ("collapsed model", PREDICTION, no_collapse, {}, no_collapse.__doc__),
    ("one pass over the rows", PREDICTION, no_row_pass, {}, no_row_pass.__doc__),
)
ALL_THREADS = "threads"
BASES = {**{name: base for name, base, *_ in TRICKS}, ALL_THREADS: WITH}


# -- measurement -----------------------------------------------------------------------------------------


def tasks(problem: Problem, arguments: argparse.Namespace) -> dict[str, Callable[[], np.ndarray]]:
    """Return what is timed: each task answers the objectives of its rounds, or the scores of its rows."""
    rounds = arguments.rounds

    def training(threads: int = 1, off: Callable[[], Any] = nullcontext, **options: Any) -> np.ndarray:
        with off():
            return fit(problem, rounds, threads, **options).history_["objective"]

    model = fit(problem, rounds, arguments.threads)
    rows = np.random.default_rng(0).integers(len(problem.y), size=arguments.rows)
    X = problem.X[rows]

    def prediction(off: Callable[[], Any] = nullcontext) -> np.ndarray:
        with one_thread(), off():
            return model.decision_function(X)

    found: dict[str, Callable[[], np.ndarray]] = {
        WITH: training,
        ALL_THREADS: lambda: training(arguments.threads),
        WITH_L2: lambda: training(l2=L2),
        PREDICTION: prediction,
    }
    for name, base, off, options, _ in TRICKS:
        if base == PREDICTION:
            found[name] = lambda off=off: prediction(off)
        else:
            found[name] = lambda off=off, options=options: training(1, off, **options)
    return found


def compare(problem: Problem, arguments: argparse.Namespace) -> dict[str, Any]:
    """Alternate between the library and each trick switched off."""
    every = tasks(problem, arguments)
    answers = {name: task() for name, task in every.items()}  # also compiles
    seconds = common.alternate(every, arguments.repeats)
    ratios = {name: median(seconds[name]) / median(seconds[base]) for name, base in BASES.items()}
    ratios[ALL_THREADS] **= -1  # here it is the library's own fit that does without
    differences = {name: difference(answers[name], answers[base]) for name, base in BASES.items()}
    return {"seconds": seconds, "ratios": ratios, "differences": differences}


def difference(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest difference, in units of the largest value."""
    if found.shape != wanted.shape:
        return np.inf
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


# -- the page --------------------------------------------------------------------------------------------


def cell(one: dict[str, Any], name: str, base: str) -> str:
    """Return the ratio, in brackets where the seconds with and without the trick overlap."""
    ratio, (a, b) = number(one["ratios"][name]), (one["seconds"][key] for key in (name, base))
    return f"({ratio})" if min(a) <= max(b) and min(b) <= max(a) else ratio


def ratios_table(found: dict[str, Any]) -> str:
    rows = []
    for name, base in BASES.items():
        mean = geometric_mean(one["ratios"][name] for one in found.values())
        worst = max(one["differences"][name] for one in found.values())
        same = "same bits" if worst == 0.0 else f"{worst:.0e}"
        same += "" if worst <= TOLERANCE else " (**differs**)"
        rows.append([name, base, *(cell(one, name, base) for one in found.values()), number(mean), same])
    return table(("trick", "of", *found, "geometric mean", "largest difference"), rows)


def page(found: dict[str, Any], arguments: argparse.Namespace) -> str:
    meanings = {**{name: meaning for name, *_, meaning in TRICKS}, ALL_THREADS: THREADS}
    return "\n\n".join(
        [
            "How many times as long it takes with one trick switched off: more than 1 is what the trick "
            f"bought. Multiclass hinge, `residual`, stumps, {arguments.rounds} rounds, one thread (the row "
            f"{ALL_THREADS}: one against {arguments.threads}); prediction of {arguments.rows:,} rows with "
            f"that model. Medians of {arguments.repeats} alternating repeats; in brackets where the seconds "
            "with and without the trick overlap.",
            ratios_table(found),
            "Largest difference: of the objective in any round (of any score, for predictions) from that of "
            f"the library, relative to the largest; at most {TOLERANCE:g}.",
            "Switched off means:",
            "\n".join(f"- {name}: {meaning}" for name, meaning in meanings.items()),
            "Seconds with all tricks, on one thread:",
            table(
                ("data", WITH, WITH_L2, PREDICTION),
                [
                    [name, *(spread(one["seconds"][base]) for base in (WITH, WITH_L2, PREDICTION))]
                    for name, one in found.items()
                ],
            ),
        ]
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--rows", type=int, default=100_000, help="to predict")
    parser.add_argument("--data", nargs="+", choices=SETS, default=SETS)
    arguments = common.parse(parser, rounds=20, rows=2_000, data=("pendigits",))
    found = {name: compare(Problem.load(name), arguments) for name in arguments.data}
    results = {"data": found, "tolerance": TOLERANCE}
    common.publish(arguments, "ablation", "What each trick bought", page(found, arguments), results)


if __name__ == "__main__":
    main()
