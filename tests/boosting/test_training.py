"""The driver: stopping, recording, validation, states, and which iterate is handed out."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from convexboost.boosting.steps import Constant, InverseSqrt, Step
from convexboost.boosting.training import Training, boost
from convexboost.core.protocols import Constants
from convexboost.core.space import FunctionSpace
from convexboost.learners.stump import Stump
from convexboost.losses.absolute import Absolute
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.multiclass_hinge import MulticlassHinge

N = 60
rng = np.random.default_rng(8)
X, NEW = rng.normal(size=(N, 3)), rng.normal(size=(N, 3))
SPACE = FunctionSpace.of(N)


def truth(X):
    return X[:, 0] + np.abs(X[:, 1]) + 0.8 * np.random.default_rng(0).normal(size=len(X))


def run(loss=None, y=None, n_rounds=20, step="inverse_sqrt", H=None, **options):
    objective = (loss or Absolute()).bind(truth(X) if y is None else y, SPACE)
    return boost(objective, H or Stump(max_bins=12).bind(X, SPACE), n_rounds=n_rounds, step=step, **options)


def validation(loss=None):
    """Scores at other rows, for a fresh run."""
    H = Stump(max_bins=12).bind(X, SPACE)
    loss = loss or Absolute()
    start = loss.bind(truth(X), SPACE).start()
    return loss.bind(truth(NEW), SPACE).scores(H.mapper.prepare(NEW), start)


# --- records -----------------------------------------------------------------------------------------------


def test_records():
    result = run(algorithm="repeated", n_rounds=5)
    history = result.history
    assert history["round"].tolist() == [0, 1, 2, 3, 4, 5]
    assert history["weak_learners"].tolist() == [0, 1, 3, 6, 10, 15]
    assert history["gradient_evaluations"].tolist() == [0, 1, 2, 3, 4, 5]
    assert np.isnan(history["validation"]).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    assert history["step"][0] == 0.0
    np.testing.assert_allclose(history["step"][1:], 1 / np.sqrt(np.arange(1, 6)))
    assert result.stop.message == "all 5 rounds done"
    assert result.stop.kind != "diverged"


def test_objective_is_that_of_the_model_after_the_round():
    result = run(n_rounds=6, output="last")
    objective = Absolute().bind(truth(X), SPACE)
    for t, record in enumerate(result.records):
        assert record.objective == pytest.approx(
            objective.value(result.path.truncate(t).predict(X)), rel=1e-12
        )


def test_no_rounds():
    result = run(n_rounds=0)
    assert len(result.records) == 1
    assert result.stop.message == "all 0 rounds done"
    np.testing.assert_array_equal(result.model.predict(X), np.tile(result.path.start, (N, 1)))


# --- which iterate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["last", "best", "average"])
def test_output(output):
    result = run(step="constant:0.7", output=output)  # too long: the objective goes up and down
    stages = [result.path.truncate(t).predict(X) for t in range(21)]
    best = int(np.argmin(result.history["objective"]))
    assert 0 < best < 20
    assert result.best_round == best
    expected = {"last": stages[-1], "best": stages[best], "average": np.mean(stages[:-1], axis=0)}[output]
    np.testing.assert_allclose(result.model.predict(X), expected, rtol=1e-9)
    assert result.path.n_rounds == 20


def test_best_of_all_is_the_start():
    result = run(loss=HalfSquared(), step="constant:3", n_rounds=3, algorithm="naive")
    assert result.best_round == 0
    assert result.model.n_rounds == 0


def test_unknown_output():
    with pytest.raises(ValueError, match=r"`output` must be one of last, best, average, got 'first'"):
        run(output="first")


# --- validation --------------------------------------------------------------------------------------------


def test_validation_scores_follow_the_model():
    result = run(validation=validation(), output="last")
    objective = Absolute().bind(truth(NEW), SPACE)
    for t, record in enumerate(result.records):
        assert record.validation == pytest.approx(
            objective.value(result.path.truncate(t).predict(NEW)), rel=1e-9
        )


def test_best_is_by_validation():
    result = run(validation=validation(), n_rounds=40)
    assert result.best_round == int(np.argmin(result.history["validation"]))
    assert result.best_round != int(np.argmin(result.history["objective"]))
    assert result.model.n_rounds == result.best_round


def test_dual_averaging_rescales_the_validation_scores():
    result = run(validation=validation(), algorithm="dual_averaging", n_rounds=6, output="last")
    objective = Absolute().bind(truth(NEW), SPACE)
    assert result.records[-1].validation == pytest.approx(
        objective.value(result.model.predict(NEW)), rel=1e-9
    )


def test_early_stopping_by_validation():
    result = run(validation=validation(), n_iter_no_change=4, n_rounds=300)
    assert "not improved for 4 rounds" in result.stop.message
    assert len(result.records) - 1 == result.best_round + 4 < 300


def score_of(scores):
    """Return a score whose best round differs from that of the loss."""
    return lambda: -float(np.mean((scores.F[:, 0] - truth(NEW)) ** 4))


def test_a_score_goes_before_the_validation_loss():
    scores = validation()
    result = run(validation=scores, score=score_of(scores), n_rounds=300, n_iter_no_change=4)
    history = result.history
    assert result.best_round == int(np.argmax(history["score"])) == len(result.records) - 5
    assert result.best_round != int(
        np.argmin(run(validation=validation(), n_rounds=40).history["validation"])
    )
    assert result.stop.message == "the validation score has not improved for 4 rounds"
    assert result.model.n_rounds == result.best_round
    assert np.isfinite(history["validation"]).all()


def test_a_validation_set_that_does_not_decide_is_only_recorded():
    scores = validation()
    watched = run(validation=scores, score=score_of(scores), validation_decides=False, n_rounds=40)
    plain = run(n_rounds=40)
    assert watched.best_round == plain.best_round == int(np.argmin(watched.history["objective"]))
    np.testing.assert_array_equal(watched.model.predict(NEW), plain.model.predict(NEW))
    assert np.isfinite(watched.history["score"]).all()
    np.testing.assert_array_equal(
        watched.history["validation"], run(validation=validation(), n_rounds=40).history["validation"]
    )


def test_early_stopping_without_validation_is_by_the_objective():
    result = run(step="constant:2", n_iter_no_change=3, n_rounds=300, algorithm="naive")
    assert "not improved for 3 rounds" in result.stop.message
    assert "validation" not in result.stop.message
    assert len(result.records) - 1 == result.best_round + 3 < 300


class Scripted:
    """Scores whose value follows a script, one number a round."""

    def __init__(self, values):
        self.values, self.t = values, 0

    def move(self, move):
        self.t += 1

    def value(self):
        return self.values[self.t]

    def state(self):
        return self.t

    def restore(self, state):
        self.t = state


@pytest.mark.parametrize(
    ("curve", "best"),
    [
        ([5.0, 1.0, 1.0 - 1e-15, 1.0 - 3e-16], 1),  # a plateau: the first, not the lowest by rounding
        ([1.0, 1.0 + 2e-16, 1.0 - 2e-16, 1.0], 0),
        ([5.0, 1.0 + 1e-10, 1.0, 2.0], 2),  # a difference that is not rounding
        (
            [5.0, *(1.0 - 3e-12 * t for t in range(6)), 2.0],
            5,
        ),  # slow progress adds up
        ([-1e6, -1e6 - 1e-9, -1e6 - 1.0, 0.0], 2),
        ([math.nan, 3.0, math.nan, 2.0, 2.0 - 1e-15], 3),
        ([math.inf, 3.0, 2.0], 2),
        ([1.0, math.nan, math.inf], 0),
        ([math.nan, math.nan], 0),
    ],
)
def test_best_is_the_first_within_rounding(curve, best):
    result = run(validation=Scripted(curve), n_rounds=len(curve) - 1)
    assert result.best_round == best
    assert result.model.n_rounds == best


def test_rounding_does_not_keep_a_run_alive():
    curve = [1.0 - 1e-16 * (t % 7) for t in range(100)]
    result = run(validation=Scripted(curve), n_rounds=99, n_iter_no_change=5)
    assert len(result.records) - 1 == 6
    assert result.stop.kind == "no_change"


def test_a_start_on_a_kink_does_not_end_a_run():
    """The first move raises the validation loss, those after it lower it: patience counts rounds."""
    curve = [1.0, 1.5, *(1.4 - 0.05 * t for t in range(12)), *[2.0] * 10]
    result = run(validation=Scripted(curve), n_rounds=20, n_iter_no_change=3)
    assert result.best_round == 13
    assert len(result.records) - 1 == 16
    rising = [1.0, 1.5, 1.6, 1.4, *(1.6 + t for t in range(20))]
    result = run(validation=Scripted(rising), n_rounds=20, n_iter_no_change=3)
    assert result.best_round == 0
    assert len(result.records) - 1 == 6


@pytest.mark.parametrize(("best", "waits"), [(1, 4), (10, 4), (11, 5), (40, 7), (80, 8)])
def test_an_early_best_round_needs_less_patience(best, waits):
    """Three rounds and a tenth of the best one, at most eight."""
    curve = [1.0 - 0.01 * min(t, best) for t in range(120)]
    options = {"n_rounds": 119, "n_iter_no_change": 8, "early_patience": 3}
    result = run(validation=Scripted(curve), **options)
    assert result.best_round == best
    assert len(result.records) - 1 == best + waits
    assert result.stop.message == f"the validation loss has not improved for {waits} rounds"


# --- stopping ----------------------------------------------------------------------------------------------


def test_budget_of_weak_learners():
    result = run(max_weak_learners=7)
    assert result.records[-1].weak_learners == 7
    assert result.stop.message == "the budget of weak learners is used up"


def test_budget_cuts_the_last_round_of_repeated():
    result = run(max_weak_learners=8, algorithm="repeated")
    assert result.history["weak_learners"].tolist() == [0, 1, 3, 6, 8]
    assert "budget" in result.stop.message


def test_minimum_reached():
    y = (X[:, 0] > 0).astype(int)
    result = run(loss=MulticlassHinge(), y=y, n_rounds=200)
    assert result.stop.message == "the objective reached its minimum 0"
    assert result.records[-1].objective == 0.0
    assert len(result.records) < 200


def test_nothing_correlates_with_the_gradient():
    """XOR on two columns of ±1: every stump is orthogonal to every gradient."""
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    space = FunctionSpace.of(4)
    for algorithm in ("naive", "residual", "repeated"):
        result = boost(
            HalfSquared().bind(corners[:, 0] * corners[:, 1], space),
            Stump().bind(corners, space),
            algorithm=algorithm,
        )
        assert result.stop.message == "converged: no hypothesis correlates with the gradient"
        assert result.records[-1].objective == 0.5
        assert len(result.records) == 3
        assert result.records[-1].weak_learners == 0


@pytest.mark.parametrize("scale", [1e4, 1e8, 1e200, 1e300])
@pytest.mark.parametrize("algorithm", ["naive", "residual", "repeated", "error_feedback", "dual_averaging"])
@pytest.mark.parametrize("loss", [HalfSquared(), Absolute()], ids=lambda loss: loss.name)
def test_divergence_is_noticed(scale, algorithm, loss):
    result = run(loss=loss, step=Constant(scale), algorithm=algorithm, n_rounds=100)
    assert result.stop.kind == "diverged"
    assert result.stop.message.startswith("diverged: the objective rose from ")
    assert len(result.records) < 100
    assert np.isfinite(result.model.predict(NEW)).all()
    assert result.best_round == 0


def test_slow_divergence_is_noticed():
    """A residual with a constant step that is a little too long."""
    result = run(loss=HalfSquared(), step="constant:1.9", algorithm="residual", n_rounds=3000)
    assert result.stop.kind == "diverged"
    assert result.records[result.best_round].objective <= result.records[0].objective


@pytest.mark.parametrize("algorithm", ["naive", "residual"])
def test_ordinary_bumps_are_not_divergence(algorithm):
    result = run(step="constant:4", algorithm=algorithm)
    assert max(result.history["objective"]) > 1.5 * result.records[0].objective
    assert result.stop.kind != "diverged"
    assert len(result.records) == 21


class NotANumber(Absolute):
    """The absolute error; NaN beyond a score."""

    limit: ClassVar[float] = 0.5

    def evaluate(self, F, y):
        losses, G = super().evaluate(F, y)
        return np.where(np.abs(F[:, 0]) > self.limit, np.nan, losses), G


@pytest.mark.parametrize("output", ["best", "last", "average"])
def test_a_value_that_is_not_a_number_is_called_that(output):
    result = run(loss=NotANumber(), start=np.zeros(1), step="constant:0.1", n_rounds=200, output=output)
    last = result.records[-1]
    assert math.isnan(last.objective)
    assert (result.stop.kind, result.stop.is_failure) == ("not_a_number", True)
    largest = np.abs(result.path.predict(X)).max()
    assert (
        result.stop.message
        == f"the objective became NaN in round {last.round}, at scores up to {largest:.3g}"
    )
    assert result.best_round == int(np.nanargmin(result.history["objective"])) < last.round
    np.testing.assert_array_equal(result.model.predict(X), result.path.truncate(result.best_round).predict(X))


def test_an_objective_that_falls_for_ever():
    class Bottomless(Absolute):
        def evaluate(self, F, y):
            losses, G = super().evaluate(F, y)
            return np.where(np.abs(F[:, 0]) > 0.5, -np.inf, losses), G

        def constants(self, n_outputs):
            return Constants()

    result = run(loss=Bottomless(), start=np.zeros(1), step="constant:0.1", n_rounds=200)
    assert result.stop.kind == "diverged"
    assert "fell from" in result.stop.message


# --- callbacks and interruption ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_rounds", [0, 1, 5])
def test_callbacks_see_every_record_once(n_rounds):
    seen, again = [], []
    result = run(n_rounds=n_rounds, callbacks=[seen.append, again.append])
    assert seen == again == result.records


def test_callback_stops():
    result = run(callbacks=[lambda record: record.round == 3])
    assert result.stop.message == "a callback asked to stop"
    assert len(result.records) == 4
    assert result.path.n_rounds == 3


def test_callback_stops_before_the_first_round():
    result = run(callbacks=[lambda record: True])
    assert result.stop.message == "a callback asked to stop"
    assert len(result.records) == 1


def test_all_callbacks_are_called_when_one_stops():
    seen = []
    run(callbacks=[lambda record: True, lambda record: seen.append(record.round)], n_rounds=5)
    assert seen[-1] in (0, 1)
    assert len(seen) == seen[-1] + 1


def test_errors_in_callbacks_come_out():
    def broken(record):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        run(callbacks=[broken])


def interrupt_at(count):
    calls = iter(range(1000))

    def interrupt(*_):
        if next(calls) == count:
            raise KeyboardInterrupt

    return interrupt


def check_interrupted(result, **options):
    """The rounds before the interruption, as if only they had been asked for."""
    assert result.stop.message == "interrupted"
    done = result.records[-1].round
    assert result.path.n_rounds == done
    uninterrupted = run(n_rounds=done, **options)
    np.testing.assert_array_equal(result.path.predict(X), uninterrupted.path.predict(X))
    assert [r.objective for r in result.records] == [r.objective for r in uninterrupted.records]
    return done


@pytest.mark.parametrize("count", [0, 1, 4])
def test_interrupted_in_a_callback(count):
    assert check_interrupted(run(callbacks=[interrupt_at(count)])) == count


@dataclass(frozen=True)
class Interrupted(Step):
    """η = 1/√t, and Ctrl-C in round `at`, between the projection and the move."""

    at: int
    name: ClassVar[str] = "interrupted"

    def size(self, t, scores, norm, memory):
        memory["t"] = memory.get("t", 0) + 1
        if memory["t"] == self.at:
            raise KeyboardInterrupt
        return 1.0 / math.sqrt(memory["t"])


@pytest.mark.parametrize("at", [1, 4])
@pytest.mark.parametrize("algorithm", ["naive", "residual", "dual_averaging"])
def test_interrupted_in_a_round(at, algorithm):
    result = run(step=Interrupted(at), algorithm=algorithm)
    assert check_interrupted(result, algorithm=algorithm) == at - 1


@pytest.mark.parametrize("method", ["move", "value"])
def test_interrupted_in_the_validation_scores(method):
    """Between the round and its record: the model must not be ahead of the records."""
    scores = validation()
    original, interrupt = getattr(scores, method), interrupt_at(3)

    def interrupted(*args):
        interrupt()
        return original(*args)

    setattr(scores, method, interrupted)
    check_interrupted(run(validation=scores, output="last"))


# --- start and offset --------------------------------------------------------------------------------------


def test_start_is_the_best_constant():
    result = run(n_rounds=1)
    np.testing.assert_array_equal(result.path.start, [np.median(np.sort(truth(X))[:-1])])


def test_given_start():
    result = run(n_rounds=3, start=np.array([5.0]))
    assert result.path.start.tolist() == [5.0]
    assert result.records[0].objective == pytest.approx(np.abs(truth(X) - 5.0).mean())


def test_offset_is_fixed_and_not_part_of_the_model():
    offset = X[:, :1]
    result = run(loss=HalfSquared(), offset=offset, n_rounds=5, output="last")
    assert result.path.start.tolist() == [0.0]
    assert result.records[0].objective == pytest.approx(np.mean((truth(X) - X[:, 0]) ** 2) / 2)
    shifted = run(loss=HalfSquared(), y=truth(X) - X[:, 0], start=np.zeros(1), n_rounds=5, output="last")
    np.testing.assert_allclose(result.model.predict(X), shifted.model.predict(X), rtol=1e-9, atol=1e-12)


def test_given_names_are_resolved():
    with pytest.raises(ValueError, match=r"`algorithm` must be one of .*, got 'naife'; did you mean 'naive'"):
        run(algorithm="naife")
    with pytest.raises(ValueError, match=r"`step` must be one of .*, got 'polyack'; did you mean 'polyak'"):
        run(step="polyack")


def test_a_rise_in_the_first_round_is_no_divergence_when_the_minimum_is_unknown():
    class NoFloor(Absolute):
        def constants(self, n_outputs):
            return Constants()

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = np.sign(X[:, 0]) * 0.1 + rng.normal(size=50) * 0.1
    space = FunctionSpace.of(50)
    result = boost(NoFloor().bind(y, space), Stump().bind(X, space), step="inverse_sqrt", n_rounds=50)
    assert result.stop.kind != "diverged"
    assert len(result.records) == 51


def test_a_run_with_an_outlier_that_stays_bounded_has_not_diverged():
    rng = np.random.default_rng(0)
    X, space = rng.normal(size=(200, 2)), FunctionSpace.of(200)
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    y[0] = 1e8
    result = boost(Absolute().bind(y, space), Stump().bind(X, space), step="polyak", n_rounds=30)
    assert result.stop.kind == "rounds"


def test_an_objective_that_is_infinite_at_the_start_says_so():
    X, space = np.arange(10.0)[:, None], FunctionSpace.of(10)
    with np.errstate(all="ignore"):
        result = boost(HalfSquared().bind(1e200 * X, space), Stump().bind(X, space), n_rounds=3)
    assert result.stop.kind == "diverged"
    assert "infinite at the start" in result.stop.message


# --- states of other runs ----------------------------------------------------------------------------------


def training(loss=None, rows=slice(None), y=None, **options):
    space = FunctionSpace.of(len(X[rows]))
    objective = (loss or Absolute()).bind((truth(X) if y is None else y)[rows], space)
    return Training(objective, Stump(max_bins=12).bind(X[rows], space), **{"step": "inverse_sqrt", **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "naive"}, r"its algorithm is Residual\(.*\), here it is Naive\(\)"),
        (
            {"step": "inverse_sqrt:2"},
            r"its step is InverseSqrt\(scale=1.0\), here it is InverseSqrt\(scale=2.0\)",
        ),
        ({"rows": slice(50)}, "its number of rows is 60, here it is 50"),
        ({"y": np.stack([truth(X)] * 2, axis=1)}, "its number of outputs is 1, here it is 2"),
        ({"certificate": True}, "its certificate is False, here it is True"),
        ({"validation": validation()}, "its validation set is False, here it is True"),
        ({"score": lambda: 1.0}, "its score is False, here it is True"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_states_of_other_runs_are_refused(options, message):
    other = training(algorithm="residual")
    other.round()
    here = training(**{"algorithm": "residual", **options})
    here.round()
    before, F = here.state(), here.members[0].progress.F
    with pytest.raises(ValueError, match=f"`state` is of another run: {message}"):
        here.restore(other.state())
    assert here.members[0].progress.F is F
    assert here.records == before["records"]
    here.round()


def test_more_rounds_or_the_same_step_written_otherwise_is_no_other_run():
    first = training(n_rounds=3, step=InverseSqrt(1.0))
    first.run()
    second = training(n_rounds=5, step="inverse_sqrt:1")
    second.restore(first.state())
    second.run()
    assert second.records[-1].round == 5


@pytest.mark.parametrize("state", [None, {}, 3, {"F": 1}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match=r"`state` must be what `Training.state` returned, got"):
        training().restore(state)


def test_members_share_a_mapper():
    from convexboost.boosting.member import Problem
    from convexboost.boosting.options import Options

    space, y = FunctionSpace.of(N), X[:, 0]
    problems = [Problem(Absolute().bind(y, space), Stump().bind(X, space)) for _ in range(2)]
    with pytest.raises(ValueError, match="must share a mapper"):
        Training.of_several(problems, Options(n_rounds=2))
    with pytest.raises(ValueError, match="`problems` must not be empty"):
        Training.of_several([], Options(n_rounds=2))


def test_the_mean_of_members_that_rescale():
    """Dual averaging rescales in every round; each weak learner is one term all the same."""
    from convexboost import ConvexBoostRegressor
    from convexboost.estimators._validation import N_FOLDS

    model = ConvexBoostRegressor(
        learner="stump", algorithm="dual_averaging", n_rounds=30, n_iter_no_change=30, output="last"
    ).fit(X, X[:, 0])
    assert len({id(h) for _, h in model.model_.terms}) == len(model.model_.terms) == 30 * N_FOLDS
    assert len(set(model.model_.part_multipliers[-1])) > 1
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(model.predict(X), last, rtol=1e-9, atol=1e-12)
