"""Demonstrated paths, how far others are from them, and demonstrations that are made up from hidden costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np
from scipy import ndimage

from convexboost.core.space import Array
from convexboost.planning.maps import Map
from convexboost.planning.planners import Cell, Path, Planner


def path_loss(path: Path, shape: tuple[int, int], softness: float = 1.0) -> Array:
    """Return ℓ(s) of every cell s: min(1, distance to the path / softness), distances in cells.

    It is 0 on the path.  With softness 1 it is 1 everywhere else: the Hamming loss, the number of cells that
    another path has off this one.
    """
    check_softness(softness)
    away = ndimage.distance_transform_edt(path.counts(shape) == 0.0)
    return np.minimum(away / softness, 1.0)


def check_softness(softness: Any) -> None:
    """Raise ValueError unless the softness is a number of at least 1."""
    if not (isinstance(softness, Real) and 1 <= float(softness) < np.inf):
        raise ValueError(f"`softness` must be a number of at least 1, got {softness!r}")


def agreement(path: Path, demonstrated: Path) -> float:
    """Return the fraction of the demonstrated cells that a path visits."""
    visited = set(map(tuple, path.cells.tolist()))
    return float(np.mean([tuple(cell) in visited for cell in demonstrated.cells.tolist()]))


def demonstrate(
    map: Map,
    cost_function: Callable[[Map], Array],
    starts_goals: Iterable[tuple[Cell, Cell]],
    planner: Planner,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
) -> list[Path]:
    """Let a planner that knows the costs show its paths.

    Parameters
    ----------
    map : Map
        Where.
    cost_function : callable
        Takes the map, returns positive costs of shape (height, width).
    starts_goals : iterable of pairs of cells
        The ends of each demonstration.
    planner : Planner
        Finds the paths.
    noise : float
        Each demonstration sees the costs times exp(noise · ε), ε standard normal, drawn anew for every cell.
    rng : Generator, optional
        For the noise.

    Returns
    -------
    list of Path
        Their `cost` is without the noise.

    """
    if not (isinstance(noise, Real) and 0.0 <= noise < np.inf):
        raise ValueError(f"`noise` must not be negative, got {noise!r}")
    costs = np.asarray(cost_function(map), float)
    if costs.shape != map.shape or not (costs > 0.0).all():
        raise ValueError(f"`cost_function` must return positive costs of shape {map.shape}")
    rng = np.random.default_rng(rng)
    paths = []
    for start, goal in starts_goals:
        seen = costs * np.exp(noise * rng.standard_normal(map.shape))
        cells = planner.plan(map.grid(seen), start, goal).cells
        paths.append(Path(cells, float(costs[tuple(cells.T)].sum())))
    return paths
