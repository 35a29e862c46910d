"""The command line, and what importing the package costs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from typer.testing import CliRunner

import convexboost
from convexboost.boosting.training import Result, Stop
from convexboost.cli import main
from convexboost.cli.app import app
from convexboost.cli.demo import COUNTEREXAMPLE_ROUNDS, draw, sentences
from convexboost.paper import counterexample
from convexboost.paper.curve import PAPER, Curve
from convexboost.paper.digits import train


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def python(code, **environment):
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


# --- convexboost -------------------------------------------------------------------------------------------


def test_version():
    found = invoke("--version")
    assert found.exit_code == 0
    assert found.output == f"convexboost {convexboost.__version__}\n"


def test_help():
    found = invoke("--help")
    assert found.exit_code == 0
    assert "Boosting for any convex loss" in found.output
    assert "demo" in found.output
    assert invoke().exit_code == 2  # no command: the help, and a sign that nothing was done


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["fit"], "fit"),
        (["demo", "--weak-learners", "5"], "--weak-learners"),
        (["demo", "--weak-learners", "many"], "--weak-learners"),
        (["demo", "--rounds", "20"], "--rounds"),
    ],
)
def test_bad_arguments(arguments, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = invoke(*arguments)
    assert found.exit_code == 2
    assert named in found.output
    assert list(tmp_path.iterdir()) == []


def test_console_script():
    script = Path(sys.executable).with_name("convexboost")
    found = subprocess.run([script, "--help"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "Usage: convexboost" in found.stdout
    assert "demo" in found.stdout


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "convexboost.cli.app")
    with pytest.raises(SystemExit, match=r"needs typer: pip install 'convexboost\[all\]'"):
        main()


# --- convexboost demo --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "not" / "there"
    found = invoke("demo", "--weak-learners", 60, "--out", out)
    assert found.exit_code == 0
    return found.output, out


@pytest.fixture(scope="module")
def curves():
    return [train(algorithm, 60, lambda record: None) for algorithm in PAPER]


@pytest.fixture(scope="module")
def runs():
    return {algorithm: counterexample.run(algorithm, COUNTEREXAMPLE_ROUNDS) for algorithm in PAPER}


def rows(output, header):
    """The words of the table that begins with this header, by algorithm."""
    lines = output.splitlines()
    first = next(i for i, line in enumerate(lines) if re.match(header, line))
    table = [line.split() for line in lines[first + 1 : first + 4]]
    return {row[0]: row[1:] for row in table}


def test_demo_draws(demo):
    output, out = demo
    assert {"curves.png", "report.html", "figures"} <= {path.name for path in out.iterdir()}
    picture = matplotlib.image.imread(out / "curves.png")
    height, width, _ = picture.shape
    assert (height, width) == (540, 1800)
    for left, right in ((0, 600), (600, 1200), (1200, 1800)):  # something in each of the three panels
        assert len(np.unique(picture[:, left:right].reshape(-1, picture.shape[2]), axis=0)) > 10
    assert "picture:" in output
    assert str(out) in output.replace("\n", "")


def test_demo_prints_the_digits(demo, curves):
    table = rows(demo[0], r"algorithm +objective +train +test +learners +distinct +gradients +seconds")
    assert list(table) == list(PAPER)
    for c in curves:
        objective, train_error, test, learners, distinct, gradients, seconds = table[c.algorithm]
        best = int(np.argmin(c["objective"]))
        assert objective == f"{c['objective'][best]:.4f}"
        assert train_error == f"{c['train_error'][best]:.2%}"
        assert test == f"{c['test_error'][best]:.2%}"
        assert int(learners) == c["weak_learners"][-1] == 60
        assert int(distinct) == c.facts["distinct stumps"]
        assert int(gradients) == c["gradient_evaluations"][-1]
        assert float(seconds) >= 0


def test_demo_prints_the_counterexample(demo, runs):
    table = rows(demo[0], r"algorithm +mean objective +last objective +f\(x1\) +f\(x2\)")
    assert list(table) == list(PAPER)
    for algorithm, found in runs.items():
        expected = [found.objective[:-1].mean(), found.objective[-1], *found.points[-1]]
        assert table[algorithm] == [f"{value:.4f}" for value in expected]


def test_demo_prints_the_sentences(demo, curves, runs):
    words = " ".join(demo[0].split())
    for sentence in sentences(curves, runs):
        assert " ".join(sentence.split()) in words


def test_demo_shows_what_the_paper_says(curves, runs):
    reached = {c.algorithm: c["objective"].min() for c in curves}
    assert reached["residual"] < reached["naive"]
    assert runs["naive"].points[-1, 1] == 1.0
    assert abs(runs["repeated"].points[-1, 1]) < 0.1
    assert abs(runs["residual"].points[-1, 1]) < 0.1


def test_training_calls_the_callback_and_repeats_itself(curves):
    for before in curves:
        seen = []
        c = train(before.algorithm, 60, lambda record, seen=seen: seen.append(record.weak_learners))
        for column in ("objective", "weak_learners", "train_error", "test_error"):
            np.testing.assert_array_equal(c[column], before[column])
        assert c.facts == before.facts
        assert seen == c["weak_learners"].tolist()


# --- what the sentences say of other numbers ---------------------------------------------------------------


def made_up(algorithm, objective, weak_learners, distinct):
    errors = np.append(np.nan, np.linspace(0.5, 0.1, len(objective) - 1))
    columns = {
        "objective": np.array(objective),
        "weak_learners": np.array(weak_learners),
        "gradient_evaluations": np.arange(len(objective)),
        "seconds": np.zeros(len(objective)),
        "train_error": errors,
        "test_error": errors,
    }
    return Curve("digits", algorithm, columns, facts={"distinct stumps": distinct})


def points(*last):
    """A run from (1, 1) to `last`."""
    return counterexample.TwoPointRun(
        Result(None, None, [], [], 0, Stop("rounds", "")), np.array([[1.0, 1.0], last])
    )


MADE_UP = [
    made_up("naive", [1.0, 0.25, 0.5], [0, 1, 2], 2),
    made_up("repeated", [1.0, 0.125, 0.75], [0, 1, 3], 3),
    made_up("residual", [1.0, 0.5, 0.375], [0, 1, 2], 1),
]


def test_sentences():
    digits, counter = sentences(
        MADE_UP, {"naive": points(0.0, 1.0), "repeated": points(0.0, 0.2), "residual": points(0.1, 0.0)}
    )
    assert digits == (
        "On the digits repeated brought the hinge objective from 1 to 0.125 with 3 weak learners; "
        "naive stood at 0.25 after 2, residual stood at 0.375 after 2 "
        "(different stumps used: naive 2, repeated 3, residual 1)."
    )
    assert counter == (
        "On the counter-example naive never moved f(x2) at all, however large its edge; "
        "repeated and residual did."
    )


@pytest.mark.parametrize(
    ("last", "stuck", "moved"),
    [
        ((1.0, 1.0, 1.0), "naive and repeated and residual never moved f(x2) at all", "none did"),
        ((0.5, 0.5, 0.5), "no algorithm never moved f(x2);", "naive and repeated and residual did"),
        ((0.5, 1.0, 0.5), "repeated never moved f(x2) at all", "naive and residual did"),
    ],
)
def test_sentences_follow_the_counterexample(last, stuck, moved):
    runs = {algorithm: points(0.0, x2) for algorithm, x2 in zip(PAPER, last, strict=True)}
    counter = sentences(MADE_UP, runs)[1]
    assert stuck in counter
    assert counter.endswith(f"; {moved}.")


def test_draw_takes_zeros(tmp_path):
    """Objectives and errors of 0 on logarithmic axes, without a warning."""
    runs = {
        algorithm: counterexample.run(algorithm, 3, slopes=(1.0, 1.0), step="constant:1")
        for algorithm in PAPER
    }
    perfect = [made_up(algorithm, [1.0, 0.5, 0.0], [0, 1, 2], 1) for algorithm in PAPER]
    for c in perfect:
        c["test_error"][-1] = 0.0
    path = draw(perfect, runs, tmp_path)
    assert matplotlib.image.imread(path).shape[:2] == (540, 1800)


# --- imports -----------------------------------------------------------------------------------------------


def test_importing_the_package_imports_nothing():
    code = "import sys, json, convexboost; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = set(json.loads(python(code)))
    assert "convexboost" in loaded
    assert not loaded & {
        "numba",
        "sklearn",
        "scipy",
        "numpy",
        "pandas",
        "matplotlib",
        "typer",
        "rich",
        "llvmlite",
    }


def test_public_names_are_loaded_on_demand():
    for name in convexboost.__all__:
        assert getattr(convexboost, name).__name__ == name
    with pytest.raises(AttributeError, match="module 'convexboost' has no attribute 'nothing'"):
        _ = convexboost.nothing


def test_the_estimators_need_no_extra():
    code = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("typer", "rich", "matplotlib", "plotly", "pandas", "polars", "dask", "torch", "onnx"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from convexboost import ConvexBoostClassifier
print(ConvexBoostClassifier(learner="stump", n_rounds=5).fit([[0], [1], [2]], [0, 0, 1]).predict([[5]]))
"""
    assert python(code).strip() == "[1]"


def test_importing_the_estimators_compiles_nothing(tmp_path):
    """A kernel compiled on import would leave an index (.nbi) in Numba's cache."""
    code = """
import os
from pathlib import Path
from convexboost import ConvexBoostClassifier, ConvexBoostRegressor, boost

cache = Path(os.environ["NUMBA_CACHE_DIR"])
ConvexBoostClassifier(), ConvexBoostRegressor()
print(list(cache.rglob("*.nb?")))

import numpy as np
from convexboost.losses.softmax import Softmax

Softmax().value(np.zeros((1, 2)), np.zeros(1, int))
print(len(list(cache.rglob("*.nbi"))) > 0)
"""
    # The second line: the test would see it.
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)).splitlines() == ["[]", "True"]
