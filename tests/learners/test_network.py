"""Small neural networks: learners.network."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import merge
from convexboost.core.space import FunctionSpace
from convexboost.learners import network
from convexboost.learners.network import Blocks, Fit, Network, in_blocks, out_of_blocks

N = 60


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture(name="X")
def inputs(rng):
    return rng.normal(size=(N, 3)) * [1.0, 20.0, 0.1] + [0.0, 5.0, -3.0]


@pytest.fixture
def space(rng):
    return FunctionSpace.of(N, rng.uniform(0.2, 3.0, N))


def project(H, V, seed=0):
    delta = H.zero(V.shape[1])
    delta.add(Gradient(V, H.space))
    h = delta.project(np.random.default_rng(seed))
    values = np.zeros_like(V)
    h.add_to(values, H.inputs)
    return h, values


def hidden_layer(Z, h):
    """The obvious form: the units and a constant."""
    return np.column_stack([np.tanh(Z @ h.inward), np.ones(len(Z))])


# --- projections -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("options", [{}, {"hidden": 1}, {"n_steps": 0}, {"max_rows": 20}], ids=str)
def test_output_layer_is_the_least_squares_solution(options, n_outputs, X, space, rng):
    """Over all rows, also where the hidden layer saw only some: coefficient 1, and the edge is an R²."""
    V = rng.normal(size=(N, n_outputs)) + X[:, :1]
    H = Network(**options).bind(X, space)
    h, values = project(H, V)
    L, root = hidden_layer(H.mapper.prepare(X).X, h.terms[0][1]), np.sqrt(space.weight)[:, None]
    best = L @ np.linalg.lstsq(root * L, root * V, rcond=None)[0]
    np.testing.assert_allclose(values, best, atol=1e-5)
    assert h.terms[0][0] == pytest.approx(1.0, rel=1e-7)
    assert space.inner(values, V - values) == pytest.approx(0.0, abs=1e-12)
    assert h.edge**2 == pytest.approx(1 - space.norm(V - values) ** 2 / space.norm(V) ** 2, rel=1e-9)


def fit(rng, n_outputs=2, n_inputs=4, hidden=3):
    Z = np.column_stack([rng.normal(size=(N, n_inputs - 1)), np.ones(N)])
    weight = rng.uniform(0.2, 3.0, N)
    values = rng.normal(size=(N, n_outputs))
    parts = (Z, values, (weight / weight.sum())[:, None])
    return Fit(rng.normal(size=(n_inputs, hidden)), Blocks(*map(in_blocks, parts)))


def rows(blocks):
    return out_of_blocks(blocks, N)


def dense_step(found, damping):
    """Kaufman's Gauss-Newton step with the whole Jacobian, which has a row for each row and output."""
    Z, values, weight = map(rows, found.rows)
    root, L, out = np.sqrt(weight), rows(found.layer), found.output[:-1]
    Q = np.linalg.qr(root * L)[0]
    columns = []
    for i in range(Z.shape[1]):
        for j in range(len(out)):
            u = root[:, 0] * (1 - L[:, j] ** 2) * Z[:, i]
            columns.append(np.outer(u - Q @ (Q.T @ u), out[j]).ravel())
    J = np.column_stack(columns)
    rest = (root * (values - L @ found.output)).ravel()
    size = np.sum(out**2, axis=1) * np.sum(weight * (1 - L[:, :-1] ** 2) ** 2, axis=0)
    return np.linalg.solve(J.T @ J + damping * np.diag(np.tile(size, Z.shape[1])), J.T @ rest).reshape(
        Z.shape[1], -1
    )


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("damping", [0.01, 1.0])
def test_step_is_the_gauss_newton_step(damping, n_outputs, rng, monkeypatch):
    monkeypatch.setattr(network, "N_PRODUCTS", 60)
    monkeypatch.setattr(network, "ENOUGH", 0.0)
    monkeypatch.setattr(network, "RIDGE", 0.0)
    found = fit(rng, n_outputs)
    np.testing.assert_allclose(found.step(damping), dense_step(found, damping), rtol=1e-6, atol=1e-9)


def test_slope_along_a_step(rng):
    """With the output layer always at its best, d error = −2 ⟨right-hand side, step⟩ (numerically)."""
    found, tiny = fit(rng), 1e-5
    step = found.step(1e9) * 1e9  # only the diagonal is left: right-hand side / size
    ahead, behind = (Fit(found.inward + s * step, found.rows).error for s in (tiny, -tiny))
    out = found.output[:-1]
    slope = 1 - rows(found.layer)[:, :-1] ** 2
    size = np.sum(out**2, axis=1) * np.sum(rows(found.rows.weight) * slope**2, axis=0)
    assert (ahead - behind) / (2 * tiny) == pytest.approx(-2 * np.sum(size * step**2), rel=1e-5)


def test_steps_never_lengthen_what_is_left(X, space, rng):
    V = rng.normal(size=(N, 2))
    edges = [project(Network(n_steps=n).bind(X, space), V)[0].edge for n in range(0, 20, 2)]
    assert np.all(np.diff(edges) > -1e-9)
    assert edges[-1] > 1.2 * edges[0]


def test_finds_a_network(rng):
    X = rng.normal(size=(2000, 5))
    V = np.tanh(X @ rng.normal(size=(5, 2)) + [0.5, -1.0]) @ rng.normal(size=(2, 3))
    h, _ = project(Network().bind(X, FunctionSpace.of(2000)), V)
    assert h.edge**2 > 0.99


def test_sees_what_no_linear_function_does(rng):
    X = rng.normal(size=(2000, 4))
    V = X[:, :1] * X[:, 1:2]
    assert LinearRegression().fit(X, V).score(X, V) < 0.05
    edges = [project(Network().bind(X, FunctionSpace.of(2000)), V, seed)[0].edge for seed in range(5)]
    assert np.median(edges) ** 2 > 0.5


# --- rows --------------------------------------------------------------------------------------------------


def test_rows_are_drawn_by_weight_and_by_length(rng):
    """Half of the chances each; the weights make up for it, so that the mean of any function is right."""
    weight, values = rng.uniform(0.1, 2.0, 500), rng.normal(size=(500, 2)) * (rng.random((500, 1)) < 0.1)
    H = Network(max_rows=100).bind(np.arange(500.0)[:, None], FunctionSpace.of(500, weight))
    mass, length = H.space.masses(H.inputs.number), np.linalg.norm(values, axis=1)
    counts, means = np.zeros(500), np.zeros(2)
    for _ in range(2000):
        drawn = H._draw(values, rng)
        assert drawn.weight.sum() == pytest.approx(1.0)
        Z, V, W = (out_of_blocks(part, 100) for part in drawn)
        which = np.searchsorted(np.sort(H.inputs.X[:, 0]), Z[:, 0])
        which = np.argsort(H.inputs.X[:, 0])[which]
        np.testing.assert_array_equal(V, values[which])
        counts += np.bincount(which, minlength=500)
        means += np.sum(W * V**2, axis=0) / 2000
    chances = 0.5 * mass + 0.5 * mass * length / np.sum(mass * length)
    np.testing.assert_allclose(counts / 2000, 100 * chances, atol=0.06)
    np.testing.assert_allclose(means, mass @ values**2, rtol=0.05)


def test_a_target_that_is_zero_in_most_rows(rng):
    """Few of the rows that are drawn by weight alone would see it."""
    X = rng.normal(size=(20_000, 3))
    V = np.where(rng.random((20_000, 1)) < 0.02, np.tanh(2.0 * X[:, :1]), 0.0)
    H, edges = Network(max_rows=500).bind(X, FunctionSpace.of(20_000)), {}
    for share in (0.0, 0.5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(network, "BY_LENGTH", share)
            edges[share] = np.mean([project(H, V, seed)[0].edge for seed in range(8)])
    assert edges[0.5] > 1.1 * edges[0.0]


@pytest.mark.parametrize("size", [1, 7, 256, 1000])
def test_tanh(size, rng):
    x = np.concatenate([rng.normal(size=size) * 5.0, [0.0, 1e-300, 30.0, -1e308]])
    A = x.copy()
    network._tanh(A)
    np.testing.assert_allclose(A, np.tanh(x), rtol=0, atol=4e-16)
    alone = x[:1].copy()
    network._tanh(alone)
    assert alone[0] == A[0]  # whatever stands beside it


def test_few_rows_stand_for_many(rng):
    X = rng.normal(size=(20_000, 4))
    V = np.sin(X[:, :1] + X[:, 1:2]) + 0.3 * rng.normal(size=(20_000, 1))
    space = FunctionSpace.of(20_000)
    some, all_ = (
        np.mean([project(Network(max_rows=m).bind(X, space), V, s)[0].edge for s in range(3)])
        for m in (2000, 20_000)
    )
    assert some > 0.95 * all_


def test_blocks_do_not_matter(X, space, rng, monkeypatch):
    V, found = rng.normal(size=(N, 2)), []
    for size in (1, 7, 60, 256):
        monkeypatch.setattr(network, "BLOCK", size)
        found.append(project(Network().bind(X, space), V)[1])
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_rows", [1, 2, 4])
def test_fewer_rows_than_units(n_rows, rng):
    X, V = rng.normal(size=(n_rows, 3)), rng.normal(size=(n_rows, 2))
    h, _ = project(Network(hidden=8).bind(X, FunctionSpace.of(n_rows)), V)
    assert h.edge > 0.99


@pytest.mark.parametrize("n_inputs", [5, 300])
def test_threads_change_no_bit(n_inputs, rng):
    X = rng.normal(size=(3000, n_inputs))
    V = X[:, :1] * X[:, 1:2] + rng.normal(size=(3000, 4))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(project(Network().bind(X, FunctionSpace.of(3000)), V)[1])
    np.testing.assert_array_equal(*found)


# --- inputs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e6, 1e-6, -1.0, 1e200, 1e-200])
def test_units_of_inputs(factor, X, space, rng):
    V = rng.normal(size=(N, 2)) + X[:, :1]
    first = project(Network().bind(X, space), V)[0]
    for column in ([0], [0, 1, 2]):
        scaled = X.copy()
        scaled[:, column] *= factor
        h = project(Network().bind(scaled, space), V)[0]
        if factor > 0:
            assert h.edge == pytest.approx(first.edge, rel=1e-9)
        else:
            assert 0.0 < h.edge <= 1.0  # another start


@pytest.mark.parametrize("factor", [1e6, 1e-6, -3.0, 1e100, 1e-100])
def test_units_of_targets(factor, X, space, rng):
    V = rng.normal(size=(N, 2)) + X[:, :1]
    (a, values), (b, scaled) = (project(Network().bind(X, space), W) for W in (V, factor * V))
    assert b.edge == pytest.approx(a.edge, rel=1e-9)
    np.testing.assert_allclose(scaled, factor * values, rtol=1e-7, atol=1e-9 * abs(factor))


def test_columns_are_standardised_with_the_weights(X, space):
    H = Network().bind(X, space)
    Z = H.mapper.prepare(X).X
    np.testing.assert_allclose(space.weight @ Z, [0, 0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(space.weight @ Z**2, 1.0)
    new = H.mapper.prepare(X[:5] + 1.0).X
    mean = space.weight @ X
    deviation = np.sqrt(space.weight @ (X - mean) ** 2)
    np.testing.assert_allclose(new[:, :3], (X[:5] + 1.0 - mean) / deviation)


def test_missing_values_are_the_mean_and_an_indicator(X, space, rng):
    missing = rng.random(N) < 0.3
    X[missing, 1] = np.nan
    H = Network().bind(X, space)
    Z = H.mapper.prepare(X).X
    assert Z.shape == (N, 5)
    np.testing.assert_array_equal(Z[missing, 1], 0.0)
    np.testing.assert_array_equal(Z[:, 2], missing)
    # A column that misses nothing in training has no indicator.
    np.testing.assert_array_equal(H.mapper.prepare(np.full((1, 3), np.nan)).X, [[0, 0, 1, 0, 1]])
    # Whether a value is missing can be learned.
    assert project(H, np.where(missing, 1.0, -1.0)[:, None])[0].edge > 0.99


def test_categories_are_indicators(space, rng):
    X = np.column_stack([rng.choice([3.0, 8.0, np.nan], N), rng.normal(size=N)])
    X[:3, 0] = [3.0, 8.0, np.nan]
    H = Network().bind(X, space, categorical=[0])
    np.testing.assert_array_equal(H.mapper.prepare(X).X[:3, :3], np.eye(3))
    unknown = H.mapper.prepare(np.array([[5.0, 0.0]])).X
    np.testing.assert_array_equal(unknown[0, :3], 0.0)


def test_too_many_categories():
    X = np.arange(300.0)[:, None]
    with pytest.raises(
        ValueError, match=r"`learner` 'network' takes at most 255 categories .* 300 in column 0"
    ):
        Network().bind(X, FunctionSpace.of(300), categorical=[0])


def test_sparse_inputs_are_made_dense(space, rng, monkeypatch):
    X = np.where(rng.random((N, 4)) < 0.7, 0.0, rng.normal(size=(N, 4)))
    V = rng.normal(size=(N, 1))
    dense = project(Network().bind(X, space), V)[1]
    for form in (sp.csr_array, sp.csc_array, sp.coo_matrix):
        np.testing.assert_array_equal(project(Network().bind(form(X), space), V)[1], dense)
    monkeypatch.setattr(network, "MAX_ENTRIES", 100)
    with pytest.raises(ValueError, match=r"`learner` 'network' makes a sparse `X` dense, .* shape \(60, 4\)"):
        Network().bind(sp.csr_array(X), space)


def test_far_away_every_unit_is_saturated(X, space, rng):
    H = Network().bind(X, space)
    h, values = project(H, rng.normal(size=(N, 1)))
    far = np.zeros((4, 1))
    h.add_to(far, H.mapper.prepare(np.array([[1e308] * 3, [-1e308] * 3, [1e308, -1e308, 0], [0, 0, 1e300]])))
    assert np.isfinite(far).all()
    outward = h.terms[0][0] * h.terms[0][1].outward
    assert np.abs(far).max() <= np.abs(outward).sum() + np.abs(values).max() * 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "`hidden` must be a whole number of at least 1, got 0"),
        ({"hidden": 2.5}, "`hidden` must be a whole number of at least 1, got 2.5"),
        ({"hidden": True}, "`hidden` must be a whole number of at least 1, got True"),
        ({"n_steps": -1}, "`n_steps` must be a whole number of at least 0, got -1"),
        ({"max_rows": 0}, "`max_rows` must be a whole number of at least 1, got 0"),
    ],
    ids=str,
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Network(**options)


# --- models ------------------------------------------------------------------------------------------------


def test_networks_merge_into_one(X, space, rng):
    H = Network().bind(X, space)
    terms = [term for seed in range(4) for term in project(H, rng.normal(size=(N, 2)), seed)[0].terms]
    merged = merge(terms)
    assert len(merged) == 1
    assert merged[0][1].inward.shape == (4, 20)
    separate = sum(weight * h.evaluate(H.inputs.X) for weight, h in terms)
    np.testing.assert_allclose(
        merged[0][0] * merged[0][1].evaluate(H.inputs.X), separate, rtol=1e-9, atol=1e-12
    )


def test_evaluation_in_parts(X, space, rng, monkeypatch):
    H = Network().bind(X, space)
    h = project(H, rng.normal(size=(N, 2)))[0].terms[0][1]
    whole = h.evaluate(H.inputs.X)
    monkeypatch.setattr(network, "MAX_BUFFER", 37)
    np.testing.assert_array_equal(h.evaluate(H.inputs.X), whole)


def test_hypotheses_are_small(rng):
    X = rng.normal(size=(5000, 10))
    h, _ = project(Network().bind(X, FunctionSpace.of(5000)), rng.normal(size=(5000, 1)))
    assert len(pickle.dumps(h)) < 2000


@pytest.mark.one_in(2)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_regression(algorithm, rng):
    X = rng.normal(size=(300, 4)) * [1.0, 100.0, 0.01, 1.0]
    y = 50.0 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 3]
    model = ConvexBoostRegressor("half_squared", "network", algorithm, n_rounds=15, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last, model.predict(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("loss", ["softmax", "multiclass_hinge"])
def test_classification(loss, algorithm, rng):
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    model = ConvexBoostClassifier(loss, "network:6", algorithm, n_rounds=15, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85


def test_seed_decides(rng):
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    y += 3.0 * X[:, 0]
    a, b, c = (
        ConvexBoostRegressor(learner="network", n_rounds=5, random_state=seed).fit(X, y).predict(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


def test_certificate_after_the_fact(rng):
    """The span is not known, so the bound is about any function at all: weak, but never wrong."""
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    model = ConvexBoostRegressor("half_squared", "network", n_rounds=10, l2=0.1, random_state=0).fit(X, y)
    assert model.certify(X, y).gap() >= 0.0
