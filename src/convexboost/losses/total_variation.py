"""The total variation of the scores on a graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array
from convexboost.losses._graph import EdgeMean, Graph
from convexboost.losses._leaves import residual_sign
from convexboost.losses._loss import Loss


@dataclass(frozen=True, repr=False)
class AbsoluteDifferences(EdgeMean):
    """|F̄_i − F̄_j|₁."""

    def compare(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Return the absolute difference and its sign."""
        return np.abs(A - B).sum(axis=1), residual_sign(A, B)

    def loss_constants(self) -> Constants:
        """‖∇R‖² = Σ_i |Σ_e ± share_e|²/P_i ≤ k Σ_i degree_i²/P_i; reached where a graph has two sides."""
        slope = math.sqrt(self.n_outputs * float(np.sum(self.degree**2 / self.mass)))
        return Constants(lipschitz=slope, minimum=0.0)


@dataclass(frozen=True, eq=False, repr=False)
class TotalVariation(Graph):
    """strength · Σ_e w_e |F_i − F_j|₁ / Σ_e w_e, over edges e = (i, j): pulls neighbours to the same score.

    ``Absolute() + TotalVariation(edges, 0.5)``: total variation on a graph (Rudin, Osher and Fatemi 1992),
    the penalty of the fused lasso (Tibshirani et al. 2005).  Not smooth; at the kink, where both ends are
    equal: 0.

    Parameters
    ----------
    edges : (m, 2) array, or scipy sparse matrix
        Without `groups` in `fit`: row numbers of the X given to `fit`.  With `groups`: labels of nodes, each
        row of X belonging to the node that `groups` names; the score of a node is the mean over its rows, by
        sample weight, and edges with an end that has no rows do not take part.  A sparse matrix is an
        adjacency matrix: entry (i, j) is the weight of the edge between i and j.  Edges from a node to
        itself are no edges.
    strength : float, default=1.0
        The factor of the term.
    weights : (m,) array, optional
        The weights w_e of the edges, not negative; all 1 if not given.  Not with a sparse matrix, which holds
        the weights itself.

    Row numbers are lost when rows are left out: by `early_stopping`, cross-validation, zero sample weight.
    Give `groups` then (``groups=np.arange(len(X))`` and the edges as they are), and also with `X_val`.  A row
    number beyond the rows is an error; one that fits by accident cannot be noticed.

    """

    name: ClassVar[str] = "total_variation"
    objective = AbsoluteDifferences

    def formula(self, f: str = "f") -> str:
        """Mean over the edges of |f_i − f_j|, times the strength."""
        return f"{self.strength:g} mean_ij |{f}_i − {f}_j|"

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """A path of the nodes 0 to 3."""
        return (cls([(0, 1), (1, 2), (2, 3)], 0.5, [1.0, 2.0, 1.0]),)
