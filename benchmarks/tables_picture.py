"""The picture of tables.py: loss relative to the best against CPU seconds, for all libraries."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common import geometric_mean, number, table, verdict
from tables_data import OURS, PEERS

WORST = 2.0  #: a loss of more than this many times the best counts as this many


class Point(NamedTuple):
    """A library with a rate and a number of rounds, or at its defaults."""

    library: str
    rate: float | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class Picture:
    """For each point its cost (in fits of LightGBM at its defaults) and its loss (1 is the best)."""

    tables: list[str]
    left_out: list[str]
    points: dict[Point, tuple[float, float]]

    @classmethod
    def of(cls, found: dict[str, dict[Point, tuple[float, float] | None]]) -> Picture:
        """Average over the tables on which every point has a loss and its CPU seconds."""
        whole = {name: at for name, at in found.items() if at and all(at.values())}
        points: dict[Point, tuple[float, float]] = {}
        for point in next(iter(whole.values()), {}):
            cost, loss = [], []
            for at in whole.values():
                least = min(pair[0] for pair in at.values() if pair)
                pair, unit = at[point], at[Point("LightGBM")]
                assert pair is not None
                assert unit is not None
                loss.append(min(max(pair[0], 1e-12) / max(least, 1e-12), WORST))
                cost.append(max(pair[1], 1e-3) / max(unit[1], 1e-3))
            points[point] = geometric_mean(cost), geometric_mean(loss)
        return cls(list(whole), [name for name in found if name not in whole], points)

    def curve(self, library: str) -> np.ndarray:
        """Return cost and least loss up to that cost, over the grid without the defaults: (points, 2)."""
        grid = sorted(pair for point, pair in self.points.items() if point.library == library and point.rate)
        return np.column_stack(
            [[cost for cost, _ in grid], np.minimum.accumulate([loss for _, loss in grid])]
        )

    def at(self, library: str, cost: float) -> float:
        """Return the least loss of a library's curve up to a cost."""
        curve = self.curve(library)
        return float(np.min(curve[curve[:, 0] <= cost, 1], initial=np.inf))

    @property
    def is_lowest(self) -> bool:
        """Return whether our curve is the lowest at every cost from LightGBM's default upward."""
        costs = {cost for cost, _ in self.points.values() if cost >= 1} | {1.0}
        return all(self.at(OURS, cost) <= min(self.at(peer, cost) for peer in PEERS) for cost in costs)

    def draw(self, path: Path) -> None:
        """Draw every point, the curves, and the defaults as larger marks."""
        from matplotlib import pyplot as plt

        import figure

        drawing, axes = plt.subplots(figsize=(7.5, 5.0), layout="constrained")
        for library in (*PEERS, OURS):
            colour = figure.COLOURS.get(library, "black")
            grid = np.array(
                [pair for point, pair in self.points.items() if point.library == library and point.rate]
            )
            curve, (cost, loss) = self.curve(library), self.points[Point(library)]
            axes.scatter(grid[:, 0], _percent(grid[:, 1]), s=9, color=colour, alpha=0.45, lw=0)
            axes.plot(
                curve[:, 0],
                _percent(curve[:, 1]),
                color=colour,
                lw=1.6,
                drawstyle="steps-post",
                label=library,
            )
            marker, size = ("*", 230) if library == OURS else ("s", 45)
            axes.scatter(
                cost,
                _percent(loss),
                marker=marker,
                s=size,
                color=colour,
                edgecolor="white",
                zorder=3,
                clip_on=False,
            )
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g} %")
        axes.set_xlabel("CPU seconds of a fit / those of LightGBM at its defaults (log scale)")
        axes.set_ylabel("loss above the best of the table, geometric mean")
        axes.grid(color="0.9", lw=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title("lines: least loss up to a cost; star and squares: defaults", loc="left", fontsize=9)
        drawing.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=8)
        drawing.savefig(path, dpi=160)
        plt.close(drawing)


def _percent(loss: Any) -> Any:
    """Return by how much a loss is above the best."""
    return 100 * (np.asarray(loss) - 1)


def section(points: Picture, arguments: argparse.Namespace) -> str:
    """Return the picture and a table of its curves."""
    if not points.tables:
        return "Not run on any table for all libraries (`--pareto`). [An older one](tables_search.md)."
    costs = (0.3, 1.0, 3.0, 10.0)
    lines = [
        [name, *(_above(points.at(name, cost)) for cost in costs), _default_of(points, name)]
        for name in (OURS, *PEERS)
    ]
    left = f" Not run, or not with all points: {', '.join(points.left_out)}." if points.left_out else ""
    rates, rounds = (", ".join(map(str, v)) for v in (arguments.pareto_rates, arguments.pareto_rounds))
    about = (
        f"Rates {rates} and rounds {rounds} for every library, all else at its defaults, no early stopping; "
        "log-loss for classes, RMSE for numbers. The loss of each table is relative to the best of all "
        f"points there (at most {WORST:g}), the CPU seconds of a fit to those of LightGBM at its defaults; "
        f"geometric means over {len(points.tables)} tables: {', '.join(points.tables)}.{left} A curve is the "
        "least loss up to a cost. Marks are the defaults; ours is at its full cost, validation included."
    )
    header = ("loss above the best, up to a cost of", *(f"{cost:g}" for cost in costs), "default: cost, loss")
    goal = "our curve is the lowest at every cost from LightGBM's default upward"
    return "\n\n".join(
        [
            about,
            "![Loss against CPU seconds](tables_pareto.png)",
            table(header, lines),
            f"Goal, {goal}: {verdict(points.is_lowest)}.",
        ]
    )


def _above(loss: float) -> str:
    return f"{100 * (loss - 1):.1f} %" if np.isfinite(loss) else ""


def _default_of(points: Picture, name: str) -> str:
    cost, loss = points.points[Point(name)]
    return f"{number(cost)}, {_above(loss)}"
