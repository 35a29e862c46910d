"""Short runs that show whether another setting would help; for `diagnose`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.model_selection import train_test_split

from convexboost.core.space import Array, FunctionSpace
from convexboost.estimators._auto import rounds
from convexboost.estimators._frames import naming
from convexboost.inspection.diagnosis import Trial
from convexboost.kernels.hashing import signature

MAX_ROWS = 5000
MAX_ROUNDS = 200
#: The same for learners that take longer for a round.
MAX_SLOW_ROUNDS = 50
HELD_OUT = 0.25
ALGORITHMS = ("naive", "repeated", "residual")
OWN = "the model's own settings"


def run(model: Any, X: Any, y: Any) -> list[Trial]:
    """Train the model's own settings first, then one change at a time; the same budget of weak learners."""
    X_train, X_held, y_train, y_held = _split(model, X, y)
    return [
        _trial(model, name, change, parameters, (X_train, X_held, y_train, y_held))
        for name, change, parameters in _changes(model)
    ]


def _changes(model: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the changes to try: a name, the parameter that is changed, and what to set."""
    changes: list[tuple[str, str, dict[str, Any]]] = [(OWN, "", {})]
    for name in ALGORITHMS:
        if name != model._settled.options.algorithm.name:
            others = {"residual_decay": "auto", "accuracy": None}  # they belong to the algorithm of the model
            changes.append((f"algorithm={name!r}", "algorithm", {"algorithm": name, **others}))
    if not (model._is_auto("step") and model._is_auto("learning_rate")):
        changes.append(("step='auto'", "step", {"step": "auto", "learning_rate": "auto"}))
    learner = model._settled.settled_learner
    for other in (learner.stronger(), learner.weaker()):
        if other is not None:
            changes.append((f"learner={other!r}", "learner", {"learner": other}))
    return changes


def _trial(model: Any, name: str, change: str, parameters: dict[str, Any], parts: Any) -> Trial:
    X_train, X_held, y_train, y_held = parts
    defaults = model._defaults()
    trial = clone(model)
    vars(trial).update(  # not by `set_params`: a subclass may have other parameters
        callbacks=None,
        verbose=0,
        certificate=False,
        stop_when_gap_below=None,
        output="best",
        early_stopping=False,
        **{unused: defaults[unused] for unused in ("validation_fraction", "n_iter_no_change", "scoring")},
        **parameters,
    )
    slow = change == "learner" and trial._learner().is_slow
    budget = min(MAX_ROUNDS, rounds(model), MAX_SLOW_ROUNDS if slow else MAX_ROUNDS)
    vars(trial).update(n_rounds=budget, max_weak_learners=budget)
    trial.fit(X_train, y_train, X_val=X_held, y_val=y_held)
    history = trial.history_
    return Trial(
        name,
        change,
        float(history["validation"][0]),
        float(np.nanmin(history["objective"])),
        float(np.nanmin(history["validation"])),
        int(history["weak_learners"][-1]),
    )


def validation(model: Any, X: Any, y: Any) -> Array:
    """Return the loss on these rows after each round of the model, NaN where it has no more rounds."""
    with naming("y"):
        targets = model._encode_validation_targets(y, "y")
    X = model._check_inputs(X)
    if X.shape[0] != len(targets):
        raise ValueError(f"`y` must have {X.shape[0]} rows like `X`, got {len(targets)}")
    if signature(X, targets) == model._rows_of_fit:
        raise ValueError(
            "`X` and `y` must be rows that the model was not trained on; these are the rows that `fit` got"
        )
    out = np.full(len(model.history_["objective"]), np.nan)
    if why_not(model):
        return out
    start = model.model_.start
    objective = model.loss_.bind(targets, FunctionSpace.of(len(targets)), model._n_classes())
    values = [objective.value(np.tile(start, (len(targets), 1)))]
    values += [objective.value(F) for F in model.model_.staged_predict(X)]
    out[: len(values)] = values
    return out


def why_not(model: Any) -> str:
    """Return why the loss on other rows cannot be followed round by round; "" where it can."""
    if model._settled.options.output == "average":
        return "the stages of an average are not the iterates of the run; give X_val and y_val to fit."
    if model.loss_.needs_groups:
        return "the loss needs groups, which diagnose does not take; give X_val, y_val and groups_val to fit."
    return ""


def _split(model: Any, X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Hold out a quarter of at most `MAX_ROWS` rows; classes seen only there are left out."""
    y = np.asarray(y)
    n_rows = len(y)
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(n_rows, MAX_ROWS, replace=False)) if n_rows > MAX_ROWS else np.arange(n_rows)
    train, held = train_test_split(rows, test_size=HELD_OUT, random_state=0)
    if is_classifier(model):
        held = held[np.isin(y[held], y[train])]
    if len(held) == 0:
        raise ValueError(f"`trials` need more rows than {n_rows}")
    return _take(X, train), _take(X, held), y[train], y[held]


def _take(X: Any, rows: Any) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if sp.issparse(X):
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]
