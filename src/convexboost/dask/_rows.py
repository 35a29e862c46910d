"""Rows of Dask collections: which partitions belong together, and how they become the rows of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import scipy.sparse as sp

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
    return {name: _stacked([part[name] for part in parts]) for name in parts[0]}


def _stacked(pieces: Sequence[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    if sp.issparse(pieces[0]):
        return sp.vstack(pieces, format="csr")
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(pieces)
    import pandas as pd

    return pd.concat(pieces)


def with_whole_queries(rows: Part, communicator: Communicator) -> Part:
    """Exchange rows so that those of a query (`groups`) are on one rank: that which has the most of them."""
    labels, number, counts = np.unique(
        np.asarray(rows["groups"]), return_inverse=True, return_counts=True
    )
    everywhere = communicator.gather((labels, counts))
    known = np.unique(np.concatenate([found for found, _ in everywhere]))
    table = np.zeros((communicator.size, len(known)), np.int64)
    for r, (found, n) in enumerate(everywhere):
        table[r, np.searchsorted(known, found)] = n
    owner = table.argmax(axis=0)[np.searchsorted(known, labels)][number]  # of each row
    moves = [{name: _taken(piece, owner == r) for name, piece in rows.items()} for r in range(communicator.size)]
    return joined(communicator.exchange(moves))


def _taken(piece: Any, which: Any) -> Any:
    return piece.iloc[np.flatnonzero(which)] if hasattr(piece, "iloc") else piece[which]
