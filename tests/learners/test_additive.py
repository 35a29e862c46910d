"""All stumps at once against a twin that does the same on the rows of Δ, and against least squares."""

import math
import os
import pickle
import sys
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from convexboost.boosting.steps import Auto, InverseSqrt
from convexboost.boosting.training import Training, boost
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Direction, merge
from convexboost.core.space import FunctionSpace
from convexboost.learners.additive import Additive, AdditiveFunction
from convexboost.learners.stump import Stump
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.softmax import Softmax
from convexboost.registry import available, resolve
from tests.reference import SlowAdditive

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

CATEGORICAL = [3]


def inputs(rng, n):
    """Two numbers, one of them often missing, a count with ties, a category, and a constant."""
    X = rng.normal(size=(n, 5))
    X[rng.random(n) < 0.3, 1] = np.nan
    X[:, 2] = rng.integers(0, 4, n)
    X[:, 3] = rng.integers(0, 5, n)
    X[rng.random(n) < 0.1, 3] = np.nan
    X[:, 4] = 2.0
    return X


def targets(loss, rng, n, n_outputs=2):
    return rng.integers(0, 3, n) if loss.task == "classification" else rng.normal(size=(n, n_outputs)) + 1.0


def weighted(rng, n):
    return FunctionSpace.of(n, rng.uniform(0.5, 2.0, n))


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def run(objective, H, algorithm="residual", step="inverse_sqrt:0.7", n_rounds=8, **options):
    return boost(objective, H, algorithm=algorithm, step=step, n_rounds=n_rounds, output="last", **options)


def project(H, V):
    delta = H.zero(V.shape[1])
    delta.add(Gradient(V, H.sample.space))
    return delta.project(np.random.default_rng(0))


def values(direction, inputs, n_outputs):
    F = np.zeros((len(inputs), n_outputs))
    direction.add_to(F, inputs)
    return F


def least_squares(H, V):
    """The projection of V on all additive functions of the bins, row by row."""
    sample = H.sample
    Z = np.concatenate(
        [
            sample.column(j)[:, None] == np.arange(column.n_bins + 1)
            for j, column in enumerate(sample.mapper.columns)
        ],
        axis=1,
    )
    root = np.sqrt(sample.space.weight)[:, None]
    return Z @ np.linalg.lstsq(Z * root, V * root, rcond=1e-12)[0]


# --- the twin ----------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated"])
@pytest.mark.parametrize("loss", [HalfSquared(), MulticlassHinge(), Softmax()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "rough"])
@pytest.mark.parametrize("n_steps", [1, 2, 5])
def test_whole_runs_agree_with_the_dense_twin(n_steps, smooth, loss, algorithm, rng):
    compare_with_twin(n_steps, smooth, loss, algorithm, rng)


@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated", "dual_averaging"])
@pytest.mark.parametrize("loss", [HalfSquared(), MulticlassHinge()], ids=lambda loss: loss.name)
def test_whole_runs_with_a_ridge_term_agree_with_the_dense_twin(loss, algorithm, rng):
    compare_with_twin(2, True, loss, algorithm, rng, l2=0.3)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("max_table_mb", [512, 0])
def test_other_numbers_of_outputs_and_no_pair_table(n_outputs, max_table_mb, rng):
    compare_with_twin(3, True, HalfSquared(), "residual", rng, n_outputs=n_outputs, max_table_mb=max_table_mb)


def compare_with_twin(n_steps, smooth, loss, algorithm, rng, l2=0.0, n_outputs=2, **options):
    n = 36
    X, new = inputs(rng, n), inputs(rng, n)
    new[:5, 3], new[5:9], new[9:12, 0] = 77.0, np.nan, np.nan
    space = weighted(rng, n)
    objective = loss.bind(targets(loss, rng, n, n_outputs), space).with_l2(l2)
    fast = Additive(max_bins=7, n_steps=n_steps, smooth=smooth, **options).bind(X, space, CATEGORICAL)
    slow = SlowAdditive(X, space, fast.mapper, n_steps, smooth)
    n_rounds = 3 if algorithm == "repeated" else 7
    a, b = (run(objective, H, algorithm, n_rounds=n_rounds) for H in (fast, slow))
    assert len(a.records) == n_rounds + 1
    np.testing.assert_allclose(a.history["objective"], b.history["objective"], rtol=1e-9)
    np.testing.assert_allclose(a.model.predict(X), b.model.predict(X), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(a.model.predict(new), b.model.predict(new), rtol=1e-8, atol=1e-9)
    if algorithm in ("naive", "repeated"):
        np.testing.assert_allclose(a.history["edge"], b.history["edge"], rtol=1e-7)


# --- against least squares ---------------------------------------------------------------------------------


@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "rough"])
@pytest.mark.parametrize("max_table_mb", [512, 0])
def test_many_steps_are_the_projection_on_all_additive_functions(smooth, max_table_mb, rng):
    n = 120
    X, space, V = inputs(rng, n), weighted(rng, n), rng.normal([1.0, -3.0], size=(n, 2))
    H = Additive(8, max_table_mb, n_steps=300, smooth=smooth).bind(X, space, CATEGORICAL)
    h, expected = project(H, V), least_squares(H, V)
    np.testing.assert_allclose(values(h, H.inputs, 2), expected, atol=1e-5)
    assert h.norm == pytest.approx(space.norm(expected), rel=1e-10)
    assert h.edge == pytest.approx(space.norm(expected) / space.norm(V), rel=1e-10)


@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "rough"])
def test_steps_end_when_nothing_is_left(smooth, rng, monkeypatch):
    """However many are allowed: there are only as many directions as bins."""
    n = 120
    X, space, V = inputs(rng, n), weighted(rng, n), rng.normal(size=(n, 2))
    H = Additive(8, n_steps=10**9, smooth=smooth).bind(X, space, CATEGORICAL)
    done, counted = H.histogram_of, []

    def histogram_of(table):
        counted.append(1)
        assert len(counted) <= H.mapper.offsets[-1]
        return done(table)

    monkeypatch.setattr(H, "histogram_of", histogram_of)
    assert project(H, V).norm == pytest.approx(space.norm(least_squares(H, V)), rel=1e-10)


@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated"])
@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "rough"])
def test_one_step_solves_half_squared(algorithm, smooth, rng):
    n = 120
    X, space, Y = inputs(rng, n), weighted(rng, n), rng.normal(size=(n, 2))
    H = Additive(8, n_steps=300, smooth=smooth).bind(X, space, CATEGORICAL)
    result = run(HalfSquared().bind(Y, space), H, algorithm, step="constant", n_rounds=1)
    best = least_squares(H, Y)
    np.testing.assert_allclose(result.model.predict(X), best, atol=1e-5)
    assert result.records[-1].objective == pytest.approx(space.norm(Y - best) ** 2 / 2, rel=1e-12)


@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "rough"])
def test_each_step_makes_the_projection_longer(smooth, rng):
    """Up to that on all additive functions, which no stump can exceed (few steps can: see below)."""
    n = 100
    X, space = inputs(rng, n), weighted(rng, n)
    for V in (rng.normal(size=(n, 2)), np.where(X[:, [0]] > 0, 1.0, -1.0) + 0.05 * rng.normal(size=(n, 2))):
        norms = [
            project(Additive(12, n_steps=s, smooth=smooth).bind(X, space, CATEGORICAL), V).norm
            for s in (1, 2, 3, 4, 6, 8, 300)
        ]
        assert all(b > a for a, b in pairwise(norms))
        inside = space.norm(least_squares(Additive(12).bind(X, space, CATEGORICAL), V))
        intrinsic = np.array(norms) / inside
        assert intrinsic[0] > 0.1
        assert intrinsic[-1] == pytest.approx(1.0, abs=1e-9)
        assert project(Stump(12).bind(X, space, CATEGORICAL), V).norm < norms[-1]


def test_one_stump_may_be_longer_than_a_few_steps(rng):
    """Not a promise: where one cut says everything, the mean of all stumps is shorter."""
    X = rng.normal(size=(60, 3))
    V, space = np.where(X[:, :1] > 0, 1.0, -1.0), FunctionSpace.of(60)
    assert project(Stump(12).bind(X, space), V).norm > project(Additive(12, n_steps=2).bind(X, space), V).norm


def test_intrinsic_edge_of_a_residual(rng):
    """Measured in one round of ten: the projected length over the norm inside the span."""
    n = 100
    X, space = inputs(rng, n), weighted(rng, n)
    H = Additive(8).bind(X, space, CATEGORICAL)
    objective = Softmax().bind(rng.integers(0, 3, n), space)
    F, dense, delta, measured = objective.scores(H.inputs, objective.start()), np.zeros((n, 3)), H.zero(3), 0
    for _ in range(20):
        dense = dense + F.gradient().values
        delta.add(F.gradient())
        h = delta.project(rng)
        if not math.isnan(h.intrinsic_edge):
            measured += 1
            assert 0.0 < h.intrinsic_edge <= 1.0
            assert h.intrinsic_edge == pytest.approx(h.norm / space.norm(least_squares(H, dense)), rel=1e-6)
        dense -= values(h, H.inputs, 3)
        delta.subtract(h)
    assert measured == 2


# --- when nothing is left ----------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated"])
@pytest.mark.parametrize("max_table_mb", [512, 0])
def test_rounding_is_not_projected(algorithm, l2, max_table_mb):
    """Long after convergence Δ is rounding that no function has; its parts must not grow and cancel."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(3, 40)), int(rng.integers(2, 5))
        X, space = rng.integers(0, 4, (n, d)).astype(float), weighted(rng, n)
        learner = Additive(n_steps=25, smooth=bool(seed % 2), max_table_mb=max_table_mb)
        objective = HalfSquared().bind(rng.normal(size=(n, 2)), space).with_l2(l2)
        n_rounds = 12 if algorithm == "repeated" else 40
        result = run(objective, learner.bind(X, space), algorithm, step="constant:0.7", n_rounds=n_rounds)
        assert result.stop.kind != "diverged"
        settled = min(10 if algorithm == "repeated" else 20, result.path.n_rounds)
        corners = rng.integers(0, 5, (60, d)).astype(float)
        before, after = result.path.truncate(settled).predict(corners), result.path.predict(corners)
        np.testing.assert_allclose(after, before, atol=1e-4)
        assert np.abs(after).max() < 30.0


@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "rough"])
def test_nothing_correlates_with_the_gradient(smooth):
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    space = FunctionSpace.of(4)
    result = boost(
        HalfSquared().bind(corners[:, 0] * corners[:, 1], space),
        Additive(n_steps=5, smooth=smooth).bind(corners, space),
    )
    assert result.stop.message == "converged: no hypothesis correlates with the gradient"
    assert result.records[-1].weak_learners == 0


# --- pair table or rows, threads, forms of X ---------------------------------------------------------------


def models(rng, loss, algorithm, learners, n=200, n_threads=(1,), form=np.asarray, l2=0.0):
    X, space = inputs(rng, n), weighted(rng, n)
    objective = loss.bind(targets(loss, rng, n), space).with_l2(l2)
    new = inputs(rng, 50)
    new[:10] = np.nan
    for learner in learners:
        for threads in n_threads:
            H = learner.bind(form(X), space, CATEGORICAL, threads)
            model = run(objective, H, algorithm, n_rounds=4 if algorithm == "repeated" else 10).model
            yield H, np.concatenate([model.predict(X), model.predict(new)])


@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated"])
@pytest.mark.parametrize("loss", [HalfSquared(), Softmax()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_pair_table_and_rows_give_the_same_model(loss, algorithm, l2, rng):
    learners = [Additive(10, n_steps=3), Additive(10, max_table_mb=0, n_steps=3)]
    (with_table, a), (without, b) = models(rng, loss, algorithm, learners, l2=l2)
    assert with_table._pair_table is not None
    assert without._pair_table is None
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_pair_table_only_where_it_is_cheaper(rng):
    """255 bins a feature and few rows: two passes over the rows cost less than the square of the bins."""
    X = rng.normal(size=(300, 3))
    many, few = (Additive(bins).bind(X, FunctionSpace.of(300)) for bins in (255, 10))
    assert many.pairs.fits
    assert many._pair_table is None
    assert few._pair_table is not None


@pytest.mark.parametrize("max_table_mb", [512, 0])
def test_histogram_of_a_function(max_table_mb, rng):
    n = 150
    X, space = inputs(rng, n), weighted(rng, n)
    H = Additive(9, max_table_mb).bind(X, space, CATEGORICAL)
    table = rng.normal(size=(H.mapper.offsets[-1], 3))
    function = values(Direction(((1.0, AdditiveFunction(table, H.cover)),), 0.0), H.inputs, 3)
    expected = [
        (space.weight[:, None] * function)[H.sample.column(j) == b].sum(axis=0)
        for j, column in enumerate(H.mapper.columns)
        for b in range(column.n_bins + 1)
    ]
    np.testing.assert_allclose(H.histogram_of(table), expected, atol=1e-14)


@pytest.mark.parametrize("max_table_mb", [512, 0])
@pytest.mark.parametrize("loss", [HalfSquared(), MulticlassHinge()], ids=lambda loss: loss.name)
def test_number_of_threads_does_not_change_a_bit(loss, max_table_mb, rng, monkeypatch):
    monkeypatch.setattr("convexboost.kernels.parallel.MIN_OPERATIONS", 1)
    learner = Additive(10, max_table_mb, n_steps=3)
    (_, one), *others = models(rng, loss, "residual", [learner], n=700, n_threads=(1, 2, 4))
    for _, other in others:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("max_table_mb", [512, 0])
@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "rough"])
def test_sparse_inputs_give_the_same_bits(max_table_mb, smooth):
    learner = Additive(10, max_table_mb, n_steps=3, smooth=smooth)
    predictions = [
        next(models(np.random.default_rng(3), Softmax(), "residual", [learner], form=form))[1]
        for form in (np.asarray, sp.csc_array, sp.csr_array)
    ]
    np.testing.assert_array_equal(predictions[0], predictions[1])
    np.testing.assert_array_equal(predictions[0], predictions[2])


# --- hypotheses and models ---------------------------------------------------------------------------------


@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "rough"])
def test_bins_without_training_rows_predict_the_mean(smooth, rng):
    """Nothing was missing: at prediction a missing value counts as the mean over the training rows."""
    n = 80
    X, space = inputs(rng, n), weighted(rng, n)
    X = np.nan_to_num(X, nan=0.5)
    H = Additive(8, n_steps=2, smooth=smooth).bind(X, space, CATEGORICAL)
    model = run(
        HalfSquared().bind(X[:, :2] + X[:, 3:4] * [[1.0, -2.0]] + 5.0, space), H, start=np.zeros(2)
    ).model
    new = X[7:8]
    for j, unseen in [(0, np.nan), (2, np.nan), (3, np.nan), (3, 99.0)]:
        row, like_training = new.copy(), np.repeat(new, n, axis=0)
        row[0, j], like_training[:, j] = unseen, X[:, j]
        expected = np.average(model.predict(like_training), axis=0, weights=space.weight)
        np.testing.assert_allclose(model.predict(row)[0], expected, rtol=1e-9)
        assert np.abs(model.predict(row) - model.predict(new)).max() > 1e-3


@pytest.mark.parametrize("always_missing", [0, 2, 4])
def test_feature_that_was_always_missing(always_missing, rng):
    """A value there, at last, says nothing."""
    n = 60
    X, space = inputs(rng, n), weighted(rng, n)
    X[:, always_missing] = np.nan
    H = Additive(8, n_steps=2).bind(X, space, CATEGORICAL)
    model = run(HalfSquared().bind(rng.normal(size=(n, 2)) + 3.0, space), H, start=np.zeros(2)).model
    new = X.copy()
    new[:, always_missing] = 1.0
    np.testing.assert_allclose(model.predict(new), model.predict(X), rtol=1e-12)


def test_terms_are_one_function_a_round(rng):
    n = 80
    X, space = inputs(rng, n), weighted(rng, n)
    H = Additive(8, n_steps=2).bind(X, space, CATEGORICAL)
    result = run(Softmax().bind(rng.integers(0, 3, n), space), H)
    assert result.history["weak_learners"].tolist() == list(range(9))
    assert [type(h) for _, h in result.path.terms] == [AdditiveFunction] * 8
    assert len(merge(result.path.terms)) == 1
    assert result.path.terms[0][1].table.shape == (H.mapper.offsets[-1], 3)


@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated", "dual_averaging"])
def test_collapsed_staged_truncated_and_averaged(algorithm, rng):
    n = 80
    X, new, space = inputs(rng, n), inputs(rng, 30), weighted(rng, n)
    H = Additive(8, n_steps=2, smooth=False).bind(X, space, CATEGORICAL)
    model = run(Softmax().bind(rng.integers(0, 3, n), space), H, algorithm, n_rounds=6).model
    stages = [np.tile(model.start, (30, 1)), *model.staged_predict(new)]
    prepared = model.mapper.prepare(new)
    for t, stage in enumerate(stages):
        F = np.zeros((30, 3))
        for weight, h in model.terms[: model.ends[t]]:
            h.add_to(F, prepared, weight)
        total = model.start + model.multipliers[t] * F
        np.testing.assert_allclose(stage, total, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(model.truncate(t).predict(new), total, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.predict(new), stages[-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        model.average().predict(new), np.mean(stages[:-1], axis=0), rtol=1e-10, atol=1e-12
    )
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


def test_hypotheses_are_left_alone(rng):
    """Merging, adding and subtracting do not write into a hypothesis."""
    n = 60
    X, space = inputs(rng, n), weighted(rng, n)
    H = Additive(8).bind(X, space, CATEGORICAL)
    V = rng.normal(size=(n, 2))
    a, b = project(H, V), project(H, V * [[1.0, -2.0]])
    kept = [h.terms[0][1].table.copy() for h in (a, b)]
    both = Direction((a * 2.0).terms + b.terms, math.nan)
    delta = H.zero(2)
    delta.subtract(Direction(a.terms, math.nan))
    delta.subtract(both)
    np.testing.assert_allclose(
        values(both, H.inputs, 2), 2.0 * values(a, H.inputs, 2) + values(b, H.inputs, 2), atol=1e-12
    )
    for h, table in zip((a, b), kept, strict=True):
        np.testing.assert_array_equal(h.terms[0][1].table, table)


def test_subtract_is_the_same_for_the_last_projection_and_for_any(rng):
    """The histogram of the last projection is remembered; a multiple of it is counted anew."""
    n = 60
    X, space = inputs(rng, n), weighted(rng, n)
    H = Additive(8, n_steps=3).bind(X, space, CATEGORICAL)
    V, W = rng.normal(size=(2, n, 2))
    one, other = H.zero(2), H.zero(2)
    for delta in (one, other):
        delta.add(Gradient(V, space))
    h = one.project(rng)
    for delta in (one, other):
        delta.add(Gradient(W, space))  # between the projection and its subtraction
    one.subtract(h)
    other.subtract(h * 1.0)
    np.testing.assert_allclose(one.table, other.table, atol=1e-14)
    one.subtract(h * -0.5)  # remembered, but not this
    other.subtract(h * -0.5)
    np.testing.assert_allclose(one.table, other.table, atol=1e-14)


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
@pytest.mark.parametrize("l2", [0.0, 0.2])
@pytest.mark.parametrize("max_table_mb", [512, 0])
def test_stopped_pickled_and_resumed_gives_the_same_bits(algorithm, l2, max_table_mb):
    rng = np.random.default_rng(0)
    n, rounds = 80, 7
    X, space, y = inputs(rng, n), weighted(rng, n), rng.integers(0, 3, n)

    def training():
        H = Additive(8, max_table_mb, n_steps=3).bind(X, space, CATEGORICAL)
        objective = MulticlassHinge().bind(y, space).with_l2(l2)
        step = Auto() if algorithm in ("naive", "residual", "repeated") else InverseSqrt(0.5)
        return Training(
            objective,
            H,
            algorithm=ALGORITHMS[algorithm](),
            step=step,
            start=objective.start(),
            offset=None,
            validation=None,
            n_rounds=rounds,
            random_state=0,
        )

    whole, stopped, resumed = training(), training(), training()
    whole.run()
    for _ in range(3):
        stopped.round()
    state = pickle.dumps(stopped.state())
    stopped.round()
    resumed.restore(pickle.loads(state))
    resumed.run()
    np.testing.assert_array_equal(resumed.members[0].progress.F.F, whole.members[0].progress.F.F)
    np.testing.assert_equal(
        *([{**asdict(record), "seconds": 0.0} for record in t.records] for t in (resumed, whole))
    )
    for output in ("last", "best", "average"):
        a, b = (t.result(output).model.predict(X) for t in (resumed, whole))
        np.testing.assert_array_equal(a, b)


# --- parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_steps", ["2", "many", True, False, 0, -1, 1.5, 2.0, math.nan, None])
def test_n_steps_is_checked(n_steps):
    with pytest.raises(ValueError, match=rf"`n_steps` must be a positive whole number, got {n_steps!r}"):
        Additive(n_steps=n_steps)


@pytest.mark.parametrize("smooth", ["False", "no", 0, 1, None, 0.5])
def test_smooth_is_checked(smooth):
    with pytest.raises(ValueError, match=rf"`smooth` must be True or False, got {smooth!r}"):
        Additive(smooth=smooth)


def test_max_bins_is_checked():
    with pytest.raises(ValueError, match="`max_bins` must"):
        Additive(max_bins=1)


def test_numpy_numbers_are_numbers():
    assert Additive(n_steps=np.int64(3), smooth=np.bool_(False)) == Additive(n_steps=3, smooth=False)


def test_found_by_name():
    learners = available("convexboost.learners")
    assert resolve("learner", "additive", learners) == Additive()
    assert resolve("learner", "additive:64", learners) == Additive(max_bins=64)


@pytest.mark.parametrize("smooth", [True, np.bool_(True)])
def test_smooth_means_smooth(smooth, rng):
    """One step on one ordered feature: fewer jumps than the bins have, in all directions but the trend."""
    x = np.arange(64.0)[:, None]
    V, space = x / 32 + 0.5 * rng.normal(size=(64, 1)), FunctionSpace.of(64)
    jumps = {}
    for choice in (smooth, False):
        H = Additive(smooth=choice).bind(x, space)
        jumps[bool(choice)] = np.abs(np.diff(values(project(H, V), H.inputs, 1), axis=0)).sum()
    assert jumps[True] < jumps[False] / 3


# --- real data ---------------------------------------------------------------------------------------------


def test_learns_letter():
    if "CONVEXBOOST_DATA" not in os.environ:
        pytest.skip("set CONVEXBOOST_DATA to the folder with the data sets (letter/, pendigits/, ...)")
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        import data
    finally:
        sys.path.remove(folder)
    X, y = data.letter()[:2]
    space = FunctionSpace.of(len(y))
    H = Additive(n_steps=4, smooth=False).bind(X, space, n_threads=2)
    result = boost(MulticlassHinge().bind(y, space), H, algorithm="residual", n_rounds=40, random_state=0)
    assert np.mean(result.model.predict(X).argmax(axis=1) != y) < 0.11


def test_a_constant_in_the_targets_is_only_added():
    """The mean of the gradient of ½(f − y)² is rounding, which used to grow threefold in a round."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(30, 200)), int(rng.integers(1, 6))
        X = rng.normal(size=(n, d)) if seed % 3 else np.round(rng.normal(size=(n, d)))
        y = X[:, 0] + rng.normal(size=n)
        space = FunctionSpace.of(n)
        H = Additive().bind(X, space)
        found = [
            boost(HalfSquared().bind(y + c, space), H, n_rounds=40, output="last").model.predict(X).ravel()
            - c
            for c in (0.0, 1024.0)
        ]
        np.testing.assert_allclose(*found, rtol=0, atol=1e-8 * np.ptp(found[0]), err_msg=f"seed {seed}")
