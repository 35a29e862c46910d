"""The vocabulary: function space, directions, additive models, and the protocols.

A *loss* meets targets and becomes an `Objective` R[F].  A *weak learner* meets inputs and becomes a
`HypothesisSet` H.  An *algorithm* walks between the two and touches neither the scores F (they belong to
the objective) nor the vector Δ that it projects (it belongs to the hypothesis set).  The two talk through
gradients and directions, so each may keep its own part in whatever form is fastest: dense arrays,
histograms, or rows on other machines.

Below the estimators every array of functions is (n_samples, n_outputs), float64.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int32]

#: Rows worked on together where each needs several numbers for a moment.
BLOCK = 4096
#: They may have more, up to so many numbers: each block costs some calls.
NUMBERS = 65536

#: How close to a kink counts as the kink, relative to the scores: what some hundred additions may round.
KINK = 2.0**-46

#: Sums over rows that differ by less, relatively, are equal: rows may be in another order, or copies.
TIE = 1e-12

#: A length this much shorter than the first one counts as zero.
ROUNDING = 1e-13


def as_good_as(best: float, first: float) -> float:
    """Return what a round must reach to be as good as the best one; `first` is the value at the start.

    The first such round counts as the best one: neither the order of the rows nor a shift of the targets,
    which change the last digits, shall decide.
    """
    return best + TIE * max((abs(x) for x in (best, first) if math.isfinite(x)), default=0.0)


#: Entries of an array or a list that a repr shows; of longer ones it shows the size.
SHOWN = 3


def blocks(n_rows: int, n_outputs: int = 1) -> Iterator[slice]:
    """Cut the rows into blocks: temporary arrays stay small, and sums do not depend on threads."""
    size = max(BLOCK, NUMBERS // n_outputs)
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def shown(value: Any) -> str:
    """Return a value as its user wrote it: 0.0, not np.float64(0.0)."""
    plain = isinstance(value, np.generic) and value.dtype.kind in "biufcSU"
    return repr(value.item() if plain else value)


def brief(self: Any) -> str:
    """Return the repr of a dataclass on one line; of arrays and long lists only type and size."""
    parts = (f"{f.name}={_brief(getattr(self, f.name))}" for f in fields(self) if f.repr)
    return f"{type(self).__name__}({', '.join(parts)})"


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        few = value.ndim == 1 and len(value) <= SHOWN
        return repr(value.tolist()) if few else f"<{value.dtype} array, shape {value.shape}>"
    if isinstance(value, list | tuple | dict) and len(value) > SHOWN:
        return f"<{type(value).__name__} of {len(value)} items>"
    return repr(value)


#: Numbers whose ratio is closer to a whole number than this are multiples of each other.
SAME = 1e-9
#: A multiple that is further from a whole number has a remainder; what is closer may be rounding.
REMAINDER = 1e-3
#: The most units that all weights are counted in.
MOST_COUNTS = 2.0**30

#: Weights are kept between 2^±WEIGHT_BITS as a rule: neither a sum nor a product of two can overflow.
WEIGHT_BITS = 400
#: A weight this much smaller than the largest is 0: its share could not be told from 0.
NO_WEIGHT = 2.0**-900


def in_range(weight: Array) -> Array:
    """Multiply weights that are huge or tiny by a power of two, which changes no ratio."""
    largest = float(weight.max())
    bits = math.frexp(largest)[1]
    shift = min(max(bits, -WEIGHT_BITS), WEIGHT_BITS) - bits
    if shift != 0:
        weight, largest = np.ldexp(weight, shift), math.ldexp(largest, shift)
    tiny = weight < NO_WEIGHT * largest
    return np.where(tiny, 0.0, weight) if tiny.any() else weight


@dataclass(frozen=True)
class FunctionSpace:
    """L²(P) on the training points: ⟨F, G⟩ = Σ_n p_n ⟨F_n, G_n⟩ (Section 2 of the paper).

    The only place that knows the sample weights.  The functional gradient of a mean loss is the row-wise
    subgradient, with no 1/N: the weight is inside the inner product.
    """

    weight: Array  #: p, shape (n_samples,); sums to 1 over all the rows of the problem
    total: float = 1.0  #: the sum of the sample weights before they were normalised

    __repr__ = brief

    @classmethod
    def of(cls, n_samples: int, sample_weight: Array | None = None) -> Self:
        """Make the space with p proportional to `sample_weight` (uniform when None)."""
        if sample_weight is None:
            return cls(np.full(n_samples, 1.0 / n_samples), float(n_samples))
        weight = in_range(np.asarray(sample_weight, float))
        total = math.fsum(weight)  # exact: the order of the rows does not change a bit of p
        return cls(weight / total, total)

    @property
    def n_samples(self) -> int:
        """Return the number of training points."""
        return len(self.weight)

    @property
    def row(self) -> float:
        """Return the weight of a row; weights below 1 on average are shares, not parts of a row."""
        return 1.0 / max(self.total, float(len(self.weight)))

    def part(self, rows: slice) -> FunctionSpace:
        """Return the space of some rows, with the weights they have here."""
        return FunctionSpace(self.weight[rows], self.total)

    def inner(self, F: Array, G: Array) -> float:
        """⟨F, G⟩."""
        # einsum without BLAS: the sum does not depend on the number of threads.
        return float(np.einsum("n,nk,nk->", self.weight, F, G))

    def norm(self, F: Array) -> float:
        """‖F‖."""
        return math.sqrt(self.inner(F, F))

    def mean(self, rows: NDArray[Any]) -> float:
        """Σ_n p_n rows_n."""
        return sum(float(np.einsum("n,n->", self.weight[b], rows[b])) for b in blocks(len(rows)))

    @cached_property
    def counts(self) -> tuple[Array, float] | None:
        """Return the weights as multiples of the largest unit that they have in common, and this unit.

        None where there is no such unit, or the multiples add up to more than MOST_COUNTS.  The unit is found
        by Euclid's algorithm on all weights at once.  Its remainders carry the rounding of every step, so
        each unit is also tried as the nearest fraction of the largest weight.
        """
        weight = self.weight
        total, largest = float(weight.sum()), float(weight.max())
        unit = tried = float(weight.min())
        while total <= MOST_COUNTS * unit:
            counts = weight / tried
            whole = np.rint(counts)
            if (np.abs(counts - whole) <= SAME * counts).all() and whole.sum() <= MOST_COUNTS:
                return whole, tried
            counts = weight / unit
            rest = np.abs(counts - np.rint(counts))
            rest = rest[rest > REMAINDER]
            if len(rest) == 0:
                break
            unit *= float(rest.min())
            tried = largest / round(largest / unit)
        return None

    def masses(self, kind: NDArray[Any]) -> Array:
        """Return the weight of each kind of row, by its number; the order of the rows does not change a bit.

        Nor do copies, where weights can be counted.
        """
        if self.counts is not None:
            whole, unit = self.counts
            # The unit has rounding of its own: what should be 1 in all is 1.
            total = 1.0 if math.isclose(whole.sum() * unit, 1.0, rel_tol=SAME) else whole.sum() * unit
            return total * (np.bincount(kind, whole) / whole.sum())
        order = np.lexsort((self.weight, kind))
        return np.bincount(kind[order], self.weight[order]).astype(float, copy=False)

    def shares(self, y: Any, n_classes: int) -> Array:
        """Return the weight of each class."""
        return np.bincount(y, self.weight, n_classes).astype(float, copy=False)

    @cached_property
    def _is_uniform(self) -> bool:
        return bool((self.weight == self.weight[0]).all())

    def mass(self, rows: NDArray[np.bool_]) -> float:
        """Return the weight of some rows."""
        if self._is_uniform:
            return np.count_nonzero(rows) / len(rows)
        return float(np.sum(self.weight, where=rows))

    def gradient(self, partials: Array) -> Array:
        """Turn ordinary partial derivatives ∂R/∂F_nk into the functional gradient: divide by p_n."""
        return partials / self.weight[:, None]


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


#: The best common value of some leaves in one output.
Pooled = Callable[[Any, int], float]


class Hypothesis(ABC):
    """A function h from inputs to R^k.  It can be evaluated at any inputs, not only the training ones."""

    @abstractmethod
    def add_to(self, F: Array, inputs: Any, weight: float) -> None:
        """F += weight * h(inputs), in place."""

    def lookup(self, inputs: Any, weight: float) -> tuple[Any, Array] | None:
        """Return (codes, table) with weight · h = table[codes] at the inputs, if h has that form."""
        return None

    def leaves(self, inputs: Any) -> tuple[Any, Array] | None:
        """Return (leaf of each row, value of each leaf), if h is constant on leaves."""
        return None

    def with_values(self, values: Array, pooled: Pooled) -> Self:
        """Return the same leaves with other values; with constraints, the best that they allow.

        These come from `pooled`: the best common value, in one output, of leaves that must have one.
        """
        raise NotImplementedError

    @classmethod
    def merge(cls, terms: Sequence[Term]) -> Sequence[Term]:
        """Fewer terms with the same sum, for hypotheses that can be added to each other."""
        return terms

    @classmethod
    def add_all(cls, F: Array, inputs: Any, terms: Sequence[Term]) -> None:
        """F += Σ weight * h(inputs), in place, for many hypotheses of this kind."""
        for weight, h in terms:
            h.add_to(F, inputs, weight)


Term = tuple[float, Hypothesis]


def by_kind(terms: Sequence[Term]) -> dict[type[Hypothesis], list[Term]]:
    """Group terms by the type of their hypothesis."""
    kinds: dict[type[Hypothesis], list[Term]] = {}
    for term in terms:
        kinds.setdefault(type(term[1]), []).append(term)
    return kinds


def merge(terms: Sequence[Term]) -> list[Term]:
    """Merge what can be merged, kind by kind."""
    return [merged for kind, group in by_kind(terms).items() for merged in kind.merge(group)]


def add_all(F: Array, inputs: Any, terms: Sequence[Term]) -> None:
    """F += Σ weight * h(inputs), in place, kind by kind."""
    for kind, group in by_kind(terms).items():
        kind.add_all(F, inputs, group)


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


@dataclass(frozen=True)
class Constants:
    """What is known of a convex functional in L²(P); None where it is not known or infinite."""

    lipschitz: float | None = None  #: ‖∇R[F]‖ ≤ lipschitz for all F
    smoothness: float | None = None  #: Λ; None: not smooth
    strong_convexity: float = 0.0  #: λ
    minimum: float | None = None  #: a number that R is never below


class Objective(Protocol):
    """A convex functional R[F] on the scores of some rows."""

    @property
    def n_outputs(self) -> int: ...
    @property
    def constants(self) -> Constants: ...

    def start(self) -> Array:
        """Return the best constant function, shape (n_outputs,)."""

    def scores(self, inputs: Any, start: Array, offset: Array | None = None) -> Scores:
        """Place the objective at the constant `start` (plus a fixed `offset` per row)."""


class Scores(Protocol):
    """The current F of an objective.  Nobody else sees the rows."""

    @property
    def constants(self) -> Constants: ...

    def move(self, move: Move) -> None:
        """F ← start + shrink (F − start) + direction."""

    def value(self) -> float:
        """R[F]."""

    def gradient(self) -> Gradient:
        """Return a subgradient of R at F, in L²(P)."""

    def gap(self) -> float:
        """Return how much of R[F] can be gained: R − floor, without what belongs to a few outliers."""

    def along(self, direction: Direction) -> Ray:
        """Return R on the line through F along `direction`; F does not move."""

    def rescaled(self, shrink: float) -> float:
        """R[start + shrink (F − start)]; F does not move."""

    def refitted(self, direction: Direction) -> Direction | None:
        """Return the same leaves with values such that R[F − direction] is about as small as it can be.

        None where the direction has no leaves, or constraints on them leave nothing to gain that way.
        """

    def distance(self) -> float:
        """‖F − start‖."""

    def largest(self) -> float:
        """Return the largest score in absolute value."""

    def magnitude(self) -> float:
        """‖F‖: rounding is relative to it."""

    def state(self) -> Any:
        """Return what `restore` needs to come back here, picklable and independent of later moves."""

    def restore(self, state: Any) -> None:
        """Go back to a state."""


@dataclass(frozen=True)
class Ray:
    """R on a line: a ↦ R[F + a direction]."""

    value: Callable[[float], float]
    slope: Callable[[float], float]  #: a subgradient of it

    def __call__(self, a: float) -> float:
        return self.value(a)


class Inputs(Protocol):
    """Turns a user's X into what hypotheses read (binned columns, or X itself)."""

    def prepare(self, X: Any) -> Any: ...


class HypothesisSet(Protocol):
    """H, bound to the training inputs."""

    @property
    def knows_span(self) -> bool:
        """Return whether `Target.coordinates` projects on span(H)."""

    @property
    def rounding(self) -> float:
        """Return the relative error of `Target.coordinates`; only asked where these are known."""

    def light(self, gradient: Gradient) -> float:
        """Return the length of ∇ on the rows that are too light to be seen in `Target.coordinates`."""

    @property
    def mapper(self) -> Inputs:
        """Return the map from a user's X to `inputs`, kept in the model."""

    @property
    def inputs(self) -> Any:
        """Return the training inputs, prepared."""

    def zero(self, n_outputs: int) -> Target:
        """Δ = 0."""

    def origin(self, n_outputs: int) -> Position:
        """Return f − f₀ = 0."""

    def at(self, coordinates: Array) -> Direction:
        """Return the function at the training points that has these `Target.coordinates`."""

    def functions(self, n_outputs: int) -> Any:
        """Return functions that span H, or more, at the training points; None where they are not known.

        Sparse, (n_samples · n_outputs, count): a column is a function, row after row.
        """


class Position(ABC):
    """f − f₀, the sum of all moves so far, in a form whose inner product with a gradient is cheap."""

    @abstractmethod
    def move(self, move: Move) -> None:
        """Follow a move of the scores."""

    @abstractmethod
    def dot(self, gradient: Gradient) -> float:
        """⟨∇, f − f₀⟩."""

    @abstractmethod
    def state(self) -> Any:
        """Return what `restore` needs, picklable."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go back to a state."""


class Target(ABC):
    """The vector Δ that is projected on H, in whatever form H can search fastest."""

    @abstractmethod
    def add(self, gradient: Gradient, scale: float = 1.0) -> None:
        """Δ ← Δ + scale ∇."""

    @abstractmethod
    def combine(self, other: Any, scale: float = 1.0) -> None:
        """Δ ← Δ + scale Δ', for a Δ' of the same set."""

    @abstractmethod
    def scale(self, factor: float) -> None:
        """Δ ← factor Δ."""

    @abstractmethod
    def project(self, rng: np.random.Generator) -> Direction:
        """Return (⟨Δ, h*⟩/‖h*‖²) h* for the best h* found in H; `ZERO` if every h is orthogonal to Δ."""

    @abstractmethod
    def subtract(self, direction: Direction) -> None:
        """Δ ← Δ − direction."""

    @abstractmethod
    def dot(self, direction: Direction) -> float:
        """⟨Δ, direction⟩."""

    @abstractmethod
    def inner(self, gradient: Gradient) -> tuple[float, float]:
        """⟨Δ, ∇⟩ and ‖∇‖², both inside span(H) where the set knows its span."""

    def strength(self) -> float | None:
        """max_h |⟨Δ, h⟩|/‖h‖ over all h in H; None for a set that need not find the best."""
        return None

    @abstractmethod
    def coordinates(self, dear: bool = False) -> Array | None:
        """Return ΠΔ in Euclidean coordinates, None where span(H) is too large to be known.

        In training it must be cheap to know (`dear` False).  Where the set cannot know its span, Δ itself:
        what is longer makes a bound weaker, never wrong.
        """

    @abstractmethod
    def copy(self) -> Self:
        """Return an independent Δ."""

    @abstractmethod
    def state(self) -> Any:
        """Return what `restore` needs, picklable."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go back to a state."""

    def projections(self, count: int, rng: np.random.Generator, tolerance: float) -> list[Direction]:
        """Project and subtract up to `count` times; at least once if Δ correlates with H at all."""
        found: list[Direction] = []
        while len(found) < count:
            h = self.project(rng)
            if h.norm <= (max(tolerance, ROUNDING * found[0].norm) if found else 0.0):
                break
            found.append(h)
            self.subtract(h)
        return found

    def pursue(self, count: int, rng: np.random.Generator, tolerance: float = 0.0) -> Direction:
        """Project and subtract up to `count` times: the inner loop of Algorithm 2.

        Stops early when the projected length falls to `tolerance`, or to rounding.  The sum is then rescaled
        to be the projection of Δ on its own line (Algorithm 2': ‖h‖ ≤ ‖Δ‖ and h ⟂ Δ − h, which plain
        matching pursuit does not guarantee).
        """
        before = self.copy()
        projections = self.projections(count, rng, tolerance)
        if not projections:
            return ZERO
        total = Direction(tuple(term for h in projections for term in h.terms), 0.0)
        correlation = before.dot(total)
        squared = correlation - self.dot(total)  # Δ_before = total + Δ_after
        if squared <= 0.0:
            return projections[0]
        first = projections[0]
        rescaled = total * (correlation / squared)
        norm = abs(correlation) / math.sqrt(squared)
        target_norm = first.norm / first.edge
        return Direction(rescaled.terms, norm, norm / target_norm)


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
