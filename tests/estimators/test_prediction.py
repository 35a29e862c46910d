"""Plain arrays of floats are predicted without scikit-learn's checks; everything else is checked."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = X[:, 0] + rng.normal(size=60)


@pytest.fixture(scope="module", params=["tree", "stump"])
def model(request):
    return ConvexBoostRegressor(learner=request.param, n_rounds=5, early_stopping=False).fit(X, Y)


@pytest.mark.parametrize(
    "given",
    [X.tolist(), np.asfortranarray(X), X[::-1][::-1], X.astype(object), sp.csr_array(X), X.astype(">f8")],
    ids=["lists", "Fortran", "strides", "objects", "sparse", "byte order"],
)
def test_the_same_for_any_container(model, given):
    np.testing.assert_array_equal(model.predict(given), model.predict(X))


def test_rows_alone_and_together(model):
    alone = [model.predict(X[[n]])[0] for n in range(len(X))]
    np.testing.assert_array_equal(alone, model.predict(X))


def test_missing_values(model):
    given = X.copy()
    given[3, 1] = np.nan
    found, wanted = model.predict(given), model.predict(X)
    np.testing.assert_array_equal(np.delete(found, 3), np.delete(wanted, 3))


def test_numbers_whose_sum_is_not_finite(model):
    given = np.full((4, 3), 1e308)
    np.testing.assert_array_equal(model.predict(given), model.predict(np.full((4, 3), 1e300)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (X[:, :2], "X has 2 features, but ConvexBoostRegressor is expecting 3 features"),
        (X[0], "Expected 2D array, got 1D array"),
        (X[:0], r"Found array with 0 sample\(s\)"),
        (np.where(X > 2.0, np.inf, X), "Input X contains infinity"),
        (X[None], "Found array with dim 3"),
        (X.astype(str).astype(object) + "a", "could not convert string to float"),
    ],
)
def test_what_cannot_be_predicted(model, given, message):
    with pytest.raises(ValueError, match=message):
        model.predict(given)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        ConvexBoostRegressor().predict(X)
    with pytest.raises(NotFittedError):
        ConvexBoostClassifier().predict_proba(X)


def test_a_prediction_does_not_add_to_the_pickle(model):
    fresh = pickle.loads(pickle.dumps(model))
    before = len(pickle.dumps(fresh))
    fresh.predict(X)
    assert len(pickle.dumps(fresh)) == before
