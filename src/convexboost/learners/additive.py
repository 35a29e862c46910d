"""All stumps at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.explained import Explained
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import ZERO, Direction, Hypothesis, Term
from convexboost.core.nodes import Nodes
from convexboost.core.numbers import is_whole
from convexboost.core.plain import Plain
from convexboost.core.protocols import Target
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.core.tolerances import ROUNDING
from convexboost.kernels.additive import average_projections
from convexboost.kernels.stumps import VECTOR
from convexboost.learners._bin_function import distinct, mean_cover
from convexboost.learners._bins import BinnedSample
from convexboost.learners._one_column import ExplainedFunctions, OneColumn, nodes_of_functions
from convexboost.learners._span import one_blas_thread
from convexboost.learners._stump_learner import StumpLearner
from convexboost.learners._stumps import HistogramTarget, StumpSet

#: A sum of functions with so small a share of their squares is what rounding left of a Δ that is gone.
CANCELLED = 1e-8

Bins = NDArray[np.int64]


@dataclass(frozen=True)
class AdditiveFunction(Hypothesis):
    """A sum of functions of one feature each: their values in all bins, (total bins, n_outputs)."""

    table: Array
    cover: Array  #: training rows in each bin, by weight; all functions of a member share it

    kind = "additive_function"
    __repr__ = brief

    def add_to(self, F: Array, inputs: Any, weight: float) -> None:
        """F += weight * h(inputs)."""
        tables = np.split(weight * self.table, inputs.mapper.offsets[1:-1])
        inputs.add_tables(F, range(len(tables)), tables)

    @classmethod
    def merge(cls, terms: Sequence[Term]) -> Sequence[Term]:
        """Sum the tables: an ensemble of any length is one such function."""
        cover = mean_cover([h.cover for _, h in terms if isinstance(h, AdditiveFunction)])
        return [(1.0, cls(_values(Direction(tuple(terms), math.nan)), cover))]

    @classmethod
    def nodes(cls, terms: Sequence[Term], mapper: Any) -> Nodes:
        """Return a tree for each feature."""
        return nodes_of_functions(cls._functions(terms, mapper), mapper)

    @classmethod
    def explained(cls, terms: Sequence[Term], mapper: Any) -> Explained:
        """Return the function of each feature."""
        return ExplainedFunctions(cls._functions(terms, mapper))

    @classmethod
    def _functions(cls, terms: Sequence[Term], mapper: Any) -> list[OneColumn]:
        ((_, merged),) = cls.merge(terms)
        assert isinstance(merged, AdditiveFunction)
        parts = (np.split(array, mapper.offsets[1:-1]) for array in (merged.table, merged.cover))
        return [OneColumn(j, table, cover) for j, (table, cover) in enumerate(zip(*parts, strict=True))]

    @classmethod
    def to_plain(cls, hypotheses: Sequence[Self]) -> Plain:
        """Stack the tables."""
        covers, number = distinct([h.cover for h in hypotheses])
        tables = np.stack([h.table for h in hypotheses])
        return Plain({}, {"tables": tables, "covers": np.stack(covers), "cover": number})

    @classmethod
    def from_plain(cls, plain: Plain, count: int, mapper: Any, n_outputs: int) -> list[Self]:
        """Return the tables, which have a row for each bin."""
        n_bins = int(mapper.offsets[-1])
        tables = plain.array("tables", float, count, n_bins, n_outputs)
        covers = plain.array("covers", float, None, n_bins)
        plain.need("covers", (covers >= 0.0).all(), "numbers that are not negative")
        number = plain.indices("cover", np.int64, count, below=len(covers))
        shared = list(covers)
        return [cls(table, shared[k]) for table, k in zip(tables, number.tolist(), strict=True)]


def _values(direction: Direction) -> Array:
    """Return the values of a sum of additive functions in all bins."""
    terms = [(weight, h) for weight, h in direction.terms if isinstance(h, AdditiveFunction)]
    assert len(terms) == len(direction.terms) > 0
    out = terms[0][0] * terms[0][1].table
    for weight, h in terms[1:]:
        out += weight * h.table
    return out


class AdditiveSet(StumpSet):
    """All additive functions of a binned sample: f(x) = Σ_j f_j(x_j), constant on bins.

    Such a function is a table over all bins, w; its histogram is C w with the pair table C.
    """

    def __init__(self, sample: BinnedSample, n_steps: int, smooth: bool, max_table_bytes: int) -> None:
        super().__init__(sample, VECTOR, max_table_bytes)
        self.n_steps = n_steps
        self.whole = self.mapper.categorical | (not smooth)

    def zero(self, n_outputs: int) -> AdditiveTarget:
        """Δ = 0."""
        return AdditiveTarget(self, np.zeros((self.mapper.offsets[-1], n_outputs)))

    @cached_property
    def _pair_table(self) -> Array | None:
        """Return C where that is cheaper than two passes over the rows, and fits."""
        n_bins = int(self.mapper.offsets[-1])
        if n_bins**2 > 2 * self.sample.space.n_points * self.sample.n_features or not self.pairs.fits:
            return None
        return self.pairs.whole()

    def histogram_of(self, table: Array) -> Array:
        """Return C w."""
        if self._pair_table is not None:
            with one_blas_thread():
                return self._pair_table @ table
        S = np.zeros((len(self.sample), table.shape[1]))
        parts = np.split(table, self.mapper.offsets[1:-1])
        self.sample.add_tables(S, range(len(parts)), parts)
        return self.sample.histogram(Gradient(S, self.sample.space))

    def subtract(self, direction: Direction, table: Array) -> None:
        """Subtract the histogram of a direction from a table, in place."""
        if direction.terms:
            table -= self.histogram_of(_values(direction))

    def add_values(self, direction: Direction, table: Array) -> None:
        """Add the values of a direction in all bins to a table, in place."""
        if direction.terms:
            table += _values(direction)

    def terms(self, table: Array) -> tuple[Term, ...]:
        """Return the function with these values in all bins, as one hypothesis."""
        return ((1.0, AdditiveFunction(table, self.cover)),)

    @cached_property
    def cover(self) -> Array:
        """Return the training rows in each bin, by weight."""
        return self.sample.mass * self.sample.n_rows

    def average_projections(self, table: Array) -> Array:
        """Return the mean of the projections on all stumps, feature by feature."""
        out = np.empty_like(table)
        average_projections(table, self.sample.mass, self.mapper.offsets, self.whole, out)
        return out

    def function(self, table: Array) -> AdditiveFunction:
        """Return the function with these values; bins without training rows get theirs from the others.

        A category, or "missing", counts as the feature's mean; a bin between others is interpolated.
        """
        mass, begins = self.sample.mass, self.mapper.offsets[:-1]
        sums, weights = np.add.reduceat(mass[:, None] * table, begins), np.add.reduceat(mass, begins)
        empty = np.flatnonzero(mass <= 0.0)
        feature = np.searchsorted(begins, empty, side="right") - 1
        table[empty] = sums[feature] / weights[feature, None]
        between, below, above, share = self._gaps
        table[between] = (1.0 - share) * table[below] + share * table[above]
        return AdditiveFunction(table, self.cover)

    @cached_property
    def _gaps(self) -> tuple[Bins, Bins, Bins, Array]:
        """Return the empty bins of numbers, the nearest others below and above, and how far up each lies."""
        mass, offsets = self.sample.mass, self.mapper.offsets
        parts: list[tuple[Bins, Bins, Bins]] = [(np.zeros(0, int),) * 3]
        for j in np.flatnonzero(~self.mapper.categorical):
            bins = np.arange(offsets[j], offsets[j + 1] - 1)  # the last one is "missing"
            filled, empty = bins[mass[bins] > 0.0], bins[mass[bins] <= 0.0]
            if len(filled) > 0 and len(empty) > 0:
                place, last = np.searchsorted(filled, empty), len(filled) - 1
                parts.append((empty, filled[np.maximum(place - 1, 0)], filled[np.minimum(place, last)]))
        between, below, above = (np.concatenate(column) for column in zip(*parts, strict=True))
        return between, below, above, ((between - below) / np.maximum(above - below, 1))[:, None]


class AdditiveTarget(HistogramTarget):
    """Δ as its sums over the bins; projected on additive functions by conjugate gradients."""

    stumps: AdditiveSet

    def project(self, rng: np.random.Generator) -> Direction:
        """Return the projection on the functions that the first conjugate gradient steps span."""
        values, image = self._conjugate_gradients()
        correlation, squared = float(np.sum(values * self.table)), float(np.sum(values * image))
        if not (correlation > 0.0 and squared > 0.0):
            return ZERO
        factor = correlation / squared  # 1 but for rounding
        norm = correlation / math.sqrt(squared)
        edge = norm / self.norm if self.norm > 0.0 else math.nan
        term = (1.0, self.stumps.function(factor * values))
        return Direction((term,), norm, edge, self._intrinsic_edge(norm))

    def dot(self, direction: Direction) -> float:
        """⟨Δ, direction⟩."""
        return float(np.sum(self.table * _values(direction))) if direction.terms else 0.0

    def strength(self) -> float | None:
        """Return the projection on the whole span, the longest of all, where that is cheap to know."""
        coordinates = self.coordinates()
        return None if coordinates is None else float(np.linalg.norm(coordinates))

    # What stumps do in one compiled call is done one by one here.
    projections = Target.projections

    def _conjugate_gradients(self) -> tuple[Array, Array]:
        """Solve C w = Δ roughly; return w and C w.

        The constant is solved for exactly.  Left in, it would be the direction with the largest eigenvalue:
        steps that suit all others go far beyond it, and what rounding made of a mean of 0 would grow.
        """
        mass = self.stumps.sample.mass[:, None]
        n_features = self.stumps.sample.n_features
        mean = self.table.sum(axis=0) / n_features  # of Δ: the bins of each feature add up to it
        w, image = np.broadcast_to(mean / n_features, self.table.shape).copy(), mass * mean
        rest = self.table - image
        p = self.stumps.average_projections(rest)
        length = first = float(np.sum(rest * p))
        for step in range(self.stumps.n_steps):
            if step > 0:
                rest = self.table - image
                z = self.stumps.average_projections(rest)
                before, length = length, float(np.sum(rest * z))
                p = z + (length / before) * p
            if not length > ROUNDING * first:
                break
            Cp = self.stumps.histogram_of(p)
            squared = float(np.sum(p * Cp))
            if not squared > CANCELLED * float(np.sum(mass * p * p)):
                break
            size = length / squared
            w += size * p
            image += size * Cp
        return w, image


@dataclass(frozen=True)
class Additive(StumpLearner):
    """A sum of stumps, many on every feature: one function of each feature per round.

    Each round must read all rows, so it pays to use all stumps instead of the best one.
    The mean of the projections of Δ on all stumps of a feature, summed over the features, is the first step;
    `n_steps` conjugate gradient steps from there approach the projection on all additive functions.  The
    model is what stumps would give, a sum of functions of one feature each, in a hundredth of the rounds.

    Parameters
    ----------
    max_bins : int, default=255
        Number of bins of a column at most, without the one for missing values; 255 is the most.
    max_table_mb : float, default=512
        Memory in MiB for the table of bin pairs.  A larger table is not kept: training is then slower, and
        the model is the same.
    n_steps : int, default=1
        Conjugate gradient steps.  With more of them a round does more, and the functions get rougher.
    smooth : bool, default=True
        Whether to begin with the mean of all stumps.  False begins with the mean of each bin, which fits the
        training set in the fewest rounds, and other data worse.  Categorical features always begin so.

    """

    n_steps: int = 1
    smooth: bool = True
    name: ClassVar[str] = "additive"
    kind: ClassVar[int] = VECTOR
    hypothesis_types = (AdditiveFunction,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.n_steps, 1):
            raise ValueError(f"`n_steps` must be a positive whole number, got {self.n_steps!r}")
        if not isinstance(self.smooth, bool | np.bool_):
            raise ValueError(f"`smooth` must be True or False, got {self.smooth!r}")

    def _set(self, sample: BinnedSample, max_table_bytes: int) -> AdditiveSet:
        return AdditiveSet(sample, self.n_steps, self.smooth, max_table_bytes)
