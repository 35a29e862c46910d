"""How values and objects are shown: short, and as a user wrote them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

#: Entries of an array or a list that a repr shows; of longer ones it shows the size.
SHOWN = 3


def shown(value: Any) -> str:
    """Return a value as its user wrote it: 0.0, not np.float64(0.0)."""
    plain = isinstance(value, np.generic) and value.dtype.kind in "biufcSU"
    return repr(value.item() if plain else value)


def brief(self: Any) -> str:
    """Return the repr of a dataclass on one line; of arrays and long lists only type and size."""
    parts = (f"{f.name}={_brief(getattr(self, f.name))}" for f in fields(self) if f.repr)
    return f"{type(self).__name__}({', '.join(parts)})"


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        few = value.ndim == 1 and len(value) <= SHOWN
        return repr(value.tolist()) if few else brief_array(value)
    if isinstance(value, list | tuple | dict) and len(value) > SHOWN:
        return f"<{type(value).__name__} of {len(value)} items>"
    return repr(value)


def brief_array(value: Any) -> str:
    """Return the type and the shape of an array."""
    return f"<{value.dtype} array, shape {value.shape}>"
