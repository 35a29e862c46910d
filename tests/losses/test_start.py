"""The best constant by search: neither the order of the rows, nor copies of rows, nor rounding matter."""

import numpy as np
import pytest

from convexboost.core.space import FunctionSpace
from convexboost.losses import CVaR, WorstGroup, maximum
from convexboost.losses._custom import as_loss

N = 120


class Cosh:
    """A user's loss without a start of its own."""

    def evaluate(self, F, y):
        return np.cosh(F - y).sum(axis=1), np.sinh(F - y)


LOSSES = {
    "worst group, half_squared": (WorstGroup("half_squared"), "numbers"),
    "worst group, absolute": (WorstGroup("absolute"), "numbers"),
    "worst group, huber": (WorstGroup("huber"), "numbers"),
    "worst group, quantile": (WorstGroup("quantile:0.8"), "numbers"),
    "worst group, smooth": (WorstGroup("absolute", 0.1), "numbers"),
    "worst group, two outputs": (WorstGroup("absolute"), "pairs"),
    "worst group, logistic": (WorstGroup("logistic"), "two classes"),
    "worst group, softmax": (WorstGroup("softmax"), "classes"),
    "cvar, absolute": (CVaR("absolute", 0.8), "numbers"),
    "cvar, half_squared": (CVaR("half_squared", 0.8), "numbers"),
    "cvar, two outputs": (CVaR("half_squared", 0.8), "pairs"),
    "cvar, hinge": (CVaR("hinge", 0.8), "two classes"),
    "cvar, softmax": (CVaR("softmax", 0.8), "classes"),
    "cvar, grid": (CVaR("absolute", 0.9), "grid"),
    "row loss of a user": (as_loss(Cosh()), "numbers"),
    "row loss, two outputs": (as_loss(Cosh()), "pairs"),
}
#: Evaluated on all rows, in their order: to rounding only.
NEARLY = {
    "maximum": (maximum(WorstGroup("absolute"), 0.7 * CVaR("absolute", 0.8)), "numbers"),
    "sum": (WorstGroup("half_squared") + 0.1 * CVaR("half_squared", 0.5), "numbers"),
}


def problem(kind, seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(N, 2 if kind == "pairs" else 1)) * rng.uniform(0.5, 2.0, (N, 1))
    groups = rng.integers(0, 3, N)
    y = y + 0.3 * groups[:, None]
    if kind == "grid":
        y = np.round(y, 1)
    if "classes" in kind:
        y = np.digitize(y[:, 0], [0.3] if kind == "two classes" else [-0.5, 0.5])
    return y, groups, rng


def place(loss, y, groups, weight, rows=slice(None)):
    y, groups = y[rows], groups[rows]
    space = FunctionSpace.of(len(y), weight)
    n_classes = int(y.max()) + 1 if y.ndim == 1 else None
    return loss.bind(y, space, n_classes, groups if loss.needs_groups else None)


def same(a, b, rows, exact):
    """The same start, and the same subgradient there: rounding does not decide what ties."""
    start, other = a.start(), b.start()
    if exact:
        np.testing.assert_array_equal(start, other)
    np.testing.assert_allclose(start, other, rtol=1e-12, atol=1e-12)
    (_, G), (_, H) = (f.evaluate(np.tile(c, (f.space.n_samples, 1))) for f, c in ((a, start), (b, other)))
    np.testing.assert_allclose(G[rows], H, rtol=1e-9, atol=1e-12)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", [*LOSSES, *NEARLY])
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_rows_does_not_matter(name, seed):
    loss, kind = (LOSSES | NEARLY)[name]
    y, groups, rng = problem(kind, seed)
    for weight in (np.ones(N), rng.integers(2, 4, N), rng.uniform(0.5, 2.0, N)):
        order = rng.permutation(N)
        a, b = place(loss, y, groups, weight), place(loss, y, groups, weight[order], order)
        same(a, b, order, name in LOSSES)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", [*LOSSES, *NEARLY])
@pytest.mark.parametrize("seed", range(2))
def test_a_weight_is_a_number_of_copies(name, seed):
    loss, kind = (LOSSES | NEARLY)[name]
    y, groups, rng = problem(kind, seed)
    weight = rng.integers(2, 4, N)
    copies = rng.permutation(np.repeat(np.arange(N), weight))
    same(place(loss, y, groups, weight), place(loss, y, groups, None, copies), copies, name in LOSSES)


@pytest.mark.parametrize("seed", range(6))
def test_a_constant_that_changes_nothing_is_not_added(seed):
    """The same number added to the scores of all classes: softmax does not see it."""
    y, groups, rng = problem("classes", seed)
    start = place(WorstGroup("softmax"), y, groups, rng.uniform(0.5, 2.0, N)).start()
    assert np.abs(start).max() < 3.0
