"""No object fills the screen: whatever can be reached from a fitted model prints in a few lines."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import matplotlib
import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from convexboost import (
    ContributionDisplay,
    ConvergenceDisplay,
    ConvexBoostClassifier,
    ConvexBoostRegressor,
    EdgeDisplay,
    ImportanceDisplay,
    ShapeFunctionDisplay,
    boost,
)
from convexboost.boosting.training import Training
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.learners.tree import Tree
from convexboost.losses.absolute import Absolute

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROWS, COLUMNS, ROUNDS = 400, 60, 40


def reachable(thing, seen):
    """Objects of this package, through attributes, lists, tuples and dicts (a few of each list)."""
    if id(thing) in seen or isinstance(thing, type):
        return
    seen[id(thing)] = thing
    if isinstance(thing, dict):
        parts = list(thing.values())
    elif isinstance(thing, list | tuple):
        parts = list(thing[:3])
        yield from reachable_named(thing, seen)
    elif type(thing).__module__.startswith("convexboost"):
        yield thing
        parts = [v for k, v in getattr(thing, "__dict__", {}).items() if not k.startswith("__")]
    else:
        return
    for part in parts:
        yield from reachable(part, seen)


def reachable_named(thing, seen):
    module = type(thing).__module__
    # A NamedTuple; those of the kernels are lists of arguments, which nobody sees.
    if module.startswith("convexboost") and not module.startswith("convexboost.kernels"):
        yield thing


def check(*things):
    seen, kinds = {}, set()
    for thing in things:
        for found in reachable(thing, seen):
            text = repr(found)
            assert len(text) <= 1500, (type(found), len(text), text[:300])
            assert text.count("\n") <= 10, type(found)
            kinds.add(type(found).__name__)
    return kinds


rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, COLUMNS))
X[:, :3] = rng.integers(0, 200, (ROWS, 3))
Y = X @ rng.normal(size=COLUMNS) + np.abs(X[:, 3])
LEARNERS = ["stump", "sign_stump", "additive", "network", Tree(), DecisionTreeRegressor(max_depth=2)]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_fitted_regressor(learner):
    options = {"certificate": learner != "network"}
    if not hasattr(learner, "fit"):
        options["categorical_features"] = [0, 1, 2]
    model = ConvexBoostRegressor("absolute", learner, n_rounds=ROUNDS, l2=0.01, **options).fit(X, Y)
    kinds = check(model.model_, model.history_, model.certificate_, model.diagnose())
    assert "AdditiveModel" in kinds
    assert len(kinds) >= 4


def test_fitted_classifier():
    model = ConvexBoostClassifier("multiclass_hinge", "class_stump", n_rounds=ROUNDS, l2=0.01)
    model.fit(X, np.digitize(Y, [-3, 0, 3]))
    assert repr(model.model_).startswith(f"AdditiveModel({model.best_round_} rounds, ")
    assert repr(model.model_).endswith("terms, 4 outputs)")
    check(model.model_, model.certify(X, np.digitize(Y, [-3, 0, 3])))


def test_history_is_a_dict_with_a_short_repr():
    model = ConvexBoostRegressor(learner="stump", n_rounds=ROUNDS, early_stopping=False).fit(X, Y)
    assert isinstance(model.history_, dict)
    assert len(repr(model.history_)) < 300
    assert f"{ROUNDS} rounds" in repr(model.history_)


@pytest.mark.parametrize("learner", [Stump(), Tree()], ids=str)
def test_result_and_training(learner, monkeypatch):
    made = []
    init = Training.__init__
    monkeypatch.setattr(
        Training, "__init__", lambda self, *a, **k: (made.append(self), init(self, *a, **k))[1]
    )
    space = FunctionSpace.of(ROWS)
    result = boost(
        Absolute().bind(Y[:, None], space), learner.bind(X, space), n_rounds=ROUNDS, certificate=True
    )
    made[0].state()  # training keeps it; without this, only a run that takes seconds has one
    kinds = check(result, *made, space, made[0].members[0].progress)
    assert {"Result", "Training", "AdditiveModel", "Record", "FunctionSpace"} <= kinds


def test_dataclasses_that_hold_arrays_are_brief():
    """A model's parts as they are named in their own fields, not as pages of digits."""
    model = ConvexBoostRegressor(learner="stump", n_rounds=ROUNDS).fit(X, Y)
    mapper = model.model_.mapper
    assert is_dataclass(mapper)
    assert all(f.name in repr(mapper) for f in fields(mapper) if f.repr)
    assert "array" in repr(mapper) or "items" in repr(mapper)


def test_explanations_and_pictures():
    """Many columns, of which a few have many values: a function of a column has a node for each."""
    coarse = np.hstack([X[:, :6], X[:, 6:].round()])
    model = ConvexBoostRegressor(learner="additive", n_rounds=5).fit(coarse, Y)
    pictures = [
        ConvergenceDisplay.from_estimator(model),
        EdgeDisplay.from_estimator(model),
        ImportanceDisplay.from_estimator(model),
        ContributionDisplay.from_estimator(model, coarse),
        ShapeFunctionDisplay.from_estimator(model, 5),
    ]
    plt.close("all")
    kinds = check(model.model_.nodes(), model.shape_functions(), *pictures)
    assert {"Nodes", "ShapeFunction", "ImportanceDisplay"} <= kinds
    for picture in pictures:
        assert repr(picture).startswith(f"{type(picture).__name__}(")
        assert " at 0x" not in repr(picture)
