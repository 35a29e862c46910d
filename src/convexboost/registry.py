"""Losses and learners by name: whatever the folders hold."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Collection
from difflib import get_close_matches
from functools import cache
from typing import Any, Self

from convexboost.core.parameters import changes

#: What other libraries call our losses, in lower case; only used to suggest the right name.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "absolute": (
        *("absolute_error", "mean_absolute_error", "mae", "l1", "lad", "regression_l1", "laplace"),
        *("reg:absoluteerror", "absoluteerror"),
    ),
    "exponential": ("adaboost", "exp"),
    "half_squared": (
        *("squared_error", "squared_loss", "mean_squared_error", "root_mean_squared_error", "mse", "rmse"),
        *("l2", "l2_root", "ls", "least_squares", "squared", "gaussian", "regression", "regression_l2"),
        *("reg:squarederror", "reg:linear", "squarederror"),
    ),
    "hinge": ("binary:hinge", "svm"),
    "huber": ("reg:pseudohubererror", "pseudo_huber", "smooth_l1"),
    "logistic": (
        *("log_loss", "logloss", "log", "cross_entropy", "crossentropy", "xentropy", "deviance"),
        *("binary", "binary_logloss", "binary_crossentropy", "binomial", "binomial_deviance", "bernoulli"),
        *("binary:logistic", "binary:logitraw", "reg:logistic", "logit"),
    ),
    "multiclass_hinge": ("multi_hinge", "multi_margin", "crammer_singer"),
    "poisson": ("count:poisson",),
    "quantile": ("pinball", "pinball_loss", "reg:quantileerror"),
    "quantiles": ("multiquantile",),
    "ranking_hinge": (
        *("lambdarank", "lambdamart", "rank_xendcg", "ndcg", "pairwise", "ranknet", "rank:ndcg", "rank:map"),
        *("rank:pairwise", "pairlogit", "pairlogitpairwise", "yetirank", "yetirankpairwise"),
    ),
    "softmax": (
        *("log_loss", "logloss", "log", "cross_entropy", "crossentropy", "deviance"),
        *("categorical_crossentropy", "multinomial", "multinomial_deviance", "multi_logloss", "multiclass"),
        *("multi:softprob", "multi:softmax", "multiclassova", "multiclassonevsall"),
    ),
}


@cache
def everything(package: str) -> dict[str, type[Any]]:
    """Return the classes with a `name` in the modules of a package, e.g. "convexboost.losses"."""
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


def suggest(spec: str, offered: Collection[str]) -> str:
    """Return "; did you mean …?" where a name is that of another library, or close to one of ours."""
    whole, name = spec.lower(), spec.lower().partition(":")[0]
    known = _ours(whole) or _ours(name) or get_close_matches(name, offered, n=1, cutoff=0.75)
    found = [repr(name) for name in known if name in offered]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _ours(name: str) -> list[str]:
    return [ours for ours, theirs in ELSEWHERE.items() if name in theirs]


def resolve(
    parameter: str, spec: Any, classes: dict[str, type[Any]], offered: Collection[str] | None = None
) -> Any:
    """Turn "quantile", "quantile:0.9" or an object into an object; an error lists `offered`, or all."""
    if not isinstance(spec, str):
        try:
            return spec() if inspect.isclass(spec) else spec
        except TypeError as error:
            got = f"the class {spec.__name__}: {error}"
            raise ValueError(f"`{parameter}` must be an object, got {got}") from None
    name, colon, argument = spec.partition(":")
    if name not in classes:
        names = list(classes) if offered is None else offered
        raise ValueError(
            f"`{parameter}` must be one of {', '.join(names)}, got {spec!r}{suggest(spec, names)}"
        )
    if not colon:
        return classes[name]()
    try:
        value = float(argument)
    except ValueError:
        raise ValueError(f"the argument of `{parameter}` must be a number, got {spec!r}") from None
    if not inspect.signature(classes[name]).parameters:
        raise ValueError(f"`{parameter}` {name!r} takes no argument, got {spec!r}")
    return classes[name](int(value) if value.is_integer() else value)


class NamedParts:
    """An estimator whose `learner` and `loss` may be given by name.

    Setting a parameter of one, such as `learner__max_leaves`, turns its name into the object that it names.
    An object is copied first, so that others who hold it, a fitted model among them, do not see the change.
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn; ``learner__max_leaves=15`` sets one of the learner.

        Where one is wrong, none is set.
        """
        present: dict[str, Any] = super().get_params(deep=False)  # type: ignore[misc]
        for part in {name.partition("__")[0] for name in params if "__" in name} & {"learner", "loss"}:
            given = params.get(part, present.get(part))
            if isinstance(given, str):
                classes = available("convexboost.learners" if part == "learner" else "convexboost.losses")
                params[part] = resolve(part, given, classes)
        vars(self).update(changes(type(self).__name__, present, params))
        return self
