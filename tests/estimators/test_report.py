"""The page about a model: what is on it for every kind of model, and its numbers."""

import re

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.estimators import _report_features, _report_rows
from convexboost.estimators._measures import Measured
from convexboost.learners import Network
from convexboost.metrics import ndcg
from convexboost.reports.content import Bars, LineFigure, Matrix, number

rng = np.random.default_rng(0)
N = 160
FRAME = pd.DataFrame(
    {
        "size": rng.normal(100, 30, N).round(1),
        "town": pd.Categorical(rng.choice(["Bonn", "Köln", "<b>Trier"], N)),
        "built": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, N), unit="D"),
    }
)
FRAME.loc[2, "size"] = np.nan
PRICE = (
    2 * FRAME["size"].fillna(0).to_numpy() + 30 * (FRAME["town"] == "Köln").to_numpy() + rng.normal(0, 5, N)
)
CLASSES = np.array(["low", "middle", "high"])[np.digitize(PRICE, [170, 230])]
SETTINGS = {"n_rounds": 20, "early_stopping": False}


def regressor(loss="half_squared", learner="tree", **settings):
    return ConvexBoostRegressor(loss, learner, **(SETTINGS | settings)).fit(FRAME, PRICE)


def classifier(loss="auto", learner="tree", y=CLASSES):
    loss = () if loss == "auto" else (loss,)
    return ConvexBoostClassifier(*loss, learner=learner, **SETTINGS).fit(FRAME, y)


def page(model, tmp_path, *arguments, **options):
    path = model.report(tmp_path / "model.html", *arguments, **options)
    text = path.read_text(encoding="utf-8")
    return re.sub(r"<script>.*?</script>", "", text, flags=re.S)  # plotly.js says "http" in its comments


def titles(text):
    return re.findall(r"<h[23]>(.*?)</h", text)


def test_a_page_with_rows(tmp_path):
    model = regressor(learning_rate=0.05)  # the largest error is not that of the lowest prediction
    text = page(model, tmp_path, FRAME, PRICE)
    assert titles(text) == [
        *("The model", "Training", "Diagnosis", "Features", "Curves of features"),
        *("On the rows given", "Rows explained"),
    ]
    assert f"<dt>R²</dt><dd>{number(model.score(FRAME, PRICE))}</dd>" in text
    assert f"{100 * model.feature_importances_.max():.1f} %" in text
    worst = int(np.abs(PRICE - model.predict(FRAME)).argmax())
    assert f"Largest error: row {worst + 1}" in text
    assert "all 20 rounds done" in text
    assert "http:" not in text
    assert "https:" not in text
    assert "<b>Trier" not in text  # names are text, not markup
    assert "&lt;b&gt;Trier" in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.html"]


def test_a_page_without_rows(tmp_path):
    text = page(regressor(), tmp_path)
    assert titles(text) == ["The model", "Training", "Diagnosis", "Features"]
    assert "Made without rows" in text
    text = page(regressor(learner="additive"), tmp_path)
    assert "the curves are exact" in text
    text = page(regressor("absolute", certificate=True), tmp_path)
    assert "Certificate and diagnosis" in titles(text)
    assert "certified gap to the optimum" in text


def test_a_page_with_rows_but_no_targets(tmp_path):
    text = page(regressor(), tmp_path, FRAME)
    assert titles(text)[-2:] == ["Curves of features", "Rows explained"]
    assert "Largest error" not in text


def test_classes(tmp_path):
    model = classifier()
    text = page(model, tmp_path, FRAME, CLASSES)
    assert f"<dt>accuracy</dt><dd>{number(model.score(FRAME, CLASSES))}</dd>" in text
    for title in ("Calibration", "Confusion", "Most certain", "Least certain"):
        assert title in text
    two = classifier("hinge", y=CLASSES == "low")
    text = page(two, tmp_path, FRAME, CLASSES == "low")
    assert "Confusion" in text
    assert "Calibration" not in text  # a hinge gives no probabilities


def test_confusion_and_calibration_are_those_of_the_rows():
    model = classifier()
    weight = rng.integers(1, 4, N).astype(float)
    blocks = _report_rows._classes(model, Measured(FRAME, CLASSES, weight))
    matrix = next(block for block in blocks if isinstance(block, Matrix))
    assert list(matrix.rows) == list(model.classes_)
    predicted = model.predict(FRAME)
    for i, true in enumerate(model.classes_):
        for j, said in enumerate(model.classes_):
            assert matrix.counts[i][j] == weight[(true == CLASSES) & (predicted == said)].sum()
    figure = next(block for block in blocks if isinstance(block, LineFigure))
    line = figure.lines[0]
    assert len(line.x) == 10
    # Bins have equally many rows, so the means of the bins give the mean of all.
    blocks = _report_rows._classes(model, Measured(FRAME, CLASSES))
    line = next(block for block in blocks if isinstance(block, LineFigure)).lines[0]
    P = model.predict_proba(FRAME)
    assert np.mean(line.x) == pytest.approx(P.max(axis=1).mean(), rel=1e-12)
    assert np.mean(line.y) == pytest.approx((predicted == CLASSES).mean(), rel=1e-12)


def test_the_parts_of_a_prediction_add_up():
    model = regressor()
    section = _report_rows._explained(model, FRAME, PRICE)
    shown = [block for block in section.blocks if isinstance(block, Bars)]
    assert len(shown) >= 3
    for block in shown:
        row = int(block.title.split("row ")[1]) - 1
        mean = model.predict_contributions(FRAME.iloc[[row]])[0, -1]
        total = mean + sum(value for _, value in block.bars)
        assert total == pytest.approx(model.predict(FRAME.iloc[[row]])[0], rel=1e-9)


def test_parts_that_are_not_shown_are_summed_up():
    values = np.array([0.0, *range(1, 13), 5.0])
    bars = _report_rows._bars(values, [f"x{j}" for j in range(13)])
    assert len(bars) == _report_rows.MOST_PARTS + 1
    assert bars[-1] == ("5 others", 0.0 + 1 + 2 + 3 + 4)
    assert sum(value for _, value in bars) == values[:-1].sum()
    assert _report_rows._bars(np.array([0.0, 2.0]), ["x"]) == [("no feature", 0.0)]


def test_partial_dependence_is_the_mean_score():
    model = regressor()
    curves = _report_features._partial_dependence(model, FRAME, [0, 1])
    assert curves[0].points is not None
    at = 7
    expected = model.predict(FRAME.assign(size=curves[0].points[at])).mean()
    assert curves[0].values[at, 0] == pytest.approx(expected, rel=1e-9)
    levels = dict(zip(curves[1].levels, curves[1].values[:, 0], strict=True))
    everywhere = FRAME.assign(town=pd.Categorical(["Köln"] * N))
    expected = model.predict(everywhere).mean() - model.predict(FRAME).mean()
    assert levels["Köln"] == pytest.approx(expected, rel=1e-9)


def test_curves_of_sums_are_exact():
    model = regressor(learner="stump")
    curves = {curve.column: curve for curve in _report_features._exact(model)}
    parts = model.predict_contributions(FRAME)
    for row in range(5, 15):
        points, values = curves[0].points, curves[0].values
        left = np.searchsorted(points, FRAME["size"][row])  # on a step, whose two corners are beside it
        left = min(max(left, 1), len(points) - 1)
        assert parts[row, 0] == pytest.approx(values[left, 0], rel=1e-9, abs=1e-9)
    many = np.sort(rng.normal(size=1000))
    points, values = _report_features._steps(many, np.arange(1001.0)[:, None])
    np.testing.assert_array_equal(values[:, 0], np.searchsorted(many, points))


def test_a_ranker(tmp_path):
    X, y, qid = rng.normal(size=(60, 2)), rng.integers(3, size=60), np.arange(60) // 6
    model = ConvexBoostRanker(n_rounds=5, early_stopping=False).fit(X, y, qid)
    text = page(model, tmp_path, X, y, qid=qid)
    assert f"<dt>NDCG@10</dt><dd>{number(ndcg(y, model.predict(X), qid))}</dd>" in text
    with pytest.raises(ValueError, match="`qid` is needed with `y`"):
        model.report(tmp_path / "no.html", X, y)
    assert not (tmp_path / "no.html").exists()


@pytest.mark.parametrize("loss", ["quantiles", "poisson"])
def test_several_outputs_and_links(tmp_path, loss):
    model = ConvexBoostRegressor(loss, **SETTINGS).fit(FRAME, np.abs(PRICE))
    text = page(model, tmp_path, FRAME, np.abs(PRICE))
    assert "Rows explained" in titles(text)


def test_a_learner_that_cannot_be_explained(tmp_path):
    X = rng.normal(size=(80, 2))
    model = ConvexBoostRegressor(learner=Network(), **(SETTINGS | {"n_rounds": 2})).fit(X, X[:, 0])
    text = page(model, tmp_path, X, X[:, 0])
    assert "There are no importances" in text
    assert "cannot be taken apart" in text


def test_a_constant_model_and_lists(tmp_path):
    X, y = [[1.0], [2.0], [3.0], [4.0]] * 5, [3.0] * 20
    text = page(ConvexBoostRegressor(**SETTINGS).fit(X, y), tmp_path, X, y)
    assert "it uses no feature" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": PRICE}, "`y` would be ignored: `X` is missing"),
        ({"X": FRAME, "sample_weight": np.ones(N)}, "`sample_weight` would be ignored: `y` is missing"),
        ({"X": FRAME, "y": PRICE[1:]}, f"`y` must have {N} rows like `X`, got {N - 1}"),
        ({"X": FRAME[["size"]], "y": PRICE}, "feature names"),
    ],
)
def test_wrong_rows(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        regressor(n_rounds=2).report(tmp_path / "model.html", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["sparse", "polars", "several targets", "one row"])
def test_rows_of_every_kind(tmp_path, kind):
    X = np.maximum(rng.normal(size=(80, 3)), 0.0)
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    if kind == "sparse":
        X = scipy.sparse.csr_matrix(X)
    elif kind == "polars":
        X = polars.DataFrame(X, schema=["a", "b", "c"])
    elif kind == "several targets":
        y = np.column_stack([y, -y])
    model = ConvexBoostRegressor(n_rounds=4, early_stopping=False).fit(X, y)
    rows = slice(0, 1) if kind == "one row" else slice(None)
    text = page(model, tmp_path, X[rows], y[rows])
    assert titles(text)[-2:] == ["On the rows given", "Rows explained"]
    assert text.count('<figure class="bars">') >= 2
