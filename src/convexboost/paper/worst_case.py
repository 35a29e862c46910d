"""Weak learners that do no more than they must: for the tests and figures of the theory.

They have no `name`: they are not among the learners that a user chooses from.  `Scatter` shows how the rate
of Algorithm 3 depends on the edge, `Miser` why Algorithm 1 has only a floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convexboost.core.space import Array, FunctionSpace
from convexboost.learners._dense import DenseHypothesis, DenseSet


@dataclass(frozen=True, eq=False)
class Few(DenseHypothesis):
    """A function that is 0 but at a few training points; its inputs are row numbers."""

    rows: NDArray[np.int64]
    values: Array  #: at these rows, (number of rows, n_outputs)
    n_samples: int

    def evaluate(self, X: NDArray[np.int64]) -> Array:
        """Return the values at the rows X."""
        dense = np.zeros((self.n_samples, self.values.shape[1]))
        dense[self.rows] = self.values
        return dense[X]


class Coordinates(DenseSet):
    """H = the functions that are 0 but at one point; the best of them.  Its uniform edge is 1/√N."""

    def __init__(self, space: FunctionSpace) -> None:
        super().__init__(np.arange(space.n_samples), space)

    def fit(self, values: Array, rng: np.random.Generator) -> DenseHypothesis:
        """Return the point with the longest projection."""
        best = [int(np.argmax(_squares(values, self.space)))]
        return Few(np.array(best), values[best], self.space.n_samples)


class WorstCase(DenseSet):
    """A weak learner whose answer to any Δ has the edge γ exactly."""

    def __init__(self, space: FunctionSpace, edge: float) -> None:
        if not 0.0 < edge <= 1.0:
            raise ValueError(f"`edge` must lie in (0, 1], got {edge!r}")
        super().__init__(np.arange(space.n_samples), space)
        self.edge = edge


class Scatter(WorstCase):
    """h = γ Δ/‖Δ‖ + √(1−γ²) w, w a random direction orthogonal to Δ.

    On average a step goes γ² of the way, so Δ grows to G/γ², ‖h‖ to G/γ, and the gap of Algorithm 3 doubles
    when γ halves, whatever the step size (Theorem B).  Algorithm 1 does not mind: this noise has mean 0.
    """

    def fit(self, values: Array, rng: np.random.Generator) -> DenseHypothesis:
        """Return the function with edge γ."""
        space, w = self.space, rng.normal(size=values.shape)
        w -= space.inner(w, values) / space.inner(values, values) * values
        answer = self.edge / space.norm(values) * values
        if space.n_samples * values.shape[1] > 1:  # else there is nothing orthogonal
            answer = answer + math.sqrt(1 - self.edge**2) / space.norm(w) * w
        return Few(self.inputs.X, answer, space.n_samples)


class Miser(WorstCase):
    """Touches as few points as it may, always the same ones first.

    It goes through the points in a fixed order and answers with Δ itself at the first of them, 0 at the
    others, until the edge is γ; the last point is taken in part.  (Where the first alone is too good, the
    next one gets the wrong sign.)  So it does not see the later points until their part of Δ outweighs that
    of the earlier ones.  Algorithm 1 forgets that part in every round, so it never gets there.
    """

    def __init__(self, space: FunctionSpace, edge: float, seed: int | None = None) -> None:
        super().__init__(space, edge)
        rows = np.arange(space.n_samples)
        self.order = rows if seed is None else np.random.default_rng(seed).permutation(rows)

    def fit(self, values: Array, rng: np.random.Generator) -> DenseHypothesis:
        """Return the function with edge γ."""
        square = _squares(values, self.space)[self.order]
        order = self.order[square > 0.0]  # where Δ is 0 there is nothing to take
        square = square[square > 0.0]
        enough, reached = self.edge**2 * square.sum(), np.cumsum(square)
        whole = max(int(np.searchsorted(reached, enough)), 1)  # points taken whole
        answer = values[order[: whole + 1]]
        if whole < len(order):
            answer[-1] *= _share(float(reached[whole - 1]), float(square[whole]), float(enough))
        return Few(order[: whole + 1], answer, self.space.n_samples)


def _squares(values: Array, space: FunctionSpace) -> Array:
    """Each point's part of ‖Δ‖²."""
    return space.weight * np.square(values).sum(axis=1)


def _share(taken: float, point: float, enough: float) -> float:
    """Solve (taken + c point)² = enough (taken + c² point): with that part of the point the edge is γ."""
    a, b, c = point * (point - enough), 2 * taken * point, taken * (taken - enough)
    return -2 * c / (b + math.sqrt(max(b * b - 4 * a * c, 0.0)))
