"""Losses from losses: sums, positive multiples, affine maps of the scores, maxima, a ridge term.

What is made of row losses is again a row loss; as soon as a part couples rows, the whole does.  Either way
the arithmetic is the same: an operation takes (losses, subgradient) of its parts, the losses being one number
per row or one for all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.tolerances import KINK
from convexboost.losses._custom import as_loss, is_custom
from convexboost.losses._loss import Loss, RowLoss, is_positive
from convexboost.losses._objective import BoundLoss

Evaluation = tuple[Any, Array]
Link = Callable[[Array], Array]


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

    def link(self, parts: Sequence[Loss]) -> Link | None:
        """Return what the scores stand for, if they still do."""
        return None

    def sharp(self) -> Operation:
        """Return the operation without tolerance for ties."""
        return self


@dataclass(frozen=True)
class Sum(Operation):
    """l₁ + l₂ + … ."""

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

    def link(self, parts: Sequence[Loss]) -> Link | None:
        """Return that of the only part that is a loss; the others pull, but mean nothing."""
        losses = [part for part in parts if not isinstance(part, Coupling | Ridge)]
        return losses[0].find_link() if len(losses) == 1 else None


@dataclass(frozen=True)
class Multiple(Operation):
    """factor · l."""

    factor: float

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
        return f"{self.factor:g} ({inner})" if _is_sum(inner) else f"{self.factor:g} {inner}"

    def code(self, parts: Sequence[Loss]) -> str:
        """Factor * loss."""
        return f"{self.factor:g} * {parts[0]!r}"

    def link(self, parts: Sequence[Loss]) -> Link | None:
        """Nothing changes."""
        return parts[0].find_link()


@dataclass(frozen=True)
class Affine(Operation):
    """l(A f + b): a number A stands for that multiple of the identity."""

    A: Any
    b: Any

    def scores(self, F: Array) -> Array:
        """A f + b, row by row."""
        return (self.A * F if np.ndim(self.A) == 0 else F @ self.A.T) + self.b

    def through(self, F: Array, parts: Sequence[Callable[[Array], Evaluation]]) -> Evaluation:
        """Chain rule."""
        losses, G = parts[0](self.scores(F))
        return losses, self.A * G if np.ndim(self.A) == 0 else G @ self.A

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
        inner = f"({parts[0]!r})" if _is_sum(repr(parts[0])) else repr(parts[0])
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

    def link(self, parts: Sequence[Loss]) -> Link | None:
        """Map, then link."""
        link = parts[0].find_link()
        return None if link is None else lambda F: link(self.scores(F))


@dataclass(frozen=True)
class Maximum(Operation):
    """max(l₁, l₂, …): row by row for row losses, else of the functionals.  Ties share the subgradient."""

    kink: float = KINK  #: how close to the largest counts as a tie

    def through(self, F: Array, parts: Sequence[Callable[[Array], Evaluation]]) -> Evaluation:
        """Take the largest."""
        found = [part(F) for part in parts]
        losses = np.stack([np.asarray(part, float) for part, _ in found])
        top = losses.max(axis=0)
        # what the losses are computed from: the tolerance has their unit
        size = np.max([np.abs(g * F).sum(axis=-1) for _, g in found], axis=0)
        size = size if top.ndim else size.mean()
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


class _Expression:
    """What expressions share."""

    operation: Operation
    terms: tuple[Loss, ...]

    name: ClassVar[str] = "expression"

    def __repr__(self) -> str:
        return self.operation.code(self.terms)

    @property
    def task(self) -> str:
        """Return that of the terms."""
        return _task(self.terms)

    def formula(self, f: str = "f") -> str:
        """Return the formula of the whole."""
        return self.operation.formula(self.terms, f)

    def find_link(self) -> Link | None:
        """Ask the operation."""
        return self.operation.link(self.terms)


@dataclass(frozen=True, repr=False)
class RowExpression(_Expression, RowLoss):  # type: ignore[override]
    """An operation on row losses."""

    operation: Operation
    terms: tuple[RowLoss, ...]

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

    def best_shifts(self, F: Array, y: Any, weight: Array, leaf: Any, n_leaves: int) -> Array | None:
        """Return those of the loss that this is a multiple of; a search serves all other expressions."""
        if not isinstance(self.operation, Multiple):
            return None
        return self.terms[0].best_shifts(F, y, weight, leaf, n_leaves)

    def constants(self, n_outputs: int) -> Constants:
        """Combine those of the terms."""
        if isinstance(self.operation, Affine) and np.ndim(self.operation.A) == 2:
            n_outputs = self.operation.A.shape[0]
        return self.operation.constants([term.constants(n_outputs) for term in self.terms])


@dataclass(frozen=True, repr=False)
class Expression(_Expression, Loss):  # type: ignore[override]
    """An operation on losses of which some couple rows."""

    operation: Operation
    terms: tuple[Loss, ...]

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        """Return whether a term needs them."""
        return any(term.needs_groups for term in self.terms)

    @property
    def takes_groups(self) -> bool:
        """Return whether a term can use them."""
        return any(term.takes_groups for term in self.terms)

    @property
    def whole_groups(self) -> bool:  # type: ignore[override]
        """Return whether a term needs all rows of a group."""
        return any(term.whole_groups for term in self.terms)

    @property
    def reweights(self) -> bool:  # type: ignore[override]
        """Return whether a term does."""
        return any(term.reweights for term in self.terms)

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Bind every term; ridge terms stay symbolic."""
        ridge = sum(term.l2 for term in self.terms if isinstance(term, Ridge))
        terms = tuple(term for term in self.terms if not isinstance(term, Ridge))
        if len(terms) < len(self.terms):
            whole = terms[0] if len(terms) == 1 else _combine(self.operation, terms)
            return whole.bind(y, space, n_classes, groups).with_l2(ridge)
        losses = [t.bind(y, space, n_classes, groups) for t in terms if not isinstance(t, Coupling)]
        if not losses:
            raise ValueError(
                f"nothing in {self!r} has targets: couplings can be multiplied and added to a loss"
            )
        k = self.operation.n_outputs([loss.n_outputs for loss in losses])
        couplings = [t.couple(space, k, groups) for t in terms if isinstance(t, Coupling)]
        parts = (*losses, *couplings)
        if any(part.l2 > 0.0 for part in parts):
            raise ValueError(f"a ridge term can only be added at the end, got {self!r}")
        return Composite(self.operation, parts, space=space, n_outputs=k)


@dataclass(frozen=True, repr=False)
class Composite(BoundLoss):
    """An operation on functionals."""

    operation: Operation
    terms: tuple[BoundLoss, ...]

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """Evaluate the terms and combine."""
        return self.operation.through(F, [term.evaluate for term in self.terms])

    def loss_constants(self) -> Constants:
        """Combine those of the terms."""
        return self.operation.constants([term.loss_constants() for term in self.terms])

    def sharp(self) -> Self:
        """Let only equal values tie, in all terms."""
        return replace(self, operation=self.operation.sharp(), terms=tuple(t.sharp() for t in self.terms))

    @property
    def y(self) -> Any:
        """Return the targets of the first term that has any, to start at."""
        return next((term.y for term in self.terms if hasattr(term, "y")), None)


class Coupling(Loss):
    """A term without targets, to be added to a loss: it only knows rows and scores."""

    task = "any"

    @abstractmethod
    def couple(self, space: FunctionSpace, n_outputs: int, groups: Any) -> BoundLoss:
        """Fix the rows."""

    def bind(
        self, y: Any, space: FunctionSpace, n_classes: int | None = None, groups: Any = None
    ) -> BoundLoss:
        """Fix the rows; the number of outputs is that of the targets."""
        return self.couple(space, 1 if np.ndim(y) == 1 else np.shape(y)[1], groups)


@dataclass(frozen=True, repr=False)
class CouplingMultiple(Coupling):
    """factor · a coupling."""

    operation: Multiple
    coupling: Coupling

    name: ClassVar[str] = "multiple of a coupling"

    def __repr__(self) -> str:
        return self.operation.code([self.coupling])

    @property
    def takes_groups(self) -> bool:
        """Ask the coupling."""
        return self.coupling.takes_groups

    def formula(self, f: str = "f") -> str:
        """Write the factor in front."""
        return self.operation.formula([self.coupling], f)

    def couple(self, space: FunctionSpace, n_outputs: int, groups: Any) -> BoundLoss:
        """Fix the rows."""
        inner = self.coupling.couple(space, n_outputs, groups)
        return Composite(self.operation, (inner,), space=space, n_outputs=n_outputs)


@dataclass(frozen=True)
class Ridge(Loss):
    """(l2/2) ‖f − start‖², to be added to a loss: the same as the estimators' `l2`."""

    l2: float

    name: ClassVar[str] = "ridge"
    task: ClassVar[str] = "any"

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


def is_loss(thing: Any) -> bool:
    """Return whether it can be combined with losses."""
    return isinstance(thing, Loss) or is_custom(thing)


def add(*losses: Any) -> Loss:
    """Return the sum; nested sums become one."""
    terms: list[Loss] = []
    for loss in map(as_loss, losses):
        if isinstance(loss, RowExpression | Expression) and isinstance(loss.operation, Sum):
            terms.extend(loss.terms)
        else:
            terms.append(loss)
    return _combine(Sum(), tuple(terms))


def scale(loss: Loss, factor: Any) -> Loss:
    """Return a positive multiple."""
    if not isinstance(factor, Real):
        return NotImplemented
    factor = float(factor)
    if not 0 < factor < math.inf:
        raise ValueError(f"a loss times {factor:g} is not convex: the factor must be positive")
    if isinstance(loss, Ridge):
        return Ridge(factor * loss.l2)
    if isinstance(loss, Coupling):
        return CouplingMultiple(Multiple(factor), loss)
    if isinstance(loss, RowExpression | Expression):
        if isinstance(loss.operation, Sum):
            return add(*(scale(term, factor) for term in loss.terms))
        if isinstance(loss.operation, Multiple):
            return _combine(Multiple(factor * loss.operation.factor), loss.terms)
    return _combine(Multiple(factor), (loss,))


def affine(loss: Loss, A: Any, b: Any = 0.0) -> RowExpression | Expression:
    """l(A f + b)."""
    A, b = (np.asarray(x, float) for x in (A, b))
    for name, value, dimensions in (("A", A, (0, 2)), ("b", b, (0, 1))):
        if value.ndim not in dimensions or not np.isfinite(value).all() or (name == "A" and not value.any()):
            wanted = "a number other than 0 or a matrix" if name == "A" else "a number or a vector"
            raise ValueError(f"`{name}` must be {wanted}, got {value.tolist()}")
    A, b = (float(x) if x.ndim == 0 else x for x in (A, b))
    return _combine(Affine(A, b), (loss,))


def maximum(*losses: Any) -> RowExpression | Expression:
    """max(l₁, l₂, …): of the losses of each row, or of the functionals where some couple rows."""
    if len(losses) < 2:
        raise ValueError(f"`maximum` needs two losses at least, got {losses!r}")
    return _combine(Maximum(), tuple(map(as_loss, losses)))


def _combine(operation: Operation, terms: tuple[Loss, ...]) -> RowExpression | Expression:
    if not isinstance(operation, Sum) and any(isinstance(term, Ridge) for term in terms):
        raise ValueError(f"a ridge term can only be added, got {operation.code(terms)}")
    _task(terms)
    if all(isinstance(term, RowLoss) for term in terms):
        return RowExpression(operation, terms)  # type: ignore[arg-type]
    return Expression(operation, terms)


def _task(terms: Sequence[Loss]) -> str:
    tasks = dict.fromkeys(term.task for term in terms if term.task != "any")
    if len(tasks) > 1:
        raise ValueError(f"losses of one task can be combined, got {' and '.join(tasks)}")
    return next(iter(tasks), "any")


def _total(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value for value in values if value is not None)


def _is_sum(text: str) -> bool:
    """Return whether there is a + outside of all brackets."""
    depth = 0
    for before, character in zip(" " + text, text, strict=False):
        depth += (character in "([|") - (character in ")]|")
        if character == "+" and before == " " and depth <= 0:
            return True
    return False
