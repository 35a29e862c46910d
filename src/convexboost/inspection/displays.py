"""Pictures of a run, in the style of scikit-learn's displays.

    ConvergenceDisplay.from_estimator(model)
    ConvergenceDisplay.from_estimator(other, ax=display.ax_, name="other")

Each keeps what it draws as arrays, draws in `plot(ax=None)`, and then has `ax_`, `figure_` and its lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from convexboost.core.space import Array
from convexboost.inspection.drawing import Display, check_estimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

SCALES = ("auto", "log", "linear")
DECADE = 10.0
#: What may be on the horizontal axis.
HORIZONTAL = {
    "weak_learners": "weak learners",
    "rounds": "rounds",
    "seconds": "seconds",
    "gradient_evaluations": "gradient evaluations",
}


class _Display(Display):
    """The part that the three displays share."""

    lines_: dict[str, Line2D]
    _default_x = "weak_learners"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: str | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        scale: str = "auto",
        **options: Any,
    ) -> Self:
        """Draw a fitted model.

        Parameters
        ----------
        estimator : fitted convexboost estimator
            A pipeline has it as its last step.
        x : {"weak_learners", "rounds", "seconds", "gradient_evaluations"}, optional
            The horizontal axis; by default weak learners, and rounds for edges.
        ax : matplotlib axes, optional
            To draw several models in one picture.
        name : str, optional
            For the legend.
        scale : {"auto", "log", "linear"}
            Of the vertical axis; "auto" is logarithmic where the values span more than a decade.
        **options : dict
            For the main line: colour, width, …

        """
        check_estimator(estimator)
        values, label = _horizontal(estimator.history_, cls._default_x if x is None else x)
        return cls._from_fitted(estimator, values, name, label).plot(ax, scale=scale, **options)

    @classmethod
    def _from_fitted(cls, estimator: Any, x: Array, name: str | None, xlabel: str) -> Self:
        raise NotImplementedError

    def plot(self, ax: Axes | None = None, *, scale: str = "auto", **options: Any) -> Self:
        """Draw."""
        raise NotImplementedError

    def _begin_lines(self, ax: Axes | None, scale: str) -> None:
        """Set the axes to draw lines on."""
        if scale not in SCALES:
            raise ValueError(f"`scale` must be one of {', '.join(SCALES)}, got {scale!r}")
        self._begin(ax)
        self.lines_ = {}

    def _end(self, xlabel: str, ylabel: str, scale: str) -> None:
        """Label the axes; "auto" is logarithmic where the values span more than a decade."""
        ax = self.ax_
        ax.set(xlabel=xlabel, ylabel=ylabel)
        values = np.concatenate([np.asarray(line.get_ydata(), float) for line in ax.lines])
        positive = values[(values > 0.0) & np.isfinite(values)]
        wide = len(positive) > 0 and positive.max() > DECADE * positive.min()
        if len(positive) > 0 and (scale == "log" or (scale == "auto" and wide)):
            ax.set_yscale("log", nonpositive="mask")
        ax.legend(frameon=False, fontsize="small")

    def _plot(self, key: str, x: Array, y: Array, label: str, **style: Any) -> Line2D | None:
        """Draw a line, if there is anything to draw."""
        known = ~np.isnan(y)
        if not known.any():
            return None
        (self.lines_[key],) = self.ax_.plot(x[known], y[known], label=label, **style)
        return self.lines_[key]


def _horizontal(history: Mapping[str, Array], x: str) -> tuple[Array, str]:
    if x not in HORIZONTAL:
        raise ValueError(f"`x` must be one of {', '.join(HORIZONTAL)}, got {x!r}")
    return np.asarray(history["round" if x == "rounds" else x], float), HORIZONTAL[x]


def _label(name: str | None, what: str, short: str = "") -> str:
    """Return what a line is called: in full, or the model's name and as little else as it takes."""
    return what if name is None else f"{name}, {short}" if short else name


class ConvergenceDisplay(_Display):
    """The objective over the course of training.

    Parameters
    ----------
    x : array
        The horizontal axis.
    objective : array
        After each round; entry 0 is the start.
    validation, average, lower_bound : array, optional
        The validation loss, the mean objective over the points where a subgradient was taken, and what no
        model gets below; NaN or None where not known.  The gap between best and lower bound is shaded, and
        the lowest validation loss is marked.
    watched : dict of arrays, optional
        The loss on the sets of `eval_set`, by name.
    name : str, optional
        Of the model, for the legend.
    xlabel : str

    Attributes
    ----------
    ax_, figure_
    lines_ : dict
        "best", "objective", "average", "validation", "lower_bound", and the names of watched sets, as far as
        drawn.
    gap_ : the shaded area, or None

    """

    def __init__(
        self,
        x: Array,
        objective: Array,
        *,
        validation: Array | None = None,
        average: Array | None = None,
        lower_bound: Array | None = None,
        watched: Mapping[str, Array] | None = None,
        name: str | None = None,
        xlabel: str = "rounds",
    ) -> None:
        self.watched = dict(watched or {})
        nothing = np.full(len(objective), np.nan)
        self.x, self.objective, self.name, self.xlabel = x, objective, name, xlabel
        self.validation = nothing if validation is None else validation
        self.average = nothing if average is None else average
        self.lower_bound = nothing if lower_bound is None else lower_bound

    @classmethod
    def _from_fitted(cls, estimator: Any, x: Array, name: str | None, xlabel: str) -> Self:
        history = estimator.history_
        known = {column: history.get(column) for column in ("validation", "average", "lower_bound")}
        watched = {key: curves["loss"] for key, curves in estimator.evals_result_.items()}
        return cls(x, history["objective"], **known, watched=watched, name=name, xlabel=xlabel)

    def plot(self, ax: Axes | None = None, *, scale: str = "auto", **options: Any) -> Self:
        """Draw."""
        self._begin_lines(ax, scale)
        x, name = self.x, self.name
        best = np.minimum.accumulate(self.objective)
        label = _label(name, "objective, best so far")
        line = self._plot("best", x, best, label, **{"lw": 1.8, **options})
        colour = {} if line is None else {"color": line.get_color()}
        if (self.objective > best).any():
            self._plot("objective", x, self.objective, "_each round", lw=0.7, alpha=0.4, zorder=1, **colour)
        label = _label(name, "objective, mean over the rounds", "mean")
        self._plot("average", x, self.average, label, lw=1.1, ls="-.", alpha=0.7, **colour)
        label = _label(name, "validation loss", "validation")
        line = self._plot("validation", x, self.validation, label, lw=1.4, ls="--", **colour)
        if line is not None:
            line.set(marker="o", ms=4, markevery=[int(np.argmin(line.get_ydata()))])
        for key, loss in self.watched.items():
            self._plot(key, x[: len(loss)], loss, _label(name, f"loss on {key}", key), lw=1.1, alpha=0.8)
        self._draw_bound(best, colour)
        self._end(self.xlabel, "loss", scale)
        return self

    def _draw_bound(self, best: Array, colour: dict[str, Any]) -> None:
        """Draw the lower bound where it says more than that a loss is not negative."""
        self.gap_ = None
        lower = np.where(np.isfinite(self.lower_bound) & (self.lower_bound != 0.0), self.lower_bound, np.nan)
        label = _label(self.name, "certified lower bound", "bound")
        if self._plot("lower_bound", self.x, lower, label, lw=1.2, ls=":", **colour) is not None:
            known = ~np.isnan(lower)
            self.gap_ = self.ax_.fill_between(
                self.x[known], lower[known], best[known], alpha=0.12, lw=0, **colour
            )


class EdgeDisplay(_Display):
    """The edge of the weak learner in each round.

    The raw edge compares the projection with the whole vector that was projected, the intrinsic edge with its
    part in the span of the weak learners, the only part that matters.  Under "residual" the raw edge tends to
    0 in a healthy run.

    Parameters
    ----------
    x, edge, intrinsic_edge : array
        One entry for each round, NaN where not known.
    name : str, optional
    xlabel : str

    Attributes
    ----------
    ax_, figure_
    lines_ : dict
        "edge", "intrinsic_edge", as far as drawn.

    """

    _default_x = "rounds"

    def __init__(
        self,
        x: Array,
        edge: Array,
        intrinsic_edge: Array,
        *,
        name: str | None = None,
        xlabel: str = "rounds",
    ) -> None:
        self.x, self.edge, self.intrinsic_edge, self.name, self.xlabel = x, edge, intrinsic_edge, name, xlabel

    @classmethod
    def _from_fitted(cls, estimator: Any, x: Array, name: str | None, xlabel: str) -> Self:
        history = estimator.history_
        return cls(x[1:], history["edge"][1:], history["intrinsic_edge"][1:], name=name, xlabel=xlabel)

    def plot(self, ax: Axes | None = None, *, scale: str = "auto", **options: Any) -> Self:
        """Draw."""
        self._begin_lines(ax, scale)
        known = int(np.sum(~np.isnan(self.edge)))
        few: dict[str, Any] = (
            {"marker": "o", "ms": 4, "ls": ""} if known == 1 else {}
        )  # of `residual` only the first round is known
        label = _label(self.name, "raw edge, ‖h‖/‖v‖", "raw" + ", first round" * bool(few))
        line = self._plot("edge", self.x, self.edge, label, **{"lw": 1.4, **few, **options})
        colour = {} if line is None else {"color": line.get_color()}
        label = _label(self.name, "intrinsic edge, ‖h‖/‖Πv‖ within reach", "intrinsic")
        style = {"lw": 1.2, "ls": "--", "marker": "o", "ms": 3, **options, **colour}
        self._plot("intrinsic_edge", self.x, self.intrinsic_edge, label, **style)
        if not self.lines_:
            self.ax_.plot(
                [], [], " ", label=_label(self.name, "no edge was measured", "no edge was measured")
            )
        self._end(self.xlabel, "edge (1: v is a weak learner, 0: out of reach)", scale)
        return self


class CertificateDisplay(_Display):
    """The best objective, the certified lower bound, and the gap between them.

    Parameters
    ----------
    x, objective, lower_bound : array
        After each round; entry 0 is the start.
    name : str, optional
    xlabel : str

    Attributes
    ----------
    ax_, figure_
    lines_ : dict
        "best", "lower_bound", "gap", as far as drawn.

    """

    def __init__(
        self,
        x: Array,
        objective: Array,
        lower_bound: Array,
        *,
        name: str | None = None,
        xlabel: str = "rounds",
    ) -> None:
        self.x, self.objective, self.lower_bound = x, objective, lower_bound
        self.name, self.xlabel = name, xlabel

    @classmethod
    def _from_fitted(cls, estimator: Any, x: Array, name: str | None, xlabel: str) -> Self:
        history = estimator.history_
        if "lower_bound" not in history:
            raise ValueError("`estimator` has no certificate; fit it with certificate=True")
        return cls(x, history["objective"], history["lower_bound"], name=name, xlabel=xlabel)

    def plot(self, ax: Axes | None = None, *, scale: str = "auto", **options: Any) -> Self:
        """Draw."""
        self._begin_lines(ax, scale)
        best = np.minimum.accumulate(self.objective)
        lower = np.where(np.isfinite(self.lower_bound), self.lower_bound, np.nan)
        label = _label(self.name, "objective, best so far")
        line = self._plot("best", self.x, best, label, **{"lw": 1.4, **options})
        colour = {} if line is None else {"color": line.get_color()}
        if (np.nan_to_num(lower) != 0.0).any():  # else the gap is the objective itself
            label = _label(self.name, "certified lower bound", "bound")
            self._plot("lower_bound", self.x, np.where(lower == 0.0, np.nan, lower), label, ls=":", **colour)
        label = _label(self.name, "gap: at most this far above the optimum", "gap")
        self._plot("gap", self.x, best - lower, label, lw=2.2, ls="--", **colour)
        if "gap" not in self.lines_:
            nothing = "nothing is certified without an assumption"
            self.ax_.plot([], [], " ", label=_label(self.name, nothing, nothing))
        self._end(self.xlabel, "objective, bound and gap", scale)
        return self
