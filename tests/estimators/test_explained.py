"""What a fitted model says about itself, in the user's columns, levels and classes."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.tree import DecisionTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.learners.tree import Tree
from convexboost.losses.softmax import Softmax

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = ["red", "green", "blue", "grey"]
rng = np.random.default_rng(0)
N = 600
X = pd.DataFrame({"age": rng.uniform(20, 80, N), "noise": rng.normal(size=N), "size": rng.normal(size=N)})
X["colour"] = pd.Categorical(rng.choice(COLOURS, N))
X.loc[rng.random(N) < 0.1, "size"] = np.nan
Y = (
    X["age"] / 10.0
    + 2.0 * (X["colour"] == "blue")
    + 2.0 * (X["colour"] == "red") * X["size"].fillna(1.0)
    + 0.1 * rng.normal(size=N)
)
CLASSES = np.array(["low", "middle", "high", "top"])[np.digitize(Y, [4.0, 5.0, 6.5])]
OPTIONS = {"n_rounds": 20, "random_state": 0}
QID = np.repeat(np.arange(N // 10), 10)

MODELS = {
    "tree": ConvexBoostRegressor(**OPTIONS).fit(X, Y),
    "stump": ConvexBoostRegressor(learner="stump", **OPTIONS).fit(X, Y),
    "additive": ConvexBoostRegressor(learner="additive", **OPTIONS).fit(X, Y),
    "quantiles": ConvexBoostRegressor("quantiles", **OPTIONS).fit(X, Y),
    "poisson": ConvexBoostRegressor("poisson", **OPTIONS).fit(X, Y.clip(lower=0).round()),
    "two classes": ConvexBoostClassifier(**OPTIONS).fit(X, CLASSES > "m"),
    "two outputs": ConvexBoostClassifier(learner="class_stump", **OPTIONS).fit(X, CLASSES > "m"),
    "four classes": ConvexBoostClassifier(Softmax(), **OPTIONS).fit(X, CLASSES),
    "additive, four classes": ConvexBoostClassifier(learner="additive", **OPTIONS).fit(X, CLASSES),
    "ranker": ConvexBoostRanker(**OPTIONS).fit(X, Y.clip(0, 8).round(), qid=QID),
}
CURVES = ["stump", "additive", "two outputs", "additive, four classes"]


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def scores(model, X):
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    F = model.model_.predict(model._check_inputs(X))
    return F[:, 0] if F.shape[1] == 1 else F


def test_contributions_add_up_to_the_scores(model):
    for background in (None, X[:20]):
        found = model.predict_contributions(X[:50], background=background)
        expected = scores(model, X[:50])
        assert found.shape == (50, 5, *expected.shape[1:])
        np.testing.assert_allclose(found.sum(axis=1), expected, rtol=0, atol=1e-9)
    pairs = model.predict_interactions(X[:50])
    np.testing.assert_allclose(pairs.sum(axis=2), model.predict_contributions(X[:50]), rtol=0, atol=1e-9)


@pytest.mark.one_in(2)
def test_importances(model):
    found = model.feature_importances_
    assert found.shape == (4,)
    assert found.sum() == pytest.approx(1.0)
    assert found[1] < 0.2  # noise
    assert found[0] > 0.3
    assert found.argmin() == 1
    total, count = model.importances("total_gain"), model.importances("splits")
    np.testing.assert_allclose(model.importances("gain") * count, total, rtol=1e-12)
    np.testing.assert_allclose(
        model.importances("cover") * count, model.importances("total_cover"), rtol=1e-12
    )
    assert count.sum() == (~model.model_.nodes().is_leaf).sum()
    assert model.importances("contribution", X=X[:100]).argmax() == 0
    support = SelectFromModel(model, prefit=True, max_features=2, threshold=-np.inf).get_support()
    assert support[0]
    assert not support[1]


def test_gain_of_trees_is_the_decrease_of_the_squared_error():
    """One tree on the residuals of the mean: its gains add up to what it explains."""
    y = Y.to_numpy()
    options = {"step": "constant:1", "early_stopping": False, "n_rounds": 1, "algorithm": "naive"}
    model = ConvexBoostRegressor(learner=Tree(max_leaves=8, cat_smooth=0.0), **options).fit(X, y)
    weight, tree = model.model_.terms[0]
    assert weight == pytest.approx(-1.0)
    before, after = y - y.mean(), y - model.predict(X)
    assert tree.gain[tree.feature >= 0].sum() == pytest.approx(
        np.mean(before**2) - np.mean(after**2), rel=1e-6
    )
    assert tree.cover.sum() == pytest.approx(N)


@pytest.mark.parametrize("name", CURVES)
def test_curves_are_the_contributions(name):
    model = MODELS[name]
    curves, found = model.shape_functions(), model.predict_contributions(X).reshape(N, 5, -1)
    assert {"age", "colour"} <= {curve.feature for curve in curves}
    for curve in curves:
        column = X[curve.feature]
        if curve.cuts is None:
            place = [-1 if pd.isna(value) else curve.levels.index(value) for value in column]
        else:
            place = np.searchsorted(curve.cuts, column)
        values = np.where(column.isna().to_numpy()[:, None], curve.missing, curve.values[place])
        np.testing.assert_allclose(found[:, curve.column], values, rtol=0, atol=1e-12)
    assert set(COLOURS) == set(next(c for c in curves if c.feature == "colour").levels)


def test_curves_need_functions_of_one_column():
    with pytest.raises(ValueError, match=r"needs trees that split one column each.* splits [234]"):
        MODELS["tree"].shape_functions()
    pairs = ConvexBoostRegressor(learner=Tree(max_leaves=2), **OPTIONS).fit(X, Y)
    total = sum(len(curve.values) for curve in pairs.shape_functions())
    assert total > 4


@pytest.mark.one_in(2)
def test_apply_text_and_frame(model):
    leaves, nodes = model.apply(X), model.model_.nodes()
    assert leaves.shape == (N, nodes.n_trees)
    F = model.model_.start + sum(
        nodes.values[nodes.leaf[nodes.tree == t][nodes.leaf[nodes.tree == t] >= 0][leaves[:, t]]]
        for t in range(nodes.n_trees)
    )
    np.testing.assert_allclose(F, model.model_.predict(model._check_inputs(X)), rtol=0, atol=1e-9)
    text = model.tree_text(0)
    assert text.count("leaf") == nodes.is_leaf[nodes.tree == 0].sum()
    assert any(f"leaf {leaf}:" in text for leaf in leaves[:, 0])
    table = model.trees_to_dataframe()
    assert len(table) == len(nodes)
    assert set(table["feature"].dropna()) <= set(X.columns)
    levels = table["levels"].dropna()
    assert {level for one in levels for level in one} <= set(COLOURS)
    with pytest.raises(ValueError, match="`tree` must lie between 0 and"):
        model.tree_text(10**6)


@pytest.mark.parametrize("learner", ["tree", Tree(max_leaves=2)], ids=["tree", "pairs"])
def test_two_outputs_for_two_classes_are_one_score(learner):
    labels = np.where(np.median(Y) < Y, "yes", "no")
    model = ConvexBoostClassifier(loss="multiclass_hinge", learner=learner, n_rounds=5, random_state=0)
    model.fit(X, labels)
    assert len(model.model_.start) == 2
    leaves, table = model.apply(X), model.trees_to_dataframe()
    values = table[table["feature"].isna()].groupby("tree")["value"].apply(np.asarray)
    constant = model.model_.start[1] - model.model_.start[0]
    scores = constant + sum(values[t][leaves[:, t]] for t in range(leaves.shape[1]))
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=0, atol=1e-12)
    told = [line.split(": ")[1].split("  (")[0] for line in model.tree_text().splitlines() if "leaf" in line]
    np.testing.assert_allclose(np.sort([float(one) for one in told]), np.sort(values[0]), rtol=1e-5)
    if learner != "tree":
        found = model.predict_contributions(X)
        for curve in model.shape_functions():
            assert curve.values.shape[1] == 1
            if curve.cuts is not None:
                place = np.searchsorted(curve.cuts, X[curve.feature])
                values_at = np.where(X[curve.feature].isna(), curve.missing[0], curve.values[place, 0])
                np.testing.assert_allclose(found[:, curve.column], values_at, rtol=0, atol=1e-12)


@pytest.mark.parametrize("learner", ["stump", "additive", Tree(max_leaves=2)])
def test_curves_know_whether_values_were_missing(learner):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(200, 2))
    options = {"learner": learner, "n_rounds": 20, "random_state": 0}
    model = ConvexBoostRegressor(**options).fit(numbers, numbers.sum(axis=1))
    assert not any(curve.saw_missing for curve in model.shape_functions())
    y = numbers[:, 0] + 5.0 * (numbers[:, 1] > 1.0)
    numbers[numbers[:, 1] > 1.0, 1] = np.nan
    curves = ConvexBoostRegressor(**options).fit(numbers, y).shape_functions()
    assert [curve.column for curve in curves if curve.saw_missing] == [1]


def test_a_constant_has_no_trees():
    model = ConvexBoostRegressor(n_rounds=3).fit(np.zeros((20, 1)), np.arange(20.0))
    with pytest.raises(ValueError, match="the model is a constant: it has no trees"):
        model.tree_text()


def test_text_of_a_tree():
    table = pd.DataFrame({"a": [0.0, 0.0, 1.0, 1.0] * 10, "b": pd.Categorical(["u", "v", "u", "w"] * 10)})
    y = np.where(table["b"] == "u", table["a"], 5.0)
    options = {"step": "constant:1", "early_stopping": False, "n_rounds": 1}
    model = ConvexBoostRegressor(learner=Tree(cat_smooth=0.0), **options).fit(table, y)
    first, *rest = model.tree_text().splitlines()
    assert first.startswith("b in {u}") or first.startswith("b in {v, w}")
    assert "40 rows" in first
    assert any(line.strip().startswith("a <= 0.5") for line in rest)
    assert sum(line.strip().startswith("leaf") for line in rest) == 3


@pytest.mark.one_in(2)
def test_shap_draws_them(model):
    shap = pytest.importorskip("shap")
    found = model.explain(X[:40])
    values = found if found.values.ndim == 2 else found[..., 0]
    total = values.values.sum(axis=1) + values.base_values
    expected = scores(model, X[:40])
    np.testing.assert_allclose(total, expected if expected.ndim == 1 else expected[:, 0], atol=1e-9)
    assert found.feature_names == list(X.columns)
    shap.plots.bar(values, show=False)
    shap.plots.waterfall(values[0], show=False)


@pytest.mark.filterwarnings("ignore")  # of shap and matplotlib, which we do not own
def test_shap_draws_all_rows():
    shap = pytest.importorskip("shap")
    shap.plots.beeswarm(MODELS["tree"].explain(X[:40]), show=False)
    shap.plots.scatter(MODELS["tree"].explain(X[:40])[:, "age"], show=False)


@pytest.mark.parametrize("learner", ["network", DecisionTreeRegressor(max_depth=2)], ids=str)
def test_learners_without_explanations_say_so(learner):
    model = ConvexBoostRegressor(learner=learner, n_rounds=2).fit(X[["age", "noise"]], Y)
    assert not hasattr(model, "feature_importances_")
    for call in (model.predict_contributions, model.predict_interactions, model.apply):
        with pytest.raises(ValueError, match="is no tree and no function of one column"):
            call(X[["age", "noise"]])
    for call in (model.importances, model.shape_functions, model.tree_text, model.trees_to_dataframe):
        with pytest.raises(ValueError, match="has no nodes"):
            call()


def test_bad_arguments():
    model = MODELS["tree"]
    with pytest.raises(
        ValueError, match=r"`kind` must be one of gain, total_gain, splits, .*, contribution, got 'weight'"
    ):
        model.importances("weight")
    with pytest.raises(ValueError, match="`X` goes with kind='contribution', got kind='gain'"):
        model.importances("gain", X=X)
    with pytest.raises(ValueError, match="`X` goes with kind='contribution'"):
        model.importances("contribution")
    with pytest.raises(ValueError, match="background"):
        model.predict_contributions(X, background=X[["age"]])
    for name in ("importances", "shape_functions", "tree_text", "trees_to_dataframe"):
        with pytest.raises(NotFittedError):
            getattr(ConvexBoostRegressor(), name)()


# --- scikit-learn's inspection -----------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [name for name in MODELS if name != "ranker"])
def test_partial_dependence_and_permutation_importance(name):
    model = MODELS[name]
    several = {"quantiles": 3, "four classes": 4, "additive, four classes": 4}.get(name, 1)
    found = partial_dependence(model, X, ["age"], categorical_features=["colour"], grid_resolution=10)
    assert found["average"].shape == (several, 10)
    levels = partial_dependence(model, X, ["colour"], categorical_features=["colour"])
    assert set(levels["grid_values"][0]) == set(COLOURS)
    target = {"target": CLASSES[0]} if several == 4 else {"target": 0} if several > 1 else {}
    PartialDependenceDisplay.from_estimator(
        model, X, ["age", "colour"], categorical_features=["colour"], grid_resolution=5, **target
    )
    y = Y if isinstance(model, ConvexBoostRegressor) else CLASSES
    y = CLASSES > "m" if name.startswith("two") else y
    result = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert result.importances_mean[0] > result.importances_mean[1]


@pytest.mark.parametrize("name", ["stump", "additive"])
def test_curves_are_partial_dependence(name):
    """For a sum of curves both are the same, up to a constant."""
    model = MODELS[name]
    curve = next(c for c in model.shape_functions() if c.feature == "age")
    found = partial_dependence(model, X, ["age"], categorical_features=["colour"], grid_resolution=20)
    ages, average = found["grid_values"][0], found["average"][0]
    ours = curve.values[np.searchsorted(curve.cuts, ages), 0]
    np.testing.assert_allclose(average - average[0], ours - ours[0], rtol=0, atol=1e-9)
