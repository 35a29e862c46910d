"""Studies: what is kept, what is run again, and what a report says when something is missing."""

import csv
import io
import json
import math
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from convexboost.paper import counterexample, study
from convexboost.paper.curve import from_plain, plain
from convexboost.paper.study import Curve, Progress, Results, Study, Unit, compose, line_figure
from convexboost.reports.content import (
    NOT_DECIDED,
    NOT_REPRODUCED,
    REPRODUCED,
    Comparison,
    Section,
    Text,
    VerdictList,
    verdict,
)


def curve(n=4, **options):
    columns = {name: np.arange(n, dtype=float) for name in study.LABELS}
    return Curve("data", "residual", columns | {"test_error": np.full(n, np.nan)}, **options)


def made(units, verdicts=lambda _: []):
    def sections(results):
        return [Section("Curves", [Text(", ".join(results))])]

    return Study("made-up", "Made up", "Nothing.", {"n": 1}, units, sections, verdicts)


class Worker:
    """Units that note when they run."""

    def __init__(self):
        self.ran = []

    def unit(self, key, n=1, then=None):
        def run(watch):
            self.ran.append(key)
            if then is not None:
                then(watch)
            return curve(facts={"n": n})

        return Unit(key, f"unit {key}", run, {"n": n}, 3)


def interrupt(watch):
    os.kill(os.getpid(), signal.SIGINT)


class Told(Progress):
    def __init__(self):
        self.begun, self.ended, self.records = [], [], 0

    def begin(self, unit):
        self.begun.append(unit.key)

    def record(self, unit, record):
        self.records += 1

    def end(self, unit, state):
        self.ended.append((unit.key, state.words))


# --- curves ------------------------------------------------------------------------------------------------


def same(a, b):
    assert (a.dataset, a.algorithm, a.variant, a.partial) == (b.dataset, b.algorithm, b.variant, b.partial)
    assert list(a.columns) == list(b.columns)
    for name in a.columns:
        np.testing.assert_array_equal(a[name], b[name])


def test_a_curve_survives_json():
    odd = {"nan": math.nan, "inf": [np.inf, -np.inf], "int": np.int64(3), "map": np.eye(2), "word": "letter"}
    columns = {name: np.array([0.1, 1 / 3, np.nan, np.inf]) for name in study.LABELS}
    before = Curve("d", "naive", columns, "quick", odd, partial=True)
    after = Curve.from_json(json.loads(json.dumps(before.json(), allow_nan=False)))
    same(after, before)
    assert math.isnan(after.facts["nan"])
    assert after.facts["inf"] == [math.inf, -math.inf]
    assert after.facts["int"] == 3
    assert after.facts["map"] == [[1.0, 0.0], [0.0, 1.0]]
    assert after.facts["word"] == "letter"


@pytest.mark.parametrize("value", [1, 1.5, "words", None, True, [1, [2.0, "x"]], {"a": {"b": -math.inf}}])
def test_plain_values_come_back(value):
    assert from_plain(json.loads(json.dumps(plain(value), allow_nan=False))) == value


def test_a_curve_as_csv():
    before = counterexample.run("residual", 7).result.history
    found = Curve.of(before, "d", "residual", extras={"edge": before["edge"]})
    header, *rows = csv.reader(io.StringIO(found.csv()))
    assert header == [*study.LABELS, "edge"]
    np.testing.assert_array_equal(np.array(rows, float).T, [found[name] for name in header])


def test_columns_are_checked():
    with pytest.raises(ValueError, match="`columns` must have weak_learners"):
        Curve("d", "a", {"objective": np.zeros(2)})
    with pytest.raises(ValueError, match="equally long"):
        Curve("d", "a", {name: np.zeros(k) for k, name in enumerate(study.LABELS)})


def test_line_figure_leaves_out_what_is_not_known():
    known = Curve("d", "naive", {**curve().columns, "test_error": np.array([np.nan, 0.5, 0.2, 0.3])})
    without = Curve("d", "residual", {name: np.zeros(2) for name in study.LABELS}, partial=True)
    figure = line_figure("t", [known, without], "test_error", best=True)
    (line,) = figure.lines
    assert line.name == line.colour == "naive"
    np.testing.assert_array_equal(line.x, [1, 2, 3])
    np.testing.assert_array_equal(line.y, [0.5, 0.2, 0.2])


# --- running -----------------------------------------------------------------------------------------------


def test_a_study_resumes(tmp_path):
    worker = Worker()
    s = made([worker.unit("a"), worker.unit("b")])
    first = s.run(tmp_path)
    told = Told()
    second = s.run(tmp_path, told)
    assert worker.ran == ["a", "b"]
    assert first.complete
    assert second.complete
    assert told.begun == []
    assert told.ended == [("a", study.REUSED), ("b", study.REUSED)]
    for key in "ab":
        same(second.results[key], first.results[key])
        assert second.results[key].facts == {"n": 1}
    s.run(tmp_path, fresh=True)
    assert worker.ran == ["a", "b", "a", "b"]


def test_a_changed_setting_is_another_unit(tmp_path, monkeypatch):
    worker = Worker()
    made([worker.unit("a", n=1)]).run(tmp_path)
    assert made([worker.unit("a", n=2)]).run(tmp_path).results["a"].facts == {"n": 2}
    assert made([worker.unit("a", n=1)]).run(tmp_path).results["a"].facts == {"n": 1}  # still there
    assert worker.ran == ["a", "a"]
    monkeypatch.setattr("convexboost.__version__", "0.0.0")
    made([worker.unit("a", n=1)]).run(tmp_path)
    assert worker.ran == ["a", "a", "a"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"curve": {}}', '{"curve": 1}'])
def test_a_damaged_file_is_made_anew(tmp_path, damage):
    worker = Worker()
    s = made([worker.unit("a")])
    s.run(tmp_path)
    s.path(tmp_path, s.units[0]).write_text(damage)
    assert s.run(tmp_path).complete
    assert worker.ran == ["a", "a"]


def test_a_unit_that_fails_does_not_stop_the_others(tmp_path):
    def missing(watch):
        raise FileNotFoundError("letter.data is not in /nowhere: set CONVEXBOOST_DATA")

    def wrong(watch):
        raise ValueError("no <b>such</b> thing")

    worker = Worker()
    s = made([worker.unit("a", then=missing), worker.unit("b", then=wrong), worker.unit("c")])
    outcome = s.run(tmp_path)
    assert list(outcome.results) == ["c"]
    assert not outcome.complete
    assert not outcome.interrupted
    assert outcome.states["a"].why == "letter.data is not in /nowhere: set CONVEXBOOST_DATA"
    assert outcome.states["b"].why.startswith("ValueError: no <b>such</b> thing (test_study.py, line ")
    report = compose("t", "", [(s, outcome)], "the command", 1.0)
    assert "2 of 3 runs failed" in report.warning
    assert "set CONVEXBOOST_DATA" in report.warning
    assert "partial" not in report.warning
    assert list(s.run(tmp_path).results) == ["c"]
    assert worker.ran == ["a", "b", "c", "a", "b"]  # a failure is tried again


def test_ctrl_c_keeps_what_is_finished_and_the_rest_follows(tmp_path):
    stop = [interrupt]
    worker = Worker()
    s = made([worker.unit("a"), worker.unit("b", then=lambda w: stop and stop.pop()(w)), worker.unit("c")])
    before = signal.getsignal(signal.SIGINT)
    outcome = s.run(tmp_path)
    assert signal.getsignal(signal.SIGINT) is before
    assert outcome.interrupted
    assert list(outcome.results) == ["a"]
    assert [outcome.states[key].words for key in "abc"] == [study.DONE, study.INTERRUPTED, "not begun"]
    report = compose("t", "", [(s, outcome)], "convexboost reproduce x", 1.0)
    assert "partial" in report.warning
    assert "1 of 3 runs" in report.warning
    assert "`convexboost reproduce x`" in report.warning
    outcome = s.run(tmp_path)
    assert outcome.complete
    assert worker.ran == ["a", "b", "b", "c"]
    assert compose("t", "", [(s, outcome)], "", 1.0).warning == ""


def test_ctrl_c_inside_a_training_leaves_a_partial_curve(tmp_path):
    """`boost` swallows it to keep the finished rounds; the study knows all the same."""

    def run(watch):
        def callback(record):
            watch(record)
            if record.round == 5 and stop:
                stop.pop()(watch)

        found = counterexample.run("residual", 50, callbacks=[callback])
        return Curve.of(found.result.history, "d", "residual")

    stop, worker, told = [interrupt], Worker(), Told()
    s = made([Unit("a", "a", run, {}, 50), worker.unit("b")])
    outcome = s.run(tmp_path, told)
    assert outcome.interrupted
    assert worker.ran == []
    assert outcome.results["a"].partial
    assert len(outcome.results["a"]["objective"]) == 6
    assert outcome.results.complete == {}
    assert s.path(tmp_path, s.units[0], partial=True).is_file()
    assert "interrupted" in outcome.results["a"].name
    outcome = s.run(tmp_path, told)
    assert outcome.complete
    assert len(outcome.results["a"]["objective"]) == 51
    assert not s.path(tmp_path, s.units[0], partial=True).is_file()


def test_of_a_unit_that_is_broken_off_remains_what_the_watcher_saw(tmp_path):
    def run(watch):
        counterexample.run("naive", 9, callbacks=[watch])
        interrupt(watch)

    s = made([Unit("a", "a", run, {"dataset": "d", "algorithm": "naive"}, 9)])
    found = s.run(tmp_path).results["a"]
    assert found.partial
    assert (found.dataset, found.algorithm) == ("d", "naive")
    np.testing.assert_array_equal(found["objective"], counterexample.run("naive", 9).objective)


def test_after_ctrl_c_another_study_shows_what_it_has(tmp_path):
    worker = Worker()
    s = made([worker.unit("a"), worker.unit("b", then=interrupt)])
    s.run(tmp_path)
    found = s.found(tmp_path)
    assert list(found.results) == ["a"]
    assert not found.complete
    assert worker.ran == ["a", "b"]


def test_no_half_written_file_remains(tmp_path, monkeypatch):
    worker = Worker()
    s = made([worker.unit("a")])
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert s.run(tmp_path).interrupted
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_sections_that_cannot_do_without_a_run_do_not_cost_the_report(tmp_path):
    s = replace(made([Worker().unit("a", then=interrupt)]), sections=lambda results: results["a"])
    report = compose("t", "", [(s, s.run(tmp_path))], "", 1.0)
    assert any("KeyError: 'a'" in b.words for x in report.sections for b in x.blocks if isinstance(b, Text))
    complete = study.Outcome(Results(), {}, False)
    with pytest.raises(KeyError):
        compose("t", "", [(s, complete)], "", 1.0)


@pytest.mark.parametrize("key", ["", "a/b", "..", "a b", "a.b", "ä"])
def test_a_key_is_a_file_name(key):
    with pytest.raises(ValueError, match="`key` must consist of letters"):
        Worker().unit(key)


def test_keys_differ():
    with pytest.raises(ValueError, match="`units` must have different keys"):
        made([Worker().unit("a"), Worker().unit("a")])


def test_csv_of_every_curve(tmp_path):
    s = made([Worker().unit("a")])
    outcome = s.run(tmp_path)
    s.write_csv(outcome, tmp_path)
    assert (tmp_path / "data" / "made-up" / "a.csv").read_text() == outcome.results["a"].csv()


# --- verdicts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "relation", "limit", "holds"),
    [
        (1, "<", 2, True),
        (2, "<", 2, False),
        (2, "≤", 2, True),
        (3, "≤", 2, False),
        (3, ">", 2, True),
        (2, ">", 2, False),
        (2, "≥", 2, True),
        (1, "≥", 2, False),
        (2, "=", 2, True),
        (1, "=", 2, False),
        (math.nan, "<", 2, None),
        (1, "<", math.nan, None),
        (math.inf, "<", 2, False),
    ],
)
def test_rule_and_text_agree(value, relation, limit, holds):
    found = verdict("claim", Comparison("this", value, relation, limit))
    assert found.holds is holds
    assert found.text == {True: REPRODUCED, False: NOT_REPRODUCED, None: NOT_DECIDED}[holds]
    assert found.rule.startswith(f"this {relation} ")
    assert list(found.numbers.values()) == [pytest.approx((value, limit), nan_ok=True)]


def test_all_comparisons_count():
    yes, no, open_ = (Comparison("x", v, "<", 1.0, "that") for v in (0.0, 2.0, math.nan))
    assert verdict("c", yes, yes).holds is True
    assert verdict("c", yes, no).holds is False
    assert verdict("c", no, open_).holds is None
    assert verdict("c", yes, no).rule == "x < that; x < that"
    with pytest.raises(ValueError, match="`comparisons` must not be empty"):
        verdict("c")
    with pytest.raises(ValueError, match=r"`relation` must be one of <, ≤, >, ≥, =, got '<='"):
        Comparison("x", 1.0, "<=", 2.0)


def test_a_partial_curve_decides_nothing(tmp_path):
    def verdicts(results):
        return [verdict("claim", Comparison("n", results.fact("a", "n"), "=", 1.0))]

    s = made([Worker().unit("a")], verdicts)
    for partial, text in ((False, REPRODUCED), (True, NOT_DECIDED)):
        outcome = study.Outcome(
            Results(a=curve(facts={"n": 1}, partial=partial)), {"a": study.UnitState(study.DONE)}, False
        )
        (found,) = compose("t", "", [(s, outcome)], "", 0.0).verdicts
        assert found.text == text


# --- the counter-example, as a study -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    s = counterexample.study(quick=True)
    return s, s.run(tmp_path_factory.mktemp("counterexample"))


def test_the_counterexample_is_complete(quick):
    s, outcome = quick
    assert outcome.complete
    found = s.verdicts(outcome.results)
    assert all(v.holds is not None for v in found)
    assert any(isinstance(b, VerdictList) for section in s.report(outcome) for b in section.blocks)


def test_its_verdicts_follow_the_numbers(quick):
    """Each answer turns when its numbers do; whether it is yes is not for a test to say."""
    s, outcome = quick
    before = s.verdicts(outcome.results)
    turned = {
        "moves of f(x₂)": lambda v: 1 - np.sign(v),
        "f(x₂)": lambda v: v + 1.0,
        "lowest objective": lambda v: -v,
        "average objective": lambda v: v + 100.0,
        "largest share of the printed bound": lambda v: v + 100.0,
    }
    changed = Results(
        (key, Curve(c.dataset, c.algorithm, c.columns, c.variant, {
            name: turned.get(name, lambda v: v)(value) for name, value in c.facts.items()
        }))
        for key, c in outcome.results.items()
    )  # fmt: skip
    for old, new in zip(before, s.verdicts(changed), strict=True):
        assert old.rule == new.rule
        assert new.holds is False
        assert new.text == NOT_REPRODUCED


def test_it_can_be_reported_with_any_runs_missing(quick):
    s, outcome = quick
    for keys in ([], list(outcome.results)[:1], list(outcome.results)[3:5]):
        some = Results((key, outcome.results[key]) for key in keys)
        bare = Results((key, Curve(c.dataset, c.algorithm, {n: c[n] for n in study.LABELS}, partial=True))
                       for key, c in some.items())  # fmt: skip
        for results in (some, bare):
            assert s.sections(results)
            assert all(v.text in (REPRODUCED, NOT_REPRODUCED, NOT_DECIDED) for v in s.verdicts(results))
    assert {v.text for v in s.verdicts(Results())} == {NOT_DECIDED}
