"""What the commands write: facts as a table or as JSON; folders and pictures, checked before any work.

Terminals without Unicode get plain words.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

#: Replacements on terminals that print only ASCII; Greek letters get their names, others lose their accents.
PAIRS = """
‖ ||  − -  – -  … ...  ≤ <=  ≥ >=  ≠ !=  ≈ ~  ± +-  ∞ inf  √ sqrt  · *  × x  ← <-  → ->  ∈ in  ∇ grad  ∂ d
⟨ <  ⟩ >  ½ 1/2  ¼ 1/4  “ "  ” "  ‘ '  ’ '  ✓ yes  ✗ no  ² ^2  ━ -
"""
PLAIN = dict(zip(PAIRS.split()[::2], PAIRS.split()[1::2], strict=True))


class CommandError(ValueError):
    """A command cannot do what it is asked to; it says so in a line and ends with `status`."""

    status = 2


class OutputError(CommandError):
    """There is nowhere to write to."""


def show(facts: Mapping[str, Any], as_json: bool) -> None:
    """Print names and values, one per line; as JSON the names have underscores."""
    if as_json:
        plain = {name.replace(" ", "_"): value for name, value in facts.items()}
        print(json.dumps(_finite(plain), indent=2, ensure_ascii=False, allow_nan=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        if value not in (None, ""):
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            print(f"{name:<{width}}  {text}")


def _finite(value: Any) -> Any:
    """Return a value with None for the numbers that JSON does not know."""
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_folder(path: Path, option: str, must: str = "be") -> None:
    """See that files can be written to the folder that an option must be, or must be in.

    It need not be there yet, and is not made: who fails later leaves nothing behind.
    """
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        why = "it is a file" if path.is_file() else error.strerror
        message = f"`{option}` must {must} a folder that can be written to, got {path}: {why}"
        raise OutputError(message) from None


def check_file(path: Path, option: str) -> None:
    """Make sure, before any work, that a file can be written."""
    if path.is_dir():
        raise OutputError(f"`{option}` must be a file, got the folder {path}")
    if path.exists() and not path.is_file():
        raise OutputError(f"`{option}` must be a file, got the device or pipe {path}")
    check_folder(path.parent, option, must="be in")


@contextmanager
def folder_of(path: Path) -> Iterator[None]:
    """Make the folder that a file is written to inside; take it away again where that fails."""
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):  # others may have put something there
                folder.rmdir()
        raise


def check_picture(path: Path, option: str) -> None:
    """Make sure that a picture can be written to this file."""
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if path.is_dir():
        raise OutputError(f"`{option}` must be a file, got the folder {path}")
    if path.suffix[1:].lower() not in known:
        endings = ", ".join(f".{name}" for name in sorted(known))
        raise OutputError(f"`{option}` must be a file that ends in one of {endings}, got {path}")
    check_folder(path.parent, option, must="be in")
    if path.exists() and not os.access(path, os.W_OK):
        raise OutputError(f"`{option}` must be a file that can be written to, got {path}")


def plain_environment() -> dict[str, str]:
    """Return an environment in which other programs do not stop at characters that cannot be printed."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return {**os.environ, "PYTHONIOENCODING": f"{encoding}:replace"}


def spell_out_what_cannot_be_encoded() -> None:
    """Let standard output and error print plain words for characters that they do not know."""
    codecs.register_error("convexboost.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="convexboost.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_spelled, error.object[error.start : error.end])), error.end


def _spelled(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    name = unicodedata.name(character, "")
    if name.startswith("GREEK ") and " LETTER " in name:
        letter = name.split(" LETTER ")[1].split()[0]
        return letter.capitalize() if "CAPITAL" in name else letter.lower()
    bare = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return bare or ("" if unicodedata.combining(character) else "?")
