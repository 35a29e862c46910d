"""The estimators for Dask collections train the model of one process, bit for bit."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.dask import DaskConvexBoostClassifier, DaskConvexBoostRanker, DaskConvexBoostRegressor
from convexboost.dask._fit import Run
from convexboost.losses import CVaR, HalfSquared, TotalVariation, WorstGroup
from tests.dask.clusters import cluster, soon

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

N = 400
ORDINARY = {
    DaskConvexBoostRegressor: ConvexBoostRegressor,
    DaskConvexBoostClassifier: ConvexBoostClassifier,
    DaskConvexBoostRanker: ConvexBoostRanker,
}


@pytest.fixture(name="X")
def inputs():
    found = np.round(np.random.default_rng(0).normal(size=(N, 4)), 2)
    found[::17, 1] = np.nan
    return found


@pytest.fixture
def y(X):
    return np.nan_to_num(X).sum(axis=1) + np.random.default_rng(1).normal(size=N)


def bits(model):
    """Return everything that two models must have in common."""
    rounds = model.history_
    return [model.model_.start.tobytes(), *(rounds[name].tobytes() for name in rounds if name != "seconds")]


def same(spread, alone, X):
    """Compare two fitted estimators."""
    assert bits(spread) == bits(alone)
    np.testing.assert_array_equal(spread.to_local().predict(X), alone.predict(X))
    for name in ("n_rounds_", "best_round_", "n_members_", "stop_reason_", "n_features_in_"):
        assert getattr(spread, name) == getattr(alone, name)
    for name, found in alone.evals_result_.items():
        np.testing.assert_array_equal(spread.evals_result_[name]["loss"], found["loss"])


def check(kind, client, X, arguments, chunks=(150, 0, 30, 220), **parameters):
    """Fit alone and on a cluster; compare."""
    parameters = {"n_rounds": 4, "random_state": 0, "early_stopping": False, **parameters}
    alone = ORDINARY[kind](n_jobs=1, **parameters).fit(X, **arguments)
    spread = kind(client=client, **parameters)
    spread.fit(_arrays(X, chunks), **{name: _arrays(value, chunks) for name, value in arguments.items()})
    same(spread, alone, X)
    return spread


def _arrays(value, chunks):
    if isinstance(value, np.ndarray):
        n = len(value)
        rows = chunks if sum(chunks) == n else (n // 2, n - n // 2)
        return da.from_array(value, chunks=(rows, *value.shape[1:]))
    if isinstance(value, tuple):
        return tuple(_arrays(one, chunks) for one in value)
    return [_arrays(one, chunks) for one in value]


# --- the same bits -----------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", ["half_squared", "quantile:0.9"])
@pytest.mark.parametrize("learner", ["tree", "stump"])
def test_regression(client, X, y, loss, learner):
    check(DaskConvexBoostRegressor, client, X, {"y": y}, loss=loss, learner=learner)


def test_folds(client, X, y):
    check(DaskConvexBoostRegressor, client, X, {"y": y}, early_stopping="auto")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("classes", ["two", "names"])
def test_classification(client, X, y, classes):
    y = (
        (y > 0).astype(int)
        if classes == "two"
        else np.array(["a", "b", "c", "d"])[np.digitize(y, [-2, 0, 2])]
    )
    found = check(DaskConvexBoostClassifier, client, X, {"y": y})
    np.testing.assert_array_equal(found.classes_, np.unique(y))


def test_queries_that_lie_on_several_workers(client, X, y):
    qid = np.random.default_rng(2).integers(0, 30, N)
    check(DaskConvexBoostRanker, client, X, {"y": np.round(y), "qid": qid})


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", [CVaR("absolute", 0.7), WorstGroup("absolute")])
def test_tails_and_groups_that_are_spread(client, X, y, loss):
    groups = {"groups": np.random.default_rng(2).integers(0, 4, N)} if loss.needs_groups else {}
    check(DaskConvexBoostRegressor, client, X, {"y": y, **groups}, loss=loss)


def test_weights_an_offset_and_sets_of_rows(client, X, y):
    rng = np.random.default_rng(3)
    weight, offset = rng.integers(0, 3, N).astype(float), rng.normal(size=N)
    held, shown = rng.normal(size=(50, 4)), rng.normal(size=(3, 4))
    arguments = {
        "y": y,
        "sample_weight": weight,
        "offset": offset,
        "X_val": held,
        "y_val": held.sum(axis=1),
        "sample_weight_val": rng.random(50),
        "offset_val": np.zeros(50),
    }
    check(DaskConvexBoostRegressor, client, X, arguments)
    check(DaskConvexBoostRegressor, client, X, {"y": y, "eval_set": [(shown, shown.sum(axis=1))]})


def test_a_validation_set_of_one_partition(client, X, y):
    arguments = {"y": da.from_array(y, chunks=100)}
    held = {"X_val": da.from_array(X[:40], chunks=40), "y_val": da.from_array(y[:40], chunks=40)}
    parameters = {"n_rounds": 20, "n_iter_no_change": 3, "random_state": 0}
    spread = DaskConvexBoostRegressor(**parameters, client=client)
    spread.fit(da.from_array(X, chunks=(100, 2)), **arguments, **held)
    alone = ConvexBoostRegressor(**parameters).fit(X, y, X_val=X[:40], y_val=y[:40])
    same(spread, alone, X)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("n_workers", [1, 4])
def test_any_number_of_workers(X, y, n_workers):
    with cluster(n_workers, processes=False) as client:
        check(DaskConvexBoostRegressor, client, X, {"y": y}, (100, 100, 100, 100), loss="absolute")


def test_data_frames_with_categories_and_missing_values(client, X, y):
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["kind"] = pd.Categorical(np.array(["red", "green", "blue"])[np.arange(N) % 3])
    frame.loc[::50, "kind"] = None
    target = pd.Series(y + (np.arange(N) % 3 == 1), name="y")
    parameters = {"n_rounds": 4, "early_stopping": False, "random_state": 0}
    alone = ConvexBoostRegressor(**parameters).fit(frame, target)
    both = dd.from_pandas(frame.assign(y=target), npartitions=3)
    spread = DaskConvexBoostRegressor(**parameters, client=client)
    spread.fit(both.drop(columns="y"), both["y"])
    same(spread, alone, frame)
    np.testing.assert_array_equal(spread.feature_names_in_, frame.columns)
    lazy = spread.predict(both.drop(columns="y"))
    assert lazy.npartitions == 3
    np.testing.assert_array_equal(lazy.compute(), alone.predict(frame))


def test_two_fits_at_once(client, X, y):
    """Each worker has one thread: ranks of the one must not keep those of the other from starting."""

    def fit(loss):
        return check(DaskConvexBoostRegressor, client, X, {"y": y}, loss=loss)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fit, ["half_squared", "absolute"]))


# --- predictions -------------------------------------------------------------------------------------------


def test_predictions_are_lazy_and_keep_the_partitions(client, X, y):
    labels = np.digitize(y, [-1, 1])
    found = check(DaskConvexBoostClassifier, client, X, {"y": labels})
    local, inputs = found.to_local(), _arrays(X, (150, 0, 30, 220)).rechunk({1: 2})
    for method in ("predict", "predict_proba", "decision_function", "predict_log_proba"):
        lazy, wanted = getattr(found, method)(inputs), getattr(local, method)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == (150, 0, 30, 220)
        assert (lazy.shape, lazy.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(lazy.compute(), wanted)
        np.testing.assert_array_equal(getattr(found, method)(X), wanted)
    frame = dd.from_pandas(pd.DataFrame(X, index=np.arange(N) * 2), npartitions=3)
    lazy = found.predict_proba(frame)
    assert list(lazy.columns) == [0, 1, 2]
    pd.testing.assert_index_equal(lazy.compute().index, frame.compute().index)
    np.testing.assert_array_equal(lazy.compute(), local.predict_proba(X))


def test_an_ordinary_estimator_comes_of_it(client, X, y, tmp_path):
    found = check(DaskConvexBoostRegressor, client, X, {"y": y})
    local = found.to_local()
    assert type(local) is ConvexBoostRegressor
    local.save(tmp_path / "model")
    loaded = ConvexBoostRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), local.predict(X))
    copy = clone(found)
    assert copy.client is client
    assert copy.get_params() == found.get_params()
    assert "client" not in found.get_params()
    back = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(back.predict(X), local.predict(X))
    with pytest.raises(TypeError, match="to_local"):
        found.score(_arrays(X, (200, 200)), y)


def test_a_fit_leaves_nothing_on_the_cluster(client, X, y):
    def tasks(dask_scheduler):
        return set(dask_scheduler.tasks)

    before = client.run_on_scheduler(tasks)
    check(DaskConvexBoostRegressor, client, X, {"y": y})
    assert soon(lambda: client.run_on_scheduler(tasks) <= before)


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"certificate": True}, "`certificate` must be False"),
        ({"stop_when_gap_below": 0.1}, "`stop_when_gap_below` must be None"),
        ({"learner": "network"}, "`learner` must be one of"),
        ({"loss": "half_squared", "scoring": "r2"}, "`scoring` must be 'loss'"),
        ({"warm_start": True}, "`warm_start` must be False"),
        ({"early_stopping": True}, "`early_stopping`=True needs `X_val`"),
        ({"n_rounds": 0}, "`n_rounds` must be a positive integer"),
        ({"loss": "absolute", "checkpoint": 3}, "`checkpoint` must be a path"),
    ],
)
def test_parameters_that_need_all_rows_are_refused_before_any_work(client, X, y, parameters, message):
    broken = da.from_array(X, chunks=100).map_blocks(_must_not_be_computed, dtype=float, meta=X[:0])
    with pytest.raises(ValueError, match=message):
        DaskConvexBoostRegressor(**parameters, client=client).fit(broken, da.from_array(y, chunks=100))


def _must_not_be_computed(block):
    raise AssertionError("computed")


def test_losses_that_couple_rows_are_refused(client, X, y):
    loss = HalfSquared() + TotalVariation([(0, 1)])
    with pytest.raises(ValueError, match="couples arbitrary rows"):
        DaskConvexBoostRegressor(loss, client=client).fit(
            da.from_array(X, chunks=100), da.from_array(y, chunks=100)
        )


def test_rows_in_memory_are_sent_to_the_ordinary_estimator(client, X, y):
    model = DaskConvexBoostRegressor(client=client)
    with pytest.raises(TypeError, match=r"`X` must be a Dask array or .* got ndarray.* ConvexBoostRegressor"):
        model.fit(X, y)
    with pytest.raises(TypeError, match="`y` must be a Dask collection like `X`, got ndarray"):
        model.fit(da.from_array(X, chunks=100), y)


def test_collections_must_be_divided_alike(client, X, y):
    model = DaskConvexBoostRegressor(client=client, n_rounds=2)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    with pytest.raises(ValueError, match="`y` must be divided into 3 partitions like `X`, got 2"):
        model.fit(frame, dd.from_pandas(pd.Series(y), npartitions=2))
    with pytest.raises(ValueError, match="`y` must have 400 rows like `X`, got 399"):
        model.fit(da.from_array(X, chunks=100), da.from_array(y[1:], chunks=100))
    with pytest.raises(ValueError, match="partition 0 of `y` must have 134 rows like that of `X`, got 133"):
        model.fit(frame, dd.from_pandas(pd.Series(y[:-1]), npartitions=3))


def test_categories_must_be_known(client, X, y):
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=2)
    target = dd.from_pandas(pd.Series(y), npartitions=2)
    frame["a"] = frame["a"].astype(str)
    model = DaskConvexBoostRegressor(client=client)
    with pytest.raises(ValueError, match=r"column 'a' of `X` holds text.*categorize"):
        model.fit(frame, target)
    frame["a"] = frame["a"].astype("category")
    with pytest.raises(ValueError, match=r"column 'a' of `X` has categories that are not known.*categorize"):
        model.fit(frame, target)


def test_no_rows(client):
    empty = da.zeros((0, 3), chunks=(5, 3))
    with pytest.raises(ValueError, match="`X` must have rows"):
        DaskConvexBoostRegressor(client=client).fit(empty, da.zeros(0, chunks=5))


def test_fewer_validation_rows_than_workers(client, X, y, monkeypatch):
    """Workers with rows to train on count, which on a busy machine may be one: here the rows are dealt."""

    def dealt(self, parts):
        return {a: [p] for a, p in zip(sorted(client.nthreads()), self._filled(parts), strict=True)}

    monkeypatch.setattr(Run, "_located", dealt)
    arrays = {"y": da.from_array(y, chunks=200), "X_val": da.from_array(X[:1]), "y_val": da.from_array(y[:1])}
    with pytest.raises(ValueError, match=r"`X_val` must have at least as many rows as .*workers.*, 2, got 1"):
        DaskConvexBoostRegressor(client=client).fit(da.from_array(X, chunks=200), **arrays)


def test_categories_that_lie_in_some_partitions_only(client, y):
    table = pd.DataFrame({"name": pd.Categorical(["b", "c"] * 100 + ["a", "c"] * 100)})
    y = pd.Series(y + (table["name"] == "c"))
    alone = ConvexBoostRegressor(n_rounds=4, random_state=0).fit(table, y)
    spread = DaskConvexBoostRegressor(client=client, n_rounds=4, random_state=0)
    spread.fit(dd.from_pandas(table, npartitions=2), dd.from_pandas(y, npartitions=2))
    same(spread, alone, table)


def test_a_checkpoint_keeps_the_seed(client, X, y, tmp_path):
    """Without `random_state` the next fit goes on, although it would draw another seed."""
    arrays = _arrays(X, (200, 200)), _arrays((y > 0).astype(int), (200, 200))
    models = [
        DaskConvexBoostClassifier(client=client, n_rounds=n, checkpoint=str(tmp_path / "run")).fit(*arrays)
        for n in (3, 6, 6)
    ]
    assert bits(models[1]) == bits(models[2])
    kept = models[0].history_["objective"]
    np.testing.assert_array_equal(models[1].history_["objective"][: len(kept)], kept)


def test_warnings_reach_the_client_and_others_are_not_lost(X):
    y = np.zeros(N)
    with cluster(2, processes=False) as client:
        model = DaskConvexBoostRegressor(client=client, n_rounds=1, n_iter_no_change=3)
        with pytest.warns(UserWarning, match="`n_iter_no_change`=3 is not used"):
            model.fit(_arrays(X[:20], (10, 10)), _arrays(y[:20], (10, 10)))
    with pytest.warns(UserWarning, match="still heard"):
        warnings.warn("still heard", stacklevel=1)


def test_a_ranker_needs_queries_and_takes_no_weights_of_them(client, X, y):
    arrays = _arrays(X, (200, 200)), _arrays(y, (200, 200))
    with pytest.raises(ValueError, match="`qid` is needed"):
        DaskConvexBoostRanker(client=client).fit(*arrays)
    with pytest.raises(ValueError, match="`query_weight` must be None"):
        DaskConvexBoostRanker(client=client).fit(*arrays, arrays[1], query_weight=arrays[1])
