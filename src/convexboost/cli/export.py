"""``convexboost export``: a model in a format that others read."""

from __future__ import annotations

from pathlib import Path

from convexboost.cli.models import load
from convexboost.cli.output import CommandError, check_file, folder_of, show


def run(model: Path, onnx: Path | None, as_json: bool) -> None:
    """Load and write."""
    if onnx is None:
        raise CommandError("`--onnx` is needed: the file to write")
    check_file(onnx, "--onnx")
    estimator = load(model)
    try:
        with folder_of(onnx):
            estimator.to_onnx(onnx)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise CommandError(f"{model} cannot be written as ONNX: {error}") from error
    show({"model": str(model), "onnx": str(onnx), "bytes": onnx.stat().st_size}, as_json)
