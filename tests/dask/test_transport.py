"""Ranks on Dask workers: what happens when one of them fails, dies or hangs."""

import os
import signal
import time

import pytest
from distributed import wait

from convexboost.dask._transport import NAME, RankFailedError, WorkerLostError
from tests.dask.clusters import cluster, run, soon, start


def _in_turn(communicator):
    """Exchange messages for ever."""
    while True:
        communicator.gather(os.getpid())
        time.sleep(0.001)


def _leftovers(dask_worker):
    found = dask_worker.extensions.get(NAME)
    return [] if found is None else list(found.fits)


def _busy(keys, dask_worker):
    """Return which of these tasks a worker still has; it may have some of other tests, too."""
    return keys & set(dask_worker.state.tasks)


def test_a_rank_that_raises_ends_the_others_at_once(client):
    def function(communicator):
        communicator.gather(0)
        if communicator.rank == 1:
            raise KeyError("a user's mistake")
        _in_turn(communicator)

    began = time.monotonic()
    first, second = start(client, function)
    error = first.exception()
    assert isinstance(error, RankFailedError)
    assert "rank 1 (tcp://" in str(error)
    assert 'failed: KeyError: "a user\'s mistake"' in str(error)
    assert isinstance(second.exception(), KeyError)
    assert time.monotonic() - began < 60.0  # with the time to import on a busy machine
    assert not any(client.run(_leftovers).values())


def test_a_fit_that_is_cancelled_ends_on_the_workers(client):
    futures = start(client, _in_turn)
    assert soon(lambda: all(client.run(_leftovers).values()))
    keys = {future.key for future in futures}
    assert any(client.run(_busy, keys).values())
    client.cancel(futures)
    assert soon(lambda: not any(client.run(_leftovers).values()))
    assert soon(lambda: not any(client.run(_busy, keys).values()))
    assert run(client, lambda communicator: communicator.gather(communicator.rank)) == [[0, 1]] * 2


def test_a_rank_that_comes_late_is_waited_for(client):
    """Its worker, which has one thread, is busy with something else."""
    late = sorted(client.nthreads())[1]
    busy = client.submit(time.sleep, 1.2, workers=[late], allow_other_workers=False, pure=False)
    time.sleep(0.1)
    assert run(client, lambda communicator: communicator.gather(communicator.rank)) == [[0, 1]] * 2
    wait(busy)


def test_a_slow_rank_is_waited_for_longer_than_the_timeout(client):
    def function(communicator):
        communicator.gather(0)
        if communicator.rank == 1:
            time.sleep(1.5)
        return communicator.gather(communicator.rank)

    assert run(client, function, timeout=0.3) == [[0, 1]] * 2


def test_workers_of_one_process():
    with cluster(3, processes=False) as client:
        found = run(client, lambda communicator: communicator.gather(communicator.rank))
        assert found == [[0, 1, 2]] * 3
        assert not any(client.run(_leftovers).values())


def test_two_fits_at_once():
    """Each has its own messages."""

    def function(name):
        def exchange(communicator):
            return {tuple(communicator.gather((name, turn))) for turn in range(200)}

        return exchange

    with cluster(2, threads_per_worker=2, processes=False) as client:
        both = [start(client, function(name)) for name in "ab"]
        for name, futures in zip("ab", both, strict=True):
            wanted = {((name, turn), (name, turn)) for turn in range(200)}
            assert client.gather(futures) == [wanted, wanted]


@pytest.mark.parametrize(
    ("number", "timeout"), [(signal.SIGKILL, 30.0), pytest.param(signal.SIGSTOP, 3.0, marks=pytest.mark.slow)]
)
def test_a_worker_that_dies_or_hangs_is_noticed(number, timeout):
    """One that dies long before the timeout; the machine may be busy."""

    def function(communicator):
        communicator.gather(os.getpid())
        _in_turn(communicator)

    with cluster(3) as client:
        addresses = sorted(client.nthreads())
        processes = client.run(os.getpid)
        futures = start(client, function, addresses=addresses, timeout=timeout)
        assert soon(lambda: all(client.run(_leftovers).values()))
        lost = processes[addresses[1]]
        os.kill(lost, number)
        began = time.monotonic()
        try:
            for future in (futures[0], futures[2]):
                error = future.exception(timeout=30)
                assert isinstance(error, WorkerLostError)
                assert addresses[1] in str(error)
            assert time.monotonic() - began < 15.0
        finally:
            if number == signal.SIGSTOP:
                os.kill(lost, signal.SIGCONT)
