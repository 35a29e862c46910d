"""A loss bound to targets: the objective, a convex function of the scores of all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from convexboost.core.cached import cached_property
from convexboost.core.communicator import distinct
from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.sums import ExactSum
from convexboost.core.text import brief
from convexboost.core.tolerances import TIE, blocks
from convexboost.kernels import parallel
from convexboost.kernels.lookup import add_lookup
from convexboost.losses._pieces import Pieces
from convexboost.losses._reach import lowest, rounded, usual_gap, within_reach
from convexboost.losses._scores import LocalScores, Lookup
from convexboost.losses._start import minimise
from convexboost.losses._users import is_users, protect

if TYPE_CHECKING:
    from convexboost.losses._loss import Loss, RowLoss

#: Called with the objective, the scores, R and the subgradient each time that scores are evaluated.
Observer = Callable[["BoundLoss", Array, float, Gradient], None]


@dataclass(frozen=True)
class BoundLoss(ABC):
    """R[F] + (l2/2) ‖F − start‖², on the scores F of all rows.

    All methods but `constants` and `scores` are about R alone, without the ridge term.
    """

    space: FunctionSpace = field(kw_only=True)
    n_outputs: int = field(kw_only=True)
    l2: float = field(default=0.0, kw_only=True)
    #: Gradients are those of the Moreau envelope, this many Polyak steps wide; 0: of R itself.
    envelope: float = field(default=0.0, kw_only=True)
    observer: Observer | None = field(default=None, kw_only=True, compare=False)

    __repr__ = brief

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        protect(cls, ("evaluate", "value", "partials", "prox"))

    # -- what it declares ------------------------------------------------------------------------------

    #: The objectives it is made of.
    terms: ClassVar[tuple[BoundLoss, ...]] = ()
    #: Whether R depends on the weights of the rows.
    uses_weights: ClassVar[bool] = True

    @property
    def source(self) -> Loss | None:
        """Return the loss that was bound; None where several were."""
        return None

    @property
    def extras(self) -> dict[str, Any]:
        """Return what a user's loss is given beyond scores and targets."""
        return {}

    @property
    def by_rows(self) -> Pointwise | None:
        """Return it as a mean of losses of single rows; None where rows are coupled."""
        return None

    @property
    def targets(self) -> Any:
        """Return the targets; None where it has none."""
        return next((term.targets for term in self.terms if term.targets is not None), None)

    @property
    def has_classes(self) -> bool:
        """Return whether the targets are class numbers."""
        return any(term.has_classes for term in self.terms)

    @property
    def is_custom(self) -> bool:
        """Return whether a user's code takes part."""
        return is_users(type(self)) or any(term.is_custom for term in self.terms)

    @property
    def has_prox(self) -> bool:
        """Return whether there is a formula for `prox`."""
        return self.by_rows is not None and self.by_rows.loss.has_prox

    @property
    def has_support(self) -> bool:
        """Return whether there is a formula for `support`."""
        return self.by_rows is not None and self.by_rows.loss.has_support

    @property
    def has_pieces(self) -> bool:
        """Return whether R is piecewise linear, so that there are `pieces`."""
        return self.by_rows is not None and self.by_rows.loss.has_pieces

    @property
    def recalibrates(self) -> bool:
        """Return whether rows that were held out correct the constant of a model, by `best_shift`."""
        loss = None if self.by_rows is None else self.by_rows.loss
        return loss is not None and loss.recalibrates and loss.has_best_shifts

    @property
    def thread_safe(self) -> bool:
        """Return whether several threads may evaluate `parts` of it at once."""
        return self.by_rows is not None and self.by_rows.loss.thread_safe

    @abstractmethod
    def loss_constants(self) -> Constants:
        """Return what is known of R."""

    @cached_property
    def constants(self) -> Constants:
        """Return what is known of R and the ridge term together."""
        constants = self.loss_constants()
        if self.l2 == 0.0:
            return constants
        return replace(
            constants,
            lipschitz=None,
            smoothness=None if constants.smoothness is None else constants.smoothness + self.l2,
            strong_convexity=constants.strong_convexity + self.l2,
        )

    # -- variants --------------------------------------------------------------------------------------

    def with_l2(self, l2: float) -> Self:
        """Set the ridge term: it penalises the outputs at the training points, not coefficients."""
        return replace(self, l2=l2)

    def with_envelope(self, envelope: float) -> Self:
        """Take gradients of the Moreau envelope min_G R[G] + ‖G − F‖²/(2 size), which is smooth."""
        if envelope > 0.0 and not self.has_prox:
            raise ValueError(f"`envelope`={envelope!r} needs a loss with a `prox`, and this one has none")
        return replace(self, envelope=envelope)

    def sharp(self) -> Self:
        """Return the objective without tolerance for ties between its parts.

        A search for a kink would end at the edge of the tolerance, and rounding would choose the first
        subgradient.
        """
        return self

    def parts(self) -> Iterator[tuple[slice, BoundLoss]]:
        """Yield blocks of rows and their share in R; a single one where rows are coupled."""
        yield slice(None), self

    def scores(self, inputs: Any, start: Array, offset: Array | None = None) -> LocalScores:
        """Place the objective at the constant `start`, plus a fixed `offset` per row."""
        return LocalScores(self, inputs, start[None, :] if offset is None else start + offset)

    # -- R ---------------------------------------------------------------------------------------------

    @abstractmethod
    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient in L²(P)."""

    def value(self, F: Array) -> float:
        """R[F]."""
        return self.evaluate(F)[0]

    def value_at(self, scores: Callable[[slice], Array]) -> float:
        """R of the scores that a function returns for some rows."""
        return self.value(scores(slice(None)))

    def partials(self, F: Array) -> tuple[float, Array]:
        """R[F] and the ordinary partial derivatives ∂R/∂F."""
        value, G = self.evaluate(F)
        return value, G * self.space.weight[:, None]

    def advance(
        self, F: Array, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[float, Gradient]:
        """F += table[codes]; R[F] and a subgradient.  `before` is the last one where that is kept."""
        if lookup is not None:
            add_lookup(F, *lookup, 0, len(F))
        value, G = self.evaluate(F)
        return value, Gradient(G, self.space)

    def prox(self, F: Array, size: float) -> Array:
        """argmin_G R[G] + ‖G − F‖²/(2 size), where `has_prox`."""
        raise NotImplementedError("there is no formula for the prox")

    def support(self, U: Array, F: Array) -> tuple[Array, Array]:
        """Return `RowLoss.support` of the rows, where `has_support`."""
        raise NotImplementedError("there is no formula for the conjugate")

    def pieces(self) -> Pieces:
        """Return R as a piecewise linear function, where `has_pieces`."""
        raise NotImplementedError("the objective is not piecewise linear")

    def best_shift(self, F: Array) -> Array:
        """Return the constant to add to all scores that lowers R most, where it `recalibrates`."""
        raise NotImplementedError("there is no formula for the best shift")

    # -- its smallest values ---------------------------------------------------------------------------

    def start(self) -> Array:
        """Return the best constant function."""
        return self.search_start()

    def search_start(self) -> Array:
        """Minimise R over constant functions by a search."""
        sharp = self.sharp()

        def risk(c: Array) -> tuple[float, Array]:
            value, G = sharp.evaluate(np.tile(c, (self.space.n_samples, 1)))
            slope, size = (self.space.means(A) for A in (G, np.abs(G)))
            # Where R does not depend on the constant, the slope is rounding: it must not be followed.
            return value, np.where(np.abs(slope) <= TIE * size, 0.0, slope)

        return minimise(risk, self.n_outputs, None if self.has_classes else self.targets)

    @cached_property
    def floor(self) -> float:
        """Return the declared minimum of R, else the smallest value that a search over all scores finds."""
        minimum = self.constants.minimum
        return self.search_floor() if minimum is None else minimum

    def search_floor(self) -> float:
        """Return about the smallest value of R for any scores."""
        shape = (self.space.n_samples, self.n_outputs)
        return float(lowest(self.evaluate, shape, None if self.has_classes else self.targets))

    # -- how far it is to them -------------------------------------------------------------------------

    def gap(self, F: Array, value: float, gradient: Gradient, n_threads: int) -> float:
        """Return how much of R[F] = `value` can be gained."""
        if self.constants.minimum is not None:
            return max(value - self.floor, 0.0)
        if value > self.floor or gradient.norm == 0.0:
            return rounded(max(value - self.floor, 0.0))
        # The search for the floor, which moves each score on its own, did not get as far as this.
        return usual_gap(gradient.norm, lambda size: self.slopes_left(F, gradient, size, n_threads))

    def gap_within_reach(self, F: Array, value: float, gradient: Gradient, n_threads: int) -> float:
        """Return the gap without the part of a few outliers, where rows are not coupled."""
        return self.gap(F, value, gradient, n_threads)

    def slopes_left(self, F: Array, gradient: Gradient, size: float, n_threads: int) -> Array:
        """Return how much of the slope is left after a step of `size` along −∇."""
        after = self.space.inner(self.evaluate(F - size * gradient.values)[1], gradient.values)
        return np.array([max(after, 0.0)])

    def curvature(self, base: Array) -> float:
        """Return a second derivative of R at the base: one over Polyak's step, ‖∇‖²/(R − floor)."""
        F = base.copy()
        value, gradient = self.advance(F, None, None, 1)
        return gradient.norm**2 / max(self.gap_within_reach(F, value, gradient, 1), 1e-300) or 1.0


@dataclass(frozen=True, repr=False)
class Pointwise(BoundLoss):
    """R[F] = Σ_n p_n l(F_n, y_n)."""

    loss: RowLoss
    y: Any
    has_classes: bool = field(default=False, kw_only=True)

    @property
    def source(self) -> RowLoss:
        """Return the loss."""
        return self.loss

    @property
    def by_rows(self) -> Pointwise:
        """Return itself."""
        return self

    @property
    def targets(self) -> Any:
        """Return the targets."""
        return self.y

    @property
    def is_custom(self) -> bool:
        """Return whether a user's code takes part."""
        return self.loss.is_custom

    def loss_constants(self) -> Constants:
        """Return those of the loss."""
        return self.loss.constants(self.n_outputs)

    def part(self, rows: Any) -> Pointwise:
        """Return the share of some of the rows here in R."""
        space = self.space.part(rows)
        return self if space is self.space else replace(self, y=self.y[rows], space=space)

    def parts(self) -> Iterator[tuple[slice, Pointwise]]:
        """Cut the rows that are here into blocks."""
        return ((rows, self.part(rows)) for rows in blocks(self.space.n_samples, self.n_outputs))

    def losses(self, F: Array) -> tuple[Array, Array]:
        """Return the row losses and row-wise subgradients."""
        return self.loss.evaluate(F, self.y)

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient."""
        value, gradient = self.advance(F, None, None, 1)
        return value, gradient.values

    def value(self, F: Array) -> float:
        """R[F]."""
        return self.value_at(lambda rows: F[rows])

    def value_at(self, scores: Callable[[slice], Array]) -> float:
        """R, from one block of rows after the other: temporary arrays stay small."""
        parts = ((part, scores(rows)) for rows, part in self.parts())
        return float(self.space.added(part.space.exact_mean(part.loss.value(F, part.y)) for part, F in parts))

    def advance(
        self, F: Array, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[float, Gradient]:
        """F += table[codes]; R[F] and a subgradient."""
        return self.loss.advance(F, self.y, self.space, lookup, before, n_threads)

    def prox(self, F: Array, size: float) -> Array:
        """Return the loss's `prox` at F."""
        return self.loss.prox(F, self.y, size)

    def support(self, U: Array, F: Array) -> tuple[Array, Array]:
        """Return the loss's `support`."""
        return self.loss.support(U, F, self.y)

    def pieces(self) -> Pieces:
        """Return the loss's pieces."""
        return self.loss.pieces(self.y, self.n_outputs, self.space)

    def best_shift(self, F: Array) -> Array:
        """Return the loss's best shift of all rows."""
        one = np.zeros(len(F), np.int64)
        return self.loss.best_shifts(F, self.y, self.space, one, 1)[0]

    def start(self) -> Array:
        """Return the best constant, by the loss's formula if it has one."""
        if self.loss.has_best_constant:
            return self.loss.best_constant(self.y, self.n_outputs, self.space)
        return self.search_start()

    def search_start(self) -> Array:
        """Search with one row of each target: rows with the same targets have the same losses."""
        targets, number = distinct(self.y, self.space.communicator)
        space = FunctionSpace(self.space.masses(number, len(targets)))
        return super(Pointwise, replace(self, y=targets, space=space)).search_start()

    def search_floor(self) -> float:
        """Add up the smallest losses of the rows."""
        return self.space.mean(self.lowest_losses())

    def lowest_losses(self) -> Array:
        """Return about the smallest loss of each row for any scores."""
        targets, inverse = np.unique(self.y, return_inverse=True, axis=0)
        found = np.empty(len(targets))
        for rows in blocks(len(targets), self.n_outputs):
            y = targets[rows]
            evaluate, shape = partial(self.loss.evaluate, y=y), (len(y), self.n_outputs)
            found[rows] = lowest(evaluate, shape, None if self.has_classes else y)
        return found[inverse.ravel()]

    def gap_within_reach(self, F: Array, value: float, gradient: Gradient, n_threads: int) -> float:
        """Return the gap without the part of a few outliers."""
        gap = self.gap(F, value, gradient, n_threads)
        return within_reach(gap, gradient.norm, lambda size: self.slopes_left(F, gradient, size, n_threads))

    def slopes_left(self, F: Array, gradient: Gradient, size: float, n_threads: int) -> Array:
        """Return the mean of what is left of the rows' slopes after a step of `size`, output by output."""
        parts = list(self.parts())
        found: list[ExactSum] = []

        def task(first: int, last: int) -> None:
            for b in range(first, last):
                rows, part = parts[b]
                G = gradient.rows(rows)
                after = part.evaluate(F[rows] - size * G)[1] if size > 0.0 else G
                found.append(part.space.exact_mean((after * np.sign(G)).clip(0.0)))

        parallel.run(task, len(parts), 20.0 * F.size, n_threads if self.thread_safe else 1)
        return self.space.added(found).columns()

    def curvatures(self, G: Array, n_threads: int) -> Array:
        """Return the second derivatives of each row and output, from the gradient."""
        C = np.empty_like(G)

        def task(start: int, stop: int) -> None:
            for block in blocks(stop - start, G.shape[1]):
                rows = slice(start + block.start, start + block.stop)
                C[rows] = self.loss.curvatures(self.y[rows], G[rows])

        parallel.run(task, len(G), 8.0 * G.size, n_threads)
        return C

    def curvature(self, base: Array) -> float:
        """Return the mean second derivative at the base, where the loss has one."""
        if not self.loss.has_curvatures:
            return super().curvature(base)
        found = self.loss.curvatures(self.y, self.losses(base.copy())[1])
        return self.space.mean(found.mean(axis=1))
