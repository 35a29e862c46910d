"""Kernels on disk."""

import os
import subprocess
import sys

import pytest

SOURCE = """
from typing import Any, NamedTuple
from convexboost.kernels.compiling import kernel

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
