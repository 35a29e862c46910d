"""The three algorithms side by side on the digits that ship with scikit-learn: multiclass hinge, stumps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from convexboost.boosting.training import Callback
from convexboost.core.space import Array
from convexboost.estimators import ConvexBoostClassifier
from convexboost.paper.curve import PAPER
from convexboost.paper.study import Curve, Results, Study, Unit, line_figure
from convexboost.reports.content import Section, Table


def train(algorithm: str, weak_learners: int, callback: Callback) -> Curve:
    """Train one of the paper's algorithms, and follow its errors."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    model = ConvexBoostClassifier(
        loss="multiclass_hinge",
        learner="stump",
        algorithm=algorithm,
        n_rounds=weak_learners,
        max_weak_learners=weak_learners,
        output="last",
        early_stopping=False,
        callbacks=[callback],
    ).fit(X, y)
    errors = {"train_error": _errors(model, X, y), "test_error": _errors(model, X_test, y_test)}
    facts = {"distinct stumps": len(np.unique(model.chosen_))}
    return Curve.of(model.history_, "digits", algorithm, extras=errors, facts=facts)


def _errors(model: ConvexBoostClassifier, X: Array, y: Any) -> Array:
    """Return the share of wrong predictions after each round; NaN for the start."""
    return np.array([np.nan, *(np.mean(predicted != y) for predicted in model.staged_predict(X))])


# --- The study ---------------------------------------------------------------------------------------------


def study(weak_learners: int) -> Study:
    """Return the three runs; the paper claims nothing about these data."""
    settings = {
        "data": "scikit-learn's digits, 1,347 rows for training, 450 for testing",
        "loss": "multiclass hinge",
    }
    units = [_unit(algorithm, weak_learners) for algorithm in PAPER]
    settings |= {"weak learner": "stump", "weak learners": f"at most {weak_learners}", "step": "auto"}
    return Study("digits", "Handwritten digits", INTRO, settings, units, sections, lambda _: [])


def _unit(algorithm: str, weak_learners: int) -> Unit:
    def run(callback: Callback) -> Curve:
        return train(algorithm, weak_learners, callback)

    settings = {"dataset": "digits", "algorithm": algorithm, "weak_learners": weak_learners}
    return Unit(algorithm, f"digits, {algorithm}", run, settings, weak_learners)


INTRO = """
Ten classes, the multiclass hinge, stumps: the paper's setting on a data set that ships with scikit-learn.
Nothing is tuned. The naive algorithm projects the subgradient and forgets the rest; *repeated* projects what
is left of it again and again; *residual* carries it over to the next round.
"""


def sections(results: Results) -> list[Section]:
    """Show objective and errors."""
    curves = list(results.values())
    figures = [
        line_figure("Training objective, best so far", curves, "objective", best=True),
        line_figure("Test error", curves, "test_error", ylabel="share of wrong predictions"),
    ]
    return [Section("Convergence", [*figures, _table(curves)])]


def _table(curves: list[Curve]) -> Table:
    """Each algorithm at its best objective."""
    rows = []
    for curve in curves:
        best = int(np.argmin(curve["objective"]))
        errors = [
            float(curve.columns[n][best]) if n in curve.columns else np.nan
            for n in ("train_error", "test_error")
        ]
        distinct = curve.facts.get("distinct stumps", np.nan)
        last = [curve[name][-1] for name in ("weak_learners", "gradient_evaluations", "seconds")]
        rows.append((curve.name, curve["objective"][best], *errors, distinct, *last))
    names = ("algorithm", "best objective", "training error", "test error", "distinct stumps")
    return Table(
        (*names, "weak learners", "gradients", "seconds"), rows, "Errors are those at the best objective."
    )
