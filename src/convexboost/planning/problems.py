"""Two planning problems: real terrain and a game level, each with regions to train on and others to test on.

Nobody demonstrated paths there, so a planner that knows hidden costs does (`Problem.cost`); learners see
features and paths only.  Both costs are positive and not linear in the features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from convexboost.core.space import Array
from convexboost.datasets import load_elevation, load_terrain
from convexboost.planning.demonstrations import demonstrate
from convexboost.planning.maps import Map, map_from_types, terrain_features
from convexboost.planning.planners import Cell, Horizon, Monotone, Path, Planner

#: Metres in a degree of latitude, and the latitude of the elevation grid.
DEGREE, LATITUDE = 111_200.0, 36.6
#: How much a demonstration's view of the costs is off, cell by cell.
NOISE = 0.1

Corner = tuple[int, int]


class Shown(NamedTuple):
    """Maps and the paths demonstrated on each."""

    maps: list[Map]
    demonstrations: list[list[Path]]

    @property
    def n_demonstrations(self) -> int:
        """Return how many there are."""
        return sum(map(len, self.demonstrations))


@dataclass(frozen=True, eq=False)
class Problem:
    """Demonstrations to learn from and others to test on."""

    name: str
    train: Shown
    test: Shown
    planner: Planner
    cost: Callable[[Map], Array]  #: hidden
    #: For `MaxMarginPlanner`: features look about so far, so nearer cells are too alike to tell apart.
    softness: float = 5.0

    def excess(self, shown: Shown, plans: Sequence[Sequence[Path]]) -> float:
        """Return the share by which plans cost more than the best paths between the same ends."""
        shares = []
        for map, paths in zip(shown.maps, plans, strict=True):
            costs = self.cost(map)
            for path in paths:
                best = self.planner.plan(map.grid(costs), path.start, path.goal).cost
                shares.append(float(costs[tuple(path.cells.T)].sum()) / best - 1.0)
        return float(np.mean(shares))


def terrain_cost(map: Map) -> Array:
    """0.3 + exp(slope/10) (1 + north/2) + depth/10: steep is bad, worse where it faces north; so are hollows.

    `slope` is in degrees, `north` the cosine of the aspect, `depth` the metres below the surroundings.
    """
    slope, north, height = (map.layer(name) for name in ("slope", "aspect cos", "relative height"))
    return 0.3 + np.exp(slope / 10.0) * (1.0 + north / 2.0) + np.maximum(-height, 0.0) / 10.0


def type_cost(map: Map) -> Array:
    """(1 + 3 [swamp] + 7 [water]) (1 + exp(−to water/2)) + min((to trees − 3)²/4, 4), distances in cells.

    Shores are muddy; it is best to walk three cells away from the trees, neither among them nor in the open.
    """
    ground = 1.0 + 3.0 * map.layer("is S") + 7.0 * map.layer("is W")
    cover = np.minimum((map.layer("to T") - 3.0) ** 2 / 4.0, 4.0)
    return ground * (1.0 + np.exp(-map.layer("to W") / 2.0)) + cover


def _elevation(quick: bool, seed: int) -> Problem:
    grid = load_elevation()
    down, across = (DEGREE * degrees for degrees in grid.spacing)
    whole = terrain_features(grid.values, across * math.cos(math.radians(LATITUDE)), down)
    size, count = (24, 2) if quick else (48, 8)
    tops = range(12, 277, 66)
    # Columns below 252 train, columns from 276 test: features look 10 cells far.
    train, test = product(tops, (12, 76, 140, 204)), product(tops, (276, 340))
    regions = _Regions(whole, size, *_few(train, test, quick))
    return regions.problem("elevation", count, Monotone(), terrain_cost, seed)


def _terrain(quick: bool, seed: int) -> Problem:
    level = load_terrain()
    # Its ground is drawn in blocks of about four cells: every other cell has most of what there is to see.
    whole = map_from_types(level.values[::2, ::2], level.symbols, blocked="@")
    size, count = (20, 2) if quick else (40, 15)
    tops = range(28, 173, 48)
    # Columns below 112 train, columns from 132 test: distances reach 16 cells far.
    train, test = product(tops, (28, 72)), product(tops, (132, 176))
    regions = _Regions(whole, size, *_few(train, test, quick))
    return regions.problem("terrain", count, Horizon(), type_cost, seed)


PROBLEMS = {"elevation": _elevation, "terrain": _terrain}


def problem(name: str, quick: bool = False, seed: int = 0) -> Problem:
    """Make a problem: "elevation" (real terrain) or "terrain" (a game level, types of ground).

    Parameters
    ----------
    name : {"elevation", "terrain"}
        Which.
    quick : bool
        A few small regions, for a run of seconds.
    seed : int
        For the ends of the demonstrations and their noise; the regions stay the same.

    """
    if name not in PROBLEMS:
        raise ValueError(f"`name` must be one of {', '.join(PROBLEMS)}, got {name!r}")
    return PROBLEMS[name](quick, seed)


def _few(train: Iterable[Corner], test: Iterable[Corner], quick: bool) -> list[list[Corner]]:
    return [list(islice(train, 3 if quick else None)), list(islice(test, 2 if quick else None))]


@dataclass(frozen=True)
class _Regions:
    """Square regions of a map, given by their corners."""

    whole: Map
    size: int
    train: list[Corner]
    test: list[Corner]

    def problem(
        self, name: str, count: int, planner: Planner, cost: Callable[[Map], Array], seed: int
    ) -> Problem:
        """Draw `count` demonstrations on each region."""
        rng = np.random.default_rng(seed)

        def show(corners: list[Corner]) -> Shown:
            maps = [
                self.whole.region((top, top + self.size), (left, left + self.size)) for top, left in corners
            ]
            return Shown(
                maps,
                [
                    demonstrate(map, cost, _across(map, count, planner, rng), planner, NOISE, rng)
                    for map in maps
                ],
            )

        return Problem(name, show(self.train), show(self.test), planner, cost)


def _across(map: Map, count: int, planner: Planner, rng: np.random.Generator) -> list[tuple[Cell, Cell]]:
    """Draw starts near the left border and goals near the right one, such that there is a way."""
    width = map.shape[1] // 8
    left, right = np.argwhere(map.free[:, :width]), np.argwhere(map.free[:, -width:])
    drawn: list[tuple[Cell, Cell]] = []
    while len(drawn) < count:
        start, goal = _draw(left, 0, rng), _draw(right, map.shape[1] - width, rng)
        try:
            planner.plan(map.grid(np.ones(map.shape)), start, goal)
        except ValueError:
            continue
        drawn.append((start, goal))
    return drawn


def _draw(cells: Any, first: int, rng: np.random.Generator) -> Cell:
    row, column = cells[rng.integers(len(cells))]
    return int(row), int(column) + first
