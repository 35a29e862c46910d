"""Pictures of maps and paths."""

from __future__ import annotations
from typing import Any

def draw_paths(*args: Any) -> Any:
    """Draw."""
