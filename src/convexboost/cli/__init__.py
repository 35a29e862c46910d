"""The command line: ``convexboost fit``, ``predict``, ``evaluate``, ``inspect``, ``export`` and more."""

from __future__ import annotations

#: What the commands need besides the library.
NEEDED = ("typer", "rich", "matplotlib", "plotly", "pandas", "pyarrow", "onnx")


def main() -> None:
    """Run the command line."""
    from convexboost.cli.output import spell_out_what_cannot_be_encoded

    spell_out_what_cannot_be_encoded()
    try:
        from convexboost.cli.app import app

        app()
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        raise SystemExit(f"this command needs {error.name}: pip install 'convexboost[all]'") from None
