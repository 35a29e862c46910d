"""All or nothing: a fit changes an estimator wholly or not at all, and so does writing a file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Give an estimator its attributes back if what is done inside raises, Ctrl-C included.

    A fit sets attributes as it goes.  One that fails must leave an estimator that was not fitted without any
    of them, and a fitted one with those of its model.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


@contextmanager
def fitting(estimator: Any) -> Iterator[None]:
    """Fit an estimator wholly or not at all; raise if Ctrl-C ended the training inside.

    An estimator that was not fitted before keeps the model of the rounds that were finished then.
    """
    was_fitted = "model_" in vars(estimator)
    with unchanged_on_error(estimator):
        yield
        interrupted, rounds = estimator.stop_kind_ == "interrupted", estimator.n_rounds_
        if interrupted and (was_fitted or rounds == 0):
            raise KeyboardInterrupt
    if interrupted:
        count = "1 round" if rounds == 1 else f"{rounds} rounds"
        raise KeyboardInterrupt(f"training was interrupted; the estimator keeps the model of {count}")


def write_atomically(path: str | os.PathLike[str], *parts: bytes) -> None:
    """Write a file so that at any moment, a power cut included, the old or the new one is there, whole.

    A temporary file in the same folder is written, flushed to the disk, and renamed.  Where anything fails
    (the disk is full, the folder is read-only) the old file is left as it was and nothing else stays behind.
    What is no ordinary file (a device, a pipe) is written to as it is.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.writelines(parts)
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    temporary = target.with_name(temporary_name(target.name, secrets.token_hex(8)))
    try:
        with open(temporary, "xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(temporary, os.stat(target).st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):  # the user knows nothing of the temporary file
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    if os.name == "posix":  # the new name must reach the disk too
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def temporary_name(name: str, token: str) -> str:
    """Return the name of the file that is written before it gets its name."""
    return f".{name}.{token}.tmp"
