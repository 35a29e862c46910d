"""Export of estimators to ONNX."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexboost.core.atomic import write_atomically
from convexboost.core.model import AdditiveModel
from convexboost.core.nodes import Nodes
from convexboost.estimators._frames import NUMBERS, Columns
from convexboost.estimators._input import EstimatorInput


class ExportedModel(EstimatorInput):
    """`to_onnx`."""

    model_: AdditiveModel
    loss_: Any

    def to_onnx(self, path: Any = None, *, dtype: str = "float32") -> Any:
        """Return the fitted model as an ONNX model, and write it to a file where there is a `path`.

        It needs the package `onnx`; onnxruntime can then run the model without convexboost.  Learners "tree",
        the stumps and "additive" can be exported.

        Inputs: where all columns are numbers, one matrix "X".  Where the model was fitted to a frame with
        text categories or times, one input (n, 1) for each column, under its name: text for categories,
        doubles for times (seconds since 1970, in UTC where there is a time zone) and durations (seconds).
        NaN is missing; text that was not seen in training counts as missing, as in `predict`.

        Outputs: "scores" (n, n_outputs), as in `decision_function`, but with one column for each output; for
        a classifier "label", and "probabilities" where the loss has them; else "prediction".  A loss whose
        link is code of your own gives scores only (and labels).

        Parameters
        ----------
        path : str or path, optional
            Where to write it.
        dtype : {"float32", "float64"}, default="float32"
            The type of the numbers that the model takes.  Cuts are compared in doubles either way, and with
            "float64" all sums are doubles.  With "float32", several outputs and no splits on categories the
            sum of the trees is rounded to a float, a relative error of up to 6e-8: the trees are then
            written once, not once for each output.  Categories that are numbers must be floats exactly.

        """
        check_is_fitted(self)
        if dtype not in ("float32", "float64"):
            raise ValueError(f"`dtype` must be 'float32' or 'float64', got {dtype!r}")
        if find_spec("onnx") is None:
            raise ImportError("`to_onnx` needs the package onnx: pip install 'convexboost[onnx]'")
        from convexboost.onnx import Input, model_of

        try:
            nodes = self.model_.nodes()
        except ValueError as error:
            raise ValueError(f"`learner` {self.learner!r} cannot be exported to ONNX: {error}") from None
        link = self.loss_.link_steps if self.loss_.has_link else ()
        classes = vars(self).get("classes_")
        steps = None if classes is not None and not self.loss_.has_link else link
        columns = self._columns
        if dtype == "float32":
            _check_floats(columns, nodes)
        model = model_of(
            nodes,
            n_features=self.n_features_in_,
            inputs=None if columns.plain else [Input(*each) for each in _inputs(columns)],
            dtype=dtype,
            steps=steps,
            classes=classes,
            metadata={"estimator": type(self).__name__, "loss": repr(self.loss_)},
        )
        if path is not None:
            write_atomically(path, model.SerializeToString())
        return model


def _check_floats(columns: Columns, nodes: Nodes) -> None:
    """Refuse categories that a float would turn into other numbers."""
    for j in np.unique(nodes.column[nodes.level_set >= 0]).tolist():
        levels = nodes.levels[j]
        changed = levels[levels.astype(np.float32) != levels]
        if columns.kinds[j] == NUMBERS and len(changed):
            raise ValueError(
                f"column {columns.names[j]!r} holds the category {changed[0]:.17g}, which is no float32: use "
                "dtype='float64'"
            )


def _inputs(columns: Columns) -> list[tuple[str, bool, list[str] | None]]:
    """Return name, whether it is an ordinary number, and text categories of each column."""
    found = []
    for j, (name, kind) in enumerate(zip(columns.names, columns.kinds, strict=True)):
        categories = list(columns.encoders[j]) if j in columns.encoders else None
        if categories is not None and not all(isinstance(value, str) for value in categories):
            raise ValueError(f"column {name!r} holds {kind}: ONNX has no type for such categories")
        found.append((str(name), kind in (NUMBERS, None), categories))
    return found
