import numpy as np
import pytest

from convexboost.core.space import FunctionSpace
from convexboost.losses._pair_gradient import PairGradient
from convexboost.losses.multiclass_hinge import MulticlassHinge
from tests import reference

evaluate = MulticlassHinge().evaluate


def test_same_as_the_formula():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        F, y = rng.normal(size=(50, 4)) * scale, rng.integers(0, 4, 50)
        losses, G = evaluate(F, y)
        twin_losses, twin_G = reference.multiclass_hinge(F, y)
        np.testing.assert_allclose(losses, twin_losses, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(G, twin_G)


def test_ties_and_exact_kinks():
    """Whole scores tie all the time; tied rivals share, and a loss of exactly 0 has subgradient 0."""
    rng = np.random.default_rng(1)
    F, y = rng.integers(-2, 3, (200, 3)).astype(float), rng.integers(0, 3, 200)
    losses, G = evaluate(F, y)
    twin_losses, twin_G = reference.multiclass_hinge(F, y)
    np.testing.assert_array_equal(losses, twin_losses)
    np.testing.assert_array_equal(G, twin_G)
    assert (losses == 0).any()


def test_rounding_does_not_decide():
    """Scores a rounding error away from a tie or the kink are treated as the tie or the kink."""
    y = np.array([0, 0, 0])
    F = np.array([[0.0, 0.5, 0.5 + 1e-14], [1.0 - 1e-14, 0.0, -1.0], [0.1 + 0.2, 0.3 - 1.0, -5.0]])
    _, G = evaluate(F, y)
    np.testing.assert_array_equal(G, [[-1.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


def test_one_pass_moves_and_evaluates():
    rng = np.random.default_rng(2)
    F, y, space = (
        rng.normal(size=(40, 5)),
        rng.integers(0, 5, 40),
        FunctionSpace.of(40, rng.uniform(1, 2, 40)),
    )
    codes, table = rng.integers(0, 3, 40).astype(np.uint8), rng.normal(size=(3, 5))
    moved = F + table[codes]
    losses, G = reference.multiclass_hinge(moved, y)
    value, gradient = MulticlassHinge().advance(F, y, space, (codes, table), None, 1)
    np.testing.assert_array_equal(F, moved)
    np.testing.assert_allclose(value, space.mean(losses), rtol=1e-12)
    assert isinstance(gradient, PairGradient)
    np.testing.assert_array_equal(gradient.values, G)
    np.testing.assert_allclose(gradient.norm, space.norm(G), rtol=1e-12)


def test_changed_rows_are_those_that_changed():
    rng = np.random.default_rng(3)
    F, y, space = rng.normal(size=(60, 4)), rng.integers(0, 4, 60), FunctionSpace.of(60)
    _, first = MulticlassHinge().advance(F, y, space, None, None, 1)
    step = (rng.integers(0, 2, 60).astype(np.uint8), np.array([[0.0] * 4, [0.3, -0.2, 0.1, 0.0]]))
    _, second = MulticlassHinge().advance(F, y, space, step, first, 1)
    changed = np.flatnonzero((first.values != second.values).any(axis=1))
    np.testing.assert_array_equal(second.since.rows, changed)
    np.testing.assert_array_equal(second.since.plus, first.plus[changed])
    assert 0 < len(changed) < 60


def test_tied_rows_have_no_short_form():
    y, space = np.array([0, 1]), FunctionSpace.of(2)
    _, gradient = MulticlassHinge().advance(np.zeros((2, 3)), y, space, None, None, 1)
    assert not isinstance(gradient, PairGradient)
    np.testing.assert_array_equal(gradient.values, [[-1.0, 0.5, 0.5], [0.5, -1.0, 0.5]])


def test_the_last_rivals_only_save_work():
    """Right, wrong or none: a guess changes nothing, neither losses nor rivals nor ties."""
    rng = np.random.default_rng(4)
    for n_outputs in (2, 3, 9, 40):
        F, y, space = rng.normal(size=(80, n_outputs)), rng.integers(0, n_outputs, 80), FunctionSpace.of(80)
        value, gradient = MulticlassHinge().advance(F, y, space, None, None, 1)
        shifted = np.where(gradient.plus >= 0, (y + 1) % n_outputs, -1).astype(np.int32)
        for plus in (gradient.plus, shifted, np.full(80, -1, np.int32)):
            before = PairGradient(plus, y, n_outputs, space)
            again, second = MulticlassHinge().advance(F, y, space, None, before, 1)
            assert again == value
            np.testing.assert_array_equal(second.plus, gradient.plus)
    F, y = np.array([[0.0, 0.5, 0.5], [0.0, 3.0, 0.5]]), np.array([0, 0])
    before = PairGradient(np.array([1, 1], np.int32), y, 3, FunctionSpace.of(2))
    _, tied = MulticlassHinge().advance(F, y, before.space, None, before, 1)
    np.testing.assert_array_equal(tied.values, [[-1.0, 0.5, 0.5], [-1.0, 1.0, 0.0]])


def test_the_first_of_tied_rivals_is_that_of_the_lowest_class():
    """Slow and fast twin agree on scores that tie all the time, whatever the guess, and ties stay sparse."""
    rng, loss = np.random.default_rng(5), MulticlassHinge(ties="first")
    for n_outputs in (2, 3, 7):
        F = rng.integers(-2, 3, (200, n_outputs)).astype(float)
        F += 1e-15 * rng.normal(size=F.shape)  # rounding does not decide
        y, space = rng.integers(0, n_outputs, 200), FunctionSpace.of(200)
        losses, G = reference.multiclass_hinge(np.rint(F), y, "first")
        np.testing.assert_array_equal(loss.evaluate(F, y)[1], G)
        before = None
        for guess in (None, (y + 1) % n_outputs, np.full(200, -1)):
            if guess is not None:
                before = PairGradient(guess.astype(np.int32), y, n_outputs, space)
            value, gradient = loss.advance(F, y, space, None, before, 1)
            assert isinstance(gradient, PairGradient)
            np.testing.assert_array_equal(gradient.values, G)
            assert value == pytest.approx(losses.mean())


def test_the_rule_for_ties_does_not_depend_on_the_order_of_the_rows():
    rng, order = np.random.default_rng(6), np.random.default_rng(7).permutation(100)
    F, y = rng.integers(-1, 2, (100, 4)).astype(float), rng.integers(0, 4, 100)
    for ties in ("mean", "first"):
        loss = MulticlassHinge(ties=ties)
        np.testing.assert_array_equal(loss.evaluate(F, y)[1][order], loss.evaluate(F[order], y[order])[1])


def test_ties_are_one_of_two_rules():
    with pytest.raises(ValueError, match=r"`ties` must be 'mean' or 'first', got 'last'"):
        MulticlassHinge(ties="last")
