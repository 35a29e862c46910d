"""``convexboost inspect``."""

import json
import pickle

import joblib
import matplotlib.image
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.cli.app import app
from convexboost.losses.quantile import Quantile
from convexboost.reports.content import number

X, Y = make_blobs(1000, 8, centers=20, cluster_std=4, random_state=0)


def inspect(*arguments):
    found = CliRunner().invoke(app, ["inspect", *map(str, arguments)], catch_exceptions=False)
    return found.exit_code, " ".join(found.output.split())


def test_a_stuck_model(tmp_path):
    model = ConvexBoostClassifier(
        "multiclass_hinge", "class_stump", "naive", step="inverse_sqrt", n_rounds=100, early_stopping=False
    ).fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    code, output = inspect(tmp_path / "model.joblib", "--pickle", "--figure", tmp_path / "new" / "run.png")
    assert code == 0
    for words in (
        "ConvexBoostClassifier",
        "loss multiclass_hinge",
        "learner class_stump",
        "algorithm naive",
        "all 100 rounds done",
        "members 1",
        "100 weak learners",
        "Stalled:",
        "Cycling:",
        "algorithm='residual'",
        f"objective 1 {model.history_['objective'][-1]:.6g}",
    ):
        assert words in output, words
    assert "Certificate" not in output
    picture = matplotlib.image.imread(tmp_path / "new" / "run.png")
    assert picture.shape[:2] == (600, 1650)
    for half in (picture[:, :825], picture[:, 825:]):
        assert len(np.unique(half.reshape(-1, picture.shape[2]), axis=0)) > 10


@pytest.mark.parametrize("output", ["best", "last", "average"])
def test_a_healthy_model_with_a_certificate(tmp_path, output):
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200.0) % 7
    model = ConvexBoostRegressor(Quantile(0.9), n_rounds=40, certificate=True, output=output)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model.fit(X, y, X_val=X, y_val=y)))
    code, words = inspect(tmp_path / "model.pkl", "--pickle")
    assert code == 0
    assert "loss quantile" in words
    assert "Certificate" in words
    assert f"Best objective found: {model.certificate_.objective:.6g}" in words
    assert "validation" in words
    assert "Diagnosis Nothing is wrong" in words


@pytest.mark.parametrize("output", ["best", "last", "average"])
def test_the_losses_are_those_of_the_model(tmp_path, output):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] + np.random.default_rng(1).normal(size=60)
    model = ConvexBoostRegressor(
        "half_squared", "tree", n_rounds=30, n_iter_no_change=100, output=output
    ).fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    assert 0 < model.best_round_ < model.n_rounds_ == 30
    of_model = {"best": model.best_round_, "last": 30}.get(output)
    model.save(tmp_path / "model.convexboost")
    found = CliRunner().invoke(app, ["inspect", str(tmp_path / "model.convexboost"), "--json"])
    facts = json.loads(found.stdout)
    text = model.report(tmp_path / "model.html").read_text(encoding="utf-8")
    for name, words in (("objective", "training objective"), ("validation", "validation loss")):
        if of_model is None:
            assert facts[name] is None
            assert f"<dt>{words}</dt>" not in text
        else:
            value = model.history_[name][of_model]
            assert facts[name] == value
            assert f"<dt>{words}</dt><dd>{number(value)}</dd>" in text
    if output == "last":
        residuals = y[40:] - model.predict(X[40:])
        assert facts["validation"] == pytest.approx(0.5 * np.mean(residuals**2))


def test_what_is_not_a_model(tmp_path):
    joblib.dump(Ridge(), tmp_path / "ridge.joblib")
    joblib.dump(ConvexBoostClassifier(), tmp_path / "unfitted.joblib")
    (tmp_path / "text").write_text("not a pickle")
    for name, message in (
        ("nothing", "there is no file"),
        ("ridge.joblib", "holds no convexboost estimator but a Ridge"),
        ("unfitted.joblib", "not fitted"),
        ("text", "cannot be read"),
    ):
        code, output = inspect(tmp_path / name, "--pickle")
        assert code == 2, name
        assert message in output
        assert "Traceback" not in output


def test_a_picture_in_an_unknown_format(tmp_path):
    ConvexBoostClassifier(n_rounds=2).fit(X, Y).save(tmp_path / "model")
    code, output = inspect(tmp_path / "model", "--figure", tmp_path / "run.xyz")
    assert code == 2
    assert "`--figure` must be a file that ends in one of " in output


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_pickle_is_not_loaded_unless_asked_for(tmp_path):
    (tmp_path / "evil.convexboost").write_bytes(pickle.dumps(Evil(tmp_path / "trace")))
    code, output = inspect(tmp_path / "evil.convexboost")
    assert code == 2
    assert "is no model file; if it is a pickle that you trust" in output
    assert "`convexboost inspect --pickle`: this runs the code in it" in output
    assert not (tmp_path / "trace").exists()


def test_the_help_warns():
    code, output = inspect("--help")
    assert code == 0
    assert "Loading runs any code in it" in output.replace("\n", " ")
