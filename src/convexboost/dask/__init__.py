"""Train on Dask arrays and data frames, on all workers of a cluster, without bringing the rows together."""

from convexboost.dask._models import (
    DaskConvexBoostClassifier,
    DaskConvexBoostRanker,
    DaskConvexBoostRegressor,
)
from convexboost.dask._transport import WorkerLostError

__all__ = [
    "DaskConvexBoostClassifier",
    "DaskConvexBoostRanker",
    "DaskConvexBoostRegressor",
    "WorkerLostError",
]
