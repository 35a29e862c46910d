"""The lower bounds of a run in progress."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convexboost.core.hypotheses import Direction, Move
from convexboost.core.protocols import HypothesisSet, Objective, Scores, Target
from convexboost.inspection.certificates import Attained, Certificate
from convexboost.inspection.cuts import FEW, AllModels, Bundle, CutSum, constant_error, lipschitz

#: A cut is the mean over a block of rounds: at least this many, and this share of the rounds so far.
MIN_BLOCK, BLOCK_SHARE = 20, 0.1


class BoundTracker:
    """Collects the cuts of a run.

    `observe` is called before each round and `follow` after it.  Their cost grows with the number of bins; a
    pass over span(H) is made only at the end of a block of rounds.
    """

    def __init__(self, objective: Objective, hypotheses: HypothesisSet) -> None:
        self._hypotheses, self._n_outputs = hypotheses, objective.n_outputs
        self._position = hypotheses.origin(objective.n_outputs)
        self._l2, self._minimum = objective.l2, objective.constants.minimum
        self._steepest = lipschitz(objective)
        self._magnitude = 0.0  #: ‖F‖, the largest met
        self._weight = 0.0  #: Σ|α|‖h‖; ∞ where that is not known
        self._start = math.inf  #: the objective of f₀
        self._block, self._total, self._window, self._tail = (self._zero() for _ in range(4))
        self._bundle = Bundle()
        self._values = 0.0  #: their sum
        self._norms = (math.nan, math.nan)  #: of the subgradient and of ΠΔ
        self.objective = math.inf
        self.lower = -math.inf if self._minimum is None else self._minimum  #: without an assumption

    def observe(self, F: Scores) -> None:
        """Take the cut at F."""
        value, gradient = F.value(), F.gradient()
        part, penalty = gradient.loss_part, gradient.penalty
        correlation = self._position.dot(part)
        self._magnitude = max(self._magnitude, F.magnitude())
        rounds = self._total.count + self._block.count
        if rounds == 0:
            self._start = value
        error = constant_error(value, max(part.norm, self._steepest), self._magnitude, rounds)
        self._block.add(value - penalty - correlation - error, part)
        self._values += value
        self.objective = min(self.objective, value)
        # ‖ℓ + l2 z‖² for z = f − f₀, (l2/2) ‖z‖² being the penalty
        square = part.norm**2 + 2.0 * self._l2 * (correlation + penalty)
        self._norms = (math.sqrt(max(square, 0.0)), math.nan)

    def follow(self, move: Move, residual: Target | None) -> None:
        """Follow a move of F; `residual` is Δ after the round, if the algorithm keeps it."""
        self._position.move(move)
        terms = move.direction.terms
        self._weight = move.shrink * self._weight + (move.direction.norm if len(terms) <= 1 else math.inf)
        if self._block.count >= max(MIN_BLOCK, BLOCK_SHARE * self._total.count):
            self._close()
            left = None if residual is None else residual.coordinates()
            self._norms = (self._norms[0], math.nan if left is None else float(np.linalg.norm(left)))

    def record(self, h: Direction) -> dict[str, float]:
        """Return what a `Record` shows of this."""
        count = self._total.count + self._block.count
        return {
            "gradient_norm": self._norms[0],
            "length": h.norm,
            "residual_norm": self._norms[1],
            "average": self._values / count if count else math.nan,
            "lower_bound": self.lower,
        }

    def certificate(self, F: Scores) -> Certificate:
        """Return what is known after the last round."""
        if self._block.count > 0:
            self._close()
        bundle, distance = self._bundle.with_mean(), F.distance()
        weight = math.inf if math.isnan(self._weight) else self._weight
        return Certificate(
            objective=min(self.objective, F.value()),
            average=self._values / self._total.count if self._total.count else math.nan,
            minimum=self._minimum,
            l2=self._l2,
            distance=distance,
            constants=bundle.constants,
            products=bundle.products if len(bundle) else None,
            uniform=self._total.line(),
            tail=(self._tail if self._tail.count else self._total).line(),
            knows_span=self._hypotheses.knows_span,
            slack=bundle.slack,
            attained=(Attained(self._start, 0.0, 0.0), Attained(F.value(), distance, weight)),
        )

    def state(self) -> dict[str, Any]:
        """Return everything that changes, picklable."""
        sums = (self._block, self._total, self._window, self._tail)
        return {
            "position": self._position.state(),
            "sums": [s.state() for s in sums],
            "bundle": self._bundle.state(),
            "numbers": (self._values, self._norms, self.objective, self.lower),
            "sizes": (self._magnitude, self._weight, self._start),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self._position.restore(state["position"])
        self._block, self._total, self._window, self._tail = (self._zero() for _ in range(4))
        for total, saved in zip(
            (self._block, self._total, self._window, self._tail), state["sums"], strict=True
        ):
            total.restore(saved)
        self._bundle.restore(state["bundle"])
        self._values, self._norms, self.objective, self.lower = state["numbers"]
        self._magnitude, self._weight, self._start = state["sizes"]

    def _zero(self) -> CutSum:
        return CutSum(self._hypotheses.zero(self._n_outputs), self._hypotheses)

    def _close(self) -> None:
        """Turn the block into one cut."""
        block, self._block = self._block, self._zero()
        for total in (self._total, self._window):
            total.combine(block)
        if 2 * self._window.count >= self._total.count:  # half of all rounds: a complete window
            self._tail, self._window = self._window, self._zero()
        mean = block.mean()
        if mean is None:
            return
        self._bundle.append(mean)
        if self._l2 > 0.0:
            self.lower = max(self.lower, self._bundle.improve(AllModels(self._l2), FEW))
