"""Parameters as scikit-learn reads and sets them, for the objects that users make."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from convexboost.core.text import brief_array

#: Entries of an array up to which the repr writes it out.
WRITTEN = 100


class Parameters:
    """The base of an object with parameters: `get_params`, `set_params` and a repr to paste.

    The parameters are the fields of a dataclass; of another class, the arguments of `__init__` that it keeps
    as attributes.  `clone`, `GridSearchCV` and ``set_params(learner__max_leaves=15)`` of an estimator then
    work as for any estimator of scikit-learn.  `set_params` makes the object anew, so the checks in
    `__post_init__` hold.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep the repr that is inherited: `dataclass` writes one of its own only if the class has none."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also the parameters of parameters, as "name__parameter"."""
        params = {name: getattr(self, name) for name in _defaults(self)}
        for name, value in list(params.items()) if deep else ():
            if _has_parameters(value):
                params |= {f"{name}__{inner}": given for inner, given in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, all of them or, where one is wrong, none."""
        present = self.get_params(deep=False)
        changed = type(self)(**(present | changes(type(self).__name__, present, params)))
        vars(self).clear()  # with all that was computed from the old parameters
        vars(self).update(vars(changed))
        return self

    def __sklearn_clone__(self) -> Self:
        """Return a copy, also of an object that does not keep all that `__init__` was given."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        """Return the call that makes this object, without the parameters that have their default."""
        given = ((name, getattr(self, name), default) for name, default in _defaults(self).items())
        parts = (f"{name}={source(value)}" for name, value, default in given if not _same(value, default))
        return f"{type(self).__name__}({', '.join(parts)})"


def changes(owner: str, present: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new values of the parameters that `params` sets; nested ones are set on copies of the parts.

    `owner` is the name of the object's class, and `present` are its parameters.
    """
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        first, inside, rest = name.partition("__")
        if first not in present:
            names = ", ".join(present) if present else "none"
            raise ValueError(f"`{first}` is not a parameter of {owner}, which has: {names}")
        if inside:
            nested.setdefault(first, {})[rest] = value
        else:
            own[first] = value
    for name, inner in nested.items():
        part = own.get(name, present[name])
        if not _has_parameters(part):
            raise ValueError(f"`{name}` is {part!r}, which has no parameter `{next(iter(inner))}`")
        own[name] = copy.deepcopy(part).set_params(**inner)
    return own


def source(value: Any) -> str:
    """Return Python source for a value: 0.0 and not np.float64(0.0), a list for an array.

    A large array is only described.
    """
    if isinstance(value, np.ndarray | np.generic):
        return source(value.tolist()) if value.size <= WRITTEN else brief_array(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if type(value) in (list, tuple):
        inside = ", ".join(map(source, value))
        comma = "," if len(value) == 1 else ""
        return f"[{inside}]" if type(value) is list else f"({inside}{comma})"
    if type(value) is dict:
        return f"{{{', '.join(f'{source(key)}: {source(given)}' for key, given in value.items())}}}"
    return repr(value)


def _defaults(self: Any) -> dict[str, Any]:
    """Return the parameters with their defaults; `MISSING` or `Parameter.empty` where there is none."""
    if dataclasses.is_dataclass(self):
        none = dataclasses.MISSING
        fields = [f for f in dataclasses.fields(self) if f.init]
        return {f.name: f.default if f.default_factory is none else f.default_factory() for f in fields}
    arguments = inspect.signature(type(self)).parameters.items()
    return {name: argument.default for name, argument in arguments if hasattr(self, name)}


def _has_parameters(value: Any) -> bool:
    """Return whether a value has parameters of its own, as scikit-learn finds them."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    same = type(value) is type(default) and value == default
    return isinstance(same, bool) and same
