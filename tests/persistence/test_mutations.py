"""Damaged model files: refused, or the same predictions; no crash, no hang, no memory beyond the bound."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.persistence.cases import fitted

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


def test_damaged_files(folder):
    check(0, 300, folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_thousand_damaged_files(seed, folder):
    check(seed, 1000, folder)
