"""Ranks that are threads of one process."""

import copy
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from convexboost.core.communicator import Communicator, RanksDifferError


class ThreadCommunicator(Communicator):
    """One of the ranks; each pair of ranks has a queue in each direction."""

    def __init__(self, rank: int, queues: list[list[queue.Queue]], failed: threading.Event) -> None:
        self.rank, self.size = rank, len(queues)
        self._queues, self._failed = queues, failed
        self._n_exchanges = 0

    def exchange(self, parts):
        number, self._n_exchanges = self._n_exchanges, self._n_exchanges + 1
        for r, part in enumerate(parts):
            self._queues[self.rank][r].put((number, self.stamp, copy.deepcopy(part)))
        self.n_messages += self.size - 1
        found = [self._receive(r) for r in range(self.size)]
        if any(of[:2] != (number, self.stamp) for of in found):
            raise RanksDifferError(
                f"rank {self.rank} got {[of[:2] for of in found]}, it is at {number, self.stamp}"
            )
        return [part for _, _, part in found]

    def _receive(self, rank: int):
        while True:
            try:
                return self._queues[rank][self.rank].get(timeout=0.1)
            except queue.Empty:
                if self._failed.is_set():
                    raise RuntimeError("another rank has failed") from None


def run_ranks(size: int, function: Callable) -> list:
    """Return what function(communicator) returns on each rank; raise the error of one that fails."""
    queues = [[queue.Queue() for _ in range(size)] for _ in range(size)]
    failed = threading.Event()

    def run(rank):
        try:
            return function(ThreadCommunicator(rank, queues, failed))
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(run, rank) for rank in range(size)]
    errors = [error for future in futures if (error := future.exception()) is not None]
    if errors:
        raise next((e for e in errors if str(e) != "another rank has failed"), errors[0])
    return [future.result() for future in futures]
