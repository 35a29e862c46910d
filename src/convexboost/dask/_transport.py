"""Messages between the ranks of a fit, which are tasks on Dask workers, over connections of Dask.

Each pair of ranks has a connection of its own, a `Comm` of distributed, whatever protocol the cluster speaks.
A message carries its number, the stamp of the sender and a value.  All of it happens on the event loop of the
worker, while the thread of the task waits.  A worker that dies closes its connections, which others notice
at once.  One that hangs does not answer when it is asked for a sign of life, which happens while others wait
for it.  A worker that is slow but answers is waited for.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from distributed import Status, Worker, get_worker
from distributed.core import connect
from distributed.protocol import to_serialize

from convexboost.core.communicator import Communicator, RanksDifferError

T = TypeVar("T")
Message = list[bytes | bytearray]  #: of one value

#: Seconds between two looks at whether others are alive and the task is still wanted.
PAUSE = 0.5
#: Seconds in which a worker that is asked for a sign of life must give one.
TIMEOUT = 10.0
#: Up to this many bytes a copy is cheaper than a frame of its own.
INLINE = 4096
#: Names the handler and the state on a worker.
NAME = "convexboost"


class WorkerLostError(RuntimeError):
    """A worker that takes part in a fit has died, or does not answer."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return f"the worker {self.address} {self.reason}"


class RankFailedError(RuntimeError):
    """Another rank of the fit has raised an error."""


class FitCancelledError(RuntimeError):
    """Nobody waits for the result of the fit any more."""


#: Errors that are the same on all ranks.
TOLD = (WorkerLostError, RankFailedError, FitCancelledError, RanksDifferError)


class DaskCommunicator(Communicator):
    """The ranks of a fit on Dask workers, of which each has one.

    It is made inside a task and used as a context: what is raised inside ends the fit on all ranks.
    """

    def __init__(self, fit: str, addresses: Sequence[str], timeout: float = TIMEOUT) -> None:
        worker = get_worker()
        self.rank, self.size = list(addresses).index(worker.address), len(addresses)
        self._loop = worker.loop.asyncio_loop
        self._line = _Line(worker, fit, addresses, self.rank, timeout)
        self._n_exchanges = 0

    def __enter__(self) -> Self:
        self._wait_for(self._line.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait_for(self._line.close(error))

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Send parts[r] to each rank r; return what each rank has sent here, by rank."""
        different = {id(part): part for r, part in enumerate(parts) if r != self.rank}
        packed = {key: _packed(part) for key, part in different.items()}
        messages = {r: packed[id(part)] for r, part in enumerate(parts) if r != self.rank}
        self.n_messages += len(messages)
        self.n_bytes += sum(len(piece) for message in messages.values() for piece in message)
        number, self._n_exchanges = self._n_exchanges, self._n_exchanges + 1
        received = self._wait_for(self._line.exchange(number, self.stamp, messages))
        return [part if r == self.rank else _unpacked(received[r]) for r, part in enumerate(parts)]

    def _wait_for(self, action: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(action, self._loop).result()


def _packed(value: Any) -> Message:
    """Return a value as bytes, those of arrays by themselves.

    They are copied: an array may change as soon as this rank goes on, before others have received it.
    """
    arrays: list[pickle.PickleBuffer] = []
    frame = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return [bytearray(frame), *(bytearray(array.raw()) for array in arrays)]


def _unpacked(pieces: Sequence[bytes | bytearray]) -> Any:
    frame, *arrays = pieces
    writable = (bytearray(array) if isinstance(array, bytes) else array for array in arrays)
    return pickle.loads(frame, buffers=writable)


class _Line:
    """What a worker knows of a fit: connections, messages that came in, who is lost.  On the event loop."""

    def __init__(self, worker: Worker, fit: str, addresses: Sequence[str], rank: int, timeout: float) -> None:
        self.worker, self.fit, self.addresses, self.rank = worker, fit, addresses, rank
        self.timeout = timeout
        self.task = worker.get_current_task()
        self.peers = set(range(len(addresses))) - {rank}
        self.missing: set[int] = set()  #: the peers that are waited for
        self.error: Exception | None = None  #: why the fit has ended
        self.switchboard = _Switchboard.of(worker)
        self.calls = _Calls()

    async def open(self) -> None:
        """Connect all pairs of ranks: the lower rank calls the higher one."""
        self.calls = self.switchboard.fits.setdefault(self.fit, self.calls)
        self.calls.is_taken = True
        self.watching = asyncio.create_task(self._watch())
        try:
            calls = [self._call(r) for r in self.peers if r > self.rank]
            await asyncio.gather(*calls)
            await self._until(self.calls.comms)
        except BaseException as error:
            await self.close(error)
            raise

    async def _call(self, rank: int) -> None:
        address = self.addresses[rank]
        try:
            async with asyncio.timeout(self.timeout):
                await self.worker.rpc(address).run(function=pickle.dumps(_install))
                comm = await connect(address, self.timeout, **self.worker.rpc.connection_args)
                await comm.write({"op": NAME, "reply": False, "fit": self.fit, "rank": self.rank})
        except (OSError, TimeoutError) as error:
            raise WorkerLostError(address, "cannot be reached") from error
        self.calls.reading[rank] = asyncio.create_task(self.calls.read(rank, comm))

    async def exchange(self, number: int, stamp: bytes, messages: dict[int, Message]) -> dict[int, Message]:
        """Send a message to each peer; return what they have sent."""
        for r, message in messages.items():
            with suppress(OSError):  # found out below: the peer may have said why it left
                pieces = [bytes(p) if len(p) <= INLINE else to_serialize(p) for p in message]
                await self.calls.comms[r].write({"number": number, "stamp": stamp, "pieces": pieces})
        received = self.calls.received[number]
        await self._until(received)
        del self.calls.received[number]
        others = {r: of for r, (of, _) in received.items() if of != stamp}
        if others:
            raise RanksDifferError(
                f"the ranks {sorted(others)} have found something else than rank {self.rank} before message "
                f"{number}: {', '.join(repr(of) for of in others.values())} instead of {stamp!r}"
            )
        return {r: message for r, (_, message) in received.items()}

    async def _until(self, present: dict[int, Any]) -> None:
        """Wait until all peers are there."""
        while True:
            error = self.error or self.calls.error
            if error is not None:
                raise error
            self.missing = self.peers - present.keys()
            if not self.missing:
                return
            for r in self.missing & self.calls.hung_up:
                if r in self.calls.done:
                    raise RanksDifferError(f"rank {r} has ended, but rank {self.rank} waits for it")
                raise WorkerLostError(self.addresses[r], "has died or was stopped")
            self.calls.news.clear()
            await self.calls.news.wait()

    async def _watch(self) -> None:
        """Look now and then whether the peers that are waited for are alive and the task is still wanted."""
        while True:
            await asyncio.sleep(PAUSE)
            if self.worker.status not in (Status.running, Status.paused, Status.closing_gracefully):
                self.error = WorkerLostError(self.worker.address, "is closing")
            elif self.worker.state.tasks.get(self.task) is None or self._is_cancelled():
                self.error = FitCancelledError("the fit was cancelled")
            else:
                missing = sorted(self.missing)
                await asyncio.gather(*map(self._ping, missing))
            if self.error is not None:
                self.calls.news.set()

    def _is_cancelled(self) -> bool:
        return self.worker.state.tasks[self.task].state == "cancelled"

    async def _ping(self, rank: int) -> None:
        address = self.addresses[rank]
        try:
            async with asyncio.timeout(self.timeout):
                await self.worker.rpc(address).echo(data=b"")
        except (OSError, TimeoutError):
            self.error = WorkerLostError(address, f"has not answered for {self.timeout:g} seconds")

    async def close(self, error: BaseException | None) -> None:
        """Hang up; tell the others why if there was an error."""
        self.watching.cancel()
        self.switchboard.fits.pop(self.fit, None)
        await asyncio.gather(*(self._hang_up(r, comm, error) for r, comm in self.calls.comms.items()))
        for reading in self.calls.reading.values():
            reading.cancel()

    async def _hang_up(self, rank: int, comm: Any, error: BaseException | None) -> None:
        try:
            async with asyncio.timeout(PAUSE if error is not None else self.timeout):
                if error is None:
                    await comm.write({"done": True})
                else:
                    told = error
                    if not isinstance(error, TOLD):
                        where = f"rank {self.rank} ({self.worker.address})"
                        told = RankFailedError(f"{where} failed: {type(error).__name__}: {error}")
                    await comm.write({"error": to_serialize(told)})
                await comm.close()
        except (OSError, TimeoutError):
            comm.abort()


class _Calls:
    """The connections of a fit; they may be there before the task of this worker is."""

    def __init__(self) -> None:
        self.is_taken = False  #: whether the task is there
        self.comms: dict[int, Any] = {}
        self.reading: dict[int, asyncio.Task[None]] = {}
        self.received: dict[int, dict[int, tuple[bytes, Message]]] = defaultdict(dict)
        self.hung_up: set[int] = set()
        self.done: set[int] = set()  #: ranks that have hung up because they were done
        self.error: Exception | None = None  #: as a peer has told
        self.news = asyncio.Event()

    async def read(self, rank: int, comm: Any) -> None:
        """Receive what a rank sends, until it hangs up."""
        self.comms[rank] = comm
        try:
            while True:
                self.news.set()
                message = await comm.read()
                if "error" in message:
                    self.error = self.error or message["error"]
                elif "done" in message:
                    self.done.add(rank)
                else:
                    self.received[message["number"]][rank] = message["stamp"], message["pieces"]
        except OSError:  # CommClosedError is one
            pass
        finally:
            self.hung_up.add(rank)
            self.news.set()


class _Switchboard:
    """Lets peers connect to the fits of a worker."""

    def __init__(self) -> None:
        self.fits: dict[str, _Calls] = {}

    @staticmethod
    def of(dask_worker: Worker) -> _Switchboard:
        """Return that of a worker; make it, where there is none yet."""
        found = dask_worker.extensions.get(NAME)
        if found is None:
            found = dask_worker.extensions[NAME] = _Switchboard()
            dask_worker.handlers[NAME] = found.accept
        return found

    async def accept(self, comm: Any, fit: str, rank: int) -> Any:
        """Receive what a rank of a fit sends.  The task of this worker may not have begun yet."""
        calls = self.fits.setdefault(fit, _Calls())
        await calls.read(rank, comm)
        if not calls.is_taken and len(calls.hung_up) == len(calls.comms):
            self.fits.pop(fit, None)
        return Status.dont_reply


def _install(dask_worker: Worker) -> None:
    """Make sure that a worker can be called."""
    _Switchboard.of(dask_worker)
