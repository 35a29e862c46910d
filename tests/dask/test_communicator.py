"""What every communicator promises, whatever carries the messages."""

import numpy as np
import pytest

from convexboost.core.communicator import SMALL, Communicator, RanksDifferError
from tests.dask import clusters
from tests.spmd import run_ranks

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow


@pytest.fixture(params=["threads", "Dask"])
def run(request):
    """Return what runs a function on two ranks."""
    if request.param == "threads":
        return lambda function: run_ranks(2, function)
    client = request.getfixturevalue("client")
    return lambda function: clusters.run(client, function)


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7, 5), (SMALL // 8 + 1,), (3, 50_001)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint64])
def test_sums_are_those_of_all_ranks(run, shape, dtype):
    def function(communicator):
        array = np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)
        return communicator.add(array * dtype(communicator.rank + 1))

    wanted = 3 * np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)
    for found in run(function):
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_sums_leave_the_array_as_it_was_and_can_be_written_to(run):
    def function(communicator):
        array = np.full(5, communicator.rank)
        found = communicator.add(array)
        found += 1
        others = communicator.gather(array)
        for other in others:
            other[:] = 7
        return array.flags.aligned and others[1 - communicator.rank].flags.aligned, found

    for aligned, found in run(function):
        assert aligned
        np.testing.assert_array_equal(found, np.full(5, 2))


def test_gather_broadcast_largest_and_any(run):
    def function(communicator):
        rank = communicator.rank
        return (
            communicator.gather(("rank", rank)),
            communicator.broadcast({"from": rank}),
            communicator.largest(0.1 * rank),
            communicator.any(rank == 1),
            communicator.any(False),
        )

    for found in run(function):
        assert found == ([("rank", 0), ("rank", 1)], {"from": 0}, 0.1, True, False)


def test_odd_payloads_arrive_as_they_were(run):
    def function(communicator):
        sent = [
            None,
            b"\x00",
            "ü" * 10,
            np.array(["a", None], object),
            np.arange(12).reshape(3, 4)[:, ::2],
            np.asfortranarray(np.eye(3)),
            np.zeros((0, 2), np.float32),
            {"nested": [np.arange(3), (1.5, np.float32(2))]},
        ]
        found = communicator.exchange([(r, sent) for r in range(communicator.size)])
        for rank, content in found:
            assert rank == communicator.rank
            np.testing.assert_equal(content, sent)
        return True

    assert run(function) == [True, True]


def test_an_array_that_changes_after_it_was_sent_does_not_change_for_others(run):
    """Rank 0 goes on at once, rank 1 looks at what it got later."""

    def function(communicator):
        import time

        array, wrong = np.zeros(200_000), 0
        for turn in range(20):
            array[:] = turn
            found = communicator.gather(array)
            array[:] = -1
            if communicator.rank == 1:
                time.sleep(0.002)
            wrong += int((found[1 - communicator.rank] != turn).any())
        return wrong

    assert run(function) == [0, 0]


def test_messages_keep_their_order_when_one_rank_is_ahead(run):
    def function(communicator):
        import time

        if communicator.rank == 0:
            time.sleep(0.2)
        return [communicator.gather(turn) for turn in range(100)]

    for found in run(function):
        assert found == [[turn, turn] for turn in range(100)]


def test_ranks_that_differ_raise(run):
    def function(communicator):
        communicator.gather(1)
        communicator.stamp = b"a" if communicator.rank else b"b"
        try:
            communicator.add(np.arange(3))
        except RanksDifferError as error:
            return str(error)

    assert all(run(function))


def test_messages_and_bytes_are_counted(run):
    def function(communicator):
        communicator.gather(1)
        communicator.exchange(np.split(np.zeros(2000), 2))
        return communicator.n_messages

    assert run(function) == [2, 2]


def test_a_single_rank_needs_nobody(client):
    address = sorted(client.nthreads())[1]

    def function(communicator: Communicator):
        return communicator.add(np.arange(3)).tolist(), communicator.gather(5), communicator.n_messages

    assert clusters.run(client, function, addresses=[address]) == [([0, 1, 2], [5], 0)]
