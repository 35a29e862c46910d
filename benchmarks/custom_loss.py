"""What a user's own loss costs: time per round of copies of built-in losses, relative to the built-in.

    python benchmarks/custom_loss.py

Goals: at most 1.3 for smooth losses and 3 for hinges written in NumPy; PyTorch's automatic differentiation is
reported.  Times are medians over rounds 20 to 120 of one fit, alternating between the two, same model.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import common
import data
from common import median, number, table
from convexboost import ConvexBoostClassifier, ConvexBoostRegressor

ROUNDS = (20, 120)
GOALS = {"smooth": 1.3, "hinge": 3.0}


class HalfSquared:
    """½ (f − y)²."""

    def evaluate(self, F, y):
        R = F - y
        return 0.5 * (R * R).sum(axis=1), R


class Absolute:
    """|f − y|."""

    def evaluate(self, F, y):
        R = F - y
        return np.abs(R).sum(axis=1), np.sign(R)


class Softmax:
    """−log P(y)."""

    def evaluate(self, F, y):
        rows = np.arange(len(F))
        P = F - F.max(axis=1, keepdims=True)
        own = P[rows, y]
        np.exp(P, out=P)
        total = P.sum(axis=1)
        P /= total[:, None]
        P[rows, y] -= 1.0
        return np.log(total) - own, P


class MulticlassHinge:
    """Crammer and Singer."""

    def evaluate(self, F, y):
        rows = np.arange(len(F))
        own = F[rows, y]
        others = F.copy()
        others[rows, y] = -np.inf
        rival = others.argmax(axis=1)
        losses = np.maximum(1.0 + others[rows, rival] - own, 0.0)
        G = np.zeros_like(F)
        violated = np.flatnonzero(losses)
        G[violated, rival[violated]] = 1.0
        G[violated, y[violated]] = -1.0
        return losses, G


class Hinge:
    """max(0, 1 − m)."""

    task = "binary"

    def evaluate(self, F, y):
        sign = np.where(y == 1, 1.0, -1.0)[:, None]
        losses = np.maximum(1.0 - sign * F, 0.0)
        return losses[:, 0], np.where(losses > 0, -sign, 0.0)


class TorchSoftmax:
    """−log P(y), the value alone."""

    def value(self, F, y):
        return F.logsumexp(dim=1) - F.gather(1, y[:, None])[:, 0]


class TorchHalfSquared:
    """½ (f − y)², the value alone."""

    def value(self, F, y):
        return 0.5 * ((F - y) ** 2).sum(dim=1)


#: What is compared: data set, built-in, copy, kind.
CASES = [
    ("california_housing", "half_squared", HalfSquared, "smooth"),
    ("california_housing", "absolute", Absolute, "hinge"),
    ("letter", "softmax", Softmax, "smooth"),
    ("pendigits", "softmax", Softmax, "smooth"),
    ("letter", "multiclass_hinge", MulticlassHinge, "hinge"),
    ("pendigits", "multiclass_hinge", MulticlassHinge, "hinge"),
    ("satimage", "multiclass_hinge", MulticlassHinge, "hinge"),
    ("connect4 (win or not)", "hinge", Hinge, "hinge"),
    ("california_housing", "half_squared", TorchHalfSquared, "autodiff"),
    ("letter", "softmax", TorchSoftmax, "autodiff"),
]


def problem(name: str) -> tuple[Any, Any]:
    if name.startswith("connect4"):
        X, y, _ = data.connect4()
        return X, (y == 2).astype(int)
    X, y, *_ = getattr(data, name)()
    return X, y


def seconds(X: Any, y: Any, loss: Any) -> float:
    classification = np.asarray(y).dtype.kind == "i"
    make = ConvexBoostClassifier if classification else ConvexBoostRegressor
    model = make(loss, "stump", n_rounds=ROUNDS[1], early_stopping=False).fit(X, y)
    return common.per_round(model.history_, *ROUNDS)


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    found = []
    for name, built_in, copy, kind in CASES:
        if kind == "autodiff":
            try:
                import torch  # noqa: F401
            except ImportError:
                continue
        X, y = problem(name)
        pairs = [(seconds(X, y, built_in), seconds(X, y, copy())) for _ in range(arguments.repeats + 1)][1:]
        ratios = [b / a for a, b in pairs]
        found.append(
            {
                "set": name,
                "loss": built_in,
                "kind": kind,
                "built-in": median([a for a, _ in pairs]),
                "own": median([b for _, b in pairs]),
                "ratios": ratios,
            }
        )
        common.note(f"{name} {built_in}: {median(ratios):.3g}")
    return found


def page(results: dict[str, Any], arguments: argparse.Namespace) -> str:
    rows = [
        [
            r["set"],
            r["loss"],
            r["kind"],
            number(1e3 * r["built-in"]),
            number(1e3 * r["own"]),
            number(median(r["ratios"])),
            " to ".join(number(f(r["ratios"])) for f in (min, max)),
            str(GOALS.get(r["kind"], "")),
        ]
        for r in results["cases"]
    ]
    head = ["data", "loss", "kind", "built-in, ms a round", "own, ms", "ratio", "range", "goal"]
    return "\n".join(
        [
            "A user's copy of a loss in NumPy (or, `autodiff`, its value in PyTorch) against the built-in.",
            "",
            table(head, rows),
        ]
    )


def main() -> None:
    arguments = common.parse(common.parser(__doc__, repeats=5))
    results = {"cases": measure(arguments), "goals": GOALS}
    title = "A user's own loss against the built-in"
    common.publish(arguments, "custom_loss", title, page(results, arguments), results)


if __name__ == "__main__":
    main()
