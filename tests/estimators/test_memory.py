"""What a fit allocates for each row, on top of X and y."""

import tracemalloc

import numpy as np
import pytest

from convexboost import ConvexBoostClassifier
from convexboost.learners.stump import Stump

FEATURES, CLASSES = 50, 5
#: The codes, the scores and a little, half as much again.
BUDGET = 1.5 * (FEATURES + 8 * CLASSES + 16)


def peak(loss, n_samples, **options):
    rng = np.random.default_rng(0)
    X, y = rng.random((n_samples, FEATURES)), rng.integers(0, CLASSES, n_samples)
    learner = Stump(max_bins=16, max_table_mb=0)
    tracemalloc.start()
    try:
        ConvexBoostClassifier(loss, learner, n_rounds=4, n_jobs=2, **options).fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("loss", ["multiclass_hinge", "softmax"])
def test_peak_per_row(loss):
    """The difference of two sizes leaves out what does not grow with the rows."""
    peak(loss, 1000)  # compiles
    few, many = 20_000, 80_000
    assert (peak(loss, many) - peak(loss, few)) / (many - few) <= BUDGET
