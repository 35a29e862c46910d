"""What the estimators share: parameters, validation of input, and the call of the driver."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    _num_samples,
    check_array,
    check_consistent_length,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from convexboost.boosting.steps import STEPS, Refit
from convexboost.boosting.training import OUTPUTS, Record, Result, boost, check_certifiable
from convexboost.boosting.variants import ALGORITHMS
from convexboost.checks import guarded
from convexboost.core.model import AdditiveModel
from convexboost.core.protocols import Constants
from convexboost.core.space import Array, FunctionSpace, in_range
from convexboost.estimators import _rounds
from convexboost.estimators._frames import (
    Columns,
    column_names,
    has_times,
    is_frame,
    is_missing,
    naming,
    unmasked,
)
from convexboost.inspection.certificates import Certificate
from convexboost.inspection.certify import Effort, certify
from convexboost.inspection.diagnosis import count_hypotheses, diagnose, number
from convexboost.inspection.exact import MAX_NONZEROS
from convexboost.inspection.findings import Diagnosis
from convexboost.inspection.finished_run import NO_VALIDATION, FinishedRun
from convexboost.learners._learner import Learner
from convexboost.learners.classifier import Classifier
from convexboost.learners.regressor import Regressor
from convexboost.losses._calculus import Coupling, Ridge
from convexboost.losses._custom import as_loss, is_custom
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss, RowLoss
from convexboost.losses._objective import BoundLoss
from convexboost.registry import available, resolve

#: After fewer rounds an objective that did not fall is no reason for a warning.
FEW_ROUNDS = 200


class Rows(NamedTuple):
    """What has one entry per sample."""

    X: Any
    y: Any
    weight: Array | None
    offset: Array | None
    groups: Groups | None = None

    def take(self, which: Any) -> Rows:
        """Return some of the rows."""
        return Rows(*(None if part is None else part[which] for part in self))  # type: ignore[arg-type]

    def bind(self, loss: Loss, n_classes: int | None) -> BoundLoss:
        """Make the objective on these rows."""
        return loss.bind(self.y, FunctionSpace.of(self.X.shape[0], self.weight), n_classes, self.groups)


class BaseConvexBoost(BaseEstimator):
    """Fit, validation and prediction of scores; the subclasses say what the targets are."""

    # scikit-learn reads the parameters and their defaults from the __init__ of each subclass.
    loss: Any
    learner: Learner
    algorithm: Any
    n_rounds: Any
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

    def _store(self, parameters: dict[str, Any]) -> None:
        for name in self._get_param_names():
            setattr(self, name, parameters[name])

    _task: str
    _tasks: tuple[str, ...]  #: of the losses that fit

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_val: Any,
        y_val: Any,
        offset: Any,
        groups: Any = None,
        groups_val: Any = None,
    ) -> BaseConvexBoost:
        self._check_parameters()
        loss, learner = self._loss(), self._learner()
        rows, n_classes = self._training_rows(X, y, sample_weight, offset, self._groups(loss, groups, X))
        with naming("random_state"):
            rng = check_random_state(self.random_state)
        validates = self._validates_inside(rows, X_val, loss, learner)
        whole = rows
        rows, held_out = self._validation_rows(rows, X_val, y_val, groups_val, rng)
        objective = guarded(self._objective(rows, loss, n_classes), loss)
        seed = rng.randint(2**31)
        train = partial(self._train, whole=whole, loss=loss, learner=learner, n_classes=n_classes, seed=seed)
        self.validation_curve_ = self._validate_inside(rows, loss, train) if validates else None
        n_rounds = self._most_rounds(validated=False)
        if self.validation_curve_ is not None:
            longer = _rounds.LONGER_FOR_CLASSES if self._task == "classification" else 1
            best = _rounds.best_round(self.validation_curve_)
            n_rounds = min(longer * best, self._most_rounds(validated=True))
        result: Result = train(
            rows,
            held_out,
            objective,
            n_rounds=n_rounds,
            output=self.output,
            patience=self.n_iter_no_change if self._holds_out else None,
            certificate=self.certificate,
            stop_when_gap_below=self.stop_when_gap_below,
            callbacks=[
                *(self.callbacks or []),
                *([_Report(n_rounds, self.verbose)] if self.verbose else []),
            ],
        )
        if result.kind == "interrupted" and len(result.records) == 1:  # there is nothing to keep
            raise KeyboardInterrupt
        if result.failed:
            advice = self._advice(result.kind, learner, objective)
            message = f"{result.reason}. The best iterate is kept; {advice}."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        elif _learnt_nothing(result.history):
            message = (
                f"none of {result.records[-1].round} rounds lowered the objective: the steps may be too "
                "large; step='line_search' finds others."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        self.loss_ = loss
        self.constants_ = objective.constants
        self.model_: AdditiveModel = result.model
        self.history_ = result.history
        self.chosen_ = number(result.path.terms)
        self.certificate_ = result.certificate
        self.stop_reason_, self.stop_kind_ = result.reason, result.kind
        self.best_round_ = result.best_round
        self.n_rounds_ = len(result.records) - 1
        return self

    def _objective(self, rows: Rows, loss: Loss, n_classes: int | None) -> BoundLoss:
        objective = rows.bind(loss, n_classes)
        return objective.with_l2(objective.l2 + float(self.l2))

    def _train(
        self,
        rows: Rows,
        held_out: Rows | None,
        objective: BoundLoss,
        *,
        whole: Rows,
        loss: Loss,
        learner: Learner,
        n_classes: int | None,
        seed: int,
        patience: int | None,
        **options: Any,
    ) -> Result:
        """Let loss and learner meet the rows, and call the driver."""
        step = resolve("step", self._step(learner, loss, objective.constants), STEPS)
        objective = objective.with_envelope(self._envelope(learner, objective, step))
        learner = learner.settled(self._task, objective.envelope > 0.0)
        hypotheses = self._bind(learner, rows, objective.space)
        _check_columns(rows.offset, objective.n_outputs)
        start = np.zeros(objective.n_outputs)
        if rows.offset is None:
            start = self._start(rows, objective, whole, loss, n_classes)
        validation = None
        if held_out is not None:
            inputs = hypotheses.mapper.prepare(held_out.X)
            validation = held_out.bind(loss, n_classes).scores(inputs, start, held_out.offset)
        return boost(
            objective,
            hypotheses,
            algorithm=self._algorithm(learner),
            step=step,
            max_weak_learners=self.max_weak_learners,
            start=start,
            offset=rows.offset,
            validation=validation,
            n_iter_no_change=patience,
            random_state=np.random.default_rng(seed),
            **options,
        )

    def _start(
        self, rows: Rows, objective: BoundLoss, whole: Rows, loss: Loss, n_classes: int | None
    ) -> Array:
        """Return the best constant; where a part of the rows has none, that of all rows.

        A fold may have no event to take the log of a mean from.
        """
        try:
            return objective.start()
        except (ValueError, ArithmeticError):
            if rows is whole:
                raise
            return self._objective(whole, loss, n_classes).start()

    def diagnose(self, X: Any = None, y: Any = None, *, trials: bool = False) -> Diagnosis:
        """Say in plain sentences what went wrong in training, if anything, and what to do about it.

        Stalled, cycling, collapsing edges, steps too large or too small, overfitting: each with its numbers.
        Print the result, or ask its `rules`.  `certificate=True` lets it tell a stall from convergence.

        Parameters
        ----------
        X, y : optional
            With `trials`, rows to try on.  Without, rows that were *not* trained on: overfitting is judged by
            the loss on them.
        trials : bool
            Train some short runs on at most 5,000 of the rows (three quarters to train, one to judge): the
            other algorithms, the step "auto", other learners.  Takes up to a minute.

        """
        from convexboost.estimators import _trials

        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError(f"`X` and `y` go together, but `{'X' if X is None else 'y'}` is missing")
        if trials and X is None:
            raise ValueError("`trials` needs rows to try on: diagnose(X, y, trials=True)")
        history: Mapping[str, Array] = self.history_
        has_validation = not np.isnan(history["validation"]).all()
        curve, no_validation = self.validation_curve_, self._no_validation
        if X is not None and not trials:
            values, no_validation = _trials.validation(self, X, y), _trials.why_not(self)
            history, has_validation, curve = {**history, "validation": values}, False, None
        step = self._step(self._learner(), self.loss_, self.constants_)
        run = FinishedRun(
            history=history,
            chosen=self.chosen_,
            algorithm=_algorithm_name(self.algorithm, self._decay(self._learner())),
            certificate=self.certificate_,
            minimum=self.constants_.minimum,
            smooth=self.constants_.smoothness is not None,
            diverged=self.stop_kind_ == "diverged",
            kind=self.stop_kind_,
            reason=self.stop_reason_,
            output=self.output,
            has_validation=has_validation,
            curve=curve,
            no_validation=no_validation,
            step=str(getattr(step, "name", step)).split(":")[0],
            n_hypotheses=count_hypotheses(self.model_.mapper),
            decay=self._decay(self._learner()),
            stronger=repr(self._learner().stronger()),
        )
        return diagnose(run, _trials.run(self, X, y) if trials else ())

    _no_validation = NO_VALIDATION

    def certify(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        groups: Any = None,
        radius: float | None = None,
        weight: float | None = None,
        exact: bool = False,
        polish: int = 200,
        time_limit: float = 60.0,
        max_nonzeros: int = MAX_NONZEROS,
    ) -> Certificate:
        """Find out how far from optimal the training objective of this model is at most.

        Give the rows that it was fitted to: they are not kept.  Print the result, or ask its `gap()`.  With
        trees the bound is about every function, with stumps about their sums: see `certificate`.

        Parameters
        ----------
        X, y, sample_weight, offset, groups
            As in `fit`.  The bins stay those of the model.
        radius : float, optional
            Assume that the best model is so far from the start at most: C1.  Without `l2` the bound is made
            as good as possible for this radius, by default for the distance of this model.
        weight : float, optional
            Assume that the best ensemble has at most this total weight: C1'.
        exact : bool, default=False
            Solve a linear program: the optimum itself, for piecewise linear losses (absolute, quantiles, the
            hinges) without `l2`, on small data; for learner="stump" or "additive".
        polish : int, default=200
            Steps to improve the bound; not used with `exact`.
        time_limit : float, default=60
            Seconds for the steps, or for the linear program, which raises TimeoutError after them.
        max_nonzeros : int
            Size of the linear program at most.

        """
        check_is_fitted(self)
        if y is None:
            raise ValueError("`certify` needs `y`: the targets are not kept in the model")
        model, X = self.model_, self._check_inputs(X)
        with naming("y"):
            targets = self._encode_validation_targets(y, "y")
            check_consistent_length(X, targets)
        weights = np.ones(len(targets)) if sample_weight is None else _check_weight(sample_weight, X)
        weights = self._weigh_classes(y, weights)
        rows = Rows(
            X,
            targets,
            weights,
            None if offset is None else _check_offset(offset, len(weights)),
            self._groups(self.loss_, groups, X),
        )
        rows = rows if (weights > 0).all() else rows.take(weights > 0)
        objective = self._objective(rows, self.loss_, self._n_classes())
        _check_columns(rows.offset, objective.n_outputs)
        learner = self._learner()
        return certify(
            objective,
            self._bind(learner, rows, objective.space, model.mapper),
            model,
            offset=rows.offset,
            radius=radius,
            weight=weight,
            effort=Effort(exact, polish, time_limit, max_nonzeros),
        )

    def _bind(self, learner: Learner, rows: Rows, space: FunctionSpace, mapper: Any = None) -> Any:
        """Let the learner meet the inputs."""
        whole = self._has_whole_groups(rows, self._loss())
        return learner.bind(
            rows.X,
            space,
            np.flatnonzero(self._columns.categorical),
            self._n_threads(),
            mapper=mapper,
            names=getattr(self, "feature_names_in_", None),
            groups=rows.groups.numbers if rows.groups is not None and whole else None,
        )

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.model_.predict(self._check_inputs(X))

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        check_is_fitted(self)
        yield from self.model_.staged_predict(self._check_inputs(X))

    # -- input -------------------------------------------------------------------------------------

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any, offset: Any, groups: Groups | None
    ) -> tuple[Rows, int | None]:
        """Check everything that has a row per sample; rows of zero weight are not part of the space."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = _as_columns(X)
        self._columns = Columns.learn(X, self.categorical_features)
        X = self._check_inputs(X, reset=True)
        with naming("y"):
            y = self._check_targets(unmasked(y))
            check_consistent_length(X, y)
        weight = None if sample_weight is None else _check_weight(sample_weight, X)
        weight = self._weigh_classes(y, weight)
        offset = None if offset is None else _check_offset(offset, X.shape[0])
        rows = Rows(X, y, weight, offset, groups)
        if weight is not None and not (weight > 0).all():
            rows = rows.take(weight > 0)
        targets, n_classes = self._encode_targets(rows.y)
        return rows._replace(y=targets), n_classes

    def _validation_rows(
        self, rows: Rows, X_val: Any, y_val: Any, groups_val: Any, rng: Any
    ) -> tuple[Rows, Rows | None]:
        """Return what to train on and what to validate on: the rows given, some held out, or none."""
        if (X_val is None) != (y_val is None):
            missing = "y_val" if y_val is None else "X_val"
            raise ValueError(f"`X_val` and `y_val` go together, but `{missing}` is missing")
        if X_val is None:
            return self._hold_out(rows, rng) if self._holds_out else (rows, None)
        if rows.offset is not None:
            raise ValueError(
                "`offset` and `X_val` cannot be combined: there is no offset for the validation rows"
            )
        X_val = self._check_inputs(X_val, parameter="X_val")
        with naming("y_val"):
            targets = self._encode_validation_targets(unmasked(y_val))
        if X_val.shape[0] != len(targets):
            raise ValueError(f"`y_val` must have {X_val.shape[0]} rows like `X_val`, got {len(targets)}")
        groups = None
        if rows.groups is not None:
            if groups_val is None:
                name = self._group_parameter
                raise ValueError(f"`{name}_val` is missing: `{name}` of the rows in `X_val`")
            groups = self._groups(self._loss(), groups_val, X_val, "_val")
        return rows, Rows(X_val, targets, None, None, groups)

    def _validates_inside(self, rows: Rows, X_val: Any, loss: Loss, learner: Learner) -> bool:
        """Return whether "auto" looks for the number of rounds: with trees, where rows can be parted.

        Not with an offset: it often comes from a model of the same rows, which then cannot validate.  Nor for
        classes without probabilities: a hinge may rise while the errors fall.
        """
        certified = self.certificate or self.stop_when_gap_below is not None
        given = X_val is not None or rows.offset is not None or certified or self.output == "average"
        parts = isinstance(loss, RowLoss) or self._has_whole_groups(rows, loss)
        tells = self._task != "classification" or loss.find_link() is not None
        return self._is_auto("early_stopping") and learner.auto.finds_rounds and parts and tells and not given

    @property
    def _holds_out(self) -> bool:
        return not self._is_auto("early_stopping") and bool(self.early_stopping)

    def _groups_that_count(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which groups can validate, by their numbers."""
        assert rows.groups is not None
        return np.ones(int(rows.groups.numbers.max()) + 1, bool)

    def _has_whole_groups(self, rows: Rows, loss: Loss) -> bool:
        return rows.groups is not None and (self._task == "ranking" or loss.whole_groups)

    def _validate_inside(self, rows: Rows, loss: Loss, train: Any) -> Array | None:
        """Return the mean validation loss after each round, from folds of the training rows."""
        if self._has_whole_groups(rows, loss):
            assert rows.groups is not None
            fold = _rounds.folds_of_groups(rows.X, rows.groups.numbers, self._groups_that_count(rows))
        else:
            fold = _rounds.folds_of_rows(rows.X, rows.y, rows.weight, self._task == "classification")
        if fold is None:
            return None
        curves, weights = [], []
        for k in range(int(fold.max()) + 1):
            kept, held = rows.take(fold != k), rows.take(fold == k)
            if self.verbose:
                print(f"validation, fold {k + 1} of {fold.max() + 1}", file=sys.stderr)
            result = train(
                kept,
                held,
                self._objective(kept, loss, self._n_classes()),
                n_rounds=self._most_rounds(validated=True),
                output="last",
                patience=self.n_iter_no_change,
            )
            if result.kind == "interrupted":
                raise KeyboardInterrupt
            curves.append(result.history["validation"])
            weights.append(float(len(held.y)) if held.weight is None else held.weight.sum())
        return _rounds.mean_curve(curves, weights)

    def _check_inputs(self, X: Any, *, reset: bool = False, parameter: str = "X") -> Any:
        tags = get_tags(self).input_tags
        options: dict[str, Any] = {
            "accept_sparse": ["csr", "csc"] if tags.sparse else False,
            "dtype": np.float64,
            "ensure_all_finite": "allow-nan" if tags.allow_nan else True,
        }
        X = _as_columns(X, parameter)
        with naming(parameter):
            return self._read_inputs(X, parameter, reset, options)

    def _read_inputs(self, X: Any, parameter: str, reset: bool, options: dict[str, Any]) -> Any:
        if self._columns.plain and not is_frame(X) and not has_times(X):
            if parameter == "X":
                return validate_data(self, X, reset=reset, **options)
            _check_feature_names(self, X, reset=False)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"`{parameter}` must have {self.n_features_in_} features, got {X.shape[1]}")
            return check_array(X, estimator=self, input_name=parameter, **options)
        column_names(X)
        _check_feature_names(self, X, reset=reset)
        _check_n_features(self, X, reset=reset)
        return check_array(
            self._columns.encode(X, parameter), estimator=self, input_name=parameter, **options
        )

    _group_parameter = "groups"

    def _groups(self, loss: Loss, groups: Any, X: Any, suffix: str = "") -> Groups | None:
        """Check the labels of the groups; a loss that needs none must not be given any, and vice versa."""
        name = self._group_parameter + suffix
        if groups is None:
            if loss.needs_groups:
                raise ValueError(f"`{name}` is needed by the loss {loss}: one label per row")
            return None
        if not loss.takes_groups:
            raise ValueError(f"`{name}` was given, but the loss {loss} does not use it")
        return Groups(_check_labels(groups, name, _n_rows(X)))

    def _n_classes(self) -> int | None:
        return None

    def _weigh_classes(self, y: Any, weight: Any) -> Any:
        """Multiply the weights of the rows by those of their classes, where there are such."""
        return weight

    def _check_targets(self, y: Any) -> Any:
        raise NotImplementedError

    def _encode_targets(self, y: Any) -> tuple[Any, int | None]:
        raise NotImplementedError

    def _encode_validation_targets(self, y: Any, parameter: str = "y_val") -> Any:
        raise NotImplementedError

    def _hold_out(self, rows: Rows, rng: Any) -> tuple[Rows, Rows]:
        """Split off the validation part, whole groups or stratified for classes where they allow it."""
        if rows.groups is not None and self._loss().whole_groups:
            return self._hold_out_groups(rows, rows.groups.numbers, rng)
        n_rows = len(rows.y)
        n_held = int(np.ceil(self.validation_fraction * n_rows))
        if n_held >= n_rows:
            raise ValueError(
                f"`early_stopping` holds out {n_held} of n_samples={n_rows} rows and leaves none; "
                "give `X_val` and `y_val` instead"
            )
        stratify = None
        if self._task == "classification":
            counts = np.bincount(rows.y)
            counts = counts[counts > 0]
            stratify = rows.y if counts.min() >= 2 and min(n_held, n_rows - n_held) >= len(counts) else None
        kept, held = train_test_split(
            np.arange(n_rows), test_size=n_held, random_state=rng, stratify=stratify
        )
        return rows.take(kept), rows.take(held)

    def _hold_out_groups(self, rows: Rows, numbers: Any, rng: Any) -> tuple[Rows, Rows]:
        n_groups = int(numbers.max()) + 1
        n_held = int(np.ceil(self.validation_fraction * n_groups))
        if n_held >= n_groups:
            raise ValueError(
                f"`early_stopping` holds out {n_held} of {n_groups} groups and leaves none; "
                "give `X_val` and `y_val` instead"
            )
        held = np.isin(numbers, rng.permutation(n_groups)[:n_held])
        return rows.take(~held), rows.take(held)

    # -- parameters --------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
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
        fine = isinstance(self.output, str) and self.output in OUTPUTS
        need("output", fine, f"one of {', '.join(OUTPUTS)}")
        decay = self._is_auto("residual_decay") or (real("residual_decay") and 0 <= self.residual_decay <= 1)
        need("residual_decay", decay, "'auto' or in [0, 1]")
        envelope = self._is_auto("envelope") or (real("envelope") and self.envelope >= 0)
        need("envelope", envelope, "'auto' or a number that is not negative")
        need(
            "accuracy", self.accuracy is None or (real("accuracy") and self.accuracy > 0), "positive or None"
        )
        need("l2", real("l2") and self.l2 >= 0, "non-negative")
        early = self._is_auto("early_stopping") or flag("early_stopping")
        need("early_stopping", early, "'auto', True or False")
        need("certificate", flag("certificate"), "True or False")
        gap = self.stop_when_gap_below
        need(
            "stop_when_gap_below",
            gap is None or (real("stop_when_gap_below") and gap > 0),
            "positive or None",
        )
        need(
            "validation_fraction",
            real("validation_fraction") and 0 < self.validation_fraction < 1,
            "in (0, 1)",
        )
        callbacks = self.callbacks
        fine = callbacks is None or (isinstance(callbacks, list | tuple) and all(map(callable, callbacks)))
        need("callbacks", fine, "a list of callables or None")
        fine = isinstance(self.verbose, Integral) and int(self.verbose) >= 0
        need("verbose", fine, "0, 1 or 2")
        fine = self.n_jobs is None or (whole(self.n_jobs) and self.n_jobs != 0)
        need("n_jobs", fine, "None, -1 or a positive integer")

    def _loss(self) -> Any:
        classes = available("convexboost.losses")
        fitting = [name for name, cls in classes.items() if cls.task in self._tasks]
        loss = resolve("loss", self.loss, classes, fitting)
        if isinstance(loss, Coupling | Ridge):
            raise ValueError(f"`loss` {loss!r} has no targets: add it to a loss")
        if not isinstance(loss, Loss):
            if not is_custom(loss):
                raise ValueError(
                    "`loss` must be a name, a Loss, or an object with a method `evaluate`, `total` or "
                    f"`value`, got {self.loss!r}"
                )
            loss = as_loss(loss)
        if loss.task not in self._tasks:
            raise ValueError(f"`loss` must be a {self._task} loss ({', '.join(fitting)}), got {self.loss!r}")
        return loss

    def _learner(self) -> Learner:
        learner = self.learner
        if hasattr(learner, "fit") and hasattr(learner, "predict"):
            if is_classifier(learner):
                return Classifier(learner)
            if is_regressor(learner):
                return Regressor(learner)
        learner = resolve("learner", learner, available("convexboost.learners"))
        if not isinstance(learner, Learner):
            raise ValueError(
                f"`learner` must be a name, a learner or a scikit-learn estimator, got {self.learner!r}"
            )
        return learner

    def _algorithm(self, learner: Learner) -> Any:
        if self.algorithm == "residual":
            return ALGORITHMS["residual"](decay=self._decay(learner))
        if self.algorithm == "repeated":
            return ALGORITHMS["repeated"](accuracy=self.accuracy)
        return self.algorithm

    # What "auto" means depends on the learner: what is left over by a strong one is mostly noise.

    def _decay(self, learner: Learner) -> float:
        decay = self.residual_decay
        return float(learner.auto.decay if decay == "auto" else decay)

    def _step(self, learner: Learner, loss: Loss, constants: Constants) -> Any:
        single = self.algorithm in ("naive", "residual")  # one hypothesis a round
        if not (single and self._is_auto("step")):
            return self.step
        reweights = loss.reweights and constants.minimum is not None
        return learner.auto.reweighting_step if reweights else learner.auto.step

    def _advice(self, kind: str, learner: Learner, objective: BoundLoss) -> str:
        """Say what to do about a run that failed; never to use the step that was used."""
        if kind == "not_a_number":
            return "check_loss(loss, y) looks for scores where the loss is not finite"
        step = resolve("step", self._step(learner, self._loss(), objective.constants), STEPS)
        if step.name != "auto":
            return "a decaying step like step='auto' avoids this"
        return "algorithm='naive' with step='line_search' cannot raise the objective"

    def _envelope(self, learner: Learner, objective: BoundLoss, step: Any) -> float:
        certified = self.certificate or self.stop_when_gap_below is not None
        if self.envelope != "auto":
            if certified:
                check_certifiable(self.envelope)
            return float(self.envelope)
        kinks = objective.constants.smoothness is None and objective.has_prox
        if certified or not kinks or not isinstance(step, Refit):  # other steps go by the gradient's length
            return 0.0
        return float(learner.auto.envelopes.get(self._task, 0.0))

    def _most_rounds(self, validated: bool) -> int:
        if self._is_auto("n_rounds"):
            return _rounds.MAX_ROUNDS if validated else _rounds.ROUNDS
        return int(self.n_rounds)

    def _is_auto(self, parameter: str) -> bool:
        value = getattr(self, parameter)
        return isinstance(value, str) and value == "auto"

    def _n_threads(self) -> int:
        # None means all cores, as in HistGradientBoosting: work too small for threads stays on one.
        return int(joblib.cpu_count() if self.n_jobs is None else joblib.effective_n_jobs(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            learner = self._learner()
        except ValueError:  # reported by fit
            return tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = learner.allows_sparse, learner.allows_missing
        return tags


def _algorithm_name(algorithm: Any, residual_decay: float) -> str:
    if algorithm == "residual" and residual_decay == 0.0:
        return "naive"
    return algorithm if isinstance(algorithm, str) else type(algorithm).__name__.lower()


def _as_columns(X: Any, parameter: str = "X") -> Any:
    """Return lists and such as arrays; what has columns already stays as it is."""
    if is_frame(X) or sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        return unmasked(X)
    with naming(parameter):
        return check_array(X, dtype=None, ensure_all_finite=False, accept_sparse=True)


def _n_rows(X: Any) -> int:
    with naming("X"):
        return int(_num_samples(X))


def _check_weight(given: Any, X: Any) -> Array:
    with naming("sample_weight"):
        weight = _check_sample_weight(unmasked(given), X, dtype=np.float64)
    if (weight < 0).any():
        raise ValueError(f"`sample_weight` must not be negative, got {weight.min():g}")
    if not (weight > 0).any():
        raise ValueError("`sample_weight` must not be all zero")
    return in_range(weight)


def _check_labels(given: Any, name: str, n_rows: int) -> NDArray[Any]:
    labels = np.asarray(given)
    if labels.shape != (n_rows,):
        raise ValueError(f"`{name}` must have shape ({n_rows},) like the rows of `X`, got {labels.shape}")
    if any(map(is_missing, labels)) if labels.dtype == object else (labels != labels).any():
        raise ValueError(f"`{name}` must not contain missing labels")
    return labels


def _check_offset(offset: Any, n_samples: int) -> Array:
    with naming("offset"):
        offset = check_array(unmasked(offset), ensure_2d=False, dtype=np.float64, input_name="offset")
    if len(offset) != n_samples:
        raise ValueError(f"`offset` must have {n_samples} rows like `X`, got {len(offset)}")
    return np.asarray(offset.reshape(n_samples, -1))


def _learnt_nothing(history: dict[str, Any]) -> bool:
    """Return whether the objective rose above its start and stayed there, in a run of some length."""
    start, later = history["objective"][0], history["objective"][1:]
    return len(later) >= FEW_ROUNDS and bool(later.min() > start + 1e-12 * abs(start))


def _check_columns(offset: Array | None, n_outputs: int) -> None:
    if offset is not None and offset.shape[1] != n_outputs:
        raise ValueError(f"`offset` must have {n_outputs} columns, got {offset.shape[1]}")


class _Report:
    """Print about twenty lines (verbose=1) or one per round (verbose=2) on standard error."""

    def __init__(self, n_rounds: int, verbose: int) -> None:
        self.every = max(n_rounds // 20, 1) if verbose == 1 else 1

    def __call__(self, record: Record) -> None:
        if record.round % self.every == 0:
            validation = "" if np.isnan(record.validation) else f"  validation {record.validation:.6g}"
            line = f"round {record.round:5d}  objective {record.objective:.6g}{validation}"
            print(f"{line}  {record.seconds:.2f} s", file=sys.stderr)
