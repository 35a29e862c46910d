"""A loss given as a value only: PyTorch finds the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._custom import CustomBoundLoss, CustomRows, CustomTotal
from convexboost.losses._groups import Groups


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
    """A loss per row or one number for all; the first value at the targets tells which."""

    user_method = "value"

    def as_rows(self) -> TorchRows:
        """Return it as a loss of single rows."""
        return TorchRows(self.user)

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> CustomBoundLoss | Any:
        """Bind it as a loss of single rows if that is what it returns."""
        whole = super().bind(y, space, n_classes, groups)
        F = np.zeros((space.n_samples, whole.n_outputs))
        found = self._value(F, whole.y, whole.extras, gradient=False)
        if found.shape == (len(F),) and not self.asked and found.ndim == 1:
            return self.as_rows().bind(y, space, n_classes, Groups.of(groups))
        return whole

    def evaluate_all(self, F: Array, y: Any, extras: dict[str, Any]) -> tuple[float, Array]:
        """Return R and the partial derivatives."""
        at, value = self._value(F, y, extras, gradient=True)
        if value.numel() != 1:
            raise ValueError(
                f"`value` of {self.name} must be one number or a loss per row, got shape {tuple(value.shape)}"
            )
        return float(value.detach()), _gradient(value.sum(), at)

    def _value(self, F: Array, y: Any, extras: dict[str, Any], gradient: bool) -> Any:
        at = _tensor(F, gradient)
        value = self.user.value(at, _tensor(y), **{name: _tensor(x) for name, x in extras.items()})
        if not hasattr(value, "detach"):
            raise ValueError(f"`value` of {self.name} must return a torch tensor, got {type(value).__name__}")
        return (at, value) if gradient else value


@dataclass(frozen=True, repr=False)
class TorchRows(CustomRows):
    """A loss per row."""

    user_method = "value"
    thread_safe = False  # PyTorch has threads of its own

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Differentiate the sum of the losses: a row's gradient is its own."""
        at = _tensor(F, gradient=True)
        losses = self.user.value(at, _tensor(y))
        return losses.detach().numpy(), _gradient(losses.sum(), at)

    def value(self, F: Array, y: Any) -> Array:
        """Return the losses alone."""
        with import_torch().no_grad():
            return self.user.value(_tensor(F), _tensor(y)).numpy()


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
