"""Planners: the cheapest path of a set, for costs per cell.

The set of paths must not depend on the costs, and the cheapest must really be found, for *any* real costs:
then the minimum over the set is a concave function of the costs and maximum margin planning is convex.
`Monotone` and `Horizon` are such planners; `Dijkstra` is not.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from convexboost.core.space import Array
from convexboost.planning._kernels import Cells, horizon_path, monotone_path

Cell = tuple[int, int]
Mask = NDArray[np.bool_]

#: Moves, straight ones first: ties are broken in this order.
MOVES: Cells = np.array([(0, 1), (-1, 0), (1, 0), (0, -1), (-1, 1), (1, 1), (-1, -1), (1, -1)])


@dataclass(frozen=True, eq=False)
class Path:
    """Cells in the order in which they are visited, both ends included."""

    cells: Cells  #: (n_cells, 2): row and column
    cost: float = math.nan  #: their total cost for the planner

    @property
    def start(self) -> Cell:
        """Return the first cell."""
        row, column = self.cells[0]
        return int(row), int(column)

    @property
    def goal(self) -> Cell:
        """Return the last cell."""
        row, column = self.cells[-1]
        return int(row), int(column)

    def __len__(self) -> int:
        return len(self.cells)

    def counts(self, shape: tuple[int, int]) -> Array:
        """Return how often each cell of a map is visited."""
        flat = np.ravel_multi_index((self.cells[:, 0], self.cells[:, 1]), shape)
        return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(float)


class Planner(Protocol):
    """What finds paths.  Cells that cost infinity are blocked."""

    @property
    def is_exact(self) -> bool:
        """Return whether `plan` finds the minimum over a fixed set of paths, whatever the costs."""

    def plan(self, costs: Array, start: Cell, goal: Cell) -> Path:
        """Return the cheapest path; ValueError if there is none."""

    def allows(self, path: Path) -> bool:
        """Return whether `plan` could return this path, for some costs."""

    def cells(self, free: Mask, start: Cell, goal: Cell) -> Mask:
        """Return the cells that paths can visit, and perhaps some more."""


@dataclass(frozen=True)
class Monotone:
    """Paths straight across: one cell in each column, next to each other, from the start's to the goal's.

    All such paths between two cells are equally long, and dynamic programming finds the cheapest for any
    costs in time linear in the number of cells.

    Parameters
    ----------
    axis : {"columns", "rows"}
        What a path crosses one after the other, in the direction of the goal.
    reach : int
        How many rows up or down (columns to the side) a path may go from one column (row) to the next.

    """

    axis: str = "columns"
    reach: int = 1

    is_exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.axis not in ("columns", "rows"):
            raise ValueError(f"`axis` must be 'columns' or 'rows', got {self.axis!r}")
        if not (isinstance(self.reach, Integral) and self.reach >= 0):
            raise ValueError(f"`reach` must be a whole number of at least 0, got {self.reach!r}")

    def plan(self, costs: Array, start: Cell, goal: Cell) -> Path:
        """Return the cheapest path."""
        costs, start, goal = _checked(costs, start, goal)
        turned = costs if self.axis == "columns" else costs.T
        (top, left), (bottom, right) = (self._turn(cell) for cell in (start, goal))
        if left <= right:
            cells = self._find(turned, top, left, bottom, right)
        else:  # to the left is to the right in a mirror
            last = turned.shape[1] - 1
            cells = self._find(turned[:, ::-1], top, last - left, bottom, last - right)
            cells[:, 1] = last - cells[:, 1]
        return _path(cells if self.axis == "columns" else cells[:, ::-1], costs, start, goal, self)

    def _find(self, costs: Array, top: int, left: int, bottom: int, right: int) -> Cells:
        if left == right and top != bottom:
            return np.empty((0, 2), np.int64)
        return monotone_path(np.ascontiguousarray(costs), top, left, bottom, right, int(self.reach))

    def allows(self, path: Path) -> bool:
        """Return whether the path is one column further with each cell, and not too steep."""
        cells = path.cells if self.axis == "columns" else path.cells[:, ::-1]
        rows, columns = np.diff(cells, axis=0).T
        onward = -1 if cells[-1, 1] < cells[0, 1] else 1
        return bool((columns == onward).all() and (np.abs(rows) <= self.reach).all())

    def cells(self, free: Mask, start: Cell, goal: Cell) -> Mask:
        """Return what is free and within reach from both ends."""
        rows, columns = np.indices(free.shape) if self.axis == "columns" else np.indices(free.shape)[::-1]
        (top, left), (bottom, right) = (self._turn(cell) for cell in (start, goal))
        near_start = np.abs(rows - top) <= self.reach * np.abs(columns - left)
        near_goal = np.abs(rows - bottom) <= self.reach * np.abs(columns - right)
        between = (min(left, right) <= columns) & (columns <= max(left, right))
        return free & near_start & near_goal & between

    def _turn(self, cell: Cell) -> Cell:
        return cell if self.axis == "columns" else (cell[1], cell[0])


@dataclass(frozen=True)
class Horizon:
    """Walks of at most `steps` moves to neighbouring cells.  A walk may visit a cell more than once.

    There are finitely many such walks, and value iteration over the moves that are left finds the cheapest
    for any costs.  Where costs are negative it walks to and fro as long as it may; costs that were learned
    from demonstrations which do not are positive where it matters.

    Parameters
    ----------
    steps : int, optional
        How many moves; by default 1.5 times as many as it takes on a free map.
    neighbours : {8, 4}
        With or without diagonal moves.
    exactly : bool
        Make exactly `steps` moves, instead of at most.

    """

    steps: int | None = None
    neighbours: int = 8
    exactly: bool = False

    is_exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.steps is not None and not (isinstance(self.steps, Integral) and self.steps >= 0):
            raise ValueError(f"`steps` must be None or a whole number of at least 0, got {self.steps!r}")
        _moves(self.neighbours)

    def limit(self, start: Cell, goal: Cell) -> int:
        """Return the number of moves from `start` to `goal`."""
        if self.steps is not None:
            return int(self.steps)
        apart = [abs(a - b) for a, b in zip(start, goal, strict=True)]
        return math.ceil(1.5 * (max(apart) if self.neighbours == 8 else sum(apart)))

    def plan(self, costs: Array, start: Cell, goal: Cell) -> Path:
        """Return the cheapest walk."""
        costs, start, goal = _checked(costs, start, goal)
        ends = np.array([start, goal])
        limit, moves = self.limit(start, goal), _moves(self.neighbours)
        cells = horizon_path(costs, ends[0], ends[1], limit, bool(self.exactly), moves)
        return _path(cells, costs, start, goal, self)

    def allows(self, path: Path) -> bool:
        """Return whether the moves are to neighbours, and not too many."""
        moves, limit = len(path) - 1, self.limit(path.start, path.goal)
        return _are_neighbours(path, self.neighbours) and (moves == limit if self.exactly else moves <= limit)

    def cells(self, free: Mask, start: Cell, goal: Cell) -> Mask:
        """Return the cells from which both ends are near enough."""
        there, back = (_hops(free, cell, self.neighbours) for cell in (start, goal))
        return free & (there + back <= self.limit(start, goal))


@dataclass(frozen=True)
class Dijkstra:
    """Shortest paths; costs must be positive, so they are made positive first.

    **No guarantee.**  The path is the cheapest for max(costs, floor) or exp(costs), not for the costs.
    Maximum margin planning with it is no longer convex, and what is used as a subgradient need not be one: no
    theorem of boosting applies.  It is here because it needs no horizon and no direction, and because the
    literature uses it (LEARCH: Ratliff, Silver and Bagnell 2009).

    Parameters
    ----------
    floor : float
        What a cell costs at least; the exponential is also cut off there.
    exponential : bool
        Use exp(costs).
    neighbours : {8, 4}
        With or without diagonal moves.

    """

    floor: float = 1e-3
    exponential: bool = False
    neighbours: int = 8

    is_exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (isinstance(self.floor, Real) and 0 < self.floor < math.inf):
            raise ValueError(f"`floor` must be positive, got {self.floor!r}")
        _moves(self.neighbours)

    def plan(self, costs: Array, start: Cell, goal: Cell) -> Path:
        """Return the shortest path."""
        costs, start, goal = _checked(costs, start, goal)
        with np.errstate(over="ignore"):
            positive = np.maximum(np.exp(costs) if self.exponential else costs, self.floor)
        if (np.isinf(positive) & np.isfinite(costs)).any():
            raise ValueError(f"`costs` must be at most 709 for their exponential, got {costs.max():g}")
        first, last = (int(np.ravel_multi_index(cell, costs.shape)) for cell in (start, goal))
        before = dijkstra(_graph(positive, self.neighbours), indices=first, return_predecessors=True)[1]
        way = [last]
        while way[-1] != first and before[way[-1]] >= 0:
            way.append(int(before[way[-1]]))
        found = np.array(way[::-1] if way[-1] == first else [], int)
        return _path(np.stack(np.unravel_index(found, costs.shape), axis=1), costs, start, goal, self)

    def allows(self, path: Path) -> bool:
        """Return whether the moves are to neighbours and no cell is visited twice."""
        return _are_neighbours(path, self.neighbours) and len(np.unique(path.cells, axis=0)) == len(path)

    def cells(self, free: Mask, start: Cell, goal: Cell) -> Mask:
        """Return what can be reached."""
        return free & np.isfinite(_hops(free, start, self.neighbours))


def _checked(costs: Any, start: Any, goal: Any) -> tuple[Array, Cell, Cell]:
    costs = np.ascontiguousarray(costs, float)
    if costs.ndim != 2:
        raise ValueError(f"`costs` must have shape (height, width), got {costs.shape}")
    if not costs.min(initial=np.inf) > -np.inf:  # NaN is not either
        row, column = (int(i) for i in np.argwhere(~(costs > -np.inf))[0])
        raise ValueError(f"`costs` must be numbers or inf, got {costs[row, column]} in cell {(row, column)}")
    ends = []
    for parameter, cell in (("start", start), ("goal", goal)):
        try:
            row, column = map(operator.index, cell)
        except (TypeError, ValueError):
            raise ValueError(f"`{parameter}` must be a row and a column, got {cell!r}") from None
        if not (0 <= row < costs.shape[0] and 0 <= column < costs.shape[1]):
            raise ValueError(f"`{parameter}` must lie on the map of shape {costs.shape}, got {(row, column)}")
        if costs[row, column] == np.inf:
            raise ValueError(f"`{parameter}` must not be blocked, got {(row, column)}")
        ends.append((row, column))
    return costs, ends[0], ends[1]


def _path(cells: Cells, costs: Array, start: Cell, goal: Cell, planner: Any) -> Path:
    if len(cells) == 0:
        raise ValueError(f"`goal` {goal} cannot be reached from `start` {start} by {planner}")
    return Path(np.ascontiguousarray(cells), float(costs[cells[:, 0], cells[:, 1]].sum()))


def _moves(neighbours: int) -> Cells:
    if neighbours not in (4, 8):
        raise ValueError(f"`neighbours` must be 4 or 8, got {neighbours!r}")
    return MOVES[:neighbours]


def _are_neighbours(path: Path, neighbours: int) -> bool:
    moves = np.abs(np.diff(path.cells, axis=0))
    return bool((moves.sum(axis=1) == 1).all() if neighbours == 4 else (moves.max(axis=1) == 1).all())


@lru_cache(maxsize=8)
def _neighbours(shape: tuple[int, int], neighbours: int) -> tuple[Cells, Cells]:
    """Return all pairs of neighbouring cells, numbered row after row."""
    rows, columns = np.indices(shape).reshape(2, -1)
    pairs = []
    for down, across in _moves(neighbours):
        r, c = rows + down, columns + across
        inside = (r >= 0) & (r < shape[0]) & (c >= 0) & (c < shape[1])
        pairs.append((np.flatnonzero(inside), r[inside] * shape[1] + c[inside]))
    here, there = np.concatenate(pairs, axis=1)
    return here, there


def _graph(costs: Array, neighbours: int) -> Any:
    """Going to a cell costs what the cell costs; there are no edges to and from blocked ones."""
    here, there = _neighbours(costs.shape, neighbours)
    flat = costs.ravel()
    free = np.isfinite(flat[here]) & np.isfinite(flat[there])
    return sp.csr_array((flat[there[free]], (here[free], there[free])), shape=(flat.size, flat.size))


def _hops(free: Mask, cell: Cell, neighbours: int) -> Array:
    """Return the number of moves to each cell; infinite where there is no way."""
    first = int(np.ravel_multi_index(cell, free.shape))
    graph = _graph(np.where(free, 1.0, np.inf), neighbours)
    return dijkstra(graph, indices=first, unweighted=True).reshape(free.shape)
