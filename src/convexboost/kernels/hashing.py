"""Random numbers and fingerprints by hashing (SplitMix64; Steele, Lea and Flood 2014).

A number that is drawn here depends on a seed and on the content of a row or the name of a node, never on the
position of a row or on how many numbers were drawn before.  So the order of the rows, the number of threads
and copies of a row do not change a result: a row of weight 2 is the row twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.compiling import kernel, part
from convexboost.core.space import as_columns
from convexboost.kernels import parallel

Fingerprints = NDArray[np.uint64]

#: The bits of ∞ and of the missing value of NumPy.
INFINITY, MISSING = np.array([np.inf, np.nan]).view(np.uint64)
#: Entries that are hashed at a time: a copy of them stays in the cache.
BLOCK_VALUES = 8192


def scramble(x: Any) -> Any:
    """Return a number of 64 bits that looks random for each one given: a scalar, or an array of them."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


_scramble = part(scramble)


@kernel(allocates=False)
def draw(seed, a, b):
    """Return a number in [0, 1) that depends on the seed and two whole numbers only."""
    x = (
        np.uint64(seed)
        + np.uint64(a + 1) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(b + 1) * np.uint64(0xD1B54A32D192ED03)
    )
    return np.float64(_scramble(x) >> np.uint64(11)) / 9007199254740992.0


@kernel
def fingerprints_of_codes(codes, out):
    """out[n] = a number that depends on the bins codes[n] only."""
    for n in range(len(codes)):
        x = np.uint64(0)
        for j in range(codes.shape[1]):
            x = x * np.uint64(0x100000001B3) + np.uint64(codes[n, j])
        out[n] = _scramble(x)


@kernel
def draw_rows(fingerprints, D, scale, seed, share, out):
    """out[n] = whether row n is drawn, which happens with probability `share`.

    It depends on the fingerprint of the row and on its target D[n], rounded to 1/scale: rows with equal
    inputs and different targets are drawn independently.
    """
    for n in range(len(D)):
        x = 0.0
        for k in range(D.shape[1]):
            x += (k + 1) * D[n, k]
        out[n] = draw(seed, np.int64(fingerprints[n] >> np.uint64(1)), np.int64(np.rint(scale * x))) < share


def fingerprints(X: Any, n_threads: int = 1) -> Fingerprints:
    """Return a number per row of a matrix, the same for equal rows; sparse or dense does not matter."""
    out = np.zeros(X.shape[0], np.uint64)
    if sp.issparse(X):
        entries = sp.coo_array(X, copy=True)
        entries.sum_duplicates()
        np.add.at(out, entries.row, hash_entries(entries.data, entries.col))
        return out
    columns, size = np.arange(X.shape[1]), max(BLOCK_VALUES // X.shape[1], 1)

    def task(first: int, last: int) -> None:
        for start in range(first, last, size):
            rows = slice(start, min(start + size, last))
            out[rows] = hash_entries(X[rows], columns).sum(axis=1)

    parallel.run(task, X.shape[0], X.shape[0] * X.shape[1], n_threads)
    return out


def fingerprints_of_groups(X: Any, groups: Any, n_threads: int = 1) -> Fingerprints:
    """Return a number per group of rows, numbered from 0: that of its distinct rows, in any order."""
    row = fingerprints(X, n_threads)
    _, distinct = np.unique(row + hash_entries(groups + 1.0, np.array([X.shape[1]])), return_index=True)
    out = np.zeros(int(groups.max(initial=-1)) + 1, np.uint64)
    np.add.at(out, groups[distinct], row[distinct])  # distinct rows: one of weight 2 is the row twice
    return out


def signature(X: Any, y: Any) -> int:
    """Return a number that tells sets of rows with their targets apart; their order does not matter."""
    targets = as_columns(y)
    rows = fingerprints(X) + hash_entries(targets, X.shape[1] + np.arange(targets.shape[1])).sum(axis=1)
    return int(scramble(rows).sum())


def hash_entries(values: Any, column: Any) -> Fingerprints:
    """Return a number for each entry of a matrix; 0 for zeros, which a sparse matrix leaves out."""
    out = np.array(values, float, order="C").view(np.uint64)  # a copy: kernels are compiled for one layout
    _hash(out.reshape(-1), np.asarray(column, np.int64))
    return out


@kernel(allocates=False)
def _hash(bits, column):
    """Replace the bits of numbers by their hashes; `column` repeats."""
    for start in range(0, len(bits), max(len(column), 1)):
        for j in range(len(column)):
            x = bits[start + j]
            if x << np.uint64(1) == np.uint64(0):
                bits[start + j] = 0
            else:
                if x << np.uint64(1) > INFINITY << np.uint64(1):  # all missing values are the same
                    x = MISSING
                bits[start + j] = _scramble(x + np.uint64(column[j] + 1) * np.uint64(0x9E3779B97F4A7C15))
