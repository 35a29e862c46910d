"""Ways for processes to add up whole numbers: milliseconds of a sum, and seconds until a lost peer is seen.

    python benchmarks/transports.py --python /path/to/python   # with torch, mpi4py and an MPI

Two processes on this machine add arrays of int64 by Dask's messages (`DaskCommunicator`), by gloo of
torch.distributed, and by MPI.  Then one of them is killed (SIGKILL) or stopped (SIGSTOP) while they do.  gloo
and Dask have a timeout of 5 seconds; MPI has none.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (1, 1_000, 100_000)
TIMEOUT = 5.0
#: Seconds after which waiting for an error is given up.
PATIENCE = 30.0
#: What a rank does: {setup} defines `add` and `rank`.
RANK = """
import json, os, statistics, sys, time
import numpy as np
{setup}
if rank == 1:
    print(json.dumps(os.getpid()), file=sys.stderr, flush=True)
found = []
for size in {sizes}:
    array, seconds = np.arange(size), []
    for turn in range(220):
        began = time.perf_counter()
        add(array)
        seconds.append(time.perf_counter() - began)
    found.append(1e3 * statistics.median(seconds[20:]))
if rank == 0:
    print(json.dumps(found), flush=True)
try:
    while {for_ever}:
        add(array)
except BaseException as error:
    print(json.dumps([time.monotonic(), type(error).__name__]), flush=True)
"""
GLOO = """
import datetime
import torch
import torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2,
                        timeout=datetime.timedelta(seconds={timeout}))
def add(array):
    tensor = torch.from_numpy(array.copy())
    dist.all_reduce(tensor)
    return tensor
"""
MPI = """
from mpi4py import MPI
rank = MPI.COMM_WORLD.Get_rank()
def add(array):
    out = np.empty_like(array)
    MPI.COMM_WORLD.Allreduce(array, out)
    return out
"""


def _ranks(python: str, kind: str, for_ever: bool) -> list[subprocess.Popen[str]]:
    """Start both ranks; those of MPI have one parent."""
    setup = (GLOO if kind == "gloo" else MPI).replace("{timeout}", str(TIMEOUT))
    program = RANK.replace("{setup}", setup).replace("{sizes}", repr(SIZES))
    program = program.replace("{for_ever}", repr(for_ever))
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if kind == "MPI":
        launcher = Path(python).with_name("mpiexec")
        command = [str(launcher), "--allow-run-as-root", "--oversubscribe", "-n", "2", python, "-c", program]
        return [subprocess.Popen(command, **pipes)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    return [subprocess.Popen([python, "-c", program, str(r), address], **pipes) for r in range(2)]


def _first_json(stream: Any) -> Any:
    """Return the first line of a stream that is JSON."""
    for line in stream:
        try:
            return json.loads(line)
        except json.JSONDecodeError:
            continue
    return None


def other(python: str, kind: str) -> dict[str, Any]:
    """Measure gloo or MPI."""
    first, *more = _ranks(python, kind, False)
    found: dict[str, Any] = {"ms": _first_json(first.stdout)}
    for rank in (first, *more):
        rank.wait()
    for number in (signal.SIGKILL, signal.SIGSTOP):
        ranks = _ranks(python, kind, True)
        process = _first_json(ranks[-1].stderr)
        _first_json(ranks[0].stdout)
        time.sleep(0.5)
        os.kill(process, number)
        began = time.monotonic()
        try:
            printed = ranks[0].communicate(timeout=PATIENCE)[0].splitlines()
            when, error = json.loads(printed[-1]) if printed else (time.monotonic(), "the launcher ends all")
            found[number.name] = f"{when - began:.2f} s, {error}"
        except subprocess.TimeoutExpired:
            found[number.name] = f"nothing in {PATIENCE:g} s"
        for rank in ranks:
            rank.kill()
        if number == signal.SIGSTOP:
            os.kill(process, signal.SIGKILL)
    return found


def _sums(fit: str, addresses: list[str], for_ever: bool) -> Any:
    from convexboost.dask._transport import DaskCommunicator

    found = []
    try:
        with DaskCommunicator(fit, addresses, TIMEOUT) as communicator:
            while for_ever:
                communicator.add(np.arange(SIZES[-1]))
            for size in SIZES:
                array, seconds = np.arange(size), []
                for _ in range(220):
                    began = time.perf_counter()
                    communicator.add(array)
                    seconds.append(time.perf_counter() - began)
                found.append(1e3 * statistics.median(seconds[20:]))
    except RuntimeError as error:
        return time.monotonic(), type(error).__name__
    return found


def with_dask() -> dict[str, Any]:
    """Measure Dask's messages."""
    from distributed import Client, LocalCluster

    def start(client: Client, for_ever: bool) -> tuple[list[Any], list[str]]:
        addresses = sorted(client.nthreads())
        submit: Callable[..., Any] = client.submit
        fit = f"spike {time.time()}"
        return [
            submit(_sums, fit, addresses, for_ever, workers=[a], pure=False) for a in addresses
        ], addresses

    found: dict[str, Any] = {}
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            found["ms"] = client.gather(start(client, False)[0])[0]
            futures, addresses = start(client, True)
            process = client.run(os.getpid)[addresses[1]]
            time.sleep(2.0)
            os.kill(process, number)
            began = time.monotonic()
            when, error = futures[0].result()
            found[number.name] = f"{when - began:.2f} s, {error}"
            if number == signal.SIGSTOP:
                os.kill(process, signal.SIGKILL)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="Dask,gloo,MPI")
    options = parser.parse_args()
    print(f"| transport | {' | '.join(f'{n:,} numbers, ms' for n in SIZES)} | SIGKILL | SIGSTOP |")
    print("| --- " * (len(SIZES) + 3) + "|")
    for kind in options.only.split(","):
        found = with_dask() if kind == "Dask" else other(options.python, kind)
        times = " | ".join(f"{ms:.2f}" for ms in found["ms"] or ())
        print(f"| {kind} | {times} | {found['SIGKILL']} | {found['SIGSTOP']} |", flush=True)


if __name__ == "__main__":
    main()
