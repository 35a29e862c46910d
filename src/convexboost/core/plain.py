"""Objects as plain data: a description that JSON can hold, and named NumPy arrays.

A model file stands on this.  Whatever is read is checked: reading executes nothing, and no array that gets
through has an index out of range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True)
class Plain:
    """A part of an object as plain data, or a whole object.

    The methods read and check; `path` is the name of the part, for their messages.
    """

    description: Mapping[str, Any] = field(default_factory=dict)  #: what JSON can hold
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    path: str = ""

    @classmethod
    def of(cls, description: Mapping[str, Any], arrays: Mapping[str, Any], /, **parts: Plain) -> Plain:
        """Put an object together from its own data and its parts."""
        own, mine = dict(description), dict(arrays)
        for name, part in parts.items():
            own[name] = part.description
            mine |= {f"{name}.{inner}": array for inner, array in part.arrays.items()}
        return cls(own, mine)

    def part(self, name: str) -> Plain:
        """Return a part by its name."""
        start = f"{name}."
        arrays = {key.removeprefix(start): a for key, a in self.arrays.items() if key.startswith(start)}
        return Plain(self.value(name, dict), arrays, f"{self.path}{start}")

    def value(self, name: str, kind: type) -> Any:
        """Return a value of the description, of type `kind`."""
        if not isinstance(self.description, Mapping) or name not in self.description:
            raise ValueError(f"`{self.path}{name}` is missing in the description")
        value = self.description[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"`{self.path}{name}` must be of type {kind.__name__}, got {value!r}")
        return value

    def array(self, name: str, dtype: DTypeLike, *shape: int | None, finite: bool = True) -> NDArray[Any]:
        """Return an array with this dtype and shape; None stands for any length.

        Real numbers must be finite unless `finite` is False.

        It is a copy: an array that is read-only, or not contiguous, would make Numba compile kernels anew.
        """
        if not isinstance(self.arrays, Mapping) or name not in self.arrays:
            raise ValueError(f"array `{self.path}{name}` is missing")
        found = np.asarray(self.arrays[name])
        fits = found.ndim == len(shape) and all(
            n in (None, m) for n, m in zip(shape, found.shape, strict=True)
        )
        if found.dtype != np.dtype(dtype) or not fits:
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise ValueError(
                f"array `{self.path}{name}` must have dtype {np.dtype(dtype)} and shape ({wanted}), "
                f"got {found.dtype} and {found.shape}"
            )
        self.need(name, not finite or found.dtype.kind != "f" or np.isfinite(found).all(), "finite numbers")
        return np.array(found, dtype, order="C", copy=True)

    def indices(
        self, name: str, dtype: DTypeLike, *shape: int | None, below: int, least: int = 0
    ) -> NDArray[Any]:
        """Return an array of whole numbers from `least` to `below` − 1."""
        found = self.array(name, dtype, *shape)
        self.need(
            name, found.size == 0 or (found.min() >= least and found.max() < below), f"{least} to {below - 1}"
        )
        return found

    def slices(self, name: str, count: int, total: int) -> list[slice]:
        """Return `count` slices of `total` entries, one after the other; the array holds their ends."""
        ends = self.array(name, np.int64, count)
        edges = np.concatenate([[0], ends])
        self.need(
            name,
            bool((np.diff(edges) >= 0).all()) and edges[-1] == total,
            f"ends of parts of {total} entries",
        )
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]

    def need(self, name: str, fine: Any, wanted: str) -> None:
        """Refuse the values of an array unless they are fine."""
        if not fine:
            raise ValueError(f"array `{self.path}{name}` must hold {wanted}")


def ends_of(parts: Sequence[Any]) -> NDArray[np.int64]:
    """Return where each part ends when all are laid one after the other."""
    return np.cumsum([len(part) for part in parts], dtype=np.int64)


def joined(parts: Sequence[Any], dtype: DTypeLike, *row: int) -> NDArray[Any]:
    """Return the parts one after the other; `row` is the shape of an entry."""
    return np.concatenate([np.empty((0, *row), dtype), *parts]).astype(dtype, copy=False)
