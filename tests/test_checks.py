"""A zoo of wrong losses, each named for its mistake, and one of right losses, none of which is suspected."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor, FunctionSpace, boost, check_objective
from convexboost.checks import WATCHED, ObjectiveError, ObjectiveWarning, Watched, watch
from convexboost.learners.stump import Stump
from convexboost.objectives import Absolute, HalfSquared, MulticlassHinge, Quantile, Ridge, Softmax, maximum
from convexboost.objectives._custom import as_loss
from convexboost.registry import available

N = 60


def sigmoid(F):
    return 1 / (1 + np.exp(-F))


def softmax(F):
    P = np.exp(F - F.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def half_squared(F, y):
    return 0.5 * ((F - y) ** 2).sum(axis=1), F - y


def logistic(F, y):
    """Two classes, one output."""
    sign = 2.0 * y - 1
    return np.logaddexp(0, -sign * F[:, 0]), (sigmoid(F[:, 0]) - y)[:, None]


def cross_entropy(F, y):
    top = F.max(axis=1)
    losses = np.log(np.exp(F - top[:, None]).sum(axis=1)) + top - F[np.arange(len(y)), y]
    return losses, softmax(F) - np.eye(F.shape[1])[y]


def rows(evaluate, **more):
    """A user's loss in rows."""
    more = {key: staticmethod(item) if callable(item) else item for key, item in more.items()}
    return type("Mine", (), {"evaluate": staticmethod(evaluate), **more})()


def total(method, **more):
    return type("Mine", (), {"total": staticmethod(method), **more})()


def value(method, **more):
    return type("Mine", (), {"value": staticmethod(method), **more})()


def changed(change, base=half_squared, **more):
    """The right loss, but for its gradient."""
    return rows(lambda F, y: (base(F, y)[0], change(F, y, base(F, y)[1])), **more)


def write_into(F, y):
    F -= y
    return 0.5 * (F**2).sum(axis=1), F.copy()


def write_into_y(F, y):
    y -= F
    return 0.5 * (y**2).sum(axis=1), -y


def half_norm(F, y):
    return 0.5 * (F**2).sum(axis=1), F


class Buffer:
    def evaluate(self, F, y):
        if getattr(self, "G", None) is None or self.G.shape != F.shape:
            self.G = np.empty(F.shape)
        np.subtract(F, y, out=self.G)
        return 0.5 * (self.G**2).sum(axis=1), self.G


class Random:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def evaluate(self, F, y):
        losses, G = half_squared(F, y)
        return losses + 0.01 * self.rng.normal(size=len(F)), G


class Weighted:
    """Knows the weights of all rows."""

    def __init__(self, weight):
        self.weight = weight

    def evaluate(self, F, y):
        losses, G = half_squared(F, y)
        return losses, G * self.weight[: len(F), None]


def cauchy(F, y):
    R = F - y
    return np.log1p(R**2).sum(axis=1), 2 * R / (1 + R**2)


def minus(F, y):
    losses, G = half_squared(F, y)
    return -losses, -G


def overflowing(F, y):
    sign = 2.0 * y - 1
    return np.log(1 + np.exp(-sign * F[:, 0])), (sigmoid(F[:, 0]) - y)[:, None]


def overflowing_softmax(F, y):
    E = np.exp(F)
    P = E / E.sum(axis=1, keepdims=True)
    return -np.log(P[np.arange(len(y)), y]), P - np.eye(F.shape[1])[y]


def clipped(F, y):
    p = np.clip(sigmoid(F[:, 0]), 1e-15, 1 - 1e-15)
    return -np.log(np.where(y == 1, p, 1 - p)), (sigmoid(F[:, 0]) - y)[:, None]


def zero_by_zero(F, y):
    R = F - y
    return np.abs(R).sum(axis=1), R / np.abs(R)


def kink(at):
    return rows(lambda F, y: (np.abs(F - y).sum(axis=1), np.where(F == y, at, np.sign(F - y))))


def broadcast(F, y):
    R = F[:, 0] - y
    return 0.5 * (R**2).sum(axis=1), R.sum(axis=0)[:, None]


def mean_losses(F, y):
    losses, G = half_squared(F, y)
    return losses / len(F), G / len(F)


def mean_over_outputs(F, y):
    losses, G = half_squared(F, y)
    return losses / F.shape[1], G


def wrong_output(F, y, G):
    G = G.copy()
    G[:, 2] = np.sin(F[:, 2])
    return G


def wrong_class(F, y, G):
    return np.where((y == 1)[:, None], G**3, G)


def poisson(F, y):
    return (np.exp(F) - y * F).sum(axis=1), np.exp(F) - y


#: name, loss, kind of targets, what the message says, whether a fit can see it
WRONG = [
    ("divided by N", changed(lambda F, y, G: G / len(F)), "one", "divided by the number of rows, 60", True),
    (
        "divided by N, k",
        changed(lambda F, y, G: G / F.size),
        "three",
        r"divided by rows · outputs, 180",
        True,
    ),
    ("times N", changed(lambda F, y, G: G * len(F)), "one", "multiplied by the number of rows, 60", True),
    ("sign", changed(lambda F, y, G: -G), "one", "gradient has the wrong sign", True),
    ("sign, classes", changed(lambda F, y, G: -G, cross_entropy), "classes", "the wrong sign", True),
    ("sign and N", changed(lambda F, y, G: -G / len(F)), "one", "wrong sign and is divided by the num", True),
    ("half", changed(lambda F, y, G: G / 2), "one", r"off by the factor 0\.5 .*that of ½", True),
    ("twice", changed(lambda F, y, G: 2 * G), "three", r"off by the factor 2 ", True),
    ("seven", changed(lambda F, y, G: 7 * G, cross_entropy), "classes", r"off by the factor 7 ", True),
    ("mean over outputs", rows(mean_over_outputs), "three", "multiplied by the number of outputs, 3", True),
    ("mean in G", changed(lambda F, y, G: G / 3), "three", "divided by the number of outputs, 3", True),
    ("two losses", rows(lambda F, y: (np.abs(F - y).sum(axis=1), F - y)), "one", "different losses", True),
    ("one output", changed(wrong_output), "three", "different losses in output 2 only", True),
    ("one class", changed(wrong_class, cross_entropy), "classes", "different .* all of class 1", True),
    ("zero", changed(lambda F, y, G: 0 * G), "one", "gradient is 0 everywhere", True),
    ("cauchy", rows(cauchy), "one", "not convex: at f = .* and the second lies", True),
    ("minus", rows(minus), "one", "not convex.* It is concave", True),
    (
        "overflow",
        rows(overflowing, task="binary"),
        "binary",
        r"value is not finite \(inf\).*logaddexp",
        False,
    ),
    ("overflow, K", rows(overflowing_softmax), "classes", r"not finite .*at large scores.*logaddexp", False),
    ("clipped", rows(clipped, task="binary"), "binary", "large scores", False),
    ("0/0", rows(zero_by_zero), "one", r"gradient is not finite \(nan\) at some scores.*subgradient", True),
    ("transposed", changed(lambda F, y, G: G.T), "three", r"shape \(3, 60\).*transposed", True),
    (
        "one column",
        changed(lambda F, y, G: G.sum(axis=1)),
        "three",
        r"shape \(60,\), not \(60, 3\).*3 outputs",
        True,
    ),
    ("summed", changed(lambda F, y, G: G.sum(axis=0)), "three", r"shape \(3,\).*summed over the rows", True),
    (
        "number",
        rows(lambda F, y: (half_squared(F, y)[0].sum(), F - y)),
        "one",
        r"shape \(\), not .*`total`",
        True,
    ),
    ("table", rows(lambda F, y: ((F - y) ** 2, 2 * (F - y))), "three", r"Sum over the outputs", True),
    ("crossed", rows(lambda F, y: ((F[:, 0] - y) ** 2, F - y)), "one", r"y has shape \(60, 1\)", True),
    ("broadcast", rows(broadcast), "one", "depends on the other rows", True),
    ("mean", rows(mean_losses), "one", "losses are divided by the number of rows", True),
    ("no pair", rows(lambda F, y: half_squared(F, y)[0]), "one", "must return a value and a gradient", True),
    ("writes F", rows(write_into), "one", "writes into `F`", True),
    ("writes y", rows(write_into_y), "one", "writes into `y`", True),
    ("returns F", rows(half_norm), "one", "returns the array `F`", True),
    ("buffer", Buffer(), "one", "overwritten by the next call", True),
    ("random", Random(), "one", "two calls with the same scores give two values", True),
    ("weights", Weighted(np.linspace(1, 3, N)), "weighted", "multiplied by the sample weights", True),
    (
        "probability",
        changed(lambda F, y, G: G / (sigmoid(F) * (1 - sigmoid(F))), logistic, task="binary"),
        "binary",
        "with respect to the probability",
        True,
    ),
    (
        "probabilities",
        changed(lambda F, y, G: -np.eye(F.shape[1])[y] / softmax(F), cross_entropy),
        "classes",
        "with respect to the probabilities",
        True,
    ),
    (
        "mean of a count",
        changed(lambda F, y, G: G / np.exp(F), poisson),
        "counts",
        r"respect to exp\(f\)",
        True,
    ),
    ("kink", kink(2.0), "one", "at a kink .*the gradient 2 is no subgradient", True),
    ("lipschitz", rows(half_squared, constants={"lipschitz": 1.0}), "one", "lipschitz 1 is wrong", True),
    ("smoothness", rows(half_squared, constants={"smoothness": 0.5}), "one", "smoothness 0.5 is wrong", True),
    ("curved", rows(half_squared, constants={"strong_convexity": 2.0}), "one", "strong_convexity 2 is", True),
    ("minimum", rows(half_squared, constants={"minimum": 0.5}), "one", "minimum 0.5 is wrong", False),
    (
        "value",
        rows(half_squared, value=lambda F, y: ((F - y) ** 2).sum(axis=1)),
        "one",
        "`value` and the f",
        True,
    ),
    (
        "start",
        rows(half_squared, start=lambda y, weight: [40.0]),
        "one",
        "`start` returns 40, where R is",
        False,
    ),
    (
        "prox",
        rows(half_squared, prox=lambda F, y, size: F - size * (F - y)),
        "one",
        "`prox` with size",
        False,
    ),
    (
        "link",
        rows(cross_entropy, link=lambda F: np.exp(F)),
        "classes",
        r"`link` returns .*must sum to 1",
        False,
    ),
    (
        "link, shape",
        rows(cross_entropy, link=lambda F: F[:, 0]),
        "classes",
        r"`link` returns shape \(60,\)",
        False,
    ),
]


def mean_squared(F, y, weight):
    return weight @ half_squared(F, y)[0], weight[:, None] * (F - y)


def pairs(F, y, qid, sign=1.0):
    """Logistic loss of the pairs of a query."""
    G, R, f = np.zeros(F.shape), 0.0, F[:, 0]
    for q in np.unique(qid):
        own = np.flatnonzero(qid == q)
        better = y[own, 0][:, None] > y[own, 0][None, :]
        margin = f[own][:, None] - f[own][None, :]
        R += np.logaddexp(0, -margin)[better].sum()
        s = np.where(better, sigmoid(-margin), 0.0)
        G[own, 0] += s.sum(axis=0) - s.sum(axis=1)
    return R / len(F), sign * G / len(F)


def spread(F, y):
    """The largest loss of all rows: couples them, and has kinks."""
    worst = np.abs(F - y).argmax()
    G = np.zeros(F.size)
    G[worst] = np.sign((F - y).ravel()[worst])
    return np.abs(F - y).max(), G.reshape(F.shape)


WRONG_TOTALS = [
    ("row gradients", lambda F, y: (half_squared(F, y)[0].mean(), F - y), "one", "multiplied by the number of rows", True),
    ("mean of G", lambda F, y: (half_squared(F, y)[0].sum(), (F - y) / len(F)), "one", "divided by the number", True),
    ("no weights", lambda F, y: (half_squared(F, y)[0].mean(), (F - y) / len(F)), "weighted", "does not use the weights", True),
    ("ignores", lambda F, y, weight: (half_squared(F, y)[0].mean(), (F - y) / len(F)), "one", "does not use the weights, though", False),
    ("weights in value", lambda F, y, weight: (weight @ half_squared(F, y)[0], F - y), "weighted", "lacks the weights", True),
    ("weights twice", lambda F, y, weight: (weight @ half_squared(F, y)[0], weight[:, None] ** 2 * (F - y)), "weighted", "weights twice", True),
    ("not the row twice", lambda F, y, weight: ((weight**2) @ half_squared(F, y)[0], (weight**2)[:, None] * (F - y)), "one", "weight 2 is not the row twice", False),
    ("row losses", lambda F, y: half_squared(F, y), "one", "must be one number.*`evaluate`", True),
    ("transposed", lambda F, y: (half_squared(F, y)[0].sum(), (F - y).T), "three", "transposed", True),
    ("sign", lambda F, y, qid: pairs(F, y, qid, -1.0), "ranking", "wrong sign", True),
    ("twice", lambda F, y, qid: pairs(F, y, qid, 2.0), "ranking", "off by the factor 2", True),
    ("not convex", lambda F, y: (np.log1p(np.mean((F - y) ** 2)), 2 * (F - y) / len(F) / (1 + np.mean((F - y) ** 2))), "one", "not convex: at three points", True),
    ("variance", lambda F, y: (-np.var(F - y), -2 * (F - y - np.mean(F - y)) / F.size), "one", "It is concave", True),
]  # fmt: skip
WRONG += [(f"total: {name}", total(method), *rest) for name, method, *rest in WRONG_TOTALS]


def problem(kind, seed=0):
    """Return y and what else `check_objective` takes."""
    rng = np.random.default_rng(seed)
    if kind == "classes":
        return rng.permutation(np.arange(N) % 3), {"n_classes": 3}
    if kind == "binary":
        return rng.permutation(np.arange(N) % 2), {}
    if kind == "ranking":
        return rng.integers(0, 3, N).astype(float), {"groups": np.repeat(np.arange(N // 6), 6)}
    if kind == "counts":
        return rng.poisson(2.0, N).astype(float), {}
    y = rng.normal(size=(N, 3)) if kind == "three" else 1 + 2 * rng.normal(size=N)
    return y, {"sample_weight": np.linspace(1, 3, N)} if kind == "weighted" else {}


def fit(loss, kind, **more):
    y, given = problem(kind)
    classes = given.pop("n_classes", 2 if kind == "binary" else None)
    estimator = (ConvexBoostClassifier if classes else ConvexBoostRegressor)(loss=loss, n_rounds=10, **more)
    X = np.random.default_rng(1).normal(size=(N, 3))
    return estimator.fit(X, y, **given)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("loss", "kind", "phrase"), [pytest.param(*w[1:4], id=w[0]) for w in WRONG])
def test_wrong_losses_are_named(loss, kind, phrase, seed):
    y, given = problem(kind, seed)
    with pytest.raises(ObjectiveError, match=f"(?s){phrase}") as error:
        check_objective(loss, y, random_state=seed, **given)
    assert str(error.value).endswith((".", "?"))


@pytest.mark.parametrize(("loss", "kind", "phrase"), [pytest.param(*w[1:4], id=w[0]) for w in WRONG if w[4]])
def test_wrong_losses_are_named_in_fit(loss, kind, phrase):
    if "not convex" in phrase or "concave" in phrase or "not use the weights" in phrase:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(loss, kind)
        assert len([w for w in caught if w.category is ObjectiveWarning]) == 1
        (message,) = (str(w.message) for w in caught if w.category is ObjectiveWarning)
        assert "check_objective" in message or "weight" in message
        return
    with pytest.raises(ObjectiveError, match=f"(?s){phrase}.*check_objective"):
        fit(loss, kind)
