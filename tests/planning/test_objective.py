"""R of maximum margin planning against enumeration; subgradients, also at ties."""

from itertools import product

import numpy as np
import pytest

from convexboost.planning import (
    Dijkstra,
    Horizon,
    Map,
    Monotone,
    Path,
    Scene,
    agreement,
    demonstrate,
    maximum_margin,
    path_loss,
)

SHAPE = (3, 4)


def all_paths(planner, start, goal, shape=SHAPE):
    """Every path that the planner allows, none longer than 4 moves."""
    cells = list(product(range(shape[0]), range(shape[1])))
    found, reach = [], getattr(planner, "reach", 1)

    def extend(walk):
        if walk[-1] == goal and planner.allows(Path(np.array(walk))):
            found.append(Path(np.array(walk)))
        if len(walk) <= 4:
            for cell in cells:
                if 1 <= max(abs(cell[0] - walk[-1][0]), abs(cell[1] - walk[-1][1])) <= reach:
                    extend([*walk, cell])

    extend([start])
    return found


def make(planner, softness=1.0, seed=0, n_maps=2):
    """Scenes with two demonstrations on the first map and one on each other."""
    rng = np.random.default_rng(seed)
    scenes = []
    for number in range(n_maps):
        map = Map(rng.normal(size=(*SHAPE, 2)), ("a", "b"))
        ends = [((1, 0), (2, 3)), ((0, 0), (0, 3))][: 2 - min(number, 1)]
        paths = demonstrate(map, lambda map: np.exp(map.layer("a")), ends, planner)
        scenes.append(Scene.of(map, paths, planner, softness))
    return scenes, maximum_margin(scenes, planner)


def reference(F, scenes, planner, softness):
    """R by enumeration, from its definition."""
    total, count, first = 0.0, 0, 0
    for scene in scenes:
        costs = np.full(SHAPE, np.nan)
        costs.ravel()[scene.cells] = F[first : first + len(scene.cells), 0]
        first += len(scene.cells)
        for path in scene.paths:
            loss = path_loss(path, SHAPE, softness)
            rivals = [
                (costs - loss)[tuple(other.cells.T)].sum()
                for other in all_paths(planner, path.start, path.goal)
            ]
            total += costs[tuple(path.cells.T)].sum() - min(rivals)
            count += 1
    return total / count


PLANNERS = [Monotone(), Monotone(reach=2), Horizon(4), Horizon(4, neighbours=4)]


@pytest.mark.parametrize("planner", PLANNERS, ids=str)
@pytest.mark.parametrize("softness", [1.0, 2.5])
def test_value_by_enumeration(planner, softness):
    scenes, R = make(planner, softness)
    rng = np.random.default_rng(1)
    for scale in (0.0, 0.3, 3.0):
        F = scale * rng.normal(size=(R.space.n_samples, 1))
        assert R.value(F) == pytest.approx(reference(F, scenes, planner, softness), abs=1e-12)


@pytest.mark.parametrize("planner", PLANNERS, ids=str)
def test_finite_differences(planner):
    _, R = make(planner, 2.5)
    rng = np.random.default_rng(2)
    for _ in range(5):
        F, H = rng.normal(size=(2, R.space.n_samples, 1))
        slope = R.space.inner(R.evaluate(F)[1], H)
        numeric = (R.value(F + 1e-6 * H) - R.value(F - 1e-6 * H)) / 2e-6
        assert slope == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize("planner", PLANNERS, ids=str)
@pytest.mark.parametrize("kind", ["random", "ties"])
def test_subgradient_inequality_and_no_value_below_zero(planner, kind):
    _, R = make(planner)
    rng = np.random.default_rng(3)

    def draw():
        if kind == "random":
            return 3.0 * rng.normal(size=(R.space.n_samples, 1))
        return rng.integers(-1, 3, size=(R.space.n_samples, 1)).astype(float)

    for _ in range(40):
        F, other = draw(), draw()
        value, G = R.evaluate(F)
        assert value >= 0.0
        assert R.value(other) >= value + R.space.inner(G, other - F) - 1e-9


def test_normalisation_of_the_subgradient():
    """(N/M)(μ − μ̂), as in theory.md."""
    planner = Monotone()
    scenes, R = make(planner)
    F = np.random.default_rng(4).normal(size=(R.space.n_samples, 1))
    M = sum(len(scene.paths) for scene in scenes)
    expected, first = np.zeros_like(F), 0
    for scene in scenes:
        rows = slice(first, first + len(scene.cells))
        first = rows.stop
        for i, counts in enumerate(scene.counts):
            expected[rows, 0] += R.space.n_samples / M * (counts - scene.rival(F[rows, 0], i, planner))
    np.testing.assert_allclose(R.evaluate(F)[1], expected, atol=1e-12)


def test_demonstrations_on_one_map_are_as_good_as_on_copies_of_it():
    planner = Monotone()
    scenes, together = make(planner, n_maps=1)
    (scene,) = scenes
    apart_scenes = [Scene.of(scene.map, [path], planner, 1.0) for path in scene.paths]
    apart = maximum_margin(apart_scenes, planner)
    costs = np.random.default_rng(5).normal(size=SHAPE)
    F = costs.ravel()[scene.cells][:, None]
    F_apart = np.concatenate([costs.ravel()[s.cells] for s in apart_scenes])[:, None]
    assert together.value(F) == pytest.approx(apart.value(F_apart))


def test_zero_where_the_demonstration_wins_by_the_margin():
    planner = Monotone()
    scenes, R = make(planner, n_maps=3, seed=6)
    # On the first map two demonstrations may disagree; the others have one each.
    alone = maximum_margin(scenes[1:], planner)
    F = np.concatenate([1.0 - np.minimum(scene.counts[0], 1.0) for scene in scenes[1:]])[:, None]
    assert alone.value(F) == pytest.approx(0.0, abs=1e-12)
    assert alone.value(0.5 * F) > 0.1
    assert R.constants.minimum == 0.0


@pytest.mark.parametrize("softness", [1.0, 2.0, 2.5, 3.0])
def test_the_best_constant(softness):
    _, R = make(Monotone(), softness)
    assert R.start() == 0.0  # equally long paths: all constants are as good
    _, R = make(Horizon(4), softness)
    (best,) = R.start()
    at = np.ones((R.space.n_samples, 1))
    assert R.value(best * at) <= min(R.value(cost * at) for cost in np.linspace(-1.0, 5.0, 61)) + 1e-9


def test_dijkstra_is_never_below_zero_either():
    planner = Dijkstra()
    _, R = make(planner)
    rng = np.random.default_rng(7)
    for _ in range(30):
        assert R.value(2.0 * rng.normal(size=(R.space.n_samples, 1))) >= 0.0


def test_path_loss():
    path = Path(np.array([(1, 0), (1, 1), (1, 2)]))
    hamming = path_loss(path, (4, 3))
    np.testing.assert_array_equal(hamming, np.array([[1.0], [0.0], [1.0], [1.0]]) * np.ones(3))
    soft = path_loss(path, (4, 3), softness=4.0)
    np.testing.assert_allclose(soft[:, 1], [0.25, 0.0, 0.25, 0.5])
    for softness in (0.5, np.nan, "1"):
        with pytest.raises(ValueError, match="`softness` must be a number of at least 1"):
            path_loss(path, (4, 3), softness)


def test_agreement():
    shown = Path(np.array([(0, 0), (0, 1), (0, 2), (0, 3)]))
    assert agreement(shown, shown) == 1.0
    assert agreement(Path(np.array([(0, 0), (1, 1), (1, 2), (0, 3)])), shown) == 0.5


def test_demonstrations_are_optimal_without_noise():
    map = Map(np.random.default_rng(0).normal(size=(9, 9, 1)), ("a",))
    ends, planner = [((4, 0), (4, 8))], Monotone()

    def cost(map):
        return np.exp(map.layer("a"))

    (path,) = demonstrate(map, cost, ends, planner)
    assert path.cost == pytest.approx(planner.plan(cost(map), *ends[0]).cost)
    noisy = [demonstrate(map, cost, ends, planner, 1.0, np.random.default_rng(seed))[0] for seed in (1, 1, 2)]
    assert noisy[0].cells.tolist() == noisy[1].cells.tolist()
    assert noisy[0].cells.tolist() != noisy[2].cells.tolist()
    assert all(path.cost <= other.cost for other in noisy)
    with pytest.raises(ValueError, match="`cost_function` must return positive costs"):
        demonstrate(map, lambda map: map.layer("a"), ends, planner)
    with pytest.raises(ValueError, match="`noise` must not be negative, got -1"):
        demonstrate(map, cost, ends, planner, -1)
