"""The objective of maximum margin planning (Ratliff, Bagnell and Zinkevich 2006).

R[f] = (1/M) Σ_i [ Σ_{s ∈ ξ_i} f(s) − min_{ξ ∈ Ξ_i} Σ_{s ∈ ξ} (f(s) − ℓ_i(s)) ]: what the M demonstrated
paths ξ_i cost, less what the best others cost, which count as cheaper the further off they are.

It is the loss `Structured`.  A structure is a map with all paths demonstrated on it, a part is a cell, and
costs are negative scores.  Demonstrations on one map share its cells: the counts are means over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._groups import Groups
from convexboost.losses._objective import BoundLoss
from convexboost.losses.structured import Structured
from convexboost.planning.demonstrations import path_loss
from convexboost.planning.maps import Map
from convexboost.planning.planners import Path, Planner


@dataclass(frozen=True, eq=False)
class Scene:
    """A map and the paths demonstrated on it; its rows are the cells that such paths can visit."""

    map: Map
    paths: tuple[Path, ...]
    losses: tuple[Array, ...]  #: ℓ_i at the rows
    counts: tuple[Array, ...]  #: how often each path visits the rows
    cells: NDArray[np.int64]  #: of the rows, numbered row after row of the map
    row_of: NDArray[np.int64]  #: of each cell of the map; −1: none

    @classmethod
    def of(cls, map: Map, paths: Sequence[Path], planner: Planner, softness: float = 1.0) -> Scene:
        """Number the cells."""
        can = np.zeros(map.shape, bool)
        for path in paths:
            can |= planner.cells(map.free, path.start, path.goal)
        cells = np.flatnonzero(can)
        losses = (path_loss(path, map.shape, softness).ravel()[cells] for path in paths)
        counts = (path.counts(map.shape).ravel()[cells] for path in paths)
        row_of = np.full(map.shape, -1)
        row_of.ravel()[cells] = np.arange(len(cells))
        return cls(map, tuple(paths), tuple(losses), tuple(counts), cells, row_of)

    @property
    def features(self) -> Array:
        """Return the features at the rows."""
        return self.map.rows[self.cells]

    def rival(self, costs: Array, i: int, planner: Planner) -> Array:
        """Return how often each row is visited by the best path for costs − ℓ_i between the ends of ξ_i."""
        costs = costs - self.losses[i]
        grid = np.full(self.map.shape, np.inf)
        grid.ravel()[self.cells] = costs
        found = planner.plan(grid, self.paths[i].start, self.paths[i].goal).cells
        counts = np.bincount(self.row_of[found[:, 0], found[:, 1]], minlength=len(self.cells)).astype(float)
        # A planner that is not exact may have missed that the demonstrated path is better.
        better = planner.is_exact or np.sum(costs * (counts - self.counts[i])) <= 0.0
        return counts if better else self.counts[i]


@dataclass(frozen=True)
class LossAugmentedPlanning:
    """The oracle: for each demonstration on a map, the path that is best for costs − ℓ."""

    scenes: tuple[Scene, ...]
    planner: Planner

    def __call__(self, F: Array, y: Array, label: int) -> tuple[Array, float]:
        """Return mean counts and the mean of ℓ over the paths, for scores F = −costs of scene `label`."""
        scene = self.scenes[label]
        rivals = [scene.rival(-F[:, 0], i, self.planner) for i in range(len(scene.paths))]
        margins = [np.sum(loss * rival) for loss, rival in zip(scene.losses, rivals, strict=True)]
        return np.mean(rivals, axis=0)[:, None], float(np.mean(margins))


def maximum_margin(scenes: Sequence[Scene], planner: Planner) -> BoundLoss:
    """Make R of the costs at the rows of all scenes, one scene after the other."""
    sizes = [len(scene.cells) for scene in scenes]
    labels = np.repeat(np.arange(len(scenes)), sizes)
    share = np.repeat([float(len(scene.paths)) for scene in scenes], sizes)  # demonstrations count equally
    truth = np.concatenate([np.mean(scene.counts, axis=0) for scene in scenes])
    loss = Structured(LossAugmentedPlanning(tuple(scenes), planner)).affine(-1.0)
    return loss.bind(truth[:, None], FunctionSpace.of(len(truth)), groups=Groups(labels, share))
