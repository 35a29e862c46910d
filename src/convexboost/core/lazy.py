"""Public names of a package that are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    `homes` has the module of a name; a name that is not there is a class in the file of that name, in snake
    case, for example `SignStump` in `sign_stump.py`.
    """

    def load(name: str) -> Any:
        module = sys.modules[package]
        if name not in module.__all__:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes.get(name) or f"{package}.{_file(module, name)}"), name)
        setattr(module, name, found)
        return found

    return load


def _file(module: Any, name: str) -> str:
    stems = (path.stem for folder in module.__path__ for path in Path(folder).glob("*.py"))
    return next(stem for stem in stems if stem.replace("_", "") == name.lower())
