"""Figure 1: what is measured, which run is chosen, and that verdicts say what their rules say."""

import math
from dataclasses import replace

import numpy as np
import pytest

from convexboost.datasets import _files
from convexboost.learners.network import Network
from convexboost.paper import planning
from convexboost.paper.curve import NEW, PAPER
from convexboost.paper.planning import REASONS, PlanningRuns
from convexboost.paper.report.content import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED, ImageFigure, Table
from convexboost.paper.study import LABELS, Curve, Results, compose
from convexboost.planning import MaxMarginPlanner, problem

PLAN = PlanningRuns(("elevation", "terrain"), ("0.1", "0.01"), 3, 10, True)


# --- made-up results ---------------------------------------------------------------------------------------


def curve(algorithm, train, test, agreement=(0.3, 0.5), start=10.0, gradients=None):
    """Two rounds of learning that end at these numbers."""
    rounds = {"naive": 10, "repeated": 4, "residual": 10}[algorithm] if gradients is None else gradients
    columns = {
        "weak_learners": [0, 5, 10],
        "gradient_evaluations": [0, rounds / 2, rounds],
        "seconds": [0.0, 1.0, 2.0],
        "objective": [start, (start + train) / 2, train],
        "test_objective": [start, (start + test) / 2, test],
        "agreement": [agreement[0], math.nan, agreement[1]],
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


def test_where_the_new_algorithms_win_it_says_so():
    found = planning.verdicts(made(new_wins), PLAN)
    assert [v.text for v in found] == [REPRODUCED] * 8
    assert not any(REASONS in v.note for v in found)


def test_where_naive_wins_it_says_so_with_reasons():
    found = planning.verdicts(made(naive_wins), PLAN)
    assert [v.text for v in found] == 2 * [NOT_REPRODUCED, NOT_REPRODUCED, REPRODUCED, REPRODUCED]
    assert [REASONS in v.note for v in found] == 2 * [True, True, False, False]
    often, need = found[:2]
    assert set(often.numbers.values()) == {(0.0, 1.5)}
    assert set(need.numbers.values()) == {(2.0, 1.0)}


def test_a_tie_is_not_a_win():
    found = planning.verdicts(made(lambda *_: {"train": 1.0, "test": 1.0}), PLAN)
    assert [v.holds for v in found[:2]] == [False, False]


@pytest.mark.parametrize(("wins", "holds"), [(0, False), (1, False), (2, True), (3, True)])
def test_often_is_in_most_draws(wins, holds):
    found = made(lambda n, a, draw: new_wins(n, a, draw) if draw < wins else naive_wins(n, a, draw))
    assert planning.verdicts(found, PLAN)[0].holds is holds


def test_one_of_the_new_algorithms_is_not_both():
    found = made(lambda n, a, d: new_wins(n, "naive" if a == "residual" else a, d))
    assert [v.holds for v in planning.verdicts(found, PLAN)[:2]] == [False, False]


@pytest.mark.parametrize("worse", [{"agreement": (0.5, 0.3)}, {"agreement": (0.5, 0.5)}, {"test": 11.0}])
def test_every_algorithm_has_to_learn(worse):
    found = made(lambda n, a, d: new_wins(n, a, d) | (worse if a == "naive" else {}))
    assert planning.verdicts(found, PLAN)[2].holds is False


def test_much_less_often():
    found = made(lambda n, a, d: new_wins(n, a, d) | ({"gradients": 6} if a == "repeated" else {}))
    assert planning.verdicts(found, PLAN)[3].holds is False


def test_maps_are_decided_one_by_one():
    """Without the data folder the game level is missing, and real terrain has its answers all the same."""
    found = Results((k, c) for k, c in made(new_wins).items() if k.startswith("elevation"))
    assert [v.text for v in planning.verdicts(found, PLAN)] == 4 * [REPRODUCED] + 4 * [NOT_DECIDED]


@pytest.mark.parametrize("how", ["missing", "interrupted"])
def test_one_run_that_is_not_there_decides_nothing(how):
    found, key = made(new_wins), PLAN.run("elevation", "repeated", "0.01", 1).key
    if how == "missing":
        del found[key]
    else:
        found[key] = replace(found[key], partial=True)
    assert [v.text for v in planning.verdicts(found, PLAN)] == 4 * [NOT_DECIDED] + 4 * [REPRODUCED]


def test_the_scale_is_chosen_by_training_objective_only():
    found = made(new_wins)
    tempting = PLAN.run("elevation", "naive", "0.1", 0).key
    found[tempting] = curve("naive", train=5.0, test=0.0, agreement=(0.3, 1.0))
    assert PLAN.chosen(found, "elevation", "naive", 0) is found[PLAN.run("elevation", "naive", "0.01", 0).key]
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
    texts = [v.text for v in report.verdicts]
    assert NOT_DECIDED not in texts[:4]
    assert set(texts[4:]) == {NOT_DECIDED}
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
    scores = np.array(list(model.staged_score(*task.test)))
    seen = ~np.isnan(found["agreement"][1:])
    assert seen[-1]
    np.testing.assert_allclose(found["agreement"][1:][seen], scores[seen])
    plans = model.imitate(*task.test)
    assert found["excess"][-1] == pytest.approx(task.excess(task.test, plans))
    assert found.facts["best round"] == int(np.argmin(found["objective"]))


def test_steps_that_are_too_long_are_given_up():
    stop = planning._hopeless(5)

    class Record:
        def __init__(self, weak_learners, objective):
            self.weak_learners, self.objective = weak_learners, objective

    records = [(0, 1.0), (3, 2.5), (5, 1.5), (6, 3.0)]
    assert [stop(Record(*r)) for r in records] == [False, False, False, True]
    stop = planning._hopeless(5)
    assert not any(stop(Record(*r)) for r in [(0, 1.0), (3, 0.9), (5, 4.0), (6, 3.0)])
