"""Piecewise linear objectives, written out for a linear program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief


@dataclass(frozen=True)
class Pieces:
    """R[F] = constant + ⟨linear, F⟩ + Σ_i weight_i max of the pieces m with group_m = i.

    Piece m is slopes_m · F + constants_m, F being the scores row after row.  All of it is in ordinary sums:
    the sample weights are in `linear` and `weight`.
    """

    constant: float
    linear: Array  #: (n_samples, n_outputs)
    slopes: Any  #: sparse, (n_pieces, n_samples · n_outputs)
    constants: Array
    group: NDArray[np.int64]
    weight: Array  #: (n_groups,)

    __repr__ = brief

    @classmethod
    def above(cls, y: Array, low: float, high: float, space: FunctionSpace) -> Pieces:
        """Σ_k max(low (f_k − y_k), high (f_k − y_k)): linear, plus what lies above the target."""
        n, size = space.n_samples, y.size
        below = np.repeat(low * space.weight[:, None], y.shape[1], axis=1)
        return cls(
            constant=-float(np.sum(below * y)),
            linear=below,
            slopes=sp.vstack([sp.eye_array(size), sp.csr_array((size, size))], "csr"),
            constants=np.concatenate([-y.ravel(), np.zeros(size)]),
            group=np.tile(np.arange(size), 2),
            weight=np.repeat((high - low) * space.weight, size // n),
        )
