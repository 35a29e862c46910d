"""What a number given as a parameter may be."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def is_positive(value: Any) -> bool:
    """Return whether a value is a finite, positive number."""
    return is_number(value) and bool(value > 0)


def is_whole(value: Any, least: int) -> bool:
    """Return whether a value is a whole number of at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
