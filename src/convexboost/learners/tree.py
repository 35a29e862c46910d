"""Trees with vector leaves, grown on binned columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core import (
    ROUNDING,
    ZERO,
    Array,
    Direction,
    FunctionSpace,
    Gradient,
    Hypothesis,
    Pooled,
    Term,
    brief,
)
from convexboost.kernels import parallel
from convexboost.kernels.histogram import add_lookup, leaf_tables
from convexboost.kernels.trees import (
    CHILD,
    FEATURE,
    LARGEST,
    ROWS,
    add_trees,
    descend,
    draw_rows,
    fingerprint,
    leaf_of_rows,
    leaf_sums,
    n_columns,
    quantise,
    renew,
)
from convexboost.learners._bins import MAX_BINS, BinMapper, categorical_mask
from convexboost.learners._dense import DenseTarget, RowSet
from convexboost.learners._growth import Growth, Room, WholeWeights, power_above

#: Bytes that the histograms of a tree may take.
MAX_HISTOGRAMS = 2.0**33
#: The sums in the leaves are whole numbers of 62 bits.
EXACT = 2.0**61
#: Leaves of a tree unless something else is asked for, and where random cuts tell classes apart.
LEAVES, CLASS_LEAVES = 31, 64


@dataclass(frozen=True, eq=False)
class TreeFunction(Hypothesis):
    """A grown tree: nodes that send bins left or right, and a vector per leaf."""

    feature: NDArray[np.int32]  #: of each node, −1 for a leaf
    child: NDArray[np.int32]  #: the left one; the right one is next to it
    masks: NDArray[np.uint64]  #: the bins that go left, (n_nodes, 4)
    leaf_of_node: NDArray[np.int32]
    values: Array  #: (n_leaves, n_outputs)
    monotone: NDArray[np.int64] | None = None  #: how values must move along each feature, if any must

    __repr__ = brief

    def lookup(self, inputs: Any, weight: float) -> tuple[Any, Array]:
        """Return (leaves, weight times the value in each)."""
        return inputs.leaves(self), weight * self.values

    def leaves(self, inputs: Any) -> tuple[Any, Array]:
        """Return the leaf of each row, and the values."""
        return inputs.leaves(self), self.values

    def with_values(self, values: Array, pooled: Pooled) -> TreeFunction:
        """Return the same leaves with the best values that are monotone where they must be."""
        return replace(self, values=nearest_monotone(self, values, pooled))

    def add_to(self, F: Array, inputs: Any, weight: float) -> None:
        """F += weight * h(inputs)."""
        add_lookup(F, *self.lookup(inputs, weight), 0, len(F))

    @classmethod
    def add_all(cls, F: Array, inputs: Any, terms: Sequence[Term]) -> None:
        """Add many trees in one pass over the rows."""
        trees = [(weight, h) for weight, h in terms if isinstance(h, TreeFunction)]
        if len(trees) == 1:  # its leaves may be known
            trees[0][1].add_to(F, inputs, trees[0][0])
            return
        nodes = np.cumsum([0, *(len(h.feature) for _, h in trees)], dtype=np.int32)
        leaves = np.cumsum([0, *(len(h.values) for _, h in trees)], dtype=np.int32)
        feature = np.concatenate([h.feature for _, h in trees])
        child = np.concatenate([h.child + start for (_, h), start in zip(trees, nodes, strict=False)])
        leaf = np.concatenate([h.leaf_of_node + start for (_, h), start in zip(trees, leaves, strict=False)])
        masks = np.concatenate([h.masks for _, h in trees])
        values = np.concatenate([weight * h.values for weight, h in trees])

        def task(start: int, stop: int) -> None:
            add_trees(F, inputs.codes, nodes[:-1], feature, child, masks, leaf, values, start, stop)

        parallel.run(task, len(F), 20.0 * len(F) * len(trees), inputs.n_threads)


@dataclass
class RowCodes:
    """Any rows, binned; remembers the leaves of the last tree, which are asked for twice in every round."""

    codes: NDArray[np.uint8]  #: (n_samples, n_features)
    n_threads: int = 1
    columns: NDArray[np.uint8] | None = None  #: the same column by column, for training
    _last: tuple[Any, NDArray[np.int32]] | None = field(default=None, repr=False)

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.codes)

    def leaves(self, tree: TreeFunction) -> NDArray[np.int32]:
        """Return the leaf of each row."""
        if self._last is None or self._last[0] is not tree.masks:
            out = np.empty(len(self), np.int32)

            def task(start: int, stop: int) -> None:
                descend(self.codes, tree.feature, tree.child, tree.masks, tree.leaf_of_node, start, stop, out)

            parallel.run(task, len(self), 20.0 * len(self), self.n_threads)
            self._last = (tree.masks, out)
        return self._last[1]

    def remember(self, tree: TreeFunction, leaves: NDArray[np.int32]) -> None:
        """Note the leaves of a tree that was just grown."""
        self._last = (tree.masks, leaves)


@dataclass(frozen=True)
class RowMapper:
    """From X to bins, row by row."""

    bins: BinMapper

    def prepare(self, X: Any) -> RowCodes:
        """Return the bins of all columns."""
        return replace(self.encode(X, joblib.cpu_count()), columns=None)

    def encode(self, X: Any, n_threads: int) -> RowCodes:
        """Return the bins; a sparse matrix is written out, a byte per number."""
        if sp.issparse(X):
            X = X.tocsc()
            columns = np.stack(
                [self.bins.columns[j].encode(X[:, [j]].toarray().ravel()) for j in range(X.shape[1])]
            )
        else:
            columns = np.ascontiguousarray(self.bins.encode(np.ascontiguousarray(X, float), n_threads))
        return RowCodes(np.ascontiguousarray(columns.T), n_threads, columns)


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
        self.room = Room()

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
        if learner.column_share < 1.0:
            count = max(1, round(learner.column_share * len(features)))
            features = np.sort(rng.choice(len(features), count, replace=False))
        order = self._draw_rows(D, norm, rng)
        share = 1.0 if len(order) == n else float(self.space.weight[order].sum())
        V, unit = self._whole_numbers(D, norm)
        of_all = self.weights.unit * self.n_rows  #: what one row in n_rows weighs
        rules = np.array(
            [
                # A little less, so that rounding does not decide; never 0: a leaf must have rows.
                max((1.0 - self.weights.rounding) * share * learner.min_samples_leaf / of_all, 0.5),
                share * learner.leaf_l2 / of_all,
                random,
                self.weights.rounding_of_means(norm / unit),
            ],
            float,
        )
        depth = math.inf if learner.max_depth is None else learner.max_depth
        gain = max(learner.min_gain / unit / unit, ROUNDING * (norm / unit) ** 2) * self.weights.unit
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
        n, share = self.space.n_samples, self.learner.row_share
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
        mass = sums[:, 0] + self.learner.leaf_l2 / self.n_rows
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


def nearest_monotone(tree: TreeFunction, values: Array, pooled: Pooled) -> Array:
    """Return the best leaf values that are monotone, from the best without constraints, output by output.

    `pooled` is the best common value of some leaves: their mean gives the projection of `values`.

    Monotone means: at a split on such a feature no value on the low side exceeds one on the high side.  Two
    inputs that differ only in that feature part at such a split, so this is enough, whatever the other
    features; a positive multiple of such a tree, and a sum, is monotone again.

    From the leaves up: let both sides be at their best already.  With a bound m between them the best of
    either side is the one without it, cut off at m (true of isotonic regression for convex losses under any
    partial order), and what that costs is convex in m.  So the leaves that are cut have the value m, and m is
    the best common value of just these.

    Projected, v* lies in a convex cone, so ⟨values, v*⟩ = ‖v*‖² ≥ 0: its coefficient is never negative.
    """
    if tree.monotone is None:
        return values
    found, below = values.copy(), _leaves_below(tree)
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:
        sign = tree.monotone[tree.feature[node]]
        if sign == 0:
            continue
        low, high = (below[tree.child[node] + side] for side in ((0, 1) if sign > 0 else (1, 0)))
        for k in range(values.shape[1]):
            a, b = found[low, k], found[high, k]
            if a.max() > b.min():
                m = _meeting_point(low, a, high, b, pooled, k)
                found[low, k], found[high, k] = np.minimum(a, m), np.maximum(b, m)
    return found


def _meeting_point(low: Any, a: Array, high: Any, b: Array, pooled: Pooled, k: int) -> float:
    """Return the best m for min(a, m), max(b, m): between two levels the same leaves are cut."""
    levels = np.unique(np.concatenate([a, b]))
    levels = levels[(levels >= b.min()) & (levels <= a.max())]
    first, last = 0, len(levels) - 2
    while True:
        i = (first + last) // 2
        m = pooled(np.concatenate([low[a >= levels[i + 1]], high[b <= levels[i]]]), k)
        if m > levels[i + 1] and i < last:
            first = i + 1
        elif m < levels[i] and i > first:
            last = i - 1
        else:
            return float(np.clip(m, levels[i], levels[i + 1]))


def means(values: Array, mass: Array) -> Pooled:
    """Return the mean of some leaves, as their best common value."""
    return lambda leaves, k: float(np.average(values[leaves, k], weights=np.maximum(mass[leaves], 1e-300)))


def _leaves_below(tree: TreeFunction) -> list[NDArray[np.int64]]:
    """Return the leaves under each node."""
    below: list[Any] = [None] * len(tree.feature)
    for node in range(len(tree.feature) - 1, -1, -1):
        if tree.feature[node] < 0:
            below[node] = np.array([tree.leaf_of_node[node]])
        else:
            below[node] = np.concatenate([below[tree.child[node]], below[tree.child[node] + 1]])
    return below


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


@dataclass(frozen=True)
class Tree:
    """A tree grown best leaf first, one vector per leaf for all outputs.

    A split on a number sends those up to a cut left, and missing values to the better side.  A split on a
    categorical column sends a set of categories left, missing values being one of them: the categories are
    sorted by their mean targets and cut once.  For one output no set of categories is better, as long as
    `min_samples_leaf` forbids none.  With several outputs they are sorted along one direction, that in which
    a category differs most, and a better set may exist; so it may where `min_samples_leaf` forbids cuts.

    Parameters
    ----------
    max_leaves : int, optional
        By default 31; 64 in a classifier that draws cuts at random.
    max_depth : int, optional
    min_samples_leaf : float
        Least number of rows in a leaf; a row counts as often as its sample weight says (weights with a mean
        below 1, such as shares, are brought to 1 first).  Weights that are multiples of a common unit (whole
        numbers, say) are counted exactly, so that a row of weight 2 is the row twice; others are rounded to
        nine digits of their sum.
    leaf_l2 : float
        A leaf's value is the sum of its targets over its weight plus this (in rows): the smaller the leaf,
        the more it is shrunken.
    min_gain : float
        Least squared length that a split must add.
    splits : {"auto", "best", "random"}
        "random": one cut drawn for each feature and node (extremely randomised trees), the best of these.
        "auto" means that in classifiers and rankers, and in regressors for losses that are not smooth
        (where the `envelope` is not 0); else, and without an estimator, "best".
    row_share, column_share : float
        The share of rows (for a ranker, of queries) and columns that a tree is grown on, drawn anew for each;
        the values of its leaves are those of all rows.  Copies of a row are drawn together.
    max_bins : int
        At most 255.  Sparse inputs are written out, a byte per number.
    monotone : dict or sequence, optional
        Column → 1 (predictions must not fall), −1 (must not rise) or 0: exact, whatever the loss and the
        other columns.  Columns are numbers or, in a dict, names; not categorical.  Nothing is said about
        missing values.

    """

    max_leaves: int | None = None
    max_depth: int | None = None
    min_samples_leaf: float = 10
    leaf_l2: float = 0.0
    min_gain: float = 0.0
    splits: str = "auto"
    row_share: float = 1.0
    column_share: float = 1.0
    max_bins: int = MAX_BINS
    monotone: Any = None

    name: ClassVar[str] = "tree"
    #: What the estimators' "auto" means with trees (docs/generalisation.md): how much of the residual is
    #: kept, the step, that for losses which reweight rows (they must rise at times, to leave a kink), and the
    #: width of the envelope in each task.
    decay: ClassVar[float] = 0.7
    step: ClassVar[str] = "refit:0.05"
    reweighted_step: ClassVar[str] = "polyak:0.05"
    envelopes: ClassVar[Mapping[str, float]] = {"classification": 3.0, "regression": 10.0}

    def __post_init__(self) -> None:
        def need(name: str, fine: bool, wanted: str) -> None:
            if not fine:
                raise ValueError(f"`{name}` of a tree must be {wanted}, got {getattr(self, name)!r}")

        need(
            "max_leaves",
            self.max_leaves is None or (isinstance(self.max_leaves, Integral) and self.max_leaves >= 2),
            "an integer of at least 2",
        )
        depth = self.max_depth
        need(
            "max_depth",
            depth is None or (isinstance(depth, Integral) and depth >= 1),
            "a positive integer or None",
        )
        for name in ("min_samples_leaf", "leaf_l2", "min_gain"):
            value = getattr(self, name)
            need(
                name,
                isinstance(value, Real) and 0 <= float(value) < math.inf,
                "a number that is not negative",
            )
        for name in ("row_share", "column_share"):
            value = getattr(self, name)
            need(name, isinstance(value, Real) and 0 < float(value) <= 1, "in (0, 1]")
        need("splits", self.splits in ("auto", "best", "random"), "'auto', 'best' or 'random'")
        need(
            "max_bins",
            isinstance(self.max_bins, Integral) and 2 <= self.max_bins <= MAX_BINS,
            f"between 2 and {MAX_BINS}",
        )
        given = self.monotone
        fine = given is None or isinstance(given, Mapping) or np.ndim(given) == 1
        signs = given.values() if isinstance(given, Mapping) else () if given is None or not fine else given
        fine = fine and all(isinstance(sign, Integral) and int(sign) in (-1, 0, 1) for sign in signs)
        need("monotone", fine, "a dict from columns, or a sequence with an entry for each, to -1, 0 or 1")

    def suited_to(self, task: str, smoothed: bool) -> Tree:
        """Return the learner with "auto" settled (docs/generalisation.md has the evidence).

        Random cuts, but the best ones in regression where gradients are not those of an envelope: for smooth
        losses which of the two is better depends on the data.
        """
        random = self.splits == "random" or (self.splits == "auto" and (task != "regression" or smoothed))
        leaves = CLASS_LEAVES if random and task == "classification" else LEAVES
        return replace(self, splits="random" if random else "best", max_leaves=self.max_leaves or leaves)

    def signs(self, categorical: NDArray[np.bool_], names: Any = None) -> NDArray[np.int64]:
        """Return how the *gradient* must move along each feature: against the predictions."""
        given, n_features = self.monotone, len(categorical)
        signs = np.zeros(n_features, np.int64)
        if given is None:
            return signs
        if not isinstance(given, Mapping) and len(given) != n_features:
            raise ValueError(f"`monotone` of a tree must have {n_features} entries, got {len(given)}")
        numbers = {} if names is None else {name: j for j, name in enumerate(names)}
        seen = set()
        for column, sign in given.items() if isinstance(given, Mapping) else enumerate(given):
            if isinstance(column, str) and column not in numbers:
                raise ValueError(f"`monotone` of a tree names column {column!r}, which `X` does not have")
            j = numbers[column] if isinstance(column, str) else column
            if not isinstance(j, Integral) or not 0 <= int(j) < n_features:
                raise ValueError(
                    f"`monotone` of a tree must name columns between 0 and {n_features - 1}, got {j!r}"
                )
            name = str(j) if names is None else repr(str(names[j]))
            if sign != 0 and categorical[j]:
                raise ValueError(f"`monotone` of a tree names column {name}, which is categorical")
            if j in seen:
                raise ValueError(f"`monotone` of a tree names column {name} twice: by name and by number")
            seen.add(j)
            signs[j] = -sign
        return signs

    def bind(
        self,
        X: Any,
        space: FunctionSpace,
        categorical: Any = None,
        n_threads: int = 1,
        mapper: Any = None,
        groups: Any = None,
        names: Any = None,
    ) -> TreeSet:
        """Bin the training inputs; with `groups` (numbers) `row_share` draws whole groups.

        `names` are those of the columns, which `monotone` may use.
        """
        if mapper is None:
            mask = categorical_mask(categorical, X.shape[1])
            if sp.issparse(X):
                X = sp.csc_array(X, copy=not X.has_canonical_format)
                X.sum_duplicates()
            else:
                X = np.asarray(X, float)
            mapper = RowMapper(BinMapper.fit(X, space, self.max_bins, mask, n_threads))
        return TreeSet(self, mapper, mapper.encode(X, n_threads), space, groups, names)
