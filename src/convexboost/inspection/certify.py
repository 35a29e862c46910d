"""A certificate for a model that is already there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from convexboost.core.hypotheses import add_all
from convexboost.core.model import AdditiveModel
from convexboost.core.protocols import HypothesisSet
from convexboost.core.space import Array
from convexboost.inspection.certificates import Attained, Certificate, LowerBound
from convexboost.inspection.cuts import Bundle, LinearBound
from convexboost.inspection.exact import MAX_NONZEROS, optimum
from convexboost.inspection.polish import Polish


@dataclass(frozen=True)
class Effort:
    """How a lower bound is improved, and how long that may take."""

    exact: bool = False  #: solve a linear program: small data, piecewise linear losses, l2 = 0
    polish: int = 200  #: steps of the dual polish, unless `exact`
    time_limit: float = 60.0  #: seconds, for the polish or for the linear program
    max_nonzeros: int = MAX_NONZEROS  #: size limit of the linear program

    def __post_init__(self) -> None:
        _check_positive(time_limit=self.time_limit)
        if not isinstance(self.polish, Integral) or isinstance(self.polish, bool):
            raise ValueError(f"`polish` must be an integer, got {self.polish!r}")
        if self.polish < 0:
            raise ValueError(f"`polish` must not be negative, got {self.polish!r}")


def _check_positive(**values: float | None) -> None:
    for name, value in values.items():
        if value is not None and not (isinstance(value, Real) and value > 0.0):
            raise ValueError(f"`{name}` must be positive, got {value!r}")


def certify(
    objective: Any,
    hypotheses: HypothesisSet,
    model: AdditiveModel,
    *,
    offset: Array | None = None,
    radius: float | None = None,
    weight: float | None = None,
    effort: Effort | None = None,
) -> Certificate:
    """Find out how far from optimal a model is at most.

    Parameters
    ----------
    objective : Objective
        A loss bound to targets, with its l2.
    hypotheses : HypothesisSet
        The weak learner bound to inputs; the terms of the model must be able to read them.
    model : AdditiveModel
        Any model; its `start` is f₀.
    offset : array of shape (n_samples, n_outputs), optional
        Fixed scores per row, added to the start.
    radius, weight : float, optional
        What the bounds C1 and C1' may assume of the best model.  Without l2 the bound is polished for this
        radius; by default for the model's own distance from the start.
    effort : Effort, optional
        How the bound is improved, and how long that may take.

    """
    _check_positive(radius=radius, weight=weight)
    effort = effort or Effort()
    base = np.tile(model.start, (len(hypotheses.inputs), 1)) + (0.0 if offset is None else offset)
    F = base.copy()
    add_all(F, hypotheses.inputs, model.collapse())
    distance = objective.space.norm(F - base)
    value = objective.value(F) + objective.l2 / 2.0 * distance**2
    attained = [Attained(objective.value(base), 0.0, 0.0)]
    attained.append(
        Attained(value, distance, math.inf if weight is None else _weight(model, hypotheses, objective))
    )
    found = []
    if effort.exact:
        best = optimum(
            objective, hypotheses, base, max_nonzeros=effort.max_nonzeros, time_limit=effort.time_limit
        )
        what = "the optimum of" if best.is_tight else "a lower bound from"
        text = f"holds for every sum of these weak learners; it is {what} a linear program"
        found.append(LowerBound("exact", best.lower, text))
        attained.append(Attained(best.upper))
    wanted = radius or distance or 1.0
    bundle = Bundle()
    polished = Polish(objective, hypotheses, base, F, bundle, wanted, weight)
    polished.run(0 if effort.exact else effort.polish, effort.time_limit)
    line = _line(bundle, hypotheses, objective.n_outputs)
    bundle = bundle.with_mean()
    if polished.best is not None:
        bundle.append(polished.best.cut)
    certificate = Certificate(
        objective=value,
        average=math.nan,
        minimum=objective.constants.minimum,
        l2=objective.l2,
        distance=distance,
        constants=bundle.constants,
        products=bundle.products if len(bundle) else None,
        uniform=line,
        tail=polished.line or line,
        knows_span=hypotheses.knows_span,
        found=tuple(found),
        radius=radius if objective.l2 > 0.0 or effort.exact else wanted,
        met=polished.objective,
        weight=weight,
        slack=bundle.slack,
        attained=(*attained, polished.met),
    )
    if len(bundle) > 0:  # the best mean on the way, or the best cut: with more steps neither is worse
        certificate.settle(polished.domain)
    return certificate


def _weight(model: AdditiveModel, hypotheses: HypothesisSet, objective: Any) -> float:
    """Return the total weight Σ|α|‖h‖ of a model."""
    total = 0.0
    for weight, h in model.weighted_terms():
        F = np.zeros((len(hypotheses.inputs), objective.n_outputs))
        h.add_to(F, hypotheses.inputs, weight)
        total += objective.space.norm(F)
    return abs(model.multipliers[-1]) * total


def _line(bundle: Bundle, hypotheses: HypothesisSet, n_outputs: int) -> LinearBound:
    if len(bundle) == 0:
        return LinearBound(math.nan)
    mean, target = bundle.mean(), hypotheses.zero(n_outputs)
    target.subtract(hypotheses.at(-mean.slope))
    return mean.line(target.strength())
