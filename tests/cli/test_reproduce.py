"""``convexboost reproduce``."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from convexboost.cli import reproduce
from convexboost.cli.app import app
from convexboost.paper import counterexample
from convexboost.paper.study import Results, Study, Unit


def invoke(*arguments):
    found = CliRunner().invoke(app, ["reproduce", *map(str, arguments)], catch_exceptions=False)
    return found.exit_code, " ".join(found.output.split())


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce") / "new"
    return out, *invoke("counterexample", "--quick", "--out", out)


def test_it_writes_a_report(first):
    out, code, words = first
    assert code == 0
    assert "report.html" in words
    html = (out / "report.html").read_text()
    assert f"convexboost reproduce counterexample --quick --out {out}" in html
    assert "This report is partial" not in html
    assert len(list((out / "data" / "counterexample").glob("*.csv"))) == 7
    assert list((out / "figures").glob("*.svg"))
    small = out / "results" / "counterexample"
    assert f"convexboost reproduce counterexample --quick --out {out}" in (small / "README.md").read_text()
    assert len(list(small.glob("*.png"))) == len(list((out / "figures").glob("*.png")))


def test_it_prints_each_verdict_with_its_rule(first):
    words = first[2]
    study = counterexample.study(quick=True)
    for verdict in study.verdicts(study.found(first[0]).results):
        assert f"{verdict.text} “{verdict.claim}”" in words
        for comparison in verdict.comparisons:
            assert comparison.rule in words


@pytest.fixture
def without_pictures(monkeypatch):
    """Drawing takes most of the time of a report; some tests are not about pictures."""

    def savefig(self, path, **options):
        Path(path).touch()

    monkeypatch.setattr(Figure, "draw_without_rendering", lambda self: None)
    monkeypatch.setattr(Figure, "savefig", savefig)


@pytest.mark.usefixtures("without_pictures")
def test_the_second_time_it_only_reads(first):
    out = first[0]
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.json")}
    code, words = invoke("counterexample", "--quick", "--out", out)
    assert code == 0
    assert words.count("taken from an earlier run") == len(before) == 7
    assert before == {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.json")}


@pytest.mark.usefixtures("without_pictures")
def test_pages_go_where_they_are_kept(first, tmp_path):
    """The command makes the page itself: nothing is copied by hand, and old figures do not stay."""
    out, pages = first[0], tmp_path / "docs" / "results"
    folder = pages / "counterexample"
    folder.mkdir(parents=True)
    for name in ("old.png", "mine.png"):
        (folder / name).touch()
    (folder / "README.md").write_text("![an old figure](old.png)")
    code, _ = invoke("counterexample", "--quick", "--out", out, "--pages", pages)
    assert code == 0
    page = (folder / "README.md").read_text()
    assert "7 of 7 runs are there" in page
    assert "This report is partial" not in page
    assert not (folder / "old.png").exists()
    assert (folder / "mine.png").exists()  # the earlier page did not link to it
    for name in re.findall(r"\]\(([\w.-]+)\)", page):
        assert (folder / name).exists()


@pytest.mark.slow
@pytest.mark.usefixtures("without_pictures")
def test_fresh_runs_all_again(first):
    out = first[0]
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.json")}
    _, words = invoke("counterexample", "--quick", "--out", out, "--fresh")
    assert "taken from" not in words
    assert before != {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.json")}


def test_unknown_names(tmp_path):
    code, words = invoke("everything", "--out", tmp_path / "out")
    assert code == 2
    assert "`what` must be one of classification, ranking, planning, counterexample or all" in words
    assert not (tmp_path / "out").exists()
    assert reproduce.names("all") == list(reproduce.EXPERIMENTS)


def test_missing_data(tmp_path, monkeypatch):
    def run(watch):
        raise FileNotFoundError("letter.data is missing: set [CONVEXBOOST_DATA]")

    study = Study("x", "X", "", {}, [Unit("a", "unit a", run, {}, 1)], lambda _: [], lambda _: [])
    monkeypatch.setattr(reproduce, "load", lambda name, quick: study)
    code, words = invoke("counterexample", "--out", tmp_path)
    assert code == 1
    assert "set [CONVEXBOOST_DATA]" in words
    assert "set [CONVEXBOOST_DATA]" in (tmp_path / "report.html").read_text()
    assert "Traceback" not in words


SLOW = """
import sys, time
from convexboost.cli.app import app
from convexboost.paper import counterexample

fast = counterexample.run

def slow(*args, callbacks=(), **kwargs):
    sleep = lambda record: print("round", flush=True) or time.sleep(0.01)
    return fast(*args, callbacks=[*callbacks, sleep], **kwargs)

counterexample.run = slow
app(["reproduce", "counterexample", "--quick", "--out", sys.argv[1]])
"""


@pytest.mark.usefixtures("without_pictures")
def test_ctrl_c(tmp_path):
    """In a process of its own, as a person would."""
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "round" in line:
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    words = process.communicate(timeout=120)[0]
    assert process.returncode == 130, words
    assert "This report is partial" in words
    html = (tmp_path / "report.html").read_text()
    assert "This report is partial" in html
    assert "0 of 7 runs are there" in html
    assert "(interrupted)" in html
    assert "5 not decided" in html
    page = tmp_path / "results" / "counterexample" / "README.md"
    assert "This report is partial" in page.read_text()
    code, words = invoke("counterexample", "--quick", "--out", tmp_path)
    assert code == 0
    assert "This report is partial" not in (tmp_path / "report.html").read_text()
    assert "This report is partial" not in page.read_text()


def test_after_ctrl_c_no_other_study_begins(tmp_path, monkeypatch):
    began = []

    def run(watch):
        began.append(1)
        os.kill(os.getpid(), signal.SIGINT)

    def study(name, quick):
        return Study(name, name, "", {}, [Unit("a", name, run, {}, 1)], lambda _: [], lambda _: [])

    monkeypatch.setattr(reproduce, "load", study)
    monkeypatch.setattr(reproduce, "names", lambda what: ["one", "two"])
    code, words = invoke("all", "--out", tmp_path)
    assert code == 130
    assert began == [1]
    assert re.search(r"0 of 2 runs are there", words)


def test_every_experiment_that_is_there_can_be_reported_empty():
    for name in reproduce.names("all"):
        for quick in (False, True):
            study = reproduce.load(name, quick)
            assert study.name == name
            assert study.units
            study.sections(Results())
            assert all(verdict.holds is None for verdict in study.verdicts(Results()))
