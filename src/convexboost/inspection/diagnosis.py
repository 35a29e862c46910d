"""What went wrong in a run, if anything, in plain sentences with numbers.

Each rule is one small function of a `Run` (the history, which hypotheses were chosen, the certificate); it
returns a `Finding`, None where all is well, or an `Unchecked` that says what is missing.  Only ratios are
compared with thresholds, so the units of y do not matter.  docs/diagnosis.md lists the rules.

Where the theory matters: the raw edge of `residual` tends to 0 in good health, so only its intrinsic edge is
judged; the last iterate of `residual` and `repeated` fluctuates, so the best one so far is; and a subgradient
of a non-smooth loss need not be small at the optimum, so it is the *mean* subgradient that tells whether a
flat objective is a good one.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from convexboost.core.hypotheses import Term
from convexboost.core.space import Array
from convexboost.inspection.certificates import Certificate

#: Fewer rounds say nothing: every run starts fast and slows down.
MIN_ROUNDS = 30
#: Flat: the last half of the rounds took off less than this share of what is left above the lower bound, …
FLAT_SHARE = 0.01
#: … and less than this share of what the whole run took off (if that is anything to speak of).
FLAT_PROGRESS = 0.02
#: At most this share of the start is left, certified or by the known minimum: converged.
CONVERGED = 0.01
#: The mean of the subgradients in span(H), relative to their size, above which a flat objective is not a
#: minimum.  On 15 data sets flat runs near their optimum had 0.001 to 0.29, stuck ones 0.47 to 0.7.
STATIONARY = 0.3
#: A step of 0 in this share of the late rounds is what keeps the objective where it is.
IDLE = 0.5
#: Cycling: no more different hypotheses in the last half than this share of what could have been used.
DISTINCT = 0.1
#: The edge counts as collapsed at this share of what it was; healthy residual runs keep a fifth or more.
COLLAPSED = 0.05
#: A learner whose edge is below this from the beginning …
TINY_EDGE = 0.1
#: … and that took off less than this share of the start is too weak, or there is nothing to learn.
NO_PROGRESS = 0.05
#: Step too large: the typical round of the last quarter is this far above the best so far, as a share of all
#: progress.  With a step that suits, residual and repeated stay below 0.04.
OVERSHOOT = 0.05
#: It may jump about as long as the last half of the rounds brought this share of all progress.
SETTLING = 0.1
#: An objective above the start is on its way down if the last quarter took off this share of the start.
FALLING = 0.01
#: Step too small: nearly no round rises, …
RISES = 0.02
#: … and a unit of step still gains this share of what it did in the first half: no curvature was met yet.
STRAIGHT = 0.6
#: … while at least this share of the start is left above the lower bound.
FAR = 0.5
#: Overfitting: the validation loss gave back this share of what it had gained, …
GIVEN_BACK = 0.1
#: … and rose by this share of its minimum; less than that is noise.
RISEN = 0.01
#: Still falling: the last half of the rounds brought this share of what the validation loss gained, …
STILL = 0.05
#: … and its minimum lies in this last share of the rounds.
LATEST = 0.02
#: A trial must be better by this share of what the model's own settings gained.
BETTER = 0.05

#: Steps that need no scale: "auto", and what it means with trees.
SUITABLE = ("auto", "refit")

ALL_CLEAR = "Nothing is wrong as far as this can tell."

NO_VALIDATION = (
    "there were no validation rows; give X_val and y_val to fit, or rows that were not trained on to "
    "diagnose(X, y)."
)

Severity = Literal["warning", "note"]


# -- what is said -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """Something worth knowing about a run."""

    rule: str
    severity: Severity  #: "warning": something is wrong; "note": good to know
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)  #: what the sentence rests on
    advice: str = ""

    @property
    def title(self) -> str:
        """Return the rule in words."""
        return _title(self.rule).capitalize()

    def __str__(self) -> str:
        return f"{self.sentence}  {self.advice}".strip()


@dataclass(frozen=True)
class Unchecked:
    """A rule that could not be checked, and what it would take."""

    rule: str
    reason: str
    vital: bool = True  #: False: what it would find shows in other rules too

    @property
    def title(self) -> str:
        """Return the rule in words."""
        return _title(self.rule)

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Diagnosis:
    """The findings of all rules; print it."""

    findings: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...] = ()

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Return the findings that say that something is wrong."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def rules(self) -> set[str]:
        """Return the names of the rules that warn."""
        return {finding.rule for finding in self.warnings}

    def __getitem__(self, rule: str) -> Finding:
        for finding in self.findings:
            if finding.rule == rule:
                return finding
        raise KeyError(rule)

    def __contains__(self, rule: object) -> bool:
        return any(finding.rule == rule for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Return whether anything is wrong, or what is not known, in a sentence."""
        if self.warnings:
            return f"Warnings: {', '.join(_title(finding.rule) for finding in self.warnings)}."
        unknown = [missing.title for missing in self.unchecked if missing.vital]
        return f"No warnings, but not known: {', '.join(unknown)}." if unknown else ALL_CLEAR

    @property
    def lines(self) -> list[str]:
        """Return one line for each finding, warnings first; an advice is given once."""
        lines, said = [] if self.warnings else [self.verdict], set()
        notes = [finding for finding in self.findings if finding.severity == "note"]
        for finding in (*self.warnings, *notes):
            advice = "" if finding.advice in said else finding.advice
            said.add(finding.advice)
            lines.append(f"{finding.title}: {finding.sentence}  {advice}".strip())
        return lines + [f"Not checked, {missing.title}: {missing}" for missing in self.unchecked]

    def __str__(self) -> str:
        return "\n".join(textwrap.fill(line, 100, subsequent_indent="    ") for line in self.lines)


# -- what is looked at --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A finished run as the rules see it."""

    history: Mapping[str, Array]
    chosen: NDArray[np.int32]  #: the hypothesis of each weak learner; see `number`
    algorithm: str = "residual"
    certificate: Certificate | None = None
    minimum: float | None = None  #: the loss is never below it
    smooth: bool = False  #: whether the loss has a gradient everywhere, so that `naive` converges
    diverged: bool = False
    reason: str = ""  #: why training stopped
    kind: str = ""  #: the same for programs: `convexboost.boosting.training.Kind`
    output: str = "best"
    has_validation: bool = True  #: the validation loss was known in training, so "best" was chosen by it
    curve: Array | None = None  #: the validation loss in folds, which chose the number of rounds
    no_validation: str = NO_VALIDATION  #: why there is no validation loss, where there is none
    step: str = "auto"
    n_hypotheses: float = math.inf  #: how many there are to choose from, where that is known
    decay: float = 1.0  #: what `residual` keeps of the residual: below 1 what is out of reach cannot pile up
    stronger: str = "'tree'"  #: a learner to try

    @property
    def objective(self) -> Array:
        """R after each round."""
        return self.history["objective"]

    @property
    def n_rounds(self) -> int:
        """Return how many rounds there were."""
        return len(self.objective) - 1

    @property
    def in_folds(self) -> bool:
        """Return whether the only validation loss is that in folds."""
        return self.curve is not None and bool(np.isnan(self.history["validation"]).all())

    @property
    def watched(self) -> Array:
        """Return the validation loss while it was watched, in folds maybe for longer than the run."""
        values = self.curve if self.curve is not None and self.in_folds else self.history["validation"]
        return values[~np.isnan(values)]

    @property
    def validation(self) -> Array:
        """Return the validation loss after each round of the model; empty without one."""
        return self.watched[: self.n_rounds + 1]

    @property
    def half(self) -> int:
        """Return the round in the middle."""
        return self.n_rounds // 2

    @property
    def best(self) -> Array:
        """Return the smallest objective so far."""
        return np.minimum.accumulate(np.where(np.isnan(self.objective), math.inf, self.objective))

    @property
    def progress(self) -> float:
        """Return what the run took off the objective."""
        return float(self.objective[0] - self.best[-1])

    @property
    def lower(self) -> float | None:
        """Return a number that no model gets below."""
        if self.certificate is not None and math.isfinite(bound := self.certificate.best().value):
            return bound
        return self.minimum

    @property
    def start(self) -> float:
        """Return how far the start is above the lower bound; infinity where there is none."""
        return math.inf if self.lower is None else max(float(self.objective[0]) - self.lower, 1e-300)

    @property
    def left(self) -> float:
        """Return how far the best is above the lower bound, as a share of the start."""
        return 1.0 if self.lower is None else float(self.best[-1] - self.lower) / self.start

    @property
    def gain(self) -> float:
        """Return what the last half of the rounds took off the best objective."""
        return float(self.best[self.half] - self.best[-1])

    @property
    def is_flat(self) -> bool:
        """Return whether the last half of the rounds brought next to nothing."""
        if self.n_rounds < MIN_ROUNDS or self.is_late:
            return False
        if self.gain > FLAT_SHARE * self.left * self.start:
            return False
        return self.gain <= FLAT_PROGRESS * self.progress or (self.is_nowhere and not self.is_straight)

    @property
    def is_nowhere(self) -> bool:
        """Return whether the whole run took off next to nothing."""
        return self.progress <= (NO_PROGRESS * self.start if math.isfinite(self.start) else 0.0)

    @property
    def rises(self) -> float:
        """Return the share of the rounds that made the objective larger."""
        return float(np.mean(np.diff(self.objective) > 0.0))

    @property
    def rate(self) -> float:
        """Return the gain per unit of step in the second half over that in the first."""
        steps, objective, half = self.history["step"], self.objective, self.half
        first = (objective[0] - objective[half]) / max(float(np.sum(steps[1 : half + 1])), 1e-300)
        second = (objective[half] - objective[-1]) / max(float(np.sum(steps[half + 1 :])), 1e-300)
        return float(second / first) if first > 0.0 else 0.0

    @property
    def is_straight(self) -> bool:
        """Return whether the objective fell in a straight line: no curvature, no kink was met yet."""
        exact = self.step == "line_search"  # that a longer step would not have helped is known then
        return self.rises <= RISES and self.rate >= STRAIGHT and not exact

    @property
    def creeps(self) -> bool:
        """Return whether it did so and did not get far."""
        usual = self.n_rounds >= MIN_ROUNDS and not self.is_flat and not self.diverged
        return usual and self.is_straight and self.left >= FAR

    @property
    def overshoot(self) -> float:
        """Return how far a typical late round is above the best so far, as a share of all progress.

        Of the start, where there was no progress to speak of.
        """
        above = float(np.median((self.objective - self.best)[-max(self.n_rounds // 4, 5) :]))
        scale = self.start if self.is_nowhere and math.isfinite(self.start) else self.progress
        return above / max(scale, 1e-300)

    @property
    def is_late(self) -> bool:
        """Return whether the objective is still coming down from a rise at the beginning.

        With many classes `residual` begins like that, and it is no fault.
        """
        if not self.is_nowhere or self.cycle or self.n_rounds < MIN_ROUNDS or self.overshoot > FAR:
            return False
        quarter = self.n_rounds // 4
        before, now = self.objective[-2 * quarter : -quarter], self.objective[-quarter:]
        return float(np.median(before) - np.median(now)) > FALLING * abs(
            float(self.objective[0] - (self.lower or 0.0))
        )

    @property
    def is_converged(self) -> bool:
        """Return whether there is next to nothing left to gain, provably."""
        return self.kind == "converged" or self.left <= CONVERGED

    @property
    def window(self) -> NDArray[np.int32]:
        """Return the weak learners of the last half."""
        return self.chosen[int(self.history["weak_learners"][self.half]) :]

    @property
    def cycle(self) -> int:
        """Return how many different hypotheses the last half went round in; 0 where it did not."""
        window = self.window
        if len(window) == 0 or (window < 0).any() or self.n_hypotheses < 2 or self.n_rounds < MIN_ROUNDS:
            return 0
        distinct, possible = len(np.unique(window)), min(len(window), self.n_hypotheses)
        return distinct if distinct <= max(1.0, DISTINCT * possible) else 0

    @property
    def is_naive(self) -> bool:
        """Return whether the algorithm itself may be what keeps the objective up."""
        return self.algorithm == "naive" and not self.smooth

    @property
    def mean_slope(self) -> float:
        """‖mean of Π∇‖ / mean of ‖∇‖ over the last rounds; NaN where that is not known or says nothing."""
        certificate = self.certificate
        # With a ridge term the cuts are without it; without the span the mean has parts nobody can reach.
        if certificate is None or certificate.l2 > 0.0 or not certificate.knows_span:
            return math.nan
        norms = self.history["gradient_norm"][self.half + 1 :]
        return certificate.tail.slope / max(float(np.sqrt(np.mean(norms**2))), 1e-300)


def number(terms: Iterable[Term]) -> NDArray[np.int32]:
    """Number the hypotheses in the order they first appear, −1 for a kind that cannot be compared."""
    seen: dict[Hashable, int] = {}
    keys = (h.key() for _, h in terms)
    return np.fromiter((-1 if key is None else seen.setdefault(key, len(seen)) for key in keys), np.int32)


# -- the rules ----------------------------------------------------------------------------------------------

Answer = Finding | Unchecked | None


def converged(run: Run) -> Answer:
    """Nothing is left to gain, provably."""
    if not run.is_converged:
        return None
    if run.left <= CONVERGED:
        above = f"at most {run.left:.2g} of the start above the optimum" if run.left > 0.0 else "the optimum"
        sentence = f"The objective, {run.best[-1]:.4g}, is {above}."
        return Finding("converged", "note", sentence, {"left": run.left})
    return Finding("converged", "note", f"Training stopped by itself: {run.reason}.")


def stalled(run: Run) -> Answer:
    """The objective is flat, and not because it is at its minimum."""
    if not run.is_flat or run.is_converged:
        return None
    slope, cycle = run.mean_slope, run.cycle
    if not cycle and run.overshoot >= OVERSHOOT:
        return None  # that is what `step_too_large` is about
    numbers = {"best": float(run.best[-1]), "gain": run.gain, "mean_slope": slope, "distinct": float(cycle)}
    flat = f"The last {run.n_rounds - run.half} rounds {_gain(run)}"
    idle = float(np.mean(run.history["step"][run.half + 1 :] == 0.0))
    if idle >= IDLE:
        reason = f": in {idle:.0%} of them the step was 0, because the direction did not descend."
    elif _too_weak(run):
        return None  # that is what `edge` is about
    elif slope >= STATIONARY:
        reason = (
            f", yet the mean subgradient within reach has {_percent(slope)} of full length: it is no minimum."
        )
    elif cycle and math.isnan(slope):
        reason = f", while {_used(cycle)} in use."
    elif run.is_nowhere and math.isnan(slope):
        reason = ": the run never got going."
    else:
        sentence = f"{flat}.  {_guess(slope)}."
        return Finding("flat", "note", sentence, numbers, _doubt(run))
    return Finding("stalled", "warning", flat + reason, numbers, _unstall(run))


def cycling(run: Run) -> Answer:
    """The same few hypotheses again and again, to no effect."""
    window = run.window
    if run.n_rounds < MIN_ROUNDS:
        return None
    if (window < 0).any():
        if not run.is_flat:
            return None
        return Unchecked("cycling", "weak learners of this kind cannot be compared with each other.", False)
    if not run.cycle or not run.is_flat or run.is_converged or run.mean_slope < STATIONARY or _too_weak(run):
        return None
    distinct = run.cycle
    sentence = (
        f"The last {len(window)} weak learners {_same(distinct)}{_of(run.n_hypotheses)}, to no effect: each "
        "step undoes the one before."
    )
    numbers = {"distinct": float(distinct), "weak_learners": float(len(window))}
    return Finding("cycling", "warning", sentence, numbers, _unstall(run))


def edge(run: Run) -> Answer:
    """The weak learner no longer finds anything to hold on to, or never did."""
    carries = run.algorithm not in ("naive", "repeated") and run.decay == 1.0
    values = run.history["intrinsic_edge" if carries else "edge"][1:]
    name = "intrinsic edge" if carries else "edge"
    if run.n_rounds < MIN_ROUNDS:
        return None
    weak = _too_weak(run)
    if weak is not None:
        return weak
    if run.is_converged:
        return None
    first, last = values[: MIN_ROUNDS // 2], values[run.half :]
    if np.isnan(first).all() or np.isnan(last).all():
        return Unchecked(
            "edge",
            "the intrinsic edge was not measured: that takes few bins, such as learner=Stump(max_bins=16); "
            f"the raw edge of '{run.algorithm}' tends to 0 in good health.",
            vital=False,
        )
    before, now = float(np.nanmedian(first)), float(np.nanmedian(last))
    if not now < COLLAPSED * before:
        return None
    sentence = (
        f"The {name} fell from {before:.2g} to {now:.2g}: what is left of the gradient is nearly orthogonal "
        "to every weak learner, so this learner has little more to give."
    )
    advice = "Only a stronger learner can go on from here; diagnose(X, y, trials=True) shows if it pays."
    return Finding("edge", "note", sentence, {"before": before, "now": now}, advice)


def _too_weak(run: Run) -> Finding | None:
    first = float(run.history["edge"][1])  # known in every algorithm: the first vector is a gradient
    if not (first < TINY_EDGE and run.is_nowhere) or run.is_straight or run.is_naive or run.is_late:
        return None
    sentence = (
        f"The best weak learner has an edge of only {first:.2g} on the first gradient, and the whole run "
        f"took {_percent(run.progress / run.start)} off the objective: either the learner is too weak for "
        "this problem or the inputs say little about y."
    )
    advice = f"Try a stronger learner, such as learner={run.stronger}."
    return Finding("edge", "warning", sentence, {"edge": first, "progress": run.progress / run.start}, advice)


def step_too_large(run: Run) -> Answer:
    """The objective jumps about above its best value, or runs away."""
    if run.diverged:
        values = run.objective[np.isfinite(run.objective)]
        sentence = (
            f"The run diverged after {run.n_rounds} rounds: the objective rose from {values[0]:.4g} to "
            f"{values[-1]:.4g}."
        )
        return Finding("step_too_large", "warning", sentence, {"rounds": float(run.n_rounds)}, _smaller(run))
    if run.kind == "not_a_number":
        return None
    over = run.overshoot
    if run.n_rounds < MIN_ROUNDS or run.is_converged or not over >= OVERSHOOT or run.cycle or run.is_late:
        return None
    if (run.gain > SETTLING * run.progress and over < FAR) or _too_weak(run):
        return None  # it jumps but gets on, or there is something worse
    sentence = (
        f"In the last quarter a typical round was {_percent(over)} of all progress above the best objective, "
        f"{run.best[-1]:.4g} in round {int(np.argmin(run.best))}: the steps are too large to settle."
    )
    if run.is_nowhere:
        sentence = (
            f"A typical round of the last quarter was {_percent(over)} above the best, {run.best[-1]:.4g}, "
            f"and that is no better than the start, {run.objective[0]:.4g}: the steps are too large."
        )
    return Finding("step_too_large", "warning", sentence, {"overshoot": over}, _smaller(run))


def not_a_number(run: Run) -> Answer:
    """The objective became NaN."""
    if run.kind != "not_a_number":
        return None
    hint = "Run check_loss(loss, y): it looks for scores where the loss is not finite."
    return Finding("not_a_number", "warning", f"{run.reason[:1].upper()}{run.reason[1:]}.", {}, hint)


def step_too_small(run: Run) -> Answer:
    """The objective creeps down a straight line."""
    if not run.creeps or run.step in SUITABLE:
        return None
    sentence = (
        f"The objective fell in a straight line: in the second half of the rounds {_straight(run)}, and "
        f"{1.0 - run.rises:.0%} of all rounds went down.  With such small steps the run has not got far."
    )
    numbers = {"rate": run.rate, "rises": run.rises, "left": run.left}
    return Finding("step_too_small", "warning", sentence, numbers, "Use step='auto', or a larger scale.")


def unfinished(run: Run) -> Answer:
    """There were too few rounds, and nothing else is wrong."""
    if run.is_late:
        sentence = (
            f"The objective rose at first, from {run.objective[0]:.4g} to {np.max(run.objective):.4g}; now "
            f"it is coming down, to {run.objective[-1]:.4g}."
        )
    elif run.creeps and run.step in SUITABLE:
        sentence = f"The run was not finished: in the second half of the rounds {_straight(run)}."
    elif len(run.watched) > run.n_rounds and _still_falls(run.watched):
        values, half = run.watched, (len(run.watched) - 1) // 2
        sentence = (
            f"The validation loss was still falling: rounds {half + 1} to {len(values) - 1} took it from "
            f"{np.min(values[: half + 1]):.4g} to {np.min(values):.4g}."
        )
    else:
        return None
    return Finding("unfinished", "note", sentence, {"rate": run.rate}, "More rounds would lower it.")


def _still_falls(values: Array) -> bool:
    n_rounds = len(values) - 1
    if n_rounds < MIN_ROUNDS or np.argmin(values) < (1.0 - LATEST) * n_rounds:
        return False
    best = np.minimum.accumulate(values)
    return bool(best[n_rounds // 2] - best[-1] > STILL * (best[0] - best[-1]))


def optimum(run: Run) -> Answer:
    """How far the objective is from the smallest possible, where no validation loss says what counts."""
    if run.n_rounds < MIN_ROUNDS or run.diverged or run.is_converged or len(run.validation):
        return None
    known = (
        "nothing is known"
        if run.lower is None
        else f"all that is known is that it is at least {run.lower:.4g}"
    )
    falling = ""
    if run.gain > FLAT_SHARE * run.left * run.start:
        falling = (
            f"  The last {run.n_rounds - run.half} rounds still lowered the objective by {run.gain:.2g}."
        )
    return Unchecked(
        "distance_from_the_optimum",
        f"the objective is {run.best[-1]:.4g}, and of the optimum {known}.{falling}  certify(X, y) on the "
        "training rows tells more.",
    )


def overfitting(run: Run) -> Answer:
    """The validation loss has been rising."""
    values = run.validation
    if len(values) == 0:
        return Unchecked("overfitting", run.no_validation)
    n_rounds = len(values) - 1
    if n_rounds < MIN_ROUNDS or run.diverged:
        return None
    best, window = int(np.argmin(values)), max(n_rounds // 10, 5)
    now = float(np.median(values[-window:]))  # the last iterate fluctuates
    low, gained, back = float(values[best]), float(values[0] - values[best]), now - float(values[best])
    if best > 0.8 * n_rounds or back <= GIVEN_BACK * gained or back <= RISEN * abs(low):
        return None
    if not np.median(run.objective[: n_rounds + 1][-window:]) < run.objective[best]:
        return None  # training got worse too: that is no overfitting
    lost = (
        f"gave back {_percent(back / gained)} of its gain" if gained > 0.0 else "never fell below the start"
    )
    sentence = (
        f"The validation loss was lowest in round {best} of {n_rounds}, {low:.4g}, and rose to {now:.4g} "
        f"since ({lost}), while the training objective went on falling."
    )
    numbers = {"best": float(best), "rise": back}
    if run.in_folds:
        advice = (
            "This is intended: a classifier trains longer than is best for its loss, since its errors "
            f"usually go on falling.  n_rounds={best} stops where the loss is best."
        )
        return Finding("overfitting", "note", sentence, numbers, advice)
    if run.output == "best" and len(values) == len(run.objective) and run.has_validation:
        advice = (
            f"The model handed out is the one of round {best}; early_stopping=True would have saved the rest."
        )
        return Finding("overfitting", "note", sentence, numbers, advice)
    advice = "Use output='best' or early_stopping=True, fewer rounds, smaller steps, or l2."
    return Finding("overfitting", "warning", sentence, numbers, advice)


RULES: tuple[Callable[[Run], Answer], ...] = (
    converged,
    stalled,
    cycling,
    edge,
    step_too_large,
    not_a_number,
    step_too_small,
    unfinished,
    optimum,
    overfitting,
)


def diagnose(run: Run, trials: Sequence[Trial] = ()) -> Diagnosis:
    """Ask every rule."""
    answers: list[Answer] = []
    if 0 < run.n_rounds < MIN_ROUNDS and not run.diverged:
        answers.append(
            Unchecked("the course of the run", f"{run.n_rounds} rounds are too few; {MIN_ROUNDS} are needed.")
        )
    answers += [rule(run) for rule in RULES]
    answers += compare(trials)
    return Diagnosis(
        tuple(answer for answer in answers if isinstance(answer, Finding)),
        tuple(answer for answer in answers if isinstance(answer, Unchecked)),
    )


# -- trial runs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A short run with one setting changed (or none: the first one)."""

    name: str  #: "the model's own settings", "algorithm='residual'", …
    change: str  #: "", "algorithm", "step" or "learner"
    start: float  #: held-out loss before training
    objective: float  #: the best on the training part
    held_out: float  #: the best on the rest
    weak_learners: int


def compare(trials: Sequence[Trial]) -> list[Answer]:
    """Say which change would help."""
    if not trials:
        return []
    own, *others = trials
    needed = BETTER * max(own.start - own.held_out, RISEN * abs(own.held_out))
    answers: list[Answer] = []
    for change in dict.fromkeys(trial.change for trial in others):
        tried = sorted(
            (trial for trial in others if trial.change == change), key=lambda trial: trial.held_out
        )
        best = tried[0]
        sentence = f"Short trials: {'; '.join(map(_told, (own, *tried)))}."
        numbers = {"held_out": best.held_out, "objective": best.objective, "own_held_out": own.held_out}
        helps = own.held_out - best.held_out > needed
        advice = f"Try {best.name}." if helps else f"Another {change} would not help on new rows."
        answers.append(Finding(f"other_{change}", "warning" if helps else "note", sentence, numbers, advice))
    return answers


def _told(trial: Trial) -> str:
    return (
        f"{trial.name}: held-out loss {trial.held_out:.4g}, objective {trial.objective:.4g} with "
        f"{trial.weak_learners} weak learners"
    )


# -- words --------------------------------------------------------------------------------------------------


def _unstall(run: Run) -> str:
    if run.is_naive:
        step = " and step='auto'" if run.step == "line_search" else ""
        return (
            f"Use algorithm='residual'{step}: it keeps what each projection leaves over and gets past this."
        )
    if run.step not in SUITABLE:
        return "Use step='auto', or a stronger learner."
    return "Try a stronger learner; diagnose(X, y, trials=True) shows if it pays."


def _doubt(run: Run) -> str:
    tell = [] if run.certificate is not None else ["Fit with certificate=True to know more."]
    tell += ["Try algorithm='residual': it may get further."] if run.is_naive else []
    return "  ".join(tell)


def _guess(slope: float) -> str:
    if math.isnan(slope):
        return "It may be the optimum or not"
    likely = "looks like" if slope < STATIONARY / 3.0 else "may be"
    return f"It {likely} the optimum: the mean subgradient is down to {_percent(slope)} of full length"


def _smaller(run: Run) -> str:
    if run.step == "refit":
        return "Use a smaller share of the best leaf values, such as step='refit:0.02'."
    if run.step != "auto":
        return "Use step='auto' or a smaller scale."
    scale = float(run.history["step"][-1]) * math.sqrt(run.n_rounds) / 4.0
    other = ", or algorithm='residual'" if run.is_naive else ""
    return f"Use more rounds (the steps shrink), a smaller step such as 'inverse_sqrt:{scale:.2g}'{other}."


def _straight(run: Run) -> str:
    return f"a unit of step gained {run.rate:.0%} of what it did in the first half"


def _gain(run: Run) -> str:
    best, start = float(run.best[-1]), float(run.objective[0])
    if run.gain <= 0.0:
        return f"did not lower the best objective, {best:.4g} (the start was {start:.4g})"
    return f"lowered the best objective by {run.gain:.2g}, to {best:.4g} (the start was {start:.4g})"


def _used(distinct: int) -> str:
    return (
        "one and the same weak learner was"
        if distinct == 1
        else f"only {distinct} different weak learners were"
    )


def _same(distinct: int) -> str:
    return "were one and the same" if distinct == 1 else f"were only {distinct} different ones"


def _of(available: float) -> str:
    return "" if math.isinf(available) else f" (there are at least {available:.0f} to choose from)"


def _title(rule: str) -> str:
    return rule.replace("_", " ")


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
