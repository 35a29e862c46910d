"""What a user with strict types writes; `mypy --strict` must have nothing to say (test_typing.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import convexboost
from convexboost import (
    ConvergenceDisplay,
    ConvexBoostClassifier,
    ConvexBoostRanker,
    ConvexBoostRegressor,
    FunctionSpace,
    ModelFormatError,
    Options,
    boost,
    certify,
    check_loss,
)
from convexboost.boosting import Polyak, Record, Residual
from convexboost.callbacks import TimeBudget
from convexboost.learners import Stump, Tree
from convexboost.losses import Absolute, CVaR, Loss, Quantile, RowLoss, as_loss, maximum
from convexboost.metrics import ndcg

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Late(RowLoss):
    """Being late costs more."""

    factor: float = 3.0

    def evaluate(self, F: Matrix, y: Any) -> tuple[Matrix, Matrix]:
        """Return the costs and their slopes."""
        over = F - y
        return np.maximum(over, -self.factor * over).sum(axis=1), np.where(over > 0, 1.0, -self.factor)


class Duck:
    """A loss without a base class."""

    def evaluate(self, F: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
        """Return ½ (f − y)² and f − y."""
        return 0.5 * ((F - y) ** 2).sum(axis=1), F - y


def late(record: Record) -> bool:
    """Stop after ten rounds."""
    return record.round >= 10


def regression(X: Matrix, y: Matrix, folder: Path) -> tuple[Matrix, float]:
    """Fit, predict, save, load, explain."""
    combined: Loss = 2 * Late() + Absolute()
    worst: Loss = CVaR(combined, 0.9)
    print(check_loss(worst, y), as_loss(Duck()) + Quantile(0.9), maximum(Late(), Absolute()))
    model = ConvexBoostRegressor(
        loss=combined,
        learner=Tree(max_leaves=7, monotone_constraints={0: 1}),
        algorithm=Residual(decay=0.5),
        step=Polyak(target=0.0),
        n_rounds=20,
        early_stopping=False,
        callbacks=[TimeBudget(10.0), late],
        random_state=0,
    ).fit(X, y, sample_weight=np.ones(len(y)))
    path = folder / "model.cbm"
    model.save(path)
    copy = ConvexBoostRegressor.load(path, loss=combined)
    try:
        anything: Any = convexboost.load(path, loss=combined)
    except ModelFormatError as error:
        raise SystemExit(str(error)) from error
    contributions: Matrix = copy.predict_contributions(X)
    rounds: int = model.best_round_
    print(anything, contributions.shape, rounds, model.feature_importances_.sum(), model.diagnose())
    print(picture(model))
    return copy.predict(X), float(copy.score(X, y))


def classification(X: Matrix, y: NDArray[np.int64]) -> Matrix:
    """Return probabilities."""
    model = ConvexBoostClassifier("logistic", "stump", l2=0.1, n_rounds=20, certificate=True).fit(X, y)
    assert model.certificate_ is not None
    print(model.classes_, model.certificate_.gap(), model.certify(X, y).gap())
    probabilities: Matrix = model.predict_proba(X)
    return probabilities


def ranking(X: Matrix, grades: Matrix, qid: NDArray[np.int64]) -> float:
    """Return the NDCG."""
    model = ConvexBoostRanker(n_rounds=20).fit(X, grades, qid=qid)
    return ndcg(grades, model.predict(X), qid, k=5)


def without_scikit_learn(X: Matrix, y: Matrix) -> float:
    """Train an objective on a set of hypotheses."""
    space = FunctionSpace(np.full(len(y), 1 / len(y)))
    objective = Absolute().bind(y[:, None], space)
    hypotheses = Stump().bind(X, space)
    result = boost(objective, hypotheses, Options(n_rounds=20, algorithm="residual", step="auto"))
    gap: float = certify(objective, hypotheses, result.model).gap()
    return gap


def picture(model: ConvexBoostRegressor) -> str:
    """Draw the run; return the title."""
    display = ConvergenceDisplay.from_estimator(model)
    display.ax_.set_title("a run")
    return display.ax_.get_title()


if __name__ == "__main__":
    import tempfile

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=120)
    with tempfile.TemporaryDirectory() as name:
        print(regression(X, y, Path(name)))
    print(classification(X, (y > 0).astype(np.int64))[:3])
    print(ranking(X, np.digitize(y, [0.0, 1.0]).astype(float), np.repeat(np.arange(12), 10)))
    print(without_scikit_learn(X, y))
