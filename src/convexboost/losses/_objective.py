"""A loss bound to targets: a convex functional of the scores of all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief
from convexboost.core.tolerances import SUM_BLOCK, TIE, blocks
from convexboost.kernels import parallel
from convexboost.kernels.leaves import add_leaf_sums, leaf_tables
from convexboost.kernels.lookup import add_lookup
from convexboost.losses._leaves import gradient_sums, leaf_means, leaf_sums
from convexboost.losses._pieces import Pieces
from convexboost.losses._reach import lowest, rounded, usual_gap, within_reach
from convexboost.losses._refit import PRIOR_ROWS, Place, damped_newton, proximal_step, roots
from convexboost.losses._scores import LocalScores, Lookup
from convexboost.losses._start import minimise

if TYPE_CHECKING:
    from convexboost.losses._loss import RowLoss


@dataclass(frozen=True)
class BoundLoss(ABC):
    """R[F] + (l2/2) ‖F − start‖², on the scores F of all rows."""

    space: FunctionSpace = field(kw_only=True)
    n_outputs: int = field(kw_only=True)
    l2: float = field(default=0.0, kw_only=True)
    #: Gradients are those of the Moreau envelope, this many Polyak steps wide; 0: of R itself.
    envelope: float = field(default=0.0, kw_only=True)
    #: Called with F, R[F], its subgradient and `envelope` after every evaluation in training.
    observer: Callable[[Array, float, Gradient, float], None] | None = field(
        default=None, kw_only=True, compare=False, repr=False
    )

    __repr__ = brief

    @abstractmethod
    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient in L²(P), without the ridge term."""

    @abstractmethod
    def loss_constants(self) -> Constants:
        """Return what is known of R without the ridge term."""

    @cached_property
    def constants(self) -> Constants:
        """Return what is known of R, the ridge term included."""
        constants = self.loss_constants()
        if self.l2 == 0.0:
            return constants
        return replace(
            constants,
            lipschitz=None,
            smoothness=None if constants.smoothness is None else constants.smoothness + self.l2,
            strong_convexity=constants.strong_convexity + self.l2,
        )

    def with_l2(self, l2: float) -> Self:
        """Set the ridge term: it penalises the outputs at the training points, not coefficients."""
        return replace(self, l2=l2)

    def with_envelope(self, envelope: float) -> Self:
        """Take gradients of the Moreau envelope min_G R[G] + ‖G − F‖²/(2 size), which is smooth."""
        if envelope > 0.0 and not self.has_prox:
            raise ValueError(f"`envelope`={envelope!r} needs a loss with a `prox`, and this one has none")
        return replace(self, envelope=envelope)

    @cached_property
    def has_prox(self) -> bool:
        """Return whether `prox` has a formula."""
        return self.prox(np.zeros((self.space.n_samples, self.n_outputs)), 1.0) is not None

    def parts(self) -> Iterator[tuple[slice, BoundLoss]]:
        """Yield rows and their share in R: temporary arrays stay small where rows are not coupled."""
        yield slice(None), self

    @property
    def thread_safe(self) -> bool:
        """Return whether several threads may ask parts of it at once."""
        return False

    def start(self) -> Array:
        """Return the best constant function."""
        return self.search_start()

    def search_start(self) -> Array:
        """Minimise R over constant functions by a search."""
        sharp = self.sharp()

        def risk(c: Array) -> tuple[float, Array]:
            value, G = sharp.evaluate(np.tile(c, (self.space.n_samples, 1)))
            slope, size = (np.array([self.space.mean(column) for column in A.T]) for A in (G, np.abs(G)))
            # Where R does not depend on the constant, the slope is rounding: it must not be followed.
            return value, np.where(np.abs(slope) <= TIE * size, 0.0, slope)

        return minimise(risk, self.n_outputs, getattr(self, "y", None))

    def sharp(self) -> Self:
        """Return the functional without tolerance for ties between its parts.

        The search for a kink would end on the edge of the tolerance, and rounding would decide about the
        first subgradient.
        """
        return self

    def scores(self, inputs: Any, start: Array, offset: Array | None = None) -> LocalScores:
        """Place the objective at the constant `start`, plus a fixed `offset` per row."""
        return LocalScores(self, inputs, start[None, :] if offset is None else start + offset)

    def value(self, F: Array) -> float:
        """R[F] without the ridge term."""
        return self.evaluate(F)[0]

    def prox(self, F: Array, size: float) -> Array | None:
        """Minimise R + ‖· − F‖²/(2 size), where that has a formula."""
        return None

    def support(self, U: Array, F: Array) -> tuple[Array, Array] | None:
        """Return the `support` of the rows, where rows are not coupled and there is a formula."""
        return None

    def pieces(self) -> Pieces | None:
        """Return R, without the ridge term, as a piecewise linear functional, if it is one."""
        return None

    @cached_property
    def floor(self) -> float:
        """Return the declared minimum of R, else the smallest value that a search over all scores finds."""
        minimum = self.constants.minimum
        return self.search_floor() if minimum is None else minimum

    def search_floor(self) -> float:
        """Return about the smallest value of R for any scores."""
        shape, targets = (self.space.n_samples, self.n_outputs), np.asarray(getattr(self, "y", 0))
        return float(lowest(self.evaluate, shape, targets))

    def gap(self, F: Array, value: float, gradient: Gradient, n_threads: int) -> float:
        """Return how much of R[F] = `value`, without the ridge term, can be gained."""
        if self.constants.minimum is not None:
            return max(value - self.floor, 0.0)
        if value > self.floor or gradient.norm == 0.0:
            return rounded(max(value - self.floor, 0.0))
        # The search for the floor, which moves each score on its own, did not get as far as this.
        return usual_gap(gradient.norm, lambda size: self.slopes_left(F, gradient, size, n_threads))

    def gap_within_reach(self, F: Array, value: float, gradient: Gradient, n_threads: int) -> float:
        """Return the gap without what belongs to a few outliers, where rows can be told apart."""
        return self.gap(F, value, gradient, n_threads)

    def slopes_left(self, F: Array, gradient: Gradient, size: float, n_threads: int) -> Array:
        """Return how much of the slope is left after a step of `size` along −∇."""
        after = self.space.inner(self.evaluate(F - size * gradient.values)[1], gradient.values)
        return np.array([max(after, 0.0)])

    def curvature(self, base: Array) -> float:
        """Return how R bends at the base: one over Polyak's step, ‖∇‖²/(R − floor), free of units."""
        F = base.copy()
        value, gradient = self.advance(F, None, None, 1)
        return gradient.norm**2 / max(self.gap_within_reach(F, value, gradient, 1), 1e-300) or 1.0

    def best_shifts(self, at: Place, leaf: Any, n_leaves: int) -> Array:
        """Return what to add in each leaf to lower R, by a proximal step: the leaves are coupled."""
        mass = np.bincount(leaf, self.space.weight, n_leaves).astype(float, copy=False)

        def risk(shifts: Array) -> tuple[float, Array]:
            F = at.F + shifts[leaf]
            value, G = self.evaluate(F)
            value += self.l2 / 2 * self.space.norm(F - at.base) ** 2
            return value, leaf_means(G + self.l2 * (F - at.base), self.space.weight, leaf, n_leaves)

        return proximal_step(risk, mass, self.n_outputs, 1.0 / at.curvature)

    def best_shift(self, F: Array, leaf: Any, leaves: Any) -> Array | None:
        """Return what to add to all of some leaves to make R smallest; None: no formula."""
        return None

    def advance(
        self, F: Array, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[float, Gradient]:
        """F += table[codes]; R[F] and a subgradient, without the ridge term."""
        if lookup is not None:
            add_lookup(F, *lookup, 0, len(F))
        value, G = self.evaluate(F)
        return value, Gradient(G, self.space)


@dataclass(frozen=True, repr=False)
class Pointwise(BoundLoss):
    """R[F] = Σ_n p_n l(F_n, y_n)."""

    loss: RowLoss
    y: Any

    def loss_constants(self) -> Constants:
        """Return those of the loss."""
        return self.loss.constants(self.n_outputs)

    def part(self, rows: slice) -> Pointwise:
        """Return the share of some rows in R."""
        return replace(self, y=self.y[rows], space=self.space.part(rows))

    def parts(self) -> Iterator[tuple[slice, BoundLoss]]:
        """Cut the rows into blocks."""
        return ((rows, self.part(rows)) for rows in blocks(self.space.n_samples, self.n_outputs))

    @property
    def thread_safe(self) -> bool:
        """Return the loss's word."""
        return self.loss.thread_safe

    def start(self) -> Array:
        """Return the loss's own best constant."""
        return self.loss.best_constant(self.y, self.n_outputs, self.space)

    def losses(self, F: Array) -> tuple[Array, Array]:
        """Return the row losses and row-wise subgradients."""
        return self.loss.evaluate(F, self.y)

    def value(self, F: Array) -> float:
        """R[F] without the ridge term."""
        shares = ((self.part(rows), F[rows]) for rows in blocks(*F.shape))
        return sum(part.space.mean(part.loss.value(F, part.y)) for part, F in shares)

    def search_floor(self) -> float:
        """Add up the smallest losses of the rows."""
        return self.space.mean(self.lowest_losses())

    def lowest_losses(self) -> Array:
        """Return about the smallest loss of each row for any scores."""
        # Rows with the same targets have the same losses.
        targets, inverse = np.unique(self.y, return_inverse=True, axis=0)
        found = np.empty(len(targets))
        for rows in blocks(len(targets), self.n_outputs):
            y = targets[rows]
            found[rows] = lowest(partial(self.loss.evaluate, y=y), (len(y), self.n_outputs), y)
        return found[inverse.ravel()]

    def gap_within_reach(self, F: Array, value: float, gradient: Gradient, n_threads: int) -> float:
        """Return the gap without what belongs to a few outliers."""
        gap = self.gap(F, value, gradient, n_threads)
        return within_reach(gap, gradient.norm, lambda size: self.slopes_left(F, gradient, size, n_threads))

    def slopes_left(self, F: Array, gradient: Gradient, size: float, n_threads: int) -> Array:
        """Return the mean of what is left of the rows' slopes after a step of `size`, output by output."""
        parts = list(self.parts())
        found = np.zeros((len(parts), self.n_outputs))

        def task(first: int, last: int) -> None:
            for b in range(first, last):
                rows, part = parts[b]
                G = gradient.rows(rows)
                after = part.evaluate(F[rows] - size * G)[1] if size > 0.0 else G
                found[b] = np.einsum("n,nk->k", part.space.weight, (after * np.sign(G)).clip(0.0))

        parallel.run(task, len(parts), 20.0 * F.size, n_threads if self.thread_safe else 1)
        return found.sum(axis=0)

    def prox(self, F: Array, size: float) -> Array | None:
        """Return the loss's `prox` at F."""
        return self.loss.prox(F, self.y, size)

    def support(self, U: Array, F: Array) -> tuple[Array, Array] | None:
        """Return the loss's `support`."""
        return self.loss.support(U, F, self.y)

    def pieces(self) -> Pieces | None:
        """Return the loss's pieces."""
        return self.loss.pieces(self.y, self.n_outputs, self.space)

    def curvature(self, base: Array) -> float:
        """Return the mean second derivative at the base, where the loss has one."""
        if not self._bends:
            return super().curvature(base)
        found = self.loss.curvatures(self.y, self.losses(base.copy())[1])
        assert found is not None
        return float(self.space.weight @ found.mean(axis=1))

    def best_shifts(self, at: Place, leaf: Any, n_leaves: int) -> Array:
        """Ask the loss for a formula (with a ridge term, a direction); else a Newton step, or a search.

        In both 0 counts like `PRIOR_ROWS` rows that bend as R does.  The search is along the leaf's gradient,
        or along the direction found for that of an envelope.
        """
        weight, prior = self.space.weight, PRIOR_ROWS * self.space.row * at.curvature
        formula = self.loss.best_shifts(at.F, self.y, weight, leaf, n_leaves)
        if formula is not None and self.l2 == 0.0:
            return formula
        here = at.gradient or self.advance(at.F.copy(), None, None, at.n_threads)[1]
        if formula is None and self._bends:
            first_order, second = self._second_order(at, here, leaf, n_leaves)
            return damped_newton(first_order, second, prior, self.loss.couples_outputs)
        trial, moved, last = at.F.copy(), np.zeros((n_leaves, self.n_outputs)), here

        def sums(gradient: Gradient, F: Array) -> Array:
            """Return the sums of a gradient at F in the leaves, that of the ridge term included."""
            found = gradient_sums(gradient, leaf, n_leaves)
            if self.l2 > 0.0:
                found[:, 1:] += self.l2 * leaf_sums(F - at.base, weight, leaf, n_leaves)[:, 1:]
            return found

        def slope(shifts: Array) -> Array:
            """Move the trial scores there, in the pass that evaluates the loss."""
            nonlocal last
            last = self.advance(trial, (leaf, shifts - moved), last, at.n_threads)[1]
            moved[:] = shifts
            return sums(last, trial)[:, 1:] + prior * shifts

        def search(toward: Array, first: float, apart: bool = False) -> Array:
            """Return the best multiple of a direction in each leaf, or in each leaf and output."""

            def along(slopes: Array) -> Array:
                return (toward * slopes).ravel() if apart else (toward * slopes).sum(axis=1)

            def slopes(steps: Array) -> Array:
                return along(slope(steps.reshape(n_leaves, -1) * toward))

            return roots(slopes, along(found[:, 1:]), first).reshape(n_leaves, -1) * toward

        found = sums(here, at.F)
        if formula is not None:
            prior = 0.0  # what a formula gives is not in need of it
            # Losses with a formula are sums over the outputs, and in each of them loss and ridge term
            # together are smallest between the formula and where the ridge term alone is.
            ridge = leaf_means(at.base - at.F, weight, leaf, n_leaves)
            ends = np.minimum(formula, ridge), np.maximum(formula, ridge)
            return search(np.where(found[:, 1:] > 0.0, *ends), 1.0, apart=True)
        toward, first = -found[:, 1:] / np.maximum(found[:, :1], 1e-300), 1.0 / at.curvature
        if self.envelope > 0.0:  # its gradient knows more of the kinks than a subgradient
            toward = -at.values
        if self.n_outputs > 1 and self.y.dtype.kind == "f":
            # Outputs with targets of their own can be far from them in different units; as a rule that is
            # the minimum, and the search below sees to it that nothing rises if it is not.
            toward, first = search(toward, first, apart=True), 1.0
        return search(toward, first)

    @property
    def _bends(self) -> bool:
        """Return whether the loss has second derivatives of use."""
        return self.loss.curvatures(self.y[:1], np.zeros((1, self.n_outputs))) is not None

    def _second_order(self, at: Place, here: Gradient, leaf: Any, n_leaves: int) -> tuple[Array, Array]:
        """Return the sums of first and of second derivatives in each leaf.

        Always in the same blocks of rows, so that the number of threads makes no difference.
        """
        G = here.values
        bounds = range(0, len(G), SUM_BLOCK)
        parts = [[leaf_tables(n_leaves, self.n_outputs) for _ in range(2)] for _ in bounds]

        def task(first: int, last: int) -> None:
            for b in range(first, last):
                rows = slice(bounds[b], bounds[b] + SUM_BLOCK)
                first_order, second = G[rows], self.loss.curvatures(self.y[rows], G[rows])
                assert second is not None
                if self.l2 > 0.0:
                    first_order = first_order + self.l2 * (at.F[rows] - at.base[rows])
                    second = second + self.l2
                for order, found in enumerate((first_order, second)):
                    add_leaf_sums(leaf[rows], self.space.weight[rows], found, parts[b][order])

        parallel.run(task, len(bounds), 8.0 * G.size, at.n_threads)
        first, second = np.sum(parts, axis=(0, 2))[:, :, 1:]
        return first, second

    def best_shift(self, F: Array, leaf: Any, leaves: Any) -> Array | None:
        """Ask the loss, which sees their rows only."""
        if self.l2 > 0.0:
            return None
        rows = np.flatnonzero(np.isin(leaf, leaves))
        one = np.zeros(len(rows), np.int64)
        found = self.loss.best_shifts(F[rows], self.y[rows], self.space.weight[rows], one, 1)
        return None if found is None else found[0]

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """R[F] and a subgradient, without the ridge term."""
        value, gradient = self.advance(F, None, None, 1)
        return value, gradient.values

    def advance(
        self, F: Array, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[float, Gradient]:
        """F += table[codes]; R[F] and a subgradient, without the ridge term."""
        return self.loss.advance(F, self.y, self.space, lookup, before, n_threads)
