"""The driver: runs an algorithm round by round, records, watches, and builds the model.

Everything the algorithms must not know is here: budgets, validation, early stopping, callbacks, the
divergence guard, and which iterate is handed out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from numbers import Real
from typing import Any

import numpy as np

from convexboost.algorithms import Algorithm, State
from convexboost.certificates import Certificate, Watch
from convexboost.core import (
    ROUNDING,
    ZERO,
    AdditiveModel,
    Array,
    Direction,
    HypothesisSet,
    Objective,
    Scores,
)
from convexboost.registry import resolve
from convexboost.steps import STEPS, Step
from convexboost.variants import ALGORITHMS

OUTPUTS = ("last", "best", "average")
#: An objective that has risen this many times as much as could be gained at the start: diverged.
DIVERGED = 1e3


@dataclass(frozen=True)
class Record:
    """One row of the history.  Round 0 is the start."""

    round: int
    objective: float  #: R after the round
    validation: float  #: the loss on the validation set after the round; NaN without one
    edge: float  #: of the vector projected in this round; NaN where its norm is not known
    intrinsic_edge: float  #: the same inside span(H); every tenth round of `residual`, where that is cheap
    step: float
    weak_learners: int  #: trained so far
    gradient_evaluations: int  #: so far
    seconds: float  #: since the start
    # With `certificate`:
    gradient_norm: float = math.nan  #: of the subgradient this round began with
    length: float = math.nan  #: of the direction found
    residual_norm: float = math.nan  #: ‖ΠΔ‖ after the round; now and then, where span(H) is known
    average: float = math.nan  #: mean of R over the points where a subgradient was taken
    lower_bound: float = math.nan  #: no model has a smaller R; the largest found so far


Callback = Callable[[Record], Any]


@dataclass(frozen=True)
class Result:
    """A finished run."""

    model: AdditiveModel  #: the iterate asked for: last, best or average
    path: AdditiveModel  #: all rounds
    records: list[Record]
    best_round: int
    reason: str  #: why training stopped
    diverged: bool
    certificate: Certificate | None = None  #: how far from optimal the model can be, if asked for

    @property
    def history(self) -> dict[str, Array]:
        """Return the records as columns; those of the certificate only where it was asked for."""
        names = [f.name for f in fields(Record) if self.certificate is not None or f.default is MISSING]
        return {name: np.array([getattr(record, name) for record in self.records]) for name in names}


class Training:
    """A run in progress: `run` finishes it; `state` and `restore` stop and resume it exactly."""

    def __init__(
        self,
        objective: Objective,
        hypotheses: HypothesisSet,
        *,
        algorithm: Algorithm,
        step: Step,
        start: Array,
        offset: Array | None,
        validation: Scores | None,
        n_rounds: int,
        max_weak_learners: float,
        n_iter_no_change: float,
        rng: np.random.Generator,
        certificate: bool = False,
        stop_when_gap_below: float = 0.0,
    ) -> None:
        F = objective.scores(hypotheses.inputs, start, offset)
        hypotheses.zero(objective.n_outputs)  # a set that cannot have so many outputs says so now
        step.check(F.constants)
        algorithm.check(step, F.constants)
        self.algorithm, self.validation, self.gap = algorithm, validation, stop_when_gap_below
        self.watch = Watch(objective, hypotheses) if certificate or stop_when_gap_below > 0.0 else None
        self.n_rounds, self.n_iter_no_change = n_rounds, n_iter_no_change
        self.model = AdditiveModel(start, hypotheses.mapper)
        self.progress = State(F, hypotheses, objective.n_outputs, step, rng, budget=max_weak_learners)
        self.records: list[Record] = []
        self.reason = ""
        self.diverged = False
        self._best = 0  #: row of the best record
        self._zeros = 0
        self._first_length = 0.0
        self._first_gap = F.gap()
        self._clock = time.perf_counter()
        self._record(ZERO, 0.0)

    def run(self, callbacks: Sequence[Callback] = ()) -> None:
        """Train until something says stop, and keep the reason."""
        # A run that is resumed may have been finished already.
        self.reason = self._finished() if self.progress.t > 0 else self._exhausted()
        try:
            self._tell(callbacks)
            while not self.reason:
                self.round()
                self._tell(callbacks)
        except KeyboardInterrupt:  # keep the rounds that were finished
            self.reason = "interrupted"
            self.model = self.model.truncate(len(self.records) - 1)

    def _tell(self, callbacks: Sequence[Callback]) -> None:
        for callback in callbacks:  # all of them, also when one asks to stop
            if callback(self.records[-1]):
                self.reason = self.reason or "a callback asked to stop"

    def round(self) -> None:
        """One round of the algorithm, recorded."""
        progress = self.progress
        if self.watch is not None:
            self.watch.observe(progress.F)
        found = self.algorithm.round(progress)
        self.model.append(found.move)
        if self.validation is not None:
            self.validation.move(found.move)
        if self.watch is not None:
            self.watch.follow(found.move, progress.target)
        progress.budget -= found.h.n_weak_learners
        self._record(found.h, found.move.size)
        self._first_length = self._first_length or found.h.norm
        # One zero may be a subgradient that cancels the residual; two in a row mean Π∇ = 0.
        self._zeros = self._zeros + 1 if found.h.norm <= ROUNDING * self._first_length else 0
        self.reason = self._finished()

    @property
    def best_round(self) -> int:
        """Return the round with the best validation loss, or objective where there is no validation set."""
        return self.records[self._best].round

    def result(self, output: str) -> Result:
        """Build the model that was asked for."""
        best = self.best_round
        if self.diverged:  # nobody wants the last iterate then
            output = "best"
        model = {
            "last": lambda: self.model,
            "best": lambda: self.model.truncate(best),
            "average": lambda: self.model.average(),
        }[output]()
        certificate = None if self.watch is None else self.watch.certificate(self.progress.F)
        return Result(model, self.model, self.records, best, self.reason, self.diverged, certificate)

    def state(self) -> dict[str, Any]:
        """Return everything that changes, picklable; data, targets and hyper-parameters stay outside."""
        progress = self.progress
        return {
            "F": progress.F.state(),
            "target": None if progress.target is None else progress.target.state(),
            "validation": None if self.validation is None else self.validation.state(),
            "watch": None if self.watch is None else self.watch.state(),
            "rng": progress.rng.bit_generator.state,
            "t": progress.t,
            "memory": dict(progress.memory),
            "budget": progress.budget,
            "model": self.model.truncate(self.model.n_rounds),
            "records": list(self.records),
            "counters": (self._best, self._zeros, self._first_length),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        progress = self.progress
        progress.F.restore(state["F"])
        progress.target = None
        if state["target"] is not None:
            progress.target = progress.zero()
            progress.target.restore(state["target"])
        if self.validation is not None:
            self.validation.restore(state["validation"])
        if self.watch is not None:
            self.watch.restore(state["watch"])
        progress.rng.bit_generator.state = state["rng"]
        progress.t, progress.memory, progress.budget = state["t"], dict(state["memory"]), state["budget"]
        model = state["model"]
        self.model = AdditiveModel(model.start, self.model.mapper, *_copies(model))
        self.records = list(state["records"])
        self._best, self._zeros, self._first_length = state["counters"]
        self._clock = time.perf_counter() - self.records[-1].seconds
        self.reason = ""

    def _record(self, h: Direction, step: float) -> None:
        self.records.append(
            Record(
                round=self.progress.t,
                objective=self.progress.F.value(),
                validation=math.nan if self.validation is None else self.validation.value(),
                edge=h.edge,
                intrinsic_edge=h.intrinsic_edge,
                step=step,
                weak_learners=h.n_weak_learners + (self.records[-1].weak_learners if self.records else 0),
                gradient_evaluations=self.progress.t,
                seconds=time.perf_counter() - self._clock,
                **({} if self.watch is None else self.watch.record(h)),
            )
        )
        if self._merit(-1) < self._merit(self._best):
            self._best = len(self.records) - 1

    def _merit(self, row: int) -> float:
        record = self.records[row]
        return record.objective if self.validation is None else record.validation

    def _exhausted(self) -> str:
        if self.progress.t >= self.n_rounds:
            return f"all {self.n_rounds} rounds done"
        if self.progress.budget < 1:
            return "the budget of weak learners is used up"
        return ""

    def _finished(self) -> str:
        first, last = self.records[0].objective, self.records[-1].objective
        minimum = self.progress.F.constants.minimum
        if not math.isfinite(last) or last - first > DIVERGED * max(self._first_gap, 1e-300):
            self.diverged = True
            return f"diverged: the objective rose from {first:.6g} to {last:.6g} in round {self.progress.t}"
        if minimum is not None and last <= minimum:
            return f"the objective reached its minimum {minimum:g}"
        if self.watch is not None and self.gap > 0.0:
            gap = min(last, self.watch.objective) - self.watch.lower
            if gap <= self.gap:
                return f"the certified gap {gap:.3g} is at most {self.gap:g}"
        if self._zeros >= 2:
            return "converged: no hypothesis correlates with the gradient"
        if len(self.records) - 1 - self._best >= self.n_iter_no_change:
            what = "objective" if self.validation is None else "validation loss"
            return f"the {what} has not improved for {self.n_iter_no_change} rounds"
        return self._exhausted()


def _copies(model: AdditiveModel) -> tuple[list[Any], list[int], list[float]]:
    return list(model.terms), list(model.ends), list(model.multipliers)


def _checked_gap(gap: float | None, objective: Objective) -> float:
    if gap is None:
        return 0.0
    if not (isinstance(gap, Real) and gap > 0.0):
        raise ValueError(f"`stop_when_gap_below` must be positive, got {gap!r}")
    if objective.constants.minimum is None and not getattr(objective, "l2", 0.0) > 0.0:
        raise ValueError(
            f"`stop_when_gap_below`={gap!r} cannot be certified: the loss has no known minimum and `l2` is 0"
        )
    return float(gap)


def boost(
    objective: Objective,
    hypotheses: HypothesisSet,
    *,
    algorithm: str | Algorithm = "residual",
    step: str | Step = "auto",
    n_rounds: int = 500,
    max_weak_learners: int | None = None,
    output: str = "best",
    start: Array | None = None,
    offset: Array | None = None,
    validation: Scores | None = None,
    n_iter_no_change: int | None = None,
    random_state: int | np.random.Generator | None = None,
    callbacks: Sequence[Callback] = (),
    certificate: bool = False,
    stop_when_gap_below: float | None = None,
) -> Result:
    """Minimise a convex objective over sums of hypotheses: the library without scikit-learn.

    Parameters
    ----------
    objective : Objective
        A loss bound to targets, e.g. ``Absolute().bind(y, space)``.
    hypotheses : HypothesisSet
        A weak learner bound to inputs, e.g. ``Stump().bind(X, space)``.
    algorithm : str or Algorithm
        "naive", "repeated", "residual", "dual_averaging", "error_feedback", or an object.
    step : str or Step
        "auto", "inverse_sqrt:0.5", ..., or an object.
    n_rounds, max_weak_learners : int
        Budgets; training ends with the first that is used up.
    output : {"best", "last", "average"}
        Which iterate becomes the model.  Guarantees are for "best" and "average".
    start : array of shape (n_outputs,), optional
        The constant to start from; by default the best one (0 where an `offset` is given).
    offset : array of shape (n_samples, n_outputs), optional
        Fixed scores per row, added to the start.
    validation : Scores, optional
        An objective placed at validation rows; "best" then means best there.
    n_iter_no_change : int, optional
        Stop when the validation loss (the objective without a validation set) has not improved for so long.
    random_state : int or Generator, optional
        For weak learners that draw numbers.
    callbacks : sequence of callables
        Each is called with a `Record` after every round (and for the start); a true return value stops.
    certificate : bool
        Collect what it takes to say how far from optimal the result can be (`Result.certificate`).
    stop_when_gap_below : float, optional
        Stop when the objective is certified to be at most so far above its minimum over all sums of
        hypotheses.  Needs `l2` > 0, or a loss with a known minimum.

    Returns
    -------
    Result
        The model, the records of all rounds, and why training stopped.

    """
    if output not in OUTPUTS:
        raise ValueError(f"`output` must be one of {', '.join(OUTPUTS)}, got {output!r}")
    if start is None:
        start = objective.start() if offset is None else np.zeros(objective.n_outputs)
    start = np.asarray(start, float)
    if start.shape != (objective.n_outputs,):
        raise ValueError(f"`start` must have shape ({objective.n_outputs},), got {start.shape}")
    chosen: Any = resolve("algorithm", algorithm, ALGORITHMS)
    rule: Any = resolve("step", step, STEPS)
    if not hasattr(chosen, "round"):
        raise ValueError(f"`algorithm` must be a name or an algorithm, got {algorithm!r}")
    if not isinstance(rule, Step):
        raise ValueError(f"`step` must be a name or a Step, got {step!r}")
    training = Training(
        objective,
        hypotheses,
        algorithm=chosen,
        step=rule,
        start=start,
        offset=offset,
        validation=validation,
        n_rounds=n_rounds,
        max_weak_learners=math.inf if max_weak_learners is None else max_weak_learners,
        n_iter_no_change=math.inf if n_iter_no_change is None else n_iter_no_change,
        rng=np.random.default_rng(random_state),
        certificate=certificate,
        stop_when_gap_below=_checked_gap(stop_when_gap_below, objective),
    )
    training.run(callbacks)
    return training.result(output)
