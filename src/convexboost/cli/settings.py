"""The parameters of an estimator from a file (--config) and from the command line (--set)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from convexboost.cli.output import CommandError
from convexboost.estimators import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.estimators._base import BaseConvexBoost
from convexboost.registry import available

ESTIMATORS: dict[str, type[BaseConvexBoost]] = {
    "classification": ConvexBoostClassifier,
    "regression": ConvexBoostRegressor,
    "ranking": ConvexBoostRanker,
}
#: What a configuration may say besides the parameters: options of `fit`.
OPTIONS = ("target", "task", "weight", "query", "drop", "valid", "out")
#: Parameters that may be a table: {name = "tree", max_leaves = 15}.
PARTS = ("loss", "learner")
WORDS = {"None": None, "True": True, "False": False}


class SettingsError(CommandError):
    """A setting is wrong."""


class Config(NamedTuple):
    """What a file says: options of the command, and parameters of the estimator."""

    options: dict[str, Any]
    parameters: dict[str, Any]


def read_config(path: Path | None) -> Config:
    """Read a TOML or JSON file."""
    if path is None:
        return Config({}, {})
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"`--config` {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"`--config` {path} is no text in UTF-8: {error}") from None
    try:
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except ValueError as error:  # both name line and column
        raise SettingsError(f"`--config` {path}: {error}") from None
    if not isinstance(found, dict):
        raise SettingsError(f"`--config` {path} must hold names and values, got {type(found).__name__}")
    options = {name: found.pop(name) for name in OPTIONS if name in found}
    for name, value in options.items():
        is_list = name == "drop" and isinstance(value, list) and all(isinstance(v, str) for v in value)
        if not is_list and not isinstance(value, str):
            raise SettingsError(f"`--config` {path}: `{name}` must be text, got {value!r}")
    return Config(options, _flat(found))


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Write tables of a loss or a learner as scikit-learn does: learner__max_leaves."""
    out: dict[str, Any] = {}
    for name, value in found.items():
        if name in PARTS and isinstance(value, dict):
            value = dict(value)
            if "name" in value:
                out[name] = value.pop("name")
            out |= {f"{name}__{inner}": given for inner, given in value.items()}
        else:
            out[name] = value
    return out


def parse_sets(sets: Sequence[str]) -> dict[str, Any]:
    """Read name=value; a value is JSON, True, False or None, else text."""
    out = {}
    for given in sets:
        name, equals, text = given.partition("=")
        if not equals or not name.strip():
            raise SettingsError(f"`--set` must be name=value, got {given!r}")
        out[name.strip()] = _value(text.strip())
    return out


def _value(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def task_of(loss: Any) -> str | None:
    """Return the task of a loss given by name; None where it does not tell."""
    if not isinstance(loss, str):
        return None
    cls = available("convexboost.losses").get(loss.partition(":")[0])
    task = None if cls is None else cls.task
    return "classification" if task == "binary" else task if task in ESTIMATORS else None


def make(task: str, parameters: Mapping[str, Any]) -> BaseConvexBoost:
    """Make an estimator with these parameters."""
    estimator = ESTIMATORS[task]()
    try:
        estimator.set_params(**parameters)
        estimator._check_parameters()
        estimator._loss()
        estimator._learner()
    except (TypeError, ValueError) as error:
        raise SettingsError(str(error)) from None
    return estimator
