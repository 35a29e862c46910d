"""Coarse work on a few threads.

Kernels release the GIL, so plain threads do: no threading layer to choose, nothing extra to compile, safe
inside joblib, and the number of threads cannot change a result because each chunk writes its own part.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise

import joblib

#: Below about a millisecond of work a second thread costs more than it saves.
MIN_OPERATIONS = 1_000_000
#: Chunks for each thread: where another process keeps a core busy, the free ones take more of them.
PER_THREAD = 2


def n_cores() -> int:
    """Return the number of cores that this process may use now."""
    affinity = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 0
    return _n_cores(affinity, os.environ.get("LOKY_MAX_CPU_COUNT"))


@cache
def _n_cores(affinity: int, limit: str | None) -> int:
    """Ask joblib once for each answer of the system: it takes a while.  Containers keep their limits."""
    return int(joblib.cpu_count())


_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def run(task: Callable[[int, int], object], size: int, operations: float, n_threads: int) -> None:
    """Call `task(start, stop)` on chunks that cover range(size)."""
    busy = min(n_threads, size, int(operations / MIN_OPERATIONS))
    if busy <= 1:
        task(0, size)
        return
    chunks = min(PER_THREAD * busy, size)
    bounds = [size * i // chunks for i in range(chunks + 1)]
    key = (os.getpid(), n_threads)  # a forked child must not use its parent's threads
    pool = _pools.get(key) or _pools.setdefault(key, ThreadPoolExecutor(n_threads, "convexboost"))
    futures: list[Future[object]] = []
    try:
        for a, b in pairwise(bounds):
            futures.append(pool.submit(task, a, b))
        for future in futures:
            future.result()
    except BaseException:  # an error or Ctrl-C: nobody may write to the arrays after this has returned
        for future in futures:
            future.cancel()
        wait(futures)
        raise
