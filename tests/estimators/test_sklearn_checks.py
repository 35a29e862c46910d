"""scikit-learn's own checks over a covering choice of parameters: none is expected to fail, none is skipped here.

Every loss, named learner, algorithm, step and output is in at least one of the estimators (asserted below), and
the rounds are few, because a check fits dozens of times.
"""

import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.learners.stump import Stump
from convexboost.objectives.quantile import Quantile
from convexboost.registry import available
from convexboost.steps import STEPS
from convexboost.train import OUTPUTS
from convexboost.variants import ALGORITHMS

ESTIMATORS = [
    ConvexBoostClassifier(n_rounds=8, n_jobs=1),
    ConvexBoostClassifier(
        "multiclass_hinge", "class_stump", "residual", n_rounds=12, output="average", step="adanorm:4", n_jobs=1
    ),
    ConvexBoostClassifier("multiclass_hinge", "stump", "repeated", n_rounds=4, output="last", n_jobs=1),
    ConvexBoostClassifier(
        "softmax", DecisionTreeRegressor(max_depth=3), "naive", n_rounds=3, step="line_search"
    ),
    ConvexBoostClassifier(
        "softmax",
        DecisionTreeClassifier(max_depth=3),
        "error_feedback",
        n_rounds=6,
        step="polyak",
        early_stopping=True,
        n_iter_no_change=3,
    ),
    ConvexBoostRegressor(n_rounds=20, n_jobs=1),
    ConvexBoostRegressor("absolute", "sign_stump", "dual_averaging", n_rounds=60, n_jobs=1),
    ConvexBoostRegressor("quantile:0.6", Stump(max_bins=32), "naive", n_rounds=60, output="last", n_jobs=1),
    ConvexBoostRegressor(
        Quantile(0.4), "stump", "error_feedback", n_rounds=60, step="inverse_sqrt:2", output="average", n_jobs=1
    ),
    ConvexBoostRegressor(
        "half_squared", ExtraTreeRegressor(max_depth=3), "residual", n_rounds=8, residual_decay=0.5, l2=0.01
    ),
    ConvexBoostRegressor(
        "half_squared",
        "stump",
        "repeated",
        n_rounds=8,
        step="inverse_time",
        early_stopping=True,
        n_iter_no_change=4,
        n_jobs=1,
    ),
    ConvexBoostRegressor("half_squared", "sign_stump", "naive", n_rounds=20, step="constant:0.9", n_jobs=1),
]


def names(parameter):
    values = [getattr(estimator, parameter) for estimator in ESTIMATORS]
    named = {str(getattr(value, "name", value)).partition(":")[0] for value in values if value is not None}
    return named | {estimator._default_loss for estimator in ESTIMATORS if parameter == "loss"}


@pytest.mark.parametrize(
    ("parameter", "wanted"),
    [
        ("loss", available("convexboost.objectives")),
        ("learner", available("convexboost.learners")),
        ("algorithm", ALGORITHMS),
        ("step", STEPS),
        ("output", OUTPUTS),
    ],
)
def test_every_name_is_covered(parameter, wanted):
    assert set(wanted) <= names(parameter)


@parametrize_with_checks(ESTIMATORS)
def test_sklearn(estimator, check):
    check(estimator)
