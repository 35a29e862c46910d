"""From a file to what an estimator takes: inputs, targets, weights, queries."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from convexboost.cli.tables import MISSING, DataError, Letor, Table, read
from convexboost.estimators._base import BaseConvexBoost
from convexboost.estimators._frames import DATETIMES, DURATIONS, NUMBERS, TEXT, ZONED

#: At most so many different whole numbers are taken for classes.
MANY_CLASSES = 10
#: A column of text with at least so many rows and nothing twice is worth a note.
MANY_TEXTS = 50
ONE_OF = {
    **{NUMBERS: "number", TEXT: "text", DATETIMES: "date", ZONED: "date with a time zone"},
    DURATIONS: "duration",
}
#: A number that begins with 0, and one with a decimal comma.
CODE, COMMA = re.compile(r"0\d+"), re.compile(r"[-+]?\d+,\d+")
ROLES = "`--{}` is not used: {} has no names of columns; each line begins with its target"


class Roles(NamedTuple):
    """What the columns are for; the others are inputs."""

    target: str | None = None
    weight: str | None = None
    query: str | None = None
    drop: Sequence[str] = ()

    @property
    def named(self) -> dict[str, str]:
        """Return the columns that are no inputs, by the option that names each."""
        given = {"--target": self.target, "--weight": self.weight, "--query": self.query}
        return {option: name for option, name in given.items() if name is not None}


class Rows(NamedTuple):
    """What an estimator takes."""

    X: Any
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    query: NDArray[Any] | None
    notes: list[str]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and of inputs."""
        n_rows, n_columns = self.X.shape
        return n_rows, n_columns


class Data:
    """A file that has been read.

    With a `model` its inputs are those that the model was fitted to, whatever else is in the file, and hold
    what they held then.
    """

    def __init__(
        self, path: Path, form: str | None, roles: Roles, model: BaseConvexBoost | None = None
    ) -> None:
        self.roles, self.model = roles, model
        as_text: set[str] = set()
        n_features = None
        if model is not None:
            n_features = model.n_features_in_
            as_text = {model._columns.names[j] for j in model._columns.encoders}
            if roles.target is not None and _has_text_classes(model):
                as_text.add(roles.target)
        self.file = read(path, form, as_text=as_text, n_features=n_features)
        self.name = self.file.source.name
        if isinstance(self.file, Letor):
            for option in roles.named:
                if option != "--query" or roles.query != "qid":
                    raise DataError(ROLES.format(option[2:], self.name))
            if roles.drop:
                raise DataError(ROLES.format("drop", self.name))
        else:
            for option, name in roles.named.items():
                self.file.column(name, option)
            for name in roles.drop:
                self.file.column(name, "--drop")

    @property
    def has_queries(self) -> bool:
        """Return whether rows belong to queries."""
        return self.file.qid is not None if isinstance(self.file, Letor) else self.roles.query is not None

    @property
    def has_targets(self) -> bool:
        """Return whether rows have targets."""
        return isinstance(self.file, Letor) or self.roles.target is not None

    def rows(self, task: str | None) -> Rows:
        """Return all of it; without a task there are no targets."""
        X, notes = self._inputs()
        y = None if task is None else self.targets(task)
        if isinstance(self.file, Letor):
            return Rows(X, y, None, self.file.qid, notes)
        weight = query = None
        if self.roles.weight is not None:
            weight = self._numbers(self.roles.weight, "a weight")
            if (weight < 0.0).any():
                row = int(np.argmax(weight < 0.0))
                raise self.file.broken(row, self.roles.weight, f"the weight {weight[row]:g} is negative")
        if self.roles.query is not None:
            query = self._labels(self.roles.query, "the query")
        return Rows(X, y, weight, query, notes)

    # -- targets -----------------------------------------------------------------------------------

    def task(self) -> tuple[str, str]:
        """Return the task that the targets suggest, and why."""
        if self.has_queries:
            return "ranking", "there are queries"
        if isinstance(self.file, Letor):
            values: Any = self.file.y
            kind: str | None = NUMBERS
        else:
            values = self._target()
            kind = _kind(values)
        if kind == TEXT and not self._holds_numbers(values):
            return "classification", "the target holds text"
        if kind == TEXT:
            values, kind = self._parsed(values, str(self.roles.target)), NUMBERS
        if not isinstance(values, np.ndarray) and types.is_boolean(_plain(values.type)):
            return "classification", "the target is true or false"
        if kind != NUMBERS:
            return "regression", ""  # refused with the cell, later
        distinct = np.unique(np.asarray(values, float))
        distinct = distinct[~np.isnan(distinct)]
        if len(distinct) == 2:
            return "classification", "the target has two values"
        if len(distinct) <= MANY_CLASSES and (distinct == np.round(distinct)).all():
            return "classification", f"the target has {len(distinct)} values, all of them whole numbers"
        return "regression", "the target is a number"

    def targets(self, task: str) -> NDArray[Any]:
        """Return the targets; none may be missing."""
        if isinstance(self.file, Letor):
            y = self.file.y
            return _whole(y) if task == "classification" else y
        self._target()
        assert self.roles.target is not None
        if task != "classification":
            return self._numbers(self.roles.target, "the target")
        labels = self._labels(self.roles.target, "the target")
        if self.model is not None:
            if labels.dtype.kind == "U" and not _has_text_classes(self.model):
                labels = _whole(self._numbers(self.roles.target, "the target"))
            classes: NDArray[Any] = self.model.classes_
            unknown = ~np.isin(labels, classes)
            if unknown.any():
                row = int(np.argmax(unknown))
                raise self.file.broken(
                    row, self.roles.target, f"the model does not know the class {labels[row].item()!r}"
                )
        return labels

    def _holds_numbers(self, column: Any) -> bool:
        """Return whether text is nothing but numbers; refuse it where only some cells are none."""
        assert isinstance(self.file, Table)
        texts = _decoded(column).to_pylist()
        given = [text for text in texts if text is not None and text not in MISSING]
        bad = next((text for text in given if not _is_number(text)), None)
        meant = sum(_is_number(text) or COMMA.fullmatch(text) is not None for text in given)
        if bad is None or 2 * meant <= len(given):
            return bad is None and bool(given)
        fix = f"; write {bad.replace(',', '.')}" if COMMA.fullmatch(bad) else ""
        raise self.file.broken(
            texts.index(bad),
            str(self.roles.target),
            f"{bad!r} is no number, but most targets are{fix}; `--task classification` makes them classes",
        )

    def _target(self) -> Any:
        assert isinstance(self.file, Table)
        if self.roles.target is None:
            raise DataError(f"`--target` is needed: which column of {self.name} is to be predicted?")
        return self.file.column(self.roles.target, "--target")

    def _numbers(self, name: str, what: str) -> NDArray[np.float64]:
        assert isinstance(self.file, Table)
        column = self.file.columns[name]
        self._refuse_missing(column.is_null(), name, what)
        if _kind(column) == TEXT:
            numbers = self._parsed(column, name)
            self._refuse_missing(np.isnan(numbers), name, what)
            return numbers
        if _kind(column) != NUMBERS:
            raise self.file.broken(0, name, f"{what} must be a number, got {column.type}")
        return np.asarray(_floats(column))

    def _labels(self, name: str, what: str) -> NDArray[Any]:
        assert isinstance(self.file, Table)
        column = self.file.columns[name]
        self._refuse_missing(column.is_null(), name, what)
        kind = _kind(column)
        if kind == TEXT:
            return np.asarray(_decoded(column).to_pylist(), str)
        if kind != NUMBERS:
            raise self.file.broken(0, name, f"{what} must be text or a number, got {column.type}")
        if types.is_boolean(_plain(column.type)):
            return np.asarray(_decoded(column).to_pylist(), bool)
        return _whole(_floats(column))

    def _refuse_missing(self, missing: Any, name: str, what: str) -> None:
        assert isinstance(self.file, Table)
        missing = np.asarray(missing)
        if missing.any():
            raise self.file.broken(int(np.argmax(missing)), name, f"{what} is missing")

    def _parsed(self, column: Any, name: str, kind: str = NUMBERS) -> NDArray[Any]:
        """Return text as numbers or dates, or name the first cell that is none."""
        assert isinstance(self.file, Table)
        parse, missing = (float, np.nan) if kind == NUMBERS else (_date, np.datetime64("NaT"))
        out = []
        for row, text in enumerate(_decoded(column).to_pylist()):
            try:
                out.append(missing if text is None or text in MISSING else parse(text))
            except ValueError:
                raise self.file.broken(row, name, f"{text!r} is no {ONE_OF[kind]}") from None
        return np.asarray(out, float if kind == NUMBERS else "datetime64[us]")

    # -- inputs ------------------------------------------------------------------------------------

    def _inputs(self) -> tuple[Any, list[str]]:
        if isinstance(self.file, Letor):
            if self.model is not None and "feature_names_in_" in vars(self.model):
                raise DataError(f"{self.name} has no names of columns, but the model was fitted to some")
            return self.file.X, []
        if self.model is not None:
            return self._inputs_of_model(self.model), []
        others = {*self.roles.named.values(), *self.roles.drop}
        names = [name for name in self.file.columns if name not in others]
        if not names:
            raise DataError(f"{self.name} has no columns to predict from")
        notes = list(self.file.notes)
        for name in names:
            notes += self._notes(name)
        return pd.DataFrame({name: self._input(name) for name in names}), notes

    def _inputs_of_model(self, model: BaseConvexBoost) -> Any:
        assert isinstance(self.file, Table)
        if "feature_names_in_" not in vars(model):
            raise DataError(f"{self.name} has names of columns, but the model was fitted to none")
        columns = model._columns
        out = {}
        for name, kind in zip(columns.names, columns.kinds, strict=True):
            if name not in self.file.columns:
                raise DataError(f"{self.name} has no column {name!r}, which the model was fitted to")
            out[name] = self._input(name, kind)
        return pd.DataFrame(out)

    def _input(self, name: str, wanted: str | None = None) -> Any:
        """Return a column as pandas has it; `wanted` is what it held in training."""
        assert isinstance(self.file, Table)
        column = self.file.columns[name]
        kind = _kind(column)
        if kind is None:
            return np.full(len(column), np.nan)
        if wanted is not None and kind != wanted:
            if kind == TEXT and wanted in (NUMBERS, DATETIMES):
                return self._parsed(column, name, wanted)
            row = int(np.argmin(np.asarray(column.is_null())))
            got = _shown(_decoded(column)[row].as_py())
            raise self.file.broken(row, name, f"{got} is no {ONE_OF.get(wanted, wanted)}")
        if kind == NUMBERS and not types.is_dictionary(column.type):
            return _floats(column)
        if kind in (TEXT, NUMBERS):
            return (column if types.is_dictionary(column.type) else column.dictionary_encode()).to_pandas()
        if kind in (DATETIMES, ZONED, DURATIONS):
            return column.to_pandas(date_as_object=False)
        raise DataError(
            f"{self.name}, column {name!r}: values of type {column.type} cannot be used; --drop {name!r}"
        )

    def _notes(self, name: str) -> list[str]:
        """Say what looks like a mistake in a column of text."""
        assert isinstance(self.file, Table)
        column = self.file.columns[name]
        if _kind(column) != TEXT:
            return []
        texts = _decoded(column).drop_null().unique().to_pylist()
        bad = [text for text in texts if text not in MISSING and not _is_number(text)]
        if not bad:
            code = next(filter(CODE.fullmatch, texts), None)
            if code is not None:
                return [f"column {name!r}: {code!r} begins with 0, so the column is read as categories"]
        elif len(bad) < 0.5 * len(texts):
            row = next(k for k, text in enumerate(_decoded(column).to_pylist()) if text == bad[0])
            where = f"{self.name}, {self.file.place(row)}, column {name!r}"
            return [f"{where}: {bad[0]!r} is no number, so the whole column is read as categories"]
        if len(texts) >= MANY_TEXTS and len(texts) == len(column) - column.null_count:
            return [f"column {name!r} has another text in every row and tells nothing: --drop {name!r}"]
        return []


def _kind(column: Any) -> str | None:
    """Return what a column of Arrow holds, in the words of the estimators; None: nothing."""
    kind = _plain(column.type)
    if types.is_null(kind) or column.null_count == len(column):
        return None
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return NUMBERS
    if types.is_time(kind):
        return NUMBERS
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return TEXT
    if types.is_date(kind) or types.is_timestamp(kind):
        return ZONED if types.is_timestamp(kind) and kind.tz is not None else DATETIMES
    return DURATIONS if types.is_duration(kind) else str(kind)


def _plain(kind: Any) -> Any:
    return kind.value_type if types.is_dictionary(kind) else kind


def _decoded(column: Any) -> Any:
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def _floats(column: Any) -> NDArray[np.float64]:
    """Return numbers as floats, NaN where they are missing; times of day are seconds since midnight."""
    column = _decoded(column)
    if types.is_time(column.type):
        parts = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
        counts = column.cast(pa.int32() if types.is_time32(column.type) else pa.int64())
        return np.asarray(counts.to_numpy(), float) / parts
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), float)


def _whole(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return whole numbers as such."""
    return values.astype(np.int64) if (values == np.round(values)).all() else values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _date(text: str) -> Any:
    return np.datetime64(datetime.fromisoformat(text), "us")


def _has_text_classes(model: BaseConvexBoost) -> bool:
    classes: Collection[Any] = vars(model).get("classes_", ())
    return np.asarray(classes).dtype.kind in "UO"


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float) else str(value)
