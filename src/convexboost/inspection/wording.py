"""The sentences of a diagnosis that several rules share."""

from __future__ import annotations

import math

from convexboost.inspection.finished_run import FinishedRun

#: The mean of the subgradients in span(H), relative to their size, above which a flat objective is not a
#: minimum.  On 15 data sets flat runs near their optimum had 0.001 to 0.29, stuck ones 0.47 to 0.7.
STATIONARY = 0.3

#: Steps that need no scale: "auto", and what it means with trees.
SUITABLE = ("auto", "refit")


def is_suitable(run: FinishedRun) -> bool:
    """Return whether step="auto" would be no better."""
    return run.auto_step or run.step in SUITABLE


def advice_for_a_stall(run: FinishedRun) -> str:
    """Say what to do about an objective that does not move."""
    if run.is_naive:
        step = " and step='auto'" if run.step == "line_search" else ""
        return (
            f"Use algorithm='residual'{step}: it keeps what each projection leaves over and gets past this."
        )
    if not is_suitable(run):
        return "Use step='auto', or a stronger learner."
    return "Try a stronger learner; diagnose(X, y, trials=True) shows if it pays."


def advice_in_doubt(run: FinishedRun) -> str:
    """Say how to find out whether a flat objective is at its minimum."""
    tell = [] if run.certificate is not None else ["Fit with certificate=True to know more."]
    tell += ["Try algorithm='residual': it may get further."] if run.is_naive else []
    return "  ".join(tell)


def likely_optimum(slope: float) -> str:
    """Say how likely a flat objective is at its minimum, given the length of the mean subgradient."""
    if math.isnan(slope):
        return "It may be the optimum or not"
    likely = "looks like" if slope < STATIONARY / 3.0 else "may be"
    return f"It {likely} the optimum: the mean subgradient is down to {percent(slope)} of full length"


def advice_for_smaller_steps(run: FinishedRun) -> str:
    """Say how to take smaller steps."""
    if run.has_rate:
        return "Use a smaller `learning_rate`."
    if run.step == "refit":
        smaller = min(0.02, float(run.history["step"][-1]) / 5.0)
        return f"Use a smaller share of the best leaf values, such as step='refit:{smaller:.2g}'."
    if run.step != "auto":
        return "Use a smaller scale." if run.auto_step else "Use step='auto' or a smaller scale."
    scale = float(run.history["step"][-1]) * math.sqrt(run.n_rounds) / 4.0
    other = ", or algorithm='residual'" if run.is_naive else ""
    return f"Use more rounds (the steps shrink), a smaller step such as 'inverse_sqrt:{scale:.2g}'{other}."


def straight_line(run: FinishedRun) -> str:
    """Say how straight the objective fell."""
    return f"a unit of step gained {run.late_rate:.0%} of what it did in the first half"


def what_was_gained(run: FinishedRun) -> str:
    """Say what the last half of the rounds did to the best objective."""
    best, start = float(run.best[-1]), float(run.objective[0])
    if run.late_gain <= 0.0:
        return f"did not lower the best objective, {best:.4g} (the start was {start:.4g})"
    return f"lowered the best objective by {run.late_gain:.2g}, to {best:.4g} (the start was {start:.4g})"


def hypotheses_in_use(distinct: int) -> str:
    """Say how many different weak learners were used."""
    return (
        "one and the same weak learner was"
        if distinct == 1
        else f"only {distinct} different weak learners were"
    )


def hypotheses_repeated(distinct: int) -> str:
    """Say how many different weak learners there were among many."""
    return "were one and the same" if distinct == 1 else f"were only {distinct} different ones"


def hypotheses_available(available: float) -> str:
    """Say how many weak learners there are, where that is known."""
    return "" if math.isinf(available) else f" (there are at least {available:.0f} to choose from)"


def percent(share: float) -> str:
    """Write a share."""
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
