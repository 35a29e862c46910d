"""Rows in two processes: the same algorithms, driver and histogram target, fed through pipes.

Bins are fixed from the whole data.  Workers hold rows, targets and scores; only moves go out, and only
numbers, sums over bins and shared masses (integers, in one fixed point) come back.
"""

from __future__ import annotations

import multiprocessing
from functools import cached_property

import numpy as np
import pytest

from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Ray
from convexboost.core.space import FunctionSpace
from convexboost.kernels.histogram import fixed_point_factor
from convexboost.learners._bins import BinMapper, DenseSample
from convexboost.learners._stumps import StumpSet
from convexboost.losses._reach import within_reach
from convexboost.losses.absolute import Absolute
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.softmax import Softmax
from convexboost.registry import available

N, CUT = 90, 37


class Part:
    """Some of the rows, in a worker.  What it does not know is asked of its scores."""

    def bind(self, loss, X, y, n_classes, weight, mapper, l2):
        space = FunctionSpace(weight)  # a part of the whole: does not sum to 1
        self.objective = loss.bind(y, space, n_classes=n_classes).with_l2(l2)
        self.sample = DenseSample(mapper, space, 1, X)

    def place(self, start):
        self.scores = self.objective.scores(self.sample, start)

    def ray(self, direction):
        self.line = self.scores.along(direction)

    def at(self, a):
        return self.line(a)

    def slope(self, a):
        return self.line.slope(a)

    def n_rows(self):
        return len(self.scores.F)

    def gradient(self):
        """‖∇‖² and the largest entry."""
        G = self.scores.gradient()
        return G.norm**2, np.abs(G.values).max()

    def slopes_left(self, size):
        F = self.scores.F
        return self.objective.slopes_left(
            F, Gradient(self.objective.evaluate(F)[1], self.objective.space), size, 1
        )

    def histogram(self, factor):
        G = self.scores.gradient().values
        out = np.zeros((self.sample.mapper.offsets[-1], G.shape[1]), np.int64)
        self.sample._add_rows(np.arange(self.sample.n_features), G, factor, out)
        return out

    def shared_mass(self, j, width):
        column = np.zeros(len(self.sample), np.uint8) if j is None else self.sample.column(j)
        out = np.zeros((self.sample.mapper.offsets[-1], width), np.int64)
        self.sample._add_pairs(np.arange(self.sample.n_features), column, out)
        return out

    def __getattr__(self, name):
        return getattr(self.scores, name)


def work(pipe):
    part = Part()
    while (message := pipe.recv()) is not None:
        name, arguments = message
        pipe.send(getattr(part, name)(*arguments))


class Workers:
    def __init__(self, pipes):
        self.pipes = pipes

    def each(self, name, arguments):
        """Send everyone their own arguments, then wait for all the answers."""
        for pipe, own in zip(self.pipes, arguments, strict=True):
            pipe.send((name, own))
        return [pipe.recv() for pipe in self.pipes]

    def all(self, name, *arguments):
        return self.each(name, [arguments] * len(self.pipes))

    def total(self, name, *arguments):
        return sum(self.all(name, *arguments))


class RemoteGradient(Gradient):
    def __init__(self, workers):
        squares, largest = zip(*workers.all("gradient"), strict=True)
        self.norm, self.factor = sum(squares) ** 0.5, fixed_point_factor(float(max(largest)))


class RemoteScores:
    """`Scores` without a row."""

    def __init__(self, workers, constants):
        self.workers, self.constants = workers, constants

    def move(self, move):
        self.workers.all("move", move)

    def value(self):
        return self.workers.total("value")

    def gradient(self):
        return RemoteGradient(self.workers)

    def gap(self):
        return within_reach(
            self.value() - self.constants.minimum,
            self.gradient().norm,
            lambda size: self.workers.total("slopes_left", size),
        )

    def along(self, direction):
        self.workers.all("ray", direction)
        return Ray(lambda a: self.workers.total("at", a), lambda a: self.workers.total("slope", a))

    def rescaled(self, shrink):
        return self.workers.total("rescaled", shrink)

    def distance(self):
        return sum(distance**2 for distance in self.workers.all("distance")) ** 0.5

    def largest(self):
        return max(self.workers.all("largest"))

    def state(self):
        return self.workers.all("state")

    def restore(self, states):
        self.workers.each("restore", [(state,) for state in states])


class RemoteSample:
    """The sums of a `BinnedSample`; a column is only its number."""

    unit = fixed_point_factor(1.0)

    def __init__(self, workers, mapper):
        self.workers, self.mapper, self.n_features = workers, mapper, len(mapper.columns)

    def column(self, j):
        return j

    def __len__(self):
        return self.workers.total("n_rows")

    @property
    def n_rows(self):
        return len(self)  # all weights are 1

    @cached_property
    def mass(self):
        return self.shared_counts(None, 1)[:, 0] / self.unit

    def histogram(self, gradient):
        return self.workers.total("histogram", gradient.factor) / gradient.factor

    def shared_counts(self, j, width, features=None):
        return self.workers.total("shared_mass", j, width)


class RemoteObjective:
    def __init__(self, workers, local):
        self.workers, self.n_outputs, self.constants = workers, local.n_outputs, local.constants

    def scores(self, inputs, start, offset=None):
        self.workers.all("place", start)
        return RemoteScores(self.workers, self.constants)


@pytest.fixture(scope="module")
def workers():
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in range(2):
        here, there = context.Pipe()
        processes.append(context.Process(target=work, args=(there,), daemon=True))
        processes[-1].start()
        there.close()
        pipes.append(here)
    yield Workers(pipes)
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join(10)
        pipe.close()


def problem(loss, l2=0.0):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(N, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 6, N)
    signal = np.nan_to_num(X[:, 0]) + (X[:, 3] == 2)
    y = (
        np.digitize(signal, [-0.4, 0.6])
        if loss.task == "classification"
        else signal + 0.2 * rng.normal(size=N)
    )
    space = FunctionSpace.of(N, rng.uniform(0.5, 2.0, N))
    return X, y, space, loss.bind(y, space).with_l2(l2)


def both(workers, loss, kind, l2=0.0, **options):
    """The same run here and in two processes; the results, and X."""
    X, y, space, objective = problem(loss, l2)
    mapper = BinMapper.fit(X, space, 16, np.arange(4) == 3)
    here = StumpSet(DenseSample(mapper, space, 1, X), kind)
    there = StumpSet(RemoteSample(workers, mapper), kind)
    n_classes = objective.n_outputs if loss.task == "classification" else None
    halves = (slice(0, CUT), slice(CUT, N))
    workers.each("bind", [(loss, X[s], y[s], n_classes, space.weight[s], mapper, l2) for s in halves])
    remote = RemoteObjective(workers, objective)
    start = objective.start()
    return [
        boost(o, H, start=start, output="last", **options) for o, H in ((objective, here), (remote, there))
    ], X


@pytest.mark.parametrize("algorithm", ["naive", "repeated", "residual", "dual_averaging", "error_feedback"])
@pytest.mark.parametrize("loss", [MulticlassHinge(), Absolute(), Softmax()], ids=lambda loss: loss.name)
def test_same_bits(workers, loss, algorithm):
    kind = available("convexboost.learners")["stump"].kind
    n_rounds = 6 if algorithm == "repeated" else 12
    (a, b), X = both(workers, loss, kind, algorithm=algorithm, step="inverse_sqrt:0.6", n_rounds=n_rounds)
    assert (a.stop.message, b.stop.message) == (f"all {n_rounds} rounds done",) * 2
    np.testing.assert_array_equal(a.model.predict(X), b.model.predict(X))
    np.testing.assert_allclose(a.history["objective"], b.history["objective"], rtol=1e-12)
    np.testing.assert_allclose(a.history["edge"], b.history["edge"], rtol=1e-9)


@pytest.mark.parametrize(
    "name", [n for n, cls in available("convexboost.learners").items() if hasattr(cls, "kind")]
)
@pytest.mark.parametrize(
    ("algorithm", "step"),
    [
        ("naive", "line_search"),
        ("residual", "polyak:0.3"),
        ("error_feedback", "polyak:0.3"),
        ("residual", "auto"),
    ],
)
def test_steps_that_look_at_the_objective(workers, algorithm, step, name):
    """Sums over rows in another order: equal to rounding."""
    kind = available("convexboost.learners")[name].kind
    (a, b), X = both(workers, Softmax(), kind, l2=0.01, algorithm=algorithm, step=step, n_rounds=12)
    np.testing.assert_allclose(a.history["objective"], b.history["objective"], rtol=1e-6)
    np.testing.assert_allclose(a.model.predict(X), b.model.predict(X), rtol=1e-4, atol=1e-4)


def test_the_rest_of_the_protocol(workers):
    """distance, rescaled, state and restore, after a few rounds."""
    kind = available("convexboost.learners")["stump"].kind
    (a, _), X = both(workers, Absolute(), kind, step="inverse_sqrt", n_rounds=5)
    objective = problem(Absolute())[-1]
    local, remote = objective.scores(None, objective.start()), RemoteScores(workers, objective.constants)
    local.restore((a.model.predict(X), []))
    assert remote.value() == pytest.approx(local.value(), rel=1e-12)
    assert remote.distance() == pytest.approx(local.distance(), rel=1e-12)
    assert remote.rescaled(0.3) == pytest.approx(local.rescaled(0.3), rel=1e-12)
    assert remote.gradient().norm == pytest.approx(local.gradient().norm, rel=1e-12)
    state = remote.state()
    np.testing.assert_allclose(np.vstack([F for F, _, _ in state]), local.F, rtol=1e-9)
    value = remote.value()
    remote.restore([(F + 1.0, moves) for F, moves, _ in state])
    assert remote.value() != value
    remote.restore(state)
    assert remote.value() == value
