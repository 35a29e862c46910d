"""The rules of a diagnosis, one function each; docs/diagnosis.md lists them.

A rule returns a `Finding`, None where all is well, or an `Unchecked` that says what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from convexboost.core.space import Array
from convexboost.inspection.findings import Finding, Unchecked
from convexboost.inspection.finished_run import CONVERGED, FAR, FLAT_SHARE, MIN_ROUNDS, FinishedRun
from convexboost.inspection.wording import (
    STATIONARY,
    advice_for_a_stall,
    advice_for_smaller_steps,
    advice_in_doubt,
    hypotheses_available,
    hypotheses_in_use,
    hypotheses_repeated,
    is_suitable,
    likely_optimum,
    percent,
    straight_line,
    what_was_gained,
)

#: The step was 0 in at least this share of the late rounds: that is why the objective does not change.
IDLE = 0.5
#: The edge counts as collapsed at this share of what it was; healthy residual runs keep a fifth or more.
COLLAPSED = 0.05
#: A learner whose edge is below this in the first round, in a run that made no progress, is too weak, or
#: there is nothing to learn.
TINY_EDGE = 0.1
#: Step too large: the typical round of the last quarter is this far above the best so far, as a share of all
#: progress.  With a step of the right size, residual and repeated stay below 0.04.
OVERSHOOT = 0.05
#: The objective may oscillate as long as the last half of the rounds brought this share of all progress.
SETTLING = 0.1
#: Overfitting: the validation loss gave back this share of what it had gained, …
GIVEN_BACK = 0.1
#: … and rose by this share of its minimum; less than that is noise.
RISEN = 0.01
#: Still falling: the last half of the rounds brought this share of what the validation loss gained, …
STILL = 0.05
#: … and its minimum lies in this last share of the rounds.
LATEST = 0.02

Answer = Finding | Unchecked | None


def converged(run: FinishedRun) -> Answer:
    """Nothing is left to gain, provably."""
    if not run.is_converged:
        return None
    if run.share_left <= CONVERGED:
        above = (
            f"at most {run.share_left:.2g} of the start above the optimum"
            if run.share_left > 0.0
            else "the optimum"
        )
        sentence = f"The objective, {run.best[-1]:.4g}, is {above}."
        return Finding("converged", "note", sentence, {"left": run.share_left})
    return Finding("converged", "note", f"Training stopped by itself: {run.stop.message}.")


def stalled(run: FinishedRun) -> Answer:
    """The objective is flat, and not because it is at its minimum."""
    if not run.is_flat or run.is_converged:
        return None
    slope, cycle = run.mean_slope, run.cycle
    if not cycle and run.overshoot >= OVERSHOOT:
        return None  # that is what `step_too_large` is about
    numbers = {
        "best": float(run.best[-1]),
        "gain": run.late_gain,
        "mean_slope": slope,
        "distinct": float(cycle),
    }
    flat = f"The last {run.n_rounds - run.half} rounds {what_was_gained(run)}"
    idle = float(np.mean(run.history["step"][run.half + 1 :] == 0.0))
    if idle >= IDLE:
        reason = f": in {idle:.0%} of them the step was 0, because the direction did not descend."
    elif _too_weak(run):
        return None  # that is what `edge` is about
    elif slope >= STATIONARY:
        reason = (
            f", yet the mean subgradient within reach has {percent(slope)} of full length: it is no minimum."
        )
    elif cycle and math.isnan(slope):
        reason = f", while {hypotheses_in_use(cycle)} in use."
    elif run.made_no_progress and math.isnan(slope):
        reason = ": the run never got going."
    else:
        sentence = f"{flat}.  {likely_optimum(slope)}."
        return Finding("flat", "note", sentence, numbers, advice_in_doubt(run))
    return Finding("stalled", "warning", flat + reason, numbers, advice_for_a_stall(run))


def cycling(run: FinishedRun) -> Answer:
    """The same few hypotheses again and again, to no effect."""
    late = run.late_hypotheses
    if run.n_rounds < MIN_ROUNDS:
        return None
    if (late < 0).any():
        if not run.is_flat:
            return None
        return Unchecked("cycling", "weak learners of this kind cannot be compared with each other.", False)
    if not run.cycle or not run.is_flat or run.is_converged or run.mean_slope < STATIONARY or _too_weak(run):
        return None
    distinct = run.cycle
    sentence = (
        f"The last {len(late)} weak learners {hypotheses_repeated(distinct)}"
        f"{hypotheses_available(run.n_hypotheses)}, to no effect: each step undoes the one before."
    )
    numbers = {"distinct": float(distinct), "weak_learners": float(len(late))}
    return Finding("cycling", "warning", sentence, numbers, advice_for_a_stall(run))


def edge(run: FinishedRun) -> Answer:
    """No weak learner correlates with the gradient any more, or none ever did."""
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
            f"the raw edge of '{run.algorithm}' tends to 0 in a healthy run.",
            vital=False,
        )
    before, now = float(np.nanmedian(first)), float(np.nanmedian(last))
    if not now < COLLAPSED * before:
        return None
    sentence = (
        f"The {name} fell from {before:.2g} to {now:.2g}: the rest of the gradient is nearly orthogonal "
        "to every weak learner, so this learner has little more to give."
    )
    advice = "Only a stronger learner can go on from here; diagnose(X, y, trials=True) shows if it pays."
    return Finding("edge", "note", sentence, {"before": before, "now": now}, advice)


def _too_weak(run: FinishedRun) -> Finding | None:
    first = float(run.history["edge"][1])  # known in every algorithm: the first vector is a gradient
    if (
        not (first < TINY_EDGE and run.made_no_progress)
        or run.is_straight
        or run.is_naive
        or run.is_recovering
    ):
        return None
    sentence = (
        f"The best weak learner has an edge of only {first:.2g} on the first gradient, and the whole run "
        f"took {percent(run.progress / run.first_gap)} off the objective: either the learner is too weak for "
        "this problem or the inputs say little about y."
    )
    advice = f"Try a stronger learner, such as learner={run.stronger}."
    return Finding(
        "edge", "warning", sentence, {"edge": first, "progress": run.progress / run.first_gap}, advice
    )


def step_too_large(run: FinishedRun) -> Answer:
    """The objective oscillates above its best value, or diverges."""
    if run.stop.kind == "diverged":
        values = run.objective[np.isfinite(run.objective)]
        sentence = (
            f"The run diverged after {run.n_rounds} rounds: the objective rose from {values[0]:.4g} to "
            f"{values[-1]:.4g}."
        )
        return Finding(
            "step_too_large",
            "warning",
            sentence,
            {"rounds": float(run.n_rounds)},
            advice_for_smaller_steps(run),
        )
    if run.stop.kind == "not_a_number":
        return None
    over = run.overshoot
    if (
        run.n_rounds < MIN_ROUNDS
        or run.is_converged
        or not over >= OVERSHOOT
        or run.cycle
        or run.is_recovering
    ):
        return None
    if (run.late_gain > SETTLING * run.progress and over < FAR) or _too_weak(run):
        return None  # it oscillates but decreases, or another rule says something worse
    sentence = (
        f"In the last quarter a typical round was {percent(over)} of all progress above the best objective, "
        f"{run.best[-1]:.4g} in round {int(np.argmin(run.best))}: the steps are too large to settle."
    )
    if run.made_no_progress:
        sentence = (
            f"A typical round of the last quarter was {percent(over)} above the best, {run.best[-1]:.4g}, "
            f"and that is no better than the start, {run.objective[0]:.4g}: the steps are too large."
        )
    return Finding("step_too_large", "warning", sentence, {"overshoot": over}, advice_for_smaller_steps(run))


def not_a_number(run: FinishedRun) -> Answer:
    """The objective became NaN."""
    if run.stop.kind != "not_a_number":
        return None
    hint = "Run check_loss(loss, y): it looks for scores where the loss is not finite."
    return Finding(
        "not_a_number", "warning", f"{run.stop.message[:1].upper()}{run.stop.message[1:]}.", {}, hint
    )


def step_too_small(run: FinishedRun) -> Answer:
    """The objective falls slowly, in a straight line."""
    if not run.is_slow or is_suitable(run):
        return None
    sentence = (
        f"The objective fell in a straight line: in the second half of the rounds {straight_line(run)}, and "
        f"{1.0 - run.rises:.0%} of all rounds went down.  With such small steps the run has not got far."
    )
    other = "`learning_rate`" if run.has_rate else "scale"
    advice = f"Use step='auto', or a larger {other}."
    numbers = {"rate": run.late_rate, "rises": run.rises, "left": run.share_left}
    return Finding("step_too_small", "warning", sentence, numbers, advice)


def unfinished(run: FinishedRun) -> Answer:
    """There were too few rounds, and nothing else is wrong."""
    if run.is_recovering:
        sentence = (
            f"The objective rose at first, from {run.objective[0]:.4g} to {np.max(run.objective):.4g}; now "
            f"it is coming down, to {run.objective[-1]:.4g}."
        )
    elif run.is_slow and is_suitable(run):
        sentence = f"The run was not finished: in the second half of the rounds {straight_line(run)}."
    elif len(run.validation) > run.n_rounds and _still_falls(run.validation):
        values, half = run.validation, (len(run.validation) - 1) // 2
        sentence = (
            f"The validation loss was still falling: rounds {half + 1} to {len(values) - 1} took it from "
            f"{np.min(values[: half + 1]):.4g} to {np.min(values):.4g}."
        )
    else:
        return None
    return Finding("unfinished", "note", sentence, {"rate": run.late_rate}, "More rounds would lower it.")


def _still_falls(values: Array) -> bool:
    n_rounds = len(values) - 1
    if n_rounds < MIN_ROUNDS or np.argmin(values) < (1.0 - LATEST) * n_rounds:
        return False
    best = np.minimum.accumulate(values)
    return bool(best[n_rounds // 2] - best[-1] > STILL * (best[0] - best[-1]))


def optimum(run: FinishedRun) -> Answer:
    """How far the objective is from the optimum; only asked where there is no validation loss to judge by."""
    if run.n_rounds < MIN_ROUNDS or run.stop.kind == "diverged" or run.is_converged or len(run.validation):
        return None
    known = (
        "nothing is known"
        if run.lower_bound is None
        else f"all that is known is that it is at least {run.lower_bound:.4g}"
    )
    falling = ""
    if run.late_gain > FLAT_SHARE * run.share_left * run.first_gap:
        falling = (
            f"  The last {run.n_rounds - run.half} rounds still lowered the objective by {run.late_gain:.2g}."
        )
    return Unchecked(
        "distance_from_the_optimum",
        f"the objective is {run.best[-1]:.4g}, and of the optimum {known}.{falling}  certify(X, y) on the "
        "training rows tells more.",
    )


def overfitting(run: FinishedRun) -> Answer:
    """The validation loss has been rising."""
    values = run.validation
    if len(values) == 0:
        return Unchecked("overfitting", run.no_validation)
    n_rounds = len(values) - 1
    if n_rounds < MIN_ROUNDS or run.stop.kind == "diverged":
        return None
    best, window = int(np.argmin(values)), max(n_rounds // 10, 5)
    now = float(np.median(values[-window:]))  # the last iterate fluctuates
    low, gained, back = float(values[best]), float(values[0] - values[best]), now - float(values[best])
    if best > 0.8 * n_rounds or back <= GIVEN_BACK * gained or back <= RISEN * abs(low):
        return None
    if not np.median(run.objective[: n_rounds + 1][-window:]) < run.objective[best]:
        return None  # training got worse too: that is no overfitting
    lost = f"gave back {percent(back / gained)} of its gain" if gained > 0.0 else "never fell below the start"
    sentence = (
        f"The validation loss was lowest in round {best} of {n_rounds}, {low:.4g}, and rose to {now:.4g} "
        f"since ({lost}), while the training objective went on falling."
    )
    numbers = {"best": float(best), "rise": back}
    if run.output == "best" and len(values) == len(run.objective) and run.has_validation:
        advice = f"The model handed out is the one of round {best}; the rounds after it are not in it."
        return Finding("overfitting", "note", sentence, numbers, advice)
    advice = "Use early_stopping=True with output='best', fewer rounds, smaller steps, or l2."
    return Finding("overfitting", "warning", sentence, numbers, advice)


RULES: tuple[Callable[[FinishedRun], Answer], ...] = (
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
