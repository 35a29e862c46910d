"""What a fit allocates for each row, on top of X and y."""

import gc
import tracemalloc

import numpy as np
import pytest

from convexboost import ConvexBoostClassifier
from convexboost.estimators._validation import N_FOLDS
from convexboost.learners.stump import Stump

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

FEATURES, CLASSES = 50, 5
SCORES = 8 * CLASSES
#: The codes, the scores and a little (weights, row losses), three quarters more.
STUMPS = 1.75 * (FEATURES + SCORES + 16)
#: Codes, by rows and by columns; scores, subgradient and Δ, scores and subgradient that a refit tries, an
#: envelope's gradient; Δ in whole numbers of 32 bits; a few numbers.
TREES = 1.5 * (2 * FEATURES + 6 * SCORES + 4 * CLASSES + 32)
#: The rows of one member at a time are a copy of X; each row is trained on by all members but one, at no more
#: than half of TREES each (205 bytes were measured where half is 294), and validates once.
MEMBERS = 8 * FEATURES + (N_FOLDS - 1) * TREES / 2 + FEATURES + 2 * SCORES + 24

LOSSES = pytest.mark.parametrize("loss", ["multiclass_hinge", "softmax"])


def peak(loss, learner, n_samples, **options):
    rng = np.random.default_rng(0)
    X, y = rng.random((n_samples, FEATURES)), rng.integers(0, CLASSES, n_samples)
    # One thread: how many threads hold a block of rows, of fixed size, at the same time is chance.
    model = ConvexBoostClassifier(loss, learner, n_rounds=4, n_jobs=1, **options)
    gc.collect()  # when cycles are next collected is chance otherwise
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def per_row(loss, learner, **options):
    """Return the peak per row: the difference of two sizes leaves out what does not grow with the rows."""
    few, many = 20_000, 60_000
    peak(loss, learner, many, **options)  # compiles, also what only larger data need
    return (peak(loss, learner, many, **options) - peak(loss, learner, few, **options)) / (many - few)


@LOSSES
def test_stumps(loss):
    assert per_row(loss, Stump(max_bins=16, max_table_mb=0), early_stopping=False) <= STUMPS


@LOSSES
def test_trees(loss):
    assert per_row(loss, "tree", early_stopping=False) <= TREES


def test_members():
    assert per_row("softmax", "tree") <= MEMBERS
