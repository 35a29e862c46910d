"""What the contract tests run over: whatever the folders and tables hold.  A new file is tested at once."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from convexboost.core.gradients import Gradient
from convexboost.core.space import Array, FunctionSpace
from convexboost.learners.classifier import Classifier
from convexboost.learners.regressor import Regressor
from convexboost.registry import available, resolve

#: Losses with an argument, beside each loss with its defaults.
WITH_ARGUMENT = ("quantile:0.9", "quantile:0.15", "huber:0.3", "epsilon_insensitive:1")
#: Learners without a name: any scikit-learn estimator.  Trees read missing values and sparse columns.
WRAPPED = {
    "regressor": Regressor(DecisionTreeRegressor(max_depth=2)),
    "classifier": Classifier(DecisionTreeClassifier(max_depth=2)),
}
#: Learners that cannot serve a single output.
SEVERAL_OUTPUTS = {"class_stump"}

LOSSES = [*available("convexboost.losses"), *WITH_ARGUMENT]
LEARNERS = [*available("convexboost.learners"), *WRAPPED]


def loss(spec: str) -> Any:
    return resolve("loss", spec, available("convexboost.losses"))


def learner(spec: str) -> Any:
    return WRAPPED.get(spec) or resolve("learner", spec, available("convexboost.learners"))


def outputs(spec: str) -> tuple[int, ...]:
    """Numbers of outputs to try a loss with: few, and if it can have them, more."""
    if loss(spec).task == "regression":
        fixed = loss(spec).count_outputs(1)
        return (1, 3) if fixed == 1 else (fixed,)
    return {"classification": (2, 4), "binary": (1,), "ranking": (1,)}[loss(spec).task]


def count_classes(spec: str, n_outputs: int) -> int | None:
    """The `n_classes` that go with so many outputs."""
    return {"classification": n_outputs, "binary": 2}.get(loss(spec).task)


def targets(spec: str, rng: np.random.Generator, n: int, n_outputs: int) -> Array:
    """Targets that suit a loss, every class among them."""
    task, n_classes = loss(spec).task, count_classes(spec, n_outputs)
    if n_classes is not None:
        return np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n)])[:n]
    if task == "regression":
        n_targets = n_outputs if loss(spec).count_outputs(1) == 1 else 1
        y = rng.normal(size=(n, n_targets)) * 2.0 + 1.0
        return np.round(np.abs(y)) if getattr(loss(spec), "positive_only", False) else y
    if task == "ranking":
        return rng.integers(0, 4, (n, 1)).astype(float)
    raise NotImplementedError(f"tests/contracts/conftest.py does not know targets for the task {task!r}")


def groups_of(spec: str, n: int) -> Any:
    """A label per row for a loss that needs groups, None for others."""
    return np.arange(n) % 4 if loss(spec).needs_groups else None


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


def gradient(V: Array, space: FunctionSpace) -> Gradient:
    return Gradient(V, space)


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
