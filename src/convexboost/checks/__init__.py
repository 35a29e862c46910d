"""Checks of a loss: are value and gradient those of one convex function, with the right factor and shape.

`check_loss` tries a loss out, as scikit-learn's `check_estimator` does with estimators; `guarded` does a
small part of it in every fit with a user's own loss.  `_mistakes` holds the checks, `_declared` those of
what a loss declares, `_names` finds the name of a mistake, and `_probe` evaluates a loss and measures its
rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convexboost.checks._declared import check_weights
from convexboost.checks._first_rounds import guarded
from convexboost.checks._mistakes import look, search
from convexboost.checks._probe import Probe, quiet
from convexboost.checks._report import LossError, LossReport, LossWarning
from convexboost.core.space import Array, FunctionSpace
from convexboost.losses._custom import as_loss
from convexboost.losses._groups import Groups
from convexboost.losses._loss import Loss

__all__ = ["LossError", "LossReport", "LossWarning", "check_loss", "guarded"]


def check_loss(
    loss: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    n_classes: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> LossReport:
    """Look for mistakes in a loss: raise `LossError` that names the first one, or return a `LossReport`.

    Tried at ordinary, large, tiny and tied scores, on the targets, at the start, and at kinks found by
    search: shapes, finite values, convexity, value and gradient of the same function with the right factor, a
    subgradient at kinks, weights, arguments left alone, no randomness, and all that the loss declares.

    Parameters
    ----------
    loss : str, Loss or object
        Whatever the estimators take.
    y : array
        Targets like those it is for.  A few hundred rows are enough.
    sample_weight, groups : array of shape (n_samples,), optional
        As in `fit`.
    n_classes : int, optional
        How many classes `y` has.  Targets are taken as classes if this is given, if the loss is for classes,
        or if they are not numbers.
    random_state : int, Generator or None
        For the points.

    """
    loss = as_loss(loss)
    targets, n_classes = _targets(loss, y, n_classes)
    given, n = Groups.of(groups), len(targets)
    if given is not None and len(given.labels) != n:
        raise ValueError(f"`groups` must have {n} labels like `y`, got {len(given.labels)}")

    def bind(rows: Any, weight: Array | None) -> Any:
        return loss.bind(targets[rows], FunctionSpace.of(len(rows), weight), n_classes, given)

    with quiet():
        objective = bind(np.arange(n), _weights(sample_weight, n))
        # Targets may have been drawn with the same seed: not the same numbers.
        rng = np.random.default_rng(random_state).spawn(1)[0]
        probe = search(Probe(objective, loss, rng, thorough=True))
        check_weights(probe, bind, given is not None)
        if probe.method and not probe.by_rows and sample_weight is None:
            look(
                bind(np.arange(n), np.resize([1.0, 2.0, 3.0], n))
            )  # the gradient may use weights unlike the value
        return _report(probe)


def _report(probe: Probe) -> LossReport:
    ordinary = [point for point in probe.points if point.name.startswith("random")]
    return LossReport(
        loss=str(probe.loss),
        evaluations=probe.evaluations,
        n_points=len(probe.points),
        coupled=not probe.by_rows,
        kinks=probe.kinks,
        lipschitz=max(float(probe.lengths(p.G, dual=True)[p.finite].max(initial=0.0)) for p in ordinary),
        minimum=min(map(probe.risk, probe.points)),
        notes=tuple(probe.notes),
    )


def _targets(loss: Loss, y: Any, n_classes: int | None) -> tuple[Any, int | None]:
    """Turn labels into class numbers."""
    y = np.asarray(y)
    if loss.task not in ("classification", "binary") and n_classes is None and y.dtype.kind not in "OUSb":
        return y, None
    if y.ndim != 1:
        raise ValueError(f"`y` must have shape (n_samples,) for classes, got {y.shape}")
    labels, numbers = np.unique(y, return_inverse=True)
    if n_classes is not None and y.dtype.kind in "iu" and labels[0] >= 0 and labels[-1] < n_classes:
        return y, n_classes
    if n_classes is not None and len(labels) > n_classes:
        raise ValueError(f"`n_classes` is {n_classes}, but `y` has {len(labels)} classes")
    return numbers, n_classes or max(len(labels), 2)


def _weights(sample_weight: Any, n_rows: int) -> Array | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, float)
    if weight.shape != (n_rows,) or not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError(f"`sample_weight` must hold {n_rows} positive numbers, got shape {weight.shape}")
    return weight
