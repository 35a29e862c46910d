"""A zoo of wrong losses, each named for its mistake, and one of right losses, none of which is suspected."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import wraps

import numpy as np
import pytest
from numba import njit

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor, FunctionSpace, boost, check_loss
from convexboost.checks import LossError, LossWarning, guarded
from convexboost.checks._first_rounds import COMPARED, FirstRounds
from convexboost.checks._mistakes import search
from convexboost.checks._probe import Probe, quiet
from convexboost.inspection.certify import certify
from convexboost.learners.stump import Stump
from convexboost.losses import (
    Absolute,
    BoundLoss,
    Constants,
    HalfSquared,
    Loss,
    MulticlassHinge,
    Quantile,
    Ridge,
    RowLoss,
    Softmax,
    maximum,
)
from convexboost.losses._custom import as_loss
from convexboost.registry import available

pytestmark = pytest.mark.one_in(3)  # the others: make test-slow

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
    more = {key: staticmethod(item) if callable(item) else item for key, item in more.items()}
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
    return rows(lambda F, y: (np.abs(F - y).sum(axis=1), np.where(y == F, at, np.sign(F - y))))


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
    ("transposed", changed(lambda F, y, G: G.T), "three", r"got \(3, 60\).*transposed", True),
    (
        "one column",
        changed(lambda F, y, G: G.sum(axis=1)),
        "three",
        r"shape \(60, 3\) like `F`, got \(60,\).*3 outputs",
        True,
    ),
    ("summed", changed(lambda F, y, G: G.sum(axis=0)), "three", r"got \(3,\).*summed over the rows", True),
    (
        "number",
        rows(lambda F, y: (half_squared(F, y)[0].sum(), F - y)),
        "one",
        r"shape \(60,\), got \(\).*`total`",
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


def writing(name, method):
    """A method that computes the right thing and then writes into one of its arguments."""

    @wraps(method)
    def wrong(*arguments, **named):
        found = method(*arguments, **named)
        at = 0 if name in ("F", "y of start") else 1
        written = named[name] if name in named else arguments[at]
        written[1:2] = written[:1] + 1
        return found

    return wrong


def prox_of_half_squared(F, y, size):
    return (F + size * y) / (1 + size)


WRONG += [
    (f"{method} writes {name}", rows(half_squared, **{method: writing(name, right)}), "one", phrase, in_fit)
    for method, right, name, phrase, in_fit in (
        ("prox", prox_of_half_squared, "F", "`prox` of Mine writes into `F`", False),
        ("prox", prox_of_half_squared, "y", "`prox` of Mine writes into `y`", False),
        ("value", lambda F, y: half_squared(F, y)[0], "F", "`value` of Mine writes into `F`", True),
        ("value", lambda F, y: half_squared(F, y)[0], "y", "`value` of Mine writes into `y`", True),
        ("start", lambda y, weight: y.mean(axis=0), "y of start", "`start` of Mine writes into `y`", False),
        ("start", lambda y, weight: y.mean(axis=0), "weight", "`start` of Mine writes into `weight`", False),
        ("link", lambda F: 2 * F, "F", "`link` of Mine writes into `F`", True),
    )
]
WRONG += [
    ("link, 1-d", rows(half_squared, link=lambda F: F[:, 0]), "three", r"`link` returns shape \(60,\)", True),
    ("link, rows", rows(half_squared, link=lambda F: F[1:]), "one", r"`link` returns shape \(59, 1\)", True),
    ("link, number", rows(half_squared, link=np.mean), "one", r"`link` returns shape \(\)", True),
    ("link, NaN", rows(half_squared, link=lambda F: np.nan * F), "one", "`link` returns nan for f =", True),
    (
        "link, no probabilities",
        rows(logistic, task="binary", link=lambda F: F),
        "binary",
        "`link` returns .* for f = .*Probabilities",
        True,
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
    (
        "row gradients",
        lambda F, y: (half_squared(F, y)[0].mean(), F - y),
        "one",
        "multiplied by the number of rows",
        True,
    ),
    (
        "mean of G",
        lambda F, y: (half_squared(F, y)[0].sum(), (F - y) / len(F)),
        "one",
        "divided by the number",
        True,
    ),
    (
        "no weights",
        lambda F, y: (half_squared(F, y)[0].mean(), (F - y) / len(F)),
        "weighted",
        "does not use the weights",
        True,
    ),
    (
        "ignores",
        lambda F, y, weight: (half_squared(F, y)[0].mean(), (F - y) / len(F)),
        "one",
        "does not use the weights, though",
        False,
    ),
    (
        "weights in value",
        lambda F, y, weight: (weight @ half_squared(F, y)[0], F - y),
        "weighted",
        "lacks the weights",
        True,
    ),
    (
        "weights in value, none given",
        lambda F, y, weight: (weight @ half_squared(F, y)[0], (F - y) / len(F)),
        "one",
        "lacks the weights",
        False,
    ),
    (
        "weights twice",
        lambda F, y, weight: (weight @ half_squared(F, y)[0], weight[:, None] ** 2 * (F - y)),
        "weighted",
        "weights twice",
        True,
    ),
    (
        "not the row twice",
        lambda F, y, weight: ((weight**2) @ half_squared(F, y)[0], (weight**2)[:, None] * (F - y)),
        "one",
        "weight 2 is not the row twice",
        False,
    ),
    ("row losses", lambda F, y: half_squared(F, y), "one", "must return one number.*`evaluate`", True),
    ("transposed", lambda F, y: (half_squared(F, y)[0].sum(), (F - y).T), "three", "transposed", True),
    ("sign", lambda F, y, qid: pairs(F, y, qid, -1.0), "ranking", "wrong sign", True),
    ("twice", lambda F, y, qid: pairs(F, y, qid, 2.0), "ranking", "off by the factor 2", True),
    (
        "not convex",
        lambda F, y: (np.log1p(np.mean((F - y) ** 2)), 2 * (F - y) / len(F) / (1 + np.mean((F - y) ** 2))),
        "one",
        "not convex: at three points",
        True,
    ),
    (
        "variance",
        lambda F, y: (-np.var(F - y), -2 * (F - y - np.mean(F - y)) / F.size),
        "one",
        "It is concave",
        True,
    ),
]
WRONG_TOTALS += [
    (f"writes {name}", writing(name, mean_squared), "one", f"`total` of Mine writes into `{name}`", True)
    for name in ("F", "y", "weight")
]
WRONG += [(f"total: {name}", total(method), *rest) for name, method, *rest in WRONG_TOTALS]


def problem(kind, seed=0):
    """Return y and what else `check_loss` takes."""
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


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("loss", "kind", "phrase"), [pytest.param(*w[1:4], id=w[0]) for w in WRONG])
def test_wrong_losses_are_named(loss, kind, phrase, seed):
    y, given = problem(kind, seed)
    with pytest.raises(LossError, match=f"(?s){phrase}") as error:
        check_loss(loss, y, random_state=seed, **given)
    assert str(error.value).endswith((".", "?"))


@pytest.mark.parametrize(("loss", "kind", "phrase"), [pytest.param(*w[1:4], id=w[0]) for w in WRONG if w[4]])
def test_wrong_losses_are_named_in_fit(loss, kind, phrase):
    if "not convex" in phrase or "concave" in phrase or "not use the weights" in phrase:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(loss, kind)
        assert len([w for w in caught if w.category is LossWarning]) == 1
        (message,) = (str(w.message) for w in caught if w.category is LossWarning)
        assert "check_loss" in message or "weight" in message
        return
    with pytest.raises(LossError, match=f"(?s){phrase}.*check_loss"):
        fit(loss, kind)


# -- right losses: not a word ---------------------------------------------------------------------------


def float32(F, y):
    """Single precision inside."""
    R = F.astype(np.float32) - y.astype(np.float32)
    return 0.5 * (R**2).sum(axis=1), R


def float32_logistic(F, y):
    f, sign = F[:, 0].astype(np.float32), (2 * y - 1).astype(np.float32)
    return np.logaddexp(np.float32(0), -sign * f), (1 / (1 + np.exp(-f)) - y).astype(np.float32)


def float32_total(F, y):
    R = F.astype(np.float32) - y.astype(np.float32)
    return np.float32(0.5) * (R**2).mean(), R / np.float32(R.size)


def expanded(F, y):
    """Loses digits near the targets."""
    return (0.5 * F**2 - F * y + 0.5 * y**2).sum(axis=1), F - y


def huber(F, y):
    R = F - y
    return np.where(np.abs(R) < 1, 0.5 * R**2, np.abs(R) - 0.5).sum(axis=1), np.clip(R, -1, 1)


def log_cosh(F, y):
    R = F - y
    return (np.logaddexp(R, -R) - np.log(2)).sum(axis=1), np.tanh(R)


def insensitive(F, y):
    R = F - y
    return np.maximum(np.abs(R) - 0.5, 0).sum(axis=1), np.sign(R) * (np.abs(R) > 0.5)


def euclidean(F, y):
    R = F - y
    length = np.sqrt((R**2).sum(axis=1))
    return length, R / np.maximum(length, 1e-300)[:, None]


def exponential(F, y):
    sign = 2.0 * y - 1
    return np.exp(-sign * F[:, 0]), -(sign * np.exp(-sign * F[:, 0]))[:, None]


def hinge(F, y):
    sign = 2.0 * y - 1
    margin = sign * F[:, 0]
    return np.maximum(1 - margin, 0), np.where(margin < 1, -sign, 0.0)  # a gradient of shape (n,)


def squared_hinge(F, y):
    sign = 2.0 * y - 1
    short = np.maximum(1 - sign * F[:, 0], 0)
    return short**2, (-2 * sign * short)[:, None]


def worst_group(F, y, groups, weight):
    """The largest mean loss of a group."""
    labels = np.unique(groups)
    means = [(weight * (groups == g)) @ half_squared(F, y)[0] / weight[groups == g].sum() for g in labels]
    own = groups == labels[int(np.argmax(means))]
    return max(means), (F - y) * (weight * own / weight[own].sum())[:, None]


def soft_maximum(F, y, weight):
    losses = np.abs(F - y).sum(axis=1)
    top = losses.max()
    shares = weight * np.exp(losses - top)
    return top + np.log(shares.sum()), np.sign(F - y) * (shares / shares.sum())[:, None]


def pair_hinge(F, y, qid):
    f, G = F[:, 0], np.zeros(F.shape)
    better = (qid[:, None] == qid[None, :]) & (y[:, 0][:, None] > y[:, 0][None, :])
    short = np.where(better, np.maximum(1 - f[:, None] + f[None, :], 0), 0.0)
    active = (short > 0) / better.sum()
    G[:, 0] = active.sum(axis=0) - active.sum(axis=1)
    return short.sum() / better.sum(), G


def probabilities(F):
    return np.column_stack([1 - sigmoid(F[:, 0]), sigmoid(F[:, 0])])


def between(F, y, size):
    return (F + size * y) / (1 + size)


KNOWN = {"smoothness": 1.0, "strong_convexity": 1.0, "minimum": 0.0}
RIGHT = {
    "half squared": (rows(half_squared, constants=KNOWN, prox=between), "three"),
    "start": (rows(half_squared, start=lambda y, weight: y.mean(axis=0)), "one"),
    "start at 0": (rows(half_squared, start=lambda y, weight: [0.0]), "one"),
    "value": (rows(half_squared, value=lambda F, y: half_squared(F, y)[0]), "one"),
    "float32": (rows(float32), "three"),
    "float32 logistic": (rows(float32_logistic, task="binary"), "binary"),
    "float32 total": (total(float32_total), "three"),
    "expanded": (rows(expanded), "one"),
    "huber": (rows(huber, constants={"smoothness": 1.0, "minimum": 0.0}), "three"),
    "log cosh": (rows(log_cosh, constants={"lipschitz": 1.0, "smoothness": 1.0}), "one"),
    "insensitive": (rows(insensitive), "one"),
    "euclidean": (rows(euclidean, constants={"lipschitz": 1.0}), "three"),
    "poisson": (rows(poisson), "counts"),
    "exponential": (rows(exponential, task="binary"), "binary"),
    "logistic": (rows(logistic, task="binary", link=probabilities), "binary"),
    "hinge": (rows(hinge, task="binary", constants={"lipschitz": 1.0}), "binary"),
    "squared hinge": (rows(squared_hinge, task="binary"), "binary"),
    "cross entropy": (rows(cross_entropy, link=softmax), "classes"),
    "kink at -1": (kink(-1.0), "one"),
    "kink at 1": (kink(1.0), "three"),
    "total": (total(mean_squared, constants=KNOWN), "weighted"),
    "worst group": (total(worst_group), "ranking"),
    "worst row": (total(spread, constants={"minimum": 0.0}), "one"),
    "soft maximum": (total(soft_maximum), "weighted"),
    "pairs": (total(lambda F, y, qid: pairs(F, y, qid)), "ranking"),
    "pair hinge": (total(pair_hinge), "ranking"),
    "in an expression": (as_loss(rows(huber)) + 2 * Absolute() + Ridge(0.1), "one"),
    "affine": (as_loss(rows(huber)).affine(-2.0, 1.0), "one"),
    "total in an expression": (0.5 * as_loss(total(mean_squared)) + Quantile(0.8), "weighted"),
}

EXPRESSIONS = {
    "sum": Absolute() + HalfSquared(),
    "multiples": 2 * Absolute() + 0.1 * Quantile(0.3),
    "maximum": maximum(Absolute(), 0.5 * HalfSquared()),
    "ridge": Quantile(0.9) + Ridge(0.1),
    "affine": HalfSquared().affine(-3.0, 0.5),
    "matrix": (Absolute() + HalfSquared()).affine([[1.0, 2.0], [0.5, -1.0]]),
    "classes": Softmax() + 0.5 * MulticlassHinge(),
    "classes, maximum": maximum(Softmax(), MulticlassHinge()),
}


def targets_for(loss, scale, seed):
    """Targets that suit a loss of the library; None if there is nothing to scale."""
    rng, k = np.random.default_rng(seed), 2
    given = {"groups": np.repeat(np.arange(N // 6), 6)} if loss.needs_groups else {}
    if loss.task in ("classification", "binary"):
        K = 2 if loss.task == "binary" else 3
        return (rng.permutation(np.arange(N) % K), given) if scale == 1 else None
    if loss.task == "ranking":
        return (rng.integers(0, 3, N).astype(float), given) if scale == 1 else None
    y = scale * (1 + 2 * rng.normal(size=(N, k)))
    for candidate in (y, np.abs(y), (rng.random((N, k)) < 0.5) * 1.0, y[:, :1], np.abs(y[:, :1])):
        try:
            loss.bind(candidate, FunctionSpace.of(N), groups=given.get("groups"))
        except ValueError:
            continue
        return candidate, given
    pytest.skip("needs targets of its own")


def look(loss, y, seed=0, sample_weight=None, groups=None, n_classes=None):
    """What a fit begins with; it may be wrong, which only costs time, but should not."""
    loss = as_loss(loss)
    objective = loss.bind(y, FunctionSpace.of(len(y), sample_weight), n_classes, groups)
    with quiet():
        search(Probe(objective, loss, np.random.default_rng([seed, 7]), thorough=False))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("scale", [1, 1e5, 1e-5])
@pytest.mark.parametrize("name", [*available("convexboost.losses"), *EXPRESSIONS])
def test_losses_of_the_library_are_right(name, scale):
    loss = EXPRESSIONS.get(name) or available("convexboost.losses")[name]()
    found = targets_for(loss, scale, 0)
    if found is not None:
        y, given = found
        weight = np.random.default_rng(0).uniform(0.2, 3, N)
        check_loss(loss, y, sample_weight=weight, **given)
        for seed in range(3):
            look(loss, y, seed, **given)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", RIGHT)
def test_right_losses_are_right(name):
    loss, kind = RIGHT[name]
    for seed, scale in enumerate((1, 1e5, 1e-5)):
        y, given = problem(kind, seed)
        if scale == 1 or kind in ("one", "three", "weighted", "counts"):
            check_loss(loss, y * scale, random_state=seed, **given)
            look(loss, y * scale, seed, **given)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("n_rows", [1, 2, 5])
@pytest.mark.parametrize("name", [name for name, (_, kind) in RIGHT.items() if kind != "ranking"])
def test_few_rows(name, n_rows):
    loss, kind = RIGHT[name]
    y, given = problem(kind)
    given = {key: item if key == "n_classes" else item[:n_rows] for key, item in given.items()}
    check_loss(loss, y[:n_rows], **given)
    look(loss, y[:n_rows], **given)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", RIGHT)
def test_a_fit_with_a_right_loss_says_nothing(name):
    loss, kind = RIGHT[name]
    for algorithm in ("residual", "naive"):
        fit(loss, kind, algorithm=algorithm)


# -- PyTorch --------------------------------------------------------------------------------------------


def torch_losses():
    import torch

    def detached(F, y):
        return ((F.detach() - y) ** 2).sum(dim=1)

    def root(F, y):
        return torch.sqrt(((F - y) ** 2).sum(dim=1))

    def partly(F, y):
        return ((F - y) * (F - y).detach()).sum(dim=1)

    def noisy(F, y):
        return ((F - y + 0.1 * torch.randn_like(F)) ** 2).sum(dim=1)

    def tanh(F, y):
        return (torch.tanh(F - y) ** 2).mean()

    def table(F, y):
        return (F - y) ** 2

    def naive(F, y):
        return torch.log(1 + torch.exp(-(2 * y - 1) * F[:, 0]))

    def squares(F, y):
        return ((F - y) ** 2).sum(dim=1)

    def mean(F, y, weight):
        return (weight * (F - y).abs().sum(dim=1)).sum()

    def mean_alone(F, y):
        return ((F - y) ** 2).mean()

    def single(F, y):
        return torch.nn.functional.smooth_l1_loss(F.float(), y.float(), reduction="none").sum(dim=1)

    wrong = {
        "detached": (value(detached), "three", "gradient is 0 everywhere.*detach", True),
        "root": (value(root), "one", r"gradient is not finite \(nan\).*sqrt at 0", True),
        "partly": (value(partly), "one", r"off by the factor 0\.5", True),
        "noisy": (value(noisy), "one", "two calls with the same scores", True),
        "tanh": (value(tanh), "one", "not convex", True),
        "table": (value(table), "three", r"got shape \(60, 3\)\. Sum over the outputs", True),
        "naive": (value(naive, task="binary"), "binary", r"value is not finite \(inf\)", False),
        "no weights": (value(mean_alone), "weighted", "does not use the weights", True),
    }
    right = {
        "squares": (value(squares), "three"),
        "mean": (value(mean), "weighted"),
        "mean alone": (value(mean_alone), "three"),
        "single": (value(single), "three"),
    }
    return wrong, right


@pytest.mark.parametrize(
    "name", ["detached", "root", "partly", "noisy", "tanh", "table", "naive", "no weights"]
)
def test_wrong_losses_in_torch(name):
    pytest.importorskip("torch")
    loss, kind, phrase, in_fit = torch_losses()[0][name]
    test_wrong_losses_are_named(loss, kind, phrase, 0)
    if in_fit:
        test_wrong_losses_are_named_in_fit(loss, kind, phrase)


@pytest.mark.parametrize("name", ["squares", "mean", "mean alone", "single"])
def test_right_losses_in_torch(name):
    pytest.importorskip("torch")
    loss, kind = torch_losses()[1][name]
    for seed in range(3):
        y, given = problem(kind, seed)
        check_loss(loss, y, random_state=seed, **given)
    fit(loss, kind)


# -- what is reported ---------------------------------------------------------------------------------


def test_report():
    y, _ = problem("three")
    smooth = check_loss("half_squared", y)
    assert not smooth.kinks
    assert not smooth.coupled
    assert "looks smooth" in str(smooth)
    kinks = check_loss(Absolute(), y)
    assert kinks.kinks
    assert kinks.lipschitz == pytest.approx(np.sqrt(3))
    assert kinks.minimum == 0.0
    assert str(kinks).startswith("|f − y|: no mistake found, at ")
    coupled = check_loss(total(spread), y)
    assert coupled.coupled
    assert coupled.kinks
    assert "It is a loss of all rows at once." in str(coupled)
    assert "It takes no `weight`" in str(coupled)
    assert "overflows at scores of about 7" in str(check_loss(rows(poisson), np.abs(y)))


@pytest.mark.parametrize("name", ["hinge", "insensitive", "huber", "log cosh", "cross entropy", "pair hinge"])
def test_kinks_are_found_by_search(name):
    """Not only on the targets."""
    loss, kind = RIGHT[name]
    y, given = problem(kind)
    assert check_loss(loss, y, **given).kinks == (name in ("hinge", "insensitive", "pair hinge"))


def test_a_wrong_subgradient_away_from_the_targets_is_found():
    """At |f − y| = ½, where only the search goes."""

    def evaluate(F, y):
        losses, G = insensitive(F, y)
        return losses, np.where(np.abs(np.abs(F - y) - 0.5) < 1e-6, 3.0, G)

    with pytest.raises(LossError, match=r"at a kink .*the gradient 3 is no"):
        check_loss(rows(evaluate), problem("one")[0])


def test_labels_of_any_kind():
    y = np.array(["no", "yes", "maybe"] * 10)
    assert check_loss("softmax", y).loss.startswith("log")
    check_loss(rows(cross_entropy), y)
    with pytest.raises(ValueError, match=r"`n_classes` is 2, but `y` has 3 classes"):
        check_loss("softmax", y, n_classes=2)
    with pytest.raises(ValueError, match=r"`y` must have shape \(n_samples,\) for classes"):
        check_loss("softmax", y[:, None])
    with pytest.raises(ValueError, match="`sample_weight` must hold 30 positive numbers"):
        check_loss("softmax", y, sample_weight=np.zeros(30))
    with pytest.raises(ValueError, match="`groups` must have 30 labels like `y`, got 2"):
        check_loss(total(pair_hinge), np.zeros(30), groups=[1, 2])
    with pytest.raises(ValueError, match="`loss` must be one of"):
        check_loss("nothing", y)


def test_errors_of_the_users_own_come_through():
    def evaluate(F, y):
        raise ValueError("mine")

    for check in (lambda: check_loss(rows(evaluate), np.zeros(5)), lambda: fit(rows(evaluate), "one")):
        with pytest.raises(ValueError, match=r"^mine$") as error:
            check()
        assert not isinstance(error.value, LossError)


def test_many_rows_are_sampled():
    """Only some of many rows are tried; the factor is still named."""
    seen = []

    def evaluate(F, y):
        seen.append(len(F))
        return half_squared(F, y)[0], (F - y) / 5000

    y = np.random.default_rng(0).normal(size=5000)
    with pytest.raises(LossError, match="divided by the number of rows, 5000"):
        check_loss(rows(evaluate), y)
    assert max(seen) == 200


# -- watching a fit -----------------------------------------------------------------------------------


class Counting:
    def __init__(self, method):
        self.method, self.calls = method, 0

    def total(self, F, y):
        self.calls += 1
        return self.method(F, y)


def mean_half_squared(F, y):
    return half_squared(F, y)[0].mean(), (F - y) / len(F)


def bound(loss, y):
    X = np.random.default_rng(1).normal(size=(N, 3))
    space = FunctionSpace.of(N)
    return as_loss(loss).bind(y, space), Stump().bind(X, space)


class Pinball:
    """A user's loss with a kink and a prox: trees follow the gradient of its envelope."""

    def __init__(self, prox):
        self._prox = prox

    def evaluate(self, F, y):
        over = F - y
        return np.maximum(0.9 * over, -0.1 * over).sum(axis=1), np.where(over > 0, 0.9, -0.1)

    def prox(self, F, y, size):
        return self._prox(F, y, size)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize(
    ("prox", "message"),
    [
        (lambda F, y, size: F + size, "`prox` with size .* is not the minimiser"),
        (lambda F, y, size: np.full(F.shape, np.nan), "`prox` with size .* is not the minimiser"),
        (lambda F, y, size: F[:-1], r"`prox` of Pinball must return scores of shape \(\d+, 1\) like `F`"),
    ],
)
def test_a_fit_does_not_follow_a_wrong_prox(prox, message, scale):
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(ValueError, match=message):
        ConvexBoostRegressor(Pinball(prox), n_rounds=5, early_stopping=False).fit(X, scale * X[:, 0])


def test_a_users_prox_makes_trees_like_those_of_our_loss():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = X[:, 0] + np.abs(X[:, 1])
    mine = Pinball(lambda F, y, size: F - (F - y).clip(-0.1 * size, 0.9 * size))
    options = {"n_rounds": 1, "early_stopping": False, "random_state": 0}
    ((_, a),), ((_, b),) = (
        ConvexBoostRegressor(loss, **options).fit(X, y).model_.terms for loss in (mine, "quantile:0.1")
    )
    np.testing.assert_array_equal(a.feature, b.feature)
    np.testing.assert_array_equal(a.masks, b.masks)


# -- arrays are for reading -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["prox", "evaluate"])
def test_a_loss_that_writes_into_the_scores_late_is_noticed(method):
    """Not in the first calls, which are watched, but in the tenth: the scores must not change."""
    calls = []

    def late(F, *arguments):
        calls.append(1)
        found = prox_of_absolute(F, *arguments) if method == "prox" else absolute(F, *arguments)
        if len(calls) >= 40:
            F[:] = arguments[0]
        return found

    methods = {"evaluate": absolute, "prox": prox_of_absolute, method: late}
    X = np.random.default_rng(0).normal(size=(N, 2))
    model = ConvexBoostRegressor(rows(**methods), n_rounds=60, early_stopping=False, n_jobs=1)
    with pytest.raises(LossError, match=f"`{method}` of Mine writes into `F`, e.g. in row"):
        model.fit(X, X[:, 0] + np.abs(X[:, 1]))


def absolute(F, y):
    return np.abs(F - y).sum(axis=1), np.sign(F - y)


def prox_of_absolute(F, y, size):
    return F - (F - y).clip(-size, size)


def needs_writable(function):
    """What Cython's memory views and compiled code with fixed signatures do."""

    def method(*arrays):
        if not all(x.flags.writeable for x in arrays if isinstance(x, np.ndarray)):
            raise ValueError("buffer source array is read-only")
        return function(*arrays)

    return method


def test_code_that_only_insists_on_writable_arrays_gets_copies():
    y, X = problem("one")[0], np.random.default_rng(0).normal(size=(N, 2))
    own, other = rows(absolute), rows(needs_writable(absolute))
    check_loss(other, y)
    a, b = (ConvexBoostRegressor(loss, "stump", n_rounds=10).fit(X, y).predict(X) for loss in (own, other))
    np.testing.assert_array_equal(a, b)


def test_numba_losses_read_what_they_are_given():
    @njit
    def compiled(F, y):
        losses, G = np.empty(len(F)), np.empty(F.shape)
        for n in range(len(F)):
            losses[n], G[n, 0] = abs(F[n, 0] - y[n, 0]), np.sign(F[n, 0] - y[n, 0])
        return losses, G

    @njit
    def writes(F, y):
        found = compiled(F, y)
        F[0, 0] = 0.5
        return found

    y = problem("one")[0]
    check_loss(rows(compiled), y)
    with pytest.raises(LossError, match="`evaluate` of Mine writes into `F`"):
        check_loss(rows(writes), y)


def test_a_users_own_error_comes_out_as_it_is():
    def broken(F, y):
        raise ValueError("my own words")

    with pytest.raises(ValueError, match=r"^my own words$"):
        as_loss(rows(broken)).evaluate(np.zeros((3, 1)), np.zeros((3, 1)))


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_a_link_of_one_output_may_have_one_dimension(shape):
    y, X = problem("one")[0], np.random.default_rng(0).normal(size=(N, 2))
    loss = rows(half_squared, link=lambda F: np.exp(F).reshape(shape))
    check_loss(loss, y)
    model = ConvexBoostRegressor(loss, "stump", n_rounds=5, early_stopping=False).fit(X, y)
    plain = ConvexBoostRegressor(rows(half_squared), "stump", n_rounds=5, early_stopping=False).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), np.exp(plain.predict(X)))
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last, model.predict(X))


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_a_link_may_give_the_probability_of_the_second_class_alone(shape):
    y, X = problem("binary")[0], np.random.default_rng(0).normal(size=(N, 2))
    loss = rows(logistic, task="binary", link=lambda F: sigmoid(F).reshape(shape))
    check_loss(loss, y)
    P = ConvexBoostClassifier(loss, "stump", n_rounds=5).fit(X, y).predict_proba(X)
    expected = ConvexBoostClassifier("logistic", "stump", n_rounds=5).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(P, expected, rtol=1e-6)


def test_comparing_ends():
    """A few evaluations before, two more in each of the first rounds, and none afterwards."""
    y = problem("one")[0]
    calls = {}
    for rounds in (1, COMPARED, 20):
        for watched in (False, True):
            loss = Counting(mean_half_squared)
            objective, hypotheses = bound(loss, y)
            if watched:
                objective = guarded(objective)
                before = loss.calls
            result = boost(objective, hypotheses, n_rounds=rounds, step="constant:0.1", start=np.zeros(1))
            calls[rounds, watched] = loss.calls - (before if watched else 0)
            calls[rounds, watched, "objective"] = result.records[-1].objective
    assert before <= 8
    for rounds in (1, COMPARED, 20):
        extra = calls[rounds, True] - calls[rounds, False]
        assert extra == 2 * min(rounds, COMPARED - 1)
        assert calls[rounds, True, "objective"] == calls[rounds, False, "objective"]


@pytest.mark.parametrize(
    "make", [lambda **more: rows(half_squared, **more), lambda **more: total(mean, **more)]
)
def test_what_is_declared_wrongly_is_not_blamed_on_another_method(make):
    y = problem("one")[0]
    with pytest.raises(LossError, match=r"^Mine: `link` returns shape \(59, 1\)"):
        check_loss(make(link=lambda F: F[1:]), y)
    with pytest.raises(LossError, match=r"^Mine: `start` returns 1000"):
        check_loss(make(start=lambda y, weight: np.array([1000.0])), y)
    with pytest.raises(LossError, match=r"^Mine: the declared minimum 5 is wrong"):
        check_loss(make(constants={"minimum": 5.0}), y)


def mean(F, y, weight):
    return float(weight @ half_squared(F, y)[0]), weight[:, None] * (F - y)


def test_losses_of_the_library_are_not_observed():
    objective, _ = bound(Absolute(), problem("one")[0])
    assert guarded(objective) is objective
    mixed, _ = bound(Absolute() + as_loss(rows(huber)), problem("one")[0])
    assert isinstance(guarded(mixed).observer, FirstRounds)


def test_a_guarded_objective_is_the_objective():
    y = problem("one")[0]
    for l2 in (0.0, 0.3):
        objective = bound(rows(half_squared, constants=KNOWN, prox=between), y)[0].with_l2(l2)
        watched = guarded(objective)
        F = np.random.default_rng(2).normal(size=(N, 1))
        assert watched.value(F) == objective.value(F)
        assert watched.constants == objective.constants
        np.testing.assert_array_equal(watched.evaluate(F)[1], objective.evaluate(F)[1])
        np.testing.assert_array_equal(watched.start(), objective.start())
        np.testing.assert_array_equal(watched.prox(F, 1.0), objective.prox(F, 1.0))
        assert not watched.has_pieces
        scores = [o.scores(None, np.zeros(1), F) for o in (objective, watched)]
        assert scores[0].rescaled(0.5) == scores[1].rescaled(0.5)
        assert watched.with_l2(1.0).constants.strong_convexity == 2.0


def half(F, y):
    return mean_half_squared(F, y)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda F, y: (half(F, y)[0], half(F, y)[1] / 3), "after a round the gradient says"),
        (lambda F, y: (np.nan, half(F, y)[1]), "the value is not finite at the scores of an early round"),
        (lambda F, y: (half(F, y)[0], np.nan * F), "the gradient is not finite at the scores of an early"),
    ],
)
def test_the_first_rounds_are_compared(wrong, what):
    y = 1000 + problem("one")[0]
    objective = guarded(bound(total(half), y)[0])
    scores = objective.scores(None, np.zeros(1))
    scores.value()
    object.__setattr__(objective, "loss", as_loss(total(wrong)))  # what it says from now on
    scores.restore((np.full((N, 1), 100.0), []))
    with pytest.raises(LossError, match=f"{what}.*check_loss"):
        scores.value()


def test_a_bump_between_rounds_is_a_warning():
    y = problem("one")[0]
    objective = guarded(bound(total(half), y)[0])
    scores = objective.scores(None, np.zeros(1))
    scores.value()

    def bumpy(F, y):
        R, G = half(F, y)
        return R + 500 * np.cos(F.mean() / 10), G - 50 * np.sin(F.mean() / 10) / len(F)

    object.__setattr__(objective, "loss", as_loss(total(bumpy)))
    scores.restore((np.full((N, 1), 66.0), []))
    with pytest.warns(LossWarning, match="not convex: between the scores of two rounds"):
        scores.value()
    scores.restore((np.full((N, 1), 60.0), []))
    scores.value()  # once is enough


def test_a_guarded_loss_is_certified():
    y = np.random.default_rng(0).normal(size=40)
    X, space = y[:, None] + 0.1, FunctionSpace.of(40)
    loss = rows(lambda F, y: (np.abs(F - y).sum(axis=1), np.sign(F - y)))
    type(loss).prox = lambda self, F, y, size: F - (F - y).clip(-size, size)
    objective, H = guarded(as_loss(loss).bind(y, space)), Stump().bind(X, space)
    result = boost(objective, H, n_rounds=30)
    found = certify(objective, H, result.model)
    assert found.ball(found.radius).value <= found.objective


# --- a user's subclasses ----------------------------------------------------------------------------------


def subclass(evaluate, parent=RowLoss):
    return type("Mine", (parent,), {"evaluate": evaluate, "task": "regression"})()


class OfAllRows(Loss):
    """A user's `Loss` that binds to an objective of the user."""

    couples_rows = False

    def __init__(self, sign=1.0):
        self.sign = sign

    def bind(self, y, space, n_classes=None, groups=None):
        return MyObjective(self.sign, np.reshape(y, (-1, 1)), space=space, n_outputs=1)


@dataclass(frozen=True)
class MyObjective(BoundLoss):
    sign: float
    y: np.ndarray

    @property
    def targets(self):
        return self.y

    def loss_constants(self):
        return Constants()

    def evaluate(self, F):
        return self.space.mean(np.abs(F - self.y)[:, 0]), self.sign * np.sign(F - self.y)


REGRESSION = np.random.default_rng(0).normal(size=(60, 2)), np.random.default_rng(1).normal(size=60)


@pytest.mark.parametrize("parent", [RowLoss, Absolute, HalfSquared])
def test_a_subclass_is_checked_like_a_plain_object(parent):
    """The same mistake has the same message."""

    def evaluate(self, F, y):
        return np.abs(F - y).sum(axis=1), -np.sign(F - y)

    messages = []
    for loss in (subclass(evaluate, parent), type("Mine", (), {"evaluate": evaluate})()):
        with pytest.raises(LossError, match="`evaluate` of Mine: the gradient has the wrong sign") as found:
            ConvexBoostRegressor(loss, n_rounds=5).fit(*REGRESSION)
        messages.append(str(found.value))
        with pytest.raises(LossError, match="wrong sign"):
            check_loss(loss, REGRESSION[1])
    assert messages[0] == messages[1]


def test_a_subclass_may_not_write_into_its_arguments():
    def evaluate(self, F, y):
        F -= y
        return np.abs(F).sum(axis=1), np.sign(F)

    with pytest.raises(LossError, match="`evaluate` of Mine writes into `F`"):
        ConvexBoostRegressor(subclass(evaluate), n_rounds=5).fit(*REGRESSION)


def test_code_of_a_subclass_that_needs_writable_arrays_gets_copies():
    def evaluate(self, F, y):
        if not (F.flags.writeable and y.flags.writeable):
            raise ValueError("buffer source array is read-only")
        return np.abs(F - y).sum(axis=1), np.sign(F - y)

    X, y = REGRESSION
    found = ConvexBoostRegressor(subclass(evaluate), n_rounds=5).fit(X, y).predict(X)
    plain = type("Mine", (), {"evaluate": evaluate})()
    np.testing.assert_array_equal(found, ConvexBoostRegressor(plain, n_rounds=5).fit(X, y).predict(X))


def test_a_loss_with_an_objective_of_a_user_is_checked():
    ConvexBoostRegressor(OfAllRows(), n_rounds=5).fit(*REGRESSION)
    with pytest.raises(LossError, match="the gradient has the wrong sign"):
        ConvexBoostRegressor(OfAllRows(-1.0), n_rounds=5).fit(*REGRESSION)
    with pytest.raises(LossError, match="the gradient has the wrong sign"):
        ConvexBoostRegressor(2 * OfAllRows(-1.0), n_rounds=5).fit(*REGRESSION)


def test_a_multiple_of_a_loss_that_does_not_couple_rows_trains():
    """`couples_rows = False` does not make it a `RowLoss`."""
    a, b = (ConvexBoostRegressor(loss, "stump", n_rounds=5) for loss in (OfAllRows(), 2 * OfAllRows()))
    np.testing.assert_allclose(
        2 * a.fit(*REGRESSION).history_["objective"][0], b.fit(*REGRESSION).history_["objective"][0]
    )
    assert not (2 * OfAllRows()).couples_rows


@pytest.mark.parametrize(
    "loss", [Absolute(), 2 * Absolute() + HalfSquared(), maximum("absolute", "half_squared")]
)
def test_losses_of_the_library_are_not_checked(loss):
    assert not loss.is_custom
    assert not hasattr(type(loss).evaluate, "__wrapped__")
