"""The scripts of the benchmarks, imported from their folder."""

import argparse
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench(request):
    """The modules in `NAMES` of the test file."""
    pytest.importorskip("pandas")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return argparse.Namespace(**{name: __import__(name) for name in request.module.NAMES})
    finally:
        sys.path.remove(str(BENCHMARKS))
