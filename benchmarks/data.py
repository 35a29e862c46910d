"""The data sets of the benchmarks: X, y and the numbers of the columns that hold categories, or None."""

from __future__ import annotations

from scipy.sparse import csr_matrix
from sklearn.datasets import (
    load_diabetes,
    load_linnerud,
    make_friedman1,
    make_gaussian_quantiles,
    make_hastie_10_2,
)

from convexboost import datasets


def _rows(name, test=None):
    """Return all rows, or those of the official split."""
    data = datasets.load(name)
    rows = slice(None) if test is None else data.test if test else data.train
    return data.X[rows], data.y[rows], list(data.categorical) or None


def letter(test=False):
    return _rows("letter", test)


def pendigits(test=False):
    return _rows("pendigits", test)


def satimage(test=False):
    return _rows("satimage", test)


def connect4():
    return _rows("connect4")


def california_housing():
    return _rows("california_housing")


def bike_sharing():
    return _rows("bike_sharing")


def abalone():
    return _rows("abalone")


def airfoil():
    return _rows("airfoil")


def mq2008():
    return _rows("mq2008", test=False)


def ohsumed():
    return _rows("ohsumed", test=False)


def lightgbm_rank():
    X, y, categorical = _rows("lightgbm_rank", test=False)
    return csr_matrix(X), y, categorical  # most of it is 0


def diabetes():
    return *load_diabetes(return_X_y=True), None


def friedman():
    return *make_friedman1(2000, 10, noise=1.0, random_state=0), None


def linnerud_weight():
    X, Y = load_linnerud(return_X_y=True)
    return X, Y[:, 0], None


def hastie():
    X, y = make_hastie_10_2(4000, random_state=0)
    return X, (y > 0).astype(int), None


def gaussian_quantiles():
    return *make_gaussian_quantiles(n_samples=4000, n_features=10, n_classes=5, random_state=0), None


CLASSIFICATION = (letter, pendigits, satimage, connect4)
REGRESSION = (california_housing, bike_sharing, abalone, airfoil)
GRADED = (mq2008, ohsumed, lightgbm_rank)  #: grades: both classes and numbers
HELD_OUT = (hastie, gaussian_quantiles, diabetes, friedman, linnerud_weight)  #: no download
