"""What accuracy.py makes of the losses on test examples: a paired bootstrap, ranks, and the goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from common import geometric_mean

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Outcome:
    """One model against another on one row of the table; ratios below 1 are ours' gain."""

    ratio: float
    low: float  #: the interval of the ratio, by bootstrap
    high: float
    worse: bool  #: significantly
    better: bool

    @property
    def mark(self) -> str:
        """Return ▲ for significantly better, ▼ for significantly worse."""
        return "▲" if self.better else "▼" if self.worse else ""


def mean(losses: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted mean of each column: the measure that the table shows."""
    return weight @ losses / weight.sum()


def bootstrap(
    losses: np.ndarray, weight: np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> np.ndarray:
    """Return the measures of resampled test examples, (resamples, models): the same examples for all."""
    rng, n = np.random.default_rng(seed), len(losses)
    columns = np.column_stack([weight, weight[:, None] * losses])
    sums = np.array([np.bincount(rng.integers(n, size=n), minlength=n) @ columns for _ in range(resamples)])
    return sums[:, 1:] / sums[:, :1]


def compare(
    ours: np.ndarray,
    peer: np.ndarray,
    weight: np.ndarray,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Outcome:
    """Compare the losses of two models on the same test examples."""
    losses = np.column_stack([ours, peer])
    drawn, tails = bootstrap(losses, weight, resamples), [(1 - level) / 2, (1 + level) / 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.divide(*mean(losses, weight)))
        ratios = drawn[:, 0] / drawn[:, 1]
    low, high = np.quantile(ratios[np.isfinite(ratios)], tails) if np.isfinite(ratios).any() else (0, np.inf)
    # The difference, not the ratio, decides: it is there where a peer makes no error at all.
    least, most = np.quantile(drawn[:, 0] - drawn[:, 1], tails)
    return Outcome(ratio, float(low), float(high), bool(least > 0), bool(most < 0))


def ranks(values: Mapping[str, float]) -> dict[str, float]:
    """Return the rank of each model in a row, 1 for the least loss; ties share theirs."""
    return dict(zip(values, map(float, rankdata(list(values.values()))), strict=True))


def mean_ranks(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean rank of each model over the rows in which it has a value."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name, rank in ranks(row).items():
            found.setdefault(name, []).append(rank)
    return {name: float(np.mean(values)) for name, values in found.items()}


def goals(ours: str, rows: Sequence[Mapping[str, float]], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return mean ranks, the geometric mean of (ours / best peer), and how many rows are lost.

    `outcomes` are ours against the best peer of each row.
    """
    found = mean_ranks(rows)
    return {
        "mean ranks": found,
        "is first": found[ours] <= min(found.values()),
        "geometric mean": geometric_mean(outcome.ratio for outcome in outcomes),
        "worse": [n for n, outcome in enumerate(outcomes) if outcome.worse],
        "better": [n for n, outcome in enumerate(outcomes) if outcome.better],
    }
