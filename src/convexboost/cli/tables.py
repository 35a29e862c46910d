"""Files with data: CSV, Parquet, SVMlight and LETOR.  Errors name line and column.

CSV files are read by Arrow, which is fast but says little of what is wrong; only then Python's csv module
reads the file again, to find the line.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from convexboost.cli.output import CommandError
from convexboost.datasets._letor import read_parts, unpacked

#: The formats, and how the names of their files end.
ENDINGS = {
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
    "svmlight": (".svm", ".svmlight", ".libsvm", ".letor"),
}
FORMATS = tuple(ENDINGS)
DELIMITERS = ",;\t|"
SVMLIGHT = re.compile(rb"\s*[-+.\deE]+(\s+qid:\S+)?(\s+\d+:\S+)+\s*(#.*)?$")
HEAD = 1 << 16  #: bytes looked at to tell a format
#: What stands for a missing number or date; in columns of text only an empty cell is missing.
MISSING = tuple(arrow_csv.ConvertOptions().null_values)


class DataError(CommandError):
    """Something is wrong with a file."""


@dataclass(frozen=True)
class Source:
    """Where bytes come from: a file, packed by gzip or not, or standard input."""

    name: str
    content: Path | bytes

    @classmethod
    def of(cls, path: Path) -> Source:
        """Return the source of a name; "-" is standard input."""
        if str(path) == "-":
            return cls("standard input", sys.stdin.buffer.read())
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a file with data")
        if not path.is_file():
            raise DataError(f"there is no file {path}")
        return cls(str(path), path)

    def head(self) -> bytes:
        """Return the first bytes."""
        try:
            with unpacked(self.content) as file:
                return file.read(HEAD)
        except (gzip.BadGzipFile, EOFError) as error:
            raise DataError(f"{self.name} cannot be unpacked: {error}") from None

    def format(self) -> str:
        """Return the format, by the name of the file or by what it holds."""
        if isinstance(self.content, Path):
            name = self.content.name.lower().removesuffix(".gz")
            for known, endings in ENDINGS.items():
                if name.endswith(endings):
                    return known
        head = self.head()
        if head.startswith(b"PAR1"):
            return "parquet"
        lines = (line for line in head.splitlines() if line.strip() and not line.startswith(b"#"))
        return "svmlight" if SVMLIGHT.match(next(lines, b"")) else "csv"


@dataclass(frozen=True)
class Letor:
    """The rows of a file in the format of SVMlight: features have numbers, not names."""

    source: Source
    X: NDArray[Any]
    y: NDArray[np.float64]
    qid: NDArray[np.int64] | None


@dataclass(frozen=True)
class Table:
    """Named columns."""

    source: Source
    columns: dict[str, Any]  #: arrays of Arrow
    n_rows: int
    notes: tuple[str, ...] = ()

    def column(self, name: str, option: str) -> Any:
        """Return the column that an option names."""
        if name not in self.columns:
            raise DataError(f"`{option}` {name!r}: {self.source.name} has no such column{self._known(name)}")
        return self.columns[name]

    def _known(self, name: str) -> str:
        close = get_close_matches(name, self.columns, n=1)
        if close:
            return f"; did you mean {close[0]!r}?"
        names = list(self.columns)
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        return f"; it has {', '.join(map(repr, names[:10]))}{more}"

    def broken(self, row: int, name: str, why: str) -> DataError:
        """Return the error that names a cell."""
        return DataError(f"{self.source.name}, {self.place(row)}, column {name!r}: {why}")

    def place(self, row: int) -> str:
        """Return where a row stands."""
        return f"row {row + 1}"


class CsvTable(Table):
    """A table whose rows stand on lines."""

    def place(self, row: int) -> str:
        """Return the line, found by reading the file again."""
        rows = _rows(self.source, _delimiter(self.source.head()))
        next(rows)
        for k, (line, _) in enumerate(rows):
            if k == row:
                return f"line {line}"
        return super().place(row)


def read(
    path: Path,
    form: str | None = None,
    *,
    as_text: Collection[str] = (),
    n_features: int | None = None,
) -> Table | Letor:
    """Read a file.

    The columns `as_text` of a CSV file are text also where they look like numbers.  A file of SVMlight has
    `n_features`, by default the largest number of a feature.
    """
    source = Source.of(path)
    form = form or source.format()
    if form not in FORMATS:
        raise DataError(f"`--format` must be one of {', '.join(FORMATS)}, got {form!r}")
    if form == "svmlight":
        return _read_svmlight(source, n_features)
    return _read_parquet(source) if form == "parquet" else _read_csv(source, as_text)


# --- SVMlight ----------------------------------------------------------------------------------------------


def _read_svmlight(source: Source, n_features: int | None) -> Letor:
    contents: Any = [source.content]
    try:
        X, y, qid, _ = read_parts(contents, n_features)
    except (gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{source.name} cannot be unpacked: {error}") from None
    except ValueError as error:
        named = str(error) if isinstance(source.content, Path) else f"{source.name}, {error}"
        raise DataError(named) from None
    if len(y) == 0:
        raise DataError(f"{source.name} is empty")
    if X.shape[1] == 0:
        raise DataError(f"{source.name} has no features")
    return Letor(source, X, y, qid)


# --- Parquet -----------------------------------------------------------------------------------------------


def _read_parquet(source: Source) -> Table:
    from pyarrow import parquet

    try:
        with unpacked(source.content) as file:
            table = parquet.read_table(pa.BufferReader(file.read()))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{source.name} cannot be read as Parquet: {_first_line(error)}") from None
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    kept = [name for name in table.column_names if name not in index]
    _refuse_twice(source, kept, "")
    if table.num_rows == 0:
        raise DataError(f"{source.name} has no rows")
    return Table(source, {name: table.column(name) for name in kept}, table.num_rows)


# --- CSV ---------------------------------------------------------------------------------------------------


def _read_csv(source: Source, as_text: Collection[str]) -> Table:
    head = source.head()
    if not head.strip():
        raise DataError(f"{source.name} is empty")
    delimiter = _delimiter(head)
    rows = _rows(source, delimiter)
    line, header = next(rows)
    _refuse_twice(source, [name for name in header if name], f", line {line}")
    names = [name or f"column {k}" for k, name in enumerate(header, 1)]
    notes = [
        f"{source.name}, line {line}: column {k} has no name and is called {names[k - 1]!r}"
        for k, name in enumerate(header, 1)
        if not name
    ]
    alone = len(header) == 1  # an empty line is then a row with an empty cell
    parsing = {
        "read_options": arrow_csv.ReadOptions(skip_rows=line - 1 if alone else 0),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not alone
        ),
    }
    try:
        with unpacked(source.content) as file:
            content = file.read()
        table = _parsed(content, parsing, as_text)
        codes = _codes(content, delimiter, parsing, header, table)
    except (pa.ArrowException, gzip.BadGzipFile, EOFError) as error:
        for line, row in rows:
            if len(row) != len(header):
                raise _ragged(source, line, row, names) from None
        raise DataError(f"{source.name} cannot be read as CSV: {_first_line(error)}") from None
    if table.num_rows == 0:
        raise DataError(f"{source.name} has no rows below its header")
    if any(pa.types.is_binary(column.type) for column in table.columns):  # no text: raises at the line
        for _ in rows:
            pass
    columns = {name: _emptied(column) for name, column in zip(names, table.columns, strict=True)} | codes
    return CsvTable(source, columns, table.num_rows, tuple(notes))


def _parsed(content: bytes, parsing: dict[str, Any], as_text: Collection[str], **options: Any) -> Any:
    types = {name: pa.string() for name in as_text}
    converting = arrow_csv.ConvertOptions(column_types=types, null_values=MISSING, **options)
    return arrow_csv.read_csv(pa.BufferReader(content), convert_options=converting, **parsing)


def _codes(
    content: bytes, delimiter: str, parsing: dict[str, Any], header: Sequence[str], table: Any
) -> dict[str, Any]:
    """Return the columns of digits in which some cell begins with 0: '01234' is a code, not 1234."""
    if not re.search(rb'["\s' + re.escape(delimiter.encode()) + rb"]0\d", content):
        return {}
    numbers = [
        name
        for name, column in zip(header, table.columns, strict=True)
        if name and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type))
    ]
    if not numbers:
        return {}
    texts = _parsed(content, parsing, numbers, include_columns=numbers)
    out = {}
    for name in numbers:
        column = texts.column(name)
        digits = pc.match_substring_regex(column, r"^\d+$")
        missing = pc.is_in(column, value_set=pa.array(MISSING))
        if (
            pc.any(pc.match_substring_regex(column, r"^0\d+$")).as_py()
            and pc.all(pc.or_(digits, missing)).as_py()
        ):
            out[name] = _emptied(column)
    return out


def _emptied(column: Any) -> Any:
    """Return a column of text without its empty cells, which are missing values."""
    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _delimiter(head: bytes) -> str:
    """Return what separates the names in the header: the character that is there most often."""
    line = next((line for line in head.decode("utf-8", "replace").splitlines() if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", line)
    return max(DELIMITERS, key=bare.count)


def _rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row begins, and its values.

    An empty line is no row, unless there is but one column.
    """
    with unpacked(source.content) as file:
        reader = csv.reader(_lines(source, file), delimiter=delimiter, strict=True)
        line, width = 1, 0
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                quote = "a quote is not closed" if "end of data" in str(error) else str(error)
                raise DataError(f"{source.name}, line {line}: {quote}") from None
            if row is None:
                return
            if row or width == 1:
                yield line, row or [""]
                width = width or len(row)
            line = reader.line_num + 1


def _lines(source: Source, file: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            where = f"{source.name}, line {number}, byte {error.start + 1}"
            raise DataError(f"{where}: {error.object[error.start]:#04x} is no UTF-8; save it so") from None


def _ragged(source: Source, line: int, row: Sequence[str], names: Sequence[str]) -> DataError:
    where = f"{source.name}, line {line}"
    if len(row) < len(names):
        missing = repr(names[len(row)])
        return DataError(
            f"{where}: {len(row)} values for {len(names)} columns; column {missing} is the first without one"
        )
    extra = row[len(names)]
    return DataError(
        f"{where}, column {len(names) + 1}: {len(row)} values for {len(names)} columns; {extra!r} is too many"
    )


def _refuse_twice(source: Source, names: Sequence[str], where: str) -> None:
    for k, name in enumerate(names):
        if name in names[:k]:
            first = names.index(name) + 1
            raise DataError(f"{source.name}{where}: columns {first} and {k + 1} have the same name {name!r}")


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
