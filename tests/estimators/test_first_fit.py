"""A first fit compiles few kernels: each one more makes a new user wait."""

import os
import subprocess
import sys

import pytest

#: Fits and predicts at the defaults, and prints how often each function was compiled.
FIT = """
import collections, sys
import numpy as np
from numba.core.event import Listener, register
import convexboost

class Counter(Listener):
    names = collections.Counter()

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("convexboost."):
            self.names[f"{function.__module__}.{function.__name__}"] += 1

    def on_end(self, event):
        pass

counter = Counter()
register("numba:compile", counter)
Estimator = getattr(convexboost, sys.argv[1])
print(sum(counter.names.values()))
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 10))
y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=300)
Estimator().fit(X, y if sys.argv[1] == "ConvexBoostRegressor" else y > 0.0).predict(X)
print(sum(counter.names.values()))
print(*(name for name, count in counter.names.items() if count > 1))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "most"), [("ConvexBoostRegressor", 36), ("ConvexBoostClassifier", 41)])
def test_few_functions_are_compiled(tmp_path, estimator, most):
    """None by the import, and none twice: with other types of its arguments, say."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    found = subprocess.check_output([sys.executable, "-c", FIT, estimator], env=environment, text=True)
    by_import, in_all, *twice = found.split()
    assert int(by_import) == 0
    assert not twice
    assert int(in_all) <= most


#: Fits with the shortcuts that reach into Numba, or without, and prints a prediction.
SHORTCUTS = """
import sys
import numba, numpy as np
if sys.argv[1] == "newer":
    numba.version_info = numba.version_info._replace(short=(99, 0))
from convexboost import ConvexBoostRegressor
from convexboost.core import compiling
X = np.random.default_rng(0).normal(size=(60, 2))
model = ConvexBoostRegressor(random_state=0).fit(X, X[:, 0])
print(compiling.HAS_SHORTCUTS, model.predict(X[:1])[0].hex())
"""


@pytest.mark.slow
def test_a_newer_numba_compiles_in_its_own_way(tmp_path):
    """The same model, from new kernels and from those on disk."""
    found = []
    for numba in ("known", "newer"):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / numba), "NUMBA_DISABLE_JIT": "0"}
        command = [sys.executable, "-c", SHORTCUTS, numba]
        found += [subprocess.check_output(command, env=environment, text=True).split() for _ in range(2)]
    assert [shortcuts for shortcuts, _ in found] == ["True", "True", "False", "False"]
    assert len({prediction for _, prediction in found}) == 1


#: Fits at the defaults, and prints whether Numba's runtime or its library of functions was loaded.
LOADED = """
import sys
import numpy as np
from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from numba.core.runtime.nrt import rtsys
X = np.random.default_rng(0).normal(size=(90, 2))
y = X[:, 0] + X[:, 1] ** 2
models = {
    "two": ConvexBoostClassifier(),
    "several": ConvexBoostClassifier(),
    **{name: ConvexBoostRegressor(name) for name in ("half_squared", "absolute", "quantile:0.1")},
}
for name, model in models.items():
    bounds = {"two": [1.0], "several": [0.5, 1.5]}.get(name)
    model.set_params(n_rounds=5).fit(X, y if bounds is None else np.digitize(y, bounds)).predict(X)
print(rtsys._init, "numba.np.arrayobj" in sys.modules)
"""


@pytest.mark.slow
def test_kernels_on_disk_need_no_runtime_of_numba(tmp_path):
    """It takes some 25 MiB and a part of a second in each process.  A kernel without arrays of its own, made
    by `@kernel(allocates=False)`, does without.
    """
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", LOADED]
    found = [subprocess.check_output(command, env=environment, text=True).split() for _ in range(2)]
    assert found == [["True", "True"], ["False", "False"]]
