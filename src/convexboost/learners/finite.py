"""A finite set of given functions, known by their values at the training points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from convexboost.core.cached import cached_property
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief
from convexboost.core.tolerances import BETTER
from convexboost.learners._dense import DenseHypothesis, DenseSet, DenseTarget


@dataclass(frozen=True, eq=False)
class Atom(DenseHypothesis):
    """One of the given functions; its inputs are row numbers."""

    index: int
    values: Array  #: (n_samples, n_outputs)

    __repr__ = brief

    def key(self) -> int:
        """Return its number."""
        return self.index

    def evaluate(self, X: Any) -> Array:
        """Return the values at the rows X."""
        return self.values[np.asarray(X)]


#: Directions in which the atoms are this much shorter than in the longest are rounding.
NEGLIGIBLE = 1e-12


class FiniteSet(DenseSet):
    """H = {a_1, …, a_M}, both signs allowed: exact argmax of |⟨v, a⟩|/‖a‖, lowest index on ties.

    For theory: counter-examples and tests.  `atoms` is (M, n_samples, n_outputs).
    """

    is_exact = True

    def __init__(self, atoms: Array, space: FunctionSpace) -> None:
        super().__init__(np.arange(space.n_samples), space)
        self.atoms = np.asarray(atoms, float)
        self._norms = np.array([space.norm(atom) for atom in self.atoms])

    def zero(self, n_outputs: int) -> FiniteTarget:
        """Δ = 0."""
        return FiniteTarget(self, np.zeros((self.space.n_samples, n_outputs)))

    @cached_property
    def basis(self) -> Array:
        """Return an orthonormal basis of √p · span(H), a function in each row."""
        scaled = (np.sqrt(self.space.weight)[:, None] * self.atoms).reshape(len(self.atoms), -1)
        _, singular, rows = np.linalg.svd(scaled, full_matrices=False)
        return rows[singular > NEGLIGIBLE * singular[0]]

    def functions(self, n_outputs: int) -> sp.csc_array:
        """Return the atoms."""
        return sp.csc_array(self.atoms.reshape(len(self.atoms), -1).T)

    def fit(self, values: Array, rng: np.random.Generator) -> Atom:
        """Return the atom with the longest projection."""
        lengths = np.array([abs(self.space.inner(values, atom)) for atom in self.atoms]) / self._norms
        best = int(np.argmax(lengths >= lengths.max() * (1 - BETTER)))
        return Atom(best, self.atoms[best])


class FiniteTarget(DenseTarget):
    """Δ row by row; the length of its part inside the span comes from an orthonormal basis."""

    @property
    def knows_length(self) -> bool:
        """Return whether `length` is that inside the span."""
        return True

    def length(self) -> float:
        """Return ‖ΠΔ‖."""
        inside = self.hypotheses.basis @ self.coordinates().ravel()
        return (1.0 + self.hypotheses.rounding) * float(np.sqrt(np.sum(inside**2)))
