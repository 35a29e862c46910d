"""The estimators as a user of scikit-learn meets them."""

import os
import pickle
from itertools import combinations
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.boosting.algorithms import Naive
from convexboost.boosting.steps import STEPS, InverseSqrt
from convexboost.boosting.variants import ALGORITHMS
from convexboost.estimators._validation import N_FOLDS
from convexboost.kernels import parallel
from convexboost.learners.stump import Stump
from convexboost.learners.tree import Tree
from convexboost.losses.absolute import Absolute
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.quantile import Quantile
from convexboost.losses.softmax import Softmax

pytestmark = pytest.mark.one_in(3)  # the others: make test-slow

N = 100
rng = np.random.default_rng(11)
X, NEW = rng.normal(size=(N, 3)), rng.normal(size=(N, 3))
Y = 2 * X[:, 0] + np.abs(X[:, 1]) + 0.5 * rng.normal(size=N)
C = np.digitize(Y, [0.0, 2.0])  # three classes
CODE = rng.integers(0, 4, N)
LABEL = np.array(["red", "green", "blue", "grey"])[CODE]
NUMBER = rng.normal(size=N)
EFFECT = np.array([1.0, -2.0, 3.0, 0.5])[CODE] + NUMBER + 0.1 * rng.normal(size=N)
NUMERIC = np.column_stack([NUMBER, CODE])  # the same as the frames below, as numbers

REGRESSION = ["half_squared", "absolute", "quantile:0.8"]
CLASSIFICATION = ["softmax", "multiclass_hinge"]
BOTH = pytest.mark.parametrize("learner", ["tree", "stump"])  #: the default, and the paper's
#: One run on all rows, unless a test says that it means the default too.
ONE_RUN = {"n_rounds": 15, "random_state": 0, "early_stopping": False}
AUTO = {"early_stopping": "auto"}


def regressor(*args, **options):
    return ConvexBoostRegressor(*args, **{**ONE_RUN, **options})


def classifier(*args, **options):
    return ConvexBoostClassifier(*args, **{**ONE_RUN, **options})


def score(model, X):
    return model.predict(X) if isinstance(model, ConvexBoostRegressor) else model.decision_function(X)


def both(loss, **options):
    """Return an estimator for a loss and targets that suit it."""
    return (regressor(loss, **options), Y) if loss in REGRESSION else (classifier(loss, **options), C)


# --- as a scikit-learn estimator ---------------------------------------------------------------------------


@pytest.mark.parametrize(("learner", "n_rounds"), [("tree", 400), ("stump", 100)])
def test_it_learns(learner, n_rounds):
    options = {"learner": learner, "n_rounds": n_rounds}
    assert regressor(**options).fit(X, Y).score(X, Y) > 0.95
    assert regressor("absolute", **options).fit(X, Y).score(X, Y) > 0.9
    for loss in CLASSIFICATION:
        assert classifier(loss, **options).fit(X, C).score(X, C) > 0.9
    high = regressor("quantile:0.9", **options).fit(X, Y).predict(X)
    assert abs((high >= Y).mean() - 0.9) < 0.05


def test_the_defaults_learn_from_few_rows():
    """Small steps need many rounds, and the folds of a hundred rows must not say otherwise."""
    new = 2 * NEW[:, 0] + np.abs(NEW[:, 1])
    assert ConvexBoostRegressor(random_state=0).fit(X, Y).score(NEW, new) > 0.8
    assert ConvexBoostClassifier(random_state=0).fit(X, C > 0).score(NEW, new > 0) > 0.85


def test_objects_do_what_names_do():
    named = regressor("quantile:0.8", "stump:16", "naive", step="inverse_sqrt:2").fit(X, Y)
    objects = regressor(Quantile(0.8), Stump(max_bins=16), Naive(), step=InverseSqrt(2.0)).fit(X, Y)
    np.testing.assert_array_equal(named.predict(NEW), objects.predict(NEW))
    classes = regressor(Absolute, Stump, Naive, step=InverseSqrt).fit(X, Y)
    np.testing.assert_array_equal(
        classes.predict(NEW),
        regressor("absolute", "stump", "naive", step="inverse_sqrt").fit(X, Y).predict(NEW),
    )


def test_get_params_set_params_clone():
    model = regressor(Quantile(0.9), DecisionTreeRegressor(max_depth=2), random_state=3, **AUTO)
    parameters = model.get_params()
    assert parameters["learner__max_depth"] == 2
    assert parameters["loss"] == Quantile(0.9)
    assert set(model.get_params(deep=False)) == {
        *(
            "loss",
            "learner",
            "algorithm",
            "n_rounds",
            "learning_rate",
            "max_weak_learners",
            "step",
            "output",
            "residual_decay",
            "envelope",
        ),
        *("accuracy", "l2", "early_stopping", "validation_fraction", "n_iter_no_change", "scoring"),
        *("certificate", "stop_when_gap_below"),
        *("categorical_features", "random_state", "n_jobs", "callbacks", "verbose"),
        *("warm_start", "checkpoint", "checkpoint_every"),
    }
    model.set_params(learner__max_depth=1, algorithm="naive")
    copy = clone(model.fit(X, Y))
    assert not hasattr(copy, "model_")
    assert copy.learner is not model.learner
    assert copy.get_params()["learner__max_depth"] == 1
    np.testing.assert_array_equal(copy.fit(X, Y).predict(NEW), model.predict(NEW))
    with pytest.raises(ValueError, match="`rounds` is not a parameter of ConvexBoostRegressor"):
        model.set_params(rounds=3)


def test_fit_leaves_parameters_alone():
    tree, records = DecisionTreeRegressor(max_depth=1), []
    model = regressor(learner=tree, callbacks=[records.append], verbose=0, **AUTO)
    before = model.get_params(deep=False)
    model.fit(X, Y)
    after = model.get_params(deep=False)
    assert all(after[name] is before[name] for name in before)
    assert model.callbacks == [records.append]
    assert not hasattr(tree, "tree_")
    assert tree.random_state is None


def test_repr():
    assert repr(ConvexBoostRegressor(Quantile(0.9), n_rounds=7)) == (
        "ConvexBoostRegressor(loss=Quantile(quantile=0.9), n_rounds=7)"
    )
    assert repr(ConvexBoostClassifier(learner=Ridge())) == "ConvexBoostClassifier(learner=Ridge())"
    assert "ConvexBoostClassifier" in ConvexBoostClassifier()._repr_html_()


def test_pipeline():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N)
    model = make_pipeline(StandardScaler(), regressor(**AUTO))
    model.fit(X, Y, convexboostregressor__sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    expected = regressor(**AUTO).fit(scaled, Y, weight).predict(scaled)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert not np.array_equal(model.fit(X, Y).predict(X), expected)


def test_grid_search_over_names_and_objects():
    grid = {
        "loss": ["half_squared", "absolute", Quantile(0.5)],
        "learner": ["stump", Stump(max_bins=8), DecisionTreeRegressor(max_depth=2, random_state=0)],
        "algorithm": ["naive", "residual", Naive()],
    }
    search = GridSearchCV(regressor(n_rounds=5), grid, cv=2, error_score="raise").fit(X, Y)
    found = search.cv_results_
    assert len(found["params"]) == 27
    scores = {str(p): s for p, s in zip(found["params"], found["mean_test_score"], strict=True)}
    np.testing.assert_array_equal(  # an object and the name of it are the same
        [s for p, s in scores.items() if "'naive'" in p], [s for p, s in scores.items() if "Naive" in p]
    )
    assert search.best_score_ > 0.5
    assert search.predict(NEW).shape == (N,)


def test_grid_search_inside_the_learner():
    model = classifier("multiclass_hinge", DecisionTreeRegressor(random_state=0), n_rounds=3)
    search = GridSearchCV(model, {"learner__max_depth": [1, 4], "loss": CLASSIFICATION}, cv=2).fit(X, C)
    assert search.best_estimator_.learner.max_depth in (1, 4)
    assert search.best_score_ > 0.6


def test_cross_val_score():
    scores = cross_val_score(classifier(n_rounds=40), pd.DataFrame(X, columns=list("abc")), C, cv=3)
    assert scores.min() > 0.5
    one = classifier(n_rounds=40).fit(X[34:], C[34:]).score(X[:34], C[:34])
    assert one > 0.5


def test_hinge_can_be_calibrated():
    model = CalibratedClassifierCV(classifier("multiclass_hinge"), cv=3).fit(X, C)
    P = model.predict_proba(X)
    assert P.shape == (N, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert log_loss(C, P) < 0.8 * log_loss(C, np.tile(np.bincount(C) / N, (N, 1)))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_before_it(kind):
    plain = make_pipeline(StandardScaler(), classifier()).fit(X, C)
    model = make_pipeline(StandardScaler().set_output(transform=kind), classifier())
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[kind](dict(zip("abc", X.T, strict=True)))
    model.fit(frame, C)
    assert model[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.decision_function(frame), plain.decision_function(X))


@pytest.mark.parametrize("dump", ["pickle", "joblib"])
@pytest.mark.parametrize("learner", ["tree", "stump", "class_stump", DecisionTreeRegressor(max_depth=2)])
def test_saved_and_loaded(dump, learner, tmp_path):
    model = classifier(learner=learner, **AUTO).fit(X, C)
    if dump == "pickle":
        loaded = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model.joblib")
        loaded = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    assert loaded.predict(NEW).tolist() == model.predict(NEW).tolist()
    assert loaded.stop_reason_ == model.stop_reason_
    np.testing.assert_array_equal(loaded.history_["objective"], model.history_["objective"])


@pytest.mark.parametrize("learner", ["tree", "stump:16", DecisionTreeRegressor(max_depth=1)])
def test_a_saved_model_does_not_hold_the_data(learner):
    big = np.random.default_rng(0).normal(size=(20_000, 3))
    assert (
        len(pickle.dumps(regressor(learner=learner, n_rounds=3, **AUTO).fit(big, big[:, 0]))) < big.nbytes / 4
    )


def test_refit_forgets():
    frame = pd.DataFrame({"x": NUMBER, "c": pd.Categorical(LABEL)})
    model = regressor(**AUTO).fit(frame, EFFECT).set_params(n_rounds=3).fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 3
    assert model.n_rounds_ == 3
    np.testing.assert_array_equal(model.predict(NEW), regressor(n_rounds=3, **AUTO).fit(X, Y).predict(NEW))


# --- inputs ------------------------------------------------------------------------------------------------


def frames(labels):
    labels = [None if label is None else str(label) for label in labels]
    known = sorted({label for label in labels if label is not None}, reverse=True)
    n = len(labels)
    return {
        "pandas category": pd.DataFrame({"x": NUMBER[:n], "c": pd.Categorical(labels)}),
        "pandas category, own order": pd.DataFrame(
            {"x": NUMBER[:n], "c": pd.Categorical(labels, categories=known, ordered=True)}
        ),
        "pandas category of string": pd.DataFrame(
            {"x": NUMBER[:n], "c": pd.Series(labels, dtype="string").astype("category")}
        ),
        "polars Categorical": pl.DataFrame({"x": NUMBER[:n], "c": pl.Series(labels, dtype=pl.Categorical)}),
        "polars Enum": pl.DataFrame({"x": NUMBER[:n], "c": pl.Series(labels, dtype=pl.Enum(known))}),
    }


KINDS = list(frames(["a"]))


@pytest.mark.parametrize("learner", ["tree", "stump", "sign_stump"])
@pytest.mark.parametrize("kind", KINDS)
def test_category_columns(kind, learner):
    frame = frames(LABEL)[kind]
    model = regressor(learner=learner).fit(frame, EFFECT)
    expected = regressor(learner=learner, categorical_features=[1]).fit(NUMERIC, EFFECT)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(NUMERIC))
    assert model.feature_names_in_.tolist() == ["x", "c"]
    as_numbers = regressor(learner=learner).fit(NUMERIC, EFFECT).predict(NUMERIC)
    assert not np.allclose(as_numbers, model.predict(frame))


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_missing_categories_in_training(kind, learner):
    labels, codes = LABEL.astype(object), CODE.astype(float)
    labels[:30], codes[:30] = None, np.nan
    numbers = np.column_stack([NUMBER, codes])
    frame = frames(labels)[kind]
    expected = regressor(categorical_features=[1], learner=learner).fit(numbers, EFFECT).predict(numbers)
    np.testing.assert_array_equal(regressor(learner=learner).fit(frame, EFFECT).predict(frame), expected)


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_missing_and_unseen_categories_when_predicting(kind, learner):
    model = regressor(learner=learner).fit(frames(LABEL)[kind], EFFECT)
    expected = regressor(categorical_features=[1], learner=learner).fit(NUMERIC, EFFECT)
    found = model.predict(frames(["blue", None, "purple", "red"])[kind])
    numbers = np.column_stack([NUMBER[:4], [2, np.nan, 9, 0]])
    np.testing.assert_array_equal(found, expected.predict(numbers))
    assert np.isfinite(found).all()
    numbers[1:3, 0] = 0.0  # an unseen category is a missing one
    assert len(set(expected.predict(numbers)[1:3])) == 1


def test_frames_of_another_kind_when_predicting():
    every = frames(LABEL)
    model = regressor().fit(every["pandas category"], EFFECT)
    expected = model.predict(every["pandas category"])
    for frame in every.values():
        np.testing.assert_array_equal(model.predict(frame), expected)


@pytest.mark.parametrize(
    "categories", [CODE, CODE.astype(float), CODE.astype(str), CODE > 1], ids=["int", "float", "str", "bool"]
)
def test_categories_of_any_kind(categories):
    frame = pd.DataFrame({"x": NUMBER, "c": pd.Categorical(categories)})
    numbers = np.column_stack([NUMBER, np.unique(categories, return_inverse=True)[1]])
    expected = regressor(categorical_features=[1]).fit(numbers, EFFECT).predict(numbers)
    np.testing.assert_array_equal(regressor().fit(frame, EFFECT).predict(frame), expected)


@pytest.mark.parametrize(
    "given", [["c"], [1], np.array([1]), [False, True], np.array([False, True])], ids=str
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categorical_features_by_name_index_mask(given, library):
    frame = {"pandas": pd, "polars": pl}[library].DataFrame({"x": NUMBER, "c": LABEL.tolist()})
    expected = regressor(categorical_features=[1]).fit(NUMERIC, EFFECT).predict(NUMERIC)
    model = regressor(categorical_features=given)
    np.testing.assert_array_equal(model.fit(frame, EFFECT).predict(frame), expected)
    if given != ["c"] if isinstance(given, list) else True:
        np.testing.assert_array_equal(model.fit(NUMERIC, EFFECT).predict(NUMERIC), expected)


def test_categorical_features_none_and_empty():
    frame = pd.DataFrame({"x": NUMBER, "c": pd.Categorical(CODE)})
    as_numbers = regressor().fit(NUMERIC, EFFECT).predict(NUMERIC)
    for given in (None, []):
        found = regressor(categorical_features=given).fit(frame, EFFECT).predict(frame)
        np.testing.assert_array_equal(found, as_numbers)


def test_strings_in_arrays_and_lists():
    strings = np.column_stack([NUMBER.astype(object), LABEL.astype(object)])
    expected = regressor(categorical_features=[1]).fit(NUMERIC, EFFECT).predict(NUMERIC)
    model = regressor(categorical_features=[1]).fit(strings, EFFECT)
    np.testing.assert_array_equal(model.predict(strings), expected)


def test_strings_in_lists():
    rows = [[float(number), str(label)] for number, label in zip(NUMBER, LABEL, strict=True)]
    expected = regressor(categorical_features=[1]).fit(NUMERIC, EFFECT).predict(NUMERIC)
    model = regressor(categorical_features=[1]).fit(rows, EFFECT)
    np.testing.assert_array_equal(model.predict(rows), expected)


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "boolean"])
def test_nullable_numbers(dtype):
    values = (
        pd.Series(np.round(NUMBER), dtype=dtype) if dtype != "boolean" else pd.Series(NUMBER > 0, dtype=dtype)
    )
    values[:20] = pd.NA
    numbers = values.to_numpy(float, na_value=np.nan)[:, None]
    expected = regressor(**AUTO).fit(numbers, EFFECT).predict(numbers)
    frame = pd.DataFrame({"x": values})
    np.testing.assert_array_equal(regressor(**AUTO).fit(frame, EFFECT).predict(frame), expected)


def test_frames_of_numbers():
    integers = np.round(3 * X).astype(int)
    expected = regressor(**AUTO).fit(integers, Y).predict(integers)
    for library in (pd, pl):
        frame = library.DataFrame(dict(zip("abc", integers.T, strict=True)))
        np.testing.assert_array_equal(regressor(**AUTO).fit(frame, Y).predict(frame), expected)


SPARSE = np.round(X, 1) * (np.random.default_rng(3).random((N, 3)) < 0.4)


@BOTH
@pytest.mark.parametrize(
    "container", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix, sp.coo_array]
)
@pytest.mark.parametrize("loss", ["half_squared", "absolute", *CLASSIFICATION])
def test_sparse_equals_dense(container, loss, learner):
    weight = np.random.default_rng(0).integers(0, 3, N)
    model, y = both(loss, learner=learner, **AUTO)
    expected = score(clone(model).fit(SPARSE, y, weight), SPARSE)
    model.fit(container(SPARSE), y, weight)
    np.testing.assert_array_equal(score(model, container(SPARSE)), expected)
    np.testing.assert_array_equal(score(model, SPARSE), expected)


@pytest.mark.parametrize(
    "learner",
    # Leaves of one row are ties: several features part it from the others.
    ["stump:8", "sign_stump", DecisionTreeRegressor(max_depth=2, min_samples_leaf=5, random_state=0)],
)
def test_sparse_equals_dense_for_other_learners(learner):
    expected = regressor(learner=learner, **AUTO).fit(SPARSE, Y).predict(SPARSE)
    found = regressor(learner=learner, **AUTO).fit(sp.csr_array(SPARSE), Y).predict(sp.csr_array(SPARSE))
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=1e-9
    )  # scikit-learn's trees sum in another order


@BOTH
@pytest.mark.parametrize("option", ["early stopping", "validation set", "categorical", "missing"])
def test_sparse_equals_dense_with(option, learner):
    dense, fit, model = SPARSE, {}, regressor(learner=learner, **AUTO)
    if option == "early stopping":
        model.set_params(early_stopping=True, validation_fraction=0.3)
    if option == "validation set":
        fit = {"X_val": sp.csr_array(SPARSE[:30]), "y_val": Y[:30]}
    if option == "categorical":
        dense = np.round(SPARSE)
        model.set_params(categorical_features=[0, 2])
    if option == "missing":
        dense = np.where(SPARSE > 1, np.nan, SPARSE)
    expected = clone(model).fit(dense, Y, **fit).predict(dense)
    np.testing.assert_array_equal(model.fit(sp.csc_array(dense), Y, **fit).predict(dense), expected)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array])
def test_sparse_entries_given_twice_are_summed(container):
    """SciPy allows an entry in two parts; its value is their sum."""
    whole = container(SPARSE)
    parts = container(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )
    np.testing.assert_array_equal(parts.toarray(), SPARSE)
    before = parts.copy()
    model = regressor(**AUTO).fit(parts, Y)
    assert len(parts.data) == len(before.data)  # the caller's matrix stays as it is
    np.testing.assert_array_equal(model.predict(SPARSE), regressor(**AUTO).fit(SPARSE, Y).predict(SPARSE))


def test_explicit_zeros_are_zeros():
    matrix = sp.csr_array(SPARSE)
    matrix.data[::4] = 0.0
    expected = regressor(**AUTO).fit(matrix.toarray(), Y).predict(X)
    np.testing.assert_array_equal(regressor(**AUTO).fit(matrix, Y).predict(X), expected)


@BOTH
def test_missing_numbers(learner):
    generator = np.random.default_rng(5)
    holes = np.where(generator.random(X.shape) < 0.3, np.nan, X)
    y = 3.0 * np.isnan(holes[:, 0]) + 0.1 * generator.normal(size=N)
    model = regressor(n_rounds=60, learner=learner, **AUTO).fit(holes, y)
    assert model.score(holes, y) > 0.95  # being missing is information
    assert np.isfinite(model.predict(np.full((2, 3), np.nan))).all()


@BOTH
def test_missing_numbers_only_when_predicting(learner):
    model = regressor(n_rounds=50, learner=learner, **AUTO).fit(X, Y)
    found = model.predict(np.full((1, 3), np.nan))
    assert np.isfinite(found).all()
    assert Y.min() < found[0] < Y.max()


def test_learners_that_cannot_read_missing_or_sparse_say_so():
    holes = np.where(X > 1, np.nan, X)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        regressor(learner=Ridge()).fit(holes, Y)
    model = regressor(learner=Ridge()).fit(X, Y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(holes)
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        classifier(learner=GaussianNB()).fit(sp.csr_array(X), C)


def test_feature_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = regressor(**AUTO).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    for wrong in (frame[["b", "a", "c"]], frame.rename(columns={"a": "z"}), frame[["a", "b"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(frame, Y, X_val=frame[["b", "a", "c"]], y_val=Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


# --- targets -----------------------------------------------------------------------------------------------

WORDS = np.array(["few", "some", "many"])[C]


@pytest.mark.parametrize(
    "labels",
    [
        WORDS,
        WORDS.astype(object),
        WORDS.tolist(),
        pd.Series(WORDS),
        pd.Series(WORDS).astype("category"),
        pl.Series(WORDS.tolist()),
        pl.Series(WORDS.tolist(), dtype=pl.Categorical),
    ],
    ids=["str", "object", "list", "pandas", "category", "polars", "Categorical"],
)
def test_string_labels(labels):
    model = classifier(**AUTO).fit(X, labels, X_val=X[:9], y_val=labels[:9])
    assert model.classes_.tolist() == ["few", "many", "some"]
    expected = classifier(**AUTO).fit(
        X, np.array([0, 2, 1])[C], X_val=X[:9], y_val=np.array([0, 2, 1])[C[:9]]
    )
    np.testing.assert_array_equal(model.predict_proba(NEW), expected.predict_proba(NEW))
    assert model.predict(NEW).tolist() == model.classes_[expected.predict(NEW)].tolist()
    assert model.score(X, WORDS) > 0.7


@pytest.mark.parametrize("kind", [bool, float, int, np.uint8])
def test_two_classes_of_any_type(kind):
    y = (C > 0).astype(kind)
    model = classifier(n_rounds=60).fit(X, y)  # trees take small steps
    assert model.classes_.dtype == y.dtype
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("loss", REGRESSION)
def test_several_outputs(loss):
    """One split for all outputs; the loss is the sum over the columns."""
    two = np.column_stack([Y, -3 * X[:, 2]])
    model = regressor(loss, "stump", n_rounds=20, output="last").fit(X, two)
    F = model.predict(X)
    assert F.shape == (N, 2)
    q = {"absolute": 0.5, "quantile:0.8": 0.8}.get(loss)
    over = F - two
    losses = over**2 / 2 if q is None else np.where(over > 0, (1 - q) * over, -q * over)
    value = losses.sum(axis=1).mean() * (2 if loss == "absolute" else 1)
    np.testing.assert_allclose(model.history_["objective"][-1], value)
    assert value < 0.5 * model.history_["objective"][0]
    assert [stage.shape for stage in model.staged_predict(NEW)] == [(N, 2)] * 20


def test_one_column_stays_one_column():
    flat, column = regressor(**AUTO).fit(X, Y), regressor(**AUTO).fit(X, Y[:, None])
    assert flat.predict(X).shape == (N,)
    np.testing.assert_array_equal(column.predict(X), flat.predict(X)[:, None])


def test_the_same_column_twice():
    learner = Tree(splits="best")
    expected = regressor("half_squared", learner).fit(X, Y).predict(X)
    found = regressor("half_squared", learner).fit(X, np.column_stack([Y, Y])).predict(X)
    np.testing.assert_allclose(found, np.column_stack([expected, expected]), rtol=1e-9)


def test_class_stumps_serve_several_outputs():
    model = regressor(learner="class_stump", n_rounds=60, **AUTO).fit(X, np.column_stack([Y, -Y, X[:, 2]]))
    assert model.score(X, np.column_stack([Y, -Y, X[:, 2]])) > 0.5


def test_constant_targets_and_inputs():
    np.testing.assert_allclose(regressor().fit(X, np.full(N, 3.5)).predict(NEW), 3.5)
    flat = regressor().fit(np.ones((N, 2)), Y)
    np.testing.assert_allclose(flat.predict(np.ones((3, 2))), Y.mean())
    P = classifier().fit(np.ones((N, 2)), C).predict_proba(np.ones((1, 2)))
    np.testing.assert_allclose(P[0], np.bincount(C) / N)


# --- weights -----------------------------------------------------------------------------------------------

WEIGHT = np.random.default_rng(4).integers(0, 4, N)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("learner", ["tree", "stump", "class_stump", "sign_stump", "stump:8"])
@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION])
def test_weights_are_repetitions(loss, learner, algorithm):
    """Weight 2 is the row twice, weight 0 is no row."""
    if loss in REGRESSION and learner == "class_stump":
        learner = "stump"
    model, y = both(loss, learner=learner, algorithm=algorithm, **AUTO)
    weighted = score(clone(model).fit(X, y, WEIGHT), NEW)
    repeated = score(clone(model).fit(X.repeat(WEIGHT, axis=0), y.repeat(WEIGHT)), NEW)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-9)
    assert not np.allclose(weighted, score(clone(model).fit(X, y), NEW))


@pytest.mark.parametrize(
    "learner", [Ridge(alpha=5.0), LogisticRegression(C=0.1)], ids=["Ridge", "LogisticRegression"]
)
def test_weights_are_repetitions_for_wrapped_learners(learner):
    """A penalty inside the learner weighs against the sum of the sample weights."""
    model = classifier(learner=learner, n_rounds=5, **AUTO)
    weighted = model.fit(X, C, WEIGHT).decision_function(NEW)
    repeated = model.fit(X.repeat(WEIGHT, axis=0), C.repeat(WEIGHT)).decision_function(NEW)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-6)


class Weighed(LogisticRegression):
    """Remembers the sum of the weights it was given."""

    sums: ClassVar[list[float]] = []

    def fit(self, X, y, sample_weight=None):
        self.sums.append(sample_weight.sum())
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("weight", [None, np.full(N, 0.01), WEIGHT], ids=["none", "0.01", "0 to 3"])
def test_a_wrapped_classifier_gets_weights_of_the_usual_size(weight):
    """Its own penalty (here 1/C) must mean what it means outside boosting."""
    Weighed.sums.clear()
    classifier(learner=Weighed(), n_rounds=3).fit(X, C, weight)
    assert len(Weighed.sums) == 3
    np.testing.assert_allclose(Weighed.sums, N if weight is None else weight.sum())


def test_units_of_y_do_not_change_a_wrapped_classifier():
    model = regressor(learner=LogisticRegression(C=0.1), n_rounds=5)
    expected = clone(model).fit(X, Y).predict(NEW)
    found = clone(model).fit(X, 1e5 * Y).predict(NEW) / 1e5
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("loss", ["half_squared", "softmax"])
@pytest.mark.parametrize("step", [*sorted(set(STEPS) - {"inverse_time"}), "inverse_time:3"])
def test_weights_are_repetitions_for_every_step(step, loss):
    model, y = both(loss, algorithm="naive", step=step, **AUTO)
    weighted = score(clone(model).fit(X, y, WEIGHT), NEW)
    repeated = score(clone(model).fit(X.repeat(WEIGHT, axis=0), y.repeat(WEIGHT)), NEW)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-9)


@BOTH
@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION])
def test_rows_of_no_weight_do_not_matter(loss, learner):
    model, y = both(loss, learner=learner, **AUTO)
    strange, other = X.copy(), y.copy()
    strange[WEIGHT == 0] *= 1e6
    other[WEIGHT == 0] = y[0]
    expected = score(clone(model).fit(X, y, WEIGHT), NEW)
    np.testing.assert_array_equal(score(clone(model).fit(strange, other, WEIGHT), NEW), expected)


def test_a_class_of_no_weight_is_no_class():
    model = classifier(**AUTO).fit(X, C, sample_weight=np.where(C == 1, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 2]


@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION])
def test_only_the_ratios_of_weights_matter(loss):
    """But for trees: their `min_samples_leaf` is a sum of weights."""
    model, y = both(loss, learner="stump", **AUTO)
    expected = score(clone(model).fit(X, y, WEIGHT), NEW)
    np.testing.assert_allclose(score(clone(model).fit(X, y, 1e-6 * WEIGHT), NEW), expected, rtol=0, atol=1e-9)


# --- validation --------------------------------------------------------------------------------------------

NOISE = np.random.default_rng(6).normal(size=N)  # nothing to learn: the validation loss soon rises


@BOTH
def test_early_stopping(learner):
    options = {"early_stopping": True, "n_iter_no_change": 5, "validation_fraction": 0.3, "random_state": 1}
    model = regressor(n_rounds=500, **options, learner=learner).fit(X, NOISE)
    validation = model.history_["validation"]
    assert np.isfinite(validation).all()
    assert model.n_rounds_ < 500
    assert len(validation) == model.n_rounds_ + 1
    assert model.stop_reason_ == "the validation loss has not improved for 5 rounds"
    assert model.best_round_ == np.argmin(validation)
    assert model.n_rounds_ == np.argmin(validation[1:]) + 1 + 5  # patience counts rounds, not the start
    last = regressor(n_rounds=500, output="last", **options, learner=learner).fit(X, NOISE)
    stages = [np.full(N, last.model_.start[0]), *last.staged_predict(NEW)]
    np.testing.assert_allclose(model.predict(NEW), stages[model.best_round_])
    assert len(stages) == model.n_rounds_ + 1


def test_held_out_rows_are_not_trained_on():
    """The rows that the objective leaves out are those of the validation loss."""
    y = 10.0 ** np.arange(10) * (-1) ** np.arange(10)  # every subset has its own mean
    model = regressor(early_stopping=True, validation_fraction=0.25, random_state=0).fit(X[:10], y)
    start = model.model_.start[0]
    assert not np.isclose(start, y.mean())
    left_out = [
        rows
        for rows in combinations(range(10), 3)
        if np.isclose(start, np.delete(y, rows).mean(), rtol=1e-12)
    ]
    assert len(left_out) == 1  # ⌈0.25 · 10⌉ rows
    held = y[list(left_out[0])]
    np.testing.assert_allclose(model.history_["validation"][0], ((start - held) ** 2 / 2).mean())


def test_without_validation_there_is_none():
    model = regressor().fit(X, Y)
    assert np.isnan(model.history_["validation"]).all()
    assert model.n_rounds_ == 15
    assert model.stop_reason_ == "all 15 rounds done"
    assert model.best_round_ == np.argmin(model.history_["objective"])


@BOTH
@pytest.mark.parametrize("early_stopping", [False, True])
def test_validation_set(early_stopping, learner):
    options = {"early_stopping": True, "n_iter_no_change": 5} if early_stopping else {"early_stopping": False}
    model = regressor(n_rounds=80, learner=learner, **options)
    model.fit(X, NOISE, X_val=NEW, y_val=-NOISE)
    history = model.history_
    np.testing.assert_allclose(model.model_.start[0], NOISE.mean())  # all of X is trained on
    np.testing.assert_allclose(history["validation"][0], ((NOISE.mean() + NOISE) ** 2 / 2).mean())
    # Without early stopping the rows have no say.
    best = np.argmin(history["validation" if early_stopping else "objective"])
    assert model.best_round_ == best
    later = np.argmin(history["validation"][1:]) + 1  # patience counts rounds, not the start
    assert model.n_rounds_ == (later + 5 if early_stopping else 80)
    np.testing.assert_allclose(
        ((model.predict(NEW) + NOISE) ** 2 / 2).mean(), history["validation"][best], rtol=1e-9
    )


@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_validation_set_of_a_classifier(loss):
    labels = np.array(["c", "a", "b"])[C]
    model = classifier(loss, n_rounds=10, output="last", **AUTO).fit(X, labels, X_val=NEW, y_val=labels)
    F = model.decision_function(NEW)
    codes = np.searchsorted(model.classes_, labels)
    expected = (Softmax() if loss == "softmax" else MulticlassHinge()).value(F, codes).mean()
    np.testing.assert_allclose(model.history_["validation"][-1], expected)


def test_validation_set_may_lack_classes():
    model = classifier(**AUTO).fit(X, C, X_val=X[C == 1], y_val=C[C == 1])
    assert np.isfinite(model.history_["validation"]).all()


def test_early_stopping_with_a_class_of_one_row():
    y = C.copy()
    y[0] = 7
    for seed in range(8):
        model = classifier(early_stopping=True, validation_fraction=0.4, random_state=seed).fit(X, y)
        assert model.classes_.tolist() == [0, 1, 2, 7]
        assert np.isfinite(model.predict_proba(NEW)).all()


def test_early_stopping_keeps_the_shares_of_the_classes():
    y = np.repeat([0, 1, 2], [70, 20, 10])
    logs = np.log([0.7, 0.2, 0.1])
    for seed in range(5):
        model = classifier(early_stopping=True, validation_fraction=0.2, random_state=seed).fit(X, y)
        np.testing.assert_allclose(model.model_.start, logs - logs.mean())


# --- offset ------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("loss", REGRESSION)
def test_offset_is_taken_off_the_targets(loss, learner):
    offset = 5 * X[:, 2]
    plain = regressor(loss, learner=learner).fit(X, Y, offset=np.zeros(N)).predict(NEW)
    np.testing.assert_allclose(
        regressor(loss, learner=learner).fit(X, Y + offset, offset=offset).predict(NEW), plain, atol=1e-9
    )
    column = regressor(loss, learner=learner).fit(X, Y + offset, offset=offset[:, None]).predict(NEW)
    np.testing.assert_allclose(column, plain, atol=1e-9)
    assert not np.allclose(regressor(loss, learner=learner).fit(X, Y + offset).predict(NEW), plain)


def test_offset_is_held_out_weighted_and_dropped_like_its_rows():
    offset = 5 * X[:, 2]
    model = regressor(early_stopping=True, validation_fraction=0.3, random_state=0)
    plain = clone(model).fit(X, Y, WEIGHT, offset=np.zeros(N))
    found = model.fit(X, Y + offset, WEIGHT, offset=offset)
    np.testing.assert_allclose(found.history_["validation"], plain.history_["validation"])
    np.testing.assert_allclose(found.predict(NEW), plain.predict(NEW), atol=1e-9)


@BOTH
@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION])
def test_offset_continues_another_model(loss, learner):
    model, y = both(loss, n_rounds=5, learner=learner)
    first = clone(model).fit(X, y)
    F = score(first, X)
    second = model.fit(X, y, offset=F)
    objective = second.history_["objective"]
    np.testing.assert_allclose(objective[0], first.history_["objective"][first.best_round_])
    assert objective[second.best_round_] < 0.95 * objective[0]
    together = F + score(second, X)
    value = second.loss_.value(together.reshape(N, -1), y[:, None] if loss in REGRESSION else y).mean()
    np.testing.assert_allclose(value, objective[second.best_round_])


# --- training ----------------------------------------------------------------------------------------------


def test_callbacks():
    seen, others = [], []
    model = regressor(n_rounds=6, callbacks=[seen.append, others.append], **AUTO).fit(X, Y)
    assert [record.round for record in seen] == [0, 1, 2, 3, 4, 5, 6]
    assert others == seen
    for column, values in model.history_.items():
        np.testing.assert_array_equal(values, [getattr(record, column) for record in seen])


def test_a_callback_can_stop():
    model = regressor(callbacks=[lambda record: record.round == 3], **AUTO).fit(X, Y)
    assert model.n_rounds_ == 3
    assert model.stop_reason_ == "a callback asked to stop"


def test_verbose(capfd):
    regressor(n_rounds=40, **AUTO).fit(X, Y)
    assert capfd.readouterr() == ("", "")
    regressor(n_rounds=40, verbose=1).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    assert [int(line.split()[1]) for line in err.splitlines()] == list(range(0, 41, 2))
    assert "validation" not in err
    model = regressor(n_rounds=4, verbose=2, **AUTO).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [int(line.split()[1]) for line in lines] == [0, 1, 2, 3, 4]
    history = model.history_
    assert (
        f"objective {history['objective'][-1]:.6g}  validation {history['validation'][-1]:.6g}" in lines[-1]
    )


def test_history():
    model = classifier("multiclass_hinge", algorithm="repeated", n_rounds=6, output="last", random_state=1)
    model.fit(X, C)
    table = pd.DataFrame(model.history_)
    assert table.columns.tolist() == [
        *("round", "objective", "validation", "score", "edge", "intrinsic_edge", "step", "weak_learners"),
        *("gradient_evaluations", "seconds"),
    ]
    assert len(table) == model.n_rounds_ + 1 == 7
    assert table["round"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert table["weak_learners"].tolist() == [0, 1, 3, 6, 10, 15, 21]
    assert table["gradient_evaluations"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert (table["step"][1:] > 0).all()
    assert table["edge"][1:].between(0, 1).all()
    assert table["seconds"].is_monotonic_increasing
    values = [MulticlassHinge().value(F, C).mean() for F in model.staged_decision_function(X)]
    np.testing.assert_allclose(table["objective"][1:], values)


def test_max_weak_learners():
    options = {"n_rounds": 100, "max_weak_learners": 12}
    model = regressor(algorithm="repeated", **options).fit(X, Y)
    assert model.history_["weak_learners"].tolist() == [0, 1, 3, 6, 10, 12]
    assert model.stop_reason_ == "the budget of weak learners is used up"
    assert model.n_rounds_ == 5
    validated = regressor(**options, **AUTO).fit(X, Y)  # shared by the members
    assert validated.n_members_ == N_FOLDS
    assert validated.history_["weak_learners"].tolist() == [0, N_FOLDS, 2 * N_FOLDS]


def test_accuracy_replaces_the_number_of_projections():
    def trained(accuracy):
        model = regressor(algorithm="repeated", accuracy=accuracy)
        return model.fit(X, Y).history_["weak_learners"]

    assert trained(0.5)[5] < 15 < trained(0.005)[5]


@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION])
def test_residual_decay(loss):
    def fitted(**options):
        model, y = both(loss, learner="stump", **options)
        return score(model.fit(X, y), NEW)

    np.testing.assert_array_equal(fitted(residual_decay=0.0), fitted(algorithm="naive"))
    np.testing.assert_array_equal(fitted(residual_decay=1.0), fitted())
    half = fitted(residual_decay=0.5)
    assert not np.allclose(half, fitted())
    assert not np.allclose(half, fitted(algorithm="naive"))


@BOTH
@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION])
def test_l2_shrinks(loss, learner):
    lengths = []
    for l2 in (0.0, 0.03, 0.3, 3.0):
        model, y = both(loss, l2=l2, n_rounds=60, learner=learner)
        model.fit(X, y)
        lengths.append(np.linalg.norm(model.model_.predict(X) - model.model_.start))
    assert (np.diff(lengths) < 0).all()
    assert lengths[-1] < 0.4 * lengths[0]


@pytest.mark.one_in(5)
@BOTH
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("loss", REGRESSION)
def test_units_of_y(loss, algorithm, learner):
    model = regressor(loss, algorithm=algorithm, step="auto", n_rounds=12, learner=learner, **AUTO)
    expected = clone(model).fit(X, Y).predict(NEW)
    size = np.abs(expected).max()
    for factor in (1e5, 1e-5):
        found = clone(model).fit(X, factor * Y).predict(NEW) / factor
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * size)
    shifted = clone(model).fit(X, Y + 100.0).predict(NEW) - 100.0
    np.testing.assert_allclose(shifted, expected, rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("output", ["last", "average"])
def test_units_of_y_for_other_outputs(loss, output):
    model = regressor(loss, output=output, n_rounds=30, **AUTO)
    expected = clone(model).fit(X, Y).predict(NEW)
    found = clone(model).fit(X, 1e5 * Y).predict(NEW) / 1e5
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@BOTH
@pytest.mark.parametrize("loss", [*REGRESSION, *CLASSIFICATION])
def test_units_of_x(loss, learner):
    """Stumps and trees see the order of the values only (the folds see more)."""
    model, y = both(loss, learner=learner)
    expected = score(clone(model).fit(X, y), X)
    np.testing.assert_array_equal(score(clone(model).fit(1024 * X + 8, y), 1024 * X + 8), expected)


@pytest.mark.parametrize("output", ["best", "last", "average"])
@pytest.mark.parametrize("loss", ["half_squared", "absolute"])
def test_divergence_warns_and_leaves_a_finite_model(loss, output):
    model = regressor(loss, step="constant:1e6", output=output, **AUTO)
    with pytest.warns(ConvergenceWarning, match=r"diverged: the objective rose from .*step='auto'") as caught:
        model.fit(X, Y)
    assert model.stop_reason_.startswith("diverged")
    assert caught[0].filename == __file__  # it points at the call of fit
    assert np.isfinite(model.predict(NEW)).all()


class Explodes:
    """Half the squared error, and a multiple of it from round 10 on."""

    def __init__(self, late):
        self.late, self.factor = late, 1.0

    def evaluate(self, F, y):
        return self.factor * 0.5 * ((F - y) ** 2).sum(axis=1), self.factor * (F - y)

    def see(self, record):
        self.factor = self.late if record.round == 10 else self.factor


NAN = r"became NaN in round 11, at scores up to .*check_loss"


@pytest.mark.parametrize(
    ("late", "step", "kind", "message"),
    [
        (1e9, "auto", "diverged", "algorithm='naive' with step='line_search' cannot raise the objective"),
        (1e9, "inverse_sqrt", "diverged", "step='auto' avoids this"),
        (np.nan, "auto", "not_a_number", r"became NaN in round .*, at scores up to .*check_loss"),
        (
            np.nan,
            "constant:0.1",
            "not_a_number",
            r"became NaN in round .*, at scores up to .*check_loss",
        ),
    ],
)
def test_the_advice_is_never_the_step_in_use(late, step, kind, message):
    loss = Explodes(late)
    model = regressor(loss, learner="stump", step=step, n_rounds=100, callbacks=[loss.see])
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.fit(X, Y)
    assert f"step='{step}'" not in str(caught[0].message)
    assert ("diverged" in str(caught[0].message)) == (kind == "diverged")
    assert model.stop_kind_ == kind
    assert np.isfinite(model.predict(NEW)).all()
    found = model.diagnose()
    assert ("not_a_number" in found.rules) == (kind == "not_a_number")
    assert ("step_too_large" in found.rules) == (kind == "diverged")


@pytest.mark.parametrize("output", ["best", "last", "average"])
def test_divergence_keeps_the_best_iterate(output):
    """That is what the warning says."""
    model = regressor(step="constant:1e6", output=output)
    with pytest.warns(ConvergenceWarning, match="The best iterate is kept"):
        model.fit(X, Y)
    assert ((model.predict(X) - Y) ** 2 / 2).mean() <= model.history_["objective"][0] * (1 + 1e-12)


def test_a_gap_that_was_not_reached_warns():
    model = regressor("absolute", learner="stump", n_rounds=3, stop_when_gap_below=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"all 3 rounds done, and the certified gap .* is still"):
        model.fit(X, Y)
    model.set_params(stop_when_gap_below=1e9).fit(X, Y)  # no warning: warnings are errors here
    assert model.stop_kind_ == "gap"


@BOTH
def test_outputs(learner):
    models = {
        output: regressor("absolute", n_rounds=30, output=output, learner=learner).fit(X, Y)
        for output in ("best", "last")
    }
    best, last = models["best"], models["last"]
    path = [np.full(N, last.model_.start[0]), *last.staged_predict(NEW)]
    np.testing.assert_allclose(best.predict(NEW), path[best.best_round_], rtol=1e-9)
    np.testing.assert_allclose(last.predict(NEW), path[-1], rtol=1e-9)
    average = regressor("absolute", n_rounds=30, output="average", learner=learner).fit(X, Y)
    np.testing.assert_allclose(average.predict(NEW), np.mean(path[:-1], axis=0), rtol=1e-9)


def test_random_state():
    def fitted(seed):
        return (
            regressor(learner=ExtraTreeRegressor(max_depth=2), random_state=seed, **AUTO)
            .fit(X, Y)
            .predict(NEW)
        )

    np.testing.assert_array_equal(fitted(0), fitted(0))
    assert not np.allclose(fitted(0), fitted(1))
    np.testing.assert_array_equal(fitted(np.random.RandomState(0)), fitted(0))


def test_random_state_of_the_split():
    def validation(seed):
        return regressor(early_stopping=True, random_state=seed).fit(X, Y).history_["validation"]

    np.testing.assert_array_equal(validation(0), validation(0))
    assert not np.allclose(validation(0)[:5], validation(1)[:5])


@BOTH
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["absolute", *CLASSIFICATION])
def test_n_jobs_does_not_change_a_bit(loss, container, monkeypatch, learner):
    monkeypatch.setattr(parallel, "MIN_OPERATIONS", 1)  # otherwise the work is too small for threads
    wide = np.tile(SPARSE, 3) + np.arange(9)
    scores = {}
    for n_jobs in (1, 2, 4):
        model, y = both(loss, n_jobs=n_jobs, learner=learner, **AUTO)
        scores[n_jobs] = score(model.fit(container(wide), y), container(wide))
    assert (os.getpid(), 4) in parallel._pools  # there were threads
    np.testing.assert_array_equal(scores[1], scores[2])
    np.testing.assert_array_equal(scores[1], scores[4])


# --- predictions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fitted", [False, True])
def test_probabilities_exist_for_links_only(fitted):
    link, margin = classifier("softmax"), classifier("multiclass_hinge")
    if fitted:
        link.fit(X, C), margin.fit(X, C)
    for method in ("predict_proba", "predict_log_proba", "staged_predict_proba"):
        assert hasattr(link, method)
        assert not hasattr(margin, method)
    with pytest.raises(AttributeError) as error:
        margin.predict_proba(X)
    assert "`loss` 'multiclass_hinge' gives no probabilities" in str(error.value.__cause__)
    assert "softmax" in str(error.value.__cause__)


def test_probabilities():
    model = classifier().fit(X, C)
    F, P = model.decision_function(NEW), model.predict_proba(NEW)
    expected = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(P, expected)
    np.testing.assert_allclose(model.predict_log_proba(NEW), np.log(expected), atol=1e-12)
    np.testing.assert_array_equal(model.predict(NEW), P.argmax(axis=1))
    assert log_loss(C, model.predict_proba(X)) < log_loss(C, np.tile(np.bincount(C) / N, (N, 1)))


@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_decision_function(loss):
    three = classifier(loss).fit(X, C)
    assert three.decision_function(NEW).shape == (N, 3)
    np.testing.assert_array_equal(three.predict(NEW), three.decision_function(NEW).argmax(axis=1))
    two = classifier(loss).fit(X, C > 0)
    assert two.decision_function(NEW).shape == (N,)
    np.testing.assert_array_equal(two.predict(NEW), two.decision_function(NEW) > 0)
    if loss == "softmax":
        np.testing.assert_allclose(
            two.predict_proba(NEW)[:, 1], 1 / (1 + np.exp(-two.decision_function(NEW)))
        )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("learner", ["tree", "stump", DecisionTreeRegressor(max_depth=1, random_state=0)])
def test_stages_of_a_classifier(learner, algorithm):
    options = {"learner": learner, "algorithm": algorithm, "output": "last"}
    model = classifier(n_rounds=8, **options).fit(X, C)
    stages = list(model.staged_decision_function(NEW))
    assert len(stages) == model.n_rounds_ == 8
    np.testing.assert_allclose(stages[-1], model.decision_function(NEW), rtol=1e-9)
    for F, P, labels in zip(stages, model.staged_predict_proba(NEW), model.staged_predict(NEW), strict=True):
        np.testing.assert_allclose(P, Softmax().link(F))
        np.testing.assert_array_equal(labels, F.argmax(axis=1))
    shorter = classifier(n_rounds=5, **options).fit(X, C)
    np.testing.assert_allclose(stages[4], shorter.decision_function(NEW), rtol=1e-9)


def test_stages_of_two_classes():
    model = classifier("multiclass_hinge", n_rounds=8, output="last").fit(X, C > 0)
    *_, last = model.staged_decision_function(NEW)
    assert last.shape == (N,)
    np.testing.assert_allclose(last, model.decision_function(NEW), rtol=1e-9)


@BOTH
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_stages_of_a_regressor(algorithm, learner):
    options = {"algorithm": algorithm, "learner": learner, "output": "last"}
    model = regressor("absolute", **options).fit(X, Y)
    *_, last = stages = list(model.staged_predict(NEW))
    assert len(stages) == 15
    np.testing.assert_allclose(last, model.predict(NEW), rtol=1e-9)
    model = regressor("absolute", **options, **AUTO).fit(X, Y)
    *_, last = stages = list(model.staged_predict(NEW))
    assert len(stages) == model.n_rounds_
    np.testing.assert_allclose(last, model.predict(NEW), rtol=1e-9)
