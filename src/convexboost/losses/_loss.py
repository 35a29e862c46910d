"""Losses: what a user names or gives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import blocks
from convexboost.kernels import parallel
from convexboost.kernels.lookup import add_lookup
from convexboost.losses._objective import BoundLoss, Pointwise
from convexboost.losses._pieces import Pieces
from convexboost.losses._scores import Lookup


def is_positive(number: Any) -> bool:
    """Return whether a parameter is a positive, finite number."""
    return isinstance(number, Real) and 0 < float(number) < math.inf


class Loss(ABC):
    """What a user names or gives: it meets targets and becomes a convex functional of the scores.

    Losses can be added, multiplied by positive numbers, composed with affine maps of the scores
    (`loss.affine(A, b)`), and combined by `maximum`; they print as formulas.
    """

    name: ClassVar[str]
    #: The method with the value and the gradient that a user wrote; "" for losses of the library.
    user_method: ClassVar[str] = ""
    #: "regression": y is (n, k) floats; "classification": class numbers 0 … K − 1, K outputs; "binary": two
    #: classes, one output; "ranking": (n, 1) grades, one output; "any": whatever it meets.
    task: ClassVar[str]
    #: Whether `bind` needs `groups`.
    needs_groups: bool = False
    #: Whether the rows of a group only make sense together: then early stopping holds out whole groups.
    whole_groups: bool = False
    #: Whether some rows or groups alone decide R, now these, now those: to lower it at once is no way.
    reweights: bool = False

    @property
    def takes_groups(self) -> bool:
        """Return whether `bind` can use `groups`."""
        return self.needs_groups

    @abstractmethod
    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Check the targets and fix them."""

    def formula(self, f: str = "f") -> str:
        """Return the loss as a formula in y and the scores, called `f`."""
        return f"{self.name}({f}, y)"

    def find_link(self) -> Callable[[Array], Array] | None:
        """Return the map from scores to what they stand for (see `LinkLoss`), if there is one."""
        return None

    def __str__(self) -> str:
        return self.formula()

    def __add__(self, other: Any) -> Loss:
        from convexboost.losses import _calculus

        return _calculus.add(self, other) if _calculus.is_loss(other) else NotImplemented

    def __radd__(self, other: Any) -> Loss:
        from convexboost.losses import _calculus

        return _calculus.add(other, self) if _calculus.is_loss(other) else NotImplemented

    def __mul__(self, factor: float) -> Loss:
        from convexboost.losses import _calculus

        return _calculus.scale(self, factor)

    __rmul__ = __mul__

    def affine(self, A: Any, b: Any = 0.0) -> Loss:
        """l(A f + b): the loss of scores that are an affine map of the model's."""
        from convexboost.losses import _calculus

        return _calculus.affine(self, A, b)


class RowLoss(Loss):
    """A convex function l(f, y) of one row's scores: R[F] = Σ_n p_n l(F_n, y_n).

    `evaluate` returns the row losses and a row-wise subgradient, exact mates, with no weight and no 1/N.  It
    is called on blocks of rows.
    """

    #: Whether several threads may call `evaluate` and `prox` at once, on different rows.
    thread_safe: bool = True

    @abstractmethod
    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the losses (n,) and a subgradient (n, k)."""

    @abstractmethod
    def constants(self, n_outputs: int) -> Constants:
        """Return what is known of R for this many outputs."""

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Minimise R over constant functions, shape (n_outputs,); by a search where there is no formula."""
        # Rows with the same targets have the same losses.
        distinct, inverse = np.unique(y, return_inverse=True, axis=0)
        weights = FunctionSpace(space.masses(inverse.ravel()))
        objective = Pointwise(self, distinct, space=weights, n_outputs=n_outputs)
        return objective.search_start()

    def value(self, F: Array, y: Any) -> Array:
        """Return the losses alone."""
        return self.evaluate(F, y)[0]

    def prox(self, F: Array, y: Any, size: float) -> Array | None:
        """argmin_f l(f, y) + ‖f − F‖²/(2 size), row by row; None for a loss without a formula."""
        return None

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array] | None:
        """Return about U, as slopes u that the loss has somewhere, and −l*(u) + ⟨u, F⟩; None: no formula.

        l* is the conjugate: l(f, y) ≥ ⟨u, f⟩ − l*(u) for every f, and no larger constant will do.
        """
        return None

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces | None:
        """Return R as a piecewise linear functional, None if it is not one."""
        return None

    #: Whether the outputs of a row have more to do with each other than that they are in one loss.
    couples_outputs: ClassVar[bool] = False

    def curvatures(self, y: Any, G: Array) -> Array | None:
        """Return the second derivatives, output by output, from the gradient; None: none that are of use.

        For a Newton step in each leaf they must not change faster than exp: |l‴| ≤ l″ (`damped_newton`).
        """
        return None

    def best_shifts(self, F: Array, y: Any, weight: Array, leaf: Any, n_leaves: int) -> Array | None:
        """Return what to add to the scores of each leaf to make its loss smallest; None: no formula."""
        return None

    def check(self, y: Any) -> None:
        """Raise ValueError for targets outside the domain of the loss."""

    def count_outputs(self, n_outputs: int) -> int:
        """Return how many outputs the model has; `n_outputs` is what the targets suggest."""
        return n_outputs

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
        parts, G = list(blocks(*F.shape)), np.empty(F.shape)
        values = [0.0] * len(parts)

        def task(first: int, last: int) -> None:
            for b in range(first, last):
                rows = parts[b]
                losses, G[rows] = self.evaluate(F[rows], y[rows])
                values[b] = space.part(rows).mean(losses)

        parallel.run(task, len(parts), 10 * F.size, n_threads if self.thread_safe else 1)
        return sum(values), Gradient(G, space)

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> Pointwise:
        """Check the targets and fix them."""
        y, n_outputs = prepare(self, y, space, n_classes)
        self.check(y)
        return Pointwise(self, y, space=space, n_outputs=self.count_outputs(n_outputs))


class LinkLoss(RowLoss):
    """A loss whose scores stand for something else: class probabilities, a mean, sorted quantiles."""

    @abstractmethod
    def link(self, F: Array) -> Array:
        """Return what the scores stand for: (n, K) probabilities, or (n, k) predictions."""

    def find_link(self) -> Callable[[Array], Array] | None:
        """Return `link`."""
        return self.link


def prepare(loss: Loss, y: Any, space: FunctionSpace, n_classes: int | None) -> tuple[Any, int]:
    """Return the targets in the form of the loss's task, and the number of outputs that goes with them."""
    y = np.asarray(y)
    if len(y) != space.n_samples:
        raise ValueError(f"`y` must have {space.n_samples} rows like `X`, got {len(y)}")
    if loss.task in ("classification", "binary") or (loss.task == "any" and n_classes is not None):
        if n_classes is None:
            n_classes = max(int(y.max()) + 1, 2)
        if loss.task == "binary" and n_classes != 2:
            instead = getattr(loss, "multiclass", "")
            hint = f": use {instead!r}" if instead else ""
            raise ValueError(f"`loss` {loss.name!r} is for two classes, but `y` has {n_classes}{hint}")
        return y.astype(np.int32, copy=False), 1 if loss.task == "binary" else n_classes
    y = np.ascontiguousarray(y.reshape(len(y), -1), float)
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y).all(axis=1))[0])
        raise ValueError(f"`y` must be finite, got {y[row].tolist()} in row {row}")
    if loss.task == "ranking" and y.shape[1] != 1:
        raise ValueError(f"`y` must hold one grade per row, got {y.shape[1]} columns")
    return y, y.shape[1]
