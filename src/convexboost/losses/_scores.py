"""The scores of an objective, in the memory of this process."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from convexboost.core.cached import cached_property
from convexboost.core.gradients import Gradient, RidgeGradient
from convexboost.core.hypotheses import Direction, Move
from convexboost.core.protocols import Constants, PreparedInputs, Ray
from convexboost.core.space import Array
from convexboost.core.sums import ExactSum
from convexboost.core.text import brief_array
from convexboost.core.tolerances import BLOCK
from convexboost.kernels import parallel
from convexboost.kernels.lookup import add_lookup
from convexboost.losses._reach import LEFT
from convexboost.losses._refit import Leaves, refit

if TYPE_CHECKING:
    from convexboost.losses._objective import BoundLoss

#: A function on the rows as (codes, table): its value in row n is table[codes[n]].
Lookup = tuple[Any, Array]
#: Rows of the first block at least, where the first rows usually decide.
SOME = 512


class Snapshot(NamedTuple):
    """A state of `LocalScores`."""

    F: Array
    moves: list[Move]  #: from the start to F, where a ridge term needs them
    loss: float | None = None  #: R[F] without the ridge term: another evaluation may round differently

    def __repr__(self) -> str:
        return f"Snapshot(F={brief_array(self.F)}, {len(self.moves)} moves, loss={self.loss!r})"


class LocalScores:
    """F in the memory of this process.

    A move is carried out when R is needed: the scores are then moved and evaluated in one pass.
    """

    def __init__(self, objective: BoundLoss, inputs: PreparedInputs | None, base: Array) -> None:
        self.objective, self.inputs = objective, inputs
        self.n_threads = 1 if inputs is None else inputs.n_threads
        self.base = np.broadcast_to(base, (objective.space.n_samples, objective.n_outputs))
        self._F = self.base.copy()
        self._pending: Lookup | None = None
        self._before: Gradient | None = None  #: the last subgradient, if it is worth keeping
        self._evaluated: tuple[float, Gradient] | None = None
        self._loss: float | None = None  #: R[F] without the ridge term, if known
        self._has_moved = False
        self._plain: Gradient | None = None  #: a subgradient of the loss: no envelope, no ridge term
        self._moves: list[Move] = []  #: all so far, where a ridge term needs them

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
        gap = self.objective.gap_within_reach(self._F, self._loss, self._plain, self.n_threads)
        return gap + (value - self._loss)

    def along(self, direction: Direction) -> Ray:
        """Return R on the line through F along `direction`."""
        F, base, h = self.F, self.base, self._rows_of(direction)

        def slope(part: BoundLoss, rows: slice, a: float) -> ExactSum:
            H = h(rows)
            at = F[rows] + a * H
            return part.space.exact_inner(part.evaluate(at)[1] + part.l2 * (at - base[rows]), H)

        return Ray(
            lambda a: self._value(lambda rows: F[rows] + a * h(rows)),
            lambda a: self._total(lambda part, rows: slope(part, rows, a)),
        )

    def _rows_of(self, direction: Direction) -> Callable[[slice], Array]:
        """Return a function that gives the direction at a block of rows."""
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
        return refit(self, direction)

    def leaves(self, leaf: Any, values: Array) -> Leaves:
        """Return leaves at the current scores."""
        self._evaluate()
        F, base = self.F, self.base
        return Leaves(self.objective, F, base, leaf, values, self.curvature, self._plain, self.n_threads)

    def curvature(self) -> float:
        """Return a second derivative of R at the start."""
        return self._curvature

    @cached_property
    def _curvature(self) -> float:
        return self.objective.curvature(self.base)

    def curvature_of_rows(self) -> Array | None:
        """Return the second derivative of R in each row, where rows are not coupled and the loss has one."""
        rows = self.objective.by_rows
        if rows is None or not rows.loss.has_curvatures:
            return None
        self._evaluate()
        assert self._plain is not None
        found = rows.curvatures(self._plain.values, self.n_threads)
        if self.objective.l2 > 0.0:
            found += self.objective.l2
        total: Array = found[:, 0] if found.shape[1] == 1 else found.sum(axis=1)
        return total

    def distance(self) -> float:
        """‖F − base‖."""
        F, base = self.F, self.base

        def square(part: BoundLoss, rows: slice) -> ExactSum:
            D = F[rows] - base[rows]
            return part.space.exact_inner(D, D)

        return math.sqrt(self._total(square))

    def largest(self) -> float:
        """Return the largest score in absolute value."""
        return self.objective.space.communicator.largest(np.abs(self.F).max(initial=0.0))

    def magnitude(self) -> float:
        """‖F‖."""
        return self.objective.space.norm(self.F)

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

    def _total(self, share: Callable[[BoundLoss, slice], ExactSum]) -> float:
        """Add up one sum per block of rows: temporary arrays stay small."""
        return float(self.objective.space.added(share(part, rows) for rows, part in self.objective.parts()))

    def _value(self, at: Callable[[slice], Array]) -> float:
        """R of the scores that `at` returns for a block of rows."""
        l2, squares, space = self.objective.l2, [], self.objective.space

        def scores(rows: slice) -> Array:
            F = at(rows)
            if l2 > 0.0:
                D = F - self.base[rows]
                squares.append(space.part(rows).exact_inner(D, D))
            return F

        value = self.objective.value_at(scores)
        return value if l2 == 0.0 else value + l2 / 2 * float(space.added(squares))

    def _smooth(self, value: float, gradient: Gradient) -> Gradient:
        """Return the gradient of the Moreau envelope: the mean of subgradients on the way to the prox."""
        objective, n_threads = self.objective, self.n_threads
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
        if size < sys.float_info.min:  # the envelope of that width is the loss itself
            return gradient
        parts, F, G = list(self.objective.parts()), self._F, np.empty_like(self._F)

        def task(first: int, last: int) -> None:
            for rows, part in parts[first:last]:
                np.subtract(F[rows], part.prox(F[rows], size), out=G[rows])
                G[rows] /= size

        parallel.run(task, len(parts), 20.0 * F.size, self.n_threads if parts[0][1].thread_safe else 1)
        return Gradient(G, self.objective.space)

    def _is_far(self, smooth: Gradient, gradient: Gradient) -> bool:
        """Return whether the prox of enough rows is further away than half of Polyak's step, in some output.

        If not, a few rows far away may make up most of R.  The first blocks of rows usually decide.  Sums of
        whole numbers only grow, so that the order of the rows does not matter.
        """
        (weight, unit), far = self.objective.space.whole, np.zeros(self._F.shape[1])
        communicator = self.objective.space.communicator
        size = min(max(len(weight) // 8, SOME), BLOCK)
        for start in range(0, len(weight), size):
            rows = slice(start, start + size)
            least = np.abs(gradient.rows(rows)) / (2.0 * self.objective.envelope)
            far += weight[rows] @ (np.abs(smooth.values[rows]) > least)
            if communicator.size == 1 and unit * max(far.tolist()) >= LEFT:
                return True
        return unit * max(communicator.add(far).tolist()) >= LEFT

    def _evaluate(self) -> tuple[float, Gradient]:
        if self._evaluated is None:
            objective = self.objective
            value, gradient = objective.advance(self._F, self._pending, self._before, self.n_threads)
            self._pending, self._before = None, gradient if gradient.is_worth_keeping else None
            if objective.observer is not None:
                objective.observer(objective, self._F, value, gradient)
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
