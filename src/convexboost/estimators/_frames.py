"""From a user's X (array, sparse matrix, pandas or polars frame) to a matrix of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OrdinalEncoder

from convexboost.core import Array


def is_frame(X: Any) -> bool:
    """Return whether X has named, typed columns (pandas, polars)."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "shape")


def _is_categorical(dtype: Any) -> bool:
    return str(dtype).startswith(("category", "Categorical", "Enum"))


@dataclass(frozen=True)
class Columns:
    """Which columns are categorical, and the categories of those that hold other things than numbers."""

    categorical: NDArray[np.bool_]
    encoders: dict[int, OrdinalEncoder]

    @classmethod
    def learn(cls, X: Any, categorical_features: Any) -> Columns:
        """Read them off the training inputs."""
        mask = _mask(X, categorical_features)
        encoders = {}
        for j in np.flatnonzero(mask):
            values = _column(X, int(j))
            if values is not None and values.dtype.kind not in "fiub":
                encoder = OrdinalEncoder(
                    handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
                )
                encoders[int(j)] = encoder.fit(_missing_as_nan(values))
        return cls(mask, encoders)

    @property
    def plain(self) -> bool:
        """Return whether X can be read as numbers as it is."""
        return not self.encoders

    def encode(self, X: Any) -> Array:
        """Return X as floats, categories numbered, missing ones NaN."""
        out = np.empty(X.shape)
        for j in range(X.shape[1]):
            values = _column(X, j)
            assert values is not None
            if j in self.encoders:
                out[:, j] = self.encoders[j].transform(_missing_as_nan(values)).ravel()
                continue
            try:
                numbers = _missing_as_nan(values)[:, 0] if values.dtype == object else values
                out[:, j] = numbers.astype(float)
            except (TypeError, ValueError):
                name = X.columns[j] if is_frame(X) else j
                raise ValueError(
                    f"column {name!r} of `X` holds {values.dtype} values, not numbers: give it a categorical "
                    "dtype or name it in `categorical_features`"
                ) from None
        return out


def _column(X: Any, j: int) -> NDArray[Any] | None:
    if is_frame(X):
        return np.asarray(X[X.columns[j]])
    return np.asarray(X[:, j]) if isinstance(X, np.ndarray) else None


def _missing_as_nan(values: NDArray[Any]) -> NDArray[Any]:
    out = values.astype(object)
    out[[is_missing(v) for v in out]] = np.nan
    return out[:, None]


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


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
        elif not isinstance(column, Integral) or not 0 <= int(column) < X.shape[1]:
            raise ValueError(
                f"`categorical_features` must lie between 0 and {X.shape[1] - 1}, got {column!r}"
            )
        else:
            mask[column] = True
    return mask
