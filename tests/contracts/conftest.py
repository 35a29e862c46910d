"""What the contract tests run over: whatever the folders and tables hold.  A new file is tested at once."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.learners.classifier import Classifier
from convexboost.learners.regressor import Regressor
from convexboost.losses import (
    Absolute,
    CVaR,
    HalfSquared,
    Huber,
    Logistic,
    Quantile,
    Softmax,
    TotalVariation,
    as_loss,
    maximum,
)
from convexboost.losses._leaves import weighted_quantile
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss
from convexboost.registry import available, everything, resolve

#: Learners without a name: any scikit-learn estimator.  Trees read missing values and sparse columns.
WRAPPED = {
    "regressor": Regressor(DecisionTreeRegressor(max_depth=2)),
    "classifier": Classifier(DecisionTreeClassifier(max_depth=2)),
}
#: Learners that cannot serve a single output.
SEVERAL_OUTPUTS = {"class_stump"}
LEARNERS = [*available("convexboost.learners"), *WRAPPED]


def learner(spec: str) -> Any:
    return WRAPPED.get(spec) or resolve("learner", spec, available("convexboost.learners"))


# --- losses ------------------------------------------------------------------------------------------------


class UsersPinball:
    """A user's loss with nothing but row losses and subgradients."""

    def evaluate(self, F, y):
        over = F - y
        return np.maximum(-0.8 * over, 0.2 * over).sum(axis=1), np.where(over > 0, 0.2, -0.8) * (over != 0)


class UsersAbsolute:
    """A user's loss that declares all it can."""

    task, name = "regression", "users_absolute"

    def constants(self, n_outputs):
        return {"lipschitz": n_outputs**0.5, "minimum": 0.0}

    def evaluate(self, F, y):
        return np.abs(F - y).sum(axis=1), np.sign(F - y)

    def value(self, F, y):
        return np.abs(F - y).sum(axis=1)

    def prox(self, F, y, size):
        return F - (F - y).clip(-size, size)

    def start(self, y, weight):
        return weighted_quantile(y, FunctionSpace.of(len(y), weight), 0.5)

    def link(self, F):
        return F


class UsersTotal:
    """A user's loss of all rows at once: each is pulled to the mean of its group."""

    constants = Constants(minimum=0.0)

    def total(self, F, y, weight, groups):
        member = (groups[:, None] == np.unique(groups)).astype(float)
        share = member * weight[:, None] / (weight @ member)
        away = F - member @ (share.T @ F)
        value = 0.5 * weight @ ((F - y) ** 2 + away**2).sum(axis=1)
        return value, weight[:, None] * (F - y + away)


class TorchRows:
    """Row losses whose gradient PyTorch finds."""

    def value(self, F, y):
        return ((1.0 + (F - y) ** 2).sqrt() - 1.0).sum(dim=1)


class TorchTotal:
    """The same for all rows at once."""

    def value(self, F, y, weight):
        return (weight * ((F - y) ** 2).sum(dim=1)).sum()


#: Losses that are no file of their own.
EXPRESSIONS = {
    "sum": HalfSquared() + 0.5 * Absolute(),
    "multiple": 2.5 * Quantile(0.3),
    "multiple, several outputs": 2.5 * Softmax(),
    "multiple, two classes": 0.5 * Logistic(),
    "affine": Huber(0.5).affine(-2.0, 0.3),
    "affine, several outputs": HalfSquared().affine([[1.0, -0.5]]),
    "maximum": maximum(Absolute(), 0.5 * HalfSquared()),
    "maximum of functionals": maximum(CVaR("absolute", 0.5), 0.5 * HalfSquared()),
    "with a coupling": Logistic() + 2 * TotalVariation([(0, 1), (1, 2), (2, 3)], 0.3),
}
USERS = {
    "users rows": as_loss(UsersPinball()),
    "users rows, all declared": as_loss(UsersAbsolute()),
    "users total": as_loss(UsersTotal()),
}
#: Made when a test runs, so that PyTorch is imported then.
TORCH = {"torch rows": TorchRows, "torch total": TorchTotal}


def _of_files() -> dict[str, Loss]:
    """The examples that each class in the folder offers: "huber", "huber 2", …"""
    found = {}
    for name, cls in everything("convexboost.losses").items():
        for i, example in enumerate(cls.examples(), 1):
            found[name if i == 1 else f"{name} {i}"] = example
    return found


FILES = _of_files()
BY_LABEL = FILES | EXPRESSIONS | USERS
#: Every loss, by its label; those that need PyTorch are tested where it is installed.
LOSSES = [*BY_LABEL, *(TORCH if find_spec("torch") else ())]
#: One of each class, for tests that train: a coupling alone has nothing to fit.
ONE_EACH = [name for name in everything("convexboost.losses") if FILES[name].task != "any"]
ONE_EACH += ["maximum", "with a coupling", "users rows, all declared", "users total"]


def loss(label: str) -> Loss:
    return as_loss(TORCH[label]()) if label in TORCH else BY_LABEL[label]


@cache
def outputs_of_one_target(label: str) -> int:
    """How many outputs a loss of one numeric target has."""
    return bind(label, np.linspace(0.5, 2.0, 8)[:, None], FunctionSpace.of(8)).n_outputs


def outputs(label: str) -> tuple[int, ...]:
    """Numbers of outputs to try a loss with: few, and if it can have them, more."""
    if label in TORCH:
        return (1, 3)
    task = loss(label).task
    if task in ("classification", "binary", "ranking"):
        return (2, 4) if task == "classification" else (1,)
    fixed = outputs_of_one_target(label)
    return (fixed,) if fixed > 1 or loss(label).one_target else (1, 3)


def count_classes(label: str, n_outputs: int) -> int | None:
    """The `n_classes` that goes with a number of outputs."""
    return {"classification": n_outputs, "binary": 2}.get(loss(label).task)


def targets(label: str, rng: np.random.Generator, n: int, n_outputs: int) -> Array:
    """Targets that suit a loss, every class among them."""
    task, n_classes = loss(label).task, count_classes(label, n_outputs)
    if n_classes is not None:
        return np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n)])[:n]
    if task == "ranking":
        return rng.integers(0, 4, (n, 1)).astype(float)
    assert task in ("regression", "any"), f"tests/contracts/conftest.py does not know targets for {task!r}"
    n_targets = 1 if outputs_of_one_target(label) == n_outputs else n_outputs
    y = rng.normal(size=(n, n_targets)) * 2.0 + 1.0
    return np.round(np.abs(y)) if loss(label).positive_only else y


def groups_of(label: str, n: int) -> Any:
    """A label per row for a loss that takes groups, None for others."""
    return np.arange(n) % 4 if loss(label).takes_groups else None


def bind(label: str, y: Array, space: FunctionSpace, n_outputs: int = 1) -> BoundLoss:
    """The loss of these targets, with the groups that it takes."""
    groups = groups_of(label, len(y))
    return loss(label).bind(y, space, n_classes=count_classes(label, n_outputs), groups=groups)


# --- data --------------------------------------------------------------------------------------------------


def space_of(rng: np.random.Generator, n: int, weights: str) -> FunctionSpace:
    """Uniform, ordinary, or very uneven weights."""
    return FunctionSpace.of(
        n,
        {
            "uniform": None,
            "weighted": rng.uniform(0.2, 3.0, n),
            "uneven": 10.0 ** rng.uniform(-3, 3, n),
        }[weights],
    )


@dataclass
class Data:
    """Inputs to train on, and others to predict at."""

    X: Any
    new: Any
    categorical: list[int] | None = None


def data(kind: str, rng: np.random.Generator, n: int = 40) -> Data:
    """Plain numbers; sparse numbers; or every difficulty at once."""
    X, new = rng.normal(size=(n, 4)), rng.normal(size=(n, 4))
    if kind == "plain":
        return Data(X, new)
    if kind == "sparse":
        X, new = (np.where(rng.random(part.shape) < 0.6, 0.0, part) for part in (X, new))
        return Data(sp.csc_array(X), sp.csr_array(new))
    assert kind == "mixed"
    few, many = rng.integers(0, 4, (2, n)), rng.integers(0, 25, (2, n))
    columns = []
    for i, part in enumerate((X, new)):
        part[rng.random(part.shape) < 0.2] = np.nan
        part[:, 3] = np.round(part[:, 3])
        columns.append(np.column_stack([part, few[i], many[i], np.full(n, 7.0), np.full(n, np.nan)]))
    X, new = columns
    X[rng.random(n) < 0.2, 4] = np.nan
    new[: n // 4, 4] = 99.0  # not seen in training
    new[: n // 4, 6:] = 1.0
    new[n // 4 : n // 2, :6] = np.nan
    return Data(X, new, [4, 5])


def evaluate(direction: Any, inputs: Any, n_outputs: int) -> Array:
    """The values of a direction, row by row."""
    H = np.zeros((len(inputs), n_outputs))
    direction.add_to(H, inputs)
    return H


def all_pairs(factors: dict[str, list[Any]], valid: Any) -> list[dict[str, Any]]:
    """A short list of combinations in which every valid pair of values of two factors occurs."""
    names, rng = list(factors), np.random.default_rng(0)

    def pairs(case):
        return {((a, case[a]), (b, case[b])) for a, b in itertools.combinations(names, 2)}

    def draw():
        return {name: values[rng.integers(len(values))] for name, values in factors.items()}

    cases: list[dict[str, Any]] = []
    covered: set[Any] = set()
    for a, b in itertools.combinations(names, 2):
        for pair in itertools.product(factors[a], factors[b]):
            if ((a, pair[0]), (b, pair[1])) in covered:
                continue
            tries = [{**draw(), a: pair[0], b: pair[1]} for _ in range(40)]
            tries = [case for case in tries if valid(case)]
            if tries:
                cases.append(max(tries, key=lambda case: len(pairs(case) - covered)))
                covered |= pairs(cases[-1])
    return cases
