"""How long lists of cases are divided between `make test` and `make test-slow`."""

import numpy as np
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the cases of a test with `one_in(k)` as slow, all but one in k of them, drawn at random."""
    cases = {}
    for item in items:
        if item.get_closest_marker("one_in") and not item.get_closest_marker("slow"):
            cases.setdefault((item.path, item.originalname), []).append(item)
    for found in cases.values():
        (k,) = found[0].get_closest_marker("one_in").args
        kept = -(-len(found) // k)
        for i in np.random.default_rng(0).permutation(len(found))[kept:]:
            found[i].add_marker("slow")
