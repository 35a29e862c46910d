"""Class weights are sample weights, and sample weights are rows."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from convexboost import ConvexBoostClassifier
from convexboost.core.communicator import ALONE

N = 200
FACTORS = (1.0, 3.0, 0.5)


def data(kind=int):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=N), [0.0, 1.5])
    return X, np.array(["a", "b", "c"])[y] if kind is str else y.astype(kind)


def fit(X, y, sample_weight=None, loss="softmax", learner="tree", **options):
    model = ConvexBoostClassifier(loss, learner, n_rounds=10, random_state=0, **options)
    return model.fit(X, y, sample_weight)


@pytest.mark.parametrize("learner", ["tree", "stump"])
@pytest.mark.parametrize("loss", ["softmax", "multiclass_hinge"])
def test_class_weight_two_is_every_row_twice(loss, learner):
    X, y = data()
    weighted = fit(X, y, None, loss, learner, class_weight={0: 2})
    twice = np.concatenate([np.arange(N), np.flatnonzero(y == 0)])
    doubled = fit(X[twice], y[twice], None, loss, learner)
    np.testing.assert_allclose(weighted.decision_function(X), doubled.decision_function(X), rtol=1e-6)
    plain = fit(X, y, None, loss, learner)
    assert np.abs(weighted.decision_function(X) - plain.decision_function(X)).max() > 0.01


@pytest.mark.parametrize("kind", [int, float, str])
@pytest.mark.parametrize("given", ["balanced", "dict"])
def test_as_in_scikit_learn(kind, given):
    X, y = data(kind)
    class_weight, weight = given, compute_sample_weight("balanced", y)
    if given == "dict":
        labels, numbers = np.unique(y, return_inverse=True)
        class_weight, weight = dict(zip(labels.tolist(), FACTORS, strict=True)), np.array(FACTORS)[numbers]
    expected = fit(X, y, weight)
    np.testing.assert_allclose(
        fit(X, y, class_weight=class_weight).decision_function(X), expected.decision_function(X), rtol=1e-9
    )
    own = np.random.default_rng(0).uniform(1, 2, N)
    if given == "dict":  # both count
        a, b = fit(X, y, own, class_weight=class_weight), fit(X, y, own * weight)
        np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-9)


def test_balanced_counts_weights_as_rows():
    X, y = data()
    counts = np.random.default_rng(0).integers(0, 3, N)
    rows = np.repeat(np.arange(N), counts)
    weighted = fit(X, y, counts, class_weight="balanced", early_stopping=False)
    spread = fit(X[rows], y[rows], class_weight="balanced", early_stopping=False)
    np.testing.assert_allclose(weighted.decision_function(X), spread.decision_function(X), rtol=1e-6)
    start = fit(X, y, class_weight="balanced", early_stopping=False).model_.start
    np.testing.assert_allclose(start, 0.0, atol=1e-9)  # all classes are as likely


def test_certificates_are_about_the_weighted_objective():
    X, y = data()
    model = fit(X, y, learner="stump", class_weight={0: 5.0}, l2=0.1, output="last", early_stopping=False)
    assert model.certify(X, y).objective == pytest.approx(model.history_["objective"][-1], rel=1e-9)


def test_labels_that_y_does_not_have():
    X, y = data()
    more = fit(X, y, class_weight={0: 1.0, 1: 2.0, 2: 1.0, 7: 9.0})  # a fold without class 7, say
    same = fit(X, y, class_weight={1: 2.0})
    np.testing.assert_array_equal(more.decision_function(X), same.decision_function(X))
    with pytest.raises(ValueError, match=r"`class_weight` holds a class that `y` does not: 7"):
        fit(X, y, class_weight={0: 1.0, 7: 2.0})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("heavy", "`class_weight` must be None, 'balanced' or a dict, got 'heavy'"),
        ([1, 2], r"`class_weight` must be None, 'balanced' or a dict, got \[1, 2\]"),
        ({0: -1.0}, "`class_weight` must hold finite, non-negative weights, got -1.0 for 0"),
        ({0: "two"}, "`class_weight` must hold finite, non-negative weights, got 'two' for 0"),
        ({0: np.inf}, "`class_weight` must hold finite, non-negative weights"),
        ({0: 0, 1: 0, 2: 0}, "`class_weight` must leave some weight"),
        ({0: 0, 1: 0}, "`y` must hold at least 2 classes with positive weight"),
    ],
)
def test_bad_class_weights(given, message):
    with pytest.raises(ValueError, match=message):
        fit(*data(), class_weight=given)


def test_balanced_weights_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    y, weight, order = rng.integers(0, 3, 1000), rng.uniform(0.1, 3.0, 1000), rng.permutation(1000)
    model = ConvexBoostClassifier(class_weight="balanced")
    found = []
    for rows in (np.arange(1000), order):
        model._learn_class_weights(y[rows], weight[rows], ALONE)
        found.append(model._weigh_classes(y[rows], weight[rows]))
    np.testing.assert_array_equal(found[0][order], found[1])
