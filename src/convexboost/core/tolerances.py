"""Tolerances and block sizes: each number that says "equal", "zero" or "how many at a time"."""

from __future__ import annotations

import math
from collections.abc import Iterator

#: Rows worked on together where each needs several numbers for a moment.
BLOCK = 4096
#: They may have more, up to so many numbers: each block costs some calls.
NUMBERS = 65536

#: How close to a kink counts as the kink, relative to the scores: what some hundred additions may round.
KINK = 2.0**-46

#: Sums over rows that differ by less, relatively, are equal: rows may be in another order, or copies.
TIE = 1e-12

#: A length this much shorter than the first one counts as zero.
ROUNDING = 1e-13


def as_good_as(best: float, first: float) -> float:
    """Return what a round must reach to be as good as the best one; `first` is the value at the start.

    The first such round counts as the best one: neither the order of the rows nor a shift of the targets,
    which change the last digits, shall decide.
    """
    return best + TIE * max((abs(x) for x in (best, first) if math.isfinite(x)), default=0.0)


def blocks(n_rows: int, n_outputs: int = 1) -> Iterator[slice]:
    """Cut the rows into blocks: temporary arrays stay small, and sums do not depend on threads."""
    size = max(BLOCK, NUMBERS // n_outputs)
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))
