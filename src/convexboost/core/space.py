"""The function space L²(P) on the training points, and the weights of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from convexboost.core.text import brief
from convexboost.core.tolerances import blocks

Array = NDArray[np.float64]
Codes = NDArray[np.int32]


#: Numbers whose ratio is closer to a whole number than this are multiples of each other.
SAME = 1e-9
#: A multiple that is further from a whole number has a remainder; what is closer may be rounding.
REMAINDER = 1e-3
#: The most units that all weights are counted in.
MOST_COUNTS = 2.0**30

#: Weights are kept between 2^±WEIGHT_BITS as a rule: neither a sum nor a product of two can overflow.
WEIGHT_BITS = 400
#: A weight this much smaller than the largest is 0: its share could not be told from 0.
NO_WEIGHT = 2.0**-900


def in_range(weight: Array) -> Array:
    """Multiply weights that are huge or tiny by a power of two, which changes no ratio."""
    largest = float(weight.max())
    bits = math.frexp(largest)[1]
    shift = min(max(bits, -WEIGHT_BITS), WEIGHT_BITS) - bits
    if shift != 0:
        weight, largest = np.ldexp(weight, shift), math.ldexp(largest, shift)
    tiny = weight < NO_WEIGHT * largest
    return np.where(tiny, 0.0, weight) if tiny.any() else weight


@dataclass(frozen=True)
class FunctionSpace:
    """L²(P) on the training points: ⟨F, G⟩ = Σ_n p_n ⟨F_n, G_n⟩ (Section 2 of the paper).

    The only place that knows the sample weights.  The functional gradient of a mean loss is the row-wise
    subgradient, with no 1/N: the weight is inside the inner product.
    """

    weight: Array  #: p, shape (n_samples,); sums to 1 over all the rows of the problem
    total: float = 1.0  #: the sum of the sample weights before they were normalised

    __repr__ = brief

    @classmethod
    def of(cls, n_samples: int, sample_weight: Array | None = None) -> Self:
        """Make the space with p proportional to `sample_weight` (uniform when None)."""
        if sample_weight is None:
            return cls(np.full(n_samples, 1.0 / n_samples), float(n_samples))
        weight = in_range(np.asarray(sample_weight, float))
        total = math.fsum(weight)  # exact: the order of the rows does not change a bit of p
        return cls(weight / total, total)

    @property
    def n_samples(self) -> int:
        """Return the number of training points."""
        return len(self.weight)

    @property
    def row(self) -> float:
        """Return the weight of a row; weights below 1 on average are shares, not parts of a row."""
        return 1.0 / max(self.total, float(len(self.weight)))

    def part(self, rows: slice) -> FunctionSpace:
        """Return the space of some rows, with the weights they have here."""
        return FunctionSpace(self.weight[rows], self.total)

    def inner(self, F: Array, G: Array) -> float:
        """⟨F, G⟩."""
        # einsum without BLAS: the sum does not depend on the number of threads.
        return float(np.einsum("n,nk,nk->", self.weight, F, G))

    def norm(self, F: Array) -> float:
        """‖F‖."""
        return math.sqrt(self.inner(F, F))

    def mean(self, rows: NDArray[Any]) -> float:
        """Σ_n p_n rows_n."""
        return sum(float(np.einsum("n,n->", self.weight[b], rows[b])) for b in blocks(len(rows)))

    @cached_property
    def counts(self) -> tuple[Array, float] | None:
        """Return the weights as multiples of the largest unit that they have in common, and this unit.

        None where there is no such unit, or the multiples add up to more than MOST_COUNTS.  The unit is found
        by Euclid's algorithm on all weights at once.  Its remainders carry the rounding of every step, so
        each unit is also tried as the nearest fraction of the largest weight.
        """
        weight = self.weight
        total, largest = float(weight.sum()), float(weight.max())
        unit = tried = float(weight.min())
        while total <= MOST_COUNTS * unit:
            counts = weight / tried
            whole = np.rint(counts)
            if (np.abs(counts - whole) <= SAME * counts).all() and whole.sum() <= MOST_COUNTS:
                return whole, tried
            counts = weight / unit
            rest = np.abs(counts - np.rint(counts))
            rest = rest[rest > REMAINDER]
            if len(rest) == 0:
                break
            unit *= float(rest.min())
            tried = largest / round(largest / unit)
        return None

    def masses(self, kind: NDArray[Any]) -> Array:
        """Return the weight of each kind of row, by its number; the order of the rows does not change a bit.

        Nor do copies, where weights can be counted.
        """
        if self.counts is not None:
            whole, unit = self.counts
            # The unit has rounding of its own: what should be 1 in all is 1.
            total = 1.0 if math.isclose(whole.sum() * unit, 1.0, rel_tol=SAME) else whole.sum() * unit
            return total * (np.bincount(kind, whole) / whole.sum())
        order = np.lexsort((self.weight, kind))
        return np.bincount(kind[order], self.weight[order]).astype(float, copy=False)

    def shares(self, y: Any, n_classes: int) -> Array:
        """Return the weight of each class."""
        return np.bincount(y, self.weight, n_classes).astype(float, copy=False)

    @cached_property
    def _is_uniform(self) -> bool:
        return bool((self.weight == self.weight[0]).all())

    def mass(self, rows: NDArray[np.bool_]) -> float:
        """Return the weight of some rows."""
        if self._is_uniform:
            return np.count_nonzero(rows) / len(rows)
        return float(np.sum(self.weight, where=rows))

    def gradient(self, partials: Array) -> Array:
        """Turn ordinary partial derivatives ∂R/∂F_nk into the functional gradient: divide by p_n."""
        return partials / self.weight[:, None]
