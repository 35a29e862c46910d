"""``convexboost losses`` and ``learners``: what there is to choose from."""

from __future__ import annotations

import inspect
import json
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from convexboost.core.parameters import source
from convexboost.registry import available


def losses() -> list[dict[str, Any]]:
    """Return what can be given to --loss."""
    return [_entry(name, cls) | {"task": cls.task} for name, cls in available("convexboost.losses").items()]


def learners() -> list[dict[str, Any]]:
    """Return what can be given to --learner."""
    return [_entry(name, cls) for name, cls in available("convexboost.learners").items()]


def _entry(name: str, cls: type[Any]) -> dict[str, Any]:
    """Return the name, the parameters with their defaults, and the first sentence of the documentation."""
    words = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    parameters = {p.name: p.default for p in inspect.signature(cls).parameters.values()}
    return {
        "name": name,
        "parameters": {key: source(value) for key, value in parameters.items()},
        "about": " ".join(words.split()),
    }


def run(entries: list[dict[str, Any]], as_json: bool) -> None:
    """Print a table, or JSON."""
    if as_json:
        print(json.dumps(entries, indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    has_tasks = "task" in entries[0]
    for column in ("name", *(("task",) if has_tasks else ()), "about"):
        table.add_column(column, no_wrap=column != "about")
    for entry in entries:
        given = ", ".join(f"{key}={value}" for key, value in entry["parameters"].items())
        about = escape(entry["about"]) + (f"\n[dim]{escape(given)}[/]" if given else "")
        table.add_row(entry["name"], *((entry["task"],) if has_tasks else ()), about)
    console.print(table)
