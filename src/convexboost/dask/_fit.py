"""A fit on the workers of a Dask cluster: one task per worker that has rows, watched by the client."""

from __future__ import annotations

import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, NamedTuple

import dask
from distributed import Client, get_worker, secede, wait

from convexboost.core.communicator import Communicator
from convexboost.dask._rows import Part, dealt, n_rows
from convexboost.dask._transport import (
    TIMEOUT,
    DaskCommunicator,
    FitCancelledError,
    RankFailedError,
    WorkerLostError,
)
from convexboost.estimators._base import BaseConvexBoost
from convexboost.estimators._input import Given

#: How often a fit starts again because workers were lost.
RESTARTS = 3
#: A scheduler that is connected may be silent for this many times the timeout of a worker.
PATIENCE = 6
#: Seconds between two looks at the cluster.
PAUSE = 0.5
#: The states of futures that may still finish; lost values are computed again.
UNFINISHED = ("pending", "lost")
#: The sets of rows that are not `eval_set`.
TRAINING, VALIDATION = "the training rows", "the validation rows"

#: The partitions of each set of rows, as delayed values or futures.
Sets = Mapping[str, Sequence[Any]]


class Job(NamedTuple):
    """What the tasks of a fit have in common."""

    estimator: BaseConvexBoost  #: not fitted
    whole_queries: bool  #: whether the rows of a query, or a group, must be on one worker
    timeout: float

    def run(self, communicator: Communicator, sets: Mapping[str, Sequence[Part]]) -> BaseConvexBoost:
        """Fit to the rows of this worker and, by the communicator, to those of the others."""
        called = {TRAINING: "X", VALIDATION: "X_val"}
        rows = {
            name: dealt(parts, self.whole_queries, called.get(name, f"eval_set[{name!r}]"), communicator)
            for name, parts in sets.items()
        }
        training, validation = rows.pop(TRAINING), rows.pop(VALIDATION, {})
        self.estimator._fit(
            Given(
                **training,
                **{f"{name}_val": value for name, value in validation.items()},
                eval_set={name: self._as_set(found) for name, found in rows.items()} or None,
                communicator=communicator,
            )
        )
        return self.estimator

    def _as_set(self, rows: Part) -> Part:
        """Return a set of `eval_set` with the names that the arguments of `fit` have."""
        return {self.estimator._group_parameter if n == "groups" else n: rows[n] for n in rows}


def _rank(job: Job, sets: Mapping[str, Sequence[Part]], fit: str, addresses: Sequence[str]) -> Any:
    """Do the part of one worker; return the fitted estimator, on rank 0, and the warnings there were."""
    secede()  # others may use the thread: two fits would wait for each other's ranks for ever
    if job.estimator.n_jobs is None:
        job.estimator.n_jobs = get_worker().state.nthreads
    with _caught_warnings() as caught, DaskCommunicator(fit, addresses, job.timeout) as communicator:
        fitted = job.run(communicator, sets)
    told = [(str(warning.message), warning.category) for warning in caught]
    return (fitted if communicator.rank == 0 else None), told


#: Whether a rank catches the warnings of this process, which may have several.
_catching = threading.Lock()


@contextmanager
def _caught_warnings() -> Iterator[list[Any]]:
    """Catch warnings, unless another thread does: Python catches those of all threads."""
    if not _catching.acquire(blocking=False):
        yield []
        return
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        _catching.release()


class Run:
    """The fit as the client sees it."""

    def __init__(self, client: Client, job: Job, sets: Sets) -> None:
        self.client, self.job = client, job
        self.parts = {name: client.compute(list(parts)) for name, parts in sets.items()}

    def result(self) -> BaseConvexBoost:
        """Train; start again where a worker is lost."""
        try:
            return self._train()
        finally:
            for future in chain.from_iterable(self.parts.values()):
                future.release()  # the last reference may be in a traceback

    def _train(self) -> BaseConvexBoost:
        lost: list[str] = []
        while True:
            try:
                return self._attempt()
            except WorkerLostError as error:
                lost.append(error.address)
                if len(lost) > RESTARTS:
                    raise RuntimeError(
                        f"training was given up after it had lost {len(lost)} workers, of which the last is: "
                        f"{error}.  Workers that run out of memory are killed: see their logs"
                    ) from error
                where = (
                    "from its checkpoint" if self.job.estimator.checkpoint is not None else "from the start"
                )
                warnings.warn(f"{error}: training goes on {where} on the workers that are left", stacklevel=5)
                self._dismiss(error.address)

    def _attempt(self) -> BaseConvexBoost:
        """Start a task on each worker that has rows, and wait for them."""
        placed = self._place()
        addresses, fit = list(placed), uuid.uuid4().hex
        futures = [
            self.client.submit(
                _rank,
                self.job,
                sets,
                fit,
                addresses,
                key=f"convexboost-fit-{fit}-{rank}",
                workers=[address],
                allow_other_workers=False,
                retries=0,
                pure=False,
            )
            for rank, (address, sets) in enumerate(placed.items())
        ]
        try:
            self._watch(futures, addresses)
            found = [future.result() for future in futures]
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self.client.cancel(futures)
        for message, category in dict.fromkeys(warning for _, told in found for warning in told):
            warnings.warn(message, category, stacklevel=6)
        return found[0][0]

    # -- where the rows are --------------------------------------------------------------------------

    def _place(self) -> dict[str, dict[str, list[Any]]]:
        """Return the partitions of each worker by set, for all workers that have rows to train on."""
        training = self._located(self.parts[TRAINING])
        if not training:
            raise ValueError("`X` must have rows, got none")
        workers = list(training)
        placed: dict[str, dict[str, list[Any]]] = {
            address: {TRAINING: parts} for address, parts in training.items()
        }
        for name, parts in self.parts.items():
            if name != TRAINING:
                filled = self._filled(parts)
                for number, address in enumerate(workers):
                    placed[address][name] = filled[number :: len(workers)]
        return placed

    def _located(self, parts: Sequence[Any]) -> dict[str, list[Any]]:
        """Return the partitions with rows by worker; one that several have goes to that with the fewest."""
        filled = self._filled(parts)
        owners = self.client.who_has(filled)
        found: dict[str, list[Any]] = {}
        for part in filled:
            candidates = owners[part.key]
            if not candidates:
                raise WorkerLostError("that had it", f"does not have partition {part.key} any more")
            address = min(candidates, key=lambda a: (len(found.get(a, [])), a))
            found.setdefault(address, []).append(part)
        return found

    def _filled(self, parts: Sequence[Any]) -> list[Any]:
        """Wait until partitions are computed, and return those with rows."""
        self._wait(parts)
        sizes = self.client.map(n_rows, parts, pure=False)
        self._wait(sizes)
        return [part for part, size in zip(parts, self.client.gather(sizes), strict=True) if size > 0]

    def _wait(self, futures: Sequence[Any]) -> None:
        """Wait for values that any worker can compute."""
        since = time.monotonic()
        while pending := [future for future in futures if future.status in UNFINISHED]:
            with suppress(TimeoutError, CancelledError):
                wait(pending, timeout=PAUSE)
            if self._workers():
                since = time.monotonic()
            elif time.monotonic() - since > self.job.timeout:
                raise RuntimeError(f"the cluster has had no workers for {self.job.timeout:g} seconds")
        for future in futures:
            if future.status == "cancelled":
                raise RuntimeError(
                    f"the partition {future.key} was lost with its worker and cannot be computed again: data "
                    "that was scattered is only there once"
                )
            if future.status == "error":
                raise future.exception()

    # -- who is there ---------------------------------------------------------------------------------

    def _workers(self) -> set[str]:
        """Ask the scheduler who is there.  It may be busy for a while, with reading a large graph for one."""
        end = time.monotonic() + PATIENCE * self.job.timeout
        while True:
            try:
                return set(self.client.sync(self.client.scheduler.ncores, callback_timeout=self.job.timeout))
            except (OSError, TimeoutError) as error:
                if self.client.status != "running" or time.monotonic() > end:
                    raise RuntimeError(f"the scheduler of {self.client} does not answer any more") from error
                time.sleep(0.1)

    def _watch(self, futures: Sequence[Any], addresses: Sequence[str]) -> None:
        """Wait for the ranks; raise what was wrong where one fails, once all that can have ended have."""
        ended = 0.0
        lost: WorkerLostError | None = None
        while pending := [future for future in futures if future.status in UNFINISHED]:
            with suppress(TimeoutError, CancelledError):
                wait(pending, timeout=PAUSE, return_when="FIRST_COMPLETED")
            gone = set(addresses) - self._workers()
            for address in sorted(gone):
                lost = lost or WorkerLostError(address, "has died or was stopped")
            if lost is not None or any(future.status in ("error", "cancelled") for future in futures):
                ended = ended or time.monotonic()
                failed = [future.exception() for future in futures if future.status == "error"]
                accused = gone | {error.address for error in failed if isinstance(error, WorkerLostError)}
                left = [
                    f for f, a in zip(futures, addresses, strict=True) if f in pending and a not in accused
                ]
                # The others end with their next message; until then they may hold the checkpoint.
                patience = PATIENCE * self.job.timeout if accused else 4 * PAUSE
                if not left or time.monotonic() - ended > patience:
                    break
        errors = [future.exception() for future in futures if future.status == "error"]
        if any(future.status == "cancelled" for future in futures):
            self._workers()  # raises where the scheduler is the reason
            errors.append(FitCancelledError("the fit was cancelled"))
        if lost is not None:
            errors.append(lost)
        if errors:
            raise min(errors, key=_rank_of_error)

    def _dismiss(self, address: str) -> None:
        """Make sure that a worker that does not answer is dead: it may hold the checkpoint."""
        if address not in self._workers():
            return
        with suppress(Exception):  # it has no nanny
            self.client.restart_workers([address], timeout=self.job.timeout, raise_for_error=False)
            return
        self.client.run_on_scheduler(_remove, address=address)


async def _remove(dask_scheduler: Any, address: str) -> None:
    stimulus = f"convexboost-{time.time()}"
    await dask_scheduler.remove_worker(address, stimulus_id=stimulus, safe=True, close=False)


def _rank_of_error(error: BaseException) -> int:
    """Order errors by what they say about the cause: what others were told of it comes last."""
    kinds = (FitCancelledError, RankFailedError, WorkerLostError)
    return -next((k for k, kind in enumerate(kinds) if isinstance(error, kind)), len(kinds))


def timeout() -> float:
    """Return after how many seconds without a sign of life a worker counts as lost."""
    return float(dask.config.get("convexboost.timeout", TIMEOUT))
