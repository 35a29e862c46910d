"""Messages and bytes that a rank sends in a round, for learners and algorithms, with two Dask workers.

    python benchmarks/traffic.py                     # prints the table of docs/distributed.md

The same fit is made with few and with more rounds; the difference is what rounds cost.  Counts do not depend
on the machine, so one run is enough.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.dask._transport import DaskCommunicator
from convexboost.estimators._input import Given

FEW, MORE = 4, 14
N_ROWS, N_COLUMNS = 4000, 20

CASES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "tree, squares": (ConvexBoostRegressor, {"early_stopping": False}),
    "tree, absolute": (ConvexBoostRegressor, {"loss": "absolute", "early_stopping": False}),
    "tree, squares, five members": (ConvexBoostRegressor, {}),
    "tree, 10 classes": (ConvexBoostClassifier, {"early_stopping": False}),
    "stump, naive, absolute": (
        ConvexBoostRegressor,
        {"loss": "absolute", "learner": "stump", "algorithm": "naive", "early_stopping": False},
    ),
    "stump, residual, absolute": (
        ConvexBoostRegressor,
        {"loss": "absolute", "learner": "stump", "early_stopping": False},
    ),
    "stump, repeated, absolute": (
        ConvexBoostRegressor,
        {"loss": "absolute", "learner": "stump", "algorithm": "repeated", "early_stopping": False},
    ),
    "additive, absolute": (
        ConvexBoostRegressor,
        {"loss": "absolute", "learner": "additive", "early_stopping": False},
    ),
}


def rank(case: str, n_rounds: int, addresses: list[str]) -> tuple[int, int, int]:
    """Fit on the rows of one rank; return messages, bytes and weak learners."""
    kind, settings = CASES[case]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    f = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=N_ROWS)
    y = np.digitize(f, np.quantile(f, np.arange(0.1, 0.95, 0.1))) if kind is ConvexBoostClassifier else f
    with DaskCommunicator(f"{case}-{n_rounds}", addresses) as communicator, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = np.arange(N_ROWS) % communicator.size == communicator.rank
        model = kind(n_rounds=n_rounds, n_jobs=1, random_state=0, **settings)
        model._fit(Given(X[own], y[own], communicator=communicator))
        return communicator.n_messages, communicator.n_bytes, int(model.history_["weak_learners"][-1])


def main() -> None:
    print("| learner and loss | messages a round | kB a round | weak learners a round |")
    print("| --- | --- | --- | --- |")
    options = {"n_workers": 2, "processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        addresses = list(client.scheduler_info(n_workers=-1)["workers"])
        for case in CASES:
            found = []
            for n_rounds in (FEW, MORE):
                tasks = [
                    client.submit(rank, case, n_rounds, addresses, workers=[address], pure=False)
                    for address in addresses
                ]
                found.append(np.array(client.gather(tasks)[0]))
            messages, sent, learners = (found[1] - found[0]) / (MORE - FEW)
            print(f"| {case} | {messages:.1f} | {sent / 1e3:.1f} | {learners:.1f} |", flush=True)


if __name__ == "__main__":
    main()
