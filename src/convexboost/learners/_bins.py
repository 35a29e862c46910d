"""Columns cut into at most 255 bins, dense or sparse, with a bin of its own for missing values."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.communicator import Communicator
from convexboost.core.gradients import Gradient
from convexboost.core.levels import places
from convexboost.core.plain import Plain, ends_of, joined
from convexboost.core.protocols import Mapper
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief
from convexboost.kernels import parallel
from convexboost.kernels.binning import Cuts, add_codes, add_tables, encode
from convexboost.kernels.hashing import Fingerprints, fingerprints
from convexboost.kernels.histogram import (
    DenseBins,
    SparseBins,
    add_pairs,
    add_pairs_sparse,
    add_rows,
    add_rows_sparse,
    fixed_point_factor,
)
from convexboost.kernels.lookup import add_lookup
from convexboost.learners._nodes import Levels

Codes = NDArray[np.uint8]
MAX_BINS = 255
#: Bins are chosen from at most this many distinct rows.
MAX_QUANTILE_ROWS = 200_000


@dataclass(frozen=True)
class Column:
    """How one feature is cut: between `cuts`, or one bin per value in `categories`.

    Codes 0 … n_bins − 1 are values, n_bins is "missing" (and any category not seen in training).
    """

    cuts: Array | None = None
    categories: Array | None = None  #: sorted
    category_codes: Codes | None = None  #: bin of each category; rare ones share the last bin

    __repr__ = brief

    @property
    def n_bins(self) -> int:
        """Return the number of bins, without the missing one."""
        if self.cuts is not None:
            return len(self.cuts) + 1
        assert self.category_codes is not None
        return int(self.category_codes.max(initial=0)) + 1

    @property
    def n_categories(self) -> int:
        """Return the number of categories, 0 for numbers."""
        return 0 if self.categories is None else len(self.categories)

    def levels_in_bins(self) -> Levels | None:
        """Return the categories and their bins, None for numbers."""
        if self.categories is None:
            return None
        assert self.category_codes is not None
        return Levels(self.categories, self.category_codes, self.n_bins, self.n_bins)

    def encode(self, values: Array) -> Codes:
        """Return the bin of each value."""
        if self.cuts is not None:
            return BinMapper([self], np.zeros(1, bool)).encode(np.ascontiguousarray(values)[:, None])[0]
        assert self.categories is not None
        assert self.category_codes is not None
        codes = np.append(self.category_codes, self.n_bins).astype(np.uint8)
        return codes[places(self.categories, values)]

    def search(self, table: Array) -> tuple[Array, Array]:
        """Return cuts, and the rows of a table over the bins in their order: a category lies between two."""
        if self.cuts is not None:
            return self.cuts, table
        assert self.categories is not None
        assert self.category_codes is not None
        cuts = np.column_stack([np.nextafter(self.categories, -np.inf), self.categories]).ravel()
        rows = np.full(len(cuts) + 2, self.n_bins)
        rows[1 : len(cuts) : 2] = self.category_codes
        return cuts, table[rows]

    @classmethod
    def numeric(cls, values: Array, weight: Array | None, max_bins: int) -> Column:
        """Cut between distinct values, at weighted quantiles where there are too many of them."""
        values, reached, ends = _ranked(values, weight)
        last = ends[:-1]
        if len(ends) > max_bins:
            wanted = np.arange(1, max_bins) / max_bins
            # The tolerance makes a row of weight 2 and the row twice give the same cuts.
            chosen = np.unique(np.searchsorted(reached, (wanted - 1e-12) * reached[-1]))
            last = ends[chosen[chosen < len(last)]]
        low, high = values[last], values[last + 1]
        with np.errstate(invalid="ignore"):  # −∞ beside ∞ has no middle
            middle = low / 2 + high / 2
        return cls(cuts=np.where(middle < high, middle, low))

    @classmethod
    def categorical(cls, values: Array, weight: Array | None, max_bins: int) -> Column:
        """One bin for each of the heaviest categories; the rest share one."""
        values, reached, ends = _ranked(values, weight)
        categories, mass = values[ends], np.diff(reached, prepend=0.0)
        rank = np.empty(len(categories), int)
        rank[np.lexsort((categories, -np.round(mass / max(mass.sum(), 1e-300), 12)))] = np.arange(
            len(categories)
        )
        return cls(categories=categories, category_codes=rank.clip(max=max_bins - 1).astype(np.uint8))


def _ranked(values: Array, weight: Array | None) -> tuple[Array, Array, NDArray[np.intp]]:
    """Sort, without missing values; return also the weight up to each distinct value and where it ends."""
    if weight is None:
        values = np.sort(values)
    else:
        order = np.argsort(values)
        values, weight = values[order], weight[order]
    values = values[: np.searchsorted(values, np.nan)]  # missing values come last
    ends = np.flatnonzero(np.append(values[1:] > values[:-1], True)[: len(values)])
    reached = np.cumsum(weight)[ends] if weight is not None else ends.astype(float) + 1.0
    return values, reached, ends


def _counted(values: Array, weight: Array | None) -> tuple[Array, Array]:
    """Return the different values, without missing ones, and their weights: whole numbers."""
    is_there = ~np.isnan(values)
    found, number = np.unique(values[is_there], return_inverse=True)
    return found, np.bincount(number, None if weight is None else weight[is_there], len(found)).astype(float)


def dense_column(X: Any, j: int) -> Array:
    """Return a column of a matrix that may be sparse."""
    return np.asarray(X[:, [j]].toarray().ravel() if sp.issparse(X) else X[:, j], float)


def _sample(X: Array, n_threads: int, communicator: Communicator) -> NDArray[np.intp] | None:
    """Choose rows with `MAX_QUANTILE_ROWS` distinct contents, or return None: all of them.

    Those with the smallest fingerprints are a random sample of the distinct rows, which depends on their
    content only: copies of a row are all chosen or all left out, each keeps its weight, and samples of parts
    of the rows can be merged.  For rows of equal weight the share below a cut has a standard error of at most
    1 / (2 √MAX_QUANTILE_ROWS) = 0.0011; a bin out of 255 holds 0.0039.
    """
    if communicator.add(np.array([len(X)]))[0] <= MAX_QUANTILE_ROWS:
        return None
    content = fingerprints(X, n_threads)
    smallest = _distinct(content)[: MAX_QUANTILE_ROWS + 1]
    if communicator.size > 1:
        smallest = _distinct(np.concatenate(communicator.gather(smallest)))
    if len(smallest) <= MAX_QUANTILE_ROWS:
        return None
    return np.flatnonzero(content < smallest[MAX_QUANTILE_ROWS])


def _distinct(numbers: Fingerprints) -> Fingerprints:
    """Return the different numbers, sorted; np.unique would look them up one by one."""
    numbers = np.sort(numbers)
    return numbers[np.append(True, numbers[1:] != numbers[:-1])]


def _columns(
    X: Any, rows: Any, weight: Array | None, first: int, last: int
) -> Iterator[tuple[Array, Array | None]]:
    """Yield (values, weights) of columns first … last − 1; the zeros of a sparse column come as one value."""
    if not sp.issparse(X):
        for j in range(first, last):
            yield X[:, j] if rows is None else X[rows, j], weight
        return
    weight = np.ones(X.shape[0]) if weight is None else weight
    total = weight.sum()
    for j in range(first, last):
        part = slice(X.indptr[j], X.indptr[j + 1])
        stored = weight[X.indices[part]]
        if X.shape[0] == len(stored):
            yield X.data[part], stored
        else:
            yield np.append(X.data[part], 0.0), np.append(stored, max(total - stored.sum(), 0.0))


@dataclass(frozen=True)
class BinMapper(Mapper):
    """The columns of a data set, learned from its training rows."""

    columns: list[Column]
    categorical: NDArray[np.bool_]

    __repr__ = brief

    @classmethod
    def fit(
        cls,
        X: Any,
        space: FunctionSpace,
        max_bins: int,
        categorical: NDArray[np.bool_],
        n_threads: int = 1,
    ) -> BinMapper:
        """Choose the bins of each column of `X` (an array or a CSC matrix)."""
        weight, communicator = space.whole[0], space.communicator
        rows = None if sp.issparse(X) or categorical.any() else _sample(X, n_threads, communicator)
        if rows is not None:
            weight = weight[rows]
        largest = communicator.largest(weight.max(initial=0.0))
        is_uniform = not communicator.any((weight != largest).any())  # numbers alone are sorted faster
        found: list[Any] = [None] * X.shape[1]

        def choose(j: int, values: Array, own: Array | None) -> Column:
            column = Column.categorical if categorical[j] else Column.numeric
            return column(values, own, max_bins)

        def task(first: int, last: int) -> None:
            given = _columns(X, rows, None if is_uniform else weight, first, last)
            for j, (values, own) in enumerate(given, first):
                found[j] = choose(j, values, own) if communicator.size == 1 else _counted(values, own)

        parallel.run(task, X.shape[1], 20 * len(weight) * X.shape[1], n_threads)
        if communicator.size > 1:  # each rank chooses the bins of some columns, for all
            parts = np.array_split(np.arange(X.shape[1]), communicator.size)
            here = communicator.exchange([[found[j] for j in part] for part in parts])
            own = [
                choose(j, *(np.concatenate(both) for both in zip(*counted, strict=True)))
                for j, *counted in zip(parts[communicator.rank].tolist(), *here, strict=True)
            ]
            found = [column for part in communicator.gather(own) for column in part]
        return cls(found, categorical)

    def encode(self, X: Array, n_threads: int = 1) -> Codes:
        """Return the bin of every number, (n_features, n_samples)."""
        codes = np.empty(X.shape[::-1], np.uint8)
        cuts, others = self._parts

        def rows(start: int, stop: int) -> None:
            encode(X, cuts, codes, start, stop)

        def columns(first: int, last: int) -> None:
            for j in others[first:last]:
                codes[j] = self.columns[j].encode(X[:, j])

        parallel.run(rows, len(X), 10 * len(X) * len(cuts.features), n_threads)
        parallel.run(columns, len(others), 20 * len(X) * len(others), n_threads)
        return codes

    @cached_property
    def _parts(self) -> tuple[Cuts, NDArray[np.intp]]:
        """The cuts of the numeric columns one after the other, and the numbers of the other columns."""
        is_cut = np.array([column.cuts is not None for column in self.columns], bool)
        numeric = np.flatnonzero(is_cut)
        stacked = _stack([self.columns[j].cuts for j in numeric] or [np.empty(0)])
        return Cuts(numeric, *stacked), np.flatnonzero(~is_cut)

    @property
    def sources(self) -> NDArray[np.int64]:
        """Return the column of X that each column is made of."""
        return np.arange(len(self.columns))

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "categorical": self.categorical}  # the rest follows from these

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First row of each feature in a table over all bins, the missing one included."""
        return np.cumsum([0] + [column.n_bins + 1 for column in self.columns])

    @cached_property
    def _merged_columns(self) -> set[int]:
        """The columns that `warn_of_merged_levels` has looked at: members of a fit share a mapper."""
        return set()

    def warn_of_merged_levels(self, columns: Iterable[int]) -> None:
        """Warn where levels share a bin although the user did not ask for few bins; once per column."""
        new = set(columns) - self._merged_columns
        self._merged_columns.update(new)
        for j in sorted(new):
            n_levels, n_bins = self.columns[j].n_categories, self.columns[j].n_bins
            if n_levels > MAX_BINS:
                warnings.warn(
                    f"column {j} has {n_levels:,} levels: the {n_bins - 1} heaviest have a bin each and the "
                    "others share one; learner='tree' in an estimator tells them apart",
                    UserWarning,
                    stacklevel=3,
                )

    def prepare(self, X: Any) -> BinnedInputs:
        """Return X as hypotheses read it; columns are binned when first asked for."""
        self.check(X)
        X = X.tocsc() if sp.issparse(X) else np.ascontiguousarray(X, float)
        return BinnedInputs(self, X, parallel.n_cores())

    def check(self, X: Any) -> None:
        """Refuse an X with other columns: the kernels would read outside of it."""
        if np.ndim(X) != 2 or np.shape(X)[1] != len(self.columns):
            raise ValueError(f"`X` must have {len(self.columns)} columns, got shape {np.shape(X)}")

    @property
    def n_hypotheses(self) -> float:
        """Return the number of cuts, which is that of the splits into two sides."""
        return sum(max(column.n_bins - 1, 0) for column in self.columns)

    def to_plain(self) -> Plain:
        """Lay the cuts of all columns one after the other, and the categories with their bins."""
        none = np.empty(0)
        cuts = [none if column.cuts is None else column.cuts for column in self.columns]
        categories = [none if column.categories is None else column.categories for column in self.columns]
        codes = [column.category_codes for column in self.columns if column.category_codes is not None]
        arrays = {
            "categorical": np.asarray(self.categorical, bool),
            "cuts": joined(cuts, float),
            "cut_ends": ends_of(cuts),
            "categories": joined(categories, float),
            "category_ends": ends_of(categories),
            "category_codes": joined(codes, np.uint8),
        }
        return Plain({}, arrays)

    @classmethod
    def from_plain(cls, plain: Plain) -> Self:
        """Cut the arrays; cuts and categories are sorted, and no column has more than `MAX_BINS` bins."""
        categorical = plain.array("categorical", bool, None)
        cuts, categories = (plain.array(name, float, None, finite=False) for name in ("cuts", "categories"))
        codes = plain.indices("category_codes", np.uint8, len(categories), below=MAX_BINS)
        for name, values in (("cuts", cuts), ("categories", categories)):
            plain.need(name, not np.isnan(values).any(), "no NaN")
        cut_parts = plain.slices("cut_ends", len(categorical), len(cuts))
        category_parts = plain.slices("category_ends", len(categorical), len(categories))
        columns = []
        for is_categorical, cut, category in zip(categorical, cut_parts, category_parts, strict=True):
            most = 0 if is_categorical else MAX_BINS - 1
            plain.need("cut_ends", cut.stop - cut.start <= most, f"at most {most} cuts of a column")
            plain.need("cuts", (np.diff(cuts[cut]) >= 0).all(), "sorted numbers")
            found, none = categories[category], category.stop == category.start
            plain.need("category_ends", is_categorical or none, "categories of categorical columns only")
            plain.need("categories", (np.diff(found) > 0).all(), "sorted numbers")
            if is_categorical:
                columns.append(Column(categories=found, category_codes=codes[category]))
            else:
                columns.append(Column(cuts=cuts[cut]))
        return cls(columns, categorical)


@dataclass
class BinnedInputs:
    """Any rows, binned column by column on demand."""

    mapper: BinMapper
    X: Any
    n_threads: int = 1
    _cache: dict[int, Codes] = field(default_factory=dict)

    __repr__ = brief

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def column(self, j: int) -> Codes:
        """Return the bin of each row in feature j."""
        if j not in self._cache:
            self._cache[j] = self.mapper.columns[j].encode(dense_column(self.X, j))
        return self._cache[j]

    def add_tables(self, F: Array, features: Sequence[int], tables: Sequence[Array]) -> None:
        """F[n, :] += Σ table[bin of n in its feature], in the order given: one pass, no bins written out."""
        if sp.issparse(self.X):
            for j, table in zip(features, tables, strict=True):
                add_lookup(F, self.column(j), table, 0, len(F))
            return
        searched = [self.mapper.columns[j].search(table) for j, table in zip(features, tables, strict=True)]
        cuts = Cuts(np.asarray(features, np.int64), *_stack([cuts for cuts, _ in searched]))
        table, table_ends = _stack([table for _, table in searched])

        def task(start: int, stop: int) -> None:
            add_tables(F, self.X, cuts, table, table_ends, start, stop)

        parallel.run(task, len(F), F.size * len(features), self.n_threads)


def _stack(tables: Sequence[Any]) -> tuple[Array, NDArray[np.int64]]:
    """Return the tables one after the other, and where each begins (and the last ends)."""
    return np.concatenate(tables), np.cumsum([0, *map(len, tables)])


class BinnedSample(ABC):
    """The training rows, all columns binned.  All its sums over rows are exact in fixed point."""

    def __init__(self, mapper: BinMapper, space: FunctionSpace, n_threads: int) -> None:
        self.mapper, self.space, self.n_threads = mapper, space, n_threads
        self.unit = fixed_point_factor(1.0)

    def __len__(self) -> int:
        return self.space.n_samples

    @property
    def n_rows(self) -> float:
        """Return the number of rows, each counted by its weight."""
        return self.space.n_rows

    @property
    def n_features(self) -> int:
        """Return the number of columns."""
        return len(self.mapper.columns)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Return the first row of each feature in a table over all bins."""
        return self.mapper.offsets

    @property
    def dense_codes(self) -> Codes | None:
        """Return the bin of each row, (n_features, n_samples); None where the columns are sparse."""
        return None

    @cached_property
    def mass(self) -> Array:
        """Return the weight of each bin."""
        return self.shared_mass(np.zeros(len(self), np.uint8), 1)[:, 0]

    def histogram(self, gradient: Gradient) -> Array:
        """Σ of p_n ∇_n over the rows of each bin, shape (total bins, n_outputs)."""
        short = gradient.histogram(self)
        if short is not None:
            return short
        G, communicator = gradient.values, self.space.communicator
        largest = communicator.largest(max(G.max(initial=0.0), -G.min(initial=0.0)))
        factor = fixed_point_factor(largest)
        out = np.zeros((self.mapper.offsets[-1], G.shape[1]), np.int64)

        def task(first: int, last: int) -> None:
            self._add_rows(np.arange(first, last), G, factor, out)

        parallel.run(task, self.n_features, G.size * self.n_features, self.n_threads)
        return communicator.add(out) / factor

    def shared_mass(self, column: Codes, width: int) -> Array:
        """Weight that each bin shares with each value 0 … width − 1 of `column`: (total bins, width)."""
        return self.shared_counts(column, width) / self.unit

    def shared_counts(self, column: Codes, width: int, features: Any = None) -> NDArray[np.int64]:
        """Return the same as multiples of 1/unit; given `features`, the bins of all others are left at 0."""
        out = np.zeros((self.mapper.offsets[-1], width), np.int64)
        wanted = np.arange(self.n_features) if features is None else features

        def task(first: int, last: int) -> None:
            self._add_pairs(wanted[first:last], column, out)

        parallel.run(task, len(wanted), len(self) * len(wanted), self.n_threads)
        return self.space.communicator.add(out)

    @abstractmethod
    def column(self, j: int) -> Codes:
        """Return the bin of each row in feature j."""

    def add_tables(self, F: Array, features: Sequence[int], tables: Sequence[Array]) -> None:
        """F[n, :] += Σ table[bin of n in its feature], feature by feature in the order given."""
        for j, table in zip(features, tables, strict=True):
            add_lookup(F, self.column(j), table, 0, len(F))

    @abstractmethod
    def _add_rows(self, features: Any, G: Array, factor: float, out: NDArray[np.int64]) -> None: ...

    @abstractmethod
    def _add_pairs(self, features: Any, column: Codes, out: NDArray[np.int64]) -> None: ...


class DenseSample(BinnedSample):
    """One byte per row and feature."""

    def __init__(self, mapper: BinMapper, space: FunctionSpace, n_threads: int, X: Array) -> None:
        super().__init__(mapper, space, n_threads)
        self.codes = mapper.encode(X, n_threads)
        self.bins = DenseBins(self.codes, mapper.offsets)

    @property
    def dense_codes(self) -> Codes:
        """Return the bin of each row."""
        return self.codes

    def column(self, j: int) -> Codes:
        """Return the bin of each row in feature j."""
        return self.codes[j]

    def add_tables(self, F: Array, features: Sequence[int], tables: Sequence[Array]) -> None:
        """F[n, :] += Σ table[bin of n in its feature], in one pass."""
        columns, (table, ends) = np.asarray(features, np.int64), _stack(tables)

        def task(start: int, stop: int) -> None:
            add_codes(F, self.codes, columns, table, ends, start, stop)

        parallel.run(task, len(F), F.size * len(features), self.n_threads)

    def _add_rows(self, features: Any, G: Array, factor: float, out: NDArray[np.int64]) -> None:
        add_rows(self.bins, features, G, self.space.weight, factor, out)

    def _add_pairs(self, features: Any, column: Codes, out: NDArray[np.int64]) -> None:
        add_pairs(self.bins, features, column, self.space.weight, self.unit, out)


class SparseSample(BinnedSample):
    """One byte (and a row index) per stored entry of a CSC matrix; zeros are never written out."""

    def __init__(self, mapper: BinMapper, space: FunctionSpace, n_threads: int, X: sp.csc_array) -> None:
        super().__init__(mapper, space, n_threads)
        codes, default = np.empty(len(X.data), np.uint8), np.empty(X.shape[1], np.int64)
        for j, column in enumerate(mapper.columns):
            part = slice(X.indptr[j], X.indptr[j + 1])
            codes[part] = column.encode(X.data[part])
            default[j] = column.encode(np.zeros(1))[0]
        pointers, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        self.bins = SparseBins(pointers, indices, codes, default, mapper.offsets)

    def column(self, j: int) -> Codes:
        """Return the bin of each row in feature j."""
        codes = np.full(len(self), self.bins.default[j], np.uint8)
        part = slice(self.bins.pointers[j], self.bins.pointers[j + 1])
        codes[self.bins.indices[part]] = self.bins.codes[part]
        return codes

    def _add_rows(self, features: Any, G: Array, factor: float, out: NDArray[np.int64]) -> None:
        add_rows_sparse(self.bins, features, G, self.space.weight, factor, out)

    def _add_pairs(self, features: Any, column: Codes, out: NDArray[np.int64]) -> None:
        add_pairs_sparse(self.bins, features, column, self.space.weight, self.unit, out)


def categorical_mask(categorical: Any, n_features: int) -> NDArray[np.bool_]:
    """Return which columns are categorical; given as None, as column numbers or as a mask."""
    mask = np.zeros(n_features, bool)
    columns = np.asarray([] if categorical is None else categorical)
    if columns.ndim == 1 and columns.dtype == bool and len(columns) == n_features:
        return columns
    numbers = columns.ndim == 1 and (columns.dtype.kind in "iu" or len(columns) == 0)
    if not numbers or not all(0 <= j < n_features for j in columns):
        raise ValueError(
            f"`categorical` must be None, a list of columns from 0 to {n_features - 1} or a mask of "
            f"{n_features} entries, got {categorical!r}"
        )
    mask[columns.astype(int)] = True
    return mask


def as_columns(X: Any) -> Any:
    """Return X as an array of floats, or as a CSC matrix that stores each entry once."""
    if not sp.issparse(X):
        return np.asarray(X, float)
    X = sp.csc_array(X, copy=not X.has_canonical_format)
    X.sum_duplicates()
    return X


def bin_sample(
    X: Any,
    space: FunctionSpace,
    max_bins: int,
    categorical: Any,
    n_threads: int,
    mapper: BinMapper | None = None,
) -> BinnedSample:
    """Bin the training inputs, a 2-D array or any SciPy sparse matrix; by a `mapper` if there is one."""
    mask, X = categorical_mask(categorical, X.shape[1]), as_columns(X)
    mapper = mapper or BinMapper.fit(X, space, max_bins, mask, n_threads)
    mapper.warn_of_merged_levels(range(len(mapper.columns)))
    if sp.issparse(X):
        return SparseSample(mapper, space, n_threads, X)
    return DenseSample(mapper, space, n_threads, X)
