"""The estimators."""

from __future__ import annotations

import functools
import inspect
from typing import Any, ClassVar, Self

import dask.array as da
import numpy as np
from distributed import default_client
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
from convexboost.core.atomic import unchanged_on_error
from convexboost.dask._fit import TRAINING, VALIDATION, Job, Run, timeout
from convexboost.dask._rows import check_inputs, is_array, is_frame, partitions
from convexboost.estimators._base import BaseConvexBoost
from convexboost.estimators._frames import naming
from convexboost.estimators._input import Given, UnseenRows


class DaskModel(BaseConvexBoost):
    """Fits to Dask collections, and predicts on them lazily; the subclasses say what the targets are."""

    _ordinary: ClassVar[type[BaseConvexBoost]]

    def __init__(self, *parameters: Any, client: Any = None, **named: Any) -> None:
        super().__init__(*parameters, **named)
        self.client = client

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_ordinary" in vars(cls):
            signature = inspect.signature(cls._ordinary)
            client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
            cls.__signature__ = signature.replace(parameters=[*signature.parameters.values(), client])

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters: the client, a connection, is none."""
        return cls._ordinary._get_param_names()

    def __sklearn_clone__(self) -> Self:
        found = super().__sklearn_clone__()
        found.client = self.client
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def to_local(self) -> Any:
        """Return the ordinary estimator with this model: it predicts, explains, saves and exports."""
        check_is_fitted(self)
        found = self._blank()
        found.__dict__ |= {name: value for name, value in vars(self).items() if name != "client"}
        return found

    def _blank(self) -> BaseConvexBoost:
        return self._ordinary(**self.get_params(deep=False))

    # -- fitting --------------------------------------------------------------------------------------

    def _fit(self, given: Given) -> None:
        """Train on the workers; where that fails, the estimator is left as it was."""
        with unchanged_on_error(self):
            job = self._job(given)
            sets = {
                name: partitions(*rows, self._ordinary.__name__) for name, rows in self._sets(given).items()
            }
            client = self.client or default_client()
            fitted = Run(client, job, sets).result()
            own = self.get_params(deep=False)
            self.__dict__ |= {name: value for name, value in vars(fitted).items() if name not in own}

    def _job(self, given: Given) -> Job:
        """Check what can be checked before there is work to lose."""
        self._check_parameters()
        loss, learner = self._loss(), self._learner()
        self._check_combinations(loss, learner, given.X_val is not None, given.eval_set is not None)
        self._check_spread(loss, learner, given.X_val is not None)
        if given.y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        whole_queries, label = self._task == "ranking" or loss.whole_groups, self._group_parameter
        for name, rows, groups in (("", given.X, given.groups), ("_val", given.X_val, given.groups_val)):
            if whole_queries and rows is not None and groups is None:
                raise ValueError(f"`{label}{name}` is needed: one label per row")
        estimator = self._blank()
        # With a checkpoint the file may hold the seed.
        if self.checkpoint is None and not isinstance(self._random_state, int):
            with naming("random_state"):
                estimator.random_state = int(check_random_state(self.random_state).randint(2**31))
        return Job(estimator, whole_queries, timeout())

    def _sets(self, given: Given) -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
        """Return the sets of rows, by name: what each holds, and what the user calls it."""
        found = {TRAINING: UnseenRows(str, given.X, given.y, given.sample_weight, given.offset, given.groups)}
        validation = self._validation_arguments(given)
        if validation is not None:
            found[VALIDATION] = validation
        found |= self._sets_of(given.eval_set)
        called = {"groups": self._group_parameter}
        sets = {}
        for name, (named, *values) in found.items():
            held = zip(UnseenRows._fields[1:], values, strict=True)
            rows = {key: value for key, value in held if value is not None}
            sets[name] = rows, {key: named(called.get(key, key)) for key in rows}
        return sets

    # -- predicting -----------------------------------------------------------------------------------

    def _lazily(self, method: str, X: Any) -> Any:
        """Return what a method of the ordinary estimator returns for each partition, not computed yet."""
        local = self.to_local()
        if not is_array(X) and not is_frame(X):
            return getattr(local, method)(X)
        check_inputs(X, "X", self._ordinary.__name__)
        if is_array(X):
            sample = getattr(local, method)(np.zeros((1, X.shape[1])))
            X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
            shape = {"drop_axis": 1} if sample.ndim == 1 else {"chunks": (X.chunks[0], (sample.shape[1],))}
            predict = functools.partial(_predicted, local, method, sample)
            return da.map_blocks(predict, X, dtype=sample.dtype, meta=sample[:0], **shape)
        sample = getattr(local, method)(X._meta_nonempty)
        columns = self._columns_of(method, sample)
        predict = functools.partial(_predicted_frame, local, method, sample, columns)
        return X.map_partitions(predict, meta=predict(X._meta))

    def _columns_of(self, method: str, sample: Any) -> Any:
        """Return the names of the columns of predictions for data frames."""
        return None if sample.ndim == 1 else list(range(sample.shape[1]))

    def predict(self, X: Any) -> Any:
        """Return the prediction for each row, for Dask collections as one, with the same partitions."""
        return self._lazily("predict", X)

    def _check_inputs(self, X: Any, **options: Any) -> Any:
        if is_array(X) or is_frame(X):
            raise TypeError(
                "only `predict` and its like take Dask collections: for the rest, to_local() returns a "
                f"{self._ordinary.__name__} for rows in memory"
            )
        return super()._check_inputs(X, **options)


def _predicted(local: Any, method: str, sample: Any, part: Any) -> Any:
    """Return the predictions for a partition, which may be empty."""
    return getattr(local, method)(part) if part.shape[0] else sample[:0]


def _predicted_frame(local: Any, method: str, sample: Any, columns: Any, part: Any) -> Any:
    import pandas as pd

    found = _predicted(local, method, sample, part)
    if columns is None:
        return pd.Series(found, index=part.index, name=method)
    return pd.DataFrame(found, index=part.index, columns=columns)


class DaskConvexBoostRegressor(DaskModel, ConvexBoostRegressor):
    """ConvexBoostRegressor for Dask arrays and data frames: the rows stay on the workers that have them.

    The model is the same, bit for bit, as that of ConvexBoostRegressor on all rows in one process, whatever
    the number of workers and the partitions are.  docs/distributed.md says more.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster to train on; None is the current client.
    others
        Those of ConvexBoostRegressor, with these differences.  `learner` is "tree", "stump" or "additive".
        `loss` must not couple arbitrary rows.  `certificate`, `stop_when_gap_below`, `warm_start` and
        `scoring` keep their defaults.  early_stopping=True needs `X_val`.  With `n_jobs` None each worker
        uses its number of threads.  `callbacks` run on one worker and must be picklable.  `checkpoint` must
        be a path that all workers can reach.

    Attributes
    ----------
    all
        Those of ConvexBoostRegressor.

    """

    _ordinary = ConvexBoostRegressor


class DaskConvexBoostClassifier(DaskModel, ConvexBoostClassifier):
    """ConvexBoostClassifier for Dask arrays and data frames: the rows stay on the workers that have them.

    The model is the same, bit for bit, as that of ConvexBoostClassifier on all rows in one process, whatever
    the number of workers and the partitions are.  docs/distributed.md says more.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster to train on; None is the current client.
    others
        Those of ConvexBoostClassifier, with the differences that DaskConvexBoostRegressor lists.

    Attributes
    ----------
    all
        Those of ConvexBoostClassifier.

    """

    _ordinary = ConvexBoostClassifier

    def decision_function(self, X: Any) -> Any:
        """Return the scores of each row, for Dask collections as one, with the same partitions."""
        return self._lazily("decision_function", X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, for Dask collections as one, with the same partitions."""
        return self._lazily("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the log of the probability of each class, for Dask collections as one."""
        return self._lazily("predict_log_proba", X)

    def _columns_of(self, method: str, sample: Any) -> Any:
        return None if sample.ndim == 1 else list(self.classes_)


class DaskConvexBoostRanker(DaskModel, ConvexBoostRanker):
    """ConvexBoostRanker for Dask arrays and data frames: the rows stay on the workers that have them.

    The rows of a query may be on several workers: they are brought together on the one that has most of them.
    The model is the same, bit for bit, as that of ConvexBoostRanker on all rows in one process, whatever the
    number of workers and the partitions are.  docs/distributed.md says more.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster to train on; None is the current client.
    others
        Those of ConvexBoostRanker, with the differences that DaskConvexBoostRegressor lists.

    Attributes
    ----------
    all
        Those of ConvexBoostRanker.

    """

    _ordinary = ConvexBoostRanker

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, **rows: Any) -> Any:
        """Fit as ConvexBoostRanker does, without `query_weight`."""
        if rows.get("query_weight") is not None:
            raise ValueError(
                "`query_weight` must be None where rows are spread: it needs all rows of a query"
            )
        return super().fit(X, y, qid, sample_weight, **rows)
