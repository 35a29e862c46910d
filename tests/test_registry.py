import pytest

from convexboost.objectives.absolute import Absolute
from convexboost.objectives.quantile import Quantile
from convexboost.registry import available, resolve
from convexboost.steps import STEPS
from convexboost.variants import ALGORITHMS

LOSSES = available("convexboost.objectives")
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
