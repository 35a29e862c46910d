"""Pictures of maps and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexboost.core.space import Array
from convexboost.planning.maps import Map
from convexboost.planning.planners import Path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Where the light comes from, in degrees clockwise from north and above the horizon, and what it exaggerates.
AZIMUTH, ALTITUDE, EXAGGERATION = 315, 40, 3.0
#: Colours and names of the types of ground in the game level; other types get colours of a palette.
GROUND = {
    ".": ("#e9dfc3", "ground"),
    "T": ("#7fa27b", "trees"),
    "S": ("#b3a46f", "swamp"),
    "W": ("#9fc3dc", "water"),
}
BLOCKED, DARK = "#55524d", "#222222"
#: How the paths are drawn: demonstrated, before learning, after learning.
STYLES: tuple[dict[str, Any], ...] = (
    {"label": "demonstrated", "color": "white", "lw": 4.2, "edge": 6.2},
    {"label": "before learning", "color": "#ffb000", "lw": 1.8, "edge": 3.2, "ls": (0, (3, 1.6))},
    {"label": "after learning", "color": "#d0103a", "lw": 2.0, "edge": 0.0},
)


def draw_paths(
    map: Map,
    demo: Path,
    learned_before: Path | None = None,
    learned_after: Path | None = None,
    ax: Any = None,
) -> Figure:
    """Draw a demonstrated path and what was planned before and after learning, over the shaded map.

    Parameters
    ----------
    map : Map
        With the layer "elevation" it gets hill shading, with types ("is .", …) their colours.
    demo, learned_before, learned_after : Path
        The demonstrated path, and those planned with the costs before and after learning.
    ax : matplotlib axes, optional
        Where to draw.

    Returns
    -------
    Figure

    """
    try:
        import matplotlib.patheffects as effects
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ImportError("draw_paths needs matplotlib: pip install 'convexboost[plot]'") from error
    if ax is None:
        height, width = map.shape[0] * map.spacing[0], map.shape[1] * map.spacing[1]
        ax = plt.subplots(figsize=(5.6, 0.7 + 5.0 * height / width), layout="constrained")[1]
    handles = _draw_ground(ax, map)
    for path, style in zip((demo, learned_before, learned_after), STYLES, strict=True):
        if path is None:
            continue
        options = dict(style)
        edge = options.pop("edge")
        outline = [effects.Stroke(linewidth=edge, foreground=DARK), effects.Normal()] if edge else []
        rows, columns = path.cells.T
        handles += ax.plot(
            columns, rows, path_effects=outline, solid_joinstyle="round", solid_capstyle="round", **options
        )
    for cell, marker, size in ((demo.start, "o", 60), (demo.goal, "*", 190)):
        ax.scatter(*cell[::-1], s=size, marker=marker, c="white", edgecolors=DARK, linewidths=1.2, zorder=5)
    ax.set(xticks=[], yticks=[], aspect=map.spacing[0] / map.spacing[1])
    ax.spines[:].set_visible(False)
    ax.figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    return ax.figure


def _draw_ground(ax: Axes, map: Map) -> list[Any]:
    """Draw what is below the paths; return what the legend should explain."""
    if "elevation" in map.names:
        ax.imshow(_shaded(map), interpolation="bicubic")
        ax.contour(map.layer("elevation"), 12, colors=DARK, linewidths=0.4, alpha=0.3)
        _draw_scale(ax, map)
        return []
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    types = [name.removeprefix("is ") for name in map.names if name.startswith("is ")]
    if not types:  # whatever it is, its first layer has a shape
        ax.imshow(map.features[:, :, 0], cmap="bone")
        return []
    others = iter(colormaps["Pastel1"].colors)  # type: ignore[attr-defined]
    image, handles = np.ones((*map.shape, 3)) * to_rgb(BLOCKED), []
    for symbol in types:
        colour, label = GROUND.get(symbol) or (next(others), symbol)
        here = map.layer(f"is {symbol}") > 0.0
        image[here] = to_rgb(colour)
        if here.any():
            handles.append(Patch(facecolor=colour, edgecolor="#888888", linewidth=0.5, label=label))
    if map.blocked is not None and map.blocked.any():
        handles.append(Patch(facecolor=BLOCKED, label="blocked"))
    ax.imshow(image, interpolation="nearest")
    return handles


def _shaded(map: Map) -> Array:
    from matplotlib import colormaps
    from matplotlib.colors import LightSource, ListedColormap

    z = map.layer("elevation")
    # The part of gist_earth that is land.
    land = ListedColormap(colormaps["gist_earth"](np.linspace(0.38, 0.97, 256)))
    return LightSource(AZIMUTH, ALTITUDE).shade(
        z, land, blend_mode="soft", vert_exag=EXAGGERATION, dx=map.spacing[1], dy=map.spacing[0]
    )


def _draw_scale(ax: Axes, map: Map) -> None:
    """Draw a bar of a round number of metres, about a fifth of the width."""
    across = map.shape[1] * map.spacing[1]
    power = 10.0 ** np.floor(np.log10(across / 5))
    length = max(step * power for step in (1, 2, 5) if step * power <= across / 5)
    left, bottom = 0.04 * map.shape[1], 0.96 * map.shape[0]
    label = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    ends = [left, left + length / map.spacing[1]]
    ax.plot(ends, [bottom, bottom], color=DARK, lw=3, solid_capstyle="butt")
    ax.text(left, bottom - 0.012 * map.shape[0], label, color=DARK, fontsize="small", va="bottom")
