"""How the algorithms depend on the edge, and what the theorems say about it, as plain numbers.

Three comparisons on R[f] = mean |f − y| (+ λ/2 ‖f‖²), whose minimum is known in closed form: the gap of
`residual` as the edge halves, the floor of `naive`, and `repeated` against `residual` per weak learner and
per subgradient.  `benchmarks/rates.py` draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexboost.boosting.algorithms import Algorithm, Naive, Repeated, Residual
from convexboost.boosting.steps import Constant, InverseSqrt, InverseTime, Step
from convexboost.boosting.training import boost
from convexboost.core.protocols import HypothesisSet
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses.absolute import Absolute
from convexboost.paper import bounds
from convexboost.paper.worst_case import Coordinates, Miser, Scatter

#: The scale of a step is chosen among these multiples of what the theorem proposes.
MULTIPLES = tuple(2.0**k for k in range(-2, 4))


class OneSided(Absolute):
    """|f − y| with the subgradient +1 at the kink.

    With 0 there, a step that hits the kink exactly would let naive boosting escape.
    """

    has_best_constant = True
    constants = Absolute.constants

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return Σ |f − y| and ±1."""
        return np.abs(F - y).sum(axis=1), np.where(y <= F, 1.0, -1.0)


@dataclass(frozen=True)
class Median:
    """mean |f − y| + λ/2 ‖f‖² over all functions on N points, from f_0 = 0."""

    y: Array
    l2: float = 0.0

    @classmethod
    def of(cls, n_samples: int, seed: int, l2: float = 0.0) -> Median:
        """Make one with normal targets."""
        return cls(np.random.default_rng(seed).normal(size=n_samples), l2)

    @property
    def space(self) -> FunctionSpace:
        """Return the function space."""
        return FunctionSpace.of(len(self.y))

    @property
    def optimum(self) -> Array:
        """f*, each point by itself."""
        return self.y if self.l2 == 0.0 else np.sign(self.y) * np.minimum(np.abs(self.y), 1 / self.l2)

    @property
    def minimum(self) -> float:
        """R*."""
        return float(np.mean(np.abs(self.optimum - self.y) + self.l2 / 2 * self.optimum**2))

    @property
    def d_1(self) -> float:
        """‖f_0 − f*‖; the Lipschitz constant of the loss is 1."""
        return float(np.sqrt(np.mean(self.optimum**2)))

    def run(
        self,
        H: HypothesisSet,
        algorithm: Algorithm,
        step: Step,
        n_rounds: int,
        weak_learners: int | None = None,
    ) -> GapCurve:
        """Boost, and keep the gaps of the evaluated points."""
        found = boost(
            OneSided().bind(self.y, self.space).with_l2(self.l2),
            H,
            algorithm=algorithm,
            step=step,
            n_rounds=n_rounds,
            max_weak_learners=weak_learners,
            start=np.zeros(1),
            random_state=0,
        ).history
        gap = found["objective"][:-1] - self.minimum
        return GapCurve(found["weak_learners"][1:], found["edge"][1:], gap)


@dataclass(frozen=True)
class GapCurve:
    """A run: the weak learners trained after round t, and the gap at x_t, where its subgradient was taken."""

    weak_learners: Array
    edge: Array
    gap: Array

    @property
    def average(self) -> Array:
        """Return the running average gap."""
        return np.cumsum(self.gap) / np.arange(1, len(self.gap) + 1)

    @property
    def best(self) -> Array:
        """Return the best gap so far."""
        return np.minimum.accumulate(self.gap)


# 1. The edge


@dataclass(frozen=True)
class EdgeRow:
    """The average gap of `residual` for one edge, and what bounds it."""

    edge: float
    gap: float
    theorem_b: float
    printed: float  #: the same with the paper's c in the place of √κ


def coordinates(sizes: Sequence[int] = (4, 16, 64, 256), T: int = 4000) -> list[EdgeRow]:
    """One function for each of N points: γ = 1/√N.  Theorem B's step."""
    rows = []
    for N in sizes:
        problem, gamma = Median.of(N, N), 1 / np.sqrt(N)
        step = bounds.theorem_b_step(T, problem.d_1, 1.0, gamma)
        gap = problem.run(Coordinates(problem.space), Residual(), Constant(step), T).average[-1]
        rows.append(_edge_row(problem, gamma, gap, T))
    return rows


def scattered(
    edges: Sequence[float] = (1.0, 0.5, 0.25, 0.125, 0.0625), T: int = 4000, n_samples: int = 256
) -> list[EdgeRow]:
    """A weak learner with exactly this edge; the best of several constant steps."""
    problem, rows = Median.of(n_samples, n_samples), []
    for gamma in edges:
        step = bounds.theorem_b_step(T, problem.d_1, 1.0, gamma)
        runs = [
            problem.run(Scatter(problem.space, gamma), Residual(), Constant(m * step), T) for m in MULTIPLES
        ]
        rows.append(_edge_row(problem, gamma, min(run.average[-1] for run in runs), T))
    return rows


def _edge_row(problem: Median, gamma: float, gap: float, T: int) -> EdgeRow:
    unit = problem.d_1 / np.sqrt(T)
    return EdgeRow(
        gamma,
        float(gap),
        float(unit * np.sqrt(bounds.kappa(gamma))),
        float(unit * bounds.printed_c(gamma)),
    )


# 2. The floor of the naive algorithm


@dataclass(frozen=True)
class Floor:
    """Best gap against weak learners for each algorithm."""

    edge: float
    floor: float  #: no step sizes bring `naive` below it
    curves: dict[str, GapCurve]


def floor(edge: float = 0.5, n_samples: int = 64, weak_learners: int = 4000) -> Floor:
    """All three algorithms with η = 1/√t and a weak learner that prefers the first γ²N points."""
    problem = Median.of(n_samples, 0)
    runs: dict[str, Algorithm] = {"naive": Naive(), "repeated": Repeated(), "residual": Residual()}
    curves = {
        name: problem.run(Miser(problem.space, edge), algorithm, InverseSqrt(), weak_learners, weak_learners)
        for name, algorithm in runs.items()
    }
    seen = int(np.ceil(edge**2 * n_samples - 1e-9))  # |g_n| = 1 everywhere: always the same points
    return Floor(edge, float(np.sum(np.abs(problem.y[seen:])) / n_samples), curves)


# 3. Repeated against residual


@dataclass(frozen=True)
class Efficiency:
    """Average gaps of the algorithms under one budget of weak learners; `threshold` is one run per point."""

    edge: float
    curves: dict[str, GapCurve]
    threshold: list[tuple[int, int, float]]  #: (weak learners, subgradients, average gap)

    def slope(self, name: str) -> float:
        """Fit gap ∝ W^slope to the second half (on a log scale) of a run."""
        W, gap = self.curves[name].weak_learners, self.curves[name].average
        late = np.sqrt(W[-1]) <= W
        return float(np.polyfit(np.log(W[late]), np.log(gap[late]), 1)[0])


def efficiency(
    edge: float = 0.5, l2: float = 0.0, n_samples: int = 64, weak_learners: int = 10_000
) -> Efficiency:
    """η = a/√t with the best a at the end of the budget; 2/(λt) and 1/(λt) where λ > 0."""
    problem = Median.of(n_samples, 0, l2)

    def run(algorithm: Algorithm, steps: Sequence[Step]) -> GapCurve:
        H = Scatter(problem.space, edge)
        runs = [problem.run(H, algorithm, step, weak_learners, weak_learners) for step in steps]
        return min(runs, key=lambda curve: float(curve.average[-1]))

    scale = problem.d_1 / np.sqrt(2)
    slow = scale / np.sqrt(bounds.kappa(edge))
    fixed = l2 > 0.0
    curves = {
        "repeated": run(Repeated(), _steps(2 / l2 if fixed else 0.0, scale)),
        "residual": run(Residual(), _steps(1 / l2 if fixed else 0.0, slow)),
    }
    return Efficiency(edge, curves, [] if fixed else _threshold(problem, edge, weak_learners))


def _steps(over_time: float, scale: float) -> list[Step]:
    if over_time > 0.0:
        return [InverseTime(over_time)]
    return [InverseSqrt(m * scale) for m in MULTIPLES]


def _threshold(problem: Median, edge: float, weak_learners: int) -> list[tuple[int, int, float]]:
    """Section 7.1: τ = 1/4√T and η = d_1/√T, G = 1; the horizon T must be known beforehand."""
    found: list[tuple[int, int, float]] = []
    radius, T = 1.69 * problem.d_1, 4
    while True:
        algorithm = Repeated(accuracy=2 * radius / (4 * np.sqrt(T)), radius=radius)
        step = Constant(problem.d_1 / np.sqrt(T))
        curve = problem.run(Scatter(problem.space, edge), algorithm, step, T)
        if curve.weak_learners[-1] > weak_learners:
            return found
        found.append((int(curve.weak_learners[-1]), T, float(curve.average[-1])))
        T *= 2
