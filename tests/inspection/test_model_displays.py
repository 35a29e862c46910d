"""The pictures of a model: what they hold, where they draw, and what they refuse."""

import io
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from convexboost import (
    ContributionDisplay,
    ConvexBoostClassifier,
    ConvexBoostRegressor,
    ImportanceDisplay,
    ShapeFunctionDisplay,
)

matplotlib.use("Agg")
import matplotlib.pyplot as plt

rng = np.random.default_rng(1)
X = pd.DataFrame({"age": rng.normal(size=300), "noise": rng.normal(size=300)})
X["kind"] = pd.Categorical(rng.choice(["a", "b", "c"], 300))
X.loc[:40, "age"] = np.nan
Y = X["age"].fillna(3.0) ** 2 + 2.0 * (X["kind"] == "b")
MODEL = ConvexBoostRegressor(learner="additive", n_rounds=10).fit(X, Y)
SEVERAL = ConvexBoostClassifier(learner="additive", n_rounds=10).fit(X, np.digitize(Y, [1.0, 3.0]))
DRAWN = {
    ImportanceDisplay: lambda model, **options: ImportanceDisplay.from_estimator(model, **options),
    ContributionDisplay: lambda model, **options: ContributionDisplay.from_estimator(model, X, **options),
    ShapeFunctionDisplay: lambda model, **options: ShapeFunctionDisplay.from_estimator(
        model, "age", **options
    ),
}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize("model", [MODEL, SEVERAL], ids=["one output", "three"])
@pytest.mark.parametrize("cls", DRAWN)
def test_they_draw_on_their_own_axes_or_on_mine(cls, model):
    own = DRAWN[cls](model)
    assert own.ax_.figure is own.figure_
    figure, ax = plt.subplots()
    mine = DRAWN[cls](model, ax=ax)
    assert mine.ax_ is ax
    assert mine.figure_ is figure
    assert mine.plot().ax_ is not ax
    figure.savefig(io.BytesIO())


def test_importances_are_the_longest_bars():
    display = ImportanceDisplay.from_estimator(MODEL, max_features=2)
    expected = np.sort(MODEL.importances("total_gain"))[1:]
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], expected)
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert set(names) == {"age", "kind"}
    with_rows = ImportanceDisplay.from_estimator(MODEL, kind="contribution", X=X)
    assert with_rows.ax_.get_xlabel() == "mean absolute contribution to the score"


def test_contributions_lead_from_the_mean_to_the_score():
    display = ContributionDisplay.from_estimator(MODEL, X, row=50, max_features=1)
    found = MODEL.predict_contributions(X[50:51])[0]
    bars = [(bar.get_x(), bar.get_width()) for bar in display.bars_]
    assert len(bars) == 2
    assert bars[0][0] == pytest.approx(found[-1])
    assert sum(bars[1]) == pytest.approx(MODEL.predict(X[50:51])[0])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0] == "2 other features"
    assert labels[1] in (f"age = {X['age'][50]:.4g}", f"kind = {X['kind'][50]}")
    chosen = ContributionDisplay.from_estimator(SEVERAL, X, row=3, output=2)
    assert chosen.name == "2"
    with pytest.raises(ValueError, match="`row` must be below 300, got 300"):
        ContributionDisplay.from_estimator(MODEL, X, row=300)


def test_curves():
    display = ShapeFunctionDisplay.from_estimator(MODEL, "age")
    np.testing.assert_array_equal(display.lines_[0].get_data().values, display.curve.values[:, 0])
    assert display.curve.saw_missing
    assert [text.get_text() for text in display.ax_.texts] == ["missing"]
    levels = ShapeFunctionDisplay.from_estimator(MODEL, 2)
    assert [text.get_text() for text in levels.ax_.get_xticklabels()] == ["a", "b", "c"]
    assert len(ShapeFunctionDisplay.from_estimator(SEVERAL, "kind").lines_) == 3
    with pytest.raises(ValueError, match="`feature` must be one of age, noise, kind, got 'size'"):
        ShapeFunctionDisplay.from_estimator(MODEL, "size")


@pytest.mark.parametrize("cls", DRAWN)
def test_bad_arguments(cls, monkeypatch):
    with pytest.raises(NotFittedError):
        DRAWN[cls](ConvexBoostRegressor())
    with pytest.raises(ValueError, match="must be a convexboost estimator, got Ridge"):
        DRAWN[cls](Ridge().fit(X[["noise"]], Y))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'convexboost\[plot\]'"):
        DRAWN[cls](MODEL)
