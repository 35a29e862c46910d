"""Functions that are added up: hypotheses, directions, moves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from convexboost.core.explained import Explained
from convexboost.core.nodes import Nodes
from convexboost.core.plain import Plain
from convexboost.core.space import Array
from convexboost.core.text import brief

#: The best common value of some leaves in one output.
Pooled = Callable[[Any, int], float]


class Hypothesis(ABC):
    """A function h from inputs to R^k.  It can be evaluated at any inputs, not only the training ones."""

    #: The name of this class in plain data; a learner whose hypotheses are of several classes names each.
    kind: ClassVar[str] = "hypothesis"

    @abstractmethod
    def add_to(self, F: Array, inputs: Any, weight: float) -> None:
        """F += weight * h(inputs), in place."""

    def key(self) -> Hashable | None:
        """Return what identifies this hypothesis apart from its values; None where nothing does.

        Two hypotheses with the same key differ at most in their values, such as stumps with the same split.
        """
        return None

    def lookup(self, inputs: Any, weight: float) -> tuple[Any, Array] | None:
        """Return (codes, table) with weight · h = table[codes] at the inputs, if h has that form."""
        return None

    def leaves(self, inputs: Any) -> tuple[Any, Array] | None:
        """Return (leaf of each row, value of each leaf), if h is constant on leaves."""
        return None

    def with_values(self, values: Array, pooled: Pooled) -> Self:
        """Return the same leaves with new values.

        If constraints forbid them, leaves that must share a value get `pooled(leaves, output)`.
        """
        raise NotImplementedError

    @classmethod
    def merge(cls, terms: Sequence[Term]) -> Sequence[Term]:
        """Fewer terms with the same sum, for hypotheses that can be added to each other."""
        return terms

    @classmethod
    def pack(cls, terms: Sequence[Term]) -> Packed:
        """Return Σ weight * h for many hypotheses of this kind, in a form that is fast to add."""
        return Terms(terms)

    @classmethod
    def nodes(cls, terms: Sequence[Term], mapper: Any) -> Nodes:
        """Return Σ weight * h as trees on the columns of X; `mapper` is that of the model."""
        raise ValueError(f"{cls.__name__} is no tree and no function of one column: it has no nodes")

    @classmethod
    def explained(cls, terms: Sequence[Term], mapper: Any) -> Explained:
        """Return Σ weight * h, ready to be split up by the columns of X."""
        raise ValueError(f"{cls.__name__} is no tree and no function of one column: it has no contributions")

    @classmethod
    def to_plain(cls, hypotheses: Sequence[Self]) -> Plain:
        """Return many hypotheses of this class as plain data, in a few arrays."""
        raise ValueError(f"{cls.__name__} cannot be written as plain arrays")

    @classmethod
    def from_plain(cls, plain: Plain, count: int, mapper: Any, n_outputs: int) -> list[Self]:
        """Return the `count` hypotheses that `to_plain` wrote; raise a ValueError that names what is wrong.

        `mapper` is that of the model: nothing may be read outside of the inputs that it prepares.
        """
        raise ValueError(f"{cls.__name__} cannot be read from plain arrays")


Term = tuple[float, Hypothesis]


class Packed(Protocol):
    """Σ weight * h, ready to be added to scores again and again."""

    def add_to(self, F: Array, inputs: Any) -> None:
        """F += Σ weight * h(inputs), in place."""


@dataclass(frozen=True)
class Terms:
    """Hypotheses that are added one by one."""

    terms: Sequence[Term]

    def add_to(self, F: Array, inputs: Any) -> None:
        """F += Σ weight * h(inputs), in place."""
        for weight, h in self.terms:
            h.add_to(F, inputs, weight)


def by_kind(terms: Sequence[Term]) -> dict[type[Hypothesis], list[Term]]:
    """Group terms by the type of their hypothesis."""
    kinds: dict[type[Hypothesis], list[Term]] = {}
    for term in terms:
        kinds.setdefault(type(term[1]), []).append(term)
    return kinds


def by_name(classes: Iterable[type[Hypothesis]]) -> dict[str, type[Hypothesis]]:
    """Return the classes by their `kind`."""
    named: dict[str, type[Hypothesis]] = {}
    for cls in classes:
        if cls.kind == "kinds":  # another entry in plain data
            raise ValueError(f"`kind` of {cls.__name__} must not be 'kinds'")
        if (other := named.setdefault(cls.kind, cls)) is not cls:
            raise ValueError(
                f"`kind` must differ between classes; {other.__name__} and {cls.__name__} both have "
                f"{cls.kind!r}"
            )
    return named


def merge(terms: Sequence[Term]) -> list[Term]:
    """Merge what can be merged, kind by kind."""
    return [merged for kind, group in by_kind(terms).items() for merged in kind.merge(group)]


def pack(terms: Sequence[Term]) -> list[Packed]:
    """Return the sum of the terms, kind by kind."""
    return [kind.pack(group) for kind, group in by_kind(terms).items()]


def add_all(F: Array, inputs: Any, terms: Sequence[Term]) -> None:
    """F += Σ weight * h(inputs), in place, kind by kind."""
    for part in pack(terms):
        part.add_to(F, inputs)


@dataclass(frozen=True)
class Direction:
    """A weighted sum of hypotheses.  A projection is one with a single term.

    For a projection of v, `norm` is the projected length |⟨v, h*⟩|/‖h*‖ and `edge` is norm/‖v‖
    (Definition 1).  `edge` is NaN where ‖v‖ is not known: a histogram sees only the part of v inside
    span(H), and then `intrinsic_edge` = norm/‖Πv‖ is what matters (theory: a raw edge that tends to 0
    there is not a failure).
    """

    terms: tuple[Term, ...]
    norm: float
    edge: float = math.nan
    intrinsic_edge: float = math.nan

    @property
    def n_weak_learners(self) -> int:
        """Return how many weak learners were trained for this direction."""
        return len(self.terms)

    def __mul__(self, factor: float) -> Direction:
        terms = tuple((weight * factor, h) for weight, h in self.terms)
        return Direction(terms, abs(factor) * self.norm, self.edge, self.intrinsic_edge)

    __rmul__ = __mul__

    __repr__ = brief

    def __neg__(self) -> Direction:
        return self * -1.0

    def lookup(self, inputs: Any) -> tuple[Any, Array] | None:
        """Return the direction as (codes, table), if it is one hypothesis of that form."""
        return self.terms[0][1].lookup(inputs, self.terms[0][0]) if len(self.terms) == 1 else None

    def add_to(self, F: Array, inputs: Any) -> None:
        """F += direction(inputs), in place."""
        add_all(F, inputs, self.terms if len(self.terms) == 1 else merge(self.terms))


ZERO = Direction((), 0.0)


@dataclass(frozen=True)
class Move:
    """How F changes in a round: F ← start + shrink (F − start) + direction."""

    direction: Direction
    size: float  #: the step size η_t, for the record
    shrink: float = 1.0  #: ≠ 1 in dual averaging and where a step rescales the whole ensemble
