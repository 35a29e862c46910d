"""A round happens wholly or not at all: Ctrl-C at every line of the library, and errors in a user's loss."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sklearn.tree

from convexboost.boosting.steps import STEPS
from convexboost.boosting.training import Training
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.protocols import Constants
from convexboost.core.space import FunctionSpace
from convexboost.learners.additive import Additive
from convexboost.learners.network import Network
from convexboost.learners.stump import Stump
from convexboost.learners.tree import Tree
from convexboost.losses._custom import as_loss
from convexboost.losses.half_squared import HalfSquared
from convexboost.losses.huber import Huber
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.softmax import Softmax
from tests.contracts.conftest import WRAPPED
from tests.interrupter import Interrupter

N, ROUNDS = 40, 5
rng = np.random.default_rng(3)
X, NEW = rng.normal(size=(N, 3)), rng.normal(size=(N, 3))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * rng.normal(size=N)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)

#: algorithm, step, loss, learner, l2, validation, certificate
CASES = {
    "naive": ("naive", "line_search", HalfSquared(), Stump(max_bins=8), 0.0, True, False),
    "repeated": ("repeated", "auto", Huber(), Stump(max_bins=8), 0.1, False, True),
    "residual": ("residual", "auto", MulticlassHinge(), Stump(max_bins=8), 0.1, True, True),
    "polyak": ("residual", "polyak", HalfSquared(), Stump(max_bins=8), 0.0, True, False),
    "tree": ("residual", "refit", Softmax(), Tree(min_samples_leaf=3, subsample=0.7), 0.0, True, False),
    "tree, l2": ("residual", "refit", Huber(), Tree(min_samples_leaf=3), 0.1, False, True),
    "additive": ("residual", "auto", HalfSquared(), Additive(max_bins=8), 0.0, False, True),
    "network": ("residual", "adanorm", HalfSquared(), Network(n_steps=2), 0.0, True, False),
    "scikit-learn": ("naive", "auto", Huber(), WRAPPED["regressor"], 0.0, True, False),
    "dual averaging": ("dual_averaging", "inverse_sqrt", Huber(), Stump(max_bins=8), 0.1, True, False),
    "error feedback": ("error_feedback", "polyak", Huber(), Tree(min_samples_leaf=3), 0.0, True, True),
}


def training(name, n_rounds=ROUNDS, loss=None, earlier=None):
    """A training that nothing has happened to."""
    algorithm, step, own, learner, l2, validates, certificate = CASES[name]
    loss, space = loss or own, FunctionSpace.of(N)
    y = CLASSES if loss.task == "classification" else Y
    H, objective = learner.bind(X, space), loss.bind(y, space).with_l2(l2)
    start = objective.start()
    validation = loss.bind(y[::-1], space).scores(H.mapper.prepare(NEW), start) if validates else None
    return Training(
        objective,
        H,
        algorithm=ALGORITHMS[algorithm](),
        step=STEPS[step](),
        start=start,
        offset=None,
        validation=validation,
        n_rounds=n_rounds,
        random_state=0,
        certificate=certificate,
        earlier=earlier,
    )


def everything(training):
    """All that a training knows, less the time it took."""
    state = dict(training.state())
    state["records"] = [replace(record, seconds=0.0) for record in state["records"]]
    return state


def same(a, b):
    """Compare states, to the bit."""
    np.testing.assert_equal(readable(a), readable(b))


def readable(x):
    """Turn a state into what NumPy can compare."""
    if isinstance(x, dict):
        return {key: readable(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [readable(value) for value in x]
    if isinstance(x, sklearn.tree._tree.Tree):
        return readable(x.__getstate__())
    return readable(vars(x)) if hasattr(x, "__dict__") else x


@cache
def twin(name, n_rounds):
    """The state and the result of a run that was told to stop after so many rounds."""
    stopped = training(name, n_rounds)
    stopped.run()
    assert stopped.stop.kind in ("rounds", "minimum", "converged")
    return everything(stopped), stopped.result("best")


@cache
def count_lines(name):
    """Return how many lines of the library a run of three rounds takes."""
    run = training(name, 3)
    with Interrupter(0) as trace:
        run.run()
    return trace.count


def check(name, at):
    """Interrupt a run; what is left is a run that was told to stop after the last finished round."""
    run = training(name)
    with Interrupter(at), suppress(KeyboardInterrupt):  # it comes out if `run` had hardly begun
        run.run()
    assert run.stop is None or run.stop.kind == "interrupted"
    done = len(run.records) - 1
    assert done <= 3 if run.stop else done == 0
    state, expected = twin(name, done)
    assert run.model.n_rounds == done
    result = run.result("best")
    assert result.best_round == expected.best_round
    assert pickle.dumps(result.certificate) == pickle.dumps(expected.certificate)
    np.testing.assert_array_equal(result.model.predict(NEW), expected.model.predict(NEW))
    same(everything(run), state)
    run.run()
    assert run.stop.kind != "interrupted"
    same(everything(run), twin(name, ROUNDS)[0])


@pytest.mark.parametrize("name", CASES)
def test_interrupted_anywhere(name):
    rng = np.random.default_rng(0)
    for at in rng.choice(count_lines(name) - 4, 6, replace=False) + 1:
        check(name, int(at))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_interrupted_everywhere(name):
    lines = count_lines(name)
    for at in range(1, lines - 4, max(lines // 300, 1)):
        check(name, at)


class Fails:
    """Half the squared error that raises in its n-th evaluation."""

    constants = Constants(minimum=0.0)

    def __init__(self, at):
        self.at, self.count = at, 0

    def evaluate(self, F, y):
        self.count += 1
        if self.count == self.at:
            raise RuntimeError("the user's loss")
        return 0.5 * ((F - y) ** 2).sum(axis=1), F - y


@pytest.mark.parametrize("name", ["polyak", "tree, l2", "network"])
def test_an_error_in_a_loss_leaves_the_finished_rounds(name):
    whole = training(name, loss=as_loss(Fails(0)))
    whole.run()
    begin = training(name, loss=as_loss(counter := Fails(0)))
    calls = counter.count
    begin.run()
    for at in range(calls + 1, counter.count, max((counter.count - calls) // 8, 1)):
        run = training(name, loss=as_loss(Fails(at)))
        with pytest.raises(RuntimeError, match="the user's loss"):
            run.run()
        done = len(run.records) - 1
        assert run.model.n_rounds == done < ROUNDS
        stopped = training(name, done, loss=as_loss(Fails(0)))
        stopped.run()
        same(everything(run), everything(stopped))
        run.run()
        same(everything(run), everything(whole))


def test_a_second_interruption_while_the_first_is_repaired():
    run = training("residual")
    with Interrupter(count_lines("residual") // 2):
        run.run()
    done = len(run.records) - 1
    for at in (2, 20, 50, 200):
        with Interrupter(at), pytest.raises(KeyboardInterrupt):
            run.state()
        assert len(run.records) - 1 == run.model.n_rounds == done
    same(everything(run), twin("residual", done)[0])


@pytest.mark.parametrize("name", [name for name, (*_, certificate) in CASES.items() if certificate])
def test_interrupted_while_the_certificate_is_made(name):
    run = training(name, 3)
    run.run()
    run.result("best")  # what is found only once
    with Interrupter(0) as trace:
        run.result("best")
    for at in range(1, trace.count - 2, max(trace.count // 15, 1)):
        with Interrupter(at), pytest.raises(KeyboardInterrupt):
            run.result("best")
        same(everything(run), twin(name, 3)[0])


def test_a_state_and_a_result_do_not_change_the_run():
    for name in CASES:
        run = training(name)
        for _ in range(ROUNDS):
            run.round()
            run.state()
            run.result("best")
        same(everything(run), twin(name, ROUNDS)[0])
