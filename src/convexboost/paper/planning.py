"""Figure 1 of the paper: maximum margin planning, networks with five hidden units, the three algorithms.

Real terrain (an elevation grid that ships with Matplotlib) and a game level (which needs the data folder).
The demonstrations are drawn several times, so that no answer hangs on one draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from convexboost.boosting.training import Callback
from convexboost.core.hypotheses import Direction
from convexboost.core.model import AdditiveModel
from convexboost.core.space import Array
from convexboost.learners.network import Network
from convexboost.paper.claims import Repetitions, Trio, below, ours
from convexboost.paper.curve import AXES, LABELS, NEW, PAPER, spaced_rounds
from convexboost.paper.study import Curve, Results, Study, Unit
from convexboost.planning import Map, MaxMarginPlanner, Path, Problem, agreement, draw_paths, problem
from convexboost.planning.loss import Scene, maximum_margin
from convexboost.planning.problems import NOISE, Shown
from convexboost.reports.content import (
    Block,
    Comparison,
    ImageFigure,
    Line,
    LineFigure,
    Section,
    Table,
    Text,
    Verdict,
    number,
    verdict,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"elevation": "Real terrain", "terrain": "A game level"}
#: η_t = scale/√t.  The theorems have scale 1; costs have another unit here, so smaller ones are tried too.
PRINTED = "1"
SCALES = (PRINTED, "0.1", "0.01")
AUTO = "auto"  #: the library's own step, shown beside them
#: At an edge of 0.04 it takes about 1/(2 · edge²) ≈ 300 networks to fit most of a gradient.  1,225 networks
#: are 49 rounds of `repeated`, 15 are five.
BUDGET, QUICK_BUDGET, DRAWS = 1_225, 15, 3
LOOKS = 40  #: in how many rounds the test regions are looked at, evenly on a logarithmic axis
MAX_ROWS = 6_000  #: that a network sees
SIZE = (4.6, 5.0)  #: of a picture
HALVES = ("first", "second")  #: of the test regions


# --- One run -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanningRun:
    """What is trained."""

    problem: str
    algorithm: str
    step: str  #: "auto", or a scale
    draw: int
    weak_learners: int
    quick: bool

    @property
    def key(self) -> str:
        """Return the name of the unit."""
        return f"{self.problem}-{self.algorithm}-{self.step.replace('.', '_')}-{self.draw}"

    @property
    def words(self) -> str:
        """Return the step in words."""
        return {AUTO: "auto", PRINTED: "1/√t"}.get(self.step, f"{self.step}/√t")

    def unit(self) -> Unit:
        """Return the unit."""
        settings = {
            "dataset": self.problem,
            "algorithm": self.algorithm,
            "step": self.step,
            "draw": self.draw,
            "weak_learners": self.weak_learners,
            "quick": self.quick,
            "looks": LOOKS,
            "max_rows": MAX_ROWS,
        }
        title = f"{TITLES[self.problem]}, draw {self.draw + 1}, {self.algorithm}, {self.words}"
        return Unit(self.key, title, lambda callback: train(self, callback), settings, self.weak_learners)


def data(name: str, quick: bool, draw: int) -> Problem:
    """Make a problem, or take the last one again."""
    if isinstance(found := _data(name, quick, draw), Problem):
        return found
    raise found


@lru_cache(maxsize=1)
def _data(name: str, quick: bool, draw: int) -> Problem | OSError:
    """Remember also that there are no data: asking for them takes a while."""
    try:
        return problem(name, quick, draw)
    except OSError as error:
        return error


def train(run: PlanningRun, callback: Callback) -> Curve:
    """Learn costs; then follow them round by round, on the training and on the test regions."""
    task = data(run.problem, run.quick, run.draw)
    model = MaxMarginPlanner(
        task.planner,
        learner=Network(max_rows=MAX_ROWS),
        algorithm=run.algorithm,
        step=AUTO if run.step == AUTO else f"inverse_sqrt:{run.step}",
        n_rounds=run.weak_learners,
        max_weak_learners=run.weak_learners,
        output="last",
        softness=task.softness,
        random_state=run.draw,
        callbacks=[callback],
    ).fit(*task.train)
    history = model.history_
    best = int(np.argmin(history["objective"]))
    rounds = sorted({best, *spaced_rounds(history["weak_learners"], LOOKS)})
    columns = {name: np.full(len(history["objective"]), np.nan) for name in MEASURED}
    for shown, name in ((task.train, "average_objective"), (task.test, "average_test")):
        ground = Ground.of(task, shown)
        for t, costs, average in followed(model.model_, ground.features, rounds):
            columns[name][t] = ground.objective(average)
            if shown is task.test:
                for column, value in measured(task, ground, costs).items():
                    columns[column][t] = value
    before, after = (Ground.of(task, task.test).plans(model.model_.truncate(t)) for t in (0, best))
    facts: dict[str, Any] = {
        "best round": best,
        "stopped": model.stop_reason_,
        "maps": [len(task.train.maps), len(task.test.maps)],
        "demonstrations": [task.train.n_demonstrations, task.test.n_demonstrations],
        "of the demonstrations": task.excess(task.test, task.test.demonstrations),
        "picture": _picture(task, before, after),
    }
    columns["edge"] = history["edge"]
    return Curve.of(history, run.problem, run.algorithm, variant=run.words, facts=facts, extras=columns)


@dataclass(frozen=True)
class Ground:
    """Regions with their demonstrations, cell by cell."""

    task: Problem
    shown: Shown
    scenes: tuple[Scene, ...]

    @classmethod
    def of(cls, task: Problem, shown: Shown) -> Ground:
        """Number the cells."""
        scenes = (
            Scene.of(map, paths, task.planner, task.softness) for map, paths in zip(*shown, strict=True)
        )
        return cls(task, shown, tuple(scenes))

    @property
    def features(self) -> Array:
        """Return the features of all cells."""
        return np.concatenate([scene.features for scene in self.scenes])

    def part(self, which: slice) -> Ground:
        """Return some of the regions."""
        shown = Shown(self.shown.maps[which], self.shown.demonstrations[which])
        return Ground(self.task, shown, self.scenes[which])

    def of_part(self, which: slice, costs: Array) -> Array:
        """Return the costs of the cells of some regions."""
        ends = np.cumsum([len(scene.cells) for scene in self.scenes])
        return np.concatenate(np.split(costs, ends[:-1])[which])

    def objective(self, costs: Array) -> float:
        """Return the objective of maximum margin planning."""
        return maximum_margin(self.scenes, self.task.planner).value(costs)

    def planned(self, costs: Array) -> list[list[Path]]:
        """Plan between the ends of each demonstration."""
        found, begin = [], 0
        for scene in self.scenes:
            grid, begin = np.full(scene.map.shape, np.inf), begin + len(scene.cells)
            grid.ravel()[scene.cells] = costs[begin - len(scene.cells) : begin, 0]
            found.append([self.task.planner.plan(grid, path.start, path.goal) for path in scene.paths])
        return found

    def plans(self, model: AdditiveModel) -> list[list[Path]]:
        """Plan with the costs of a model."""
        return self.planned(model.predict(self.features))


def followed(
    model: AdditiveModel, features: Array, rounds: Iterable[int]
) -> Iterator[tuple[int, Array, Array]]:
    """Yield round, costs and the mean of the costs in all rounds before, for some rounds.

    The mean is that of the points where a subgradient was taken, the output "average" of the library.
    """
    inputs, wanted = model.mapper.prepare(features), set(rounds)
    F = np.zeros((len(features), len(model.start)))
    total = np.zeros_like(F)
    for t in range(model.n_rounds + 1):
        if t > 0:
            Direction(tuple(model.terms[model.ends[t - 1] : model.ends[t]]), math.nan).add_to(F, inputs)
        costs = model.start + model.multipliers[t] * F
        if t in wanted:
            yield t, costs, total / t if t > 0 else costs
        total += costs


#: What is measured in some rounds: training objective of the average; test objective of the average; test
#: objective and agreement on either half of the test regions; excess.
MEASURED = (
    "average_objective",
    "average_test",
    "test_objective",
    "agreement",
    "excess",
    *(f"{what}_{half}" for what in ("test", "agreement") for half in HALVES),
)


def halves(count: int) -> dict[str, slice]:
    """Cut the test regions into two parts of the map."""
    return {"first": slice(None, count // 2), "second": slice(count // 2, None)}


def measured(task: Problem, ground: Ground, costs: Array) -> dict[str, float]:
    """Return what the test regions say about costs, as a whole and by halves."""
    plans = ground.planned(costs)
    found = {
        "test_objective": ground.objective(costs),
        "agreement": float(np.mean(agreements(plans, ground.shown.demonstrations))),
        "excess": task.excess(ground.shown, plans),
    }
    for half, which in halves(len(ground.scenes)).items():
        part = ground.part(which)
        found[f"test_{half}"] = part.objective(ground.of_part(which, costs))
        found[f"agreement_{half}"] = float(np.mean(agreements(plans[which], part.shown.demonstrations)))
    return found


def agreements(plans: Sequence[Sequence[Path]], demonstrations: Sequence[Sequence[Path]]) -> list[float]:
    """Return the agreement of each plan with its demonstration."""
    pairs = zip(plans, demonstrations, strict=True)
    return [agreement(*pair) for paths, shown in pairs for pair in zip(paths, shown, strict=True)]


def _picture(task: Problem, before: list[list[Path]], after: list[list[Path]]) -> dict[str, Any]:
    """Keep the demonstration that is imitated worst before learning, and both plans."""
    shown = [(m, i) for m, paths in enumerate(before) for i in range(len(paths))]
    m, i = shown[int(np.argmin(agreements(before, task.test.demonstrations)))]
    paths = {"shown": task.test.demonstrations[m][i], "before": before[m][i], "after": after[m][i]}
    return {"map": m} | {name: path.cells.tolist() for name, path in paths.items()}


# --- What a curve says -------------------------------------------------------------------------------------


def at_best(curve: Curve, column: str) -> float:
    """Return a number in the round with the lowest training objective; NaN where there is none."""
    best = int(np.argmin(curve["objective"]))
    return float(curve[column][best]) if column in curve.columns else math.nan


def at_last(curve: Curve, column: str) -> float:
    """Return a number in the last round; NaN where there is none."""
    return float(curve[column][-1]) if column in curve.columns else math.nan


def validated(curves: Sequence[Curve], what: str) -> float:
    """Choose run and round on one half of the test regions, judge on the other; mean of both ways."""
    values = []
    for chosen_on, judged_on in (HALVES, HALVES[::-1]):
        run = min(curves, key=lambda curve: np.nanmin(curve[f"test_{chosen_on}"]))
        values.append(run[f"{what}_{judged_on}"][int(np.nanargmin(run[f"test_{chosen_on}"]))])
    return float(np.mean(values))


def passes(new: Curve, old: Curve) -> float:
    """Return after how many weak learners the lowest training objective is below the other's for good."""
    counts = np.unique(np.concatenate([new["weak_learners"], old["weak_learners"]]))

    def lowest(curve: Curve) -> Array:
        so_far = np.minimum.accumulate(curve["objective"])
        return so_far[np.searchsorted(curve["weak_learners"], counts, side="right") - 1]

    behind = np.flatnonzero(lowest(new) >= lowest(old))
    if len(behind) == 0:
        return float(counts[0])
    return float(counts[behind[-1] + 1]) if behind[-1] + 1 < len(counts) else math.nan


@dataclass(frozen=True)
class PlanningRuns:
    """Which runs."""

    problems: tuple[str, ...]
    scales: tuple[str, ...]
    draws: int
    weak_learners: int
    quick: bool

    def run(self, name: str, algorithm: str, step: str, draw: int) -> PlanningRun:
        """Return one of them."""
        return PlanningRun(name, algorithm, step, draw, self.weak_learners, self.quick)

    def units(self) -> list[Unit]:
        """Return all runs, the same draw together; the library's own step at last, on the first draw only."""
        runs = [
            self.run(name, algorithm, step, draw)
            for draw in range(self.draws)
            for name in self.problems
            for algorithm in PAPER
            for step in self.scales
        ]
        runs += [self.run(name, algorithm, AUTO, 0) for name in self.problems for algorithm in PAPER]
        return [run.unit() for run in runs]

    def tried(self, results: Results, name: str, algorithm: str, draw: int) -> list[Curve]:
        """Return the finished runs with 1/√t, one for each scale; none unless all are there."""
        keys = [self.run(name, algorithm, scale, draw).key for scale in self.scales]
        there = results.complete
        return [there[key] for key in keys] if all(key in there for key in keys) else []

    def chosen(self, results: Results, name: str, algorithm: str, draw: int) -> Curve | None:
        """Return the run with the scale that is best by training objective; None unless all are there."""
        return min(self.tried(results, name, algorithm, draw), key=Curve.lowest, default=None)

    def all_chosen(self, results: Results, name: str, algorithm: str) -> list[Curve]:
        """Return the chosen runs of all draws that are there."""
        found = (self.chosen(results, name, algorithm, draw) for draw in range(self.draws))
        return [curve for curve in found if curve is not None]

    def trio(self, results: Results, name: str, draw: int, step: str = "") -> Trio:
        """Return the finished runs of a draw with a step; by default with the scale that is best for each."""
        there = results.complete
        if step:
            found = {a: there.get(self.run(name, a, step, draw).key) for a in PAPER}
        else:
            found = {a: self.chosen(results, name, a, draw) for a in PAPER}
        return {algorithm: curve for algorithm, curve in found.items() if curve is not None}

    def repetitions(self, results: Results, step: str = "", setting: str = "") -> Repetitions:
        """Return what the rules look at."""
        groups = {
            TITLES[name]: [self.trio(results, name, draw, step) for draw in range(self.draws)]
            for name in self.problems
        }
        return Repetitions(groups, "draw", setting)


# --- The study ---------------------------------------------------------------------------------------------


def study(quick: bool = False) -> Study:
    """Return the runs; quick: few small regions, few weak learners, one draw."""
    scales, draws, weak_learners = (SCALES, 1, QUICK_BUDGET) if quick else (SCALES, DRAWS, BUDGET)
    plan = PlanningRuns(tuple(TITLES), scales, draws, weak_learners, quick)
    settings = {
        "real terrain": "the elevation grid that ships with Matplotlib; paths go right, or diagonally right",
        "a game level": "types of ground, from the data folder; paths of bounded length",
        "demonstrations": f"the best paths for hidden costs, seen with a noise of {NOISE:.0%}; regions for "
        "testing are disjoint from those for training",
        "draws": f"{plan.draws}, of ends and noise of the demonstrations and of the networks' random starts",
        "objective": f"maximum margin planning; cells less than {Problem.softness:g} away from a shown "
        "path are not quite wrong; no regularisation",
        "weak learner": f"network with 5 hidden units, trained on {MAX_ROWS:,} cells",
        "weak learners": f"{plan.weak_learners:,}; no run is stopped early",
        "step": f"ηₜ = scale/√t with the scales {', '.join(plan.scales)}; beside it auto, on the first draw",
        "looks at the test regions": f"in about {LOOKS} rounds, evenly on a logarithmic axis",
    }
    return Study(
        "planning",
        "Planning (Figure 1)",
        INTRO + (QUICK if quick else ""),
        settings,
        plan.units(),
        lambda results: sections(results, plan),
        lambda results: verdicts(results, plan),
    )


INTRO = """
Someone demonstrates paths across a map. Which costs of the ground make these the best paths? A cost of
every cell is learned from what the cell looks like (how steep it is, where it faces, how far the water is),
such that each demonstrated path is cheaper than every other path between the same ends, by a margin that
grows with how far off the other path is. That is *maximum margin planning*. Its objective is convex and has
kinks: a planner finds the best rival of each demonstration, and the subgradient raises the cost along
the rival and lowers it along the demonstration. Each weak learner is a network with five hidden units that is
fitted to it. *Naive* boosting forgets what the network could not fit; *repeated* fits further networks to
the rest before it moves; *residual* carries the rest over to the next round.

The learned costs are then used on regions that were not shown. There the figures ask for the same objective
(the paper's Figure 1), for the share of the demonstrated cells that the plan visits (agreement), and for what
the plan costs beyond the best path under the hidden costs that made the demonstrations (excess).

The text of the paper draws no conclusion from its Figure 1. The sentences below are those that it says about
its experiments or algorithms in general. They are judged with the step of its theorems, 1/√t. Costs have
another unit here than in the paper, so the same is asked with the best of several scales, under *Our own
questions and settings*.
"""

QUICK = """
**This is the quick version**, with few small regions, few weak learners and one draw: the answers can differ.
"""


# --- Verdicts ----------------------------------------------------------------------------------------------

BY_TRAINING = "scale/√t, the scale with the lowest training objective"
BY_VALIDATION = "scale and round chosen on one half of the test regions, judged on the other"


def verdicts(results: Results, plan: PlanningRuns) -> list[Verdict]:
    """Judge the paper's sentences with its step; then with the best scale, and by validation."""
    printed = plan.repetitions(results, PRINTED, "1/√t")
    scaled = plan.repetitions(results, "", BY_TRAINING)
    return [
        *_of_the_paper(printed),
        *map(ours, _of_the_paper(scaled)),
        ours(_validated(results, plan)),
        ours(_learned(results, plan)),
    ]


def _of_the_paper(found: Repetitions) -> list[Verdict]:
    note = "The iterate is the one with the lowest training objective."
    return [found.outperform(held_out, "test objective", note), found.need(), found.rarely()]


def _validated(results: Results, plan: PlanningRuns) -> Verdict:
    """Ask who is better on the test regions if a validation set stops training in time."""

    def value(name: str, algorithm: str, draw: int) -> float:
        tried = plan.tried(results, name, algorithm, draw)
        return validated(tried, "test") if tried else math.nan

    def comparison(name: str, new: str) -> Comparison:
        values = np.array([[value(name, a, draw) for a in (new, "naive")] for draw in range(plan.draws)])
        count = float((values[:, 0] < values[:, 1]).sum()) if not np.isnan(values).any() else math.nan
        words = f"{TITLES[name]}: draws in which {new} has less test objective than naive"
        return Comparison(words, count, ">", plan.draws / 2, f"half of {plan.draws}")

    return verdict(
        "On the test regions, too, the new algorithms are often better, if validation ends training in time.",
        *(comparison(name, new) for name in plan.problems for new in NEW),
        source=BY_VALIDATION,
    )


def _learned(results: Results, plan: PlanningRuns) -> Verdict:
    def comparisons(name: str, algorithm: str) -> list[Comparison]:
        curves = plan.all_chosen(results, name, algorithm)
        whole = len(curves) == plan.draws

        def mean(of: Callable[[Curve], float]) -> float:
            return float(np.mean([of(curve) for curve in curves])) if whole else math.nan

        title = f"{TITLES[name]}, {algorithm}"
        after, before = (mean(of) for of in (_best("agreement"), _first("agreement")))
        end, start = (mean(of) for of in (held_out, _first("test_objective")))
        return [
            Comparison(f"{title}: agreement on the test regions", after, ">", before, "before learning"),
            Comparison(f"{title}: objective on the test regions", end, "<", start, "before learning"),
        ]

    return verdict(
        "Every algorithm learns costs that imitate better on regions that were not shown, and lowers the "
        "objective there.",
        *(c for name in plan.problems for algorithm in PAPER for c in comparisons(name, algorithm)),
        source=BY_TRAINING,
        note="The paper states it as the goal of its experiment, not as a result.",
    )


def held_out(curve: Curve) -> float:
    """Return the objective on the test regions, of the iterate with the lowest training objective."""
    return at_best(curve, "test_objective")


def _first(column: str) -> Callable[[Curve], float]:
    return lambda curve: float(curve[column][0])


def _best(column: str) -> Callable[[Curve], float]:
    return lambda curve: at_best(curve, column)


# --- Figures -----------------------------------------------------------------------------------------------


def sections(results: Results, plan: PlanningRuns) -> list[Section]:
    """Say what holds where; show each map, the step sizes, and what differs from the paper."""
    found = [Section("What holds where", [Text(WHERE), *_where(results, plan)])]
    found += [section for name in plan.problems for section in _sections(results, plan, name)]
    steps: list[Block] = [Text(STEPS), *_scale_tables(results, plan)]
    different = Text("\n".join(f"- {words}" for words in DIFFERENT))
    return [*found, Section("Step sizes", steps), Section("What differs from the paper", [different])]


WHERE = """
In training, and on test regions, with the outputs that the library offers: the iterate with the lowest
training objective (*best*), the last one, and the mean of all iterates (*average*), which the theorems are
about. *Validated*: scale and round are chosen on one half of the test regions and judged on the other, and
the other way round; the halves are different parts of the map (on the game level 8 cells apart, while
features look up to 16 cells far). Means over the draws; in brackets the number of draws in which the
algorithm is below *naive*.
"""

STEPS = """
The lowest training objective that each scale of `scale/√t` reaches, mean over the draws; the start itself
where a run never got below it. Scale 1 is the step printed in Theorems 5 and 7. *Auto* is the step that the
library takes by default.
"""

DIFFERENT = (
    "The paper does not describe its data. Here are two public maps, and demonstrations of a planner "
    "that knows hidden costs. Those are known afterwards, which is what the excess is measured with.",
    "The paper cites a version of maximum margin planning that keeps costs positive. Here they may be "
    "negative and the set of paths is fixed, because otherwise the objective is not convex.",
    "Step sizes, number of weak learners and the training of the networks are not in the paper.",
    "The paper's figure is one run. Here every run is repeated with new demonstrations and new networks.",
)

FIGURES = {
    "test_objective": ("objective on the test regions (Figure 1)", "objective", False),
    "objective": ("training objective", "objective", False),
    "agreement": ("agreement on the test regions", "share of the demonstrated cells", False),
    "excess": ("excess on the test regions", "share of the best path's cost", True),
}


def _where(results: Results, plan: PlanningRuns) -> list[Block]:
    """Return a table for each map, and in words what it says."""
    return [block for name in plan.problems for block in _where_on(results, plan, name)]


#: Each output: what it is called, and its objective in training and on the test regions.
OUTPUTS: dict[str, tuple[Callable[[Curve], float], Callable[[Curve], float]]] = {
    "best": (Curve.lowest, held_out),
    "last": (lambda c: at_last(c, "objective"), lambda c: at_last(c, "test_objective")),
    "average": (lambda c: at_last(c, "average_objective"), lambda c: at_last(c, "average_test")),
}


def _where_on(results: Results, plan: PlanningRuns, name: str) -> list[Block]:
    rows, words = [], []
    settings = {"1/√t": PRINTED, "best scale": ""}
    for label, step in settings.items():
        trios = [plan.trio(results, name, draw, step) for draw in range(plan.draws)]
        trios = [trio for trio in trios if len(trio) == len(PAPER)]
        for output, pair in OUTPUTS.items() if trios else ():
            cells: list[str] = []
            for of in pair:
                values = {a: np.array([of(trio[a]) for trio in trios]) for a in PAPER}
                cells += _beside_naive(values)
            rows.append((label, output, *cells))
            if output == "best":
                words.append(_in_words(label, trios))
    tried = [[plan.tried(results, name, a, draw) for a in PAPER] for draw in range(plan.draws)]
    whole = [three for three in tried if all(three)]
    if whole:
        values = {a: np.array([validated(three[i], "test") for three in whole]) for i, a in enumerate(PAPER)}
        rows.append(("validated", "chosen round", "–", "–", "–", *_beside_naive(values)))
    if not rows:
        return []
    names = [f"{where}: {a}" for where in ("training", "test") for a in PAPER]
    table = Table(("step", "output", *names), rows)
    return [Text(f"**{TITLES[name]}**"), table, Text("\n".join(words))]


def _beside_naive(values: dict[str, Array]) -> list[str]:
    naive = values["naive"]
    cells = [_short(naive.mean())]
    for algorithm in NEW:
        ahead = int((values[algorithm] < naive).sum())
        cells.append(f"{_short(values[algorithm].mean())} ({ahead} of {len(naive)})")
    return cells


def _short(value: float) -> str:
    return number(float(f"{value:.4g}"))


def _in_words(label: str, trios: Sequence[Trio]) -> str:
    """Say when the new algorithms pass naive in training, and whether they do on the test regions."""
    told = []
    for algorithm in NEW:
        places = [passes(trio[algorithm], trio["naive"]) for trio in trios]
        there = sorted(int(place) for place in places if not math.isnan(place))
        wins = sum(below(trio[algorithm], trio["naive"]) for trio in trios)
        on_test = sum(held_out(trio[algorithm]) < held_out(trio["naive"]) for trio in trios)
        when = f", for good from {', '.join(f'{place:,}' for place in there)} weak learners" if there else ""
        told.append(
            f"*{algorithm}* is below *naive* in training in {wins} of {len(trios)} draws{when}, and on the "
            f"test regions in {on_test}"
        )
    return f"- With {'the ' if ' ' in label else ''}{label}: {'; '.join(told)}."


def _sections(results: Results, plan: PlanningRuns, name: str) -> list[Section]:
    curves = {a: found for a in PAPER if (found := plan.all_chosen(results, name, a))}
    title = TITLES[name]
    if not curves:
        words = "There is nothing to show yet: no algorithm has all its runs. The table below says why."
        return [Section(title, [Text(words)])]
    told = next(iter(curves.values()))[0].facts
    (maps, test_maps), (paths, test_paths) = told["maps"], told["demonstrations"]
    words = (
        f"Learned from {paths} demonstrations on {maps} regions, tested with {test_paths} on {test_maps} "
        "others. Lines are means over the draws, shades go from the lowest to the highest; the step is 1/√t "
        "with the best scale. The demonstrations themselves cost "
        f"{100 * told['of the demonstrations']:.1f} % more than the best paths, because they are noisy."
    )
    figures: list[Block] = [_figure(title, curves, column) for column in FIGURES]
    pictures = _pictures(results, plan, name)
    caption: list[Block] = [Text(PICTURES)] if pictures else []
    return [Section(title, [Text(words), *figures, *_tables(curves), *caption, *pictures])]


def _figure(title: str, curves: dict[str, list[Curve]], column: str) -> LineFigure:
    words, ylabel, log_y = FIGURES[column]
    lines = [mean_line(algorithm, found, column) for algorithm, found in curves.items()]
    return LineFigure(f"{title}: {words}", lines, LABELS[AXES[0]], ylabel, log_y=log_y)


def mean_line(name: str, curves: Sequence[Curve], column: str) -> Line:
    """Draw the mean over the draws between their lowest and highest, as far as all of them go."""
    length = min(len(curve[column]) for curve in curves)
    y = np.array([_filled(curve[column])[:length] for curve in curves])
    # Where no draw was looked at there is nothing to show; the others are known to lie on a line between.
    keep = np.any([~np.isnan(curve[column][:length]) for curve in curves], axis=0)
    xs = {axis: np.mean([curve[axis][:length] for curve in curves], axis=0)[keep] for axis in AXES}
    mean, band = y.mean(axis=0)[keep], (y.min(axis=0)[keep], y.max(axis=0)[keep])
    others = {LABELS[axis]: xs[axis] for axis in AXES[1:]}
    return Line(name, xs[AXES[0]], mean, name, "solid", others, band if len(curves) > 1 else None)


def _filled(values: Array) -> Array:
    """Draw straight lines between the rounds that were looked at."""
    rounds = np.arange(len(values))
    known = ~np.isnan(values)
    return np.interp(rounds, rounds[known], values[known])


def _tables(curves: dict[str, list[Curve]]) -> list[Table]:
    found, costs = [], []
    for algorithm, runs in curves.items():
        ends = (_best(column) for column in ("test_objective", "agreement", "excess"))
        found.append((algorithm, spread(map(Curve.lowest, runs)), *(spread(map(of, runs)) for of in ends)))
        edges = spread(float(np.nanmean(curve["edge"])) for curve in runs)
        used = (np.mean([curve[axis][-1] for curve in runs]) for axis in AXES)
        costs.append((algorithm, ", ".join(curve.variant for curve in runs), edges, *used))
    return [
        Table(
            ("algorithm", "training objective", "test objective", "agreement", "excess"),
            found,
            "Of the iterate with the lowest training objective: mean over the draws (lowest … highest).",
        ),
        Table(
            ("algorithm", "chosen steps", "edge", *(LABELS[axis] for axis in AXES)),
            costs,
            "The edge is the length of a projection over the length of what is projected, mean over rounds. "
            "Seconds depend on what else the machine has to do.",
        ),
    ]


def spread(values: Iterable[float]) -> str:
    """Write the mean, and the lowest and the highest where they differ."""
    told = list(values)
    mean, low, high = (number(float(f"{v:.3g}")) for v in (np.mean(told), min(told), max(told)))
    return mean if low == high else f"{mean} ({low} … {high})"


PICTURES = """
One demonstration on a test region, of the first draw: the one that is imitated worst before learning, when
all cells cost the same (so the planner's choice among equally long paths decides). From ● to ★. The last
picture shows the hidden costs, which no learner saw.
"""


def _pictures(results: Results, plan: PlanningRuns, name: str) -> list[ImageFigure]:
    curves = {a: curve for a in PAPER if (curve := plan.chosen(results, name, a, 0)) is not None}
    try:
        task = data(name, plan.quick, 0)
    except OSError:  # the runs were made elsewhere, with the data
        return []
    found = []
    for algorithm, curve in curves.items():
        kept = curve.facts["picture"]
        map = task.test.maps[kept["map"]]
        paths = [Path(np.array(kept[which])) for which in ("shown", "before", "after")]
        before, after = (agreement(path, paths[0]) for path in paths[1:])
        found.append(
            ImageFigure(
                f"{TITLES[name]}: paths of {algorithm}",
                partial(_draw_plans, map, paths),
                f"Agreement before learning {before:.0%}, after it {after:.0%}.",
            )
        )
    if found:
        words = "Dark cells are expensive. The demonstrations were planned with these costs."
        draw = partial(_draw_costs, map, task.cost(map), paths[0])
        found.append(ImageFigure(f"{TITLES[name]}: hidden costs", draw, words))
    return found


def _draw_plans(map: Map, paths: Sequence[Path]) -> Figure:
    from matplotlib.figure import Figure

    demonstration, before, after = paths
    return draw_paths(
        map, demonstration, before, after, ax=Figure(figsize=SIZE, layout="constrained").subplots()
    )


def _draw_costs(map: Map, costs: Array, demonstration: Path) -> Figure:
    """Draw costs in place of the ground, with the demonstrated path."""
    from matplotlib.figure import Figure

    ax = Figure(figsize=SIZE, layout="constrained").subplots()
    plain = Map(np.log(costs)[:, :, None], ("cost",), map.blocked, map.spacing)
    found = draw_paths(plain, demonstration, ax=ax)
    ax.images[0].set_cmap("YlOrBr")
    return found


def _scale_tables(results: Results, plan: PlanningRuns) -> list[Table]:
    found = []
    for name in plan.problems:
        rows = []
        for algorithm in PAPER:
            tried: list[float] = []
            for step in (*plan.scales, AUTO):
                keys = [plan.run(name, algorithm, step, draw).key for draw in range(plan.draws)]
                values = [results[key].lowest() for key in keys if key in results]
                tried.append(float(np.mean(values)) if values else math.nan)
            rows.append((algorithm, *tried))
        columns = ("algorithm", *(f"{scale}/√t" for scale in plan.scales), "auto (first draw)")
        found.append(Table(columns, rows, TITLES[name]))
    return found
