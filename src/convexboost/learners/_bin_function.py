"""A function of one binned feature."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from convexboost.core.explained import Explained
from convexboost.core.hypotheses import Hypothesis, Packed, Term
from convexboost.core.nodes import Nodes
from convexboost.core.plain import Plain, ends_of, joined
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.kernels import parallel
from convexboost.kernels.lookup import add_lookup
from convexboost.learners._one_column import ExplainedFunctions, OneColumn, nodes_of_functions


@dataclass(frozen=True)
class BinFunction(Hypothesis):
    """A function of one binned feature: leaf values, and the leaf of each bin."""

    feature: int
    leaf_of_bin: NDArray[np.uint8]
    values: Array  #: (n_leaves, n_outputs)
    cover: Array  #: training rows in each bin, by weight; all stumps of a feature and a member share it

    kind = "bin_function"
    __repr__ = brief

    def key(self) -> Hashable:
        """Return the split."""
        return self.feature, self.leaf_of_bin.tobytes()

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
        covers: dict[int, list[Array]] = {}
        for weight, h in terms:
            assert isinstance(h, BinFunction)
            if h.feature in tables:
                tables[h.feature] += weight * h.table
            else:
                tables[h.feature] = weight * h.table
            covers.setdefault(h.feature, []).append(h.cover)
        return [
            (1.0, cls(j, np.arange(len(table), dtype=np.uint8), table, mean_cover(covers[j])))
            for j, table in tables.items()
        ]

    @classmethod
    def nodes(cls, terms: Sequence[Term], mapper: Any) -> Nodes:
        """Return a tree for each feature."""
        return nodes_of_functions(cls._functions(terms), mapper)

    @classmethod
    def explained(cls, terms: Sequence[Term], mapper: Any) -> Explained:
        """Return the function of each feature."""
        return ExplainedFunctions(cls._functions(terms))

    @classmethod
    def _functions(cls, terms: Sequence[Term]) -> list[OneColumn]:
        merged = [h for _, h in cls.merge(terms) if isinstance(h, BinFunction)]
        return [OneColumn(h.feature, h.table, h.cover) for h in sorted(merged, key=lambda h: h.feature)]

    @classmethod
    def pack(cls, terms: Sequence[Term]) -> Packed:
        """Return one table for each stump."""
        stumps = [(weight, h) for weight, h in terms if isinstance(h, BinFunction)]
        return Tables([h.feature for _, h in stumps], [weight * h.table for weight, h in stumps])

    @classmethod
    def to_plain(cls, hypotheses: Sequence[Self]) -> Plain:
        """Lay the leaves of bins one after the other, and the values."""
        values = [h.values for h in hypotheses]
        covers, number = distinct([h.cover for h in hypotheses])
        arrays = {
            "feature": np.array([h.feature for h in hypotheses], np.int64),
            "leaf_of_bin": joined([h.leaf_of_bin for h in hypotheses], np.uint8),
            "leaf_ends": ends_of(values),
            "values": np.concatenate(values),
            "covers": joined(covers, float),
            "cover_ends": ends_of(covers),
            "cover": number,
        }
        return Plain({}, arrays)

    @classmethod
    def from_plain(cls, plain: Plain, count: int, mapper: Any, n_outputs: int) -> list[Self]:
        """Cut the arrays; every bin of a feature has a leaf, and every leaf a value."""
        n_bins = np.diff(mapper.offsets)
        features = plain.indices("feature", np.int64, count, below=len(n_bins))
        ends = np.cumsum(n_bins[features])
        leaf_of_bin = plain.array("leaf_of_bin", np.uint8, int(n_bins[features].sum()))
        values = plain.array("values", float, None, n_outputs)
        cover_ends = plain.array("cover_ends", np.int64, None)
        rows = plain.array("covers", float, None)
        plain.need("covers", (rows >= 0.0).all(), "numbers that are not negative")
        covers = [rows[part] for part in plain.slices("cover_ends", len(cover_ends), len(rows))]
        number = plain.indices("cover", np.int64, count, below=len(covers)).tolist()
        out = []
        slices = plain.slices("leaf_ends", count, len(values))
        for j, end, part, k in zip(features.tolist(), ends.tolist(), slices, number, strict=True):
            leaves = leaf_of_bin[end - int(n_bins[j]) : end]
            known = leaves.max() < part.stop - part.start
            plain.need("leaf_of_bin", known, "numbers of leaves that have values")
            plain.need("cover_ends", len(covers[k]) == n_bins[j], "a number for each bin")
            out.append(cls(j, leaves, values[part], covers[k]))
        return out


def distinct(arrays: Sequence[Array]) -> tuple[list[Array], NDArray[np.int64]]:
    """Return arrays that many share, each once, and the number of each one given."""
    places: dict[int, int] = {}
    number = [places.setdefault(id(array), len(places)) for array in arrays]
    found = [arrays[number.index(k)] for k in range(len(places))]
    return found, np.array(number, np.int64)


def mean_cover(covers: Sequence[Array]) -> Array:
    """Return the mean cover of the members of an ensemble; functions of one member share theirs."""
    found = list({id(cover): cover for cover in covers}.values())
    return found[0] if len(found) == 1 else np.asarray(np.mean(found, axis=0))


@dataclass(frozen=True)
class Tables:
    """The sum of a table for each of some features."""

    features: list[int]
    tables: list[Array]

    __repr__ = brief

    def add_to(self, F: Array, inputs: Any) -> None:
        """Add them all in one pass over the rows."""
        inputs.add_tables(F, self.features, self.tables)
