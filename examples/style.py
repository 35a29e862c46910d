"""What the examples share: their look, their two options, and what to say when data cannot be had."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

IMAGES = Path(__file__).parents[1] / "docs" / "images" / "examples"
GREY, TEAL, RED, AMBER, INK = "#6c757d", "#00798c", "#d1495b", "#e69f00", "#1f2328"


def figure(n_columns: int = 1, width: float = 8.4, height: float = 3.9, **options: Any) -> tuple[Any, Any]:
    """Return a figure and its axes, without boxes."""
    look = {"axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GREY, "font.size": 9}
    with plt.rc_context(look):
        fig, axes = plt.subplots(1, n_columns, figsize=(width, height), layout="constrained", **options)
    for ax in fig.axes:
        ax.grid(alpha=0.2, linewidth=0.5)
        ax.tick_params(color=GREY)
    return fig, axes


def label(ax: Any, x: float, y: float, text: str, colour: str, **options: Any) -> None:
    """Write beside a line what it is, in its colour."""
    ax.annotate(text, (x, y), **{"color": colour, "fontsize": 9, "annotation_clip": False, **options})


def finish(fig: Any, out: Path, finding: str, numbers: dict[str, float]) -> dict[str, float]:
    """Put the finding above the picture, save, print the finding and all numbers, and return them."""
    columns = int(11 * fig.get_figwidth())
    fig.suptitle(textwrap.fill(finding, columns), x=0.01, ha="left", fontsize=11, weight="bold", color=INK)
    out.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(out, dpi=130)
    plt.close(fig)
    print(finding, *(f"  {name}: {number:.4g}" for name, number in numbers.items()), f"-> {out}", sep="\n")
    return numbers


def run(main: Callable[..., dict[str, float]], name: str) -> None:
    """Run an example from the command line."""
    parser = argparse.ArgumentParser(description=f"{name}: see the docstring for what it shows.")
    parser.add_argument("--out", type=Path, default=IMAGES / f"{name}.png", help="where the picture goes")
    parser.add_argument("--small", action="store_true", help="few rows and rounds, to see that it runs")
    options = parser.parse_args()
    try:
        main(options.out, options.small)
    except (FileNotFoundError, ImportError) as error:  # no data, or no PyTorch
        raise SystemExit(f"{name} cannot run here. {error}") from None
