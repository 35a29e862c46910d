"""What cannot work says so, names the parameter and its value, and does so before the first round."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.learners.regressor import Regressor
from convexboost.learners.stump import Stump
from convexboost.losses.cvar import CVaR
from convexboost.losses.quantile import Quantile
from convexboost.losses.softmax import Softmax

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

N = 30
rng = np.random.default_rng(7)
X = rng.normal(size=(N, 3))
Y = X[:, 0] + rng.normal(size=N)
C = rng.permutation(np.arange(N) % 3)


def with_one(array, value, row=4):
    array = np.array(array, float)
    array[row] = value
    return array


def refuses(message, estimator, X=X, y=None, error=ValueError, **fit):
    """Fit must fail with this message, and no round may have begun."""
    records = []
    if estimator.callbacks is None:
        estimator.set_params(callbacks=[records.append])
    if y is None:
        y = Y if isinstance(estimator, ConvexBoostRegressor) else C
    with pytest.raises(error, match=message):
        estimator.fit(X, y, **fit)
    assert records == []
    assert not hasattr(estimator, "model_")


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("loss", "squared", r"`loss` must be one of .*half_squared.*, got 'squared'"),
        ("loss", "absolut", r"`loss` .* got 'absolut'; did you mean 'absolute'\?"),
        ("loss", "quantile:1.5", r"`quantile` must lie in \(0, 1\), got 1.5"),
        ("loss", "quantile:0", r"`quantile` must lie in \(0, 1\), got 0"),
        ("loss", "quantile:high", r"`loss` must be a number, got 'quantile:high'"),
        ("loss", "absolute:2", r"`loss` 'absolute' takes no argument, got 'absolute:2'"),
        ("loss", "softmax", r"`loss` must be a regression loss \(.*absolute.*\), got 'softmax'"),
        ("loss", Softmax(), r"`loss` must be a regression loss \(.*absolute.*\), got .*Softmax"),
        ("loss", 5, r"`loss` must be a name, a Loss, or an object with .*, got 5"),
        ("loss", Stump(), r"`loss` must be a name, a Loss, or an object with .*, got Stump\("),
        ("learner", "forest", r"`learner` must be one of .*stump.*, got 'forest'"),
        ("learner", "stumps", r"`learner` .* got 'stumps'; did you mean 'stump'\?"),
        ("learner", "stump:1", r"`max_bins` must .* between 2 and 255, got 1"),
        ("learner", "stump:300", r"`max_bins` must .* between 2 and 255, got 300"),
        ("learner", "stump:7.5", r"`max_bins` must .* between 2 and 255, got 7.5"),
        ("learner", Regressor, r"`learner` must be an object, got the class Regressor: .*estimator"),
        ("loss", CVaR, r"`loss` must be an object, got the class CVaR: .*missing"),
        ("learner", 5, r"`learner` must be a name, .*, got 5"),
        ("learner", None, r"`learner` must be a name, .*, got None"),
        ("learner", StandardScaler(), r"`learner` must be a name, .*, got StandardScaler\(\)"),
        ("learner", KMeans(), r"`learner` must be a name, .*, got KMeans\(\)"),
        ("learner", Quantile(0.5), r"`learner` must be a name, .*, got Quantile\(\)"),
        ("learner", "class_stump", r"`learner` 'class_stump' needs at least 2 outputs, got 1"),
        ("algorithm", "adaboost", r"`algorithm` must be one of naive, .*, got 'adaboost'"),
        ("algorithm", "residul", r"`algorithm` .* got 'residul'; did you mean 'residual'\?"),
        ("algorithm", 3, r"`algorithm` must be .*got 3"),
        ("algorithm", None, r"`algorithm` must be .*got None"),
        ("step", "fast", r"`step` must be one of auto, .*, got 'fast'"),
        ("step", "constant:fast", r"`step` must be a number, got 'constant:fast'"),
        ("step", "constant:-1", r"step.* must be positive, got -1"),
        ("step", "adanorm:nan", r"step.* must be positive, got nan"),
        ("step", 0.5, r"`step` must be .*got 0.5"),
        ("step", None, r"`step` must be .*got None"),
        ("output", "first", r"`output` must be one of last, best, average, got 'first'"),
        ("output", None, r"`output` must be one of last, best, average, got None"),
        ("n_rounds", 0, r"`n_rounds` must be a positive integer or 'auto', got 0"),
        ("n_rounds", -3, r"`n_rounds` must be a positive integer or 'auto', got -3"),
        ("n_rounds", 1.5, r"`n_rounds` must be a positive integer or 'auto', got 1.5"),
        ("n_rounds", "x", r"`n_rounds` must be a positive integer or 'auto', got 'x'"),
        ("n_rounds", True, r"`n_rounds` must be a positive integer or 'auto', got True"),
        ("n_rounds", None, r"`n_rounds` must be a positive integer or 'auto', got None"),
        ("max_weak_learners", 0, r"`max_weak_learners` must be a positive integer or None, got 0"),
        ("max_weak_learners", 2.5, r"`max_weak_learners` must be a positive integer or None, got 2.5"),
        ("residual_decay", 1.01, r"`residual_decay` must be 'auto' or in \[0, 1\], got 1.01"),
        ("residual_decay", -0.5, r"`residual_decay` must be 'auto' or in \[0, 1\], got -0.5"),
        ("residual_decay", np.nan, r"`residual_decay` must be 'auto' or in \[0, 1\], got nan"),
        ("residual_decay", "x", r"`residual_decay` must be 'auto' or in \[0, 1\], got 'x'"),
        ("accuracy", 0, r"`accuracy` must be positive or None, got 0"),
        ("accuracy", -1e-3, r"`accuracy` must be positive or None, got -0.001"),
        ("accuracy", np.inf, r"`accuracy` must be positive or None, got inf"),
        ("l2", -0.1, r"`l2` must be non-negative, got -0.1"),
        ("l2", np.nan, r"`l2` must be non-negative, got nan"),
        ("l2", None, r"`l2` must be non-negative, got None"),
        ("early_stopping", "on", r"`early_stopping` must be 'auto', True or False, got 'on'"),
        ("validation_fraction", 0.0, r"`validation_fraction` must be in \(0, 1\), got 0.0"),
        ("validation_fraction", 1.0, r"`validation_fraction` must be in \(0, 1\), got 1.0"),
        ("validation_fraction", "x", r"`validation_fraction` must be in \(0, 1\), got 'x'"),
        ("n_iter_no_change", 0, r"`n_iter_no_change` must be a positive integer or 'auto', got 0"),
        ("n_iter_no_change", "long", r"`n_iter_no_change` must be a positive integer or 'auto', got 'long'"),
        ("n_jobs", 0, r"`n_jobs` must be None, -1 or a positive integer, got 0"),
        ("n_jobs", 1.5, r"`n_jobs` must be None, -1 or a positive integer, got 1.5"),
        ("random_state", "x", r"'x' cannot be used to seed"),
        ("callbacks", print, r"`callbacks` must be .*got <built-in function print>"),
        ("callbacks", [3], r"`callbacks` must be .*got .*3"),
        ("categorical_features", "color", r"`categorical_features` must be .*, got 'color'"),
        (
            "categorical_features",
            ["color"],
            r"`categorical_features` names column 'color', which `X` does not",
        ),
        ("categorical_features", [0, 3], r"`categorical_features` must lie between 0 and 2, got 3"),
        ("categorical_features", [-1], r"`categorical_features` must lie between 0 and 2, got -1"),
        ("categorical_features", [True, False], r"`categorical_features` must have 3 entries, got 2"),
        ("categorical_features", 0, r"`categorical_features` must be .*got 0"),
        ("categorical_features", [1.5], r"`categorical_features` must .*got .*1.5"),
    ],
)
def test_parameter(parameter, value, message):
    refuses(message, ConvexBoostRegressor(**{"n_rounds": 5, parameter: value}))


@pytest.mark.parametrize("loss", ["absolute", "half_squared", "quantile:0.3", Quantile(0.3)])
def test_a_regression_loss_for_a_classifier(loss):
    refuses(
        r"`loss` must be a classification loss \(.*multiclass_hinge.*softmax.*\), got",
        ConvexBoostClassifier(loss),
    )


@pytest.mark.parametrize("algorithm", ["dual_averaging", "error_feedback"])
def test_a_step_that_does_not_fit_the_algorithm(algorithm):
    estimator = ConvexBoostRegressor(algorithm=algorithm, step="line_search")
    refuses(rf"`algorithm` '{algorithm}' .*`step` 'line_search' does not fit", estimator)


def test_a_step_that_does_not_fit_the_loss():
    estimator = ConvexBoostRegressor("absolute", step="inverse_time")
    refuses(r"`step` 'inverse_time' needs a scale .* or a strongly convex objective", estimator)
    estimator.set_params(l2=0.1).fit(X, Y)


# --- targets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("estimator", [ConvexBoostRegressor, ConvexBoostClassifier])
def test_targets_that_are_not_finite(estimator, value, word):
    y = with_one(Y if estimator is ConvexBoostRegressor else C, value)
    refuses(f"Input y contains {word}", estimator(), y=y)
    if estimator is ConvexBoostRegressor:
        refuses(f"Input y contains {word}", estimator(), y=np.column_stack([Y, y]))
        refuses(f"Input y contains {word}", estimator(), y=pd.Series(y))


@pytest.mark.parametrize("missing", [None, np.nan], ids=["None", "NaN"])
def test_missing_labels(missing):
    labels = np.array(["a", "b", "c"], object)[C]
    labels[4] = missing
    refuses(r"[Ii]nput `?y`? contains|`y` must", ConvexBoostClassifier(), y=labels)


def test_targets_of_the_wrong_kind():
    refuses("could not convert string to float: 'a'", ConvexBoostRegressor(), y=["a"] * N)
    refuses("Unknown label type: continuous", ConvexBoostClassifier(), y=Y)
    refuses(
        r"y should be a 1d array, got an array of shape \(30, 2\)", ConvexBoostClassifier(), y=np.c_[C, C]
    )
    refuses("dim 3", ConvexBoostRegressor(), y=np.zeros((N, 2, 2)))


@pytest.mark.parametrize("estimator", [ConvexBoostRegressor, ConvexBoostClassifier])
def test_no_targets(estimator):
    records = []
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        estimator(callbacks=[records.append]).fit(X, None)
    assert records == []


def test_one_class():
    refuses(
        r"`y` must hold at least 2 classes .*one class: .*'same'", ConvexBoostClassifier(), y=["same"] * N
    )
    weight = (C == 1).astype(float)
    refuses(
        r"`y` must hold at least 2 classes .*one class: .*1", ConvexBoostClassifier(), sample_weight=weight
    )


@pytest.mark.parametrize(
    ("label", "written"),
    [(0.0, "0.0"), (7, "7"), ("same", "'same'"), (True, "True"), (np.float32(2.0), "2.0"), (np.int8(3), "3")],
)
def test_labels_are_written_as_the_user_wrote_them(label, written):
    model = ConvexBoostClassifier("hinge", n_rounds=1)
    refuses(rf"got one class: {written}$", model, y=np.full(N, label))
    other = np.where(np.arange(N) % 2, label, type(label)(0 if label else 1))
    unknown = {"same": "x", True: 5}.get(label, label + type(label)(4) if label != "same" else 0)
    y_val = np.where(np.arange(N) % 3, other, unknown)
    with pytest.raises(ValueError, match="holds a class that `y` does not: ") as error:
        model.fit(X, other, X_val=X, y_val=y_val)
    assert "np." not in str(error.value)


@pytest.mark.parametrize("estimator", [ConvexBoostRegressor, ConvexBoostClassifier])
def test_lengths(estimator):
    y = Y if estimator is ConvexBoostRegressor else C
    refuses(r"inconsistent numbers of samples: \[30, 29\]", estimator(), y=y[:-1])
    refuses(r"inconsistent numbers of samples: \[29, 30\]", estimator(), X=X[:-1])


# --- inputs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize(
    "container",
    [
        np.asarray,
        sp.csr_array,
        sp.csc_array,
        pd.DataFrame,
        lambda X: pl.DataFrame(dict(zip("abc", X.T, strict=True))),
    ],
    ids=["array", "csr", "csc", "pandas", "polars"],
)
def test_infinite_inputs(container, value):
    bad = X.copy()
    bad[4, 1] = value
    refuses("Input X contains infinity", ConvexBoostRegressor(), X=container(bad))
    model = ConvexBoostRegressor(n_rounds=2).fit(container(X), Y)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.predict(container(bad))


def test_no_inputs():
    refuses(r"Found array with 0 sample\(s\)", ConvexBoostRegressor(), X=X[:0], y=Y[:0])
    refuses(r"Found array with 0 feature\(s\)", ConvexBoostRegressor(), X=X[:, :0])
    refuses(r"Found array with 0 sample\(s\)", ConvexBoostRegressor(), X=pd.DataFrame(X[:0]), y=Y[:0])


def test_inputs_of_the_wrong_shape():
    refuses("Expected 2D array, got 1D array", ConvexBoostRegressor(), X=X[:, 0])
    refuses("dim 3", ConvexBoostRegressor(), X=X[:, :, None])
    refuses("Complex data not supported", ConvexBoostRegressor(), X=X + 1j)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_column_of_strings(library):
    frame = library.DataFrame({"x": X[:, 0], "color": ["red", "green", "blue"] * 10})
    message = (
        r"column 'color' of `X` holds .* values, not numbers: .*categorical dtype.*`categorical_features`"
    )
    refuses(message, ConvexBoostRegressor(), X=frame)
    refuses(message, ConvexBoostRegressor(categorical_features=["x"]), X=frame)
    refuses(message, ConvexBoostRegressor(categorical_features=None), X=frame)


def test_an_array_of_strings():
    words = np.array([["a", "1"], ["b", "2"]] * 15, object)
    refuses("could not convert string to float: 'a'", ConvexBoostRegressor(), X=words)
    refuses(
        r"column 0 of `X` holds text values, not numbers",
        ConvexBoostRegressor(categorical_features=[1]),
        X=words,
    )


def test_names_of_columns_that_are_not_there():
    frame = pd.DataFrame(X, columns=list("abc"))
    refuses(
        r"`categorical_features` names column 'd', which `X` does not have",
        ConvexBoostRegressor(categorical_features=["a", "d"]),
        X=frame,
    )


# --- weights, validation set, offset -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (with_one(np.ones(N), -1.5), r"`sample_weight` must not be negative, got -1.5"),
        (np.zeros(N), r"[Ss]ample.weight.* (zero|non-zero)"),
        (with_one(np.ones(N), np.nan), "sample_weight contains NaN"),
        (with_one(np.ones(N), np.inf), "sample_weight contains infinity"),
        (np.ones(N - 1), r"`sample_weight` must have shape \(30,\) like the rows of `X`, got \(29,\)"),
        (np.ones((N, 2)), rf"`sample_weight` must have shape \({N},\) like the rows of `X`, got \({N}, 2\)"),
    ],
    ids=["negative", "zero", "nan", "infinite", "short", "matrix"],
)
def test_weights(weight, message):
    refuses(message, ConvexBoostRegressor(), sample_weight=weight)
    refuses(message, ConvexBoostClassifier(), sample_weight=weight)


def test_half_a_validation_set():
    refuses("`X_val` and `y_val` go together, but `y_val` is missing", ConvexBoostRegressor(), X_val=X)
    refuses("`X_val` and `y_val` go together, but `X_val` is missing", ConvexBoostRegressor(), y_val=Y)


@pytest.mark.parametrize(
    ("y_val", "message"),
    [
        (with_one(Y, np.nan), "Input y_val contains NaN"),
        (np.column_stack([Y, Y]), "`y_val` must have 1 outputs like `y`, got 2"),
    ],
    ids=["nan", "outputs"],
)
def test_validation_targets(y_val, message):
    refuses(message, ConvexBoostRegressor(), X_val=X, y_val=y_val)


@pytest.mark.parametrize("value", [3, -1, 1000])
def test_an_unknown_class_in_the_validation_set(value):
    y_val = C.copy()
    y_val[4] = value
    refuses(
        rf"`y_val` holds a class that `y` does not: .*{value}", ConvexBoostClassifier(), X_val=X, y_val=y_val
    )


def test_validation_inputs_are_named():
    bad = X.copy()
    bad[4, 1] = np.inf
    refuses("X_val`? contains infinity", ConvexBoostRegressor(), X_val=bad, y_val=Y)
    refuses("X_val`? has 2 features|`X_val` must have 3 ", ConvexBoostRegressor(), X_val=X[:, :2], y_val=Y)


def test_validation_lengths_are_named():
    refuses("_val", ConvexBoostRegressor(), X_val=X, y_val=Y[:-1])


@pytest.mark.parametrize(("rows", "fraction"), [(1, 0.1), (3, 0.9), (N, 0.99)])
def test_too_few_rows_for_early_stopping(rows, fraction):
    refuses(
        rf"`early_stopping` holds out {rows} of .*{rows} ",
        ConvexBoostRegressor(early_stopping=True, validation_fraction=fraction),
        X=X[:rows],
        y=Y[:rows],
    )


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (Y[:-1], "`offset` must have 30 rows like `X`, got 29"),
        (np.column_stack([Y, Y]), "`offset` must have 1 column, got 2"),
        (with_one(Y, np.nan), "Input offset contains NaN"),
        (with_one(Y, np.inf), "Input offset contains infinity"),
    ],
    ids=["rows", "columns", "nan", "infinite"],
)
def test_offset(offset, message):
    refuses(message, ConvexBoostRegressor(), offset=offset)


def test_offset_of_a_classifier_has_a_column_for_each_class():
    refuses("`offset` must have 3 columns, got 1", ConvexBoostClassifier(), offset=Y)
    two = np.zeros((N, 2))
    refuses("`offset` must have 1 column, got 2", ConvexBoostClassifier(), y=C > 0, offset=two)
    refuses(
        "`offset` must have 2 columns, got 1", ConvexBoostClassifier("multiclass_hinge"), y=C > 0, offset=Y
    )


# --- predictions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict", "staged_predict"])
def test_regressor_before_fit(method):
    with pytest.raises(NotFittedError, match="This ConvexBoostRegressor instance is not fitted yet"):
        list(getattr(ConvexBoostRegressor(), method)(X))


@pytest.mark.parametrize(
    "method",
    [
        *("predict", "decision_function", "predict_proba", "predict_log_proba"),
        *("staged_predict", "staged_decision_function", "staged_predict_proba"),
    ],
)
def test_classifier_before_fit(method):
    with pytest.raises(NotFittedError, match="This ConvexBoostClassifier instance is not fitted yet"):
        list(getattr(ConvexBoostClassifier(), method)(X))


def test_number_of_features_when_predicting():
    model = ConvexBoostRegressor(n_rounds=2).fit(X, Y)
    for wrong in (X[:, :2], np.column_stack([X, X]), sp.csr_array(X[:, :2]), pd.DataFrame(X[:, :2])):
        with pytest.raises(
            ValueError, match=rf"X has {wrong.shape[1]} features, but ConvexBoostRegressor is expecting 3"
        ):
            model.predict(wrong)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.predict(X[0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.predict(X[:0])


def test_a_failed_fit_does_not_spoil_a_fitted_model():
    model = ConvexBoostRegressor(n_rounds=2).fit(X, Y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="`l2`"):
        model.set_params(l2=-1).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected)


# --- errors of other libraries name the parameter too ------------------------------------------------------

ESTIMATORS = [ConvexBoostRegressor, ConvexBoostClassifier, ConvexBoostRanker]
WORDS = [["a", "b", "c"]] * N
BAD_INPUTS = {
    "None": None,
    "a word": "abc",
    "a number": 3.0,
    "one dimension": X[:, 0],
    "three dimensions": X[:, :, None],
    "ragged": [[1, 2], [3]] * (N // 2),
    "a dict": {"a": [1] * N},
    "empty": X[:0],
    "no columns": X[:, :0],
    "words": np.array(WORDS),
    "bytes": np.array([[b"a"]] * N),
    "infinite": np.abs(X) * np.inf,
    "complex": X + 1j,
    "objects": np.array([[object()] * 3] * N, object),
    "a series": pd.Series(Y),
    "a lazy frame": pl.DataFrame(X).lazy(),
    "a frame of words": pd.DataFrame(WORDS),
    "names of two kinds": pd.DataFrame(X, columns=["a", 1, 2]),
}
BAD_TARGETS = {
    "three dimensions": np.zeros((N, 2, 2)),
    "short": Y[:-1],
    "a number": 3,
    "a dict": {},
    "words and numbers": np.array(["a", 1] * (N // 2), object),
    "complex": Y + 1j,
    "infinite": np.abs(Y) * np.inf,
    "masked": np.ma.masked_array(np.round(Y), Y > 0),
    "sparse": sp.csr_array(Y[:, None]),
    "no columns": np.zeros((N, 0)),
}
BAD_NUMBERS = {"a word": "a", "words": ["a"] * N, "missing": [None] * N, "infinite": np.full(N, np.inf)}


def bad_fit(estimator, X=X, y=None, qid=None, **fit):
    if y is None:
        y = Y if estimator is ConvexBoostRegressor else C
    model, records = estimator(n_rounds=2, callbacks=[lambda record: records.append(record)]), []
    if estimator is ConvexBoostRanker:
        fit["qid"] = np.zeros(N) if qid is None else qid
        fit |= {"qid_val": np.zeros(N)} if "X_val" in fit else {}
    with pytest.raises((TypeError, ValueError)) as error:
        model.fit(X, y, **fit)
    assert records == []
    return str(error.value)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", BAD_INPUTS)
def test_inputs_are_named(estimator, name):
    bad = BAD_INPUTS[name]
    qid = np.zeros(0) if name == "empty" else None
    assert re.search(r"\bX\b", bad_fit(estimator, X=bad, qid=qid))
    if bad is not None:
        assert re.search(r"\bX_val\b", bad_fit(estimator, X_val=bad, y_val=Y))
    model = estimator(n_rounds=2)
    model.fit(X, C, **({"qid": np.zeros(N)} if estimator is ConvexBoostRanker else {}))
    with pytest.raises((TypeError, ValueError), match=r"\bX\b"):
        model.predict(bad)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", BAD_TARGETS)
def test_targets_are_named(estimator, name):
    assert re.search(r"\by\b", bad_fit(estimator, y=BAD_TARGETS[name]))
    assert re.search(r"\by_val\b", bad_fit(estimator, X_val=X, y_val=BAD_TARGETS[name]))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", BAD_NUMBERS)
@pytest.mark.parametrize("parameter", ["sample_weight", "offset", "query_weight"])
def test_numbers_are_named(estimator, name, parameter):
    if parameter == "query_weight" and estimator is not ConvexBoostRanker:
        return
    assert re.search(rf"\b{parameter}\b", bad_fit(estimator, **{parameter: BAD_NUMBERS[name]}))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *(("random_state", value) for value in ("x", -1, 1.5, [])),
        *(("verbose", value) for value in ("a", None, -1, 1.5, [], np.nan)),
        *(("early_stopping", value) for value in (None, 2, [], np.array([True, False]))),
        *(("certificate", value) for value in (None, "yes", [], np.array([1, 2]))),
        *(("n_jobs", value) for value in (True, "a", [])),
        *(("output", value) for value in ([], {}, np.array(["best", "last"]))),
        *(("loss", value) for value in ("absolute:", "quantile:")),
        ("categorical_features", [True, 0, 1]),
    ],
    ids=str,
)
def test_parameters_are_named(parameter, value):
    model = ConvexBoostRegressor(**{"n_rounds": 2, parameter: value})
    with pytest.raises(ValueError, match=rf"`{parameter}`"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    "options",
    [
        {"radius": "a"},
        {"weight": []},
        {"time_limit": "a"},
        {"polish": "a"},
        {"polish": 1.5},
        {"polish": None},
    ],
    ids=str,
)
def test_options_of_certify_are_named(options):
    model = ConvexBoostRegressor("absolute", "stump", n_rounds=2).fit(X, Y)
    with pytest.raises(ValueError, match=rf"`{next(iter(options))}` must"):
        model.certify(X, Y, **options)


def test_rows_of_diagnose_are_named():
    model = ConvexBoostClassifier(n_rounds=2).fit(X, C)
    with pytest.raises(ValueError, match="`y` holds a class that the model does not know: 7"):
        model.diagnose(X, C + 7)


def test_masked_entries_are_missing():
    mask = np.random.default_rng(0).random(X.shape) < 0.3
    expected = ConvexBoostRegressor(n_rounds=5).fit(np.where(mask, np.nan, X), Y)
    model = ConvexBoostRegressor(n_rounds=5).fit(np.ma.masked_array(X, mask), Y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    masked = model.predict(np.ma.masked_array(X, mask))
    np.testing.assert_array_equal(masked, expected.predict(np.where(mask, np.nan, X)))


@pytest.mark.parametrize("name", ["sample_weight", "offset"])
def test_masked_numbers_are_not_read_through_the_mask(name):
    X, y = np.arange(20.0)[:, None], np.arange(20.0)
    masked = np.ma.masked_array(np.ones(20), mask=np.arange(20) == 3)
    with pytest.raises(ValueError, match=name):
        ConvexBoostRegressor(learner="stump", n_rounds=2).fit(X, y, **{name: masked})


def test_categories_that_were_numbers_and_are_text_later():
    X = pd.DataFrame({"a": pd.Categorical([1, 2, 3] * 10)})
    model = ConvexBoostRegressor(learner="stump", n_rounds=2).fit(X, np.arange(30.0))
    with pytest.raises(
        ValueError, match="column 'a' of `X` holds text values, but the model was fitted to numbers"
    ):
        model.predict(pd.DataFrame({"a": pd.Categorical(["x", "y"] * 5)}))


def test_polish_is_no_flag():
    X, y = np.arange(20.0)[:, None], np.arange(20.0)
    model = ConvexBoostRegressor("absolute", "stump", n_rounds=2).fit(X, y)
    with pytest.raises(ValueError, match="`polish` must be an integer, got True"):
        model.certify(X, y, polish=True)
