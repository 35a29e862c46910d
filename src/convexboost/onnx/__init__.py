"""Models in ONNX, written with `onnx` itself (docs/serving.md)."""

from convexboost.onnx._graph import Input, model_of

__all__ = ["Input", "model_of"]
