"""The two problems, and their pictures."""

import numpy as np
import pytest

from convexboost.planning import PROBLEMS, Map, Monotone, Path, draw_paths, problem


def available(name):
    try:
        return problem(name, quick=True)
    except (FileNotFoundError, OSError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem(name):
    data = available(name)
    again = problem(name, quick=True)
    for shown, same in ((data.train, again.train), (data.test, again.test)):
        assert len(shown.maps) == len(shown.demonstrations)
        for map, paths, twins in zip(shown.maps, shown.demonstrations, same.demonstrations, strict=True):
            assert (data.cost(map) > 0.0).all()
            for path, twin in zip(paths, twins, strict=True):
                assert data.planner.allows(path)
                assert map.free[tuple(path.cells.T)].all()
                assert path.cells.tolist() == twin.cells.tolist()
    # A demonstration is noisy: not the best path, but not much worse.
    assert 0.0 <= data.excess(data.test, data.test.demonstrations) < 0.1


def test_hidden_costs_are_not_linear_in_the_features():
    for name in PROBLEMS:
        available(name)
        data = problem(name)
        X = np.concatenate([map.rows for map in data.train.maps])
        y = np.concatenate([data.cost(map).ravel() for map in data.train.maps])
        X = np.column_stack([X, np.ones(len(X))])
        rest = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        assert rest.std() > 0.1 * y.std()


def test_unknown_problem():
    with pytest.raises(ValueError, match="`name` must be one of elevation, terrain, got 'moon'"):
        problem("moon")


@pytest.mark.parametrize("name", PROBLEMS)
def test_picture(name):
    plt = pytest.importorskip("matplotlib.pyplot")
    data = available(name)
    map, demo = data.test.maps[0], data.test.demonstrations[0][0]
    other = data.planner.plan(map.grid(np.ones(map.shape)), demo.start, demo.goal)
    figure = draw_paths(map, demo, other, demo)
    (ax,) = figure.axes
    drawn = [line for line in ax.lines if len(line.get_xdata()) == len(demo)]
    np.testing.assert_array_equal(np.column_stack([drawn[0].get_ydata(), drawn[0].get_xdata()]), demo.cells)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"demonstrated", "before learning", "after learning"} <= set(labels)
    assert len(ax.images) == 1
    figure.canvas.draw()
    plt.close(figure)


def test_picture_of_any_map():
    plt = pytest.importorskip("matplotlib.pyplot")
    map = Map(np.random.default_rng(0).normal(size=(4, 5, 1)), ("height",))
    demo = Path(Monotone().plan(map.layer("height"), (0, 0), (0, 4)).cells)
    figure, ax = plt.subplots()
    assert draw_paths(map, demo, ax=ax) is figure
    plt.close(figure)
