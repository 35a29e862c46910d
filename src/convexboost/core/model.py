"""The additive model that boosting builds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from convexboost.core.explained import Explained
from convexboost.core.hypotheses import (
    Direction,
    Hypothesis,
    Move,
    Packed,
    Term,
    by_kind,
    by_name,
    merge,
    pack,
)
from convexboost.core.nodes import Nodes
from convexboost.core.plain import Plain
from convexboost.core.protocols import Mapper
from convexboost.core.space import Array

#: The version of the plain data of a model.
VERSION = 4


class Kinds(Protocol):
    """The classes that a learner's models consist of, which reading needs."""

    @property
    def mapper_type(self) -> type[Mapper]: ...
    @property
    def hypothesis_types(self) -> tuple[type[Hypothesis], ...]: ...


@dataclass
class AdditiveModel:
    """start + multiplier · Σ weight · hypothesis, with the history of how it grew."""

    start: Array
    mapper: Mapper
    terms: list[Term] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])  #: number of terms after each round
    multipliers: list[float] = field(default_factory=lambda: [1.0])  #: global multiplier after each round
    #: Where the terms fall into parts that were rescaled apart: the part of each term, and one more
    #: multiplier per part after each round.  Empty where there is one part.
    parts: list[int] = field(default_factory=list)
    part_multipliers: list[tuple[float, ...]] = field(default_factory=list)
    #: the number of rounds, and the sum of the terms, from the last call of `predict`
    _packed: tuple[int, list[Packed]] | None = field(default=None, repr=False, compare=False)

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
        for part in self._sum():
            part.add_to(F, inputs)
        return F

    def collapse(self) -> list[Term]:
        """Return the model without its history, terms merged where they can be."""
        return [(weight * self.multipliers[-1], h) for weight, h in merge(self.weighted_terms())]

    def nodes(self) -> Nodes:
        """Return the model as trees on the columns of X, for learners whose hypotheses are such trees."""
        groups = by_kind(self.collapse())
        return Nodes.joined([kind.nodes(terms, self.mapper) for kind, terms in groups.items()], self.start)

    def contributions(self, X: Any, background: Any = None) -> Array:
        """Return what each column adds to the scores, (n_samples, n_columns + 1, n_outputs); exact.

        These are Shapley values, against the mean over the `background` or, where there is none, against
        that over the training rows in the proportions of the splits.  Last is the mean; all add up to the
        scores.
        """
        inputs, parts = self.mapper.prepare(X), self._explained()
        others = None if background is None else self.mapper.prepare(background)
        out = np.zeros((np.shape(X)[1] + 1, len(self.start), len(inputs)))
        for part in parts:
            part.add_contributions(out[:-1], inputs, others)
        out[-1] = self._mean(parts, background)[:, None]
        return np.ascontiguousarray(out.transpose(2, 0, 1))

    def interactions(self, X: Any) -> Array:
        """Return the contributions split up by pairs of columns, (…, n_columns + 1, n_columns + 1, …).

        The rows of the table of a sample add up to its contributions; the last entry is the mean.
        """
        inputs, parts, n_columns = self.mapper.prepare(X), self._explained(), np.shape(X)[1]
        out = np.zeros((n_columns + 1, n_columns + 1, len(self.start), len(inputs)))
        alone = np.zeros((n_columns, len(self.start), len(inputs)))
        for part in parts:
            part.add_contributions(alone, inputs, None)
            part.add_interactions(out[:-1, :-1], inputs)
        for j in range(n_columns):
            out[j, j] = alone[j] - out[j].sum(axis=0)
        out[-1, -1] = self._mean(parts, None)[:, None]
        return np.ascontiguousarray(np.moveaxis(out, 3, 0))

    def _explained(self) -> list[Explained]:
        return [kind.explained(terms, self.mapper) for kind, terms in by_kind(self.collapse()).items()]

    def _mean(self, parts: Sequence[Explained], background: Any) -> Array:
        if background is not None:
            return np.asarray(self.predict(background).mean(axis=0))
        return np.sum([self.start, *(part.expectation() for part in parts)], axis=0)

    def weighted_terms(self) -> list[Term]:
        """Return the terms as they are now, up to the global multiplier."""
        if not self.parts:
            return self.terms
        now = self.part_multipliers[-1]
        return [(weight * now[part], h) for part, (weight, h) in zip(self.parts, self.terms, strict=True)]

    def _sum(self) -> list[Packed]:
        """Return the sum of the terms, packed once for all calls; threads that pack it twice do no harm."""
        packed = self._packed
        if packed is None or packed[0] != self.n_rounds:
            packed = self._packed = (self.n_rounds, pack(self.collapse()))
        return packed[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_packed": None}  # a copy packs it again

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the scores after each round, from round 1."""
        inputs = self.mapper.prepare(X)
        start = self._constant(inputs)
        if self.part_multipliers:
            yield from self._staged_parts(start, inputs)
            return
        F = np.zeros_like(start)
        for (begin, end), multiplier in zip(pairwise(self.ends), self.multipliers[1:], strict=True):
            Direction(tuple(self.terms[begin:end]), math.nan).add_to(F, inputs)
            yield start + multiplier * F

    def _staged_parts(self, start: Array, inputs: Any) -> Iterator[Array]:
        """Yield the scores after each round from the sums of the parts."""
        sums = np.zeros((len(self.part_multipliers[0]), *start.shape))
        for t, (begin, end) in enumerate(pairwise(self.ends), 1):
            for part, F in enumerate(sums):
                new = [self.terms[i] for i in range(begin, end) if self.parts[i] == part]
                Direction(tuple(new), math.nan).add_to(F, inputs)
            weights = self.multipliers[t] * np.array(self.part_multipliers[t])
            yield start + np.tensordot(weights, sums, 1)

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
            self.parts[:end],
            self.part_multipliers[: n_rounds + 1],
        )

    def shifted(self, shift: Array) -> AdditiveModel:
        """Return the model plus a constant."""
        return replace(self, start=self.start + shift)

    @classmethod
    def mean(cls, models: Sequence[AdditiveModel]) -> AdditiveModel:
        """Return the mean, round by round, of models with the same number of rounds.

        They share a mapper, but for columns that each has added to that of the model before.
        """
        if len(models) == 1:
            return models[0]
        share = 1.0 / len(models)
        mean = cls(np.mean([model.start for model in models], axis=0), models[-1].mapper)
        n_rounds = min(model.n_rounds for model in models)
        parts: list[int] = []
        for t in range(1, n_rounds + 1):
            for part, model in enumerate(models):
                terms = model.terms[model.ends[t - 1] : model.ends[t]]
                mean.terms.extend((share * weight, h) for weight, h in terms)
                parts.extend([part] * len(terms))
            mean.ends.append(len(mean.terms))
        multipliers = [model.multipliers[: n_rounds + 1] for model in models]
        if all(other == multipliers[0] for other in multipliers):
            mean.multipliers = multipliers[0]
        else:
            mean.multipliers = [1.0] * (n_rounds + 1)
            mean.parts, mean.part_multipliers = parts, list(zip(*multipliers, strict=True))
        return mean

    def average(self) -> AdditiveModel:
        """Return the mean of the points where a subgradient was taken, f_0 … f_{T−1}.

        This is the iterate that the theorems on Algorithms 2 and 3 are about.  A hypothesis added in
        round j takes part in the points after rounds j … T−1.
        """
        T = self.n_rounds
        if T == 0:
            return self
        # remaining[j] = Σ_{s=j}^{T−1} multiplier_s / T, for each part
        multipliers = np.array(self.multipliers)[:, None] * np.array(self.part_multipliers or [(1.0,)])
        remaining = np.cumsum(multipliers[T - 1 :: -1], axis=0)[::-1] / T
        parts = self.parts or [0] * len(self.terms)
        model = AdditiveModel(self.start, self.mapper)
        for j in range(1, T):
            new = range(self.ends[j - 1], self.ends[j])
            terms = [(float(remaining[j, parts[i]]) * self.terms[i][0], self.terms[i][1]) for i in new]
            model.append(Move(Direction(tuple(terms), math.nan), math.nan))
        return model

    def to_plain(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the model as a description that JSON can hold, and arrays by name."""
        plain = Plain.of(
            {"version": VERSION},
            {
                "start": np.array(self.start, float),
                "ends": np.array(self.ends, np.int64),
                "multipliers": np.array(self.multipliers, float),
                "parts": np.array(self.parts, np.int64),
                "part_multipliers": np.array(self.part_multipliers, float).reshape(len(self.ends), -1),
            },
            mapper=self.mapper.to_plain(),
            terms=terms_to_plain(self.terms),
        )
        return dict(plain.description), dict(plain.arrays)

    @classmethod
    def from_plain(cls, description: Any, arrays: Any, learner: Kinds) -> Self:
        """Return the model that `to_plain` wrote; `learner` is of the kind that made it.

        The predictions are the same bit for bit.  Invalid data raise a ValueError that names what is wrong.
        """
        plain = Plain(description, arrays)
        version = plain.value("version", int)
        if version != VERSION:
            raise ValueError(f"`version` of a model must be {VERSION}, got {version}")
        start = plain.array("start", float, None)
        mapper = learner.mapper_type.from_plain(plain.part("mapper"))
        terms = terms_from_plain(plain.part("terms"), learner, mapper, len(start))
        ends = plain.array("ends", np.int64, None)
        plain.need("ends", len(ends) > 0 and ends[0] == 0, "0 first")
        plain.slices("ends", len(ends), len(terms))
        multipliers = plain.array("multipliers", float, len(ends))
        more = plain.array("part_multipliers", float, len(ends), None)
        parts = plain.indices("parts", np.int64, len(terms) if more.size else 0, below=more.shape[1])
        each = [tuple(row) for row in more.tolist()] if more.size else []
        return cls(start, mapper, terms, ends.tolist(), multipliers.tolist(), parts.tolist(), each)

    def _constant(self, inputs: Any) -> Array:
        return np.repeat(self.start[None], len(inputs), axis=0)


def terms_to_plain(terms: Sequence[Term]) -> Plain:
    """Return weighted hypotheses as plain data, those of a kind together."""
    groups = by_kind(terms)
    named, kinds = by_name(groups), list(groups)
    return Plain.of(
        {"kinds": list(named)},
        {
            "weights": np.array([weight for weight, _ in terms], float),
            "kind_of_term": np.array([kinds.index(type(h)) for _, h in terms], np.uint8),
        },
        **{name: kind.to_plain([h for _, h in groups[kind]]) for name, kind in named.items()},
    )


def terms_from_plain(plain: Plain, learner: Kinds, mapper: Mapper, n_outputs: int) -> list[Term]:
    """Return the terms that `terms_to_plain` wrote; the learner is of the kind that made them."""
    known = by_name(learner.hypothesis_types)
    names = plain.value("kinds", list)
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"{learner!r} makes no hypotheses of kind {name!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"`kinds` must all be different, got {names}")
    weights = plain.array("weights", float, None)
    number = plain.indices("kind_of_term", np.uint8, len(weights), below=len(names))
    terms: list[Any] = [None] * len(weights)
    for i, name in enumerate(names):
        places = np.flatnonzero(number == i)
        found = known[name].from_plain(plain.part(name), len(places), mapper, n_outputs)
        for place, h in zip(places, found, strict=True):
            terms[place] = (float(weights[place]), h)
    return terms
