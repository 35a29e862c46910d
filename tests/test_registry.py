import re

import pytest

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.boosting.steps import STEPS
from convexboost.boosting.variants import ALGORITHMS
from convexboost.losses.absolute import Absolute
from convexboost.losses.quantile import Quantile
from convexboost.registry import ELSEWHERE, available, resolve

LOSSES = available("convexboost.losses")
LEARNERS = available("convexboost.learners")


def test_folders_are_listed():
    assert {"half_squared", "absolute", "quantile", "softmax", "multiclass_hinge"} <= set(LOSSES)
    assert {"stump", "class_stump", "sign_stump"} <= set(LEARNERS)
    for classes in (LOSSES, LEARNERS):
        assert list(classes) == sorted(classes)
        assert all(name == cls.name for name, cls in classes.items())
    assert all(name == cls.name for name, cls in STEPS.items())


def test_file_is_the_class_in_snake_case():
    for classes in (LOSSES, LEARNERS):
        for name, cls in classes.items():
            assert cls.__module__.rpartition(".")[2] == name
            assert cls.__name__.lower() == name.replace("_", "")


def test_by_name_argument_object_or_class():
    assert isinstance(resolve("loss", "absolute", LOSSES), Absolute)
    assert resolve("loss", "quantile:0.9", LOSSES) == Quantile(0.9)
    given = Quantile(0.3)
    assert resolve("loss", given, LOSSES) is given
    assert resolve("loss", Quantile, LOSSES) == Quantile()
    found = resolve("learner", "stump:64", LEARNERS)
    assert (found.max_bins, type(found.max_bins)) == (64, int)


@pytest.mark.parametrize(
    ("parameter", "spec", "classes", "hint"),
    [
        ("loss", "quantil", LOSSES, "quantile"),
        ("loss", "quantil:0.5", LOSSES, "quantile"),
        ("learner", "stumps", LEARNERS, "stump"),
        ("step", "inverse_sqr", STEPS, "inverse_sqrt"),
        ("algorithm", "residua", ALGORITHMS, "residual"),
    ],
)
def test_unknown_name_with_a_suggestion(parameter, spec, classes, hint):
    with pytest.raises(ValueError) as error:
        resolve(parameter, spec, classes)
    message = str(error.value)
    assert message.startswith(f"`{parameter}` must be one of ")
    assert message.endswith(f"got {spec!r}; did you mean {hint!r}?")
    assert all(name in message for name in classes)


def test_unknown_name_like_no_other():
    with pytest.raises(ValueError, match=r"`loss` must be one of .*, got 'xyz'$"):
        resolve("loss", "xyz", LOSSES)


def test_argument_that_is_no_number():
    with pytest.raises(ValueError, match=r"the argument of `loss` must be a number, got 'quantile:high'"):
        resolve("loss", "quantile:high", LOSSES)


@pytest.mark.parametrize(
    ("parameter", "spec", "classes"),
    [
        ("loss", "absolute:2", LOSSES),
        ("loss", "softmax:2", LOSSES),
        ("step", "line_search:3", STEPS),
        ("algorithm", "naive:1", ALGORITHMS),
        ("algorithm", "dual_averaging:1", ALGORITHMS),
    ],
)
def test_argument_that_is_not_taken(parameter, spec, classes):
    name = spec.partition(":")[0]
    with pytest.raises(ValueError, match=rf"`{parameter}` '{name}' takes no argument, got '{spec}'"):
        resolve(parameter, spec, classes)


@pytest.mark.parametrize(
    ("parameter", "spec", "classes", "message"),
    [
        ("loss", "quantile:1.5", LOSSES, r"`quantile` must lie in \(0, 1\), got 1.5"),
        ("learner", "stump:1", LEARNERS, r"`max_bins` must .* 2 and 255, got 1$"),
        ("learner", "stump:300", LEARNERS, r"`max_bins` must .* 2 and 255, got 300"),
        ("step", "constant:-2", STEPS, r"`scale` of a step must be positive, got -2"),
        ("step", "polyak:0", STEPS, r"`factor` of a step must be positive, got 0"),
        ("step", "adanorm:nan", STEPS, r"`scale` of a step must be positive, got nan"),
    ],
)
def test_argument_out_of_range_names_parameter_and_value(parameter, spec, classes, message):
    with pytest.raises(ValueError, match=message):
        resolve(parameter, spec, classes)


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        # scikit-learn
        ("squared_error", "'half_squared'"),
        ("absolute_error", "'absolute'"),
        ("log_loss", "'logistic' or 'softmax'"),
        ("pinball", "'quantile'"),
        # XGBoost
        ("reg:squarederror", "'half_squared'"),
        ("reg:absoluteerror", "'absolute'"),
        ("reg:quantileerror", "'quantile'"),
        ("reg:pseudohubererror", "'huber'"),
        ("count:poisson", "'poisson'"),
        ("binary:logistic", "'logistic'"),
        ("binary:hinge", "'hinge'"),
        ("multi:softprob", "'softmax'"),
        ("rank:ndcg", "'ranking_hinge'"),
        # LightGBM
        ("regression", "'half_squared'"),
        ("l2", "'half_squared'"),
        ("mse", "'half_squared'"),
        ("rmse", "'half_squared'"),
        ("l1", "'absolute'"),
        ("mae", "'absolute'"),
        ("binary", "'logistic'"),
        ("multiclass", "'softmax'"),
        ("lambdarank", "'ranking_hinge'"),
        # CatBoost
        ("RMSE", "'half_squared'"),
        ("MAE", "'absolute'"),
        ("Logloss", "'logistic' or 'softmax'"),
        ("CrossEntropy", "'logistic' or 'softmax'"),
        ("MultiClass", "'softmax'"),
        ("Quantile:alpha=0.9", "'quantile'"),
        ("YetiRank", "'ranking_hinge'"),
        # ours, in another spelling
        ("Softmax", "'softmax'"),
        ("HALF_SQUARED", "'half_squared'"),
        ("MulticlassHinge", "'multiclass_hinge'"),
    ],
)
def test_names_of_other_libraries(spec, hint):
    with pytest.raises(ValueError) as error:
        resolve("loss", spec, LOSSES)
    assert str(error.value).endswith(f"got {spec!r}; did you mean {hint}?")


@pytest.mark.parametrize("spec", ["tweedie", "gamma", "mape", "cox", "xyz"])
def test_losses_that_are_not_here_are_not_guessed_at(spec):
    with pytest.raises(ValueError, match=rf"got '{spec}'$"):
        resolve("loss", spec, LOSSES)


def test_names_of_other_libraries_belong_to_losses():
    assert set(ELSEWHERE) <= set(LOSSES)
    names = [name for names in ELSEWHERE.values() for name in names]
    assert not set(names) & set(LOSSES)
    assert all(name == name.lower() for name in names)
    assert all(len(set(names)) == len(names) for names in ELSEWHERE.values())


@pytest.mark.parametrize("estimator", [ConvexBoostRegressor, ConvexBoostClassifier, ConvexBoostRanker])
@pytest.mark.parametrize(
    "spec", ["squared_error", "log_loss", "lambdarank", "quantil", "hing", "xyz", "softmax"]
)
def test_estimators_offer_only_losses_that_they_take(estimator, spec):
    if spec in LOSSES and LOSSES[spec].task in estimator._tasks:
        return
    with pytest.raises(ValueError) as error:
        estimator(spec).fit(
            [[0.0], [1.0]], [0, 1], **({"qid": [0, 0]} if estimator is ConvexBoostRanker else {})
        )
    listed = re.split(r"[ ,;?'()]+", str(error.value).replace(repr(spec), ""))
    for name, cls in LOSSES.items():
        assert (name in listed) == (cls.task in estimator._tasks)
