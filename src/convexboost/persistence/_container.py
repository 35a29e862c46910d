"""The container of a model file: a safetensors file with a description, a version and a checksum.

docs/model-file.md is the specification.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from convexboost.core.atomic import write_atomically

#: The version of the file format.  A file of a later version is refused.
VERSION = 1
MODEL = "convexboost model"
#: The types of arrays, by their names in a safetensors file; all are stored with the lowest byte first.
DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
#: JSON becomes Python objects of up to 25 times its size, so the header must be a small part of the file:
#: at most this many bytes, plus this part of the file.
HEADER_BYTES, HEADER_PART = 2**19, 8


class ModelFormatError(ValueError):
    """A file is not a model file, is damaged, or was written by a later version; the message says which."""


@contextmanager
def naming_the_file(path: Any) -> Iterator[None]:
    """Turn whatever is wrong with the content of a file into a ModelFormatError that names the file."""
    try:
        yield
    except Exception as error:  # of any kind: a damaged file can break any assumption
        reason = str(error) or type(error).__name__
        raise ModelFormatError(f"{os.fspath(path)!r} cannot be loaded: {reason}") from error


def write(
    path: Any, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], content_is: str = MODEL
) -> None:
    """Write a model file, or one with another content: the old file or the new one is there, whole."""
    text = json.dumps(description, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    blobs = {name: _little(array).tobytes() for name, array in arrays.items()}
    kinds = {name: (_name_of(array.dtype), array.shape) for name, array in arrays.items()}
    metadata = {
        "format": content_is,
        "version": str(VERSION),
        "checksum": checksum(text, {name: (*kinds[name], blob) for name, blob in blobs.items()}),
        "description": text,
    }
    content = safetensors.numpy.save(arrays, metadata)
    (size,) = struct.unpack_from("<Q", content)
    if size > _largest_header(len(content)):
        raise ValueError(f"the description of the model is too large for a model file: {size:,} bytes")
    write_atomically(path, content)


def read(path: Any, content_is: str = MODEL) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and the arrays of a model file, or of one with another content."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFormatError(f"{os.fspath(path)!r} cannot be loaded: it is not a file")
    with open(path, "rb") as file:
        content = file.read()
    with naming_the_file(path):
        metadata = _metadata(content, content_is)
        found = safetensors.deserialize(content)  # type: ignore[no-untyped-call]
        del content
        tensors = {name: (entry["dtype"], tuple(entry["shape"]), entry["data"]) for name, entry in found}
        del found
        text = metadata["description"]
        if checksum(text, tensors) != metadata.get("checksum"):
            raise ValueError("it is damaged: the checksum does not fit the content")
        description = json.loads(text, parse_constant=_no_constant)
        if not isinstance(description, dict):
            raise ValueError("the description must be a JSON object")
        return description, {name: _array(*tensor) for name, tensor in tensors.items()}


def checksum(text: str, tensors: Mapping[str, tuple[str, Any, Any]]) -> str:
    """Return the SHA-256 of a description and of arrays, each given as (type, shape, bytes)."""
    digest = hashlib.sha256(_line("convexboost", text))
    for name in sorted(tensors):
        dtype, shape, data = tensors[name]
        digest.update(_line(name, dtype, list(shape), len(data)))
        digest.update(data)
    return digest.hexdigest()


def _line(*entries: Any) -> bytes:
    return json.dumps(entries, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _metadata(content: bytes, content_is: str) -> dict[str, str]:
    """Return the metadata of a safetensors file, once it is known to be ours and of a version we can read."""
    if len(content) < 8:
        raise ValueError("it is not a model file (too short)")
    (size,) = struct.unpack_from("<Q", content)
    if size > len(content) - 8 or content[8:9] != b"{":
        raise ValueError("it is not a model file, or it is cut short")
    if size > _largest_header(len(content)):
        raise ValueError(f"its header is too large: {size:,} bytes")
    header = json.loads(content[8 : 8 + size], parse_constant=_no_constant)
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != content_is:
        raise ValueError(f"it is a safetensors file, but not a {content_is}")
    version = metadata.get("version")
    if not isinstance(version, str) or not version.isascii() or not version.isdigit():
        raise ValueError(f"`version` must be a whole number, got {version!r}")
    if len(version) > 9 or int(version) > VERSION:
        raise ValueError(
            f"it has version {version[:20]} of the model file; this release of convexboost reads up to "
            f"{VERSION}: a newer release can read it"
        )
    if int(version) < 1:
        raise ValueError(f"`version` must be at least 1, got {version}")
    if not isinstance(metadata.get("description"), str):
        raise ValueError("`description` is missing in its metadata")
    return metadata


def _largest_header(size: int) -> int:
    return HEADER_BYTES + size // HEADER_PART


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _name_of(dtype: np.dtype[Any]) -> str:
    found = {np.dtype(ours): name for name, ours in DTYPES.items()}.get(dtype.newbyteorder("="))
    if found is None:
        raise ValueError(f"a model file cannot hold arrays of type {dtype}")
    return found


def _little(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _array(dtype: str, shape: tuple[int, ...], data: Any) -> NDArray[Any]:
    if dtype not in DTYPES:
        raise ValueError(f"arrays of type {dtype} are not part of a model file")
    if dtype == "BOOL" and (np.frombuffer(data, np.uint8) > 1).any():
        raise ValueError("an array of truth values must hold 0 and 1")
    return (
        np.frombuffer(data, DTYPES[dtype])
        .reshape(shape)
        .astype(np.dtype(DTYPES[dtype]).newbyteorder("="), copy=False)
    )
