"""All trees within the limits of a learner, on the training rows.

The path from Δ to a tree: `TreeTarget.project` calls `TreeSet.grow`, which draws columns and rows, writes Δ
in whole numbers and translates the learner's limits to them (`Rules`).  `Growth.run` finds the nodes.  Then
`TreeSet._finish` gives each leaf its value, the mean of Δ over all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import ZERO, Direction
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.sums import total
from convexboost.core.tolerances import ROUNDING
from convexboost.kernels import parallel
from convexboost.kernels.hashing import Fingerprints, draw_rows, fingerprints_of_codes
from convexboost.kernels.leaves import leaf_sums
from convexboost.kernels.target import Curvature, Update, quantise, update_target
from convexboost.kernels.trees.data import (
    LARGEST,
    Features,
    Nodes,
    Room,
    Rows,
    Rules,
    cells,
    n_columns,
    n_slots,
)
from convexboost.kernels.trees.growth import read_tree
from convexboost.learners._batched_growth import AHEAD, BatchedGrowth
from convexboost.learners._dense import DenseTarget, RowSet
from convexboost.learners._growth import Buffers, Growth, WholeWeights, power_above
from convexboost.learners._monotone import means, nearest_monotone
from convexboost.learners._tree_function import RowCodes, RowMapper, TreeFunction

if TYPE_CHECKING:
    from convexboost.learners.tree import Tree

#: The most bytes that the histograms of a tree may take.
MAX_HISTOGRAMS = 2.0**33
#: Rows are drawn by their targets, rounded to multiples of ‖Δ‖ / TARGET_UNITS.
TARGET_UNITS = 1024.0
#: Nodes of at most this many rows have no histograms: where all cuts are tried, and where one is drawn.
FEW, FEW_IF_RANDOM = 32, 256
#: Share of trees with random cuts among mixed ones.
RANDOM_SHARE = 0.75


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
        usable: NDArray[np.int64] | None = None,
    ) -> None:
        self.learner, self.mapper, self.inputs, self.space = learner, mapper, inputs, space
        #: the columns that trees may split
        self.usable = np.arange(mapper.n_columns) if usable is None else usable
        self.groups = groups  #: the number of each row's group, where rows are only drawn by whole groups
        self.n_bins, self.categorical = mapper.n_bins, mapper.categorical
        self.n_rows = space.n_rows
        self.monotone = learner.signs(np.asarray(mapper.bins.categorical, bool), names)
        self._has_monotone = bool(self.monotone.any())
        self._has_categories = bool(self.categorical[self.usable].any())
        self.weights = WholeWeights.of(space)
        self.buffers = Buffers()
        self._last_room: tuple[tuple[int, int, int], Room] | None = None

    def zero(self, n_outputs: int) -> TreeTarget:
        """Δ = 0; raises if the histograms would not fit into the memory, and warns of merged levels."""
        n_columns_, leaves = len(self.usable), self.max_leaves
        slots = self._n_slots(self.space.n_points)
        size = 4.0 * slots * n_columns_ * int(self.n_bins[self.usable].max()) * n_columns(n_outputs)
        if size > MAX_HISTOGRAMS:
            raise ValueError(
                f"the histograms of trees with `max_leaves`={leaves}, {n_columns_} columns, "
                f"`max_bins`={self.learner.max_bins} and {n_outputs} outputs take {size / 2**30:.0f} GiB (at "
                f"most {MAX_HISTOGRAMS / 2**30:.0f}): lower one of them, or use learner='stump'"
            )
        bins = self.mapper.bins
        told_apart = self.mapper.sources[len(bins.columns) :]
        merged = np.setdiff1d(self.usable[self.usable < len(bins.columns)], told_apart)
        bins.warn_of_merged_levels(merged.tolist())
        return TreeTarget(self, np.zeros((self.space.n_samples, n_outputs)))

    def share_out(self, task: Callable[[int, int], object], size: int, operations: float) -> None:
        """Call `task` on chunks of range(size), on threads where it pays."""
        parallel.run(task, size, operations, self.inputs.n_threads)

    def grow(
        self, D: Array, norm: float, rng: np.random.Generator, curvature: Array | None = None
    ) -> tuple[TreeFunction, Array]:
        """Grow a tree on the rows of D, whose length is `norm`; return also the sums in its leaves.

        With a `curvature` a row weighs weight times curvature where splits are chosen, and nowhere else.
        """
        seed = self._draw_seed(rng)
        features = self._draw_features(rng)
        order = self._draw_rows(D, norm, rng)
        unit = power_above(norm) / LARGEST
        times = Curvature(np.empty(0))
        if curvature is not None and (mean := self.space.mean(curvature)) > 0.0:
            times = self.weights.curved(curvature, mean)
        values = self._whole_numbers(D, unit, times)
        rules = self._rules(norm / unit, unit, times, order, seed)
        slots = self._n_slots(len(order))
        room = self._room(slots, len(features.numbers) << int(features.shift), D.shape[1])
        rows = Rows(cells(values), order, self.buffers.take("spare", (len(D),)))
        growth = BatchedGrowth if self.space.communicator.size > 1 else Growth
        nodes = growth(features, rows, rules, room, self.inputs.n_threads, self.space.communicator).run()
        gain = nodes.gains * (unit * unit * times.usual / self.weights.unit)
        return self._finish(D, norm, rows.order, nodes, gain)

    @property
    def max_leaves(self) -> int:
        """Return how many leaves a tree may have."""
        return min(self.learner.n_leaves, self.space.n_points)

    def _room(self, n_slots: int, n_bins: int, n_outputs: int) -> Room:
        """Return where the splits of a tree are searched: the same place as for the last one, if it fits."""
        has_tables = self.learner.splits != "random" or self._has_categories
        key = n_slots, n_bins, n_outputs
        if self._last_room is None or self._last_room[0] != key:
            self._last_room = None  # its memory is free before there is a new one
            draws = self.learner.splits in ("random", "mixed")
            self._last_room = key, Room.of(*key, FEW_IF_RANDOM if draws else FEW, has_tables)
        return self._last_room[1]

    def _n_slots(self, n_rows: int) -> int:
        """Return how many histograms a tree on these rows needs, whatever its cuts."""
        if self.space.communicator.size > 1:  # every node has one
            return AHEAD * self.max_leaves + 1
        return n_slots(n_rows, self.max_leaves, FEW_IF_RANDOM if self.learner.splits == "random" else FEW)

    def _draw_seed(self, rng: np.random.Generator) -> int | None:
        """Return the seed of a tree's cuts, −1 for the best ones; None where all trees have those."""
        splits = self.learner.splits
        if splits == "best":
            return None
        is_random = splits == "random" or (splits == "mixed" and rng.random() < RANDOM_SHARE)
        # This is rng.integers(2**63), which takes several times as long.
        return int(rng.bit_generator.random_raw()) >> 1 if is_random else -1

    def _rules(
        self, norm: float, unit: float, times: Curvature, order: NDArray[np.int32], seed: int | None
    ) -> Rules:
        """Return the limits of the learner for a tree on these rows, in the units of `_whole_numbers`.

        `norm` is ‖Δ‖ in these units.
        """
        learner, weights = self.learner, self.weights
        share = 1.0
        if learner.subsample < 1.0:
            share = total(self.space.weight[order], self.space.communicator)
        row, max_leaves = share * times.usual / (weights.unit * self.n_rows), self.max_leaves
        min_gain = max(float(learner.min_split_gain) / unit / unit, ROUNDING * norm**2)  # more than rounding
        return Rules(
            max_leaves=max_leaves,
            max_depth=max_leaves if learner.max_depth is None else min(int(learner.max_depth), max_leaves),
            # A little less, so that rounding does not decide; never 0: a leaf must have rows.
            min_weight=max((1.0 - weights.rounding) * float(learner.min_samples_leaf) * row, 0.5),
            min_gain=min_gain * weights.unit / times.usual,
            l2=float(learner.reg_lambda) * row,
            category_l2=float(learner.cat_smooth) * row,
            tie=weights.rounding_of_means(norm) / times.least,
            seed=seed,
            few=FEW_IF_RANDOM if seed is not None and seed >= 0 else FEW,
        )

    def _whole_numbers(self, D: Array, unit: float, times: Curvature) -> NDArray[np.int32]:
        """Return weight, times curvature, and weight · D in whole numbers, the latter in units.

        By Cauchy-Schwarz no column of weight · |D| adds up to more than ‖D‖.
        """
        out = self.buffers.take("values", (len(D), n_columns(D.shape[1])))
        whole, exact, scale = self.weights.whole, self.weights.exact, self.weights.unit_of_rows / unit

        def task(start: int, stop: int) -> None:
            rows = slice(start, stop)
            here = times._replace(values=times.values[rows])
            quantise(D[rows], whole[rows], exact[rows], scale, here, out[rows])

        self.share_out(task, len(D), 2.0 * D.size)
        return out

    def _draw_features(self, rng: np.random.Generator) -> Features:
        """Return the columns that a tree may split."""
        n_columns_, share = len(self.usable), self.learner.colsample_bytree
        if share == 1.0:
            return self._all_features
        drawn = np.sort(rng.choice(n_columns_, max(1, round(share * n_columns_)), replace=False))
        return self._features(self.usable[drawn])

    @cached_property
    def _all_features(self) -> Features:
        return self._features(self.usable)

    def _features(self, numbers: NDArray[np.int64]) -> Features:
        """Return the columns with these numbers."""
        codes = self.inputs.codes
        if len(numbers) < codes.shape[1]:
            codes = np.ascontiguousarray(codes[:, numbers])
        n_bins = self.n_bins[numbers]
        signs = np.append(self.monotone, np.zeros(len(self.mapper.statistics), np.int64))[numbers]
        shift = np.uint64(int(n_bins.max() - 1).bit_length())
        categorical = self.categorical[numbers] if self._has_categories else None
        return Features(codes, self.inputs.columns, numbers, n_bins, categorical, signs, shift)

    def _draw_rows(self, D: Array, norm: float, rng: np.random.Generator) -> NDArray[np.int32]:
        """Return the rows that a tree is grown on, in their order; whole groups where there are groups.

        Else the content of a row and its target decide: copies are drawn together, and the order of the rows
        does not matter.
        """
        n, share = self.space.n_samples, self.learner.subsample
        if share == 1.0:
            return np.arange(n, dtype=np.int32)
        if self.groups is not None:
            n_groups = int(self.space.communicator.largest(self.groups.max(initial=-1))) + 1
            drawn = (rng.random(n_groups) < share)[self.groups]
        else:
            drawn = np.empty(n, np.bool_)
            seed = int(rng.integers(2**63))
            draw_rows(self.fingerprints, D, TARGET_UNITS / norm, seed, share, drawn)
        has_some = self.space.communicator.any(drawn.any())
        return np.flatnonzero(drawn if has_some else ~drawn).astype(np.int32)

    @cached_property
    def fingerprints(self) -> Fingerprints:
        """Return a number for each row that depends on its bins only."""
        out = np.empty(len(self.inputs), np.uint64)
        fingerprints_of_codes(self.inputs.codes, out)
        return out

    def _finish(
        self, D: Array, norm: float, order: NDArray[np.int32], nodes: Nodes, gain: Array
    ) -> tuple[TreeFunction, Array]:
        """Return the tree with the best leaf values for all rows, and the sums in its leaves."""
        feature, child, leaf_of_node = np.empty((3, len(nodes.gains)), np.int32)
        leaves = np.empty(len(D), np.int32)
        n_leaves = read_tree(nodes.numbers, order, feature, child, leaf_of_node, leaves)
        values, cover = np.empty((n_leaves, D.shape[1])), np.empty(n_leaves)
        monotone = self.monotone if self._has_monotone else None
        tree = TreeFunction(feature, child, nodes.masks.copy(), leaf_of_node, values, gain, cover, monotone)
        if len(order) == len(D):
            self.inputs.remember(tree, leaves)
        sums = leaf_sums(D, self.space, self.inputs.leaves(tree), n_leaves, norm, self.inputs.n_threads)
        np.multiply(sums[:, 0], self.n_rows, out=cover)
        mass = sums[:, 0] + self.learner.reg_lambda / self.n_rows
        divisor = mass
        if np.count_nonzero(sums[:, 0]) < n_leaves:  # all weights of a leaf were rounded to 0: its value is 0
            divisor = np.where(sums[:, 0] > 0.0, mass, np.inf)
        np.divide(sums[:, 1:], divisor[:, None], out=values)
        if monotone is not None:
            values[:] = nearest_monotone(tree, values, means(values.copy(), mass))
        return tree, sums


class TreeTarget(DenseTarget):
    """Δ row by row; a tree's inner products come from the sums in its leaves.

    A subtraction and a factor are not carried out at once but together with the next addition, in one pass
    over the rows.
    """

    def __init__(self, hypotheses: TreeSet, values: Array) -> None:
        self.hypotheses, self.values = hypotheses, values

    @property
    def values(self) -> Array:
        """Return Δ."""
        if self._factor != 1.0 or self._pending is not None:
            self._update(self._values, 0.0)
        return self._values

    @values.setter
    def values(self, values: Array) -> None:
        self._values = np.ascontiguousarray(values)
        self._factor = 1.0
        self._pending: tuple[Any, Array] | None = None  #: to be subtracted: leaves and values
        self._square: float | None = None  #: ‖Δ‖², if known

    def _update(self, G: Array, scale: float) -> None:
        """Δ ← factor (Δ − pending) + scale G, and its length."""
        D, space, squares = self._values, self.hypotheses.space, []
        leaf, table = self._pending or (np.zeros(len(D), np.int32), np.zeros((1, D.shape[1])))
        update = Update(self._factor, leaf, table, scale, G)

        def task(start: int, stop: int) -> None:
            rows = slice(start, stop)
            update_target(D, update, start, stop)
            squares.append(space.part(rows).exact_inner(D[rows], D[rows]))

        self.hypotheses.share_out(task, len(D), 2.0 * D.size)
        self._factor, self._pending = 1.0, None
        self._square = float(space.added(squares))

    def add(self, gradient: Gradient, scale: float = 1.0) -> None:
        """Δ ← Δ + scale ∇."""
        self._update(np.ascontiguousarray(gradient.values), scale)

    def scale(self, factor: float) -> None:
        """Δ ← factor Δ."""
        self._factor *= factor
        self._square = None

    @property
    def uses_curvature(self) -> bool:  # type: ignore[override]
        """Return whether the learner wants splits for Newton steps."""
        return self.hypotheses.learner.newton

    def project(self, rng: np.random.Generator) -> Direction:
        """Grow a tree on Δ and project on its line."""
        return self.project_to_refit(rng, None)

    def project_to_refit(self, rng: np.random.Generator, curvature: Array | None) -> Direction:
        """Grow a tree for Newton steps on Δ and project on its line."""
        D = self.values
        if self._square is None:
            self._update(D, 0.0)
        norm = math.sqrt(self._square)  # type: ignore[arg-type]
        if norm == 0.0:
            return ZERO
        tree, sums = self.hypotheses.grow(D, norm, rng, curvature)
        squared = float(np.einsum("l,lk,lk->", sums[:, 0], tree.values, tree.values))
        inner = float(np.einsum("lk,lk->", sums[:, 1:], tree.values))
        # The coefficient must be positive, so that monotone trees stay monotone, and more than rounding.
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
            self.values = self.values  # carries out what is pending
            self._pending = found
        self._square = None
