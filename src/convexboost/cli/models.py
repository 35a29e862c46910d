"""Model files for the commands that use one."""

from __future__ import annotations

from pathlib import Path

import joblib
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import convexboost
from convexboost.cli.output import CommandError
from convexboost.estimators._base import BaseConvexBoost

ENDING = ".convexboost"


class ModelError(CommandError):
    """There is no model in a file."""


def load(path: Path, *, pickles: bool = False) -> BaseConvexBoost:
    """Read a model file; with `pickles` also a pickled or joblib-dumped estimator, which runs its code."""
    if path.is_dir():
        raise ModelError(f"{path} is a folder, not a model")
    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    if not _is_pickle(path):
        try:
            model: BaseConvexBoost = convexboost.load(path)
        except (convexboost.ModelFormatError, ValueError, TypeError) as error:
            raise ModelError(_naming(path, error)) from None
        return model
    if not pickles:
        raise ModelError(
            f"{path} is no model file; if it is a pickle that you trust, load it in Python and call its "
            "`save`, or look at it by `convexboost inspect --pickle`: this runs the code in it"
        )
    return _load_pickle(path)


def _is_pickle(path: Path) -> bool:
    """Return whether a file is not even the beginning of a model file: a length in 8 bytes, then JSON."""
    with path.open("rb") as file:
        head = file.read(9)
    return head[8:] != b"{"


def _load_pickle(path: Path) -> BaseConvexBoost:
    try:
        model = joblib.load(path)
    except Exception as error:  # a pickle can raise anything
        raise ModelError(
            f"{path} cannot be read as a model file, a pickle or a joblib dump: {error}"
        ) from error
    if not isinstance(model, BaseConvexBoost):
        name = type(model).__name__
        raise ModelError(
            f"{path} holds no convexboost estimator but a {name}; of a pipeline, save the last step"
        )
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ModelError(f"{path} holds a {type(model).__name__} that is not fitted") from None
    return model


def _naming(path: Path, error: Exception) -> str:
    return str(error) if str(path) in str(error) else f"{path}: {error}"
