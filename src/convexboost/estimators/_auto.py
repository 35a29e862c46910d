"""What "auto" means: the one place where the parameters of an estimator are settled for a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from convexboost.boosting.algorithms import Repeated, Residual
from convexboost.boosting.options import Options, check_certifiable
from convexboost.core.protocols import Objective
from convexboost.estimators._input import Data, EstimatorInput, Given, Rows
from convexboost.learners._learner import Learner
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss

#: `n_rounds`="auto": the number of rounds, and the most where validation finds the number.
ROUNDS, MAX_ROUNDS = 500, 1000
#: `n_iter_no_change`="auto", at most.
PATIENCE = 10


@dataclass(frozen=True)
class Settled:
    """What a fit does, with nothing left to "auto"; fit, diagnose and the trials all read it here."""

    loss: Loss
    learner: Learner  #: as the user gave it
    settled_learner: Learner  #: the same with its own "auto" settled
    options: Options
    l2: float
    envelope: float
    n_classes: int | None
    cross_fits: bool  #: whether the model is the mean of members that each hold out a fold
    ensemble_options: Options  #: of such members

    def bind(self, rows: Rows) -> BoundLoss:
        """Make the objective on some rows."""
        return _with_l2(rows.bind(self.loss, self.n_classes), self.l2)

    def bind_unseen(self, rows: Rows) -> BoundLoss:
        """Make the objective on rows that are not trained on.

        A ridge term of the loss is like `l2`: a penalty on the training rows only.
        """
        return rows.bind(self.loss, self.n_classes).with_l2(0.0)


def settle(
    model: EstimatorInput, given: Given, data: Data, objective: BoundLoss, loss: Loss, learner: Learner
) -> Settled:
    """Settle every parameter, by the learner, the loss and the task."""
    stops = model._stops_early(given.X_val is not None)
    options = model._options(
        algorithm=_algorithm(model, learner),
        n_rounds=rounds(model, validated=stops),
        n_iter_no_change=_patience(model) if stops else None,
        validation_decides=not model._never_stops,
        random_state=data.seed,
    )
    of_members = _with_step(options, model, learner, loss, objective, of_members=True)
    options = _with_step(options, model, learner, loss, objective)
    envelope = _envelope(model, learner, objective, options)
    return Settled(
        loss=loss,
        learner=learner,
        settled_learner=learner.settled(model._task, objective.n_outputs),
        options=options,
        l2=float(model.l2),
        envelope=envelope,
        n_classes=data.n_classes,
        cross_fits=(
            model._is_auto("early_stopping") and given.X_val is None and not model._why_no_folds(loss)
        ),
        ensemble_options=replace(
            of_members,
            n_rounds=rounds(model, validated=True),
            n_iter_no_change=_patience(model),
            early_patience=_early_patience(model, learner, of_members),
        ),
    )


def first_objective(model: EstimatorInput, data: Data, loss: Loss) -> BoundLoss:
    """Make the objective on the training rows."""
    return _with_l2(data.train.bind(loss, data.n_classes), float(model.l2))


def _with_l2(objective: BoundLoss, l2: float) -> BoundLoss:
    return objective.with_l2(objective.l2 + l2)


def rounds(model: EstimatorInput, validated: bool = False) -> int:
    """Return the largest number of rounds."""
    if model._is_auto("n_rounds"):
        return MAX_ROUNDS if validated else ROUNDS
    return int(model.n_rounds)


def _patience(model: EstimatorInput) -> int:
    """Return how many rounds without improvement end training, at most."""
    return PATIENCE if model._is_auto("n_iter_no_change") else int(model.n_iter_no_change)


def _early_patience(model: EstimatorInput, learner: Learner, options: Options) -> int | None:
    """Return what the learner declares; None where a number is given, or where steps may raise R.

    A refit never raises it, and the curve is smooth.
    """
    is_smooth = options.step.refits_leaves
    return learner.auto.early_patience if model._is_auto("n_iter_no_change") and is_smooth else None


def _algorithm(model: EstimatorInput, learner: Learner) -> Any:
    """Return the algorithm, with its parameters where it is given by name."""
    if model._is_named("algorithm", "residual"):  # what a strong learner leaves over is mostly noise
        decay = learner.auto.decay if model._is_auto("residual_decay") else model.residual_decay
        return Residual(float(decay))
    if model._is_named("algorithm", "repeated"):
        return Repeated(model.accuracy)
    return model.algorithm


def _with_step(
    options: Options,
    model: EstimatorInput,
    learner: Learner,
    loss: Loss,
    objective: Objective,
    of_members: bool = False,
) -> Options:
    """Set the step, at the learning rate where there is one."""
    reweights = loss.reweights and objective.constants.minimum is not None
    auto, has_rate = model._is_auto("step"), not model._is_auto("learning_rate")
    spec = model.step
    if auto and has_rate:
        spec = "polyak" if reweights else "refit"
    elif auto and options.algorithm.adds_one_hypothesis:
        usual = learner.auto.step
        if of_members:
            usual = learner.auto.steps_of_members.get(model._task, usual)
        spec = learner.auto.reweighting_step if reweights else usual
    options = replace(options, step=spec)
    if not has_rate:
        return options
    step = options.step.with_rate(float(model.learning_rate))
    try:
        options.algorithm.check(step, objective.constants)
    except ValueError as error:
        rate = f"{model.learning_rate!r}, which means step={step.name!r}," if auto else model.learning_rate
        raise ValueError(f"`learning_rate`={rate} cannot be used: {error}") from None
    return replace(options, step=step)


def _envelope(model: EstimatorInput, learner: Learner, objective: BoundLoss, options: Options) -> float:
    if not model._is_auto("envelope"):
        if options.certifies:
            check_certifiable(model.envelope)
        return float(model.envelope)
    kinks = objective.constants.smoothness is None and objective.has_prox
    # Other steps go by the length of the gradient, and that of an envelope is shorter.
    if options.certifies or not kinks or not options.step.refits_leaves:
        return 0.0
    return float(learner.auto.envelopes.get(model._task, 0.0))
