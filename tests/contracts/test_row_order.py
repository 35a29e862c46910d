"""The order of the rows, the number of threads and the partition of the rows change no bit of a model."""

from __future__ import annotations

import numpy as np
import pytest

from convexboost import boost
from convexboost.core.space import FunctionSpace
from convexboost.core.sums import ExactSum
from convexboost.kernels import parallel
from tests.contracts.conftest import LOSSES, count_classes, groups_of, learner, loss, outputs, targets

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

N, ROUNDS = 120, 6
#: Learner and step.
LEARNERS = {
    "tree": ("tree", "auto"),
    "refitted tree": ("tree", "refit"),
    "stump": ("stump", "auto"),
    "additive": ("additive", "auto"),
    "network": ("network", "auto"),
}
WEIGHTS = ("uniform", "counted", "weighted")
#: A user's code adds up rows here, in their order.
BY_USERS = {"structured", "users total", "torch total"}


def is_quick(spec, name, kind):
    """Return whether `make test` has this case.  Networks read no loss: a few losses do for them."""
    return kind == "weighted" and (name != "network" or spec in {"half_squared", "absolute", "softmax"})


CASES = [
    pytest.param(
        (spec, name, kind),
        id=f"{spec}-{name}-{kind}",
        marks=[] if is_quick(spec, name, kind) else [pytest.mark.slow],
    )
    for spec in LOSSES
    if spec not in BY_USERS
    for name in LEARNERS
    for kind in WEIGHTS
]


def problem(spec):
    rng = np.random.default_rng(len(spec))
    n_outputs = outputs(spec)[-1]
    X, y = rng.normal(size=(N, 4)).round(1), targets(spec, rng, N, n_outputs)
    weights = {
        "uniform": None,
        "counted": rng.integers(1, 4, N).astype(float),
        "weighted": rng.uniform(0.2, 3.0, N),
    }
    return X, y, weights, groups_of(spec, N), rng


def fitted(case, order, n_threads):
    """The objective after each round and some predictions, trained on the rows in this order."""
    spec, name, kind = case
    X, y, weights, groups, rng = problem(spec)
    weight = weights[kind]
    space = FunctionSpace.of(N, None if weight is None else weight[order])
    objective = loss(spec).bind(
        y[order],
        space,
        n_classes=count_classes(spec, outputs(spec)[-1]),
        groups=None if groups is None else groups[order],
    )
    name, step = LEARNERS[name]
    H = learner(name).bind(X[order], space, n_threads=n_threads)
    result = boost(objective, H, step=step, n_rounds=ROUNDS, random_state=0)
    return [record.objective for record in result.records], result.model.predict(rng.normal(size=(50, 4)))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES)
def test_order_and_threads(case, monkeypatch):
    monkeypatch.setattr(parallel, "MIN_OPERATIONS", 1)  # threads, however small the problem
    values, predictions = fitted(case, np.arange(N), 1)
    for seed, n_threads in ((1, 1), (2, 2)):
        order = np.random.default_rng(seed).permutation(N)
        found = fitted(case, order, n_threads)
        assert found[0] == values
        np.testing.assert_array_equal(found[1], predictions)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_two_workers_have_the_sums_of_one(kind):
    """Each has some of the rows; they add up whole numbers."""
    X, _, weights, _, rng = problem("absolute")
    space = FunctionSpace.of(N, weights[kind])
    workers = [slice(0, 37), slice(37, N)]
    F, cell = rng.normal(size=(N, 3)), rng.integers(0, 5, N).astype(np.int32)

    def reduced(sums):
        total = sums[0]
        total.digits = sums[0].digits + sums[1].digits
        return total

    parts = [space.part(rows) for rows in workers]
    inner = [part.exact_inner(F[rows], F[rows]) for part, rows in zip(parts, workers, strict=True)]
    means = [part.exact_mean(X[rows]) for part, rows in zip(parts, workers, strict=True)]
    bound = space.norm(F)
    cells = [
        part.exact_sums(cell[rows], F[rows], 5, bound) for part, rows in zip(parts, workers, strict=True)
    ]
    assert float(reduced(inner)) == space.inner(F, F)
    np.testing.assert_array_equal(reduced(means).columns(), [space.mean(column) for column in X.T])
    np.testing.assert_array_equal(reduced(cells).values(), space.exact_sums(cell, F, 5, bound).values())


@pytest.mark.parametrize("kind", ["uniform", "counted"])
def test_rows_of_whole_weights_are_copies(kind):
    """Means, norms and masses of a row of weight 3 are those of the row three times, to the bit."""
    X, _, weights, _, rng = problem("absolute")
    counts = np.ones(N, int) if kind == "uniform" else weights[kind].astype(int)
    groups = np.arange(N) % 7
    copies = rng.permutation(np.repeat(np.arange(N), counts))
    one, many = FunctionSpace.of(N, 0.1 * counts), FunctionSpace.of(len(copies))
    assert one.inner(X, X) == many.inner(X[copies], X[copies])
    assert [one.mean(x) for x in X.T] == [many.mean(x[copies]) for x in X.T]
    np.testing.assert_array_equal(one.masses(groups), many.masses(groups[copies]))
    assert one.mass(X[:, 0] > 0) == many.mass(X[copies, 0] > 0)


def test_a_sum_is_exact():
    assert float(ExactSum().add([1e16, 1.0, -1e16])) == 1.0
