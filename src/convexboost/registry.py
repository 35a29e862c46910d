"""Losses and learners by name: whatever the folders hold."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from difflib import get_close_matches
from functools import cache
from typing import Any


@cache
def everything(package: str) -> dict[str, type[Any]]:
    """Return the classes with a `name` in the modules of a package, e.g. "convexboost.objectives"."""
    found = {}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, package + "."):
        if module.name.startswith(package + "._"):
            continue
        for cls in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(cls) and cls.__module__ == module.name and "name" in vars(cls):
                found[vars(cls)["name"]] = cls
    return dict(sorted(found.items()))


@cache
def available(package: str) -> dict[str, type[Any]]:
    """Return those that can be made from their name alone."""

    def complete(cls: type[Any]) -> bool:
        return all(p.default is not p.empty for p in inspect.signature(cls).parameters.values())

    return {name: cls for name, cls in everything(package).items() if complete(cls)}


def resolve(parameter: str, spec: Any, classes: dict[str, type[Any]]) -> Any:
    """Turn "quantile", "quantile:0.9" or an object into an object."""
    if not isinstance(spec, str):
        return spec() if inspect.isclass(spec) else spec
    name, _, argument = spec.partition(":")
    if name not in classes:
        close = get_close_matches(name, classes, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"`{parameter}` must be one of {', '.join(classes)}, got {spec!r}{hint}")
    if not argument:
        return classes[name]()
    try:
        value = float(argument)
    except ValueError:
        raise ValueError(f"the argument of `{parameter}` must be a number, got {spec!r}") from None
    if not inspect.signature(classes[name]).parameters:
        raise ValueError(f"`{parameter}` {name!r} takes no argument, got {spec!r}")
    return classes[name](int(value) if value.is_integer() else value)
