"""What went wrong in a run, if anything, in plain sentences with numbers.

Each rule (rules.py) is one small function of a `FinishedRun` (the history, which hypotheses were chosen, the
certificate).  Only ratios are compared with thresholds, so the units of y do not matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convexboost.core.hypotheses import Term
from convexboost.inspection.findings import Diagnosis, Finding, Unchecked
from convexboost.inspection.finished_run import MIN_ROUNDS, FinishedRun
from convexboost.inspection.rules import RISEN, RULES, Answer

#: A trial must be better by this share of what the model's own settings gained.
BETTER = 0.05


def number(terms: Iterable[Term]) -> NDArray[np.int32]:
    """Number the hypotheses in the order they first appear, −1 for a kind that cannot be compared."""
    seen: dict[Hashable, int] = {}
    keys = (h.key() for _, h in terms)
    return np.fromiter((-1 if key is None else seen.setdefault(key, len(seen)) for key in keys), np.int32)


def diagnose(run: FinishedRun, trials: Sequence[Trial] = ()) -> Diagnosis:
    """Ask every rule."""
    answers: list[Answer] = []
    if 0 < run.n_rounds < MIN_ROUNDS and run.stop.kind != "diverged":
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
        sentence = f"Short trials: {'; '.join(map(_in_words, (own, *tried)))}."
        numbers = {"held_out": best.held_out, "objective": best.objective, "own_held_out": own.held_out}
        helps = own.held_out - best.held_out > needed
        advice = f"Try {best.name}." if helps else f"Another {change} would not help on new rows."
        answers.append(Finding(f"other_{change}", "warning" if helps else "note", sentence, numbers, advice))
    return answers


def _in_words(trial: Trial) -> str:
    return (
        f"{trial.name}: held-out loss {trial.held_out:.4g}, objective {trial.objective:.4g} with "
        f"{trial.weak_learners} weak learners"
    )
