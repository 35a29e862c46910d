"""A user's own loss, in its three forms, gives the model that the built-in loss gives."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.boosting.steps import STEPS
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.protocols import Constants
from convexboost.core.space import FunctionSpace
from convexboost.estimators._validation import N_FOLDS
from convexboost.losses import Absolute, CVaR, HalfSquared, as_loss, maximum
from convexboost.losses._custom import CustomBoundLoss, CustomRows, CustomTotal


class MyAbsolute:
    def evaluate(self, F, y):
        return np.abs(F - y).sum(axis=1), np.sign(F - y)


class MyQuantile:
    def evaluate(self, F, y):
        over = F - y
        return np.maximum(-0.9 * over, 0.1 * over).sum(axis=1), np.where(over > 0, 0.1, -0.9) * (over != 0)


class MySquare:
    def evaluate(self, F, y):
        return 0.5 * ((F - y) ** 2).sum(axis=1), F - y


class MySoftmax:
    def evaluate(self, F, y):
        P = np.exp(F - F.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        rows = np.arange(len(F))
        losses = -np.log(P[rows, y])
        P[rows, y] -= 1.0
        return losses, P

    def link(self, F):
        P = np.exp(F - F.max(axis=1, keepdims=True))
        return P / P.sum(axis=1, keepdims=True)


class MyMulticlassHinge:
    def evaluate(self, F, y):
        rows = np.arange(len(F))
        rivals = F + 1.0
        rivals[rows, y] = -np.inf
        top = rivals.max(axis=1)
        violated = top - F[rows, y] > 1e-12
        G = (rivals >= top[:, None] - 1e-12) * violated[:, None]
        G = G / np.maximum(G.sum(axis=1, keepdims=True), 1)
        G[rows, y] = -1.0 * violated
        return np.maximum(top - F[rows, y], 0.0), G


class MyTotalAbsolute:
    def total(self, F, y, weight):
        return (weight[:, None] * np.abs(F - y)).sum(), weight[:, None] * np.sign(F - y)


class MyTotalSquare:
    """All rows at once, each weighing the same: the weights are not asked for."""

    def total(self, F, y):
        return 0.5 * ((F - y) ** 2).sum() / len(F), (F - y) / len(F)


class TorchAbsolute:
    def value(self, F, y):
        return (F - y).abs().sum(dim=1)


class TorchSquare:
    def value(self, F, y, weight):
        return 0.5 * (weight[:, None] * (F - y) ** 2).sum()


class TorchSoftmax:
    def value(self, F, y):
        return F.logsumexp(dim=1) - F.gather(1, y[:, None])[:, 0]


REGRESSION = {
    "absolute": ("absolute", MyAbsolute),
    "quantile": ("quantile:0.9", MyQuantile),
    "square": ("half_squared", MySquare),
    "total absolute": ("absolute", MyTotalAbsolute),
    "total square": ("half_squared", MyTotalSquare),
    "torch absolute": ("absolute", TorchAbsolute),
    "torch square": ("half_squared", TorchSquare),
}
CLASSIFICATION = {
    "softmax": ("softmax", MySoftmax),
    "multiclass_hinge": ("multiclass_hinge", MyMulticlassHinge),
    "torch softmax": ("softmax", TorchSoftmax),
}


def need_torch(name):
    if name.startswith("torch"):
        pytest.importorskip("torch", reason="needs PyTorch: pip install convexboost[torch]")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("learner", ["stump", "additive", "sign_stump"])
@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual"])
@pytest.mark.parametrize("name", REGRESSION)
def test_a_copy_of_a_built_in_regression_loss_gives_the_same_model(name, algorithm, learner):
    need_torch(name)
    X, y = load_diabetes(return_X_y=True)
    builtin, copy = REGRESSION[name]
    weight = None if "square" in name else np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    options = {"learner": learner, "algorithm": algorithm, "n_rounds": 25, "early_stopping": False}
    a = ConvexBoostRegressor(builtin, **options).fit(X, y, weight)
    b = ConvexBoostRegressor(copy(), **options).fit(X, y, weight)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-9)
    np.testing.assert_allclose(a.history_["objective"], b.history_["objective"], rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual"])
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_a_copy_of_a_built_in_classification_loss_gives_the_same_model(name, algorithm):
    need_torch(name)
    X, y = load_iris(return_X_y=True)
    builtin, copy = CLASSIFICATION[name]
    a = ConvexBoostClassifier(builtin, "stump", algorithm, n_rounds=12).fit(X, y)
    b = ConvexBoostClassifier(copy(), "stump", algorithm, n_rounds=12).fit(X, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(a.history_["objective"], b.history_["objective"], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_units_of_y_do_not_matter(unit):
    X, y = load_diabetes(return_X_y=True)
    a = ConvexBoostRegressor(MyAbsolute(), n_rounds=30).fit(X, y)
    b = ConvexBoostRegressor(MyAbsolute(), n_rounds=30).fit(X, y * unit)
    np.testing.assert_allclose(a.predict(X), b.predict(X) / unit, rtol=1e-6)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("loss", [MyAbsolute, MyTotalAbsolute])
def test_every_algorithm_and_step_takes_it(loss, algorithm, step):
    X, y = load_diabetes(return_X_y=True)
    given = {"inverse_time": "inverse_time:20", "polyak": STEPS["polyak"](target=0.0)}.get(step, step)
    model = ConvexBoostRegressor(loss(), algorithm=algorithm, step=given, n_rounds=8)
    if algorithm in ("dual_averaging", "error_feedback") and step in ("line_search", "refit"):
        with pytest.raises(ValueError, match="does not fit"):
            model.fit(X, y)
        return
    model.fit(X, y)
    assert model.history_["objective"].min() < model.history_["objective"][0]


@pytest.mark.parametrize("loss", [MySquare(), MyTotalAbsolute()])
def test_early_stopping_l2_certificate_and_sklearn_habits(loss):
    X, y = load_diabetes(return_X_y=True)
    model = ConvexBoostRegressor(loss, n_rounds=60, l2=0.1, early_stopping=True, certificate=True)
    model = clone(model).fit(X, y)
    assert model.certificate_.gap() >= 0.0
    assert np.isfinite(model.history_["validation"]).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_class_is_as_good_as_an_object():
    X, y = load_diabetes(return_X_y=True)
    a, b = (ConvexBoostRegressor(loss, n_rounds=5).fit(X, y) for loss in (MyAbsolute, MyAbsolute()))
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_optional_declarations_are_used():
    class Declared(MyAbsolute):
        name = "mine"
        constants = {"lipschitz": 1.0, "minimum": 0.0}  # noqa: RUF012

        def start(self, y, weight):
            return [3.0]

        def prox(self, F, y, size):
            return F - (F - y).clip(-size, size)

        def link(self, F):
            return np.round(F)

    X, y = load_diabetes(return_X_y=True)
    model = ConvexBoostRegressor(Declared(), n_rounds=3).fit(X, y)
    assert model.model_.start == [3.0]
    assert model.constants_ == Constants(lipschitz=1.0, minimum=0.0)
    assert (model.predict(X) % 1 == 0).all()
    assert str(model.loss_) == "mine(f, y)"
    assert model.loss_.prox(np.ones((1, 1)), np.zeros((1, 1)), 0.25) == 0.75


def test_number_of_outputs_may_differ_from_the_targets():
    class TwoQuantiles:
        n_outputs = 2
        q = np.array([0.1, 0.9])

        def evaluate(self, F, y):
            over = F - y
            losses = np.maximum(-self.q * over, (1 - self.q) * over).sum(axis=1)
            return losses, np.where(over > 0, 1 - self.q, -self.q)

    X, y = load_diabetes(return_X_y=True)
    P = ConvexBoostRegressor(TwoQuantiles(), n_rounds=50).fit(X, y).predict(X)
    assert P.shape == (len(y), 2)
    assert abs((y <= P[:, 0]).mean() - 0.1) < 0.06
    assert abs((y <= P[:, 1]).mean() - 0.9) < 0.06


def test_two_classes_with_one_score():
    class MyHinge:
        task = "binary"

        def evaluate(self, F, y):
            sign = np.where(y == 1, 1.0, -1.0)[:, None]
            violated = 1 - sign * F > 0
            return np.maximum(1 - sign * F, 0).sum(axis=1), -sign * violated

    X, y = load_iris(return_X_y=True)
    X, y = X[50:], np.array(["versi", "virgi"])[y[50:] - 1]
    model = ConvexBoostClassifier(MyHinge(), n_rounds=40).fit(X, y)
    assert model.decision_function(X).shape == (100,)
    assert model.score(X, y) > 0.93
    with pytest.raises(ValueError, match="is for two classes, but `y` has 3"):
        ConvexBoostClassifier(MyHinge()).fit(*load_iris(return_X_y=True))


def test_it_receives_groups_and_weights_by_name():
    seen = {}

    class Nosy:
        def total(self, F, y, *, qid, weight, group_weight=None):
            seen.update(qid=qid, weight=weight, group_weight=group_weight)
            return (weight[:, None] * (F - y) ** 2).sum() / 2, weight[:, None] * (F - y)

    loss = as_loss(Nosy())
    assert loss.needs_groups
    space = FunctionSpace.of(3, np.array([1.0, 1.0, 2.0]))
    loss.bind(np.zeros((3, 1)), space, groups=["a", "a", "b"]).evaluate(np.ones((3, 1)))
    assert seen["qid"].tolist() == ["a", "a", "b"]
    assert seen["weight"].tolist() == [0.25, 0.25, 0.5]
    assert seen["group_weight"] is None
    with pytest.raises(ValueError, match="`groups` are needed by the loss Nosy"):
        loss.bind(np.zeros((3, 1)), space)
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=r"`groups` is needed by the loss Nosy\(F, y\): one label per row"):
        ConvexBoostRegressor(Nosy()).fit(X, y)
    ConvexBoostRegressor(Nosy(), n_rounds=2).fit(X, y, groups=np.arange(len(y)) % 7)
    assert set(seen["qid"]) == set(range(7))


def test_groups_are_refused_by_losses_that_do_not_know_them():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=r"`groups` was given, but the loss \|f − y\| does not use it"):
        ConvexBoostRegressor("absolute").fit(X, y, groups=y)


def test_it_combines_with_other_losses():
    sums = [MyAbsolute() + HalfSquared(), HalfSquared() + MyAbsolute(), maximum(MyAbsolute(), HalfSquared())]
    sums.append(2 * as_loss(MyTotalAbsolute()) + Absolute())
    X, y = load_diabetes(return_X_y=True)
    for loss in sums:
        model = ConvexBoostRegressor(loss, n_rounds=5).fit(X, y)
        assert model.history_["objective"][-1] < model.history_["objective"][0]
        assert loss.bind(y, FunctionSpace.of(len(y))).is_custom
    assert str(sums[1]) == "½ (f − y)² + MyAbsolute(f, y)"
    assert not Absolute().bind(y, FunctionSpace.of(len(y))).is_custom
    assert CVaR(MyAbsolute()).bind(y, FunctionSpace.of(len(y))).is_custom
    assert not CVaR("absolute").bind(y, FunctionSpace.of(len(y))).is_custom


def test_forms():
    y, space = np.zeros((4, 1)), FunctionSpace.of(4)
    assert isinstance(as_loss(MyAbsolute), CustomRows)
    assert isinstance(as_loss(MyTotalAbsolute()), CustomTotal)
    assert isinstance(as_loss(MyTotalAbsolute()).bind(y, space), CustomBoundLoss)


def test_torch_forms():
    pytest.importorskip("torch", reason="needs PyTorch: pip install convexboost[torch]")
    y, space = np.zeros((4, 1)), FunctionSpace.of(4)
    assert isinstance(as_loss(TorchAbsolute()).bind(y, space).loss, CustomRows)
    assert isinstance(as_loss(TorchSquare()).bind(y, space), CustomBoundLoss)
    assert as_loss(TorchAbsolute()).as_rows() is not None
    assert as_loss(TorchSquare()).as_rows() is None
    model = ConvexBoostRegressor(TorchAbsolute(), n_rounds=3).fit(*load_diabetes(return_X_y=True))
    assert model.n_members_ == N_FOLDS  # rows are held out, as for a loss of single rows
    assert pickle.loads(pickle.dumps(model)).n_rounds_ == 3


def test_one_number_of_torch_without_weights_can_be_declared():
    pytest.importorskip("torch", reason="needs PyTorch: pip install convexboost[torch]")

    class Mean:
        def value(self, F, y):
            return (F - y).abs().mean()

    class Declared(Mean):
        couples_rows = True

    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="declare `couples_rows = True` for one number of all rows"):
        ConvexBoostRegressor(2 * as_loss(Mean()), n_rounds=3).fit(X, y)
    for loss in (Mean(), Declared(), 2 * as_loss(Declared())):
        model = ConvexBoostRegressor(loss, n_rounds=3).fit(X, y)
        assert model.history_["objective"][-1] < model.history_["objective"][0]
    assert as_loss(Declared()).couples_rows


def test_a_total_may_declare_that_rows_belong_together():
    class Declared(MyTotalAbsolute):
        splits_rows = False

    X, y = load_diabetes(return_X_y=True)
    for loss, splits in ((MyTotalAbsolute(), True), (Declared(), False)):
        model = ConvexBoostRegressor(loss, n_rounds=3).fit(X, y)
        assert (model.n_members_ > 1) == splits


def test_torch_is_asked_for_by_name_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs PyTorch .*pip install convexboost\[torch\]"):
        ConvexBoostRegressor(TorchAbsolute()).fit(*load_diabetes(return_X_y=True))


def make(**methods):
    return type("Bad", (), {name: staticmethod(f) for name, f in methods.items()})()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            make(evaluate=lambda F, y: F - y),
            r"`evaluate` of Bad must return a value and a gradient, got ndarray",
        ),
        (
            make(evaluate=lambda F, y: (np.abs(F - y).sum(), np.sign(F - y))),
            r"must return losses of shape \(200,\), got \(\); `total` is the method for one number",
        ),
        (
            make(evaluate=lambda F, y: (np.abs(F - y).sum(axis=0), np.sign(F - y))),
            r"must return losses of shape \(200,\), got \(1,\); `total` is the method for one number",
        ),
        (
            make(evaluate=lambda F, y: (np.abs(F - y), np.sign(F - y))),
            r"must return losses of shape \(200,\), got \(200, 1\)\. Sum over the outputs, axis=1",
        ),
        (
            make(evaluate=lambda F, y: (np.abs(F - y).sum(axis=1), np.sign(F - y).T)),
            r"must return a gradient of shape \(200, 1\) like `F`, got \(1, 200\)\. It is transposed",
        ),
        (
            make(total=lambda F, y: (np.abs(F - y), np.sign(F - y))),
            r"`total` of Bad must return one number, got shape \(442, 1\); `evaluate` is the method for one",
        ),
        (
            make(total=lambda F, y: (np.abs(F - y).sum(), np.sign(F - y).sum())),
            r"must return a gradient of shape \(442, 1\) like `F`, got \(\)\. Give one entry for each score",
        ),
        (make(evaluate=MySquare().evaluate, start=lambda y, w: [1, 2]), r"`start` of Bad must return 1"),
    ],
)
def test_wrong_shapes(loss, message):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        ConvexBoostRegressor(loss).fit(X, y)


def test_wrong_constants():
    class Bad(MyAbsolute):
        constants = {"lipshitz": 1.0}  # noqa: RUF012

    with pytest.raises(ValueError, match=r"`constants` of Bad must be a dict of some of lipschitz, smooth"):
        ConvexBoostRegressor(Bad()).fit(*load_diabetes(return_X_y=True))
