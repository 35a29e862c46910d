"""How good scores at held-out rows are: `scoring`, and the sets of rows that are only watched."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any, cast

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from convexboost.boosting.member import Problem
from convexboost.core.model import AdditiveModel
from convexboost.core.space import Array
from convexboost.core.text import shown
from convexboost.estimators._input import Rows, check_columns
from convexboost.losses._loss import Loss
from convexboost.losses._objective import BoundLoss
from convexboost.losses._scores import LocalScores


class Judge:
    """Turns the scores at some rows into a number by `scoring`: the higher, the better.

    Make one per set of rows, with the loss of the model, before training; call it with the scores F at the
    rows, (n_rows, n_outputs), as often as needed.  `scoring` is any but "loss".

    scikit-learn's scorers ask an estimator for predictions.  Here that is a copy of the one in training which
    answers from F, so that nothing is predicted anew.  Targets are given to a scorer as they were given to
    `fit`, the inputs as numbers.  A scorer that has a parameter `sample_weight` gets the weights of the rows
    without those of classes, and one that has a parameter `groups` (`qid` in a ranker) gets these.

    The number is NaN where F is not finite, or where F is constant and there is no score for constants; any
    other NaN raises ValueError.
    """

    def __init__(self, model: Any, rows: Rows, loss: Loss) -> None:
        self.scoring, self.rows = model.scoring, rows
        self._F = np.empty((0, 0))
        self._model = copy.copy(model)
        vars(self._model).update(loss_=loss, _scores=self._scores)
        # `score` itself and not scikit-learn's wrapper, which hides its parameters.
        self._scorer = type(model).score if self.scoring is None else _scorer(model)
        self._targets = model._decode_targets(rows.y)
        self._keywords = self._keywords_of(self._scorer, model._group_parameter)

    def __call__(self, F: Array) -> float:
        """Return how good the scores are."""
        if not np.isfinite(F).all():
            return math.nan
        self._F, constant = F, not np.ptp(F, axis=0).any()
        if constant:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                value = self._value()
        else:
            value = self._value()
        if math.isnan(value) and not constant:
            raise ValueError(f"`scoring`={self._name} is NaN on the validation rows{self._classes()}")
        return value

    def _value(self) -> float:
        try:
            value = self._scorer(self._model, self.rows.X, self._targets, **self._keywords)
        except Exception as error:
            raise ValueError(
                f"`scoring`={self._name} cannot be computed on the validation rows{self._classes()}: {error}"
            ) from error
        value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
        if not isinstance(value, Real):
            raise ValueError(f"`scoring`={self._name} must return a number, got {shown(value)}")
        return float(value)

    def _scores(self, X: Any) -> Array:
        if X is not self.rows.X:
            raise ValueError("a scorer can only ask for predictions at the X that it is given")
        return self._F

    def _keywords_of(self, scorer: Any, group_parameter: str) -> dict[str, Any]:
        parameters = inspect.signature(scorer).parameters
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        keywords: dict[str, Any] = {}
        if self.rows.sample_weight is not None and (takes_any or "sample_weight" in parameters):
            keywords["sample_weight"] = self.rows.sample_weight
        if self.rows.groups is not None and group_parameter in parameters:
            keywords[group_parameter] = self.rows.groups.labels
        return keywords

    @property
    def _name(self) -> str:
        return shown(self.scoring)

    def _classes(self) -> str:
        """Name the classes where some are missing, a frequent reason why there is no score."""
        if self._model._task != "classification":
            return ""
        found = np.unique(self._targets)
        if len(found) == 1:
            return f", which hold one class only, {shown(found[0])}"
        missing = np.setdiff1d(self._model.classes_, found)
        return f", which lack the class {shown(missing[0])}" if len(missing) else ""


def pooled_scores(problems: Sequence[Problem]) -> Array:
    """Return the scores at the validation rows of all problems, one after the other.

    Each problem has its own best constant.  It is replaced by their mean, from which the mean of the models
    starts: otherwise rows would be compared by the constants, which are higher where the rows held out are
    lower.
    """
    scores = [cast(LocalScores, problem.validation).F for problem in problems]
    if len(problems) == 1:
        return scores[0]
    starts = [problem.checked_start() for problem in problems]
    mean = np.mean(starts, axis=0)
    return np.concatenate([F - start + mean for F, start in zip(scores, starts, strict=True)])


def _scorer(model: Any) -> Any:
    from sklearn.metrics import check_scoring  # slow to import, and seldom needed

    try:
        return check_scoring(model, model.scoring)
    except ValueError as error:  # a metric, say, where a scorer is needed
        raise ValueError(f"`scoring` cannot be used: {error}") from None


class Watched:
    """A set of rows whose loss and score are recorded after each round; it has no say in training."""

    def __init__(self, name: str, rows: Rows, objective: BoundLoss, judge: Judge | None) -> None:
        self.name, self.rows, self.objective, self.judge = name, rows, objective, judge
        self._failed = False
        check_columns(rows.offset, objective.n_outputs, f"offset of eval_set[{name!r}]")

    def follow(self, path: AdditiveModel) -> dict[str, Array]:
        """Return the loss, and the score where there is one, after each round; entry 0 is the start."""
        offset = np.zeros(1) if self.rows.offset is None else self.rows.offset
        start = np.tile(path.start, (self.rows.X.shape[0], 1))
        losses, scores = [], []
        for F in itertools.chain([start], path.staged_predict(self.rows.X)):
            at = F + offset
            losses.append(self.objective.value(at))
            scores.append(self._score(at))
        return {"loss": np.array(losses)} | ({} if self.judge is None else {"score": np.array(scores)})

    def _score(self, F: Array) -> float:
        if self.judge is None or self._failed:
            return math.nan
        try:
            return self.judge(F)
        except ValueError as error:  # a set that is only watched must not cost the model
            warnings.warn(f"`eval_set`: no score of {self.name!r} is recorded: {error}", stacklevel=2)
            self._failed = True
            return math.nan
