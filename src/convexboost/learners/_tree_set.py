"""All trees within the limits of a learner, on the training rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import ZERO, Direction
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import ROUNDING
from convexboost.kernels import parallel
from convexboost.kernels.histogram import leaf_tables
from convexboost.kernels.trees import (
    CHILD,
    FEATURE,
    LARGEST,
    ROWS,
    draw_rows,
    fingerprint,
    leaf_of_rows,
    leaf_sums,
    n_columns,
    quantise,
    renew,
)
from convexboost.learners._dense import DenseTarget, RowSet
from convexboost.learners._growth import Buffers, Growth, WholeWeights, power_above
from convexboost.learners._monotone import means, nearest_monotone
from convexboost.learners._tree_function import RowCodes, RowMapper, TreeFunction

if TYPE_CHECKING:
    from convexboost.learners.tree import Tree

#: Bytes that the histograms of a tree may take.
MAX_HISTOGRAMS = 2.0**33
#: The sums in the leaves are whole numbers of 62 bits.
EXACT = 2.0**61
#: Leaves of a tree unless something else is asked for, and where random cuts tell classes apart.
LEAVES, CLASS_LEAVES = 31, 64


class TreeSet(RowSet):
    """All trees within the limits of a learner, on binned training rows."""

    def __init__(
        self,
        learner: Tree,
        mapper: RowMapper,
        inputs: RowCodes,
        space: FunctionSpace,
        groups: Any = None,
        names: Any = None,
    ) -> None:
        self.learner, self.mapper, self.inputs, self.space = learner, mapper, inputs, space
        self.groups = groups  #: the number of each row's group, where rows are only drawn by whole groups
        self.offsets = mapper.bins.offsets
        self.n_bins = np.diff(self.offsets)
        self.categorical = np.asarray(mapper.bins.categorical, bool)
        #: weight 2 is the row twice; but weights that add up to 1 must not make one row of all
        self.n_rows = max(space.total, float(space.n_samples))
        self.monotone = learner.signs(self.categorical, names)
        self.weights = WholeWeights.of(space)
        self.nowhere = np.zeros(space.n_samples, np.int32)  #: every row in leaf 0
        self.room = Buffers()

    def zero(self, n_outputs: int) -> TreeTarget:
        """Δ = 0; refuses what would not fit into the memory before any work is done."""
        n_columns_, leaves = len(self.categorical), self.max_leaves
        size = 4.0 * leaves * n_columns_ * int(self.n_bins.max()) * n_columns(n_outputs)
        if size > MAX_HISTOGRAMS:
            raise ValueError(
                f"the histograms of trees with `max_leaves`={leaves}, {n_columns_} columns, "
                f"`max_bins`={self.learner.max_bins} and {n_outputs} outputs take {size / 2**30:.0f} GiB (at "
                f"most {MAX_HISTOGRAMS / 2**30:.0f}): lower one of them, or use learner='stump'"
            )
        return TreeTarget(self, np.zeros((self.space.n_samples, n_outputs)))

    def share_out(self, task: Callable[[int, int], object], size: int, operations: float) -> None:
        """Call `task` on chunks of range(size), on threads where it pays."""
        parallel.run(task, size, operations, self.inputs.n_threads)

    def grow(self, D: Array, norm: float, rng: np.random.Generator) -> tuple[TreeFunction, Array]:
        """Grow a tree on the rows of D, whose length is `norm`; return also the sums in its leaves.

        A split must gain more than rounding.
        """
        learner = self.learner
        n = len(D)
        random, max_leaves = learner.splits == "random", self.max_leaves
        seed = int(rng.integers(2**63)) if random else 0
        features = np.arange(len(self.categorical))
        if learner.colsample_bytree < 1.0:
            count = max(1, round(learner.colsample_bytree * len(features)))
            features = np.sort(rng.choice(len(features), count, replace=False))
        order = self._draw_rows(D, norm, rng)
        share = 1.0 if len(order) == n else float(self.space.weight[order].sum())
        V, unit = self._whole_numbers(D, norm)
        of_all = self.weights.unit * self.n_rows  #: what one row in n_rows weighs
        rules = np.array(
            [
                # A little less, so that rounding does not decide; never 0: a leaf must have rows.
                max((1.0 - self.weights.rounding) * share * learner.min_samples_leaf / of_all, 0.5),
                share * learner.reg_lambda / of_all,
                random,
                self.weights.rounding_of_means(norm / unit),
            ],
            float,
        )
        depth = math.inf if learner.max_depth is None else learner.max_depth
        gain = max(learner.min_split_gain / unit / unit, ROUNDING * (norm / unit) ** 2) * self.weights.unit
        n_bins, kinds, signs = self.n_bins, self.categorical, self.monotone
        growth = Growth(self.inputs, features, n_bins, kinds, signs, V, order, max_leaves, self.room)
        nodes, masks = growth.run(rules, min(depth, n), gain, seed)
        return self._finish(D, norm, order, nodes, masks)

    @property
    def max_leaves(self) -> int:
        """Return how many leaves a tree may have."""
        return min(self.learner.max_leaves or LEAVES, self.space.n_samples)

    def _whole_numbers(self, D: Array, norm: float) -> tuple[NDArray[np.int32], float]:
        """Return weight and weight · D in whole numbers, and the unit of the latter.

        By Cauchy-Schwarz no column of weight · |D| adds up to more than `norm`.
        """
        V = self.room.take("V", (len(D), n_columns(D.shape[1])))
        unit, weights = power_above(norm) / LARGEST, self.weights

        def task(start: int, stop: int) -> None:
            quantise(D, weights.whole, weights.exact, weights.unit_of_rows / unit, start, stop, V)

        self.share_out(task, len(D), 2.0 * D.size)
        return V, unit

    def _draw_rows(self, D: Array, norm: float, rng: np.random.Generator) -> NDArray[np.int32]:
        """Return the rows that a tree is grown on, in their order; whole groups where there are groups.

        Else what decides is the content of a row (and D, for the targets): copies are drawn together, and the
        order of the rows does not matter.
        """
        n, share = self.space.n_samples, self.learner.subsample
        if share == 1.0:
            return np.arange(n, dtype=np.int32)
        if self.groups is not None:
            drawn = (rng.random(int(self.groups.max()) + 1) < share)[self.groups]
        else:
            drawn = np.empty(n, np.bool_)
            draw_rows(self.fingerprints, D, 1024.0 / norm, int(rng.integers(2**63)), share, drawn)
        return np.flatnonzero(drawn if drawn.any() else ~drawn).astype(np.int32)

    @cached_property
    def fingerprints(self) -> NDArray[np.uint64]:
        """Return a number for each row that depends on its bins alone."""
        out = np.empty(len(self.inputs), np.uint64)
        fingerprint(self.inputs.codes, out)
        return out

    def _finish(
        self, D: Array, norm: float, order: Any, nodes: Any, masks: Any
    ) -> tuple[TreeFunction, Array]:
        is_leaf = nodes[:, FEATURE] < 0
        leaf_of_node = (np.cumsum(is_leaf) - 1).astype(np.int32)
        feature, child = nodes[:, FEATURE].astype(np.int32), nodes[:, CHILD].astype(np.int32)
        values = np.zeros((int(is_leaf.sum()), D.shape[1]))
        monotone = self.monotone if self.monotone.any() else None
        tree = TreeFunction(feature, child, masks.copy(), leaf_of_node, values, monotone)
        if len(order) == len(D):
            leaves = np.empty(len(D), np.int32)
            leaf_of_rows(order, nodes, leaf_of_node, len(nodes), leaves)
            self.inputs.remember(tree, leaves)
        sums = self._leaf_sums(self.inputs.leaves(tree), D, norm, len(values))
        mass = sums[:, 0] + self.learner.reg_lambda / self.n_rows
        np.divide(sums[:, 1:], mass[:, None], out=values, where=sums[:, :1] > 0.0)
        values[:] = nearest_monotone(tree, values, means(values.copy(), mass))
        return tree, sums

    def _leaf_sums(self, leaf: Any, D: Array, norm: float, n_leaves: int) -> Array:
        """Return weight and weight · D in each leaf: sums of whole numbers, the same for any threads."""
        found: list[NDArray[np.int64]] = []
        largest = power_above(norm)

        def task(start: int, stop: int) -> None:
            out = leaf_tables(n_leaves, D.shape[1], np.int64)
            leaf_sums(leaf, D, self.space.weight, EXACT, EXACT / largest, start, stop, out)
            found.append(out.sum(axis=0))

        self.share_out(task, len(D), 2.0 * D.size)
        sums = np.sum(found, axis=0) / EXACT
        sums[:, 1:] *= largest
        return sums


class TreeTarget(DenseTarget):
    """Δ row by row; a tree's inner products come from the sums in its leaves.

    What is subtracted, and a factor, wait for the next sum: all of it takes one pass over the rows.
    """

    def __init__(self, hypotheses: TreeSet, values: Array) -> None:
        self.hypotheses, self.values = hypotheses, values

    @property
    def values(self) -> Array:
        """Return Δ."""
        if self._factor != 1.0 or self._less is not None:
            self._renew(self._values, 0.0)
        return self._values

    @values.setter
    def values(self, values: Array) -> None:
        self._values = np.ascontiguousarray(values)
        self._factor = 1.0
        self._less: tuple[Any, Array] | None = None  #: to be subtracted: leaves and values
        self._square: float | None = None  #: ‖Δ‖², if known

    def _renew(self, G: Array, scale: float) -> None:
        """Δ ← factor (Δ − what waits) + scale G, and its length."""
        D, weight, factor = self._values, self.hypotheses.space.weight, self._factor
        leaf, table = self._less or (self.hypotheses.nowhere, np.zeros((1, D.shape[1])))
        squares = np.zeros(-(-len(D) // ROWS))

        def task(first: int, last: int) -> None:
            renew(D, factor, leaf, table, G, scale, weight, first, last, squares)

        self.hypotheses.share_out(task, len(squares), 2.0 * D.size)
        self._factor, self._less, self._square = 1.0, None, math.fsum(squares)

    def add(self, gradient: Gradient, scale: float = 1.0) -> None:
        """Δ ← Δ + scale ∇."""
        self._renew(np.ascontiguousarray(gradient.values), scale)

    def scale(self, factor: float) -> None:
        """Δ ← factor Δ."""
        self._factor *= factor
        self._square = None

    def project(self, rng: np.random.Generator) -> Direction:
        """Grow a tree on Δ and project on its line."""
        D = self.values
        if self._square is None:
            self._renew(D, 0.0)
        norm = math.sqrt(self._square)  # type: ignore[arg-type]
        if norm == 0.0:
            return ZERO
        tree, sums = self.hypotheses.grow(D, norm, rng)
        squared = float(np.einsum("l,lk,lk->", sums[:, 0], tree.values, tree.values))
        inner = float(np.einsum("lk,lk->", sums[:, 1:], tree.values))
        # The coefficient is positive, so that what is monotone stays so; what is all rounding is nothing.
        if squared <= 0.0 or inner <= ROUNDING * norm * math.sqrt(squared):
            return ZERO
        length = inner / math.sqrt(squared)
        return Direction(((inner / squared, tree),), length, length / norm)

    def subtract(self, direction: Direction) -> None:
        """Δ ← Δ − direction."""
        found = direction.lookup(self.hypotheses.inputs)
        if found is None:
            (direction * -1.0).add_to(self.values, self.hypotheses.inputs)
        else:
            self.values = self.values  # nothing else may wait
            self._less = found
        self._square = None
