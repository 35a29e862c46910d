"""The libraries of accuracy.py: how each is asked for an objective, trained, and looked at while it grows.

Nothing here knows a data set: a model is made from the objective, a setting and a seed alone.  At its
defaults a library gets an empty setting; the settings of a search come from `trials`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import qmc

CLASSES, RANKING, SQUARED, ABSOLUTE, QUANTILES = "classes", "ranking", "squared", "absolute", "quantiles"
LOW, HIGH = "quantile:0.1", "quantile:0.9"
LEVELS = (0.1, 0.5, 0.9)  #: of the objective "quantiles"
PATIENCE = 50  #: rounds without a better validation loss that end a trial

Setting = Mapping[str, Any]


class Rows(NamedTuple):
    """Some rows of a data set; the rows of a query are adjacent."""

    X: Any  #: an array, or a frame whose categorical columns have that dtype
    y: np.ndarray
    qid: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Rows:
        """Return these rows."""
        X = self.X.iloc[rows] if isinstance(self.X, pd.DataFrame) else self.X[rows]
        return Rows(X, self.y[rows], None if self.qid is None else self.qid[rows])

    @property
    def queries(self) -> np.ndarray:
        """Return the queries, numbered 0, 1, ... in the order of the rows."""
        assert self.qid is not None
        return np.cumsum(np.append(0, self.qid[1:] != self.qid[:-1]))


# -- the space of the search -----------------------------------------------------------------------------

#: What is drawn, from where, and whether evenly in the logarithm.  The same points for every library.
SPACE: dict[str, tuple[float, float, bool]] = {
    "rate": (0.03, 0.3, True),
    "leaves": (8, 128, True),
    "min_leaf": (1, 50, True),
    "l2": (0.01, 10.0, True),
    "rows": (0.5, 1.0, False),
    "columns": (0.5, 1.0, False),
}


def points(n_trials: int) -> list[dict[str, float]]:
    """Draw settings from SPACE: random, but evenly spread in each direction (a Latin hypercube)."""
    drawn = qmc.LatinHypercube(len(SPACE), rng=0).random(n_trials)
    return [
        {
            name: float(low * (high / low) ** u if log else low + (high - low) * u)
            for (name, (low, high, log)), u in zip(SPACE.items(), point, strict=True)
        }
        for point in drawn
    ]


def trials(library: Library, n_trials: int) -> list[dict[str, Any]]:
    """Return the settings of a search, in a library's own words."""
    return [library.translate(point) for point in points(n_trials)]


def best_rounds(
    library: Library,
    model: Any,
    X: Any,
    score: Callable[[np.ndarray], Mapping[str, float]],
    method: str = "predict",
) -> dict[str, dict[str, Any]]:
    """Return the least score of a trained model over its numbers of rounds, and where it is, by measure."""
    rounds = stages(library.n_rounds(model))
    found = [score(P) for P in library.staged(model, X, rounds, method)]
    best = {m: int(np.argmin(np.nan_to_num([one[m] for one in found], nan=np.inf))) for m in found[0]}
    return {
        "scores": {m: found[k][m] for m, k in best.items()},
        "rounds": {m: rounds[k] for m, k in best.items()},
    }


def stages(last: int) -> list[int]:
    """Return the numbers of rounds that are looked at, each a tenth larger than the one before."""
    return sorted({*(int(n) for n in 1.1 ** np.arange(0, np.log(last) / np.log(1.1))), last})


# -- the libraries ---------------------------------------------------------------------------------------


class Library:
    """What accuracy.py asks of a library."""

    name: str
    package: str
    rounds: str  #: the parameter with the number of rounds
    words: ClassVar[Mapping[str, str]]  #: its parameter for each direction of SPACE
    objectives: ClassVar[Mapping[str, Setting]]  #: what asks for an objective
    draws = True  #: whether its defaults draw anything, so that seeds matter

    def translate(self, point: Mapping[str, float]) -> dict[str, Any]:
        """Turn a point of SPACE into parameters; what has no parameter is left out."""
        whole = {"leaves", "min_leaf"}
        return {
            word: round(point[name]) if name in whole else round(point[name], 4)
            for name, word in self.words.items()
        }

    def make(self, objective: str, setting: Setting, seed: int) -> Any:
        """Return an estimator on one thread."""
        raise NotImplementedError

    def fit(self, model: Any, train: Rows, held: Rows | None = None) -> Any:
        """Train; with `held`, until the loss there has not improved for PATIENCE rounds."""
        raise NotImplementedError

    def n_rounds(self, model: Any) -> int:
        """Return how many rounds were trained."""
        raise NotImplementedError

    def predict(self, model: Any, X: Any, method: str = "predict") -> np.ndarray:
        """Return classes, numbers or scores; with "predict_proba", the probability of each class."""
        return np.asarray(getattr(model, method)(X))

    def staged(
        self, model: Any, X: Any, rounds: Sequence[int], method: str = "predict"
    ) -> Iterator[np.ndarray]:
        """Yield the predictions after so many rounds, for increasing numbers of them."""
        raise NotImplementedError


class Ours(Library):
    """Our estimators, with one of our losses."""

    name, package, rounds = "convexboost", "convexboost", "n_rounds"
    words: ClassVar = {
        "rate": "rate",
        "leaves": "max_leaves",
        "min_leaf": "min_samples_leaf",
        "l2": "reg_lambda",
        "rows": "subsample",
        "columns": "colsample_bytree",
    }
    objectives: ClassVar = {
        SQUARED: {"loss": "half_squared"},
        ABSOLUTE: {"loss": "absolute"},
        LOW: {"loss": LOW},
        HIGH: {"loss": HIGH},
        QUANTILES: {"loss": "quantiles"},
        RANKING: {"loss": "ranking_hinge"},
    }

    def translate(self, point: Mapping[str, float]) -> dict[str, Any]:
        """Half of the trials draw cuts at random, the others columns for the best cuts."""
        low, high, _ = SPACE["columns"]
        if point["columns"] < (low + high) / 2:
            return {**super().translate(point), "colsample_bytree": 1.0, "splits": "random"}
        return {**super().translate(point), "splits": "best"}

    def make(self, objective: str, setting: Setting, seed: int) -> Any:
        """Return an estimator; all of `setting` but the rate and the rounds is about the tree.

        A given number of rounds is meant: by itself it would look for a smaller one.
        """
        from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor
        from convexboost.learners.tree import Tree

        kinds = {CLASSES: ConvexBoostClassifier, RANKING: ConvexBoostRanker}
        options = dict(setting)
        of_fit = {key: options.pop(key) for key in (self.rounds, "output") if key in options}
        if self.rounds in of_fit:
            of_fit["early_stopping"] = False
        if "rate" in options:
            of_fit["step"] = f"refit:{options.pop('rate')}"
        if options:
            of_fit["learner"] = Tree(**options)
        kind = kinds.get(objective, ConvexBoostRegressor)
        return kind(**self.objectives[objective], **of_fit, random_state=seed, n_jobs=1)

    def fit(self, model: Any, train: Rows, held: Rows | None = None) -> Any:
        """Train; keeps the rounds after the best one too, which `staged` goes through."""
        options: dict[str, Any] = {} if train.qid is None else {"qid": train.qid}
        if held is not None:
            model.set_params(early_stopping=True, n_iter_no_change=PATIENCE, output="last")
            options |= {"X_val": held.X, "y_val": held.y}
            options |= {} if held.qid is None else {"qid_val": held.qid}
        return model.fit(train.X, train.y, **options)

    def n_rounds(self, model: Any) -> int:
        """Return how many rounds were trained."""
        return int(model.n_rounds_)

    def staged(
        self, model: Any, X: Any, rounds: Sequence[int], method: str = "predict"
    ) -> Iterator[np.ndarray]:
        """Yield the predictions after so many rounds."""
        yield from _pick(getattr(model, f"staged_{method}")(X), rounds)


class OursHinge(Ours):
    """Our classifier with the multiclass hinge."""

    name = "convexboost, hinge"
    objectives: ClassVar = {CLASSES: {"loss": "multiclass_hinge"}}


class OursSoftmax(Ours):
    """Our classifier with softmax, its default."""

    name = "convexboost, softmax"
    objectives: ClassVar = {CLASSES: {"loss": "softmax"}}


class LightGBM(Library):
    """LightGBM."""

    name, package, rounds = "LightGBM", "lightgbm", "n_estimators"
    draws = False
    words: ClassVar = {
        "rate": "learning_rate",
        "leaves": "num_leaves",
        "min_leaf": "min_child_samples",
        "l2": "reg_lambda",
        "rows": "subsample",
        "columns": "colsample_bytree",
    }
    objectives: ClassVar = {
        CLASSES: {},
        SQUARED: {},
        ABSOLUTE: {"objective": "regression_l1"},
        LOW: {"objective": "quantile", "alpha": 0.1},
        HIGH: {"objective": "quantile", "alpha": 0.9},
        RANKING: {"objective": "lambdarank"},
    }

    def translate(self, point: Mapping[str, float]) -> dict[str, Any]:
        """Rows are drawn only if a frequency is given."""
        return {**super().translate(point), "subsample_freq": 1}

    def make(self, objective: str, setting: Setting, seed: int) -> Any:
        """Return an estimator on one thread."""
        import lightgbm

        kinds = {CLASSES: lightgbm.LGBMClassifier, RANKING: lightgbm.LGBMRanker}
        kind = kinds.get(objective, lightgbm.LGBMRegressor)
        return kind(**self.objectives[objective], **setting, random_state=seed, n_jobs=1, verbose=-1)

    def fit(self, model: Any, train: Rows, held: Rows | None = None) -> Any:
        """Train; early stopping by its own metric, all rounds kept."""
        options: dict[str, Any] = {} if train.qid is None else {"group": np.bincount(train.queries)}
        if held is not None:
            options |= {"eval_X": (held.X,), "eval_y": (held.y,), "callbacks": [_Patience()]}
            if held.qid is not None:
                options |= {"eval_group": [np.bincount(held.queries)], "eval_at": (10,)}
        return model.fit(train.X, train.y, **options)

    def n_rounds(self, model: Any) -> int:
        """Return how many rounds were trained."""
        return int(model.booster_.current_iteration())

    def staged(
        self, model: Any, X: Any, rounds: Sequence[int], method: str = "predict"
    ) -> Iterator[np.ndarray]:
        """Yield the predictions after so many rounds."""
        for n in rounds:
            yield getattr(model, method)(X, num_iteration=n)


class XGBoost(Library):
    """XGBoost."""

    name, package, rounds = "XGBoost", "xgboost", "n_estimators"
    draws = False
    words: ClassVar = {
        "rate": "learning_rate",
        "leaves": "max_leaves",
        "min_leaf": "min_child_weight",
        "l2": "reg_lambda",
        "rows": "subsample",
        "columns": "colsample_bytree",
    }
    objectives: ClassVar = {
        CLASSES: {},
        SQUARED: {},
        ABSOLUTE: {"objective": "reg:absoluteerror"},
        LOW: {"objective": "reg:quantileerror", "quantile_alpha": 0.1},
        HIGH: {"objective": "reg:quantileerror", "quantile_alpha": 0.9},
        QUANTILES: {"objective": "reg:quantileerror", "quantile_alpha": list(LEVELS)},
        RANKING: {"objective": "rank:ndcg"},
    }

    def translate(self, point: Mapping[str, float]) -> dict[str, Any]:
        """Grow by leaves, without a limit of the depth."""
        return {**super().translate(point), "grow_policy": "lossguide", "max_depth": 0}

    def make(self, objective: str, setting: Setting, seed: int) -> Any:
        """Return an estimator on one thread."""
        import xgboost

        kinds = {CLASSES: xgboost.XGBClassifier, RANKING: xgboost.XGBRanker}
        kind = kinds.get(objective, xgboost.XGBRegressor)
        fixed = {"random_state": seed, "n_jobs": 1, "enable_categorical": True}
        return kind(**self.objectives[objective], **setting, **fixed)

    def fit(self, model: Any, train: Rows, held: Rows | None = None) -> Any:
        """Train; early stopping by its own metric."""
        options: dict[str, Any] = {} if train.qid is None else {"qid": train.queries}
        if held is not None:
            model.set_params(early_stopping_rounds=PATIENCE)
            options["eval_set"] = [(held.X, held.y)]
            if held.qid is not None:
                model.set_params(eval_metric="ndcg@10")
                options["eval_qid"] = [held.queries]
        return model.fit(train.X, train.y, verbose=False, **options)

    def n_rounds(self, model: Any) -> int:
        """Return how many rounds were trained."""
        return int(model.get_booster().num_boosted_rounds())

    def staged(
        self, model: Any, X: Any, rounds: Sequence[int], method: str = "predict"
    ) -> Iterator[np.ndarray]:
        """Yield the predictions after so many rounds."""
        for n in rounds:
            yield getattr(model, method)(X, iteration_range=(0, n))


class CatBoost(Library):
    """CatBoost: symmetric trees, of 2^depth leaves, which have no least number of rows."""

    name, package, rounds = "CatBoost", "catboost", "iterations"
    words: ClassVar = {"rate": "learning_rate", "l2": "l2_leaf_reg", "rows": "subsample", "columns": "rsm"}
    objectives: ClassVar = {
        CLASSES: {},
        SQUARED: {},
        ABSOLUTE: {"loss_function": "MAE"},
        LOW: {"loss_function": "Quantile:alpha=0.1"},
        HIGH: {"loss_function": "Quantile:alpha=0.9"},
        QUANTILES: {"loss_function": f"MultiQuantile:alpha={','.join(map(str, LEVELS))}"},
        RANKING: {"loss_function": "YetiRank"},
    }

    def translate(self, point: Mapping[str, float]) -> dict[str, Any]:
        """The depth of a tree with so many leaves; `random_strength` takes the place of the least leaf."""
        depth = round(float(np.log2(point["leaves"])))
        low, high, _ = SPACE["min_leaf"]
        strength = float(np.log(point["min_leaf"] / low) / np.log(high / low))
        own = {"depth": depth, "random_strength": round(2.0 * strength, 4), "bootstrap_type": "Bernoulli"}
        return {**super().translate(point), **own}

    def make(self, objective: str, setting: Setting, seed: int) -> Any:
        """Return an estimator on one thread."""
        import catboost

        kinds = {CLASSES: catboost.CatBoostClassifier, RANKING: catboost.CatBoostRanker}
        kind = kinds.get(objective, catboost.CatBoostRegressor)
        fixed = {"random_seed": seed, "thread_count": 1, "allow_writing_files": False, "verbose": False}
        return kind(**self.objectives[objective], **setting, **fixed)

    def fit(self, model: Any, train: Rows, held: Rows | None = None) -> Any:
        """Train; early stopping by its own loss, all rounds kept."""
        options: dict[str, Any] = {}
        if held is not None:
            options = {"early_stopping_rounds": PATIENCE, "use_best_model": False}
            options["eval_set"] = self._pool(held)
        return model.fit(self._pool(train), **options)

    def _pool(self, rows: Rows) -> Any:
        import catboost

        queries = None if rows.qid is None else rows.queries
        return catboost.Pool(_words(rows.X), rows.y, group_id=queries, cat_features=_categorical(rows.X))

    def n_rounds(self, model: Any) -> int:
        """Return how many rounds were trained."""
        return int(model.tree_count_)

    def predict(self, model: Any, X: Any, method: str = "predict") -> np.ndarray:
        """Return classes, numbers, scores or probabilities: classes come as a column."""
        return _without_column(getattr(model, method)(_words(X)))

    def staged(
        self, model: Any, X: Any, rounds: Sequence[int], method: str = "predict"
    ) -> Iterator[np.ndarray]:
        """Yield the predictions after so many rounds."""
        for n in rounds:
            yield _without_column(getattr(model, method)(_words(X), ntree_end=n))


class HistGradientBoosting(Library):
    """scikit-learn's HistGradientBoosting, which draws no rows and does not rank."""

    name, package, rounds = "HistGradientBoosting", "scikit-learn", "max_iter"
    words: ClassVar = {
        "rate": "learning_rate",
        "leaves": "max_leaf_nodes",
        "min_leaf": "min_samples_leaf",
        "l2": "l2_regularization",
        "columns": "max_features",
    }
    objectives: ClassVar = {
        CLASSES: {},
        SQUARED: {},
        ABSOLUTE: {"loss": "absolute_error"},
        LOW: {"loss": "quantile", "quantile": 0.1},
        HIGH: {"loss": "quantile", "quantile": 0.9},
    }

    def make(self, objective: str, setting: Setting, seed: int) -> Any:
        """Return an estimator; OpenMP's threads are limited outside.

        A given number of rounds is meant: by itself it would stop early on more than 10,000 rows.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind = HistGradientBoostingClassifier if objective == CLASSES else HistGradientBoostingRegressor
        given = {"early_stopping": False} if self.rounds in setting else {}
        return kind(**self.objectives[objective], **setting, **given, random_state=seed)

    def fit(self, model: Any, train: Rows, held: Rows | None = None) -> Any:
        """Train; early stopping by its own loss."""
        options: dict[str, Any] = {}
        if held is not None:
            model.set_params(early_stopping=True, n_iter_no_change=PATIENCE)
            options = {"X_val": held.X, "y_val": held.y}
        return model.fit(train.X, train.y, **options)

    def n_rounds(self, model: Any) -> int:
        """Return how many rounds were trained."""
        return int(model.n_iter_)

    def staged(
        self, model: Any, X: Any, rounds: Sequence[int], method: str = "predict"
    ) -> Iterator[np.ndarray]:
        """Yield the predictions after so many rounds."""
        yield from _pick(getattr(model, f"staged_{method}")(X), rounds)


OURS = (OursHinge(), OursSoftmax(), Ours())
PEERS = (LightGBM(), XGBoost(), CatBoost(), HistGradientBoosting())
LIBRARIES = {library.name: library for library in (*OURS, *PEERS)}


class _Patience:
    """LightGBM's early stopping, without what it does in the end: to drop the rounds after the best one."""

    def __init__(self) -> None:
        self.best, self.since = -np.inf, 0

    def __call__(self, env: Any) -> None:
        from lightgbm.callback import EarlyStopException

        _, _, value, higher_is_better = env.evaluation_result_list[0][:4]
        value = value if higher_is_better else -value
        if value > self.best:
            self.best, self.since = value, env.iteration
        elif env.iteration - self.since >= PATIENCE:
            raise EarlyStopException(env.iteration, env.evaluation_result_list)


def _categorical(X: Any) -> list[Any]:
    return list(X.select_dtypes("category").columns) if isinstance(X, pd.DataFrame) else []


def _words(X: Any) -> Any:
    """Return categories as words, a missing one as the word "nan"."""
    words = {c: X[c].astype(object).where(X[c].notna(), "nan").astype(str) for c in _categorical(X)}
    return X.assign(**words) if words else X


def _without_column(P: Any) -> np.ndarray:
    P = np.asarray(P)
    return P[:, 0] if P.ndim == 2 and P.shape[1] == 1 else P


def _pick(stages: Iterator[np.ndarray], rounds: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield the stages with these numbers, counted from 1."""
    done = 0
    for n in rounds:
        yield next(islice(stages, n - done - 1, None))
        done = n
