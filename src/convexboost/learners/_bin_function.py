"""A function of one binned feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from convexboost.core.hypotheses import Hypothesis, Term
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.kernels import parallel
from convexboost.kernels.lookup import add_lookup


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
