"""The types that a user's program sees."""

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "users_script.py"


def test_the_package_says_that_it_is_typed():
    assert files("convexboost").joinpath("py.typed").is_file()


@pytest.mark.slow
def test_a_users_script_is_typed(tmp_path):
    pytest.importorskip("mypy", reason="needs mypy: make lint installs it")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", SCRIPT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow  # it compiles many kernels
def test_a_users_script_runs(tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install convexboost[plot]")
    subprocess.run(
        [sys.executable, "-W", "error", SCRIPT],
        check=True,
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
