"""ConvexBoostRanker as a user meets it."""

import gzip
import os
import pickle
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.tree import DecisionTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.kernels import parallel
from convexboost.learners.tree import Tree
from convexboost.losses.absolute import Absolute
from convexboost.metrics import disagreement, ndcg
from tests import reference

N, QUERIES = 200, 20
rng = np.random.default_rng(5)
X, NEW = rng.normal(size=(N, 3)), rng.normal(size=(N, 3))
QID = rng.integers(0, QUERIES, N)  # not adjacent
LEVEL = 3.0 * rng.normal(size=QUERIES)[QID]  # no two queries grade alike
Y = np.digitize(X[:, 0] + 2 * np.abs(X[:, 1]) + LEVEL + 0.5 * rng.normal(size=N), [-3, -1, 1, 3])
WEIGHT = rng.uniform(0.5, 2.0, N)
QUERY_WEIGHT = rng.integers(1, 4, QUERIES)[QID].astype(float)


BOTH = pytest.mark.parametrize("learner", ["tree", "stump"])  #: the default, and the paper's


def ranker(*args, **options):
    return ConvexBoostRanker(*args, **{"n_rounds": 25, "random_state": 0, **options})


def test_it_learns_to_rank():
    model = ConvexBoostRanker(n_rounds=200).fit(X, Y, QID)
    alone = min(reference.disagreement(Y, f, QID) for f in (*X.T, *np.abs(X.T)))
    assert disagreement(Y, model.predict(X), QID) < 0.05 < 0.1 < alone
    assert model.score(X, Y, QID) == ndcg(Y, model.predict(X), QID) > 0.97
    assert model.predict(NEW).shape == (N,)
    assert model.history_["objective"][0] == 1.0
    *_, last = ranker(output="last").fit(X, Y, QID).staged_predict(NEW)
    np.testing.assert_allclose(last, ranker(output="last").fit(X, Y, QID).predict(NEW), rtol=1e-12)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "learner", ["tree", "stump", "sign_stump", "additive", DecisionTreeRegressor(max_depth=2, random_state=0)]
)
@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual", "dual_averaging", "error_feedback"])
def test_every_learner_and_algorithm(learner, algorithm):
    history = ranker(learner=learner, algorithm=algorithm, n_rounds=8).fit(X, Y, QID).history_
    assert np.nanmin(history["objective"]) < 0.8


def test_a_flat_hinge_is_no_way_down():
    """Once all pairs that a tree parts are in order the slope is 0 up to rounding: nothing to follow."""
    rng = np.random.RandomState(42)  # the data of scikit-learn's check of sample weights
    few, grades, times = rng.rand(15, 30), rng.randint(0, 3, size=15), rng.randint(0, 5, size=15)
    few, grades = few.repeat(times, axis=0), grades.repeat(times)
    assert np.abs(ranker().fit(few, grades, np.zeros(len(few))).predict(few)).max() < 2.0


def test_the_objective_is_that_of_all_pairs():
    model = ranker().fit(X, Y, QID, WEIGHT, query_weight=QUERY_WEIGHT)
    expected = reference.ranking_hinge(model.predict(X), Y, QID, WEIGHT, QUERY_WEIGHT)[0]
    assert model.history_["objective"].min() == pytest.approx(expected, rel=1e-9)


def same(a, b):
    np.testing.assert_allclose(a.predict(NEW), b.predict(NEW), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(a.history_["objective"], b.history_["objective"], rtol=1e-8)


@BOTH
def test_weight_two_is_the_row_twice_and_zero_none(learner):
    counts = rng.integers(0, 3, N)
    rows = np.repeat(np.arange(N), counts)
    same(
        ranker(learner=learner).fit(X, Y, QID, counts),
        ranker(learner=learner).fit(X[rows], Y[rows], QID[rows]),
    )


@BOTH
def test_query_weight_two_is_the_query_twice_and_zero_none(learner):
    counts = rng.integers(0, 3, QUERIES)[QID]
    rows = np.repeat(np.arange(N), counts)
    copy = np.arange(len(rows)) - np.searchsorted(rows, rows)
    labels = [f"{QID[n]} for the {c}" for n, c in zip(rows, copy, strict=True)]
    weighted = ranker(learner=learner).fit(X, Y, QID, WEIGHT, query_weight=counts)
    same(weighted, ranker(learner=learner).fit(X[rows], Y[rows], labels, WEIGHT[rows]))
    assert not np.allclose(weighted.predict(NEW), ranker(learner=learner).fit(X, Y, QID, WEIGHT).predict(NEW))


def test_names_and_order_of_queries_do_not_matter():
    plain, order = ranker().fit(X, Y, QID), rng.permutation(N)
    names = np.array(["a", "bc", "ö", *map(str, range(QUERIES - 3))])
    for labels in (names[QID], names[QID].astype(object), pd.Series(names[QID]), QID * 0.5, list(QID)):
        np.testing.assert_array_equal(ranker().fit(X, Y, labels).predict(NEW), plain.predict(NEW))
    same(ranker().fit(X[order], Y[order], names[QID][order]), plain)


def test_only_the_order_of_grades_matters():
    same(ranker().fit(X, Y, QID), ranker().fit(X, np.exp(Y) - 5.0, QID))


@pytest.mark.one_in(2)
@BOTH
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, pd.DataFrame, np.asfortranarray])
def test_inputs(container, learner):
    model, frame = ranker(learner=learner).fit(X, Y, QID, WEIGHT * (WEIGHT > 1)), container(X)
    other = ranker(learner=learner).fit(frame, Y, QID, WEIGHT * (WEIGHT > 1))
    np.testing.assert_array_equal(other.predict(container(NEW)), model.predict(NEW))
    assert other.score(frame, Y, QID) == model.score(X, Y, QID)


@BOTH
def test_threads_change_nothing(monkeypatch, learner):
    monkeypatch.setattr(parallel, "MIN_OPERATIONS", 1)
    one, two = (ranker(n_jobs=n, learner=learner).fit(X, Y, QID) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(NEW), two.predict(NEW))
    np.testing.assert_array_equal(one.history_["objective"], two.history_["objective"])


def test_clone_pickle_repr():
    model = ranker().fit(X, Y, QID)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(clone(model).fit(X, Y, QID).predict(NEW), model.predict(NEW))
    assert repr(ConvexBoostRanker(n_rounds=7)) == "ConvexBoostRanker(n_rounds=7)"
    assert "ConvexBoostRanker" in ConvexBoostRanker()._repr_html_()


@BOTH
def test_an_offset_is_a_start(learner):
    first = ranker(learner=learner, n_rounds=5).fit(X, Y, QID)
    more = ranker(learner=learner).fit(X, Y, QID, offset=first.predict(X))
    assert more.history_["objective"][0] == pytest.approx(first.history_["objective"].min(), rel=1e-9)
    assert disagreement(Y, first.predict(X) + more.predict(X), QID) < disagreement(Y, first.predict(X), QID)


# --- validation --------------------------------------------------------------------------------------------


def test_a_validation_set():
    new = QID < 5
    model = ranker().fit(X[~new], Y[~new], QID[~new], X_val=X[new], y_val=Y[new], qid_val=QID[new])
    expected = reference.ranking_hinge(model.predict(X[new]), Y[new], QID[new])[0]
    assert model.history_["validation"].min() == pytest.approx(expected, rel=1e-9)


def test_early_stopping_holds_out_whole_queries():
    seen = {}

    class Spy(ConvexBoostRanker):
        def _hold_out(self, rows, loss, rng):
            seen["parts"] = super()._hold_out(rows, loss, rng)
            return seen["parts"]

    lonely = np.append(QID, np.arange(1000, 1050))  # queries of one row cannot validate
    X_all, y_all = np.vstack([X, NEW[:50]]), np.append(Y, np.zeros(50))
    weight = np.append(QUERY_WEIGHT, np.ones(50))
    model = Spy(early_stopping=True, validation_fraction=0.2, random_state=0, n_iter_no_change=5)
    model.fit(X_all, y_all, lonely, query_weight=weight)
    kept, held = seen["parts"]
    assert len(np.unique(held.groups.labels)) == 4
    assert not np.isin(held.groups.labels, kept.groups.labels).any()
    assert len(kept.y) + len(held.y) == N + 50
    assert np.isfinite(model.history_["validation"]).all()
    again = clone(model).fit(X_all, y_all, lonely, query_weight=weight)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("labels", [np.zeros(N), np.append(np.zeros(100), np.arange(1, 101))])
def test_early_stopping_with_one_query(labels):
    with pytest.raises(ValueError, match=r"`early_stopping` holds out whole queries, 1 of the 1 with diff"):
        ranker(early_stopping=True).fit(X, Y, labels)


# --- certificates ------------------------------------------------------------------------------------------


def best_value(model, X, y, qid, weight, query_weight):
    """The least mean hinge over all functions of the model's bins, one variable per pair."""
    inputs = model.model_.mapper.prepare(X)
    codes = [inputs.column(j) for j in range(X.shape[1])]
    Z = np.column_stack([column == b for column in codes for b in np.unique(column)]).astype(float)
    i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    pair = query_weight[i] * weight[i] * weight[j]
    cost = np.concatenate([np.zeros(Z.shape[1]), pair / pair.sum()])
    A = np.hstack([Z[j] - Z[i], -np.eye(len(i))])
    bounds = [(None, None)] * Z.shape[1] + [(0, None)] * len(i)
    return linprog(cost, A_ub=A, b_ub=-np.ones(len(i)), bounds=bounds).fun


def test_certify():
    model = ranker(learner="stump:6").fit(X, Y, QID, WEIGHT, query_weight=QUERY_WEIGHT)
    found = model.certify(X, Y, QID, WEIGHT, query_weight=QUERY_WEIGHT, exact=True)
    expected = best_value(model, X, Y, QID, WEIGHT, QUERY_WEIGHT)
    assert found.objective == pytest.approx(model.history_["objective"].min(), rel=1e-9)
    assert found.best().value == pytest.approx(expected, abs=1e-7)
    ridge = ranker(learner="stump:6", l2=0.1, certificate=True).fit(X, Y, QID)
    found = ridge.certify(X, Y, QID, polish=300)
    assert found.met - found.ridge().value <= 0.05 * found.met
    assert ridge.certificate_.gap() >= found.gap() - 1e-9
    with pytest.raises(ValueError, match="`qid` is needed"):
        ridge.certify(X, Y)
    with pytest.raises(NotFittedError):
        ranker().certify(X, Y, QID)


def test_diagnose():
    model = ranker().fit(X, Y, QID)
    assert "qid_val" in str(model.diagnose())
    assert "diagnose(X, y)" not in str(model.diagnose())
    with pytest.raises(ValueError, match="`diagnose` of a ranker takes neither rows nor `trials`"):
        model.diagnose(X, Y)


# --- a user's loss -----------------------------------------------------------------------------------------


class PairLogistic:
    """mean log(1 + exp(f_j − f_i)) over all pairs: what LightGBM's #7018 could not do, for want of qid."""

    constants = {"minimum": 0.0}  # noqa: RUF012

    def total(self, F, y, weight, qid):
        f, better = F[:, 0], (qid[:, None] == qid) & (y > y.T)
        pair = better * np.outer(weight, weight)
        pair /= pair.sum()
        margin = f[:, None] - f
        pull = -pair / (1.0 + np.exp(margin))
        return np.sum(pair * np.logaddexp(0.0, -margin)), (pull.sum(axis=1) - pull.sum(axis=0))[:, None]


def test_a_users_loss_receives_its_queries():
    model = ranker(PairLogistic()).fit(X, Y, QID)
    assert disagreement(Y, model.predict(X), QID) < 0.15
    value = PairLogistic().total(model.predict(X)[:, None], Y[:, None], np.full(N, 1 / N), QID)[0]
    assert model.history_["objective"].min() == pytest.approx(value, rel=1e-9)
    assert model.score(X, Y, QID) > 0.9


def test_a_users_row_loss_does_not_need_them():
    class Squared:
        def evaluate(self, F, y):
            return 0.5 * np.sum((F - y) ** 2, axis=1), F - y

    model = ranker(Squared(), early_stopping=True, random_state=0).fit(X, Y, QID)
    assert np.isfinite(model.history_["validation"]).all()
    fixed = {"n_rounds": 25, "early_stopping": False, "random_state": 0}
    expected = ConvexBoostRegressor(Squared(), Tree(splits="mixed"), **fixed).fit(X, Y).predict(NEW)
    np.testing.assert_array_equal(ranker(Squared(), **fixed).fit(X, Y, QID).predict(NEW), expected)


# --- cross-validation --------------------------------------------------------------------------------------


def by_hand():
    scores = []
    for train, test in GroupKFold(4).split(X, Y, QID):
        model = ranker().fit(X[train], Y[train], QID[train])
        scores.append(model.score(X[test], Y[test], QID[test]))
    return scores


def test_cross_validation_with_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = ranker().set_fit_request(qid=True).set_score_request(qid=True)
        params = {"qid": QID, "groups": QID}
        assert cross_val_score(model, X, Y, cv=GroupKFold(4), params=params).tolist() == by_hand()
        search = GridSearchCV(model, {"n_rounds": [2, 25]}, cv=GroupKFold(4), error_score="raise")
        search.fit(X, Y, qid=QID, groups=QID)
        assert search.best_params_ == {"n_rounds": 25}
        assert search.best_score_ == pytest.approx(np.mean(by_hand()))
        with pytest.raises(UnsetMetadataPassedError, match="qid"):
            cross_val_score(ranker(), X, Y, cv=GroupKFold(4), params=params)


def test_cross_validation_without_routing():
    """scikit-learn then gives `qid` to `fit` alone, so the scorer must know the rows: a frame's index."""
    frame, queries = pd.DataFrame(X), pd.Series(QID)
    options = {"cv": GroupKFold(4), "groups": QID, "params": {"qid": QID}, "error_score": "raise"}

    def scoring(model, X, y):
        return model.score(X, y, queries[X.index])

    found = cross_validate(ranker(), frame, Y, scoring=scoring, **options)
    assert found["test_score"].tolist() == by_hand()
    search = GridSearchCV(ranker(), {"n_rounds": [2, 25]}, cv=GroupKFold(4), scoring=scoring)
    assert search.fit(frame, Y, groups=QID, qid=QID).best_score_ == pytest.approx(np.mean(by_hand()))


def test_score_without_queries_says_what_to_do():
    model = ranker().fit(X, Y, QID)
    with pytest.raises(ValueError, match=r"`qid` is needed by `score`.*enable_metadata_routing.*X\.index"):
        model.score(X, Y)


# --- bad input ---------------------------------------------------------------------------------------------


def refuses(message, *args, **fit):
    records = []
    with pytest.raises(ValueError, match=message):
        ranker(callbacks=[records.append]).fit(*args, **fit)
    assert records == []


def with_one(values, value):
    values = np.array(values, float)
    values[4] = value
    return values


def test_queries():
    refuses(r"`qid` is needed: one query per row \(for a single list qid=np\.zeros\(len\(y\)\)\)", X, Y)
    refuses(r"`qid` must have shape \(200,\) like the rows of `X`, got \(199,\)", X, Y, QID[1:])
    refuses(r"`qid` must have shape \(200,\) .*got \(200, 1\)", X, Y, QID[:, None])
    refuses("`qid` must not contain missing labels", X, Y, with_one(QID, np.nan))
    missing = QID.astype(object)
    missing[3] = None
    refuses("`qid` must not contain missing labels", X, Y, missing)
    missing[3] = "a"
    refuses("`qid` must hold labels of one kind", X, Y, missing)
    refuses("two different grades in some query, but in every query all tie", X, Y, np.arange(N))
    model = ranker().fit(X, Y, QID)
    with pytest.raises(ValueError, match=r"`qid` must have shape \(200,\)"):
        model.score(X, Y, QID[1:])


def test_grades():
    refuses("Input y contains NaN", X, with_one(Y, np.nan), QID)
    refuses("Input y contains infinity", X, with_one(Y, np.inf), QID)
    refuses(r"y should be a 1d array, got an array of shape \(200, 2\)", X, np.column_stack([Y, Y]), QID)
    refuses("inconsistent numbers of samples", X, Y[1:], QID)
    refuses("requires y to be passed", X, None, QID)
    with pytest.raises(ValueError, match=r"`y` must lie between 0 and 1000 .*, got -3"):
        ranker().fit(X, Y - 3, QID).score(X, Y - 3, QID)


def test_weights():
    refuses("`sample_weight` must not be negative, got -1", X, Y, QID, with_one(WEIGHT, -1))
    refuses(r"[Ss]ample.weight.* (zero|non-zero)", X, Y, QID, np.zeros(N))
    for bad, message in (
        (with_one(QUERY_WEIGHT, 9.5), r"same in all rows of a query, got \d(\.\d)? and \d(\.\d)? in query"),
        (-QUERY_WEIGHT, "`query_weight` must be non-negative and not all zero, got -3"),
        (0 * QUERY_WEIGHT, "`query_weight` must be non-negative and not all zero, got 0"),
        (with_one(QUERY_WEIGHT, np.nan), "Input query_weight contains NaN"),
        (QUERY_WEIGHT[1:], r"`query_weight` must have shape \(200,\): one number per row, got \(199,\)"),
        (np.ones(QUERIES), r"`query_weight` must have shape \(200,\): one number per row, got \(20,\)"),
    ):
        refuses(message, X, Y, QID, query_weight=bad)
    refuses("`sample_weight` must not be neg", X, Y, QID, with_one(WEIGHT, -1), query_weight=QUERY_WEIGHT)
    refuses("`qid` is needed", X, Y, query_weight=QUERY_WEIGHT)


def test_validation_rows():
    val = {"X_val": X, "y_val": Y, "qid_val": QID}
    refuses("`qid_val` is missing", X, Y, QID, **{**val, "qid_val": None})
    refuses("`y_val` is missing", X, Y, QID, **{**val, "y_val": None})
    refuses(r"`qid_val` must have shape \(200,\)", X, Y, QID, **{**val, "qid_val": QID[1:]})
    refuses("Input y_val contains NaN", X, Y, QID, **{**val, "y_val": with_one(Y, np.nan)})
    refuses("in every query all tie", X, Y, QID, **{**val, "y_val": np.ones(N)})


@pytest.mark.parametrize("loss", ["absolute", "softmax", Absolute()])
def test_losses_of_other_tasks(loss):
    with pytest.raises(ValueError, match=r"`loss` must be a ranking loss \(ranking_hinge\), got"):
        ranker(loss).fit(X, Y, QID)


@pytest.mark.parametrize("estimator", [ConvexBoostRegressor, ConvexBoostClassifier])
def test_a_ranking_loss_for_others(estimator):
    with pytest.raises(ValueError, match=r"`loss` must be a \w+ loss .*, got 'ranking_hinge'"):
        estimator("ranking_hinge").fit(X, Y, groups=QID)


def test_a_learner_of_several_outputs():
    with pytest.raises(ValueError, match="`learner` 'class_stump' needs at least 2 outputs, got 1"):
        ranker(learner="class_stump").fit(X, Y, QID)


# --- real data ---------------------------------------------------------------------------------------------


def letor(*parts):
    folder = os.environ.get("CONVEXBOOST_DATA")
    if folder is None:
        pytest.skip("set CONVEXBOOST_DATA to the folder with the data sets (mq2008/, ...)")
    text = (gzip.decompress((Path(folder) / f"mq2008/S{i}.txt.gz").read_bytes()) for i in parts)
    X, y, qid = load_svmlight_file(BytesIO(b"".join(text)), n_features=46, query_id=True)
    return X.toarray(), y, qid


@pytest.fixture(scope="module")
def fold():
    """Fold 1 of MQ2008: training, validation and test part, and both algorithms trained on it."""
    parts = letor(1, 2, 3), letor(4), letor(5)
    (X, y, qid), (X_val, y_val, qid_val), _ = parts
    models = {
        algorithm: ConvexBoostRanker(
            "ranking_hinge", "stump", algorithm, n_rounds=100, early_stopping=True
        ).fit(X, y, qid, X_val=X_val, y_val=y_val, qid_val=qid_val)
        for algorithm in ("naive", "residual")
    }
    best = min((disagreement(y, s * X[:, j], qid), j, s) for j in range(46) for s in (1, -1))
    return parts, models, best


def test_mq2008_in_training(fold):
    """Algorithm 3 leaves Algorithm 1 behind, and orders more pairs than the best single feature."""
    ((X, y, qid), _, _), models, (alone, _, _) = fold
    objective = {name: np.nanmin(model.history_["objective"]) for name, model in models.items()}
    assert objective["residual"] < 0.9 * objective["naive"]
    assert disagreement(y, models["residual"].predict(X), qid) < 0.9 * alone


def test_mq2008_on_other_queries(fold):
    """Fewer pairs of the test part are in the wrong order than by the best feature."""
    (_, _, (X, y, qid)), models, (_, j, sign) = fold
    wrong = disagreement(y, models["residual"].predict(X), qid)
    assert wrong < disagreement(y, sign * X[:, j], qid)
