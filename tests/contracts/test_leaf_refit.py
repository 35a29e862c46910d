"""A step may replace the leaf values altogether: the protocols carry it, and Δ still loses the projection."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from convexboost.boosting.steps import Step, search
from convexboost.boosting.training import boost
from convexboost.core.hypotheses import Direction, Move
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.losses.absolute import Absolute


class Refit(Step):
    """Minimise R over the value of each leaf in turn, along the indicator of the leaf."""

    name: ClassVar[str] = "refit"
    is_schedule: ClassVar[bool] = False

    def __call__(self, t, scores, h, memory):
        ((_, stump),) = h.terms
        values = np.zeros_like(stump.values)
        for leaf in np.unique(stump.leaf_of_bin):
            for sign in (1.0, -1.0):
                unit = np.zeros_like(values)
                unit[leaf] = sign
                indicator = Direction(((1.0, replace(stump, values=unit)),), 1.0)
                values[leaf] -= sign * search(scores, indicator, 1.0)
        return Move(Direction(((1.0, replace(stump, values=values)),), np.nan), 1.0)


def test_refit_makes_leaves_medians_of_the_residuals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(81, 2))
    y = 3 * (X[:, 0] > 0.2) + rng.normal(size=81) ** 3
    space = FunctionSpace.of(len(y))
    result = boost(
        Absolute().bind(y, space), Stump().bind(X, space), algorithm="residual", step=Refit(), n_rounds=1
    )
    stump = result.path.terms[0][1]
    leaf = stump.leaf_of_bin[result.path.mapper.prepare(X).column(stump.feature)]
    fitted = result.path.predict(X)[:, 0]
    for value in np.unique(leaf):
        below, above = (
            np.mean(y[leaf == value] < fitted[leaf == value] - 1e-6),
            np.mean(y[leaf == value] > fitted[leaf == value] + 1e-6),
        )
        assert below <= 0.5
        assert above <= 0.5


def test_refit_never_raises_the_objective_whatever_the_algorithm():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.standard_t(2, size=60)
    space = FunctionSpace.of(len(y))
    for algorithm in ("naive", "residual"):
        result = boost(
            Absolute().bind(y, space), Stump().bind(X, space), algorithm=algorithm, step=Refit(), n_rounds=12
        )
        assert (np.diff(result.history["objective"]) <= 1e-9).all()
        assert result.history["objective"][-1] < 0.8 * result.history["objective"][0]
