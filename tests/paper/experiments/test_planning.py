"""Figure 1: what is measured, which run is chosen, and that verdicts say what their rules say."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from convexboost.datasets import _files
from convexboost.learners.network import Network
from convexboost.paper import planning
from convexboost.paper.curve import NEW, PAPER
from convexboost.paper.planning import PlanningRuns
from convexboost.paper.study import LABELS, Curve, Results, compose
from convexboost.planning import MaxMarginPlanner, problem
from convexboost.reports.content import (
    DOES_NOT_HOLD,
    HOLDS,
    NOT_DECIDED,
    NOT_REPRODUCED,
    REPRODUCED,
    ImageFigure,
    Table,
    Text,
)

PLAN = PlanningRuns(("elevation", "terrain"), ("1", "0.1"), 3, 10, True)


# --- made-up results ---------------------------------------------------------------------------------------


def curve(algorithm, train, test, agreement=(0.3, 0.5), start=10.0, gradients=None):
    """Two rounds of learning that end at these numbers."""
    rounds = {"naive": 100, "repeated": 4, "residual": 100}[algorithm] if gradients is None else gradients
    columns = {
        "weak_learners": [0, 5, 10],
        "gradient_evaluations": [0, rounds / 2, rounds],
        "seconds": [0.0, 1.0, 2.0],
        "objective": [start, (start + train) / 2, train],
        "average_objective": [start, start, (start + train) / 2],
        "test_objective": [start, (start + test) / 2, test],
        "average_test": [start, start, (start + test) / 2],
        "test_first": [start, (start + test) / 2, test],
        "test_second": [start, (start + test) / 2, test],
        "agreement": [agreement[0], math.nan, agreement[1]],
        "agreement_first": [agreement[0], math.nan, agreement[1]],
        "agreement_second": [agreement[0], math.nan, agreement[1]],
        "excess": [0.5, math.nan, 0.2],
        "edge": [math.nan, 0.2, 0.1],
    }
    facts = {"maps": [3, 2], "demonstrations": [6, 4], "of the demonstrations": 0.01}
    facts["picture"] = {
        "map": 0,
        "shown": [[0, 0], [0, 1]],
        "before": [[0, 0], [1, 1]],
        "after": [[0, 0], [0, 1]],
    }
    columns = {name: np.array(column, float) for name, column in columns.items()}
    return Curve("d", algorithm, columns, facts=facts)


def made(numbers, plan=PLAN):
    """Fill a plan: `numbers` gives the arguments of `curve` for (problem, algorithm, draw)."""
    found = Results()
    for name in plan.problems:
        for draw in range(plan.draws):
            for algorithm in PAPER:
                told = numbers(name, algorithm, draw)
                for step in plan.scales:
                    found[plan.run(name, algorithm, step, draw).key] = curve(algorithm, **told)
    return found


def new_wins(name, algorithm, draw):
    better = algorithm in NEW
    return {"train": 1.0 if better else 2.0, "test": 3.0 if better else 4.0}


def naive_wins(name, algorithm, draw):
    return new_wins(name, "naive" if algorithm in NEW else NEW[0], draw)


YES, NO = [REPRODUCED] * 3 + [HOLDS] * 5, [NOT_REPRODUCED] * 3 + [DOES_NOT_HOLD] * 5
OFTEN, NEED, RARELY, VALIDATED, LEARNED = 0, 1, 2, 6, 7  # 3, 4 and 5 are the first three with other steps


def answers(results):
    return [v.text for v in planning.verdicts(results, PLAN)]


def only(*turned):
    """All verdicts hold but these."""
    return [no if i in turned else yes for i, (yes, no) in enumerate(zip(YES, NO, strict=True))]


def test_where_the_new_algorithms_win_it_says_so():
    assert answers(made(new_wins)) == YES


def test_where_naive_wins_it_says_so():
    found = planning.verdicts(made(naive_wins), PLAN)
    assert [v.text for v in found] == only(0, 1, 3, 4, VALIDATED)
    often, need = found[:2]
    assert set(often.numbers.values()) == {(0.0, 1.5)}
    assert set(need.numbers.values()) == {(0.0, 3.0)}


def test_only_the_printed_step_counts():
    """A scale of our own that turns everything round changes no answer about the paper."""
    found = made(new_wins)
    for (name, draw), algorithm in itertools.product(itertools.product(PLAN.problems, range(3)), PAPER):
        better = {"train": 0.1, "test": 0.1} if algorithm == "naive" else naive_wins(name, algorithm, draw)
        found[PLAN.run(name, algorithm, "0.1", draw).key] = curve(algorithm, **better)
    assert answers(found) == only(3, 4, VALIDATED)


def test_a_tie_is_not_a_win():
    found = planning.verdicts(made(lambda *_: {"train": 1.0, "test": 1.0}), PLAN)
    assert [v.holds for v in found[:2]] == [False, False]


@pytest.mark.parametrize(("wins", "often"), [(0, False), (1, False), (2, True), (3, True)])
def test_often_is_in_most_draws_and_the_need_is_in_all(wins, often):
    found = made(lambda n, a, draw: new_wins(n, a, draw) if draw < wins else naive_wins(n, a, draw))
    assert [v.holds for v in planning.verdicts(found, PLAN)[:2]] == [often, wins == 3]


def test_one_of_the_new_algorithms_is_not_both():
    found = made(lambda n, a, d: new_wins(n, "naive" if a == "residual" else a, d))
    assert [v.holds for v in planning.verdicts(found, PLAN)[:2]] == [False, False]


@pytest.mark.parametrize("worse", [{"agreement": (0.5, 0.3)}, {"agreement": (0.5, 0.5)}, {"test": 11.0}])
def test_every_algorithm_has_to_learn(worse):
    found = made(lambda n, a, d: new_wins(n, a, d) | (worse if a == "naive" else {}))
    assert answers(found) == only(LEARNED)


def test_much_less_often_is_a_tenth():
    found = made(lambda n, a, d: new_wins(n, a, d) | ({"gradients": 11} if a == "repeated" else {}))
    assert answers(found) == only(RARELY, 5)


def test_validation_chooses_on_one_half_and_judges_on_the_other():
    one, other = curve("naive", 1.0, 4.0), curve("naive", 1.0, 5.0)
    one.columns["test_first"][:] = [9.0, 2.0, 3.0]
    one.columns["test_second"][:] = [9.0, 8.0, 7.0]
    other.columns["test_first"][:] = [9.0, 5.0, 6.0]
    other.columns["test_second"][:] = [9.0, 9.0, 1.0]
    # On the first half `one` in round 1 is best, on the second `other` in round 2.
    assert planning.validated([one, other], "test") == (8.0 + 6.0) / 2
    assert planning.validated([one, other], "agreement") != planning.validated([one, other], "test")


def test_when_an_algorithm_passes_naive_for_good():
    def run(learners, objective):
        zeros = np.zeros(len(learners))
        columns = {"weak_learners": learners, "objective": objective}
        columns |= {"gradient_evaluations": zeros, "seconds": zeros}
        return Curve("d", "naive", {name: np.array(c, float) for name, c in columns.items()})

    old = run([0, 1, 2, 3, 4], [9, 5, 4, 3, 3])
    assert planning.passes(run([0, 1, 3, 4], [9, 4, 3, 2]), old) == 4  # level at 2 and 3
    assert planning.passes(run([0, 1, 3], [8, 4, 1]), old) == 3
    assert planning.passes(run([0, 1, 3], [8, 3, 1]), old) == 0
    assert math.isnan(planning.passes(run([0, 4], [9, 3]), old))


def test_maps_are_decided_together_and_told_apart():
    """Without the data folder the game level is missing: nothing is decided; real terrain has its table."""
    found = Results((k, c) for k, c in made(new_wins).items() if k.startswith("elevation"))
    assert answers(found) == [NOT_DECIDED] * 8
    (tables,) = [s.blocks for s in planning.sections(found, PLAN) if s.title == "What holds where"]
    titles = {f"**{title}**" for title in planning.TITLES.values()}
    assert {b.words for b in tables if isinstance(b, Text)} & titles == {"**Real terrain**"}
    assert len([b for b in tables if isinstance(b, Table)]) == 1


def test_what_holds_where():
    """Below naive in training, above on test; validation would have helped."""

    def overfitted(name, algorithm, draw):
        return {"train": 1.0, "test": 9.0} if algorithm in NEW else {"train": 2.0, "test": 4.0}

    found = made(overfitted)
    for key, one in found.items():
        if any(algorithm in key for algorithm in NEW):
            one.columns["test_first"][1] = one.columns["test_second"][1] = 3.0
    _, table, words = planning._where_on(found, PLAN, "elevation")
    rows = {row[:2]: row[2:] for row in table.rows}
    assert rows["1/√t", "best"] == ("2", "1 (3 of 3)", "1 (3 of 3)", "4", "9 (0 of 3)", "9 (0 of 3)")
    assert rows["1/√t", "average"][:3] == ("6", "5.5 (3 of 3)", "5.5 (3 of 3)")
    assert rows["validated", "chosen round"][3:] == ("4", "3 (3 of 3)", "3 (3 of 3)")
    told = "*repeated* is below *naive* in training in 3 of 3 draws, for good from 5, 5, 5 weak learners, and"
    assert told in words.words


@pytest.mark.parametrize("how", ["missing", "interrupted"])
def test_one_run_that_is_not_there_decides_nothing(how):
    found, key = made(new_wins), PLAN.run("elevation", "repeated", "1", 1).key
    if how == "missing":
        del found[key]
    else:
        found[key] = replace(found[key], partial=True)
    assert answers(found) == 8 * [NOT_DECIDED]


def test_the_scale_is_chosen_by_training_objective_only():
    found = made(new_wins)
    tempting = PLAN.run("elevation", "naive", "0.1", 0).key
    found[tempting] = curve("naive", train=5.0, test=0.0, agreement=(0.3, 1.0))
    assert PLAN.chosen(found, "elevation", "naive", 0) is found[PLAN.run("elevation", "naive", "1", 0).key]
    found[tempting] = curve("naive", train=0.5, test=9.0)
    assert PLAN.chosen(found, "elevation", "naive", 0) is found[tempting]


def test_the_iterate_is_chosen_by_training_objective_only():
    one = curve("naive", 1.0, 3.0)
    one.columns["objective"][1] = 0.5
    assert planning.held_out(one) == one["test_objective"][1]


def test_it_can_be_reported_with_any_runs_missing():
    found = made(new_wins)
    for keys in ([], list(found)[:1], list(found)[::2], list(found)[5:]):
        some = Results((key, found[key]) for key in keys)
        bare = Results(
            (k, Curve("d", c.algorithm, {n: c[n] for n in LABELS}, partial=True)) for k, c in some.items()
        )
        for results in (some, bare):
            assert planning.sections(results, PLAN)
            assert planning.verdicts(results, PLAN)


# --- what is drawn and measured ----------------------------------------------------------------------------


def test_mean_and_spread():
    curves = [curve("naive", train, 3.0) for train in (1.0, 2.0, 6.0)]
    line = planning.mean_line("naive", curves, "objective")
    low, high = line.band
    np.testing.assert_allclose(line.points[1], np.mean([c["objective"] for c in curves], axis=0))
    np.testing.assert_allclose((low[-1], high[-1]), (1.0, 6.0))
    assert [len(x) for x in line.other_x.values()] == [3, 3]
    assert planning.mean_line("naive", curves[:1], "objective").band is None


def test_a_number_with_its_spread():
    assert planning.spread([1.0, 2.0, 6.0]) == "3 (1 … 6)"
    assert planning.spread([0.12345]) == planning.spread([0.12345, 0.12345]) == "0.123"


def test_draws_that_were_looked_at_in_different_rounds():
    """What was not looked at lies on a line between; rounds in which nobody looked are left out."""
    one, other = curve("naive", 1.0, 1.0), curve("naive", 1.0, 1.0, agreement=(0.3, 0.7))
    line = planning.mean_line("naive", [one, other], "agreement")
    np.testing.assert_allclose(line.points, ([0, 10], [0.3, 0.6]))
    one.columns["agreement"][1] = 0.5
    line = planning.mean_line("naive", [one, other], "agreement")
    np.testing.assert_allclose(line.points, ([0, 5, 10], [0.3, 0.5, 0.6]))


def test_a_draw_has_other_demonstrations_on_the_same_maps():
    first, same, other = (problem("elevation", quick=True, seed=seed) for seed in (0, 0, 1))
    for mine, twin, stranger in zip(first.train.maps, same.train.maps, other.train.maps, strict=True):
        np.testing.assert_array_equal(mine.features, twin.features)
        np.testing.assert_array_equal(mine.features, stranger.features)

    def cells(task):
        return [path.cells.tolist() for paths in task.train.demonstrations for path in paths]

    assert cells(first) == cells(same) != cells(other)


# --- the study itself, without any data --------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Run the quick study on a machine with neither data nor network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CONVEXBOOST_DATA", raising=False)
        patch.setenv("CONVEXBOOST_CACHE", str(tmp_path_factory.mktemp("cache")))
        asked = []

        def refuse(url, title):
            asked.append(url)
            raise OSError(f"could not download {title}")

        patch.setattr(_files, "_fetch", refuse)
        patch.setattr(_files, "PAUSE", 0.0)  # between attempts
        planning._data.cache_clear()
        study = planning.study(quick=True)
        outcome = study.run(tmp_path_factory.mktemp("planning"))
        report = compose("t", "", [(study, outcome)], "", 1.0)
        planning._data.cache_clear()
        yield study, outcome, report, asked


def test_real_terrain_needs_no_data(bare):
    study, outcome, report, _ = bare
    here = [unit.key for unit in study.units if unit.key.startswith("elevation")]
    assert list(outcome.results) == here
    assert {outcome.states[key].words for key in here} == {"done"}
    decided = [c.holds is not None for v in report.verdicts for c in v.comparisons if "Real" in c.what]
    assert all(decided)
    assert {v.text for v in report.verdicts} == {NOT_DECIDED}  # the game level is missing
    assert not outcome.interrupted
    assert not outcome.complete


def test_the_game_level_says_what_is_missing(bare):
    study, outcome, report, asked = bare
    there = [unit.key for unit in study.units if unit.key.startswith("terrain")]
    assert there
    for key in there:
        assert outcome.states[key].words == "failed"
        assert "CONVEXBOOST_DATA" in outcome.states[key].why
    assert len(asked) < len(there)  # attempts of one download, not of one for each run
    assert "runs failed" in report.warning
    assert report.warning.count("CONVEXBOOST_DATA") == outcome.states[there[0]].why.count("CONVEXBOOST_DATA")


def test_pictures_and_tables(bare):
    blocks = [b for section in bare[2].sections for b in section.blocks]
    pictures = [b for b in blocks if isinstance(b, ImageFigure)]
    assert len(pictures) == len(PAPER) + 1
    for picture in pictures:
        (ax,) = picture.draw().axes
        assert len(ax.images) == 1
    table = next(b for b in blocks if isinstance(b, Table) and "agreement" in b.columns)
    assert [row[0] for row in table.rows] == list(PAPER)


def test_what_is_measured(bare):
    """The columns agree with a model that is trained again and asked round by round."""
    key = "elevation-residual-0_01-0"
    found = bare[1].results[key]
    task = problem("elevation", quick=True)
    model = MaxMarginPlanner(
        task.planner,
        learner=Network(max_rows=planning.MAX_ROWS),
        algorithm="residual",
        step="inverse_sqrt:0.01",
        n_rounds=planning.QUICK_BUDGET,
        output="last",
        softness=task.softness,
        random_state=0,
    ).fit(*task.train)
    np.testing.assert_array_equal(found["objective"], model.history_["objective"])
    assert found["test_objective"][-1] == pytest.approx(model.objective(*task.test))
    first = [of[: len(of) // 2] for of in task.test]
    assert found["test_first"][-1] == pytest.approx(model.objective(*first))
    assert found["agreement_first"][-1] == pytest.approx(model.score(*first))
    scores = np.array(list(model.staged_score(*task.test)))
    seen = ~np.isnan(found["agreement"][1:])
    assert seen[-1]
    np.testing.assert_allclose(found["agreement"][1:][seen], scores[seen])
    plans = model.imitate(*task.test)
    assert found["excess"][-1] == pytest.approx(task.excess(task.test, plans))
    assert found.facts["best round"] == int(np.argmin(found["objective"]))
    model.model_ = model.model_.average()
    assert found["average_objective"][-1] == pytest.approx(model.objective(*task.train))
    assert found["average_test"][-1] == pytest.approx(model.objective(*task.test))


def test_no_run_is_stopped_early(bare):
    """Steps as long as the theorems have them start far above the start, and come back only in time."""
    found = [bare[1].results[f"elevation-{algorithm}-1-0"] for algorithm in PAPER]
    assert any(one["objective"].max() > 2.0 * one["objective"][0] for one in found)
    for one in found:
        assert one["weak_learners"][-1] == planning.QUICK_BUDGET or one["objective"][-1] == 0.0
