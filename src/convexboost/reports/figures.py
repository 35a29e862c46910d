"""A `LineFigure` three times from the same data: for Plotly, for Matplotlib, as CSV."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convexboost.reports.content import Array, Line, LineFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The paper's algorithms have one colour in every figure; the others follow in Okabe and Ito's order.
COLOURS = {"naive": "#6c757d", "repeated": "#d1495b", "residual": "#00798c"}
OTHERS = ("#e69f00", "#7b5ea7", "#56b4e9", "#8c5a2b", "#009e73", "#cc79a7", "#0072b2")
DASHES = {"solid": "-", "dash": "--", "dot": ":"}
MOST_POINTS = 500


def colours(figures: list[LineFigure]) -> dict[str, str]:
    """Give every colour word of a report its colour."""
    words = dict.fromkeys(line.colour or line.name for figure in figures for line in figure.lines)
    others = [word for word in words if word not in COLOURS]
    return COLOURS | {word: OTHERS[i % len(OTHERS)] for i, word in enumerate(others)}


def thin(y: Array, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Choose a limited number of points: first, lowest and highest of blocks that grow geometrically."""
    n = len(y)
    if n <= most:
        return np.arange(n)
    edges = np.unique(np.geomspace(1, n, most // 3).astype(int) - 1)
    keep = [0, n - 1]
    for first, end in pairwise(edges):
        block = y[first:end]
        keep.append(first)
        if np.isfinite(block).any():
            keep += [first + int(np.nanargmin(block)), first + int(np.nanargmax(block))]
    return np.unique(keep)


def is_hidden(figure: LineFigure) -> bool:
    """Say whether a logarithmic vertical axis hides values."""
    return figure.log_y and any(bool((line.points[1] <= 0.0).any()) for line in figure.lines)


def plotly(figure: LineFigure, palette: dict[str, str]) -> dict[str, Any]:
    """Return what report.js hands to Plotly; gaps are None, because JSON has no NaN."""
    traces = []
    for line in figure.lines:
        x, y = line.points
        keep = thin(y)
        colour = palette[line.colour or line.name]
        traces.append(
            {
                "name": line.name,
                "x": _json(x[keep]),
                "y": _json(y[keep]),
                "xs": {name: _json(_x(figure, line, name)[keep]) for name in figure.choices},
                "mode": "lines" if (line.kind or figure.kind) == "line" and len(keep) > 1 else "markers",
                "line": {"color": colour, "width": 2.2, "dash": line.dash},
                "marker": {"color": colour, "size": 8},
                "band": [_json(side[keep]) for side in _band(line)],
            }
        )
    axes = {
        "x": {"title": figure.xlabel, "choices": figure.choices, "type": "log" if figure.log_x else "linear"},
        "y": {"title": figure.ylabel, "type": "log" if figure.log_y else "linear"},
    }
    return {"title": figure.title, "traces": traces, **axes}


def _band(line: Line) -> list[Array]:
    return [np.asarray(side, float) for side in line.band or ()]


def _x(figure: LineFigure, line: Line, name: str) -> Array:
    return np.asarray(line.x if name == figure.xlabel else line.other_x[name], float)


def _json(values: Array) -> list[float | None]:
    """Six digits are more than a screen shows."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values]


def draw(figure: LineFigure, palette: dict[str, str]) -> Figure:
    """Draw with Matplotlib."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(6.4, 4.0), layout="constrained")
    ax = picture.subplots()
    for line in figure.lines:
        x, y = line.points
        style: dict[str, Any] = {"ls": DASHES[line.dash]}
        if (line.kind or figure.kind) == "marker" or len(x) < 2:
            style = {"ls": "", "marker": "o"}
        colour = palette[line.colour or line.name]
        ax.plot(x, y, label=line.name, color=colour, lw=1.8, **style)
        if line.band is not None:
            low, high = _band(line)
            ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    points = [line.points for line in figure.lines]
    if figure.log_x and any((x > 0.0).any() for x, _ in points):
        ax.set_xscale("log", nonpositive="mask")
    if figure.log_y and any((y > 0.0).any() for _, y in points):
        ax.set_yscale("log", nonpositive="mask")
    ax.set(title=figure.title, xlabel=figure.xlabel, ylabel=figure.ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.5)
    if figure.lines:
        ax.legend(frameon=False, fontsize="small")
    return picture


def save(picture: Figure, path: Path) -> None:
    """Save PATH.png and PATH.svg.  The layout, which takes half of the time, is found once for both."""
    picture.draw_without_rendering()
    picture.set_layout_engine("none")
    picture.savefig(f"{path}.png", dpi=150)
    picture.savefig(f"{path}.svg")


def write_csv(figure: LineFigure, path: Path) -> None:
    """Write every point: line, x, y, what x may be instead, and the band where there is one."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = figure.choices
        banded = any(line.band is not None for line in figure.lines)
        writer.writerow(
            ("line", names[0], figure.ylabel, *names[1:], *(("lowest", "highest") if banded else ()))
        )
        for line in figure.lines:
            x, *others = (_x(figure, line, name).tolist() for name in names)
            y = line.points[1].tolist()
            band = [side.tolist() for side in _band(line)] or ([y, y] if banded else [])
            rows = zip(x, y, *others, *band, strict=True)
            writer.writerows((line.name, *row) for row in rows)


def sample(line: Line, most: int = 12) -> list[tuple[float, float]]:
    """Return a few points, for the table below a figure."""
    x, y = line.points
    rows = np.unique(np.geomspace(1, len(x), most).astype(int) - 1) if len(x) else np.zeros(0, int)
    return [(float(x[i]), float(y[i])) for i in rows]
