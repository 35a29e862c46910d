"""Fitted models of every loss and learner, for files and for ONNX."""

from __future__ import annotations

from functools import cache

import numpy as np

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from tests.contracts.conftest import (
    SEVERAL_OUTPUTS,
    WRAPPED,
    data,
    groups_of,
    learner,
    loss,
    outputs,
    targets,
)

TASKS = {
    "classification": ConvexBoostClassifier,
    "binary": ConvexBoostClassifier,
    "regression": ConvexBoostRegressor,
    "any": ConvexBoostRegressor,
    "ranking": ConvexBoostRanker,
}
NAMED = ["tree", "stump", "sign_stump", "class_stump", "additive", "network"]


def works(label, name):
    """Whether a loss and a learner go together."""
    return name not in SEVERAL_OUTPUTS or outputs(label)[-1] > 1


@cache
def fitted(label, name, kind="plain", n=60, n_rounds=4):
    """A small model, and new inputs."""
    rng = np.random.default_rng(1)
    inputs = data(kind, rng, n)
    n_outputs = outputs(label)[-1]
    y = targets(label, rng, n, n_outputs)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    spec = WRAPPED[name].estimator if name in WRAPPED else learner(name)
    arguments = {"categorical_features": inputs.categorical} if inputs.categorical else {}
    model = TASKS[loss(label).task](
        loss(label), spec, n_rounds=n_rounds, early_stopping=False, random_state=0, **arguments
    )
    if loss(label).task == "ranking":
        return model.fit(inputs.X, y, qid=np.arange(n) % 4), inputs
    given = groups_of(label, n)
    return model.fit(inputs.X, y, **({} if given is None else {"groups": given})), inputs
