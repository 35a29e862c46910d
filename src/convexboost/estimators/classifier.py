"""ConvexBoostClassifier."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from convexboost.core.communicator import Communicator, distinct
from convexboost.core.space import Array, in_range
from convexboost.core.sums import total
from convexboost.core.text import shown
from convexboost.core.tolerances import blocks
from convexboost.estimators._base import BaseConvexBoost
from convexboost.estimators._frames import is_missing
from convexboost.estimators._input import Given


def _has_link(estimator: ConvexBoostClassifier) -> bool:
    loss = vars(estimator).get("loss_") or estimator._loss()
    if not loss.has_link:
        raise AttributeError(
            f"`loss` {estimator.loss!r} gives no probabilities; use loss='softmax', or calibrate"
        )
    return True


class ConvexBoostClassifier(ClassifierMixin, BaseConvexBoost):
    """Classification by boosting, for any convex loss.

    Parameters
    ----------
    loss : str, Loss or object, default="softmax"
        What is minimised.  "softmax" gives probabilities (`predict_proba`); "multiclass_hinge" (Crammer and
        Singer) does not.  For two classes "softmax" is "logistic", with one score, the log-odds; others for
        two classes are "exponential", "hinge", "squared_hinge".  Or a `Loss`, or an object of your own
        (docs/add-a-loss.md).
    learner : str, learner or scikit-learn estimator, default="tree"
        The weak learner.  "tree" grows decision trees; ``Tree(max_leaves=31, max_depth=6,
        min_samples_leaf=20, subsample=0.8, colsample_bytree=0.8, reg_lambda=1.0, monotone_constraints={"age":
        1})`` sets leaves, depth, rows per leaf, row and column sampling, the l2 penalty of leaves, and
        monotone columns.  Other names: "stump", "sign_stump", "class_stump" (for several outputs), "additive"
        (all stumps at once), "network".  Any scikit-learn regressor or classifier works too.  Trees store a
        sparse X as one byte per entry; for a wide one "stump" is much faster.
    algorithm : str or Algorithm, default="residual"
        "naive", "repeated", "residual" (Algorithms 1, 2 and 3 of Grubb and Bagnell), "dual_averaging" or
        "error_feedback".  The last two train as the theorems ask with every learner, trees too: the whole
        residual, no leaf refit, no envelope (docs/theory.md says what is proved, and what it costs).
    n_rounds : int or "auto", default="auto"
        The number of rounds, one tree each, or one for each member (`n_estimators` elsewhere).  Where
        `early_stopping` chooses the number, the largest that it may choose.  "auto" is 500; where
        `early_stopping` chooses, at most 1000.
    learning_rate : float or "auto", default="auto"
        How much of each new tree is added.  A number makes step="auto" mean "refit" at this rate ("polyak"
        for losses that reweight rows, such as `CVaR`), and gives another named step its scale.  "auto" is
        0.1 for trees; where several members train (`early_stopping`), whose mean forgives longer steps, 0.2
        in regressors and 0.15 in classifiers and rankers.  Other learners have a step that finds its scale
        by itself.
    max_weak_learners : int or None, default=None
        The largest number of weak learners to train; None is no limit.  "repeated" trains t of them in round
        t, the other algorithms one per round.
    step : str or Step, default="auto"
        How far to go in a round: "constant", "inverse_sqrt", "inverse_time", "polyak", "adanorm",
        "line_search" or "refit"; a scale may follow ("inverse_sqrt:0.5").  With trees and algorithm
        "residual" or "naive", "auto" is "refit" at the `learning_rate`: that part of the leaf values that
        lower the objective most.  For losses that reweight rows (`CVaR`, `WorstGroup`) it is "polyak:0.05".
        Otherwise it is a decaying step that finds its scale by itself.
    output : {"best", "last", "average"}, default="best"
        Which iterate becomes the model: the best one (by validation where there is one that decides, else by
        the training objective), the last one, or the average of all.
    residual_decay : float in [0, 1] or "auto", default="auto"
        For algorithm="residual" only: the part of the residual that is kept from round to round.  1 is the
        algorithm of the paper, 0 is "naive".  "auto" is 0.7 for trees, which overfit with 1, and 1 for other
        learners.
    accuracy : float or None, default=None
        For algorithm="repeated" only: in each round project until the error costs at most half of this,
        instead of t times in round t.
    l2 : float, default=0.0
        Adds l2/2 ‖f − start‖² to the objective: a penalty on predictions at the training rows.  The penalty
        on leaf values that other libraries call `reg_lambda` is a parameter of `Tree`.
    envelope : float or "auto", default="auto"
        For losses with kinks that have a `prox`: take gradients of the Moreau envelope, this many Polyak
        steps wide; 0 takes those of the loss itself.  "auto" is 10 in regression and 3 in classification for
        losses that are not smooth, with trees whose leaves are refitted and without a certificate; else 0.
    early_stopping : bool or "auto", default="auto"
        "auto": train five members side by side, each without a fifth of the rows, and validate each on the
        rows that it leaves out.  The model is the mean of the members after the round with the lowest mean
        validation loss.  Training stops when that loss has not improved for `n_iter_no_change` rounds, or
        when the members together have trained `max_weak_learners`.
        Rows with equal inputs are dealt to the folds in turn, and a row of weight w like w copies.  The rows
        of a query stay together, and those of a group where the loss compares rows of a group.  The rows of a
        class that would be missing in a training part are always trained on.  There is one run of `n_rounds`
        rounds, without folds, with certificates, output="average", a loss whose rows cannot be parted
        (`splits_rows`), `max_weak_learners` below 5, or fewer than 30 different rows (20 groups).
        "auto" with `X_val` given to `fit`: no folds; stop when the loss on these rows has not improved for
        `n_iter_no_change` rounds, and keep the best round.
        True: the same with `X_val`; without, hold out `validation_fraction` of the rows (of the queries, in a
        ranker) instead.  Rows that are held out are not trained on.
        False: train `n_rounds` rounds.  The loss on `X_val` is recorded and has no influence on the model.
    validation_fraction : float in (0, 1), default=0.1
        The part of the rows that early_stopping=True holds out.
    n_iter_no_change : int or "auto", default="auto"
        Early stopping waits this many rounds for a better validation loss (`early_stopping_rounds`
        elsewhere).  The start does not count as a round.  "auto": 10, or less for members that are trees:
        five rounds and a tenth of the best round.  A number raises where nothing validates, and warns where
        there are too few rows for folds.
    scoring : str, callable or None, default="loss"
        By what early stopping and the choice of the best round go, on rows that validate.  "loss" is the loss
        of the model, None its `score`.  A name is that of a scorer of scikit-learn: "roc_auc",
        "neg_mean_absolute_error".  A callable (estimator, X, y) returns a number.  All but the loss are
        better when higher.  A callable gets X as an array of numbers, and also `sample_weight` and `groups`
        (`qid` in a ranker) if it has parameters of these names; it can ask the estimator for predictions at
        this X only.
    certificate : bool, default=False
        Compute how far from optimal the training objective can be at most: see `certificate_`.  With stumps
        and "additive" the bound holds for all sums of weak learners.  With trees and other learners it holds
        for every function, because trees can fit almost anything; with `l2` = 0 or a small one it is then
        often no better than the known minimum of the loss.
    stop_when_gap_below : float or None, default=None
        Stop when the objective is certified to be at most this far above the best that the learner can reach.
        Needs `l2` > 0 or a loss with a known minimum; learner="stump" reaches it soonest.
    class_weight : dict, "balanced" or None, default=None
        Factors for the weights of the rows, {label: factor}; 1 for labels that are not in it.  "balanced"
        gives all classes the same total weight and keeps the total of all rows.  None: no factors.
    categorical_features : "from_dtype", list of columns or None, default="from_dtype"
        Which columns are categorical: those with a categorical dtype in a data frame, a list of column
        numbers or names (or a mask), or none.
    random_state : int, RandomState or None, default=None
        For everything that is drawn at random: cuts of trees (`Tree` says when), rows and columns for each
        tree, rows held out.  None is 0, as in XGBoost and CatBoost: the same call makes the same model.
    n_jobs : int or None, default=None
        The number of threads; None and -1 are all cores.  The model does not depend on it.
    warm_start : bool, default=False
        Let the next `fit` go on where this one ends.  It must get the same rows and settings, but for
        `n_rounds`, `n_iter_no_change`, `n_jobs`, `verbose` and `callbacks`: 50 rounds and then 100 give the
        model of 100 rounds at once, bit for bit.  Keeps what the weak learners found on the estimator.
    checkpoint : str, path or None, default=None
        A file that keeps the run while it trains.  If it is there, training goes on from it, with the
        same rows and settings as for `warm_start`; the model is the same bit for bit as without the stop.
        One fit at a time can use it, which a file of the same name with ".lock" ensures.
    checkpoint_every : int, default=50
        The number of rounds between two writes of `checkpoint`, which is also written at the end.
    callbacks : list of callables or None, default=None
        Each is called with a `Record` after every round (and for the start).  A true return value stops
        training; a string becomes `stop_reason_`.  Some are in `convexboost.callbacks`.
    verbose : int, default=0
        1 shows a progress bar on the terminal (about twenty lines where standard error is none), 2 prints a
        line per round.

    Attributes
    ----------
    model_ : AdditiveModel
        The start and the weak learners with their weights.
    loss_ : Loss
        The loss that `loss` stands for: `Logistic` for "softmax" with two classes.
    constants_ : Constants
        What is known of the training objective: its minimum, smoothness, Lipschitz constant, strong
        convexity.
    history_ : dict of arrays
        One entry per round, entry 0 being the start: round, objective, validation (the loss on the rows that
        validate), score (`scoring` on them, as the scorer returns it: the higher the better; NaN for "loss"),
        edge, intrinsic_edge, step, weak_learners, gradient_evaluations, seconds; with a certificate also
        gradient_norm, length, residual_norm, average, lower_bound.  With several members it holds sums of
        what is counted and means of the rest: each has its own objective, on the rows that it trains on.
    evals_result_ : dict of dicts of arrays
        For each set of `eval_set`, by its name: "loss", and "score" where `scoring` is not "loss"; one entry
        per round, entry 0 being the start.
    n_rounds_ : int
        The number of rounds that were trained; `history_` has all of them.
    best_round_ : int
        The round with the best validation loss or score, or objective where no rows decide.  With
        output="best" the model has this many rounds.
    n_members_ : int
        The number of members: 5 where early_stopping="auto" has folds, else 1.
    certificate_ : Certificate or None
        How far from optimal the training objective can be: print it, or call its `gap()`.  None without
        `certificate` or `stop_when_gap_below`.
    chosen_ : array of int
        The hypothesis that each weak learner of all rounds is (for trees, its splits), numbered by first
        appearance; −1 where that is not known.  In each round, members come one after the other.
    stop_reason_ : str
        Why training stopped, in words.  A fit that raises leaves the estimator as it was.  Ctrl-C raises
        KeyboardInterrupt too, but one that was not fitted keeps the rounds that were finished.
    stop_kind_ : str
        The same for programs: "rounds", "budget", "minimum", "gap", "converged", "no_change", "callback",
        "interrupted", "diverged" or "not_a_number".
    classes_ : array
        The class labels, sorted.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : array of str
        The names of the columns, where X had any.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from convexboost import ConvexBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConvexBoostClassifier(loss="multiclass_hinge", n_rounds=50).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True

    """

    _task = "classification"
    _tasks = ("classification", "binary", "any")
    _fitted_targets: ClassVar[Mapping[str, Any]] = {
        "classes_": NDArray[Any],
        "_class_factors": tuple[Any, ...] | None,
    }

    def __init__(
        self,
        loss: Any = "softmax",
        learner: Any = "tree",
        algorithm: Any = "residual",
        *,
        n_rounds: Any = "auto",
        learning_rate: Any = "auto",
        max_weak_learners: int | None = None,
        step: Any = "auto",
        output: str = "best",
        residual_decay: Any = "auto",
        accuracy: float | None = None,
        l2: float = 0.0,
        envelope: Any = "auto",
        early_stopping: Any = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int | str = "auto",
        scoring: Any = "loss",
        certificate: bool = False,
        stop_when_gap_below: float | None = None,
        class_weight: Any = None,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        checkpoint_every: int = 50,
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
        sample_weight_val: Any = None,
        offset: Any = None,
        offset_val: Any = None,
        groups: Any = None,
        groups_val: Any = None,
        eval_set: Any = None,
    ) -> ConvexBoostClassifier:
        """Fit to class labels of any kind.

        `offset` is a fixed score per row and class; per row where two classes have one score, as with all
        losses but "multiclass_hinge", affine maps and learner="class_stump".  Training then starts from it,
        not from the best constant, and predictions are what was learned on top of it.  `groups` is a label
        per row, for losses that know groups.

        Rows to validate on are given as `X_val`, `y_val`, with `sample_weight_val`, `offset_val` and
        `groups_val` where needed.  Training stops by them unless early_stopping=False.
        `class_weight` counts in the loss on them as in training, with the factors of the training rows, but
        not in `scoring`.

        `eval_set` holds sets of rows that are only watched, after training: `evals_result_`.  They have no
        influence on the model.  It is a list, [(X1, y1), (X2, y2)], whose sets are named "validation_0",
        "validation_1" and so on, or a dict of names and sets, {"test": (X1, y1)}.  A set is a tuple (X, y) or
        (X, y, sample_weight), or a dict of these and `offset` and `groups`.
        """
        self._fit(
            Given(
                X,
                y,
                sample_weight,
                X_val,
                y_val,
                offset,
                groups,
                groups_val,
                sample_weight_val,
                offset_val,
                eval_set,
            )
        )
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores (n_samples, n_classes); for two classes one score, (n_samples,).

        It is positive where the second class is predicted: with "softmax" the log-odds.
        """
        return _decision(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest score."""
        winner = _winner(self._scores(X))
        return self.classes_[winner]

    @available_if(_has_link)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class."""
        F = self._scores(X)
        return _probabilities(self.loss_.link(F))

    @available_if(_has_link)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the log of the probability of each class."""
        return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield the decision function after each round."""
        yield from map(_decision, self._staged_scores(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predicted classes after each round."""
        for F in self._staged_scores(X):
            yield self.classes_[_winner(F)]

    @available_if(_has_link)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Yield the class probabilities after each round."""
        for F in self._staged_scores(X):
            yield _probabilities(self.loss_.link(F))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.class_weight
        if not (given is None or isinstance(given, dict) or (isinstance(given, str) and given == "balanced")):
            raise ValueError(f"`class_weight` must be None, 'balanced' or a dict, got {given!r}")
        for label, weight in given.items() if isinstance(given, dict) else ():
            if not (isinstance(weight, Real) and 0 <= float(weight) < math.inf):
                raise ValueError(
                    f"`class_weight` must hold finite, non-negative weights, got {weight!r} for {label!r}"
                )

    def _learn_class_weights(self, y: Any, weight: Array | None, communicator: Communicator) -> None:
        self._class_factors: tuple[NDArray[Any], Array] | None = None
        if self.class_weight is None:
            return
        labels, numbers = distinct(column_or_1d(y), communicator)
        weight = np.ones(len(numbers)) if weight is None else weight
        ends = np.cumsum(np.bincount(numbers, minlength=len(labels)))[:-1]
        parts = np.split(np.asarray(weight)[np.argsort(numbers, kind="stable")], ends)
        totals = np.array([total(part, communicator) for part in parts])
        if self.class_weight == "balanced":
            # A class without weight has no rows in the space.
            factors = totals.sum() / (np.count_nonzero(totals) * np.where(totals > 0.0, totals, 1.0))
        else:
            given = self.class_weight
            unknown = [label for label in given if label not in labels]
            if unknown and not all(label in given for label in labels):  # a slip; else more than needed
                raise ValueError(f"`class_weight` holds a class that `y` does not: {shown(unknown[0])}")
            factors = in_range(np.array([given.get(label, 1.0) for label in labels], float))
        if not (totals * factors > 0.0).any():
            raise ValueError(f"`class_weight` must leave some weight, got {self.class_weight!r}")
        self._class_factors = labels, factors

    def _weigh_classes(self, y: Any, weight: Array | None) -> Array | None:
        if self._class_factors is None:
            return weight
        labels, factors = self._class_factors
        factor = factors[np.searchsorted(labels, column_or_1d(y))]
        return factor if weight is None else weight * factor

    def _check_targets(self, y: Any) -> NDArray[Any]:
        y = column_or_1d(y, warn=True)
        missing = [label for label in y if is_missing(label)] if y.dtype == object else []
        if missing:
            raise ValueError(f"`y` must not contain missing labels, got {missing[0]!r}")
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y", estimator_name=type(self).__name__)
        try:
            sorted(set(y) if y.dtype == object else ())
        except TypeError:
            kinds = sorted({type(label).__name__ for label in y})
            raise ValueError(f"`y` must hold labels of one kind, got {' and '.join(kinds)}") from None
        check_classification_targets(y)
        return y

    def _encode_targets(self, y: Any, communicator: Communicator) -> tuple[NDArray[np.int32], int]:
        self.classes_ = distinct(y, communicator)[0]
        if len(self.classes_) < 2:
            raise ValueError(
                "`y` must hold at least 2 classes with positive weight, got one class: "
                f"{shown(self.classes_[0])}"
            )
        loss = self._loss()
        n_classes = len(self.classes_)
        if loss.task == "binary" and n_classes > 2:
            # The second sentence is what scikit-learn's checks look for.
            raise ValueError(
                f"`loss` {self.loss!r} is for two classes, but `y` has {n_classes}: use {loss.multiclass!r}. "
                "Only binary classification is supported."
            )
        return self._class_numbers(y), n_classes

    def _n_classes(self) -> int:
        return len(self.classes_)

    def _encode_validation_targets(self, y: Any, parameter: str = "y_val") -> NDArray[np.int32]:
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            where = "the model does not know" if parameter == "y" else "`y` does not"
            raise ValueError(f"`{parameter}` holds a class that {where}: {shown(unknown[0])}")
        return self._class_numbers(y)

    def _check_outputs(self, n_outputs: int) -> None:
        n_classes = len(self.classes_)
        if n_classes < 2 or n_outputs not in (n_classes, 1 if n_classes == 2 else n_classes):
            raise ValueError(f"{n_classes} classes do not fit {n_outputs} outputs")

    def _decode_targets(self, y: Any) -> NDArray[Any]:
        return self.classes_[y]

    def _output_names(self) -> tuple[str, ...]:
        return tuple(map(str, self.classes_ if len(self.classes_) > 2 else self.classes_[1:]))

    def _combined(self, contributions: Array) -> Array:
        two = contributions.shape[-1] == 2
        return contributions[..., 1:] - contributions[..., :1] if two else contributions

    def _class_numbers(self, y: Any) -> NDArray[np.int32]:
        out = np.empty(len(y), np.int32)
        for rows in blocks(len(y)):
            out[rows] = np.searchsorted(self.classes_, y[rows])
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):  # reported by fit
            tags.classifier_tags.multi_class = self._loss().task != "binary"
        return tags


def _decision(F: Array) -> Array:
    if F.shape[1] == 1:  # the score of a two-class loss
        return F[:, 0]
    return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F


def _winner(F: Array) -> NDArray[np.intp]:
    return (F[:, 0] > 0.0).astype(np.intp) if F.shape[1] == 1 else F.argmax(axis=1)


def _probabilities(P: Array) -> Array:
    """Return a column per class; a link may give that of the second class alone."""
    return np.column_stack([1.0 - P, P]) if P.ndim == 1 or P.shape[1] == 1 else P
