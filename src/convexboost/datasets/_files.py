"""Finding a file of a data set: the user's folder, the cache, the source."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import os
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = tuple[NDArray[Any], ...]

#: What parsers and unpackers raise on bytes that are something else.
_UNREADABLE = (
    *(ValueError, TypeError, LookupError, EOFError),
    *(zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, tarfile.TarError),
)

TIMEOUT = 30.0  #: seconds without a byte
ATTEMPTS = 4
PAUSE = 1.0  #: seconds before the second attempt; twice as long before each further one


@dataclass(frozen=True)
class File:
    """One file: its place below a data folder, how to read it, and what must come out."""

    path: str  #: "letter/letter-recognition.data"
    parse: Callable[[bytes], Arrays]
    sha256: str  #: of the parsed arrays
    url: str | None = None  #: the file, or an archive that holds one of this name
    hint: str = ""  #: where a person finds it, if there is no url

    def load(self) -> Arrays:
        """Return the parsed arrays, from the first place that has the file."""
        if path := self.find():
            return self.read(path)
        if self.url is None:
            raise FileNotFoundError(f"{self.path} cannot be downloaded. {self.hint} {self._where()}")
        return self._download()

    def find(self) -> Path | None:
        """Return the file on this machine, if it is here."""
        places = (folder / name for folder in _folders() for name in (self.path, self.path + ".gz"))
        return next((path for path in places if path.is_file()), None)

    def read(self, path: Path) -> Arrays:
        """Parse a file on this machine, and make sure that it is the published one."""
        try:
            return self._check(self.parse(_unpack(path.read_bytes(), path.name)))
        except _UNREADABLE as error:
            if self.url is None:
                remedy = f"Replace it by the original. {self.hint}"
            elif cache_folder() in path.parents:
                remedy = "Delete it, and it will be downloaded again."
            else:
                remedy = "Replace it by the original, or unset CONVEXBOOST_DATA to have it downloaded."
            raise ValueError(f"{path} is not the file that was published: {error}. {remedy}") from error

    def _check(self, arrays: Arrays) -> Arrays:
        """Raise ValueError unless the arrays are those of the published file."""
        found = digest(arrays)
        if found != self.sha256:
            raise ValueError(f"the values have checksum {found[:12]}..., expected {self.sha256[:12]}...")
        return arrays

    def _download(self) -> Arrays:
        assert self.url is not None
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(PAUSE * 2 ** (attempt - 1))
            try:
                content = _unpack(_fetch(self.url, self.path), Path(self.path).name)
                arrays = self._check(self.parse(content))
            except (OSError, HTTPException, *_UNREADABLE) as error:
                failure: Exception = error
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
                    if error.code in (401, 403, 404, 410):
                        break  # asking again will not help
                continue
            _keep(content, cache_folder() / self.path)
            return arrays
        tries = f"{attempt + 1} attempt{'s' if attempt else ''}"
        raise FileNotFoundError(
            f"could not download {self.path} from {self.url} ({tries}; the last failed with: {failure}). "
            + self._where()
        ) from failure

    def _where(self) -> str:
        given = os.environ.get("CONVEXBOOST_DATA")
        place = f"{Path(given) / self.path}" if given else f"$CONVEXBOOST_DATA/{self.path}"
        return f"Put the file at {place} or at {cache_folder() / self.path} (plain, or with .gz added)."


def digest(arrays: Arrays) -> str:
    """Return the sha256 of the shapes and little-endian float64 values of some arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(repr(array.shape).encode())
        total.update(np.ascontiguousarray(array, "<f8").tobytes())
    return total.hexdigest()


def cache_folder() -> Path:
    """Return the folder that keeps downloads: CONVEXBOOST_CACHE, or the platform's cache."""
    if given := os.environ.get("CONVEXBOOST_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "convexboost" / "Cache"
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "convexboost"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "convexboost"


def _folders() -> list[Path]:
    """Return the folders to look in, first things first."""
    given = os.environ.get("CONVEXBOOST_DATA")
    if not given:
        return [cache_folder()]
    if not Path(given).is_dir():
        raise FileNotFoundError(f"`CONVEXBOOST_DATA` must be a folder, got {given!r}")
    return [Path(given), cache_folder()]


def _keep(content: bytes, path: Path) -> None:
    """Write a file in one step, so that another process never sees a part of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:  # the data are here: not keeping them is no reason to fail
        warnings.warn(
            f"could not keep {path}: {error}; set CONVEXBOOST_CACHE to another folder", stacklevel=2
        )


def _fetch(url: str, title: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "convexboost"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        length = response.headers.get("Content-Length")
        total = int(length) if length else None
        content = bytearray()
        with _progress(title, total) as advance:
            while piece := response.read(1 << 16):
                content += piece
                advance(len(piece))
    if total is not None and len(content) != total:
        raise EOFError(f"the connection broke off after {len(content)} of {total} bytes")
    return bytes(content)


@contextmanager
def _progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar where a person looks on and rich is installed."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda n: progress.update(task, advance=n)


def _unpack(content: bytes, name: str) -> bytes:
    """Return the file `name` out of whatever it is packed in, told by the first bytes."""
    if content.startswith(b"PK\x03\x04") and not name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _unpack(archive.read(_member(archive.namelist(), name)), name)
    if content.startswith(b"\x1f\x8b"):
        return _unpack(gzip.decompress(content), name)
    if content.startswith(b"\x1f\x9d"):
        return unlzw(content)
    if content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            file = tar.extractfile(_member(tar.getnames(), name))
            if file is None:
                raise ValueError(f"{name} is a folder in the archive")
            return _unpack(file.read(), name)
    return content


def _member(members: list[str], name: str) -> str:
    """Find a file in an archive, in whatever folder."""
    for wanted in (name, name + ".Z", name + ".gz"):
        for member in members:
            if member.rsplit("/", 1)[-1] == wanted:
                return member
    raise ValueError(f"the archive holds no {name}, only {', '.join(members[:10])}")


def unlzw(content: bytes) -> bytes:
    """Unpack what Unix `compress` packed (.Z), in which UCI stores Connect-4; Python has nothing for it."""
    max_width, block_mode = content[2] & 31, bool(content[2] & 128)
    table = [bytes([i]) for i in range(256)] + [b""] * block_mode
    data, out, previous = content[3:], [], b""
    width, position, start = 9, 0, 0  # bits of a code; the next bit; where this width began
    while position + width <= 8 * len(data):
        byte, shift = divmod(position, 8)
        code = int.from_bytes(data[byte : byte + 4], "little") >> shift & ((1 << width) - 1)
        position += width
        clear = block_mode and code == 256
        if clear:
            del table[257:]
            previous = b""
        else:
            if code > len(table) or (code == len(table) and not previous):
                raise ValueError("the .Z file is damaged")
            entry = table[code] if code < len(table) else previous + previous[:1]
            out.append(entry)
            if previous and len(table) < 1 << max_width:
                table.append(previous + entry[:1])
            previous = entry
        # Where the width changes, the writer fills up the last group of eight codes.
        if clear or (len(table) >= 1 << width and width < max_width):
            group = 8 * width
            position = start + -(-(position - start) // group) * group
            width, start = 9 if clear else width + 1, position
    return b"".join(out)
