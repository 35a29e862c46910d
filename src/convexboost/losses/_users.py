"""Calls of a user's code, which may read the arrays of the training but not write into them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from convexboost.core.space import as_columns

#: Errors of code that is given arrays it cannot write to: of NumPy and Cython, of compiled code with fixed
#: signatures, of Numba, and of PyTorch where warnings are errors.
REFUSALS = (ValueError, TypeError, NumbaError, UserWarning)


class LossError(ValueError):
    """A loss is not what it must be; the message says what is wrong, where, and what to do."""


def is_users(code: Any) -> bool:
    """Return whether a class or function is not one of this library."""
    return str(code.__module__).partition(".")[0] != __name__.partition(".")[0]


def ask(call: Callable[..., Any], title: str, names: Iterable[str], *arguments: Any, **named: Any) -> Any:
    """Call a user's code with arrays that it cannot write to; raise an error if it tries.

    `names` are those of the arguments.  Code that only requires arrays it *could* write to gets copies.
    """
    try:
        return call(*map(_locked, arguments), **{name: _locked(x) for name, x in named.items()})
    except REFUSALS:
        given = dict(zip(names, arguments, strict=False)) | named
        copies = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in given.items()}
        found = call(*list(copies.values())[: len(arguments)], **{name: copies[name] for name in named})
    for name, x in given.items():
        rows = np.flatnonzero(_differs(x, copies[name])) if isinstance(x, np.ndarray) else np.empty(0)
        if len(rows):
            raise LossError(
                f"{title} writes into `{name}`, e.g. in row {rows[0]}. Work on a copy: "
                "the arrays belong to the training."
            )
    return found


def protect(cls: type, methods: Iterable[str]) -> None:
    """Let the methods that a user's class defines read arrays only."""
    for method in methods:
        defined = vars(cls).get(method)
        if inspect.isfunction(defined) and is_users(defined):
            setattr(cls, method, _reading(defined, f"`{method}` of {cls.__name__}"))


def _reading(function: Callable[..., Any], title: str) -> Callable[..., Any]:
    names = list(inspect.signature(function).parameters)[1:]

    @wraps(function)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        return ask(function.__get__(self), title, names, *arguments, **named)

    return call


def _locked(argument: Any) -> Any:
    """Return a view of an array that cannot be written to."""
    if not isinstance(argument, np.ndarray):
        return argument
    view = argument.view()
    view.flags.writeable = False
    return view


def _differs(a: Any, b: Any) -> Any:
    """Return in which rows two arrays differ; what is missing in both is the same."""
    return np.any(as_columns((a != b) & ~((a != a) & (b != b))), axis=1)
