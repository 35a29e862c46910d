"""What `verbose` stands for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from convexboost.boosting.options import Options
from convexboost.boosting.training import Callback
from convexboost.callbacks import ProgressBar, ProgressLines


@contextmanager
def progress(verbose: int, options: Options, n_members: int) -> Iterator[list[Callback]]:
    """Give the callbacks that report: none, a bar (1), or a line for every round (2 or more)."""
    if verbose == 1:
        bar = ProgressBar(options.n_rounds, options.max_weak_learners, n_members)
        try:
            yield [bar]
        finally:
            bar.finish()
    else:
        yield [ProgressLines()] if verbose else []
