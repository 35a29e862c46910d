"""The driver: runs an algorithm round by round, records, stops, and builds the model.

Everything the algorithms must not know is here: budgets, validation, early stopping, callbacks, the
divergence guard, which iterate is handed out, and what remains of a round that was cut short.
"""

from __future__ import annotations

import math
import reprlib
import time
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from convexboost.boosting.member import Found, Member, Problem
from convexboost.boosting.options import OUTPUTS, Options, with_settings
from convexboost.core.hypotheses import Term
from convexboost.core.model import AdditiveModel
from convexboost.core.protocols import HypothesisSet, Objective, Scores
from convexboost.core.space import Array
from convexboost.core.text import brief
from convexboost.core.tolerances import as_good_as
from convexboost.inspection.certificates import Certificate

#: An objective that has risen this many times as much as could be gained at the start: diverged.
DIVERGED = 1e3
#: The version of the states of a training.
STATE_VERSION = 2
#: With a certificate a state is kept every KEEP_EVERY seconds, for at most this share of the time: a round
#: that is cut short is trained again from there.
KEEP_EVERY, KEEP_SHARE = 2.0, 0.02

#: "not_a_number": the objective was NaN; "no_change": no improvement for `n_iter_no_change` rounds.
Kind = Literal[
    "rounds",
    "budget",
    "minimum",
    "gap",
    "converged",
    "no_change",
    "callback",
    "interrupted",
    "diverged",
    "not_a_number",
]


class Stop(NamedTuple):
    """Why training stopped: a kind for programs, a message for people."""

    kind: Kind
    message: str

    @property
    def is_failure(self) -> bool:
        """Return whether the objective diverged or became NaN; the model is then the best iterate."""
        return self.kind in ("diverged", "not_a_number")


@dataclass(frozen=True)
class Record:
    """One row of the history.  Round 0 is the start."""

    round: int
    objective: float  #: R after the round
    validation: float  #: the loss on the validation set after the round; NaN without one
    score: float  #: of the validation set, the higher the better; NaN without one
    edge: float  #: of the vector projected in this round; NaN where its norm is not known
    intrinsic_edge: float  #: the same inside span(H); every tenth round of `residual`, where that is cheap
    step: float
    weak_learners: int  #: trained so far
    gradient_evaluations: int  #: so far
    seconds: float  #: since the start
    # With `certificate`:
    gradient_norm: float = math.nan  #: of the subgradient this round began with
    length: float = math.nan  #: of the direction found
    residual_norm: float = math.nan  #: ‖ΠΔ‖ after the round; only in some rounds, where span(H) is known
    average: float = math.nan  #: mean of R over the points where a subgradient was taken
    lower_bound: float = math.nan  #: no model has a smaller R; the largest found so far


class History(dict[str, Array]):
    """The records as columns: {"objective": …, "edge": …}; round 0, the start, is the first entry of each."""

    def __repr__(self) -> str:
        rounds = max(map(len, self.values()), default=1) - 1
        return f"<history of {rounds} rounds: {', '.join(self)}>"


Callback = Callable[[Record], Any]


@dataclass(frozen=True)
class Result:
    """A finished run."""

    model: AdditiveModel  #: the iterate asked for: last, best or average
    path: AdditiveModel  #: all rounds
    learned: list[Term]  #: the weak learners of all rounds; in each, those of one member after the other
    records: list[Record]
    best_round: int
    stop: Stop
    certificate: Certificate | None = None  #: how far from optimal the model can be, if asked for

    __repr__ = brief

    @property
    def history(self) -> History:
        """Return the records as columns; those of the certificate only where it was asked for."""
        names = [f.name for f in fields(Record) if self.certificate is not None or f.default is MISSING]
        return History({name: np.array([getattr(record, name) for record in self.records]) for name in names})


class Journal(NamedTuple):
    """What the weak learners of a run found: all that another run of the same problems needs to come as far.

    It knows nothing of the rows.
    """

    members: Sequence[Sequence[Found]]  #: of each member one entry per round
    seconds: Sequence[float]  #: since the start, after each round

    @property
    def n_rounds(self) -> int:
        """Return the number of rounds."""
        return len(self.seconds)


class Tally(NamedTuple):
    """The finished rounds, in a few numbers.  A round counts as finished once this has been replaced."""

    rounds: int = 0
    best: int = 0  #: the first round as good as any
    lowest: float = math.inf  #: the smallest value by which rounds are compared


class Training:
    """A run in progress: `run` finishes it; `state` and `restore` stop and resume it exactly.

    Parameters
    ----------
    objective : Objective
        A loss bound to targets, e.g. ``Absolute().bind(y, space)``.
    hypotheses : HypothesisSet
        A weak learner bound to inputs, e.g. ``Stump().bind(X, space)``.
    options : Options, optional
        How to train.
    start : array of shape (n_outputs,), optional
        The constant to start from; by default the best one (0 where an `offset` is given).
    offset : array of shape (n_samples, n_outputs), optional
        Fixed scores per row, added to the start.
    validation : Scores, optional
        An objective placed at validation rows; "best" then means best there.
    score : callable, optional
        Called without arguments after every round: how good the scores of the validation rows are now, the
        higher the better.  "best" and `n_iter_no_change` then go by it, not by the validation loss.
    callbacks : sequence of callables
        Each is called with a `Record` after every round (and for the start).  A true return value stops; a
        string is the reason.
    earlier : Journal, optional
        The `journal` of an earlier run with the same arguments but for limits and callbacks: its rounds are
        gone through again without training.  So 50 rounds and then 100 are the same bits as 100 at once.
    **settings
        Fields of `Options`: ``Training(R, H, n_rounds=50)``.

    A round happens wholly or not at all.  Ctrl-C, or an error in a user's loss, may end it anywhere; its
    record and its part of the model are then dropped, and `state`, `round` and `run` continue from the last
    round that was finished.  Scores and Δ are changed in place, without a copy: they come back by going
    through the rounds again from the last state that was taken (from the start where there is none), with
    what the weak learners found in them.

    `Training.of_several` runs several problems side by side.

    Examples
    --------
    A run that is saved, and finished in another process.  The state holds what training changes: the scores,
    Δ, the model, the records, the random numbers, what the step has learned.  Data, targets and options are
    not in it: make the same `Training` again, then restore.

    >>> import pickle
    >>> import numpy as np
    >>> from convexboost import FunctionSpace, Training
    >>> from convexboost.learners import Stump
    >>> from convexboost.losses import Absolute
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> space = FunctionSpace.of(100)
    >>> def training():
    ...     return Training(Absolute().bind(X[:, 0], space), Stump().bind(X, space), n_rounds=20)
    >>> first = training()
    >>> for _ in range(8):
    ...     first.round()
    >>> checkpoint = pickle.dumps(first.state())  # write it to a file
    >>> second = training()  # in a new process
    >>> second.restore(pickle.loads(checkpoint))
    >>> second.run()
    >>> len(second.result().records) - 1
    20

    """

    def __init__(
        self,
        objective: Objective,
        hypotheses: HypothesisSet,
        options: Options | None = None,
        *,
        start: Array | None = None,
        offset: Array | None = None,
        validation: Scores | None = None,
        score: Callable[[], float] | None = None,
        callbacks: Sequence[Callback] = (),
        earlier: Journal | None = None,
        **settings: Any,
    ) -> None:
        problem = Problem(objective, hypotheses, start, offset, validation)
        self._begin([problem], with_settings(options, settings), callbacks, score, earlier)

    @classmethod
    def of_several(
        cls,
        problems: Sequence[Problem],
        options: Options,
        callbacks: Sequence[Callback] = (),
        score: Callable[[], float] | None = None,
        earlier: Journal | None = None,
    ) -> Self:
        """Train several problems in lockstep; the model is the mean of their models.

        The problems share outputs and mapper: they are parts of the same rows, say, each validated on the
        rows that it leaves out.  Records are means over the problems, weighted for the validation loss, and
        sums for what is counted; `score` is one number for the validation rows of all.  There is no
        certificate.
        """
        training = cls.__new__(cls)
        training._begin(problems, options, callbacks, score, earlier)
        return training

    def _begin(
        self,
        problems: Sequence[Problem],
        options: Options,
        callbacks: Sequence[Callback],
        score: Callable[[], float] | None,
        earlier: Journal | None,
    ) -> None:
        if not problems:
            raise ValueError("`problems` must not be empty")
        mappers = [problem.hypotheses.mapper for problem in problems]
        if not all(new.extends(old) for old, new in pairwise(mappers)):
            raise ValueError(
                "`problems` must share a mapper: the learner's `bind` must use the `mapper` that it is given"
            )
        if len(problems) > 1 and options.certifies:
            raise ValueError(f"a certificate is of one problem, got {len(problems)}")
        self.options, self.callbacks, self.score = options, callbacks, score
        rng = np.random.default_rng(options.random_state)
        rngs = [rng] if len(problems) == 1 else rng.spawn(len(problems))
        self.members = [
            Member(problem, options, own, options.weak_learners / len(problems))
            for problem, own in zip(problems, rngs, strict=True)
        ]
        self._earlier = earlier or Journal([[] for _ in problems], [])
        if len(self._earlier.members) != len(problems):
            raise ValueError(
                f"`earlier` must be of {len(problems)} problems, got {len(self._earlier.members)}"
            )
        for member, known in zip(self.members, self._earlier.members, strict=True):
            member.known = known
        self.has_validation = all(member.validation is not None for member in self.members)
        first = self.members[0]
        self._signature = {  #: what a state must have in common with this run
            "version": STATE_VERSION,
            "number of rows": ", ".join(str(member.n_rows) for member in self.members),
            "number of outputs": first.progress.n_outputs,
            "algorithm": _described(options.algorithm),
            "step": _described(options.step),
            "certificate": first.tracker is not None,
            "validation set": self.has_validation,
            "score": score is not None,
        }
        self.records: list[Record] = []
        self.stop: Stop | None = None  #: why training stopped; None while it goes on
        self._tally = Tally()
        self._is_whole = True  #: False from the beginning of a round to its end
        self._first_gap = _mean([_first_gap(member.progress.F) for member in self.members])
        self._clock = time.perf_counter()
        self._keep_next = self._clock + KEEP_EVERY
        self._finish_round()
        self._kept = self.state()

    @property
    def model(self) -> AdditiveModel:
        """Return the model after the rounds so far."""
        return AdditiveModel.mean([member.model for member in self.members])

    @property
    def n_rounds(self) -> int:
        """Return the number of finished rounds."""
        return self._tally.rounds

    @property
    def n_known_rounds(self) -> int:
        """Return the number of rounds of the earlier run."""
        return self._earlier.n_rounds

    @property
    def journal(self) -> Journal:
        """Return what the weak learners have found so far."""
        rounds = self._tally.rounds
        seconds = [record.seconds for record in self.records[1 : rounds + 1]]
        return Journal([member.found[:rounds] for member in self.members], seconds)

    def run(self) -> None:
        """Train until there is a reason to stop, and keep the reason.  Ctrl-C is one."""
        try:
            self._recover()
            # A run that is resumed may have been finished already.
            self.stop = self._finished() if self._tally.rounds > 0 else self._exhausted()
            self._tell()
            while self.stop is None:
                self.round()
                self._tell()
                self._keep()
        except KeyboardInterrupt:
            self.stop = Stop("interrupted", "interrupted")

    def _tell(self) -> None:
        for callback in self.callbacks:  # all of them, also when one asks to stop
            if wish := callback(self.records[-1]):
                reason = wish if isinstance(wish, str) else "a callback asked to stop"
                self.stop = self.stop or Stop("callback", reason)

    def round(self) -> None:
        """One round of the algorithm, recorded; or, if it raises, none."""
        self._recover()
        self._is_whole = False
        try:
            self._round()
        except BaseException:
            self._drop_unfinished()
            raise
        self._is_whole = True
        self.stop = self._finished()

    def _round(self) -> None:
        for member in self.members:
            member.round()
        self._finish_round()

    def _finish_round(self) -> None:
        """Record the round.  It counts from the moment when the tally is replaced."""
        t = len(self.records)
        if 0 < t <= self._earlier.n_rounds:
            self._clock = time.perf_counter() - self._earlier.seconds[t - 1]
        self.records.append(self._record())
        rounds, best, lowest = self._tally
        rounds, lowest = len(self.records) - 1, min(lowest, self._merit(-1))
        while not self._merit(best) <= as_good_as(lowest, self._merit(0)) and best < rounds:
            best += 1
        self._tally = Tally(rounds, best, lowest)

    def _drop_unfinished(self) -> None:
        """Drop what a round that was cut short has left in the records and in the models."""
        rounds = self._tally.rounds
        del self.records[rounds + 1 :]
        for member in self.members:
            member.drop(rounds)

    def _recover(self) -> None:
        """After a round that was cut short: go through the others again, from the last state taken."""
        if self._is_whole:
            return
        self._drop_unfinished()
        kept = self.records, self._tally, self._clock, self.stop
        models = [member.model for member in self.members]
        is_whole = False
        try:
            self.restore(self._kept)
            while self._tally.rounds < kept[1].rounds:
                self._round()
            is_whole = True
        finally:  # the records with their times, and the very models
            self.records, self._tally, self._clock, self.stop = kept
            for member, model in zip(self.members, models, strict=True):
                member.model = model
            self._is_whole = is_whole

    def _keep(self) -> None:
        """With a certificate, keep a state every few seconds, so that Ctrl-C can still compute it."""
        begin = time.perf_counter()
        if self.options.certifies and begin >= self._keep_next:
            self.state()
            end = time.perf_counter()
            self._keep_next = end + max(KEEP_EVERY, (end - begin) / KEEP_SHARE)

    @property
    def best_round(self) -> int:
        """Return the round with the best validation loss, or objective where there is no validation set."""
        return self._tally.best

    def result(self, output: str | None = None) -> Result:
        """Build the model: the iterate that `output`, by default that of the options, names."""
        best = self.best_round
        stop = self.stop or Stop("rounds", "")
        output = self.options.output if output is None else output
        if output not in OUTPUTS:
            raise ValueError(f"`output` must be one of {', '.join(OUTPUTS)}, got {output!r}")
        if stop.is_failure:  # the last iterate is of no use then
            output = "best"
        path = self.model
        model = {"last": lambda: path, "best": lambda: path.truncate(best), "average": path.average}[output]()
        return Result(model, path, self._learned(), self.records, best, stop, self._certificate())

    def _learned(self) -> list[Term]:
        """Return the weak learners of all rounds."""
        models = [member.model for member in self.members]
        return [
            term
            for t in range(self._tally.rounds)
            for model in models
            for term in model.terms[model.ends[t] : model.ends[t + 1]]
        ]

    def _certificate(self) -> Certificate | None:
        tracker = self.members[0].tracker
        if tracker is None:
            return None
        self._recover()
        state = tracker.state()
        self._is_whole = False  # a certificate ends a block of rounds, but training may go on
        certificate = tracker.certificate(self.members[0].progress.F)
        tracker.restore(state)
        self._is_whole = True
        return certificate

    def state(self) -> dict[str, Any]:
        """Return everything that training changes, picklable; data, targets and options are not in it.

        Do not change it: training keeps it, to come back here.
        """
        self._recover()
        state = {
            "signature": self._signature,
            "members": [member.state() for member in self.members],
            "records": list(self.records),
            "tally": self._tally,
        }
        self._kept = state
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state; a state of another kind of run raises a ValueError and changes nothing."""
        found = state.get("signature") if isinstance(state, dict) else None
        if not isinstance(found, dict):
            raise ValueError(f"`state` must be what `Training.state` returned, got {reprlib.repr(state)}")
        for name, here in self._signature.items():
            if found.get(name) != here:
                raise ValueError(
                    f"`state` is of another run: its {name} is {found.get(name)}, here it is {here}"
                )
        self._is_whole = False
        for member, part in zip(self.members, state["members"], strict=True):
            member.restore(part)
        records = list(state["records"])
        clock = time.perf_counter() - records[-1].seconds
        self.records, self._tally, self._clock, self._kept = records, state["tally"], clock, state
        self.stop = None
        self._is_whole = True

    def _record(self) -> Record:
        members = self.members
        tracker = members[0].tracker
        trained, weights = sum(member.h.n_weak_learners for member in members), [m.weight for m in members]
        return Record(
            round=len(self.records),
            objective=_mean([member.objective for member in members]),
            validation=_mean([member.held_out_loss for member in members], weights),
            score=math.nan if self.score is None else self.score(),
            edge=_mean([member.h.edge for member in members]),
            intrinsic_edge=_mean([member.h.intrinsic_edge for member in members]),
            step=_mean([member.step for member in members]),
            weak_learners=trained + (self.records[-1].weak_learners if self.records else 0),
            gradient_evaluations=sum(member.progress.t for member in members),
            seconds=time.perf_counter() - self._clock,
            **({} if tracker is None else tracker.record(members[0].h)),
        )

    def _merit(self, row: int) -> float:
        record = self.records[row]
        merit = {
            "objective": record.objective,
            "validation loss": record.validation,
            "validation score": -record.score,
        }[self._measure]
        return math.inf if math.isnan(merit) else merit

    @property
    def _measure(self) -> str:
        """Return by what rounds are compared."""
        if self.options.validation_decides and self.score is not None:
            return "validation score"
        if self.options.validation_decides and self.has_validation:
            return "validation loss"
        return "objective"

    def _last_gain(self) -> int:
        """Return the best round after the start, from which patience counts.

        The start may lie on a kink, where all rows tie and each first move raises the objective.
        """
        rounds, best, _ = self._tally
        if best > 0 or rounds == 0:
            return best
        merits = [self._merit(t) for t in range(1, rounds + 1)]
        lowest = as_good_as(min(merits), self._merit(0))
        return next((t for t, merit in enumerate(merits, 1) if merit <= lowest), rounds)

    def _exhausted(self) -> Stop | None:
        if self._tally.rounds >= self.options.n_rounds:
            return Stop("rounds", f"all {self.options.n_rounds} rounds done")
        if min(member.progress.budget for member in self.members) < 1:
            return Stop("budget", "the budget of weak learners is used up")
        return None

    def _finished(self) -> Stop | None:
        members = self.members
        first, last = self.records[0].objective, self.records[-1].objective
        t, minimum = self._tally.rounds, members[0].progress.F.constants.minimum
        if math.isinf(first):
            return Stop("diverged", "diverged: the objective is infinite at the start; rescale the targets")
        if math.isnan(last):
            largest = max(member.progress.F.largest() for member in members)
            where = f"at scores up to {largest:.3g}" if math.isfinite(largest) else "after the scores did"
            return Stop("not_a_number", f"the objective became NaN in round {t}, {where}")
        if math.isinf(last) or last - first > DIVERGED * max(self._first_gap, 1e-300):
            went = "rose" if last > first else "fell"
            return Stop(
                "diverged", f"diverged: the objective {went} from {first:.6g} to {last:.6g} in round {t}"
            )
        if all(member.is_at_minimum for member in members):
            return Stop("minimum", f"the objective reached its minimum {minimum:g}")
        wanted, tracker = self.options.stop_when_gap_below, members[0].tracker
        if tracker is not None and wanted is not None:
            gap = max(min(last, tracker.objective) - tracker.lower, 0.0)
            if gap <= wanted:
                return Stop("gap", f"the certified gap {gap:.3g} is at most {wanted:g}")
        if all(member.has_converged or member.is_at_minimum for member in members):
            return Stop("converged", "converged: no hypothesis correlates with the gradient")
        if self.options.n_iter_no_change is not None:
            best = self._last_gain()
            if t - best >= self.options.patience(best):
                return Stop("no_change", f"the {self._measure} has not improved for {t - best} rounds")
        return self._exhausted()


def _mean(values: list[float], weights: list[float] | None = None) -> float:
    """Return the weighted mean; of one number that number."""
    if len(values) == 1:
        return values[0]
    weights = weights or [1.0] * len(values)
    summed, mass = 0.0, 0.0
    for value, weight in zip(values, weights, strict=True):  # NumPy takes 20 times as long
        summed, mass = summed + weight * value, mass + weight
    return summed / mass


def _first_gap(F: Scores) -> float:
    """Return what can be gained at the start."""
    minimum = F.constants.minimum
    return F.gap() if minimum is None else F.value() - minimum


def _described(rule: Any) -> str:
    """Return the class and the plain parameters: the same in every process, for 2 and for 2.0."""
    plain = {name: value for name, value in vars(rule).items() if isinstance(value, int | float | str)}
    parameters = [
        f"{name}={value if isinstance(value, str) else float(value)}" for name, value in plain.items()
    ]
    return f"{type(rule).__name__}({', '.join(parameters)})"


def boost(
    objective: Objective,
    hypotheses: HypothesisSet,
    options: Options | None = None,
    *,
    start: Array | None = None,
    offset: Array | None = None,
    validation: Scores | None = None,
    score: Callable[[], float] | None = None,
    callbacks: Sequence[Callback] = (),
    earlier: Journal | None = None,
    **settings: Any,
) -> Result:
    """Minimise a convex objective over sums of hypotheses: the library without scikit-learn.

    The arguments are those of `Training`, which is run to its end: ``boost(R, H, n_rounds=50)``.

    Returns
    -------
    Result
        The model, the records of all rounds, and why training stopped.  Ctrl-C stops it too
        (`stop.kind` is "interrupted"): the result is that of a run with the finished rounds.

    """
    training = Training(
        objective,
        hypotheses,
        options,
        start=start,
        offset=offset,
        validation=validation,
        score=score,
        callbacks=callbacks,
        earlier=earlier,
        **settings,
    )
    training.run()
    return training.result()
