"""The data sets of the experiments, and a reader for learning-to-rank files.

    from convexboost.datasets import load_letter
    data = load_letter()
    X_train, X_test, y_train, y_test = data.split()

A file is looked for in the folder `CONVEXBOOST_DATA`, then in the cache (`CONVEXBOOST_CACHE`, by default
~/.cache/convexboost), then downloaded from its source and kept in the cache.  What was parsed is compared
with a checksum, so a copy with other line ends or packed with gzip is the same data.
"""

from convexboost.datasets._dataset import Dataset, Fold, Grid
from convexboost.datasets._letor import load_mslr, read_letor
from convexboost.datasets._loaders import (
    available,
    load,
    load_abalone,
    load_airfoil,
    load_bike_sharing,
    load_california_housing,
    load_connect4,
    load_elevation,
    load_letter,
    load_lightgbm_rank,
    load_mq2008,
    load_ohsumed,
    load_pendigits,
    load_satimage,
    load_terrain,
)

__all__ = [
    "Dataset",
    "Fold",
    "Grid",
    "available",
    "load",
    "load_abalone",
    "load_airfoil",
    "load_bike_sharing",
    "load_california_housing",
    "load_connect4",
    "load_elevation",
    "load_letter",
    "load_lightgbm_rank",
    "load_mq2008",
    "load_mslr",
    "load_ohsumed",
    "load_pendigits",
    "load_satimage",
    "load_terrain",
    "read_letor",
]
