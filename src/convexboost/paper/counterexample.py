"""Two points on which Algorithm 1 fails and Algorithms 2 and 3 do not: the example in Section 4 of the paper.

R[f] = ½ (a_1 |f(x_1)| + a_2 |f(x_2)|) with a_1 > a_2, and H has one function for each point.  Naive boosting
always projects on the steeper point: f(x_1) tends to 0 and f(x_2) never moves, whatever the step sizes,
although every edge is large.  With slopes 2 and 0.9 no two projections are ever equally long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexboost.boosting.algorithms import Algorithm
from convexboost.boosting.steps import Step
from convexboost.boosting.training import Callback, Result, boost
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.learners.finite import FiniteSet
from convexboost.losses._loss import RowLoss
from convexboost.paper import bounds
from convexboost.paper.curve import PAPER
from convexboost.paper.study import Curve, Results, Study, Unit, line_figure
from convexboost.reports.content import Comparison, Line, Section, Table, Text, Verdict, verdict


class Slopes(RowLoss):
    """l(f, a) = a |f|: the target of a row is its slope.

    At the kink +a: with 0 there, a step that hits the kink exactly would let naive boosting escape.
    """

    name: ClassVar[str] = "slopes"
    task: ClassVar[str] = "regression"
    has_best_constant = True

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return a |f| and a sgn f."""
        return (y * np.abs(F)).sum(axis=1), np.where(F >= 0.0, y, -y)

    def constants(self, n_outputs: int) -> Constants:
        """Return the minimum; the Lipschitz constant depends on the slopes."""
        return Constants(minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return 0."""
        return np.zeros(n_outputs)


@dataclass(frozen=True)
class TwoPointRun:
    """What happened."""

    result: Result
    points: Array  #: f_0 … f_T, shape (n_rounds + 1, number of points)

    @property
    def objective(self) -> Array:
        """Return R[f_0] … R[f_T]."""
        return self.result.history["objective"]


def run(
    algorithm: str | Algorithm,
    n_rounds: int,
    slopes: Sequence[float] = (2.0, 0.9),
    step: str | Step = "inverse_sqrt",
    start: float = 1.0,
    callbacks: Sequence[Callback] = (),
) -> TwoPointRun:
    """Boost from f_0 = `start` at every point."""
    space = FunctionSpace.of(len(slopes))
    rows = np.arange(len(slopes))
    result = boost(
        Slopes().bind(slopes, space),
        FiniteSet(np.eye(len(slopes))[:, :, None], space),
        algorithm=algorithm,
        step=step,
        n_rounds=n_rounds,
        output="last",
        start=np.array([start]),
        callbacks=callbacks,
    )
    first = result.path.truncate(0).predict(rows)
    return TwoPointRun(result, np.array([first, *result.path.staged_predict(rows)])[:, :, 0])


# --- The study ---------------------------------------------------------------------------------------------

PRINTED, NO_TIES = (2.0, 1.0), (2.0, 0.9)
EDGE = np.sqrt(0.5)  #: of two orthogonal functions, whatever is projected
FAR = 10.0
QUICK = 1000


def study(quick: bool = False) -> Study:
    """Return the three algorithms on the paper's slopes and on slopes without ties."""
    rounds = QUICK if quick else 5000
    units = [_unit(algorithm, slopes, 1.0, rounds) for slopes in (PRINTED, NO_TIES) for algorithm in PAPER]
    return Study(
        "counterexample",
        "The counter-example",
        INTRO,
        {"rounds": rounds, "step": "ηₜ = 1/√t", "f₀": "1 at both points, and 10 in one run"},
        [*units, _unit("naive", PRINTED, FAR, rounds)],
        sections,
        verdicts,
    )


INTRO = """
Two points, and a hypothesis for each: `R[f] = ½ (a₁ |f(x₁)| + a₂ |f(x₂)|)`. The paper has a₁ = 2 and a₂ = 1
(its sum is our mean, doubled). With a₂ = 0.9 no two projections are ever equally long, so rounding decides
nothing. The minimum is 0. In every round naive boosting projects the subgradient on the steeper point.
"""


def _key(algorithm: str, slopes: tuple[float, float], start: float = 1.0) -> str:
    words = "printed" if slopes == PRINTED else "no-ties"
    return f"{algorithm}-{words}" if start == 1.0 else f"{algorithm}-{words}-far"


def _unit(algorithm: str, slopes: tuple[float, float], start: float, rounds: int) -> Unit:
    settings = {
        "algorithm": algorithm,
        "dataset": f"slopes {slopes[0]:g} and {slopes[1]:g}",
        "start": start,
        "step": "inverse_sqrt",
        "rounds": rounds,
    }

    def run_unit(callback: Callback) -> Curve:
        found = run(algorithm, rounds, slopes, start=start, callbacks=[callback])
        return _curve(found, algorithm, slopes, settings["dataset"])

    title = f"{algorithm}, {settings['dataset']}, f₀ = {start:g}"
    # Two projections find everything, so a round of `repeated` has at most two.
    total = rounds * (2 if algorithm == "repeated" else 1)
    return Unit(_key(algorithm, slopes, start), title, run_unit, settings, total)


def _curve(found: TwoPointRun, algorithm: str, slopes: tuple[float, float], dataset: Any) -> Curve:
    """Averages and bounds are over x_1 … x_T, where the subgradients were taken; x_1 is the start."""
    R, points = found.objective, found.points
    T = len(R) - 1
    t = np.arange(1, T + 1)
    average = np.cumsum(R[:-1]) / t
    distance = np.sqrt(np.mean(points[:-1] ** 2, axis=1))
    G = float(np.sqrt(np.mean(np.square(slopes))))
    facts = {
        "moves of f(x₂)": int(np.count_nonzero(np.diff(points[:, 1]))),
        "f(x₁)": points[-1, 0],
        "|f(x₁)|": abs(points[-1, 0]),
        "f(x₂)": points[-1, 1],
        "average objective": average[-1] if T else R[0],
        "lowest objective": R.min(),
        "last step on x₁": slopes[0] / np.sqrt(max(T, 1)),
        "floor": slopes[1] * abs(points[0, 1]) / 2,
        "smallest edge": float(np.nanmin(found.result.history["edge"][1:], initial=1.0)),
    }
    columns = {"average_objective": np.append(np.nan, average), "f1": points[:, 0], "f2": points[:, 1]}
    theorems = {"repeated": bounds.printed_5, "residual": bounds.printed_7}
    ours = {"repeated": bounds.theorem_h_a_priori, "residual": bounds.theorem_a_a_priori}
    if algorithm in theorems and T:
        arguments = (1 / np.sqrt(t), distance, G, EDGE)
        columns["printed_bound"] = np.append(np.nan, theorems[algorithm](*arguments).curve)
        columns["bound"] = np.append(np.nan, ours[algorithm](*arguments).curve)
        facts["largest share of the printed bound"] = np.max(average / columns["printed_bound"][1:])
        facts["largest share of the bound"] = np.max(average / columns["bound"][1:])
    variant = "" if points[0, 0] == 1.0 else f"f₀ = {points[0, 0]:g}"
    return Curve.of(
        found.result.history, str(dataset), algorithm, variant=variant, facts=facts, extras=columns
    )


CONSTANTS = "F is the largest distance to the optimum on the way, G the length of the subgradient, γ = 1/√2."


def verdicts(results: Results) -> list[Verdict]:
    """Decide what Section 4 says about the example."""
    naive, far = _key("naive", PRINTED), _key("naive", PRINTED, FAR)
    fact = results.fact

    def never_moves(key: str, words: str) -> Comparison:
        return Comparison(
            f"{words}: rounds in which naive moved f(x₂)", fact(key, "moves of f(x₂)"), "=", 0.0
        )

    def below_the_floor(algorithm: str, slopes: tuple[float, float]) -> Comparison:
        key = _key(algorithm, slopes)
        return Comparison(
            f"a₂ = {slopes[1]:g}: average objective of {algorithm}",
            fact(key, "average objective"),
            "<",
            fact(key, "floor"),
            "½ a₂ |f₀(x₂)|, which naive cannot go below",
        )

    def within(algorithm: str, slopes: tuple[float, float]) -> Comparison:
        value = fact(_key(algorithm, slopes), "largest share of the printed bound")
        words = f"a₂ = {slopes[1]:g}: largest ratio, over all T, of the left side to the right side"
        return Comparison(words, value, "≤", 1.0)

    both = (PRINTED, NO_TIES)
    return [
        verdict(
            "The algorithm will always select h* such that h*(x₂) = 0 when projecting gradients from the "
            "example objective, giving a final function with perfect performance on x₁ and arbitrarily poor "
            "unchanged performance on x₂.",
            never_moves(naive, "a₂ = 1"),
            never_moves(_key("naive", NO_TIES), "a₂ = 0.9"),
            Comparison(
                "|f(x₁)| at the end of naive",
                fact(naive, "|f(x₁)|"),
                "≤",
                fact(naive, "last step on x₁"),
                "the length of the last step, a₁/√T",
            ),
            Comparison("from f₀ = 1: f(x₂) at the end of naive", fact(naive, "f(x₂)"), "=", 1.0),
            Comparison("from f₀ = 10: f(x₂) at the end of naive", fact(far, "f(x₂)"), "=", FAR),
            source="Section 4.1",
            note="The subgradient at a kink is taken as +a: with 0 there, a step that hits the kink exactly "
            "lets the naive algorithm escape.",
        ),
        verdict(
            "Even if the loss on training point x₂ is substantial, the naive algorithm will not correct it.",
            Comparison(
                "from f₀ = 10: lowest objective of naive",
                fact(far, "lowest objective"),
                "≥",
                fact(far, "floor"),
                "½ a₂ |f₀(x₂)|, the loss on x₂ at the start",
            ),
            source="Section 4.1",
        ),
        verdict(
            "The algorithms in the next section overcome this obstacle by projecting modified versions of "
            "the subgradients of the objective at each iteration.",
            *(below_the_floor(algorithm, slopes) for algorithm in PAPER[1:] for slopes in both),
            source="Section 4.1",
            note="The average is over the points where subgradients were taken, as in the paper's theorems.",
        ),
        verdict(
            "… after T iterations of Algorithm 2 we have: 1/T Σ [R[fₜ] − R[f*]] ≤ "
            "F²/2√T + G²/√T + 2FG (1−γ²)/γ².",
            *(within("repeated", slopes) for slopes in both),
            source="Theorem 5",
            note=CONSTANTS,
        ),
        verdict(
            "… after T iterations of Algorithm 3 we have: 1/T Σ [R[fₜ] − R[f*]] ≤ "
            "F²/2√T + c²G²/√T + c²G²/2T√T.",
            *(within("residual", slopes) for slopes in both),
            source="Theorem 7",
            note=CONSTANTS,
        ),
    ]


def sections(results: Results) -> list[Section]:
    """Show the objectives, the path of f(x₂), and the bounds."""
    near = [
        results[key] for slopes in (PRINTED, NO_TIES) for a in PAPER if (key := _key(a, slopes)) in results
    ]
    printed = [c for c in near if results.get(_key(c.algorithm, PRINTED)) is c]
    without = [c for c in near if c not in printed]
    figures = [
        line_figure(
            f"Average objective, {words}",
            curves,
            "average_objective",
            x="gradient_evaluations",
            extra=_floor(curves),
        )
        for words, curves in (("a₂ = 1, as printed", printed), ("a₂ = 0.9", without))
    ]
    paths = [
        line_figure(f"f(x{n})", without, column, x="gradient_evaluations", ylabel=f"f(x{n})", log_y=False)
        for n, column in (("₁", "f1"), ("₂", "f2"))
    ]
    return [
        Section(
            "Objective",
            [
                Text(
                    "The mean of R over the points where a subgradient was taken. The dotted line is what "
                    "the naive algorithm cannot go below, because it never moves f(x₂)."
                ),
                *figures,
                _table(results),
            ],
        ),
        Section("The two points", [Text("The function itself, a₂ = 0.9."), *paths]),
        Section("Bounds", [Text(BOUNDS), *_bound_figures(without)]),
    ]


BOUNDS = """
What the theorems allow, beside what happened (a₂ = 0.9). *Printed* is the paper's bound; the other one is its
corrected form, which `docs/paper-map.md` derives. Both know only the largest distance to the optimum, the
length of the subgradients and the edge.
"""


def _floor(curves: Sequence[Curve]) -> list[Line]:
    known = [c for c in curves if "floor" in c.facts]
    if not known:
        return []
    t, floor = known[0]["gradient_evaluations"], known[0].facts["floor"]
    return [Line("floor of naive", [1, t[-1]], [floor, floor], "floor", "dot")]


def _bound_figures(curves: Sequence[Curve]) -> list[Any]:
    found = []
    for curve in curves:
        if "bound" in curve.columns:
            t = curve["gradient_evaluations"][1:]
            lines = [
                Line("corrected bound", t, curve["bound"][1:], curve.algorithm, "dash"),
                Line("printed bound", t, curve["printed_bound"][1:], curve.algorithm, "dot"),
            ]
            title = f"Average gap of {curve.algorithm} and its bounds"
            found.append(
                line_figure(
                    title, [curve], "average_objective", x="gradient_evaluations", ylabel="gap", extra=lines
                )
            )
    return found


def _table(results: Results) -> Table:
    names = ("average objective", "lowest objective", "f(x₁)", "f(x₂)", "moves of f(x₂)", "smallest edge")
    rows = [(c.name, c.dataset, *(c.facts.get(name, np.nan) for name in names)) for c in results.values()]
    return Table(("algorithm", "slopes", *names), rows)
