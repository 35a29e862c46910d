"""The squared differences of the scores on a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array
from convexboost.losses._graph import EdgeMean, Graph
from convexboost.losses._loss import Loss


@dataclass(frozen=True, repr=False)
class SquaredDifferences(EdgeMean):
    """½ ‖F̄_i − F̄_j‖²."""

    def compare(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Return half the squared difference, and the difference."""
        difference = A - B
        return 0.5 * np.sum(difference**2, axis=1), difference

    def loss_constants(self) -> Constants:
        """Λ = max over edges (i, j) of degree_i/P_i + degree_j/P_j.

        The smoothness is the largest eigenvalue of P^(−1/2) L P^(−1/2) = Bᵀ B, L the Laplacian matrix with
        the shares as weights, and so of B Bᵀ, which has a row per edge.  Scaled to the similar matrix with
        entries ± share_e'/P_i (e and e' meet in i), its row sums are those numbers (Gershgorin).  That is at
        most twice the eigenvalue, which is degree_i/P_i at least; Lanczos would be closer, but from below.
        Constant functions cost nothing: not strongly convex.
        """
        ratio = self.degree / self.mass
        largest = ratio[self.ends].sum(axis=1).max(initial=0.0)
        return Constants(smoothness=float(largest), minimum=0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(Graph):
    """(strength/2) · Σ_e w_e ‖F_i − F_j‖² / Σ_e w_e, over edges e = (i, j): neighbours get similar scores.

    ``HalfSquared() + Laplacian(edges, 0.5)``: the quadratic form of the graph's Laplacian matrix (Belkin,
    Niyogi and Sindhwani 2006).  Smooth.

    Parameters
    ----------
    edges : (m, 2) array, or scipy sparse matrix
        Row numbers, or labels of `groups`; `TotalVariation` says more.
    strength : float, default=1.0
        The factor of the term.
    weights : (m,) array, optional
        The weights w_e of the edges, not negative; all 1 if not given.  Not with a sparse matrix, which holds
        the weights itself.

    """

    name: ClassVar[str] = "laplacian"
    objective = SquaredDifferences

    def formula(self, f: str = "f") -> str:
        """Mean over the edges of ‖f_i − f_j‖², times half the strength."""
        return f"{self.strength / 2:g} mean_ij ‖{f}_i − {f}_j‖²"

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """A path of the nodes 0 to 3."""
        return (cls([(0, 1), (1, 2), (2, 3)], 0.5, [1.0, 2.0, 1.0]),)
