"""A table looked up row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexboost.core.compiling import kernel
from convexboost.core.space import Array


def add_lookup(F: Array, codes: Any, table: Array, start: int, stop: int) -> None:
    """F[n, :] += table[codes[n], :] for rows start … stop − 1."""
    if F.shape[1] == 1:
        _add_lookup(F[:, 0], codes, table[:, 0], start, stop)
    else:
        _add_lookup(F, codes, table, start, stop)


@kernel(allocates=False)
def _add_lookup(F, codes, table, start, stop):
    """Do so; where there is one output, F and the table are vectors."""
    for n in range(np.uint64(start), np.uint64(stop)):
        c = np.uint64(codes[n])
        if F.ndim == 1:
            F[n] += table[c]
        else:
            for k in range(np.uint64(F.shape[1])):
                F[n, k] += table[c, k]
