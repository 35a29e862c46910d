"""The real data sets: nothing diverges, everything makes progress, with nothing set."""

import os

import numpy as np
import pytest

from convexboost.boosting.training import boost
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.space import FunctionSpace
from convexboost.datasets import load, load_letter
from convexboost.learners.stump import Stump
from convexboost.registry import available, resolve

CLASSES = ("letter", "pendigits", "satimage", "connect4")
NUMBERS = ("california_housing", "bike_sharing", "abalone", "airfoil")
GRADES = ("mq2008", "ohsumed", "lightgbm_rank")  #: mostly one grade, where the best constant is hard to beat
ROWS = 1500


pytestmark = pytest.mark.skipif(
    "CONVEXBOOST_DATA" not in os.environ,
    reason="set CONVEXBOOST_DATA to the folder with the data sets (letter/, pendigits/, ...)",
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("budget", [150, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CLASSES + NUMBERS + GRADES)
def test_auto_makes_progress_and_never_diverges(name, budget):
    data = load(name)
    rows = np.random.default_rng(0).choice(len(data.y), min(ROWS, len(data.y)), replace=False)
    X, y = data.X[rows], data.y[rows]
    space = FunctionSpace.of(len(y))
    hypotheses = Stump(max_bins=64).bind(X, space, data.categorical or None)
    tasks = {"classification"} if y.dtype.kind == "i" else {"regression"}
    for loss, cls in available("convexboost.losses").items():
        if cls.task not in tasks:
            continue
        objective = resolve("loss", loss, {loss: cls}).bind(y, space)
        for algorithm in ALGORITHMS:
            result = boost(objective, hypotheses, algorithm=algorithm, max_weak_learners=budget)
            assert result.stop.kind != "diverged", (loss, algorithm, result.stop.message)
            values = result.history["objective"]
            assert np.isfinite(values).all()
            if algorithm in ("residual", "repeated") and name not in GRADES:
                assert values.min() < 0.98 * values[0], (loss, algorithm)


def test_residual_is_far_ahead_of_naive_on_letter():
    """Figure 3 of the paper in small: naive stalls on the multiclass hinge."""
    X, _, y, _ = load_letter().split()
    space = FunctionSpace.of(len(y))
    H, objective = (
        Stump().bind(X, space),
        available("convexboost.losses")["multiclass_hinge"]().bind(y, space),
    )
    best = {
        a: boost(objective, H, algorithm=a, n_rounds=200).history["objective"].min()
        for a in ("naive", "residual")
    }
    assert best["residual"] < 0.6 < 0.9 < best["naive"]
