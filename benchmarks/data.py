"""The real data sets of the benchmarks, read from the folder CONVEXBOOST_DATA."""

from __future__ import annotations

import gzip
import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_diabetes,
    load_linnerud,
    load_svmlight_file,
    make_friedman1,
    make_gaussian_quantiles,
    make_hastie_10_2,
)


def folder() -> Path:
    default = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("CONVEXBOOST_DATA", default))
    if not path.is_dir():
        raise SystemExit("set CONVEXBOOST_DATA to the folder with the data sets (letter/, pendigits/, ...)")
    return path


def _table(name: str, **options) -> pd.DataFrame:
    return pd.read_csv(folder() / name, header=None, **options)


def _classes(labels) -> np.ndarray:
    return pd.factorize(labels, sort=True)[0]


def letter(test=False):
    table = _table("letter/letter-recognition.data.gz")[slice(16000, None) if test else slice(16000)]
    return table.iloc[:, 1:].to_numpy(float), _classes(table[0]), None


def pendigits(test=False):
    table = _table(f"pendigits/pendigits.{'tes' if test else 'tra'}.gz")
    return table.iloc[:, :-1].to_numpy(float), _classes(table[16]), None


def satimage(test=False):
    table = _table(f"satimage/sat.{'tst' if test else 'trn'}.gz", sep=r"\s+")
    return table.iloc[:, :-1].to_numpy(float), _classes(table[36]), None


def connect4():
    table = _table("connect4/connect-4.data.gz")
    return (
        np.column_stack([_classes(table[j]) for j in range(42)]).astype(float),
        _classes(table[42]),
        range(42),
    )


def california_housing():
    table = _table("california_housing/cal_housing.data.gz").to_numpy(float)
    return table[:, :-1], table[:, -1], None


def bike_sharing():
    table = pd.read_csv(folder() / "bike_sharing/hour.csv.gz")
    X = table.drop(columns=["instant", "dteday", "casual", "registered", "cnt"])
    return X.to_numpy(float), table["cnt"].to_numpy(float), None


def abalone():
    table = _table("abalone/abalone.data")
    table[0] = _classes(table[0])
    return table.iloc[:, :-1].to_numpy(float), table[8].to_numpy(float), [0]


def airfoil():
    table = np.loadtxt(folder() / "airfoil/airfoil_self_noise.dat")
    return table[:, :-1], table[:, -1], None


def _letor(name: str, n_features: int):
    parts = (gzip.decompress((folder() / name / f"S{i}.txt.gz").read_bytes()) for i in (1, 2, 3))
    X, y = load_svmlight_file(BytesIO(b"".join(parts)), n_features=n_features)
    return X.toarray(), y, None


def mq2008():
    return _letor("mq2008", 46)


def ohsumed():
    return _letor("ohsumed", 45)


def lightgbm_rank():
    text = gzip.decompress((folder() / "lightgbm_rank/rank.train.gz").read_bytes())
    X, y = load_svmlight_file(BytesIO(text), n_features=300)
    return X, y, None


def diabetes():
    return *load_diabetes(return_X_y=True), None


def friedman():
    return *make_friedman1(2000, 10, noise=1.0, random_state=0), None


def linnerud_weight():
    X, Y = load_linnerud(return_X_y=True)
    return X, Y[:, 0], None


def hastie():
    X, y = make_hastie_10_2(4000, random_state=0)
    return X, _classes(y), None


def gaussian_quantiles():
    return *make_gaussian_quantiles(n_samples=4000, n_features=10, n_classes=5, random_state=0), None


CLASSIFICATION = (letter, pendigits, satimage, connect4)
REGRESSION = (california_housing, bike_sharing, abalone, airfoil)
GRADED = (mq2008, ohsumed, lightgbm_rank)  #: grades: both classes and numbers
HELD_OUT = (hastie, gaussian_quantiles, diabetes, friedman, linnerud_weight)  #: no download
