"""Processes and threads give the same models, and many fits do not fill the memory."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

from convexboost import ConvexBoostClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
SEEDS = (0, 1, 2, 3)


def fitted(seed):
    return ConvexBoostClassifier(n_rounds=5, random_state=seed).fit(X, CLASSES).predict_proba(X)


@pytest.fixture(scope="module")
def expected():
    return [fitted(seed) for seed in SEEDS]


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes(method, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of a fork beside threads
        with multiprocessing.get_context(method).Pool(2) as pool:
            found = pool.map(fitted, SEEDS)
    np.testing.assert_array_equal(found, expected)


def test_threads(expected):
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_array_equal(list(pool.map(fitted, SEEDS)), expected)


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
def test_joblib(backend, expected):
    found = joblib.Parallel(2, backend=backend)(joblib.delayed(fitted)(seed) for seed in SEEDS)
    np.testing.assert_array_equal(found, expected)


#: Prints the resident memory after 200 fits, and after 1,000.
MANY_FITS = """
import gc
import numpy as np
from convexboost import ConvexBoostRegressor

def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
y = X[:, 0] + rng.normal(size=200)
for fit in range(1, 1001):
    learner = ("tree", "stump")[fit % 2]
    model = ConvexBoostRegressor("absolute", learner, n_rounds=5, n_jobs=1, warm_start=True).fit(X, y)
    model.predict(X)
    if fit in (200, 1000):
        print(resident())
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_of_many_fits():
    done = subprocess.run([sys.executable, "-c", MANY_FITS], capture_output=True, text=True, check=True)
    first, last = map(int, done.stdout.split())
    assert last - first < 5 * 1024  # KiB
