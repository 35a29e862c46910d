"""From a loss to an objective with scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from convexboost.core import KINK, Array, Constants, Direction, FunctionSpace, Gradient, Move


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

    def bind(self, y: Any, space: FunctionSpace, n_classes: int | None = None) -> Pointwise:
        """Check the targets and fix them."""
        y = np.asarray(y)
        if len(y) != space.n_samples:
            raise ValueError(f"`y` must have {space.n_samples} rows like `X`, got {len(y)}")
        if self.task == "classification":
            if n_classes is None:
                n_classes = int(y.max()) + 1
            return Pointwise(self, y.astype(np.int64), n_classes, space)
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

    def start(self) -> Array:
        """Return the best constant function."""
        return self.loss.best_constant(self.y, self.n_outputs, self.space)

    def scores(self, inputs: Any, start: Array, offset: Array | None = None) -> LocalScores:
        """Place the objective at the constant `start`, plus a fixed `offset` per row."""
        base = np.tile(start, (self.space.n_samples, 1))
        return LocalScores(self, inputs, base if offset is None else base + offset)

    def value(self, F: Array) -> float:
        """R[F] without the ridge term."""
        return self.space.mean(self.loss.value(F, self.y))

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient, without the ridge term."""
        losses, G = self.loss.evaluate(F, self.y)
        return self.space.mean(losses), G


class LocalScores:
    """F in the memory of this process.  Value and gradient come from one pass, made when first asked for."""

    def __init__(self, objective: Pointwise, inputs: Any, base: Array) -> None:
        self.objective, self.inputs, self.base = objective, inputs, base
        self.F = base.copy()
        self._evaluated: tuple[float, Gradient] | None = None

    @property
    def constants(self) -> Constants:
        """Return the constants of the objective."""
        return self.objective.constants

    def move(self, move: Move) -> None:
        """F ← base + shrink (F − base) + direction."""
        if move.shrink != 1.0:
            self.F -= self.base
            self.F *= move.shrink
            self.F += self.base
        move.direction.add_to(self.F, self.inputs)
        self._evaluated = None

    def value(self) -> float:
        """R[F]."""
        return self._evaluate()[0]

    def gradient(self) -> Gradient:
        """Return a subgradient at F."""
        return self._evaluate()[1]

    def along(self, direction: Direction) -> Callable[[float], float]:
        """A ↦ R[F + a direction]."""
        H = np.zeros_like(self.F)
        direction.add_to(H, self.inputs)
        return lambda a: self._value(self.F + a * H)

    def rescaled(self, shrink: float) -> float:
        """R[base + shrink (F − base)]."""
        return self._value(self.base + shrink * (self.F - self.base))

    def distance(self) -> float:
        """‖F − base‖."""
        return self.objective.space.norm(self.F - self.base)

    def state(self) -> Any:
        """Return a copy of F."""
        return self.F.copy()

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        self.F = state.copy()
        self._evaluated = None

    def _value(self, F: Array) -> float:
        value = self.objective.value(F)
        if self.objective.l2 > 0.0:
            value += self.objective.l2 / 2 * self.objective.space.norm(F - self.base) ** 2
        return value

    def _evaluate(self) -> tuple[float, Gradient]:
        if self._evaluated is None:
            objective = self.objective
            value, G = objective.evaluate(self.F)
            if objective.l2 > 0.0:
                difference = self.F - self.base
                value += objective.l2 / 2 * objective.space.norm(difference) ** 2
                G = G + objective.l2 * difference
            self._evaluated = value, Gradient(G, objective.space)
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
