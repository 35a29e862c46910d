"""Stumps in histogram form: Δ is kept only as its sums over bins.

Stumps are constant on bins, so everything the search and the residual need of Δ are these sums.  To
subtract a stump one needs the weight its leaves share with every other bin: a few columns of the *pair
table* C[bin a, bin b] = weight of the rows in both.  Its blocks are counted when first needed and kept while
they fit `MAX_TABLE_BYTES`; beyond that each stump's columns are counted alone.  Same sums, same model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular
from threadpoolctl import ThreadpoolController

from convexboost.core import ZERO, Array, Direction, FunctionSpace, Gradient, Hypothesis, Target, Term, merge
from convexboost.kernels import parallel
from convexboost.kernels.histogram import add_lookup
from convexboost.kernels.stumps import CLASS, LEFT, MISSING, RIGHT, VECTOR, best_split
from convexboost.learners._bins import MAX_BINS, BinMapper, BinnedSample, bin_sample

MAX_TABLE_BYTES = 512 * 2**20
#: Up to this many bins the span of the stumps is factorised, for the intrinsic edge.
MAX_SPAN_BINS = 2048
#: The intrinsic edge of a residual is measured in one round of this many.
INTRINSIC_EVERY = 10

N_LEAVES = 3


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@dataclass(frozen=True)
class BinFunction(Hypothesis):
    """A function of one binned feature: leaf values, and the leaf of each bin."""

    feature: int
    leaf_of_bin: NDArray[np.uint8]
    values: Array  #: (n_leaves, n_outputs)

    @property
    def table(self) -> Array:
        """Return the value in each bin, (n_bins + 1, n_outputs)."""
        return self.values[self.leaf_of_bin]

    def add_to(self, F: Array, inputs: Any, weight: float) -> None:
        """F += weight * h(inputs)."""
        codes, table = inputs.column(self.feature), weight * self.table

        def task(start: int, stop: int) -> None:
            add_lookup(F, codes, table, start, stop)

        parallel.run(task, len(F), F.size, inputs.n_threads)

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


@dataclass(frozen=True)
class Span:
    """span(H) of binned stumps: all additive functions of the bins (theory: Section 4.5).

    A pivoted Cholesky factor of the pair table picks bins whose indicators are a basis.
    """

    basis: NDArray[np.int64]
    factor: Array

    def whiten(self, table: Array) -> Array:
        """Map Πv to Euclidean coordinates: ⟨Πv, Πw⟩ = ⟨whiten(v), whiten(w)⟩."""
        # One BLAS thread: the bits must not depend on how many there are.
        with _blas().limit(limits=1):
            out: Array = solve_triangular(self.factor, table[self.basis], lower=True, check_finite=False)
        return out

    @classmethod
    def of(cls, pairs: Array) -> Span:
        """Factorise the whole pair table."""
        with _blas().limit(limits=1):
            factor, pivots, rank, _ = lapack.dpstrf(pairs, lower=1, tol=1e-12 * float(pairs.diagonal().max()))
        return cls(pivots[:rank].astype(np.int64) - 1, np.tril(factor[:rank, :rank]))


class StumpSet:
    """All stumps of one kind on a binned sample."""

    def __init__(self, sample: BinnedSample, kind: int) -> None:
        self.sample, self.kind = sample, kind
        self._blocks: dict[int, NDArray[np.int64]] = {}  # in fixed point: sums of columns are exact
        self._table_bytes = 0

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

    def project(self, table: Array) -> tuple[float, BinFunction, float] | None:
        """Return (coefficient, hypothesis, projected length) of the best stump for a histogram."""
        leaves = np.zeros(256, np.uint8)
        offsets = self.mapper.offsets
        j, score = best_split(table, self.sample.mass, offsets, self.mapper.categorical, self.kind, leaves)
        if j < 0:
            return None
        bins = slice(offsets[j], offsets[j + 1])
        leaf_of_bin = leaves[: offsets[j + 1] - offsets[j]].copy()
        indicator = (leaf_of_bin == np.arange(N_LEAVES)[:, None]).astype(float)
        # Empty leaves (no value missing in training, or nothing on one side) copy the heaviest one.
        sums = np.einsum("lb,bk->lk", indicator, table[bins])
        mass = np.einsum("lb,b->l", indicator, self.sample.mass[bins])
        coefficient, values = _leaf_values(self.kind, sums, mass)
        empty = mass <= 0.0
        values[empty] = values[np.argmax(mass)]
        return coefficient, BinFunction(int(j), leaf_of_bin, values), math.sqrt(score)

    def leaf_mass(self, h: BinFunction) -> Array:
        """Weight that every bin shares with every leaf of h: (total bins, n_leaves)."""
        n_leaves = len(h.values)
        block = self._block(h.feature)
        if block is None:
            return self.sample.shared_mass(h.leaf_of_bin[self.sample.column(h.feature)], n_leaves)
        out = np.empty((len(block), n_leaves), np.int64)
        for leaf in range(n_leaves):
            out[:, leaf] = block[:, h.leaf_of_bin == leaf].sum(axis=1)
        return out / self.sample.unit

    @cached_property
    def span(self) -> Span | None:
        """Return span(H), or None where there are too many bins to factorise."""
        offsets = self.mapper.offsets
        if offsets[-1] > MAX_SPAN_BINS:
            return None
        blocks = [self._block(j) for j in range(self.sample.n_features)]
        if any(block is None for block in blocks):
            return None
        return Span.of(np.hstack(blocks) / self.sample.unit)

    def _block(self, j: int) -> NDArray[np.int64] | None:
        """Columns of the pair table for the bins of feature j."""
        if j not in self._blocks:
            width = self.mapper.columns[j].n_bins + 1
            n_bytes = 8 * width * int(self.mapper.offsets[-1])
            if self._table_bytes + n_bytes > MAX_TABLE_BYTES:
                return None
            self._table_bytes += n_bytes
            self._blocks[j] = self.sample.shared_counts(self.sample.column(j), width)
        return self._blocks[j]


def _leaf_values(kind: int, sums: Array, mass: Array) -> tuple[float, Array]:
    """Return (coefficient, leaf values) of the projection, as derived in kernels/stumps.py."""
    K = sums.shape[1]
    if kind == VECTOR:
        return 1.0, sums / np.where(mass > 0.0, mass, 1.0)[:, None]
    if kind == CLASS:
        total = sums.sum()
        high = (K * sums.max(axis=1).sum() - total) / (K - 1)
        low = (K * sums.min(axis=1).sum() - total) / (K - 1)
        inner, classes = (high, sums.argmax(axis=1)) if high >= -low else (low, sums.argmin(axis=1))
        values = np.full(sums.shape, -1.0 / (K - 1))
        values[np.arange(len(sums)), classes] = 1.0
        return float(inner * (K - 1) / K), values
    signs = np.array([[1, s, u] for s in (1, -1) for u in (1, -1)], float)
    vectors = np.einsum("sl,lk->sk", signs, sums)
    best = int(np.argmax(np.einsum("sk,sk->s", vectors, vectors)))
    if K == 1:  # a ±1 classifier and a coefficient, as in Theorem 1
        return abs(float(vectors[best, 0])), signs[best][:, None] * np.sign(vectors[best])
    return 1.0, np.outer(signs[best], vectors[best])


class HistogramTarget(Target):
    """Δ as its sums over the bins, shape (total bins, n_outputs)."""

    def __init__(self, stumps: StumpSet, table: Array) -> None:
        self.stumps, self.table = stumps, table
        self.norm = 0.0  #: ‖Δ‖ while it is known: from one gradient through its inner projections
        self.n_projections = 0

    def add(self, gradient: Gradient, scale: float = 1.0) -> None:
        """Δ ← Δ + scale ∇."""
        self.table += scale * self.stumps.sample.histogram(gradient)
        self.norm = abs(scale) * gradient.norm if self.norm == 0.0 else math.nan

    def scale(self, factor: float) -> None:
        """Δ ← factor Δ."""
        if factor != 1.0:
            self.table *= factor
            self.norm *= abs(factor)

    def project(self, rng: np.random.Generator) -> Direction:
        """Return the longest projection on a stump."""
        self.n_projections += 1
        found = self.stumps.project(self.table)
        if found is None:
            return ZERO
        coefficient, h, norm = found
        edge = norm / self.norm if self.norm > 0.0 else math.nan
        return Direction(((coefficient, h),), norm, edge, self._intrinsic_edge(norm))

    def subtract(self, direction: Direction) -> None:
        """Δ ← Δ − direction."""
        # ‖Δ − d‖² = ‖Δ‖² − 2 ⟨Δ, d⟩ + ‖d‖²; for the projection of Δ this is ‖Δ‖² − ‖d‖².
        squared = self.norm * self.norm - 2.0 * self.dot(direction) + direction.norm * direction.norm
        for weight, h in direction.terms:
            assert isinstance(h, BinFunction)
            mass = self.stumps.leaf_mass(h)
            for leaf in (LEFT, RIGHT, MISSING):
                self.table -= mass[:, leaf, None] * (weight * h.values[leaf])
        self.norm = math.sqrt(max(squared, 0.0))

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
        own, other = span.whiten(self.table), span.whiten(self.stumps.sample.histogram(gradient))
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
        if self.norm > 0.0 or self.n_projections % INTRINSIC_EVERY or (span := self.stumps.span) is None:
            return math.nan
        return norm / float(np.sqrt(np.sum(span.whiten(self.table) ** 2)))


@dataclass(frozen=True)
class StumpLearner:
    """What the stump learners share: they differ in what a leaf may hold."""

    max_bins: int = MAX_BINS
    kind: ClassVar[int]

    def __post_init__(self) -> None:
        if not (isinstance(self.max_bins, Integral) and 2 <= self.max_bins <= MAX_BINS):
            raise ValueError(f"`max_bins` must be a whole number between 2 and {MAX_BINS}, got {self.max_bins!r}")

    def bind(self, X: Any, space: FunctionSpace, categorical: Any = None, n_threads: int = 1) -> StumpSet:
        """Bin the training inputs."""
        return StumpSet(bin_sample(X, space, self.max_bins, categorical, n_threads), self.kind)
