"""A user's own loss: any Python object with one of three methods.

    evaluate(F, y) -> losses, G           row losses (n,) and a row-wise subgradient (n, k): no weight, no 1/N
    total(F, y, ...) -> value, partials   one number R[F] and its ordinary partial derivatives ∂R/∂F (n, k)
    value(F, y, ...) -> losses or value   torch tensors; PyTorch finds the gradient (beside `evaluate`: NumPy,
                                          its first half alone, where that is cheaper)

F is (n, k) float64; y is (n, k) floats, or class numbers 0 … K − 1 in classification.  `total`, and a `value`
that returns one number, are about all rows at once, so they must use the weights themselves: they receive, by
name, what their signature asks for of `weight` (p, sums to 1), `groups` or `qid` (a label per row) and
`group_weight`.

The arrays are for reading only: a method that writes into one is an error.

All else is optional: `n_outputs` (scores per row, where the targets do not say), `constants` (Lipschitz
constant, smoothness, strong convexity, minimum: a `Constants` or a dict), `start(y, weight)` (the constant to
start from), `link(F)` (what predictions should be, (n, k)), `prox(F, y, size)`, `task`, `name`, `thread_safe`
(False if `evaluate`, which gets blocks of rows, must not run in two threads at once), `couples_rows` (of
`total` and `value`: False if R is a mean over rows), `splits_rows` (of the same: False if the loss of some of
the rows makes no sense, so that none are held out for early stopping).
`as_loss(object)` makes a `Loss` of it, which can be added to others and so on; estimators do that by
themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss, RowLoss, prepare
from convexboost.losses._objective import BoundLoss
from convexboost.losses._users import ask
from convexboost.registry import available, resolve

#: What the arguments of a user's methods are called.
ARGUMENTS = {
    "evaluate": ("F", "y"),
    "total": ("F", "y"),
    "value": ("F", "y"),
    "prox": ("F", "y", "size"),
    "start": ("y", "weight"),
    "link": ("F",),
}
#: What `total` and `value` may ask for beyond F and y.
EXTRAS = ("weight", "groups", "qid", "group_weight")


def can_be_loss(loss: Any) -> bool:
    """Return whether `as_loss` can make a loss of an object."""
    return any(callable(getattr(loss, name, None)) for name in ("evaluate", "total", "value"))


def as_loss(loss: Any) -> Loss:
    """Turn a name like "quantile:0.9", or an object with `evaluate`, `total` or `value`, into a `Loss`."""
    loss = resolve("loss", loss, available("convexboost.losses"))
    if isinstance(loss, Loss):
        return loss
    if not can_be_loss(loss):
        raise ValueError(f"a loss must have a method `evaluate`, `total` or `value`, got {loss!r}")
    if hasattr(loss, "evaluate"):
        return CustomRows(loss)
    if hasattr(loss, "total"):
        return CustomTotal(loss)
    from convexboost.losses._torch import TorchLoss, import_torch

    import_torch()
    return TorchLoss(loss)


def as_row_loss(loss: Any, user: str) -> RowLoss:
    """Make a `RowLoss` of what is given to something that needs one; `user` is its name."""
    found = as_loss(loss).as_rows()
    if found is None:
        raise ValueError(f"`loss` of {user} must be a loss of single rows, got {loss!r}")
    return found


class CustomLoss(Loss):
    """A user's object as a `Loss`."""

    user: Any

    is_custom = True
    start_method = "start"

    def __repr__(self) -> str:
        return f"as_loss({self.user!r})"

    def ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the user with arrays that it cannot write to."""
        title = f"`{method}` of {self.name}"
        return ask(getattr(self.user, method), title, ARGUMENTS[method], *arguments, **named)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Return the user's name for it, or that of the class."""
        return str(getattr(self.user, "name", None) or type(self.user).__name__)

    @property
    def task(self) -> str:  # type: ignore[override]
        """Return the user's task; without one it takes any targets."""
        return str(getattr(self.user, "task", None) or "any")

    @property
    def has_link(self) -> bool:  # type: ignore[override]
        """Return whether the user wrote a `link`."""
        return getattr(self.user, "link", None) is not None

    @property
    def has_best_constant(self) -> bool:  # type: ignore[override]
        """Return whether the user wrote a `start`."""
        return getattr(self.user, "start", None) is not None

    def link(self, F: Array) -> Array:
        """Return the user's link, as columns."""
        if not self.has_link:
            return super().link(F)
        P = np.asarray(self.ask("link", F))
        return P[:, None] if P.shape == (len(F),) and F.shape[1] == 1 else P

    def count_outputs(self, n_outputs: int) -> int:
        """Return the user's number of outputs."""
        return int(getattr(self.user, "n_outputs", n_outputs))

    def constants(self, n_outputs: int) -> Constants:
        """Return the user's constants."""
        found = getattr(self.user, "constants", None)
        found = found(n_outputs) if callable(found) else found
        try:
            return found if isinstance(found, Constants) else Constants(**(found or {}))
        except TypeError:
            known = ", ".join(Constants.__dataclass_fields__)
            raise ValueError(
                f"`constants` of {self.name} must be a dict of some of {known}, got {found!r}"
            ) from None

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the user's start."""
        if not self.has_best_constant:
            raise NotImplementedError(f"{self.name} has no `start`")
        found = np.asarray(self.ask("start", y, space.weight), float).reshape(-1)
        if found.shape != (n_outputs,) or not np.isfinite(found).all():
            raise ValueError(
                f"`start` of {self.name} must return {n_outputs} finite numbers, got {found.tolist()}"
            )
        return found


@dataclass(frozen=True, repr=False)
class CustomRows(CustomLoss, RowLoss):
    """A user's row losses."""

    user: Any

    user_method = "evaluate"
    #: What to do if the user has one number for all rows.
    one_number: ClassVar[str] = "`total` is the method for one number of all rows"

    def formula(self, f: str = "f") -> str:
        """Name and arguments."""
        return f"{self.name}({f}, y)"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Ask the user."""
        losses, G = _pair(self.ask_rows(F, y), self.user_method, self.name)
        self.check_losses(losses, F)
        return losses, _shaped(G, F, self.user_method, self.name)

    def ask_rows(self, F: Array, y: Any) -> Any:
        """Ask the user for losses and subgradients."""
        return self.ask("evaluate", F, y)

    def check_losses(self, losses: Array, F: Array) -> None:
        """Refuse anything but a loss for each row."""
        if losses.shape != (len(F),):
            hint = f"; {self.one_number}" if losses.size == 1 else ""
            raise ValueError(
                f"`{self.user_method}` of {self.name} must return losses of shape ({len(F)},), "
                f"got {losses.shape}{hint}"
            )

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        """Return what the user declares; a function of its arguments is thread-safe."""
        return bool(getattr(self.user, "thread_safe", True))

    @property
    def has_prox(self) -> bool:  # type: ignore[override]
        """Return whether the user wrote a `prox`."""
        return getattr(self.user, "prox", None) is not None

    def value(self, F: Array, y: Any) -> Array:
        """Ask for the losses alone, if the user can do that."""
        if not hasattr(self.user, "value"):
            return self.evaluate(F, y)[0]
        losses = np.asarray(self.ask("value", F, y), float)
        if losses.shape != (len(F),):
            raise ValueError(f"`value` of {self.name} must have shape ({len(F)},), got {losses.shape}")
        return losses

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Return the user's prox."""
        if not self.has_prox:
            return super().prox(F, y, size)
        return _shaped(np.asarray(self.ask("prox", F, y, size), float), F, "prox", self.name, "scores")


@dataclass(frozen=True, repr=False)
class CustomTotal(CustomLoss):
    """A user's value and partial derivatives of the whole score matrix."""

    user: Any

    user_method = "total"

    spreads_rows = False  # whatever it says: it must see all rows

    @property
    def couples_rows(self) -> bool:  # type: ignore[override]
        """Return what the user declares; without that, rows are coupled."""
        return bool(getattr(self.user, "couples_rows", True))

    @property
    def splits_rows(self) -> bool:
        """Return what the user declares; without that, rows can be held out."""
        return bool(getattr(self.user, "splits_rows", True))

    def formula(self, f: str = "f") -> str:
        """Name and arguments."""
        return f"{self.name}({f.upper()}, y)"

    @property
    def _arguments(self) -> Mapping[str, inspect.Parameter]:
        """Return the arguments of the user's method."""
        return inspect.signature(getattr(self.user, self.user_method)).parameters

    @property
    def asked(self) -> tuple[str, ...]:
        """Return which extras the method takes."""
        return tuple(name for name in EXTRAS if name in self._arguments)

    @property
    def takes_groups(self) -> bool:
        """Return whether the method asks for groups."""
        return "groups" in self.asked or "qid" in self.asked

    @property
    def needs_groups(self) -> bool:
        """Return whether the method asks for groups and has no default for them."""
        asked = (self._arguments[name] for name in ("groups", "qid") if name in self.asked)
        return any(argument.default is inspect.Parameter.empty for argument in asked)

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Fix the targets and what the method asks for."""
        y, n_outputs = prepare(self, y, space, n_classes)
        given = Groups.needed(groups, self, len(y)) if self.needs_groups else Groups.of(groups)
        labels = None if given is None else given.labels
        have = {
            "weight": space.weight,
            "groups": labels,
            "qid": labels,
            "group_weight": None if given is None else given.weight,
        }
        extras = {name: have[name] for name in self.asked if have[name] is not None}
        return CustomBoundLoss(
            self,
            y,
            extras,
            space=space,
            n_outputs=self.count_outputs(n_outputs),
            has_classes=self.has_classes(n_classes),
        )

    def evaluate_all(self, F: Array, y: Any, extras: dict[str, Any]) -> tuple[float, Array]:
        """Return R and the partial derivatives."""
        value, partials = _pair(self.ask("total", F, y, **extras), "total", self.name)
        if value.size != 1:
            raise ValueError(
                f"`total` of {self.name} must return one number, got shape {value.shape}; "
                "`evaluate` is the method for one loss per row"
            )
        return float(value.reshape(())), _shaped(partials, F, "total", self.name)


@dataclass(frozen=True, repr=False)
class CustomBoundLoss(BoundLoss):
    """A user's objective."""

    loss: CustomTotal
    y: Any
    arguments: dict[str, Any]  #: what the method asks for beyond scores and targets
    has_classes: bool = field(default=False, kw_only=True)

    is_custom = True

    @property
    def source(self) -> CustomTotal:
        """Return the loss."""
        return self.loss

    @property
    def targets(self) -> Any:
        """Return the targets."""
        return self.y

    @property
    def extras(self) -> dict[str, Any]:
        """Return what the method asks for beyond scores and targets."""
        return self.arguments

    @property
    def uses_weights(self) -> bool:  # type: ignore[override]
        """Return whether the method asks for the weights."""
        return "weight" in self.loss.asked

    def partials(self, F: Array) -> tuple[float, Array]:
        """Ask the user."""
        return self.loss.evaluate_all(F, self.y, self.arguments)

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """Divide the partial derivatives by the weights."""
        value, partials = self.partials(F)
        return value, self.space.gradient(partials)

    def loss_constants(self) -> Constants:
        """Return the user's constants."""
        return self.loss.constants(self.n_outputs)

    def start(self) -> Array:
        """Return the user's start, or search."""
        if self.loss.has_best_constant:
            return self.loss.best_constant(self.y, self.n_outputs, self.space)
        return self.search_start()


def _pair(found: Any, method: str, name: str) -> tuple[Array, Array]:
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise ValueError(
            f"`{method}` of {name} must return a value and a gradient, got {type(found).__name__}"
        )
    return np.asarray(found[0], float), np.asarray(found[1], float)


def _shaped(G: Array, F: Array, method: str, name: str, what: str = "a gradient") -> Array:
    if G.shape == F.shape:
        return G
    if G.shape == (len(F),) and F.shape[1] == 1:
        return G[:, None]
    raise ValueError(f"`{method}` of {name} must return {what} of shape {F.shape} like `F`, got {G.shape}")
