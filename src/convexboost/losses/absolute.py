"""The absolute error."""

from dataclasses import dataclass
from typing import ClassVar

from convexboost.losses._two_slopes import TwoSlopes


@dataclass(frozen=True)
class Absolute(TwoSlopes):
    """l(f, y) = Σ_k |f_k − y_k|.  Not smooth; the best constant is the median.  At the kink: 0."""

    name: ClassVar[str] = "absolute"
    quantile = 0.5
    slopes = (-1.0, 1.0)

    def formula(self, f: str = "f") -> str:
        """|f − y|."""
        return f"|{f} − y|"
