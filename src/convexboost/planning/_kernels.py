"""Dynamic programming on grids.  A cell that costs infinity is blocked."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from convexboost.core.space import Array

Cells = NDArray[np.int64]
STOP = -1


@njit(cache=True, nogil=True)
def monotone_path(
    costs: Array, top: int, left: int, bottom: int, right: int, reach: int
) -> Cells:  # pragma: no cover
    """Find the cheapest way from (top, left) to (bottom, right), one cell per column.

    From one column to the next it goes at most `reach` rows up or down.  Ties: as straight on as possible,
    then up.  Empty if there is no way.
    """
    height, width = costs.shape[0], right - left + 1
    turn = np.zeros((width, height), np.int64)  # by how much the row changes to the next column
    value, onward = np.full(height, np.inf), np.empty(height)
    value[bottom] = costs[bottom, right]
    for step in range(width - 2, -1, -1):
        onward[:] = value
        for row in range(height):
            best, chosen = onward[row], 0
            for k in range(1, reach + 1):
                if row >= k and onward[row - k] < best:
                    best, chosen = onward[row - k], -k
                if row + k < height and onward[row + k] < best:
                    best, chosen = onward[row + k], k
            value[row], turn[step, row] = costs[row, left + step] + best, chosen
    cells = np.empty((width, 2), np.int64)
    if value[top] == np.inf:
        return cells[:0]
    row = top
    for step in range(width):
        cells[step, 0], cells[step, 1] = row, left + step
        row += turn[step, row]
    return cells


@njit(cache=True, nogil=True)
def horizon_path(
    costs: Array, start: Cells, goal: Cells, steps: int, exactly: bool, moves: Cells
) -> Cells:  # pragma: no cover
    """Find the cheapest walk of at most (or exactly) `steps` moves.

    Value iteration over the moves that are left.  Ties: stop rather than go on, then the first move.
    Empty if there is no walk.
    """
    height, width = costs.shape
    cells = np.empty((steps + 1, 2), np.int64)
    if np.abs(start - goal).max() > steps:  # else there are cells near enough to both, at all times
        return cells[:0]
    choice = np.full((steps + 1, height, width), STOP, np.int8)
    before = np.full((height + 2, width + 2), np.inf)  # with a border, so that no move leaves the grid
    after = np.full((height + 2, width + 2), np.inf)
    best = np.empty(width)
    after[goal[0] + 1, goal[1] + 1] = costs[goal[0], goal[1]]
    for left in range(1, steps + 1):
        before, after = after, before
        # Only cells that can still be reached from the start, and can reach the goal.
        gone = steps - left
        west = max(0, start[1] - gone, goal[1] - left)
        east = min(width, start[1] + gone + 1, goal[1] + left + 1)
        for row in range(
            max(0, start[0] - gone, goal[0] - left), min(height, start[0] + gone + 1, goal[0] + left + 1)
        ):
            best[: east - west] = np.inf
            if not exactly and row == goal[0] and west <= goal[1] < east:
                best[goal[1] - west] = 0.0
            chosen = choice[left, row, west:east]
            for k in range(len(moves)):  # outside, so that the columns can go several at a time
                shift = moves[k, 1] + 1
                there = before[row + moves[k, 0] + 1, west + shift : east + shift]
                for column in range(east - west):
                    better = there[column] < best[column]
                    best[column] = there[column] if better else best[column]
                    chosen[column] = np.int8(k) if better else chosen[column]
            after[row + 1, west + 1 : east + 1] = costs[row, west:east] + best[: east - west]
    row, column = start
    if after[row + 1, column + 1] == np.inf:
        return cells[:0]
    for count in range(steps + 1):
        cells[count, 0], cells[count, 1] = row, column
        chosen = choice[steps - count, row, column]
        if chosen == STOP:
            return cells[: count + 1]
        row, column = row + moves[chosen, 0], column + moves[chosen, 1]
    return cells
