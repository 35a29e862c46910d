"""Planners against enumeration of all paths, and against SciPy's shortest paths."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import bellman_ford, dijkstra

from convexboost.planning import Dijkstra, Horizon, Monotone, Path
from convexboost.planning.planners import MOVES, _graph

PLANNERS = [
    Monotone(),
    Monotone("rows"),
    Horizon(),
    Horizon(neighbours=4),
    Dijkstra(),
    Dijkstra(neighbours=4),
]


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
@pytest.mark.parametrize("reach", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_monotone_is_the_minimum_over_all_monotone_paths(axis, reach, seed):
    costs = draw(np.random.default_rng(seed), (4, 5))
    free, planner, found = np.isfinite(costs), Monotone(axis, reach), 0
    cells = [tuple(map(int, cell)) for cell in np.argwhere(free)]
    for start, goal in product(cells, repeat=2):
        everything = sequences(free, start, goal, planner)
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
        found += 1
    assert found > 15


def sequences(free, start, goal, planner):
    """All sequences of free cells, one per column (row), that the planner allows."""
    k = 1 if planner.axis == "columns" else 0
    onward = -1 if goal[k] < start[k] else 1
    lines = [
        [tuple(map(int, cell)) for cell in np.argwhere(free) if cell[k] == line]
        for line in range(start[k] + onward, goal[k], onward)
    ]
    if start[k] == goal[k]:
        return [[start]] if start == goal else []
    walks = ([start, *middle, goal] for middle in product(*lines))
    return [walk for walk in walks if planner.allows(Path(np.array(walk)))]


def test_monotone_paths_by_hand():
    assert len(sequences(np.ones((3, 3), bool), (1, 0), (1, 2), Monotone())) == 3
    assert not Monotone().allows(Path(np.array([(1, 0), (0, 0), (1, 1)])))  # twice in a column
    assert not Monotone().allows(Path(np.array([(0, 0), (2, 1)])))  # too steep
    assert Monotone(reach=2).allows(Path(np.array([(0, 0), (2, 1)])))
    assert not Monotone().allows(Path(np.array([(0, 0), (0, 1), (0, 0)])))  # turns back


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


def test_monotone_on_a_larger_grid_is_a_shortest_path_of_scipy():
    # Costs of any sign: in a graph without cycles Bellman-Ford finds shortest paths.
    costs = np.random.default_rng(1).normal(size=(9, 11))
    graph = _graph(costs, 8).tocoo()
    onward = graph.col % 11 == graph.row % 11 + 1
    graph = sp.csr_array((graph.data[onward], (graph.row[onward], graph.col[onward])), shape=graph.shape)
    distance = bellman_ford(graph, indices=3 * 11)[6 * 11 + 10] + costs[3, 0]
    assert Monotone().plan(costs, (3, 0), (6, 10)).cost == pytest.approx(distance)


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
    costs, goal = np.ones((7, 7)), (3, 6)
    if planner == Monotone("rows"):
        costs, goal = costs[:, :4], (6, 0)
    paths = [planner.plan(costs, (3, 0), goal).cells.tolist() for _ in range(3)]
    assert paths[0] == paths[1] == paths[2]
    if not isinstance(planner, Dijkstra):
        straight = [[r, 0] for r in range(3, 7)] if goal == (6, 0) else [[3, c] for c in range(7)]
        assert paths[0] == straight


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
        (lambda: Monotone(reach=0.5), "`reach` must be a whole number"),
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


@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("exactly", [False, True])
def test_horizon_against_plain_value_iteration(neighbours, exactly):
    rng = np.random.default_rng(3)
    for shape in ((6, 9), (1, 7), (8, 2)):
        for _ in range(25):
            costs = draw(rng, shape, 0.1)
            free = np.argwhere(np.isfinite(costs))
            start, goal = (tuple(map(int, free[rng.integers(len(free))])) for _ in range(2))
            steps = int(rng.integers(0, 14))
            value = np.full(shape, np.inf)
            value[goal] = costs[goal]
            for _ in range(steps):
                padded, goes = np.pad(value, 1, constant_values=np.inf), np.full(shape, np.inf)
                for down, across in MOVES[:neighbours]:
                    there = padded[1 + down : 1 + down + shape[0], 1 + across : 1 + across + shape[1]]
                    goes = np.minimum(goes, there)
                if not exactly:
                    goes[goal] = min(goes[goal], 0.0)
                value = costs + goes
            planner = Horizon(steps, neighbours, exactly)
            if np.isinf(value[start]):
                with pytest.raises(ValueError, match="cannot be reached"):
                    planner.plan(costs, start, goal)
            else:
                path = planner.plan(costs, start, goal)
                assert planner.allows(path)
                assert path.cost == pytest.approx(value[start], abs=1e-12)
