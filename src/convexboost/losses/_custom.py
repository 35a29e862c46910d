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
(False if `evaluate`, which gets blocks of rows, must not run in two threads at once).  `as_loss(object)`
makes a `Loss` of it, which can be added to others and so on; estimators do that by themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numba.core.errors import NumbaError

from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss, RowLoss, prepare
from convexboost.losses._objective import BoundLoss, Pointwise
from convexboost.losses._pair_gradient import PairGradient
from convexboost.losses._scores import Lookup

#: What code may raise that is given arrays it cannot write to: NumPy and Cython, compiled code with fixed
#: signatures, Numba, PyTorch where warnings are errors.
REFUSALS = (ValueError, TypeError, NumbaError, UserWarning)
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


class LossError(ValueError):
    """A loss is not what it must be; the message says what is wrong, where, and what to do."""


def is_custom(loss: Any) -> bool:
    """Return whether an object can serve as a loss."""
    return any(callable(getattr(loss, name, None)) for name in ("evaluate", "total", "value"))


def as_loss(loss: Any) -> Loss:
    """Make a `Loss` of a user's object."""
    if isinstance(loss, Loss):
        return loss
    if inspect.isclass(loss):
        loss = loss()
    if not is_custom(loss):
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
    found = as_loss(loss)
    if type(found).__name__ == "TorchLoss":
        from convexboost.losses._torch import TorchRows

        found = TorchRows(loss)
    if not isinstance(found, RowLoss):
        raise ValueError(f"`loss` of {user} must be a loss of single rows, got {loss!r}")
    return found


def _locked(argument: Any) -> Any:
    """Return a view of an array that cannot be written to."""
    if not isinstance(argument, np.ndarray):
        return argument
    view = argument.view()
    view.flags.writeable = False
    return view


def _differs(a: Any, b: Any) -> Any:
    """Return in which rows two arrays differ; what is missing in both is the same."""
    return ((a != b) & ~((a != a) & (b != b))).reshape(len(a), -1).any(axis=1)


class _Custom:
    """What the wrappers share."""

    user: Any

    def ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the user with arrays that it cannot write to; say so if it tries.

        Code that only insists on arrays it *could* write to gets copies.
        """
        call = getattr(self.user, method)
        try:
            return call(*map(_locked, arguments), **{name: _locked(x) for name, x in named.items()})
        except REFUSALS:
            given = dict(zip(ARGUMENTS[method], arguments, strict=True)) | named
            copies = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in given.items()}
            found = call(*list(copies.values())[: len(arguments)], **{name: copies[name] for name in named})
        for name, x in given.items():
            rows = np.flatnonzero(_differs(x, copies[name])) if isinstance(x, np.ndarray) else np.empty(0)
            if len(rows):
                raise LossError(
                    f"`{method}` of {self.name} writes into `{name}`, e.g. in row {rows[0]}. Work on a copy: "
                    "the arrays belong to the training."
                )
        return found

    @property
    def name(self) -> str:
        """Return the user's name for it, or that of the class."""
        return str(getattr(self.user, "name", None) or type(self.user).__name__)

    @property
    def task(self) -> str:
        """Return the user's word, else that it goes with any targets."""
        return str(getattr(self.user, "task", None) or "any")

    def find_link(self) -> Callable[[Array], Array] | None:
        """Return the user's link."""
        return None if getattr(self.user, "link", None) is None else self._link

    def _link(self, F: Array) -> Array:
        P = np.asarray(self.ask("link", F))
        return P[:, None] if P.shape == (len(F),) and F.shape[1] == 1 else P

    def count_outputs(self, n_outputs: int) -> int:
        """Return the user's number of outputs."""
        return int(getattr(self.user, "n_outputs", n_outputs))

    def declared(self, n_outputs: int) -> Constants:
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

    def own_start(self, y: Any, space: FunctionSpace, n_outputs: int) -> Array | None:
        """Return the user's start."""
        if getattr(self.user, "start", None) is None:
            return None
        found = np.asarray(self.ask("start", y, space.weight), float).reshape(-1)
        if found.shape != (n_outputs,) or not np.isfinite(found).all():
            raise ValueError(
                f"`start` of {self.name} must return {n_outputs} finite numbers, got {found.tolist()}"
            )
        return found


@njit(cache=True, nogil=True)
def _find_rivals(G: Array, y: Any, rivals: Any) -> bool:
    """Write k where a row is e_k − e_y, −1 where it is 0; return False at the first that is neither."""
    for n in range(len(G)):
        rival, others = -1, 0.0
        for k in range(G.shape[1]):
            g = G[n, k]
            others += abs(g)
            if g == 1.0:
                rival = k
        if others != 0.0 and not (others == 2.0 and rival >= 0 and G[n, y[n]] == -1.0):
            return False
        rivals[n] = rival
    return True


@dataclass(frozen=True)
class CustomRows(_Custom, RowLoss):  # type: ignore[override]
    """A user's row losses."""

    user: Any
    user_method: ClassVar[str] = "evaluate"

    def formula(self, f: str = "f") -> str:
        """Name and arguments."""
        return f"{self.name}({f}, y)"

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Ask the user."""
        losses, G = _pair(self.ask("evaluate", F, y), "evaluate", self.name)
        if losses.shape != (len(F),):
            hint = "; `total` is the method for one number of all rows" if losses.size == 1 else ""
            raise ValueError(
                f"`evaluate` of {self.name} must return losses of shape ({len(F)},), got {losses.shape}{hint}"
            )
        return losses, _shaped(G, F, "evaluate", self.name)

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        """Return the user's word; a function of its arguments is."""
        return bool(getattr(self.user, "thread_safe", True))

    def advance(
        self,
        F: Array,
        y: Any,
        space: FunctionSpace,
        lookup: Lookup | None,
        before: Gradient | None,
        n_threads: int,
    ) -> tuple[float, Gradient]:
        """As every row loss; a gradient like that of the multiclass hinge is recognised and kept small."""
        value, gradient = super().advance(F, y, space, lookup, before, n_threads)
        if y.dtype == np.int32 and F.shape[1] > 1:
            rivals = np.empty(len(F), np.int32)
            if _find_rivals(gradient.values, y, rivals):
                return value, PairGradient(rivals, y, F.shape[1], space).follow(before)
        return value, gradient

    def value(self, F: Array, y: Any) -> Array:
        """Ask for the losses alone, if the user can do that."""
        if not hasattr(self.user, "value"):
            return self.evaluate(F, y)[0]
        losses = np.asarray(self.ask("value", F, y), float)
        if losses.shape != (len(F),):
            raise ValueError(f"`value` of {self.name} must have shape ({len(F)},), got {losses.shape}")
        return losses

    def prox(self, F: Array, y: Any, size: float) -> Array | None:
        """Return the user's prox, if there is one."""
        if not hasattr(self.user, "prox"):
            return None
        return _shaped(np.asarray(self.ask("prox", F, y, size), float), F, "prox", self.name, "scores")

    def constants(self, n_outputs: int) -> Constants:
        """Return the user's constants."""
        return self.declared(n_outputs)

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return the user's start, or search."""
        own = self.own_start(y, space, n_outputs)
        return super().best_constant(y, n_outputs, space) if own is None else own


@dataclass(frozen=True)
class CustomTotal(_Custom, Loss):  # type: ignore[override]
    """A user's value and partial derivatives of the whole score matrix."""

    user: Any
    user_method: ClassVar[str] = "total"

    def formula(self, f: str = "f") -> str:
        """Name and arguments."""
        return f"{self.name}({f.upper()}, y)"

    @cached_property
    def method(self) -> Callable[..., Any]:
        """Return the user's method that takes all rows."""
        return self.user.total

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """Return which extras the method takes."""
        parameters = inspect.signature(self.method).parameters
        return tuple(name for name in EXTRAS if name in parameters)

    @property
    def takes_groups(self) -> bool:
        """Return whether the method asks for groups."""
        return "groups" in self.asked or "qid" in self.asked

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        """Return whether the method asks for groups and has no default for them."""
        parameters = inspect.signature(self.method).parameters
        return any(
            parameters[name].default is inspect.Parameter.empty
            for name in self.asked
            if name in ("groups", "qid")
        )

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> CustomBoundLoss:
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
        return CustomBoundLoss(self, y, extras, space=space, n_outputs=self.count_outputs(n_outputs))

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
    """A user's functional."""

    loss: CustomTotal
    y: Any
    extras: dict[str, Any]

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """Divide the partial derivatives by the weights."""
        value, partials = self.loss.evaluate_all(F, self.y, self.extras)
        return value, self.space.gradient(partials)

    def loss_constants(self) -> Constants:
        """Return the user's constants."""
        return self.loss.declared(self.n_outputs)

    def start(self) -> Array:
        """Return the user's start, or search."""
        own = self.loss.own_start(self.y, self.space, self.n_outputs)
        return self.search_start() if own is None else own


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


def is_users(objective: BoundLoss) -> bool:
    """Return whether a user's code takes part in an objective."""
    if isinstance(objective, CustomBoundLoss):
        return True
    if isinstance(objective, Pointwise):
        return _holds_custom(objective.loss)
    inner = getattr(objective, "rows", None)  # of a CVaR, say
    return any(is_users(term) for term in (*getattr(objective, "terms", ()), *([inner] if inner else [])))


def _holds_custom(loss: Loss) -> bool:
    return isinstance(loss, _Custom) or any(_holds_custom(term) for term in getattr(loss, "terms", ()))
