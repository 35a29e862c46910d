"""Rows that belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.losses._loss import Loss


@dataclass(frozen=True)
class Groups:
    """Which rows belong together: queries, groups of people, the parts of one structure, nodes of a graph."""

    labels: NDArray[Any]  #: one per row
    weight: Array | None = None  #: one per row, the same within a group; None: 1

    __repr__ = brief

    @classmethod
    def of(cls, groups: Any) -> Groups | None:
        """Take labels as they are."""
        return groups if groups is None or isinstance(groups, Groups) else cls(np.asarray(groups))

    @classmethod
    def needed(cls, groups: Any, loss: Loss, n_rows: int) -> Groups:
        """Insist on a label for every row."""
        found = cls.of(groups)
        if found is None:
            raise ValueError(f"`groups` are needed by the loss {loss.name}: one label per row")
        if len(found.labels) != n_rows:
            raise ValueError(f"`groups` must have {n_rows} rows like `y`, got {len(found.labels)}")
        return found

    def __getitem__(self, rows: Any) -> Groups:
        return Groups(self.labels[rows], None if self.weight is None else self.weight[rows])

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Return 0, 1, … instead of the labels."""
        return np.unique(self.labels, return_inverse=True)[1].astype(np.int64, copy=False)
