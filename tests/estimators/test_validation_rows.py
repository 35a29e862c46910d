"""Rows that a user gives to `fit` for validation, `scoring`, and the sets of `eval_set`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    make_scorer,
    max_error,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.estimators import _validation
from convexboost.learners import Tree
from convexboost.losses import Quantiles, WorstGroup
from convexboost.metrics import ndcg

N, N_VAL = 120, 80
RNG = np.random.default_rng(0)
X, X_VAL = RNG.normal(size=(N, 3)), RNG.normal(size=(N_VAL, 3))
Y, Y_VAL = X[:, 0] + RNG.normal(size=N), X_VAL[:, 0] + RNG.normal(size=N_VAL)
LABEL, LABEL_VAL = np.where(Y > 0.5, "yes", "no"), np.where(Y_VAL > 0.5, "yes", "no")
THREE, THREE_VAL = np.digitize(Y, [-0.5, 0.5]), np.digitize(Y_VAL, [-0.5, 0.5])
QID, QID_VAL = np.arange(N) % 12, np.arange(N_VAL) % 8
WEIGHT, WEIGHT_VAL = RNG.integers(1, 4, N).astype(float), RNG.integers(1, 4, N_VAL).astype(float)
OFFSET, OFFSET_VAL = 0.5 * X[:, 0], 0.5 * X_VAL[:, 0]
ROWS = {"X_val": X_VAL, "y_val": Y_VAL}
LABELS = {"X_val": X_VAL, "y_val": LABEL_VAL}


def regressor(loss="half_squared", learner="stump", **options):
    options = {"n_rounds": 60, "n_iter_no_change": 8, "random_state": 0} | options
    if options.get("early_stopping") is False:
        del options["n_iter_no_change"]
    return ConvexBoostRegressor(loss, learner, **options)


def classifier(loss="logistic", learner="stump", **options):
    options = {"n_rounds": 60, "n_iter_no_change": 8, "random_state": 0} | options
    if options.get("early_stopping") is False:
        del options["n_iter_no_change"]
    return ConvexBoostClassifier(loss, learner, **options)


def ranker(**options):
    options = {"n_rounds": 40, "n_iter_no_change": 8, "random_state": 0} | options
    return ConvexBoostRanker(learner="stump", **options)


# --- rows that are given are used --------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["half_squared", "absolute", "huber", WorstGroup("half_squared")])
@pytest.mark.parametrize("learner", ["stump", "additive", Tree(max_leaves=8)])
def test_training_stops_by_the_rows_given(loss, learner):
    groups = {"groups": QID % 3, "groups_val": QID_VAL % 3} if isinstance(loss, WorstGroup) else {}
    model = regressor(loss, learner, n_rounds=400).fit(X, Y, **ROWS, **groups)
    curve = model.history_["validation"]
    assert model.stop_kind_ == "no_change"
    assert model.n_rounds_ < 400
    assert model.best_round_ == np.argmin(curve) == model.n_rounds_ - 8
    assert model.model_.n_rounds == model.best_round_
    same = clone(model).set_params(early_stopping=True).fit(X, Y, **ROWS, **groups)
    np.testing.assert_array_equal(same.predict(X_VAL), model.predict(X_VAL))


@pytest.mark.parametrize("loss", ["softmax", "logistic", "hinge", "multiclass_hinge"])
def test_a_classifier_stops_too(loss):
    model = classifier(loss, n_rounds=400).fit(X, LABEL, **LABELS)
    assert model.stop_kind_ == "no_change"
    assert model.best_round_ == np.argmin(model.history_["validation"])


def test_a_ranker_stops_too():
    model = ranker(n_rounds=400).fit(X, THREE, QID, X_val=X_VAL, y_val=THREE_VAL, qid_val=QID_VAL)
    assert model.stop_kind_ == "no_change"
    assert model.model_.n_rounds == np.argmin(model.history_["validation"])


def test_without_early_stopping_the_rows_are_only_watched():
    watched = regressor(early_stopping=False).fit(X, Y, **ROWS)
    blind = regressor(early_stopping=False).fit(X, Y)
    assert watched.n_rounds_ == 60
    assert np.argmin(watched.history_["validation"]) < watched.best_round_
    np.testing.assert_array_equal(watched.predict(X_VAL), blind.predict(X_VAL))
    assert np.isfinite(watched.history_["validation"]).all()


def test_as_many_rounds_as_folds_may_choose():
    """`n_rounds`="auto" is the same limit wherever rows that validate choose the number."""
    limits = []
    for early_stopping in ("auto", True):
        model = regressor(n_rounds="auto", early_stopping=early_stopping, callbacks=[lambda _: True])
        limits.append(model.fit(X, Y, **ROWS)._settled.options.n_rounds)
    assert limits == [1000, 1000]


# --- weights and offsets -----------------------------------------------------------------------------------


def twice(values):
    return np.repeat(values, WEIGHT_VAL.astype(int), axis=0)


@pytest.mark.parametrize("learner", ["stump", Tree(max_leaves=4)])
def test_a_validation_weight_is_as_many_rows(learner):
    weighted = regressor(learner=learner).fit(X, Y, **ROWS, sample_weight_val=WEIGHT_VAL)
    copied = regressor(learner=learner).fit(X, Y, X_val=twice(X_VAL), y_val=twice(Y_VAL))
    plain = regressor(learner=learner).fit(X, Y, **ROWS)
    np.testing.assert_allclose(weighted.history_["validation"], copied.history_["validation"], rtol=1e-12)
    assert not np.allclose(weighted.history_["validation"][:5], plain.history_["validation"][:5])


def test_validation_rows_without_weight_do_not_count():
    some = np.arange(N_VAL) < 30
    zero = regressor().fit(X, Y, **ROWS, sample_weight_val=some.astype(float))
    fewer = regressor().fit(X, Y, X_val=X_VAL[some], y_val=Y_VAL[some])
    np.testing.assert_array_equal(zero.history_["validation"], fewer.history_["validation"])


def test_weights_of_a_ranker():
    rows = {"X_val": X_VAL, "y_val": THREE_VAL, "qid_val": QID_VAL}
    one = ranker().fit(X, THREE, QID, **rows)
    halves = ranker().fit(X, THREE, QID, **rows, sample_weight_val=np.full(N_VAL, 0.5))
    some = ranker().fit(X, THREE, QID, **rows, sample_weight_val=WEIGHT_VAL)
    np.testing.assert_allclose(one.history_["validation"], halves.history_["validation"], rtol=1e-12)
    assert not np.allclose(one.history_["validation"][:5], some.history_["validation"][:5])


def test_an_offset_of_the_validation_rows():
    model = regressor().fit(X, Y, offset=OFFSET, offset_val=OFFSET_VAL, **ROWS)
    values = [np.mean((OFFSET_VAL + F - Y_VAL) ** 2) / 2 for F in model.staged_predict(X_VAL)]
    np.testing.assert_allclose(model.history_["validation"][1 : len(values) + 1], values)
    assert model.history_["validation"][0] == pytest.approx(np.mean((OFFSET_VAL - Y_VAL) ** 2) / 2)
    ranked = ranker().fit(
        X, THREE, QID, offset=OFFSET, X_val=X_VAL, y_val=THREE_VAL, qid_val=QID_VAL, offset_val=OFFSET_VAL
    )
    assert np.isfinite(ranked.history_["validation"]).all()


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 5.0}])
def test_class_weights_count_in_the_validation_loss(class_weight):
    """By the factors of the training rows; a scorer does not get them."""
    model = classifier(class_weight=class_weight, scoring="accuracy").fit(X, LABEL, **LABELS)
    factors = {"no": 1.0, "yes": 5.0}
    if class_weight == "balanced":
        factors = {label: N / (2 * np.sum(label == LABEL)) for label in ("no", "yes")}
    weight = np.array([factors[label] for label in LABEL_VAL])
    plain = classifier(n_rounds=model.n_rounds_).fit(
        X,
        LABEL,
        np.array([factors[label] for label in LABEL]),
        **LABELS,
        sample_weight_val=weight,
    )
    common = len(plain.history_["validation"])
    np.testing.assert_allclose(
        model.history_["validation"][:common], plain.history_["validation"][: model.n_rounds_ + 1], rtol=1e-9
    )
    assert model.history_["score"][model.best_round_] == pytest.approx(model.score(X_VAL, LABEL_VAL))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sample_weight_val": WEIGHT_VAL[1:]}, r"`sample_weight_val`"),
        ({"sample_weight_val": -WEIGHT_VAL}, r"`sample_weight_val` must not be negative, got -3"),
        ({"sample_weight_val": 0 * WEIGHT_VAL}, r"`sample_weight_val` .*zero"),
        ({"sample_weight_val": WEIGHT_VAL * np.nan}, r"sample_weight_val"),
        ({"offset_val": OFFSET_VAL}, r"`offset_val` would be ignored: `offset` is missing"),
        ({"offset": OFFSET}, r"`offset_val` is missing: `offset` of the rows in `X_val`"),
        (
            {"offset": OFFSET, "offset_val": OFFSET_VAL[1:]},
            r"`offset_val` must have 80 rows like `X_val`, got 79",
        ),
        (
            {"offset": OFFSET, "offset_val": np.ones((N_VAL, 2))},
            r"`offset_val` must have 1 column, got 2",
        ),
        ({"offset": OFFSET, "offset_val": OFFSET_VAL * np.nan}, r"offset_val"),
    ],
)
def test_bad_arguments_for_validation(given, message):
    seen = []
    with pytest.raises(ValueError, match=message):
        regressor(callbacks=[seen.append]).fit(X, Y, **ROWS, **given)
    assert not seen


@pytest.mark.parametrize("name", ["sample_weight_val", "offset_val"])
def test_arguments_without_rows(name):
    with pytest.raises(ValueError, match=rf"`{name}` would be ignored: `X_val` is missing"):
        regressor().fit(X, Y, **{name: WEIGHT_VAL})


# --- scoring -----------------------------------------------------------------------------------------------


def scores_of(model):
    """The recorded scores of the rounds that are in the model."""
    return model.history_["score"][1 : model.model_.n_rounds + 1]


def test_scores_are_those_of_the_model():
    """Each round as if the model had ended there."""
    model = classifier(scoring="roc_auc").fit(X, LABEL, **LABELS)
    found = [roc_auc_score(LABEL_VAL, F) for F in model.staged_decision_function(X_VAL)]
    np.testing.assert_allclose(scores_of(model), found, rtol=1e-12)
    assert model.history_["score"][model.best_round_] == model.history_["score"].max()
    assert model.stop_kind_ == "no_change"
    assert model.stop_reason_ == "the validation score has not improved for 8 rounds"
    assert model.history_["score"][0] == 0.5

    model = classifier("softmax", scoring="neg_log_loss").fit(X, THREE, X_val=X_VAL, y_val=THREE_VAL)
    found = [-log_loss(THREE_VAL, P) for P in model.staged_predict_proba(X_VAL)]
    np.testing.assert_allclose(scores_of(model), found, rtol=1e-9)

    model = regressor(scoring="neg_mean_absolute_error").fit(X, Y, **ROWS)
    found = [-mean_absolute_error(Y_VAL, p) for p in model.staged_predict(X_VAL)]
    np.testing.assert_allclose(scores_of(model), found, rtol=1e-12)


def test_a_score_chooses_another_round_than_the_loss():
    by_loss = classifier(n_iter_no_change=30).fit(X, LABEL, **LABELS)
    by_score = classifier(n_iter_no_change=30, scoring="accuracy").fit(X, LABEL, **LABELS)
    assert by_score.best_round_ != by_loss.best_round_
    assert by_score.best_round_ == np.argmax(by_score.history_["score"])
    assert by_score.score(X_VAL, LABEL_VAL) >= by_loss.score(X_VAL, LABEL_VAL)
    assert np.isnan(by_loss.history_["score"]).all()


def test_none_is_the_score_of_the_model():
    model = regressor(scoring=None).fit(X, Y, **ROWS, sample_weight_val=WEIGHT_VAL)
    best = model.history_["score"][model.best_round_]
    assert best == pytest.approx(r2_score(Y_VAL, model.predict(X_VAL), sample_weight=WEIGHT_VAL))
    model = classifier(scoring=None).fit(X, LABEL, **LABELS)
    assert model.history_["score"][model.best_round_] == accuracy_score(LABEL_VAL, model.predict(X_VAL))
    model = ranker(scoring=None).fit(X, THREE, QID, X_val=X_VAL, y_val=THREE_VAL, qid_val=QID_VAL)
    best = ndcg(THREE_VAL, model.predict(X_VAL), QID_VAL)
    assert model.history_["score"][model.best_round_] == pytest.approx(best)
    assert model.history_["score"].max() == pytest.approx(best)


def test_several_outputs():
    both, both_val = np.column_stack([Y, -Y]), np.column_stack([Y_VAL, -Y_VAL])
    model = regressor(scoring="r2").fit(X, both, X_val=X_VAL, y_val=both_val)
    best = r2_score(both_val, model.predict(X_VAL))
    assert model.history_["score"][model.best_round_] == pytest.approx(best)
    quantiles = regressor(Quantiles((0.2, 0.8)), scoring=None).fit(X, Y, **ROWS)
    assert quantiles.history_["score"][quantiles.best_round_] == pytest.approx(quantiles.score(X_VAL, Y_VAL))


def test_callables_get_what_they_ask_for():
    seen = {}

    def plain(estimator, inputs, y):
        seen["plain"] = inputs, y
        return -mean_absolute_error(y, estimator.predict(inputs))

    def curious(estimator, inputs, y, sample_weight=None, groups=None):
        seen["curious"] = sample_weight, groups
        return -mean_absolute_error(y, estimator.predict(inputs))

    groups = {"groups": QID % 3, "groups_val": QID_VAL % 3}
    for scoring in (plain, curious):
        regressor(WorstGroup("half_squared"), scoring=scoring).fit(
            X, Y, **ROWS, sample_weight_val=WEIGHT_VAL, **groups
        )
    np.testing.assert_array_equal(seen["plain"][0], X_VAL)
    np.testing.assert_array_equal(seen["plain"][1], Y_VAL)
    np.testing.assert_array_equal(seen["curious"][0], WEIGHT_VAL)
    np.testing.assert_array_equal(seen["curious"][1], QID_VAL % 3)

    made = make_scorer(mean_absolute_error, greater_is_better=False)
    a = regressor(scoring=made).fit(X, Y, **ROWS, sample_weight_val=WEIGHT_VAL)
    b = regressor(scoring="neg_mean_absolute_error").fit(X, Y, **ROWS, sample_weight_val=WEIGHT_VAL)
    np.testing.assert_array_equal(a.history_["score"], b.history_["score"])


def test_a_scorer_for_queries():
    def first(estimator, inputs, y, qid):
        return ndcg(y, estimator.predict(inputs), qid, k=1)

    model = ranker(scoring=first).fit(X, THREE, QID, X_val=X_VAL, y_val=THREE_VAL, qid_val=QID_VAL)
    best = ndcg(THREE_VAL, model.predict(X_VAL), QID_VAL, k=1)
    assert model.history_["score"].max() == pytest.approx(best)


def test_rows_held_out_can_be_scored():
    model = classifier(early_stopping=True, scoring="roc_auc").fit(X, LABEL, WEIGHT)
    assert np.isfinite(model.history_["score"]).all()
    assert model.best_round_ == np.argmax(model.history_["score"])


def test_folds_can_be_scored():
    """Once, at the rows that each member leaves out; the constants of the members count as one."""
    model = classifier(learner=Tree(max_leaves=4), scoring="roc_auc").fit(X, LABEL, WEIGHT)
    assert model.n_members_ > 1
    assert model.best_round_ == np.argmax(model.history_["score"])
    assert 0.5 < model.history_["score"].max() < 1.0
    assert model.history_["score"][0] == 0.5


def test_folds_are_scored_as_one_set():
    """Scorers that need all classes work where a class is missing in the rows of a fold."""
    fold = _validation.folds_of_rows(X, np.zeros(N), None, False).argmax(axis=0)
    rare = LABEL.astype(object)
    rare[[np.argmax(fold == 0), np.argmax(fold == 1)]] = "rare"
    for scoring in ("roc_auc_ovr", "neg_log_loss"):
        model = classifier("softmax", "tree", scoring=scoring).fit(X, rare)
        assert model.n_members_ == _validation.N_FOLDS
        assert np.isfinite(model.history_["score"]).all()
    assert model.history_["score"].max() == pytest.approx(-model.history_["validation"].min(), rel=0.02)

    def fold(model, X, y, sample_weight):
        seen.append((X, y, sample_weight))
        return 0.0

    seen = []
    regressor(learner="tree", scoring=fold, n_rounds=1).fit(X, Y, WEIGHT)
    rows, targets, weight = seen[0]
    found, number = np.unique(targets, return_inverse=True)
    np.testing.assert_array_equal(found, np.sort(Y))
    np.testing.assert_allclose(np.bincount(number, weight), WEIGHT[np.argsort(Y)])
    np.testing.assert_array_equal(rows, X[np.argsort(Y)][number])


def test_a_class_that_cannot_be_held_out():
    alone = np.array(["rare", *LABEL[1:]])
    message = r"`scoring`='roc_auc_ovr' cannot be computed .* which lack the class 'rare': "
    with pytest.raises(ValueError, match=message):
        classifier("softmax", "tree", scoring="roc_auc_ovr").fit(X, alone)
    classifier("softmax", "tree", scoring="accuracy").fit(X, alone)


def test_scores_that_constants_do_not_have():
    """A correlation is NaN at the start, which is a constant."""

    def correlation(estimator, inputs, y):
        predicted = estimator.predict(inputs)
        return np.corrcoef(predicted, y)[0, 1] if np.ptp(predicted) > 0.0 else np.nan

    model = regressor(scoring=correlation).fit(X, Y, **ROWS)
    assert np.isnan(model.history_["score"][0])
    assert model.best_round_ == np.nanargmax(model.history_["score"]) > 0


def test_data_frames():
    """Columns are numbers by the time a scorer sees them."""
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(X[:, 1] > 0, "x", "y"))})
    other = pd.DataFrame({"a": X_VAL[:, 0], "b": pd.Categorical(np.where(X_VAL[:, 1] > 0, "x", "y"))})
    model = classifier("softmax", "tree", scoring="roc_auc")
    model.fit(frame, LABEL, X_val=other, y_val=LABEL_VAL, eval_set=[(other, LABEL_VAL)])
    best = roc_auc_score(LABEL_VAL, model.predict_proba(other)[:, 1])
    assert model.history_["score"][model.best_round_] == pytest.approx(best)
    np.testing.assert_array_equal(model.evals_result_["validation_0"]["score"], model.history_["score"])


@pytest.mark.parametrize("scoring", ["auc", 3, ["roc_auc"], {"a": "roc_auc"}])
def test_unknown_scorers(scoring):
    with pytest.raises(ValueError, match=r"`scoring` must be 'loss', a name .* a callable or None, got"):
        classifier(scoring=scoring).fit(X, LABEL, **LABELS)


def fails(message, model, *data, **rows):
    seen = []
    model.set_params(callbacks=[seen.append])
    with pytest.raises(ValueError, match=message):
        model.fit(*data, **rows)
    assert len(seen) <= 1
    assert not hasattr(model, "n_features_in_")


def test_scorers_that_fail():
    fails(r"`scoring` cannot be used: .*make_scorer", classifier(scoring=accuracy_score), X, LABEL, **LABELS)
    fails(
        r"`scoring`='neg_log_loss' cannot be computed .*predict_proba",
        classifier("hinge", scoring="neg_log_loss"),
        X,
        LABEL,
        **LABELS,
    )
    fails(
        r"`scoring`=make_scorer\(max_error.* cannot be computed .*sample_weight",
        regressor(scoring=make_scorer(max_error, greater_is_better=False)),
        X,
        Y,
        **ROWS,
        sample_weight_val=WEIGHT_VAL,
    )
    fails(
        r"`scoring`=.* must return a number, got 'good'", regressor(scoring=lambda *_: "good"), X, Y, **ROWS
    )
    fails(r"`scoring`=.* is NaN on the validation rows$", regressor(scoring=lambda *_: np.nan), X, Y, **ROWS)
    fails(
        r"cannot be computed on the validation rows: a scorer can only ask .* X that it is given",
        regressor(scoring=lambda model, rows, y: model.predict(rows[:5]).mean()),
        X,
        Y,
        **ROWS,
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss"])
def test_one_class_only(scoring):
    yes = LABEL_VAL == "yes"
    fails(
        rf"`scoring`='{scoring}' .* on the validation rows, which hold one class only, 'yes'",
        classifier(scoring=scoring),
        X,
        LABEL,
        X_val=X_VAL[yes],
        y_val=LABEL_VAL[yes],
    )


def test_scoring_that_would_be_ignored():
    fails(r"`scoring`='r2' would be ignored", regressor(scoring="r2", early_stopping=False), X, Y)
    model = regressor(scoring="r2", early_stopping=False).fit(X, Y, **ROWS)
    assert model.n_rounds_ == 60
    assert model.best_round_ == np.argmin(model.history_["objective"])
    assert np.isfinite(model.history_["score"]).all()


def test_diagnosis_of_a_run_that_a_score_chose():
    found = classifier(scoring="accuracy", n_rounds=100).fit(X, LABEL, **LABELS).diagnose()
    assert "`scoring`" in str([missing.reason for missing in found.unchecked])


# --- sets that are watched ---------------------------------------------------------------------------------


def test_sets_are_followed_and_change_nothing():
    plain = regressor(scoring="r2").fit(X, Y, **ROWS)
    model = regressor(scoring="r2").fit(X, Y, **ROWS, eval_set=[(X_VAL, Y_VAL), (X, Y)])
    assert list(model.evals_result_) == ["validation_0", "validation_1"]
    assert plain.evals_result_ == {}
    for name, column in (("loss", "validation"), ("score", "score")):
        found = model.evals_result_["validation_0"][name]
        np.testing.assert_allclose(found, model.history_[column], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(model.evals_result_["validation_1"]["loss"], model.history_["objective"])
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_sets_with_names_weights_and_offsets():
    sets = {"test": {"X": X_VAL, "y": Y_VAL, "sample_weight": WEIGHT_VAL, "offset": OFFSET_VAL}}
    val = {"sample_weight_val": WEIGHT_VAL, "offset_val": OFFSET_VAL}
    model = regressor().fit(X, Y, offset=OFFSET, **ROWS, **val, eval_set=sets)
    assert list(model.evals_result_["test"]) == ["loss"]
    np.testing.assert_allclose(model.evals_result_["test"]["loss"], model.history_["validation"])
    third = regressor().fit(X, Y, **ROWS, eval_set={"test": (X_VAL, Y_VAL, WEIGHT_VAL)})
    weighted = regressor().fit(X, Y, **ROWS, sample_weight_val=WEIGHT_VAL)
    common = min(third.n_rounds_, weighted.n_rounds_)
    np.testing.assert_allclose(
        third.evals_result_["test"]["loss"][:common], weighted.history_["validation"][:common]
    )


def test_sets_of_a_ranker():
    model = ranker(scoring=None).fit(
        X,
        THREE,
        QID,
        X_val=X_VAL,
        y_val=THREE_VAL,
        qid_val=QID_VAL,
        eval_set={"test": (X_VAL, THREE_VAL, QID_VAL)},
    )
    np.testing.assert_allclose(model.evals_result_["test"]["loss"], model.history_["validation"], atol=1e-14)
    np.testing.assert_allclose(model.evals_result_["test"]["score"], model.history_["score"])


def test_sets_without_other_validation():
    """Folds choose the number of rounds; the sets are watched all the same."""
    model = regressor(learner=Tree(max_leaves=4), scoring="r2").fit(X, Y, eval_set=[(X_VAL, Y_VAL)])
    assert model.n_members_ > 1
    watched = model.evals_result_["validation_0"]
    assert len(watched["loss"]) == model.n_rounds_ + 1
    assert watched["score"][model.best_round_] == pytest.approx(model.score(X_VAL, Y_VAL))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_a_set_that_cannot_be_scored_does_not_cost_the_model():
    yes = LABEL_VAL == "yes"
    with pytest.warns(UserWarning, match=r"`eval_set`: no score of 'yes' is recorded: .*one class only"):
        model = classifier(scoring="roc_auc").fit(
            X, LABEL, **LABELS, eval_set={"yes": (X_VAL[yes], LABEL_VAL[yes])}
        )
    assert np.isnan(model.evals_result_["yes"]["score"][1:]).all()
    assert np.isfinite(model.evals_result_["yes"]["loss"]).all()


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ((X_VAL, Y_VAL), r"`eval_set\[0\]` must be a tuple \(X, y, sample_weight\), .* got ndarray"),
        (X_VAL, r"`eval_set` must be a list of sets or a dict of names and sets, got ndarray"),
        ([(X_VAL,)], r"`eval_set\[0\]` must be a tuple .* got 1 entries"),
        ([{"X": X_VAL}], r"`eval_set\[0\]` needs `y`"),
        ([{"X": X_VAL, "Y": Y_VAL}], r"`eval_set\[0\]` must hold X, y, .* got 'Y'"),
        ([(X_VAL, Y_VAL[1:])], r"`y of eval_set\[0\]` must have 80 rows like `X of eval_set\[0\]`, got 79"),
        ({"a": (X_VAL[:, :2], Y_VAL)}, r"`X of eval_set\['a'\]` must have 3 features, got 2"),
        ([(X_VAL, Y_VAL, -WEIGHT_VAL)], r"`sample_weight of eval_set\[0\]` must not be negative"),
        ([(X_VAL, Y_VAL * np.nan)], r"y of eval_set\[0\]"),
    ],
)
def test_bad_sets(sets, message):
    fails(message, regressor(), X, Y, eval_set=sets)


def test_sets_need_what_training_rows_have():
    fails(
        r"`offset of eval_set\[0\]` is missing: `offset` of the rows in `X of eval_set\[0\]`",
        regressor(),
        X,
        Y,
        offset=OFFSET,
        eval_set=[(X_VAL, Y_VAL)],
    )
    fails(r"`qid of eval_set\[0\]` is missing", ranker(), X, THREE, QID, eval_set=[(X_VAL, THREE_VAL)])
    fails(
        r"`y of eval_set\[0\]` holds a class that `y` does not: 'maybe'",
        classifier(),
        X,
        LABEL,
        eval_set=[(X_VAL, np.full(N_VAL, "maybe"))],
    )
