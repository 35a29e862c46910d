"""The hinge of pairs of documents: a better one should score 1 more than a worse one of its query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from convexboost.core.cached import cached_property
from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import KINK
from convexboost.kernels.lookup import add_lookup
from convexboost.kernels.ranking import Pairs
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss, prepare
from convexboost.losses._objective import BoundLoss
from convexboost.losses._pieces import Pieces
from convexboost.losses._scores import Lookup

#: Places for pairs that the linear program may look at: more would not fit in memory.
MAX_PLACES = 50_000_000


@dataclass(frozen=True)
class RankingHinge(Loss):
    """R[F] = Σ ω_ij max(0, 1 − f_i + f_j) / Σ ω_ij over the pairs of a query in which i has the higher grade.

    ω_ij = v_q w_i w_j with sample weights w and query weights v: sample weight 2 is the row twice, query
    weight 2 the query twice.  The space's weights are proportional to v_q w_i.  At a kink, a margin of
    exactly 1, the subgradient is 0.  Grades are any numbers; only their order within a query matters.
    """

    name: ClassVar[str] = "ranking_hinge"
    task: ClassVar[str] = "ranking"
    needs_groups = True
    spreads_rows = True  # whole queries

    def formula(self, f: str = "f") -> str:
        """max(0, 1 − f_i + f_j)."""
        return f"max(0, 1 − {f}_i + {f}_j)"

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> PairwiseHinge:
        """Find the pairs; `groups` are the queries."""
        y, n_outputs = prepare(self, y, space, None)
        queries = Groups.needed(groups, self, len(y))
        weight = space.weight * space.total
        if queries.weight is not None:
            weight = weight / queries.weight
        pairs = Pairs.of(y[:, 0], queries.numbers, weight, space.communicator)
        if not space.communicator.any(pairs.n_queries):
            raise ValueError(
                "`y` must hold two different grades in some query, but in every query all tie "
                f"(n_samples={len(y)})"
            )
        objective = PairwiseHinge(y, pairs, space=space, n_outputs=n_outputs)
        if objective.pair_weight == 0.0:
            raise ValueError(
                "`sample_weight` must give some pair of rows in a query a weight, but the products of the "
                "weights of two rows are all too small for a float"
            )
        return objective


@dataclass(frozen=True, repr=False)
class PairwiseHinge(BoundLoss):
    """The hinge on fixed pairs.

    With better_n and worse_n the weights of the rows that violate a pair with n, the partial derivative is
    ∂R/∂f_n = v_q w_n (better_n − worse_n) / Σω, and v_q w_n is the space's weight p_n times its total.
    """

    y: Array
    pairs: Pairs

    @property
    def targets(self) -> Array:
        """Return the grades."""
        return self.y

    @property
    def has_pieces(self) -> bool:
        """Return True."""
        return True

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient."""
        value, gradient = self.advance(F, None, None, 1)
        return value, gradient.values

    def advance(
        self, F: Array, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[float, Gradient]:
        """F += table[codes]; R[F] = Σ_n p_n (slope · better_n + f_n g_n), and g."""
        if lookup is not None:
            add_lookup(F, *lookup, 0, len(F))
        f = F[:, 0]
        # A row i loses to all worse ones above f_i − 1, but for rounding.
        better, worse = self.pairs.count(f, f - 1.0 + KINK * (np.abs(f) + 1.0), n_threads)
        g = (better - worse) * self._slope
        value = self.space.mean(self._slope * better + self.pairs.centre(f) * g)
        return max(value, 0.0), Gradient(g[:, None], self.space)

    @cached_property
    def pair_weight(self) -> float:
        """Return the weight of all pairs, Σω / (unit · total)."""
        return self.space.mean(self.pairs.all()[0])

    @property
    def _slope(self) -> float:
        """Return what one unit of weight adds to the subgradient."""
        return 1.0 / self.pair_weight

    def loss_constants(self) -> Constants:
        """‖∇R‖ is largest if each row violates all its pairs on one side."""
        most = np.maximum(*self.pairs.all()) * self._slope
        return Constants(lipschitz=self.space.norm(most[:, None]), minimum=0.0)

    def start(self) -> Array:
        """Return 0: constants change nothing."""
        return np.zeros(1)

    def pieces(self) -> Pieces:
        """max(0, 1 − f_i + f_j), pair after pair."""
        pairs, p = self.pairs, self.space.weight
        n_places = int((np.diff(pairs.starts).astype(float) ** 2).sum())
        if n_places > MAX_PLACES:
            raise ValueError(f"`exact` needs fewer pairs of rows: {n_places:,}, at most {MAX_PLACES:,}")
        high, low = [], []
        for begin, end in zip(pairs.starts[:-1], pairs.starts[1:], strict=True):
            grade, rows = pairs.grade[begin:end], pairs.rows[begin:end]
            i, j = np.nonzero(grade[:, None] > grade)
            high.append(rows[i])
            low.append(rows[j])
        i, j = np.concatenate(high), np.concatenate(low)
        n, m = len(p), len(i)
        unit_weight = np.zeros(n)
        unit_weight[pairs.rows] = pairs.weight
        entries = np.repeat([-1.0, 1.0], m), (np.tile(np.arange(m), 2), np.concatenate([i, j]))
        return Pieces(
            constant=0.0,
            linear=np.zeros((n, 1)),
            slopes=sp.csr_array(entries, (2 * m, n)),  # the second half is 0
            constants=np.repeat([1.0, 0.0], m),
            group=np.tile(np.arange(m), 2),
            weight=self._slope * p[j] * unit_weight[i],
        )
