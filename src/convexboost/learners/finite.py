"""A finite set of given functions, known by their values at the training points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief
from convexboost.learners._dense import DenseHypothesis, DenseSet

#: A function must beat the best one so far by this much, relatively.
TIE = 1e-9


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


class FiniteSet(DenseSet):
    """H = {a_1, …, a_M}, both signs allowed: exact argmax of |⟨v, a⟩|/‖a‖, lowest index on ties.

    For theory: counter-examples and tests.  `atoms` is (M, n_samples, n_outputs).
    """

    is_exact = True

    def __init__(self, atoms: Array, space: FunctionSpace) -> None:
        super().__init__(np.arange(space.n_samples), space)
        self.atoms = np.asarray(atoms, float)
        self._norms = np.array([space.norm(atom) for atom in self.atoms])

    def functions(self, n_outputs: int) -> sp.csc_array:
        """Return the atoms."""
        return sp.csc_array(self.atoms.reshape(len(self.atoms), -1).T)

    def fit(self, values: Array, rng: np.random.Generator) -> Atom:
        """Return the atom with the longest projection."""
        lengths = np.array([abs(self.space.inner(values, atom)) for atom in self.atoms]) / self._norms
        best = int(np.argmax(lengths >= lengths.max() * (1 - TIE)))
        return Atom(best, self.atoms[best])
