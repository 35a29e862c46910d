"""Subgradients of an objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convexboost.core.hypotheses import Move
from convexboost.core.space import Array, Codes, FunctionSpace


class Gradient:
    """A subgradient ∇R[F] in L²(P), shape (n_samples, n_outputs)."""

    def __init__(self, values: Array, space: FunctionSpace) -> None:
        self.values, self.space = values, space

    @cached_property
    def norm(self) -> float:
        """‖∇‖."""
        return self.space.norm(self.values)

    def rows(self, rows: slice) -> Array:
        """Return its values in some rows."""
        return self.values[rows]


class PairGradient(Gradient):
    """A subgradient with rows e_plus − e_minus, or 0 where plus is −1: two numbers a row instead of K.

    `since` says what changed: the gradient it came from, the rows that differ, and what `plus` was there.
    """

    def __init__(self, plus: Codes, minus: Codes, n_outputs: int, space: FunctionSpace) -> None:
        self.plus, self.minus, self.n_outputs, self.space = plus, minus, n_outputs, space
        self.since: Change | None = None
        self.token = object()

    @cached_property
    def values(self) -> Array:  # type: ignore[override]
        """Return the dense form."""
        return self.rows(slice(None))

    def rows(self, rows: slice) -> Array:
        """Return its values in some rows."""
        plus, minus = self.plus[rows], self.minus[rows]
        found = np.flatnonzero(plus >= 0)
        values = np.zeros((len(plus), self.n_outputs))
        values[found, plus[found]] = 1.0
        values[found, minus[found]] = -1.0
        return values

    @cached_property
    def norm(self) -> float:
        """√(2 · weight of the rows that are not 0)."""
        return math.sqrt(2.0 * self.space.mass(self.plus >= 0))

    def follow(self, previous: Gradient | None) -> PairGradient:
        """Note what changed since `previous`."""
        if isinstance(previous, PairGradient):
            rows = np.flatnonzero(self.plus != previous.plus)
            self.since = Change(previous.token, rows, previous.plus[rows])
        return self


class RidgeGradient(Gradient):
    """∇ + l2 · (F − start), the second part given as the moves that led there.

    Those are sums of hypotheses, so a set that knows its own inner products need not look at the rows.
    """

    def __init__(
        self, part: Gradient, l2: float, penalty: float, moves: list[Move], dense: Callable[[], Array]
    ) -> None:
        self.part, self.l2, self.moves, self.space, self._dense = part, l2, moves, part.space, dense
        self.penalty = penalty  #: (l2/2) ‖F − start‖², which is part of R[F]

    @cached_property
    def values(self) -> Array:  # type: ignore[override]
        """Return the dense form."""
        return self.part.values + self.l2 * self._dense()


class Change(NamedTuple):
    """What changed from one gradient to the next."""

    token: object  #: of the earlier gradient
    rows: NDArray[np.int64]
    plus: Codes  #: what it was in these rows
