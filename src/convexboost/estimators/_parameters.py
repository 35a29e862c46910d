"""The parameters that the estimators share: their checks, and the objects that names stand for."""

from __future__ import annotations

import inspect
from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator

from convexboost.boosting.options import OUTPUTS, Options
from convexboost.core.protocols import Constants
from convexboost.learners._learner import Learner
from convexboost.learners._specs import as_learner
from convexboost.losses._custom import as_loss, can_be_loss
from convexboost.losses._loss import Loss
from convexboost.registry import NamedParts, available, resolve


class EstimatorParameters(NamedParts, BaseEstimator):
    """What a user sets; scikit-learn reads the names and defaults from the `__init__` of each subclass."""

    loss: Any
    learner: Any
    algorithm: Any
    n_rounds: Any
    learning_rate: Any
    max_weak_learners: int | None
    step: Any
    output: str
    residual_decay: Any
    accuracy: float | None
    l2: float
    envelope: Any
    early_stopping: Any
    validation_fraction: float
    n_iter_no_change: int
    certificate: bool
    stop_when_gap_below: float | None
    categorical_features: Any
    random_state: Any
    n_jobs: int | None
    callbacks: Any
    verbose: int

    _task: str
    _tasks: tuple[str, ...]  #: of the losses that fit

    def _store(self, parameters: dict[str, Any]) -> None:
        for name in self._get_param_names():
            setattr(self, name, parameters[name])

    def _is_auto(self, parameter: str) -> bool:
        value = getattr(self, parameter)
        return isinstance(value, str) and value == "auto"

    def _is_given(self, parameter: str) -> bool:
        """Return whether a parameter differs from its default."""
        value = getattr(self, parameter)
        default = self._defaults()[parameter]
        return not (value is default or (np.ndim(value) == 0 and bool(value == default)))

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: p.default for name, p in inspect.signature(cls).parameters.items()}

    # -- what the parameters stand for -------------------------------------------------------------

    def _learner(self) -> Learner:
        return as_learner(self.learner)

    def _loss(self) -> Loss:
        classes = available("convexboost.losses")
        fitting = [name for name, cls in classes.items() if cls.task in self._tasks]
        loss = resolve("loss", self.loss, classes, fitting)
        if not isinstance(loss, Loss):
            if not can_be_loss(loss):
                raise ValueError(
                    "`loss` must be a name, a Loss, or an object with a method `evaluate`, `total` or "
                    f"`value`, got {self.loss!r}"
                )
            loss = as_loss(loss)
        if not loss.has_targets:
            raise ValueError(f"`loss` {loss!r} has no targets: add it to a loss")
        if loss.task not in self._tasks:
            raise ValueError(f"`loss` must be a {self._task} loss ({', '.join(fitting)}), got {self.loss!r}")
        return loss

    def _n_threads(self) -> int:
        # None means all cores, as in HistGradientBoosting: work too small for threads stays on one.
        return int(joblib.cpu_count() if self.n_jobs is None else joblib.effective_n_jobs(self.n_jobs))

    # -- checks ------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Check each parameter by itself."""

        def need(name: str, fine: bool, wanted: str) -> None:
            if not fine:
                raise ValueError(f"`{name}` must be {wanted}, got {getattr(self, name)!r}")

        def whole(value: Any) -> bool:
            return isinstance(value, Integral) and not isinstance(value, bool)

        def flag(name: str) -> bool:
            value = getattr(self, name)
            return isinstance(value, np.bool_ | Integral) and int(value) in (0, 1)

        def integer(name: str, *instead: str | None) -> None:
            value = getattr(self, name)
            fine = whole(value) and int(value) >= 1
            other = isinstance(value, str | None) and value in instead
            need(name, fine or other, " or ".join(["a positive integer", *map(repr, instead)]))

        def real(name: str) -> bool:
            value = getattr(self, name)
            return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))

        integer("n_rounds", "auto")
        integer("max_weak_learners", None)
        integer("n_iter_no_change")
        rate = self._is_auto("learning_rate") or (real("learning_rate") and self.learning_rate > 0)
        need("learning_rate", rate, "'auto' or positive")
        fine = isinstance(self.output, str) and self.output in OUTPUTS
        need("output", fine, f"one of {', '.join(OUTPUTS)}")
        decay = self._is_auto("residual_decay") or (real("residual_decay") and 0 <= self.residual_decay <= 1)
        need("residual_decay", decay, "'auto' or in [0, 1]")
        envelope = self._is_auto("envelope") or (real("envelope") and self.envelope >= 0)
        need("envelope", envelope, "'auto' or a number that is not negative")
        accuracy = self.accuracy is None or (real("accuracy") and self.accuracy > 0)
        need("accuracy", accuracy, "positive or None")
        need("l2", real("l2") and self.l2 >= 0, "non-negative")
        early = self._is_auto("early_stopping") or flag("early_stopping")
        need("early_stopping", early, "'auto', True or False")
        need("certificate", flag("certificate"), "True or False")
        gap = self.stop_when_gap_below
        fine = gap is None or (real("stop_when_gap_below") and gap > 0)
        need("stop_when_gap_below", fine, "positive or None")
        fine = real("validation_fraction") and 0 < self.validation_fraction < 1
        need("validation_fraction", fine, "in (0, 1)")
        callbacks = self.callbacks
        fine = callbacks is None or (isinstance(callbacks, list | tuple) and all(map(callable, callbacks)))
        need("callbacks", fine, "a list of callables or None")
        fine = isinstance(self.verbose, Integral) and int(self.verbose) >= 0
        need("verbose", fine, "0, 1 or 2")
        fine = self.n_jobs is None or (whole(self.n_jobs) and self.n_jobs != 0)
        need("n_jobs", fine, "None, -1 or a positive integer")

    def _check_combinations(self, learner: Learner, has_validation_rows: bool) -> None:
        """Refuse parameters that would be ignored."""

        def refuse(name: str, needed: str) -> None:
            if self._is_given(name):
                raise ValueError(f"`{name}`={getattr(self, name)!r} would be ignored: it needs {needed}")

        if not self._is_named("algorithm", "repeated"):
            refuse("accuracy", f"algorithm='repeated', got {self.algorithm!r}")
        if not self._is_named("algorithm", "residual"):
            refuse("residual_decay", f"algorithm='residual', got {self.algorithm!r}")
        if self._is_auto("early_stopping") or not self.early_stopping:
            refuse("validation_fraction", f"early_stopping=True, got {self.early_stopping!r}")
        if has_validation_rows:
            refuse("validation_fraction", "rows to hold out, but `X_val` was given")
        if not self._is_auto("early_stopping") and not self.early_stopping:
            refuse("n_iter_no_change", "`early_stopping`, got False")
        none = self.categorical_features is None or np.size(self.categorical_features) == 0
        if not none and not learner.uses_categories:
            refuse("categorical_features", f"a learner that uses categories, got `learner`={self.learner!r}")
        if not self._is_auto("learning_rate"):
            self._check_learning_rate()

    def _is_named(self, parameter: str, name: str) -> bool:
        value = getattr(self, parameter)
        return isinstance(value, str) and value == name

    def _check_learning_rate(self) -> None:
        rate = self.learning_rate
        if not isinstance(self.step, str):
            raise ValueError(
                f"`learning_rate`={rate!r} and `step`={self.step!r} cannot be combined: set the scale of the "
                "step itself"
            )
        if ":" in self.step:
            raise ValueError(
                f"`learning_rate`={rate!r} and `step`={self.step!r} cannot be combined: both give a scale"
            )
        auto = self._is_auto("step")
        options = Options(algorithm=self.algorithm, step="refit" if auto else self.step)  # type: ignore[arg-type]
        step = options.step.with_rate(rate)
        try:
            options.algorithm.check(step, Constants())
        except ValueError as error:
            meaning = ", which means step='refit'," if auto else ""
            raise ValueError(f"`learning_rate`={rate!r}{meaning} cannot be used: {error}") from None
