"""Any scikit-learn estimator as weak learner: learners.regressor and learners.classifier."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.space import FunctionSpace
from convexboost.learners.classifier import Classification, Classifier
from convexboost.learners.regressor import Regressor
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.softmax import Softmax

N = 50
REGRESSORS = [
    DecisionTreeRegressor(max_depth=2),
    ExtraTreeRegressor(max_depth=2),
    Ridge(alpha=3.0),
    LinearRegression(),
    GradientBoostingRegressor(n_estimators=2),  # one output only: wrapped
]
CLASSIFIERS = [DecisionTreeClassifier(max_depth=2), LogisticRegression()]


def name(estimator):
    return type(estimator).__name__


@pytest.fixture
def rng():
    return np.random.default_rng(2)


@pytest.fixture(name="X")
def inputs(rng):
    return rng.normal(size=(N, 3))


@pytest.fixture
def space(rng):
    return FunctionSpace.of(N, rng.uniform(0.5, 2.0, N))


def project(H, V, space):
    delta = H.zero(V.shape[1])
    delta.add(Gradient(V, space))
    h = delta.project(np.random.default_rng(0))
    values = np.zeros_like(V)
    h.add_to(values, H.inputs)
    return h, values


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("estimator", REGRESSORS, ids=name)
def test_regressors_project(estimator, n_outputs, X, space, rng):
    V = rng.normal(size=(N, n_outputs)) + X[:, :1]
    h, values = project(Regressor(estimator).bind(X, space), V, space)
    assert 0.0 < h.edge <= 1.0
    assert space.inner(values, V - values) == pytest.approx(0.0, abs=1e-12)
    assert space.norm(values) == pytest.approx(h.norm)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_least_squares_is_the_whole_projection(n_outputs, X, space, rng):
    """A linear fit with intercept, weighted as the space is: coefficient 1."""
    V = rng.normal(size=(N, n_outputs))
    h, values = project(Regressor(LinearRegression()).bind(X, space), V, space)
    assert h.terms[0][0] == pytest.approx(1.0)
    A = np.column_stack([np.ones(N), X])
    root = np.sqrt(space.weight)[:, None]
    solution = np.linalg.lstsq(A * root, V * root, rcond=None)[0]
    np.testing.assert_allclose(values, A @ solution, rtol=1e-9, atol=1e-12)


def test_shrunken_fit_is_stretched(X, space, rng):
    """The coefficient undoes what a ridge takes away along the line of h."""
    V = X[:, :1] + 0.1 * rng.normal(size=(N, 1))
    h, values = project(Regressor(Ridge(alpha=50.0)).bind(X, space), V, space)
    assert h.terms[0][0] > 1.2
    assert space.inner(values, V - values) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)
def test_classifiers_project(estimator, n_outputs, X, space, rng):
    V = rng.normal(size=(N, n_outputs)) + X @ rng.normal(size=(3, n_outputs))
    h, values = project(Classifier(estimator).bind(X, space), V, space)
    assert isinstance(h.terms[0][1], Classification)
    assert 0.0 < h.edge <= 1.0
    assert space.inner(values, V - values) == pytest.approx(0.0, abs=1e-12)
    unit = values / h.terms[0][0]
    if n_outputs == 1:
        assert set(np.round(unit.ravel(), 12)) == {-1.0, 1.0}
    else:
        np.testing.assert_allclose(np.sort(unit, axis=1), np.tile([-0.5, -0.5, 1.0], (N, 1)), rtol=1e-9)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_classifier_of_equal_labels_is_constant(n_outputs, X, space):
    V = np.tile(-np.arange(1.0, n_outputs + 1), (N, 1))
    h, values = project(Classifier(DecisionTreeClassifier()).bind(X, space), V, space)
    assert isinstance(h.terms[0][1].estimator, DummyClassifier)
    np.testing.assert_array_equal(values, np.tile(values[0], (N, 1)))
    assert h.norm == pytest.approx(space.norm(values)) != 0.0


def test_classifier_weights_rows_by_what_is_at_stake(X):
    """One row with a huge Δ decides its leaf."""
    values = np.where(np.arange(N) == 0, 100.0, -1.0)[:, None]
    space, inputs = FunctionSpace.of(N), np.zeros((N, 1))
    inputs[:, 0] = np.arange(N) >= 10
    _, found = project(Classifier(DecisionTreeClassifier(max_depth=1)).bind(inputs, space), values, space)
    assert (found[:10] > 0).all()
    assert (found[10:] < 0).all()


@pytest.mark.parametrize(
    ("learner", "bad"),
    [
        (Regressor(KNeighborsRegressor(3)), "KNeighborsRegressor"),
        (Regressor(make_pipeline(StandardScaler(), Ridge())), "Pipeline"),
    ],
    ids=["knn", "pipeline"],
)
def test_regressor_without_sample_weight(learner, bad, X, space, rng):
    V = rng.normal(size=(N, 1))
    uniform = FunctionSpace.of(N)
    _, values = project(learner.bind(X, uniform), V, uniform)
    assert uniform.inner(values, V - values) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(
        ValueError, match=rf"`learner` {bad} takes no `sample_weight` in fit, but the rows are weighted"
    ):
        project(learner.bind(X, space), V, space)


def test_regressor_without_sample_weight_of_several_outputs(X, rng):
    space, V = FunctionSpace.of(N), rng.normal(size=(N, 2))
    _, values = project(Regressor(KNeighborsRegressor(3)).bind(X, space), V, space)
    assert space.inner(values, V - values) == pytest.approx(0.0, abs=1e-12)


def test_classifier_without_sample_weight(X, rng):
    space = FunctionSpace.of(N)
    with pytest.raises(ValueError, match="`learner` KNeighborsClassifier takes no `sample_weight`"):
        project(Classifier(KNeighborsClassifier(3)).bind(X, space), rng.normal(size=(N, 1)), space)
    project(Classifier(KNeighborsClassifier(3)).bind(X, space), rng.choice([-1.0, 1.0], (N, 1)), space)


def test_useless_regressor_gives_no_direction(X, rng):
    space = FunctionSpace.of(N)
    h, _ = project(
        Regressor(DummyRegressor(strategy="constant", constant=0.0)).bind(X, space),
        rng.normal(size=(N, 1)),
        space,
    )
    assert (h.norm, h.terms) == (0.0, ())


def test_estimator_is_not_touched(X, space, rng):
    estimator = DecisionTreeRegressor(max_depth=2)
    project(Regressor(estimator).bind(X, space), rng.normal(size=(N, 1)), space)
    assert not hasattr(estimator, "tree_")
    assert estimator.random_state is None


def test_random_state_comes_from_the_run(X, space, rng):
    """Unset seeds are drawn from the run's generator; a seed that the user set stays."""
    y = rng.normal(size=N)

    def run(seed, **options):
        H = Regressor(ExtraTreeRegressor(max_depth=2, **options)).bind(X, space)
        return boost(
            HalfSquared().bind(y, space), H, step="inverse_sqrt", n_rounds=5, random_state=seed
        ).path.predict(X)

    np.testing.assert_array_equal(run(0), run(0))
    assert not np.array_equal(run(0), run(1))
    np.testing.assert_array_equal(run(0, random_state=3), run(1, random_state=3))


@pytest.mark.parametrize(
    "learner", [Regressor(Ridge()), Classifier(LogisticRegression())], ids=["ridge", "logistic"]
)
def test_sparse_inputs(learner, X, space, rng):
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    y = rng.integers(0, 3, N)
    predictions = []
    for form in (X, sp.csr_array(X)):
        H = learner.bind(form, space)
        result = boost(Softmax().bind(y, space), H, step="inverse_sqrt", n_rounds=4, output="last")
        predictions.append(result.model.predict(form))
    np.testing.assert_allclose(predictions[0], predictions[1], atol=1e-3)


@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated"])
@pytest.mark.parametrize(
    "learner", [Regressor(e) for e in REGRESSORS[:3]] + [Classifier(e) for e in CLASSIFIERS], ids=repr
)
def test_boosting_lowers_the_objective(learner, algorithm, X, space, rng):
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3)
    n_rounds = 4 if algorithm == "repeated" else 8
    objective = Softmax().bind(y, space)
    result = boost(
        objective,
        learner.bind(X, space),
        algorithm=algorithm,
        step="inverse_sqrt",
        n_rounds=n_rounds,
        random_state=0,
    )
    assert min(result.history["objective"]) < 0.8 * result.records[0].objective
