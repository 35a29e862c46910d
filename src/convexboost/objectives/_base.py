"""From a loss to an objective: what a convex functional is, and how row losses become one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core import (
    KINK,
    TIE,
    Array,
    Constants,
    FunctionSpace,
    Gradient,
    PairGradient,
    blocks,
    brief,
)
from convexboost.kernels import parallel, quantiles
from convexboost.kernels.histogram import add_leaf_sums, add_lookup, add_pair_sums, leaf_tables
from convexboost.objectives._reach import lowest, rounded, usual_gap, within_reach
from convexboost.objectives._refit import PRIOR_ROWS, Place, damped_newton, proximal_step, roots
from convexboost.objectives._scores import LocalScores, Lookup
from convexboost.objectives._start import minimise


@dataclass(frozen=True)
class Pieces:
    """R[F] = constant + ⟨linear, F⟩ + Σ_i weight_i max of the pieces m with group_m = i.

    Piece m is slopes_m · F + constants_m, F being the scores row after row.  All of it is in ordinary sums:
    the sample weights are in `linear` and `weight`.
    """

    constant: float
    linear: Array  #: (n_samples, n_outputs)
    slopes: Any  #: sparse, (n_pieces, n_samples · n_outputs)
    constants: Array
    group: NDArray[np.int64]
    weight: Array  #: (n_groups,)

    __repr__ = brief

    @classmethod
    def above(cls, y: Array, low: float, high: float, space: FunctionSpace) -> Pieces:
        """Σ_k max(low (f_k − y_k), high (f_k − y_k)): linear, plus what lies above the target."""
        n, size = space.n_samples, y.size
        below = np.repeat(low * space.weight[:, None], y.shape[1], axis=1)
        return cls(
            constant=-float(np.sum(below * y)),
            linear=below,
            slopes=sp.vstack([sp.eye_array(size), sp.csr_array((size, size))], "csr"),
            constants=np.concatenate([-y.ravel(), np.zeros(size)]),
            group=np.tile(np.arange(size), 2),
            weight=np.repeat((high - low) * space.weight, size // n),
        )


@dataclass(frozen=True)
class Groups:
    """Which rows belong together: queries, groups of people, the parts of one structure, nodes of a graph."""

    labels: NDArray[Any]  #: one per row
    weight: Array | None = None  #: one per row, the same within a group; None: 1

    __repr__ = brief

    @classmethod
    def of(cls, groups: Any) -> Groups | None:
        """Take labels as they are."""
        return groups if groups is None or isinstance(groups, Groups) else cls(np.asarray(groups))

    @classmethod
    def needed(cls, groups: Any, loss: Loss, n_rows: int) -> Groups:
        """Insist on a label for every row."""
        found = cls.of(groups)
        if found is None:
            raise ValueError(f"`groups` are needed by the loss {loss.name}: one label per row")
        if len(found.labels) != n_rows:
            raise ValueError(f"`groups` must have {n_rows} rows like `y`, got {len(found.labels)}")
        return found

    def __getitem__(self, rows: Any) -> Groups:
        return Groups(self.labels[rows], None if self.weight is None else self.weight[rows])

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Return 0, 1, … instead of the labels."""
        return np.unique(self.labels, return_inverse=True)[1].astype(np.int64, copy=False)


def is_positive(number: Any) -> bool:
    """Return whether a parameter is a positive, finite number."""
    return isinstance(number, Real) and 0 < float(number) < math.inf


#: Rows whose sums are kept apart.
ROWS = 16384


class Loss(ABC):
    """What a user names or gives: it meets targets and becomes a convex functional of the scores.

    Losses can be added, multiplied by positive numbers, composed with affine maps of the scores
    (`loss.affine(A, b)`), and combined by `maximum`; they print as formulas.
    """

    name: ClassVar[str]
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
    ) -> Functional:
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
        from convexboost.objectives import _calculus

        return _calculus.add(self, other) if _calculus.is_loss(other) else NotImplemented

    def __radd__(self, other: Any) -> Loss:
        from convexboost.objectives import _calculus

        return _calculus.add(other, self) if _calculus.is_loss(other) else NotImplemented

    def __mul__(self, factor: float) -> Loss:
        from convexboost.objectives import _calculus

        return _calculus.scale(self, factor)

    __rmul__ = __mul__

    def affine(self, A: Any, b: Any = 0.0) -> Loss:
        """l(A f + b): the loss of scores that are an affine map of the model's."""
        from convexboost.objectives import _calculus

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


@dataclass(frozen=True)
class Functional(ABC):
    """R[F] + (l2/2) ‖F − start‖², on the scores F of all rows."""

    space: FunctionSpace = field(kw_only=True)
    n_outputs: int = field(kw_only=True)
    l2: float = field(default=0.0, kw_only=True)
    #: Gradients are those of the Moreau envelope, this many Polyak steps wide; 0: of R itself.
    envelope: float = field(default=0.0, kw_only=True)

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

    def parts(self) -> Iterator[tuple[slice, Functional]]:
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
class Pointwise(Functional):
    """R[F] = Σ_n p_n l(F_n, y_n)."""

    loss: RowLoss
    y: Any

    def loss_constants(self) -> Constants:
        """Return those of the loss."""
        return self.loss.constants(self.n_outputs)

    def part(self, rows: slice) -> Pointwise:
        """Return the share of some rows in R."""
        return replace(self, y=self.y[rows], space=self.space.part(rows))

    def parts(self) -> Iterator[tuple[slice, Functional]]:
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
            found = gradient_sums(gradient, weight, leaf, n_leaves)
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
        bounds = range(0, len(G), ROWS)
        parts = [[leaf_tables(n_leaves, self.n_outputs) for _ in range(2)] for _ in bounds]

        def task(first: int, last: int) -> None:
            for b in range(first, last):
                rows = slice(bounds[b], bounds[b] + ROWS)
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


def residual_sign(F: Array, y: Array) -> Array:
    """sgn(F − y), and 0 within rounding of the kink."""
    difference = F - y
    return np.sign(difference) * (np.abs(difference) > KINK * np.abs(y))


def leaf_quantiles(residuals: Array, weight: Array, leaf: Any, n_leaves: int, q: Any) -> Array:
    """Return the weighted q-quantile of each column in each leaf, 0 where a leaf has no rows.

    As in `weighted_quantile`, the smallest value with at least a share q of the weight at or below it; in
    whole numbers, so that neither rows before a leaf nor their order can matter.  With a `q` for each row,
    the smallest value with at least Σ q · weight at or below it.
    """
    out = np.zeros((n_leaves, residuals.shape[1]))
    quantiles.leaf_quantiles(residuals, weight, 2.0**60, leaf, np.full(len(leaf), q, float), out)
    return out


def leaf_sums(columns: Array, weight: Array, leaf: Any, n_leaves: int) -> Array:
    """Return Σ p_n and, behind it, Σ p_n columns_n over the rows of each leaf."""
    out = leaf_tables(n_leaves, columns.shape[1])
    add_leaf_sums(leaf, weight, np.ascontiguousarray(columns), out)
    return out.sum(axis=0)


def gradient_sums(gradient: Gradient, weight: Array, leaf: Any, n_leaves: int) -> Array:
    """Return Σ p_n and, behind it, Σ p_n ∇_n over the rows of each leaf; two numbers a row may say it all."""
    if not isinstance(gradient, PairGradient):
        return leaf_sums(gradient.values, weight, leaf, n_leaves)
    out = leaf_tables(n_leaves, gradient.n_outputs)
    add_pair_sums(leaf, weight, gradient.plus, gradient.minus, out)
    return out.sum(axis=0)


def leaf_means(columns: Array, weight: Array, leaf: Any, n_leaves: int) -> Array:
    """Return the weighted mean of the rows of each leaf, 0 where it has none."""
    sums = leaf_sums(columns, weight, leaf, n_leaves)
    return sums[:, 1:] / np.maximum(sums[:, :1], 1e-300)


def weighted_quantile(y: Array, weight: Array, q: float) -> Array:
    """Return the smallest value with at least a share q of the weight at or below it, column by column."""
    out = np.empty(y.shape[1])
    for k in range(y.shape[1]):
        order = np.argsort(y[:, k], kind="stable")
        reached = np.cumsum(weight[order])
        # The tolerance makes a row of weight 2 and the row twice give the same quantile.
        out[k] = y[order[np.searchsorted(reached, q * reached[-1] * (1 - 1e-12)).clip(max=len(y) - 1)], k]
    return out
