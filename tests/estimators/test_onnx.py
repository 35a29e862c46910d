"""onnxruntime gives the scores, predictions, probabilities and labels of the model itself."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from tests.contracts.conftest import LOSSES, data
from tests.contracts.conftest import loss as loss_of
from tests.persistence.cases import fitted, works

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TREES = ["tree", "stump", "sign_stump", "class_stump", "additive"]


def run(model, feed):
    """The outputs of an ONNX model by name."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, feed), strict=True))


def columns(frame):
    """A frame as inputs (n, 1): text, floats, and doubles for times."""
    feed = {}
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = column.astype(object).fillna("").to_numpy()
        elif column.dtype.kind in "mM" or "datetime" in str(column.dtype):
            start = pd.Timestamp(0, tz=column.dt.tz) if hasattr(column.dt, "tz") else pd.Timedelta(0)
            values = ((column - start) / pd.Timedelta(1, "s")).to_numpy(float)
        else:
            values = column.to_numpy(np.float32)
        feed[name] = values[:, None]
    return feed


def check(model, X, found, tolerance=1e-5):
    scores = model.model_.predict(X)
    assert found["scores"].dtype == np.float64
    np.testing.assert_allclose(found["scores"], scores, rtol=0, atol=tolerance)
    if "classes_" in vars(model):
        np.testing.assert_array_equal(found["label"], model.predict(X))
        assert ("probabilities" in found) == (model.loss_.link_steps is not None)
        if "probabilities" in found:
            np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=tolerance)
    elif "prediction" in found:
        predicted = model.predict(X).reshape(len(X), -1)
        np.testing.assert_allclose(found["prediction"], predicted, rtol=1e-6, atol=tolerance)


def big(kind="mixed"):
    """10,000 rows of floats: values at the cuts and beside them, missing ones, and unseen categories."""
    return data(kind, np.random.default_rng(5), 10_000).new.astype(np.float32)


@pytest.mark.parametrize("label", [label for label in LOSSES if loss_of(label).task != "any"])
def test_every_loss_on_ten_thousand_rows(label):
    model, _ = fitted(label, "tree", "mixed", 100, 6)
    X = big()
    check(model, X, run(model.to_onnx(), {"X": X}), 1e-9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["plain", "mixed"])
@pytest.mark.parametrize("label", ["softmax", "logistic", "quantiles", "poisson"])
@pytest.mark.parametrize("name", TREES)
def test_every_learner(name, label, kind):
    if not works(label, name):
        pytest.skip("the learner needs several outputs")
    model, _ = fitted(label, name, kind, 150, 8)
    X = big(kind)
    check(model, X, run(model.to_onnx(), {"X": X}))
    check(model, X, run(model.to_onnx(dtype="float64"), {"X": X.astype(float)}))


def test_values_beside_the_cuts():
    """A float next to a cut goes the same way: the graph compares doubles."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    model = ConvexBoostRegressor(n_rounds=20, early_stopping=False).fit(X, np.sin(3 * X[:, 0]))
    cuts = np.unique(model.model_.nodes().cut[~model.model_.nodes().is_leaf]).astype(np.float32)
    near = np.concatenate([np.nextafter(cuts, s * np.float32(np.inf)) for s in (-1, 1)] + [cuts])
    rows = np.stack(np.meshgrid(near, near[::7]), -1).reshape(-1, 2)
    check(model, rows, run(model.to_onnx(), {"X": rows}), 1e-12)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)).astype(np.float32),
            "city": pd.Categorical(rng.choice(["Zürich", "Genève", "Basel"], n)),
            "when": pd.date_range("2020-01-01", periods=n, tz="Europe/Zurich"),
            "late": pd.to_timedelta(rng.integers(0, 99, n), unit="s"),
        }
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["text", "objects", "int", "bool", "float"])
def test_frames_with_text_and_times(frame, kind, n_classes):
    number = (frame["late"].dt.seconds.to_numpy() // 20 + (frame["city"] == "Basel").to_numpy()) % n_classes
    if kind == "bool" and n_classes > 2:
        pytest.skip("there are two truth values")
    labels = {
        "text": np.array(["a", "b", "ü"]),
        "objects": np.array(["a", "b", "ü"], object),
        "int": np.array([-3, 0, 7]),
        "bool": np.array([False, True]),
        "float": np.array([0.0, 1.0, 2.0]),
    }[kind]
    y = labels[number]
    model = ConvexBoostClassifier(n_rounds=10, early_stopping=False).fit(frame, y)
    exported = model.to_onnx()
    unseen = frame.assign(city=pd.Categorical(["Basel", "Atlantis", None] * 100))
    for X in (frame, unseen):
        found = run(exported, columns(X))
        np.testing.assert_array_equal(found["label"], model.predict(X))
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-9)


def test_models_without_a_split():
    X = np.arange(20.0).reshape(10, 2)
    model = ConvexBoostRegressor(n_rounds=3, early_stopping=False).fit(X, np.full(10, 3.5))
    rows = np.array([[np.nan, 1], [2, 3]], np.float32)
    np.testing.assert_allclose(run(model.to_onnx(), {"X": rows})["prediction"], [[3.5], [3.5]])


def test_the_file_is_written(tmp_path):
    model, _ = fitted("softmax", "tree")
    returned = model.to_onnx(tmp_path / "model.onnx")
    read = onnx.load(tmp_path / "model.onnx")
    assert read == returned
    onnx.checker.check_model(read, full_check=True)
    assert {prop.key: prop.value for prop in read.metadata_props}["estimator"] == "ConvexBoostClassifier"


class UsersLink:
    """A user's loss with a link that is code."""

    def evaluate(self, F, y):
        return ((F - y) ** 2).sum(axis=1), 2 * (F - y)

    def link(self, F):
        return F**3


def test_links_of_users_give_scores_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = ConvexBoostRegressor(UsersLink(), n_rounds=3, early_stopping=False).fit(X, X[:, 0])
    found = run(model.to_onnx(), {"X": X.astype(np.float32)})
    assert set(found) == {"scores"}


def test_what_cannot_be_exported():
    network, _ = fitted("half_squared", "network")
    with pytest.raises(ValueError, match=r"`learner` Network\(\) cannot be exported to ONNX"):
        network.to_onnx()
    with pytest.raises(ValueError, match="not fitted"):
        ConvexBoostRegressor().to_onnx()
    with pytest.raises(ValueError, match="`dtype` must be 'float32' or 'float64', got 'int8'"):
        fitted("softmax", "tree")[0].to_onnx(dtype="int8")
    pairs = pd.DataFrame({"pair": pd.Categorical([(1, 2), (3, 4)] * 20)})
    model = ConvexBoostRegressor(n_rounds=2).fit(pairs, np.arange(40.0))
    with pytest.raises(ValueError, match="column 'pair' holds tuple values: ONNX has no type"):
        model.to_onnx()


def test_onnx_is_optional(monkeypatch):
    model, _ = fitted("softmax", "tree")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"convexboost\[onnx\]"):
        model.to_onnx()
