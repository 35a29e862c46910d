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
    # Cheapest onward from each cell, the columns one after the other; with a border, so that no way leaves.
    onward = np.full((width, height + 2 * reach), np.inf)
    onward[-1, bottom + reach] = costs[bottom, right]
    best = np.empty(height)
    for step in range(width - 2, -1, -1):
        ahead, here = onward[step + 1], onward[step, reach : reach + height]
        best[:] = ahead[reach : reach + height]
        for shift in range(2 * reach + 1):  # outside, so that the rows can go several at a time
            for row in range(height):
                other = ahead[row + shift]
                best[row] = other if other < best[row] else best[row]
        for row in range(height):
            here[row] = costs[row, left + step] + best[row]
    cells = np.empty((width, 2), np.int64)
    if onward[0, top + reach] == np.inf:
        return cells[:0]
    row = top
    for step in range(width):
        cells[step, 0], cells[step, 1] = row, left + step
        if step < width - 1:
            ahead, turn = onward[step + 1], 0
            for k in range(1, reach + 1):
                turn = -k if ahead[row + reach - k] < ahead[row + reach + turn] else turn
                turn = k if ahead[row + reach + k] < ahead[row + reach + turn] else turn
            row += turn
    return cells


@njit(cache=True, nogil=True)
def horizon_path(
    costs: Array, start: Cells, goal: Cells, steps: int, exactly: bool, moves: Cells
) -> Cells:  # pragma: no cover
    """Find the cheapest walk of at most (or exactly) `steps` moves.

    Value iteration over the moves that are left.  `moves` are the four straight ones, and perhaps the four
    diagonal ones.  Ties: stop rather than go on, then the first move.  Empty if there is no walk.
    """
    height, width = costs.shape
    cells = np.empty((steps + 1, 2), np.int64)
    if np.abs(start - goal).max() > steps:
        return cells[:0]
    line = width + 2  # with a border that costs infinity, so that no move leaves the grid
    cost = np.full((height + 2) * line, np.inf)
    for row in range(height):
        cost[(row + 1) * line + 1 : (row + 1) * line + 1 + width] = costs[row]
    first, last = line + 1, height * line + width  # of the cells inside
    end = (goal[0] + 1) * line + goal[1] + 1
    value = np.empty((steps + 1, len(cost)))  # by the number of moves that are left
    value[:, :first] = value[:, last + 1 :] = np.inf
    value[0] = np.inf
    value[0, end] = cost[end]
    # The least of three is taken across first, then down: four comparisons instead of eight.
    beside, across = np.full(len(cost), np.inf), np.full(len(cost), np.inf)
    inside, middle, wide = cost[first : last + 1], beside[first : last + 1], across[1:-1]
    diagonal = len(moves) > 4
    for left in range(1, steps + 1):
        before, after = value[left - 1], value[left, first : last + 1]
        west, here, east, narrow = before[:-2], before[1:-1], before[2:], beside[1:-1]
        for i in range(len(narrow)):
            w, h, e = west[i], here[i], east[i]
            least = w if w < e else e
            narrow[i] = least
            wide[i] = least if least < h and diagonal else h
        if not exactly:
            beside[end] = 0.0 if beside[end] >= 0.0 else beside[end]
        above, below = across[first - line : last + 1 - line], across[first + line : last + 1 + line]
        for i in range(len(after)):
            a, b, m = above[i], below[i], middle[i]
            least = a if a < b else b
            after[i] = inside[i] + (least if least < m else m)
    row, column = start
    if value[steps, (row + 1) * line + column + 1] == np.inf:
        return cells[:0]
    for count in range(steps + 1):
        cells[count, 0], cells[count, 1] = row, column
        left, i = steps - count, (row + 1) * line + column + 1
        best, chosen = 0.0 if i == end and not exactly else np.inf, STOP
        for k in range(len(moves)):
            onward = value[left - 1, i + moves[k, 0] * line + moves[k, 1]] if left > 0 else np.inf
            if onward < best:
                best, chosen = onward, k
        if chosen == STOP:
            return cells[: count + 1]
        row, column = row + moves[chosen, 0], column + moves[chosen, 1]
    return cells
