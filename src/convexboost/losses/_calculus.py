"""Losses from losses: sums, positive multiples, affine maps of the scores, maxima, a ridge term.

What is made of row losses is again a row loss; as soon as a part couples rows, the whole does.  Either way
the arithmetic is the same: an operation takes (losses, subgradient) of its parts, the losses being one number
per row or one for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.sums import ExactSum
from convexboost.core.tolerances import KINK
from convexboost.losses._custom import as_loss, can_be_loss
from convexboost.losses._loss import Loss, RowLoss, is_positive
from convexboost.losses._objective import BoundLoss
from convexboost.losses._pieces import Pieces

Evaluation = tuple[Any, Array]


class Operation(ABC):
    """How parts make a whole."""

    @abstractmethod
    def through(self, F: Array, parts: Sequence[Callable[[Array], Evaluation]]) -> Evaluation:
        """Evaluate the whole at F."""

    @abstractmethod
    def constants(self, parts: Sequence[Constants]) -> Constants:
        """Return what is known of the whole."""

    @abstractmethod
    def formula(self, parts: Sequence[Loss], f: str) -> str:
        """Print it as mathematics."""

    @abstractmethod
    def code(self, parts: Sequence[Loss]) -> str:
        """Print it as Python."""

    def n_outputs(self, parts: Sequence[int]) -> int:
        """Return the outputs of the model, from those of the parts."""
        if len(set(parts)) > 1:
            raise ValueError(f"losses can be combined if they have as many outputs each, got {list(parts)}")
        return parts[0]

    def inner_outputs(self, n_outputs: int) -> int:
        """Return the outputs of the parts, from those of the model."""
        return n_outputs

    def linked(self, parts: Sequence[Loss]) -> Loss | None:
        """Return the part whose link is that of the whole, if there is one."""
        return None

    def scores(self, F: Array) -> Array:
        """Return the scores of the parts, from those of the model."""
        return F

    @property
    def score_steps(self) -> tuple[tuple[Any, ...], ...]:
        """Return `scores` as steps, as in `Loss.link_steps`."""
        return ()

    def times(self, factor: float, parts: Sequence[Loss]) -> Loss:
        """Return a multiple of the whole."""
        return combine(Multiple(factor), (combine(self, parts),))

    #: Whether it is a sum.
    adds: ClassVar[bool] = False
    #: Whether it looks at nothing but the values and the subgradients of its parts.
    spreads_rows: ClassVar[bool] = True
    #: Whether the scores of its part are others than those of the model.
    maps_scores: ClassVar[bool] = False

    def sharp(self) -> Operation:
        """Return the operation without tolerance for ties."""
        return self

    def of_rows(self, terms: tuple[RowLoss, ...]) -> RowExpression:
        """Apply it to row losses."""
        return RowExpression(self, terms)


@dataclass(frozen=True)
class Sum(Operation):
    """l₁ + l₂ + … ."""

    adds: ClassVar[bool] = True

    def through(self, F: Array, parts: Sequence[Callable[[Array], Evaluation]]) -> Evaluation:
        """Add up."""
        losses, G = parts[0](F)
        for part in parts[1:]:
            more, slopes = part(F)
            losses, G = losses + more, G + slopes
        return losses, G

    def constants(self, parts: Sequence[Constants]) -> Constants:
        """Every constant adds up, if it is known of every part."""
        return Constants(
            lipschitz=_total([c.lipschitz for c in parts]),
            smoothness=_total([c.smoothness for c in parts]),
            strong_convexity=sum(c.strong_convexity for c in parts),
            minimum=_total([c.minimum for c in parts]),
        )

    def formula(self, parts: Sequence[Loss], f: str) -> str:
        """l₁ + l₂."""
        return " + ".join(part.formula(f) for part in parts)

    def code(self, parts: Sequence[Loss]) -> str:
        """l₁ + l₂."""
        return " + ".join(map(repr, parts))

    def linked(self, parts: Sequence[Loss]) -> Loss | None:
        """Return the only part with targets: the others do not change what scores stand for."""
        losses = [part for part in parts if part.has_targets]
        return losses[0] if len(losses) == 1 else None

    def times(self, factor: float, parts: Sequence[Loss]) -> Loss:
        """Multiply each part."""
        return add(*(part.times(factor) for part in parts))


@dataclass(frozen=True)
class Multiple(Operation):
    """factor · l."""

    factor: float

    def of_rows(self, terms: tuple[RowLoss, ...]) -> RowExpression:
        """Keep the formulas of the row loss."""
        return MultipleOfRows(self, terms)

    def through(self, F: Array, parts: Sequence[Callable[[Array], Evaluation]]) -> Evaluation:
        """Multiply."""
        losses, G = parts[0](F)
        return self.factor * losses, self.factor * G

    def constants(self, parts: Sequence[Constants]) -> Constants:
        """Every constant is multiplied."""
        (c,), a = parts, self.factor
        return Constants(
            lipschitz=None if c.lipschitz is None else a * c.lipschitz,
            smoothness=None if c.smoothness is None else a * c.smoothness,
            strong_convexity=a * c.strong_convexity,
            minimum=None if c.minimum is None else a * c.minimum,
        )

    def formula(self, parts: Sequence[Loss], f: str) -> str:
        """Write the factor in front."""
        inner = parts[0].formula(f)
        return f"{self.factor:g} ({inner})" if _is_sum(inner, "+−") else f"{self.factor:g} {inner}"

    def code(self, parts: Sequence[Loss]) -> str:
        """Factor * loss."""
        return f"{_number(self.factor)} * {parts[0]!r}"

    def linked(self, parts: Sequence[Loss]) -> Loss | None:
        """Return the part: scores stand for the same."""
        return parts[0]

    def times(self, factor: float, parts: Sequence[Loss]) -> Loss:
        """Multiply the factors."""
        return combine(Multiple(factor * self.factor), parts)


@dataclass(frozen=True, eq=False)
class Affine(Operation):
    """l(A f + b): a number A stands for that multiple of the identity."""

    A: Any
    b: Any

    maps_scores: ClassVar[bool] = True

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return np.array_equal(self.A, other.A) and np.array_equal(self.b, other.b)

    def __hash__(self) -> int:
        return hash((*np.ravel(self.A).tolist(), *np.ravel(self.b).tolist()))

    @property
    def score_steps(self) -> tuple[tuple[Any, ...], ...]:
        """A f + b."""
        return (("affine", self.A, self.b),)

    def scores(self, F: Array) -> Array:
        """A f + b, row by row."""
        return (self.A * F if np.ndim(self.A) == 0 else _times(F, self.A.T)) + self.b

    def through(self, F: Array, parts: Sequence[Callable[[Array], Evaluation]]) -> Evaluation:
        """Chain rule."""
        losses, G = parts[0](self.scores(F))
        return losses, self.A * G if np.ndim(self.A) == 0 else _times(G, self.A)

    def constants(self, parts: Sequence[Constants]) -> Constants:
        """Singular values of A."""
        (c,) = parts
        sizes = [abs(self.A)] if np.ndim(self.A) == 0 else np.linalg.svd(self.A, compute_uv=False)
        high, low = float(max(sizes)), float(min(sizes))
        if np.ndim(self.A) == 2 and self.A.shape[1] > self.A.shape[0]:
            low = 0.0  # some directions are not seen
        return Constants(
            lipschitz=None if c.lipschitz is None else high * c.lipschitz,
            smoothness=None if c.smoothness is None else high**2 * c.smoothness,
            strong_convexity=low**2 * c.strong_convexity,
            minimum=c.minimum,
        )

    def formula(self, parts: Sequence[Loss], f: str) -> str:
        """Put the map where f was."""
        A = f"{self.A:g}" if np.ndim(self.A) == 0 else "A"
        b = "b" if np.ndim(self.b) else f"{self.b:g}"
        return parts[0].formula(f"({A} {f}{'' if b == '0' else ' + ' + b})")

    def code(self, parts: Sequence[Loss]) -> str:
        """loss.affine(A, b)."""
        A, b = (x.tolist() if np.ndim(x) else x for x in (self.A, self.b))
        inner = f"({parts[0]!r})" if _is_sum(repr(parts[0]), "+*") else repr(parts[0])
        return f"{inner}.affine({A!r}, {b!r})"

    def n_outputs(self, parts: Sequence[int]) -> int:
        """Return the columns of A."""
        if np.ndim(self.b) == 1 and len(self.b) != parts[0]:
            raise ValueError(
                f"`b` must have {parts[0]} entries, one per output of the loss, got {len(self.b)}"
            )
        if np.ndim(self.A) == 0:
            return parts[0]
        if self.A.shape[0] != parts[0]:
            raise ValueError(
                f"`A` must have {parts[0]} rows, one per output of the loss, got shape {self.A.shape}"
            )
        return int(self.A.shape[1])

    def inner_outputs(self, n_outputs: int) -> int:
        """Return the rows of A."""
        return n_outputs if np.ndim(self.A) == 0 else int(self.A.shape[0])

    def linked(self, parts: Sequence[Loss]) -> Loss | None:
        """Return the part: its scores are the mapped ones."""
        return parts[0]


@dataclass(frozen=True)
class Maximum(Operation):
    """max(l₁, l₂, …): row by row for row losses, else of the objectives.  Ties share the subgradient."""

    kink: float = KINK  #: how close to the largest counts as a tie

    spreads_rows: ClassVar[bool] = False

    def through(self, F: Array, parts: Sequence[Callable[[Array], Evaluation]]) -> Evaluation:
        """Take the largest."""
        found = [part(F) for part in parts]
        losses = np.stack([np.asarray(part, float) for part, _ in found])
        top = losses.max(axis=0)
        # what the losses are computed from: the tolerance has their unit
        size = np.max([np.abs(g * F).sum(axis=-1) for _, g in found], axis=0)
        size = size if top.ndim else float(ExactSum(over=len(size)).add(size))
        share = (losses >= top - self.kink * (np.abs(top) + size)).astype(float)
        share /= share.sum(axis=0)
        G = sum(s[..., None] * g for s, (_, g) in zip(share, found, strict=True))
        return (top if top.ndim else float(top)), G

    def constants(self, parts: Sequence[Constants]) -> Constants:
        """Return the worst of each; a maximum has kinks."""
        known = [c.minimum for c in parts if c.minimum is not None]
        slopes = [c.lipschitz for c in parts]
        return Constants(
            lipschitz=None if None in slopes else max(s for s in slopes if s is not None),
            strong_convexity=min(c.strong_convexity for c in parts),
            minimum=max(known) if known else None,
        )

    def formula(self, parts: Sequence[Loss], f: str) -> str:
        """max(l₁, l₂)."""
        return f"max({', '.join(part.formula(f) for part in parts)})"

    def code(self, parts: Sequence[Loss]) -> str:
        """maximum(l₁, l₂)."""
        return f"maximum({', '.join(map(repr, parts))})"

    def sharp(self) -> Maximum:
        """Let only equal values tie."""
        return Maximum(0.0)


class _Expression(Loss):
    """An operation on losses."""

    operation: Operation

    name: ClassVar[str] = "expression"

    def __repr__(self) -> str:
        return self.operation.code(self.terms)

    @property
    def task(self) -> str:  # type: ignore[override]
        """Return that of the terms."""
        return _task(self.terms)

    @property
    def has_targets(self) -> bool:  # type: ignore[override]
        """Return whether a term has."""
        return any(term.has_targets for term in self.terms)

    @property
    def has_link(self) -> bool:  # type: ignore[override]
        """Return whether the operation keeps the meaning of the scores of a term that has a link."""
        linked = self.operation.linked(self.terms)
        return linked is not None and linked.has_link

    @property
    def link_steps(self) -> tuple[tuple[Any, ...], ...] | None:  # type: ignore[override]
        """Return the steps of the operation, then those of the term."""
        linked = self.operation.linked(self.terms)
        steps = None if linked is None else linked.link_steps
        return None if steps is None else (*self.operation.score_steps, *steps)

    def link(self, F: Array) -> Array:
        """Return the link of the term at its scores."""
        linked = self.operation.linked(self.terms)
        return super().link(F) if linked is None else linked.link(self.operation.scores(F))

    def for_classes(self, n_classes: int | None) -> Loss:
        """Ask every term; all that have targets need one output for two classes, or none is changed."""
        terms = tuple(term.for_classes(n_classes) for term in self.terms)
        agree = all(term.task == "binary" for term in terms if term.has_targets)
        return combine(self.operation, terms) if agree and not self.operation.maps_scores else self

    def formula(self, f: str = "f") -> str:
        """Return the formula of the whole."""
        return self.operation.formula(self.terms, f)

    def times(self, factor: float) -> Loss:
        """Ask the operation."""
        return self.operation.times(factor, self.terms)

    @property
    def summands(self) -> tuple[Loss, ...]:
        """Return the terms of a sum."""
        return self.terms if self.operation.adds else (self,)


@dataclass(frozen=True, repr=False)
class RowExpression(_Expression, RowLoss):
    """An operation on row losses."""

    operation: Operation
    terms: tuple[RowLoss, ...] = field()

    @property
    def thread_safe(self) -> bool:  # type: ignore[override]
        """Return whether all terms are."""
        return all(term.thread_safe for term in self.terms)

    def check(self, y: Any) -> None:
        """Ask every term."""
        for term in self.terms:
            term.check(y)

    def count_outputs(self, n_outputs: int) -> int:
        """Ask the operation."""
        return self.operation.n_outputs([term.count_outputs(n_outputs) for term in self.terms])

    def evaluate(self, F: Array, y: Any) -> tuple[Array, Array]:
        """Evaluate the terms and combine."""
        return self.operation.through(F, [partial(term.evaluate, y=y) for term in self.terms])

    def constants(self, n_outputs: int) -> Constants:
        """Combine those of the terms."""
        n_outputs = self.operation.inner_outputs(n_outputs)
        return self.operation.constants([term.constants(n_outputs) for term in self.terms])


@dataclass(frozen=True, repr=False)
class MultipleOfRows(RowExpression):
    """factor · l, with all formulas of l.

    Sums have none: second derivatives come from the gradient, and that of a sum does not tell those of its
    terms.
    """

    operation: Multiple

    @property
    def couples_outputs(self) -> bool:  # type: ignore[override]
        """Return whether the loss does."""
        return self.terms[0].couples_outputs

    @property
    def newton_steps(self) -> float:  # type: ignore[override]
        """Return those of the loss: |l‴| ≤ l″ holds for a multiple too."""
        return self.terms[0].newton_steps

    @property
    def recalibrates(self) -> bool:  # type: ignore[override]
        """Return whether the loss does."""
        return self.terms[0].recalibrates

    @property
    def has_best_constant(self) -> bool:  # type: ignore[override]
        """Return whether the loss has a formula."""
        return self.terms[0].has_best_constant

    def best_constant(self, y: Any, n_outputs: int, space: FunctionSpace) -> Array:
        """Return that of the loss."""
        return self.terms[0].best_constant(y, n_outputs, space)

    @property
    def has_best_shifts(self) -> bool:  # type: ignore[override]
        """Return whether the loss has a formula."""
        return self.terms[0].has_best_shifts

    def best_shifts(self, F: Array, y: Any, space: FunctionSpace, leaf: Any, n_leaves: int) -> Array:
        """Return those of the loss."""
        return self.terms[0].best_shifts(F, y, space, leaf, n_leaves)

    @property
    def has_curvatures(self) -> bool:  # type: ignore[override]
        """Return whether the loss has a formula."""
        return self.terms[0].has_curvatures

    def curvatures(self, y: Any, G: Array) -> Array:
        """Multiply those of the loss."""
        factor = self.operation.factor
        return factor * self.terms[0].curvatures(y, G / factor)

    @property
    def has_prox(self) -> bool:  # type: ignore[override]
        """Return whether the loss has a formula."""
        return self.terms[0].has_prox

    def prox(self, F: Array, y: Any, size: float) -> Array:
        """Return that of the loss, with the multiple of the size."""
        return self.terms[0].prox(F, y, self.operation.factor * size)

    @property
    def has_support(self) -> bool:  # type: ignore[override]
        """Return whether the loss has a formula."""
        return self.terms[0].has_support

    def support(self, U: Array, F: Array, y: Any) -> tuple[Array, Array]:
        """(a l)*(u) = a l*(u/a)."""
        factor = self.operation.factor
        slopes, values = self.terms[0].support(U / factor, F, y)
        return factor * slopes, factor * values

    @property
    def has_pieces(self) -> bool:  # type: ignore[override]
        """Return whether the loss has them."""
        return self.terms[0].has_pieces

    def pieces(self, y: Any, n_outputs: int, space: FunctionSpace) -> Pieces:
        """Multiply those of the loss."""
        factor, pieces = self.operation.factor, self.terms[0].pieces(y, n_outputs, space)
        return replace(
            pieces,
            constant=factor * pieces.constant,
            linear=factor * pieces.linear,
            weight=factor * pieces.weight,
        )


@dataclass(frozen=True, repr=False)
class Expression(_Expression):
    """An operation on losses of which some couple rows."""

    operation: Operation
    terms: tuple[Loss, ...] = field()

    @property
    def couples_rows(self) -> bool:  # type: ignore[override]
        """Return whether a term does; ridge terms do not."""
        return any(term.couples_rows for term in self.terms if term.l2 == 0.0)

    @property
    def spreads_rows(self) -> bool:
        """Return whether all terms do, and the operation."""
        return self.operation.spreads_rows and all(term.spreads_rows for term in self.terms)

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Bind every term; ridge terms become the `l2` of the objective."""
        terms = tuple(term for term in self.terms if term.l2 == 0.0)
        if len(terms) < len(self.terms):
            whole = terms[0] if len(terms) == 1 else combine(self.operation, terms)
            return whole.bind(y, space, n_classes, groups).with_l2(sum(term.l2 for term in self.terms))
        losses = [term.bind(y, space, n_classes, groups) for term in terms if term.has_targets]
        if not losses:
            raise ValueError(
                f"nothing in {self!r} has targets: couplings can be multiplied and added to a loss"
            )
        k = self.operation.n_outputs([loss.n_outputs for loss in losses])
        return self._composite((*losses, *self._couple_terms(space, k, groups)), space, k)

    def couple(self, space: FunctionSpace, n_outputs: int, groups: Any) -> BoundLoss:
        """Fix the rows, where no term has targets."""
        return self._composite(self._couple_terms(space, n_outputs, groups), space, n_outputs)

    def _couple_terms(self, space: FunctionSpace, n_outputs: int, groups: Any) -> tuple[BoundLoss, ...]:
        free: list[Any] = [term for term in self.terms if not term.has_targets]
        return tuple(term.couple(space, n_outputs, groups) for term in free)

    def _composite(self, parts: tuple[BoundLoss, ...], space: FunctionSpace, n_outputs: int) -> BoundLoss:
        if any(part.l2 > 0.0 for part in parts):
            raise ValueError(f"a ridge term can only be added at the end, got {self!r}")
        return Composite(operation=self.operation, terms=parts, space=space, n_outputs=n_outputs)


@dataclass(frozen=True, repr=False)
class Composite(BoundLoss):
    """An operation on objectives."""

    operation: Operation
    terms: tuple[BoundLoss, ...] = field()  # type: ignore[misc]

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """Evaluate the terms and combine."""
        return self.operation.through(F, [term.evaluate for term in self.terms])

    def loss_constants(self) -> Constants:
        """Combine those of the terms."""
        return self.operation.constants([term.loss_constants() for term in self.terms])

    def sharp(self) -> Self:
        """Let only equal values tie, in all terms."""
        return replace(self, operation=self.operation.sharp(), terms=tuple(t.sharp() for t in self.terms))


class Coupling(Loss):
    """A term without targets, to be added to a loss: it only knows rows and scores."""

    task = "any"
    has_targets = False

    @abstractmethod
    def couple(self, space: FunctionSpace, n_outputs: int, groups: Any) -> BoundLoss:
        """Fix the rows."""

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Fix the rows; the number of outputs is that of the targets."""
        return self.couple(space, 1 if np.ndim(y) == 1 else np.shape(y)[1], groups)


@dataclass(frozen=True)
class Ridge(Loss):
    """(l2/2) ‖f − start‖², to be added to a loss: the same as the estimators' `l2`."""

    l2: float = field()

    name: ClassVar[str] = "ridge"
    task: ClassVar[str] = "any"
    has_targets = False
    spreads_rows = True

    def __post_init__(self) -> None:
        if not is_positive(self.l2):
            raise ValueError(f"`l2` must be positive, got {self.l2!r}")

    def formula(self, f: str = "f") -> str:
        """l2/2 ‖f − start‖²."""
        return f"{self.l2 / 2:g} ‖{f} − start‖²"

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Refuse: alone it has nothing to fit."""
        raise ValueError(f"{self!r} must be added to a loss")

    def times(self, factor: float) -> Ridge:
        """Multiply the weight."""
        return Ridge(factor * self.l2)


#: The classes that combinations of losses consist of, by their names in a model file.
PARTS: dict[str, type[Any]] = {
    "sum": Sum,
    "multiple": Multiple,
    "affine": Affine,
    "maximum": Maximum,
    "expression": Expression,
    "row_expression": RowExpression,
    "multiple_of_rows": MultipleOfRows,
    "ridge": Ridge,
}


def is_loss(thing: Any) -> bool:
    """Return whether it can be combined with losses."""
    return isinstance(thing, Loss) or can_be_loss(thing)


def add(*losses: Any) -> Loss:
    """Return the sum; nested sums become one."""
    return combine(Sum(), tuple(term for loss in map(as_loss, losses) for term in loss.summands))


def affine(loss: Loss, A: Any, b: Any = 0.0) -> RowExpression | Expression:
    """l(A f + b)."""
    A, b = (np.asarray(x, float) for x in (A, b))
    for name, value, dimensions in (("A", A, (0, 2)), ("b", b, (0, 1))):
        if value.ndim not in dimensions or not np.isfinite(value).all() or (name == "A" and not value.any()):
            wanted = "a number other than 0 or a matrix" if name == "A" else "a number or a vector"
            raise ValueError(f"`{name}` must be {wanted}, got {value.tolist()}")
    A, b = (float(x) if x.ndim == 0 else x for x in (A, b))
    return combine(Affine(A, b), (loss,))


def maximum(*losses: Any) -> RowExpression | Expression:
    """max(l₁, l₂, …): of the losses of each row, or of the objectives where some couple rows."""
    if len(losses) < 2:
        raise ValueError(f"`maximum` needs two losses at least, got {losses!r}")
    return combine(Maximum(), tuple(map(as_loss, losses)))


def combine(operation: Operation, terms: Sequence[Loss]) -> RowExpression | Expression:
    """Apply an operation to losses of one task."""
    if not operation.adds and any(term.l2 > 0.0 for term in terms):
        raise ValueError(f"a ridge term can only be added, got {operation.code(terms)}")
    _task(terms)
    rows = tuple(row for row in (term.as_rows() for term in terms) if row is not None)
    return operation.of_rows(rows) if len(rows) == len(terms) else Expression(operation, tuple(terms))


def _task(terms: Sequence[Loss]) -> str:
    tasks = dict.fromkeys(term.task for term in terms if term.task != "any")
    if len(tasks) > 1:
        raise ValueError(f"losses of one task can be combined, got {' and '.join(tasks)}")
    return next(iter(tasks), "any")


def _total(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value for value in values if value is not None)


def _times(F: Array, A: Array) -> Array:
    """F @ A, row by row: the bits of a row do not depend on the rows beside it, as they do in BLAS."""
    out = F[:, :1] * A[0]
    for k in range(1, len(A)):
        out += F[:, k : k + 1] * A[k]
    return out


def _number(factor: float) -> str:
    """Return a factor as Python, without a needless ".0"."""
    short = f"{factor:g}"
    return short if float(short) == factor else repr(factor)


def _is_sum(text: str, operators: str = "+") -> bool:
    """Return whether one of the operators stands outside of all brackets."""
    depth, inside_bars = 0, False
    for before, character in zip(" " + text, text, strict=False):
        depth += (character in "([") - (character in ")]")
        inside_bars ^= character in "|‖"
        if character in operators and before == " " and depth <= 0 and not inside_bars:
            return True
    return False
