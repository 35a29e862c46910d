"""The fit that the estimators share, and what can be asked of a fitted model."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from convexboost.boosting.member import Problem
from convexboost.boosting.training import Result, Stop, Training
from convexboost.checks import guarded
from convexboost.core.atomic import fitting
from convexboost.core.communicator import distinct
from convexboost.core.model import AdditiveModel
from convexboost.core.protocols import HypothesisSet, Mapper
from convexboost.core.space import Array
from convexboost.estimators import _validation
from convexboost.estimators._auto import Settled, first_objective, settle
from convexboost.estimators._explained import ExplainedModel
from convexboost.estimators._exported import ExportedModel
from convexboost.estimators._frames import naming
from convexboost.estimators._input import (
    Data,
    Given,
    Rows,
    check_columns,
    check_offset,
    check_weight,
)
from convexboost.estimators._progress import agreed, progress
from convexboost.estimators._recalibration import recalibrated
from convexboost.estimators._reported import ReportedModel
from convexboost.estimators._resuming import Checkpoint, GoingOn, Run
from convexboost.estimators._saved import SavedModel
from convexboost.estimators._scoring import Judge, Watched, pooled_scores
from convexboost.inspection.certificates import Certificate
from convexboost.inspection.certify import Effort, certify
from convexboost.inspection.diagnosis import diagnose, number
from convexboost.inspection.exact import MAX_NONZEROS
from convexboost.inspection.findings import Diagnosis
from convexboost.inspection.finished_run import NO_VALIDATION, FinishedRun
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss

#: After fewer rounds an objective that did not fall is no reason for a warning.
FEW_ROUNDS = 200


class BaseConvexBoost(ExplainedModel, SavedModel, ExportedModel, ReportedModel):
    """Fit, diagnosis, certificate and prediction of scores; the subclasses say what the targets are."""

    _settled: Settled
    _rows_of_fit: int  #: tells whether `diagnose` gets the same rows

    _run: Run  #: to go on with, where `warm_start` asks for it

    def _fit(self, given: Given) -> None:
        """Train; where that fails, the estimator is left as it was."""
        with fitting(self):
            self._check_parameters()
            with Checkpoint.opened(self.checkpoint, given.communicator) as checkpoint:
                self._train(given, checkpoint)

    def _train(self, given: Given, checkpoint: Checkpoint | None) -> None:
        # Copies: `set_params` of what the user gave must not change a fitted model.
        loss, learner = copy.copy(self._loss()), copy.copy(self._learner())
        self._check_combinations(loss, learner, given.X_val is not None, given.eval_set is not None)
        if given.communicator.size > 1:
            self._check_spread(loss, learner, given.X_val is not None)
        before: Run | None = vars(self).get("_run") if self.warm_start else None
        going_on = GoingOn(before, checkpoint, bool(self.warm_start))
        data = self._read(given, loss, going_on.seed(self._random_state, given.communicator))
        going_on.check(self.get_params(deep=False), data, self._columns, learner)
        if not learner.needs_output_per_class:
            loss = loss.for_classes(data.n_classes)
        objective = first_objective(self, data, loss)
        if given.communicator.size == 1:  # the checks of a user's loss look at all rows
            objective = guarded(objective, loss)
        settled = settle(self, given, data, objective, loss, learner)
        watched = {
            name: Watched(name, rows, settled.bind_unseen(rows), self._judge(rows, loss))
            for name, rows in data.watched.items()
        }
        shares = self._shares(data.train, loss) if settled.cross_fits else None
        options = settled.options
        if shares is None:
            for name in ("scoring", "n_iter_no_change"):
                if settled.cross_fits and self._is_given(name):
                    warnings.warn(
                        f"`{name}`={getattr(self, name)!r} is not used: there are too few different rows or "
                        "groups to hold some out; give `X_val` and `y_val`",
                        UserWarning,
                        stacklevel=4,
                    )
            problems = [self._problem(settled, objective, data)]
        else:
            problems = self._members(settled, objective, data, _parts(data, shares))
            options = settled.ensemble_options
        score = self._score_of(problems, data, shares, loss)
        earlier = going_on.journal(settled.settled_learner, problems)
        verbose = self.verbose if given.communicator.rank == 0 else 0
        with progress(verbose, options, len(problems)) as report:
            callbacks = agreed([*(self.callbacks or []), *report], given.communicator)
            training = Training.of_several(problems, options, callbacks, score, earlier)
            going_on.run(training, self.checkpoint_every)
        result = training.result()
        self._warn(result)
        if shares is not None and objective.recalibrates:
            unseen = settled.bind_unseen(data.train.weighed(shares))
            result = recalibrated(result, training.members, problems, unseen)
        self._settled, self._rows_of_fit = settled, data.whole.signature(data.whole.y)
        if self.warm_start:
            self._run = going_on.kept(training)
        self.loss_ = loss
        self.constants_ = objective.constants
        self.model_: AdditiveModel = result.model
        self.history_ = result.history
        self.evals_result_ = {name: rows.follow(result.path) for name, rows in watched.items()}
        self.n_members_ = len(problems)
        self.chosen_ = number(result.learned)
        self.certificate_ = result.certificate
        self.stop_kind_, self.stop_reason_ = result.stop
        self.best_round_ = result.best_round
        self.n_rounds_ = len(result.records) - 1

    def _problem(
        self, settled: Settled, objective: BoundLoss, data: Data, mapper: Mapper | None = None
    ) -> Problem:
        """Let learner and loss meet the rows, in the bins of the `mapper` where there is one."""
        rows, held_out = data.train, data.held_out
        objective = objective.with_envelope(settled.envelope)
        check_columns(rows.offset, objective.n_outputs)
        start = np.zeros(objective.n_outputs)
        if rows.offset is None:
            start = _start(objective, data, settled)
        hypotheses = self._bind(settled, rows, objective, mapper, start)
        validation, weight = None, 1.0
        if held_out is not None:
            check_columns(held_out.offset, objective.n_outputs, "offset_val")
            inputs, unseen = hypotheses.mapper.prepare(held_out.X), settled.bind_unseen(held_out)
            validation = unseen.scores(inputs, start, held_out.offset)
            weight = unseen.space.total
        return Problem(objective, hypotheses, start, rows.offset, validation, weight)

    def _judge(self, rows: Rows, loss: Loss) -> Judge | None:
        """Return what turns scores at these rows into a number; None where `scoring` is the loss."""
        return None if self._is_named("scoring", "loss") else Judge(self, rows, loss)

    def _score_of(
        self, problems: Sequence[Problem], data: Data, shares: Array | None, loss: Loss
    ) -> Callable[[], float] | None:
        """Return what scores the rows that the problems hold out, in their order, as one set."""
        if self._is_named("scoring", "loss"):  # nothing to score: spare the copy of X
            return None
        rows = data.held_out if shares is None else data.train.weighed(shares)
        judge = None if rows is None else self._judge(rows, loss)
        return None if judge is None else lambda: judge(pooled_scores(problems))

    def _shares(self, rows: Rows, loss: Loss) -> Array | None:
        """Return the share of each row that each member holds out; None where folds say nothing."""
        if self._has_whole_groups(rows, loss):
            assert rows.groups is not None
            counts = self._groups_that_count(rows)
            return _validation.folds_of_groups(rows.X, rows.groups.numbers, counts, rows.communicator)
        is_classes = self._task == "classification"
        return _validation.folds_of_rows(rows.X, rows.y, rows.weight, is_classes, rows.communicator)

    def _members(
        self, settled: Settled, whole: BoundLoss, data: Data, parts: Iterator[Data]
    ) -> list[Problem]:
        """Return the problems of the members.

        They share the bins of all rows, which do not see targets.  What does, statistics of categories, each
        adds to the mapper of the member before, so that the last mapper serves the models of all.
        """
        categorical = np.flatnonzero(self._columns.categorical)
        learner, X = settled.settled_learner, data.train.X
        mapper: Mapper = learner.mapper(X, whole.space, categorical, self._n_threads())
        problems: list[Problem] = []
        for part in parts:
            objective = settled.bind(part.train)
            if not problems:  # one member is enough to observe a user's loss
                objective = replace(objective, observer=whole.observer)
            problems.append(self._problem(settled, objective, part, mapper))
            mapper = problems[-1].hypotheses.mapper
            del part  # a copy of X: one at a time
        return problems

    def _bind(
        self,
        settled: Settled,
        rows: Rows,
        objective: BoundLoss,
        mapper: Mapper | None,
        start: Array | None = None,
    ) -> HypothesisSet:
        """Let the learner meet the inputs, and the gradient at the `start` where it asks for it."""
        learner, categorical = settled.settled_learner, np.flatnonzero(self._columns.categorical)
        targets = None
        # A certificate is about the objective at the inputs themselves.
        may = learner.uses_targets and not settled.options.certifies
        if may and len(categorical) and start is not None:
            targets = objective.scores(None, start, rows.offset).gradient().values
        groups = None
        if rows.groups is not None and self._has_whole_groups(rows, settled.loss):
            groups = distinct(rows.groups.labels, rows.communicator)[1]
        return learner.bind(
            rows.X,
            objective.space,
            categorical,
            self._n_threads(),
            mapper=mapper,
            names=vars(self).get("feature_names_in_"),
            groups=groups,
            **({} if targets is None else {"targets": targets}),
        )

    def _warn(self, result: Result) -> None:
        """Warn of a run that failed, lowered nothing, or ended before it was as good as was asked for."""
        if result.stop.is_failure:
            message = f"{result.stop.message}. The best iterate is kept; {self._advice(result)}."
        elif _learnt_nothing(result.history):
            message = (
                f"none of {result.records[-1].round} rounds lowered the objective: the steps may be too "
                f"large; {self._advice(result)}."
            )
        elif self.stop_when_gap_below is not None and result.stop.kind in ("rounds", "budget"):
            gap = min(result.history["objective"]) - result.history["lower_bound"][-1]
            message = (
                f"{result.stop.message}, and the certified gap {gap:.3g} is still above "
                f"`stop_when_gap_below`={self.stop_when_gap_below!r}: allow more rounds, or see in "
                "`certificate_` what the bound rests on."
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=5)

    def _advice(self, result: Result) -> str:
        """Say what to do about a run that failed; never what was done already."""
        if result.stop.kind == "not_a_number":
            return "check_loss(loss, y) looks for scores where the loss is not finite"
        if not self._is_auto("learning_rate"):
            return "a smaller `learning_rate` avoids this"
        if not self._is_auto("step"):
            return "step='auto' avoids this"
        return "algorithm='naive' with step='line_search' cannot raise the objective"

    # -- what can be asked of a model --------------------------------------------------------------

    def diagnose(self, X: Any = None, y: Any = None, *, trials: bool = False) -> Diagnosis:
        """Say in plain sentences what went wrong in training, if anything, and what to do about it.

        It looks for stalls, cycles, collapsing edges, steps that are too large or too small, and overfitting.
        Print the result, or read its `rules`.  `certificate=True` lets it tell a stall from convergence.

        Parameters
        ----------
        X, y : optional
            With `trials`, rows to try on.  Without, rows that were *not* trained on: the loss on them tells
            whether the model overfits.
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
        settled = self._settled
        history: Mapping[str, Array] = self.history_
        decides = settled.options.validation_decides
        has_validation = decides and not np.isnan(history["validation"]).all()
        no_validation = self._no_validation
        if decides and not np.isnan(history["score"]).all():
            history = {**history, "validation": np.full(len(history["score"]), np.nan)}
            no_validation = "rounds were chosen by `scoring`, not by the validation loss."
        if X is not None and not trials:
            values, no_validation = _trials.validation(self, X, y), _trials.why_not(self)
            history, has_validation = {**history, "validation": values}, False
        run = FinishedRun(
            history=history,
            chosen=self.chosen_,
            algorithm=settled.options.algorithm.name,
            certificate=self.certificate_,
            minimum=self.constants_.minimum,
            smooth=self.constants_.smoothness is not None,
            stop=Stop(self.stop_kind_, self.stop_reason_),
            output=settled.options.output,
            has_validation=has_validation,
            no_validation=no_validation,
            step=settled.options.step.name,
            auto_step=self._is_auto("step"),
            has_rate=not self._is_auto("learning_rate"),
            n_hypotheses=self.model_.mapper.n_hypotheses,
            decay=settled.options.algorithm.decay,
            stronger=repr(settled.settled_learner.stronger()),
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

        Give the rows that it was fitted to: they are not kept.  Print the result, or call its `gap()`.  With
        trees the bound holds for every function, with stumps for their sums: see `certificate`.

        Parameters
        ----------
        X, y, sample_weight, offset, groups
            As in `fit`.  The bins stay those of the model.
        radius : float, optional
            Assume that the best model is at most this far from the start: C1.  Without `l2` the bound is made
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
        weights = np.ones(len(targets)) if sample_weight is None else check_weight(sample_weight, X)
        weights = self._weigh_classes(y, weights)
        rows = Rows(
            X,
            targets,
            weights,
            None if offset is None else check_offset(offset, len(weights)),
            self._groups(self.loss_, groups, X),
        )
        rows = rows if (weights > 0).all() else rows.take(weights > 0)
        settled = self._settled
        objective = settled.bind(rows)
        check_columns(rows.offset, objective.n_outputs)
        return certify(
            objective,
            self._bind(settled, rows, objective, model.mapper),
            model,
            offset=rows.offset,
            radius=radius,
            weight=weight,
            effort=Effort(exact, polish, time_limit, max_nonzeros),
        )

    def _scores(self, X: Any) -> Array:
        if "model_" not in vars(self):
            check_is_fitted(self)  # raises
        return self.model_.predict(self._check_inputs(X))

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        check_is_fitted(self)
        yield from self.model_.staged_predict(self._check_inputs(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            learner = self._learner()
        except ValueError:  # reported by fit
            return tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = learner.allows_sparse, learner.allows_missing
        return tags


def _parts(data: Data, shares: Array) -> Iterator[Data]:
    """Yield the rows that each member trains on and holds out."""
    rows = data.train
    for held in shares:
        yield data._replace(train=rows.weighed(1.0 - held), held_out=rows.weighed(held))


def _start(objective: BoundLoss, data: Data, settled: Settled) -> Array:
    """Return the best constant; where a part of the rows has none, that of all rows.

    A fold may have no event to take the log of a mean from.
    """
    try:
        return objective.start()
    except (ValueError, ArithmeticError):
        if data.train is data.whole:
            raise
        return settled.bind(data.whole).start()


def _learnt_nothing(history: dict[str, Any]) -> bool:
    """Return whether the objective rose above its start and stayed there, in a run of some length."""
    start, later = history["objective"][0], history["objective"][1:]
    return len(later) >= FEW_ROUNDS and bool(later.min() > start + 1e-12 * abs(start))
