"""Parameters as scikit-learn reads and sets them, for the dataclasses that users make."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from convexboost.core.text import shown


class Parameters:
    """A dataclass whose fields are parameters: `get_params`, `set_params`, and a repr that can be pasted.

    `clone`, `GridSearchCV` and `set_params(learner__max_leaves=15)` of an estimator then work as for any
    estimator of scikit-learn.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also the parameters of parameters, as "name__parameter"."""
        params = {f.name: getattr(self, f.name) for f in _parameters(self)}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    params |= {f"{name}__{inner}": given for inner, given in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, all of them or, where one is wrong, none."""
        own: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            first, _, rest = name.partition("__")
            known = [f.name for f in _parameters(self)]
            if first not in known:
                raise ValueError(
                    f"`{first}` is not a parameter of {type(self).__name__}, which has {', '.join(known)}"
                )
            if rest:
                nested.setdefault(first, {})[rest] = value
            else:
                own[first] = value
        for name, inner in nested.items():
            part = own.get(name, getattr(self, name))
            own[name] = type(part)(**part.get_params(deep=False)).set_params(**inner)
        changed = type(self)(**(self.get_params(deep=False) | own))  # the constructor checks the values
        self.__dict__.update(vars(changed))
        return self

    def __repr__(self) -> str:
        """Return what makes this object: its class and the parameters that are not default."""
        given = (f for f in _parameters(self) if not _is_default(f, getattr(self, f.name)))
        return (
            f"{type(self).__name__}({', '.join(f'{f.name}={shown(getattr(self, f.name))}' for f in given)})"
        )


def _parameters(self: Any) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(self) if f.init]


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    default = field.default
    same = type(value) is type(default) and value == default
    return value is default or (isinstance(same, bool) and same)
