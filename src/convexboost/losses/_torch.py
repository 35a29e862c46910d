"""A loss given as a value only: PyTorch finds the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._custom import CustomLoss, CustomRows, CustomTotal
from convexboost.losses._objective import BoundLoss


def import_torch() -> Any:
    """Import PyTorch, or say how to get it."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            "a loss with only a `value` needs PyTorch for its gradient: pip install convexboost[torch], or "
            "give it a method `evaluate` that returns losses and subgradients"
        ) from None
    return torch


@dataclass(frozen=True, repr=False)
class TorchLoss(CustomTotal):
    """A loss for each row, or one number for all."""

    user_method = "value"

    @property
    def couples_rows(self) -> bool:  # type: ignore[override]
        """Return what the user declares; without that, whether `value` asks for weights or groups."""
        return bool(getattr(self.user, "couples_rows", self.asked))

    def as_rows(self) -> TorchRows | None:
        """Return it as a loss of single rows."""
        return None if self.couples_rows else TorchRows(self.user)

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Bind it as a loss of single rows if that is what it returns at these targets."""
        whole, rows = super().bind(y, space, n_classes, groups), self.as_rows()
        if rows is None:
            return whole
        value = _tensor_of(self, _tensor(np.zeros((space.n_samples, whole.n_outputs))), whole.targets)
        return rows.bind(y, space, n_classes) if value.shape == (space.n_samples,) else whole

    def evaluate_all(self, F: Array, y: Any, extras: dict[str, Any]) -> tuple[float, Array]:
        """Return R and the partial derivatives."""
        at = _tensor(F, gradient=True)
        value = _tensor_of(self, at, y, **extras)
        if value.numel() != 1:
            raise ValueError(
                f"`value` of {self.name} must be one number or a loss per row, got shape {tuple(value.shape)}"
            )
        return float(value.detach()), _gradient(value.sum(), at)


@dataclass(frozen=True, repr=False)
class TorchRows(CustomRows):
    """A loss per row."""

    user_method = "value"
    thread_safe = False  # PyTorch has threads of its own
    one_number = "declare `couples_rows = True` for one number of all rows"

    def ask_rows(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Differentiate the sum of the losses: a row's gradient is its own."""
        at = _tensor(F, gradient=True)
        losses = _tensor_of(self, at, y)
        return losses.detach().numpy(), _gradient(losses.sum(), at)

    def value(self, F: Array, y: Any) -> Array:
        """Return the losses alone."""
        with import_torch().no_grad():
            losses: Array = _tensor_of(self, _tensor(F), y).numpy()
        self.check_losses(losses, F)
        return losses


def _tensor_of(loss: CustomLoss, at: Any, y: Any, **extras: Any) -> Any:
    """Ask the user for the value."""
    value = loss.user.value(at, _tensor(y), **{name: _tensor(x) for name, x in extras.items()})
    if not hasattr(value, "detach"):
        raise ValueError(f"`value` of {loss.name} must return a torch tensor, got {type(value).__name__}")
    return value


def _tensor(x: Any, gradient: bool = False) -> Any:
    torch = import_torch()
    x = np.asarray(x)
    if x.dtype.kind not in "biuf":
        return x  # labels that are strings
    if x.dtype == np.int32:
        x = x.astype(np.int64)  # what torch indexes with
    tensor = torch.from_numpy(x.copy())  # what the user does to it must not reach the training
    return tensor.requires_grad_() if gradient else tensor


def _gradient(value: Any, at: Any) -> Array:
    if not value.requires_grad:
        return np.zeros(at.shape)  # a constant
    value.backward()
    return np.zeros(at.shape) if at.grad is None else at.grad.numpy()
