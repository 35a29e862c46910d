"""ConvexBoostRegressor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length

from convexboost.core.atomic import unchanged_on_error
from convexboost.core.space import Array, FunctionSpace
from convexboost.estimators._base import BaseConvexBoost
from convexboost.estimators._frames import refuse_times


class ConvexBoostRegressor(RegressorMixin, BaseConvexBoost):
    """Regression by boosting, for any convex loss and one or several outputs.

    Parameters
    ----------
    loss : str or Loss, default="half_squared"
        "half_squared", "absolute", "quantile" ("quantile:0.9"), "quantiles" (several at once), "huber",
        "epsilon_insensitive", "poisson"; a Loss such as ``Quantile(0.9)``; or an object of your own
        (docs/add-a-loss.md).
    learner : str, learner or scikit-learn estimator, default="tree"
        "tree", "stump", "sign_stump", "additive" (all stumps), "class_stump" (for several outputs), an object
        such as ``Tree(max_leaves=15)``, or any scikit-learn regressor or classifier.  Trees write a sparse X
        out, a byte per number; for a wide one "stump" is much faster.
    algorithm : str, default="residual"
        "naive", "repeated", "residual" (Algorithms 1, 2, 3), "dual_averaging", "error_feedback".
    n_rounds : "auto" or int, default="auto"
        Where `early_stopping` finds the number of rounds, at most so many; "auto" is 500, and at most 1000
        where early_stopping="auto" finds it.
    max_weak_learners : int, optional
        Budget of weak learners of the model; "repeated" trains t of them in round t.  Fits in folds, which
        only find the number of rounds, have as many each.
    step : str or Step, default="auto"
        "auto", "constant", "inverse_sqrt", "inverse_time", "polyak", "adanorm", "line_search", "refit"; a
        scale may follow ("inverse_sqrt:0.5").  "auto" is "refit:0.05" for trees in "residual" and "naive":
        0.05 times the best leaf values, from a formula, Newton's step, a search in each leaf, or a proximal
        step where the loss couples rows; it is "polyak:0.05" for `CVaR` and `WorstGroup`, where what lowers
        the objective at once leads nowhere; else a decaying step that finds its scale by itself.
    output : {"best", "last", "average"}, default="best"
        Which iterate becomes the model: the best one (by validation loss where there is one, else by
        objective), the last, or the average.
    residual_decay : "auto" or float in [0, 1], default="auto"
        What "residual" keeps of the residual from round to round: 1 is the paper, 0 is "naive"; "auto" is 0.7
        for trees (the default learner), which memorise with 1, and 1 for other learners.
    accuracy : float, optional
        "repeated" only: project until the error costs at most half of this, instead of t times in round t.
    l2 : float, default=0
        Adds l2/2 ‖f − start‖² to the objective.
    envelope : "auto" or float, default="auto"
        Take gradients of the Moreau envelope, so many Polyak steps wide, for losses with a `prox`; 0: of the
        loss itself.  "auto", with trees that are refitted and no certificate: 10 in regression and 3 in
        classification for losses that are not smooth; else 0.
    early_stopping : {"auto", True, False}, default="auto"
        "auto", with trees: find the number of rounds, at most `n_rounds`, by validation in three folds of the
        training rows (each until its loss has not improved for `n_iter_no_change` rounds), then train that
        many rounds on all of them; see `validation_curve_`.  A fold holds whole inputs: copies of a row stay
        together; classes are spread evenly.  From 10,000 distinct inputs (1,000 groups) one fold validates.
        A classifier trains twice as many rounds as are best for its loss.
        No validation, and `n_rounds` rounds: with other learners, `X_val`, an offset, certificates,
        output="average", hinges in classification, a loss that couples all rows, fewer than 60 distinct
        inputs (20 groups), or where most rows share their inputs with rows of another target.
        True: hold out `validation_fraction` of the rows (unless `X_val` is given to fit) and stop when the
        loss on them has not improved for `n_iter_no_change` rounds; what is held out is not trained on.
        False: `n_rounds` rounds.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=50
    certificate : bool, default=False
        Find out how far from optimal the training objective can be at most: see `certificate_`.  With stumps,
        "additive" and finite sets the bound is about all sums of weak learners; with trees and other learners
        about every function whatever, because trees can fit almost anything: valid, but with `l2` = 0 or a
        small one often no better than the known minimum of the loss.
    stop_when_gap_below : float, optional
        Stop when the objective is certified to be at most so far above the best that the learner can reach.
        Needs `l2` > 0, or a loss with a known minimum; is reached soonest with learner="stump".
    categorical_features : "from_dtype", None, or list of columns, default="from_dtype"
    random_state : int, RandomState or None
        For what is drawn: random cuts of trees (which of the losses have them is in `Tree`), rows and columns
        for each tree, rows held out.  Give a number to get the same model again.
    n_jobs : int, optional
        Threads; None is all cores.  The model does not depend on it.
    callbacks : list of callables, optional
        Each is called with a `Record` after every round; a true return value stops training.
    verbose : int, default=0

    Attributes
    ----------
    model_ : AdditiveModel
    certificate_ : Certificate or None
        Print it, or ask its `gap()`.
    history_ : dict of arrays
        round, objective, validation, edge, intrinsic_edge, step, weak_learners, gradient_evaluations,
        seconds, and with `certificate` gradient_norm, length, residual_norm, average, lower_bound; entry 0
        is the start.
    validation_curve_ : array or None
        The mean validation loss after each round, entry 0 being the start, where early_stopping="auto" looked
        for the number of rounds; the best one, for a classifier twice that, is `n_rounds_`.
    chosen_ : array of int
        Which hypothesis each weak learner was (of trees, which splits), numbered as they first appear; −1
        where that cannot be told.
    stop_reason_ : str
        Why training stopped.  Ctrl-C ends training too: the rounds that were finished are the model.  Where
        none was, or while folds look for the number of rounds, it raises KeyboardInterrupt.  A fit that
        raises anything leaves the estimator as it was before.
    stop_kind_ : str
        The same for programs: "rounds", "budget", "minimum", "gap", "converged", "no_change", "callback",
        "interrupted", "diverged" or "not_a_number".
    best_round_, n_rounds_ : int
    loss_ : Loss
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from convexboost import ConvexBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ConvexBoostRegressor(loss="quantile:0.9", n_rounds=100).fit(X, y)
    >>> bool(abs((model.predict(X) >= y).mean() - 0.9) < 0.05)
    True

    """

    _task = "regression"
    _tasks = ("regression", "any")

    def __init__(
        self,
        loss: Any = "half_squared",
        learner: Any = "tree",
        algorithm: Any = "residual",
        *,
        n_rounds: Any = "auto",
        max_weak_learners: int | None = None,
        step: Any = "auto",
        output: str = "best",
        residual_decay: Any = "auto",
        accuracy: float | None = None,
        l2: float = 0.0,
        envelope: Any = "auto",
        early_stopping: Any = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 50,
        certificate: bool = False,
        stop_when_gap_below: float | None = None,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        offset: Any = None,
        groups: Any = None,
        groups_val: Any = None,
    ) -> ConvexBoostRegressor:
        """Fit to targets of shape (n_samples,) or (n_samples, n_outputs).

        `X` is an array, a sparse matrix, or a frame of pandas or polars.  Dates and times are read as seconds
        since 1970 (in UTC where there is a time zone), durations as seconds, whatever their unit; NaT, None
        and NA are missing values.  A column must hold the same kind of values in `fit` and in `predict`.

        `offset` is a fixed score per row; training then starts from it instead of the best constant, and
        `predict` returns what was learned on top of it.  `groups` is a label per row, for losses that know
        groups; `groups_val` the same for `X_val`.
        """
        with unchanged_on_error(self):
            self._fit(X, y, sample_weight, X_val, y_val, offset, groups, groups_val)
        return self

    def predict(self, X: Any) -> Array:
        """Return the prediction for each row."""
        return self._shape(self._scores(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the prediction after each round."""
        for F in self._staged_scores(X):
            yield self._shape(F)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², or D² where the model has more outputs than `y` (several quantiles of one target).

        D² = 1 − loss of the scores / loss of the best constant for these rows: R² with the loss of the model
        instead of the squared error.  As for R², a constant that is perfect leaves 1 if the model is, else 0.
        """
        F = self._scores(X)
        if F.shape[1] <= self._n_outputs:
            return float(super().score(X, y, sample_weight))
        targets = self._encode_validation_targets(y, "y")
        check_consistent_length(F, targets, sample_weight)
        weight = _check_sample_weight(sample_weight, F, dtype=np.float64)
        objective = self.loss_.bind(targets, FunctionSpace.of(len(F), weight))
        loss, best = (objective.value(A) for A in (F, np.tile(objective.start(), (len(F), 1))))
        return 1.0 - loss / best if best > 0.0 else float(loss <= 0.0)

    def _shape(self, F: Array) -> Array:
        F = self.loss_.link(F) if self.loss_.has_link else F
        return F[:, 0] if self._one_dimensional and F.shape[1] == 1 else F

    def _check_targets(self, y: Any) -> Array:
        refuse_times(y, "y")
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.ndim > 2:
            raise ValueError(f"`y` must have 1 or 2 dimensions, got {y.ndim}")
        self._one_dimensional = y.ndim == 1
        return y.reshape(len(y), -1)

    def _encode_targets(self, y: Any) -> tuple[Any, int | None]:
        self._n_outputs = y.shape[1]
        return y, None

    def _encode_validation_targets(self, y: Any, parameter: str = "y_val") -> Array:
        refuse_times(y, parameter)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name=parameter)
        y = y.reshape(len(y), -1)
        if y.shape[1] != self._n_outputs:
            like = "`y`" if parameter == "y_val" else "the model"
            raise ValueError(
                f"`{parameter}` must have {self._n_outputs} outputs like {like}, got {y.shape[1]}"
            )
        return np.asarray(y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        try:
            loss = self._loss()
        except ValueError:  # reported by fit
            return tags
        tags.target_tags.multi_output = not loss.one_target
        tags.target_tags.positive_only = loss.positive_only
        return tags
