"""The three algorithms side by side on the digits that ship with scikit-learn: multiclass hinge, stumps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from convexboost.boosting.training import Callback, Record
from convexboost.core.space import Array
from convexboost.estimators import ConvexBoostClassifier
from convexboost.learners._bin_function import BinFunction
from convexboost.paper.report.content import Section, Table
from convexboost.paper.study import Curve, Results, Study, Unit, Watch, line_figure

PAPER = ("naive", "repeated", "residual")


@dataclass(frozen=True)
class Curves:
    """One algorithm's run."""

    algorithm: str
    history: dict[str, Array]
    train_error: Array  #: after each round, from round 1
    test_error: Array
    distinct_stumps: int

    @classmethod
    def of(cls, curve: Curve) -> Curves:
        """Undo `curve`."""
        errors = curve["train_error"][1:], curve["test_error"][1:]
        return cls(curve.algorithm, dict(curve.columns), *errors, curve.facts["distinct stumps"])

    def curve(self) -> Curve:
        """Return the run for a study; there is no error at the start."""
        errors = {"train_error": self.train_error, "test_error": self.test_error}
        extras = {name: np.append(np.nan, column) for name, column in errors.items()}
        facts = {"distinct stumps": self.distinct_stumps}
        return Curve.of(self.history, "digits", self.algorithm, extras=extras, facts=facts)


def compare(weak_learners: int, watch: Callable[[str, Record], Any] | None = None) -> list[Curves]:
    """Train each algorithm with the same budget of weak learners."""
    curves = []
    for algorithm in PAPER:

        def callback(record: Record, algorithm: str = algorithm) -> None:
            if watch is not None:
                watch(algorithm, record)

        curves.append(train(algorithm, weak_learners, callback))
    return curves


def train(algorithm: str, weak_learners: int, watch: Callback) -> Curves:
    """Train one of them."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    model = ConvexBoostClassifier(
        loss="multiclass_hinge",
        learner="stump",
        algorithm=algorithm,
        n_rounds=weak_learners,
        max_weak_learners=weak_learners,
        output="last",
        callbacks=[watch],
    ).fit(X, y)
    errors = _errors(model, X, y), _errors(model, X_test, y_test)
    distinct = len({_split(h) for _, h in model.model_.terms})
    return Curves(algorithm, model.history_, *errors, distinct)


def _errors(model: ConvexBoostClassifier, X: Array, y: Any) -> Array:
    return np.array([np.mean(predicted != y) for predicted in model.staged_predict(X)])


def _split(h: Any) -> tuple[int, bytes]:
    assert isinstance(h, BinFunction)
    return h.feature, h.leaf_of_bin.tobytes()


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
    def run(watch: Watch) -> Curve:
        return train(algorithm, weak_learners, watch).curve()

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
