import numpy as np
import pytest

from convexboost.core.communicator import distinct
from convexboost.core.levels import places

STRANGE = [np.nan, -np.inf, np.inf, -0.0, -1.0, 0.5, 1e300, -1e300, 2.0**63, 7.0, 8.0]

LEVELS = {
    "codes": np.arange(7.0),
    "some codes": np.array([0.0, 3.0, 7.0]),
    "far apart": np.array([0.0, 1e9]),
    "no whole numbers": np.array([-0.5, 0.5, 2.0]),
    "negative": np.array([-3.0, 2.0]),
    "none": np.array([]),
}


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_places(levels):
    """What a loop finds, whatever the values: also in a column of a larger array."""
    values = np.concatenate([np.random.default_rng(0).integers(-1, 9, 60), levels, STRANGE])
    expected = [levels.tolist().index(v) if v in levels else len(levels) for v in values]
    np.testing.assert_array_equal(places(levels, values), expected)
    np.testing.assert_array_equal(places(levels, np.column_stack([values, values])[:, 1]), expected)


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_distinct_numbers(levels):
    """As NumPy's `unique`, which sorts twice as long."""
    values = np.random.default_rng(1).permutation(np.concatenate([levels, levels, STRANGE, STRANGE]))
    found, number = distinct(values)
    expected, inverse = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(number, inverse)
