"""onnxruntime gives the scores, predictions, probabilities and labels of the model itself."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.core.nodes import Nodes
from tests.contracts.conftest import LOSSES, data
from tests.contracts.conftest import loss as loss_of
from tests.persistence.cases import fitted, works

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from convexboost.onnx import model_of  # noqa: E402

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

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


IDS = {
    "small": [0, 3, 40],
    "negative": [-7, -1, 2],
    "beyond exact floats": [2**24 + 1, 2**24 + 2, 2**24 + 3],
    "beyond 32 bits": [2**31 + 5, 2**40 + 1, 2**52 + 1],
    "fractions": [0.1, 0.25, 1.7],
}


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("as_columns", [False, True])
@pytest.mark.parametrize("kind", IDS)
def test_categories_that_are_numbers(kind, as_columns, n_outputs):
    rng = np.random.default_rng(0)
    ids = np.array(IDS[kind], float)
    number = rng.integers(3, size=300)
    X = pd.DataFrame({"a": rng.normal(size=300).astype(np.float32), "id": ids[number]})
    X.loc[::9, "id"] = np.nan
    if as_columns:
        X["city"] = pd.Categorical(rng.choice(["Bern", "Biel"], 300))
    y = np.where(X["id"].isna(), 4.0, np.array([1.0, -2.0, 7.0])[number]) + X["a"]
    y = np.column_stack([y, -2 * y, y**2])[:, :n_outputs]
    model = ConvexBoostRegressor(
        n_rounds=10, early_stopping=False, random_state=0, categorical_features=list(X.columns[1:])
    ).fit(X, y[:, 0] if n_outputs == 1 else y)
    assert (model.model_.nodes().column == 1).any()
    X.loc[::7, "id"] = ids[1] + 1.0 if kind == "small" else 12345.5  # not seen in training
    expected = model.predict(X).reshape(300, -1)
    for dtype in ("float32", "float64"):
        if dtype == "float32" and kind not in ("small", "negative"):
            with pytest.raises(ValueError, match=r"column 'id' holds the category .*no float32: use"):
                model.to_onnx(dtype=dtype)
            continue
        feed = (
            {"X": X.to_numpy(dtype)}
            if not as_columns
            else columns(X) | {name: X[[name]].to_numpy(dtype) for name in ("a", "id")}
        )
        found = run(model.to_onnx(dtype=dtype), feed)
        np.testing.assert_allclose(found["prediction"], expected, rtol=0, atol=1e-9)


def test_names_of_columns_that_are_names_in_the_graph():
    rng = np.random.default_rng(0)
    inner = ["X", "trees", "prediction", "constant_0", "constant_0_", "cast_0", "concat_8", "labelencoder_1"]
    X = pd.DataFrame(rng.normal(size=(90, len(inner))).astype(np.float32), columns=inner)
    X["city"] = pd.Categorical(rng.choice(["Bern", "Biel"], 90))
    y = (X["trees"] + (X["city"] == "Bern") > 0.5).to_numpy()
    model = ConvexBoostClassifier(n_rounds=5, early_stopping=False, random_state=0).fit(X, y)
    found = run(model.to_onnx(), columns(X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=1e-9)
    for name in ("scores", "label", "probabilities", ""):
        renamed = X.rename(columns={"trees": name})
        model = ConvexBoostClassifier(n_rounds=2, random_state=0).fit(renamed, y)
        with pytest.raises(ValueError, match=f"column '{name}' needs another name for ONNX"):
            model.to_onnx()


def test_doubles_are_not_rounded():
    """With several outputs too; a float would be off by 6e-8 of the sum of the trees."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = 1e6 * np.column_stack([X[:, 0], np.sin(X[:, 1])])
    model = ConvexBoostRegressor(n_rounds=30, early_stopping=False, random_state=0).fit(X, y)
    exact = run(model.to_onnx(dtype="float64"), {"X": X})["scores"]
    np.testing.assert_allclose(exact, model.predict(X), rtol=0, atol=1e-7)
    rows = X.astype(np.float32)
    scores = run(model.to_onnx(), {"X": rows})["scores"]
    start, expected = model.model_.start, model.predict(rows)
    assert (np.abs(scores - expected) <= 2.0**-24 * np.abs(expected - start) + 1e-7).all()


@pytest.mark.parametrize("seed", range(8))
def test_iris_with_any_seed(seed):
    """Some rounds find a tree that is one leaf."""
    X, y = load_iris(return_X_y=True)
    model = ConvexBoostClassifier(n_rounds=30, random_state=seed).fit(X, y)
    rows = X.astype(np.float32)
    check(model, rows, run(model.to_onnx(), {"X": rows}))


def test_models_without_a_split():
    X = np.arange(20.0).reshape(10, 2)
    model = ConvexBoostRegressor(n_rounds=3, early_stopping=False).fit(X, np.full(10, 3.5))
    rows = np.array([[np.nan, 1], [2, 3]], np.float32)
    np.testing.assert_allclose(run(model.to_onnx(), {"X": rows})["prediction"], [[3.5], [3.5]])


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_trees_that_are_one_leaf(n_outputs):
    """Between others: they are part of the constant."""
    model, _ = fitted("half_squared", "tree", "plain", 100, 6)
    nodes = model.model_.nodes()
    values = np.ascontiguousarray(nodes.values[:, :n_outputs])
    split = replace(nodes, values=values, start=nodes.start[:n_outputs])
    alone = replace(
        split,
        **{name: getattr(split, name)[:1] for name in ("missing_left", "unseen_left", "gain", "cover")},
        **{name: np.array([-1], np.int32) for name in ("column", "left", "right", "level_set")},
        **{name: np.zeros(1, np.int32) for name in ("tree", "leaf")},
        cut=np.array([np.nan]),
        values=np.full((1, n_outputs), 0.25),
    )
    X = big("plain")
    several, one = (
        run(
            model_of(
                Nodes.joined(parts, split.start),
                n_features=4,
                inputs=None,
                dtype="float32",
                steps=None,
                metadata={},
            ),
            {"X": X},
        )["scores"]
        for parts in ([alone, split, alone, split], [split])
    )
    np.testing.assert_allclose(several - split.start, 2 * (one - split.start) + 0.5, atol=1e-5)


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
