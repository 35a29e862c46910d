"""What a weak learner is: parameters, what it can read, and what "auto" means with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from convexboost.core.hypotheses import Hypothesis
from convexboost.core.parameters import Parameters
from convexboost.core.protocols import HypothesisSet, Mapper
from convexboost.core.space import FunctionSpace
from convexboost.learners._dense import RawMapper

#: How many levels deeper a stronger tree is than the one that `diagnose` is asked about.
MORE_LEVELS = 2


@dataclass(frozen=True)
class Defaults:
    """What "auto" means for the parameters of an estimator that boosts a learner."""

    #: The step where a round adds one hypothesis.
    step: str = "auto"
    #: The same by task for the members of an ensemble, whose mean forgives longer steps.
    steps_of_members: Mapping[str, str] = field(default_factory=dict)
    #: The step for losses that reweight rows (`Loss.reweights`).
    reweighting_step: str = "auto"
    #: How long the members of an ensemble, whose mean curve is smooth, wait after an early best round
    #: (`Options.early_patience`).
    early_patience: int | None = None
    #: The part of the residual that is kept from round to round.
    decay: float = 1.0
    #: The width of the Moreau envelope by task, for losses with kinks whose leaves are refitted.
    envelopes: Mapping[str, float] = field(default_factory=dict)


class Learner(Parameters, ABC):
    """A weak learner: it meets inputs and becomes a set of hypotheses.

    Everything that the layers above must know of a learner is declared here; they never ask for its class.
    A subclass is a frozen dataclass whose fields are its parameters.
    """

    #: The name by which an estimator finds it; only for the learners of this package.
    name: ClassVar[str]
    #: What "auto" means with this learner.
    auto: ClassVar[Defaults] = Defaults()
    #: The mapper and the hypotheses of its models, so that a model can be read from plain arrays.
    mapper_type: ClassVar[type[Mapper]] = RawMapper
    hypothesis_types: ClassVar[tuple[type[Hypothesis], ...]] = ()
    #: Whether X may have missing values.
    allows_missing: bool = False
    #: Whether X may be sparse.
    allows_sparse: bool = False
    #: Whether it treats categorical columns differently from numbers.
    uses_categories: bool = False
    #: Whether `bind` makes use of `targets`, for statistics of categories; if not, it need not take them.
    uses_targets: bool = False
    #: Whether it needs an output per class, also where two classes could do with one.
    needs_output_per_class: bool = False
    #: Whether the rows may be spread over processes: all sums over rows are then those of the `space`.
    spreads_rows: ClassVar[bool] = False
    #: Whether a round takes so long that `diagnose` tries fewer of them.
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
        targets: Any = None,
    ) -> HypothesisSet:
        """Meet the training inputs.  A learner ignores the arguments that it has no use for.

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
        mapper : Mapper, optional
            The mapper of a model that this learner made: the inputs are then prepared as they were for it.
        names : array of str, optional
            The names of the columns.
        groups : array of int, optional
            The number of each row's group, where the rows of a group only make sense together.
        targets : array of shape (n_samples, n_outputs), optional
            The gradient of the objective at the start, for learners that declare `uses_targets`.

        """

    def mapper(self, X: Any, space: FunctionSpace, categorical: Any = None, n_threads: int = 1) -> Mapper:
        """Return the mapper that `bind` would make; a learner may have a shorter way to it."""
        return self.bind(X, space, categorical, n_threads).mapper

    def settled(self, task: str, n_outputs: int) -> Self:
        """Return the learner with its own "auto" parameters settled.

        `task` is "classification", "regression" or "ranking"; the loss has `n_outputs`.
        """
        return self

    def stronger(self) -> Any:
        """Return a learner that fits more closely, as estimators take it; None: there is none."""
        return "tree"

    def weaker(self) -> Any:
        """Return a learner that fits less closely, as estimators take it; None: there is none."""
        return None
