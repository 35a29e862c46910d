import numpy as np
import pytest

from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.space import FunctionSpace
from convexboost.learners.finite import FiniteSet
from convexboost.losses.half_squared import HalfSquared


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def project(H, V):
    delta = H.zero(V.shape[1])
    delta.add(Gradient(V, H.space))
    return delta.project(np.random.default_rng(0))


def test_longest_projection_of_all_atoms(rng):
    space = FunctionSpace.of(8, rng.uniform(0.5, 2, 8))
    for _ in range(20):
        atoms, V = rng.normal(size=(5, 8, 2)) * rng.uniform(0.1, 10, (5, 1, 1)), rng.normal(size=(8, 2))
        h = project(FiniteSet(atoms, space), V)
        lengths = [abs(space.inner(V, atom)) / space.norm(atom) for atom in atoms]
        assert h.terms[0][1].index == int(np.argmax(lengths))
        assert h.norm == pytest.approx(max(lengths))


def test_lowest_index_wins_ties(rng):
    """Atom 1 is shorter than atoms 2 and 3, but by a relative 5e-13 only."""
    atom, other = rng.normal(size=(2, 6, 1))
    other -= np.sum(atom * other) / np.sum(atom * atom) * atom
    almost = atom + 1e-6 * np.linalg.norm(atom) / np.linalg.norm(other) * other
    H = FiniteSet(np.array([0.01 * other, almost, -2 * atom, atom]), FunctionSpace.of(6))
    assert project(H, atom).terms[0][1].index == 1


def test_both_signs(rng):
    atom = rng.normal(size=(6, 1))
    h = project(FiniteSet(-3 * atom[None], FunctionSpace.of(6)), atom)
    assert h.terms[0][0] == pytest.approx(-1 / 3)


def test_orthogonal_atoms_give_nothing():
    H = FiniteSet(np.array([[[1.0], [-1.0]]]), FunctionSpace.of(2))
    assert project(H, np.array([[1.0], [1.0]])).terms == ()


def test_inputs_are_row_numbers(rng):
    atoms, y = rng.normal(size=(3, 6, 1)), rng.normal(size=6)
    space = FunctionSpace.of(6)
    model = boost(
        HalfSquared().bind(y, space), FiniteSet(atoms, space), step="inverse_sqrt", n_rounds=10
    ).path
    all_rows = model.predict(np.arange(6))
    np.testing.assert_array_equal(model.predict(np.array([4, 0, 4])), all_rows[[4, 0, 4]])
