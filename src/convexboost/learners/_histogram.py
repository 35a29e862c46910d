"""Stumps in histogram form: Δ is kept only as its sums over bins.

Stumps are constant on bins, so everything the search and the residual need of Δ are these sums.  To
subtract a stump one needs the weight its leaves share with every other bin: a few columns of the *pair
table* (`PairTable`).  So a projection costs O(total bins × outputs), whatever the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from numbers import Integral
from typing import Any, ClassVar, Self
from weakref import ref

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular
from threadpoolctl import ThreadpoolController

from convexboost.core import (
    ROUNDING,
    ZERO,
    Array,
    Direction,
    FunctionSpace,
    Gradient,
    Hypothesis,
    Move,
    Position,
    RidgeGradient,
    Target,
    Term,
    brief,
    merge,
)
from convexboost.kernels import parallel
from convexboost.kernels.histogram import add_lookup, dot
from convexboost.kernels.stumps import CLASS, leaf_counts, project, pursue, subtract
from convexboost.learners._bins import MAX_BINS, BinMapper, BinnedSample, bin_sample

MAX_TABLE_BYTES = 512 * 2**20
#: Up to this many bins (some seconds) the span of the stumps is factorised for what needs it …
MAX_SPAN_BINS = 4096
#: … and up to so many operations (some tens of milliseconds) only to report the intrinsic edge.
MAX_EDGE_OPERATIONS = 1e8
#: Bins that add less than this to the square of a length are left out of the basis of the span …
NEGLIGIBLE = 1e-12
#: … so rows lighter than this may not be seen in it.
LIGHT = 100.0 * NEGLIGIBLE
#: The intrinsic edge of a residual is measured in one round of this many.
INTRINSIC_EVERY = 10

N_LEAVES = 3


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Products inside do not depend on the number of threads."""
    return _blas().limit(limits=1)


@dataclass(frozen=True)
class BinFunction(Hypothesis):
    """A function of one binned feature: leaf values, and the leaf of each bin."""

    feature: int
    leaf_of_bin: NDArray[np.uint8]
    values: Array  #: (n_leaves, n_outputs)

    __repr__ = brief

    @property
    def table(self) -> Array:
        """Return the value in each bin, (n_bins + 1, n_outputs)."""
        return self.values[self.leaf_of_bin]

    def add_to(self, F: Array, inputs: Any, weight: float) -> None:
        """F += weight * h(inputs)."""
        codes, table = self.lookup(inputs, weight)

        def task(start: int, stop: int) -> None:
            add_lookup(F, codes, table, start, stop)

        parallel.run(task, len(F), F.size, inputs.n_threads)

    def lookup(self, inputs: Any, weight: float) -> tuple[Any, Array]:
        """Return (bins, weight times the value in each)."""
        return inputs.column(self.feature), weight * self.table

    def leaves(self, inputs: Any) -> tuple[Any, Array]:
        """Return the leaf of each row, and the values."""
        return self.leaf_of_bin[inputs.column(self.feature)], self.values

    def with_values(self, values: Array, pooled: Any) -> Self:
        """Return the same leaves with other values."""
        return replace(self, values=values)

    @classmethod
    def merge(cls, terms: Sequence[Term]) -> Sequence[Term]:
        """Sum the tables of each feature: an ensemble of any length has one term per feature."""
        tables: dict[int, Array] = {}
        for weight, h in terms:
            assert isinstance(h, BinFunction)
            if h.feature in tables:
                tables[h.feature] += weight * h.table
            else:
                tables[h.feature] = weight * h.table
        return [(1.0, cls(j, np.arange(len(table), dtype=np.uint8), table)) for j, table in tables.items()]

    @classmethod
    def add_all(cls, F: Array, inputs: Any, terms: Sequence[Term]) -> None:
        """Add them all in one pass over the rows."""
        stumps = [(weight, h) for weight, h in terms if isinstance(h, BinFunction)]
        inputs.add_tables(F, [h.feature for _, h in stumps], [weight * h.table for weight, h in stumps])


@dataclass(frozen=True)
class Span:
    """span(H) of binned stumps: all additive functions of the bins (theory: Section 4.5).

    A pivoted Cholesky factor of the pair table picks bins whose indicators are a basis.  What the others add
    is rounding, or concerns rows of weight below `LIGHT` only.
    """

    basis: NDArray[np.int64]
    factor: Array

    __repr__ = brief

    def whiten(self, table: Array) -> Array:
        """Map Πv to Euclidean coordinates: ⟨Πv, Πw⟩ = ⟨whiten(v), whiten(w)⟩."""
        with one_blas_thread():
            out: Array = solve_triangular(self.factor, table[self.basis], lower=True, check_finite=False)
        return out

    def unwhiten(self, coordinates: Array, n_bins: int) -> Array:
        """Return a function of the span with these coordinates, as its values in all bins."""
        table = np.zeros((n_bins, coordinates.shape[1]))
        with one_blas_thread():
            table[self.basis] = solve_triangular(
                self.factor, coordinates, lower=True, trans="T", check_finite=False
            )
        return table

    @cached_property
    def rounding(self) -> float:
        """Return the relative error of `whiten`: the condition number of the factor times a few roundings."""
        if len(self.factor) == 0:
            return 0.0
        reciprocal, _ = lapack.dtrcon(self.factor, uplo="L")
        return 8.0 * float(np.finfo(float).eps) / max(float(reciprocal), 1e-8)

    @classmethod
    def of(cls, pairs: Array) -> Span:
        """Factorise the whole pair table."""
        tolerance = NEGLIGIBLE * float(pairs.diagonal().max())
        with one_blas_thread():
            factor, pivots, rank, _ = lapack.dpstrf(pairs, lower=1, tol=tolerance)
        return cls(pivots[:rank].astype(np.int64) - 1, np.tril(factor[:rank, :rank]))


class PairTable:
    """C[bin a, bin b] = weight of the rows in both, as running sums over the bins of each feature.

    The block of a feature is counted when a stump on it is first subtracted.  Where the table would take more
    than `max_bytes`, the few columns of each stump are counted alone instead: the same integers, so the same
    model, at the cost of a pass over the rows.
    """

    def __init__(self, sample: BinnedSample, max_bytes: int) -> None:
        n_bins = int(sample.mapper.offsets[-1])
        self.sample, self.fits = sample, 8 * n_bins**2 <= max_bytes
        self.sums = np.zeros((n_bins, n_bins) if self.fits else (0, 0), np.int64)
        self.ready = np.zeros(sample.n_features, bool)

    def count(self, j: int) -> None:
        """Count the block of feature j; C is symmetric, so what it shares with others may be known."""
        if not self.ready[j]:
            first, width = self.sample.mapper.offsets[j], self.sample.mapper.columns[j].n_bins + 1
            own = slice(first, first + width)
            block = self.sample.shared_counts(self.sample.column(j), width, np.flatnonzero(~self.ready))
            known = np.repeat(self.ready, np.diff(self.sample.mapper.offsets))
            block[known] = self._columns(own)[known]
            np.cumsum(block.T, axis=0, out=self.sums[own])
            self.ready[j] = True

    def shares(self, h: BinFunction) -> NDArray[np.int64]:
        """Weight that every bin shares with every leaf of h: (n_leaves, total bins), in fixed point."""
        if not self.fits:
            column = h.leaf_of_bin[self.sample.column(h.feature)]
            return np.ascontiguousarray(self.sample.shared_counts(column, len(h.values)).T)
        self.count(h.feature)
        shares = np.empty((len(h.values), len(self.sums)), np.int64)
        first = self.sample.mapper.offsets[h.feature]
        leaf_counts(self.sums, first, h.leaf_of_bin, len(h.leaf_of_bin), shares)
        return shares

    def whole(self) -> Array:
        """Return C."""
        for j in range(self.sample.n_features):
            self.count(j)
        return self._columns(slice(None)) / self.sample.unit

    def _columns(self, columns: slice) -> NDArray[np.int64]:
        """Return columns of C, in fixed point, as far as their rows have been counted."""
        begins = self.sample.mapper.offsets[:-1]
        C = np.diff(self.sums[:, columns], axis=0, prepend=0)
        C[begins] = self.sums[begins, columns]
        return C


class StumpSet:
    """All stumps of one kind on a binned sample."""

    knows_span = True

    def __init__(self, sample: BinnedSample, kind: int, max_table_bytes: int = MAX_TABLE_BYTES) -> None:
        self.sample, self.kind = sample, kind
        #: histogram of F − start: of which moves, up to which, and the table
        self._drift: tuple[list[Move], int, Array] | None = None
        #: the last histogram, which may be asked for twice; gradients can be large, so it does not keep one
        self._latest: tuple[ref[Gradient], Array] | None = None
        self.pairs = PairTable(sample, max_table_bytes)

    @property
    def mapper(self) -> BinMapper:
        """Return the map from X to bins."""
        return self.sample.mapper

    @property
    def inputs(self) -> BinnedSample:
        """Return the training rows."""
        return self.sample

    def zero(self, n_outputs: int) -> HistogramTarget:
        """Δ = 0."""
        if self.kind == CLASS and n_outputs < 2:
            raise ValueError(
                "`learner` 'class_stump' needs at least 2 outputs, got 1; use 'sign_stump' or 'stump'"
            )
        return HistogramTarget(self, np.zeros((self.mapper.offsets[-1], n_outputs)))

    def origin(self, n_outputs: int) -> BinPosition:
        """Return f − f₀ = 0."""
        return BinPosition(self, np.zeros((self.mapper.offsets[-1], n_outputs)))

    def add_values(self, direction: Direction, table: Array) -> None:
        """Add the values of a direction in all bins to a table, in place."""
        offsets = self.mapper.offsets
        for weight, h in direction.terms:
            assert isinstance(h, BinFunction)
            table[offsets[h.feature] : offsets[h.feature + 1]] += weight * h.table

    @cached_property
    def span(self) -> Span | None:
        """Return span(H), or None where there are too many bins to factorise."""
        if self.mapper.offsets[-1] > MAX_SPAN_BINS or not self.pairs.fits:
            return None
        return Span.of(self.pairs.whole())

    @property
    def rounding(self) -> float:
        """Return the relative error of coordinates."""
        assert self.span is not None
        return self.span.rounding

    @cached_property
    def _light_rows(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.sample.space.weight < LIGHT)

    def light(self, gradient: Gradient) -> float:
        """Return the length of ∇ on the rows of weight below `LIGHT`."""
        rows = self._light_rows
        if len(rows) == 0:
            return 0.0
        return FunctionSpace(self.sample.space.weight[rows]).norm(gradient.values[rows])

    def at(self, coordinates: Array) -> Direction:
        """Return the function of span(H) with these coordinates."""
        assert self.span is not None
        table = self.span.unwhiten(
            coordinates.reshape(len(self.span.basis), -1), int(self.mapper.offsets[-1])
        )
        return Direction(self.terms(table), float(np.linalg.norm(coordinates)))

    def functions(self, n_outputs: int) -> sp.csc_array:
        """Return the indicators of the bins in each output: of the first feature all, then all but one."""
        N, begins, mass = len(self.sample), self.mapper.offsets[:-1], self.sample.mass
        bins = [begin + self.sample.column(j).astype(np.int64) for j, begin in enumerate(begins)]
        rows = np.tile(np.arange(N), len(begins))
        Z = sp.csc_array((np.ones(len(rows)), (rows, np.concatenate(bins))), (N, len(mass)))
        redundant = [b + np.argmax(part) for b, part in zip(begins, np.split(mass, begins[1:]), strict=True)]
        keep = np.setdiff1d(np.flatnonzero(mass > 0.0), redundant[1:])
        return sp.csc_array(sp.kron(Z[:, keep], sp.eye_array(n_outputs), "csc"))

    def terms(self, table: Array) -> tuple[Term, ...]:
        """Return the function with these values in all bins, as hypotheses."""
        parts = np.split(table, self.mapper.offsets[1:-1])
        return tuple(
            (1.0, BinFunction(j, np.arange(len(part), dtype=np.uint8), part)) for j, part in enumerate(parts)
        )

    @property
    def edges_are_cheap(self) -> bool:
        """Return whether the span costs so little that it may be found only to report an edge."""
        counting = len(self.sample) * self.sample.n_features**2
        return counting + int(self.mapper.offsets[-1]) ** 3 / 3 <= MAX_EDGE_OPERATIONS

    def histogram(self, gradient: Gradient) -> Array:
        """Σ of p_n ∇_n over the rows of each bin; a ridge term comes from the pair table, not from rows."""
        if not isinstance(gradient, RidgeGradient):
            if self._latest is None or self._latest[0]() is not gradient:
                self._latest = (ref(gradient), self.sample.histogram(gradient))
            return self._latest[1]
        part = self.histogram(gradient.part)
        moves, done, drift = gradient.moves, 0, np.zeros_like(part)
        if self._drift is not None and self._drift[0] is moves:
            _, done, drift = self._drift
        for move in moves[done:]:
            drift = move.shrink * drift
            self.subtract(-move.direction, drift)
        self._drift = (moves, len(moves), drift)
        return part + gradient.l2 * drift

    def subtract(self, direction: Direction, table: Array) -> None:
        """Subtract the histogram of a direction from a table, in place."""
        for weight, h in direction.terms:
            assert isinstance(h, BinFunction)
            subtract(table, self.pairs.shares(h), self.sample.unit, weight, h.values)

    def stump(self, j: int, leaves: NDArray[np.uint8], values: Array) -> BinFunction:
        """Make a hypothesis from what the kernels filled in."""
        return BinFunction(int(j), leaves[: self.mapper.columns[j].n_bins + 1].copy(), values.copy())

    @property
    def bins(self) -> tuple[Any, ...]:
        """Return what every search over the stumps reads."""
        return self.sample.mass, self.mapper.offsets, self.mapper.categorical, self.kind


class BinPosition(Position):
    """f − f₀ as its values in all bins: the table of each feature, (total bins, n_outputs)."""

    def __init__(self, stumps: StumpSet, table: Array) -> None:
        self.stumps, self.table = stumps, table

    def move(self, move: Move) -> None:
        """Follow a move of the scores."""
        if move.shrink != 1.0:
            self.table *= move.shrink
        self.stumps.add_values(move.direction, self.table)

    def dot(self, gradient: Gradient) -> float:
        """⟨∇, f − f₀⟩."""
        return float(dot(self.table, self.stumps.histogram(gradient)))

    def state(self) -> Array:
        """Return the table."""
        return self.table.copy()

    def restore(self, state: Array) -> None:
        """Go back to a state."""
        self.table = state.copy()


class HistogramTarget(Target):
    """Δ as its sums over the bins, shape (total bins, n_outputs)."""

    def __init__(self, stumps: StumpSet, table: Array) -> None:
        self.stumps, self.table = stumps, table
        self.norm = 0.0  #: ‖Δ‖ while it is known: from one gradient through its inner projections
        self.n_projections = 0

    def add(self, gradient: Gradient, scale: float = 1.0) -> None:
        """Δ ← Δ + scale ∇."""
        histogram = self.stumps.histogram(gradient)
        self.table += histogram if scale == 1.0 else scale * histogram
        self.norm = abs(scale) * gradient.norm if self.norm == 0.0 else math.nan

    def combine(self, other: HistogramTarget, scale: float = 1.0) -> None:
        """Δ ← Δ + scale Δ'."""
        self.table += other.table if scale == 1.0 else scale * other.table
        self.norm = math.nan

    def strength(self) -> float | None:
        """Return the longest projection on a stump, where all of them are tried."""
        if self.stumps.mapper.categorical.any():  # not all subsets of categories are
            return None
        return HistogramTarget.project(self, np.random.default_rng(0)).norm

    def coordinates(self, dear: bool = False) -> Array | None:
        """Return ΠΔ in Euclidean coordinates, None where there are too many bins."""
        if not dear and len(self.table) ** 3 / 3 > MAX_EDGE_OPERATIONS:
            return None
        span = self.stumps.span
        return None if span is None else span.whiten(self.table)

    def scale(self, factor: float) -> None:
        """Δ ← factor Δ."""
        if factor != 1.0:
            self.table *= factor
            self.norm *= abs(factor)

    def project(self, rng: np.random.Generator) -> Direction:
        """Return the longest projection on a stump."""
        self.n_projections += 1
        leaves, values = np.zeros(256, np.uint8), np.empty((N_LEAVES, self.table.shape[1]))
        j, coefficient, norm = project(self.table, *self.stumps.bins, leaves, values)  # type: ignore[call-arg]
        if j < 0:
            return ZERO
        edge = norm / self.norm if self.norm > 0.0 else math.nan
        term = (coefficient, self.stumps.stump(j, leaves, values))
        return Direction((term,), norm, edge, self._intrinsic_edge(norm))

    def subtract(self, direction: Direction) -> None:
        """Δ ← Δ − direction."""
        # ‖Δ − d‖² = ‖Δ‖² − 2 ⟨Δ, d⟩ + ‖d‖²; for the projection of Δ this is ‖Δ‖² − ‖d‖².
        if not math.isnan(self.norm):
            squared = self.norm * self.norm - 2.0 * self.dot(direction) + direction.norm * direction.norm
            self.norm = math.sqrt(max(squared, 0.0))
        self._subtract(direction)

    def _subtract(self, direction: Direction) -> None:
        self.stumps.subtract(direction, self.table)

    def projections(self, count: int, rng: np.random.Generator, tolerance: float) -> list[Direction]:
        """Project and subtract up to `count` times, in one compiled call where the pair table fits."""
        pairs = self.stumps.pairs
        if not pairs.fits:
            return super().projections(count, rng, tolerance)
        K = self.table.shape[1]
        features, sizes = np.empty(count, np.int64), np.empty((count, 2))
        leaves, values = np.zeros((count, 256), np.uint8), np.empty((count, N_LEAVES, K))
        done, missing = 0, 0
        while missing >= 0:
            floor = max(tolerance, ROUNDING * sizes[0, 1]) if done else tolerance
            done, missing = pursue(  # type: ignore[call-arg]
                self.table,
                *self.stumps.bins,
                pairs.sums,
                pairs.ready,
                self.stumps.sample.unit,
                done,
                floor,
                features,
                leaves,
                values,
                sizes,
            )
            if missing >= 0:
                pairs.count(missing)
        self.n_projections += done
        found = []
        for i in range(done):
            norm = float(sizes[i, 1])
            term = (float(sizes[i, 0]), self.stumps.stump(int(features[i]), leaves[i], values[i]))
            found.append(Direction((term,), norm, norm / self.norm if self.norm > 0.0 else math.nan))
            self.norm = math.sqrt(max(self.norm * self.norm - norm * norm, 0.0))
        return found

    def dot(self, direction: Direction) -> float:
        """⟨Δ, direction⟩."""
        offsets, total = self.stumps.mapper.offsets, 0.0
        for weight, h in merge(direction.terms):
            assert isinstance(h, BinFunction)
            part = self.table[offsets[h.feature] : offsets[h.feature + 1]]
            total += weight * float(np.einsum("bk,bk->", part, h.table))
        return total

    def inner(self, gradient: Gradient) -> tuple[float, float]:
        """⟨ΠΔ, Π∇⟩ and ‖Π∇‖²."""
        span = self.stumps.span
        if span is None:
            raise ValueError(
                "this step needs the span of the stumps, which is only computed up to "
                f"{MAX_SPAN_BINS} bins in all; the data have {len(self.table)}: use a smaller `max_bins`"
            )
        own, other = span.whiten(self.table), span.whiten(self.stumps.histogram(gradient))
        return float(np.sum(own * other)), float(np.sum(other * other))

    def copy(self) -> Self:
        """Return an independent Δ."""
        out = type(self)(self.stumps, self.table.copy())
        out.norm, out.n_projections = self.norm, self.n_projections
        return out

    def state(self) -> Any:
        """Return the table and what is known of its norm."""
        return self.table.copy(), self.norm, self.n_projections

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        table, self.norm, self.n_projections = state
        self.table = table.copy()

    def _intrinsic_edge(self, norm: float) -> float:
        if self.norm > 0.0 or self.n_projections % INTRINSIC_EVERY or not self.stumps.edges_are_cheap:
            return math.nan
        span = self.stumps.span
        if span is None:
            return math.nan
        return norm / float(np.sqrt(np.sum(span.whiten(self.table) ** 2)))


@dataclass(frozen=True)
class StumpLearner:
    """What the stump learners share: they differ in what a leaf may hold."""

    max_bins: int = MAX_BINS
    max_table_mb: float = 512  #: memory for the pair table; past it training is slower, the model the same
    kind: ClassVar[int]

    def __post_init__(self) -> None:
        if not (isinstance(self.max_bins, Integral) and 2 <= self.max_bins <= MAX_BINS):
            raise ValueError(
                f"`max_bins` must be a whole number between 2 and {MAX_BINS}, got {self.max_bins!r}"
            )

    def bind(
        self,
        X: Any,
        space: FunctionSpace,
        categorical: Any = None,
        n_threads: int = 1,
        mapper: BinMapper | None = None,
    ) -> StumpSet:
        """Bin the training inputs, anew or by the `mapper` of a model."""
        sample = bin_sample(X, space, self.max_bins, categorical, n_threads, mapper)
        return self._set(sample, int(self.max_table_mb * 2**20))

    def _set(self, sample: BinnedSample, max_table_bytes: int) -> StumpSet:
        return StumpSet(sample, self.kind, max_table_bytes)
