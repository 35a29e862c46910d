"""A finished run as the rules of a diagnosis see it: the numbers they ask for, as ratios without units.

Where the theory matters: the raw edge of `residual` tends to 0 in a healthy run, so only its intrinsic edge
is judged.  The last iterate of `residual` and `repeated` fluctuates, so the best one so far is judged.  A
subgradient of a non-smooth loss need not be small at the optimum, so the *mean* subgradient tells whether a
flat objective is at its minimum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convexboost.boosting.training import Stop
from convexboost.core.space import Array
from convexboost.inspection.certificates import Certificate

#: Fewer rounds say nothing: every run starts fast and slows down.
MIN_ROUNDS = 15
#: Flat: the last half of the rounds lowered the best objective by less than this share of what is left above
#: the lower bound, …
FLAT_SHARE = 0.01
#: … and by less than this share of what the whole run lowered it by, if that is a number worth naming.
FLAT_PROGRESS = 0.02
#: Converged: at most this share of the gap at the start is left, by a certificate or by the known minimum.
CONVERGED = 0.01
#: A run made no progress if it lowered the objective by less than this share of its gap at the start.
NO_PROGRESS = 0.05
#: Step too small: the objective rises in at most this share of the rounds, …
RISES = 0.02
#: … a unit of step still gains this share of what it did in the first half (no curvature was met), …
STRAIGHT = 0.6
#: … and at least this share of the gap at the start is left above the lower bound.
FAR = 0.5
#: An objective above the start is decreasing if the last quarter of the rounds lowered it by this share.
FALLING = 0.01
#: Cycling: the last half used at most this share of the hypotheses that it could have used.
DISTINCT = 0.1

ALL_ROUNDS = Stop("rounds", "")
NO_VALIDATION = (
    "there were no validation rows; give X_val and y_val to fit, or rows that were not trained on to "
    "diagnose(X, y)."
)


@dataclass(frozen=True)
class FinishedRun:
    """A finished run as the rules see it."""

    history: Mapping[str, Array]
    chosen: NDArray[np.int32]  #: the hypothesis of each weak learner; see `diagnosis.number`
    algorithm: str = "residual"
    certificate: Certificate | None = None
    minimum: float | None = None  #: the loss is never below it
    smooth: bool = False  #: whether the loss has a gradient everywhere, so that `naive` converges
    stop: Stop = ALL_ROUNDS
    output: str = "best"
    has_validation: bool = True  #: the validation loss was known in training, so "best" was chosen by it
    no_validation: str = NO_VALIDATION  #: why there is no validation loss, where there is none
    step: str = "auto"
    auto_step: bool = False  #: whether it is what "auto" means
    has_rate: bool = False  #: whether `learning_rate` was given
    n_hypotheses: float = math.inf  #: how many there are to choose from, where that is known
    decay: float = 1.0  #: the share of Δ that `residual` keeps; below 1 a part out of reach stays bounded
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
    def validation(self) -> Array:
        """Return the validation loss after each round of the model; empty without one."""
        values = self.history["validation"]
        return values[~np.isnan(values)]

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
    def lower_bound(self) -> float | None:
        """Return a number that no model gets below."""
        if self.certificate is not None and math.isfinite(bound := self.certificate.best().value):
            return bound
        return self.minimum

    @property
    def first_gap(self) -> float:
        """Return how far the start is above the lower bound; infinity where there is none."""
        return (
            math.inf if self.lower_bound is None else max(float(self.objective[0]) - self.lower_bound, 1e-300)
        )

    @property
    def share_left(self) -> float:
        """Return how far the best is above the lower bound, as a share of the start."""
        return 1.0 if self.lower_bound is None else float(self.best[-1] - self.lower_bound) / self.first_gap

    @property
    def late_gain(self) -> float:
        """Return what the last half of the rounds took off the best objective."""
        return float(self.best[self.half] - self.best[-1])

    @property
    def is_flat(self) -> bool:
        """Return whether the last half of the rounds brought next to nothing."""
        if self.n_rounds < MIN_ROUNDS or self.is_recovering:
            return False
        if self.late_gain > FLAT_SHARE * self.share_left * self.first_gap:
            return False
        return self.late_gain <= FLAT_PROGRESS * self.progress or (
            self.made_no_progress and not self.is_straight
        )

    @property
    def made_no_progress(self) -> bool:
        """Return whether the whole run took off next to nothing."""
        return self.progress <= (NO_PROGRESS * self.first_gap if math.isfinite(self.first_gap) else 0.0)

    @property
    def rises(self) -> float:
        """Return the share of the rounds that made the objective larger."""
        return float(np.mean(np.diff(self.objective) > 0.0))

    @property
    def late_rate(self) -> float:
        """Return the gain per unit of step in the second half over that in the first."""
        steps, objective, half = self.history["step"], self.objective, self.half
        first = (objective[0] - objective[half]) / max(float(np.sum(steps[1 : half + 1])), 1e-300)
        second = (objective[half] - objective[-1]) / max(float(np.sum(steps[half + 1 :])), 1e-300)
        return float(second / first) if first > 0.0 else 0.0

    @property
    def is_straight(self) -> bool:
        """Return whether the objective fell in a straight line: no curvature, no kink was met yet."""
        exact = self.step == "line_search"  # that a longer step would not have helped is known then
        return self.rises <= RISES and self.late_rate >= STRAIGHT and not exact

    @property
    def is_slow(self) -> bool:
        """Return whether it did so and did not get far."""
        usual = self.n_rounds >= MIN_ROUNDS and not self.is_flat and self.stop.kind != "diverged"
        return usual and self.is_straight and self.share_left >= FAR

    @property
    def overshoot(self) -> float:
        """Return how far a typical late round is above the best so far, as a share of all progress.

        Without progress worth naming, as a share of the gap at the start.
        """
        above = float(np.median((self.objective - self.best)[-max(self.n_rounds // 4, 5) :]))
        scale = self.first_gap if self.made_no_progress and math.isfinite(self.first_gap) else self.progress
        return above / max(scale, 1e-300)

    @property
    def is_recovering(self) -> bool:
        """Return whether the objective is still coming down from a rise at the beginning.

        With many classes `residual` begins like that, and it is no fault.
        """
        if not self.made_no_progress or self.cycle or self.n_rounds < MIN_ROUNDS or self.overshoot > FAR:
            return False
        quarter = self.n_rounds // 4
        before, now = self.objective[-2 * quarter : -quarter], self.objective[-quarter:]
        return float(np.median(before) - np.median(now)) > FALLING * abs(
            float(self.objective[0] - (self.lower_bound or 0.0))
        )

    @property
    def is_converged(self) -> bool:
        """Return whether there is next to nothing left to gain, provably."""
        return self.stop.kind == "converged" or self.share_left <= CONVERGED

    @property
    def late_hypotheses(self) -> NDArray[np.int32]:
        """Return the weak learners of the last half."""
        return self.chosen[int(self.history["weak_learners"][self.half]) :]

    @property
    def cycle(self) -> int:
        """Return how many different hypotheses the last half went round in; 0 where it did not."""
        window = self.late_hypotheses
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
        """‖mean of Π∇‖ / mean of ‖∇‖ over the last rounds; NaN where it is unknown or meaningless."""
        certificate = self.certificate
        # Cuts leave out the ridge term; without the span the mean has parts that no hypothesis can reach.
        if certificate is None or certificate.l2 > 0.0 or not certificate.knows_span:
            return math.nan
        norms = self.history["gradient_norm"][self.half + 1 :]
        return certificate.tail.slope / max(float(np.sqrt(np.mean(norms**2))), 1e-300)
