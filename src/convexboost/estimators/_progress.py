"""What `verbose` stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from typing import Any

from convexboost.boosting.options import Options
from convexboost.boosting.training import Callback, Record
from convexboost.callbacks import ProgressBar, ProgressLines
from convexboost.core.communicator import Communicator


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


def agreed(callbacks: Sequence[Callback], communicator: Communicator) -> list[Callback]:
    """Return callbacks that only rank 0 is asked, where rows are spread over processes."""

    def ask(record: Record) -> Any:
        told = repr(astuple(replace(record, seconds=0.0)))
        communicator.stamp = hashlib.sha256(communicator.stamp + told.encode()).digest()[:8]
        wishes = [callback(record) for callback in callbacks] if communicator.rank == 0 else []
        wish = next((wish for wish in wishes if wish), None)
        return communicator.broadcast(wish if isinstance(wish, str) else bool(wish))

    return list(callbacks) if communicator.size == 1 else [ask]
