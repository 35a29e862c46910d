"""The exact optimum over f₀ + span(H) of a piecewise linear loss without a ridge term: a linear program.

With R[F] = c + ⟨v, F⟩ + Σ_i w_i max_m (A_m F + b_m) (`Pieces`) and functions B that span H, the dual is

    max  c + ⟨v, f₀⟩ + Σ_m λ_m (A_m f₀ + b_m)   over λ ≥ 0
    with Σ_{m in group i} λ_m = w_i for all i, and Bᵀ(v + Aᵀλ) = 0:

u = v + Aᵀλ is then a subgradient of R somewhere, orthogonal to every hypothesis.  Every feasible λ gives a
lower bound, so what the solver returns is made feasible in the groups and charged for the rest.

The solver's tolerances are absolute, so it is given the program in its own units: shares λ/w of the groups,
the pieces at f₀ as multiples of their largest, and each equation divided by its largest coefficient.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from convexboost.core.protocols import HypothesisSet
from convexboost.core.space import Array
from convexboost.inspection.cuts import VALUE_ROUNDING
from convexboost.losses._pieces import Pieces

#: Coefficients of a program that takes seconds to minutes.
MAX_NONZEROS = 2_000_000
#: Rounding: the coefficients of an optimal model are assumed to be at most this many times the largest one
#: found, or the unit of the program if that is larger.
TRUST = 10.0
#: Of the solver: the second where rounding makes the program infeasible by the first.
TOLERANCES = (1e-10, 1e-7)
#: Bounds from both sides that agree to this, relative to the objective at the start, are the optimum.
TIGHT = 1e-6


class PiecewiseLinear(Protocol):
    """What the program needs of an objective."""

    @property
    def n_outputs(self) -> int: ...
    @property
    def l2(self) -> float: ...
    @property
    def has_pieces(self) -> bool: ...
    def pieces(self) -> Pieces: ...
    def value(self, F: Array) -> float: ...


@dataclass(frozen=True)
class Optimum:
    """What the linear program found."""

    lower: float  #: no sum of the hypotheses has a smaller objective (within rounding of the optimum)
    upper: float  #: and this one is reached
    seconds: float
    is_tight: bool = True  #: whether the two agree


def optimum(
    objective: PiecewiseLinear,
    hypotheses: HypothesisSet,
    base: Array,
    *,
    max_nonzeros: int = MAX_NONZEROS,
    time_limit: float = 60.0,
) -> Optimum:
    """Minimise the objective over f₀ + span(H) exactly; `base` is f₀ at the training points.

    Raises ValueError where that is no linear program or one with more than `max_nonzeros` coefficients, and
    TimeoutError after `time_limit` seconds.
    """
    began = time.perf_counter()
    pieces, B = _program(objective, hypotheses, max_nonzeros)
    f_0 = np.empty(pieces.linear.shape)
    f_0[:] = base
    n_groups, n_pieces = len(pieces.weight), len(pieces.group)
    groups = sp.csr_array((np.ones(n_pieces), (pieces.group, np.arange(n_pieces))), (n_groups, n_pieces))
    weight = pieces.weight[pieces.group]
    gains = pieces.constants + pieces.slopes @ f_0.ravel()
    orthogonal = ((pieces.slopes @ B).T * weight).tocsr()
    linear = B.T @ pieces.linear.ravel()
    row = np.maximum(abs(orthogonal).max(axis=1).toarray().ravel(), 1e-300)
    unit, heaviest = max(float(np.abs(gains).max()), 1e-300), float(pieces.weight.max())
    found = _solve(
        -(weight / heaviest) * (gains / unit),
        sp.vstack([groups, sp.diags_array(1.0 / row) @ orthogonal], "csr"),
        np.concatenate([np.ones(n_groups), -linear / row]),
        time_limit,
    )
    shares = np.maximum(found.x, 0.0)
    shares /= np.maximum(groups @ shares, 1e-300)[pieces.group]
    coefficients = found.eqlin.marginals[n_groups:] / row * (heaviest * unit)  # of an optimal model
    F, start = f_0 + (B @ coefficients).reshape(f_0.shape), objective.value(f_0)
    # The dual value as what is below R[f₀]: c + ⟨v, f₀⟩ alone can be a small difference of large numbers.
    largest = np.full(n_groups, -np.inf)
    np.maximum.at(largest, pieces.group, gains)
    below = weight * shares * (largest[pieces.group] - gains)
    # ⟨u, f − f₀⟩ for an optimal f, which would be 0 if u were exactly orthogonal
    excess = np.abs(linear + orthogonal @ shares)
    charge = TRUST * float(np.sum(excess)) * max(float(np.abs(coefficients).max(initial=0.0)), unit)
    rounding = VALUE_ROUNDING * (abs(start) + float(pieces.weight @ np.abs(largest)))
    lower, upper = start - float(np.sum(below)) - charge - rounding, objective.value(F)
    is_tight = upper - lower <= TIGHT * max(abs(start), abs(upper))
    return Optimum(lower, upper, time.perf_counter() - began, is_tight)


def _program(objective: PiecewiseLinear, hypotheses: HypothesisSet, max_nonzeros: int) -> tuple[Pieces, Any]:
    """Return the pieces of the loss and the functions that span H, if that is a program of this size."""
    if objective.l2 > 0.0:
        raise ValueError(
            f"`exact` needs `l2`=0, got {objective.l2:g}: with a ridge term it is no linear program"
        )
    if not objective.has_pieces:
        raise ValueError("`exact` needs a piecewise linear loss: absolute, quantile, a hinge")
    pieces, B = objective.pieces(), hypotheses.functions(objective.n_outputs)
    if B is None:
        raise ValueError(
            "`exact` needs a learner whose span is known: fit with learner='stump' or 'additive'"
        )
    n_nonzeros = int(np.diff(B.tocsr().indptr) @ np.diff(pieces.slopes.tocsc().indptr)) + len(pieces.group)
    if n_nonzeros > max_nonzeros:
        raise ValueError(
            f"`exact` needs a linear program with {n_nonzeros:,} non-zeros, more than `max_nonzeros`="
            f"{max_nonzeros:,}: use fewer rows or `max_bins`, or allow more (memory and time grow)"
        )
    return pieces, B


def _solve(costs: Array, equations: Any, right: Array, time_limit: float) -> Any:
    """Minimise ⟨costs, x⟩ over x ≥ 0 with equations @ x = right."""
    for tolerance in TOLERANCES:
        found = linprog(
            costs,
            A_eq=equations,
            b_eq=right,
            bounds=(0.0, None),
            method="highs-ipm",
            # HiGHS forgets a limit that has passed before its interior point method begins
            options={"time_limit": max(time_limit, 1.0), "primal_feasibility_tolerance": tolerance},
        )
        if found.status != 2:  # there is a solution, but perhaps rounding has hidden it
            break
    if found.status == 1:
        raise TimeoutError(
            f"the linear program was not solved within `time_limit`={time_limit:g} s: use fewer rows or "
            "`max_bins`, or allow more"
        )
    if found.status != 0:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    return found
