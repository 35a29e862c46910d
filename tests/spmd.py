"""Ranks as threads of one process: the same program on parts of the rows, without a cluster."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any

from convexboost.core.communicator import Communicator, RanksDifferError


class Meeting:
    """Where the threads exchange what they send."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=200)
        self.sent: list[Any] = [None] * size


class ThreadCommunicator(Communicator):
    """A rank that is a thread."""

    def __init__(self, rank: int, meeting: Meeting) -> None:
        self.rank, self.size, self.meeting, self.n_calls = rank, len(meeting.sent), meeting, 0

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        assert len(parts) == self.size
        self.n_calls += 1
        self.n_messages += self.size - 1
        self.meeting.sent[self.rank] = self.n_calls, self.stamp, copy.deepcopy(parts)  # as others get them
        self.meeting.barrier.wait()
        found = list(self.meeting.sent)
        self.meeting.barrier.wait()
        if len({(calls, stamp) for calls, stamp, _ in found}) > 1:
            raise RanksDifferError(f"rank {self.rank}: {[one[:2] for one in found]}")
        return [sent[self.rank] for _, _, sent in found]


def run_ranks(size: int, program: Callable[[Communicator], Any]) -> list[Any]:
    """Run the program on each rank; return what they return, or raise what the first one raised."""
    meeting, found = Meeting(size), [None] * size
    errors: list[BaseException] = []
    broken: list[int] = []

    def rank(r: int) -> None:
        try:
            found[r] = program(ThreadCommunicator(r, meeting))
        except threading.BrokenBarrierError:
            broken.append(r)
        except BaseException as error:
            errors.append(error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    assert not broken, f"ranks {broken} waited in vain for the others"
    return found
