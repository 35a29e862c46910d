"""The command line: ``convexboost demo``, ``reproduce``, ``inspect``, ``bench``."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from convexboost.cli.output import spell_out_what_cannot_be_encoded

    spell_out_what_cannot_be_encoded()
    try:
        from convexboost.cli.app import app

        app()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "matplotlib", "plotly"):
            raise
        raise SystemExit(f"this command needs {error.name}: pip install 'convexboost[all]'") from None
