"""The pictures: what they hold, where they draw, and that nothing odd breaks them."""

import sys

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from convexboost import CertificateDisplay, ConvergenceDisplay, ConvexBoostRegressor, EdgeDisplay
from convexboost.learners.stump import Stump

matplotlib.use("Agg")
import matplotlib.pyplot as plt

X, Y = load_diabetes(return_X_y=True)
DISPLAYS = [ConvergenceDisplay, EdgeDisplay, CertificateDisplay]


def fit(**options):
    model = ConvexBoostRegressor("absolute", Stump(max_bins=8), n_rounds=40, **options)
    return model.fit(X[:300], Y[:300], X_val=X[300:], y_val=Y[300:])


PLAIN = fit(n_iter_no_change=15)  # all 40 rounds
CERTIFIED = fit(certificate=True, l2=0.5, step="inverse_time")
NAIVE = fit(algorithm="naive", certificate=True)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def labels(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("cls", DISPLAYS)
def test_they_draw_on_their_own_axes_or_on_mine(cls):
    own = cls.from_estimator(CERTIFIED)
    assert own.ax_.figure is own.figure_
    figure, ax = plt.subplots()
    mine = cls.from_estimator(CERTIFIED, ax=ax, name="first")
    assert mine.ax_ is ax
    assert mine.figure_ is figure
    before = len(ax.lines)
    other = cls.from_estimator(NAIVE, ax=ax, name="second")
    assert other.ax_ is ax
    assert len(ax.lines) > before
    assert any(text.startswith("first") for text in labels(other))
    assert any(text.startswith("second") for text in labels(other))
    colours = {display.lines_[next(iter(display.lines_))].get_color() for display in (mine, other)}
    assert len(colours) == 2
    again = own.plot()
    assert again is own
    own.figure_.canvas.draw()


def test_convergence():
    display = ConvergenceDisplay.from_estimator(CERTIFIED)
    history = CERTIFIED.history_
    np.testing.assert_array_equal(display.lines_["best"].get_xdata(), history["weak_learners"])
    np.testing.assert_array_equal(
        display.lines_["best"].get_ydata(), np.minimum.accumulate(history["objective"])
    )
    np.testing.assert_array_equal(display.lines_["validation"].get_ydata(), history["validation"])
    np.testing.assert_array_equal(display.lines_["average"].get_ydata(), history["average"][1:])
    assert display.lines_["lower_bound"].get_ydata().max() > 0
    assert display.gap_ is not None
    assert display.ax_.get_xlabel() == "weak learners"
    plain = ConvergenceDisplay.from_estimator(PLAIN)
    assert {"best", "validation"} <= set(plain.lines_)
    assert not {"average", "lower_bound"} & set(plain.lines_)
    assert plain.gap_ is None


@pytest.mark.parametrize(
    ("x", "label"),
    [
        ("rounds", "rounds"),
        ("seconds", "seconds"),
        ("gradient_evaluations", "gradient evaluations"),
        ("weak_learners", "weak learners"),
    ],
)
@pytest.mark.parametrize("cls", DISPLAYS)
def test_the_horizontal_axis(cls, x, label):
    display = cls.from_estimator(CERTIFIED, x=x)
    assert display.ax_.get_xlabel() == label


def test_scales():
    assert ConvergenceDisplay.from_estimator(PLAIN).ax_.get_yscale() == "linear"  # less than a decade
    assert ConvergenceDisplay.from_estimator(PLAIN, scale="log").ax_.get_yscale() == "log"
    steep = ConvergenceDisplay(np.arange(3), np.array([1.0, 0.1, 0.0]))
    assert steep.plot().ax_.get_yscale() == "linear"
    assert ConvergenceDisplay(np.arange(3), np.array([1.0, 0.1, 0.01])).plot().ax_.get_yscale() == "log"
    zeros = ConvergenceDisplay(np.arange(3), np.zeros(3)).plot(scale="log")
    assert zeros.ax_.get_yscale() == "linear"
    zeros.figure_.canvas.draw()


def test_edges():
    residual = EdgeDisplay.from_estimator(PLAIN)
    assert list(residual.lines_["edge"].get_xdata()) == [
        1.0
    ]  # a raw edge is known of the first gradient only
    assert len(residual.lines_["intrinsic_edge"].get_xdata()) == 4
    naive = EdgeDisplay.from_estimator(NAIVE, color="red")
    assert list(naive.lines_) == ["edge"]
    assert naive.lines_["edge"].get_color() == "red"
    assert any("raw" in text for text in labels(naive))
    assert any("intrinsic" in text for text in labels(residual))
    nothing = EdgeDisplay(np.arange(3), np.full(3, np.nan), np.full(3, np.nan)).plot()
    assert labels(nothing) == ["no edge was measured"]


def test_certificates():
    display = CertificateDisplay.from_estimator(CERTIFIED)
    gap = display.lines_["gap"].get_ydata()
    assert (np.diff(gap) <= 1e-12).all()
    assert gap[-1] == pytest.approx(
        CERTIFIED.history_["objective"].min() - CERTIFIED.history_["lower_bound"][-1]
    )
    floor = CertificateDisplay.from_estimator(NAIVE)  # no ridge: the floor 0 is the only bound
    assert "lower_bound" not in floor.lines_
    unknown = CertificateDisplay(np.arange(3), np.ones(3), np.full(3, -np.inf)).plot()
    assert "nothing is certified without an assumption" in labels(unknown)
    with pytest.raises(ValueError, match="certificate=True"):
        CertificateDisplay.from_estimator(PLAIN)


@pytest.mark.parametrize("cls", DISPLAYS)
def test_bad_arguments(cls):
    with pytest.raises(NotFittedError):
        cls.from_estimator(ConvexBoostRegressor())
    with pytest.raises(ValueError, match="must be a convexboost estimator, got Ridge"):
        cls.from_estimator(Ridge().fit(X, Y))
    with pytest.raises(ValueError, match="`x` must be one of weak_learners, rounds"):
        cls.from_estimator(CERTIFIED, x="time")
    with pytest.raises(ValueError, match="`scale` must be one of auto, log, linear"):
        cls.from_estimator(CERTIFIED, scale="cubic")


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'convexboost\[plot\]'"):
        ConvergenceDisplay.from_estimator(PLAIN)


def test_the_lowest_validation_loss_is_marked_and_watched_sets_are_drawn():
    model = ConvexBoostRegressor("absolute", Stump(max_bins=8), n_rounds=40)
    sets = {"test": (X[300:], Y[300:])}
    model.fit(X[:300], Y[:300], X_val=X[200:300], y_val=Y[200:300], eval_set=sets)
    display = ConvergenceDisplay.from_estimator(model, x="rounds")
    line = display.lines_["validation"]
    (marked,) = line.get_markevery()
    assert line.get_ydata()[marked] == np.nanmin(model.history_["validation"])
    np.testing.assert_array_equal(display.lines_["test"].get_ydata(), model.evals_result_["test"]["loss"])
    assert "loss on test" in labels(display)
