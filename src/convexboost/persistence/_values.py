"""Values as JSON and named arrays: numbers, text, dates, containers, arrays, and objects of known classes.

Reading makes nothing but these.  docs/model-file.md lists every form.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from numbers import Real
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: Lists of numbers that are longer become arrays.
SHORT = 16
#: The arrays that hold all text of lists: UTF-8, and where each piece ends.
TEXT, TEXT_ENDS = "text", "text_ends"
#: Sparse matrices, by their format.
SPARSE: dict[str, Any] = {
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "csc_array": sp.csc_array,
}


class UnwritableError(ValueError):
    """A value has no form in a model file."""


# --- writing -----------------------------------------------------------------------------------------------


class Writer:
    """Turns values into JSON; collects the arrays."""

    def __init__(self, known: Mapping[str, type[Any]]) -> None:
        self.names = {cls: name for name, cls in known.items()}
        self.arrays: dict[str, NDArray[Any]] = {}
        self._texts: list[bytes] = []

    def write(self, value: Any) -> Any:
        """Return the JSON of a value."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"is": "float", "value": str(value)}
        for kind, form in self._forms.items():
            if isinstance(value, kind):
                return form(self, value)
        return self._object(value)

    def all_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, those of the text included."""
        if not self._texts:
            return self.arrays
        text = np.frombuffer(b"".join(self._texts), np.uint8)
        ends = np.cumsum([len(piece) for piece in self._texts], dtype=np.int64)
        return {**self.arrays, TEXT: text, TEXT_ENDS: ends}

    def _keep(self, array: NDArray[Any]) -> str:
        name = f"array_{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def _array(self, array: NDArray[Any]) -> Any:
        shape, dtype = list(array.shape), array.dtype
        if dtype.kind in "fiub":
            native = array.astype(dtype.newbyteorder("="), copy=False)
            return {"is": "array", "array": self._keep(native)}
        if dtype.kind in "mM":
            return {"is": "times", "dtype": dtype.str[1:], "array": self._keep(array.astype(np.int64))}
        if dtype.kind in "UO":
            kind = "object" if dtype.kind == "O" else f"U{dtype.itemsize // 4}"
            items = self._sequence(array.ravel().tolist())
            return {"is": "objects", "dtype": kind, "shape": shape, "items": items}
        raise UnwritableError(f"an array of type {dtype}")

    def _scalar(self, value: np.generic) -> Any:
        return {"is": "scalar", "array": self._array(np.asarray(value))}

    def _sparse(self, matrix: Any) -> Any:
        kind = type(matrix).__name__
        if kind not in SPARSE:
            matrix = matrix.tocsr()
            kind = type(matrix).__name__
        parts = {name: self._array(getattr(matrix, name)) for name in ("data", "indices", "indptr")}
        return {"is": "sparse", "format": kind, "shape": list(map(int, matrix.shape)), **parts}

    def _sequence(self, values: Sequence[Any]) -> Any:
        """Return a list: text in the common pool, many numbers as an array, anything else one by one."""
        kinds = set(map(type, values))
        if kinds == {str}:
            start = len(self._texts)
            self._texts.extend(value.encode("utf-8", "surrogatepass") for value in values)
            return {"is": "texts", "start": start, "count": len(values)}
        if len(values) > SHORT and kinds == {float}:
            return {"is": "numbers", "array": self._keep(np.array(values, float))}
        if len(values) > SHORT and kinds == {int} and all(-(2**63) <= v < 2**63 for v in values):
            return {"is": "numbers", "array": self._keep(np.array(values, np.int64))}
        return [self.write(value) for value in values]

    def _tuple(self, value: Any) -> Any:
        if type(value) is not tuple:  # of fields with names
            return self._object(value)
        return {"is": "tuple", "items": self._sequence(value)}

    def _dict(self, value: dict[Any, Any]) -> Any:
        if type(value) is not dict:
            return self._object(value)
        return {
            "is": "dict",
            "keys": self._sequence(list(value)),
            "values": self._sequence(list(value.values())),
        }

    def _object(self, value: Any) -> Any:
        name = self.names.get(type(value))
        if name is None:
            raise UnwritableError(f"{value!r}, of type {type(value).__qualname__}")
        return {
            "is": "object",
            "name": name,
            "fields": {k: self.write(v) for k, v in fields_of(value).items()},
        }

    def _random(self, value: np.random.RandomState) -> Any:
        name, keys, *rest = value.get_state(legacy=True)
        if name != "MT19937":
            raise UnwritableError(f"a RandomState of type {name}")
        return {
            "is": "random_state",
            "keys": self._array(np.asarray(keys)),
            "rest": [self.write(one) for one in rest],
        }

    _forms: typing.ClassVar[dict[Any, Callable[[Writer, Any], Any]]] = {
        np.ndarray: _array,
        np.generic: _scalar,
        list: lambda self, value: self._sequence(value),
        tuple: _tuple,
        dict: _dict,
        datetime: lambda _, value: {"is": "datetime", "value": value.isoformat()},
        date: lambda _, value: {"is": "date", "value": value.isoformat()},
        time: lambda _, value: {"is": "time", "value": value.isoformat()},
        timedelta: lambda _, value: {
            "is": "timedelta",
            "value": [value.days, value.seconds, value.microseconds],
        },
        Decimal: lambda _, value: {"is": "decimal", "value": str(value)},
        bytes: lambda _, value: {"is": "bytes", "value": value.hex()},
        PurePath: lambda _, value: {"is": "path", "value": str(value)},
        np.random.RandomState: _random,
        sp.spmatrix: _sparse,
        sp.sparray: _sparse,
    }


def fields_of(value: Any) -> dict[str, Any]:
    """Return what an object is made from: the arguments of its class by name."""
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    if isinstance(value, tuple):
        return dict(zip(value._fields, value, strict=True))  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {"items": dict(value)}
    return dict(value.get_params(deep=False))


# --- reading -----------------------------------------------------------------------------------------------


class Reader:
    """Turns JSON and arrays back into values; raises ValueError or TypeError for anything else."""

    def __init__(self, known: Mapping[str, type[Any]], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.known, self.arrays = known, arrays
        ends = self._named(TEXT_ENDS) if TEXT_ENDS in arrays else np.empty(0, np.int64)
        self._text = self._named(TEXT).tobytes() if TEXT in arrays else b""
        edges = np.concatenate([[0], ends])
        if ends.dtype != np.int64 or (np.diff(edges) < 0).any() or edges[-1] != len(self._text):
            raise ValueError(f"array `{TEXT_ENDS}` must hold the ends of the pieces of `{TEXT}`")
        self._ends = edges

    def read(self, form: Any) -> Any:
        """Return the value of some JSON."""
        if form is None or isinstance(form, bool | int | float | str):
            return form
        if isinstance(form, list):
            return [self.read(item) for item in form]
        if not isinstance(form, dict):
            raise ValueError(f"unknown form {form!r}")
        kind = form.get("is")
        if not isinstance(kind, str) or kind not in self._forms:
            raise ValueError(f"unknown kind of value {kind!r}")
        return self._forms[kind](self, form)

    def _named(self, name: Any) -> NDArray[Any]:
        if not isinstance(name, str) or name not in self.arrays:
            raise ValueError(f"array {name!r} is missing")
        return np.array(self.arrays[name])  # a copy that can be written to

    def _times(self, form: Any) -> NDArray[Any]:
        dtype = form["dtype"]
        if not isinstance(dtype, str) or dtype[:2] not in ("M8", "m8"):
            raise ValueError(f"unknown type of times {dtype!r}")
        return self._named(form["array"]).astype(np.int64, casting="equiv").view(dtype)

    def _objects(self, form: Any) -> NDArray[Any]:
        items, dtype, shape = self._items(form["items"]), form["dtype"], tuple(map(_size, form["shape"]))
        if math.prod(shape) != len(items):
            raise ValueError(f"{len(items)} objects do not fill the shape {shape}")
        out = np.empty(len(items), object)
        out[:] = items
        if dtype == "object":
            return out.reshape(shape)
        width = max((len(item) for item in items), default=0)
        if not (isinstance(dtype, str) and dtype[:1] == "U" and dtype[1:].isdigit() and len(dtype) < 9):
            raise ValueError(f"unknown type of text {dtype!r}")
        if not all(isinstance(item, str) for item in items) or int(dtype[1:]) > max(8 * width, 8):
            raise ValueError(f"an array of type {dtype} must hold text of this length")
        return np.array(items, f"<{dtype}").reshape(shape)

    def _items(self, form: Any) -> list[Any]:
        found = self.read(form)
        if not isinstance(found, list):
            raise ValueError(f"a list was expected, got {type(found).__name__}")
        return found

    def _texts(self, form: Any) -> list[str]:
        start, count = _size(form["start"]), _size(form["count"])
        if start + count > len(self._ends) - 1:
            raise ValueError("a list of text goes beyond the text that is there")
        edges = self._ends[start : start + count + 1].tolist()
        return [self._text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(edges)]

    def _numbers(self, form: Any) -> list[Any]:
        found = self._named(form["array"])
        if found.ndim != 1 or found.dtype not in (np.float64, np.int64):
            raise ValueError("a list of numbers must be a vector of float64 or int64")
        return found.tolist()

    def _scalar(self, form: Any) -> Any:
        found = self.read(form["array"])
        if not isinstance(found, np.ndarray) or found.ndim != 0:
            raise ValueError("a scalar must be an array without dimensions")
        return found[()]

    def _sparse(self, form: Any) -> Any:
        parts = tuple(self.read(form[name]) for name in ("data", "indices", "indptr"))
        shape = tuple(map(_size, form["shape"]))
        if len(shape) != 2 or not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
            raise ValueError("a sparse matrix must have two dimensions and three vectors")
        matrix = SPARSE[form["format"]](parts, shape=shape)
        matrix.check_format(full_check=True)
        return matrix

    def _dict(self, form: Any) -> dict[Any, Any]:
        keys, values = self._items(form["keys"]), self._items(form["values"])
        found = dict(zip(keys, values, strict=True))
        if len(found) < len(keys):
            raise ValueError("a dict must not have a key twice")
        return found

    def _object(self, form: Any) -> Any:
        name = form["name"]
        if name not in self.known:
            raise ValueError(f"this release of convexboost knows no {name!r}")
        cls = self.known[name]
        given = form["fields"]
        if not isinstance(given, dict):
            raise ValueError(f"the fields of {name!r} must be a JSON object")
        fields = {key: self.read(value) for key, value in given.items()}
        check_fields(cls, name, fields)
        return cls(fields["items"]) if issubclass(cls, dict) else cls(**fields)

    def _random(self, form: Any) -> np.random.RandomState:
        position, has_gauss, cached = form["rest"]
        state = np.random.RandomState(0)
        state.set_state(("MT19937", self.read(form["keys"]), position, has_gauss, cached))
        return state

    _forms: typing.ClassVar[dict[str, Callable[[Reader, Any], Any]]] = {
        "float": lambda _, form: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[form["value"]],
        "array": lambda self, form: self._named(form["array"]),
        "times": _times,
        "objects": _objects,
        "scalar": _scalar,
        "sparse": _sparse,
        "texts": _texts,
        "numbers": _numbers,
        "tuple": lambda self, form: tuple(self._items(form["items"])),
        "dict": _dict,
        "object": _object,
        "datetime": lambda _, form: datetime.fromisoformat(form["value"]),
        "date": lambda _, form: date.fromisoformat(form["value"]),
        "time": lambda _, form: time.fromisoformat(form["value"]),
        "timedelta": lambda _, form: timedelta(*form["value"]),
        "decimal": lambda _, form: Decimal(form["value"]),
        "bytes": lambda _, form: bytes.fromhex(form["value"]),
        "path": lambda _, form: Path(form["value"]),
        "random_state": _random,
    }


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise ValueError(f"a size must be a whole number of at least 0, got {value!r}")
    return value


def check_fields(cls: Any, name: str, fields: Mapping[str, Any]) -> None:
    """Refuse values that are not what the class declares for its fields."""
    hints = _hints(cls)
    for field, value in fields.items():
        if field in hints and not fits(value, hints[field]):
            raise ValueError(f"`{field}` of {name!r} must be {hints[field]}, got {type(value).__name__}")


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is what a type hint says, as far as that can be told."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if hint is None:
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return isinstance(value, tuple) and _all_fit(value, arguments[0])
    if origin is list:
        return isinstance(value, list) and _all_fit(value, arguments[0])
    if origin is dict:
        return (
            isinstance(value, dict)
            and _all_fit(value, arguments[0])
            and _all_fit(value.values(), arguments[1])
        )
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if hint in (int, float, bool):  # users write 3.0 for 3 and 1 for True
        return isinstance(value, Real | np.bool_)
    return not isinstance(hint, type) or origin is not None or isinstance(value, hint)


def _all_fit(values: Iterable[Any], hint: Any) -> bool:
    return all(fits(value, hint) for value in values)
