"""Where the time of a fit goes, phase by phase, and how far each phase is from its floor.

    python benchmarks/phases.py

Multiclass hinge, residual, stumps.  The phases are timed from outside, by wrapping methods of the library,
and the same fit without the wrappers is timed beside it.  A floor is the work that a phase cannot avoid, at
a rate that was measured in the same run.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial, wraps
from typing import Any

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

import common
from common import median, number, replaced, table, timed
from convexboost import ConvexBoostClassifier
from convexboost.boosting.algorithms import Residual
from convexboost.boosting.steps import STEPS
from convexboost.boosting.training import Result, Training
from convexboost.core.gradients import Gradient
from convexboost.learners._bins import BinMapper
from convexboost.learners._span import PairTable, Span
from convexboost.learners._stumps import HistogramTarget
from convexboost.learners.stump import Stump
from convexboost.losses._pair_gradient import PairGradient
from convexboost.losses._scores import LocalScores
from convexboost.losses.multiclass_hinge import MulticlassHinge
from peers import Problem

SETS = ("letter", "connect4", "pendigits", "satimage")
#: What the wrappers may cost, as a share of the fit.
OVERHEAD = 0.05

CHECKS = "checks of the input"
CUTS = "binning: find the cuts"
ENCODE = "binning: encode"
PAIRS = "pair table"
SCORES = "score pass"
TIES = "subgradient of tied rounds"
CHANGES = "find the changed rows"
HISTOGRAM = "histogram of the changed rows"
SEARCH = "search for the stump"
SUBTRACT = "update of the table"
STEP = "step rule"
SPAN = "edge for the record"
HISTORY = "history"
PYTHON = "Python between the phases"

#: What is timed: the time inside counts for the phase, less what is inside another phase.
WRAPPED = (
    (ConvexBoostClassifier, "fit", CHECKS),
    (BinMapper, "fit", CUTS),
    (Stump, "bind", ENCODE),
    (PairTable, "count", PAIRS),
    (MulticlassHinge, "advance", SCORES),
    (LocalScores, "move", SCORES),
    (MulticlassHinge, "evaluate", TIES),
    (PairGradient, "follow", CHANGES),
    (HistogramTarget, "add", HISTOGRAM),
    (HistogramTarget, "project", SEARCH),
    (HistogramTarget, "subtract", SUBTRACT),
    (STEPS["auto"], "__call__", STEP),
    (Span, "of", SPAN),
    (Span, "whiten", SPAN),
    (PairTable, "whole", SPAN),
    (Result, "history", HISTORY),
    (Training, "__init__", PYTHON),
    (Training, "run", PYTHON),
    (Training, "result", PYTHON),
)
PHASES = tuple(dict.fromkeys(phase for *_, phase in WRAPPED))


def fit(problem: Problem, rounds: int, threads: int, **options: Any) -> ConvexBoostClassifier:
    """Fit the model that is looked at."""
    model = ConvexBoostClassifier(
        "multiclass_hinge",
        **{"learner": "stump", "algorithm": "residual", **options},
        n_rounds=rounds,
        early_stopping=False,
        categorical_features=problem.categorical,
        n_jobs=threads,
    )
    return model.fit(problem.X, problem.y)


# -- seconds ---------------------------------------------------------------------------------------------


class Clock:
    """Adds up the seconds of each phase; a phase inside another one stops the outer one."""

    def __init__(self) -> None:
        self.seconds, self.calls = dict.fromkeys(PHASES, 0.0), 0
        self._open: list[str] = []
        self._since = 0.0

    def wrap(self, phase: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with the clock around it."""

        @wraps(method)
        def inside(*arguments: Any, **options: Any) -> Any:
            self._switch()
            self._open.append(phase)
            self.calls += 1
            try:
                return method(*arguments, **options)
            finally:
                self._switch()
                self._open.pop()

        return inside

    def _switch(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


@contextmanager
def watched() -> Iterator[Clock]:
    """Wrap everything that is timed."""
    clock = Clock()
    with ExitStack() as stack:
        for owner, name, phase in WRAPPED:
            stack.enter_context(replaced(owner, name, lambda method, phase=phase: clock.wrap(phase, method)))
        yield clock


def seconds_per_call(calls: int = 100_000) -> float:
    """Return what one wrapper costs."""

    def nothing() -> None:
        pass

    wrapped = Clock().wrap(PYTHON, nothing)
    return (
        timed(lambda: [wrapped() for _ in range(calls)])[0]
        - timed(lambda: [nothing() for _ in range(calls)])[0]
    ) / calls


def measure(problem: Problem, arguments: argparse.Namespace) -> dict[str, Any]:
    """Alternate between one thread and all, without and with wrappers."""
    found: dict[str, Any] = {
        str(threads): {"plain": [], "wrapped": [], "phases": {phase: [] for phase in PHASES}}
        for threads in sorted({1, arguments.threads})
    }
    for _ in range(arguments.repeats):
        for threads, one in found.items():
            task = partial(fit, problem, arguments.rounds, int(threads))
            one["plain"].append(timed(task)[0])
            with watched() as clock:
                one["wrapped"].append(timed(task)[0])
            for phase, seconds in clock.seconds.items():
                one["phases"][phase].append(seconds)
            one["calls"] = clock.calls
            common.note(f"{problem.name}, {threads}: {one['plain'][-1]:.4g} s, {one['wrapped'][-1]:.4g} s")
    return found


# -- floors ----------------------------------------------------------------------------------------------

ADDITIONS, SCATTERS, PRODUCTS = "additions", "scattered additions", "products"


@dataclass(frozen=True)
class Work:
    """What a phase cannot do without, in the whole fit."""

    bytes: float  #: read or written
    size: float  #: bytes of the arrays that are passed over: says in which cache they are
    operations: float = 0.0
    kind: str = ADDITIONS


@njit(cache=True)
def _additions(values, out, repeats):
    for _ in range(repeats):
        for i in range(len(out)):
            out[i] += values[i]


@njit(cache=True)
def _scatters(codes, weight, out, repeats):
    for _ in range(repeats):
        for i in range(len(codes)):
            out[codes[i]] += weight[i]


def fastest(task: Callable[[], Any], repeats: int = 9) -> float:
    """Return the least seconds of a few runs: a floor is what the machine can do."""
    task()
    stamps = [time.perf_counter()]
    for _ in range(repeats):
        task()
        stamps.append(time.perf_counter())
    return float(np.diff(stamps).min())


@cache
def bandwidth(size: int) -> float:
    """Return the bytes per second that a NumPy copy of `size` bytes reads and writes."""
    A, B = np.ones(size // 8 + 1), np.empty(size // 8 + 1)
    repeats = 1 + 20_000_000 // B.nbytes
    return 2 * B.nbytes * repeats / fastest(lambda: [np.copyto(B, A) for _ in range(repeats)])


@cache
def rate(kind: str, size: int) -> float:
    """Return the operations per second of one thread, from the simplest loop that does them."""
    rng, repeats = np.random.default_rng(0), 1000
    if kind == ADDITIONS:  # of float64, in the first-level cache
        values, out = np.ones(1024), np.zeros(1024)
        return len(out) * repeats / fastest(lambda: _additions(values, out, repeats))
    if kind == SCATTERS:  # of int64, at random places in a table of 255 rows
        codes, weight = rng.integers(255, size=4096).astype(np.uint8), np.ones(4096, np.int64)
        out = np.zeros(255, np.int64)
        return len(codes) * repeats / fastest(lambda: _scatters(codes, weight, out, repeats))
    n = math.isqrt(size // 8)  # multiply and add in a product of square matrices of so many bytes
    A = rng.random((n, n))
    with threadpool_limits(1):
        return n**3 / fastest(lambda: A @ A)


def count(problem: Problem, rounds: int) -> tuple[Counter[str], int]:
    """Return how often what was done in a fit, and the number of bins."""
    done: Counter[str] = Counter()

    def note(what: str) -> Callable[..., Any]:
        def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(method)
            def inside(*arguments: Any, **options: Any) -> Any:
                done[what] += 1
                return method(*arguments, **options)

            return inside

        return wrap

    def gradients(add: Callable[..., Any]) -> Callable[..., Any]:
        def inside(self: HistogramTarget, gradient: Gradient, scale: float = 1.0) -> None:
            since = getattr(gradient, "since", None)
            done["changed"] += len(problem.y) if since is None else len(since.rows)
            add(self, gradient, scale)

        return inside

    blocks: set[int] = set()

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def inside(self: PairTable, j: int) -> None:
            blocks.add(int(j))
            method(self, j)

        return inside

    with (
        replaced(LocalScores, "distance", note("looks")),
        replaced(LocalScores, "rescaled", note("looks")),
        replaced(Span, "whiten", note("edges")),
        replaced(MulticlassHinge, "advance", note("passes")),
        replaced(MulticlassHinge, "evaluate", note("ties")),
        replaced(Residual, "round", note("rounds")),
        replaced(HistogramTarget, "add", gradients),
        replaced(PairTable, "count", counted),
    ):
        model = fit(problem, rounds, 1)
    done["blocks"] = len(blocks)
    return done, int(model.model_.mapper.offsets[-1])


def work(problem: Problem, done: Counter[str], bins: int) -> dict[str, Work]:
    """Return the least work of each phase (`EXPLANATION` says it in words)."""
    (n, d), K = problem.X.shape, int(problem.y.max()) + 1
    scores, sums, codes = 8 * n * K, 8 * bins * K, n * d
    pairs = done["blocks"] * d - done["blocks"] * (done["blocks"] - 1) // 2
    T, comparisons = done["rounds"], codes * math.log2(max(bins / d, 2))
    found = {
        CHECKS: Work(problem.X.nbytes + problem.y.nbytes, problem.X.nbytes),
        CUTS: Work(problem.X.nbytes, problem.X.nbytes, comparisons),
        ENCODE: Work(problem.X.nbytes + codes, problem.X.nbytes, comparisons),
        PAIRS: Work(codes + 8 * bins**2 * done["blocks"] / d, 8 * bins**2, n * pairs, SCATTERS),
        SCORES: Work(done["passes"] * (2 * scores + n * 13), scores, done["passes"] * 3 * n * K),
        TIES: Work(done["ties"] * 2 * scores, scores, done["ties"] * 2 * n * K),
        CHANGES: Work(T * 2 * 4 * n, 4 * n),
        HISTOGRAM: Work(T * 3 * sums, sums, done["changed"] * 2 * d, SCATTERS),
        SEARCH: Work(T * sums, sums, T * 4 * bins * K),
        SUBTRACT: Work(T * (2 * sums + 2 * 8 * bins), sums, T * 2 * bins * K),
        STEP: Work(done["looks"] * scores, scores, done["looks"] * n * K),
    }
    if done["edges"]:
        operations = bins**3 / 3 + done["edges"] * bins**2 * K / 2
        found[SPAN] = Work(8 * bins**2, 8 * bins**2, operations, PRODUCTS)
    return found


EXPLANATION = f"""
- {CHECKS}: read X and y once.
- {CUTS}: read X; log2(bins) comparisons an entry, which is what it takes to tell its values apart.
- {ENCODE}: read X, write a byte for each entry; log2(bins) comparisons an entry.
- {PAIRS}: one addition for each row and pair of features, of the features that were split (the table is
  symmetric: each pair once); write the blocks of these features.
- {SCORES}: read and write the scores, read the row's bin and class, write its rival; add, maximum, compare.
- {TIES}: read the scores, write a dense subgradient; maximum and compare.
- {CHANGES}: read the old and the new rival of each row.
- {HISTOGRAM}: two entries of each feature for each row whose subgradient changed; read the histogram, read
  and write Δ.
- {SEARCH}: read Δ; four operations an entry (running sum, rest, two squares).
- {SUBTRACT}: read and write Δ, read two rows of the pair table; one multiply and add for each leaf and entry.
- {STEP}: read the scores each time the rule looks at them (distance travelled, ensemble enlarged).
- {SPAN}: a Cholesky factor of the pair table (bins³/3) and a triangular solve for each edge, at the rate of
  a matrix product.
- {HISTORY}, {PYTHON}: nothing is needed, no floor.
""".strip()


def floors(problem: Problem, done: Counter[str], bins: int) -> dict[str, dict[str, Any]]:
    """Return the floor of each phase in seconds, and whether bytes or which operations set it."""
    found = {}
    for phase, one in work(problem, done, bins).items():
        moving = one.bytes / bandwidth(int(one.size))
        doing = one.operations / rate(one.kind, int(one.size)) if one.operations else 0.0
        bound = "bytes" if moving >= doing else one.kind
        found[phase] = {"seconds": max(moving, doing), "bound": bound, "bytes": moving, "operations": doing}
    return found


# -- the page --------------------------------------------------------------------------------------------


def phases_table(one: dict[str, Any]) -> str:
    counts, floor = list(one["threads"]), one["floors"]
    first = one["threads"][counts[0]]["phases"]
    total = sum(median(s) for s in first.values())
    many = [f"{count} threads, ms" for count in counts[1:]]
    rows = []
    seen = [phase for phase in PHASES if any(first[phase])]
    for phase in sorted(seen, key=lambda phase: -median(first[phase])):
        seconds = [median(one["threads"][count]["phases"][phase]) for count in counts]
        low = floor.get(phase)
        rows.append(
            [
                phase,
                number(1e3 * seconds[0]),
                f"{100 * seconds[0] / total:.1f} %",
                *(number(1e3 * s) for s in seconds[1:]),
                number(1e3 * low["seconds"]) if low else "",
                low["bound"] if low else "",
                number(seconds[0] / low["seconds"]) if low else "",
            ]
        )
    lowest = sum(low["seconds"] for low in floor.values())
    sums = [sum(median(s) for s in one["threads"][count]["phases"].values()) for count in counts]
    rows.append(
        [
            "**all**",
            number(1e3 * sums[0]),
            "100 %",
            *(number(1e3 * s) for s in sums[1:]),
            number(1e3 * lowest),
            "",
            number(sums[0] / lowest),
        ]
    )
    return table(("phase", "1 thread, ms", "share", *many, "floor, ms", "set by", "distance"), rows)


def overhead(threads: str, one: dict[str, Any], cost: float) -> str:
    """Say what the wrappers took: as measured, and as calls times the cost of a call."""
    plain, wrapped = median(one["plain"]), median(one["wrapped"])
    share = one["calls"] * cost / plain
    return (
        f"{threads} thread{'s' * (threads != '1')}: fit without wrappers {number(1e3 * plain)} ms, with them "
        f"{number(1e3 * wrapped)} ms ({100 * (wrapped / plain - 1):+.1f} %); {one['calls']:,} calls of a "
        f"wrapper at {number(1e9 * cost)} ns are {100 * share:.1f} % (at most "
        f"{100 * OVERHEAD:g} %: {common.verdict(share <= OVERHEAD)})."
    )


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    parts = [
        f"Multiclass hinge, `residual`, stumps, {arguments.rounds} rounds; medians of {arguments.repeats} "
        "repeats. Distance: one thread / floor. The floor is for one thread: the larger of bytes moved (at "
        "the rate of a NumPy copy of that size) and operations (at the rate of the simplest loop that does "
        "them), both rates measured in this run. A phase inside another one is counted once, as itself."
    ]
    for name, one in results["data"].items():
        n, d, K, bins = one["shape"]
        parts += [
            f"## {name}",
            f"{n:,} rows, {d} features, {K} classes, {bins:,} bins; {100 * one['changed']:.2g} % of the rows "
            "change their subgradient in a round (mean of all rounds).",
            phases_table(one),
            *(overhead(count, found, one["seconds_per_call"]) for count, found in one["threads"].items()),
        ]
    return "\n\n".join([*parts, "## What the floors count", EXPLANATION])


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--data", nargs="+", choices=SETS, default=SETS)
    arguments = common.parse(parser, rounds=20, data=("pendigits",))
    found = {}
    for name in arguments.data:
        problem = Problem.load(name)
        fit(problem, 3, arguments.threads)  # compiles
        done, bins = count(problem, arguments.rounds)
        found[name] = {
            "shape": [*problem.X.shape, int(problem.y.max()) + 1, bins],
            "changed": done["changed"] / done["rounds"] / len(problem.y),
            "floors": floors(problem, done, bins),
            "seconds_per_call": seconds_per_call(),
            "threads": measure(problem, arguments),
        }
    results = {"data": found}
    common.publish(arguments, "phases", "Where the time of a fit goes", page(results, arguments), results)


if __name__ == "__main__":
    main()
