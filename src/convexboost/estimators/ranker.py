"""ConvexBoostRanker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted

from convexboost.core.atomic import unchanged_on_error
from convexboost.core.space import Array, in_range
from convexboost.core.text import shown
from convexboost.estimators._base import BaseConvexBoost, Rows, _check_labels, _check_weight, _n_rows
from convexboost.estimators._frames import naming, refuse_times
from convexboost.inspection.certificates import Certificate
from convexboost.inspection.findings import Diagnosis
from convexboost.kernels.ranking import Pairs
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss
from convexboost.metrics import ndcg


class ConvexBoostRanker(BaseConvexBoost):
    """Ranking by boosting, for any convex loss: rows of a query are put in the order of their grades.

    Parameters
    ----------
    loss : str or Loss, default="ranking_hinge"
        "ranking_hinge", or an object of your own: its `total` receives the queries as `qid`
        (docs/add-a-loss.md).
    learner : str, learner or scikit-learn estimator, default="tree"
        "tree", "stump", "sign_stump", "additive" (all stumps), an object such as ``Tree(max_leaves=15)``, or
        any scikit-learn regressor or classifier.
    algorithm : str, default="residual"
        "naive", "repeated", "residual" (Algorithms 1, 2, 3), "dual_averaging", "error_feedback".

    The other parameters and the attributes are those of `ConvexBoostRegressor`; `early_stopping` holds out
    whole queries, also in the folds of "auto", which needs 20 of them with different grades.

    Examples
    --------
    >>> import numpy as np
    >>> from convexboost import ConvexBoostRanker
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
    >>> y = np.digitize(X[:, 0] + rng.normal(size=20)[qid], [-1, 0, 1])  # no two queries grade alike
    >>> model = ConvexBoostRanker(n_rounds=50).fit(X, y, qid)
    >>> bool(model.score(X, y, qid) > 0.95)
    True

    """

    _task = "ranking"
    _tasks = ("ranking", "any")
    _group_parameter = "qid"
    _no_validation = "there were no validation rows; give X_val, y_val and qid_val to fit."

    def __init__(
        self,
        loss: Any = "ranking_hinge",
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
        qid: Any = None,
        sample_weight: Any = None,
        *,
        query_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        offset: Any = None,
    ) -> ConvexBoostRanker:
        """Fit to grades: any numbers, of which only the order within a query matters to the hinge.

        Parameters
        ----------
        X, y : array-like
            Inputs, and a grade per row.
        qid : array-like of shape (n_samples,)
            The query of each row, numbers or strings; rows of a query need not be adjacent.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 is the row twice.
        query_weight : array-like of shape (n_samples,), optional
            The same number in all rows of a query; weight 2 is the query twice.
        X_val, y_val, qid_val : array-like, optional
            Rows to validate on.
        offset : array-like of shape (n_samples,), optional
            A fixed score per row; `predict` returns what was learned on top of it.

        """
        groups, weight = _weighted(X, qid, sample_weight, query_weight)
        with unchanged_on_error(self):
            self._fit(X, y, weight, X_val, y_val, offset, groups, qid_val)
        return self

    def predict(self, X: Any) -> Array:
        """Return a score per row: the higher, the further up in its query."""
        return self._shape(self._scores(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the scores after each round."""
        yield from map(self._shape, self._staged_scores(X))

    def score(self, X: Any, y: Any, qid: Any = None) -> float:
        """Return the mean NDCG@10 over the queries with different grades (`convexboost.metrics.ndcg`).

        scikit-learn's cross-validation gives `qid` to `score` only if it is asked to: with
        ``sklearn.set_config(enable_metadata_routing=True)`` and
        ``ranker.set_fit_request(qid=True).set_score_request(qid=True)`` call
        ``cross_val_score(ranker, X, y, cv=GroupKFold(), params={"qid": qid, "groups": qid})``.
        """
        check_is_fitted(self)
        if qid is None:
            raise ValueError(
                "`qid` is needed by `score`: score(X, y, qid).  For cross-validation call "
                "sklearn.set_config(enable_metadata_routing=True) and "
                "set_fit_request(qid=True).set_score_request(qid=True) first, or give a scorer that knows "
                "the queries: scoring=lambda model, X, y: model.score(X, y, qid[X.index]) for a data frame X"
            )
        with naming("y"):
            y = self._check_targets(y)
        return ndcg(y, self.predict(X), _queries(qid, X).numbers)

    def certify(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        *,
        query_weight: Any = None,
        **options: Any,
    ) -> Certificate:
        """Find out how far from optimal the training objective of this model is at most.

        Give the rows that it was fitted to.  The other parameters are those of a regressor's `certify`:
        `offset`, `radius`, `weight`, `exact`, `polish`, `time_limit`, `max_nonzeros`.
        """
        check_is_fitted(self)
        groups, weight = _weighted(X, qid, sample_weight, query_weight)
        return super().certify(X, y, weight, groups=groups, **options)

    def diagnose(self, X: Any = None, y: Any = None, *, trials: bool = False) -> Diagnosis:
        """Say in plain sentences what went wrong in training, if anything; without rows and trials."""
        if X is not None or y is not None or trials:
            raise ValueError(
                "`diagnose` of a ranker takes neither rows nor `trials`: give `X_val`, `y_val` and "
                "`qid_val` to `fit`"
            )
        return super().diagnose()

    def _shape(self, F: Array) -> Array:
        link = self.loss_.find_link()
        F = F if link is None else link(F)
        return F[:, 0] if F.ndim == 2 and F.shape[1] == 1 else F

    def _groups(self, loss: Loss, groups: Any, X: Any, suffix: str = "") -> Groups:
        """Check the queries; a loss that does not ask for them may have them all the same."""
        return _queries(groups, X, suffix)

    def _check_targets(self, y: Any, parameter: str = "y") -> Array:
        refuse_times(y, parameter)
        y = column_or_1d(y, warn=parameter == "y")
        return np.asarray(check_array(y, ensure_2d=False, dtype=np.float64, input_name=parameter))

    def _encode_targets(self, y: Any) -> tuple[Array, None]:
        return y[:, None], None

    def _encode_validation_targets(self, y: Any, parameter: str = "y_val") -> Array:
        return self._check_targets(y, parameter)[:, None]

    def _groups_that_count(self, rows: Rows) -> NDArray[np.bool_]:
        """Return in which queries there is something to order."""
        assert rows.groups is not None
        numbers = rows.groups.numbers
        pairs = Pairs.of(rows.y[:, 0], numbers, np.ones(len(numbers)))
        return np.isin(np.arange(numbers.max() + 1), numbers[pairs.rows[pairs.starts[:-1]]])

    def _hold_out(self, rows: Rows, rng: Any) -> tuple[Rows, Rows]:
        """Split off whole queries, of those in which there is something to order."""
        assert rows.groups is not None
        numbers, queries = rows.groups.numbers, np.flatnonzero(self._groups_that_count(rows))
        n_held = int(np.ceil(self.validation_fraction * len(queries)))
        if n_held >= len(queries):
            raise ValueError(
                f"`early_stopping` holds out whole queries, {n_held} of the {len(queries)} with different "
                "grades, and leaves none; give `X_val`, `y_val` and `qid_val` instead"
            )
        held = np.isin(numbers, rng.choice(queries, n_held, replace=False))
        return rows.take(~held), rows.take(held)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _queries(given: Any, X: Any, suffix: str = "") -> Groups:
    """Check the queries."""
    name, groups = "qid" + suffix, Groups.of(given)
    if groups is None:
        raise ValueError(
            f"`{name}` is needed: one query per row (for a single list {name}=np.zeros(len(y{suffix})))"
        )
    groups = Groups(_check_labels(groups.labels, name, _n_rows(X)), groups.weight)
    try:
        groups.numbers  # noqa: B018
    except TypeError as error:
        raise ValueError(f"`{name}` must hold labels of one kind: {error}") from None
    return groups


def _weighted(X: Any, qid: Any, sample_weight: Any, query_weight: Any) -> tuple[Any, Any]:
    """Return the queries with their weights, and the weight of each row in the space."""
    if query_weight is None:
        return qid, sample_weight
    groups = _queries(qid, X)
    with naming("query_weight"):
        weight = check_array(query_weight, ensure_2d=False, dtype=np.float64, input_name="query_weight")
    if weight.shape != groups.labels.shape:
        raise ValueError(
            f"`query_weight` must have shape {groups.labels.shape}: one number per row, got {weight.shape}"
        )
    if (weight < 0).any() or not (weight > 0).any():
        raise ValueError(f"`query_weight` must be non-negative and not all zero, got {weight.min():g}")
    first = np.unique(groups.numbers, return_index=True)[1][groups.numbers]
    differs = np.flatnonzero(weight != weight[first])
    if len(differs):
        n = differs[0]
        raise ValueError(
            f"`query_weight` must be the same in all rows of a query, got {weight[first[n]]:g} and "
            f"{weight[n]:g} in query {shown(groups.labels[n])}"
        )
    weight = in_range(weight)
    rows = 1.0 if sample_weight is None else _check_weight(sample_weight, groups.labels)
    return Groups(groups.labels, weight), weight * rows
