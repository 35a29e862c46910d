"""Hypotheses fitted to the rows of Δ: the reference for everything, and the way in for any learner."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import ZERO, Direction, Hypothesis, Move
from convexboost.core.plain import Plain
from convexboost.core.protocols import Mapper, Position, Target
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief


@dataclass
class RawInputs:
    """X itself; remembers the last hypothesis evaluated, which is asked for twice in every round."""

    X: Any
    _last: tuple[DenseHypothesis, Array] | None = field(default=None, repr=False)

    n_threads: ClassVar[int] = 1

    __repr__ = brief

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def evaluate(self, h: DenseHypothesis) -> Array:
        """h(X), shape (n_samples, n_outputs)."""
        if self._last is None or self._last[0] is not h:
            self._last = (h, h.evaluate(self.X))
        return self._last[1]


class RawMapper(Mapper):
    """For hypotheses that read X as it is."""

    def prepare(self, X: Any) -> RawInputs:
        """Wrap X."""
        return RawInputs(X)

    def to_plain(self) -> Plain:
        """Return nothing: there is nothing to know."""
        return Plain()

    @classmethod
    def from_plain(cls, plain: Plain) -> Self:
        """Return the mapper."""
        return cls()


class DenseHypothesis(Hypothesis):
    """A hypothesis that is evaluated on X row by row."""

    @abstractmethod
    def evaluate(self, X: Any) -> Array:
        """h(X), shape (n_samples, n_outputs)."""

    def add_to(self, F: Array, inputs: RawInputs, weight: float) -> None:
        """F += weight * h(X)."""
        F += weight * inputs.evaluate(self)


@dataclass(frozen=True, eq=False)
class RowValues(DenseHypothesis):
    """A function that is known at the training points only."""

    values: Array

    __repr__ = brief

    def evaluate(self, X: Any) -> Array:
        """Return the values; X must be the training inputs."""
        return self.values

    def add_to(self, F: Array, inputs: Any, weight: float) -> None:
        """F += weight * values, whatever the form of the inputs."""
        F += weight * self.values


class RowSet:
    """A hypothesis set that knows Δ row by row, and not its own span."""

    knows_span = False
    is_exact = False  #: whether the best hypothesis of all is found
    inputs: Any
    space: FunctionSpace

    def origin(self, n_outputs: int) -> DensePosition:
        """Return f − f₀ = 0."""
        return DensePosition(self, np.zeros((self.space.n_samples, n_outputs)))

    @property
    def rounding(self) -> float:
        """Return that of a few operations: coordinates are the rows themselves."""
        return 8.0 * float(np.finfo(float).eps)

    def light(self, gradient: Gradient) -> float:
        """Return 0: every row is seen."""
        return 0.0

    def functions(self, n_outputs: int) -> Any:
        """Return None: the span is not known."""
        return None

    def at(self, coordinates: Array) -> Direction:
        """Return the function with these coordinates, at the training points."""
        values = coordinates.reshape(self.space.n_samples, -1) / np.sqrt(self.space.weight)[:, None]
        return Direction(((1.0, RowValues(values)),), float(np.linalg.norm(coordinates)))


class DenseSet(RowSet, ABC):
    """A hypothesis set that can fit the rows of a vector."""

    def __init__(self, X: Any, space: FunctionSpace) -> None:
        self.inputs, self.space, self.mapper = RawInputs(X), space, RawMapper()

    def zero(self, n_outputs: int) -> DenseTarget:
        """Δ = 0."""
        return DenseTarget(self, np.zeros((self.space.n_samples, n_outputs)))

    @abstractmethod
    def fit(self, values: Array, rng: np.random.Generator) -> DenseHypothesis:
        """Return a hypothesis close to `values` in direction; its length does not matter."""


class DensePosition(Position):
    """f − f₀ at the training points."""

    def __init__(self, hypotheses: RowSet, values: Array) -> None:
        self.hypotheses, self.values = hypotheses, values

    def move(self, move: Move) -> None:
        """Follow a move of the scores."""
        self.values *= move.shrink
        move.direction.add_to(self.values, self.hypotheses.inputs)

    def dot(self, gradient: Gradient) -> float:
        """⟨∇, f − f₀⟩."""
        return self.hypotheses.space.inner(self.values, gradient.values)

    def state(self) -> Array:
        """Return the array."""
        return self.values.copy()

    def restore(self, state: Array) -> None:
        """Go back to a state."""
        self.values = state.copy()


class DenseTarget(Target):
    """Δ as an (n_samples, n_outputs) array.

    The coefficient is always ⟨Δ, h⟩/‖h‖², over all rows: an inexact fit (shrunken leaves, a network short of
    its optimum, a subsample) then still gives an exact projection on the line of h.
    """

    def __init__(self, hypotheses: Any, values: Array) -> None:
        self.hypotheses, self.values = hypotheses, values

    def add(self, gradient: Gradient, scale: float = 1.0) -> None:
        """Δ ← Δ + scale ∇."""
        self.values = self.values + scale * gradient.values

    def combine(self, other: DenseTarget, scale: float = 1.0) -> None:
        """Δ ← Δ + scale Δ'."""
        self.values = self.values + scale * other.values

    def strength(self) -> float | None:
        """Return the longest projection, for a set that finds it."""
        return self.project(np.random.default_rng(0)).norm if self.hypotheses.is_exact else None

    def coordinates(self, even_if_slow: bool = False) -> Array:
        """Return Δ itself: the span is not known."""
        return np.sqrt(self.hypotheses.space.weight)[:, None] * self.values

    def scale(self, factor: float) -> None:
        """Δ ← factor Δ."""
        if factor != 1.0:
            self.values = factor * self.values

    def project(self, rng: np.random.Generator) -> Direction:
        """Fit a hypothesis to Δ and project on its line."""
        space = self.hypotheses.space
        norm = space.norm(self.values)
        if norm == 0.0:
            return ZERO
        h = self.hypotheses.fit(self.values, rng)
        H = self.hypotheses.inputs.evaluate(h)
        squared, inner = space.inner(H, H), space.inner(self.values, H)
        if squared == 0.0 or inner == 0.0:
            return ZERO
        length = abs(inner) / math.sqrt(squared)
        return Direction(((inner / squared, h),), length, length / norm)

    def subtract(self, direction: Direction) -> None:
        """Δ ← Δ − direction."""
        self.values = self.values - self._evaluate(direction)

    def dot(self, direction: Direction) -> float:
        """⟨Δ, direction⟩."""
        return self.hypotheses.space.inner(self.values, self._evaluate(direction))

    def inner(self, gradient: Gradient) -> tuple[float, float]:
        """⟨Δ, ∇⟩ and ‖∇‖²; the span is not known, so nothing is projected on it."""
        return self.hypotheses.space.inner(self.values, gradient.values), gradient.norm * gradient.norm

    def length(self) -> float:
        """Return ‖Δ‖: the span is not known."""
        return self.hypotheses.space.norm(self.values)

    def copy(self) -> Self:
        """Return an independent Δ."""
        return type(self)(self.hypotheses, self.values.copy())

    def state(self) -> Any:
        """Return the array."""
        return self.values.copy()

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        self.values = state.copy()

    def _evaluate(self, direction: Direction) -> Array:
        H = np.zeros_like(self.values)
        direction.add_to(H, self.hypotheses.inputs)
        return H
