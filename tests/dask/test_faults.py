"""Fits that lose workers, the scheduler or the user's patience, with real processes and real signals."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from convexboost import ConvexBoostRegressor
from convexboost.dask import DaskConvexBoostRegressor
from convexboost.dask._transport import NAME
from tests.dask.clusters import cluster, quiet, soon

N = 300


class Marked:
    """A callback that tells by a file that a round has begun, and then goes slowly."""

    def __init__(self, path, after=2, seconds=0.2):
        self.path, self.after, self.seconds = path, after, seconds

    def __call__(self, record):
        if record.round >= self.after:
            with open(self.path, "w") as file:
                file.write(str(record.round))
            time.sleep(self.seconds)


class Broken:
    """Half the squared error, until it meets a row that it cannot stand."""

    def evaluate(self, F, y):
        if np.isinf(y).any() or (y > 50).any():
            raise ZeroDivisionError("a row of the user")
        return 0.5 * ((F - y) ** 2).sum(axis=1), F - y


class Hungry:
    """A callback that takes more memory than a worker may have."""

    def __call__(self, record):
        if record.round >= 2:
            self.taken = np.ones(2**27)
            time.sleep(60.0)


@pytest.fixture
def rows():
    X = np.random.default_rng(0).normal(size=(N, 3))
    return X, X.sum(axis=1)


def arrays(rows, n=4):
    return [da.from_array(part, chunks=(N // n, *part.shape[1:])) for part in rows]


def busy(dask_worker):
    found = dask_worker.extensions.get(NAME)
    return [] if found is None else list(found.fits)


def interrupt(client, begun, number):
    """Send a signal to a worker of the fit as soon as a round has begun; return the thread that does it."""
    processes = client.run(os.getpid)

    def wait_and_kill():
        soon(begun.exists, 120.0)
        # On a busy machine one worker may have all rows, and the others no part in the fit.
        os.kill(processes[min(address for address, fits in client.run(busy).items() if fits)], number)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    return thread


def model(client, begun, **parameters):
    parameters = {"n_rounds": 8, "random_state": 0, "early_stopping": False, **parameters}
    return DaskConvexBoostRegressor(**parameters, callbacks=[Marked(begun)], client=client)


@pytest.mark.parametrize("checkpoint", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_worker_that_is_killed_costs_time_but_no_bits(rows, tmp_path, checkpoint):
    file = tmp_path / "run"
    more = {"checkpoint": file, "checkpoint_every": 1} if checkpoint else {}
    alone = ConvexBoostRegressor(n_rounds=8, random_state=0, early_stopping=False).fit(*rows)
    with cluster(2) as client:
        thread = interrupt(client, tmp_path / "begun", signal.SIGKILL)
        where = "from its checkpoint" if checkpoint else "from the start"
        with pytest.warns(UserWarning, match=f"the worker tcp://.* training goes on {where}"):
            found = model(client, tmp_path / "begun", **more).fit(*arrays(rows))
        thread.join()
        assert not any(client.run(busy).values())
    np.testing.assert_array_equal(found.to_local().predict(rows[0]), alone.predict(rows[0]))
    assert found.n_rounds_ == 8


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_worker_that_hangs_is_replaced(rows, tmp_path, checkpoint):
    """It may be the one that writes the checkpoint, which it must give up."""
    more = {"checkpoint": tmp_path / "run", "checkpoint_every": 1} if checkpoint else {}
    alone = ConvexBoostRegressor(n_rounds=8, random_state=0, early_stopping=False).fit(*rows)
    with dask.config.set({"convexboost.timeout": 3.0}), cluster(2) as client:
        thread = interrupt(client, tmp_path / "begun", signal.SIGSTOP)
        with pytest.warns(UserWarning, match="has not answered for 3 seconds"):
            found = model(client, tmp_path / "begun", **more).fit(*arrays(rows))
        thread.join()
    np.testing.assert_array_equal(found.to_local().predict(rows[0]), alone.predict(rows[0]))


def test_a_loss_that_raises_on_one_worker(client, rows):
    X, y = rows
    y = y.copy()
    y[3] = 99.0
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="a row of the user"):
        DaskConvexBoostRegressor(Broken(), n_rounds=8, client=client).fit(*arrays((X, y)))
    assert time.monotonic() - began < 60.0
    assert soon(lambda: not any(client.run(busy).values()))


@pytest.mark.slow
def test_data_that_is_only_there_once(rows, tmp_path):
    with cluster(2) as client:
        (X, y), workers = rows, sorted(client.nthreads())
        halves = [slice(0, 150), slice(150, N)]
        blocks = [client.scatter((X[h], y[h]), workers=[w]) for h, w in zip(halves, workers, strict=True)]
        pick = dask.delayed(lambda both, k: both[k])
        inputs = [da.from_delayed(pick(block, 0), (150, 3), float) for block in blocks]
        targets = [da.from_delayed(pick(block, 1), (150,), float) for block in blocks]
        thread = interrupt(client, tmp_path / "begun", signal.SIGKILL)
        fit = model(client, tmp_path / "begun").fit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(RuntimeError, match="cannot be computed again"):
                fit(da.concatenate(inputs), da.concatenate(targets))
        thread.join()


@pytest.mark.slow
def test_a_worker_without_memory_is_one_error_and_leaves_a_checkpoint(rows, tmp_path):
    settings = {"n_rounds": 8, "random_state": 0, "early_stopping": False}
    saved = {"checkpoint": tmp_path / "run", "checkpoint_every": 1}
    with cluster(2, memory_limit="800MiB") as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = DaskConvexBoostRegressor(**settings, **saved, callbacks=[Hungry()], client=client).fit
        with pytest.raises(RuntimeError, match=r"lost 4 workers.* run out of memory are killed"):
            fit(*arrays(rows))
    with pytest.raises(ValueError, match="holds another run: the seed of `random_state` was 0"):
        ConvexBoostRegressor(**(settings | {"random_state": 1}), **saved).fit(*rows)
    alone = ConvexBoostRegressor(**settings).fit(*rows)
    found = ConvexBoostRegressor(**settings, **saved).fit(*rows)
    np.testing.assert_array_equal(found.predict(rows[0]), alone.predict(rows[0]))


PROGRAM = """
    import sys, numpy as np, dask.array as da
    from distributed import Client
    from convexboost.dask import DaskConvexBoostRegressor
    from tests.dask.test_faults import Marked

    if __name__ == "__main__":
        X = np.random.default_rng(0).normal(size=(300, 3))
        with Client(sys.argv[1]) as client:
            slow = [Marked(sys.argv[2])]
            model = DaskConvexBoostRegressor(n_rounds=1000, early_stopping=False, callbacks=slow)
            model.fit(da.from_array(X, chunks=75), da.from_array(X.sum(axis=1), chunks=75))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_client_that_goes_away_takes_its_fit_along(tmp_path, number):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    with cluster(2) as client:
        command = [sys.executable, tmp_path / "program.py", client.scheduler.address, tmp_path / "begun"]
        path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        program = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert soon((tmp_path / "begun").exists, 120.0)
        program.send_signal(number)
        _, told = program.communicate(timeout=30)
        assert ("KeyboardInterrupt" in told) == (number == signal.SIGINT)
        assert soon(lambda: not any(client.run(busy).values()), 10.0)


@contextmanager
def machines(folder, n_workers):
    """Yield a client, and processes that nobody restarts: a scheduler and its workers."""
    file = folder / "scheduler"
    options = ["--scheduler-file", file]
    kinds = {"dask_scheduler": ["--port", "0", "--dashboard-address", ":0"]}
    kinds |= {f"dask_worker {k}": ["--no-nanny", "--nthreads", "1"] for k in range(n_workers)}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{kind.split()[0]}", *options, *more],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for kind, more in kinds.items()
    ]
    try:
        assert soon(file.exists, 60.0)
        client = Client(scheduler_file=str(file), timeout=60)
        client.wait_for_workers(n_workers, timeout=60)
        yield client, *started
        client.close(timeout=1)
    finally:
        for process in started:
            process.kill()
            process.wait(60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed", "message"),
    [
        ("workers", "the cluster has had no workers for 3 seconds"),
        ("scheduler", "the scheduler of .* does not answer any more"),
    ],
)
def test_what_cannot_be_repaired_is_one_error(rows, tmp_path, killed, message):
    with (
        quiet(),
        dask.config.set({"convexboost.timeout": 3.0}),
        machines(tmp_path, 2) as (client, scheduler, *workers),
    ):
        times = []

        def kill():
            soon((tmp_path / "begun").exists, 120.0)
            times.append(time.monotonic())
            for process in workers if killed == "workers" else [scheduler]:
                process.kill()

        thread = threading.Thread(target=kill)
        thread.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(RuntimeError, match=message):
                model(client, tmp_path / "begun", n_rounds=1000).fit(*arrays(rows))
        thread.join()
        assert time.monotonic() - times[0] < 30.0
        for process in workers:
            process.wait(60)  # nobody stays behind
