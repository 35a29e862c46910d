"""The estimators with trees: constraints that hold exactly, "auto", groups, frames, few rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.learners import _monotone, _tree_set
from convexboost.learners.tree import Tree
from convexboost.losses.absolute import Absolute
from convexboost.losses.cvar import CVaR
from convexboost.losses.quantile import Quantile
from convexboost.losses.worst_group import WorstGroup

N = 300


def data(seed=0, n=N):
    """Column 0 pulls the wrong way in places; 1 and 3 interact with it; 2 is categorical."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 2] = rng.integers(0, 5, n)
    X[rng.random(n) < 0.2, 0] = np.nan
    X[rng.random(n) < 0.2, 1] = np.nan
    x = np.nan_to_num(X)
    y = np.sin(3 * x[:, 0]) + x[:, 0] * x[:, 1] - x[:, 3] + (x[:, 2] == 2) + 0.3 * rng.standard_t(2, n)
    return X, y


class Softplus:
    """A user's smooth loss of the residual, without anything declared."""

    def evaluate(self, F, y):
        r = F - y
        return np.logaddexp(r, -r).sum(axis=1), np.tanh(r)


class SmoothTotal:
    """A user's functional of all rows: the root of the mean square."""

    def total(self, F, y, weight):
        r = F - y
        value = np.sqrt(weight @ (r * r).sum(axis=1) + 1e-12)
        return value, weight[:, None] * r / value


CASES = {
    "half_squared": {},
    "absolute": {"loss": "absolute"},
    "quantile 0.1": {"loss": "quantile:0.1"},
    "quantile 0.9, average": {"loss": "quantile:0.9", "output": "average"},
    "huber, last": {"loss": "huber:0.5", "output": "last"},
    "epsilon": {"loss": "epsilon_insensitive", "envelope": 0.0},
    "quantiles": {"loss": "quantiles"},
    "user": {"loss": Softplus()},
    "user, all rows": {"loss": SmoothTotal()},
    "sum": {"loss": Absolute() + 0.5 * Quantile(0.9)},
    "cvar": {"loss": CVaR("absolute", 0.5)},
    "ridge": {"loss": "absolute", "l2": 0.2},
    "full residual": {"loss": "absolute", "residual_decay": 1.0, "step": "refit:1.0"},
    "auto step": {"loss": "absolute", "step": "adanorm"},
    "naive": {"loss": "absolute", "algorithm": "naive", "step": "line_search"},
    "repeated": {"loss": "absolute", "algorithm": "repeated"},
    "dual averaging": {"loss": "absolute", "algorithm": "dual_averaging"},
    "error feedback": {"loss": "absolute", "algorithm": "error_feedback", "step": "inverse_sqrt"},
    "early stopping": {"loss": "quantile:0.3", "early_stopping": True, "n_iter_no_change": 5},
}


def sweep(scores, X, column, sign, rng):
    """Predictions along one column, the others as they are in some rows: they must never go back."""
    rows = X[rng.choice(len(X), 40, replace=False)]
    values = np.sort(np.concatenate([X[~np.isnan(X[:, column]), column], [-99.0, 99.0]]))[::4]
    grid = np.repeat(rows, len(values), axis=0)
    grid[:, column] = np.tile(values, len(rows))
    F = scores(grid).reshape(len(rows), len(values), -1)
    steps = sign * np.diff(F, axis=1)
    assert steps.min() >= 0.0  # not a bit of slack: a rounded sum, too, never falls if no term does
    return np.ptp(F, axis=1).max()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("splits", ["best", "random"])
def test_regression_is_monotone(options, splits):
    X, y = data()
    learner = Tree(monotone_constraints={0: 1, 3: -1}, min_samples_leaf=5, splits=splits, max_leaves=12)
    options = {"n_rounds": 12, "random_state": 0, "categorical_features": [2], **options}
    model = ConvexBoostRegressor(learner=learner, **options).fit(X, y)
    rng = np.random.default_rng(1)
    assert sweep(model.predict, X, 0, 1, rng) + sweep(model.predict, X, 3, -1, rng) > 0.0
    for _, tree in model.model_.terms:
        pooled = _monotone.means(tree.values, np.ones(len(tree.values)))
        np.testing.assert_array_equal(_monotone.nearest_monotone(tree, tree.values, pooled), tree.values)


def test_without_constraints_it_is_not_monotone():
    X, y = data()
    model = ConvexBoostRegressor(n_rounds=12, categorical_features=[2]).fit(X, y)
    with pytest.raises(AssertionError):
        sweep(model.predict, X, 0, 1, np.random.default_rng(1))


@pytest.mark.parametrize("n_targets", [2, 3])
def test_several_outputs_are_monotone(n_targets):
    X, y = data()
    Y = np.column_stack([y * (k + 1) + k for k in range(n_targets)])
    for loss in ("half_squared", "absolute"):
        learner = Tree(monotone_constraints=[1, 0, 0, -1], min_samples_leaf=5)
        model = ConvexBoostRegressor(loss, learner, n_rounds=10, random_state=0).fit(X, Y)
        assert sweep(model.predict, X, 0, 1, np.random.default_rng(1)) >= 0.0
        assert sweep(model.predict, X, 3, -1, np.random.default_rng(1)) > 0.0


@pytest.mark.parametrize("loss", ["logistic", "hinge", "exponential", "squared_hinge"])
def test_two_classes_are_monotone(loss):
    X, y = data()
    learner = Tree(monotone_constraints={0: 1, 3: -1}, min_samples_leaf=5)
    model = ConvexBoostClassifier(loss, learner, n_rounds=15, random_state=0).fit(X, y > 0.3)
    rng = np.random.default_rng(1)
    assert sweep(model.decision_function, X, 0, 1, rng) + sweep(model.decision_function, X, 3, -1, rng) > 0.0


def test_counts_and_ranks_are_monotone():
    X, y = data()
    learner = Tree(monotone_constraints={0: 1, 3: -1}, min_samples_leaf=5)
    counts = np.random.default_rng(0).poisson(np.exp(np.clip(y / 3, -2, 2)))
    model = ConvexBoostRegressor("poisson", learner, n_rounds=15).fit(X, counts)
    assert sweep(model.model_.predict, X, 3, -1, np.random.default_rng(1)) > 0.0
    sweep(model.model_.predict, X, 0, 1, np.random.default_rng(1))
    ranker = ConvexBoostRanker(learner=learner, n_rounds=15).fit(X, np.round(y), np.arange(N) % 20)
    assert sweep(ranker.predict, X, 3, -1, np.random.default_rng(1)) > 0.0
    sweep(ranker.predict, X, 0, 1, np.random.default_rng(1))


@pytest.mark.parametrize("loss", ["softmax", "multiclass_hinge"])
def test_every_score_of_several_classes_is_monotone(loss):
    """Scores, each of them; probabilities are differences of scores and need not be."""
    X, y = data()
    learner = Tree(monotone_constraints={3: -1}, min_samples_leaf=5)
    model = ConvexBoostClassifier(loss, learner, n_rounds=8, random_state=0).fit(X, np.digitize(y, [-1, 0.5]))
    sweep(model.model_.predict, X, 3, -1, np.random.default_rng(1))


def test_names_of_columns():
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "kind", "d"]).astype({"kind": "category"})
    model = ConvexBoostRegressor(learner=Tree(monotone_constraints={"d": -1}), n_rounds=5).fit(frame, y)
    other = ConvexBoostRegressor(learner=Tree(monotone_constraints={3: -1}), n_rounds=5).fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), other.predict(frame))
    assert model.certify(frame, y, radius=1.0).gap(radius=1.0) > 0.0
    for monotone, given, message in (
        ({"z": 1}, frame, "names column 'z', which `X` does not have"),
        ({"d": 1}, X, "names column 'd', which `X` does not have"),
        ({"kind": 1}, frame, "column 'kind', which is categorical"),
        ({2: 1}, frame, "column 'kind', which is categorical"),
        ([0, 0, 1, 0], frame, "column 'kind', which is categorical"),
        ({"d": 1, 3: -1}, frame, "column 'd' twice"),
        ({4: 1}, frame, "between 0 and 3, got 4"),
    ):
        with pytest.raises(ValueError, match=message):
            ConvexBoostRegressor(learner=Tree(monotone_constraints=monotone), n_rounds=5).fit(given, y)


# --- groups ------------------------------------------------------------------------------------------------


def test_rankers_draw_whole_queries(monkeypatch):
    X, y = data()
    qid = np.random.default_rng(0).permutation(N) % 30
    seen, draw = [], _tree_set.TreeSet._draw_rows

    def watched(self, *given):
        seen.append(draw(self, *given))
        return seen[-1]

    monkeypatch.setattr(_tree_set.TreeSet, "_draw_rows", watched)
    options = {"learner": Tree(subsample=0.5), "random_state": 0, "early_stopping": False}
    ConvexBoostRanker(n_rounds=5, **options).fit(X, np.round(y), qid)
    assert len(seen) == 5
    for rows in seen:
        assert 0 < len(rows) < N
        assert not set(qid[rows]) & set(np.delete(qid, rows))
    seen.clear()
    ConvexBoostRegressor(n_rounds=2, **options).fit(X, y)
    assert set(qid[seen[0]]) & set(np.delete(qid, seen[0]))


@pytest.mark.parametrize("learner", [Tree(subsample=0.5), Tree(colsample_bytree=0.5), Tree(splits="random")])
def test_same_random_state_same_bits(learner):
    X, y = data()
    a, b, c = (
        ConvexBoostRegressor(learner=learner, n_rounds=5, random_state=seed).fit(X, y).predict(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", ["half_squared", "absolute", "huber", "quantile:0.2"])
@pytest.mark.parametrize("splits", ["best", "mixed"])
def test_weight_two_is_the_row_twice(loss, splits):
    X, y = data()
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, N)
    twice = rng.permutation(np.repeat(np.arange(N), counts))
    learner = Tree(splits=splits, monotone_constraints={3: -1})
    model = ConvexBoostRegressor(loss, learner, n_rounds=20, random_state=0, categorical_features=[2])
    a = model.fit(X, y, sample_weight=counts).predict(X)
    b = model.fit(X[twice], y[twice]).predict(X)
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


# --- "auto", envelope --------------------------------------------------------------------------------------


AUTO = {  # (estimator, loss): (envelope, splits, leaves)
    (ConvexBoostRegressor, "half_squared"): (0.0, "mixed", 31),
    (ConvexBoostRegressor, "huber"): (0.0, "mixed", 31),
    (ConvexBoostRegressor, "absolute"): (10.0, "mixed", 31),
    (ConvexBoostRegressor, "quantile:0.9"): (10.0, "mixed", 31),
    (ConvexBoostRegressor, "quantiles"): (10.0, "mixed", 31),
    (ConvexBoostClassifier, "hinge"): (3.0, "mixed", 15),
    (ConvexBoostClassifier, "multiclass_hinge"): (3.0, "mixed", 31),
    (ConvexBoostClassifier, "logistic"): (0.0, "mixed", 15),
    (ConvexBoostClassifier, "softmax"): (0.0, "mixed", 15),
}


@pytest.mark.parametrize(("kind", "loss"), AUTO)
def test_auto_depends_on_the_task_and_the_loss(kind, loss):
    """docs/generalisation.md has the reasons."""
    X, y = data(n=700)
    y = y if kind is ConvexBoostRegressor else (y > np.median(y)).astype(int)
    envelope, splits, leaves = AUTO[kind, loss]
    options = {"n_rounds": 4, "early_stopping": False, "random_state": 0}
    tree = kind(loss, Tree(min_samples_leaf=3), **options).fit(X, y)
    learner = Tree(min_samples_leaf=3, splits=splits, max_leaves=leaves)
    options |= {"step": Tree.auto.step, "residual_decay": Tree.auto.decay, "envelope": envelope}
    said = kind(loss, learner, **options).fit(X, y)
    np.testing.assert_array_equal(tree.predict(X), said.predict(X))
    assert max(len(h.values) for _, h in tree.model_.terms) == leaves


@pytest.mark.parametrize("options", [{"step": "constant:0.1"}, {"algorithm": "repeated"}, {"envelope": 0.0}])
def test_without_refit_there_is_no_envelope(options):
    """Its gradients are shorter: other steps, which go by their length, would be too short or too long."""
    X, y = data()
    options = {"n_rounds": 4, "random_state": 0, **options}
    tree = ConvexBoostRegressor("absolute", **options).fit(X, y)
    said = ConvexBoostRegressor("absolute", **{"envelope": 0.0, **options}).fit(X, y)
    np.testing.assert_array_equal(tree.predict(X), said.predict(X))


def test_auto_of_weak_learners_is_the_paper():
    X, y = data()
    stump = ConvexBoostRegressor("absolute", "stump", n_rounds=4).fit(X, y)
    said = ConvexBoostRegressor("absolute", "stump", n_rounds=4, residual_decay=1.0, envelope=0.0).fit(X, y)
    np.testing.assert_array_equal(stump.predict(X), said.predict(X))


def test_envelope_and_certificates_exclude_each_other():
    X, y = data()
    for options in ({"certificate": True}, {"stop_when_gap_below": 100.0}):
        with pytest.raises(ValueError, match=r"`envelope`=1.0 and a certificate cannot be combined"):
            ConvexBoostRegressor("absolute", "stump", envelope=1.0, **options).fit(X, y)
        model = ConvexBoostRegressor("absolute", "stump", n_rounds=3, **options).fit(X, y)
        assert model.certificate_ is not None
    with pytest.raises(ValueError, match=r"`envelope`=1.0 needs a loss with a `prox`"):
        ConvexBoostRegressor(Softplus(), envelope=1.0).fit(X, y)
    for wrong in (-1.0, "wide", np.nan):
        with pytest.raises(ValueError, match="`envelope` must be 'auto' or a number"):
            ConvexBoostRegressor("absolute", envelope=wrong).fit(X, y)


# --- inputs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
def test_sparse_inputs(form):
    X, y = data()
    X = np.nan_to_num(X)
    X[np.abs(X) < 0.5] = 0.0
    dense = ConvexBoostRegressor(n_rounds=10).fit(X, y)
    model = ConvexBoostRegressor(n_rounds=10).fit(form(X), y)
    np.testing.assert_array_equal(model.predict(form(X)), dense.predict(X))
    np.testing.assert_array_equal(model.predict(X), dense.predict(form(X)))


def test_frames_with_categories():
    X, y = data()
    names = np.array(["ash", "birch", "cedar", "date", "elm"], object)[X[:, 2].astype(int)]
    names[:30] = None
    frame = pd.DataFrame({"a": X[:, 0], "tree": pd.Categorical(names), "d": X[:, 3]})
    model = ConvexBoostRegressor(n_rounds=30).fit(frame, y)
    cedar = frame.assign(tree=pd.Categorical(["cedar"] * N, categories=frame["tree"].cat.categories))
    ash = frame.assign(tree=pd.Categorical(["ash"] * N, categories=frame["tree"].cat.categories))
    assert model.predict(cedar).mean() > model.predict(ash).mean() + 0.3
    unknown = frame.assign(tree=pd.Categorical(["fig"] * N))
    missing = frame.assign(tree=pd.Categorical([None] * N, categories=["ash"]))
    np.testing.assert_array_equal(model.predict(unknown), model.predict(missing))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [1, 2, 9, 12, 19, 20])
@pytest.mark.parametrize("loss", ["half_squared", "absolute", "huber"])
def test_few_rows(n, loss):
    """Below two leaves' worth of rows there is only the best constant, and training ends at once."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    model = ConvexBoostRegressor(loss, "tree", n_rounds=20).fit(X, y)
    found = model.predict(np.vstack([X, X + 1.0]))
    assert np.isfinite(found).all()
    if n < 20:
        assert np.ptp(found) <= 1e-9
        assert found[0] == pytest.approx(
            ConvexBoostRegressor(loss, "stump", n_rounds=1).fit(X, y).model_.start[0], abs=1e-3
        )


def test_columns_that_say_nothing():
    X, y = data()
    X = np.column_stack([np.full(N, 2.0), np.full(N, np.nan)])
    for learner in (Tree(), Tree(splits="random"), Tree(max_bins=2)):
        model = ConvexBoostRegressor(learner=learner, n_rounds=5, early_stopping=False)
        np.testing.assert_allclose(model.fit(X, y).predict(X), y.mean(), rtol=1e-9)


def test_few_bins():
    X, y = data()
    model = ConvexBoostRegressor(learner=Tree(max_bins=2), n_rounds=20, categorical_features=[2]).fit(X, y)
    assert model.score(X, y) > 0.1
    assert max(column.n_bins for column in model.model_.mapper.bins.columns) <= 2


def test_weights_that_add_up_to_one_are_shares():
    """Not so many hundredths of a row: the model is that without weights."""
    X, y = data()
    model = ConvexBoostRegressor("absolute", "tree", n_rounds=5, random_state=0)
    plain, shares = clone(model).fit(X, y), clone(model).fit(X, y, np.full(len(y), 1 / len(y)))
    np.testing.assert_allclose(shares.predict(X), plain.predict(X), rtol=1e-9)
    assert np.ptp(plain.predict(X)) > 0.0


@pytest.mark.parametrize("loss", [CVaR("logistic", 0.9), WorstGroup("logistic"), 2 * WorstGroup("logistic")])
def test_losses_that_reweight_rows_leave_their_kinks(loss):
    """From a kink no tree may lead down: steps that never let the objective rise end there."""
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(600, 4)), rng.integers(0, 4, 600)
    X[:, 3] = group
    y = np.sin(2 * X[:, 0]) + X[:, 1] * np.where(group % 2, 1, -1) + 0.3 * rng.normal(size=600) > 0
    options = {"groups": group} if loss.needs_groups else {}
    fixed = {"early_stopping": False, "random_state": 0}
    model = ConvexBoostClassifier(loss, **fixed).fit(X, y, **options)
    assert model.history_["objective"].min() < 0.2 * model.history_["objective"][0]
    assert model.score(X, y) > 0.95
    stuck = ConvexBoostClassifier(loss, step=Tree.auto.step, **fixed).fit(X, y, **options)
    assert stuck.history_["objective"].min() > 2 * model.history_["objective"].min()


def test_a_loss_that_reweights_rows_without_a_known_minimum():
    """Polyak's step needs one."""
    X, y = data()

    class Linear:
        def evaluate(self, F, y):
            return np.maximum(F - y, y - F).sum(axis=1), np.sign(F - y)

    model = ConvexBoostRegressor(CVaR(Linear(), 0.8), n_rounds=20).fit(X, y)
    assert model.constants_.minimum is None
    assert model.history_["objective"].min() < model.history_["objective"][0]


@pytest.mark.parametrize("loss", ["softmax", "exponential", "half_squared"])
def test_newton_splits_are_where_leaves_are_refitted(loss):
    """Other steps go by the projection of Δ, and a constant curvature changes nothing."""
    X, y = data(n=400)
    kind = ConvexBoostRegressor if loss == "half_squared" else ConvexBoostClassifier
    y = y if kind is ConvexBoostRegressor else (y > np.quantile(y, 0.8)).astype(int)

    def predicted(step, newton):
        options = {"n_rounds": 6, "early_stopping": False, "step": step, "random_state": 0}
        model = kind(loss, Tree(newton=newton), **options).fit(X, y)
        return model.predict(X) if kind is ConvexBoostRegressor else model.decision_function(X)

    np.testing.assert_array_equal(predicted("constant:0.1", True), predicted("constant:0.1", False))
    is_same = np.array_equal(predicted("refit:0.1", True), predicted("refit:0.1", False))
    assert is_same == (loss == "half_squared")


@pytest.mark.parametrize("kind", [ConvexBoostRegressor, ConvexBoostClassifier])
def test_the_same_call_makes_the_same_model(kind):
    """Without a seed, too, as in LightGBM, XGBoost and CatBoost."""
    X, y = data(n=300)
    y = y if kind is ConvexBoostRegressor else (y > np.median(y)).astype(int)
    models = [kind(n_rounds=5, random_state=seed).fit(X, y) for seed in (None, 0, None, 1)]
    first, zero, again, other = (model.model_.predict(X) for model in models)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, zero)
    assert not np.array_equal(first, other)
