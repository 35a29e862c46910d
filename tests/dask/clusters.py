"""Ranks on the workers of a cluster."""

import logging
import time
import uuid
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster

from convexboost.dask._transport import TIMEOUT, DaskCommunicator


@contextmanager
def quiet():
    """Make no noise when workers die."""
    with dask.config.set({"distributed.logging.distributed": "critical"}):
        logger = logging.getLogger("distributed")
        before, logger.level = logger.level, logging.CRITICAL
        yield
        logger.level = before


@contextmanager
def cluster(n_workers=2, **options):
    """Yield a client of workers that are processes with one thread each."""
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0", **options}
    with quiet(), LocalCluster(**options) as found, Client(found) as client:
        yield client


def start(client, function, *, addresses=None, timeout=TIMEOUT, fit=None):
    """Start function(communicator) on workers; return the futures by rank."""
    addresses = sorted(client.nthreads()) if addresses is None else addresses
    fit = fit or uuid.uuid4().hex

    def run(rank):
        with DaskCommunicator(fit, addresses, timeout) as communicator:
            assert communicator.rank == rank
            return function(communicator)

    return [
        client.submit(run, rank, workers=[address], allow_other_workers=False, pure=False)
        for rank, address in enumerate(addresses)
    ]


def run(client, function, **options):
    """Return what function(communicator) returns on each worker."""
    return client.gather(start(client, function, **options))


def soon(fact, seconds=60.0):
    """Return whether something becomes true within some seconds."""
    end = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
