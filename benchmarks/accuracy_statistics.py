"""What accuracy.py makes of the losses on test examples: a paired bootstrap, ranks, and the goals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from common import geometric_mean

RESAMPLES = 2000
LEVEL = 0.95
CLIP = (0.8, 1.25)  #: of a ratio that goes into a mean
TINY = 1e-6  #: a loss below it counts as this much


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


def redraws(n: int, resamples: int = RESAMPLES, seed: int = 0) -> Iterator[np.ndarray]:
    """Yield how often each of n examples is in a resample: the same for all models."""
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.bincount(rng.integers(n, size=n), minlength=n)


def bootstrap(
    losses: np.ndarray, weight: np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> np.ndarray:
    """Return the measures of resampled test examples, (resamples, models)."""
    columns = np.column_stack([weight, weight[:, None] * losses])
    sums = np.array([counts @ columns for counts in redraws(len(losses), resamples, seed)])
    return sums[:, 1:] / sums[:, :1]


def one_minus_auc(label: np.ndarray, score: np.ndarray) -> Callable[[np.ndarray], float]:
    """Return the share of wrongly ordered pairs as a function of how often each example counts.

    A tie counts half; NaN where a class is absent.
    """
    place = np.unique(score, return_inverse=True)[1]

    def share(counts: np.ndarray) -> float:
        positive = np.bincount(place, counts * (label == 1))
        negative = np.bincount(place, counts * (label == 0))
        above = negative.sum() - np.cumsum(negative)
        pairs = positive.sum() * negative.sum()
        return float(positive @ (above + negative / 2) / pairs) if pairs else np.nan

    return share


def compare(
    ours: np.ndarray,
    peer: np.ndarray,
    weight: np.ndarray,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Outcome:
    """Compare the losses of two models on the same test examples."""
    losses = np.column_stack([ours, peer])
    return outcome(mean(losses, weight), bootstrap(losses, weight, resamples), level)


def outcome(values: np.ndarray, drawn: np.ndarray, level: float = LEVEL) -> Outcome:
    """Compare two models by a measure of theirs (ours first) and by its values on resamples."""
    tails = [(1 - level) / 2, (1 + level) / 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.divide(*values))
        ratios = drawn[:, 0] / drawn[:, 1]
    low, high = np.quantile(ratios[np.isfinite(ratios)], tails) if np.isfinite(ratios).any() else (0, np.inf)
    # The difference, not the ratio, decides: it is there where a peer makes no error at all.
    least, most = np.nanquantile(drawn[:, 0] - drawn[:, 1], tails)
    return Outcome(ratio, float(low), float(high), bool(least > 0), bool(most < 0))


def clipped(ours: float, peer: float) -> float:
    """Return ours / peer, at least 0.8 and at most 1.25, so that no single row decides a mean."""
    return float(np.clip(max(ours, TINY) / max(peer, TINY), *CLIP))


def ranks(values: Mapping[str, float], ties: str = "average") -> dict[str, float]:
    """Return the rank of each model in a row, 1 for the least loss; ties share theirs."""
    return dict(zip(values, map(float, rankdata(list(values.values()), method=ties)), strict=True))


def mean_ranks(rows: Sequence[Mapping[str, float]], ties: str = "average") -> dict[str, float]:
    """Return the mean rank of each model over the rows in which it has a value."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name, rank in ranks(row, ties).items():
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
