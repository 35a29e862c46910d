"""Sums over rows: the same bits for any order of the rows, any number of threads and any partition.

Every sum is kept in whole numbers until it is read, and whole numbers add up in any order.  `ExactSum` is for
one number or a few: it needs no bound and rounds once, at the end.  `CellSums` is for tables, such as one sum
for each leaf and output: two whole numbers for each, in a unit that comes from a bound.

Rows may be spread over processes: each adds its own rows, `reduce` adds up the whole numbers of all, and then
each reads the same bits as a process with all rows.  (The bound of `CellSums` must be the same everywhere:
take it from an `ExactSum`, such as a norm.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from convexboost.core.bits import bits_of, local_array, number_of
from convexboost.core.communicator import ALONE, Communicator
from convexboost.core.compiling import kernel, part

Array = NDArray[np.float64]

#: Digits of an exact sum have 32 bits; the first one counts units of 2^-1074, the smallest number above 0.
DIGIT_BITS = 32
LOWEST_BIT = -1074
#: The last digit has the sign, and room for 2^45 terms of any size.
N_DIGITS = 66
#: Behind the digits: how many terms are NaN, +∞ and −∞.
N_SLOTS = N_DIGITS + 3
#: Rows added together: the sum of two terms for each, less than 2^61 units, fits into 64 bits.
TERMS = 1024
MOST_TERMS = 2 * TERMS
#: Bits taken off all terms at once, and the exponent from which on terms are added one by one.
STEP_BITS, HUGE = 50, 2044
#: A float keeps 26 bits of its mantissa and the rest has 27: either times a count below 2^26 is exact.
HIGH_BITS = -(1 << 27)
#: Bits of the second number of a cell, which counts parts of the unit of the first one.
PART_BITS = 32
PART_SCALE, PART_UNIT = 2.0**PART_BITS, 2.0**-PART_BITS
#: A cell adds up to less than 2^61 units, so that two of them can be added without overflow.
CELL_BITS = 61
#: The unit of weights that are not counts.
MASS_UNIT, MASS_SCALE = 2.0**-CELL_BITS, 2.0**CELL_BITS
#: The unit of smaller bounds would be too small for a float.
LEAST_EXPONENT = -962

#: No weights: every row counts once.
EVEN = np.empty(0)


class ExactSum:
    """Σ terms / `over`, for each column.  Exact until it is read; then correctly rounded.

    NaN where a term is NaN, or where infinities of both signs meet.  About 0.8 ns a term.
    """

    __slots__ = ("digits", "over")

    def __init__(self, n_columns: int = 1, over: int = 1) -> None:
        self.digits = np.zeros((n_columns, N_SLOTS), np.int64)
        self.over = over

    def add(self, values: Any, weight: Array = EVEN, counted: bool = False) -> Self:
        """Add weight · values, column by column; no weight means 1 everywhere.

        A product is rounded, unless the weights are counts (below 2^26): then a row of weight 3 is exactly
        the row three times.
        """
        values = _contiguous(values).reshape(len(values), len(self.digits))
        _add_rows(values, values[:, :0], weight, counted, self.digits)
        return self

    def add_products(self, F: Array, G: Array, weight: Array = EVEN, counted: bool = False) -> Self:
        """Add weight · ⟨F_n, G_n⟩ over the rows, in one column; the inner product of a row is rounded."""
        _add_rows(_contiguous(F), _contiguous(G), weight, counted, self.digits)
        return self

    def merge(self, others: Iterable[ExactSum]) -> Self:
        """Add what was summed elsewhere: by other threads, over other rows."""
        found = list(others)
        for other in found:
            self.digits += other.digits
        return self.add(np.empty((0, len(self.digits)))) if found else self  # carries

    def reduce(self, communicator: Communicator) -> Self:
        """Add what other processes have summed over their rows."""
        self.digits = communicator.add(self.digits)
        return self

    def __float__(self) -> float:
        (digits,) = self.digits
        return _rounded(digits, self.over)

    def columns(self) -> Array:
        """Return the sum of each column."""
        return np.array([_rounded(digits, self.over) for digits in self.digits])


class CellSums:
    """Σ weight · columns / `over` over the rows of each cell, and Σ weight / `over`, in whole numbers.

    `bound` must be at least Σ |weight · column| / over, for all rows and each column.  If the weights add up
    to `over`, the norm of a column is such a bound, by Cauchy-Schwarz, and so is its largest entry.  A term
    is rounded to a multiple of at most the bound times 2^-92.  About 1.5 ns a term.  Where the bound is not
    finite, all sums are NaN.
    """

    __slots__ = ("digits", "mass", "mass_unit", "over", "unit")

    def __init__(self, n_cells: int, n_columns: int, bound: float, over: int = 1) -> None:
        exponent = max(math.frexp(bound * over)[1], LEAST_EXPONENT)
        self.unit = math.ldexp(1.0, exponent - CELL_BITS) if math.isfinite(bound * over) else math.nan
        self.digits = np.zeros((n_cells, n_columns, 2), np.int64)
        self.mass, self.mass_unit = np.zeros(n_cells, np.int64), 1.0 / over
        self.over = over

    def add(self, cell: Any, columns: Array, weight: Array = EVEN, counted: bool = False) -> Self:
        """Add rows; their cells are numbered.  No weight means 1 everywhere.

        As in `ExactSum.add`, a row whose weight is a count is exactly that many rows.  Other weights must not
        add up to more than about 1.
        """
        if math.isnan(self.unit):  # the sums are NaN whatever the columns
            columns = columns[:, :0]
        cell, scale = np.asarray(cell, np.int32), 1.0 / self.unit
        if len(weight) and not counted:
            self.mass_unit = MASS_UNIT
        columns, digits = _contiguous(columns), cast(Any, self.digits)
        if columns.shape[1] == 1:  # a vector: the compiler sees that there is one column
            columns, digits = columns.reshape(-1), digits.reshape(-1, 2)
        _add_cells(cell, columns, weight, counted, scale, digits, self.mass)
        return self

    def merge(self, others: Iterable[CellSums]) -> Self:
        """Add what was summed elsewhere, with the same bound."""
        for other in others:
            self.digits += other.digits
            self.mass += other.mass
        return self

    def reduce(self, communicator: Communicator) -> Self:
        """Add what other processes have summed over their rows, with the same bound."""
        if communicator.size > 1:
            shape, size = self.digits.shape, self.digits.size
            both = communicator.add(np.append(self.digits, self.mass))
            self.digits, self.mass = both[:size].reshape(shape), both[size:]
        return self

    def table(self) -> Array:
        """Return the weight of each cell and, behind it, the sums: (n_cells, 1 + n_columns)."""
        n_cells, n_columns, _ = self.digits.shape
        out = np.empty((n_cells, 1 + n_columns))
        _read_cells(self.mass, self.mass_unit, self.digits, self.unit, self.over, out)
        return out

    def masses(self) -> Array:
        """Return the weight of each cell."""
        return np.ascontiguousarray(self.table()[:, 0])

    def values(self) -> Array:
        """Return the sums, (n_cells, n_columns)."""
        return np.ascontiguousarray(self.table()[:, 1:])


def total(terms: Any, communicator: Communicator = ALONE) -> float:
    """Return the sum of some numbers, here and on other processes."""
    return float(ExactSum().add(terms).reduce(communicator))


def whole(weight: Array, communicator: Communicator = ALONE) -> tuple[Array, float]:
    """Return weights in whole numbers, and their unit.  Sums of them are exact in floats: below 2^53."""
    bits = 52 - math.frexp(1.0001 * total(weight, communicator))[1]
    return np.rint(np.ldexp(weight, bits)), math.ldexp(1.0, -bits)


def _contiguous(values: Any) -> Array:
    return np.ascontiguousarray(values, np.float64)


def _rounded(digits: NDArray[np.int64], over: int) -> float:
    places = digits.nonzero()[0].tolist()  # a few, unless the sum is negative
    if places and places[-1] >= N_DIGITS:
        nans, ups, downs = digits[N_DIGITS:].tolist()
        return math.nan if nans or (ups and downs) else math.inf if ups else -math.inf
    whole = 0
    for place in places:
        whole += digits.item(place) << (DIGIT_BITS * place)
    try:
        return whole / (over << -LOWEST_BIT)  # Python rounds a ratio of whole numbers correctly
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


index = np.uint64


@part
def _add_whole(number: Any, bit: Any, digits: Any) -> None:
    """Add number · 2^bit units to the digits."""
    i, shift = bit >> 5, bit & 31
    rest = number >> (DIGIT_BITS - shift)
    digits[i] += (number & ((1 << (DIGIT_BITS - shift)) - 1)) << shift
    digits[i + 1] += rest & 0xFFFFFFFF
    digits[i + 2] += rest >> DIGIT_BITS


@part
def _add_huge(terms: Any, size: Any, digits: Any) -> None:
    """Add the terms that are too large for `_add_terms`, or not finite, one by one; they become 0."""
    for i in range(size):
        term, bits = terms[i], bits_of(terms[i])
        exponent = bits >> 52 & 0x7FF
        if exponent == 0x7FF:
            digits[N_DIGITS + (0 if term != term else (1 if term > 0.0 else 2))] += 1
        elif exponent >= HUGE:
            mantissa = bits & 0xFFFFFFFFFFFFF | 1 << 52
            _add_whole(mantissa if term > 0.0 else -mantissa, exponent - 1, digits)
        if exponent >= HUGE:
            terms[i] = 0.0


@part
def _add_terms(terms: Any, size: Any, digits: Any) -> None:
    """Add up to 2 TERMS numbers to the digits; `terms` becomes 0.

    A number plus 1.5 · 2^(52 + u) is rounded to a multiple of 2^u that can be read off its bits, and what is
    left of it is exact.  After two such steps of 50 bits nothing is left of most terms.
    """
    while True:
        largest: Any = np.int64(0)
        for i in range(size):
            magnitude = bits_of(terms[i]) & 0x7FFFFFFFFFFFFFFF
            largest = magnitude if magnitude > largest else largest
        if largest == 0:
            break
        if largest >> 52 >= HUGE:
            _add_huge(terms, size, digits)
            continue
        bit = (largest >> 52) + 2  # 2^50 units of 2^bit are more than any term
        lower = bit - STEP_BITS if bit > STEP_BITS else 0
        high_bits, low_bits = bit + 1 << 52 | 1 << 51, lower + 1 << 52 | 1 << 51
        high, low = number_of(high_bits), number_of(low_bits)
        highs, lows = np.int64(0), np.int64(0)
        for i in range(size):
            term = terms[i]
            a = term + high
            highs += bits_of(a) - high_bits
            rest = term - (a - high)
            b = rest + low
            lows += bits_of(b) - low_bits
            terms[i] = rest - (b - low)
        _add_whole(highs, bit, digits)
        _add_whole(lows, lower, digits)


@kernel(allocates=False)
def _add_rows(F: Any, G: Any, weight: Any, counted: Any, digits: Any) -> None:
    """digits[k] += Σ weight · F[:, k]; digits[0] += Σ weight · ⟨F_n, G_n⟩ where G has columns.

    A thousand rows add less than 2^36 to a digit, so that carrying can wait for the end.
    """
    terms, is_weighted = local_array(MOST_TERMS, np.float64), len(weight) > 0
    for first in range(0, len(F), TERMS):
        begin, size = index(first), index(min(TERMS, len(F) - first))
        for c in range(index(len(digits))):
            for i in range(size):
                terms[i] = F[begin + i, c]
            if G.shape[1] > 0:
                for i in range(size):
                    terms[i] *= G[begin + i, index(0)]
                for k in range(index(1), index(G.shape[1])):
                    for i in range(size):
                        terms[i] += F[begin + i, k] * G[begin + i, k]
            n_terms = size
            if is_weighted and counted:  # two products, both exact
                n_terms = size + size
                for i in range(size):
                    term, w = terms[i], weight[begin + i]
                    high = number_of(bits_of(term) & HIGH_BITS)
                    low = term - high
                    terms[i], terms[size + i] = w * high, w * low if low == low else 0.0
            elif is_weighted:
                for i in range(size):
                    terms[i] *= weight[begin + i]
            _add_terms(terms, n_terms, digits[c])
    for c in range(index(len(digits))):  # bring all digits but the last between 0 and 2^32
        carried = np.int64(0)
        for i in range(index(N_DIGITS - 1)):
            value = digits[c, i] + carried
            digits[c, i] = value & 0xFFFFFFFF
            carried = value >> DIGIT_BITS
        digits[c, index(N_DIGITS - 1)] += carried


@kernel(allocates=False)
def _add_cells(cell: Any, columns: Any, weight: Any, counted: Any, scale: Any, out: Any, mass: Any) -> None:
    """Add weight · columns · scale to the cells, in whole numbers and in parts of 2^-32, cut off.

    `mass` are the weights, in whole numbers.  One column is a vector: without the loop over columns the sum
    takes half the time.
    """
    is_weighted = len(weight) > 0
    is_count = counted or not is_weighted
    for n in range(index(len(cell))):
        c, w = index(cell[n]), weight[n] if is_weighted else 1.0
        factor, times = (scale, np.int64(w)) if is_count else (scale * w, np.int64(1))
        mass[c] += times if is_count else np.int64(w * MASS_SCALE)
        if columns.ndim == 1:
            number = columns[n] * factor
            units = np.int64(number)
            out[c, index(0)] += times * units
            out[c, index(1)] += times * np.int64((number - np.float64(units)) * PART_SCALE)
        else:
            for k in range(index(columns.shape[1])):
                number = columns[n, k] * factor
                units = np.int64(number)
                out[c, k, index(0)] += times * units
                out[c, k, index(1)] += times * np.int64((number - np.float64(units)) * PART_SCALE)


@kernel(allocates=False)
def _read_cells(mass: Any, mass_unit: Any, digits: Any, unit: Any, over: Any, out: Any) -> None:
    """Write masses and sums as floats; units and parts of them are brought into the range of one first."""
    half = 1 << (PART_BITS - 1)
    for c in range(index(len(out))):
        out[c, index(0)] = mass[c] * mass_unit
        for k in range(index(digits.shape[1])):
            units, parts = digits[c, k, index(0)], digits[c, k, index(1)]
            carried = (parts + half) >> PART_BITS
            units, parts = units + carried, parts - (carried << PART_BITS)
            high = (units + half) >> PART_BITS << PART_BITS
            out[c, index(1) + k] = (high + ((units - high) + parts * PART_UNIT)) * unit / over
