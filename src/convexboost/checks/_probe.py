"""A probe of a loss: the points where it was evaluated, the results, and how exact they are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from convexboost.checks._names import show
from convexboost.checks._report import LossError
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._objective import BoundLoss

#: Rows of a row loss that are tried out; a loss of all rows at once gets all of them.
MAX_ROWS = 200
#: A value beyond this before it is infinite: the function is so steep, not its code careless.
HUGE = 1e30
#: Rounding of ordinary float64 code, and the least of it that is allowed for in gradients.
ROUNDING = 1e-13
#: The same of float32.
SINGLE = 1e-6
#: Tolerance of slopes, relative.
CLOSE = 1e-5

STABLE = (
    "Use a form that does not overflow, e.g. np.logaddexp(0, f) for log(1 + exp f), or subtract the largest "
    "score before exp."
)
DEFINED = (
    "Every score must have a finite value and gradient; at a kink any subgradient will do (beware of 0/0 and "
    "of sqrt at 0)."
)


@dataclass
class Point:
    """Scores, and what the loss says there; what is not like F has a number per piece."""

    name: str
    F: Array
    losses: Array
    G: Array
    scale: Array  #: size of the numbers that the losses are made of
    noise: Array  #: of the losses
    unit: float = 1.0  #: an ordinary distance

    @property
    def finite(self) -> Any:
        """Return which pieces can be used."""
        fine = np.isfinite(self.G).reshape(len(self.losses), -1).all(axis=1)
        return fine & np.isfinite(self.losses)


@dataclass
class Slope:
    """The slope along D at a point: what the gradient says, and the range that the value leaves it."""

    point: Point
    D: Array
    claimed: Array
    low: Array
    high: Array

    @property
    def middle(self) -> Array:
        """Return the central difference quotient."""
        return (self.low + self.high) / 2

    @property
    def misses(self) -> Array:
        """Return how far the gradient is out of range, relative; 0 where it is not."""
        miss = np.maximum(self.low - self.claimed, self.claimed - self.high)
        fine = np.isfinite(miss) & self.point.finite & (miss > 0)
        return np.where(fine, miss / (np.abs(self.claimed) + np.abs(self.middle) + 1e-300), 0.0)


class Probe:
    """A bound loss as one or more pieces, each a function of its own scores.

    A piece is a row of a row loss, with the row's own gradient; or all rows at once, with ordinary partial
    derivatives.  All checks are about pieces, so both forms are checked by the same code.
    """

    def __init__(self, objective: BoundLoss, loss: Any, rng: np.random.Generator, thorough: bool) -> None:
        self.all_rows = objective.space.n_samples
        by_rows = objective.by_rows
        if by_rows is not None and self.all_rows > MAX_ROWS:
            rows = np.sort(rng.choice(self.all_rows, MAX_ROWS, replace=False))
            weight = objective.space.weight[rows]
            objective = replace(by_rows, y=by_rows.y[rows], space=FunctionSpace(weight / weight.sum()))
        self.objective, self.rng, self.thorough = objective, rng, thorough
        self.loss: Any = objective.source if loss is None else loss
        self.method, self.name = "", "the loss"  #: that the user wrote, and its owner
        if self.loss is not None:
            self.method = self.loss.user_method
            self.name = self.loss.name if self.method else f"the loss {self.loss}"
        self.who = f"`{self.method}` of {self.name}" if self.method else self.name
        self.by_rows = by_rows is not None
        self.shape = (objective.space.n_samples, objective.n_outputs)
        self.y: Any = objective.targets
        self.has_classes = objective.has_classes
        self.evaluations = 0
        self.noise = ROUNDING  #: of the losses, relative
        self.typical = np.zeros(self.shape)  #: size of the gradient at ordinary scores
        self.points: list[Point] = []
        self.kinks = False
        self.notes: list[str] = []

    def fail(self, what: str, hint: str, error: type[LossError] = LossError) -> NoReturn:
        """Say what is wrong with the method that the user wrote."""
        raise error(f"{self.who}: {what}. {hint}")

    def fail_declared(self, what: str, hint: str) -> NoReturn:
        """Say what is wrong with something that the loss declares; `what` names it."""
        raise LossError(f"{self.name}: {what}. {hint}")

    # -- asking ---------------------------------------------------------------------------------------

    def evaluate(self, F: Array) -> tuple[Array, Array]:
        """Return the value of each piece and its gradient."""
        self.evaluations += 1
        if self.objective.by_rows is not None:
            return self.objective.by_rows.losses(F)
        value, partials = self.objective.partials(F)
        return np.array([value]), partials

    def values(self, F: Array) -> Array:
        """Return the value of each piece."""
        return self.evaluate(F)[0]

    def pieces(self, A: Array) -> Array:
        """Return one row per piece."""
        return A if self.by_rows else A.reshape(1, -1)

    def dot(self, A: Array, B: Array) -> Array:
        """Inner product in each piece."""
        return np.einsum("ij,ij->i", self.pieces(A), self.pieces(B))

    def lengths(self, A: Array, dual: bool = False) -> Array:
        """Norm of each row, or in L²(P), where partial derivatives are divided by the weights first."""
        squares, weight = (A * A).sum(axis=1), self.objective.space.weight
        return np.sqrt(squares if self.by_rows else [(squares / weight if dual else squares * weight).sum()])

    # -- points ---------------------------------------------------------------------------------------

    def at(self, name: str, F: Any, unit: float = 1.0) -> Point:
        """Evaluate there, and keep the point."""
        F = np.array(np.broadcast_to(F, self.shape), float, order="C")
        losses, G = (np.array(part, float) for part in self.evaluate(F.copy()))
        return self.keep(name, F, losses, G, unit)

    def keep(self, name: str, F: Array, losses: Array, G: Array, unit: float) -> Point:
        """Find out how exact an evaluation is, and where it is not finite, why; keep it."""
        scale = np.abs(losses) + self.dot(np.maximum(np.abs(G), self.typical), np.abs(F))
        noise = self.noise * scale
        if self.thorough or self.by_rows:  # else every evaluation counts
            # Second differences over so short a way are rounding, but for kinks.
            D = 1e-7 * max(unit, float(np.abs(F).max())) * self.rng.choice([-1.0, 1.0], self.shape)
            second = np.abs(self.values(F + D) - 2 * losses + self.values(F - D))
            share = second / np.where(scale > 0, scale, 1.0)
            worst = float(share[np.isfinite(share)].max(initial=0.0))
            noise = np.maximum(second, max(self.noise, min(worst, 1e-5)) * scale)
        point = Point(name, F, losses, G, scale, 4 * noise, unit)
        self.points.append(point)
        for piece in np.flatnonzero(~point.finite)[:3]:
            self.explain_infinite(point, piece)
        return point

    def explain_infinite(self, point: Point, piece: int) -> None:
        """Go there from 0: raise, unless values had become huge on the way."""

        def evaluate(F: Array) -> tuple[Array, Array]:
            losses, G = self.evaluate(F)
            return losses[piece], self.pieces(G)[piece]

        steep, F = edge_of_finite(evaluate, np.zeros(self.shape), point.F)
        size = np.abs(self.pieces(F)[piece]).max()
        if steep:
            self.notes = [f"It overflows at scores of about {size:.3g}: it is that steep."]
            return
        losses, G = self.evaluate(F)
        row = piece if self.by_rows else int(np.argmax((~np.isfinite(G)).any(axis=1)))
        numbers = np.array([losses[piece], *G[row]])
        bad = numbers[~np.isfinite(numbers)][:1]
        what = "gradient" if math.isfinite(losses[piece]) else "value"
        where = "large scores" if size > 30 else "some scores"
        self.fail(
            f"the {what} is not finite ({show(bad)}) at {where} (row {row}, f = {show(F[row])})",
            STABLE if size > 30 else DEFINED,
        )

    # -- slopes ---------------------------------------------------------------------------------------

    def slope(self, point: Point, D: Array, h: float = 1e-4) -> Slope:
        """Go h units to both sides: the slope of a convex function lies between the difference quotients."""
        h = h * point.unit
        right = (self.values(point.F + h * D) - point.losses) / h
        left = (point.losses - self.values(point.F - h * D)) / h
        slack = 4 * (point.noise + point.scale * self.noise) / h + CLOSE * (np.abs(left) + np.abs(right))
        slack = slack + max(1e-9, 100 * self.noise) * self.dot(np.abs(point.G), np.abs(D))
        low, high = np.minimum(left, right) - slack, np.maximum(left, right) + slack
        return Slope(point, D, self.dot(point.G, D), low, high)

    def excess(self, a: Point, b: Point) -> Array:
        """Return how far l(a) + ⟨gradient at a, b − a⟩ is above l(b) in each piece, relative; 0 where not."""
        D = b.F - a.F
        scale = a.scale + b.scale + self.dot(np.maximum(np.abs(a.G), self.typical), np.abs(D))
        slack = 4 * (a.noise + b.noise) + max(1e-11, 100 * self.noise) * scale
        miss = a.losses + self.dot(a.G, D) - b.losses - slack
        fine = a.finite & b.finite & np.isfinite(slack) & (miss > 0)
        return np.where(fine, miss / np.where(scale > 0, scale, 1.0), 0.0)

    def risk(self, point: Point) -> float:
        """R there; infinite where it is not known."""
        if not point.finite.all():
            return math.inf
        return self.objective.space.mean(point.losses) if self.by_rows else float(point.losses[0])


def edge_of_finite(evaluate: Callable[[Array], Any], A: Array, B: Array) -> tuple[bool, Array]:
    """Go from A to B, where not all is finite: was it huge before it was not, and where was that."""

    def finite(found: Any) -> bool:
        return all(np.isfinite(part).all() for part in found)

    if not finite(evaluate(A)):
        return False, A
    low, high = 0.0, 1.0
    for _ in range(50):
        t = (low + high) / 2
        low, high = (t, high) if finite(evaluate(A + t * (B - A))) else (low, t)
    last = evaluate(A + low * (B - A))
    return max(np.abs(part).max() for part in last) >= HUGE, A + high * (B - A)


@contextmanager
def quiet() -> Iterator[None]:
    """Overflows are looked for; NumPy need not mention them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
