"""Hashing: numbers in range, that depend on content and not on position.

The fingerprints of matrices are in tests/estimators/test_members.py.
"""

import numpy as np
import pytest

from convexboost.kernels.hashing import draw, draw_rows, fingerprints_of_codes, scramble


@pytest.fixture(autouse=True)
def wrap_around():
    """Whole numbers overflow on purpose; NumPy warns of it where nothing is compiled."""
    with np.errstate(over="ignore"):
        yield


def test_scramble_is_splitmix64():
    """The first numbers of the generator with seed 0 are those of its states k · 0x9E3779B97F4A7C15."""
    states = np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert scramble(states).tolist() == expected
    assert [int(scramble(state)) for state in states] == expected


def test_draws_are_numbers_below_one():
    found = np.array([[draw(seed, a, b) for a in range(20)] for seed in (0, 2**62) for b in range(20)])
    assert ((found >= 0) & (found < 1)).all()
    assert len(np.unique(found)) == found.size
    assert 0.4 < found.mean() < 0.6


def test_rows_are_drawn_by_content():
    """Wherever a row lies and however often; equal bins with different targets are drawn independently."""
    rng = np.random.default_rng(0)
    codes, D = rng.integers(0, 3, (400, 2)).astype(np.uint8), rng.normal(size=(400, 2))

    def drawn(rows, seed=1):
        marks, out = np.empty(len(rows), np.uint64), np.empty(len(rows), np.bool_)
        fingerprints_of_codes(codes[rows], marks)
        draw_rows(marks, D[rows], 1000.0, seed, 0.6, out)
        return out

    first, order = drawn(np.arange(400)), rng.integers(0, 400, 700)
    assert 0.5 < first.mean() < 0.7
    np.testing.assert_array_equal(drawn(order), first[order])
    assert 0.3 < np.mean(drawn(np.arange(400), seed=2) != first) < 0.6
    kind = codes @ np.array([1, 3])
    assert all(0 < first[kind == k].mean() < 1 for k in range(9))
