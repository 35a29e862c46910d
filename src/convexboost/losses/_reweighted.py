"""Losses that weigh rows by their losses: R[F] = max_q Σ_n q_n l(F_n, y_n)."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

from numpy.typing import NDArray

from convexboost.core.communicator import distinct
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import TIE
from convexboost.losses._custom import as_row_loss
from convexboost.losses._loss import Loss, RowLoss
from convexboost.losses._objective import BoundLoss, Pointwise


class Reweighting(Loss):
    """A loss made of a row loss: one by name ("quantile:0.9"), a `RowLoss`, or a user's object."""

    loss: RowLoss
    reweights = True

    @property
    def terms(self) -> tuple[Loss, ...]:  # type: ignore[override]
        """Return the row loss."""
        return (self.loss,)

    def _find_loss(self) -> None:
        object.__setattr__(self, "loss", as_row_loss(self.loss, type(self).__name__))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a loss may be given by its name, also together with its own parameters."""
        if "loss" in params:
            params["loss"] = as_row_loss(params["loss"], type(self).__name__)
        return super().set_params(**params)

    @property
    def task(self) -> str:  # type: ignore[override]
        """Return that of the row loss."""
        return self.loss.task

    @property
    def has_link(self) -> bool:  # type: ignore[override]
        """Return whether the row loss has one."""
        return self.loss.has_link

    @property
    def multiclass(self) -> str:  # type: ignore[override]
        """Return that of the row loss."""
        return self.loss.multiclass

    def for_classes(self, n_classes: int | None) -> Loss:
        """Ask the row loss."""
        return copy.copy(self).set_params(loss=self.loss.for_classes(n_classes))

    @property
    def link_steps(self) -> tuple[tuple[Any, ...], ...] | None:  # type: ignore[override]
        """Return those of the row loss."""
        return self.loss.link_steps

    def link(self, F: Array) -> Array:
        """Return that of the row loss: the scores stand for the same."""
        return self.loss.link(F)


@dataclass(frozen=True, repr=False)
class Reweighted(BoundLoss):
    """R[F] = Σ_n p_n r_n l_n, the ratios r = q/p found from the row losses l.

    Where r is the maximiser at F, R[F'] ≥ Σ p r l' ≥ R[F] + Σ p r ⟨g, F' − F⟩: a subgradient is r_n g_n.
    """

    rows: Pointwise
    #: Losses that differ by less, relative to their size, count as equal.
    kink: float = field(default=TIE, kw_only=True)

    @abstractmethod
    def reweight(self, losses: Array) -> tuple[float, Array]:
        """Return R and the ratios."""

    @property
    def terms(self) -> tuple[BoundLoss, ...]:  # type: ignore[override]
        """Return the row losses."""
        return (self.rows,)

    def kinds(self) -> NDArray[Any]:
        """Return what tells rows apart while all have the same scores."""
        return self.rows.y

    def of_kinds(self, kinds: NDArray[Any], space: FunctionSpace) -> Self:
        """Return the objective of one row of each kind, with these weights."""
        return replace(self, rows=replace(self.rows, y=kinds, space=space), space=space)

    def start(self) -> Array:
        """Search with one row of each kind; there are few kinds where the targets are classes."""
        kinds, number = distinct(self.kinds(), self.space.communicator)
        return self.of_kinds(kinds, FunctionSpace(self.space.masses(number, len(kinds)))).search_start()

    def sharp(self) -> Self:
        """Let only equal losses tie."""
        return replace(self, kink=0.0)

    def search_floor(self) -> float:
        """Return R of the smallest losses of the rows."""
        return self.reweight(self.rows.lowest_losses())[0]

    def value(self, F: Array) -> float:
        """R[F]."""
        return self.reweight(self.rows.loss.value(F, self.rows.y))[0]

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient."""
        losses, G = self.rows.losses(F)
        value, ratios = self.reweight(losses)
        return value, ratios[:, None] * G

    def tie(self, value: float) -> tuple[float, float]:
        """Return the range of losses that count as equal to `value`."""
        low, high = sorted((value * (1 - self.kink), value * (1 + self.kink)))
        return low, high
