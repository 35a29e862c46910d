"""What a weak learner is: parameters, what it can read, and what "auto" means with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from convexboost.core.hypotheses import Hypothesis
from convexboost.core.parameters import Parameters
from convexboost.core.protocols import HypothesisSet
from convexboost.core.space import FunctionSpace


@dataclass(frozen=True)
class Auto:
    """What the estimators' "auto" means with a learner (estimators/_auto.py puts it together)."""

    #: The step where a round adds one hypothesis.
    step: str = "auto"
    #: The step for losses that reweight rows (`Loss.reweights`).
    reweighting_step: str = "auto"
    #: How much of the residual is kept from round to round.
    decay: float = 1.0
    #: The width of the Moreau envelope by task, for losses with kinks whose leaves are refitted.
    envelopes: Mapping[str, float] = field(default_factory=dict)
    #: Whether validation in folds chooses the number of rounds.
    finds_rounds: bool = False


class Learner(Parameters, ABC):
    """A weak learner: it meets inputs and becomes a set of hypotheses.

    Everything that the layers above must know of a learner is declared here; they never ask for its class.
    """

    name: ClassVar[str]
    #: What "auto" means with this learner.
    auto: ClassVar[Auto] = Auto()
    #: The classes of the hypotheses that it makes, so that a model can be read back from plain arrays.
    hypotheses: ClassVar[tuple[type[Hypothesis], ...]] = ()
    #: Whether X may have missing values, and whether it may be sparse.
    allows_missing: bool = False
    allows_sparse: bool = False
    #: Whether a round takes so long that trials have fewer of them.
    is_slow: bool = False

    @abstractmethod
    def bind(
        self,
        X: Any,
        space: FunctionSpace,
        categorical: Any = None,
        n_threads: int = 1,
        *,
        mapper: Any = None,
        names: Any = None,
        groups: Any = None,
    ) -> HypothesisSet:
        """Meet the training inputs.

        Parameters
        ----------
        X : array or sparse matrix
            Floats; categories are numbered.
        space : FunctionSpace
            The weights of the rows.
        categorical : array of int, optional
            The numbers of the categorical columns.
        n_threads : int
            The hypotheses do not depend on it.
        mapper : Inputs, optional
            That of a model: the inputs are then prepared as they were for this model.
        names : array of str, optional
            The names of the columns.
        groups : array of int, optional
            The number of each row's group, where the rows of a group only make sense together.

        """

    def settled(self, task: str, smoothed: bool) -> Self:
        """Return the learner with its own "auto" parameters settled.

        `task` is "classification", "regression" or "ranking"; `smoothed` says whether gradients are those of
        a Moreau envelope.
        """
        return self

    def stronger(self) -> Learner | None:
        """Return a learner that fits more closely, for `diagnose` to try; None: there is none."""
        return None

    def weaker(self) -> Learner | None:
        """Return a learner that fits less closely, for `diagnose` to try; None: there is none."""
        return None
