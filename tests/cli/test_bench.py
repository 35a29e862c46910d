import subprocess

from typer.testing import CliRunner

import convexboost
from convexboost.cli.app import app


def test_without_the_source_repository_bench_says_where_to_find_the_benchmarks(monkeypatch, tmp_path):
    monkeypatch.setattr(convexboost, "__file__", str(tmp_path / "lib" / "convexboost" / "__init__.py"))
    result = CliRunner().invoke(app, ["bench"])
    assert result.exit_code == 1
    assert "source repository" in result.output
    assert "make bench" in result.output


def test_the_name_of_a_benchmark_runs_that_one_with_its_options(monkeypatch):
    called = []

    def run(command, check, env):
        assert env["PYTHONIOENCODING"].endswith(":replace")  # a benchmark must not stop at a character
        called.append(command[1:])
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", run)
    result = CliRunner().invoke(app, ["bench", "accuracy", "--half", "defaults"])
    assert result.exit_code == 3
    assert called[0][0].endswith("accuracy.py")
    assert called[0][1:] == ["--half", "defaults"]
    CliRunner().invoke(app, ["bench", "--quick"])
    assert called[1][0].endswith("run_all.py")
    assert called[1][1:] == ["--quick"]


def test_an_unknown_benchmark_is_named():
    result = CliRunner().invoke(app, ["bench", "nothing"])
    assert result.exit_code == 2
    assert "no benchmark 'nothing'" in result.output
