"""What an algorithm sees of an objective and of a hypothesis set."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from convexboost.core.gradients import Gradient
from convexboost.core.hypotheses import ZERO, Direction, Move
from convexboost.core.plain import Plain
from convexboost.core.space import Array
from convexboost.core.tolerances import ROUNDING


@dataclass(frozen=True)
class Constants:
    """What is known of a convex objective in L²(P); None where it is not known or infinite."""

    lipschitz: float | None = None  #: ‖∇R[F]‖ ≤ lipschitz for all F
    smoothness: float | None = None  #: Λ; None: not smooth
    strong_convexity: float = 0.0  #: λ
    minimum: float | None = None  #: a number that R is never below


class Objective(Protocol):
    """A convex function R[F] of the scores of some rows."""

    @property
    def n_outputs(self) -> int: ...
    @property
    def constants(self) -> Constants: ...
    @property
    def l2(self) -> float:
        """Return the weight of the ridge term (l2/2) ‖F − start‖² that R contains."""

    @property
    def envelope(self) -> float:
        """Return the width of the Moreau envelope in Polyak steps; 0 means gradients of R itself."""

    def loss_constants(self) -> Constants:
        """Return what is known of R without the ridge term."""

    def start(self) -> Array:
        """Return the best constant function, shape (n_outputs,)."""

    def scores(self, inputs: Any, start: Array, offset: Array | None = None) -> Scores:
        """Place the objective at the constant `start` (plus a fixed `offset` per row)."""


class Scores(Protocol):
    """The current F of an objective.  Nobody else sees the rows."""

    @property
    def constants(self) -> Constants: ...

    def move(self, move: Move) -> None:
        """F ← start + shrink (F − start) + direction."""

    def value(self) -> float:
        """R[F]."""

    def gradient(self) -> Gradient:
        """Return a subgradient of R at F, in L²(P)."""

    def curvature_of_rows(self) -> Array | None:
        """Return the second derivative of R at F in each row, added over the outputs; None if not known."""

    def gap(self) -> float:
        """Return how much of R[F] can be gained: R − floor, without what belongs to a few outliers."""

    def along(self, direction: Direction) -> Ray:
        """Return R on the line through F along `direction`; F does not move."""

    def rescaled(self, shrink: float) -> float:
        """R[start + shrink (F − start)]; F does not move."""

    def refitted(self, direction: Direction) -> Direction | None:
        """Return the same leaves with values such that R[F − direction] is about as small as it can be.

        None where the direction has no leaves, or constraints on them leave nothing to gain that way.
        """

    def distance(self) -> float:
        """‖F − start‖."""

    def largest(self) -> float:
        """Return the largest score in absolute value."""

    def magnitude(self) -> float:
        """‖F‖: rounding is relative to it."""

    def state(self) -> Any:
        """Return what `restore` needs to come back here, picklable and independent of later moves."""

    def restore(self, state: Any) -> None:
        """Go back to a state."""


@dataclass(frozen=True)
class Ray:
    """R on a line: a ↦ R[F + a direction]."""

    value: Callable[[float], float]
    slope: Callable[[float], float]  #: a subgradient of it

    def __call__(self, a: float) -> float:
        return self.value(a)


class PreparedInputs(Protocol):
    """Rows as hypotheses read them; what else they offer is between a learner and its hypotheses."""

    @property
    def n_threads(self) -> int:
        """Return how many threads may work on the rows."""

    def __len__(self) -> int: ...


class Mapper(ABC):
    """Turns a user's X into what hypotheses read: binned columns, or X itself."""

    @abstractmethod
    def prepare(self, X: Any) -> PreparedInputs:
        """Return X as hypotheses read it, with the number of threads that may work on it."""

    def extends(self, other: Mapper) -> bool:
        """Return whether hypotheses of the other mapper mean the same with this one.

        By default the same mapper does, and one of the same kind without anything that it has learned.
        """
        return self is other or (type(self) is type(other) and not vars(self))

    @property
    def n_hypotheses(self) -> float:
        """Return how many hypotheses with different keys these inputs allow; infinity: not known."""
        return math.inf

    def to_plain(self) -> Plain:
        """Return the mapper as plain data."""
        raise ValueError(f"{type(self).__name__} cannot be written as plain arrays")

    @classmethod
    def from_plain(cls, plain: Plain) -> Self:
        """Return the mapper that `to_plain` wrote; raise a ValueError that names what is wrong."""
        raise ValueError(f"{cls.__name__} cannot be read from plain arrays")


class HypothesisSet(Protocol):
    """H, bound to the training inputs."""

    @property
    def knows_span(self) -> bool:
        """Return whether `Target.coordinates` projects on span(H)."""

    @property
    def rounding(self) -> float:
        """Return the relative error of `Target.coordinates`; only asked where these are known."""

    def light(self, gradient: Gradient) -> float:
        """Return the length of ∇ on the rows that are too light to be seen in `Target.coordinates`."""

    @property
    def mapper(self) -> Mapper:
        """Return the map from a user's X to `inputs`, kept in the model."""

    @property
    def inputs(self) -> Any:
        """Return the training inputs, prepared."""

    def zero(self, n_outputs: int) -> Target:
        """Δ = 0."""

    def origin(self, n_outputs: int) -> Position:
        """Return f − f₀ = 0."""

    def at(self, coordinates: Array) -> Direction:
        """Return the function at the training points that has these `Target.coordinates`."""

    def functions(self, n_outputs: int) -> Any:
        """Return functions that span H, or more, at the training points; None where they are not known.

        Sparse, (n_samples · n_outputs, count): a column is a function, row after row.
        """


class Position(ABC):
    """f − f₀, the sum of all moves so far, in a form whose inner product with a gradient is cheap."""

    @abstractmethod
    def move(self, move: Move) -> None:
        """Follow a move of the scores."""

    @abstractmethod
    def dot(self, gradient: Gradient) -> float:
        """⟨∇, f − f₀⟩."""

    @abstractmethod
    def state(self) -> Any:
        """Return what `restore` needs, picklable."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go back to a state."""


class Target(ABC):
    """The vector Δ that is projected on H, in whatever form H can search fastest."""

    @abstractmethod
    def add(self, gradient: Gradient, scale: float = 1.0) -> None:
        """Δ ← Δ + scale ∇."""

    @abstractmethod
    def combine(self, other: Any, scale: float = 1.0) -> None:
        """Δ ← Δ + scale Δ', for a Δ' of the same set."""

    @abstractmethod
    def scale(self, factor: float) -> None:
        """Δ ← factor Δ."""

    uses_curvature: bool = False  #: whether `project_to_refit` looks at the curvature

    @abstractmethod
    def project(self, rng: np.random.Generator) -> Direction:
        """Return (⟨Δ, h*⟩/‖h*‖²) h* for the best h* found in H; `ZERO` if every h is orthogonal to Δ."""

    def project_to_refit(self, rng: np.random.Generator, curvature: Array | None) -> Direction:
        """Do the same where a refit will replace the values of h*.

        `curvature` is the second derivative of R in each row, (n_samples,), None where it is not known.  With
        it a set may look for the h* that gains most by a Newton step in each leaf.
        """
        return self.project(rng)

    @abstractmethod
    def subtract(self, direction: Direction) -> None:
        """Δ ← Δ − direction."""

    @abstractmethod
    def dot(self, direction: Direction) -> float:
        """⟨Δ, direction⟩."""

    @abstractmethod
    def inner(self, gradient: Gradient) -> tuple[float, float]:
        """⟨Δ, ∇⟩ and ‖∇‖², both inside span(H) where the set knows its span."""

    def strength(self) -> float | None:
        """max_h |⟨Δ, h⟩|/‖h‖ over all h in H; None for a set that need not find the best."""
        return None

    @abstractmethod
    def coordinates(self, even_if_slow: bool = False) -> Array | None:
        """Return ΠΔ in Euclidean coordinates, None where span(H) is too large to be known.

        None also where it would take long and `even_if_slow` is False, as in training.  A set that does not
        know its span returns Δ itself: it is longer than ΠΔ, which makes a bound weaker, never wrong.
        """

    @property
    def knows_length(self) -> bool:
        """Return whether `length` is ‖ΠΔ‖ and not only a bound on it."""
        return False

    @abstractmethod
    def length(self) -> float:
        """Return ‖ΠΔ‖, raised by its rounding error; where span(H) is not known ‖Δ‖, which is no shorter."""

    @abstractmethod
    def copy(self) -> Self:
        """Return an independent Δ."""

    @abstractmethod
    def state(self) -> Any:
        """Return what `restore` needs, picklable."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go back to a state."""

    def projections(self, count: int, rng: np.random.Generator, tolerance: float) -> list[Direction]:
        """Project and subtract up to `count` times; at least once if Δ correlates with H at all.

        Stops early when `length` falls to `tolerance`, or the projected length to rounding.
        """
        found: list[Direction] = []
        while len(found) < count:
            h = self.project(rng)
            if h.norm <= (ROUNDING * found[0].norm if found else 0.0):
                break
            found.append(h)
            self.subtract(h)
            if tolerance > 0.0 and self.length() <= tolerance:
                break
        return found

    def pursue(
        self, count: int, rng: np.random.Generator, tolerance: float = 0.0, rescale: bool = True
    ) -> Direction:
        """Replace Δ by what `count` projections leave of it, and return their sum: inner loop of Algorithm 2.

        `rescale`: make the sum the projection of Δ on its own line (Algorithm 2': ‖h‖ ≤ ‖Δ‖ and h ⟂ Δ − h,
        which plain matching pursuit does not guarantee).  What is left over then gets shorter still.
        """
        before = self.copy()
        projections = self.projections(count, rng, tolerance)
        if not projections:
            return ZERO
        total = Direction(tuple(term for h in projections for term in h.terms), 0.0)
        correlation = before.dot(total)
        squared = correlation - self.dot(total)  # Δ_before = total + Δ_after
        if squared <= 0.0:
            return projections[0]
        norm = abs(correlation) / math.sqrt(squared)  # of the projection on the line of the sum
        edge = norm * projections[0].edge / projections[0].norm
        factor = correlation / squared if rescale else 1.0
        return Direction((total * factor).terms, norm if rescale else math.sqrt(squared), edge)
