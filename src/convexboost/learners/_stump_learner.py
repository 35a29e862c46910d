"""What the stump learners share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from convexboost.core.hypotheses import Hypothesis
from convexboost.core.numbers import is_number, is_whole
from convexboost.core.space import FunctionSpace
from convexboost.learners._bin_function import BinFunction
from convexboost.learners._bins import MAX_BINS, BinMapper, BinnedSample, bin_sample
from convexboost.learners._learner import Learner
from convexboost.learners._stumps import StumpSet


@dataclass(frozen=True)
class StumpLearner(Learner):
    """What the stump learners share: they differ in what a leaf may hold."""

    max_bins: int = MAX_BINS
    max_table_mb: float = 512
    kind: ClassVar[int]

    allows_missing = allows_sparse = True
    uses_categories = spreads_rows = True
    mapper_type = BinMapper
    hypothesis_types: ClassVar[tuple[type[Hypothesis], ...]] = (BinFunction,)

    def __post_init__(self) -> None:
        if not (is_whole(self.max_bins, 2) and self.max_bins <= MAX_BINS):
            raise ValueError(
                f"`max_bins` must be a whole number between 2 and {MAX_BINS}, got {self.max_bins!r}"
            )
        if not (is_number(self.max_table_mb) and self.max_table_mb >= 0):
            raise ValueError(f"`max_table_mb` must be a number of at least 0, got {self.max_table_mb!r}")

    def bind(
        self,
        X: Any,
        space: FunctionSpace,
        categorical: Any = None,
        n_threads: int = 1,
        *,
        mapper: BinMapper | None = None,
        names: Any = None,
        groups: Any = None,
        targets: Any = None,
    ) -> StumpSet:
        """Bin the training inputs, anew or by the `mapper` of a model."""
        sample = bin_sample(X, space, self.max_bins, categorical, n_threads, mapper)
        return self._set(sample, int(self.max_table_mb * 2**20))

    def _set(self, sample: BinnedSample, max_table_bytes: int) -> StumpSet:
        return StumpSet(sample, self.kind, max_table_bytes)
