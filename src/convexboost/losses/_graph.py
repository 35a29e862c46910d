"""Terms that pull the scores of neighbours in a graph together, to be added to a loss."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.parameters import WRITTEN
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import shown
from convexboost.kernels.leaves import leaf_sums
from convexboost.losses._calculus import Coupling
from convexboost.losses._groups import Groups
from convexboost.losses._loss import is_positive
from convexboost.losses._objective import BoundLoss


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Coupling):
    """strength · Σ_e w_e d(F̄_i, F̄_j) / Σ_e w_e; its subclasses describe the parameters."""

    edges: Any
    strength: float = 1.0
    weights: Any = None

    objective: ClassVar[type[EdgeMean]]
    takes_groups = True  # the nodes that rows belong to
    splits_rows = False

    def __post_init__(self) -> None:
        if not is_positive(self.strength):
            raise ValueError(f"`strength` must be positive, got {self.strength!r}")
        edges, weights = self.edges, self.weights
        if sp.issparse(edges):
            if edges.shape[0] != edges.shape[1]:
                raise ValueError(f"`edges` must be a square matrix, got shape {edges.shape}")
            if weights is not None:
                raise ValueError("`weights` and a matrix as `edges` cannot be combined: it holds the weights")
            edges = sp.csr_array(edges, dtype=float, copy=True)
            values = edges.data
        else:
            edges = np.array(edges)
            if edges.ndim != 2 or edges.shape[1] != 2:
                raise ValueError(f"`edges` must have shape (m, 2), got {edges.shape}")
            values = np.ones(len(edges)) if weights is None else np.array(weights, float)
            if values.shape != (len(edges),):
                raise ValueError(f"`weights` must have shape ({len(edges)},), got {values.shape}")
            weights = None if weights is None else values
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"the weights of `edges` must be finite and not negative, got {values.min():g}")
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "weights", weights)

    @cached_property
    def _list(self) -> tuple[NDArray[Any], Array]:
        """Ends and weights of the edges, each once."""
        if not sp.issparse(self.edges):
            return self.edges, np.ones(len(self.edges)) if self.weights is None else self.weights
        upper = sp.triu(self.edges + self.edges.T, 1, "coo")
        return np.column_stack([upper.row, upper.col]), upper.data

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = (np.array_equal(a, b) for a, b in zip(self._list, other._list, strict=True))
        return self.strength == other.strength and all(same)

    def __hash__(self) -> int:
        ends, weights = self._list
        return hash((type(self), self.strength, *ends.ravel().tolist(), *weights.tolist()))

    def __repr__(self) -> str:
        if sp.issparse(self.edges) or self.edges.size > WRITTEN:
            return f"{type(self).__name__}(<{len(self._list[0])} edges>, strength={self.strength:g})"
        return super().__repr__()

    def couple(self, space: FunctionSpace, n_outputs: int, groups: Any) -> EdgeMean:
        """Find the rows of the nodes, and drop edges that join nothing."""
        ends, weights = self._list
        if groups is None:
            self._check_rows(space.n_samples)
            node, n_nodes = np.arange(space.n_samples), space.n_samples
        else:
            given = Groups.needed(groups, self, space.n_samples)
            labels, node = np.unique(given.labels, return_inverse=True)
            n_nodes = len(labels)
            if len(ends) and (labels.dtype.kind in "biuf") != (ends.dtype.kind in "biuf"):
                raise ValueError(
                    "`edges` must hold labels like those in `groups`, got "
                    f"{shown(ends[0, 0])} and {shown(labels[0])}"
                )
            place = np.searchsorted(labels, ends).clip(max=n_nodes - 1)
            known = (labels[place] == ends).all(axis=1)
            ends, weights = place[known], weights[known]
        real = (ends[:, 0] != ends[:, 1]) & (weights > 0)
        ends, weights = ends[real].astype(np.int64), weights[real]
        return self.objective(
            ends,
            self.strength * weights / max(weights.sum(), 1e-300),
            node,
            n_nodes,
            space=space,
            n_outputs=n_outputs,
        )

    def _check_rows(self, n_rows: int) -> None:
        ends = self._list[0]
        advice = "; where rows are left out (early stopping, cross-validation, weight 0) give `groups`"
        if sp.issparse(self.edges):
            if self.edges.shape[0] != n_rows:
                raise ValueError(
                    f"`edges` has {self.edges.shape[0]} nodes, but there are {n_rows} rows{advice}"
                )
        elif len(ends):
            if ends.dtype.kind not in "iu":
                raise ValueError(
                    f"`edges` must be row numbers unless `groups` are given, got {shown(ends[0, 0])}"
                )
            if not 0 <= ends.min() <= ends.max() < n_rows:
                bad = ends[(ends < 0) | (ends >= n_rows)][0]
                raise ValueError(f"`edges` joins row {bad}, but there are {n_rows} rows{advice}")


@dataclass(frozen=True, repr=False)
class EdgeMean(BoundLoss):
    """R[F] = Σ_e share_e d(F̄_i, F̄_j), over edges e = (i, j); F̄_i is the mean of the rows of node i."""

    ends: NDArray[np.int64]  #: (m, 2)
    share: Array  #: of each edge; they add up to `strength`
    node: NDArray[np.int64]  #: of each row
    n_nodes: int

    @abstractmethod
    def compare(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Return d(A, B) per edge and its derivative in A; that in B is its negative."""

    @cached_property
    def mass(self) -> Array:
        """P, the weight of each node."""
        return self.space.masses(self.node, self.n_nodes)

    @cached_property
    def degree(self) -> Array:
        """Return the shares of all edges at each node."""
        found = np.bincount(self.ends.ravel(), np.repeat(self.share, 2), self.n_nodes)
        return found.astype(float, copy=False)

    @cached_property
    def _gather(self) -> Any:
        """Sparse, (n_nodes, m): from edges to nodes, + at the first end, − at the second."""
        m = len(self.share)
        signs = np.concatenate([self.share, -self.share])
        return sp.csr_array((signs, (self.ends.T.ravel(), np.tile(np.arange(m), 2))), (self.n_nodes, m))

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient: the partial derivative at a node over its weight, in all of its rows."""
        means = leaf_sums(F, self.space, self.node, self.n_nodes)[:, 1:] / self.mass[:, None]
        distances, slopes = self.compare(means[self.ends[:, 0]], means[self.ends[:, 1]])
        G = self._gather @ slopes / self.mass[:, None]
        return float(np.sum(self.share * distances)), G[self.node]
