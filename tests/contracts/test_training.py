"""Algorithms x steps x losses x learners: every pair of values occurs in some run of a short list."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import asdict
from functools import cache

import numpy as np
import pytest

from convexboost.boosting.steps import STEPS
from convexboost.boosting.training import Training
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.protocols import Constants
from convexboost.core.tolerances import as_good_as
from tests.contracts.conftest import (
    LEARNERS,
    ONE_EACH,
    SEVERAL_OUTPUTS,
    all_pairs,
    bind,
    data,
    learner,
    loss,
    outputs,
    space_of,
    targets,
)

pytestmark = pytest.mark.one_in(5)  # the others: make test-slow

N, ROUNDS = 40, 9
#: Scales that suit the small problems here; other rules as they come.
SCALES = {"constant": 0.2, "inverse_sqrt": 0.5, "inverse_time": 0.5, "adanorm": 0.5}


def valid(case):
    """An algorithm may refuse a step rule, and a learner a single output."""
    if case["learner"] in SEVERAL_OUTPUTS and outputs(case["loss"])[-1] == 1:
        return False
    try:
        ALGORITHMS[case["algorithm"]]().check(step_of(case), Constants())
    except ValueError:
        return False
    return True


def step_of(case):
    cls = STEPS[case["step"]]
    return cls(SCALES[case["step"]]) if case["step"] in SCALES else cls()


CASES = all_pairs(
    {
        "algorithm": list(ALGORITHMS),
        "step": list(STEPS),
        "loss": ONE_EACH,
        "learner": LEARNERS,
        "inputs": ["plain", "sparse", "mixed"],
        "weights": ["uniform", "weighted"],
        "l2": [0.0, 0.1],
        "validation": [False, True],
    },
    valid,
)


def label(case):
    return "-".join(str(value) for value in case.values())


class Run:
    """Everything of one case: its problem, and fresh trainings of it."""

    def __init__(self, case):
        self.case = case
        rng = np.random.default_rng(zlib.crc32(label(case).encode()))
        self.data = data(case["inputs"], rng, N)
        several = loss(case["loss"]).task == "classification" or case["learner"] in SEVERAL_OUTPUTS
        self.n_outputs = outputs(case["loss"])[-1 if several else 0]
        self.y, self.y_new = (targets(case["loss"], rng, N, self.n_outputs) for _ in range(2))
        self.space, self.space_new = (space_of(rng, N, case["weights"]) for _ in range(2))

    def objective(self, y, space):
        return bind(self.case["loss"], y, space, self.n_outputs).with_l2(self.case["l2"])

    def training(self):
        """A training that nothing has happened to: data bound anew."""
        H = learner(self.case["learner"]).bind(self.data.X, self.space, categorical=self.data.categorical)
        objective = self.objective(self.y, self.space)
        start = objective.start()
        validation = None
        if self.case["validation"]:
            validation = self.objective(self.y_new, self.space_new).scores(
                H.mapper.prepare(self.data.new), start
            )
        return Training(
            objective,
            H,
            algorithm=ALGORITHMS[self.case["algorithm"]](),
            step=step_of(self.case),
            start=start,
            offset=None,
            validation=validation,
            n_rounds=ROUNDS,
            random_state=0,
        )


@cache
def finished(index):
    """One finished training of a case, shared by the tests that only look at it."""
    run = Run(CASES[index])
    training = run.training()
    training.run()
    return run, training


@pytest.fixture(params=range(len(CASES)), ids=[label(case) for case in CASES])
def index(request):
    return request.param


@pytest.fixture
def run(index):
    return finished(index)[0]


@pytest.fixture
def training(index):
    return finished(index)[1]


def close(A, B):
    scale = max(np.abs(A).max(), np.abs(B).max(), 1.0)
    np.testing.assert_allclose(A, B, rtol=1e-9, atol=1e-9 * scale)


def records(training):
    """All that is recorded, less the time it took."""
    return [{**asdict(record), "seconds": 0.0} for record in training.records]


def same_records(a, b):
    np.testing.assert_equal(records(a), records(b))  # NaN equals NaN here


def test_every_pair_occurs():
    wanted = {"algorithm": ALGORITHMS, "step": STEPS, "loss": ONE_EACH, "learner": LEARNERS}
    for name, values in wanted.items():
        assert {case[name] for case in CASES} == set(values)
    shortest = len(ONE_EACH) * len(STEPS)  # the two longest lists
    assert len({label(case) for case in CASES}) == len(CASES) <= 1.25 * shortest


def test_objective_stays_finite(run, training):
    objectives = [record.objective for record in training.records]
    assert np.isfinite(objectives).all()
    assert training.stop is not None
    assert training.stop.kind != "diverged"
    if run.case["step"] in SCALES:  # the others aim at a minimum that noise does not let them reach
        assert min(objectives) < objectives[0]


def test_model_replays_the_training_scores(run, training):
    last = training.result("last").model
    close(last.predict(run.data.X), training.members[0].progress.F.F)
    assert last.n_rounds == len(training.records) - 1


def test_validation_is_that_of_the_model(run, training):
    if not run.case["validation"]:
        assert np.isnan([record.validation for record in training.records]).all()
        return
    model = training.result("last").model
    close(model.predict(run.data.new), training.members[0].validation.F)


def test_stages_and_truncated_models(run, training):
    model = training.result("last").model
    stages = list(model.staged_predict(run.data.new))
    assert len(stages) == model.n_rounds
    close(stages[-1], model.predict(run.data.new))
    for t in (1, len(stages) // 2, len(stages)):
        close(model.truncate(t).predict(run.data.new), stages[t - 1])


def test_average_of_the_evaluated_points(run, training):
    model = training.result("last").model
    points = [model.truncate(t).predict(run.data.new) for t in range(model.n_rounds)]
    close(training.result("average").model.predict(run.data.new), np.mean(points, axis=0))


def test_best_is_the_best(run, training):
    result = training.result("best")
    column = [r.validation if run.case["validation"] else r.objective for r in training.records]
    good = as_good_as(min(column), column[0])  # rounding does not make a later round better
    assert result.best_round == next(t for t, value in enumerate(column) if value <= good)
    close(result.model.predict(run.data.X), result.path.truncate(result.best_round).predict(run.data.X))


@pytest.mark.one_in(5)
def test_same_seed_same_bits(run, training):
    again = run.training()
    again.run()
    np.testing.assert_array_equal(again.members[0].progress.F.F, training.members[0].progress.F.F)
    same_records(again, training)


@pytest.mark.one_in(5)
def test_stopped_pickled_and_resumed_gives_the_same_bits(run, training):
    stopped = run.training()
    for _ in range(4):
        if stopped.stop is None:
            stopped.round()
    state = pickle.dumps(stopped.state())
    stopped.round()  # what happens after the state was taken must not matter
    resumed = run.training()
    resumed.restore(pickle.loads(state))
    resumed.run()
    np.testing.assert_array_equal(resumed.members[0].progress.F.F, training.members[0].progress.F.F)
    same_records(resumed, training)
    for output in ("last", "best", "average"):
        a, b = (t.result(output).model.predict(run.data.new) for t in (resumed, training))
        np.testing.assert_array_equal(a, b)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("learner", ["stump", "tree", "additive"])
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
@pytest.mark.parametrize("loss", ["half_squared", "huber", "absolute"])
def test_a_step_that_goes_by_the_value_resumes_with_the_same_bits(algorithm, loss, learner):
    """Polyak's rule sees the last bit of R, which a kernel and NumPy round differently."""
    case = {"algorithm": algorithm, "step": "polyak", "loss": loss, "learner": learner, "weights": "weighted"}
    for l2, inputs in ((0.0, "plain"), (0.1, "plain"), (0.0, "mixed"), (0.1, "mixed")):
        run = Run({**case, "inputs": inputs, "l2": l2, "validation": True})
        whole, resumed = run.training(), run.training()
        whole.run()
        stopped = run.training()
        for _ in range(4):
            stopped.round()
        resumed.restore(pickle.loads(pickle.dumps(stopped.state())))
        resumed.run()
        same_records(resumed, whole)
        np.testing.assert_array_equal(resumed.members[0].progress.F.F, whole.members[0].progress.F.F)


def test_model_survives_pickling(run, training):
    model = training.result("best").model
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(run.data.new), model.predict(run.data.new))
