"""The pinball loss."""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from convexboost.losses._loss import Loss
from convexboost.losses._two_slopes import TwoSlopes


@dataclass(frozen=True)
class Quantile(TwoSlopes):
    """l(f, y) = Σ_k max(q (y_k − f_k), (1 − q) (f_k − y_k)): its minimiser is the q-quantile.

    Not smooth.  At the kink: 0.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile q, between 0 and 1.

    """

    quantile: float = 0.5

    name: ClassVar[str] = "quantile"
    recalibrates = True

    def __post_init__(self) -> None:
        if not (isinstance(self.quantile, Real) and 0 < self.quantile < 1):
            raise ValueError(f"`quantile` must lie in (0, 1), got {self.quantile!r}")

    @property
    def slopes(self) -> tuple[float, float]:
        """Return −q and 1 − q."""
        return -float(self.quantile), 1.0 - float(self.quantile)

    def formula(self, f: str = "f") -> str:
        """max(q (y − f), (1 − q) (f − y))."""
        return f"max({self.quantile:g} (y − {f}), {1 - self.quantile:g} ({f} − y))"

    @classmethod
    def examples(cls) -> tuple[Loss, ...]:
        """The median, and two other quantiles."""
        return (cls(), cls(0.9), cls(0.15))
