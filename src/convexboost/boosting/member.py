"""One problem and the run on it: the scores, Δ, the model so far, and the loss on rows that were held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from convexboost.boosting.algorithms import State
from convexboost.boosting.options import Options
from convexboost.core.hypotheses import ZERO, Direction, Move
from convexboost.core.model import AdditiveModel
from convexboost.core.protocols import HypothesisSet, Objective, Scores
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.core.tolerances import ROUNDING
from convexboost.inspection.tracker import BoundTracker


@dataclass(frozen=True)
class Problem:
    """What to minimise, and over what.

    Parameters
    ----------
    objective : Objective
        A loss bound to targets, e.g. ``Absolute().bind(y, space)``.
    hypotheses : HypothesisSet
        A weak learner bound to inputs, e.g. ``Stump().bind(X, space)``.
    start : array of shape (n_outputs,), optional
        The constant to start from; by default the best one (0 where an `offset` is given).
    offset : array of shape (n_samples, n_outputs), optional
        Fixed scores per row, added to the start.
    validation : Scores, optional
        An objective placed at validation rows; "best" then means best there.
    weight : float, default=1.0
        How much the validation rows count in the mean over several problems.

    """

    objective: Objective
    hypotheses: HypothesisSet
    start: Array | None = None
    offset: Array | None = None
    validation: Scores | None = None
    weight: float = 1.0

    __repr__ = brief

    def __post_init__(self) -> None:
        if not hasattr(self.objective, "scores"):
            raise TypeError(f"`objective` must be a bound loss, loss.bind(y, space), got {self.objective!r}")
        if not hasattr(self.hypotheses, "zero"):
            raise TypeError(
                f"`hypotheses` must be a bound learner, learner.bind(X, space), got {self.hypotheses!r}"
            )

    def checked_start(self) -> Array:
        """Return the start, of the right shape."""
        n_outputs, start = self.objective.n_outputs, self.start
        if start is None:
            start = self.objective.start() if self.offset is None else np.zeros(n_outputs)
        start = np.asarray(start, float)
        if start.shape != (n_outputs,):
            raise ValueError(f"`start` must have shape ({n_outputs},), got {start.shape}")
        return start


class Found(NamedTuple):
    """What the weak learners of a round found, and the state of the random numbers after it."""

    directions: tuple[Direction, ...]
    random: Any


class Member:
    """The run of an algorithm on one problem, round by round.

    Rounds that are `known` from an earlier run are gone through again, to the same bits, with what their weak
    learners found.
    """

    def __init__(self, problem: Problem, options: Options, rng: np.random.Generator, budget: float) -> None:
        objective, hypotheses = problem.objective, problem.hypotheses
        options.check(objective)
        start = problem.checked_start()
        F = objective.scores(hypotheses.inputs, start, problem.offset)
        hypotheses.zero(objective.n_outputs)  # a set that cannot have this many outputs says so now
        options.step.check(F.constants)
        options.algorithm.check(options.step, F.constants)
        step = options.step.settled(F.constants, options.algorithm.inverse_time)
        self.algorithm, self.validation, self.weight = options.algorithm, problem.validation, problem.weight
        self.n_rows = len(hypotheses.inputs)
        self.tracker = BoundTracker(objective, hypotheses) if options.certifies else None
        self.model = AdditiveModel(start, hypotheses.mapper)
        self.progress = State(F, hypotheses, objective.n_outputs, step, rng, budget=budget)
        self.h: Direction = ZERO  #: the direction of the last round
        self.step = 0.0  #: its step
        self.zeros = 0  #: rounds without a direction, at the end
        self.first_length = 0.0  #: of the first direction
        self.found: list[Found] = []  #: in each round so far
        self.known: Sequence[Found] = ()  #: in the rounds of an earlier run

    @property
    def objective(self) -> float:
        """R, now."""
        return self.progress.F.value()

    @property
    def held_out_loss(self) -> float:
        """Return the loss on the validation rows, NaN where there are none."""
        return math.nan if self.validation is None else self.validation.value()

    @property
    def has_converged(self) -> bool:
        """Return whether nothing in H correlates with the gradient.

        One zero may be a subgradient that cancels the residual; two in a row mean Π∇ = 0.
        """
        return self.zeros >= 2

    @property
    def is_at_minimum(self) -> bool:
        """Return whether R has reached the number that it is never below."""
        minimum = self.progress.F.constants.minimum
        return minimum is not None and self.objective <= minimum

    def round(self) -> None:
        """One round of the algorithm; an empty one where nothing is left to do."""
        progress, t = self.progress, len(self.found)
        known = self.known[t] if t < len(self.known) else None
        progress.found, progress.known = [], () if known is None else known.directions
        if self.model.n_rounds > 0 and (self.has_converged or self.is_at_minimum):
            self.h, self.step = ZERO, 0.0
            self.model.append(Move(ZERO, 0.0))
        else:
            self._move()
        if known is not None:
            progress.rng.bit_generator.state = known.random
        self.found.append(known or Found(tuple(progress.found), progress.rng.bit_generator.state))

    def _move(self) -> None:
        """One round of the algorithm."""
        progress = self.progress
        if self.tracker is not None:
            self.tracker.observe(progress.F)
        found = self.algorithm.round(progress)
        self.model.append(found.move)
        if self.validation is not None:
            self.validation.move(found.move)
        if self.tracker is not None:
            self.tracker.follow(found.move, progress.target)
        progress.budget -= found.h.n_weak_learners
        self.h, self.step = found.h, found.move.size
        self.first_length = self.first_length or found.h.norm
        self.zeros = self.zeros + 1 if found.h.norm <= ROUNDING * self.first_length else 0

    def drop(self, n_rounds: int) -> None:
        """Drop what a later round has left in the model; what was found in the others is known now."""
        self.model = self.model.truncate(min(n_rounds, self.model.n_rounds))
        self.found = self.found[:n_rounds]
        self.known = [*self.found, *self.known[n_rounds:]]

    def state(self) -> dict[str, Any]:
        """Return everything that a round changes, picklable."""
        progress = self.progress
        return {
            "F": progress.F.state(),
            "target": None if progress.target is None else progress.target.state(),
            "validation": None if self.validation is None else self.validation.state(),
            "tracker": None if self.tracker is None else self.tracker.state(),
            "rng": progress.rng.bit_generator.state,
            "t": progress.t,
            "memory": dict(progress.memory),
            "budget": progress.budget,
            "model": self.model.truncate(self.model.n_rounds),
            "lengths": (self.zeros, self.first_length),
            "found": list(self.found),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state of the same problem."""
        progress = self.progress
        progress.F.restore(state["F"])
        progress.target = None
        if state["target"] is not None:
            progress.target = progress.zero()
            progress.target.restore(state["target"])
        if self.validation is not None:
            self.validation.restore(state["validation"])
        if self.tracker is not None:
            self.tracker.restore(state["tracker"])
        progress.rng.bit_generator.state = state["rng"]
        progress.t, progress.memory, progress.budget = state["t"], dict(state["memory"]), state["budget"]
        kept = state["model"]
        self.model = AdditiveModel(
            kept.start, self.model.mapper, list(kept.terms), list(kept.ends), list(kept.multipliers)
        )
        self.zeros, self.first_length = state["lengths"]
        self.found = list(state["found"])
