"""Any input gives a model with finite scores, or a ValueError or TypeError that names the argument."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor

#: Numbers that libraries tend to forget.
ODD = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-300, 1e16, 2.0**53, 0.1]
NUMBERS = st.one_of(st.sampled_from(ODD), st.floats(-10, 10), st.floats(), st.integers(-3, 3).map(float))
TAME = st.one_of(st.floats(-5, 5), st.integers(-2, 2).map(float))
LEVELS = st.sampled_from(["a", "b", "c", "", None, "ä", 1, 2.5, np.nan])


def matrices(rows, columns, numbers):
    return hnp.arrays(np.float64, (rows, columns), elements=numbers)


@st.composite
def inputs(draw, rows, columns):
    """X: mostly sane, sometimes odd in what it holds or in its kind."""
    X = draw(matrices(rows, columns, draw(st.sampled_from([TAME, TAME, TAME, NUMBERS]))))
    kind = draw(
        st.sampled_from(["array"] * 4 + ["frame"] * 3 + ["sparse", "list", "float32", "int", "object"])
    )
    if kind == "frame":
        frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(columns)])
        for name in frame:
            as_what = draw(st.sampled_from(["number"] * 4 + ["levels", "category", "time", "bool"]))
            if as_what in ("levels", "category"):
                frame[name] = pd.Series(draw(st.lists(LEVELS, min_size=rows, max_size=rows)), dtype=object)
            if as_what == "category":
                frame[name] = frame[name].astype(str).astype("category")
            if as_what == "time":
                frame[name] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(rows), unit="D")
            if as_what == "bool":
                frame[name] = np.arange(rows) % 2 == 0
        return frame
    if kind == "sparse":
        return sp.csr_array(np.where(np.isnan(X), 0.0, X))
    if kind == "list":
        return X.tolist()
    if kind == "float32":
        with np.errstate(over="ignore"):
            return X.astype(np.float32)
    if kind == "int":
        return np.nan_to_num(X, nan=0.0, posinf=3, neginf=-3).clip(-9, 9).astype(int)
    return X.astype(object) if kind == "object" else X


@st.composite
def targets(draw, rows, task):
    rows = draw(st.sampled_from([rows] * 9 + [max(rows - 1, 0)]))
    if task == "regression":
        return draw(hnp.arrays(np.float64, rows, elements=draw(st.sampled_from([TAME, TAME, TAME, NUMBERS]))))
    labels = draw(
        st.sampled_from([[0, 1], [0, 1, 2], ["a", "b"], [-1, 1], [True, False], [0, 5, 9], [1.5, 2]])
    )
    if task == "ranking":
        labels = draw(st.sampled_from([[0, 1], [0, 1, 2], [0, 1, 2, -1], [0.5, 1.0]]))
    return np.array([labels[draw(st.integers(0, len(labels) - 1))] for _ in range(rows)])


@st.composite
def weights(draw, rows):
    return draw(
        st.one_of(
            st.none(),
            st.none(),
            hnp.arrays(np.float64, rows, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0, 1e-9])),
            hnp.arrays(np.float64, rows, elements=NUMBERS),
        )
    )


#: Values to draw from, good ones first; None stands for "leave the default".
PARAMETERS = {
    "learner": [None, None, "stump", "additive", "tree", "no_such_learner", 3],
    "algorithm": [None, None, "naive", "repeated", "error_feedback", "nope"],
    "n_rounds": [1, 2, 3, 0, -1, 1.5, "many"],
    "learning_rate": [None, None, None, 0.1, 1.0, 100.0, 0.0, np.nan, "fast"],
    "early_stopping": [None, None, False, True, "yes"],
    "l2": [None, None, None, 0.1, 1e10, -1.0, np.inf],
    "envelope": [None, None, None, 0.0, 2.0, -1.0],
    "validation_fraction": [None, None, None, 0.5, 0.0, 1.0],
    "output": [None, None, "last", "average", "first"],
    "random_state": [0, None, 2**31, -1, "seed"],
    "n_jobs": [1, 1, None, 0, 1.5],
    "max_weak_learners": [None, None, 2, 0],
}
LOSSES = {
    "regression": [None, "absolute", "huber", "quantile:0.9", "poisson", "epsilon_insensitive", "quantile:2"],
    "classification": [None, "multiclass_hinge", "logistic", "hinge", "exponential", "absolute"],
    "ranking": [None, "ranking_hinge", "half_squared"],
}
ESTIMATORS = {
    "regression": ConvexBoostRegressor,
    "classification": ConvexBoostClassifier,
    "ranking": ConvexBoostRanker,
}
#: An argument, as the messages name them.
NAMES = ["X", "y", "sample_weight", "qid"]
ARGUMENT = re.compile(rf"`({'|'.join([*NAMES, *PARAMETERS, 'loss', 'quantile'])})\b|\b({'|'.join(NAMES)})\b")


def attempt(task):
    """Return what a task returns; None if it raises an error that names an argument."""
    try:
        return task()
    except (ValueError, TypeError) as error:
        if ARGUMENT.search(str(error)) is None:
            raise AssertionError("the message names no argument") from error
        return None


@st.composite
def cases(draw):
    task = draw(st.sampled_from(list(ESTIMATORS)))
    rows = draw(st.sampled_from([0, 1, 2, 3, 5, 8, 12, 40, 60]))
    columns = draw(st.sampled_from([0, 1, 2, 3]))
    names = draw(st.lists(st.sampled_from(list(PARAMETERS)), max_size=3, unique=True))
    parameters = {"n_rounds": 2, "n_jobs": 1, "random_state": 0}
    parameters |= {name: draw(st.sampled_from(PARAMETERS[name])) for name in names}
    parameters["loss"] = draw(st.sampled_from(LOSSES[task]))
    fit = {"X": draw(inputs(rows, columns)), "y": draw(targets(rows, task))}
    if task == "ranking":
        fit["qid"] = draw(st.sampled_from([np.arange(rows) // 3, np.zeros(rows, int), np.arange(rows)]))
    fit["sample_weight"] = draw(weights(rows))
    return task, {name: value for name, value in parameters.items() if value is not None}, fit


def check(case):
    task, parameters, fit = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A number that went wrong on its way; scikit-learn's own checks warn of ∞ − ∞.
        warnings.filterwarnings("error", category=RuntimeWarning, module="convexboost")
        model = attempt(lambda: ESTIMATORS[task](**parameters).fit(**fit))
        if model is None:
            return
        assert np.isfinite(model.model_.predict(model._check_inputs(fit["X"]))).all()
        predicted = model.predict(fit["X"])
        assert len(predicted) == len(fit["y"])
        if task == "classification":
            assert set(predicted) <= set(model.classes_)
        else:
            assert np.isfinite(predicted).all()


def fuzzed(count):
    suppressed = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=count, deadline=None, database=None, derandomize=True, suppress_health_check=suppressed
    )


@fuzzed(100)
@given(cases())
def test_fit_and_predict(case):
    check(case)


@pytest.mark.slow
@settings(fuzzed(10_000), phases=[Phase.generate, Phase.shrink])
@given(cases())
def test_fit_and_predict_many_times(case):
    check(case)


@fuzzed(100)
@given(st.data())
def test_predict(data):
    """Any X for a model that is fine."""
    rng = np.random.default_rng(0)
    model = ConvexBoostRegressor(n_rounds=2, random_state=0, n_jobs=1).fit(
        rng.normal(size=(60, 2)), rng.normal(size=60)
    )
    X = data.draw(inputs(data.draw(st.integers(0, 6)), data.draw(st.integers(0, 3))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        predicted = attempt(lambda: model.predict(X))
    assert predicted is None or np.isfinite(predicted).all()


def test_targets_that_are_too_large():
    y = np.where(np.arange(40) % 2, 1.7e308, 0.0)
    with pytest.raises(ValueError, match=r"`y` must lie between -1e300 and 1e300, got 1.7e\+308"):
        ConvexBoostRegressor(n_rounds=2).fit(np.arange(40.0)[:, None], y)


def test_an_envelope_narrower_than_any_number():
    model = ConvexBoostRegressor("poisson", n_rounds=2).fit(np.zeros((2, 3)), [0.0, 2.0**512])
    assert np.isfinite(model.predict(np.zeros((1, 3)))).all()


def test_pairs_without_a_weight():
    weight = [0.0, 0.0, 0.0, 1e308, 1.2e37]
    with pytest.raises(ValueError, match="`sample_weight` must give some pair of rows in a query a weight"):
        ConvexBoostRanker(n_rounds=2).fit(np.zeros((5, 1)), [0, 0, 0, 0, 1], [0, 0, 0, 1, 1], weight)
