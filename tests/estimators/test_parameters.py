"""Parameters of the estimators: documented, checked together, set by nested names, and what "auto" means."""

import inspect
import pathlib
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.boosting.algorithms import Residual
from convexboost.boosting.steps import Constant, InverseSqrt, Polyak, Refit
from convexboost.core.protocols import Constants
from convexboost.learners.stump import Stump
from convexboost.learners.tree import Tree
from convexboost.losses import RowLoss
from convexboost.losses.cvar import CVaR
from convexboost.losses.quantile import Quantile
from convexboost.planning import Map, MaxMarginPlanner, Path

FOLDER = pathlib.Path(__file__).parents[2]
rng = np.random.default_rng(5)
N = 80
X = rng.normal(size=(N, 3))
Y = X[:, 0] + 0.1 * rng.normal(size=N)
C = (X[:, 0] > 0).astype(int)
QID = np.arange(N) // 8
BOOSTS = [ConvexBoostClassifier, ConvexBoostRegressor, ConvexBoostRanker]


def fitted(estimator):
    if estimator is MaxMarginPlanner:
        cells = np.array([(1, c) for c in range(5)])
        return estimator(n_rounds=2, learner="stump").fit(
            [Map(rng.random((4, 5, 2)), ("a", "b"))], [[Path(cells)]]
        )
    given = {ConvexBoostClassifier: (X, C), ConvexBoostRegressor: (X, Y), ConvexBoostRanker: (X, C, QID)}
    return estimator(n_rounds=2).fit(*given[estimator])


# --- documentation -----------------------------------------------------------------------------------------


def documented(estimator, section):
    """Return the entries of a section of the class's own docstring: {name: (type and default, text)}."""
    doc = inspect.cleandoc(vars(estimator)["__doc__"])
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    entries = re.findall(r"^(\w+) : (.+)\n((?:^(?: .*)?\n?)*)", found[1], re.MULTILINE)
    return {name: (kind, " ".join(text.split())) for name, kind, text in entries}


@pytest.mark.parametrize("estimator", [*BOOSTS, MaxMarginPlanner])
def test_every_parameter_is_documented(estimator):
    parameters = inspect.signature(estimator).parameters
    found = documented(estimator, "Parameters")
    assert list(found) == list(parameters)
    for name, parameter in parameters.items():
        kind, text = found[name]
        default = repr(parameter.default).replace("'", '"')
        assert kind.endswith(f"default={default}"), (name, kind)
        assert text.endswith("."), name
        assert ('"auto"' in text) == (parameter.default == "auto" or name == "early_stopping"), name


@pytest.mark.parametrize("estimator", [*BOOSTS, MaxMarginPlanner])
def test_every_attribute_is_documented(estimator):
    model = fitted(estimator)
    attributes = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    found = documented(estimator, "Attributes")
    assert attributes | {"feature_names_in_"} == set(found)
    assert all(text.endswith(".") for _, text in found.values())


def test_shared_parameters_are_described_in_the_same_words():
    reference = documented(ConvexBoostRegressor, "Parameters")
    for estimator in BOOSTS:
        found = documented(estimator, "Parameters")
        assert [name for name in found if name in reference and found[name] != reference[name]] in (
            [],
            ["loss"],
        )
        assert set(found) - set(reference) <= {"class_weight"}
    planner = documented(MaxMarginPlanner, "Parameters")
    same = ("algorithm", "max_weak_learners", "output", "callbacks")
    assert all(planner[name] == reference[name] for name in same)


def test_familiar_names_are_in_the_description_of_the_learner():
    text = documented(ConvexBoostRegressor, "Parameters")["learner"][1]
    for name in (
        *("max_leaves", "max_depth", "min_samples_leaf", "subsample", "colsample_bytree", "reg_lambda"),
        "monotone_constraints",
    ):
        assert name in text
        assert name in inspect.signature(Tree).parameters


# --- learning rate -----------------------------------------------------------------------------------------


def step_of(loss="half_squared", learner="tree", **options):
    model = ConvexBoostRegressor(loss, learner, n_rounds=2, early_stopping=False, **options).fit(X, Y)
    return model._settled.options.step


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Refit(0.1)),
        ({"learning_rate": 0.2}, Refit(0.2)),
        ({"learning_rate": 0.2, "algorithm": "naive"}, Refit(0.2)),
        ({"learning_rate": 0.2, "learner": "stump"}, Refit(0.2)),
        ({"learning_rate": 0.2, "learner": Ridge()}, Refit(0.2)),
        ({"learning_rate": 0.2, "loss": CVaR("absolute", 0.5)}, Polyak(0.2)),
        ({"learning_rate": 0.2, "step": "refit"}, Refit(0.2)),
        ({"learning_rate": 0.2, "step": "constant"}, Constant(0.2)),
        ({"learning_rate": 2, "step": "inverse_sqrt"}, InverseSqrt(2.0)),
        ({"learning_rate": 0.2, "step": "polyak", "algorithm": "error_feedback"}, Polyak(0.2)),
        (
            {"learning_rate": 0.2, "loss": CVaR("absolute", 0.5), "algorithm": "dual_averaging"},
            Polyak(0.2),
        ),
    ],
)
def test_learning_rate(options, expected):
    assert step_of(**options) == expected


def test_members_take_longer_steps_unless_a_rate_is_given():
    def steps(**options):
        settled = ConvexBoostRegressor(n_rounds=2, **options).fit(X, Y)._settled
        return settled.options.step, settled.ensemble_options.step

    assert steps() == (Refit(0.1), Refit(0.2))
    assert steps(learning_rate=0.3) == steps(step="refit:0.3") == (Refit(0.3), Refit(0.3))
    assert steps(loss=CVaR("absolute", 0.5)) == (Polyak(0.05), Polyak(0.05))
    one, several = steps(learner="stump")
    assert one == several


def test_learning_rate_is_the_rate_of_the_step():
    a = ConvexBoostRegressor(learning_rate=0.3, n_rounds=5, early_stopping=False).fit(X, Y)
    b = ConvexBoostRegressor(step="refit:0.3", n_rounds=5, early_stopping=False).fit(X, Y)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, r"`learning_rate` must be 'auto' or positive, got 0.0"),
        ({"learning_rate": "fast"}, r"`learning_rate` must be 'auto' or positive, got 'fast'"),
        ({"learning_rate": 0.1, "step": "inverse_sqrt:0.5"}, r"`learning_rate`=0.1 and `step`='inverse_sqrt"),
        ({"learning_rate": 0.1, "step": Refit(0.1)}, r"`learning_rate`=0.1 and `step`=Refit"),
        ({"learning_rate": 0.1, "step": "line_search"}, r"`learning_rate`=0.1 and `step` 'line_search'"),
        (
            {"learning_rate": 0.1, "algorithm": "dual_averaging"},
            r"`learning_rate`=0.1, which means step='refit',.*`algorithm` 'dual_averaging'.*does not fit",
        ),
    ],
)
def test_learning_rates_that_do_not_fit(options, message):
    refuses(message, **options)


# --- parameters that would be ignored ----------------------------------------------------------------------


def refuses(message, fit=(), **options):
    """A ValueError before any work: nothing was set."""
    seen = []
    model = ConvexBoostRegressor(callbacks=[seen.append], n_rounds=2, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, **dict(fit))
    assert not seen
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    ("options", "other"),
    [
        ({"accuracy": 0.1}, "algorithm='repeated'"),
        ({"accuracy": 0.1, "algorithm": Residual()}, "algorithm='repeated'"),
        ({"residual_decay": 0.5, "algorithm": "naive"}, "algorithm='residual'"),
        ({"residual_decay": 0.5, "algorithm": Residual()}, "algorithm='residual'"),
        ({"validation_fraction": 0.2}, "early_stopping=True"),
        ({"validation_fraction": 0.2, "early_stopping": False}, "early_stopping=True"),
        ({"n_iter_no_change": 5, "early_stopping": False}, "`early_stopping`=True, got False"),
        ({"n_iter_no_change": 10, "early_stopping": False}, "`early_stopping`=True, got False"),
        ({"scoring": "r2", "early_stopping": False}, "`early_stopping`, or `X_val` or `eval_set`"),
        ({"categorical_features": [0], "learner": Ridge()}, "got Regressor(estimator=Ridge())"),
    ],
)
def test_parameters_that_would_be_ignored(options, other):
    name = next(iter(options))
    refuses(rf"`{name}`=.* would be ignored: .*{re.escape(other)}", **options)


def test_arguments_that_would_be_ignored():
    refuses(
        r"`validation_fraction`=0.2 would be ignored: .*`X_val`",
        {"X_val": X, "y_val": Y},
        validation_fraction=0.2,
        early_stopping=True,
    )
    given = {"X_val": X, "y_val": Y}
    message = r"`n_iter_no_change`=5 would be ignored: .*`early_stopping`=True"
    refuses(message, given, n_iter_no_change=5, early_stopping=False)
    model = ConvexBoostRegressor(n_rounds=2)
    with pytest.raises(ValueError, match=r"`groups_val` would be ignored: `X_val` is missing"):
        model.fit(X, Y, groups_val=QID)
    with pytest.raises(ValueError, match=r"`groups_val` would be ignored: `groups` is missing"):
        model.fit(X, Y, X_val=X, y_val=Y, groups_val=QID)
    with pytest.raises(ValueError, match=r"`qid_val` would be ignored: `X_val` is missing"):
        ConvexBoostRanker(n_rounds=2).fit(X, C, QID, qid_val=QID)


@pytest.mark.parametrize(
    "options",
    [
        {"accuracy": 0.1, "algorithm": "repeated"},
        {"residual_decay": 0.5},
        {"validation_fraction": 0.2, "early_stopping": True},
        {"n_iter_no_change": 5},
        {"n_iter_no_change": 5, "learner": "stump"},
        {"n_iter_no_change": "auto", "early_stopping": False},
        {"categorical_features": None, "learner": Ridge()},
        {"categorical_features": [0], "learner": "stump"},
    ],
)
def test_parameters_that_are_used(options):
    ConvexBoostRegressor(n_rounds=2, **options).fit(X, Y)


# --- nested parameters -------------------------------------------------------------------------------------


def test_a_name_becomes_an_object_when_a_parameter_of_it_is_set():
    model = ConvexBoostRegressor("quantile:0.8", "tree")
    assert model.set_params(learner__max_leaves=7) is model
    assert model.learner == Tree(max_leaves=7)
    assert model.loss == "quantile:0.8"
    model.set_params(loss__quantile=0.3, learning_rate=0.1)
    assert model.loss == Quantile(0.3)
    model.set_params(learner="stump", learner__max_bins=8)
    assert model.learner == Stump(max_bins=8)
    assert model.get_params()["learner__max_bins"] == 8
    assert model.get_params(deep=False)["learner"] is model.learner
    copy = clone(model)
    assert (copy.learner, copy.loss) == (model.learner, model.loss)
    assert copy.learner is not model.learner
    model.set_params(learner=DecisionTreeRegressor(), learner__max_depth=2)
    assert model.learner.max_depth == 2


@pytest.mark.parametrize(
    "wrong", [{"learner__leaves": 7}, {"loss__quantile": 2.0}, {"depth": 3}, {"learner__max_leaves": 0}]
)
def test_wrong_nested_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)).rpartition("__")[2]):
        ConvexBoostRegressor("quantile").set_params(**wrong)


def test_set_params_sets_all_or_nothing():
    model = ConvexBoostRegressor(learner=Tree())
    for wrong in ({"learner__max_leaves": -3}, {"depth": 3}):
        with pytest.raises(ValueError, match=next(iter(wrong)).rpartition("__")[2]):
            model.set_params(n_rounds=7, **wrong)
        assert (model.n_rounds, model.learner) == ("auto", Tree())
    with pytest.raises(ValueError, match=r"`loss` is .*Own.*, which has no parameter `a`"):
        ConvexBoostRegressor(Own()).set_params(loss__a=3)


class Own:
    """A loss without parameters."""

    def evaluate(self, F, y):
        return (F - y)[:, 0] ** 2, 2.0 * (F - y)


def test_set_params_does_not_change_a_fitted_model():
    loss, learner = Quantile(0.9), Tree(max_leaves=4)
    keys = {loss, learner}
    model = ConvexBoostRegressor(loss, learner, n_rounds=5, early_stopping=False).fit(X, Y)
    model.set_params(loss__quantile=0.1, learner__max_leaves=7)
    assert (model.loss, model.learner) == (Quantile(0.1), Tree(max_leaves=7))
    assert {loss, learner} == keys == {Quantile(0.9), Tree(max_leaves=4)}
    loss.set_params(quantile=0.2)
    learner.set_params(max_leaves=9)
    assert (model.loss_, model._settled.learner) == (Quantile(0.9), Tree(max_leaves=4))


@pytest.mark.parametrize("learner", ["tree", Tree(min_samples_leaf=5)])
def test_grid_search(learner):
    grid = {"learner__max_leaves": [3, 15], "learning_rate": [0.05, 0.3], "loss__quantile": [0.4, 0.6]}
    model = ConvexBoostRegressor("quantile", learner, n_rounds=4, early_stopping=False)
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 8
    best = search.best_estimator_
    assert best.learner.max_leaves == search.best_params_["learner__max_leaves"]
    assert best.loss.quantile == search.best_params_["loss__quantile"]
    assert model.learner is learner
    assert model.loss == "quantile"


def test_pipeline_and_cross_validation():
    model = make_pipeline(StandardScaler(), ConvexBoostClassifier(n_rounds=3))
    model.set_params(convexboostclassifier__learner__max_leaves=4)
    assert model[-1].learner == Tree(max_leaves=4)
    assert len(cross_val_score(model, X, C, cv=3)) == 3
    grid = {"convexboostclassifier__learner__max_depth": [1, 2]}
    found = GridSearchCV(model, grid, cv=2).fit(X, C).best_estimator_[-1]
    assert found.learner.max_leaves == 4


def test_planner_takes_nested_parameters():
    assert MaxMarginPlanner(learner="stump").set_params(learner__max_bins=9).learner == Stump(max_bins=9)


# --- subclasses --------------------------------------------------------------------------------------------


class MedianOrSo(ConvexBoostRegressor):
    def __init__(self, alpha=0.5):
        super().__init__(loss=Quantile(alpha), n_rounds=3, random_state=0)
        self.alpha = alpha


def test_a_subclass_with_its_own_init():
    model = MedianOrSo(0.9).fit(X, Y)
    same = ConvexBoostRegressor(Quantile(0.9), n_rounds=3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert clone(model).set_params(alpha=0.3).get_params() == {"alpha": 0.3}
    assert "trials" in str(model.diagnose(X, Y, trials=True)).lower()


class Median(RowLoss):
    """A loss of a user, without `dataclass`."""

    task = "regression"

    def constants(self, n_outputs):
        return Constants(lipschitz=1.0, minimum=0.0)

    def evaluate(self, F, y):
        return abs(F - y)[:, 0], np.sign(F - y)


def test_a_loss_that_is_not_a_dataclass():
    model = ConvexBoostRegressor(Median(), n_rounds=3)
    assert repr(model.loss) == "Median()"
    assert "loss__" not in "".join(model.get_params())
    assert clone(model).fit(X, Y).n_rounds_ <= 3


# --- advice that can be followed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"learning_rate": 2.5}, "a smaller `learning_rate`"),
        ({"step": "refit:2.5"}, "step='auto'"),
    ],
)
def test_advice_about_a_run_that_diverged(options, advice):
    model = ConvexBoostRegressor(n_rounds=300, early_stopping=False, **options)
    with pytest.warns(ConvergenceWarning, match=advice) as warned:
        model.fit(X, Y)
    assert "learning_rate" in options or "learning_rate" not in str(warned[0].message)
    assert ("step=" in str(warned[0].message)) == ("step" in options)
    finding = next(found for found in model.diagnose().findings if found.rule == "step_too_large")
    assert ("smaller `learning_rate`" in finding.advice) == ("learning_rate" in options)
    assert ("step='refit:0.02'" in finding.advice) == ("step" in options)


def test_diagnosis_reads_the_decay_of_the_algorithm():
    for algorithm, decay in (
        (Residual(1.0), 1.0),
        ("residual", 0.7),
        ("naive", 0.0),
        ("dual_averaging", 1.0),
    ):
        model = ConvexBoostRegressor(algorithm=algorithm, n_rounds=2, early_stopping=False).fit(X, Y)
        assert model._settled.options.algorithm.decay == decay


# --- the page for users of other libraries -----------------------------------------------------------------
