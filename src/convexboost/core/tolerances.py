"""Tolerances and block sizes: each number that says "equal", "zero" or "how many at a time".

Numbers that only one module needs stay there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

#: A block of rows that are worked on together: its temporary arrays stay in the cache.
BLOCK = 4096
#: A block may hold more rows, up to this many values, so that the cost per call is amortised.
BLOCK_VALUES = 65536

#: How close to a kink counts as the kink, relative to the scores: the rounding of some hundred additions.
KINK = 2.0**-46

#: Sums over rows that differ by less, relatively, are equal: rows may be in another order, or copies.
TIE = 1e-12

#: Rounds whose values differ by less than this share of all that was gained are on a plateau.
PLATEAU = 1e-9

#: A split, a function or a point must beat the best one so far by this share: rounding does not choose.
BETTER = 1e-9

#: A length or a slope this much smaller than the first one counts as zero.
ROUNDING = 1e-13

#: A weight below this is the rounding of a difference of weights, which add up to 1.
NOTHING = 1e-15


def as_good_as(best: float, first: float) -> float:
    """Return what a round must reach to be as good as the best one; `first` is the value at the start.

    The first such round counts as the best one: neither the order of the rows nor a shift of the targets,
    which change the last digits, shall decide.
    """
    size = max(abs(best) if math.isfinite(best) else 0.0, abs(first) if math.isfinite(first) else 0.0)
    return best + TIE * size


def blocks(n_rows: int, n_outputs: int = 1) -> Iterator[slice]:
    """Cut the rows into blocks, at least one: temporary arrays stay small."""
    size = max(BLOCK, BLOCK_VALUES // n_outputs)
    return (slice(start, min(start + size, n_rows)) for start in range(0, max(n_rows, 1), size))
