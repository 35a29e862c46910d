"""The sentences of the paper that are about all of its experiments, with one rule each.

A rule looks at groups (maps, data sets) of repetitions (draws, folds), and at the three curves of each
repetition.  It is the same for every experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from convexboost.core.space import Array
from convexboost.paper.curve import NEW, PAPER, Curve
from convexboost.reports.content import Comparison, Verdict, verdict

Trio = Mapping[str, Curve]  #: by algorithm; one that is missing decides nothing

MUCH_LESS = 0.1  #: "much less often" is at most a tenth

OUTPERFORM = (
    "… and demonstrate experimentally that these new algorithms often outperform the existing algorithm in "
    "practice."
)
NEED = (
    "… we demonstrate experimental results that support our analysis and demonstrate the need for the new "
    "algorithms we present."
)
RARELY = (
    "The major difference lies in frequency of the gradient evaluation, where the repeated projection "
    "algorithm evaluates the gradient much less often than the … residual algorithm."
)


@dataclass(frozen=True)
class Repetitions:
    """What a rule looks at: the groups, what one repetition is called, and the setting they were run in."""

    groups: Mapping[str, Sequence[Trio]]
    one: str  #: "draw", "fold" or "data set"
    setting: str = ""

    def each(self, group: str, of: Callable[[Trio], float]) -> Array:
        """Return a number for each repetition of a group; NaN where a curve is missing."""
        return np.array([of(t) if len(t) == len(PAPER) else np.nan for t in self.groups[group]], float)

    def count(self, group: str, of: Callable[[Trio], bool]) -> float:
        """Return in how many repetitions something holds; NaN unless all are there."""
        return float(self.each(group, of).sum())

    def source(self, where: str) -> str:
        """Return where the paper says so, and with what it is asked."""
        return f"{where}; {self.setting}" if self.setting else where

    def outperform(self, test: Callable[[Curve], float], measure: str, note: str = "") -> Verdict:
        """Section 1: in most repetitions each new algorithm is better than naive on the test set."""

        def comparison(group: str, new: str) -> Comparison:
            count = self.count(group, lambda trio: test(trio[new]) < test(trio["naive"]))
            n = len(self.groups[group])
            words = f"{group}: {self.one}s in which {new} has less {measure} than naive"
            return Comparison(words, count, ">", n / 2, f"half of {n}")

        words = "By the measure of the paper's figure, on the test set. “Often” is taken as: more than half."
        return self._verdict(OUTPERFORM, comparison, "Section 1", f"{words} {note}".strip())

    def need(self) -> Verdict:
        """Abstract: each new algorithm gets further down in training, with as many weak learners, always."""

        def comparison(group: str, new: str) -> Comparison:
            count, n = (
                self.count(group, lambda trio: below(trio[new], trio["naive"])),
                len(self.groups[group]),
            )
            words = f"{group}: {self.one}s in which {new} reaches a lower training objective than naive"
            return Comparison(words, count, "=", n, f"all {n}")

        words = "The analysis is about the training objective; all have the same number of weak learners."
        return self._verdict(NEED, comparison, "Abstract", words)

    def rarely(self) -> Verdict:
        """Section 4.2: repeated needs a tenth of the gradients to the lowest objective that both reach."""

        def comparison(group: str) -> Comparison:
            ratios = self.each(group, lambda trio: ratio(trio, "gradient_evaluations"))
            words = f"{group}: gradient evaluations of repeated, over those of residual"
            return Comparison(words, float(np.exp(np.mean(np.log(ratios)))), "≤", MUCH_LESS)

        words = (
            "Up to the lowest training objective that both reach, geometric mean. With the same number n of "
            "weak learners it would be about √(2/n), whatever the data: that follows from how the algorithms "
            "are made."
        )
        return verdict(RARELY, *map(comparison, self.groups), source=self.source("Section 4.2"), note=words)

    def _verdict(
        self, claim: str, comparison: Callable[[str, str], Comparison], where: str, note: str
    ) -> Verdict:
        pairs = [comparison(group, new) for group in self.groups for new in NEW]
        return verdict(claim, *pairs, source=self.source(where), note=note)


def ours(found: Verdict) -> Verdict:
    """Mark a verdict as one on our own question or setting: it does not count as the paper's."""
    return replace(found, counts=False)


def below(new: Curve, old: Curve) -> bool:
    """Say whether a run gets lower in training than another."""
    return new.lowest() < old.lowest()


def ratio(trio: Trio, column: str) -> float:
    """Return what repeated needs for the lowest objective that both new algorithms reach, over residual.

    At least 1 each: where one of them never gets below the start, both are there at once.
    """
    level = max(trio[algorithm].lowest() for algorithm in NEW)
    repeated, residual = (max(trio[algorithm].reached(level, column), 1.0) for algorithm in NEW)
    return repeated / residual
