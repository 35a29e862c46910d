"""Subgradients of an objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from convexboost.core.cached import cached_property
from convexboost.core.hypotheses import Move
from convexboost.core.space import Array, FunctionSpace


class BinnedRows(Protocol):
    """Training rows whose columns are cut into bins: bin b of feature j is row offsets[j] + b of a table."""

    n_threads: int
    unit: float  #: the fixed-point number that stands for 1

    @property
    def n_features(self) -> int: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...

    @property
    def dense_codes(self) -> NDArray[np.uint8] | None:
        """Return the bin of each row, (n_features, n_samples); None where the columns are sparse."""


class Gradient:
    """A subgradient ∇R[F] in L²(P), shape (n_samples, n_outputs).

    A subclass may know a shorter form of itself.  It then overrides `leaf_sums` and `histogram`, which return
    None where the sums must be taken over `values`.
    """

    #: Whether it is small and helps the next evaluation of its loss; others are not kept.
    is_worth_keeping: bool = False
    #: A gradient of R + (l2/2) ‖F − start‖² has a part from each of the two terms, see `RidgeGradient`.
    l2: float = 0.0
    penalty: float = 0.0
    moves: Sequence[Move] = ()

    def __init__(self, values: Array, space: FunctionSpace) -> None:
        self.values, self.space = values, space

    @property
    def loss_part(self) -> Gradient:
        """Return the subgradient of the loss, without the ridge term."""
        return self

    @cached_property
    def norm(self) -> float:
        """‖∇‖."""
        return self.space.norm(self.values)

    def rows(self, rows: slice) -> Array:
        """Return its values in some rows."""
        return self.values[rows]

    def leaf_sums(self, leaf: Any, n_leaves: int) -> Array | None:
        """Return Σ p_n and, behind it, Σ p_n ∇_n over the rows of each leaf, if that needs no `values`."""
        return None

    def histogram(self, rows: BinnedRows) -> Array | None:
        """Return Σ p_n ∇_n over the rows of each bin, if that needs no `values`."""
        return None


class RidgeGradient(Gradient):
    """∇ + l2 · (F − start), the second part given as the moves that led there.

    Those are sums of hypotheses, so a set that knows its own inner products need not look at the rows.
    """

    def __init__(
        self, part: Gradient, l2: float, penalty: float, moves: list[Move], dense: Callable[[], Array]
    ) -> None:
        self.l2, self.moves, self.space, self._part, self._dense = l2, moves, part.space, part, dense
        self.penalty = penalty  #: (l2/2) ‖F − start‖², which is part of R[F]

    @property
    def loss_part(self) -> Gradient:
        """Return the subgradient of the loss, without the ridge term."""
        return self._part

    @cached_property
    def values(self) -> Array:  # type: ignore[override]
        """Return the dense form."""
        return self._part.values + self.l2 * self._dense()
