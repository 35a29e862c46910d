"""How the gap depends on the edge, and how tight the theorems are: two figures and a page.

    python benchmarks/rates.py

Everything here is a count or a gap, no time: the machine does not matter.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import common
from common import number, table
from convexboost.paper import chain, rates

COLOURS = {"naive": "#6c757d", "repeated": "#d1495b", "residual": "#00798c", "threshold": "#edae49"}
#: From the tightest bound to the loosest.
LINKS = ("#111111", "#00798c", "#66a182", "#edae49", "#d1495b")
LABELS = ("measured gap", "certificate", "theorem, measured", "theorem, a priori", "paper")
L2 = 0.5
COUNTS = ("weak_learners", "subgradients")


def draw_rates(
    edges: dict[str, list[rates.EdgeRow]], floor: rates.Floor, per: rates.Efficiency, path: Path
) -> None:
    """Draw the three comparisons in four panels."""
    figure, grid = plt.subplots(2, 2, figsize=(10, 7.6), layout="constrained")
    _draw_edges(grid[0, 0], edges)
    _draw_floor(grid[0, 1], floor)
    _draw_efficiency(grid[1, 0], per, by_learner=True)
    _draw_efficiency(grid[1, 1], per, by_learner=False)
    grid[1, 1].sharey(grid[1, 0])
    _save(figure, path)


def _draw_edges(axes: Axes, edges: dict[str, list[rates.EdgeRow]]) -> None:
    bound = edges["scatter"]
    x = [1 / row.edge for row in bound]
    axes.plot(x, [row.printed for row in bound], "--", color=LINKS[4], label="paper's constant, c = 2/γ²")
    axes.plot(x, [row.theorem_b for row in bound], "-", color=LINKS[3], label="Theorem B, √κ ≤ 2/γ")
    axes.plot(
        x, [row.gap for row in bound], "o-", color=COLOURS["residual"], label="edge γ exactly, best step"
    )
    rows = edges["coordinates"]
    axes.plot(
        [1 / row.edge for row in rows],
        [row.gap for row in rows],
        "s",
        mfc="none",
        ms=9,
        color="#111111",
        label="one point at a time, N = 1/γ²",
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [f"1/{1 / row.edge:g}" if row.edge < 1 else "1" for row in bound])
    _finish(axes, "Residual: half the edge, twice the gap", "edge γ", "average gap after T weak learners")


def _draw_floor(axes: Axes, floor: rates.Floor) -> None:
    for name, curve in floor.curves.items():
        axes.plot(curve.weak_learners, curve.best, color=COLOURS[name], label=name)
    axes.axhline(floor.floor, color="0.4", lw=0.9, ls=(0, (4, 3)))
    end = floor.curves["naive"].weak_learners[-1]
    axes.text(end, 0.93 * floor.floor, "floor of naive, whatever the steps", ha="right", va="top", fontsize=8)
    axes.set_xscale("log")
    _finish(axes, f"A miserly weak learner, edge {floor.edge:g}", "weak learners", "best gap")


def _draw_efficiency(axes: Axes, per: rates.Efficiency, by_learner: bool) -> None:
    for name, curve in per.curves.items():
        t = np.arange(1, len(curve.gap) + 1)
        axes.plot(curve.weak_learners if by_learner else t, curve.average, color=COLOURS[name], label=name)
    column = 0 if by_learner else 1
    axes.plot(
        [row[column] for row in per.threshold],
        [row[2] for row in per.threshold],
        "o:",
        color=COLOURS["threshold"],
        label="repeated with a threshold",
    )
    axes.set_xscale("log")
    what = "weak learners" if by_learner else "subgradients"
    _finish(axes, f"The price in {what}, edge {per.edge:g}", what, "average gap")


def draw_chains(found: list[chain.Chain], path: Path) -> None:
    """Draw the bounds over the gap, one panel for each run."""
    figure, grid = plt.subplots(1, len(found), figsize=(12, 4.4), layout="constrained")
    for axes, one in zip(grid, found, strict=True):
        t = np.arange(1, len(one.curves[0]) + 1)
        for i, (curve, colour, label) in enumerate(zip(one.curves, LINKS, LABELS, strict=True)):
            hidden = i == 1 and np.allclose(curve, one.curves[2], rtol=0.02)
            axes.plot(
                t, curve, color=colour, lw=4 if hidden else 1.7, alpha=0.35 if hidden else 1, label=label
            )
        axes.fill_between(t, one.curves[0], one.curves[1], color="0.9", lw=0)
        axes.set_xscale("log")
        _finish(axes, one.title, "rounds T", "average gap" if axes is grid[0] else "", legend=False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    _save(figure, path)


def _finish(axes: Axes, title: str, x: str, y: str, legend: bool = True) -> None:
    axes.set_yscale("log")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="0.92", lw=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(frameon=False, fontsize=8)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def page(results: dict[str, Any], images: str) -> str:
    edge_rows = [
        [name, f"{r['edge']:g}", *(number(r[key]) for key in ("gap", "theorem_b", "printed"))]
        for name, rows in results["edges"].items()
        for r in rows
    ]
    floor, T = results["floor"], results["T"]
    price = [
        [name, f"{l2:g}", number(r["gap"]), *(f"{r[key]:,}" for key in COUNTS), f"{r['slope']:.2f}"]
        for l2, found in ((0.0, results["convex"]), (L2, results["strongly_convex"]))
        for name, r in found.items()
    ]
    links = [[title, *(number(v) for v in values)] for title, values in results["chains"].items()]
    best = ", ".join(f"{name} {number(gap)}" for name, gap in floor["best"].items())
    tried = len(rates.MULTIPLES)
    return "\n\n".join(
        [
            f"![Rates]({images}/rates.png)",
            "R[f] = mean |f − y|, y normal, f_0 = 0. `scatter`: the answer of the weak learner has the edge "
            "γ exactly, the rest of it is a random orthogonal direction (256 points, the best of "
            f"{tried} constant steps). "
            "`coordinates`: one function for each of N = 1/γ² points, Theorem B's step. Average gap after "
            f"T = {T:,} weak learners:",
            table(("weak learner", "γ", "gap", "Theorem B", "with the paper's c"), edge_rows),
            f"`miser`, edge {floor['edge']:g}, 64 points: answers with Δ at as few points as it may, always "
            f"the same ones first. Best gap after {floor['weak_learners']:,} weak learners, "
            f"step 1/√t: {best}. No steps take naive below {floor['floor']:.4f}.",
            f"`scatter`, edge {results['edge']:g}, 64 points: average gap at the end of the budget, and the "
            "exponent of the gap in the number of weak learners over the second half (log scale) of the run "
            "(over all runs of the threshold form, which must know its horizon). Steps a/√t with the best of "
            f"{tried} scales; 2/(λt) and 1/(λt) where λ > 0. Worst case over all objectives, up to "
            "logarithms: repeated −1/4, with a threshold −1/2, residual −1/2; λ > 0: −1/2, −1, −1. This "
            "objective grows linearly away from its minimum, which is easier than that.",
            table(("algorithm", "λ", "gap", "weak learners", "subgradients", "exponent"), price),
            f"![Bounds]({images}/chain.png)",
            "R[f] = mean |f − y| over the span of 12 random functions (rank 6, 40 points, random weights; "
            f"λ = {results['chain_l2']:g} in the last row), {results['rounds']:,} rounds. The certificate "
            'is C1 at D = ‖f_0 − f*‖, or C2; then Theorem B, E or C with the smallest edge so far; "paper" '
            "is Theorem 6, or the proof of Theorem 7 (its c, the largest distance) with these steps.",
            table(("run", *LABELS), links),
        ]
    )


def summary(per: rates.Efficiency) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: {
            "gap": float(c.average[-1]),
            "weak_learners": int(c.weak_learners[-1]),
            "subgradients": len(c.gap),
            "slope": per.slope(name),
        }
        for name, c in per.curves.items()
    }
    if per.threshold:
        W, T, gap = (np.array(column) for column in zip(*per.threshold, strict=True))
        slope = float(np.polyfit(np.log(W), np.log(gap), 1)[0])
        found["repeated with a threshold"] = {
            "gap": float(gap[-1]), "weak_learners": int(W[-1]), "subgradients": int(T[-1]), "slope": slope
        }  # fmt: skip
    return found


def measure(arguments: argparse.Namespace, images: Path) -> dict[str, Any]:
    T, W, rounds = arguments.T, arguments.weak_learners, arguments.rounds
    edges = {"scatter": rates.scattered(T=T), "coordinates": rates.coordinates(T=T)}
    floor = rates.floor(weak_learners=W)
    convex, strong = rates.efficiency(weak_learners=W), rates.efficiency(l2=L2, weak_learners=W)
    links = chain.chains(n_rounds=rounds)
    draw_rates(edges, floor, convex, images / "rates.png")
    draw_chains(links, images / "chain.png")
    return {
        "T": T,
        "rounds": rounds,
        "chain_l2": chain.L2,
        "edge": convex.edge,
        "edges": {name: [vars(row) for row in rows] for name, rows in edges.items()},
        "floor": {
            "edge": floor.edge,
            "floor": floor.floor,
            "weak_learners": W,
            "best": {name: float(curve.best[-1]) for name, curve in floor.curves.items()},
        },
        "convex": summary(convex),
        "strongly_convex": summary(strong),
        "chains": {one.title: [link.value for link in one.links] for one in links},
    }


def main() -> None:
    parser = common.parser(__doc__, repeats=1)
    parser.add_argument("--T", type=int, default=4000, help="weak learners where the edge varies")
    parser.add_argument("--weak-learners", type=int, default=10_000, help="budget of the comparisons")
    parser.add_argument("--rounds", type=int, default=1000, help="of the runs under the bounds")
    arguments = common.parse(parser, T=100, weak_learners=200, rounds=50)
    kept = arguments.out == common.OUT
    images = common.ROOT / "docs" / "images" if kept else arguments.out
    results = measure(arguments, images)
    title = "Rates: the edge, the floor of naive, the price of each algorithm, and how tight the bounds are"
    common.publish(arguments, "rates", title, page(results, "../images" if kept else "."), results)


if __name__ == "__main__":
    main()
