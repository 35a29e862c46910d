"""Convex losses, one per file.  A file whose class has a `name` is found by listing this folder.

Every loss can be imported from here (``from convexboost.losses import Quantile``), and so can `maximum`,
`Ridge` and `as_loss`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Find a loss by the name of its class."""
    if name.startswith("_"):
        raise AttributeError(name)
    from importlib import import_module

    from convexboost.registry import everything

    if name in ("maximum", "Ridge"):
        return getattr(import_module("convexboost.losses._calculus"), name)
    if name == "as_loss":
        return import_module("convexboost.losses._custom").as_loss
    for cls in everything("convexboost.losses").values():
        if cls.__name__ == name:
            return cls
    raise AttributeError(f"module 'convexboost.losses' has no attribute {name!r}")
