"""A fit changes an estimator wholly or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Give an estimator its attributes back if what is done inside raises, Ctrl-C included.

    A fit sets attributes as it goes.  One that fails must leave an estimator that was not fitted without any
    of them, and a fitted one with those of its model.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise
