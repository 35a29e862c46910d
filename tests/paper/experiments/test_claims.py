"""One rule for each sentence that is about all experiments."""

import itertools

import numpy as np
import pytest

from convexboost.paper import classification, planning, ranking
from convexboost.paper.claims import Repetitions, below, ours, ratio
from convexboost.paper.curve import PAPER, Curve, Results
from convexboost.paper.study import Study
from convexboost.reports.content import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, VerdictList


def curve(algorithm, objective, gradients, test=0.5):
    """Falls evenly from 1 to `objective` in ten rounds."""
    part = np.linspace(0.0, 1.0, 11)
    columns = {"weak_learners": 100 * part, "gradient_evaluations": gradients * part, "seconds": part}
    columns["objective"] = 1.0 + (objective - 1.0) * part
    return Curve("d", algorithm, columns, facts={"test": test})


def trio(naive=0.9, repeated=0.2, residual=0.2, tests=(0.4, 0.3, 0.3)):
    found = zip(PAPER, (naive, repeated, residual), (100, 8, 100), tests, strict=True)
    return {a: curve(a, objective, gradients, test) for a, objective, gradients, test in found}


def answers(*trios):
    found = Repetitions({"g": trios}, "fold", "s")
    test = found.outperform(lambda c: c.facts["test"], "error")
    return [test.holds, found.need().holds, found.rarely().holds]


def test_most_all_and_a_tenth():
    good, bad_test, bad_training = trio(), trio(tests=(0.4, 0.4, 0.3)), trio(naive=0.2)
    assert answers(good, good, good) == [True, True, True]
    assert answers(good, good, bad_test) == [True, True, True]
    assert answers(good, bad_test) == [False, True, True]
    assert answers(good, good, bad_training) == [True, False, True]
    slow = trio() | {"repeated": curve("repeated", 0.2, 11, 0.3)}
    assert answers(slow) == [True, True, False]
    assert answers(good, slow, good)[2] is True  # the geometric mean
    assert answers(good, {a: c for a, c in good.items() if a != "naive"}) == [None] * 3


def test_to_the_lowest_objective_that_both_reach():
    """Residual is at 0.6, where repeated ends, after half of its rounds."""
    found = trio(repeated=0.6)
    assert ratio(found, "gradient_evaluations") == pytest.approx(8 / 50)
    assert ratio(found, "weak_learners") == pytest.approx(2.0)
    assert below(found["residual"], found["repeated"])
    assert not below(found["residual"], trio()["residual"])
    never = trio(repeated=2.0)  # its lowest objective is that of the start
    assert ratio(never, "gradient_evaluations") == 1.0


def test_a_sentence_has_the_same_rule_in_every_experiment():
    plan = planning.PlanningRuns(("elevation",), ("1",), 3, 10, True)
    studies = (
        classification.verdicts(Results()),
        ranking.verdicts(Results(), ranking.RankingRuns({"mq2008": 3}, 10)),
        planning.verdicts(Results(), plan),
    )
    rules = []
    for verdicts in studies:
        counted = [v for v in verdicts if v.counts]
        assert len({v.claim for v in counted}) == len(counted)  # each is judged once
        rules.append({v.claim: {c.relation for c in v.comparisons} for v in counted})
    for one, other in itertools.combinations(rules, 2):
        assert len(one.keys() & other.keys()) == 3
        assert all(one[claim] == other[claim] for claim in one.keys() & other.keys())


def test_what_is_ours_stands_apart(tmp_path):
    found = Repetitions({"g": [trio()]}, "fold")
    verdicts = [found.need(), ours(found.rarely()), ours(Repetitions({"g": [{}]}, "fold").need())]
    assert [v.text for v in verdicts] == ["reproduced", HOLDS, NOT_DECIDED]
    assert ours(Repetitions({"g": [trio(naive=0.1)]}, "fold").need()).text == DOES_NOT_HOLD
    study = Study("x", "X", "intro", {}, [], lambda _: [], lambda _: verdicts)
    sections = study.report(study.found(tmp_path))
    shown = {s.title: [b.verdicts for b in s.blocks if isinstance(b, VerdictList)] for s in sections}
    assert shown["X"] == [verdicts[:1]]
    assert shown["Our own questions and settings"] == [verdicts[1:]]
