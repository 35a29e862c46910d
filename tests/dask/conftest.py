"""A cluster of two processes, for all tests of this folder."""

import pytest

pytest.importorskip("distributed", reason="the tests of convexboost.dask need dask[distributed]")

from tests.dask.clusters import cluster


@pytest.fixture(scope="session")
def client():
    """Return a client of two workers, processes with one thread each."""
    with cluster(2) as found:
        yield found
