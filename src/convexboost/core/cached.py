"""`cached_property` without a lock.

Up to Python 3.11 the one of `functools` keeps a lock for all objects of a class while it computes.  Ranks
that are threads of one process would wait for each other: one inside, for a message, another for the lock.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801
        """Compute an attribute when it is first read, and keep it."""

        def __init__(self, function: Any) -> None:
            self.function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            found = vars(instance)[self.name] = self.function(instance)
            return found


__all__ = ["cached_property"]
