"""Pictures of a model: importances of features, their curves, and what they add to a prediction.

    ImportanceDisplay.from_estimator(model)
    ContributionDisplay.from_estimator(model, X, row=3)
    ShapeFunctionDisplay.from_estimator(model, "age")

Each keeps what it draws as arrays, draws in `plot(ax=None)`, and then has `ax_` and `figure_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from convexboost.core.space import Array
from convexboost.inspection.drawing import Display, check_estimator
from convexboost.inspection.trees import KINDS, ShapeFunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What raises a score, and what lowers it.
UP, DOWN, NEUTRAL = "#c0392b", "#2c6fa6", "#7f8c8d"
#: Height of a bar in inches, and what else a picture of bars needs.
BAR, MARGIN = 0.28, 1.0
#: Levels of a category that are named on an axis, at most.
MOST_LABELS = 30


class ImportanceDisplay(Display):
    """The importance of each feature, as bars.

    Parameters
    ----------
    importances : array of shape (n_features,)
    names : sequence of str
    label : str
        What the numbers are.

    Attributes
    ----------
    ax_, figure_
    bars_ : the bars

    """

    def __init__(self, importances: Array, names: Sequence[str], *, label: str = "importance") -> None:
        self.importances, self.names, self.label = importances, list(names), label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        kind: str = "total_gain",
        X: Any = None,
        max_features: int = 20,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the importances of a fitted model.

        Parameters
        ----------
        estimator
            A fitted convexboost estimator.
        kind : str
            As in `estimator.importances`.
        X : optional
            For kind="contribution".
        max_features : int
            The largest ones are shown.
        ax
            Axes of matplotlib to draw on.
        **options : dict
            For the bars.

        """
        check_estimator(estimator)
        found = estimator.importances(kind, X=X)
        label = KINDS.get(kind, "mean absolute contribution to the score")
        display = cls(found, estimator._naming().features, label=label)
        return display.plot(ax, max_features=max_features, **options)

    def plot(self, ax: Axes | None = None, *, max_features: int = 20, **options: Any) -> Self:
        """Draw, the largest one on top."""
        order = np.argsort(-self.importances, kind="stable")[:max_features][::-1]
        self._begin(ax, (6.4, MARGIN + BAR * len(order)), "x")
        style = {"color": DOWN, "height": 0.7, **options}
        self.bars_ = self.ax_.barh([self.names[j] for j in order], self.importances[order], **style)
        self.ax_.set(xlabel=self.label)
        self.ax_.margins(y=0.02)
        return self


class ContributionDisplay(Display):
    """How the features lead from the mean score to the score of one row, as a waterfall.

    Parameters
    ----------
    contributions : array of shape (n_features,)
    base : float
        The mean score.
    names : sequence of str
        Features, with their values.
    name : str, optional
        Of the score.

    Attributes
    ----------
    ax_, figure_
    bars_ : the bars

    """

    def __init__(
        self, contributions: Array, base: float, names: Sequence[str], *, name: str | None = None
    ) -> None:
        self.contributions, self.base, self.names, self.name = contributions, base, list(names), name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int = 0,
        output: int | None = None,
        background: Any = None,
        max_features: int = 10,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the contributions of a fitted model at one row.

        Parameters
        ----------
        estimator
            A fitted convexboost estimator.
        X
            Rows as in `predict`.
        row : int
            The number of the row in X.
        output : int, optional
            Of a model with several; by default the one with the largest score.
        background : optional
            As in `estimator.predict_contributions`.
        max_features : int
            The largest contributions are shown one by one, the others as one.
        ax
            Axes of matplotlib to draw on.
        **options : dict
            For the bars.

        """
        check_estimator(estimator)
        if not -len(X) <= row < len(X):
            raise ValueError(f"`row` must be below {len(X)}, got {row}")
        chosen = X.iloc[[row]] if hasattr(X, "iloc") else X[[row]]
        found, naming = estimator.predict_contributions(chosen, background=background)[0], estimator._naming()
        name = None
        if found.ndim == 2:
            output = int(found.sum(axis=0).argmax()) if output is None else output
            found, name = found[:, output], naming.outputs[output]
        values = np.asarray(chosen.to_numpy() if hasattr(chosen, "to_numpy") else chosen, object)[0]
        names = [
            f"{feature} = {_short(value)}" for feature, value in zip(naming.features, values, strict=True)
        ]
        display = cls(found[:-1], float(found[-1]), names, name=name)
        return display.plot(ax, max_features=max_features, **options)

    def plot(self, ax: Axes | None = None, *, max_features: int = 10, **options: Any) -> Self:
        """Draw: from the mean at the bottom to the score on top."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        shown, rest = order[:max_features], order[max_features:]
        sizes, names = list(self.contributions[shown]), [self.names[j] for j in shown]
        if len(rest):
            sizes.append(float(self.contributions[rest].sum()))
            names.append(f"{len(rest)} other features")
        lengths = np.array(sizes[::-1], float)
        ends = self.base + np.cumsum(lengths)
        self._begin(ax, (6.4, MARGIN + 0.2 + BAR * len(names)), "x")
        style = {"color": [UP if length > 0 else DOWN for length in lengths], "height": 0.7, **options}
        self.bars_ = self.ax_.barh(names[::-1], lengths, left=ends - lengths, **style)
        self.ax_.bar_label(self.bars_, [f"{length:+.3g}" for length in lengths], padding=3, fontsize="small")
        self.ax_.axvline(self.base, color=NEUTRAL, lw=0.8, ls=":")
        self.ax_.axvline(ends[-1] if len(ends) else self.base, color=NEUTRAL, lw=1.0)
        score = f"score of {self.name}" if self.name is not None else "score"
        total = self.base + float(lengths.sum())
        self.ax_.set(xlabel=score, title=f"{score} {total:.4g}, mean {self.base:.4g}")
        self.ax_.title.set_fontsize("medium")
        edges = np.concatenate([[self.base], ends])
        room = 0.18 * (float(np.ptp(edges)) or 1.0)  # for the numbers beside the bars
        self.ax_.set_xlim(edges.min() - room, edges.max() + room)
        self.ax_.margins(y=0.02)
        return self


class ShapeFunctionDisplay(Display):
    """The exact curve of one feature: what it adds to the score.

    Parameters
    ----------
    curve : ShapeFunction
    outputs : sequence of str
        Their names, for the legend.

    Attributes
    ----------
    ax_, figure_
    lines_ : list
        One for each output: steps for numbers, bars for categories.

    """

    def __init__(self, curve: ShapeFunction, outputs: Sequence[str] = ("",)) -> None:
        self.curve, self.outputs = curve, list(outputs)

    @classmethod
    def from_estimator(cls, estimator: Any, feature: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the curve of a feature, for models that are sums of curves.

        Parameters
        ----------
        estimator
            A fitted convexboost estimator.
        feature : int or str
            The number of the column, or its name.
        ax
            Axes of matplotlib to draw on.
        **options : dict
            For the lines or bars.

        """
        check_estimator(estimator)
        curves, naming = estimator.shape_functions(), estimator._naming()
        for curve in curves:
            if feature in (curve.column, curve.feature):
                return cls(curve, naming.outputs).plot(ax, **options)
        if feature in naming.features or feature in range(len(naming.features)):
            raise ValueError(f"`feature` {feature!r} has no influence on the model")
        raise ValueError(f"`feature` must be one of {', '.join(naming.features)}, got {feature!r}")

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        """Draw; missing values have a mark of their own on the right, if training had some."""
        curve = self.curve
        self._begin(ax)
        self.lines_ = []
        self.ax_.axhline(0.0, color=NEUTRAL, lw=0.8)
        draw = self._draw_levels if curve.cuts is None else self._draw_steps
        for k in range(curve.values.shape[1]):
            self.lines_.append(draw(k, options))
        self.ax_.set(xlabel=curve.feature, ylabel="contribution to the score")
        if curve.values.shape[1] > 1:
            self.ax_.legend(frameon=False, fontsize="small")
        return self

    def _draw_steps(self, k: int, options: dict[str, Any]) -> Any:
        """Draw a curve of numbers, some way beyond the first and the last cut."""
        curve, cuts = self.curve, self.curve.cuts
        assert cuts is not None
        low, high = (cuts[0], cuts[-1]) if len(cuts) else (0.0, 0.0)
        margin = 0.04 * (high - low) if high > low else 1.0
        edges = np.concatenate([[low - margin], cuts, [high + margin]])
        style = {"lw": 1.6, "label": self.outputs[k], **options}
        line = self.ax_.stairs(curve.values[:, k], edges, baseline=None, **style)
        if curve.saw_missing:
            place = high + 3.0 * margin
            self.ax_.plot(place, curve.missing[k], "o", color=line.get_edgecolor(), ms=5)
            if k == int(curve.missing.argmax()):
                near: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
                self.ax_.annotate("missing", (place, curve.missing[k]), (0, 8), **near)
        return line

    def _draw_levels(self, k: int, options: dict[str, Any]) -> Any:
        """Draw a bar for each level, and one for missing values where training had some."""
        curve, n_outputs = self.curve, self.curve.values.shape[1]
        assert curve.levels is not None
        values = np.append(curve.values[:, k], curve.missing[k] if curve.saw_missing else [])
        labels = [*map(str, curve.levels), "missing"][: len(values)]
        width = 0.8 / n_outputs
        places = np.arange(len(values)) + (k - (n_outputs - 1) / 2) * width
        bars = self.ax_.bar(places, values, width, label=self.outputs[k], **options)
        few = (
            np.unique(np.linspace(0, len(labels) - 1, 30).astype(int))
            if len(labels) > 30
            else range(len(labels))
        )
        turn = 60 if len(labels) > 8 else 0
        self.ax_.set_xticks(
            list(few), [labels[i] for i in few], rotation=turn, ha="right" if turn else "center"
        )
        return bars


def _short(value: Any) -> str:
    """Return a value as few characters."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
