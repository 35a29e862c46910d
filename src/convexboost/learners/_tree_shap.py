"""Contributions of the columns of X to a sum of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.explained import Explained
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.kernels import parallel
from convexboost.kernels.shap import (
    MOST_COLUMNS,
    Paths,
    Quadrature,
    add_against,
    add_contributions,
    add_interactions,
    find_paths,
)
from convexboost.learners._nodes import BinTrees


@dataclass(frozen=True, eq=False)
class ExplainedTrees(Explained):
    """Trees on bins; statistics count for the column of X that they are made of."""

    paths: Paths
    values: Array  #: of leaves
    quadrature: Quadrature
    mean: Array

    __repr__ = brief

    @classmethod
    def of(cls, trees: BinTrees, sources: NDArray[np.int64]) -> ExplainedTrees:
        """Find the path to each node."""
        n_nodes, cover = len(trees.feature), trees.cover_of_nodes()
        ends = np.append(np.flatnonzero(np.diff(trees.tree, prepend=-1)), n_nodes).astype(np.int64)
        parent, column, previous, slot, n_columns = np.empty((5, n_nodes), np.int32)
        paths = Paths(
            ends,
            trees.feature,
            trees.masks,
            trees.leaf,
            parent,
            np.empty(n_nodes, bool),
            column,
            previous,
            np.empty(n_nodes),
            slot,
            n_columns,
        )
        find_paths(paths, trees.child, cover, sources)
        is_leaf, root = trees.feature < 0, cover[ends[trees.tree]]
        share = cover[is_leaf] / np.where(root[is_leaf] > 0.0, root[is_leaf], 1.0)
        mean = share @ trees.values[trees.leaf[is_leaf]]
        return cls(paths, trees.values, _quadrature((int(n_columns.max(initial=1)) + 1) // 2), mean)

    def expectation(self) -> Array:
        """Return the mean over the training rows."""
        return self.mean

    def add_contributions(self, out: Array, inputs: Any, background: Any) -> None:
        """Add the Shapley values of the columns, on threads."""
        n_nodes, n_rows = len(self.paths.feature), out.shape[2]

        def task(start: int, stop: int) -> None:
            if background is None:
                add_contributions(out, inputs.codes, self.paths, self.values, self.quadrature, start, stop)
            else:
                add_against(out, inputs.codes, background.codes, self.paths, self.values, start, stop)

        operations = 10.0 * n_nodes * n_rows
        if background is not None:
            most = int(self.paths.n_columns.max(initial=0))
            if most > MOST_COLUMNS:
                raise ValueError(
                    f"`background` must be None for trees that split more than {MOST_COLUMNS} columns on a "
                    f"path, got one with {most}"
                )
            operations *= len(background)
        parallel.run(task, n_rows, operations, inputs.n_threads)

    def add_interactions(self, out: Array, inputs: Any) -> None:
        """Add the interactions of pairs of columns, on threads."""

        def task(start: int, stop: int) -> None:
            add_interactions(out, inputs.codes, self.paths, self.values, self.quadrature, start, stop)

        parallel.run(task, out.shape[3], 100.0 * len(self.paths.feature) * out.shape[3], inputs.n_threads)


def _quadrature(most: int) -> Quadrature:
    """Return the rules with up to so many points."""
    points, weights = np.full((most + 1, most), 0.5), np.zeros((most + 1, most))
    for m in range(1, most + 1):
        x, w = np.polynomial.legendre.leggauss(m)
        points[m, :m], weights[m, :m] = (x + 1.0) / 2.0, w / 2.0
    return Quadrature(points, weights)
