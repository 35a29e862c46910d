"""Stumps in histogram form: Δ is kept only as its sums over bins.

Stumps are constant on bins, so the search and the residual need nothing else of Δ.  To subtract a stump one
needs the weight that its leaves share with every bin: a few columns of the *pair table* (`PairTable`).  So a
projection costs O(total bins × outputs), whatever the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self
from weakref import ref

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import ZERO, Direction, Move, Term, merge
from convexboost.core.protocols import Position, Target
from convexboost.core.space import Array, FunctionSpace
from convexboost.kernels.stumps import CLASS, Bins, Projections, dot, project, pursue, subtract
from convexboost.learners._bin_function import BinFunction
from convexboost.learners._bins import BinMapper, BinnedSample
from convexboost.learners._span import LIGHT, MAX_TABLE_BYTES, PairTable, Span

#: The span of the stumps is factorised up to this many bins (some seconds) where it is needed …
MAX_SPAN_BINS = 4096
#: … and up to this many operations (some tens of milliseconds) to report the intrinsic edge.
MAX_EDGE_OPERATIONS = 1e8
#: The intrinsic edge of a residual is measured in one round of this many.
INTRINSIC_EVERY = 10

N_LEAVES = 3


class StumpSet:
    """All stumps of one kind on a binned sample."""

    knows_span = True

    def __init__(self, sample: BinnedSample, kind: int, max_table_bytes: int = MAX_TABLE_BYTES) -> None:
        self.sample, self.kind = sample, kind
        #: the histogram of F − start: the moves, how many of them it contains, and the table
        self._drift: tuple[Sequence[Move], int, Array] | None = None
        #: the last gradient and its histogram, which may be asked for twice; the gradient is not kept alive
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
            (1.0, BinFunction(j, np.arange(len(part), dtype=np.uint8), part, self.covers[j]))
            for j, part in enumerate(parts)
        )

    @cached_property
    def covers(self) -> list[Array]:
        """Return the training rows in the bins of each feature, by weight."""
        return np.split(self.sample.mass * self.sample.n_rows, self.mapper.offsets[1:-1])

    @property
    def edges_are_cheap(self) -> bool:
        """Return whether the span costs so little that it may be found only to report an edge."""
        counting = self.sample.space.n_points * self.sample.n_features**2
        return counting + int(self.mapper.offsets[-1]) ** 3 / 3 <= MAX_EDGE_OPERATIONS

    def histogram(self, gradient: Gradient) -> Array:
        """Σ of p_n ∇_n over the rows of each bin; a ridge term comes from the pair table, not from rows."""
        if gradient.l2 == 0.0:
            if self._latest is None or self._latest[0]() is not gradient:
                self._latest = (ref(gradient), self.sample.histogram(gradient))
            return self._latest[1]
        part = self.histogram(gradient.loss_part)
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
        """Return the hypothesis that the kernels found."""
        cover = self.covers[j]
        return BinFunction(int(j), leaves[: len(cover)].copy(), values.copy(), cover)

    @cached_property
    def bins(self) -> Bins:
        """Return what every search over the stumps reads besides the histogram."""
        return Bins(self.sample.mass, self.mapper.offsets, self.mapper.categorical, self.kind)


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
        self.n_gradients = 0

    def add(self, gradient: Gradient, scale: float = 1.0) -> None:
        """Δ ← Δ + scale ∇."""
        histogram = self.stumps.histogram(gradient)
        self.table += histogram if scale == 1.0 else scale * histogram
        self.norm = abs(scale) * gradient.norm if self.norm == 0.0 else math.nan
        self.n_gradients += 1

    def combine(self, other: HistogramTarget, scale: float = 1.0) -> None:
        """Δ ← Δ + scale Δ'."""
        self.table += other.table if scale == 1.0 else scale * other.table
        self.norm = math.nan

    def strength(self) -> float | None:
        """Return the longest projection on a stump, where all of them are tried."""
        if self.stumps.mapper.categorical.any():  # not all subsets of categories are
            return None
        return HistogramTarget.project(self, np.random.default_rng(0)).norm

    def coordinates(self, even_if_slow: bool = False) -> Array | None:
        """Return ΠΔ in Euclidean coordinates, None where there are too many bins."""
        if not even_if_slow and len(self.table) ** 3 / 3 > MAX_EDGE_OPERATIONS:
            return None
        span = self.stumps.span
        return None if span is None else span.whiten(self.table)

    @property
    def knows_length(self) -> bool:
        """Return whether `length` is that inside the span."""
        return self.stumps.span is not None

    def length(self) -> float:
        """Return ‖ΠΔ‖; ‖Δ‖, while it is known, where there are too many bins."""
        span = self.stumps.span
        if span is None:
            return math.inf if math.isnan(self.norm) else self.norm
        return (1.0 + span.rounding) * float(np.sqrt(np.sum(span.whiten(self.table) ** 2)))

    def scale(self, factor: float) -> None:
        """Δ ← factor Δ."""
        if factor != 1.0:
            self.table *= factor
            self.norm *= abs(factor)

    def project(self, rng: np.random.Generator) -> Direction:
        """Return the longest projection on a stump."""
        leaves, values = np.zeros(256, np.uint8), np.empty((N_LEAVES, self.table.shape[1]))
        j, coefficient, norm = project(self.table, self.stumps.bins, leaves, values)
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
        self.stumps.subtract(direction, self.table)

    def projections(self, count: int, rng: np.random.Generator, tolerance: float) -> list[Direction]:
        """Project and subtract up to `count` times, in one compiled call where the pair table fits."""
        pairs = self.stumps.pairs
        if not pairs.fits:
            return super().projections(count, rng, tolerance)
        leaves, values = np.zeros((count, 256), np.uint8), np.empty((count, N_LEAVES, self.table.shape[1]))
        found = Projections(np.empty(count, np.int64), leaves, values, np.empty(count), np.empty(count))
        done, before = 0, self.norm
        enough = self.length() ** 2 - tolerance**2 if tolerance > 0.0 else math.inf
        while done < count:
            last = done
            done, missing = pursue(self.table, self.stumps.bins, pairs.sums, enough, found, done)
            if missing >= 0:
                pairs.count(missing)
                continue
            squares = float(np.sum(found.norm[:done] ** 2))
            self.norm = math.sqrt(max(before**2 - squares, 0.0))
            if tolerance == 0.0 or done == last or (left := self.length()) <= tolerance:
                break
            enough = squares + left**2 - tolerance**2  # a difference of squares is not exact, `left` is
        directions = []
        for i in range(done):
            norm = float(found.norm[i])
            h = self.stumps.stump(int(found.feature[i]), leaves[i], values[i])
            edge = norm / before if before > 0.0 else math.nan
            directions.append(Direction(((float(found.coefficient[i]), h),), norm, edge))
            before = math.sqrt(max(before * before - norm * norm, 0.0))
        return directions

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
        out.norm, out.n_gradients = self.norm, self.n_gradients
        return out

    def state(self) -> Any:
        """Return the table and what is known of its norm."""
        return self.table.copy(), self.norm, self.n_gradients

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        table, self.norm, self.n_gradients = state
        self.table = table.copy()

    def _intrinsic_edge(self, norm: float) -> float:
        if self.norm > 0.0 or self.n_gradients % INTRINSIC_EVERY or not self.stumps.edges_are_cheap:
            return math.nan
        span = self.stumps.span
        if span is None:
            return math.nan
        return norm / float(np.sqrt(np.sum(span.whiten(self.table) ** 2)))
