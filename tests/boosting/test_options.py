"""Options travel in one object; `boost` and `Training` take the same arguments."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

from convexboost.boosting.algorithms import Algorithm, Naive, Repeated, Residual
from convexboost.boosting.options import Options
from convexboost.boosting.steps import STEPS, Auto, Constant, InverseSqrt, Polyak
from convexboost.boosting.training import Stop, Training, boost
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.losses.absolute import Absolute

rng = np.random.default_rng(2)
X = rng.normal(size=(40, 2))
Y = X[:, 0] + rng.normal(size=40)
SPACE = FunctionSpace.of(40)


def problem():
    return Absolute().bind(Y, SPACE), Stump(max_bins=8).bind(X, SPACE)


def test_names_become_objects():
    assert Options() == Options(algorithm=Residual(), step=Auto())
    given = Options(algorithm="repeated", step="inverse_sqrt:0.5")
    assert (given.algorithm, given.step) == (Repeated(), InverseSqrt(0.5))
    assert replace(given, n_rounds=3).algorithm is given.algorithm
    with pytest.raises(FrozenInstanceError):
        given.n_rounds = 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "newton"}, r"`algorithm` must be one of naive, .*, got 'newton'"),
        ({"algorithm": 3}, r"`algorithm` must be a name or of type Algorithm, got 3"),
        ({"step": "long"}, r"`step` must be one of auto, .*, got 'long'"),
        ({"step": 0.1}, r"`step` must be a name or of type Step, got 0.1"),
        ({"output": "first"}, r"`output` must be one of last, best, average, got 'first'"),
        ({"output": None}, r"`output` must be one of last, best, average, got None"),
        ({"n_rounds": -1}, r"`n_rounds` must be a whole number of at least 0, got -1"),
        ({"n_rounds": 2.5}, r"`n_rounds` must be a whole number of at least 0, got 2.5"),
        ({"max_weak_learners": 0}, r"`max_weak_learners` must be a positive integer or None, got 0"),
        ({"n_iter_no_change": 1.5}, r"`n_iter_no_change` must be a positive integer or None, got 1.5"),
        ({"early_patience": 0}, r"`early_patience` must be a positive integer or None, got 0"),
        ({"validation_decides": "no"}, r"`validation_decides` must be True or False, got 'no'"),
        ({"stop_when_gap_below": 0.0}, r"`stop_when_gap_below` must be positive or None, got 0.0"),
    ],
)
@pytest.mark.parametrize("call", [boost, Training])
def test_wrong_values(call, settings, message):
    with pytest.raises(ValueError, match=message):
        call(*problem(), **settings)


@pytest.mark.parametrize("call", [boost, Training])
def test_unknown_names_are_refused(call):
    with pytest.raises(TypeError, match=r"`rounds` is not an option of training, which are algorithm, step,"):
        call(*problem(), rounds=3)


@pytest.mark.parametrize("call", [boost, Training])
def test_arguments_of_another_kind(call):
    R, H = problem()
    with pytest.raises(TypeError, match=r"`options` must be Options or None, got \{'n_rounds': 2\}"):
        call(R, H, {"n_rounds": 2})
    with pytest.raises(TypeError, match=r"`objective` must be a bound loss, .*, got Absolute\(\)"):
        call(Absolute(), H)
    with pytest.raises(TypeError, match=r"`hypotheses` must be a bound learner, .*, got Stump\(\)"):
        call(R, Stump())


def test_unknown_output_of_a_result():
    with pytest.raises(ValueError, match=r"`output` must be one of last, best, average, got 'foo'"):
        Training(*problem()).result("foo")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Residual("a"), r"`decay` must lie in \[0, 1\], got 'a'"),
        (lambda: Repeated(accuracy="a"), r"`accuracy` must be positive, got 'a'"),
        (lambda: Repeated(cap=1.5), r"`cap` must be a positive integer or None, got 1.5"),
        (lambda: Polyak(target="a"), r"`target` of a step must be a number or None, got 'a'"),
        (lambda: Polyak(target=np.nan), r"`target` of a step must be a number or None, got nan"),
        *(
            (
                lambda value=value: Stump(max_table_mb=value),
                r"`max_table_mb` must be a number of at least 0, got",
            )
            for value in ("a", np.nan, -1, np.inf)
        ),
    ],
)
def test_wrong_parameters_of_parts(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_settings_change_the_options():
    options = Options(n_rounds=7, step="constant:0.1", output="last")
    a = boost(*problem(), options)
    b = boost(*problem(), n_rounds=7, step=Constant(0.1), output="last")
    c = boost(*problem(), options, n_rounds=4)
    assert (len(a.records), len(c.records)) == (8, 5)
    np.testing.assert_array_equal(a.model.predict(X), b.model.predict(X))
    assert a.stop == Stop("rounds", "all 7 rounds done")


def test_boost_takes_what_training_takes():
    assert inspect.signature(boost).parameters == inspect.signature(Training).parameters
    documented = boost.__doc__ + Options.__doc__
    assert all(f"{field.name}" in documented for field in fields(Options))


@pytest.mark.parametrize("output", ["best", "last", "average"])
def test_a_checkpoint_goes_on_in_a_new_training(output):
    options = Options(n_rounds=12, step="constant:0.5", output=output)
    whole = boost(*problem(), options)
    first = Training(*problem(), options)
    for _ in range(5):
        first.round()
    seen = []
    second = Training(*problem(), options, callbacks=[lambda record: seen.append(record.round)])
    second.restore(pickle.loads(pickle.dumps(first.state())))
    second.run()
    assert seen == list(range(5, 13))
    np.testing.assert_array_equal(second.result().model.predict(X), whole.model.predict(X))
    np.testing.assert_array_equal(second.result("last").model.predict(X), whole.path.predict(X))


def test_names_of_algorithms():
    assert {name: cls().name for name, cls in ALGORITHMS.items()} == {name: name for name in ALGORITHMS}
    assert Residual(0.0).name == Naive().name == "naive"
    assert [name for name, cls in ALGORITHMS.items() if cls.adds_one_hypothesis] == ["naive", "residual"]
    with pytest.raises(NotImplementedError):
        Algorithm().round(None)


@pytest.mark.parametrize("name", STEPS)
def test_steps_with_a_rate(name):
    step = STEPS[name]()
    if name in ("auto", "line_search"):
        with pytest.raises(ValueError, match=rf"`learning_rate`=0.2 and `step` '{name}' cannot be combined"):
            step.with_rate(0.2)
    else:
        rated = step.with_rate(0.2)
        assert type(rated) is type(step)
        assert getattr(rated, step.rate_parameter) == 0.2
        with pytest.raises(ValueError, match="must be positive"):
            step.with_rate(-1.0)
