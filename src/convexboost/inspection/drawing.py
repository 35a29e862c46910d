"""What all displays share: axes to draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexboost.core.text import brief_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class Display:
    """A picture that keeps what it draws; after `plot` it has `ax_` and `figure_`."""

    ax_: Axes
    figure_: Figure | SubFigure

    def __repr__(self) -> str:
        """Return what is drawn, in short."""
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        parts = (f"{name}={_shown(value)}" for name, value in kept.items())
        return f"{type(self).__name__}({', '.join(parts)})"

    def _begin(self, ax: Axes | None, size: tuple[float, float] = (6.4, 4.0), axis: Any = "both") -> None:
        """Set the axes to draw on; make some where none are given, with lines along `axis`."""
        try:
            import matplotlib.pyplot as plt
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{type(self).__name__} needs matplotlib: pip install 'convexboost[plot]'"
            ) from error
        if ax is None:
            ax = plt.subplots(figsize=size, layout="constrained")[1]
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(alpha=0.25, linewidth=0.5, axis=axis)
            ax.set_axisbelow(True)
        self.ax_, self.figure_ = ax, ax.figure


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return brief_array(value)
    is_long = isinstance(value, list | dict) and len(value) > 0
    return f"<{type(value).__name__} of {len(value)}>" if is_long else repr(value)


def check_estimator(estimator: Any) -> None:
    """Insist on a fitted estimator of this package."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "history_"):
        raise ValueError(
            f"`estimator` must be a convexboost estimator, got {type(estimator).__name__}; of a pipeline, "
            "give the last step"
        )
