"""What every weak learner promises: exact projections, and a Δ that behaves like the vector it stands for."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import Direction, Move, merge
from convexboost.core.space import FunctionSpace
from convexboost.losses.half_squared import HalfSquared
from convexboost.registry import available
from tests.contracts.conftest import LEARNERS, SEVERAL_OUTPUTS, data, evaluate, learner, space_of

pytestmark = pytest.mark.one_in(3)  # the others: make test-slow

NAMED = list(available("convexboost.learners"))
#: Learners whose sums do not depend on the order of the rows, nor on how zeros are stored: all but those
#: that multiply matrices.
EXACT = [name for name in NAMED if name != "network"]
KINDS = ("plain", "sparse", "mixed")
CASES = [
    (name, k, kind)
    for name in LEARNERS
    for k in (1, 3)
    for kind in KINDS
    if k > 1 or name not in SEVERAL_OUTPUTS
]


@dataclass
class Bound:
    H: Any
    space: FunctionSpace
    n_outputs: int
    data: Any
    rng: np.random.Generator

    def random(self):
        return self.rng.normal(size=(self.space.n_samples, self.n_outputs)) + self.rng.normal(
            size=self.n_outputs
        )

    def target(self, V):
        delta = self.H.zero(self.n_outputs)
        delta.add(Gradient(V, self.space))
        return delta

    def project(self, delta):
        return delta.project(np.random.default_rng(0))

    def values(self, direction):
        return evaluate(direction, self.H.inputs, self.n_outputs)


@pytest.fixture(params=CASES, ids=str)
def bound(request):
    name, n_outputs, kind = request.param
    rng = np.random.default_rng(7)
    inputs = data(kind, rng)
    space = space_of(rng, inputs.X.shape[0], "weighted")
    return Bound(
        learner(name).bind(inputs.X, space, categorical=inputs.categorical), space, n_outputs, inputs, rng
    )


def check_projection(bound, V, h):
    """h is the projection of V on its own line, and says its own length."""
    H, space = bound.values(h), bound.space
    assert h.norm > 0.0
    assert space.norm(H) == pytest.approx(h.norm, rel=1e-9)
    assert space.inner(H, V - H) == pytest.approx(0.0, abs=1e-12 * space.norm(V) ** 2)
    if not math.isnan(h.edge):
        assert h.edge == pytest.approx(h.norm / space.norm(V), rel=1e-7)
    for weight, hypothesis in h.terms if len(h.terms) == 1 else ():
        unit = bound.values(Direction(((1.0, hypothesis),), 0.0))
        assert weight == pytest.approx(space.inner(V, unit) / space.norm(unit) ** 2, rel=1e-9)
    return V - H


def test_projection_and_what_it_leaves(bound):
    V = bound.random()
    delta = bound.target(V)
    first = bound.project(delta)
    assert not math.isnan(first.edge)  # one gradient: its norm is known
    for _ in range(6):
        h = bound.project(delta)
        V = check_projection(bound, V, h)
        delta.subtract(h)
        assert delta.dot(h) == pytest.approx(0.0, abs=1e-12)
        assert delta.dot(first) == pytest.approx(
            bound.space.inner(V, bound.values(first)), rel=1e-9, abs=1e-12
        )


def test_sums_and_multiples(bound):
    A, B = bound.random(), bound.random()
    delta = bound.target(A)
    delta.scale(0.5)
    delta.add(Gradient(B, bound.space), -2.0)
    check_projection(bound, 0.5 * A - 2.0 * B, bound.project(delta))
    delta.scale(0.0)
    delta.add(Gradient(A, bound.space))
    check_projection(bound, A, bound.project(delta))


def test_gradient_is_left_alone(bound):
    V = bound.random()
    kept = V.copy()
    delta = bound.target(V)
    delta.subtract(bound.project(delta))
    delta.scale(3.0)
    np.testing.assert_array_equal(V, kept)


def test_subtract_any_direction(bound):
    """Not only the last projection: two of them at once, with any weights."""
    V, W = bound.random(), bound.random()
    a, b = bound.project(bound.target(V)), bound.project(bound.target(W))
    both = Direction((a * 0.3).terms + (b * -2.0).terms, math.nan)
    delta = bound.target(V)
    delta.subtract(both)
    rest = V - 0.3 * bound.values(a) + 2.0 * bound.values(b)
    for h in (a, b, both):
        assert delta.dot(h) == pytest.approx(bound.space.inner(rest, bound.values(h)), rel=1e-9, abs=1e-12)
    check_projection(bound, rest, bound.project(delta))


def test_subtract_half_a_projection(bound):
    """What is known of ‖Δ‖ stays true, or is forgotten."""
    V = bound.random()
    delta = bound.target(V)
    h = bound.project(delta)
    delta.subtract(h * 0.5)
    check_projection(bound, V - 0.5 * bound.values(h), bound.project(delta))


def test_copy_and_state(bound):
    V = bound.random()
    delta = bound.target(V)
    twin, state = delta.copy(), pickle.dumps(delta.state())
    h = bound.project(delta)
    delta.subtract(h)
    delta.add(Gradient(bound.random(), bound.space))
    restored = bound.H.zero(bound.n_outputs)
    restored.restore(pickle.loads(state))
    for other in (twin, restored):
        again = bound.project(other)
        assert (again.norm, again.edge) == (h.norm, h.edge)
        np.testing.assert_array_equal(bound.values(again), bound.values(h))
        other.subtract(again)
        check_projection(bound, V - bound.values(h), bound.project(other))


def test_zero(bound):
    nothing = np.zeros((bound.space.n_samples, bound.n_outputs))
    for delta in (bound.H.zero(bound.n_outputs), bound.target(nothing)):
        h = bound.project(delta)
        assert (h.norm, h.n_weak_learners) == (0.0, 0)
        delta.subtract(h)
        assert delta.pursue(3, bound.rng).n_weak_learners == 0


def test_inner_is_an_inner_product_inside_the_span(bound):
    V, W = bound.random(), bound.random()
    delta = bound.target(V)
    h = bound.project(delta)
    _, squared = delta.inner(Gradient(V, bound.space))
    assert h.norm**2 * (1 - 1e-9) <= squared <= bound.space.norm(V) ** 2 * (1 + 1e-9)
    own, _ = delta.inner(Gradient(V, bound.space))
    assert own == pytest.approx(squared, rel=1e-9)
    cross, w = delta.inner(Gradient(W, bound.space))
    assert cross**2 <= squared * w * (1 + 1e-9)
    assert delta.inner(Gradient(-3 * W, bound.space)) == (pytest.approx(-3 * cross), pytest.approx(9 * w))
    H = bound.values(h)  # inside the span: nothing is lost
    assert delta.inner(Gradient(H, bound.space)) == (pytest.approx(h.norm**2), pytest.approx(h.norm**2))


@pytest.mark.parametrize("count", [1, 2, 6])
def test_pursuit(bound, count):
    V = bound.random()
    h = bound.target(V).pursue(count, np.random.default_rng(0))
    assert 1 <= h.n_weak_learners <= count
    check_projection(bound, V, h)
    first = bound.project(bound.target(V))
    assert h.norm >= first.norm * (1 - 1e-9)
    assert h.norm <= bound.space.norm(V) * (1 + 1e-9)
    if count == 1:
        np.testing.assert_allclose(bound.values(h), bound.values(first), rtol=1e-9)


def test_pursuit_stops_at_the_tolerance(bound):
    """After at least one projection, as soon as what is left is no longer than that."""
    V, rng = bound.random(), np.random.default_rng(0)
    delta = bound.target(V)
    lengths = [delta.length()]
    for _ in range(8):
        delta.subtract(delta.project(rng))
        lengths.append(delta.length())
    tolerance = lengths[3] * (1 + 1e-9)
    expected = next(i for i in range(1, 9) if lengths[i] <= tolerance)
    left = bound.target(V)
    assert left.pursue(8, np.random.default_rng(0), tolerance).n_weak_learners == expected
    assert left.length() <= tolerance
    assert bound.target(V).pursue(8, np.random.default_rng(0), 2 * lengths[0]).n_weak_learners == 1


def test_length_is_that_of_the_part_inside_the_span(bound):
    """Never shorter, so that a small one is a promise: every projection is at most as long."""
    V = bound.random()
    delta = bound.target(V)
    length = delta.length()
    assert bound.project(delta).norm <= length <= bound.space.norm(V) * (1 + 1e-6)
    _, squared = delta.inner(Gradient(V, bound.space))
    assert length == pytest.approx(math.sqrt(squared), rel=1e-6)
    assert bound.H.zero(bound.n_outputs).length() == 0.0


def test_plain_pursuit_is_the_sum_of_the_projections(bound):
    V, rng, total = bound.random(), np.random.default_rng(0), 0.0
    delta = bound.target(V)
    for _ in range(4):
        h = delta.project(rng)
        total = total + bound.values(h)
        delta.subtract(h)
    h = bound.target(V).pursue(4, np.random.default_rng(0), rescale=False)
    np.testing.assert_allclose(bound.values(h), total, rtol=1e-6, atol=1e-9)
    assert h.norm == pytest.approx(bound.space.norm(total), rel=1e-6)


def test_same_seed_same_projection(bound):
    V = bound.random()
    a, b = bound.project(bound.target(V)), bound.project(bound.target(V))
    assert a.norm == b.norm
    np.testing.assert_array_equal(bound.values(a), bound.values(b))


def test_hypotheses_replay_on_the_same_inputs(bound):
    """Evaluated through the mapper, after pickling, at the training rows and at others."""
    h = bound.target(bound.random()).pursue(4, np.random.default_rng(0))
    mapper, again = pickle.loads(pickle.dumps((bound.H.mapper, h)))
    n_outputs = bound.n_outputs
    np.testing.assert_array_equal(evaluate(again, mapper.prepare(bound.data.X), n_outputs), bound.values(h))
    new = evaluate(h, bound.H.mapper.prepare(bound.data.new), n_outputs)
    assert np.isfinite(new).all()
    np.testing.assert_array_equal(evaluate(again, mapper.prepare(bound.data.new), n_outputs), new)
    one = slice(3, 4)
    np.testing.assert_array_equal(evaluate(again, mapper.prepare(bound.data.new[one]), n_outputs), new[one])


def test_merged_terms_have_the_same_sum(bound):
    h = bound.target(bound.random()).pursue(6, np.random.default_rng(0))
    merged = Direction(tuple(merge(h.terms)), math.nan)
    assert len(merged.terms) <= len(h.terms)
    separate = sum(bound.values(Direction((term,), math.nan)) for term in h.terms)
    np.testing.assert_allclose(bound.values(merged), separate, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(bound.values(h), separate, rtol=1e-9, atol=1e-12)


# --- whole models ------------------------------------------------------------------------------------------


def model(name, X, y, space, categorical=None, n_rounds=8, **options):
    """Eight rounds of Algorithm 3 from 0, with steps that depend on nothing but the round."""
    H = learner(name).bind(X, space, categorical=categorical, **options)
    y = y.reshape(len(y), -1)
    start = np.zeros(y.shape[1])
    result = boost(
        HalfSquared().bind(y, space),
        H,
        step="inverse_sqrt:0.5",
        n_rounds=n_rounds,
        output="last",
        start=start,
        random_state=0,
    )
    return result.model


def problem(kind, seed=0, n=40):
    rng = np.random.default_rng(seed)
    inputs = data(kind, rng, n)
    return inputs, rng.normal(size=(n, 2)), rng.uniform(0.2, 2.0, n), rng


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EXACT)
def test_order_of_rows_does_not_change_a_bit(name, kind):
    inputs, Y, weight, rng = problem(kind)
    order = rng.permutation(len(Y))
    a = model(name, inputs.X, Y, FunctionSpace.of(40, weight), inputs.categorical)
    # The same numbers, permuted: normalising again would round differently.
    shuffled = FunctionSpace(FunctionSpace.of(40, weight).weight[order], weight.sum())
    b = model(name, inputs.X[order], Y[order], shuffled, inputs.categorical)
    np.testing.assert_array_equal(a.predict(inputs.new), b.predict(inputs.new))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMED)
def test_weight_two_is_the_row_twice(name, kind):
    inputs, Y, _, rng = problem(kind)
    counts = rng.integers(1, 4, 40)
    twice = np.repeat(np.arange(40), counts)
    a = model(name, inputs.X, Y, FunctionSpace.of(40, counts), inputs.categorical)
    b = model(name, inputs.X[twice], Y[twice], FunctionSpace.of(len(twice)), inputs.categorical)
    np.testing.assert_allclose(a.predict(inputs.new), b.predict(inputs.new), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("max_bins", [3, 255])
def test_sparse_and_dense_inputs_give_the_same_bits(name, max_bins):
    rng = np.random.default_rng(5)
    X = np.where(rng.random((60, 6)) < 0.7, 0.0, np.round(rng.normal(size=(60, 6)), 1))
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 3] = 0.0
    X[:, 4] = np.abs(X[:, 4]) + 1.0  # no zero at all
    X[:, 5] = np.abs(np.nan_to_num(X[:, 5])) * 10 // 3  # categories
    space, Y = FunctionSpace.of(60, rng.uniform(0.5, 2, 60)), rng.normal(size=(60, 2))
    explicit = sp.csc_array(np.where(X == 0.0, 1e9, X))
    explicit.data[explicit.data == 1e9] = rng.choice([0.0, -0.0], (explicit.data == 1e9).sum())
    bound = {
        "dense": X,
        "csc": sp.csc_array(X),
        "csr": sp.csr_array(X),
        "coo": sp.coo_array(X),
        "explicit": explicit,
    }
    kind = type(learner(name))(max_bins=max_bins)
    predictions = []
    for form in bound.values():
        H = kind.bind(form, space, categorical=[5])
        result = boost(
            HalfSquared().bind(Y, space),
            H,
            n_rounds=12,
            output="last",
            start=np.zeros(2),
            step="inverse_sqrt",
            random_state=0,
        )
        predictions += [
            result.model.predict(X),
            result.model.predict(sp.csr_array(X)),
            result.model.predict(explicit),
        ]
    for other in predictions[1:]:
        np.testing.assert_array_equal(predictions[0], other)


@pytest.mark.parametrize("name", NAMED)
def test_one_row(name):
    model_ = model(name, np.array([[1.0, np.nan]]), np.array([[3.0, -1.0]]), FunctionSpace.of(1), n_rounds=60)
    assert np.isfinite(model_.predict(np.array([[1.0, np.nan], [0.0, 2.0], [np.nan, np.nan]]))).all()
    if name == "stump":
        np.testing.assert_allclose(model_.predict(np.array([[1.0, np.nan]])), [[3.0, -1.0]], atol=1e-2)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("categorical", [None, [0, 1]])
def test_columns_that_say_nothing(name, categorical):
    """A constant and an empty column: only constants can be learned."""
    X, Y = (
        np.column_stack([np.full(10, 2.0), np.full(10, np.nan)]),
        np.random.default_rng(0).normal(size=(10, 2)),
    )
    predictions = model(name, X, Y, FunctionSpace.of(10), categorical).predict(
        np.array([[2.0, np.nan], [5.0, 1.0]])
    )
    np.testing.assert_array_equal(predictions[0], predictions[1])


@pytest.mark.parametrize("name", NAMED)
def test_only_empty_columns(name):
    model_ = model(
        name, np.full((10, 2), np.nan), np.random.default_rng(0).normal(size=(10, 2)), FunctionSpace.of(10)
    )
    assert np.isfinite(model_.predict(np.ones((3, 2)))).all()


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("kind", ["plain", "mixed"])
def test_number_of_threads_does_not_change_a_bit(name, kind, monkeypatch):
    monkeypatch.setattr("convexboost.kernels.parallel.MIN_OPERATIONS", 1)
    inputs, Y, weight, _ = problem(kind, n=200)
    models = [
        model(name, inputs.X, Y, FunctionSpace.of(200, weight), inputs.categorical, n_rounds=12, n_threads=n)
        for n in (1, 2, 4)
    ]
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].predict(inputs.new), other.predict(inputs.new))
        np.testing.assert_array_equal(models[0].predict(inputs.X), other.predict(inputs.X))


@pytest.mark.parametrize("name", NAMED)
def test_new_scores_do_not_disturb_the_inputs(name):
    """Predicting and moving leave X as it is."""
    inputs, Y, _, rng = problem("plain")
    kept = inputs.X.copy()
    space = FunctionSpace.of(40)
    H = learner(name).bind(inputs.X, space)
    delta = H.zero(2)
    delta.add(Gradient(Y, space))
    scores = HalfSquared().bind(Y, space).scores(H.inputs, np.zeros(2))
    scores.move(Move(delta.project(rng), 1.0))
    np.testing.assert_array_equal(inputs.X, kept)


# --- which columns are categorical -------------------------------------------------------------------------


def first_projection(name, X, categorical):
    rng = np.random.default_rng(3)
    space = FunctionSpace.of(len(X))
    H = learner(name).bind(X, space, categorical=categorical)
    delta = H.zero(2)
    delta.add(Gradient(rng.normal(size=(len(X), 2)), space))
    return evaluate(delta.project(np.random.default_rng(0)), H.inputs, 2)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    "none", [[], (), np.array([]), np.array([], int), np.zeros(4, bool), [False] * 4], ids=repr
)
def test_no_categorical_columns_however_said(name, none):
    X = data("plain", np.random.default_rng(0)).X
    np.testing.assert_array_equal(first_projection(name, X, none), first_projection(name, X, None))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    "same",
    [(1, 3), np.array([1, 3]), np.array([3, 1], np.uint8), [False, True, False, True], [1, 3, 3]],
    ids=repr,
)
def test_categorical_columns_as_numbers_or_as_a_mask(name, same):
    X = data("plain", np.random.default_rng(0)).X
    X[:, [1, 3]] = np.random.default_rng(1).integers(0, 5, (len(X), 2))
    np.testing.assert_array_equal(first_projection(name, X, same), first_projection(name, X, [1, 3]))


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("wrong", [[4], [-1], [1.5], ["a"], [True], [[0, 1]], 2], ids=repr)
def test_categorical_columns_that_are_not_there(name, wrong):
    X = data("plain", np.random.default_rng(0)).X
    with pytest.raises(ValueError, match=r"`categorical` must .*, got "):
        learner(name).bind(X, FunctionSpace.of(len(X)), categorical=wrong)
