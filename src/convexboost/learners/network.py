"""Small neural networks with one hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from convexboost.core.hypotheses import Term
from convexboost.core.numbers import is_whole
from convexboost.core.plain import Plain, ends_of, joined
from convexboost.core.space import Array, FunctionSpace
from convexboost.core.text import brief
from convexboost.core.tolerances import BETTER
from convexboost.kernels.hashing import fingerprints
from convexboost.learners._bins import categorical_mask
from convexboost.learners._dense import DenseHypothesis, DenseSet, RawInputs, RawMapper
from convexboost.learners._learner import Learner

#: Shares added to the mean square of each unit where the output layer is solved, so that units that do the
#: same share the work instead of cancelling in huge numbers; and what a unit that is always 0 counts.
RIDGE, SILENT = 1e-10, 1e-15
#: The first damping, as a share of the diagonal, and its factors after steps that succeed and that fail.
DAMPING, EASE, TIGHTEN = 3.0, 0.5, 5.0
#: The hidden layer is made of multiples of this.  Training a network enlarges errors of rounding, and
#: boosting feeds them back; cut off after each step they do not grow, so that weight 2 is the row twice and
#: the units of X and y do not matter.
GRAIN = 2.0**-16
#: Conjugate gradient iterations in a step, and the share of the squared gradient at which they stop.  Better
#: solutions of the equations cost more than they gain.
N_PRODUCTS, ENOUGH = 5, 1e-4
#: A unit that the output hardly uses moves as if it were used by this share of the most used one.
IDLE = 1e-6
#: Standardised inputs are cut off here: far outside of the training inputs every unit is saturated.
FAR = 1e8
#: Categories of a column, and entries of a sparse X, beyond which making them dense is refused.
MAX_CATEGORIES, MAX_ENTRIES = 255, 10**8
#: Numbers in the hidden layer while a model is evaluated.
MAX_BUFFER = 2**20
#: Rows of a block.
BLOCK = 256
#: Half of the rows that are drawn for training are drawn by weight, the other half by weight and length of Δ:
#: where Δ is 0 in most rows, drawing by weight alone would miss what there is to fit.
BY_LENGTH = 0.5

# --- inputs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A column of numbers: mean 0 and variance 1, or left out where they are all the same."""

    index: int
    center: float
    scale: float  #: 0: all the same
    has_missing: bool

    __repr__ = brief

    @classmethod
    def learn(cls, index: int, column: Array, space: FunctionSpace) -> Number:
        """Find mean and standard deviation of the values that are not missing."""
        known = ~np.isnan(column)
        values = column[known]
        if len(values) == 0 or values.min() == values.max():
            return cls(index, 0.0, 0.0, bool((~known).any()) and len(values) > 0)
        # Between −1 and 1 first: squares of huge and of tiny numbers are not numbers.
        middle = values.min() / 2 + values.max() / 2
        half = values.max() / 2 - values.min() / 2
        unit, share = np.where(known, (column - middle) / half, 0.0), space.mass(known)
        mean = space.mean(unit) / share
        variance = space.mean(np.where(known, (unit - mean) ** 2, 0.0)) / share
        return cls(index, float(middle + half * mean), float(half * np.sqrt(variance)), not known.all())

    def encode(self, column: Array) -> list[Array]:
        """Return the standardised column, the mean where it is missing, and where it is."""
        out = []
        if self.scale > 0.0:
            with np.errstate(over="ignore"):
                out.append(np.clip(np.nan_to_num((column - self.center) / self.scale), -FAR, FAR))
        return [*out, np.isnan(column).astype(float)] if self.has_missing else out


@dataclass(frozen=True)
class Category:
    """A column of categories: one indicator each.  Missing ones are a category; new ones are none at all."""

    index: int
    values: Array

    __repr__ = brief

    @classmethod
    def learn(cls, index: int, column: Array) -> Category:
        """Find the categories."""
        values = np.unique(column)
        if len(values) > MAX_CATEGORIES:
            raise ValueError(
                f"`learner` 'network' takes at most {MAX_CATEGORIES} categories in a column, "
                f"got {len(values)} in column {index}"
            )
        return cls(index, values if len(values) > 1 else values[:0])

    def encode(self, column: Array) -> list[Array]:
        """Return the indicators."""
        return [
            (np.isnan(column) if np.isnan(value) else column == value).astype(float) for value in self.values
        ]


@dataclass(frozen=True)
class Standardiser(RawMapper):
    """X as the networks read it: standardised columns, indicators, and a last column of ones."""

    columns: tuple[Number | Category, ...]

    __repr__ = brief

    @property
    def n_inputs(self) -> int:
        """Return the number of inputs that the networks read."""
        return int(self.prepare(np.zeros((1, len(self.columns)))).X.shape[1])

    @classmethod
    def learn(cls, X: Any, space: FunctionSpace, categorical: NDArray[np.bool_]) -> Standardiser:
        """Read means, deviations and categories off the training inputs."""
        X = _dense(X)
        return cls(
            tuple(
                Category.learn(j, X[:, j]) if categorical[j] else Number.learn(j, X[:, j], space)
                for j in range(X.shape[1])
            )
        )

    def prepare(self, X: Any) -> RawInputs:
        """Encode X."""
        X = _dense(X)
        if X.ndim != 2 or X.shape[1] != len(self.columns):
            raise ValueError(f"`X` must have {len(self.columns)} columns, got shape {X.shape}")
        encoded = [part for column in self.columns for part in column.encode(X[:, column.index])]
        return RawInputs(np.column_stack([*encoded, np.ones(X.shape[0])]))

    def to_plain(self) -> Plain:
        """Return centers and scales of all columns, and the categories one after the other."""
        numbers = [c if isinstance(c, Number) else Number(c.index, 0.0, 0.0, False) for c in self.columns]
        categories = [c.values if isinstance(c, Category) else np.empty(0) for c in self.columns]
        arrays = {
            "categorical": np.array([isinstance(c, Category) for c in self.columns], bool),
            "center": np.array([c.center for c in numbers], float),
            "scale": np.array([c.scale for c in numbers], float),
            "has_missing": np.array([c.has_missing for c in numbers], bool),
            "categories": joined(categories, float),
            "category_ends": ends_of(categories),
        }
        return Plain({}, arrays)

    @classmethod
    def from_plain(cls, plain: Plain) -> Self:
        """Read the columns."""
        categorical = plain.array("categorical", bool, None)
        n, values = len(categorical), plain.array("categories", float, None, finite=False)  # NaN: missing
        center, scale = (plain.array(name, float, n) for name in ("center", "scale"))
        plain.need("scale", (scale >= 0.0).all(), "numbers that are not negative")
        missing, slices = plain.array("has_missing", bool, n), plain.slices("category_ends", n, len(values))
        return cls(
            tuple(
                Category(j, values[slices[j]])
                if categorical[j]
                else Number(j, float(center[j]), float(scale[j]), bool(missing[j]))
                for j in range(n)
            )
        )


def _dense(X: Any) -> Array:
    if not sp.issparse(X):
        return np.asarray(X, float)
    if X.shape[0] * X.shape[1] > MAX_ENTRIES:
        raise ValueError(
            f"`learner` 'network' makes a sparse `X` dense, up to {MAX_ENTRIES:,} entries; got one of shape "
            f"{X.shape}"
        )
    return np.asarray(X.toarray(), float)


# --- networks ----------------------------------------------------------------------------------------------


# Blocks have shape (n_blocks, n_columns, n_rows): loops over the rows of a block become vector instructions.
# BLAS would use several threads, and its sums would depend on their number.

#: exp(y) = 2ᵏ exp(y − k log 2).  Adding MAGIC rounds to whole numbers and leaves k in the last bits.
MAGIC, PER_LOG_2, LOG_2, LOG_2_REST = (
    1.5 * 2.0**52,
    1.4426950408889634,
    0.693147180369123816490,
    1.90821492927058770002e-10,
)
#: tanh is 1 from half of this.
SATURATED = 40.0


@njit(cache=True, nogil=True)
def _tanh(A: Array) -> None:
    """A ← tanh(A) = 1 − 2/(exp(2A) + 1), to 3e−16; four times as fast as NumPy's, which is not vectorised."""
    flat = A.reshape(-1)
    power, value = np.empty(BLOCK), np.empty(BLOCK)
    power_bits, value_bits = power.view(np.int64), value.view(np.int64)
    for start in range(0, len(flat), BLOCK):
        part = flat[start : start + BLOCK]
        for n in range(len(part)):
            y = 2.0 * part[n]
            y = SATURATED if y > SATURATED else y
            y = -SATURATED if y < -SATURATED else y
            shifted = y * PER_LOG_2 + MAGIC
            k = shifted - MAGIC
            r = y - k * LOG_2 - k * LOG_2_REST
            p = 1.0 / 479001600.0  # Taylor: |r| ≤ log(2)/2
            p = p * r + 1.0 / 39916800.0
            p = p * r + 1.0 / 3628800.0
            p = p * r + 1.0 / 362880.0
            p = p * r + 1.0 / 40320.0
            p = p * r + 1.0 / 5040.0
            p = p * r + 1.0 / 720.0
            p = p * r + 1.0 / 120.0
            p = p * r + 1.0 / 24.0
            p = p * r + 1.0 / 6.0
            p = p * r + 0.5
            p = p * r + 1.0
            power[n], value[n] = shifted, p * r + 1.0
        for n in range(len(part)):
            value_bits[n] += power_bits[n] << 52  # times 2ᵏ
        for n in range(len(part)):
            part[n] = 1.0 - 2.0 / (value[n] + 1.0)


@njit(cache=True, nogil=True)
def combine(A: Array, M: Array) -> Array:
    """A M, row by row; a row comes out the same whatever other rows there are."""
    out = np.zeros((A.shape[0], M.shape[1], A.shape[2]))
    for b in range(len(A)):
        for j in range(M.shape[1]):
            column = out[b, j]
            for i in range(M.shape[0]):
                m, a = M[i, j], A[b, i]
                for n in range(len(a)):
                    column[n] += m * a[n]
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def cross(A: Array, B: Array) -> Array:
    """Aᵀ B over the rows of all blocks."""
    out = np.zeros((A.shape[1], B.shape[1]))
    for b in range(len(A)):
        for i in range(A.shape[1]):
            for j in range(B.shape[1]):
                total = 0.0
                for n in range(A.shape[2]):
                    total += A[b, i, n] * B[b, j, n]
                out[i, j] += total
    return out


def in_blocks(rows: Array) -> Array:
    """Cut rows into blocks; zeros fill up the last one."""
    count = -(-len(rows) // BLOCK)
    padded = np.zeros((count * BLOCK, rows.shape[1]))
    padded[: len(rows)] = rows
    return np.ascontiguousarray(padded.reshape(count, BLOCK, -1).transpose(0, 2, 1))


def out_of_blocks(blocks: Array, count: int) -> Array:
    """Return the first `count` rows."""
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:count]


def hidden_layer(Z: Array, inward: Array) -> Array:
    """tanh(Z · inward)."""
    layer = combine(Z, inward)
    _tanh(layer)
    return layer


@dataclass(frozen=True, eq=False)
class Units(DenseHypothesis):
    """h(z) = tanh(z · inward) · outward + constant.  The last input is 1."""

    inward: Array  #: (n_inputs, hidden)
    outward: Array  #: (hidden, n_outputs)
    constant: Array  #: (n_outputs,)

    kind = "network"
    __repr__ = brief

    @classmethod
    def to_plain(cls, hypotheses: Sequence[Self]) -> Plain:
        """Lay the units of all networks one after the other."""
        arrays = {
            "unit_ends": ends_of([h.outward for h in hypotheses]),
            "inward": np.concatenate([h.inward.T for h in hypotheses]),
            "outward": np.concatenate([h.outward for h in hypotheses]),
            "constant": np.stack([h.constant for h in hypotheses]),
        }
        return Plain({}, arrays)

    @classmethod
    def from_plain(cls, plain: Plain, count: int, mapper: Any, n_outputs: int) -> list[Self]:
        """Cut the arrays."""
        inward = plain.array("inward", float, None, mapper.n_inputs)
        outward = plain.array("outward", float, len(inward), n_outputs)
        constant = plain.array("constant", float, count, n_outputs)
        slices = plain.slices("unit_ends", count, len(inward))
        has_units = all(part.stop > part.start for part in slices)
        plain.need("unit_ends", has_units, "at least one unit for each network")
        return [
            cls(np.ascontiguousarray(inward[part].T), outward[part], one)
            for part, one in zip(slices, constant, strict=True)
        ]

    def evaluate(self, X: Array) -> Array:
        """Return the values, some rows at a time."""
        out = np.empty((len(X), len(self.constant)))
        n_rows = max(MAX_BUFFER // len(self.outward), 1)
        for start in range(0, len(X), n_rows):
            rows = X[start : start + n_rows]
            out[start : start + n_rows] = out_of_blocks(self.in_blocks(in_blocks(rows)), len(rows))
        return out

    def in_blocks(self, Z: Array) -> Array:
        """Return the values for blocks of inputs."""
        return combine(hidden_layer(Z, self.inward), self.outward) + self.constant[:, None]

    @classmethod
    def merge(cls, terms: Sequence[Term]) -> Sequence[Term]:
        """Networks side by side are one wide network."""
        networks: list[tuple[float, Any]] = list(terms)
        inward = np.hstack([h.inward for _, h in networks])
        outward = np.vstack([weight * h.outward for weight, h in networks])
        return [(1.0, cls(inward, outward, sum(weight * h.constant for weight, h in networks)))]


def _rounded(inward: Array) -> Array:
    return GRAIN * np.round(inward / GRAIN)


class Blocks(NamedTuple):
    """Rows to train on, cut into blocks; what fills up the last block has no weight."""

    Z: Array  #: (n_blocks, n_inputs, n_rows)
    values: Array  #: (n_blocks, n_outputs, n_rows)
    weight: Array  #: (n_blocks, 1, n_rows); sums to 1


class Fit:
    """A hidden layer with the best output layer for it, by weighted least squares."""

    def __init__(self, inward: Array, rows: Blocks) -> None:
        self.inward, self.rows = inward, rows
        self.layer = np.concatenate([hidden_layer(rows.Z, inward), np.ones_like(rows.weight)], axis=1)
        self.weighted = rows.weight * self.layer
        gram = cross(self.weighted, self.layer)
        units = np.diag_indices(inward.shape[1])
        gram[units] += RIDGE * gram[units] + SILENT
        self.inverse = np.asarray(np.linalg.inv(gram), float)
        self.output = self.inverse @ cross(self.weighted, rows.values)  # the last row is the constant
        self.rest = rows.values - combine(self.layer, self.output)
        self.error = float(np.sum(rows.weight * self.rest**2))

    def step(self, damping: float) -> Array:
        """Return a damped Gauss-Newton step of the hidden layer, the output layer following it.

        Variable projection in Kaufman's form: a change of the hidden layer counts by what the output layer
        could not do.  Conjugate gradients solve the equations and need only products with the inputs.
        """
        (Z, _, weight), outward = self.rows, self.output[:-1]
        slope = 1.0 - self.layer[:, :-1] ** 2
        weighted = weight * slope
        between = outward @ outward.T
        size = np.diag(between) * np.sum(weighted * slope, axis=(0, 2))  # of the diagonal, unit by unit
        if size.max() == 0.0:
            return np.zeros_like(self.inward)
        size = np.maximum(size, IDLE * size.max())

        def product(change: Array) -> Array:
            moved = slope * combine(Z, change)
            moved -= combine(self.layer, self.inverse @ cross(self.weighted, moved))
            return cross(Z, weighted * combine(moved, between)) + damping * size * change

        step = np.zeros_like(self.inward)
        rest = cross(Z, weighted * combine(self.rest, np.ascontiguousarray(outward.T)))
        direction, squared = rest / size, np.sum(rest * rest / size)
        enough = ENOUGH * squared
        for _ in range(N_PRODUCTS):
            if squared <= enough:
                break
            image = product(direction)
            length = squared / np.sum(direction * image)
            step += length * direction
            rest -= length * image
            squared, before = np.sum(rest * rest / size), squared
            direction = rest / size + squared / before * direction
        return step


@dataclass
class DistinctInputs(RawInputs):
    """The distinct inputs, and which of them each row has."""

    blocks: Array = field(kw_only=True)
    number: NDArray[np.intp] = field(kw_only=True)

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.number)

    def evaluate(self, h: Any) -> Array:
        """Return h at all rows."""
        if self._last is None or self._last[0] is not h:
            self._last = (h, out_of_blocks(h.in_blocks(self.blocks), int(self.number.max()) + 1)[self.number])
        return self._last[1]


class NetworkSet(DenseSet):
    """Networks trained on Δ.

    Rows with equal inputs are one row of their mean, which has the same least squares solution.  These rows
    stand in the order of their fingerprints: sums over them in floats depend neither on the order of the rows
    nor on copies.
    """

    def __init__(self, options: Network, mapper: Standardiser, X: Any, space: FunctionSpace) -> None:
        Z = mapper.prepare(X).X
        _, first, number = np.unique(fingerprints(Z), return_index=True, return_inverse=True)
        super().__init__(Z, space)
        self._Z, self._mass = Z[first], space.masses(number)
        blocks = in_blocks(self._Z)
        self.inputs = DistinctInputs(self._Z, blocks=blocks, number=number)
        self._weight = in_blocks(self._mass[:, None])
        self.options, self.mapper = options, mapper

    def fit(self, values: Array, rng: np.random.Generator) -> Units:
        """Train on some rows; the output layer is then fitted to all of them."""
        options, n_inputs = self.options, self._Z.shape[1]
        norm = self.space.norm(values)
        means = self._means(values, norm) / norm
        everything = Blocks(self.inputs.blocks, in_blocks(means), self._weight)
        rows = self._draw(means, rng) or everything
        start = rng.normal(size=(n_inputs, options.hidden))
        start[:-1] /= np.sqrt(max(n_inputs - 1, 1))  # so that what a unit reads has variance about 1
        best, damping = Fit(_rounded(start), rows), DAMPING
        for _ in range(options.n_steps):
            new = Fit(_rounded(best.inward + best.step(damping)), rows)
            if new.error < (1 - BETTER) * best.error:
                best, damping = new, damping * EASE
            else:
                damping *= TIGHTEN
        output = norm * (best if rows is everything else Fit(best.inward, everything)).output
        return Units(best.inward, output[:-1], output[-1])

    def _means(self, values: Array, norm: float) -> Array:
        """Return the mean of the rows with each input; 0 where they have hardly any weight."""
        sums = self.space.exact_sums(self.inputs.number, values, len(self._mass), norm)
        mass = sums.masses()[:, None]
        return np.where(mass > 0.0, sums.values() / np.where(mass > 0.0, mass, 1.0), 0.0)

    def _draw(self, values: Array, rng: np.random.Generator) -> Blocks | None:
        """Draw one row out of each of `max_rows` equal parts of the chances; None: there are no more rows."""
        count = self.options.max_rows
        if len(self._mass) <= count:
            return None
        lengths = np.linalg.norm(values, axis=1)
        by_length = self._mass * (lengths if lengths.any() else 1.0)
        chances = (1.0 - BY_LENGTH) * self._mass / self._mass.sum() + BY_LENGTH * by_length / by_length.sum()
        share = np.cumsum(chances)
        places = (np.arange(count) + rng.random(count)) / count * share[-1]
        which = np.minimum(np.searchsorted(share, places), len(share) - 1)
        weight = self._mass[which] / chances[which]  # so that the mean of any function is right on average
        return Blocks(*map(in_blocks, (self._Z[which], values[which], (weight / weight.sum())[:, None])))


@dataclass(frozen=True)
class Network(Learner):
    """A neural network with one hidden layer, h(x) = b + Σ_j a_j tanh(w_jᵀx + c_j); outputs share the layer.

    Trained by least squares on Δ from a random start; the output layer (a, b) is the best one for the hidden
    layer at every step, and at last over all rows: h is then the projection on the span of its units, with
    coefficient 1 (up to a tiny ridge), and edge² = 1 − ‖Δ − h‖²/‖Δ‖².

    Columns are standardised.  A missing value counts as the mean, with an indicator if the training inputs
    miss values there; each category is an indicator, and one not seen in training is none of them.  A sparse
    X is made dense.

    Parameters
    ----------
    hidden : int, default=5
        Number of hidden units.
    n_steps : int, default=12
        Gauss-Newton steps (Levenberg-Marquardt).  0: random units, only the output layer is fitted.
    max_rows : int, default=4000
        Distinct inputs that the hidden layer is trained on, drawn anew for each network: half of them in
        proportion to their weight, half to weight times length of Δ.  If there are no more than that, all.

    """

    hidden: int = 5
    n_steps: int = 12
    max_rows: int = 4000

    name: ClassVar[str] = "network"
    allows_missing = allows_sparse = True
    uses_categories = True
    mapper_type = Standardiser
    hypothesis_types = (Units,)

    def __post_init__(self) -> None:
        for parameter, least in (("hidden", 1), ("n_steps", 0), ("max_rows", 1)):
            value = getattr(self, parameter)
            if not is_whole(value, least):
                raise ValueError(f"`{parameter}` must be a whole number of at least {least}, got {value!r}")

    def bind(
        self,
        X: Any,
        space: FunctionSpace,
        categorical: Any = None,
        n_threads: int = 1,
        *,
        mapper: Standardiser | None = None,
        names: Any = None,
        groups: Any = None,
        targets: Any = None,
    ) -> NetworkSet:
        """Standardise the training inputs, anew or by the `mapper` of a model."""
        if mapper is None:
            mapper = Standardiser.learn(X, space, categorical_mask(categorical, X.shape[1]))
        return NetworkSet(self, mapper, X, space)
