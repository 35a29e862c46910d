from typer.testing import CliRunner

import convexboost
from convexboost.cli.app import app


def test_without_the_source_repository_bench_says_where_to_find_the_benchmarks(monkeypatch, tmp_path):
    monkeypatch.setattr(convexboost, "__file__", str(tmp_path / "lib" / "convexboost" / "__init__.py"))
    result = CliRunner().invoke(app, ["bench"])
    assert result.exit_code == 1
    assert "source repository" in result.output
    assert "make bench" in result.output
