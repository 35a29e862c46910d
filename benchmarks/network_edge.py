"""Edge and seconds of one weak learner: our networks of five units against scikit-learn's MLPRegressor.

    python benchmarks/network_edge.py

Random inputs and five targets; each learner projects each target once from each of several seeds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

import common
from common import geometric_mean, median, number, table, timed
from convexboost.core.gradients import Gradient
from convexboost.core.space import FunctionSpace
from convexboost.learners.network import Network
from convexboost.learners.regressor import Regressor

HIDDEN, NOISE = 5, 0.3
OURS = "network"
#: L-BFGS stopped after so many iterations takes about as long as we do.
FEW = 20


def mlp(**options: Any) -> Regressor:
    return Regressor(MLPRegressor(hidden_layer_sizes=(HIDDEN,), activation="tanh", **options))


LEARNERS: dict[str, Any] = {
    OURS: Network(HIDDEN),
    "MLP adam": mlp(),
    "MLP lbfgs": mlp(solver="lbfgs"),
    f"MLP lbfgs, {FEW} iterations": mlp(solver="lbfgs", max_iter=FEW),
}


def targets(X: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield vectors Δ from easy to impossible; the inputs are standard normal, as an MLP likes them."""
    n, d = X.shape
    noise = NOISE * rng.normal(size=(n, 1))
    inward, outward = rng.normal(size=(d, HIDDEN)) / np.sqrt(d), rng.normal(size=(HIDDEN, 1))
    yield "a network", np.tanh(2 * X @ inward + rng.normal(size=HIDDEN)) @ outward + noise
    yield "a product", X[:, :1] * X[:, 1:2] + noise
    yield "a corner", np.sign(X[:, :1]) * (X[:, 1:2] > 0.5) + noise
    y = np.argmax(X @ rng.normal(size=(d, 4)) + X[:, :4] * X[:, 1:5], axis=1)
    yield "hinge, 4 classes", np.eye(4)[rng.integers(4, size=n)] - np.eye(4)[y]
    yield "noise", rng.normal(size=(n, 1))


def compare(X: np.ndarray, V: np.ndarray, repeats: int) -> dict[str, dict[str, list[float]]]:
    """Project V with each learner in turn, from a new seed each time."""
    space = FunctionSpace.of(len(X))
    bound = {name: learner.bind(X, space) for name, learner in LEARNERS.items()}
    found: dict[str, dict[str, list[float]]] = {name: {"seconds": [], "edge": []} for name in bound}
    for seed in range(-1, repeats):
        for name, hypotheses in bound.items():
            if seed < 0 and name != OURS:  # only ours has something to compile
                continue
            target = hypotheses.zero(V.shape[1])
            target.add(Gradient(V, space))
            seconds, h = timed(lambda t=target, s=seed: t.project(np.random.default_rng(s + 1)))
            if seed >= 0:
                found[name]["seconds"].append(seconds)
                found[name]["edge"].append(h.edge)
    return found


def page(found: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = []
    for target, one in found.items():
        for name, measured in one.items():
            squares = np.square(measured["edge"])
            slower = median(measured["seconds"]) / median(one[OURS]["seconds"])
            rows.append(
                [
                    target,
                    name,
                    f"{squares.mean():.3g} ({squares.min():.3g} to {squares.max():.3g})",
                    number(1e3 * median(measured["seconds"])),
                    "" if name == OURS else number(slower),
                    "" if name == OURS else number(squares.mean() / np.mean(np.square(one[OURS]["edge"]))),
                ]
            )
    header = ("target", "learner", "edge²", "ms", "time / ours", "edge² / ours")
    summary = [
        f"{name}: {number(ratio(found, name, 'seconds'))} times our seconds, "
        f"{number(ratio(found, name, 'edge') ** 2)} times our edge²"
        for name in LEARNERS
        if name != OURS
    ]
    return "\n\n".join(
        [
            f"One projection of a target over {arguments.rows:,} rows and {arguments.features} features, "
            f"{HIDDEN} hidden units (tanh), other options at their defaults. Mean edge² (least to most) and "
            f"median milliseconds of {arguments.repeats} seeds, the learners in turn.",
            table(header, rows),
            "Geometric means of the ratios over the targets: " + "; ".join(summary) + ".",
        ]
    )


def ratio(found: dict[str, Any], name: str, what: str) -> float:
    """Return the geometric mean of medians relative to ours."""
    return geometric_mean(median(one[name][what]) / median(one[OURS][what]) for one in found.values())


def main() -> None:
    parser = common.parser(__doc__, repeats=10)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=10)
    arguments = common.parse(parser, rows=500)
    warnings.simplefilter("ignore", ConvergenceWarning)  # MLPRegressor says so in most of its fits
    rng = np.random.default_rng(0)
    X = rng.normal(size=(arguments.rows, arguments.features))
    found = {}
    for name, V in targets(X, rng):
        common.note(name)
        found[name] = compare(X, V, arguments.repeats)
    common.publish(
        arguments,
        "network_edge",
        "One weak learner: networks against MLPRegressor",
        page(found, arguments),
        {"targets": found, "rows": arguments.rows, "features": arguments.features},
    )


if __name__ == "__main__":
    main()
