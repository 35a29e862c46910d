"""Planners against enumeration of all paths, and against SciPy's shortest paths."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.sparse.csgraph import bellman_ford, dijkstra

from convexboost.planning import Dijkstra, Horizon, Monotone, Path
from convexboost.planning.planners import MOVES, _graph

PLANNERS = [Monotone(), Monotone("rows"), Horizon(), Horizon(neighbours=4), Dijkstra(), Dijkstra(neighbours=4)]


def walks(free, start, goal, planner, longest):
    """All walks of at most `longest` moves that the planner allows, as lists of cells."""
    found, stack = [], [[start]]
    while stack:
        walk = stack.pop()
        if walk[-1] == goal and planner.allows(Path(np.array(walk))):
            found.append(walk)
        if len(walk) <= longest:
            for down, across in MOVES:
                cell = (walk[-1][0] + int(down), walk[-1][1] + int(across))
                if all(0 <= i < n for i, n in zip(cell, free.shape, strict=True)) and free[cell]:
                    stack.append([*walk, cell])
    return found


def total(costs, walk):
    return math.fsum(costs[cell] for cell in walk)


def draw(rng, shape, share_blocked=0.15):
    costs = rng.normal(size=shape)
    costs[rng.random(shape) < share_blocked] = np.inf
    return costs


@pytest.mark.parametrize("axis", ["columns", "rows"])
@pytest.mark.parametrize("seed", range(6))
def test_monotone_is_the_minimum_over_all_monotone_paths(axis, seed):
    rng = np.random.default_rng(seed)
    shape = (3, 3) if seed % 2 else (3, 4)
    costs = draw(rng, shape)
    planner, checked = Monotone(axis), 0
    free = np.isfinite(costs)
    for start, goal in list(product(map(tuple, np.argwhere(free)), repeat=2))[:: 7 if seed % 2 else 29]:
        start, goal = tuple(map(int, start)), tuple(map(int, goal))
        # A path visits no cell twice; enumerate only as far as the set of all simple monotone paths goes.
        everything = simple_monotone(free, start, goal, planner)
        if not everything:
            with pytest.raises(ValueError, match="cannot be reached"):
                planner.plan(costs, start, goal)
            continue
        path = planner.plan(costs, start, goal)
        assert path.start == start
        assert path.goal == goal
        assert planner.allows(path)
        assert planner.cells(free, start, goal)[tuple(path.cells.T)].all()
        assert path.cost == pytest.approx(min(total(costs, walk) for walk in everything), abs=1e-12)
        checked += 1
    assert checked > 2


def simple_monotone(free, start, goal, planner):
    found, stack = [], [[start]]
    while stack:
        walk = stack.pop()
        if walk[-1] == goal and planner.allows(Path(np.array(walk))):
            found.append(walk)
        for down, across in MOVES:
            cell = (walk[-1][0] + int(down), walk[-1][1] + int(across))
            inside = all(0 <= i < n for i, n in zip(cell, free.shape, strict=True))
            if inside and free[cell] and cell not in walk:
                stack.append([*walk, cell])
    return found


def test_monotone_paths_by_hand():
    # 2 x 2, from corner to corner: diagonal, round either way, or down, diagonally up, and down.
    free = np.ones((2, 2), bool)
    assert len(simple_monotone(free, (0, 0), (1, 1), Monotone())) == 4
    # Up and then down again in one column is not among the paths.
    assert not Monotone().allows(Path(np.array([(1, 0), (0, 0), (1, 0), (1, 1)])))
    assert Monotone().allows(Path(np.array([(1, 0), (0, 0), (1, 1), (2, 1)])))


@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_horizon_is_the_minimum_over_all_walks(neighbours, exactly, seed):
    rng = np.random.default_rng(seed)
    costs = draw(rng, (3, 3))
    costs[0, 0] = costs[2, 1] = -0.3
    free = np.isfinite(costs)
    for steps, goal in ((0, (0, 0)), (3, (2, 1)), (5, (2, 1)), (4, (0, 0))):
        planner = Horizon(steps, neighbours, exactly)
        everything = walks(free, (0, 0), goal, planner, steps)
        if not everything:
            with pytest.raises(ValueError, match="cannot be reached"):
                planner.plan(costs, (0, 0), goal)
            continue
        path = planner.plan(costs, (0, 0), goal)
        assert planner.allows(path)
        assert (path.start, path.goal) == ((0, 0), goal)
        assert planner.cells(free, (0, 0), goal)[tuple(path.cells.T)].all()
        assert path.cost == pytest.approx(min(total(costs, walk) for walk in everything), abs=1e-12)


@pytest.mark.parametrize("neighbours", [4, 8])
def test_shortest_paths_of_scipy_for_positive_costs(neighbours):
    rng = np.random.default_rng(0)
    costs = rng.exponential(size=(12, 15)) + 0.01
    costs[rng.random(costs.shape) < 0.1] = np.inf
    start, goal = (0, 0), (11, 14)
    costs[start] = costs[goal] = 1.0
    graph = _graph(costs, neighbours)
    shortest = dijkstra(graph, indices=0)[-1] + costs[start]
    assert shortest == pytest.approx(bellman_ford(graph, indices=0)[-1] + costs[start])
    assert Dijkstra(1e-9, neighbours=neighbours).plan(costs, start, goal).cost == pytest.approx(shortest)
    # No shortest path has more moves than there are cells.
    assert Horizon(180, neighbours).plan(costs, start, goal).cost == pytest.approx(shortest)


def test_monotone_for_large_grids_is_a_shortest_path_in_its_graph():
    # The directed graph of (cell, direction in its column), costs of any sign: Bellman-Ford, no cycles.
    rng = np.random.default_rng(1)
    costs = rng.normal(size=(9, 11))
    height, width = costs.shape
    value = np.full((height, width, 3), np.inf)  # just entered, going up, going down
    value[3, 0, 0] = costs[3, 0]
    for column in range(width):
        for row in range(height):  # down
            if row > 0:
                value[row, column, 2] = costs[row, column] + value[row - 1, column, [0, 2]].min()
        for row in range(height - 1, -1, -1):  # up
            if row < height - 1:
                value[row, column, 1] = costs[row, column] + value[row + 1, column, [0, 1]].min()
        if column + 1 < width:
            leave = np.pad(value[:, column].min(axis=1), 1, constant_values=np.inf)
            for row in range(height):
                value[row, column + 1, 0] = costs[row, column + 1] + leave[row : row + 3].min()
    assert Monotone().plan(costs, (3, 0), (6, 10)).cost == pytest.approx(value[6, 10].min())


@pytest.mark.parametrize("planner", PLANNERS, ids=str)
def test_whatever_it_allows_costs_no_less(planner):
    rng = np.random.default_rng(2)
    costs = rng.exponential(size=(8, 8)) + 0.01
    best = planner.plan(costs, (1, 1), (6, 6))
    for _ in range(20):
        other = planner.plan(rng.exponential(size=costs.shape), (1, 1), (6, 6))
        assert total(costs, map(tuple, other.cells)) >= best.cost - 1e-12


@pytest.mark.parametrize("planner", PLANNERS, ids=str)
def test_start_is_goal(planner):
    path = planner.plan(np.ones((4, 4)), (2, 1), (2, 1))
    assert path.cells.tolist() == [[2, 1]]
    assert path.cost == 1.0
    assert planner.allows(path)
    assert path.counts((4, 4)).sum() == 1.0


@pytest.mark.parametrize("planner", PLANNERS, ids=str)
def test_ties_are_broken_the_same_way_every_time(planner):
    costs = np.ones((7, 7))
    paths = [planner.plan(costs, (3, 0), (3, 6)).cells.tolist() for _ in range(3)]
    assert paths[0] == paths[1] == paths[2]
    if not isinstance(planner, Dijkstra) and planner != Monotone("rows"):
        assert paths[0] == [[3, column] for column in range(7)]


@pytest.mark.parametrize("planner", PLANNERS, ids=str)
def test_bad_input(planner):
    costs = np.ones((5, 5))
    wall = costs.copy()
    wall[2] = np.inf
    wall[:, 2] = np.inf
    for start, goal, match in (
        ((5, 0), (0, 0), r"`start` must lie on the map of shape \(5, 5\), got \(5, 0\)"),
        ((0, 0), (0, -1), r"`goal` must lie on the map"),
        ((2, 0), (0, 0), r"`start` must not be blocked, got \(2, 0\)"),
        ((0, 0), (4, 4), r"`goal` \(4, 4\) cannot be reached from `start` \(0, 0\)"),
        ((0.5, 0), (4, 4), "`start` must be a row and a column"),
        (3, (4, 4), "`start` must be a row and a column"),
    ):
        with pytest.raises(ValueError, match=match):
            planner.plan(wall, start, goal)
    costs[1, 3] = np.nan
    with pytest.raises(ValueError, match=r"`costs` must be numbers or inf, got nan in cell \(1, 3\)"):
        planner.plan(costs, (0, 0), (4, 4))
    with pytest.raises(ValueError, match="`costs` must have shape"):
        planner.plan(np.ones(5), (0, 0), (4, 4))


def test_bad_parameters():
    for make, match in (
        (lambda: Monotone("diagonals"), "`axis` must be"),
        (lambda: Horizon(-1), "`steps` must be"),
        (lambda: Horizon(neighbours=6), "`neighbours` must be 4 or 8, got 6"),
        (lambda: Dijkstra(0.0), "`floor` must be positive"),
    ):
        with pytest.raises(ValueError, match=match):
            make()
    with pytest.raises(ValueError, match="at most 709"):
        Dijkstra(exponential=True).plan(np.full((2, 2), 1e3), (0, 0), (1, 1))


def test_dijkstra_is_not_exact_where_costs_are_negative():
    costs = np.array([[1.0, -5.0, 1.0], [1.0, 1.0, 1.0]])
    clamped = Dijkstra().plan(costs, (0, 0), (0, 2))
    assert not Dijkstra.is_exact
    assert clamped.cost == pytest.approx(-3.0)
    assert Horizon(4).plan(costs, (0, 0), (0, 2)).cost < clamped.cost


def test_horizon_counts_a_cell_each_time():
    costs = np.array([[1.0, -1.0, 1.0]])
    path = Horizon(4, exactly=True).plan(costs, (0, 1), (0, 1))
    assert path.counts((1, 3)).sum() == 5.0
    assert path.counts((1, 3))[0, 1] == 3.0
