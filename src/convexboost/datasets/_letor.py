"""Learning-to-rank and LIBSVM files, streamed: `grade qid:1 1:3 2:0.5 ... # comment`.

Two passes over the text, a few megabytes at a time: one finds the shape, one fills arrays of that shape.  So
the memory needed is the arrays' and little more.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any

import numpy as np
from numba import njit
from numpy.typing import DTypeLike, NDArray

from convexboost.datasets._dataset import Dataset, Fold

PACKED = b"\x1f\x8b"  #: how a gzip file begins
CHUNK = 1 << 22  #: bytes of text parsed together

#: What is wrong with a line.
_PROBLEMS = {
    1: "expected `number qid:number index:value ...`",
    2: "feature numbers must rise, from 1 to `n_features` at most",
    3: "a `qid` on some lines only",
}
#: Where a number belongs, besides columns 0, 1, ...
_LABEL = -1

_COLON, _HASH, _NEWLINE, _SPACE, _ZERO = 58, 35, 10, 32, 48
_POWERS = 10.0 ** np.arange(23)  # exact in float64


def read_letor(
    path: str | PathLike[str], *, n_features: int | None = None, dtype: DTypeLike = np.float64
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64] | None]:
    """Read a LETOR, MSLR or LIBSVM file, plain or gzip, into dense X, y and qid (None where there is none).

    A feature that a line leaves out is 0.  `n_features` is by default the largest feature number.
    """
    return read_parts([Path(path)], n_features, dtype)[:3]


def load_mslr(folder: str | PathLike[str], fold: int = 1, *, dtype: DTypeLike = np.float64) -> Dataset:
    """Load a fold of MSLR-WEB10K or WEB30K as Microsoft distributes it: Fold1/train.txt, vali.txt, test.txt.

    The rows stay in the order train, vali, test, so `split()` copies nothing.
    """
    if fold not in range(1, 6):
        raise ValueError(f"`fold` must be one of 1, 2, 3, 4, 5, got {fold!r}")
    paths = [Path(folder) / f"Fold{fold}" / f"{part}.txt" for part in ("train", "vali", "test")]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(
                f"no file {path}: `folder` must hold Fold1/train.txt and so on, as unpacked from "
                f"https://www.microsoft.com/en-us/research/project/mslr/, got {fspath(folder)!r}"
            )
    X, y, qid, n_rows = read_parts(paths, 136, dtype)
    if qid is None:
        raise ValueError(f"{paths[0]}, line 1: MSLR lines need a `qid`")
    parts = Fold(*np.split(np.arange(len(y)), np.cumsum(n_rows)[:-1]))
    names = tuple(f"feature {i}" for i in range(1, X.shape[1] + 1))
    return Dataset("mslr", X, y, names, parts.train, parts.test, qid=qid, folds=(parts,))


def read_parts(
    sources: list[Path] | list[bytes], n_features: int | None = None, dtype: DTypeLike = np.float64
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64] | None, list[int]]:
    """Read files, or their text, one below the other; return X, y, qid and the rows of each."""
    sizes = [_measure(source) for source in sources]
    n_rows, largest = [n for n, _ in sizes], max(index for _, index in sizes)
    X = np.zeros((sum(n_rows), largest if n_features is None else n_features), dtype)
    y = np.zeros(len(X))
    qid = np.full(len(X), -1, np.int64)
    row = 0
    for source in sources:
        row = _fill(source, X, y, qid, row)
    return X, y, qid if len(qid) and qid[0] >= 0 else None, n_rows


def unpacked(source: Path | bytes) -> IO[bytes]:
    """Open a file, or bytes, packed by gzip or not."""
    if isinstance(source, bytes):
        return gzip.open(BytesIO(source)) if source[:2] == PACKED else BytesIO(source)  # type: ignore[return-value]
    with open(source, "rb") as file:
        packed = file.read(2) == PACKED
    return gzip.open(source) if packed else open(source, "rb")  # type: ignore[return-value]


def _chunks(source: Path | bytes) -> Iterator[bytes]:
    """Cut the text into pieces that end with a line."""
    with unpacked(source) as file:
        rest = b""
        while piece := file.read(CHUNK):
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield rest + piece[:cut]
                rest = piece[cut:]
            else:
                rest += piece
        if rest:
            yield rest + b"\n"


def _measure(source: Path | bytes) -> tuple[int, int]:
    """Return the number of rows and the largest feature number."""
    n_rows, largest = 0, 0
    for text in _chunks(source):
        rows, index = _shape(np.frombuffer(text, np.uint8))
        n_rows, largest = n_rows + rows, max(largest, index)
    return n_rows, largest


def _fill(source: Path | bytes, X: Any, y: Any, qid: Any, row: int) -> int:
    """Parse one file into the rows from `row` on; return the row after its last."""
    line = 0
    for text in _chunks(source):
        hard = np.empty((len(text) // 2 + 1, 4), np.int64)
        row, n_hard, problem, at = _parse(np.frombuffer(text, np.uint8), X, y, qid, row, hard, _POWERS)
        if problem:
            raise _malformed(source, line, text, at, _PROBLEMS[problem])
        for r, column, start, stop in hard[:n_hard].tolist():
            word = text[start:stop]
            try:
                value = float(word.replace(b"_", b"?"))  # Python alone reads 1_000 as a number
            except ValueError:
                raise _malformed(
                    source, line, text, start, f"{word.decode('latin1')!r} is no number"
                ) from None
            if column == _LABEL:
                y[r] = value
            else:
                X[r, column] = value
        line += text.count(b"\n")
    return row


def _malformed(source: Path | bytes, line: int, text: bytes, at: int, problem: str) -> ValueError:
    start, stop = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
    shown = text[start:stop].decode("latin1").strip()
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    number = line + text.count(b"\n", 0, start) + 1
    place = f"line {number}, column {at - start + 1}"
    place = place if isinstance(source, bytes) else f"{source}, {place}"
    return ValueError(f"{place}: {problem}, got {shown!r}")


@njit(cache=True, nogil=True)
def _append(number: int, digit: Any) -> Any:
    """Append a digit; numbers that get too long to matter stay as they are."""
    return number * 10 + np.int64(digit) - _ZERO if number < 10**17 else number


@njit(cache=True, nogil=True)
def _shape(text: Any) -> Any:
    """Count the lines with content, and find the largest number before a colon."""
    rows, largest, number = 0, 0, 0
    content, comment = False, False
    for c in text:
        if c == _NEWLINE:
            rows += content
            content, comment, number = False, False, 0
        elif comment or c == _HASH:
            comment = True
        elif _ZERO <= c <= 57:
            content = True
            if number >= 0:
                number = _append(number, c)
        elif c <= _SPACE:
            number = 0
        else:
            content = True
            if c == _COLON:
                largest = max(largest, number)
            number = -1  # not the number of a feature: `qid:`, or a value
    return rows, largest


@njit(cache=True, nogil=True)
def _end(text: Any, i: int) -> Any:
    """Return where the word ends."""
    while text[i] > _SPACE and text[i] != _COLON and text[i] != _HASH:
        i += 1
    return i


@njit(cache=True, nogil=True)
def _decimal(text: Any, i: int, powers: Any) -> Any:
    """Read a short decimal number at i: (value, end).  The end is -1 where `float` must read the word.

    A mantissa below 2^53 and a power of ten up to 10^22 are exact, so one division rounds correctly.
    """
    negative = text[i] == 45
    if negative:
        i += 1
    mantissa, digits, places, point = 0, 0, 0, False
    while True:
        c = text[i]
        if _ZERO <= c <= 57:
            mantissa = _append(mantissa, c)
            digits += 1
            places += point
        elif c == 46 and not point:
            point = True
        else:
            break
        i += 1
    if digits == 0 or digits > 15 or (text[i] > _SPACE and text[i] != _HASH):
        return 0.0, -1
    value = mantissa / powers[places]
    return -value if negative else value, i


@njit(cache=True, nogil=True)
def _parse(text: Any, X: Any, y: Any, qid: Any, row: int, hard: Any, powers: Any) -> Any:
    """Fill rows from whole lines; return (next row, numbers left to `float`, problem, where).

    `hard` gets row, column, start and end of each number left.
    """
    n_hard, i, n = 0, 0, len(text)
    while i < n:
        column, fields, has_qid = -1, 0, False
        while text[i] != _NEWLINE and text[i] != _HASH:
            if text[i] <= _SPACE:
                i += 1
                continue
            start = i
            if fields == 0:
                target = _LABEL
            elif text[i] == 113:  # q
                has_qid = fields == 1 and text[i + 1] == 105 and text[i + 2] == 100 and text[i + 3] == _COLON
                number, i = 0, i + 4
                while has_qid and _ZERO <= text[i] <= 57:
                    number, i = _append(number, text[i]), i + 1
                if not has_qid or not 0 < i - start - 4 <= 17 or text[i] > _SPACE:
                    return row, n_hard, 1, start
                qid[row] = number
                fields += 1
                continue
            else:
                target = 0
                while _ZERO <= text[i] <= 57:
                    target, i = _append(target, text[i]), i + 1
                if text[i] != _COLON or i == start:
                    return row, n_hard, 1, start
                i += 1
                target -= 1
                if target <= column or target >= X.shape[1]:
                    return row, n_hard, 2, start
                column = target
            value, end = _decimal(text, i, powers)
            if end < 0:
                end = _end(text, i)
                if text[end] == _COLON or end == i:
                    return row, n_hard, 1, start
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = row, target, i, end
                n_hard += 1
            elif target == _LABEL:
                y[row] = value
            else:
                X[row, target] = value
            fields, i = fields + 1, end
        start = i
        while text[i] != _NEWLINE:
            i += 1
        if fields > 0:
            if has_qid != (qid[0] >= 0):
                return row, n_hard, 3, start
            row += 1
        i += 1
    return row, n_hard, 0, 0
