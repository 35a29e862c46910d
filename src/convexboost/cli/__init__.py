"""The command line: ``convexboost demo``."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    try:
        from convexboost.cli.app import app
    except ModuleNotFoundError as error:
        raise SystemExit(f"the command line needs {error.name}: pip install 'convexboost[all]'") from None
    app()
