"""The parameters that the estimators share: their checks, and the objects that names stand for."""

from __future__ import annotations

import inspect
import math
import os
from functools import cache
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator

from convexboost.boosting.options import Options
from convexboost.core.numbers import is_number, is_positive, is_whole
from convexboost.estimators._validation import N_FOLDS
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
    n_iter_no_change: Any
    scoring: Any
    certificate: bool
    stop_when_gap_below: float | None
    categorical_features: Any
    random_state: Any
    n_jobs: int | None
    warm_start: bool
    checkpoint: Any
    checkpoint_every: int
    callbacks: Any
    verbose: int

    _task: str
    _tasks: tuple[str, ...]  #: of the losses that fit

    def _store(self, parameters: dict[str, Any]) -> None:
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    @property
    def _random_state(self) -> Any:
        """Return `random_state`; None is 0, so that the same call makes the same model."""
        return 0 if self.random_state is None else self.random_state

    def _is_auto(self, parameter: str) -> bool:
        value = getattr(self, parameter)
        return isinstance(value, str) and value == "auto"

    def _is_given(self, parameter: str) -> bool:
        """Return whether a parameter differs from its default."""
        value = getattr(self, parameter)
        default = self._defaults()[parameter]
        return not (value is default or (np.ndim(value) == 0 and bool(value == default)))

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        """Return the defaults; a subclass whose `__init__` does not name a parameter inherits its default."""
        signatures = [inspect.signature(base.__init__) for base in reversed(cls.__mro__)]  # type: ignore[misc]
        return {name: p.default for signature in signatures for name, p in signature.parameters.items()}

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

    def _options(self, **settings: Any) -> Options:
        return Options(
            max_weak_learners=self.max_weak_learners,
            output=self.output,
            certificate=bool(self.certificate),
            stop_when_gap_below=self.stop_when_gap_below,
            **settings,
        )

    def _n_threads(self) -> int:
        # None means all cores, as in HistGradientBoosting: work too small for threads stays on one.
        return int(joblib.cpu_count() if self.n_jobs is None else joblib.effective_n_jobs(self.n_jobs))

    # -- checks ------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Check each parameter by itself."""

        def need(name: str, fine: bool, wanted: str) -> None:
            if not fine:
                raise ValueError(f"`{name}` must be {wanted}, got {getattr(self, name)!r}")

        def flag(name: str) -> bool:
            value = getattr(self, name)
            return isinstance(value, np.bool_ | Integral) and int(value) in (0, 1)

        rounds = self._is_auto("n_rounds") or is_whole(self.n_rounds, 1)
        need("n_rounds", rounds, "a positive integer or 'auto'")
        patience = self._is_auto("n_iter_no_change") or is_whole(self.n_iter_no_change, 1)
        need("n_iter_no_change", patience, "a positive integer or 'auto'")
        rate = self._is_auto("learning_rate") or is_positive(self.learning_rate)
        need("learning_rate", rate, "'auto' or positive")
        decay = self._is_auto("residual_decay") or _lies_in(self.residual_decay, 0, 1)
        need("residual_decay", decay, "'auto' or in [0, 1]")
        envelope = self._is_auto("envelope") or _lies_in(self.envelope, 0)
        need("envelope", envelope, "'auto' or a number that is not negative")
        need("accuracy", self.accuracy is None or is_positive(self.accuracy), "positive or None")
        need("l2", _lies_in(self.l2, 0), "non-negative")
        early = self._is_auto("early_stopping") or flag("early_stopping")
        need("early_stopping", early, "'auto', True or False")
        scoring = self._is_named("scoring", "loss") or self.scoring is None or callable(self.scoring)
        scoring = scoring or (isinstance(self.scoring, str) and _names_scorer(self.scoring))
        wanted = "'loss', a name from sklearn.metrics.get_scorer_names(), a callable or None"
        need("scoring", scoring, wanted)
        need("certificate", flag("certificate"), "True or False")
        fine = is_positive(self.validation_fraction) and self.validation_fraction < 1
        need("validation_fraction", fine, "in (0, 1)")
        need("warm_start", flag("warm_start"), "True or False")
        fine = self.checkpoint is None or isinstance(self.checkpoint, str | os.PathLike)
        need("checkpoint", fine, "a path or None")
        need("checkpoint_every", is_whole(self.checkpoint_every, 1), "a positive integer")
        callbacks = self.callbacks
        fine = callbacks is None or (isinstance(callbacks, list | tuple) and all(map(callable, callbacks)))
        need("callbacks", fine, "a list of callables or None")
        fine = isinstance(self.verbose, Integral) and int(self.verbose) >= 0
        need("verbose", fine, "0, 1 or 2")
        fine = self.n_jobs is None or (is_number(self.n_jobs) and is_whole(abs(self.n_jobs), 1))
        need("n_jobs", fine, "None, -1 or a positive integer")
        self._options(algorithm=self.algorithm, step=self.step)

    def _refuse(self, name: str, needed: str) -> None:
        """Refuse a parameter that would be ignored."""
        if self._is_given(name):
            raise ValueError(f"`{name}`={getattr(self, name)!r} would be ignored: it needs {needed}")

    def _check_spread(self, loss: Loss, learner: Learner, has_validation_rows: bool) -> None:
        """Refuse what needs all rows in one process."""

        def need(name: str, fine: bool, wanted: str) -> None:
            if not fine:
                value = getattr(self, name)
                raise ValueError(f"`{name}` must be {wanted} where rows are spread, got {value!r}")

        known = ", ".join(
            name for name, kind in available("convexboost.learners").items() if kind.spreads_rows
        )
        need("learner", learner.spreads_rows, f"one of {known}")
        if not loss.spreads_rows:
            raise ValueError(
                f"`loss` {loss} couples arbitrary rows and cannot be trained where they are spread over "
                "processes: losses of single rows, of groups (WorstGroup), of tails (CVaR) and of queries can"
            )
        need("certificate", not self.certificate, "False")
        need("stop_when_gap_below", self.stop_when_gap_below is None, "None")
        need("scoring", self._is_named("scoring", "loss"), "'loss'")
        need("warm_start", not self.warm_start, "False (a `checkpoint` can go on)")
        if self._holds_out and not has_validation_rows:
            raise ValueError(
                f"`early_stopping`={self.early_stopping!r} needs `X_val` and `y_val` where rows are spread; "
                "'auto' holds out rows"
            )

    def _check_combinations(
        self, loss: Loss, learner: Learner, has_validation_rows: bool, is_watched: bool
    ) -> None:
        """Refuse parameters that do not go together."""
        if not self._is_named("algorithm", "repeated"):
            self._refuse("accuracy", f"algorithm='repeated', got {self.algorithm!r}")
        if not self._is_named("algorithm", "residual"):
            self._refuse("residual_decay", f"algorithm='residual', got {self.algorithm!r}")
        if not self._holds_out:
            self._refuse("validation_fraction", f"early_stopping=True, got {self.early_stopping!r}")
        if has_validation_rows:
            self._refuse("validation_fraction", "rows to hold out, but `X_val` was given")
        if self._never_stops:
            self._refuse("n_iter_no_change", f"`early_stopping`=True, got {self.early_stopping!r}")
        if self._never_stops and not (has_validation_rows or is_watched):
            self._refuse("scoring", "`early_stopping`, or `X_val` or `eval_set` of `fit`")
        why = self._why_no_folds(loss)
        if self._is_auto("early_stopping") and why and not has_validation_rows:
            needed = f"`X_val` or early_stopping=True: 'auto' holds out no rows {why}"
            self._refuse("n_iter_no_change", needed)
            if not is_watched:
                self._refuse("scoring", needed)
        none = self.categorical_features is None or np.size(self.categorical_features) == 0
        if not none and not learner.uses_categories:
            self._refuse("categorical_features", f"a learner that uses categories, got {learner!r}")
        if not self._is_auto("learning_rate"):
            self._check_learning_rate()

    @property
    def _holds_out(self) -> bool:
        """Return whether rows are held out where no `X_val` is given."""
        return not self._is_auto("early_stopping") and bool(self.early_stopping)

    @property
    def _never_stops(self) -> bool:
        """Return whether rows that validate have no say in training."""
        return not self._is_auto("early_stopping") and not self.early_stopping

    def _why_no_folds(self, loss: Loss) -> str:
        """Return why early_stopping="auto" holds out no rows, whatever they are; "" where it may."""
        if self.certificate or self.stop_when_gap_below is not None:
            return "where a certificate is asked for"
        if self.max_weak_learners is not None and self.max_weak_learners < N_FOLDS:
            return f"with max_weak_learners={self.max_weak_learners}, fewer than the {N_FOLDS} folds"
        if self.output == "average":
            return "with output='average'"
        return "" if loss.splits_rows else f"with the loss {loss}, whose rows belong together"

    def _stops_early(self, has_validation_rows: bool) -> bool:
        """Return whether training stops by the loss on rows that are held out, or on `X_val`."""
        return self._holds_out or (has_validation_rows and not self._never_stops)

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


def _lies_in(value: Any, low: float, high: float = math.inf) -> bool:
    return is_number(value) and bool(low <= value <= high)


def _names_scorer(name: str) -> bool:
    from sklearn.metrics import get_scorer_names  # slow to import, and seldom needed

    return name in get_scorer_names()
