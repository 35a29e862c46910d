"""Losses: what a user names or gives."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.numbers import is_positive as is_positive
from convexboost.core.parameters import Parameters
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace, as_columns
from convexboost.core.tolerances import blocks
from convexboost.kernels import parallel
from convexboost.kernels.lookup import add_lookup
from convexboost.losses._objective import BoundLoss, Pointwise
from convexboost.losses._pieces import Pieces
from convexboost.losses._scores import Lookup
from convexboost.losses._users import is_users, protect


class Loss(Parameters, ABC):
    """A convex loss; `bind(y, space)` fixes the targets and returns the objective.

    Losses can be added, multiplied by positive numbers, composed with affine maps of the scores
    (`loss.affine(A, b)`), and combined by `maximum`; they print as formulas.

    What a loss needs and what it can do is declared by class attributes.  Unless a class says otherwise, a
    loss made of others (`terms`) needs what one of them needs.
    """

    name: ClassVar[str] = ""
    #: "regression": y is (n, k) floats; "classification": class numbers 0 … K − 1, K outputs; "binary": two
    #: classes, one output; "ranking": (n, 1) grades, one output; "any": all of these.
    task: ClassVar[str] = "any"
    #: The losses it is made of.
    terms: tuple[Loss, ...] = ()
    #: Whether R is more than a mean of losses of single rows.
    couples_rows: bool = True
    #: Whether it compares scores with targets.  Terms that do not can only be added to a loss.
    has_targets: bool = True
    #: The weight of a ridge term.
    l2: float = 0.0
    #: Whether `link` turns scores into what they stand for.
    has_link: bool = False
    #: The link written down, for exports: steps from scores to what they stand for, each a name ("affine",
    #: "times", "sigmoid", "softmax", "exp", "sort") and its arguments.  None where it has no such form.
    #: "sigmoid" makes the probabilities of two classes of one score.
    link_steps: tuple[tuple[Any, ...], ...] | None = None
    #: Whether there is a formula for the best constant, where training starts.
    has_best_constant: bool = False
    #: The name of the loss to use instead of one for two classes if there are more.
    multiclass: str = "softmax"
    #: The method of a user that returns value and gradient; "" for a loss of the library.
    user_method: str = ""
    #: The method that returns the best constant.
    start_method: str = "best_constant"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if is_users(cls) and not cls.name:
            cls.name = cls.__name__
        check_declared(cls, Loss, ("link",))
        protect(cls, ("evaluate", "value", *OPTIONAL))

    @property
    def needs_groups(self) -> bool:
        """Return whether `bind` needs `groups`."""
        return any(term.needs_groups for term in self.terms)

    @property
    def takes_groups(self) -> bool:
        """Return whether `bind` can use `groups`."""
        return self.needs_groups or any(term.takes_groups for term in self.terms)

    @property
    def whole_groups(self) -> bool:
        """Return whether the rows of a group only make sense together: they are then held out together."""
        return any(term.whole_groups for term in self.terms)

    @property
    def reweights(self) -> bool:
        """Return whether R is a mean over the worst rows or groups only.

        The worst ones change from round to round, so a step that must lower R gets stuck.
        """
        return any(term.reweights for term in self.terms)

    @property
    def splits_rows(self) -> bool:
        """Return whether some of the rows, or of the groups, can be held out.

        The loss of a part of the rows must then be the loss on these rows; it may not refer to others.
        """
        return all(term.splits_rows for term in self.terms)

    @property
    def spreads_rows(self) -> bool:
        """Return whether the rows may be spread over processes.

        All sums over rows, and what else depends on other rows, must then be those of the `space`.
        """
        return not self.couples_rows or (len(self.terms) > 0 and all(t.spreads_rows for t in self.terms))

    @property
    def one_target(self) -> bool:
        """Return whether there is one target per row however many outputs the model has."""
        return any(term.one_target for term in self.terms)

    @property
    def positive_only(self) -> bool:
        """Return whether targets must not be negative."""
        return any(term.positive_only for term in self.terms)

    @property
    def is_custom(self) -> bool:
        """Return whether a user's code takes part."""
        return is_users(type(self)) or any(term.is_custom for term in self.terms)

    def has_classes(self, n_classes: int | None) -> bool:
        """Return whether the targets are class numbers; `n_classes` is None where they are not labels."""
        return self.task in ("classification", "binary") or (self.task == "any" and n_classes is not None)

    def as_rows(self) -> RowLoss | None:
        """Return it as a loss of single rows; None where it is not one."""
        return None

    def for_classes(self, n_classes: int | None) -> Loss:
        """Return the same loss with as few outputs as so many classes need; None: targets are not labels."""
        return self

    @abstractmethod
    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Check the targets and fix them."""

    def formula(self, f: str = "f") -> str:
        """Return the loss as a formula in y and the scores, called `f`."""
        return f"{self.name}({f}, y)"

    def link(self, F: Array) -> Array:
        """Return what the scores stand for: (n, K) probabilities, or (n, k) predictions."""
        raise NotImplementedError(f"{self.name} has no link")

    def __str__(self) -> str:
        return self.formula()

    def __sklearn_clone__(self) -> Self:
        return copy.deepcopy(self)

    def __add__(self, other: Any) -> Loss:
        from convexboost.losses import _calculus

        return _calculus.add(self, other) if _calculus.is_loss(other) else NotImplemented

    def __radd__(self, other: Any) -> Loss:
        from convexboost.losses import _calculus

        return _calculus.add(other, self) if _calculus.is_loss(other) else NotImplemented

    def __mul__(self, factor: float) -> Loss:
        if not isinstance(factor, Real):
            return NotImplemented
        if not is_positive(factor):
            raise ValueError(f"a loss times {float(factor):g} is not convex: the factor must be positive")
        return self.times(float(factor))

    __rmul__ = __mul__

    def times(self, factor: float) -> Loss:
        """Return a positive multiple."""
        from convexboost.losses import _calculus

        return _calculus.combine(_calculus.Multiple(factor), (self,))

    @property
    def summands(self) -> tuple[Loss, ...]:
        """Return the terms of a sum; any other loss is its only one."""
        return (self,)

    def affine(self, A: Any, b: Any = 0.0) -> Loss:
        """l(A f + b): the loss of scores that are an affine map of the model's."""
        from convexboost.losses import _calculus

        return _calculus.affine(self, A, b)

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """Return losses of this class for the contract tests; a class that needs arguments overrides it.

        tests/contracts runs over the examples of every file in this folder.  The data come from what the
        loss declares: `task`, `one_target`, `positive_only`, and groups labelled 0, 1, 2, 3 if it
        `takes_groups`.
        """
        return (cls(),)


#: The methods of a row loss that are optional: `has_prox` declares `prox`, and so on.
OPTIONAL = ("link", "best_constant", "best_shifts", "curvatures", "prox", "support", "pieces")
#: The other methods that belong to one function, like the optional ones.
DERIVED = ("formula", "value", "constants", "advance")


def check_declared(cls: type, base: type, methods: Iterable[str]) -> None:
    """Refuse a method that is not declared, which nothing would call, and a declaration without a method."""
    for method in methods:
        declared, missing = getattr(cls, f"has_{method}"), getattr(cls, method) is getattr(base, method)
        if method in vars(cls) and not (declared or missing):
            raise TypeError(f"{cls.__name__} has a method `{method}`: declare `has_{method} = True`")
        if declared is True and missing:
            raise TypeError(f"{cls.__name__} declares `has_{method} = True`: it needs a method `{method}`")


class RowLoss(Loss):
    """A convex function l(f, y) of one row's scores: R[F] = Σ_n p_n l(F_n, y_n).

    `evaluate` returns the row losses and a row-wise subgradient of the same function, with no weight and no
    1/N.  It is called on blocks of rows.

    Some methods are optional: formulas for what is otherwise searched or not done.  A class that has one
    declares it: `has_prox = True` beside `prox`.  A subclass with its own `evaluate` is another function, so
    it inherits no formulas: only those that it defines or declares itself are used.
    """

    couples_rows = False
    #: Whether several threads may call `evaluate` and `prox` at once, on different rows.
    thread_safe: bool = True
    #: Whether one output's second derivative depends on the other outputs (`damped_newton`).
    couples_outputs: bool = False
    #: How many Newton steps the leaf refit takes at once, 1 to 2: they are shortened, so R cannot rise.
    newton_steps: float = 1.0

    #: Whether rows that were held out correct the constant of a model, where there are `best_shifts`.
    recalibrates: bool = False

    #: The methods that say which function it is.
    defining: ClassVar[tuple[str, ...]] = ("evaluate",)

    has_best_shifts: bool = False
    has_curvatures: bool = False
    has_prox: bool = False
    has_support: bool = False
    has_pieces: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Drop the formulas of another function; check what is declared."""
        own = set(vars(cls))
        if own.intersection(cls.defining):
            inherited = {
                name
                for parent in cls.__mro__[1:]
                if issubclass(parent, RowLoss) and parent is not RowLoss
                for name in vars(parent)
            }
            for name in inherited.intersection((*OPTIONAL, *DERIVED)) - own:
                if f"has_{name}" not in own:
                    setattr(cls, name, getattr(RowLoss, name))
            for name in OPTIONAL:
                if f"has_{name}" in inherited - own and name not in own:
                    setattr(cls, f"has_{name}", False)
            if "name" in inherited - own:
                cls.name = cls.__name__
        super().__init_subclass__(**options)
        check_declared(cls, RowLoss, OPTIONAL)
        if is_users(cls):
            cls.user_method = "evaluate"

    def as_rows(self) -> RowLoss:
        """Return itself."""
        return self

    @abstractmethod
    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Return the losses (n,) and a subgradient (n, k)."""

    def constants(self, n_outputs: int) -> Constants:
        """Return what is known of R for this many outputs.  Optional: else nothing is."""
        return Constants()

    def value(self, F: Array, y: Any) -> Array:
        """Return the losses alone."""
        return self.evaluate(F, y)[0]

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Minimise R over constant functions, shape (n_outputs,).  Optional: else it is searched."""
        raise NotImplementedError(f"{self.name} has no formula for the best constant")

    def best_shifts(self, F: Array, y: Any, space: FunctionSpace, leaf: Any, n_leaves: int) -> Array:
        """Return what to add to the scores of each leaf to minimise its loss.  Optional."""
        raise NotImplementedError(f"{self.name} has no formula for the values of leaves")

    def curvatures(self, y: Any, G: Array) -> Array:
        """Return the second derivatives, output by output, from the gradient.  Optional.

        For a Newton step in each leaf they must not change faster than exp: |l‴| ≤ l″ (`damped_newton`).
        """
        raise NotImplementedError(f"{self.name} has no second derivatives for Newton steps")

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """argmin_f l(f, y) + ‖f − F‖²/(2 size), row by row.  Optional."""
        raise NotImplementedError(f"{self.name} has no formula for its prox")

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """Return u ≈ U, slopes that the loss has somewhere, and −l*(u) + ⟨u, F⟩.  Optional.

        l* is the conjugate: l(f, y) ≥ ⟨u, f⟩ − l*(u) for every f, and no larger constant will do.
        """
        raise NotImplementedError(f"{self.name} has no formula for its conjugate")

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """Return R as a piecewise linear function.  Optional."""
        raise NotImplementedError(f"{self.name} is not piecewise linear")

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

        A loss with a kernel does this in one pass.  `before` is the last subgradient where that is kept.
        """
        if lookup is not None:
            add_lookup(F, *lookup, 0, len(F))
        parts, G = list(blocks(*F.shape)), np.empty(F.shape)
        losses = np.empty(len(F))

        def task(first: int, last: int) -> None:
            for b in range(first, last):
                rows = parts[b]
                losses[rows], G[rows] = self.evaluate(F[rows], y[rows])

        parallel.run(task, len(parts), 10 * F.size, n_threads if self.thread_safe else 1)
        return space.mean(losses), Gradient(G, space)

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> Pointwise:
        """Check the targets and fix them."""
        y, n_outputs = prepare(self, y, space, n_classes)
        self.check(y)
        return Pointwise(
            self,
            y,
            space=space,
            n_outputs=self.count_outputs(n_outputs),
            has_classes=self.has_classes(n_classes),
        )


def prepare(loss: Loss, y: Any, space: FunctionSpace, n_classes: int | None) -> tuple[Any, int]:
    """Return the targets in the form of the loss's task, and the number of outputs that goes with them."""
    y = np.asarray(y)
    if len(y) != space.n_samples:
        raise ValueError(f"`y` must have {space.n_samples} rows like `X`, got {len(y)}")
    if loss.has_classes(n_classes):
        if n_classes is None:
            n_classes = max(int(y.max()) + 1, 2)
        if loss.task == "binary" and n_classes != 2:
            raise ValueError(
                f"`loss` {loss.name!r} is for two classes, but `y` has {n_classes}: use {loss.multiclass!r}"
            )
        return y.astype(np.int32, copy=False), 1 if loss.task == "binary" else n_classes
    y = np.ascontiguousarray(as_columns(y), float)
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y).all(axis=1))[0])
        raise ValueError(f"`y` must be finite, got {y[row].tolist()} in row {row}")
    if loss.task == "ranking" and y.shape[1] != 1:
        raise ValueError(f"`y` must hold one grade per row, got {y.shape[1]} columns")
    return y, y.shape[1]
