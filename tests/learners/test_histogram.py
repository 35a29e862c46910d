"""Stumps in histogram form against the dense twin, which tries every split on the rows of Δ."""

import math

import numpy as np
import pytest

from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Move
from convexboost.core.protocols import Target
from convexboost.core.space import FunctionSpace
from convexboost.kernels.stumps import CLASS
from convexboost.learners import _stumps
from convexboost.learners._bin_function import BinFunction
from convexboost.learners._stump_learner import StumpLearner
from convexboost.learners.additive import Additive
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.softmax import Softmax
from convexboost.registry import available
from tests.reference import SlowStumps

STUMPS = [
    cls
    for cls in available("convexboost.learners").values()
    if issubclass(cls, StumpLearner) and cls is not Additive
]
ids = [cls.name for cls in STUMPS]


def inputs(rng, n):
    """Two numbers, one of them often missing, a count with ties, and a category."""
    X = rng.normal(size=(n, 4))
    X[rng.random(n) < 0.3, 1] = np.nan
    X[:, 2] = rng.integers(0, 4, n)
    X[:, 3] = rng.integers(0, 5, n)
    X[rng.random(n) < 0.1, 3] = np.nan
    return X


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def terms(model):
    return [(h.feature, h.leaf_of_bin.tolist()) for _, h in model.terms]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated"])
@pytest.mark.parametrize("loss", [HalfSquared(), MulticlassHinge(), Softmax()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("cls", STUMPS, ids=ids)
def test_whole_runs_agree_with_the_dense_twin(cls, loss, algorithm, rng):
    n = 36
    X, new = inputs(rng, n), inputs(rng, n)
    new[:5, 3], new[5:9] = 77.0, np.nan
    y = (
        rng.integers(0, 3, n)
        if loss.task == "classification"
        else rng.normal(size=(n, 2 if cls.kind == CLASS else 1))
    )
    space = FunctionSpace.of(n, rng.uniform(0.5, 2.0, n))
    objective = loss.bind(y, space)
    fast = cls(max_bins=8).bind(X, space, categorical=[3])
    slow = SlowStumps(X, space, fast.mapper, cls.kind)
    a, b = (
        boost(
            objective,
            H,
            algorithm=algorithm,
            step="inverse_sqrt:0.7",
            n_rounds=5 if algorithm == "repeated" else 12,
            output="last",
        )
        for H in (fast, slow)
    )
    assert terms(a.model) == terms(b.model)
    np.testing.assert_allclose(a.history["objective"], b.history["objective"], rtol=1e-9)
    np.testing.assert_allclose(a.model.predict(X), b.model.predict(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a.model.predict(new), b.model.predict(new), rtol=1e-9, atol=1e-9)
    if algorithm != "residual":
        np.testing.assert_allclose(a.history["edge"], b.history["edge"], rtol=1e-7)


@pytest.mark.parametrize("cls", STUMPS, ids=ids)
def test_more_categories_than_bins(cls, rng):
    n = 600
    X = rng.integers(0, 400, (n, 1)).astype(float)
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])]) + 0.1 * rng.normal(size=(n, 2))
    space = FunctionSpace.of(n)
    with pytest.warns(UserWarning, match="column 0 has .* levels: the 254 heaviest have a bin each"):
        H = cls().bind(X, space, categorical=[0])
    assert H.mapper.columns[0].n_bins == 255
    result = boost(HalfSquared().bind(Y, space), H, step="inverse_sqrt", n_rounds=30, output="last")
    assert result.records[-1].objective < 0.9 * result.records[0].objective
    new = np.array([[1e6], [np.nan], [-1.0]])
    predictions = result.model.predict(new)
    np.testing.assert_array_equal(predictions[0], predictions[1])
    np.testing.assert_array_equal(predictions[0], predictions[2])


@pytest.mark.parametrize("cls", STUMPS, ids=ids)
@pytest.mark.parametrize("n_rounds", [9, 25])
def test_without_a_pair_table_the_model_is_the_same(cls, n_rounds, rng):
    """Columns of the table are counted on demand: the same sums, the same bits."""
    n = 150
    X, y, space = inputs(rng, n), rng.integers(0, 3, n), FunctionSpace.of(n, rng.uniform(0.5, 2.0, n))

    def run(**options):
        H = cls(**options).bind(X, space, categorical=[3])
        return boost(
            Softmax().bind(y, space), H, step="inverse_sqrt", n_rounds=n_rounds, output="last"
        ).model.predict(X)

    with_table = run()
    np.testing.assert_array_equal(with_table, run(max_table_mb=0))


def test_shares_are_exact_with_and_without_the_table(rng):
    n = 150
    X, space = inputs(rng, n), FunctionSpace.of(n, rng.uniform(0.5, 2.0, n))
    with_table, without = (
        learner.bind(X, space, categorical=[3]) for learner in (STUMPS[0](), STUMPS[0](max_table_mb=0))
    )
    assert with_table.pairs.fits
    assert not without.pairs.fits
    n_bins = with_table.mapper.columns[0].n_bins
    h = BinFunction(0, rng.integers(0, 3, n_bins + 1).astype(np.uint8), np.zeros((3, 1)), np.ones(n_bins + 1))
    np.testing.assert_array_equal(with_table.pairs.shares(h), without.pairs.shares(h))


@pytest.mark.parametrize("learner", STUMPS)
def test_compiled_pursuit_is_project_and_subtract(learner, rng):
    n = 120
    X, space = inputs(rng, n), FunctionSpace.of(n, rng.uniform(0.5, 2.0, n))
    V = rng.normal(size=(n, 3))
    one, other = (learner().bind(X, space, categorical=[3]).zero(3) for _ in range(2))
    for delta in (one, other):
        delta.add(Gradient(V, space))
    compiled = one.projections(25, rng, 0.0)
    plain = Target.projections(other, 25, rng, 0.0)
    assert len(compiled) == len(plain) == 25
    for a, b in zip(compiled, plain, strict=True):
        assert a.norm == b.norm
        np.testing.assert_allclose(a.edge, b.edge, rtol=1e-12)
        np.testing.assert_array_equal(a.terms[0][1].table, b.terms[0][1].table)
    np.testing.assert_array_equal(one.table, other.table)
    assert len(one.projections(50, rng, 0.98 * one.length())) < 50


def additive_functions(H, n):
    """An orthonormal basis, in L²(P), of all additive functions of the bins."""
    indicators = [H.sample.column(j) == b for j in range(4) for b in range(H.mapper.columns[j].n_bins + 1)]
    A = np.array(indicators, float).T * np.sqrt(H.sample.space.weight)[:, None]
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    return U[:, s > 1e-9] / np.sqrt(H.sample.space.weight)[:, None]


def projected(H, V):
    Q = additive_functions(H, len(V))
    return Q @ (Q.T @ (V * H.sample.space.weight[:, None]))


@pytest.mark.parametrize("cls", STUMPS, ids=ids)
def test_inner_products_are_those_inside_the_span(cls, rng):
    n = 60
    X, space = inputs(rng, n), FunctionSpace.of(n, rng.uniform(0.5, 2.0, n))
    H = cls(max_bins=6).bind(X, space, categorical=[3])
    V, W = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    delta = H.zero(2)
    delta.add(Gradient(V, space))
    PV, PW = projected(H, V), projected(H, W)
    assert delta.inner(Gradient(W, space)) == (
        pytest.approx(space.inner(PV, PW), rel=1e-9),
        pytest.approx(space.norm(PW) ** 2, rel=1e-9),
    )


def test_intrinsic_edge_of_a_residual(rng):
    """Measured in one round of ten: the projected length over the norm inside the span."""
    n = 60
    X, y, space = inputs(rng, n), rng.integers(0, 3, n), FunctionSpace.of(n)
    H = STUMPS[0](max_bins=6).bind(X, space, categorical=[3])
    objective = Softmax().bind(y, space)
    F, dense, delta = objective.scores(H.inputs, objective.start()), np.zeros((n, 3)), H.zero(3)
    measured = 0
    for _ in range(30):
        dense = dense + F.gradient().values
        delta.add(F.gradient())
        h = delta.project(rng)
        if not math.isnan(h.intrinsic_edge):
            measured += 1
            assert h.intrinsic_edge == pytest.approx(h.norm / space.norm(projected(H, dense)), rel=1e-6)
        values = np.zeros((n, 3))
        h.add_to(values, H.inputs)
        dense -= values
        delta.subtract(h)
    assert measured == 3


def test_span_of_too_many_bins(rng, monkeypatch):
    monkeypatch.setattr(_stumps, "MAX_SPAN_BINS", 5)
    n = 60
    X, space, V = inputs(rng, n), FunctionSpace.of(n), rng.normal(size=(n, 1))
    delta = STUMPS[-1]().bind(X, space).zero(1)
    delta.add(Gradient(V, space))
    with pytest.raises(
        ValueError, match=r"only computed up to 5 bins in all; the data have \d+: use a smaller `max_bins`"
    ):
        delta.inner(Gradient(V, space))


@pytest.mark.parametrize("cls", STUMPS, ids=ids)
def test_leaf_not_seen_in_training_copies_the_heaviest(cls):
    """No value was missing: at prediction a missing one goes with the larger side."""
    X, Y = np.arange(10.0)[:, None], np.where(np.arange(10) < 3, -1.0, 1.0)[:, None] * [[1.0, -1.0]]
    space = FunctionSpace.of(10)
    H = cls().bind(X, space)
    model = boost(
        HalfSquared().bind(Y, space), H, n_rounds=1, output="last", step="constant", start=np.zeros(2)
    ).model
    missing, light, heavy = model.predict(np.array([[np.nan], [0.0], [9.0]]))
    np.testing.assert_array_equal(missing, heavy)
    assert not np.array_equal(light, heavy)


def test_class_stumps_name_a_class(rng):
    n = 40
    X, y, space = inputs(rng, n), rng.integers(0, 4, n), FunctionSpace.of(n)
    cls = next(cls for cls in STUMPS if cls.kind == CLASS)
    result = boost(MulticlassHinge().bind(y, space), cls().bind(X, space), n_rounds=5, step="inverse_sqrt")
    for _, h in result.path.terms:
        np.testing.assert_allclose(np.sort(h.values, axis=1), np.tile([-1 / 3, -1 / 3, -1 / 3, 1.0], (3, 1)))


def test_class_stump_of_one_output(rng):
    cls = next(cls for cls in STUMPS if cls.kind == CLASS)
    H = cls().bind(inputs(rng, 20), FunctionSpace.of(20))
    with pytest.raises(ValueError, match="'class_stump' needs at least 2 outputs, got 1"):
        H.zero(1)


def test_sign_stumps_answer_plus_or_minus_one(rng):
    cls = next(cls for cls in STUMPS if cls.name == "sign_stump")
    n = 40
    X, space = inputs(rng, n), FunctionSpace.of(n)
    y = rng.normal(size=n)
    result = boost(HalfSquared().bind(y, space), cls().bind(X, space), n_rounds=5, step="inverse_sqrt")
    for _, h in result.path.terms:
        assert set(np.abs(h.values).ravel()) == {1.0}


@pytest.mark.parametrize("cls", STUMPS, ids=ids)
@pytest.mark.parametrize("max_bins", [-1, 0, 1, 256, math.nan, 2.5])
def test_max_bins_is_checked(cls, max_bins):
    with pytest.raises(ValueError, match=rf"`max_bins` must .*, got {max_bins}"):
        cls(max_bins=max_bins)


@pytest.mark.parametrize("cls", STUMPS, ids=ids)
def test_fewer_bins_than_values(cls, rng):
    n = 300
    X, Y, space = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), FunctionSpace.of(n)
    H = cls(max_bins=4).bind(X, space)
    assert [column.n_bins for column in H.mapper.columns] == [4, 4]
    model = boost(HalfSquared().bind(Y, space), H, n_rounds=40, output="last", step="inverse_sqrt").model
    assert len(np.unique(np.round(model.predict(X), 9), axis=0)) <= 16


def test_histogram_of_a_pair_gradient_is_corrected_exactly(rng):
    """Over many moves, with rows coming and going, the corrected histogram is the one counted anew."""
    n = 200
    X, y, space = inputs(rng, n), rng.integers(0, 3, n), FunctionSpace.of(n, rng.uniform(0.5, 2.0, n))
    sample = STUMPS[0]().bind(X, space, categorical=[3]).sample
    F, before = rng.normal(size=(n, 3)), None
    for _ in range(20):
        lookup = (
            rng.integers(0, 4, n).astype(np.uint8),
            rng.normal(size=(4, 3)) * [[0.0], [0.1], [0.3], [1.0]],
        )
        _, before = MulticlassHinge().advance(F, y, space, lookup, before, 1)
        corrected = sample.histogram(before)
        fresh = STUMPS[0]().bind(X, space, categorical=[3]).sample
        np.testing.assert_array_equal(corrected, fresh.histogram(before))
        dense = Gradient(before.values, space)
        np.testing.assert_allclose(corrected, fresh.histogram(dense), atol=1e-15)


def test_ridge_gradients_come_from_the_pair_table(rng, monkeypatch):
    """The same run as with dense gradients, to rounding, and no dense gradient is ever made."""
    n = 150
    X, y, space = inputs(rng, n), rng.integers(0, 3, n), FunctionSpace.of(n, rng.uniform(0.5, 2.0, n))
    objective = MulticlassHinge().bind(y, space).with_l2(0.05)
    fast = STUMPS[0]().bind(X, space, categorical=[3])
    slow = SlowStumps(X, space, fast.mapper, STUMPS[0].kind)
    for algorithm in ("residual", "dual_averaging"):
        runs = [
            boost(objective, H, algorithm=algorithm, step="inverse_sqrt", n_rounds=12, output="last")
            for H in (fast, slow)
        ]
        a, b = (run.history["objective"] for run in runs)
        np.testing.assert_allclose(a, b, rtol=1e-9)
    scores = objective.scores(fast.inputs, objective.start())
    delta = fast.zero(3)
    for _ in range(5):
        delta.add(scores.gradient())
        h = delta.project(rng)
        scores.move(Move(h * -0.3, 0.3))
    gradient = scores.gradient()
    np.testing.assert_allclose(
        fast.histogram(gradient), fast.sample.histogram(Gradient(gradient.values, space)), atol=1e-12
    )
