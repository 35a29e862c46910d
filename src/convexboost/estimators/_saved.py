"""Model files of estimators: what is written, and what makes sure that a file gives a working model."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from convexboost.boosting.options import Options
from convexboost.boosting.steps import STEPS
from convexboost.boosting.training import History
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.model import AdditiveModel
from convexboost.core.protocols import Constants
from convexboost.estimators._auto import Settled
from convexboost.estimators._frames import NUMERIC, Columns
from convexboost.estimators._input import EstimatorInput
from convexboost.inspection.certificates import Attained, Certificate, LowerBound
from convexboost.inspection.cuts import AllModels, Ball, LinearBound
from convexboost.learners._learner import Learner
from convexboost.losses import _calculus
from convexboost.losses._loss import Loss
from convexboost.persistence import (
    Reader,
    UnwritableError,
    Writer,
    fits,
    naming_the_file,
    read,
    write,
)
from convexboost.registry import everything

#: The attributes of every fitted estimator that are written as values; `model_`, `loss_` and `_columns` have
#: forms of their own.
FITTED: dict[str, Any] = {
    "n_features_in_": int,
    "constants_": Constants,
    "history_": History,
    "evals_result_": dict,
    "n_members_": int,
    "chosen_": NDArray[Any],
    "certificate_": Certificate | None,
    "stop_kind_": str,
    "stop_reason_": str,
    "best_round_": int,
    "n_rounds_": int,
    "_rows_of_fit": int,
}
#: Written where they are there.
OPTIONAL: dict[str, Any] = {"feature_names_in_": NDArray[Any]}
#: What belongs to the run that trained the model: a loaded estimator has the default.  It must not write to
#: the checkpoint of another.
DROPPED = ("callbacks", "checkpoint")


class SavedModel(EstimatorInput):
    """`save` and `load`."""

    model_: AdditiveModel
    loss_: Any
    _settled: Settled
    #: The attributes that fitting to targets leaves, with their types.
    _fitted_targets: ClassVar[Mapping[str, Any]] = {}

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `load` reads; the predictions are the same bit for bit.

        The file is a safetensors file with a checksum: reading it executes nothing (docs/model-file.md).  It
        holds the parameters, the model, what is known of columns and classes, and the history of training.
        `callbacks` and `checkpoint` are not written.  A loss of your own is only named: pass it to `load`
        again.  The file is replaced as a whole: where writing fails, an old file is left as it was.

        Models of scikit-learn estimators as learners cannot be written; `skops.io.dump` can.
        """
        check_is_fitted(self)
        writer = Writer(_known())
        try:
            description = self._described(writer)
        except UnwritableError as error:
            raise ValueError(f"a model file cannot hold {error}") from None
        write(path, description, writer.all_arrays())

    @classmethod
    def load(cls, path: Any, loss: Any = None) -> Self:
        """Return the estimator that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        loss : Loss or object, optional
            The loss of your own that the estimator was made with: the file only has its name.

        A file that is no model file, that is damaged, or that a later release wrote raises
        `convexboost.ModelFormatError`.

        """
        description, arrays = read(path)
        with naming_the_file(path):
            name = description.get("estimator")
            if name != cls.__name__:
                raise ValueError(f"it holds a {name!r}, not a {cls.__name__!r}")
            return cls._restored(description, arrays, loss)

    # -- writing -----------------------------------------------------------------------------------

    def _described(self, writer: Writer) -> dict[str, Any]:
        """Return the description; the arrays are left in the writer."""
        settled = self._settled
        _refuse_learner(settled.learner)
        model, arrays = self.model_.to_plain()
        writer.arrays |= {f"model.{name}": array for name, array in arrays.items()}
        attributes = {**FITTED, **self._fitted_targets}
        attributes |= {name: kind for name, kind in OPTIONAL.items() if name in vars(self)}
        options = {
            name: writer.write(value)
            for name, value in vars(settled).items()
            if name not in ("loss", "learner")
        }
        return {
            "estimator": type(self).__name__,
            "parameters": self._described_parameters(writer),
            "loss": _described_loss(writer, self.loss_),
            "learner": writer.write(settled.learner),
            "settled": options,
            "columns": _described_columns(writer, self._columns),
            "attributes": {name: writer.write(vars(self)[name]) for name in attributes},
            "model": model,
        }

    def _described_parameters(self, writer: Writer) -> dict[str, Any]:
        found = {}
        for name, value in self.get_params(deep=False).items():
            if name in DROPPED:
                continue
            if name == "loss":
                found[name] = _described_loss(writer, value)
                continue
            try:
                found[name] = writer.write(value)
            except UnwritableError as error:
                raise UnwritableError(
                    f"`{name}`={error}: set another with set_params before saving"
                ) from None
        return found

    # -- reading -----------------------------------------------------------------------------------

    @classmethod
    def _restored(cls, description: Any, arrays: Any, loss: Any) -> Self:
        """Make the estimator from the content of a file, and check that it works."""
        reader = Reader(_known(), arrays)
        given = _loss_for(description, loss)
        parameters = {
            name: given if name == "loss" and given is not None else reader.read(form)
            for name, form in description["parameters"].items()
        }
        model = cls(**parameters)
        learner = reader.read(description["learner"])
        if not isinstance(learner, Learner):
            raise ValueError(f"`learner` must be a learner, got {type(learner).__name__}")
        options = {name: reader.read(form) for name, form in description["settled"].items()}
        state = {name: reader.read(form) for name, form in description["attributes"].items()}
        state["_columns"] = _columns(reader, description["columns"])
        wanted = {**FITTED, **cls._fitted_targets, "_columns": Columns}
        for name, kind in wanted.items():
            if name not in state or not fits(state[name], kind):
                raise ValueError(f"`{name}` is missing or not of the right type")
        for name in set(state) - set(wanted):
            if name not in OPTIONAL or not fits(state[name], OPTIONAL[name]):
                raise ValueError(f"`{name}` is not an attribute of a {cls.__name__}")
        model.__dict__.update(state)
        if given is None:
            own = reader.read(description["loss"])
        else:
            own = copy.copy(model._loss())
            own = own if learner.needs_output_per_class else own.for_classes(options["n_classes"])
        if not isinstance(own, Loss):
            raise ValueError(f"`loss` must be a loss, got {type(own).__name__}")
        model.loss_ = own
        model._settled = _settled(own, learner, options)
        model.model_ = AdditiveModel.from_plain(
            description["model"],
            {name.removeprefix("model."): a for name, a in arrays.items() if name.startswith("model.")},
            model._settled.settled_learner,
        )
        model._check_restored()
        return model

    def _check_restored(self) -> None:
        """Check that the parts fit together; a row is predicted, so that no later call meets a surprise."""
        n_features, n_outputs = self.n_features_in_, len(self.model_.start)
        columns = self._columns
        self._learner()  # `predict` asks it which inputs it allows
        for name, count in (
            ("columns", len(columns.names)),
            ("feature_names_in_", len(vars(self).get("feature_names_in_", columns.names))),
        ):
            if count != n_features:
                raise ValueError(f"`{name}` must be for {n_features} columns, got {count}")
        scores = self.model_.predict(np.zeros((1, n_features)))
        if scores.shape != (1, n_outputs) or not np.isfinite(scores).all():
            raise ValueError("the model does not give finite scores")
        if self.loss_.has_link:
            self.loss_.link(scores)
        self._check_outputs(n_outputs)

    def _check_outputs(self, n_outputs: int) -> None:
        """Check that the targets that were learned fit the number of outputs."""


def load(path: Any, loss: Any = None) -> Any:
    """Return the estimator that its `save` wrote, whatever its class.

    `loss` is the loss of your own that the estimator was made with, if it was: the file only has its name.
    A file that is no model file, that is damaged, or that a later release wrote raises `ModelFormatError`.
    """
    from convexboost import estimators

    description, arrays = read(path)
    with naming_the_file(path):
        name = description.get("estimator")
        if name not in estimators.__all__:
            raise ValueError(
                f"it holds a {name!r}, which is none of {', '.join(estimators.__all__)}: a subclass has a "
                "`load` of its own"
            )
        return getattr(estimators, name)._restored(description, arrays, loss)


# --- parts of a description --------------------------------------------------------------------------------


@cache
def _known() -> dict[str, type[Any]]:
    """Return the classes that a file can hold, by their names there."""
    packages = {"loss": "convexboost.losses", "learner": "convexboost.learners"}
    return {
        **{
            f"{kind}.{name}": c
            for kind, package in packages.items()
            for name, c in everything(package).items()
        },
        **{f"loss.{name}": cls for name, cls in _calculus.PARTS.items()},
        **{f"step.{name}": cls for name, cls in STEPS.items()},
        **{f"algorithm.{name}": cls for name, cls in ALGORITHMS.items()},
        "options": Options,
        "constants": Constants,
        "history": History,
        "certificate": Certificate,
        "lower_bound": LowerBound,
        "linear_bound": LinearBound,
        "attained": Attained,
        "all_models": AllModels,
        "ball": Ball,
    }


def _refuse_learner(learner: Learner) -> None:
    if type(learner) in _known().values():
        return
    raise ValueError(
        f"a model file cannot hold the learner {learner!r}: only learners of convexboost can be saved. "
        "For scikit-learn estimators as learners use skops.io.dump (docs/model-file.md)"
    )


def _described_loss(writer: Writer, loss: Any) -> Any:
    """Return a loss; one that holds a user's code is only named."""
    try:
        return writer.write(loss)
    except UnwritableError:
        return {"is": "custom", "name": _name_of(loss)}


def _name_of(loss: Any) -> str:
    return str((loss if inspect.isclass(loss) else type(loss)).__qualname__)


def _loss_for(description: Any, loss: Any) -> Any:
    """Return the loss to be used instead of the file's; None where the file has its own."""
    form = description["parameters"]["loss"]
    custom = isinstance(form, dict) and form.get("is") == "custom"
    if not custom:
        if loss is not None:
            raise ValueError(f"`loss`={loss!r} would be ignored: the file holds the loss itself")
        return None
    if loss is None:
        raise ValueError(
            f"it was fitted with a loss of your own, {form['name']}: pass it again, load(path, loss=...)"
        )
    if _name_of(loss) != form["name"]:
        raise ValueError(f"it was fitted with the loss {form['name']}, but `loss` is {_name_of(loss)}")
    return loss


def _settled(loss: Loss, learner: Learner, options: dict[str, Any]) -> Settled:
    settled = Settled(loss=loss, learner=learner, **options)
    for name, kind in (
        ("settled_learner", Learner),
        ("options", Options),
        ("ensemble_options", Options),
        ("l2", float),
        ("envelope", float),
        ("n_classes", int | None),
        ("cross_fits", bool),
    ):
        if not fits(getattr(settled, name), kind):
            raise ValueError(f"`{name}` is not of the right type")
    return settled


def _described_columns(writer: Writer, columns: Columns) -> dict[str, Any]:
    for j, encoder in columns.encoders.items():
        try:
            Writer(_known()).write(list(encoder))
        except UnwritableError as error:
            raise UnwritableError(
                f"the categories of column {columns.names[j]!r}, such as {error}: make them text before "
                "fitting"
            ) from None
    return {
        "names": writer.write(columns.names),
        "categorical": writer.write(columns.categorical),
        "kinds": writer.write(["" if kind is None else kind for kind in columns.kinds]),
        "categories": writer.write({j: list(encoder) for j, encoder in columns.encoders.items()}),
    }


def _columns(reader: Reader, form: Any) -> Columns:
    names, categorical, kinds, categories = (
        reader.read(form[name]) for name in ("names", "categorical", "kinds", "categories")
    )
    if not (fits(names, tuple[Any, ...]) and fits(kinds, list[str]) and len(kinds) == len(names)):
        raise ValueError("`columns` must have a name and a kind for each column")
    if (
        not isinstance(categorical, np.ndarray)
        or categorical.dtype != bool
        or categorical.shape != (len(names),)
    ):
        raise ValueError("`columns` must say of each column whether it is categorical")
    if not fits(categories, dict[int, list[Any]]) or not all(0 <= j < len(names) for j in categories):
        raise ValueError("`categories` must be lists of categories by the number of the column")
    numbered = [bool(kind) and kind not in NUMERIC for kind in kinds]
    if numbered != [j in categories for j in range(len(names))] or (numbered & ~categorical).any():
        raise ValueError("`columns` must have categories where, and only where, a column holds no numbers")
    encoders = {j: {value: number for number, value in enumerate(found)} for j, found in categories.items()}
    if any(len(encoders[j]) < len(found) for j, found in categories.items()):
        raise ValueError("`categories` must be different")
    return Columns(names, categorical, tuple(kind or None for kind in kinds), encoders)
