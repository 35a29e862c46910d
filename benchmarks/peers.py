"""The other libraries, restricted to trees of depth 1, behind one interface.

A peer makes a scikit-learn estimator for a number of rounds and a learning rate, and tells its training
error and log-loss after every round.  Everything but depth, rounds and learning rate is left at the peer's
defaults; CatBoost is given `bootstrap_type="No", random_strength=0`, with which it fits the training set
faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import data
from common import note, timed

try:
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier
except ModuleNotFoundError as error:
    raise SystemExit(f"this benchmark needs {error.name}: pip install --group bench") from None

NUMBERS, ONE_HOT, CATEGORIES = "numbers", "one-hot", "categories"

Curves = dict[str, np.ndarray]  #: "error" and "log-loss" after each round


@dataclass
class Problem:
    """A data set with class labels 0 … K − 1, and its inputs in the forms that peers want."""

    name: str
    X: np.ndarray
    y: np.ndarray
    categorical: list[int] | None = None
    _encoded: dict[str, Any] = field(default_factory=dict)
    _curves: dict[Any, Curves] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str, test: bool = False) -> Problem:
        X, y, categorical = getattr(data, name)(test=True) if test else getattr(data, name)()
        return cls(name, np.ascontiguousarray(X), y, None if categorical is None else list(categorical))

    def encoded(self, encoding: str) -> Any:
        """Return X with its categories as numbers, as 0/1 columns, or as a frame of categorical columns."""
        if encoding not in self._encoded:
            self._encoded[encoding] = self.encode(self.X, encoding)
        return self._encoded[encoding]

    def encode(self, X: np.ndarray, encoding: str) -> Any:
        """Encode other rows in the same way."""
        if encoding == ONE_HOT:
            return self._one_hot.transform(X)
        if encoding == CATEGORIES:
            return pd.DataFrame(X.astype(int)).astype("category")
        return X

    def curves(self, peer: Peer, encoding: str, rate: float, rounds: int, threads: int) -> Curves:
        """Return a peer's training curves (kept: the target and the search look at the same ones)."""
        key = (peer.name, encoding, rate, rounds)
        if key not in self._curves:
            X = self.encoded(encoding)
            self._curves[key] = peer.curves(peer.make(rounds, rate, threads, X), X, self.y)
        return self._curves[key]

    @cached_property
    def _one_hot(self) -> OneHotEncoder:
        return OneHotEncoder(sparse_output=False, dtype=np.float32).fit(self.X)


@dataclass(frozen=True)
class Peer:
    """A library: how to make its estimator, how to get its training curves, and what to search."""

    name: str
    make: Callable[[int, float, int, Any], Any]  #: (rounds, learning rate, threads, X) -> estimator
    curves: Callable[[Any, Any, np.ndarray], Curves]  #: fits the estimator
    rates: tuple[float, ...]  #: the most promising first
    max_rounds: int
    encodings: tuple[str, ...] = (NUMBERS, ONE_HOT, CATEGORIES)


@dataclass(frozen=True)
class Setting:
    """What the search for a peer came to: the fastest way to the target, or the best it did."""

    peer: str
    encoding: str
    rate: float
    rounds: int
    reached: bool
    value: float  #: error or log-loss after that many rounds


# -- the estimators --------------------------------------------------------------------------------------


def _xgboost(rounds: int, rate: float, threads: int, X: Any) -> XGBClassifier:
    return XGBClassifier(
        n_estimators=rounds,
        max_depth=1,
        learning_rate=rate,
        tree_method="hist",
        n_jobs=threads,
        enable_categorical=True,
    )


def _xgboost_curves(model: XGBClassifier, X: Any, y: np.ndarray) -> Curves:
    model.set_params(eval_metric=["merror", "mlogloss"])
    found = model.fit(X, y, eval_set=[(X, y)], verbose=False).evals_result()["validation_0"]
    return {"error": np.array(found["merror"]), "log-loss": np.array(found["mlogloss"])}


def _lightgbm(rounds: int, rate: float, threads: int, X: Any) -> LGBMClassifier:
    return LGBMClassifier(n_estimators=rounds, num_leaves=2, learning_rate=rate, n_jobs=threads, verbose=-1)


def _lightgbm_curves(model: LGBMClassifier, X: Any, y: np.ndarray) -> Curves:
    model.fit(X, y, eval_X=(X,), eval_y=(y,), eval_metric=["multi_error", "multi_logloss"])
    (found,) = model.evals_result_.values()
    return {"error": np.array(found["multi_error"]), "log-loss": np.array(found["multi_logloss"])}


def _catboost(rounds: int, rate: float, threads: int, X: Any) -> CatBoostClassifier:
    return CatBoostClassifier(
        iterations=rounds,
        depth=1,
        learning_rate=rate,
        loss_function="MultiClass",
        bootstrap_type="No",
        random_strength=0,
        cat_features=list(range(X.shape[1])) if isinstance(X, pd.DataFrame) else None,
        one_hot_max_size=255,
        thread_count=threads,
        allow_writing_files=False,
        verbose=False,
    )


def _catboost_curves(model: CatBoostClassifier, X: Any, y: np.ndarray) -> Curves:
    model.set_params(custom_metric=["Accuracy:hints=skip_train~false"])
    found = model.fit(X, y).get_evals_result()["learn"]
    return {"error": 1 - np.array(found["Accuracy"]), "log-loss": np.array(found["MultiClass"])}


def _hist_gradient_boosting(rounds: int, rate: float, threads: int, X: Any) -> HistGradientBoostingClassifier:
    # Its threads are OpenMP's, limited in common.parse.
    return HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=2, learning_rate=rate, early_stopping=False
    )


def _adaboost(rounds: int, rate: float, threads: int, X: Any) -> AdaBoostClassifier:
    # SAMME on one thread: it has no other.
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=rounds, learning_rate=rate)


def _staged_curves(model: Any, X: Any, y: np.ndarray) -> Curves:
    errors, losses = [], []
    for P in model.fit(X, y).staged_predict_proba(X):
        errors.append(np.mean(P.argmax(axis=1) != y))
        losses.append(-np.mean(np.log(np.maximum(P[np.arange(len(y)), y], 1e-300))))
    return {"error": np.array(errors), "log-loss": np.array(losses)}


XGBOOST = Peer("XGBoost", _xgboost, _xgboost_curves, (1.0, 0.7, 0.5, 0.3, 0.1), 300)
LIGHTGBM = Peer("LightGBM", _lightgbm, _lightgbm_curves, (0.5, 0.7, 0.3, 1.0), 600)
CATBOOST = Peer("CatBoost", _catboost, _catboost_curves, (1.0, 0.7, 0.5), 1000)
HIST = Peer("HistGradientBoosting", _hist_gradient_boosting, _staged_curves, (0.4, 0.3), 400)
ADABOOST = Peer("AdaBoost", _adaboost, _staged_curves, (1.0, 0.5), 300, (NUMBERS,))
PEERS = {peer.name: peer for peer in (XGBOOST, LIGHTGBM, CATBOOST, HIST, ADABOOST)}


# -- the search ------------------------------------------------------------------------------------------


def encodings(peer: Peer, problem: Problem) -> tuple[str, ...]:
    """Return the forms of X to try: one where there are no categories."""
    return peer.encodings if problem.categorical else (NUMBERS,)


def fit(setting: Setting, problem: Problem, threads: int) -> Any:
    """Train a peer as its setting says: a plain fit from X, which is what is timed."""
    X = problem.encoded(setting.encoding)
    model = PEERS[setting.peer].make(setting.rounds, setting.rate, threads, X)
    return model.fit(X, problem.y)


def search(peer: Peer, problem: Problem, measure: str, target: float, threads: int, cap: int) -> Setting:
    """Find the encoding and learning rate that bring a peer to the target fastest.

    For each encoding the rate that needs the fewest rounds; then the encoding that needs the least time.
    """
    found: list[tuple[float, Setting]] = []
    for encoding in encodings(peer, problem):
        tried = list(_tries(peer, problem, encoding, measure, target, threads, min(cap, peer.max_rounds)))
        there = [setting for setting in tried if setting.reached]
        if there:
            quickest = min(there, key=lambda setting: setting.rounds)
            found.append((timed(lambda s=quickest: fit(s, problem, threads))[0], quickest))
        else:
            found.append((np.inf, min(tried, key=lambda setting: setting.value)))
    _, setting = min(found, key=lambda pair: (pair[0], pair[1].value))
    state = f"{setting.rounds} rounds" if setting.reached else f"not reached, {measure} {setting.value:.4f}"
    note(f"{peer.name} on {problem.name}: {setting.encoding}, rate {setting.rate}, {state}")
    return setting


def _tries(
    peer: Peer, problem: Problem, encoding: str, measure: str, target: float, threads: int, cap: int
) -> Iterator[Setting]:
    for rate in peer.rates:
        if cap < 1:
            return
        curve = problem.curves(peer, encoding, rate, cap, threads)[measure]
        hits = np.flatnonzero(curve <= target)
        if len(hits):
            cap = int(hits[0])  # another rate is of interest only if it needs fewer rounds
            yield Setting(peer.name, encoding, rate, cap + 1, True, float(curve[cap]))
        else:
            best = int(np.argmin(curve))
            yield Setting(peer.name, encoding, rate, best + 1, False, float(curve[best]))
