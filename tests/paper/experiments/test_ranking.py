"""The ranking study: what is measured, how the round is chosen, and that verdicts follow the numbers."""

import os

import numpy as np
import pytest

from convexboost.metrics import disagreement, ndcg
from convexboost.paper import ranking
from convexboost.paper.curve import spaced_rounds
from convexboost.paper.ranking import RankingRuns
from convexboost.paper.study import LABELS, Curve, Results
from convexboost.reports.content import (
    DOES_NOT_HOLD,
    HOLDS,
    NOT_DECIDED,
    NOT_REPRODUCED,
    REPRODUCED,
    LineFigure,
    Table,
    Text,
)

# --- Verdicts, on made-up results ---------------------------------------------------------------------------

PLAN = RankingRuns({"mq2008": 3, "ohsumed": 2}, 1000)


def made(algorithm, objective, evaluations=1000, test=0.3, stumps=500, learners=1000):
    """A run whose objective falls evenly from 1 to `objective` over its weak learners."""
    n = 11
    part = np.linspace(0.0, 1.0, n)
    columns = {
        "weak_learners": np.rint(learners * part),
        "gradient_evaluations": np.rint(evaluations * part),
        "seconds": part,
        "objective": 1.0 + (objective - 1.0) * part,
        "vali_disagreement": 0.5 - 0.1 * part,
        "vali_disagreement_half": 0.4 + 0.1 * part,
        "test_disagreement": np.append(np.full(n - 1, 0.9), test),
        "test_disagreement_half": np.append(np.full(n - 1, 0.8), test / 2),
        "test_ndcg": np.append(np.full(n - 1, 0.1), 1.0 - test),
    }
    facts = {"distinct stumps": stumps, "rows": [9, 3, 3], "queries": [3, 1, 1], "features": 4, "fold": 1}
    facts |= {"its disagreement": 0.4, "its ndcg": 0.6}
    return Curve("d", algorithm, columns, facts=facts)


def as_the_paper_says(plan=PLAN):
    results = Results()
    for dataset, n in plan.folds.items():
        for fold in range(1, n + 1):
            for algorithm, curve in (
                ("naive", made("naive", 0.95, test=0.4, stumps=3)),
                ("repeated", made("repeated", 0.2, evaluations=44, test=0.3)),
                ("residual", made("residual", 0.2, test=0.3)),
            ):
                results[plan.key(dataset, fold, algorithm)] = curve
    return results


def answers(results, plan=PLAN):
    return [found.text for found in ranking.verdicts(results, plan)]


def test_as_the_paper_says():
    assert answers(as_the_paper_says()) == [REPRODUCED] * 3 + [HOLDS] * 2


@pytest.mark.parametrize(
    ("turned", "changes"),
    [
        # the wanted answer, and what makes it: (data set, fold, algorithm) and the curve
        ([0], {("mq2008", 1, "residual"): {"test": 0.5}, ("mq2008", 2, "residual"): {"test": 0.4}}),
        ([0], {("ohsumed", 1, "repeated"): {"test": 0.41, "evaluations": 44}}),  # one of two is not most
        ([], {("mq2008", 3, "residual"): {"test": 0.41}}),  # one of three is
        ([1], {("mq2008", 2, "naive"): {"objective": 0.19, "test": 0.4, "stumps": 3}}),
        ([2, 3], {("ohsumed", fold, "residual"): {"learners": 300, "evaluations": 300} for fold in (1, 2)}),
        ([3], {("ohsumed", fold, "repeated"): {"learners": 300, "evaluations": 44} for fold in (1, 2)}),
        ([2], {("mq2008", fold, "repeated"): {"evaluations": 150} for fold in (1, 2, 3)}),
        (
            [4],
            {("ohsumed", fold, "naive"): {"objective": 0.95, "stumps": 260, "test": 0.4} for fold in (1, 2)},
        ),
        ([4], {("mq2008", fold, "repeated"): {"stumps": 5, "evaluations": 44} for fold in (1, 2, 3)}),
    ],
)
def test_each_answer_turns_with_its_numbers(turned, changes):
    results = as_the_paper_says()
    for which, options in changes.items():
        results[PLAN.key(*which)] = made(which[-1], **({"objective": 0.2} | options))
    yes, no = 3 * [REPRODUCED] + 2 * [HOLDS], 3 * [NOT_REPRODUCED] + 2 * [DOES_NOT_HOLD]
    expected = [no[k] if k in turned else yes[k] for k in range(5)]
    assert answers(results) == expected
    for verdict in ranking.verdicts(results, PLAN):
        assert verdict.holds is all(c.holds for c in verdict.comparisons)


def test_nothing_is_decided_without_all_folds():
    for key in as_the_paper_says():
        results = as_the_paper_says()
        del results[key]
        assert answers(results) == [NOT_DECIDED] * 5
    assert answers(Results()) == [NOT_DECIDED] * 5


def test_extremes_are_counted():
    results = as_the_paper_says()
    results[PLAN.key("mq2008", 2, "repeated")] = made("repeated", 0.97, test=0.1)
    results[PLAN.key("mq2008", 1, "residual")] = made("residual", 0.1, test=0.6)
    del results[PLAN.key("ohsumed", 1, "naive")]
    rows = ranking._extremes(results, PLAN).rows
    assert [row[0] for row in rows] == ["MQ2008", "MQ2008", "OHSUMED", "OHSUMED"]
    assert rows[0][2:] == (0, 1, 2, 2, 1, 0)  # of two that are equal the first counts
    assert rows[1][2:] == (0, 3, 0, 2, 0, 1)
    assert sum(rows[2][2:5]) == 1
    assert len(ranking._extremes(Results(), PLAN).rows) == 4


def test_the_other_steps_have_their_own_runs():
    again = RankingRuns(PLAN.folds, PLAN.weak_learners, "auto")
    keys = [{unit.key for unit in plan.units()} for plan in (PLAN, again)]
    assert not keys[0] & keys[1]
    assert len(keys[0] | keys[1]) == 2 * 3 * 5
    assert answers(as_the_paper_says(), again) == [NOT_DECIDED] * 5
    found = ranking.verdicts(Results(as_the_paper_says() | as_the_paper_says(again)), PLAN, again)
    assert [v.text for v in found] == [REPRODUCED] * 3 + [HOLDS] * 5
    assert [v.source.split("; ")[-1] for v in found] == ["1/√t"] * 5 + ["auto"] * 3


# --- What is read off a curve -------------------------------------------------------------------------------


def test_only_the_validation_part_chooses_the_round():
    curve = made("naive", 0.5)
    other = Curve("d", "naive", {**curve.columns, "test_disagreement": curve["test_disagreement"][::-1]})
    assert ranking.chosen(curve) == ranking.chosen(other) == 10
    vali = np.array([np.nan, 0.4, 0.2, np.nan, 0.2, 0.3, *[np.nan] * 5])
    assert ranking.chosen(Curve("d", "naive", {**curve.columns, "vali_disagreement": vali})) == 2
    assert ranking.chosen(curve, "disagreement_half") == 0


def test_ties_may_count_half():
    results = as_the_paper_says()
    assert answers(results)[:3] == [REPRODUCED] * 3
    half = [found.text for found in ranking._of_the_paper(results, PLAN, "disagreement_half")]
    assert half == [NOT_REPRODUCED, *[REPRODUCED] * 2]  # 0.8 for all three in the round chosen then


def test_what_it_took():
    curve = made("repeated", 0.0, evaluations=10)  # falls by a tenth for 100 weak learners
    assert curve.lowest() == 0.0
    assert curve.lowest(299) == pytest.approx(0.8)
    assert curve.lowest(300) == pytest.approx(0.7)
    assert curve.reached(0.75) == 300
    assert curve.reached(0.75, "gradient_evaluations") == 3


def test_mean_line():
    """Against the obvious: at each x the last value that each fold had."""
    rng = np.random.default_rng(0)
    curves = []
    for n in (30, 40, 17):
        columns = {name: np.cumsum(rng.integers(1, 4, n)).astype(float) for name in LABELS}
        columns["weak_learners"] -= columns["weak_learners"][0]  # the start has none
        columns["m"] = np.where(rng.random(n) < 0.5, rng.normal(size=n), np.nan)
        columns["m"][[1, -1]] = 0.5
        curves.append(Curve("d", "naive", columns))

    def value(curve, name, x, best=False):
        known = [
            k
            for k in range(1, len(curve["m"]))
            if curve["weak_learners"][k] <= x and not np.isnan(curve["m"][k])
        ]
        return min(curve[name][k] for k in known) if best else curve[name][known[-1]]

    for best in (False, True):
        line = ranking.mean_line("naive", curves, "m", best)
        assert line.x[0] == max(c["weak_learners"][1] for c in curves)
        assert line.x[-1] == max(c["weak_learners"][-1] for c in curves)
        for x, y, low, high, seconds in zip(line.x, line.y, *line.band, line.other_x["seconds"], strict=True):
            folds = [value(c, "m", x, best) for c in curves]
            assert (y, low, high) == pytest.approx((np.mean(folds), min(folds), max(folds)))
            assert seconds == pytest.approx(np.mean([value(c, "seconds", x) for c in curves]))
    assert ranking.mean_line("naive", curves[:1], "m").band is None


def test_spread():
    assert ranking.spread(np.array([0.25])) == "0.2500"
    assert ranking.spread(np.array([0.2, 0.4])) == "0.3000 ± 0.1000"


# --- Runs ---------------------------------------------------------------------------------------------------


def part(seed, n_queries=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10 * n_queries, 5)).round(1)
    y = np.digitize(X[:, 1] - X[:, 0] + rng.normal(size=len(X)), [-1.0, 1.0]).astype(float)
    return ranking.Part(X, y, np.repeat(np.arange(n_queries), 10))


@pytest.fixture
def small(monkeypatch):
    parts = part(0), part(1), part(2)
    monkeypatch.setattr(ranking, "parts", lambda dataset, fold: parts)
    ranking.best_feature.cache_clear()
    yield parts
    ranking.best_feature.cache_clear()


@pytest.mark.parametrize("algorithm", ranking.PAPER)
def test_a_run_measures_what_it_says(small, algorithm):
    seen = []
    curve = ranking.train("mq2008", 1, algorithm, "auto", 60, seen.append)
    assert curve["weak_learners"][-1] == seen[-1].weak_learners == 60
    assert curve.facts["rows"] == [120, 120, 120]
    assert curve.facts["queries"] == [12, 12, 12]
    assert 1 <= curve.facts["distinct stumps"] <= 60
    model = ranking.ConvexBoostRanker(
        learner="stump",
        algorithm=algorithm,
        n_rounds=60,
        max_weak_learners=60,
        output="last",
        early_stopping=False,
    ).fit(*small[0])
    rounds = set(spaced_rounds(curve["weak_learners"], ranking.MEASURED)) - {0}
    for name, held_out in (("vali", small[1]), ("test", small[2])):
        for t, scores in enumerate([None, *model.staged_predict(held_out.X)]):
            told = [curve[f"{name}_{m}"][t] for m in ("disagreement", "disagreement_half", "ndcg")]
            if t in rounds:
                f = held_out.y, scores, held_out.qid
                assert told == [disagreement(*f), disagreement(*f, ties="half"), ndcg(*f)]
            else:
                assert np.isnan(told).all()


def test_the_best_feature(small):
    train, _, test = small
    found = ranking.best_feature("mq2008", 1)
    scores = {k: disagreement(train.y, s * train.X[:, abs(k) - 1], train.qid)
              for s in (1, -1) for k in s * np.arange(1, 6)}  # fmt: skip
    best = min(scores, key=scores.get)
    assert found["best feature"] == abs(best)
    f = np.sign(best) * test.X[:, abs(best) - 1]
    assert found["its disagreement"] == disagreement(test.y, f, test.qid)
    assert found["its ndcg"] == ndcg(test.y, f, test.qid)


def test_a_study_from_beginning_to_end(small, tmp_path, monkeypatch):
    monkeypatch.delenv("CONVEXBOOST_MSLR", raising=False)
    study = ranking.study(quick=True)
    outcome = study.run(tmp_path)
    assert outcome.complete, outcome.states
    assert all(found.holds is not None for found in study.verdicts(outcome.results))
    blocks = [b for section in study.report(outcome) for b in section.blocks]
    figures = [b for b in blocks if isinstance(b, LineFigure)]
    assert len(figures) == 2 * 3
    assert all([line.name for line in f.lines][:3] == list(ranking.PAPER) for f in figures)
    assert any("quick version" in b.words for b in blocks if isinstance(b, Text))


@pytest.mark.parametrize("quick", [False, True])
def test_it_can_be_reported_with_any_runs_missing(quick):
    study = ranking.study(quick)
    whole = Results((unit.key, made(unit.settings["algorithm"], 0.3)) for unit in study.units)
    keys = list(whole)
    for some in ([], keys[:1], keys[3:8], keys[-2:], keys):
        results = Results((key, whole[key]) for key in some)
        if some:  # interrupted, with nothing but the columns of every run
            bare = {name: whole[some[0]][name] for name in LABELS}
            results[some[0]] = Curve("d", "naive", bare, partial=True)
        for section in study.sections(results):
            for block in section.blocks:
                if isinstance(block, Table):
                    assert all(len(row) == len(block.columns) for row in block.rows)


# --- MSLR ---------------------------------------------------------------------------------------------------


def write_mslr(folder):
    (folder / "Fold1").mkdir(parents=True)
    for k, name in enumerate(("train", "vali", "test")):
        X, y, qid = part(k, 4)
        rows = zip(X.tolist(), y.tolist(), qid.tolist(), strict=True)
        lines = (f"{g:.0f} qid:{q} " + " ".join(f"{j}:{v}" for j, v in enumerate(x, 1)) for x, g, q in rows)
        (folder / "Fold1" / f"{name}.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("CONVEXBOOST_DATA", str(tmp_path))
    monkeypatch.delenv("CONVEXBOOST_MSLR", raising=False)
    ranking.parts.cache_clear()
    ranking.best_feature.cache_clear()
    yield tmp_path
    ranking.parts.cache_clear()
    ranking.best_feature.cache_clear()


def words(study):
    return " ".join(b.words for s in study.sections(Results()) for b in s.blocks if isinstance(b, Text))


@pytest.mark.parametrize("way", ["data", "own"])
def test_mslr_is_used_where_it_is(nowhere, monkeypatch, way):
    folder = nowhere / ("MSLR-WEB10K" if way == "data" else "elsewhere")
    assert "was not run" in words(ranking.study())
    assert "was not run" in ranking.study().intro
    write_mslr(folder)
    if way == "own":
        monkeypatch.setenv("CONVEXBOOST_MSLR", str(folder))
    assert ranking.mslr_folder() == folder
    study = ranking.study()
    units = [unit for unit in study.units if unit.settings["dataset"] == "mslr"]
    assert [unit.key for unit in units] == [f"mslr-1-{algorithm}-inverse_sqrt" for algorithm in ranking.PAPER]
    assert "was not run" not in words(study)
    assert "was not run" not in study.intro
    assert not any("mslr" in unit.key for unit in ranking.study(quick=True).units)
    plan = RankingRuns({"mslr": 1}, 5)
    found = Results((unit.key, unit.run(lambda record: None)) for unit in plan.units())
    assert [v.holds is None for v in ranking.verdicts(found, plan)] == [False] * 5
    assert any(isinstance(b, LineFigure) for s in ranking.sections(found, plan, None) for b in s.blocks)
    curve = found["mslr-1-residual-inverse_sqrt"]
    assert curve.facts["rows"] == [40, 40, 40]
    assert curve.facts["features"] == 136
    train, vali, test = ranking.parts("mslr", 1)
    assert train.X.dtype == np.float32
    assert train.X.base is vali.X.base is test.X.base is not None  # one array, not copied


def test_a_wrong_folder_is_told(nowhere, monkeypatch, tmp_path):
    monkeypatch.setenv("CONVEXBOOST_MSLR", str(tmp_path / "no-such"))
    study = ranking.study()
    unit = next(unit for unit in study.units if unit.settings["dataset"] == "mslr")
    with pytest.raises(FileNotFoundError, match="no-such"):
        unit.run(lambda record: None)


# --- The real data ------------------------------------------------------------------------------------------


@pytest.mark.skipif("CONVEXBOOST_DATA" not in os.environ, reason="set CONVEXBOOST_DATA")
@pytest.mark.parametrize("dataset", ["mq2008", "ohsumed"])
def test_the_official_folds(dataset):
    tests = []
    for fold in range(1, 6):
        queries = [set(p.qid.tolist()) for p in ranking.parts(dataset, fold)]
        assert len(set.union(*queries)) == sum(map(len, queries))
        tests.append(queries[2])
    assert sum(map(len, tests)) == len(set.union(*tests))  # each query tests once
