import os
import sys
import threading
import time

import pytest

from convexboost.kernels import parallel


def chunks(size, operations, n_threads):
    seen, lock = [], threading.Lock()

    def task(start, stop):
        with lock:
            seen.append((start, stop))

    parallel.run(task, size, operations, n_threads)
    return sorted(seen)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_chunks_cover_everything_once(size, n_threads):
    seen = chunks(size, 1e12, n_threads)
    assert len(seen) == (1 if n_threads == 1 else min(size, parallel.PER_THREAD * n_threads))
    assert [i for start, stop in seen for i in range(start, stop)] == list(range(size))


def test_little_work_stays_on_this_thread():
    names = []
    parallel.run(lambda *_: names.append(threading.current_thread()), 100, parallel.MIN_OPERATIONS, 4)
    assert names == [threading.current_thread()]


def test_no_more_threads_than_work():
    assert len(chunks(100, 2.5 * parallel.MIN_OPERATIONS, 8)) == parallel.PER_THREAD * 2


def test_cores_are_those_of_now(monkeypatch):
    """A limit that is set or lifted later counts, and so does one that a forked child has."""
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    cores = parallel.n_cores()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert parallel.n_cores() == 1
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    assert parallel.n_cores() == cores
    if sys.platform == "linux":
        allowed = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(allowed)})
            assert parallel.n_cores() == 1
        finally:
            os.sched_setaffinity(0, allowed)
        assert parallel.n_cores() == cores


def test_errors_come_back():
    def task(start, stop):
        raise RuntimeError(f"chunk {start}")

    with pytest.raises(RuntimeError, match="chunk"):
        parallel.run(task, 10, 1e12, 2)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nobody_works_on_after_an_error(error):
    """An array must not change any more once the error is handled."""
    running, lock = [], threading.Lock()

    def task(start, stop):
        if start == 0:
            raise error
        with lock:
            running.append(start)
        time.sleep(0.05)
        with lock:
            running.remove(start)

    with pytest.raises(error):
        parallel.run(task, 10, 1e12, 2)
    assert running == []
