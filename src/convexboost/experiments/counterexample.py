"""Two points on which Algorithm 1 fails and Algorithms 2 and 3 do not: the example in Section 4 of the paper.

R[f] = ½ (a_1 |f(x_1)| + a_2 |f(x_2)|) with a_1 > a_2, and H has one function for each point.  Naive boosting
always projects on the steeper point: f(x_1) tends to 0 and f(x_2) never moves, whatever the step sizes,
although every edge is large.  With slopes 2 and 0.9 no two projections are ever equally long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from convexboost.algorithms import Algorithm
from convexboost.core import Array, Constants, FunctionSpace
from convexboost.learners.finite import FiniteSet
from convexboost.objectives._base import RowLoss
from convexboost.steps import Step
from convexboost.train import Result, boost


class Slopes(RowLoss):
    """l(f, a) = a |f|: the target of a row is its slope.

    At the kink +a: with 0 there, a step that hits the kink exactly would let naive boosting escape.
    """

    name: ClassVar[str] = "slopes"
    task: ClassVar[str] = "regression"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return a |f| and a sgn f."""
        return (y * np.abs(F)).sum(axis=1), np.where(F >= 0.0, y, -y)

    def constants(self, n_outputs: int) -> Constants:
        """Return the minimum; the Lipschitz constant depends on the slopes."""
        return Constants(minimum=0.0)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return 0."""
        return np.zeros(n_outputs)


@dataclass(frozen=True)
class Run:
    """What happened."""

    result: Result
    points: Array  #: f_0 … f_T, shape (n_rounds + 1, number of points)

    @property
    def objective(self) -> Array:
        """Return R[f_0] … R[f_T]."""
        return self.result.history["objective"]


def run(
    algorithm: str | Algorithm,
    n_rounds: int,
    slopes: Sequence[float] = (2.0, 0.9),
    step: str | Step = "inverse_sqrt",
    start: float = 1.0,
) -> Run:
    """Boost from f_0 = `start` at every point."""
    space = FunctionSpace.of(len(slopes))
    rows = np.arange(len(slopes))
    result = boost(
        Slopes().bind(slopes, space),
        FiniteSet(np.eye(len(slopes))[:, :, None], space),
        algorithm=algorithm,
        step=step,
        n_rounds=n_rounds,
        output="last",
        start=np.array([start]),
    )
    first = result.path.truncate(0).predict(rows)
    return Run(result, np.array([first, *result.path.staged_predict(rows)])[:, :, 0])
