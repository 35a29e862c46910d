"""From a loss to an objective with scores."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core import (
    KINK,
    Array,
    Constants,
    Direction,
    FunctionSpace,
    Gradient,
    Move,
    PairGradient,
    Ray,
    RidgeGradient,
    blocks,
)
from convexboost.kernels.histogram import add_lookup


@dataclass(frozen=True)
class Pieces:
    """R[F] = constant + ⟨linear, F⟩ + Σ_i weight_i max of the pieces m with group_m = i.

    Piece m is slopes_m · F + constants_m, F being the scores row after row.  All of it is in ordinary sums:
    the sample weights are in `linear` and `weight`.
    """

    constant: float
    linear: Array  #: (n_samples, n_outputs)
    slopes: Any  #: sparse, (n_pieces, n_samples · n_outputs)
    constants: Array
    group: NDArray[np.int64]
    weight: Array  #: (n_groups,)

    @classmethod
    def above(cls, y: Array, low: float, high: float, space: FunctionSpace) -> Pieces:
        """Σ_k max(low (f_k − y_k), high (f_k − y_k)): linear, plus what lies above the target."""
        n, size = space.n_samples, y.size
        below = np.repeat(low * space.weight[:, None], y.shape[1], axis=1)
        return cls(
            constant=-float(np.sum(below * y)),
            linear=below,
            slopes=sp.vstack([sp.eye_array(size), sp.csr_array((size, size))], "csr"),
            constants=np.concatenate([-y.ravel(), np.zeros(size)]),
            group=np.tile(np.arange(size), 2),
            weight=np.repeat((high - low) * space.weight, size // n),
        )


#: A function on the rows as (codes, table): its value in row n is table[codes[n]].
Lookup = tuple[Any, Array]


class Loss(ABC):
    """A convex function l(f, y) of one row's scores: R[F] = Σ_n p_n l(F_n, y_n).

    `evaluate` returns the row losses and a row-wise subgradient, exact mates, with no weight and no 1/N.
    """

    name: ClassVar[str]
    task: ClassVar[str]  #: "regression": y is (n, k) floats; "classification": class numbers 0 … K − 1

    @abstractmethod
    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the losses (n,) and a subgradient (n, k)."""

    @abstractmethod
    def constants(self, n_outputs: int) -> Constants:
        """Return what is known of R for this many outputs."""

    @abstractmethod
    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Minimise R over constant functions, shape (n_outputs,)."""

    def value(self, F: Array, y: Any) -> Array:
        """Return the losses alone."""
        return self.evaluate(F, y)[0]

    def prox(self, F: Array, y: Any, size: float) -> Array | None:
        """argmin_f l(f, y) + ‖f − F‖²/(2 size), row by row; None for a loss without a formula."""
        return None

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces | None:
        """Return R as a piecewise linear functional, None if it is not one."""
        return None

    def advance(
        self,
        F: Array,
        y: Any,
        space: FunctionSpace,
        lookup: Lookup | None,
        before: Gradient | None,
        n_threads: int,
    ) -> tuple[float, Gradient]:
        """F += table[codes], then R and a subgradient at the new F.

        A loss with a kernel does this in one pass, and says what changed since the subgradient `before`.
        """
        if lookup is not None:
            add_lookup(F, *lookup, 0, len(F))
        value, G = 0.0, np.empty(F.shape)
        for rows in blocks(len(F)):
            losses, G[rows] = self.evaluate(F[rows], y[rows])
            value += space.part(rows).mean(losses)
        return value, Gradient(G, space)

    def bind(self, y: Any, space: FunctionSpace, n_classes: int | None = None) -> Pointwise:
        """Check the targets and fix them."""
        y = np.asarray(y)
        if len(y) != space.n_samples:
            raise ValueError(f"`y` must have {space.n_samples} rows like `X`, got {len(y)}")
        if self.task == "classification":
            if n_classes is None:
                n_classes = int(y.max()) + 1
            return Pointwise(self, y.astype(np.int32, copy=False), n_classes, space)
        y = np.ascontiguousarray(y.reshape(len(y), -1), float)
        if not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y).all(axis=1))[0])
            raise ValueError(f"`y` must be finite, got {y[row].tolist()} in row {row}")
        return Pointwise(self, y, y.shape[1], space)


class LinkLoss(Loss):
    """A loss whose scores stand for probabilities."""

    @abstractmethod
    def link(self, F: Array) -> Array:
        """Return the probability of each class, (n, K)."""


@dataclass(frozen=True)
class Pointwise:
    """R[F] = Σ_n p_n l(F_n, y_n) + (l2/2) ‖F − start‖²."""

    loss: Loss
    y: Any
    n_outputs: int
    space: FunctionSpace
    l2: float = 0.0

    @cached_property
    def constants(self) -> Constants:
        """Return what is known of R, the ridge term included."""
        constants = self.loss.constants(self.n_outputs)
        if self.l2 == 0.0:
            return constants
        return replace(
            constants,
            lipschitz=None,
            smoothness=None if constants.smoothness is None else constants.smoothness + self.l2,
            strong_convexity=constants.strong_convexity + self.l2,
        )

    def with_l2(self, l2: float) -> Pointwise:
        """Add a ridge term: it penalises the outputs at the training points, not coefficients."""
        return replace(self, l2=l2)

    def part(self, rows: slice) -> Pointwise:
        """Return the share of some rows in R."""
        return replace(self, y=self.y[rows], space=self.space.part(rows))

    def start(self) -> Array:
        """Return the best constant function."""
        return self.loss.best_constant(self.y, self.n_outputs, self.space)

    def scores(self, inputs: Any, start: Array, offset: Array | None = None) -> LocalScores:
        """Place the objective at the constant `start`, plus a fixed `offset` per row."""
        return LocalScores(self, inputs, start[None, :] if offset is None else start + offset)

    def value(self, F: Array) -> float:
        """R[F] without the ridge term."""
        parts = ((self.part(rows), F[rows]) for rows in blocks(len(F)))
        return sum(part.space.mean(part.loss.value(F, part.y)) for part, F in parts)

    def prox(self, F: Array, size: float) -> Array | None:
        """Return the loss's `prox` at F."""
        return self.loss.prox(F, self.y, size)

    def pieces(self) -> Pieces | None:
        """Return R, without the ridge term, as a piecewise linear functional, if it is one."""
        return self.loss.pieces(self.y, self.n_outputs, self.space)

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient, without the ridge term."""
        value, gradient = self.advance(F, None, None, 1)
        return value, gradient.values

    def advance(
        self, F: Array, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[float, Gradient]:
        """F += table[codes]; R[F] and a subgradient, without the ridge term."""
        return self.loss.advance(F, self.y, self.space, lookup, before, n_threads)


class LocalScores:
    """F in the memory of this process.

    A move is not carried out before R is asked for: then the scores are moved and evaluated in one pass.
    """

    def __init__(self, objective: Pointwise, inputs: Any, base: Array) -> None:
        self.objective, self.inputs = objective, inputs
        self.base = np.broadcast_to(base, (objective.space.n_samples, objective.n_outputs))
        self._F = self.base.copy()
        self._pending: Lookup | None = None
        self._before: PairGradient | None = None  #: dense gradients are too large to keep
        self._evaluated: tuple[float, Gradient] | None = None
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
        F = self.F
        if move.shrink != 1.0:
            F -= self.base
            F *= move.shrink
            F += self.base
        if self.objective.l2 > 0.0:
            self._moves.append(move)
        self._pending = move.direction.lookup(self.inputs)
        if self._pending is None:
            move.direction.add_to(F, self.inputs)
        self._evaluated = None

    def value(self) -> float:
        """R[F]."""
        return self._evaluate()[0]

    def gradient(self) -> Gradient:
        """Return a subgradient at F."""
        return self._evaluate()[1]

    def along(self, direction: Direction) -> Ray:
        """Return R on the line through F along `direction`."""
        F, base, h = self.F, self.base, self._rows_of(direction)

        def slope(part: Pointwise, rows: slice, a: float) -> float:
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

    def distance(self) -> float:
        """‖F − base‖."""
        F, base = self.F, self.base
        return math.sqrt(self._total(lambda part, rows: part.space.norm(F[rows] - base[rows]) ** 2))

    def state(self) -> Any:
        """Return F and the moves that led there."""
        return self.F.copy(), list(self._moves)

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        F, moves = state
        self._F, self._moves = F.copy(), list(moves)
        self._pending = self._before = self._evaluated = None

    def _total(self, share: Callable[[Pointwise, slice], float]) -> float:
        """Add up what each block of rows has to say: all that is not F itself stays small."""
        return sum(share(self.objective.part(rows), rows) for rows in blocks(len(self._F)))

    def _value(self, at: Callable[[slice], Array]) -> float:
        """R of the scores that `at` returns for a block of rows."""

        def share(part: Pointwise, rows: slice) -> float:
            F = at(rows)
            ridge = part.l2 / 2 * part.space.norm(F - self.base[rows]) ** 2 if part.l2 > 0.0 else 0.0
            return part.value(F) + ridge

        return self._total(share)

    def _evaluate(self) -> tuple[float, Gradient]:
        if self._evaluated is None:
            objective, n_threads = self.objective, getattr(self.inputs, "n_threads", 1)
            value, gradient = objective.advance(self._F, self._pending, self._before, n_threads)
            self._pending, self._before = None, gradient if isinstance(gradient, PairGradient) else None
            if objective.l2 > 0.0:
                penalty = objective.l2 / 2 * self.distance() ** 2
                value += penalty
                F, base = self._F, self.base
                gradient = RidgeGradient(gradient, objective.l2, penalty, self._moves, lambda: F - base)
            self._evaluated = value, gradient
        return self._evaluated


def residual_sign(F: Array, y: Array) -> Array:
    """sgn(F − y), and 0 within rounding of the kink."""
    difference = F - y
    close = np.abs(difference) <= KINK * np.maximum(np.abs(F), np.abs(y))
    return np.where(close, 0.0, np.sign(difference))


def weighted_quantile(y: Array, weight: Array, q: float) -> Array:
    """Return the smallest value with at least a share q of the weight at or below it, column by column."""
    out = np.empty(y.shape[1])
    for k in range(y.shape[1]):
        order = np.argsort(y[:, k], kind="stable")
        reached = np.cumsum(weight[order])
        # The tolerance makes a row of weight 2 and the row twice give the same quantile.
        out[k] = y[order[np.searchsorted(reached, q * reached[-1] * (1 - 1e-12)).clip(max=len(y) - 1)], k]
    return out
