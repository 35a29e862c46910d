"""The additive model that boosting builds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from convexboost.core.hypotheses import Direction, Move, Term, add_all, merge
from convexboost.core.protocols import Inputs
from convexboost.core.space import Array


@dataclass
class AdditiveModel:
    """start + multiplier · Σ weight · hypothesis, with the history of how it grew."""

    start: Array
    mapper: Inputs
    terms: list[Term] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])  #: number of terms after each round
    multipliers: list[float] = field(default_factory=lambda: [1.0])  #: global multiplier after each round
    _collapsed: tuple[int, list[Term]] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"AdditiveModel({self.n_rounds} rounds, {len(self.terms)} terms, {len(self.start)} outputs)"

    @property
    def n_rounds(self) -> int:
        """Return the number of rounds in the model."""
        return len(self.ends) - 1

    def append(self, move: Move) -> None:
        """Record one round."""
        multiplier = self.multipliers[-1] * move.shrink
        self.terms.extend((weight / multiplier, h) for weight, h in move.direction.terms)
        self.ends.append(len(self.terms))
        self.multipliers.append(multiplier)

    def predict(self, X: Any) -> Array:
        """Return the scores at X, (n_samples, n_outputs)."""
        inputs = self.mapper.prepare(X)
        F = self._constant(inputs)
        add_all(F, inputs, self.collapse())
        return F

    def collapse(self) -> list[Term]:
        """Return the model without its history, terms merged where they can be (kept for the next call)."""
        if self._collapsed is None or self._collapsed[0] != len(self.multipliers):
            terms = [(weight * self.multipliers[-1], h) for weight, h in merge(self.terms)]
            self._collapsed = (len(self.multipliers), terms)
        return self._collapsed[1]

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the scores after each round, from round 1."""
        inputs = self.mapper.prepare(X)
        start = self._constant(inputs)
        F = np.zeros_like(start)
        for (begin, end), multiplier in zip(pairwise(self.ends), self.multipliers[1:], strict=True):
            Direction(tuple(self.terms[begin:end]), math.nan).add_to(F, inputs)
            yield start + multiplier * F

    def truncate(self, n_rounds: int) -> AdditiveModel:
        """Return the model as it was after `n_rounds` rounds."""
        if not 0 <= n_rounds <= self.n_rounds:
            raise ValueError(f"`n_rounds` must lie between 0 and {self.n_rounds}, got {n_rounds}")
        end = self.ends[n_rounds]
        return AdditiveModel(
            self.start,
            self.mapper,
            self.terms[:end],
            self.ends[: n_rounds + 1],
            self.multipliers[: n_rounds + 1],
        )

    def average(self) -> AdditiveModel:
        """Return the mean of the points where a subgradient was taken, f_0 … f_{T−1}.

        This is the iterate that the theorems on Algorithms 2 and 3 are about.  A hypothesis added in
        round j takes part in the points after rounds j … T−1.
        """
        T = self.n_rounds
        if T == 0:
            return self
        # remaining[j] = Σ_{s=j}^{T−1} multiplier_s / T
        remaining = np.cumsum(self.multipliers[T - 1 :: -1])[::-1] / T
        model = AdditiveModel(self.start, self.mapper)
        for j in range(1, T):
            factor = float(remaining[j])
            terms = self.terms[self.ends[j - 1] : self.ends[j]]
            model.append(Move(Direction(tuple((factor * w, h) for w, h in terms), math.nan), math.nan))
        return model

    def _constant(self, inputs: Any) -> Array:
        return np.tile(self.start, (len(inputs), 1))
