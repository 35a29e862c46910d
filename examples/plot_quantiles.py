"""Several quantiles with one model: `loss="quantiles"` gives a band for every row.

    python examples/plot_quantiles.py

One input, noise that grows and is skewed, so that the true quantiles are known (dashed).  The model has five
outputs, one per quantile, trained together.  Settings are default, but for `learner="additive"`, which fits
smooth curves.

Look at where the bands are wide, and at the shares in the title: of fresh rows, how many lie inside.  The
quantiles never cross because predictions are sorted, which cannot raise the loss; how often the raw scores
would have crossed is printed too.
"""

from pathlib import Path

import numpy as np
from scipy.stats import gamma
from style import GREY, INK, TEAL, figure, finish, label, run

from convexboost import ConvexBoostRegressor
from convexboost.losses import Quantiles

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def truth(x: np.ndarray, q: float) -> np.ndarray:
    """Return the q-quantile of y at x: a wave, plus gamma noise that grows with x."""
    return np.sin(2 * x) + (0.15 + 0.25 * x) * (gamma.ppf(q, 2.0) - 2.0)


def main(out: Path, small: bool = False) -> dict[str, float]:
    """Fit, draw the bands, return coverage and crossings."""
    rng = np.random.default_rng(0)
    x, x_test = (np.sort(rng.uniform(0, 4, n)) for n in ((300, 300) if small else (3000, 3000)))
    y, y_test = (truth(at, rng.uniform(size=len(at))) for at in (x, x_test))
    model = ConvexBoostRegressor(Quantiles(LEVELS), "additive", random_state=0)
    model.fit(x[:, None], y)
    Q = model.predict(x_test[:, None])

    def share(low: int, high: int) -> float:
        return 100 * float(np.mean((Q[:, low] <= y_test) & (y_test <= Q[:, high])))

    def crossings(F: np.ndarray) -> float:
        return 100 * float(np.mean((np.diff(F, axis=1) < 0).any(axis=1)))

    numbers = {
        "rows in the 90 % band (%)": share(0, 4),
        "rows in the 50 % band (%)": share(1, 3),
        "crossings (%)": crossings(Q),
        "crossings before sorting (%)": crossings(model.model_.predict(x_test[:, None])),
    }
    fig, ax = figure()
    ax.plot(x_test[::3], y_test[::3], ".", color=GREY, ms=3, alpha=0.35)
    grid = np.linspace(0, 4, 401)
    curves = model.predict(grid[:, None]).T
    ax.fill_between(grid, curves[0], curves[4], color=TEAL, alpha=0.15, lw=0)
    ax.fill_between(grid, curves[1], curves[3], color=TEAL, alpha=0.3, lw=0)
    ax.plot(grid, curves[2], color=TEAL, lw=1.8)
    for k, q in enumerate(LEVELS):
        ax.plot(grid, truth(grid, q), "--", color=INK, lw=0.8)
        label(ax, 4.03, truth(np.array(4.0), q), f"{100 * q:g} %", TEAL if k == 2 else INK, va="center")
    ax.set(xlabel="x", ylabel="y", xlim=(0, 4), ylim=tuple(np.quantile(y_test, (0, 0.998))))
    label(ax, 0.05, ax.get_ylim()[1], "dots: some fresh rows; dashed: true quantiles", INK, va="top")
    return finish(
        fig,
        out,
        f"The 90 % band holds {share(0, 4):.0f} % of fresh rows, the 50 % band "
        f"{share(1, 3):.0f} %; quantiles cross in {crossings(Q):.0f} % of them",
        numbers,
    )


if __name__ == "__main__":
    run(main, "quantiles")
