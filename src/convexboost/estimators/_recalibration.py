"""The constant of a mean of members, chosen on the rows that they held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from convexboost.boosting.member import Member, Problem
from convexboost.boosting.training import Result
from convexboost.core.hypotheses import Direction, Move
from convexboost.estimators._scoring import pooled_scores
from convexboost.losses._objective import BoundLoss
from convexboost.losses._scores import LocalScores


def recalibrated(
    result: Result, members: Sequence[Member], problems: Sequence[Problem], unseen: BoundLoss
) -> Result:
    """Return the result with the constant that is best on the rows that were held out.

    Members fit a high quantile too low and a low one too high at rows that they have not seen.  Each row has
    been held out by one member, at whose scores it is as good as new.  `unseen` is the objective at these
    rows, in the order of the problems.
    """
    for member in members:
        kept = member.model.truncate(result.model.n_rounds)
        scores = cast(LocalScores, member.validation)
        scores.restore(None)
        scores.move(Move(Direction(tuple(kept.collapse()), math.nan), math.nan))
    shift = unseen.best_shift(pooled_scores(problems))
    return replace(result, model=result.model.shifted(shift), path=result.path.shifted(shift))
