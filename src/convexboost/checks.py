"""Is a loss what it says it is?  Value and gradient of one convex function, with the right factor and shape.

`check_objective` tries a loss out, as scikit-learn's `check_estimator` does with estimators.  `watch` does a
little of it in every fit with a user's own loss: before the first round and during the first few.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from convexboost.core import Array, Constants, FunctionSpace, Gradient
from convexboost.objectives._base import Functional, Groups, Loss, Pieces, Pointwise
from convexboost.objectives._custom import CustomFunctional, CustomRows, CustomTotal, as_loss, is_users
from convexboost.objectives._scores import Lookup
from convexboost.registry import available, resolve

#: Rows of a row loss that are tried out; a loss of all rows at once gets all of them.
MAX_ROWS = 200
#: Evaluations of a fit that are watched.
WATCHED = 5
#: A value beyond this before it is infinite: the function is so steep, not its code careless.
HUGE = 1e30
#: Rounding of ordinary float64 code, and the least of it that is allowed for in gradients.
ROUNDING = 1e-13
#: The same of float32.
SINGLE = 1e-6
#: Tolerance of slopes, relative.
CLOSE = 1e-5

DETAILS = "Run check_objective(loss, y) for details."
STABLE = (
    "Use a form that does not overflow, e.g. np.logaddexp(0, f) for log(1 + exp f), or subtract the largest "
    "score before exp."
)
DEFINED = (
    "Every score must have a finite value and gradient; at a kink any subgradient will do (beware of 0/0 and "
    "of sqrt at 0)."
)

OWN = "Return the gradient of each row's own loss: no 1/N and no weights, they are in the inner product."
PARTIALS = "`total` wants ordinary partial derivatives of the value, which contain the weights (1/N)."


class ObjectiveError(ValueError):
    """A loss is not what it must be; the message says what is wrong, where, and what to do."""


class ObjectiveWarning(UserWarning):
    """A loss may not be what it should be."""


@dataclass(frozen=True)
class Report:
    """What `check_objective` did and learned; print it."""

    loss: str
    checked: tuple[str, ...]
    evaluations: int
    n_points: int
    coupled: bool  #: whether the scores of one row change the gradient of another
    kinks: bool  #: whether a jump of the slope was found
    lipschitz: float  #: the largest norm of a subgradient met at ordinary scores
    curvature: float  #: the largest second difference quotient met away from kinks
    minimum: float  #: the smallest objective met
    seconds: float  #: of an evaluation
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.loss}: no mistake found, at {self.n_points} points ({self.evaluations} evaluations).",
            f"Checked: {', '.join(self.checked)}.",
            "It has kinks." if self.kinks else f"It looks smooth: curvature up to {self.curvature:.3g}.",
            f"Slopes up to {self.lipschitz:.3g} at ordinary scores; smallest objective {self.minimum:.6g}.",
            "Rows are coupled." if self.coupled else "Every row stands for itself.",
            f"An evaluation takes {1e3 * self.seconds:.3g} ms.",
            *self.notes,
        ]
        return "\n".join(lines)


def check_objective(
    loss: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    n_classes: int | None = None,
    random_state: int | np.random.Generator | None = 0,
    thorough: bool = True,
) -> Report:
    """Look for mistakes in a loss: raise `ObjectiveError` that names the first one, or return a `Report`.

    Tried at ordinary, large, tiny and tied scores, on the targets, at the start, and at kinks found by
    search: shapes, finite values, convexity, value and gradient of the same function with the right factor, a
    subgradient at kinks, weights, arguments left alone, no randomness, and all that the loss declares.

    Parameters
    ----------
    loss : str, Loss or object
        Whatever the estimators take.
    y : array
        Targets like those it is for.  A few hundred rows are enough.
    sample_weight, groups : array of shape (n_samples,), optional
        As in `fit`.
    n_classes : int, optional
        How many classes `y` has.  Targets are taken as classes if this is given, if the loss is for classes,
        or if they are not numbers.
    random_state : int, Generator or None
        For the points.
    thorough : bool
        False: the short version that every fit with a user's loss begins with.

    """
    loss = as_loss(resolve("loss", loss, available("convexboost.objectives")))
    targets, n_classes = _targets(loss, y, n_classes)
    given = Groups.of(groups)
    if given is not None and len(given.labels) != len(targets):
        raise ValueError(f"`groups` must have {len(targets)} labels like `y`, got {len(given.labels)}")
    space = FunctionSpace.of(len(targets), _weights(sample_weight, len(targets)))
    with _quiet():
        objective = loss.bind(targets, space, n_classes, given)
        trial = _Trial(objective, loss, np.random.default_rng(random_state), targets, n_classes, given)
        trial.run(thorough)
        return trial.report()


def watch(objective: Functional) -> Functional:
    """Look at a user's loss before training (`ObjectiveError`), and keep an eye on the first rounds.

    Objectives of this library are returned as they are.  The estimators do this by themselves; for `boost`:
    ``boost(watch(objective), hypotheses)``.
    """
    if not is_users(objective):
        return objective
    loss = getattr(objective, "loss", None)
    with _quiet():
        trial = _Trial(objective, loss, np.random.default_rng(0))
        try:
            trial.run(thorough=False, warn=True)
        except ObjectiveError as mistake:
            raise ObjectiveError(f"{mistake} {DETAILS}") from None
    for message in trial.warnings:
        warnings.warn(message, ObjectiveWarning, stacklevel=4)
    return Watched(objective, trial, space=objective.space, n_outputs=objective.n_outputs, l2=objective.l2)


@dataclass(frozen=True)
class Watched(Functional):
    """An objective whose first evaluations are compared with each other."""

    inner: Functional
    trial: _Trial
    seen: list[Any] = field(default_factory=list)  #: scores, value and subgradient of the evaluation before
    counter: list[int] = field(default_factory=lambda: [WATCHED])

    def evaluate(self, F: Array) -> tuple[float, Array]:
        """Ask the objective."""
        return self.inner.evaluate(F)

    def loss_constants(self) -> Constants:
        """Ask the objective."""
        return self.inner.loss_constants()

    def parts(self) -> Iterator[tuple[slice, Functional]]:
        """Ask the objective."""
        return replace(self.inner, l2=self.l2).parts()

    def start(self) -> Array:
        """Ask the objective."""
        return self.inner.start()

    def value(self, F: Array) -> float:
        """Ask the objective."""
        return self.inner.value(F)

    def prox(self, F: Array, size: float) -> Array | None:
        """Ask the objective."""
        return self.inner.prox(F, size)

    def pieces(self) -> Pieces | None:
        """Ask the objective."""
        return self.inner.pieces()

    def best_shifts(self, F: Array, base: Array, leaf: Any, values: Array) -> Array | None:
        """Ask the objective."""
        return self.inner.with_l2(self.l2).best_shifts(F, base, leaf, values)

    def best_shift(self, F: Array, leaf: Any, leaves: Any) -> Array | None:
        """Ask the objective."""
        return self.inner.with_l2(self.l2).best_shift(F, leaf, leaves)

    def advance(
        self, F: Array, lookup: Lookup | None, before: Gradient | None, n_threads: int
    ) -> tuple[float, Gradient]:
        """Ask the objective, and compare with the evaluation before."""
        value, gradient = self.inner.advance(F, lookup, before, n_threads)
        if self.counter[0] > 0:
            self.counter[0] -= 1
            now = F.copy(), value, gradient.values.copy()
            if self.seen:
                self._compare(self.seen.pop(), now)
            if self.counter[0] > 0 and math.isfinite(value):
                self.seen.append(now)
        return value, gradient

    def _compare(self, old: tuple[Array, float, Array], new: tuple[Array, float, Array]) -> None:
        """⟨∇₁, D⟩ ≤ R₂ − R₁ ≤ slope left of F₂ ≤ ⟨∇₂, D⟩ ≤ slope right of F₂, along D = F₂ − F₁."""
        (F1, R1, G1), (F2, R2, G2), trial = old, new, self.trial
        D, h = F2 - F1, 1e-3
        with _quiet():
            if not (math.isfinite(R2) and np.isfinite(G2).all()):
                return self._not_finite(F1, F2)
            rise, first, last = R2 - R1, self.space.inner(G1, D), self.space.inner(G2, D)
            left = (R2 - self.inner.value(F2 - h * D)) / h
            right = (self.inner.value(F2 + h * D) - R2) / h
            G, F = (np.maximum(np.abs(A), np.abs(B)) for A, B in ((G1, G2), (F1, F2)))
            scale = abs(R1) + abs(R2) + self.space.inner(G, F + np.abs(D))
            slack = CLOSE * (abs(left) + abs(right)) + 10 * trial.noise * scale / h
        if not min(left, right) - slack <= last <= max(left, right) + slack:
            trial.fail(
                f"after a round the gradient says that the slope along its step is {last:.6g}, but that of "
                f"the value is {(left + right) / 2:.6g}",
                f"Value and gradient must belong to the same loss. {DETAILS}",
            )
        fine = first - slack <= rise <= left + slack and left <= right + slack
        if not fine and not trial.warned:
            trial.warned = True
            warnings.warn(
                f"{trial.who}: it is not convex: between the scores of two rounds its slope falls (it begins "
                f"with {first:.6g}, is {rise:.6g} on average, and ends with {left:.6g} and {right:.6g}). "
                f"Guarantees are for convex losses. {DETAILS}",
                ObjectiveWarning,
                stacklevel=2,
            )
        return None

    def _not_finite(self, F1: Array, F2: Array) -> None:
        """Raise, unless R had become huge on the way from F1 to F2: that is divergence."""
        low, high = 0.0, 1.0
        for _ in range(40):
            t = (low + high) / 2
            value, G = self.inner.evaluate(F1 + t * (F2 - F1))
            fine = math.isfinite(value) and bool(np.isfinite(G).all())
            low, high = (t, high) if fine else (low, t)
        value, G = self.inner.evaluate(F1 + low * (F2 - F1))
        if not max(abs(value), np.abs(G).max()) >= HUGE:
            F = F1 + high * (F2 - F1)
            value, G = self.inner.evaluate(F)
            what = "gradient" if math.isfinite(value) else "value"
            self.trial.fail(
                f"the {what} is not finite at the scores of an early round, of size {np.abs(F).max():.3g}",
                f"{STABLE if np.abs(F).max() > 30 else DEFINED} {DETAILS}",
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """Overflows are looked for; NumPy need not mention them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _targets(loss: Loss, y: Any, n_classes: int | None) -> tuple[Any, int | None]:
    """Turn labels into class numbers."""
    y = np.asarray(y)
    if loss.task not in ("classification", "binary") and n_classes is None and y.dtype.kind not in "OUSb":
        return y, None
    if y.ndim != 1:
        raise ValueError(f"`y` must have shape (n_samples,) for classes, got {y.shape}")
    labels, numbers = np.unique(y, return_inverse=True)
    if n_classes is not None and y.dtype.kind in "iu" and labels[0] >= 0 and labels[-1] < n_classes:
        return y, n_classes
    if n_classes is not None and len(labels) > n_classes:
        raise ValueError(f"`n_classes` is {n_classes}, but `y` has {len(labels)} classes")
    return numbers, n_classes or max(len(labels), 2)


def _weights(sample_weight: Any, n_rows: int) -> Array | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, float)
    if weight.shape != (n_rows,) or not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError(f"`sample_weight` must hold {n_rows} positive numbers, got shape {weight.shape}")
    return weight


# -- what is tried ------------------------------------------------------------------------------------


@dataclass
class _Point:
    """Scores, and what the loss says there."""

    name: str
    F: Array
    losses: Array  #: (n_pieces,)
    G: Array
    scale: Array  #: (n_pieces,), see `_Trial.scale`
    noise: Array  #: (n_pieces,), of the losses
    unit: float = 1.0

    @property
    def finite(self) -> Any:
        """Return which pieces can be used."""
        fine = np.isfinite(self.G).reshape(len(self.losses), -1).all(axis=1)
        return fine & np.isfinite(self.losses)


@dataclass
class _Slope:
    """Difference quotients to both sides of a point, one per piece."""

    point: _Point
    D: Array
    h: float
    low: Array
    high: Array
    slack: Array  #: what rounding may do to them

    @property
    def middle(self) -> Array:
        """Return the central difference quotient."""
        return (self.low + self.high) / 2

    @property
    def spread(self) -> Array:
        """Return how far the slope of the function may be from the middle."""
        return (self.high - self.low) / 2 + self.slack


class _Trial:
    """A bound loss as one or more pieces, each a function of its own scores.

    A piece is a row of a row loss, with the row's own gradient; or all rows at once, with ordinary partial
    derivatives.  Everything below is about pieces, so both forms are checked by the same code.
    """

    def __init__(
        self,
        objective: Functional,
        loss: Any,
        rng: np.random.Generator,
        targets: Any = None,
        n_classes: int | None = None,
        groups: Groups | None = None,
    ) -> None:
        self.all_rows = objective.space.n_samples
        if isinstance(objective, Pointwise) and self.all_rows > MAX_ROWS:
            rows = np.sort(rng.choice(self.all_rows, MAX_ROWS, replace=False))
            weight = objective.space.weight[rows]
            objective = replace(objective, y=objective.y[rows], space=FunctionSpace(weight / weight.sum()))
        self.objective, self.loss, self.rng = objective, loss, rng
        self.targets, self.n_classes, self.groups = targets, n_classes, groups
        self.by_rows = isinstance(objective, Pointwise)
        self.shape = (objective.space.n_samples, objective.n_outputs)
        self.n_pieces = self.shape[0] if self.by_rows else 1
        self.who = _who(loss, objective)
        self.y: Any = getattr(objective, "y", None)
        self.evaluations = 0
        self.noise = ROUNDING  #: of the losses, relative
        self.typical = np.zeros(self.shape)  #: size of the gradient at ordinary scores
        self.points: list[_Point] = []
        self.ordinary: list[_Point] = []
        self.slopes: list[_Slope] = []
        self.kinks = False
        self.warnings: list[str] = []
        self.warned = False
        self.warn_only = False  #: what to do about non-convexity
        self.overflow = ""
        self.notes: list[str] = []

    # -- asking ---------------------------------------------------------------------------------------

    def evaluate(self, F: Array) -> tuple[Array, Array]:
        """Return the value of each piece and its gradient."""
        self.evaluations += 1
        objective = self.objective
        if isinstance(objective, Pointwise):
            return objective.losses(F)
        if isinstance(objective, CustomFunctional):
            value, G = objective.loss.evaluate_all(F, objective.y, objective.extras)
        else:
            value, G = objective.evaluate(F)
            G = G * objective.space.weight[:, None]
        return np.array([value]), G

    def values(self, F: Array) -> Array:
        """Return the value of each piece."""
        return self.evaluate(F)[0]

    def pieces(self, A: Array) -> Array:
        """Return one row per piece."""
        return A.reshape(self.n_pieces, -1)

    def dot(self, A: Array, B: Array) -> Array:
        """Inner product in each piece."""
        return np.einsum("ij,ij->i", self.pieces(A), self.pieces(B))

    def spread_out(self, per_piece: Array) -> Array:
        """Return one number per row."""
        return (per_piece if self.by_rows else np.repeat(per_piece, self.shape[0]))[:, None]

    def scale(self, losses: Array, F: Array, G: Array) -> Array:
        """Return the size of the numbers that a loss is made of: its rounding is relative to that."""
        return np.abs(losses) + self.dot(np.maximum(np.abs(G), self.typical), np.abs(F))

    def fail(self, what: str, hint: str) -> NoReturn:
        """Say what is wrong."""
        raise ObjectiveError(f"{self.who}: {what}. {hint}")

    # -- the order of things --------------------------------------------------------------------------

    def run(self, thorough: bool, warn: bool = False) -> None:
        """Try everything."""
        self.warn_only = warn
        self.first_call()
        self.ordinary = ordinary = self.ordinary_points(thorough)
        self.subset_of_rows()
        self.convexity(ordinary, thorough)
        self.slopes = self.difference_quotients(ordinary, thorough)
        self.same_function(self.slopes)
        self.awkward_points(thorough)
        self.inequalities()
        self.constants()
        self.value_alone()
        self.weights(thorough)
        if thorough:
            for a, b in pairwise(ordinary):
                self.kinks |= self.kink_along(a, b)
            self.convexity(self.points, thorough=False)
            self.inequalities()
            self.constants()
            self.start()
            self.prox()
            self.link()

    # -- one call -------------------------------------------------------------------------------------

    def first_call(self) -> None:
        """Shapes, arguments left alone, fresh arrays, no randomness."""
        # Targets may have been drawn with the same seed: not the same numbers.
        F = 0.1 + 0.7 * self.rng.normal(size=self.shape)
        kept, y = F.copy(), None if self.y is None else self.y.copy()
        try:
            losses, G = self.evaluate(F)
        except ValueError as error:
            self.explain_shape(error)
        if not np.array_equal(F, kept):
            row = int(np.flatnonzero((kept != F).any(axis=1))[0])
            self.fail(
                f"it writes into `F`, e.g. in row {row}: {_show(kept[row])} became {_show(F[row])}",
                "Work on a copy: F belongs to the training.",
            )
        if y is not None and not np.array_equal(self.y, y):
            row = int(np.flatnonzero((self.y != y).reshape(len(y), -1).any(axis=1))[0])
            self.fail(f"it writes into `y`, e.g. in row {row}", "Work on a copy.")
        if np.shares_memory(G, F):
            self.fail("it returns the array `F` it was given, or a view of it, as gradient", "Return a copy.")
        if _is_single(losses) or _is_single(G):
            self.noise = SINGLE
        first = losses.copy(), G.copy()
        again = self.evaluate(F.copy())
        for name, a, b in (("value", first[0], again[0]), ("gradient", first[1], again[1])):
            if not np.array_equal(a, b, equal_nan=True):
                at = np.unravel_index(int(np.nanargmax(np.abs(a - b))), a.shape)
                where = f"row {at[0]}" if self.by_rows or len(at) == 2 else "all rows"
                self.fail(
                    f"two calls with the same scores give two {name}s, e.g. {a[at]:.6g} and {b[at]:.6g} in "
                    f"{where}: it is random or remembers earlier calls",
                    "A loss must be a function of F and y.",
                )
        self.evaluate(F + 1.0)
        if not np.array_equal(G, first[1], equal_nan=True):
            self.fail(
                "the gradient it returned is overwritten by the next call",
                "Return a new array every time, not a buffer kept for it.",
            )

    def explain_shape(self, error: ValueError) -> NoReturn:
        """Say which shape a user's method returned, and what it looks like."""
        user = getattr(self.loss, "user", None)
        if user is None:
            raise error
        F, (n, k) = self.rng.normal(size=self.shape), self.shape
        form = _form(self.loss)
        if form == "value":  # torch
            raise ObjectiveError(
                f"{error}. Sum over the outputs, value.sum(dim=1), for a loss per row, or over everything."
            ) from None
        extras = getattr(self.objective, "extras", {})
        found = getattr(user, form)(F.copy(), self.y, **extras)  # an error of the user's own comes out here
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise ObjectiveError(f"{error}. End the method with `return losses, gradient`.") from None
        value, G = (np.shape(part) for part in found)
        hint, what = "", ""
        if form == "evaluate" and value != (n,):
            what = f"the losses have shape {value}, not ({n},)"
            hint = {
                (): "they are summed over the rows; return one loss per row, or name the method `total`",
                (1,): "they are summed over the rows; return one loss per row, or name the method `total`",
                (n, 1): "drop the second axis, losses[:, 0]",
                (n, k): "sum over the outputs, losses.sum(axis=1)",
                (k,): "they are summed over the rows, not over the outputs: sum over axis=1",
                (n, n): f"an array of shape ({n},) met one of shape ({n}, 1): y has shape {np.shape(self.y)}",
            }.get(value, "return one loss per row")
        elif form == "total" and int(np.prod(value)) != 1:
            what = f"the value has shape {value}, but must be one number"
            hint = "add up the rows, or name the method `evaluate` and return the losses of the rows"
        elif (n, k) != G:
            what = f"the gradient has shape {G}, not {self.shape} like `F`"
            hint = {
                (k, n): "it is transposed, return gradient.T",
                (n,): f"it is one number per row, but there are {k} outputs: give a column for each",
                (): "it is summed over all rows and outputs: give one entry for each score",
                (k,): "it is summed over the rows: give one row for each",
                (1, k): "it is summed over the rows: give one row for each",
                (n, 1): "it is summed over the outputs: give a column for each",
                (n, n): f"an array of shape ({n},) met one of shape ({n}, 1): y has shape {np.shape(self.y)}",
            }.get(G, "give one entry for each score")
        if not what:
            raise error
        raise ObjectiveError(f"{self.who}: {what}. {hint[0].upper()}{hint[1:]}.") from None

    # -- points ---------------------------------------------------------------------------------------

    def units(self) -> list[tuple[float, Any]]:
        """Return sizes of scores, with a centre each: 1, and that of the targets."""
        found: list[tuple[float, Any]] = [(1.0, 0.0)]
        if self.y is not None and self.y.dtype.kind == "f":
            size = float(self.y.std()) or float(np.abs(self.y).max()) or 1.0
            centre = self.y.mean(axis=0) if self.y.shape[1] == self.shape[1] else float(self.y.mean())
            near = 0.3 < size < 3 and np.abs(centre).max() < 3
            found = [(size, centre)] if near else [*found, (size, centre)]
        return found

    def at(self, name: str, F: Array, unit: float = 1.0, noise: bool = True) -> _Point:
        """Evaluate there, find out how exact that is, and keep the point."""
        F = np.array(np.broadcast_to(F, self.shape), float, order="C")
        losses, G = (np.array(part, float) for part in self.evaluate(F.copy()))
        scale = self.scale(losses, F, G)
        size = self.noise * scale
        if noise:
            # Second differences over so short a way are rounding, but for kinks.
            D = 1e-7 * max(unit, float(np.abs(F).max())) * self.rng.choice([-1.0, 1.0], self.shape)
            second = np.abs(self.values(F + D) - 2 * losses + self.values(F - D))
            share = second / np.where(scale > 0, scale, 1.0)
            worst = float(share[np.isfinite(share)].max(initial=0.0))
            size = np.maximum(second, max(self.noise, min(worst, 1e-5)) * scale)
        point = _Point(name, F, losses, G, scale, 4 * size, unit)
        self.points.append(point)
        return point

    def ordinary_points(self, thorough: bool) -> list[_Point]:
        """Random scores; where they are not finite, nothing can be trained."""
        found = []
        zero = self.at("0", np.zeros(self.shape), noise=thorough)
        self.require_finite(zero)
        draws = {
            s: [c + s * f * self.rng.normal(size=self.shape) for f in ((1, 1, 0.1) if thorough else (1, 0.1))]
            for s, c in self.units()
        }
        G = np.abs(self.evaluate(next(reversed(draws.values()))[0])[1])
        G = np.where(np.isfinite(G), G, 0.0)
        self.typical = np.maximum(G, np.median(G, axis=0 if self.by_rows else None))
        for s, Fs in draws.items():
            for i, F in enumerate(Fs):
                point = self.at(f"random scores of size {s:.3g}", F, s, noise=thorough or i == 0)
                share = point.noise / (4 * point.scale)
                self.noise = max(self.noise, min(float(share[point.finite].max(initial=0.0)), 1e-5))
                self.require_finite(point, zero)
                found.append(point)
        return found

    def awkward_points(self, thorough: bool) -> None:
        """On the targets and a rounding error away from them, ties, the start, tiny and huge scores."""
        rng, shape, noise = self.rng, self.shape, thorough
        zero = self.points[0]
        (s, c), y = self.units()[-1], self.y
        found: list[tuple[str, Any]] = []
        if y is not None and y.dtype.kind == "f" and y.shape[1] in (1, shape[1]):
            found = [("scores on the targets", y)]
            if thorough:
                some = rng.random(shape) < 0.5
                shaken = y * (1 + rng.choice([-1, 0, 1], shape) * 2e-16)
                found += [("scores next to the targets", shaken)]
                found += [("scores on some targets", np.where(some, y, y + s * rng.normal(size=shape)))]
        whole = rng.integers(-2, 3, shape).astype(float)
        found += [("tied scores", whole)]
        if thorough:
            start = self.objective.start()
            found += [
                ("the start", start),
                ("next to the start", start + 1e-13 * s * rng.normal(size=shape)),
                ("tied scores", c + s * whole),
                ("nearly tied scores", whole * (1 + 1e-15) + 1e-15),
                ("tiny scores", 1e-13 * rng.normal(size=shape)),
                ("margins of 1", np.where(rng.random(shape) < 0.5, 1.0, 0.0)),
                ("margins of ±1", rng.choice([-1.0, 1.0], shape)),
            ]
        for name, F in found:
            self.require_finite(self.at(name, F, s, noise), zero)
        if thorough:
            size = 1e6 * max(s, 1.0)
            for F in (size * rng.normal(size=shape), np.full(shape, size), np.full(shape, -size)):
                self.require_finite(self.at("large scores", F, size, noise), zero)

    # -- finite values --------------------------------------------------------------------------------

    def require_finite(self, point: _Point, anchor: _Point | None = None) -> None:
        """Look where a value or gradient that is not finite comes from; steep functions may overflow."""
        if point.finite.all():
            return
        if anchor is None or not anchor.finite.all():
            bad = anchor if anchor is not None and not anchor.finite.all() else point
            piece = int(np.flatnonzero(~bad.finite)[0])
            self.not_finite(bad.name, bad.F, bad.losses, bad.G, piece)
        self.explain_infinite(anchor.F, point.F, np.flatnonzero(~point.finite)[:3])

    def not_finite(self, name: str, F: Array, losses: Array, G: Array, piece: int) -> NoReturn:
        """Say where."""
        what = "gradient" if math.isfinite(losses[piece]) else "value"
        row = piece if self.by_rows else int(np.argmax((~np.isfinite(G)).any(axis=1)))
        bad = losses[piece] if what == "value" else G[row][~np.isfinite(G[row])][0]
        large = np.abs(self.pieces(F)[piece]).max() > 30
        self.fail(
            f"the {what} is not finite ({bad}) at {name} (row {row}, f = {_show(F[row])})",
            STABLE if large else DEFINED,
        )

    def explain_infinite(self, F0: Array, F1: Array, pieces: Any) -> None:
        """Go from good scores to bad ones: raise unless values had become huge on the way."""
        for piece in pieces:
            low, high = 0.0, 1.0
            for _ in range(60):
                t = (low + high) / 2
                losses, G = self.evaluate(F0 + t * (F1 - F0))
                fine = math.isfinite(losses[piece]) and np.isfinite(self.pieces(G)[piece]).all()
                low, high = (t, high) if fine else (low, t)
            last = F0 + low * (F1 - F0)
            losses, G = self.evaluate(last)
            if max(abs(losses[piece]), np.abs(self.pieces(G)[piece]).max()) < HUGE:
                F = F0 + high * (F1 - F0)
                large = np.abs(self.pieces(F)[piece]).max() > 30
                self.not_finite("large scores" if large else "some scores", F, *self.evaluate(F), piece)
            size = np.abs(self.pieces(last)[piece]).max()
            self.overflow = f"It overflows at scores of about {size:.3g}: it is that steep."

    # -- convexity ------------------------------------------------------------------------------------

    def convexity(self, points: Sequence[_Point], thorough: bool) -> None:
        """No value between two points is above the line that joins theirs."""
        pairs = [(a, b) for i, a in enumerate(points) for b in points[:i]]
        if len(pairs) > 40:
            pairs = [pairs[i] for i in self.rng.choice(len(pairs), 40, replace=False)]
        for a, b in pairs:
            for t in (0.5, float(self.rng.uniform(0.02, 0.98)))[: 2 if thorough else 1]:
                F = a.F + t * (b.F - a.F)
                losses = self.values(F)
                chord = a.losses + t * (b.losses - a.losses)
                fine = a.finite & b.finite & np.isfinite(losses)
                scale = a.scale + b.scale
                excess = losses - chord - 4 * (a.noise + b.noise + self.noise * scale) - 1e-12 * scale
                excess = np.where(fine & np.isfinite(excess), excess, -1.0)
                if excess.max() > 0:
                    piece = int(np.argmax(excess / np.where(scale > 0, scale, 1.0)))
                    return self.not_convex(a, b, F, t, losses, piece)
        return None

    def not_convex(self, a: _Point, b: _Point, F: Array, t: float, losses: Array, piece: int) -> None:
        """Give the line and three points on it."""
        l0, l1, l2 = a.losses[piece], losses[piece], b.losses[piece]
        chord = l0 + t * (l2 - l0)
        if self.by_rows:
            points = f"f = {_show(a.F[piece])}, {_show(F[piece])} and {_show(b.F[piece])} of row {piece}"
        else:
            points = f"three points on a line (from {a.name} to {b.name})"
        what = (
            f"it is not convex: at {points} the values are {l0:.6g}, {l1:.6g} and {l2:.6g}, "
            f"and the second lies {l1 - chord:.3g} above the line through the others"
        )
        hint = "Boosting is sure to reach the minimum only of convex losses."
        if a.name == "large scores" or b.name == "large scores":
            hint = "It happens at large scores: is a probability or the exponent clipped?"
        elif self.is_concave():
            hint = "It is concave: a likelihood must be given with a minus sign."
        if not self.warn_only:
            self.fail(what, hint)
        if not self.warned:
            self.warned = True
            self.warnings.append(f"{self.who}: {what}. {hint} Run check_objective(loss, y) for details.")

    def is_concave(self) -> bool:
        """Return whether minus the value is convex, as far as random lines tell."""
        for _ in range(5):
            A, B = self.rng.normal(size=(2, *self.shape))
            a, m, b = (self.values(F) for F in (A, (A + B) / 2, B))
            if (m < (a + b) / 2 - 1e-9 * (np.abs(a) + np.abs(b))).any():
                return False
        return True

    # -- value and gradient ---------------------------------------------------------------------------

    def directions(self, thorough: bool) -> list[Array]:
        """Random ones; in some scores only, so that rows and outputs can be told apart."""
        rng, (n, k) = self.rng, self.shape
        found = [rng.normal(size=(n, k))]
        if k > 1:
            found.append(np.eye(k)[rng.integers(0, k, n)])
        if not self.by_rows:
            for rows in rng.choice(n, (6 if thorough else 2, 1)):
                D = np.zeros((n, k))
                D[rows] = rng.normal(size=(1, k))
                found.append(D)
        return found

    def difference_quotients(self, points: Sequence[_Point], thorough: bool) -> list[_Slope]:
        """To both sides of ordinary points, over short ways."""
        return [
            self.quotient(point, D, h * point.unit)
            for point in points
            for D in self.directions(thorough)
            for h in ((1e-3, 1e-5) if thorough else (1e-4,))
        ]

    def quotient(self, point: _Point, D: Array, h: float) -> _Slope:
        """The gradient of a convex function lies between the two, whatever h is."""
        right = (self.values(point.F + h * D) - point.losses) / h
        left = (point.losses - self.values(point.F - h * D)) / h
        low, high = np.minimum(left, right), np.maximum(left, right)
        rough = point.scale * self.noise
        slack = 4 * (point.noise + rough) / h + CLOSE * (np.abs(low) + np.abs(high))
        slack = slack + max(1e-9, 100 * self.noise) * self.dot(np.abs(point.G), np.abs(D))
        return _Slope(point, D, h, low, high, slack)

    def misses(self, slope: _Slope) -> Array:
        """Return how far ⟨gradient, direction⟩ is out of range in each piece, relative; 0 where it is not."""
        claimed = self.dot(slope.point.G, slope.D)
        miss = np.abs(claimed - slope.middle) - slope.spread
        size = np.abs(claimed) + np.abs(slope.middle) + 1e-300
        return np.where(np.isfinite(miss) & slope.point.finite & (miss > 0), miss / size, 0.0)

    def same_function(self, samples: list[_Slope]) -> None:
        """The gradient must have the slopes of the value; if it has others, find out which."""
        worst = max(samples, key=lambda sample: float(self.misses(sample).max()))
        if self.misses(worst).max() == 0.0:
            return
        points = {id(s.point): s.point for s in samples}.values()
        more = [self.quotient(point, D, 1e-4 * point.unit) for point in points for D in self.directions(True)]
        what, hint = self.diagnose(samples + more)
        self.fail(f"{what} ({self.worst_entry(worst)})", hint)

    def worst_entry(self, slope: _Slope) -> str:
        """Give the numbers of one row and output."""
        point, (n, k) = slope.point, self.shape
        rows = [int(np.argmax(self.misses(slope)))] if self.by_rows else list(range(n))
        if len(rows) > 20:
            rows = [int(r) for r in self.rng.choice(n, 20, replace=False)]
        best = (-1.0, 0, 0, 0.0)
        for row in rows:
            for output in range(min(k, 20)):
                D = np.zeros(self.shape)
                D[row, output] = 1.0
                quotient = self.quotient(point, D, 1e-4 * point.unit)
                piece = row if self.by_rows else 0
                found = abs(point.G[row, output] - quotient.middle[piece]) - quotient.spread[piece]
                if math.isfinite(found) and found > best[0]:
                    best = found, row, output, float(quotient.middle[piece])
        _, row, output, numeric = best
        return (
            f"row {row}, output {output}, f = {_show(point.F[row])}: gradient {point.G[row, output]:.6g}, "
            f"slope of the value {numeric:.6g}"
        )

    def diagnose(self, samples: list[_Slope]) -> tuple[str, str]:
        """Name the mistake: try what the gradient would have to be multiplied by or mapped with."""
        k, p = self.shape[1], self.objective.space.weight[:, None]
        if all((self.dot(s.point.G, s.D)[s.point.finite] == 0).all() for s in samples):
            return (
                "the gradient is 0 everywhere, but the value changes",
                "With PyTorch: do not detach, and do not leave torch (NumPy, float, item) inside `value`.",
            )
        factor = self.factor(samples, lambda F, G: G)
        if factor is not None and abs(factor - 1) > 5e-3:
            return self.name_factor(factor)
        if np.ptp(p) > 1e-9:
            if self.factor(samples, lambda F, G: G / p) is not None:
                return self.name_weights(too_many=True)
            if not self.by_rows and self.factor(samples, lambda F, G: G * p) is not None:
                return self.name_weights(too_many=False)
        for name, chain in _CHAINS:
            scale = self.factor(samples, chain)
            if scale is not None and k > (name == "softmax"):
                return (
                    f"the gradient is with respect to {_CHAIN_NAMES[name]}, not to the score",
                    "Multiply it with the derivative of what the score is mapped to (chain rule).",
                )
        outputs = self.wrong_outputs(samples)
        if outputs:
            return (
                f"value and gradient belong to different losses in output {_show(outputs)} only",
                "Look at how that column of the gradient is made.",
            )
        return (
            f"value and gradient belong to different losses{self.wrong_rows(samples)}",
            "The gradient must be the derivative of the value in `F`.",
        )

    def factor(self, samples: list[_Slope], transform: Callable[[Array, Array], Array]) -> float | None:
        """Return the r for which all ⟨T(G), D⟩ = r · slope, if there is one."""
        claimed, middle, spread = [], [], []
        for s in samples:
            fine = s.point.finite
            claimed.append(self.dot(transform(s.point.F, s.point.G), s.D)[fine])
            middle.append(s.middle[fine])
            spread.append(s.spread[fine])
        c, m, e = (np.concatenate(x) for x in (claimed, middle, spread))
        for tight in (1e-3, 0.03):
            pinned = np.isfinite(c + m + e) & (e <= tight * np.abs(m)) & (np.abs(m) > 0)
            if pinned.sum() >= 4:
                break
        else:
            return None
        c, m, e = c[pinned], m[pinned], e[pinned]
        r = float(np.median(c / m))
        if not math.isfinite(r) or r == 0.0:
            return None
        return r if np.mean(np.abs(c - r * m) <= abs(r) * (2 * e + 5e-3 * np.abs(m))) >= 0.98 else None

    def name_factor(self, r: float) -> tuple[str, str]:
        """Say where such a factor comes from."""
        (_, k), size = self.shape, abs(r)
        sign = "has the wrong sign" if r < 0 else ""
        rows = dict.fromkeys((self.shape[0], self.all_rows))
        both = " and " if sign else ""

        def near(x: float) -> bool:
            return abs(size - x) <= 5e-3 * x

        if near(1.0):
            return f"the gradient {sign}", "Return the gradient itself, not minus it (the residual)."
        for n in rows:
            if near(1 / n) or near(1 / (n * k)):
                by = f"the number of rows, {n}" if near(1 / n) else f"rows · outputs, {n * k}"
                hint = (
                    OWN
                    if self.by_rows
                    else "The value is a sum over the rows, the gradient that of a mean: make both the same."
                )
                return f"the gradient {sign}{both}is divided by {by}", hint
            if near(n) or near(n * k):
                by = f"the number of rows, {n}" if near(n) else f"rows · outputs, {n * k}"
                hint = OWN if self.by_rows else PARTIALS
                return f"the gradient {sign}{both}is multiplied by {by}", hint
        if k > 1 and near(1 / k):
            return (
                f"the gradient {sign}{both}is divided by the number of outputs, {k} (a factor {size:.4g})",
                "The value is a sum over the outputs, the gradient that of a mean: make both the same.",
            )
        if k > 1 and near(k):
            return (
                f"the gradient {sign}{both}is multiplied by the number of outputs, {k} (a factor {size:.4g})",
                "The value is a mean over the outputs, the gradient that of a sum: make both the same.",
            )
        hint = f"Multiply the gradient by {1 / r:.4g}, or the value by {r:.4g}."
        if near(2) or near(0.5):
            hint = "The gradient of (f − y)² is 2 (f − y), that of ½ (f − y)² is f − y."
        return f"the gradient {sign}{both}is off by the factor {size:.4g}", hint

    def name_weights(self, too_many: bool) -> tuple[str, str]:
        """Weights too many or too few."""
        if self.by_rows:
            return (
                "the gradient is multiplied by the sample weights",
                OWN,
            )
        if not too_many:
            return (
                "the gradient lacks the weights: it is that of the row losses",
                f"{PARTIALS} Multiply row n by weight[n].",
            )
        return "the gradient has the sample weights twice", "Multiply by them once."

    def wrong_outputs(self, samples: list[_Slope]) -> list[int]:
        """Return the outputs that are wrong, if others are right."""
        wrong, k = [], self.shape[1]
        if k == 1:
            return []
        for output in range(k):
            D = np.zeros(self.shape)
            D[:, output] = 1.0
            for point in {id(s.point): s.point for s in samples}.values():
                if self.misses(self.quotient(point, D, 1e-4 * point.unit)).max() > 0.0:
                    wrong.append(output)
                    break
        return wrong if 0 < len(wrong) <= k // 2 else []

    def wrong_rows(self, samples: list[_Slope]) -> str:
        """Say which rows are wrong, if others are right."""
        if not self.by_rows:
            return ""
        wrong = np.max([self.misses(s) for s in samples], axis=0) > 0
        if wrong.mean() > 0.9:
            return ""
        text = f" in {wrong.sum()} of {len(wrong)} rows"
        if self.y is not None and self.y.dtype.kind in "iu":
            classes = np.unique(self.y[wrong])
            if len(classes) < len(np.unique(self.y)):
                text += f", all of class {', '.join(map(str, classes))}"
        return text

    # -- rows -----------------------------------------------------------------------------------------

    def subset_of_rows(self) -> None:
        """The loss of a row is its own: other rows do not change it."""
        n = self.shape[0]
        if not isinstance(self.objective, Pointwise) or n < 3:
            return
        F, rows = self.points[-1].F, np.arange(0, n, 2)
        losses = self.points[-1].losses[rows]
        try:
            part = self.objective.loss.evaluate(F[rows], self.objective.y[rows])
        except (ValueError, IndexError) as error:
            self.fail(
                f"it fails on {len(rows)} of the {n} rows ({error})",
                "It is called with blocks of rows; do not keep arrays of all rows in the object.",
            )
        fine = np.isfinite(losses)
        scale = np.abs(losses) + self.points[-1].noise[rows] + 1e-300
        tolerance = max(1e-9, 100 * self.noise)
        off = np.where(fine, np.abs(part[0] - losses) / scale, 0.0)
        if off.max() > tolerance:
            i = int(np.argmax(off))
            ratio = np.median(part[0][losses != 0] / losses[losses != 0])
            mean = abs(ratio - n / len(rows)) < 1e-6 * n
            what = (
                "the losses are divided by the number of rows"
                if mean
                else "the loss of a row depends on the other rows"
            )
            self.fail(
                f"{what} (row {rows[i]}: {losses[i]:.6g} among {n} rows, {part[0][i]:.6g} among {len(rows)})",
                "Return each row's own loss and gradient, without 1/N."
                if mean
                else "Losses of all rows at once belong into the method `total`; or was y, of shape "
                f"{np.shape(self.y)}, broadcast against ({n},)?",
            )

    def is_coupled(self, point: _Point) -> bool:
        """Return whether the scores of one row change the gradient of another."""
        if self.by_rows:
            return False
        for size in (1.0, 10.0, 10.0, 10.0, 10.0):  # a maximum may be that of a single row
            moved = self.rng.random(self.shape[0]) < 0.5
            F = point.F + size * point.unit * self.rng.normal(size=self.shape) * moved[:, None]
            G = self.evaluate(F)[1]
            if np.abs(G - point.G)[~moved].max(initial=0.0) > 1e-9 * np.abs(G).max():
                return True
        return False

    # -- kinks ----------------------------------------------------------------------------------------

    def kink_along(self, a: _Point, b: _Point) -> bool:
        """Halve the line to where the slope changes most; keep both sides of the jump as points."""
        D = b.F - a.F
        low, high = np.zeros(self.n_pieces), np.ones(self.n_pieces)
        first, last = self.dot(a.G, D), self.dot(b.G, D)
        whole = last - first
        for _ in range(52):
            t = (low + high) / 2
            slope = self.dot(self.evaluate(a.F + self.spread_out(t) * D)[1], D)
            upper = last - slope > slope - first
            low, first = np.where(upper, t, low), np.where(upper, slope, first)
            high, last = np.where(upper, high, t), np.where(upper, last, slope)
        for t in (low, high):
            self.at("scores at a jump of the slope", a.F + self.spread_out(t) * D, a.unit)
        return bool(
            np.any(np.abs(last - first) > 1e-3 * np.abs(whole) + 1e-9 * self.dot(self.typical, np.abs(D)))
        )

    def inequalities(self) -> None:
        """l(B) ≥ l(A) + ⟨gradient at A, B − A⟩ for all pairs of points: kinks cannot hide from it."""
        worst: tuple[float, Any] = (0.0, None)
        for a in self.points:
            for b in self.points:
                if a is b:
                    continue
                D = b.F - a.F
                gap = b.losses - a.losses - self.dot(a.G, D)
                scale = a.scale + b.scale
                scale += self.dot(np.maximum(np.abs(a.G), self.typical), np.abs(D))
                slack = 4 * (a.noise + b.noise) + max(1e-11, 100 * self.noise) * scale
                miss = np.where(a.finite & b.finite & np.isfinite(slack), -gap - slack, -1.0)
                share = float((miss / np.where(scale > 0, scale, 1.0)).max())
                if share > worst[0]:
                    worst = share, (a, b, int(np.argmax(miss / np.where(scale > 0, scale, 1.0))))
        if worst[1] is not None:
            self.not_a_subgradient(*worst[1])

    def not_a_subgradient(self, a: _Point, b: _Point, piece: int) -> None:
        """At a kink, or where the value is not convex, or at special scores."""
        D = b.F - a.F
        length = float(np.abs(self.pieces(D)[piece]).max())
        claimed = float(self.dot(a.G, D)[piece])
        slopes = [self.quotient(a, D, h * a.unit / length) for h in (1e-2, 1e-4)]
        if all(s.low[piece] - s.slack[piece] <= claimed <= s.high[piece] + s.slack[piece] for s in slopes):
            grid = [(t, self.values(a.F + t * D)) for t in (0.5, 0.25, 0.75, 0.1, 0.9, 0.03, 0.97)]
            t, losses = max(
                grid, key=lambda x: x[1][piece] - a.losses[piece] - x[0] * (b.losses - a.losses)[piece]
            )
            if (
                losses[piece]
                > a.losses[piece] + t * (b.losses - a.losses)[piece] + a.noise[piece] + b.noise[piece]
            ):
                self.not_convex(a, b, a.F + t * D, t, losses, piece)
            return
        low, high = slopes[-1].low[piece] / length, slopes[-1].high[piece] / length
        row = piece if self.by_rows else int(np.argmax(np.abs(a.G * D).sum(axis=1)))
        kink = high - low > 0.05 * (abs(high) + abs(low))
        where = f"row {row}, f = {_show(a.F[row])}"
        if kink:
            self.fail(
                f"at a kink ({where}; {a.name}) the gradient {_show(a.G[row])} is no subgradient: along a "
                f"line the slopes to the two sides are {low:.6g} and {high:.6g}, it says "
                f"{claimed / length:.6g}",
                "Any number between the two will do, e.g. 0 at a minimum; mind scores exactly at a kink.",
            )
        self.fail(
            f"value and gradient belong to different losses at {a.name} ({where}: along a line the gradient "
            f"says {claimed / length:.6g}, the slope of the value is {(low + high) / 2:.6g})",
            "Is a number clipped or rounded in one of them and not in the other?",
        )

    # -- what is declared -----------------------------------------------------------------------------

    def constants(self) -> None:
        """Lipschitz constant, smoothness, strong convexity and minimum, where declared."""
        declared, slack = self.objective.loss_constants(), 1 + max(1e-6, 100 * self.noise)
        weight = self.objective.space.weight

        def lengths(A: Array, dual: bool = False) -> Array:
            """In each row, or in L²(P), where partial derivatives are divided by the weights first."""
            if self.by_rows:
                return np.sqrt((A * A).sum(axis=1))
            return np.sqrt([((A * A).sum(axis=1) * (1 / weight if dual else weight)).sum()])

        def violated(name: str, value: float, met: float, where: str) -> NoReturn:
            self.fail(
                f"the declared {name} {value:.6g} is wrong: {met:.6g} was met at {where}",
                f"Correct `constants`, or leave `{name}` out.",
            )

        for a in self.points:
            steep = float(lengths(a.G, True)[a.finite].max(initial=0.0))
            if declared.lipschitz is not None and steep > declared.lipschitz * slack:
                violated("lipschitz", declared.lipschitz, steep, f"{a.name} (length of a subgradient)")
            R = self.risk(a)
            tolerance = float(a.noise.max()) + 1e-9 * abs(declared.minimum or 0.0)
            if declared.minimum is not None and declared.minimum - tolerance > R:
                violated("minimum", declared.minimum, R, a.name)
        for a in self.points:
            for b in self.points:
                if a is b or (declared.smoothness is None and declared.strong_convexity == 0.0):
                    continue
                D, fine = b.F - a.F, a.finite & b.finite
                distance = lengths(D)
                scale = a.scale + b.scale
                near = fine & (distance > 1e-6 * (lengths(a.F) + lengths(b.F)))
                if declared.smoothness is not None and near.any():
                    change = lengths(b.G - a.G, True) / distance
                    rough = 100 * self.noise * (lengths(a.G, True) + lengths(b.G, True)) / distance
                    i = int(np.argmax(np.where(near, change - rough, 0.0)))
                    if near[i] and change[i] - rough[i] > declared.smoothness * slack:
                        violated(
                            "smoothness",
                            declared.smoothness,
                            change[i],
                            f"{a.name} (change of gradient per length)",
                        )
                if declared.strong_convexity > 0.0 and near.any():
                    gain = b.losses - a.losses - self.dot(a.G, D)
                    rough = (
                        a.noise
                        + b.noise
                        + max(1e-11, 100 * self.noise) * (scale + self.dot(np.abs(a.G), np.abs(D)))
                    )
                    met = 2 * (gain + 4 * rough) / distance**2
                    i = int(np.argmin(np.where(near, met, np.inf)))
                    if near[i] and met[i] * slack < declared.strong_convexity:
                        violated(
                            "strong_convexity", declared.strong_convexity, met[i], f"{a.name} (curvature)"
                        )

    def risk(self, point: _Point) -> float:
        """R there; infinite where it is not known."""
        if not point.finite.all():
            return math.inf
        return self.objective.space.mean(point.losses) if self.by_rows else float(point.losses[0])

    def value_alone(self) -> None:
        """`value` agrees with `evaluate`."""
        loss = getattr(self.objective, "loss", None)
        if not (self.by_rows and isinstance(loss, CustomRows) and _form(loss) == "evaluate"):
            return
        point = self.points[-1]
        losses = loss.value(point.F.copy(), self.y)
        off = np.abs(losses - point.losses) - 4 * point.noise - 1e-9 * np.abs(point.losses)
        off = np.where(point.finite, off, -1.0)
        if off.max() > 0:
            row = int(np.argmax(off))
            self.fail(
                f"`value` and the first half of `evaluate` differ (row {row}, f = {_show(point.F[row])}: "
                f"{losses[row]:.6g} and {point.losses[row]:.6g})",
                "They must be the same losses; without `value`, `evaluate` is used for both.",
            )

    def weights(self, thorough: bool) -> None:
        """Weight 2 is the row twice (with groups: the group twice)."""
        objective, loss = self.objective, self.loss
        if not isinstance(objective, CustomFunctional) or not isinstance(loss, CustomTotal):
            return
        n, uneven = self.shape[0], np.ptp(objective.space.weight) > 1e-9 / self.shape[0]
        forgets = "it does not use the weights, but `sample_weight` is given: R is the same for all weights"
        hint = "Take them as an argument named `weight` (they sum to 1), and average the rows with them."
        if "weight" not in loss.asked:
            if uneven and self.warn_only:
                self.warnings.append(f"{self.who}: {forgets}. {hint}")
            elif uneven:
                self.fail(forgets, hint)
            else:
                self.notes.append("It takes no `weight`: sample weights would not be used.")
            return
        if not thorough or self.targets is None or n == 1:
            return
        y, F, tolerance = np.asarray(self.targets), self.points[1].F, max(1e-8, 100 * self.noise)

        def bound(rows: Any, weight: Any, groups: Groups | None) -> CustomFunctional:
            space = FunctionSpace.of(len(rows), None if weight is None else weight.astype(float))
            return loss.bind(y[rows], space, self.n_classes, groups)

        rows = np.arange(n)
        plain, other = (bound(rows, w, self.groups) for w in (None, self.rng.uniform(0.2, 3.0, n)))
        if plain.value(F) == other.value(F):
            self.fail(forgets.replace("but `sample_weight` is given", "though it takes them"), hint)
        labels = None if self.groups is None else self.groups.numbers
        counts = self.rng.integers(1, 4, n if labels is None else labels.max() + 1)
        counts[0], counts[-1] = 1, 3
        counts = counts if labels is None else counts[labels]
        twice = np.repeat(rows, counts)
        copies = np.arange(len(twice)) - np.repeat(np.cumsum(counts) - counts, counts)
        again = None if labels is None else Groups(labels[twice] * 3 + copies)
        weighted, repeated = bound(rows, counts, self.groups), bound(twice, None, again)
        (a, A), (b, B) = weighted.evaluate(F), repeated.evaluate(F[twice])
        # A subgradient may prefer one of several copies: only their sum is fixed.
        A, B = A * weighted.space.weight[:, None], B / len(twice)
        summed = np.zeros(A.shape)
        np.add.at(summed, twice, B)
        off = np.abs(A - summed).max(axis=1)
        same = abs(a - b) <= tolerance * (abs(a) + abs(b))
        if labels is not None:
            if not same:
                self.notes.append("Weight 2 for all rows of a group is not the group twice.")
        elif not same:
            self.fail(
                f"weight 2 is not the row twice: R = {a:.6g} with weights, {b:.6g} with repeated rows",
                "Average with `weight`, which sums to 1: R = Σ weight[n] · loss[n].",
            )
        elif off.max() > 10 * tolerance * np.abs(A).max():
            row = int(np.argmax(off))
            self.fail(f"the gradient does not use the weights like the value does (row {row})", PARTIALS)

    def start(self) -> None:
        """A declared start should not be much worse than 0."""
        objective = self.objective
        if not hasattr(getattr(self.loss, "user", None), "start"):
            return
        declared = objective.start()
        best = objective.search_start()
        there, found, zero = (
            objective.value(np.tile(c, (self.shape[0], 1))) for c in (declared, best, 0 * best)
        )
        if there > found + 2 * max(zero - found, 0.0) + 0.1 * abs(found) + 1e-12:
            self.fail(
                f"`start` returns {_show(declared)}, where R is {there:.6g}, but at {_show(best)} it is "
                f"{found:.6g} and at 0 {zero:.6g}",
                "Return scores, on the scale of F (a log-odds, not a probability), or leave `start` out.",
            )

    def prox(self) -> None:
        """The prox is where its displacement over the size is a subgradient."""
        for size in (0.1, 1.0, 10.0):
            for a in self.points[1:4]:
                X = self.objective.prox(a.F.copy(), size)
                if X is None:
                    return
                if np.shape(X) != self.shape:
                    self.fail(
                        f"`prox` returns shape {np.shape(X)}, not {self.shape} like `F`", "Return scores."
                    )
                losses, U = self.values(X), (a.F - X) / size
                if not self.by_rows:
                    U = U * self.objective.space.weight[:, None]
                for b in self.points:
                    D = b.F - X
                    gap = b.losses - losses - self.dot(U, D)
                    scale = self.scale(losses, X, U) + b.scale
                    scale += self.dot(np.maximum(np.abs(U), self.typical), np.abs(D))
                    rough = ROUNDING * 100 / size * self.dot(np.abs(a.F) + np.abs(X), np.abs(D))
                    slack = b.noise + max(1e-10, 100 * self.noise) * scale + rough
                    miss = np.where(
                        b.finite & np.isfinite(losses) & np.isfinite(slack), -gap - 4 * slack, -1.0
                    )
                    if miss.max() > 0:
                        row = int(np.argmax(miss)) if self.by_rows else 0
                        self.fail(
                            f"`prox` with size {size:g} is not optimal (row {row}, from {_show(a.F[row])} to "
                            f"{_show(X[row])}): (F − prox) / size is no subgradient there",
                            "It must minimise l(f, y) + ‖f − F‖² / (2 size): mind the 2.",
                        )

    def link(self) -> None:
        """Shapes, finite values, and probabilities for classes."""
        loss = self.loss
        link = loss.find_link() if isinstance(loss, Loss) else None
        if link is None:
            return
        n, K = self.shape[0], self.n_classes
        for point in self.points[:4]:
            F = point.F.copy()
            P = np.asarray(link(F))
            if not np.array_equal(F, point.F):
                self.fail("`link` writes into `F`", "Work on a copy.")
            if P.ndim not in (1, 2) or len(P) != n:
                self.fail(
                    f"`link` returns shape {P.shape} for scores of shape {self.shape}", "Keep the rows."
                )
            if K is not None and P.shape != (n, K):
                self.fail(
                    f"`link` returns shape {P.shape} for {K} classes, not {(n, K)}",
                    "Return the probability of each class.",
                )
            if not np.isfinite(P).all():
                if self.overflow:  # so may the link
                    continue
                self.fail(f"`link` is not finite at {point.name}", "Use a form that does not overflow.")
            if K is not None and (P.min() < 0 or np.abs(P.sum(axis=1) - 1).max() > 1e-5):
                row = int(np.argmax(np.abs(P.sum(axis=1) - 1)))
                self.fail(f"`link` returns {_show(P[row])} in row {row}", "Probabilities must sum to 1.")

    # -- the end --------------------------------------------------------------------------------------

    def report(self) -> Report:
        """Gather what was learned."""
        ordinary = self.ordinary
        weight, started = self.objective.space.weight, time.perf_counter()
        for _ in range(3):
            self.evaluate(ordinary[0].F)
        seconds = (time.perf_counter() - started) / 3

        def steepness(point: _Point) -> float:
            squares = (point.G**2).sum(axis=1)
            squares = squares if self.by_rows else np.array([(squares / weight).sum()])
            return math.sqrt(float(squares[point.finite].max(initial=0.0)))

        def curvature(s: _Slope) -> float:
            square = self.dot(s.D, s.D) if self.by_rows else np.array([(weight[:, None] * s.D**2).sum()])
            return float(np.nan_to_num((s.high - s.low) / (s.h * square)).max())

        checked = ["shapes", "finite values", "convexity", "gradient", "kinks", "arguments", "determinism"]
        extra = [
            name
            for name in ("start", "prox", "link", "constants")
            if hasattr(getattr(self.loss, "user", None), name)
        ]
        risks = [self.risk(p) for p in self.points]
        return Report(
            loss=str(self.loss) if self.loss is not None else self.who,
            checked=(*checked, *extra),
            evaluations=self.evaluations,
            n_points=len(self.points),
            coupled=self.is_coupled(ordinary[0]),
            kinks=self.kinks,
            lipschitz=max(map(steepness, ordinary)),
            curvature=max(curvature(s) for s in self.slopes if s.h > 5e-5 * s.point.unit),
            minimum=min(risks),
            seconds=seconds,
            notes=(*self.notes, *([self.overflow] if self.overflow else [])),
        )


def _sigmoid(F: Array) -> Array:
    return 1 / (1 + np.exp(-F))


def _softmax_chain(F: Array, G: Array) -> Array:
    P = np.exp(F - F.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P * (G - (P * G).sum(axis=1, keepdims=True))


#: If the gradient is with respect to what the score is mapped to, this is what it should have been.
_CHAINS: list[tuple[str, Callable[[Array, Array], Array]]] = [
    ("sigmoid", lambda F, G: G * _sigmoid(F) * (1 - _sigmoid(F))),
    ("exp", lambda F, G: G * np.exp(F)),
    ("softmax", _softmax_chain),
]
_CHAIN_NAMES = {
    "sigmoid": "the probability, 1/(1 + exp(−f))",
    "exp": "exp(f)",
    "softmax": "the probabilities (softmax of f)",
}


def _form(loss: Any) -> str:
    """Return the user's method."""
    if type(loss).__name__ in ("TorchLoss", "TorchRows"):
        return "value"
    return "evaluate" if isinstance(loss, CustomRows) else "total" if isinstance(loss, CustomTotal) else ""


def _who(loss: Any, objective: Functional) -> str:
    loss = getattr(objective, "loss", loss) if loss is None else loss
    form = _form(loss)
    return f"`{form}` of {loss.name}" if form else f"the loss {loss}" if loss is not None else "the loss"


def _is_single(x: Array) -> bool:
    """Return whether numbers come from float32: they fit into it, but are not short ones such as ½."""
    return bool((x == x.astype(np.float32)).all() and (x != x.astype(np.float16)).any())


def _show(f: Any) -> str:
    """A few numbers."""
    f = np.atleast_1d(f).ravel()
    text = ", ".join(f"{x:.6g}" for x in f[:5]) + (", …" if len(f) > 5 else "")
    return text if len(f) == 1 else f"({text})"
