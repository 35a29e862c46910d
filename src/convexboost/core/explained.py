"""What each column contributes to a score."""

from __future__ import annotations

from typing import Any, Protocol

from convexboost.core.space import Array


class Explained(Protocol):
    """Σ weight * h, split up by the columns of X.

    `out` has the rows last: (n_columns, n_outputs, n_rows) and, for pairs of columns, (n_columns, n_columns,
    n_outputs, n_rows).  Inputs are those that the mapper of the model prepares.
    """

    def expectation(self) -> Array:
        """Return the mean over the training rows, as the contributions take it: (n_outputs,)."""

    def add_contributions(self, out: Array, inputs: Any, background: Any) -> None:
        """Add the Shapley values of the columns at each row.

        They add up to h − `expectation` or, with `background` rows, to h minus its mean over these.
        """

    def add_interactions(self, out: Array, inputs: Any) -> None:
        """Add the Shapley interaction values of pairs of different columns; the diagonal is left alone."""
