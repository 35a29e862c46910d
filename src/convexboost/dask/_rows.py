"""Rows of Dask collections: which partitions belong together, and how they become the rows of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from convexboost.core.communicator import Communicator

#: What belongs to the rows of one partition, by the name of the argument of `fit`.
Part = dict[str, Any]


def is_array(value: Any) -> bool:
    return isinstance(value, da.Array)


def is_frame(value: Any) -> bool:
    return isinstance(value, dd.DataFrame | dd.Series)


def check_inputs(X: Any, name: str, ordinary: str) -> None:
    """Insist on a Dask array of two dimensions or a Dask data frame whose categories are known."""
    if not isinstance(X, da.Array | dd.DataFrame):
        raise TypeError(
            f"`{name}` must be a Dask array or a Dask data frame, got {type(X).__name__}: for rows in the "
            f"memory of one machine there is {ordinary}"
        )
    if is_array(X):
        if X.ndim != 2:
            raise ValueError(f"`{name}` must have 2 dimensions, got {X.ndim}")
        return
    for column, kind in X.dtypes.items():
        if str(kind) == "category" and not X[column].cat.known:
            raise ValueError(
                f"column {column!r} of `{name}` has categories that are not known before the rows are "
                f"read: call `.categorize(columns=[{column!r}])` on the data frame"
            )
        if str(kind) in ("object", "string", "str") or str(kind).startswith("string"):
            raise ValueError(
                f"column {column!r} of `{name}` holds text: give it a categorical dtype, and call "
                f"`.categorize(columns=[{column!r}])` on the data frame"
            )


def partitions(rows: Mapping[str, Any], names: Mapping[str, str], ordinary: str) -> list[Any]:
    """Return the parts of a set of rows, to be computed.

    `rows` holds X and what has an entry per row of it; `names` says what the user calls them.
    """
    X, x_name = rows["X"], names["X"]
    check_inputs(X, x_name, ordinary)
    blocks: dict[str, list[Any]] = {}
    for name, value in rows.items():
        label = names[name]
        if not is_array(value) and not is_frame(value):
            raise TypeError(
                f"`{label}` must be a Dask collection like `{x_name}`, got {type(value).__name__}"
            )
        if is_array(value) and is_array(X):
            value = _chunked_like(X, value, label, x_name)
        blocks[name] = _blocks(value)
        if len(blocks[name]) != len(blocks["X"]):
            raise ValueError(
                f"`{label}` must be divided into {len(blocks['X'])} partitions like `{x_name}`, got "
                f"{len(blocks[name])}"
            )
    bundle = dask.delayed(_bundled, pure=False)
    return [
        bundle(number, dict(zip(blocks, pieces, strict=True)), dict(names))
        for number, pieces in enumerate(zip(*blocks.values(), strict=True))
    ]


def _chunked_like(X: Any, value: Any, label: str, x_name: str) -> Any:
    """Divide what belongs to the rows of X as X is divided."""
    rows, wanted = value.shape[0], X.shape[0]
    known = not np.isnan([rows, wanted]).any()
    if known and rows != wanted:
        raise ValueError(f"`{label}` must have {wanted} rows like `{x_name}`, got {rows}")
    return value.rechunk({0: X.chunks[0]}) if known and value.chunks[0] != X.chunks[0] else value


def _blocks(value: Any) -> list[Any]:
    if is_array(value) and value.ndim == 2 and value.numblocks[1] > 1:
        value = value.rechunk({1: -1})
    found = value.to_delayed()
    return found.ravel().tolist() if is_array(value) else list(found)


def _bundled(number: int, pieces: Part, names: Mapping[str, str]) -> Part:
    """Return one partition; everything in it must have as many rows as X."""
    n_rows = pieces["X"].shape[0]
    for name, piece in pieces.items():
        if piece.shape[0] != n_rows:
            raise ValueError(
                f"partition {number} of `{names[name]}` must have {n_rows} rows like that of "
                f"`{names['X']}`, got {piece.shape[0]}"
            )
    return pieces


def n_rows(part: Part) -> int:
    return int(part["X"].shape[0])


def joined(parts: Sequence[Part]) -> Part:
    """Return the rows of all parts; they must be of one kind."""
    return {name: _stacked([part[name] for part in parts], name == "X") for name in parts[0]}


def _stacked(pieces: Sequence[Any], is_inputs: bool) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    if sp.issparse(pieces[0]):
        return sp.vstack(pieces, format="csr")
    if isinstance(pieces[0], np.ndarray):
        # Inputs become doubles in training anyway: one copy instead of two.
        return np.concatenate(pieces, dtype=float if pieces[0].dtype == np.float32 and is_inputs else None)
    import pandas as pd

    return pd.concat(pieces)


def dealt(parts: Sequence[Part], by_query: bool, name: str, communicator: Communicator) -> Part:
    """Return the rows of this rank: those of its parts, unless they must move.

    Every rank has some in the end.  With `by_query` the rows of a query (`groups`) are on one rank.
    """
    rows = joined(parts) if parts else None
    owner = (_owners_by_query if by_query else _owners)(rows, name, communicator)
    if not communicator.any((owner != communicator.rank).any()):
        assert rows is not None
        return rows
    moves = [
        None if rows is None else {key: _taken(piece, owner == r) for key, piece in rows.items()}
        for r in range(communicator.size)
    ]
    return joined([part for part in communicator.exchange(moves) if part is not None])


def _owners(rows: Part | None, name: str, communicator: Communicator) -> NDArray[np.int64]:
    """Return where each row belongs: here, or, where a rank has none, evenly dealt."""
    n_here = 0 if rows is None else n_rows(rows)
    counts = communicator.gather(n_here)
    if min(counts) > 0:
        return np.full(n_here, communicator.rank)
    _check_enough(sum(counts), "rows", name, communicator)
    first = sum(counts[: communicator.rank])
    return (first + np.arange(n_here)) * communicator.size // sum(counts)


def _owners_by_query(rows: Part | None, name: str, communicator: Communicator) -> NDArray[np.int64]:
    """Return where each row belongs: where most rows of its query are; no rank is left without a query."""
    labels = np.asarray([] if rows is None else rows["groups"])
    everywhere = [found for found in communicator.gather(np.unique(labels)) if len(found)]
    known = np.unique(np.concatenate(everywhere))
    _check_enough(len(known), "queries", name, communicator)
    number = np.searchsorted(known, labels) if len(labels) else np.zeros(0, np.intp)
    table = np.zeros((communicator.size, len(known)), np.int64)
    table[communicator.rank] = np.bincount(number, minlength=len(known))
    table = communicator.add(table)  # rows by rank and query
    owner = table.argmax(axis=0)
    for r in range(communicator.size):
        n_queries = np.bincount(owner, minlength=communicator.size)
        if n_queries[r] == 0:
            donor = np.flatnonzero(owner == n_queries.argmax())
            owner[donor[table[:, donor].sum(axis=0).argmin()]] = r
    return owner[number]


def _check_enough(n: int, what: str, name: str, communicator: Communicator) -> None:
    if n < communicator.size:
        raise ValueError(
            f"`{name}` must have at least as many {what} as there are workers with rows to train on, "
            f"{communicator.size}, got {n}"
        )


def _taken(piece: Any, which: Any) -> Any:
    return piece.iloc[np.flatnonzero(which)] if hasattr(piece, "iloc") else piece[np.flatnonzero(which)]
