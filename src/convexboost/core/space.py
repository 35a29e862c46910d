"""The function space L²(P) on the training points, and the weights of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.communicator import ALONE, Communicator
from convexboost.core.sums import EVEN, MASS_UNIT, CellSums, ExactSum, total, whole
from convexboost.core.text import brief

Array = NDArray[np.float64]
Codes = NDArray[np.int32]

#: Numbers whose ratio is closer to a whole number than this are multiples of each other.
SAME = 1e-9
#: A multiple that is further from a whole number has a remainder; what is closer may be rounding.
REMAINDER = 1e-3
#: The most units that all weights are counted in.
MOST_COUNTS = 2.0**30

#: Weights that are only compared are counted in this part of them all.
PARTS = 2.0**60

#: Weights are kept between 2^±WEIGHT_BITS as a rule: neither a sum nor a product of two can overflow.
WEIGHT_BITS = 400
#: A weight this much smaller than the largest is 0: its share could not be told from 0.
NO_WEIGHT = 2.0**-900


class Mergeable(Protocol):
    """A sum over some of the rows."""

    def merge(self, others: Iterable[Any]) -> Self: ...
    def reduce(self, communicator: Communicator) -> Self: ...


Sums = TypeVar("Sums", bound=Mergeable)


def as_columns(values: Any) -> NDArray[Any]:
    """Return an array with two dimensions: a vector, which may be empty, becomes a column."""
    values = np.asarray(values)
    return values.reshape(len(values), math.prod(values.shape[1:]))


def in_range(weight: Array, communicator: Communicator = ALONE) -> Array:
    """Multiply weights that are huge or tiny by a power of two, which changes no ratio."""
    largest = communicator.largest(weight.max(initial=0.0))
    bits = math.frexp(largest)[1]
    shift = min(max(bits, -WEIGHT_BITS), WEIGHT_BITS) - bits
    if shift != 0:
        weight, largest = np.ldexp(weight, shift), math.ldexp(largest, shift)
    tiny = weight < NO_WEIGHT * largest
    return np.where(tiny, 0.0, weight) if tiny.any() else weight


class Shares(NamedTuple):
    """The weights as they are summed: p_n = weight_n / over."""

    weight: Array  #: whole numbers where they are counted; empty where all are 1
    counted: bool
    over: int

    @classmethod
    def of(cls, weight: Array, communicator: Communicator = ALONE) -> Shares:
        """Count weights that add up to 1, where they have a common unit."""
        found = common_unit(weight, communicator)
        if found is None:
            return cls(weight, False, 1)
        whole, unit = found
        over = int(total(whole, communicator))
        if not math.isclose(over * unit, 1.0, rel_tol=SAME):
            return cls(weight, False, 1)
        return cls(whole if communicator.any((whole != 1.0).any()) else EVEN, True, over)

    def spread(self, n_samples: int) -> Array:
        """Return the weights row by row."""
        return self.weight if len(self.weight) else np.ones(n_samples)

    def part(self, rows: slice) -> Shares:
        """Return those of some rows."""
        return Shares(self.weight[rows], self.counted, self.over)


def common_unit(weight: Array, communicator: Communicator = ALONE) -> tuple[Array, float] | None:
    """Return weights as multiples of the largest unit that they have in common, and this unit.

    None where there is no such unit, or the multiples add up to more than MOST_COUNTS.  The unit is found by
    Euclid's algorithm on all weights at once.  Its remainders carry the rounding of every step, so each unit
    is also tried as the nearest fraction of the largest weight.
    """
    all_weights, largest = total(weight, communicator), communicator.largest(weight.max(initial=0.0))
    unit = tried = -communicator.largest(-weight.min(initial=math.inf))
    while all_weights <= MOST_COUNTS * unit:
        counts = weight / tried
        whole = np.rint(counts)
        fits = not communicator.any((np.abs(counts - whole) > SAME * counts).any())
        if fits and total(whole, communicator) <= MOST_COUNTS:
            return whole, tried
        counts = weight / unit
        rest = np.abs(counts - np.rint(counts))
        least = -communicator.largest(-rest[rest > REMAINDER].min(initial=math.inf))
        if least == math.inf:
            break
        unit *= least
        tried = largest / round(largest / unit)
    return None


@dataclass(frozen=True)
class FunctionSpace:
    """L²(P) on the training points: ⟨F, G⟩ = Σ_n p_n ⟨F_n, G_n⟩ (Section 2 of the paper).

    The only place that knows the sample weights.  The functional gradient of a mean loss is the row-wise
    subgradient, with no 1/N: the weight is inside the inner product.

    The points may be spread over processes.  Arrays then have the rows of this process, and what is summed
    over rows (inner products, means, masses, `added`) is summed over those of all.
    """

    weight: Array  #: p, shape (n_samples,); sums to 1 over all the rows of the problem
    total: float = 1.0  #: the sum of the sample weights before they were normalised
    given: Shares | None = field(default=None, repr=False, compare=False)  #: found from the weights if None
    rows: float | None = None  #: what all rows count as; None: `total`, but at least one for each
    communicator: Communicator = field(default=ALONE, repr=False, compare=False)  #: has the other rows

    __repr__ = brief

    @classmethod
    def of(
        cls,
        n_samples: int,
        sample_weight: Array | None = None,
        rows_per_weight: float | None = None,
        communicator: Communicator = ALONE,
    ) -> Self:
        """Make the space with p proportional to `sample_weight` (uniform when None).

        A weight of 1 counts as `rows_per_weight` rows; None: as one row, but weights below 1 on average are
        shares, not parts of a row.  `n_samples` and `sample_weight` are those of this process.
        """
        if sample_weight is None:
            n = int(communicator.add(np.array([n_samples]))[0])
            shares, weight = Shares(EVEN, True, n), np.full(n_samples, 1.0 / n)
            return cls(weight, float(n), shares, float(n), communicator)
        weight = in_range(np.asarray(sample_weight, float), communicator)
        sum_ = total(weight, communicator)
        shares = Shares.of(weight / sum_, communicator)
        rows = None if rows_per_weight is None else rows_per_weight * sum_
        return cls(shares.spread(len(weight)) / shares.over, sum_, shares, rows, communicator)

    @property
    def n_samples(self) -> int:
        """Return the number of training points that are here."""
        return len(self.weight)

    @cached_property
    def n_points(self) -> int:
        """Return the number of all training points."""
        return int(self.communicator.add(np.array([len(self.weight)]))[0])

    @property
    def n_rows(self) -> float:
        """Return what all rows count as: a row of weight 2 is two rows."""
        return max(self.total, float(self.n_points)) if self.rows is None else self.rows

    @property
    def row(self) -> float:
        """Return the weight of a row."""
        return 1.0 / self.n_rows

    def part(self, rows: slice) -> FunctionSpace:
        """Return the space of some of the rows here, with the weights they have.  It does not communicate."""
        if rows.start in (None, 0) and (rows.stop is None or rows.stop >= len(self.weight)):
            return self if self.communicator.size == 1 else self._local
        return FunctionSpace(self.weight[rows], self.total, self._shares.part(rows), self.n_rows)

    def take(self, rows: NDArray[Any]) -> FunctionSpace:
        """Return the space of some of the rows, by their numbers here, with the weights they have."""
        shares = self._shares
        shares = shares._replace(weight=shares.weight[rows] if len(shares.weight) else EVEN)
        return replace(self, weight=self.weight[rows], given=shares, rows=self.n_rows)

    @cached_property
    def _local(self) -> FunctionSpace:
        """Return the space of the rows here."""
        return replace(self, given=self._shares, rows=self.n_rows, communicator=ALONE)

    @cached_property
    def _shares(self) -> Shares:
        return self.given or Shares.of(self.weight, self.communicator)

    @cached_property
    def whole(self) -> tuple[Array, float]:
        """Return the weights in whole numbers, and their unit: sums of them are exact in any order."""
        shares = self._shares
        if shares.counted:
            return shares.spread(self.n_samples), 1.0 / shares.over
        return whole(self.weight, self.communicator)

    @cached_property
    def parts_of_all(self) -> NDArray[np.int64]:
        """Return the weights in whole numbers, in 1/PARTS of them all, rounded."""
        return np.rint(self.weight * PARTS).astype(np.int64)

    @cached_property
    def uncounted(self) -> FunctionSpace:
        """Return the same space, whose sums take the weights as they are even where they could be counted."""
        return replace(self, given=Shares(self.weight, False, 1))

    @cached_property
    def counts(self) -> tuple[Array, float] | None:
        """Return the weights as multiples of a common unit, and this unit, if there is one."""
        return common_unit(self.weight, self.communicator)

    def added(self, parts: Iterable[Sums]) -> Sums:
        """Add up what was summed over parts of the rows, here and elsewhere."""
        first, *others = parts
        return first.merge(others).reduce(self.communicator)

    def exact_inner(self, F: Array, G: Array) -> ExactSum:
        """⟨F, G⟩, to be merged with that of other rows of the problem."""
        weight, counted, over = self._shares
        return ExactSum(over=over).add_products(F, G, weight, counted)

    def exact_mean(self, values: Array) -> ExactSum:
        """Σ_n p_n values_n, column by column, to be merged with that of other rows of the problem."""
        weight, counted, over = self._shares
        return ExactSum(1 if values.ndim == 1 else values.shape[1], over).add(values, weight, counted)

    def exact_sums(self, cell: Any, columns: Array, n_cells: int, bound: float) -> CellSums:
        """Σ p_n columns_n and Σ p_n over the rows of each cell, to be merged with those of other rows.

        `bound` is at least Σ_n p_n |columns_n| over all rows, and the same for all that are merged.
        """
        weight, counted, over = self._shares
        sums = CellSums(n_cells, columns.shape[1], bound, over)
        if not counted:
            sums.mass_unit = MASS_UNIT  # also where there are no rows
        return sums.add(cell, columns, weight, counted)

    def inner(self, F: Array, G: Array) -> float:
        """⟨F, G⟩."""
        return float(self.added([self.exact_inner(F, G)]))

    def norm(self, F: Array) -> float:
        """‖F‖."""
        return math.sqrt(self.inner(F, F))

    def mean(self, rows: NDArray[Any]) -> float:
        """Σ_n p_n rows_n."""
        return float(self.added([self.exact_mean(rows)]))

    def means(self, columns: Array) -> Array:
        """Σ_n p_n columns_n, column by column."""
        return self.added([self.exact_mean(columns)]).columns()

    def mass(self, rows: NDArray[np.bool_]) -> float:
        """Return the weight of some rows."""
        weight, counted, over = self._shares
        if not counted:
            return self.mean(rows)
        # Counts are whole numbers: their sums are exact.
        count = float(np.sum(weight, where=rows)) if len(weight) else np.count_nonzero(rows)
        return float(self.communicator.add(np.array([count], float))[0]) / over

    def masses(self, kind: NDArray[Any], n_kinds: int = 0) -> Array:
        """Return the weight of each kind of row, by its number."""
        weight, counted, over = self._shares
        n_kinds = max(n_kinds, int(kind.max()) + 1 if len(kind) else 0)
        n_kinds = int(self.communicator.largest(n_kinds))
        if counted:
            counts = np.bincount(kind, weight if len(weight) else None, n_kinds)
            return self.communicator.add(counts.astype(float)) / over
        return self.added([self.exact_sums(kind, np.empty((len(kind), 0)), n_kinds, 0.0)]).masses()

    def gradient(self, partials: Array) -> Array:
        """Turn ordinary partial derivatives ∂R/∂F_nk into the functional gradient: divide by p_n."""
        return partials / self.weight[:, None]
