"""Processes that train one model together, each on its own rows.

Every process, a *rank*, runs the same program on its own rows.  What depends on the rows of all is made of
whole numbers and added up by `Communicator.add`, so it is the same everywhere and does not depend on who has
which rows.  A `FunctionSpace` has the communicator of its rows; `ALONE`, a single process, is the default.

A transport writes one method, `exchange`.  All ranks call the same methods in the same order.  A message says
how many there were before and what the rank has found so far (`stamp`): ranks that differ raise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from convexboost.core.levels import places

T = TypeVar("T")

#: An array is sent to everybody if that takes at most this many bytes; else each rank adds up a slice of it.
SMALL = 2**18


class RanksDifferError(RuntimeError):
    """Ranks that should do the same do not: they would train different models."""


class Communicator(ABC):
    """The ranks 0 … size − 1 of a fit."""

    rank: int
    size: int
    stamp: bytes = b""  #: what this rank has found so far, in short; it must be the same on all
    n_messages = 0  #: sent to other ranks so far
    n_bytes = 0  #: of the arrays in them

    @abstractmethod
    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Send parts[r] to each rank r; return what each rank has sent here, by rank."""

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, to all."""
        return self.exchange([value] * self.size)

    def broadcast(self, value: T) -> T:
        """Return the value of rank 0, to all."""
        return self.gather(value if self.rank == 0 else None)[0]  # type: ignore[return-value]

    def add(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of an array of whole numbers over the ranks, to all."""
        if self.size == 1:
            return array
        flat = np.ascontiguousarray(array).reshape(-1)
        if flat.nbytes * (self.size - 2) <= SMALL:  # two ranks send as much either way
            found = _sum(self.gather(flat))
        else:
            own = _sum(self.exchange(np.array_split(flat, self.size)))
            found = np.concatenate(self.gather(own))
        return found.reshape(array.shape)

    def largest(self, number: float) -> float:
        """Return the largest of the ranks' numbers, to all."""
        return float(number) if self.size == 1 else max(self.gather(float(number)))

    def any(self, fact: Any) -> bool:
        """Return whether something is true on some rank, to all."""
        return any(self.gather(bool(fact)))


class Alone(Communicator):
    """A single process."""

    rank, size = 0, 1

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Return the one part."""
        return list(parts)

    def __reduce__(self) -> str:
        return "ALONE"


ALONE = Alone()


def _sum(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    first, *others = arrays
    out = first.copy()
    for other in others:
        if other.shape != out.shape or other.dtype != out.dtype:
            raise RanksDifferError(
                f"ranks add up different things: {out.shape} {out.dtype} and {other.shape} {other.dtype}"
            )
        out += other
    return out


def distinct(
    values: NDArray[Any], communicator: Communicator = ALONE
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the different values, or rows, that all ranks have, sorted, and the number of each one here."""
    axis = None if values.ndim == 1 else 0
    if values.ndim == 1 and values.dtype.kind == "f":  # numbers alone are sorted faster
        found = np.unique(np.concatenate(communicator.gather(np.unique(values))))
        return found, places(found[~np.isnan(found)], values)
    found, number = np.unique(values, axis=axis, return_inverse=True)
    if communicator.size > 1:
        found = np.unique(np.concatenate(communicator.gather(found)), axis=axis)
        both = np.concatenate([found, values])
        number = np.unique(both, axis=axis, return_inverse=True)[1].reshape(-1)[len(found) :]
    return found, number.reshape(-1).astype(np.int64, copy=False)
