"""The estimator: it learns, it generalises, it says what is wrong."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

from convexboost.planning import (
    Dijkstra,
    Horizon,
    Map,
    MaxMarginPlanner,
    Monotone,
    Path,
    agreement,
    demonstrate,
)


def hidden(map):
    return 0.2 + np.exp(map.layer("a")) * (1.0 + 0.5 * np.tanh(map.layer("b")))


def make(n_maps=4, shape=(12, 14), planner=None, seed=0, blocked=False):
    rng = np.random.default_rng(seed)
    maps, shown = [], []
    for _ in range(n_maps):
        walls = rng.random(shape) < 0.05 if blocked else None
        if walls is not None:
            walls[:, [0, -1]] = False
        map = Map(rng.normal(size=(*shape, 2)), ("a", "b"), walls)
        ends = [((int(row), 0), (int(row), shape[1] - 1)) for row in rng.integers(0, shape[0], 3)]
        maps.append(map)
        shown.append(demonstrate(map, hidden, ends, planner or Monotone()))
    return maps, shown


@pytest.mark.parametrize(
    ("planner", "share"), [(Monotone(), 0.3), (Horizon(), 0.8), (Dijkstra(), 0.8)], ids=str
)
def test_learns_and_generalises(planner, share):
    maps, shown = make(6, planner=planner)
    maps_test, shown_test = make(4, planner=planner, seed=1)
    model = MaxMarginPlanner(planner, n_rounds=40, softness=2.0, random_state=0).fit(maps, shown)
    start = MaxMarginPlanner(planner, n_rounds=0, softness=2.0).fit(maps, shown)
    history = model.history_
    assert history["objective"].min() < share * history["objective"][0]
    assert model.objective(maps, shown) == pytest.approx(history["objective"].min())
    assert start.objective(maps, shown) == pytest.approx(history["objective"][0])
    assert model.score(maps_test, shown_test) > start.score(maps_test, shown_test) + 0.1


def test_the_score_is_the_mean_agreement():
    maps, shown = make(2, blocked=True)
    model = MaxMarginPlanner(n_rounds=5, random_state=0).fit(maps, shown)
    by_hand = [
        agreement(model.plan(map, path.start, path.goal), path)
        for map, paths in zip(maps, shown, strict=True)
        for path in paths
    ]
    assert model.score(maps, shown) == pytest.approx(np.mean(by_hand))
    *_, last = model.staged_score(maps, shown)
    assert last == pytest.approx(model.score(maps, shown))
    assert len(list(model.staged_score(maps, shown))) == model.model_.n_rounds
    assert np.isinf(model.costs(maps[0])[maps[0].blocked]).all()


def test_validation_maps_choose_the_best_round():
    maps, shown = make(3)
    maps_val, shown_val = make(2, seed=1)
    model = MaxMarginPlanner(n_rounds=12, random_state=0)
    model.fit(maps, shown, maps_val=maps_val, demonstrations_val=shown_val)
    assert model.best_round_ == np.argmin(model.history_["validation"])
    assert model.objective(maps_val, shown_val) == pytest.approx(model.history_["validation"].min())


@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual"])
def test_algorithms_and_budgets(algorithm):
    maps, shown = make(2)
    model = MaxMarginPlanner(algorithm=algorithm, n_rounds=50, max_weak_learners=10, random_state=0)
    model.fit(maps, shown)
    assert model.history_["weak_learners"][-1] == 10
    assert (model.history_["objective"] >= 0.0).all()


@pytest.mark.parametrize("learner", ["stump", "network:3", DecisionTreeRegressor(max_depth=2)], ids=str)
def test_learners(learner):
    maps, shown = make(2)
    model = MaxMarginPlanner(learner=learner, n_rounds=10, l2=1e-3, random_state=0).fit(maps, shown)
    assert model.history_["objective"].min() < model.history_["objective"][0]


def test_same_seed_same_costs_and_pickle():
    maps, shown = make(2)
    model = MaxMarginPlanner(n_rounds=5, random_state=3).fit(maps, shown)
    again = clone(model).fit(maps, shown)
    np.testing.assert_array_equal(model.costs(maps[0]), again.costs(maps[0]))
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.costs(maps[0]), copy.costs(maps[0]))


def test_a_callback_stops():
    maps, shown = make(2)
    model = MaxMarginPlanner(n_rounds=50, callbacks=[lambda record: record.round == 3]).fit(maps, shown)
    assert model.n_rounds_ == 3


def test_bad_parameters():
    maps, shown = make(1)
    for parameters, match in (
        ({"planner": "dijkstra"}, "`planner` must be None or a planner, got 'dijkstra'"),
        ({"learner": "netwrk"}, "did you mean 'network'"),
        ({"learner": 3}, "`learner` must be a name, a learner or a scikit-learn estimator, got 3"),
        ({"n_rounds": -1}, "`n_rounds` must be"),
        ({"max_weak_learners": 0}, "`max_weak_learners` must be a positive integer or None, got 0"),
        ({"l2": -1.0}, "`l2` must be"),
        ({"softness": 0.0}, "`softness` must be"),
        ({"algorithm": "newton"}, "`algorithm` must be one of"),
        ({"step": "big"}, "`step` must be one of"),
    ):
        with pytest.raises(ValueError, match=match):
            MaxMarginPlanner(**parameters).fit(maps, shown)


def test_bad_demonstrations():
    maps, shown = make(2)
    walled = Map(maps[0].features, maps[0].names, np.ones(maps[0].shape, bool))
    other = Map(maps[0].features, ("b", "a"))
    turned = [[Path(path.cells[::2]) for path in paths] for paths in shown]
    outside = [[Path(path.cells + 7) for path in paths] for paths in shown]
    for arguments, match in (
        ((maps[0], shown), "`maps` must be a sequence of maps, got Map"),
        (([], []), r"`maps` must be a sequence of maps, got \[\]"),
        ((maps, shown[:1]), "`demonstrations` must have 2 entries like `maps`, got 1"),
        ((maps, [shown[0], []]), r"`demonstrations`\[1\] must be paths on the map, got \[\]"),
        ((maps, [path for paths in shown for path in paths][:2]), "must be paths on the map, got Path"),
        ((maps, turned), "could never return"),
        ((maps, outside), "leaves the map"),
        (([walled, maps[1]], shown), "enters blocked cells"),
        (([maps[0], other], shown), "`maps` must have the features a, b, got b, a"),
    ):
        with pytest.raises(ValueError, match=match):
            MaxMarginPlanner().fit(*arguments)
    with pytest.raises(ValueError, match="`demonstrations_val` is missing"):
        MaxMarginPlanner().fit(maps, shown, maps_val=maps)
    model = MaxMarginPlanner(n_rounds=1, learner="stump").fit(maps, shown)
    with pytest.raises(ValueError, match="`map` must have the features a, b, got b, a"):
        model.costs(other)
