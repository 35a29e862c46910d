"""Damaged model files: refused, or the same predictions; no crash, no hang, no memory beyond the bound."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy

from convexboost import ModelFormatError, load
from convexboost.persistence import _container
from tests.persistence.cases import fitted

MIB = 2**20
CASES = [
    ("softmax", "tree", "mixed"),
    ("quantiles", "tree", "plain"),
    ("logistic", "stump", "mixed"),
    ("half_squared", "additive", "plain"),
    ("poisson", "network", "mixed"),
    ("with a coupling", "tree", "plain"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for i, (label, name, kind) in enumerate(CASES):
        model, inputs = fitted(label, name, kind)
        model.save(folder / f"{i}.cbm")
        np.save(folder / f"{i}.npy", inputs.new)
    return folder


def check(seed, count, folder):
    command = [sys.executable, "-W", "ignore", "-m", "tests.persistence.mutations", str(seed), str(count)]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert not found["wrong"], found["wrong"][:5]
    assert found["beyond"] <= 0, "more memory than 4 times the file plus 16 MiB"
    assert found["resident"] < 64, "MiB"
    assert found["slowest"] < 5.0, "seconds"
    outcomes = found["found"]
    assert outcomes["as it is, refused"] > 0.4 * count
    assert outcomes["repaired, refused"] > 0.2 * count
    assert outcomes["repaired, loaded"] > 0.02 * count  # else it would not reach what comes after loading


BOMBS = {
    "lists in the description": {"description": "[" + "[]," * 170_000 + "[]]"},
    "nested lists": {"description": "[" * 200_000},
    "a long number": {"description": "1" * 400_000},
    "many arrays": {"arrays": {f"{i:x}": np.empty(0, np.uint8) for i in range(7000)}},
    "a shape without numbers": {"arrays": {"a": np.empty((2**60, 0), np.uint8)}},
    "many empty texts": {"arrays": {"text": np.empty(0, np.uint8), "text_ends": np.zeros(60_000, np.int64)}},
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_small_files_that_want_much_memory(bomb, tmp_path):
    """Written by an attacker, with the right checksum."""
    given = {"description": "{}", "arrays": {}} | BOMBS[bomb]
    names = {np.dtype(ours): name for name, ours in _container.DTYPES.items()}
    tensors = {name: (names[a.dtype], a.shape, a.tobytes()) for name, a in given["arrays"].items()}
    metadata = {
        "format": _container.MODEL,
        "version": str(_container.VERSION),
        "description": given["description"],
        "checksum": _container.checksum(given["description"], tensors),
    }
    path = tmp_path / "m"
    path.write_bytes(safetensors.numpy.save(given["arrays"], metadata))
    assert peak_of(path) < 4 * path.stat().st_size + 16 * MIB


def peak_of(path):
    """The most memory that loading takes; damaged files are refused."""
    tracemalloc.start()
    try:
        with contextlib.suppress(ModelFormatError):
            load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["stump", pytest.param("tree", marks=pytest.mark.slow)])
def test_memory_of_an_undamaged_file(name, tmp_path):
    """Many small trees are the worst case: each is a Python object with several arrays."""
    model, _ = fitted("half_squared", name, "plain", 60, 3000)
    model.save(tmp_path / "m")
    load(tmp_path / "m")
    assert peak_of(tmp_path / "m") < 4 * (tmp_path / "m").stat().st_size + 16 * MIB


def test_damaged_files(folder):
    check(0, 100, folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_thousand_damaged_files(seed, folder):
    check(seed, 1000, folder)
