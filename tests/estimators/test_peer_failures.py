"""Failures that users of other boosting libraries report, as tests that pass here.

Each test names the thread.  The complaint there is the same every time: a loss without a useful second
derivative does not train, or a user's copy of a built-in loss gives a worse model than the built-in.
"""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_hastie_10_2
from sklearn.metrics import mean_absolute_error, roc_auc_score
from sklearn.tree import DecisionTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow


class MyAbsolute:
    def evaluate(self, F, y):
        return np.abs(F - y).sum(axis=1), np.sign(F - y)


class MyHuber:
    def evaluate(self, F, y):
        r = np.abs(F - y)
        losses = np.where(r <= 1.0, r**2 / 2, r - 0.5).sum(axis=1)
        return losses, np.clip(F - y, -1.0, 1.0)


class MyPseudoHuber:
    def evaluate(self, F, y):
        root = np.sqrt(1 + (F - y) ** 2)
        return (root - 1).sum(axis=1), (F - y) / root


@pytest.mark.parametrize("algorithm", ["naive", "residual"])
@pytest.mark.parametrize("data", ["imbalanced", "cancer"])
def test_hinge_with_stumps_learns(data, algorithm):
    """dmlc/xgboost #4712: AUC 0.5 and the same error in all of 523 rounds."""
    if data == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
    else:  # 29 % positives, no stump alone beats the majority by much
        X, _ = make_hastie_10_2(4000, random_state=0)
        score = (X**2).sum(axis=1)
        y = (score > np.quantile(score, 0.711)).astype(int)
    options = {"learner": "stump", "algorithm": algorithm, "n_rounds": 523, "early_stopping": False}
    model = ConvexBoostClassifier("hinge", **options).fit(X, y)
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
    assert 1 - model.score(X, y) < 0.5 * min(y.mean(), 1 - y.mean())


@pytest.mark.parametrize("learner", ["stump", DecisionTreeRegressor(max_depth=4, random_state=0)])
@pytest.mark.parametrize("algorithm", ["naive", "residual"])
def test_a_users_absolute_error_equals_the_built_in(algorithm, learner):
    """LightGBM #6744, #3584, #2128, catboost #2559: a copy of MAE is worse than MAE, or does not learn."""
    X, y = load_diabetes(return_X_y=True)
    options = {"algorithm": algorithm, "learner": learner, "n_rounds": 60, "random_state": 0}
    built_in = ConvexBoostRegressor("absolute", **options).fit(X, y)
    own = ConvexBoostRegressor(MyAbsolute(), **options).fit(X, y)
    np.testing.assert_allclose(own.predict(X), built_in.predict(X), rtol=1e-9)
    constant = mean_absolute_error(y, np.full(len(y), np.median(y)))
    assert mean_absolute_error(y, own.predict(X)) < 0.75 * constant


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_a_users_absolute_error_learns_in_any_units(unit):
    """LightGBM #3584, #2128: "nrounds * learning_rate" had to exceed the range of y."""
    X, y = load_diabetes(return_X_y=True)
    y = unit * y
    model = ConvexBoostRegressor(MyAbsolute(), n_rounds=100).fit(X, y)
    constant = mean_absolute_error(y, np.full(len(y), np.median(y)))
    assert mean_absolute_error(y, model.predict(X)) < 0.75 * constant


def test_a_users_loss_starts_from_its_best_constant():
    """LightGBM #7193, #5350: a custom objective gets no initial score, silently."""
    X, y = load_diabetes(return_X_y=True)
    model = ConvexBoostRegressor(MyAbsolute(), n_rounds=1, early_stopping=False).fit(X, y)
    assert model.model_.start[0] == pytest.approx(np.quantile(y, 0.5, method="inverted_cdf"), rel=1e-12)


@pytest.mark.parametrize("loss", [MyHuber(), MyPseudoHuber()])
def test_losses_with_a_vanishing_second_derivative_train(loss):
    """dmlc/xgboost #1428, #2602, #7674: custom Huber never splits or diverges; MAE 33 instead of 0.9."""
    X, y = load_diabetes(return_X_y=True)
    model = ConvexBoostRegressor(loss, "stump", n_rounds=100).fit(X, y)
    absolute = ConvexBoostRegressor("absolute", "stump", n_rounds=100).fit(X, y)
    errors = [mean_absolute_error(y, m.predict(X)) for m in (model, absolute)]
    assert errors[0] < 1.1 * errors[1]
    assert np.isfinite(model.history_["objective"]).all()


@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual"])
def test_multiclass_hinge_by_automatic_differentiation_decreases(algorithm):
    """TomerRonen34/treeboost_autograd #2: the loss does not decrease."""
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install convexboost[torch]")

    class MulticlassHinge:
        def value(self, F, y):
            own = F.gather(1, y[:, None])
            others = 1 + F - own
            others = others.scatter(1, y[:, None], torch.zeros_like(own))
            return others.amax(dim=1)

    X, y = load_iris(return_X_y=True)
    model = ConvexBoostClassifier(MulticlassHinge(), algorithm=algorithm, n_rounds=60).fit(X, y)
    objective = model.history_["objective"]
    assert objective.min() < 0.25 * objective[0]
    assert model.score(X, y) > 0.94


def test_a_users_ranking_loss_receives_its_queries():
    """LightGBM #7018, #1896, catboost #2944, XGBoost's manual: no custom ranking objective, or no groups."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), 8)
    X = rng.normal(size=(240, 4))
    shift = 10.0 * rng.normal(size=30)[qid]  # means nothing: grades count within a query only
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=240), [-0.5, 0.7]).astype(float)
    X[:, 1] += shift
    seen = []

    class PairwiseLogistic:
        """Mean of log(1 + exp(f_j − f_i)) over the pairs of a query with y_i > y_j."""

        def total(self, F, y, qid):
            seen.append(np.array(qid))
            better = (qid[:, None] == qid) & (y > y[:, 0])
            difference = F[:, 0] - F  # f_j − f_i in row i, column j
            n_pairs = better.sum()
            P = better / (1 + np.exp(-difference))
            gradient = P.sum(axis=0) - P.sum(axis=1)
            return (better * np.logaddexp(0, difference)).sum() / n_pairs, gradient[:, None] / n_pairs

    model = ConvexBoostRanker(PairwiseLogistic(), n_rounds=40).fit(X, y, qid)
    assert any(len(labels) == len(qid) for labels in seen)
    for labels in seen:  # all of them, or in a fold those of its queries
        np.testing.assert_array_equal(labels, qid[np.isin(qid, labels)])
    objective = model.history_["objective"]
    assert objective.min() < 0.6 * objective[0]
    assert model.score(X, y, qid) > 0.9
