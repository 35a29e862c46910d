"""A fit that raises leaves an estimator as it was; one that was not fitted keeps the rounds before Ctrl-C."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.planning import Map, MaxMarginPlanner, Path
from tests.interrupter import Interrupter

rng = np.random.default_rng(0)
N = 90
X, OTHER = rng.normal(size=(N, 3)), pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
Y, CLASSES, QUERIES = X[:, 0] + rng.normal(size=N), np.arange(N) % 3, np.arange(N) // 3


def maps(names, shape=(4, 5)):
    """A map and a straight path across it."""
    features = rng.random((*shape, len(names)))
    cells = np.array([(1, c) for c in range(shape[1])])
    return [Map(features, tuple(names))], [[Path(cells)]]


#: estimator, a first fit, another one, and a call that needs a model
CASES = {
    "regressor": (
        ConvexBoostRegressor("absolute", n_rounds=5, n_jobs=1, random_state=0),
        ((X, Y), {}),
        ((OTHER, np.column_stack([Y, Y])), {}),
        lambda model, fit: model.predict(fit[0][0]),
    ),
    "validated": (
        ConvexBoostRegressor("absolute", n_rounds=5, n_jobs=1, random_state=0, early_stopping=True),
        ((X, Y), {}),
        ((OTHER, Y), {"X_val": OTHER, "y_val": Y}),
        lambda model, fit: model.predict(fit[0][0]),
    ),
    "certified": (
        ConvexBoostClassifier("multiclass_hinge", "stump", n_rounds=5, n_jobs=1, l2=0.1, certificate=True),
        ((X, CLASSES), {}),
        ((OTHER, np.array(["x", "y"])[CLASSES % 2]), {}),
        lambda model, fit: (model.predict(fit[0][0]), str(model.certificate_)),
    ),
    "classifier": (
        ConvexBoostClassifier(n_rounds=5, n_jobs=1, random_state=0),
        ((X, CLASSES), {}),
        ((OTHER, np.array(["x", "y"])[CLASSES % 2]), {}),
        lambda model, fit: (model.predict(fit[0][0]), model.predict_proba(fit[0][0])),
    ),
    "ranker": (
        ConvexBoostRanker(n_rounds=5, n_jobs=1, random_state=0),
        ((X, CLASSES, QUERIES), {}),
        ((OTHER, CLASSES, QUERIES), {}),
        lambda model, fit: model.predict(fit[0][0]),
    ),
    "planner": (
        MaxMarginPlanner(n_rounds=4, random_state=0),
        (maps(["a", "b"]), {}),
        (maps(["c"]), {}),
        lambda model, fit: model.costs(fit[0][0][0]),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def count_lines(model, fit):
    model = clone(model).fit(*fit[0], **fit[1])  # imports, compiles
    with Interrupter(0) as trace:
        model.fit(*fit[0], **fit[1])
    return trace.count


def check(model, before):
    """The estimator has its old attributes, the very same."""
    after = vars(model)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("refit", [False, True])
def test_interrupted_anywhere(case, refit):
    model, first, second, use = case
    lines = count_lines(model, second)
    kept = 0
    early, late = (
        np.geomspace(1, lines - 30, 20),
        np.linspace(lines / 2, lines - 30, 8),
    )  # late: in the rounds
    for at in np.unique(np.concatenate([early, late]).astype(int)):
        model = clone(model)
        if refit:
            model.fit(*first[0], **first[1])
        before = dict(vars(model))
        with pytest.raises(KeyboardInterrupt) as raised, Interrupter(at):
            model.fit(*second[0], **second[1])
        if "model_" in vars(model) and not refit:  # a whole model of the finished rounds
            assert model.stop_kind_ == "interrupted"
            assert 0 < model.n_rounds_ == len(model.history_["objective"]) - 1
            assert f"keeps the model of {model.n_rounds_} round" in str(raised.value)
            use(model, second)
            kept += 1
            continue
        check(model, before)
        if refit:
            use(model, first)
        else:
            with pytest.raises(NotFittedError):
                use(model, second)
    assert kept > 0 or refit


@pytest.mark.parametrize("refit", [False, True])
def test_wrong_rows_change_nothing(case, refit):
    model, first, second, _ = case
    model = clone(model)
    if refit:
        model.fit(*first[0], **first[1])
    before = dict(vars(model))
    (inputs, targets, *rest), options = second
    with pytest.raises(ValueError):
        model.fit(inputs, targets[:-1], *rest, **options)
    check(model, before)


@pytest.mark.parametrize("refit", [False, True])
def test_a_callback_that_raises_changes_nothing(case, refit):
    model, first, second, _ = case
    model = clone(model)
    if refit:
        model.fit(*first[0], **first[1])

    def broken(record):
        if record.round == 2:
            raise RuntimeError("broken")

    model.set_params(callbacks=[broken])
    before = dict(vars(model))
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(*second[0], **second[1])
    check(model, before)


def test_interrupted_in_the_rounds_the_model_is_that_of_the_finished_rounds():
    """Ctrl-C in the third round."""

    def interrupt(record):
        if record.round == 2:
            raise KeyboardInterrupt

    for learner, options in (
        ("stump", {"certificate": True, "l2": 0.1}),
        ("tree", {"early_stopping": False}),
    ):
        model = ConvexBoostRegressor("huber", learner, n_rounds=6, n_jobs=1, random_state=0, **options)
        stopped = clone(model).set_params(n_rounds=2).fit(X, Y)
        with pytest.raises(KeyboardInterrupt, match="keeps the model of 2 rounds"):
            model.set_params(callbacks=[interrupt]).fit(X, Y)
        assert (model.stop_kind_, stopped.stop_kind_) == ("interrupted", "rounds")
        np.testing.assert_array_equal(model.predict(X), stopped.predict(X))
        if model.certificate:
            assert str(model.certificate_) == str(stopped.certificate_)
            assert model.certificate_.objective == model.history_["objective"].min()


def test_no_round_finished_no_model():
    def interrupt(record):
        raise KeyboardInterrupt

    model = ConvexBoostRegressor(learner="stump", callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_warning_made_an_error_changes_nothing():
    model = ConvexBoostRegressor(learner="stump", step="constant:1e6")
    with pytest.raises(ConvergenceWarning):  # warnings are errors in these tests
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
