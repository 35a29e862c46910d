"""Draw speed.png from results.json: how many times faster ours is than the peers.

python benchmarks/figure.py
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

import common

COLOURS = {
    "XGBoost": "#00798c",
    "LightGBM": "#d1495b",
    "CatBoost": "#edae49",
    "HistGradientBoosting": "#66618a",
    "EBM": "#6c757d",
}


@dataclass(frozen=True)
class Panel:
    """One benchmark: for each data set the ratio of each peer that takes part."""

    title: str
    goal: float
    ratios: dict[str, dict[str, float]]


def panels(results: dict[str, Any]) -> list[Panel]:
    """Return what there is to draw."""
    found = []
    if "training" in results:
        one = results["training"]
        ratios = {name: r["ratios"] for name, r in one["data"].items() if r["ratios"]}
        found.append(Panel("Training to XGBoost's error", one["goal"]["least"], ratios))
    if "glass_box" in results:
        one = results["glass_box"]
        ratios = {name: {"EBM": _searched(r)} for name, r in one["data"].items()}
        found.append(Panel("Glass box, early stopping", one["goal"], ratios))
    if "prediction" in results:
        one = results["prediction"]
        found.append(Panel("Prediction", one["goal"], {name: r["ratios"] for name, r in one["data"].items()}))
    return [panel for panel in found if panel.ratios]


def _searched(one: dict[str, Any]) -> float:
    return next(iter(one["ratios"].values()))[one["reference"]]


def bars(axes: Axes, panel: Panel) -> None:
    """Draw a bar per peer, in groups of a data set, fastest peer on top."""
    y, ticks = 0.0, []
    for ratios in panel.ratios.values():
        ticks.append(y + (len(ratios) - 1) / 2)
        for peer, ratio in sorted(ratios.items(), key=lambda item: item[1]):
            axes.barh(y, ratio - 1, left=1, height=0.85, color=COLOURS[peer])
            label = axes.annotate(
                common.number(ratio),
                (ratio, y),
                xytext=(4 if ratio >= 1 else -4, 0),
                textcoords="offset points",
                va="center",
                ha="left" if ratio >= 1 else "right",
                fontsize=8,
            )
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})
            y += 1
        y += 0.7
    axes.axvline(panel.goal, color="0.4", lw=0.9, ls=(0, (4, 3)), zorder=0)
    axes.axvline(1, color="0.2", lw=0.9)
    axes.set_yticks(ticks, list(panel.ratios))
    axes.invert_yaxis()
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def draw(found: list[Panel], path: Path) -> None:
    """Put the panels one below the other, on one logarithmic scale."""
    heights = [sum(len(r) + 0.7 for r in panel.ratios.values()) + 1 for panel in found]
    figure, grid = plt.subplots(
        len(found),
        1,
        sharex=True,
        squeeze=False,
        layout="constrained",
        figsize=(7.5, 1.3 + 0.24 * sum(heights)),
        gridspec_kw={"height_ratios": heights},
    )
    for axes, panel in zip(grid[:, 0], found, strict=True):
        bars(axes, panel)
    ratios = [r for panel in found for group in panel.ratios.values() for r in group.values()]
    grid[-1, 0].set_xscale("log")
    grid[-1, 0].xaxis.set_major_formatter("{x:g}")
    grid[-1, 0].set_xlim(min(0.9, min(ratios) / 2), 2.2 * max(*ratios, *(panel.goal for panel in found)))
    grid[-1, 0].set_xlabel("seconds of the peer / seconds of convexboost (log scale); dashed: the goal")
    peers = {peer for panel in found for group in panel.ratios.values() for peer in group}
    names = [peer for peer in COLOURS if peer in peers]
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[peer]) for peer in names]
    figure.legend(handles, names, loc="outside upper center", ncols=5, frameon=False, fontsize=8)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder of results.json and of the picture")
    parser.add_argument("--quick", action="store_true", help="draw the results of --quick")
    arguments = parser.parse_args()
    out = arguments.out or (common.QUICK_OUT if arguments.quick else common.OUT)
    found = panels(common.load(out))
    if not found:
        raise SystemExit(f"no results of training, glass_box or prediction in {out}: run them first")
    draw(found, out / "speed.png")
    print(out / "speed.png")


if __name__ == "__main__":
    main()
