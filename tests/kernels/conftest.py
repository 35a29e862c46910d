"""The kernels against their slow twins, on small data: run compiled, and again with NUMBA_DISABLE_JIT=1."""

from dataclasses import dataclass

import numpy as np
import pytest

from convexboost.kernels.histogram import DenseBins, SparseBins


@dataclass
class Binned:
    """Random codes of a few features with different numbers of bins, the last bin of each being "missing"."""

    codes: np.ndarray
    offsets: np.ndarray
    weight: np.ndarray
    G: np.ndarray

    @classmethod
    def random(cls, seed, n=40, widths=(2, 5, 9), n_outputs=3):
        rng = np.random.default_rng(seed)
        codes = np.array([rng.integers(0, width, n) for width in widths], np.uint8)
        weight = rng.uniform(0.1, 2.0, n)
        return cls(codes, np.cumsum([0, *widths]), weight / weight.sum(), rng.normal(size=(n, n_outputs)))

    @property
    def bins(self):
        return DenseBins(self.codes, self.offsets)

    @property
    def sparse_bins(self):
        """The same, without the most frequent bin of each column."""
        default = np.array([np.bincount(column).argmax() for column in self.codes])
        rows = [np.flatnonzero(column != d) for column, d in zip(self.codes, default, strict=True)]
        pointers = np.cumsum([0] + [len(r) for r in rows])
        stored = [column[r] for column, r in zip(self.codes, rows, strict=True)]
        return SparseBins(pointers, np.concatenate(rows), np.concatenate(stored), default, self.offsets)


@pytest.fixture(params=range(4))
def binned(request):
    return Binned.random(request.param, n_outputs=1 + request.param)
