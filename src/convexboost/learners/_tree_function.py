"""A grown tree, and the binned rows that it reads."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.explained import Explained
from convexboost.core.hypotheses import Hypothesis, Packed, Pooled, Term
from convexboost.core.nodes import Nodes
from convexboost.core.plain import Plain, ends_of, joined
from convexboost.core.protocols import Mapper
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief
from convexboost.kernels import parallel
from convexboost.kernels.descent import Branches, add_trees, descend
from convexboost.kernels.lookup import add_lookup
from convexboost.learners._bins import MAX_BINS, BinMapper, dense_column
from convexboost.learners._monotone import nearest_monotone
from convexboost.learners._nodes import Binned, BinTrees
from convexboost.learners._statistics import MOST_LEVELS, LevelStatistic, level_statistics


@dataclass(frozen=True, eq=False)
class TreeFunction(Hypothesis):
    """A grown tree: nodes that send bins left or right, and a vector per leaf."""

    feature: NDArray[np.int32]  #: of each node, −1 for a leaf
    child: NDArray[np.int32]  #: the left one; the right one is next to it
    masks: NDArray[np.uint64]  #: the bins that go left, (n_nodes, 4)
    leaf_of_node: NDArray[np.int32]
    values: Array  #: (n_leaves, n_outputs)
    gain: Array  #: of each split: how much it lowers the weighted mean square of the targets
    cover: Array  #: of each leaf: its training rows, by weight
    monotone: NDArray[np.int64] | None = None  #: how values must move along each column of X, if any must

    kind = "tree"
    __repr__ = brief

    def key(self) -> Hashable:
        """Return the splits."""
        return self.feature.tobytes(), self.masks[self.feature >= 0].tobytes()

    def lookup(self, inputs: Any, weight: float) -> tuple[Any, Array]:
        """Return (leaves, weight times the value in each)."""
        return inputs.leaves(self), weight * self.values

    def leaves(self, inputs: Any) -> tuple[Any, Array]:
        """Return the leaf of each row, and the values."""
        return inputs.leaves(self), self.values

    def with_values(self, values: Array, pooled: Pooled) -> TreeFunction:
        """Return the same leaves with the best values that are monotone where they must be."""
        values = nearest_monotone(self, values, pooled)
        nodes = self.feature, self.child, self.masks, self.leaf_of_node
        return TreeFunction(*nodes, values, self.gain, self.cover, self.monotone)

    def add_to(self, F: Array, inputs: Any, weight: float) -> None:
        """F += weight * h(inputs)."""
        add_lookup(F, *self.lookup(inputs, weight), 0, len(F))

    @classmethod
    def pack(cls, terms: Sequence[Term]) -> Packed:
        """Lay the nodes of many trees one after the other."""
        if len(terms) == 1:  # its leaves may be known
            return super().pack(terms)
        laid = _laid(terms)
        roots = np.flatnonzero(np.diff(laid.tree, prepend=-1)).astype(np.int32)
        return Forest(roots, Branches(laid.feature, laid.child, laid.masks, laid.leaf), laid.values)

    @classmethod
    def nodes(cls, terms: Sequence[Term], mapper: Any) -> Nodes:
        """Return the splits between values; one on a statistic is one on the levels of its column."""
        return _laid(terms).nodes(mapper.columns, mapper.sources)

    @classmethod
    def explained(cls, terms: Sequence[Term], mapper: Any) -> Explained:
        """Return the trees with the paths to their nodes."""
        from convexboost.learners._tree_shap import ExplainedTrees

        return ExplainedTrees.of(_laid(terms), mapper.sources)

    @classmethod
    def to_plain(cls, hypotheses: Sequence[Self]) -> Plain:
        """Lay the nodes one after the other, and the leaves; only nodes with a split have a mask."""
        given = [b"" if h.monotone is None else h.monotone.tobytes() for h in hypotheses]
        different = [b"", *sorted(set(given) - {b""})]
        arrays = {
            "node_ends": ends_of([h.feature for h in hypotheses]),
            "feature": joined([h.feature for h in hypotheses], np.int32),
            "child": joined([h.child for h in hypotheses], np.int32),
            "leaf_of_node": joined([h.leaf_of_node for h in hypotheses], np.int32),
            "masks": joined([h.masks[h.feature >= 0] for h in hypotheses], np.uint64, 4),
            "leaf_ends": ends_of([h.values for h in hypotheses]),
            "values": np.concatenate([h.values for h in hypotheses]),
            "gain": joined([h.gain[h.feature >= 0] for h in hypotheses], float),
            "cover": joined([h.cover for h in hypotheses], float),
            "constraint": np.array([different.index(one) for one in given], np.int32),
            "constraints": joined([np.frombuffer(one, np.int64) for one in different], np.int64),
        }
        return Plain({}, arrays)

    @classmethod
    def from_plain(cls, plain: Plain, count: int, mapper: Any, n_outputs: int) -> list[Self]:
        """Cut the arrays; children come after their parents, so that every way down ends in a leaf."""
        feature = plain.indices("feature", np.int32, None, below=mapper.n_columns, least=-1)
        n_features = len(mapper.bins.columns)
        child, leaf = (plain.array(name, np.int32, len(feature)) for name in ("child", "leaf_of_node"))
        is_split = feature >= 0
        masks = np.zeros((len(feature), 4), np.uint64)
        masks[is_split] = plain.array("masks", np.uint64, int(is_split.sum()), 4)
        values = plain.array("values", float, None, n_outputs)
        cover = plain.array("cover", float, len(values))
        gain = np.zeros(len(feature))
        gain[is_split] = plain.array("gain", float, int(is_split.sum()))
        plain.need("cover", (cover >= 0.0).all(), "numbers that are not negative")
        signs = plain.indices("constraints", np.int64, None, least=-1, below=2)
        plain.need("constraints", len(signs) % max(n_features, 1) == 0, f"{n_features} numbers each")
        constraints = [None, *signs.reshape(-1, max(n_features, 1))]
        number = plain.indices("constraint", np.int32, count, below=len(constraints))
        nodes = plain.slices("node_ends", count, len(feature))
        leaves = plain.slices("leaf_ends", count, len(values))
        sizes, n_leaves = (np.array([s.stop - s.start for s in parts], int) for parts in (nodes, leaves))
        plain.need("node_ends", (sizes > 0).all(), "at least one node for each tree")
        place = np.arange(len(feature)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # of a node in its tree
        later = (child > place) & (child < np.repeat(sizes, sizes) - 1)
        plain.need("child", later[is_split].all(), "later nodes of the same tree")
        known = (leaf >= 0) & (leaf < np.repeat(n_leaves, sizes))
        plain.need("leaf_of_node", known[~is_split].all(), "numbers of leaves that have values")
        return [
            cls(
                feature[own],
                child[own],
                masks[own],
                leaf[own],
                values[mine],
                gain[own],
                cover[mine],
                constraints[constraint],
            )
            for own, mine, constraint in zip(nodes, leaves, number.tolist(), strict=True)
        ]


def _laid(terms: Sequence[Term]) -> BinTrees:
    """Lay the nodes of many trees one after the other, and their leaves."""
    trees = [(weight, h) for weight, h in terms if isinstance(h, TreeFunction)]
    sizes = [len(h.feature) for _, h in trees]
    nodes = np.cumsum([0, *sizes[:-1]], dtype=np.int32)
    leaves = np.cumsum([0, *(len(h.values) for _, h in trees)], dtype=np.int32)
    return BinTrees(
        np.repeat(np.arange(len(trees), dtype=np.int32), sizes),
        np.concatenate([h.feature for _, h in trees]),
        np.concatenate([h.child + start for (_, h), start in zip(trees, nodes, strict=True)]),
        np.concatenate([h.masks for _, h in trees]),
        np.concatenate([h.gain for _, h in trees]),
        np.concatenate([h.leaf_of_node + start for (_, h), start in zip(trees, leaves, strict=False)]),
        np.concatenate([h.cover for _, h in trees]),
        np.concatenate([weight * h.values for weight, h in trees]),
    )


@dataclass(frozen=True)
class Forest:
    """The sum of many trees."""

    roots: NDArray[np.int32]  #: the first node of each tree
    branches: Branches
    values: Array  #: of the leaves

    __repr__ = brief

    def add_to(self, F: Array, inputs: Any) -> None:
        """Add all trees in one pass over the rows."""

        def task(start: int, stop: int) -> None:
            add_trees(F, inputs.codes, self.roots, self.branches, self.values, start, stop)

        parallel.run(task, len(F), 20.0 * len(F) * len(self.roots), inputs.n_threads)


@dataclass
class RowCodes:
    """Any rows, binned; remembers the leaves of the last tree, which are asked for twice in every round."""

    codes: NDArray[np.uint8]  #: (n_samples, n_features)
    n_threads: int
    columns: NDArray[np.uint8]  #: the same column by column
    _last: tuple[Any, NDArray[np.int32]] | None = field(default=None, repr=False)

    __repr__ = brief

    @classmethod
    def of(cls, columns: NDArray[np.uint8], n_threads: int) -> Self:
        """Keep bins, (n_columns, n_samples), in both orders."""
        return cls(np.ascontiguousarray(columns.T), n_threads, columns)

    def __len__(self) -> int:
        return len(self.codes)

    def leaves(self, tree: TreeFunction) -> NDArray[np.int32]:
        """Return the leaf of each row."""
        if self._last is None or self._last[0] is not tree.masks:
            out = np.empty(len(self), np.int32)
            branches = Branches(tree.feature, tree.child, tree.masks, tree.leaf_of_node)

            def task(start: int, stop: int) -> None:
                order = np.arange(start, stop, dtype=np.int32)
                ends = np.empty((len(tree.feature), 2), np.int64)
                descend(self.columns, branches, order, np.empty_like(order), ends, out)

            parallel.run(task, len(self), 20.0 * len(self), self.n_threads)
            self._last = (tree.masks, out)
        return self._last[1]

    def remember(self, tree: TreeFunction, leaves: NDArray[np.int32]) -> None:
        """Note the leaves of a tree that was just grown."""
        self._last = (tree.masks, leaves)


@dataclass(frozen=True)
class RowMapper(Mapper):
    """From X to bins, row by row: first the columns of X, then statistics of categorical ones."""

    bins: BinMapper
    statistics: tuple[LevelStatistic, ...] = ()

    @property
    def columns(self) -> list[Binned]:
        """Return the columns of X, then the statistics."""
        return [*self.bins.columns, *self.statistics]

    @property
    def n_columns(self) -> int:
        """Return the number of columns of X and statistics."""
        return len(self.bins.columns) + len(self.statistics)

    @property
    def n_bins(self) -> NDArray[np.int64]:
        """Return the number of bins of each column, the missing one included."""
        return np.array([column.n_bins for column in self.columns], np.int64) + 1

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Return which columns are cut between sets of categories; statistics are numbers."""
        return np.append(np.asarray(self.bins.categorical, bool), np.zeros(len(self.statistics), bool))

    @property
    def sources(self) -> NDArray[np.int64]:
        """Return the column of X that each column is made of."""
        derived = [s.source for s in self.statistics]
        return np.array([*range(len(self.bins.columns)), *derived], np.int64)

    def to_plain(self) -> Plain:
        """Return the bins of the columns, and the levels of the statistics with their numbers."""
        bins, found = self.bins.to_plain(), self.statistics
        arrays = {
            "statistic_sources": self.sources[len(self.bins.columns) :],
            "levels": joined([s.levels for s in found], float),
            "level_values": joined([s.values for s in found], float),
            "level_ends": ends_of([s.levels for s in found]),
            "statistic_cuts": joined([s.cuts for s in found], float),
            "statistic_cut_ends": ends_of([s.cuts for s in found]),
        }
        return Plain(bins.description, {**bins.arrays, **arrays})

    @classmethod
    def from_plain(cls, plain: Plain) -> Self:
        """Read the bins of the columns and the statistics, which belong to categorical columns."""
        bins = BinMapper.from_plain(plain)
        sources = plain.indices("statistic_sources", np.int64, None, below=len(bins.columns))
        plain.need("statistic_sources", bins.categorical[sources].all(), "numbers of categorical columns")
        levels = plain.array("levels", float, None, finite=False)
        values = plain.array("level_values", float, len(levels))
        cuts = plain.array("statistic_cuts", float, None)
        level_parts = plain.slices("level_ends", len(sources), len(levels))
        cut_parts = plain.slices("statistic_cut_ends", len(sources), len(cuts))
        statistics = []
        for source, level, cut in zip(sources.tolist(), level_parts, cut_parts, strict=True):
            plain.need("levels", (np.diff(levels[level]) > 0).all(), "sorted numbers")
            plain.need("level_ends", level.stop > level.start, "at least one level for each statistic")
            most = MAX_BINS - 1
            plain.need("statistic_cut_ends", cut.stop - cut.start <= most, f"at most {most} cuts each")
            plain.need("statistic_cuts", (np.diff(cuts[cut]) >= 0).all(), "sorted numbers")
            statistics.append(LevelStatistic(source, levels[level], values[level], cuts[cut]))
        return cls(bins, tuple(statistics))

    def prepare(self, X: Any) -> RowCodes:
        """Return the bins of all columns."""
        self.bins.check(X)
        return self.encode(X, parallel.n_cores())

    def encode(self, X: Any, n_threads: int) -> RowCodes:
        """Return the bins; a sparse matrix is written out, a byte per number."""
        if sp.issparse(X):
            X = X.tocsc()
            columns = np.stack(
                [self.bins.columns[j].encode(X[:, [j]].toarray().ravel()) for j in range(X.shape[1])]
            )
        else:
            X = np.ascontiguousarray(X, float)
            columns = np.ascontiguousarray(self.bins.encode(X, n_threads))
        found = [s.encode(dense_column(X, s.source)) for s in self.statistics]
        return RowCodes.of(np.stack([*columns, *found]) if found else columns, n_threads)

    def extends(self, other: Mapper) -> bool:
        """Return whether it has the bins of the other mapper, and its statistics first."""
        if not isinstance(other, RowMapper):
            return False
        return self.bins is other.bins and self.statistics[: len(other.statistics)] == other.statistics

    def with_statistics(
        self, X: Any, targets: Array, space: FunctionSpace, max_bins: int, n_threads: int, groups: Any = None
    ) -> tuple[RowMapper, RowCodes, NDArray[np.int64]]:
        """Add statistics of the columns with many levels; return also the bins of these training rows.

        Last comes which columns a tree on these rows may split: those of X, except those that the new
        statistics replace, and the new statistics.  Those added before belong to other training rows.
        """
        inputs, columns = self.encode(X, n_threads), self.bins.columns
        many = [j for j, c in enumerate(columns) if c.n_categories > min(MOST_LEVELS, max_bins)]
        statistics, codes = level_statistics(X, many, targets, space, max_bins, groups)
        replaced = {s.source for s in statistics}
        usable = [j for j in range(len(columns)) if j not in replaced]
        usable += range(self.n_columns, self.n_columns + len(statistics))
        if statistics:
            inputs = RowCodes.of(np.stack([*inputs.columns, *codes]), n_threads)
        mapper = replace(self, statistics=(*self.statistics, *statistics))
        return mapper, inputs, np.array(usable, np.int64)
