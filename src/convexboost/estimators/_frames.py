"""From a user's X (array, sparse matrix, pandas or polars frame) to a matrix of numbers.

Dates and times become seconds since 1970 (in UTC where there is a time zone), durations become seconds,
whatever their unit; NaT is a missing value.  A column must hold the same kind of values in `fit` and later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.communicator import ALONE, Communicator
from convexboost.core.numbers import is_whole
from convexboost.core.space import Array

#: What a column can hold.
NUMBERS, DATETIMES, ZONED, DURATIONS, TEXT = (
    "numbers",
    "datetimes without a time zone",
    "datetimes with a time zone",
    "durations",
    "text values",
)
#: Read as floats.
NUMERIC = (NUMBERS, DATETIMES, ZONED, DURATIONS)
#: The parts of a second that NumPy counts.
PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}


@contextmanager
def naming(parameter: str) -> Iterator[None]:
    """Let the errors of scikit-learn and NumPy say which parameter they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if re.search(rf"(?<!\w){re.escape(parameter)}(?!\w)", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"`{parameter}` cannot be used: {error}") from None


def is_frame(X: Any) -> bool:
    """Return whether X has named, typed columns (pandas, polars)."""
    return hasattr(X, "shape") and hasattr(X, "columns") and hasattr(X, "dtypes")


def unmasked(values: Any) -> Any:
    """Return a masked array with NaN where it is masked, as others ignore the mask."""
    masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
    return values.astype(float).filled(np.nan) if masked else values


def has_times(X: Any) -> bool:
    """Return whether an array holds dates, times or durations, which NumPy would turn into any numbers."""
    if not isinstance(X, np.ndarray):
        return False
    return X.dtype.kind in "mM" or (X.dtype == object and any(map(_is_time, X.ravel())))


def refuse_times(values: Any, parameter: str) -> None:
    """Insist on numbers where scikit-learn would take times for some: their unit is lost then."""
    array = np.asarray(values)
    if has_times(array):
        times = (type(value).__name__ for value in array.ravel() if _is_time(value))
        what = next(times) if array.dtype == object else array.dtype
        raise ValueError(f"`{parameter}` must hold numbers, got {what}")


def _is_categorical(dtype: Any) -> bool:
    return str(dtype).startswith(("category", "Categorical", "Enum"))


@dataclass(frozen=True)
class Columns:
    """What the columns hold, which are categorical, and the categories that are not numbers."""

    names: tuple[Any, ...]  #: numbers where X has no names
    categorical: NDArray[np.bool_]
    kinds: tuple[str | None, ...]  #: None: nothing but missing values
    encoders: dict[int, dict[Any, int]]  #: the number of each category, in their order

    @classmethod
    def learn(
        cls, X: Any, categorical_features: Any, communicator: Communicator = ALONE
    ) -> tuple[Columns, list[Cells] | None]:
        """Read them off the training inputs; return also the columns read, None where there was no need.

        Other processes may have rows with other categories, or nothing but missing values in a column.
        """
        names = column_names(X)
        mask = _mask(X, categorical_features)
        if not is_frame(X) and not has_times(X) and (sp.issparse(X) or not mask.any()):
            return cls(names, mask, (NUMBERS,) * len(names), {}), None  # scikit-learn makes numbers of them
        cells = list(read(X))
        here = [
            (kind, _categories(values, kind) if mask[j] else set())
            for j, (values, kind, _) in enumerate(cells)
        ]
        kinds, encoders = [], {}
        for j, (name, *found) in enumerate(zip(names, *communicator.gather(here), strict=True)):
            held = dict.fromkeys(kind for kind, _ in found if kind is not None)
            if len(held) > 1:
                raise ValueError(f"column {name!r} of `X` holds {' and '.join(held)} in different partitions")
            kind = next(iter(held), None)
            if mask[j] and kind is not None and kind not in NUMERIC:
                try:
                    categories = sorted(set().union(*(values for _, values in found)))
                except TypeError:
                    raise ValueError(
                        f"column {name!r} of `X` is categorical, but its values, {kind}, cannot be sorted"
                    ) from None
                encoders[j] = {value: number for number, value in enumerate(categories)}
            elif kind == TEXT:
                kind = NUMBERS  # or `encode` refuses it
            kinds.append(kind)
        return cls(names, mask, tuple(kinds), encoders), cells

    @property
    def plain(self) -> bool:
        """Return whether an array of numbers can be read as it is."""
        return not self.encoders and all(kind in (NUMBERS, None) for kind in self.kinds)

    def encode(self, X: Any, parameter: str = "X", cells: Iterable[Cells] | None = None) -> Array:
        """Return X as floats: categories numbered, seconds for times, NaN for what is missing.

        `cells` are the columns of X, if they have been read.
        """
        out = np.full(X.shape, np.nan)
        for j, (values, kind, level) in enumerate(read(X) if cells is None else cells):
            wanted = self.kinds[j]
            if kind is None or wanted is None:
                continue
            where = f"column {self.names[j]!r} of `{parameter}`"
            if kind == TEXT and wanted == NUMBERS:
                values, kind = _parsed(values)
            unreadable = wanted not in NUMERIC and j not in self.encoders
            if unreadable or (kind == TEXT and wanted == NUMBERS and not self.categorical[j]):
                raise ValueError(
                    f"{where} holds {kind}, not numbers: give it a categorical dtype or name it in "
                    "`categorical_features`"
                )
            if kind == NUMBERS != wanted and np.isnan(values).all():
                continue
            if kind != wanted:
                raise ValueError(f"{where} holds {kind}, but the model was fitted to {wanted}")
            encoder = self.encoders.get(j)
            if encoder is not None:
                values = np.array([encoder.get(value, np.nan) for value in values])
            out[:, j] = values if level is None else values[level]
        return out


def _categories(values: Any, kind: str | None) -> set[Any]:
    """Return the categories that are not numbers."""
    return set() if kind is None or kind in NUMERIC else {value for value in values if not is_missing(value)}


def column_names(X: Any) -> tuple[Any, ...]:
    """Return the names of the columns, or their numbers; each name must be there once."""
    names = tuple(X.columns) if is_frame(X) else tuple(range(X.shape[1]))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"`X` must not have two columns of the same name, got {twice[0]!r} twice or more")
    return names


# --- one column --------------------------------------------------------------------------------------------


class Cells(NamedTuple):
    """A column: the value of each row or, where different values are kept once, of each level."""

    values: NDArray[Any]  #: floats, or objects where the column holds no numbers
    kind: str | None  #: of what it holds
    level: NDArray[np.intp] | None = None  #: of each row


def read(X: Any) -> Iterator[Cells]:
    """Read column by column."""
    if sp.issparse(X):
        X = X.tocsc()
        return (Cells(X[:, [j]].toarray().ravel(), NUMBERS) for j in range(X.shape[1]))
    return map(_read_column, (X[name] for name in X.columns) if is_frame(X) else X.T)


def _read_column(column: Any) -> Cells:
    """Read a column.  Python looks at each level of a category once, not at every row."""
    dtype = column.dtype
    if callable(getattr(dtype, "is_nested", None)) and dtype.is_nested():  # lists and records of polars
        return Cells(np.empty(len(column), object), f"{dtype} values")
    if str(dtype) == "category":  # of pandas, which numbers them; missing values are −1
        number = column.cat.codes.to_numpy().astype(np.intp) + 1
        is_used = np.bincount(number, minlength=1) > 0
        level = (np.cumsum(is_used) - 1)[number]
        values, kind, _ = _read_array(dtype.categories[is_used[1:].nonzero()[0]])
        missing = np.full(int(is_used[0]), np.nan).astype(values.dtype)
        return Cells(np.concatenate([missing, values]), kind, level)
    return _read_array(column)


def _read_array(column: Any) -> Cells:
    """Read what has a dtype and can be turned into an array."""
    dtype = column.dtype
    zoned = (getattr(dtype, "tz", None) or getattr(dtype, "time_zone", None)) is not None
    if zoned and hasattr(dtype, "unit"):  # pandas would make an object of each
        values = column.to_numpy(f"datetime64[{dtype.unit}]")
    else:
        values = np.asarray(column)
    if values.dtype.kind in "fiub":
        return Cells(values.astype(float, copy=False), NUMBERS)
    if values.dtype.kind == "M":
        return Cells(_seconds(values), ZONED if zoned else DATETIMES)
    if values.dtype.kind == "m":
        return Cells(_seconds(values), DURATIONS)
    levels, level = _levels(values.astype(object))
    return Cells(*_read_objects(_missing_as_nan(levels)), level)


def _levels(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp] | None]:
    """Return the different objects and which of them is in each row; all of them where they have no hash."""
    places: dict[Any, int] = {}
    try:
        level = [places.setdefault(value, len(places)) for value in values.tolist()]
    except TypeError:
        return values, None
    return np.fromiter(places, object, len(places)), np.array(level, np.intp)


def _read_objects(values: NDArray[Any]) -> tuple[NDArray[Any], str | None]:
    """Return what a column of Python objects holds, by their types."""
    missing = np.array([is_missing(value) for value in values], bool)
    present = values[~missing]
    types = set(map(type, present))

    def all_are(*wanted: type) -> bool:
        return all(issubclass(kind, wanted) for kind in types)

    def filled(numbers: Any) -> Array:
        out = np.full(len(values), np.nan)
        out[~missing] = numbers
        return out

    if not types:
        return filled([]), None
    if all_are(Real, Decimal, np.bool_):
        return filled(present.astype(float)), NUMBERS
    if all_are(str):
        return values, TEXT
    if all_are(date, np.datetime64):
        zoned = {getattr(value, "tzinfo", None) is not None for value in present}
        if len(zoned) > 1:
            return values, "datetimes with and without a time zone"
        return filled([_seconds(_instant(value)) for value in present]), ZONED if zoned.pop() else DATETIMES
    if all_are(timedelta, np.timedelta64):
        return filled([_seconds(_length(value)) for value in present]), DURATIONS
    return values, f"{' and '.join(sorted(kind.__name__ for kind in types))} values"


def _seconds(times: Any) -> Array:
    """Return times as seconds, NaT as NaN: the same float for the same time in any unit."""
    unit, _ = np.datetime_data(times.dtype)
    kind = times.dtype.kind
    if unit == "generic" or (kind == "m" and unit in "YM"):
        if not np.isnat(times).all():
            raise ValueError(f"`X` must not hold durations in the unit {unit!r}: it has no length in seconds")
        return np.full(times.shape, np.nan)
    parts = PER_SECOND.get(unit, 1)
    # Whole seconds and the rest apart: a float has not the digits of 10⁹ times the seconds.
    whole = times.astype(f"{kind}8[{unit if parts > 1 else 's'}]").astype(np.int64)
    seconds, rest = np.divmod(whole, parts)
    return np.where(np.isnat(times), np.nan, seconds + rest / parts)


def _instant(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return value
    if hasattr(value, "to_datetime64"):  # of pandas: may have nanoseconds; in UTC where it has a time zone
        return value.to_datetime64()
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value)


def _length(value: Any) -> Any:
    return value.to_timedelta64() if hasattr(value, "to_timedelta64") else np.timedelta64(value)


def _is_time(value: Any) -> bool:
    return isinstance(value, date | timedelta | np.datetime64 | np.timedelta64)


def _parsed(text: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """Return text as numbers where it can be read so, as scikit-learn does."""
    try:
        return text.astype(float), NUMBERS
    except ValueError:
        return text, TEXT


def _missing_as_nan(values: NDArray[Any]) -> NDArray[Any]:
    out = values.copy()
    out[[is_missing(v) for v in out]] = np.nan
    return out


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    different = value != value
    return different if type(different) is bool else bool(np.all(different))


def _mask(X: Any, categorical_features: Any) -> NDArray[np.bool_]:
    mask = np.zeros(X.shape[1], bool)
    if categorical_features is None:
        return mask
    if isinstance(categorical_features, str):
        if categorical_features != "from_dtype":
            raise ValueError(
                "`categorical_features` must be 'from_dtype', None or a list of columns, "
                f"got {categorical_features!r}"
            )
        if is_frame(X):
            mask[:] = [_is_categorical(dtype) for dtype in X.dtypes]
        return mask
    columns = np.asarray(categorical_features)
    if columns.ndim != 1:
        raise ValueError(f"`categorical_features` must be a list of columns, got {categorical_features!r}")
    if columns.dtype == bool:
        if len(columns) != X.shape[1]:
            raise ValueError(f"`categorical_features` must have {X.shape[1]} entries, got {len(columns)}")
        return columns
    for column in categorical_features:
        if isinstance(column, str):
            if not is_frame(X) or column not in list(X.columns):
                raise ValueError(f"`categorical_features` names column {column!r}, which `X` does not have")
            mask[list(X.columns).index(column)] = True
        elif not is_whole(column, 0) or not column < X.shape[1]:
            raise ValueError(
                f"`categorical_features` must lie between 0 and {X.shape[1] - 1}, got {column!r}"
            )
        else:
            mask[column] = True
    return mask
