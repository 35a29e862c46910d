"""Kernels on disk, and what is said while they are compiled."""

import os
import pty
import subprocess
import sys

import numba
import pytest

from convexboost.core.compiling import NOTICE

SOURCE = """
from typing import Any, NamedTuple
from convexboost.core.compiling import kernel

class {name}(NamedTuple):
    x: Any

@kernel
def multiply(given):
    return {factor} * given.x

def run():
    return multiply({name}(1.5)), sum(multiply.stats.cache_hits.values())
"""


@pytest.mark.slow
def test_a_tuple_with_another_name(tmp_path):
    """A file that changed is compiled again, also where the cache knows a tuple that is gone."""
    module, command = tmp_path / "cached.py", [sys.executable, "-c", "import cached; print(*cached.run())"]
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_DISABLE_JIT": "0",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    }
    found = []
    for name, factor in (("Old", 2), (None, None), ("New", 20)):
        if name is not None:
            module.write_text(SOURCE.format(name=name, factor=factor))
        found.append(subprocess.check_output(command, env=environment, text=True, stderr=subprocess.STDOUT))
    assert found == ["3.0 0\n", "3.0 1\n", "30.0 0\n"]


#: Calls two kernels.
CALLS = """
import numpy as np
from convexboost.kernels.hashing import draw, fingerprints_of_codes
draw(0, 1, 2), fingerprints_of_codes(np.zeros((2, 1), np.uint8), np.zeros(2, np.uint64))
"""


def test_a_terminal_is_told_once_that_kernels_are_compiled(tmp_path):
    """Nothing is said in a pipe, nor where the kernels are on disk."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}

    def say(cache, on_terminal):
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / cache)
        command = [sys.executable, "-c", CALLS]
        if not on_terminal:
            return subprocess.run(
                command, env=environment, check=True, stderr=subprocess.PIPE
            ).stderr.decode()
        ours, theirs = pty.openpty()
        subprocess.run(command, env=environment, check=True, stderr=theirs)
        os.close(theirs)
        said = b""
        while chunk := _read(ours):
            said += chunk
        os.close(ours)
        return said.decode()

    assert say("one", on_terminal=True).splitlines() == [NOTICE]
    assert say("one", on_terminal=True) == ""
    assert say("another", on_terminal=False) == ""


def _read(terminal):
    """Return what a terminal holds; nothing once its other end is closed, which Linux takes for an error."""
    try:
        return os.read(terminal, 1000)
    except OSError:
        return b""


def test_other_peoples_functions_compile():
    """A function made by `exec` has no module; the listener of the notice hears of it all the same."""
    names: dict[str, object] = {}
    exec("def add(x):\n    return x + 1", names)
    assert numba.njit(names["add"])(1) == 2
