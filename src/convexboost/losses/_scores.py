"""The scores of an objective, in the memory of this process."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from convexboost.core.gradients import Gradient, RidgeGradient
from convexboost.core.hypotheses import Direction, Move
from convexboost.core.protocols import Constants, Ray
from convexboost.core.space import Array
from convexboost.core.tolerances import BLOCK
from convexboost.kernels import parallel
from convexboost.kernels.lookup import add_lookup
from convexboost.losses._reach import LEFT
from convexboost.losses._refit import Place

if TYPE_CHECKING:
    from convexboost.losses._objective import BoundLoss

#: A function on the rows as (codes, table): its value in row n is table[codes[n]].
Lookup = tuple[Any, Array]


class Snapshot(NamedTuple):
    """Where scores were."""

    F: Array
    moves: list[Move]  #: that led there, where a ridge term needs them
    loss: float | None = None  #: R[F] without the ridge term: evaluated anew it may be rounded differently


class LocalScores:
    """F in the memory of this process.

    A move is not carried out before R is asked for: then the scores are moved and evaluated in one pass.
    """

    def __init__(self, objective: BoundLoss, inputs: Any, base: Array) -> None:
        self.objective, self.inputs = objective, inputs
        self.base = np.broadcast_to(base, (objective.space.n_samples, objective.n_outputs))
        self._F = self.base.copy()
        self._pending: Lookup | None = None
        self._before: Gradient | None = None  #: the last subgradient, if it is worth keeping
        self._evaluated: tuple[float, Gradient] | None = None
        self._loss: float | None = None  #: R[F] without the ridge term, if known
        self._has_moved = False
        self._plain: Gradient | None = None  #: the subgradient of the loss itself: no envelope, no ridge
        self._moves: list[Move] = []  #: all of them, where a ridge term needs them

    @property
    def constants(self) -> Constants:
        """Return the constants of the objective."""
        return self.objective.constants

    @property
    def F(self) -> Array:  # noqa: N802
        """Return the scores, all moves carried out."""
        if self._pending is not None:
            add_lookup(self._F, *self._pending, 0, len(self._F))
            self._pending = None
        return self._F

    def move(self, move: Move) -> None:
        """F ← base + shrink (F − base) + direction."""
        self._has_moved, F = True, self.F
        if move.shrink != 1.0:
            F -= self.base
            F *= move.shrink
            F += self.base
        if self.objective.l2 > 0.0:
            self._moves.append(move)
        self._pending = move.direction.lookup(self.inputs)
        if self._pending is None:
            move.direction.add_to(F, self.inputs)
        self._evaluated = self._plain = self._loss = None

    def value(self) -> float:
        """R[F]."""
        return self._evaluate()[0]

    def gradient(self) -> Gradient:
        """Return a subgradient at F."""
        return self._evaluate()[1]

    def gap(self) -> float:
        """Return how much of R[F] can be gained."""
        value = self.value()
        assert self._plain is not None
        assert self._loss is not None
        gap = self.objective.gap_within_reach(self._F, self._loss, self._plain, self._n_threads)
        return gap + (value - self._loss)

    def along(self, direction: Direction) -> Ray:
        """Return R on the line through F along `direction`."""
        F, base, h = self.F, self.base, self._rows_of(direction)

        def slope(part: BoundLoss, rows: slice, a: float) -> float:
            H = h(rows)
            at = F[rows] + a * H
            return part.space.inner(part.evaluate(at)[1] + part.l2 * (at - base[rows]), H)

        return Ray(
            lambda a: self._value(lambda rows: F[rows] + a * h(rows)),
            lambda a: self._total(lambda part, rows: slope(part, rows, a)),
        )

    def _rows_of(self, direction: Direction) -> Callable[[slice], Array]:
        """Return the direction at a block of rows; one that is a table is looked up there and then."""
        lookup = direction.lookup(self.inputs)
        if lookup is not None:
            codes, table = lookup
            return lambda rows: table[codes[rows]]
        H = np.zeros_like(self._F)
        direction.add_to(H, self.inputs)
        return lambda rows: H[rows]

    def rescaled(self, shrink: float) -> float:
        """R[base + shrink (F − base)]."""
        F, base = self.F, self.base
        return self._value(lambda rows: base[rows] + shrink * (F[rows] - base[rows]))

    def refitted(self, direction: Direction) -> Direction | None:
        """Return the same leaves with the values that lower R most."""
        leaves = direction.terms[0][1].leaves(self.inputs) if len(direction.terms) == 1 else None
        if leaves is None:
            return None
        (weight, h), (leaf, values) = direction.terms[0], leaves
        shifts = self.objective.best_shifts(self._place(weight * values), leaf, len(values))

        def pooled(leaves: Any, k: int) -> float:
            shift = self.objective.best_shift(self.F, leaf, leaves)
            if shift is None:  # the nearest to the best of each
                mass = np.bincount(leaf, self.objective.space.weight, len(shifts))[leaves]
                return -float(np.average(shifts[leaves, k], weights=np.maximum(mass, 1e-300)))
            return -float(shift[k])

        refitted = h.with_values(-shifts, pooled)
        values = refitted.leaves(self.inputs)[1]  # type: ignore[index]
        found = Direction(((1.0, refitted),), math.nan)  # no projection: nobody asks for its length
        if not np.array_equal(values, -shifts) and not self.along(found)(-1.0) <= self.value():
            return None  # constraints took away what the leaves had gained
        return found

    def _place(self, values: Array) -> Place:
        self._evaluate()
        return Place(self.F, self.base, self._plain, values, self._curvature, self._n_threads)

    @cached_property
    def _curvature(self) -> float:
        return self.objective.curvature(self.base)

    def distance(self) -> float:
        """‖F − base‖."""
        F, base = self.F, self.base
        return math.sqrt(self._total(lambda part, rows: part.space.norm(F[rows] - base[rows]) ** 2))

    def largest(self) -> float:
        """Return the largest score in absolute value."""
        return float(np.abs(self.F).max())

    def magnitude(self) -> float:
        """‖F‖."""
        F = self.F
        return math.sqrt(self._total(lambda part, rows: part.space.norm(F[rows]) ** 2))

    def state(self) -> Any:
        """Return where the scores are; None before the first move."""
        if not self._has_moved:
            return None
        self._evaluate()
        return Snapshot(self._F.copy(), list(self._moves), self._loss)

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        kept = Snapshot(self.base, []) if state is None else Snapshot(*state)
        self._F, self._moves, self._loss = kept.F.copy(), list(kept.moves), kept.loss
        self._has_moved = state is not None
        self._pending = self._before = self._evaluated = self._plain = None

    def _total(self, share: Callable[[BoundLoss, slice], float]) -> float:
        """Add up what each block of rows has to say: all that is not F itself stays small."""
        return sum(share(part, rows) for rows, part in self.objective.parts())

    def _value(self, at: Callable[[slice], Array]) -> float:
        """R of the scores that `at` returns for a block of rows."""

        def share(part: BoundLoss, rows: slice) -> float:
            F = at(rows)
            ridge = part.l2 / 2 * part.space.norm(F - self.base[rows]) ** 2 if part.l2 > 0.0 else 0.0
            return part.value(F) + ridge

        return self._total(share)

    def _smooth(self, value: float, gradient: Gradient) -> Gradient:
        """Return the gradient of the Moreau envelope: the mean of subgradients on the way to the prox."""
        objective, n_threads = self.objective, self._n_threads
        gap = objective.gap(self._F, value, gradient, n_threads)
        if gap == 0.0 or gradient.norm == 0.0:
            return gradient
        found = self._toward_prox(gap, gradient)
        if self._is_far(found, gradient):
            return found
        within = objective.gap_within_reach(self._F, value, gradient, n_threads)
        return self._toward_prox(within, gradient) if within < gap else found

    def _toward_prox(self, gap: float, gradient: Gradient) -> Gradient:
        """Return the gradient of the envelope that is `envelope` times Polyak's step wide."""
        size = self.objective.envelope * gap / gradient.norm**2
        parts, F, G = list(self.objective.parts()), self._F, np.empty_like(self._F)

        def task(first: int, last: int) -> None:
            for rows, part in parts[first:last]:
                X = part.prox(F[rows], size)
                assert X is not None
                np.subtract(F[rows], X, out=G[rows])
                G[rows] /= size

        parallel.run(task, len(parts), 20.0 * F.size, self._n_threads if parts[0][1].thread_safe else 1)
        return Gradient(G, self.objective.space)

    def _is_far(self, smooth: Gradient, gradient: Gradient) -> bool:
        """Return whether the prox of enough rows is further away than half of Polyak's step, in some output.

        If not, a few rows far away may make up most of R.  As a rule the first rows are enough to tell.
        """
        weight, far = self.objective.space.weight, np.zeros(self._F.shape[1])
        for start in range(0, len(weight), BLOCK):
            rows = slice(start, start + BLOCK)
            least = np.abs(gradient.rows(rows)) / (2.0 * self.objective.envelope)
            far += weight[rows] @ (np.abs(smooth.values[rows]) > least)
            if far.max() >= LEFT:
                return True
        return False

    @property
    def _n_threads(self) -> int:
        return getattr(self.inputs, "n_threads", 1)

    def _evaluate(self) -> tuple[float, Gradient]:
        if self._evaluated is None:
            objective = self.objective
            value, gradient = objective.advance(self._F, self._pending, self._before, self._n_threads)
            if objective.observer is not None:
                objective.observer(self._F, value, gradient, objective.envelope)
            self._pending, self._before = None, gradient if gradient.is_worth_keeping else None
            self._loss = value = value if self._loss is None else self._loss
            self._plain = gradient
            if objective.envelope > 0.0:
                gradient = self._smooth(value, gradient)
            if objective.l2 > 0.0:
                penalty = objective.l2 / 2 * self.distance() ** 2
                value += penalty
                F, base = self._F, self.base
                gradient = RidgeGradient(gradient, objective.l2, penalty, self._moves, lambda: F - base)
            self._evaluated = value, gradient
        return self._evaluated
