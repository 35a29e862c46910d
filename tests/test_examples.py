"""Every example runs, draws a picture, and says what it found in numbers that it has computed."""

import importlib
import os
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path.stem.removeprefix("plot_") for path in (ROOT / "examples").glob("plot_*.py"))
NEED_DATA = ("cvar", "worst_group")
SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def example(monkeypatch):
    def load(name):
        plt = pytest.importorskip(
            "matplotlib.pyplot", reason="needs matplotlib: pip install convexboost[plot]"
        )
        plt.switch_backend("agg")
        if name in NEED_DATA and not os.environ.get("CONVEXBOOST_DATA"):
            pytest.skip("set CONVEXBOOST_DATA to the folder with the data sets (bike_sharing/, ...)")
        if name == "torch":
            pytest.importorskip("torch", reason="needs PyTorch: pip install convexboost[torch]")
        monkeypatch.syspath_prepend(ROOT / "examples")
        return importlib.import_module(f"plot_{name}")

    return load


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_draws_what_it_says(name, example, tmp_path, capsys):
    out = tmp_path / "new folder" / "picture.png"
    numbers = example(name).main(out, small=True)
    assert out.read_bytes().startswith(SIGNATURE)
    assert numbers
    assert np.isfinite(list(numbers.values())).all()
    finding, *lines, _ = capsys.readouterr().out.splitlines()
    assert lines == [f"  {name}: {number:.4g}" for name, number in numbers.items()]
    stated = {float(word) for word in re.findall(r"\d+(?:\.\d+)?", finding)}
    computed = {round(number, digits) for number in numbers.values() for digits in (0, 1, 2)}
    assert stated & computed, "the finding is about these numbers"


def test_quantiles_do_not_cross(example, tmp_path):
    assert example("quantiles").main(tmp_path / "picture.png", small=True)["crossings (%)"] == 0.0


def test_ranking_falls_back_on_made_up_queries(example, monkeypatch, capsys):
    def fail():
        raise FileNotFoundError("no such file")

    ranking = example("ranking")
    monkeypatch.setattr(ranking, "load_mq2008", fail)
    assert ranking.queries()[0] == "made-up queries"
    assert "the queries are made up. no such file" in capsys.readouterr().out


def test_missing_data_is_said(example, monkeypatch, tmp_path):
    style = example("ranking").run.__globals__

    def main(out, small):
        raise FileNotFoundError("Put the file there.")

    monkeypatch.setattr("sys.argv", ["plot_x.py", "--out", str(tmp_path / "x.png")])
    with pytest.raises(SystemExit, match=r"x cannot run here\. Put the file there\."):
        style["run"](main, "x")


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_picture_is_committed_and_listed(name):
    path = ROOT / "docs" / "images" / "examples" / f"{name}.png"
    assert path.read_bytes().startswith(SIGNATURE)
    assert path.stat().st_size < 150_000
    listed = (ROOT / "examples" / "README.md").read_text()
    assert f"plot_{name}.py" in listed
    assert f"{name}.png" in listed
