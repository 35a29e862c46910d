"""A table looked up row by row."""

import numpy as np

from convexboost.core.compiling import kernel


@kernel
def _add_lookup(F, codes, table, start, stop, K):
    for n in range(np.uint64(start), np.uint64(stop)):
        c = np.uint64(codes[n])
        for k in range(np.uint64(K)):
            F[n, k] += table[c, k]


@kernel
def add_lookup(F, codes, table, start, stop):
    """F[n, :] += table[codes[n], :] for rows start … stop − 1."""
    if F.shape[1] == 1:
        _add_lookup(F, codes, table, start, stop, 1)
    else:
        _add_lookup(F, codes, table, start, stop, F.shape[1])
