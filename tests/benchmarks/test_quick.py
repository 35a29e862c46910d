"""Every benchmark runs end to end on little data (--quick).  No time is judged here."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
PEERS = ("lightgbm", "xgboost", "catboost", "interpret", "psutil", "pandas", "onnxruntime")
PROGRAMS = (
    "training",
    "prediction",
    "glass_box",
    "trees",
    "weak_learner",
    "residual_round",
    "scaling",
    "threads",
    "startup",
    "phases",
    "ablation",
    "rates",
    "certificate",
    "custom_loss",
    "network_edge",
    "accuracy",
    "tables",
    "cuts",
    "explanations",
    "serving",
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the benchmarks need {', '.join(missing)}: pip install --group bench")
    folder = os.environ.get("CONVEXBOOST_DATA", ROOT.parent / "shared" / "data")
    if not Path(folder).is_dir():
        pytest.skip("the benchmarks need data: set CONVEXBOOST_DATA to the folder with the data sets")
    return tmp_path_factory.mktemp("benchmarks")


def run(name, out):
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--quick", "--out", str(out)]
    if name not in ("threads", "figure"):
        command += ["--threads", "1"]  # the peers' OpenMP threads crawl on a busy machine
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_its_page_and_keeps_its_figures(name, out):
    if name == "prediction" and not (out / "training.md").exists():
        run("training", out)
    printed = run(name, out)
    page = (out / f"{name}.md").read_text()
    assert page.strip() == printed.strip()
    assert f"Command: `python benchmarks/{name}.py --quick" in page
    assert "| --- |" in page
    assert name in json.loads((out / "results.json").read_text())


def test_the_figure_is_drawn_from_the_results(out):
    if not (out / "prediction.md").exists():
        run("training", out)
        run("prediction", out)
    run("figure", out)
    assert (out / "speed.png").stat().st_size > 10_000


def test_a_tree_makes_the_same_models_as_itself(tmp_path):
    pytest.importorskip("pandas")
    command = [
        sys.executable,
        str(BENCHMARKS / "same_models.py"),
        ".",
        ".",
        "--only",
        "tree: CVaR",
        "network: squares",
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("2 of 2 the same\n")


def test_the_bench_command_passes_its_options_on(out):
    done = subprocess.run(
        [sys.executable, "-c", "from convexboost.cli import main; main()", "bench", "--only", "nothing"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "invalid choice: 'nothing'" in done.stderr
