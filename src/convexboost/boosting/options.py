"""The options of a run, checked once and handed on as one object."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar, overload

import numpy as np

from convexboost.boosting.algorithms import Algorithm
from convexboost.boosting.steps import STEPS, Step
from convexboost.boosting.variants import ALGORITHMS
from convexboost.core.numbers import is_positive, is_whole
from convexboost.core.protocols import Objective
from convexboost.registry import resolve

OUTPUTS = ("last", "best", "average")

T = TypeVar("T")


class Named(Generic[T]):
    """A field that is given a name or an object, and holds the object."""

    def __init__(self, kind: type[T], classes: dict[str, type[T]], default: str) -> None:
        self.kind, self.classes, self.default = kind, classes, default

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> str: ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any]) -> str | T:
        if instance is None:
            return self.default
        found: T = vars(instance)[self.name]
        return found

    def __set__(self, instance: object, value: str | T) -> None:
        found = resolve(self.name, value, self.classes)
        if not isinstance(found, self.kind):
            raise ValueError(f"`{self.name}` must be a name or of type {self.kind.__name__}, got {value!r}")
        vars(instance)[self.name] = found


@dataclass(frozen=True)
class Options:
    """How to train: the algorithm, its step, and when to stop.

    Parameters
    ----------
    algorithm : str or Algorithm, default="residual"
        "naive", "repeated", "residual", "dual_averaging", "error_feedback", or an object.
    step : str or Step, default="auto"
        "auto", "inverse_sqrt:0.5", ..., or an object.
    n_rounds : int, default=500
        The largest number of rounds.
    max_weak_learners : int or None, default=None
        The largest number of weak learners.  Training ends when either limit is reached.
    output : {"best", "last", "average"}, default="best"
        Which iterate becomes the model.  Guarantees are for "best" and "average".
    n_iter_no_change : int or None, default=None
        Stop when the validation loss (the objective without a validation set) has not improved for this many
        rounds.
    early_patience : int or None, default=None
        Wait only this many rounds and a tenth of the best round, where that is less than `n_iter_no_change`:
        a run that was at its best early need not wait as long as one that improves slowly.
    validation_decides : bool, default=True
        Whether "best" and `n_iter_no_change` go by the validation set, where there is one.  False: by the
        objective; the validation loss is only recorded.
    random_state : int, Generator or None, default=None
        For weak learners that draw random numbers.
    certificate : bool, default=False
        Collect what is needed to bound the distance of the objective from its minimum (`Result.certificate`).
    stop_when_gap_below : float or None, default=None
        Stop when the objective is certified to be at most this far above its minimum over all sums of
        hypotheses.  Needs `l2` > 0, or a loss with a known minimum.

    Names are turned into objects: the fields `algorithm` and `step` hold an `Algorithm` and a `Step`.

    """

    algorithm: Named[Algorithm] = Named(Algorithm, ALGORITHMS, "residual")
    step: Named[Step] = Named(Step, STEPS, "auto")
    n_rounds: int = 500
    max_weak_learners: int | None = None
    output: str = "best"
    n_iter_no_change: int | None = None
    early_patience: int | None = None
    validation_decides: bool = True
    random_state: int | np.random.Generator | None = None
    certificate: bool = False
    stop_when_gap_below: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.output, str) or self.output not in OUTPUTS:
            raise ValueError(f"`output` must be one of {', '.join(OUTPUTS)}, got {self.output!r}")
        if not is_whole(self.n_rounds, 0):
            raise ValueError(f"`n_rounds` must be a whole number of at least 0, got {self.n_rounds!r}")
        for name in ("max_weak_learners", "n_iter_no_change", "early_patience"):
            value = getattr(self, name)
            if value is not None and not is_whole(value, 1):
                raise ValueError(f"`{name}` must be a positive integer or None, got {value!r}")
        if not isinstance(self.validation_decides, bool):
            raise ValueError(f"`validation_decides` must be True or False, got {self.validation_decides!r}")
        gap = self.stop_when_gap_below
        if gap is not None and not is_positive(gap):
            raise ValueError(f"`stop_when_gap_below` must be positive or None, got {gap!r}")

    @property
    def certifies(self) -> bool:
        """Return whether lower bounds on the objective are needed in training."""
        return self.certificate or self.stop_when_gap_below is not None

    @property
    def weak_learners(self) -> float:
        """Return the largest number of weak learners, infinity where there is no limit."""
        return math.inf if self.max_weak_learners is None else self.max_weak_learners

    def patience(self, best_round: int) -> float:
        """Return how many rounds without improvement end training, infinity where none do."""
        most = math.inf if self.n_iter_no_change is None else self.n_iter_no_change
        return most if self.early_patience is None else min(self.early_patience + 0.1 * best_round, most)

    def check(self, objective: Objective) -> None:
        """Raise ValueError for an objective that cannot be certified, where that is asked for."""
        if self.certifies:
            check_certifiable(objective.envelope)
        gap = self.stop_when_gap_below
        if gap is not None and objective.constants.minimum is None and not objective.l2 > 0.0:
            raise ValueError(
                f"`stop_when_gap_below`={gap!r} cannot be certified: the loss has no known minimum and "
                "`l2` is 0"
            )


def check_certifiable(envelope: float) -> None:
    """Refuse to certify gradients that are not those of the objective."""
    if envelope > 0.0:
        raise ValueError(
            f"`envelope`={envelope!r} and a certificate cannot be combined: its gradients are those of "
            "another function"
        )


def with_settings(options: Options | None, settings: dict[str, Any]) -> Options:
    """Return the options with some fields set."""
    if not isinstance(options, Options | None):
        raise TypeError(f"`options` must be Options or None, got {options!r}")
    known = [f.name for f in fields(Options)]
    for name in settings:
        if name not in known:
            raise TypeError(f"`{name}` is not an option of training, which are {', '.join(known)}")
    return replace(options or Options(), **settings)
