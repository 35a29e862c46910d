"""Regression that cares about its worst rows: CVaR against the mean, on hourly bicycle rentals.

    python examples/plot_cvar.py

`CVaR("absolute", 0.9)` is the mean of the largest tenth of the absolute errors.  The other two models
minimise the mean absolute and the mean squared error.  All three are sums of 500 stumps, which cannot say
that rush hours are busy on working days only: too simple to be right everywhere, they must choose where to
be wrong.  Trees, the default learner, need not choose: their errors are smaller with every loss, and CVaR,
which learns from a tenth of the rows at a time, has no advantage left.  Change LEARNER to see it.

Look at the right end of the curves: how large the largest errors are on rows that no model has seen.  What
CVaR gains there it loses on the ordinary rows, further left.
"""

from pathlib import Path

import numpy as np
from style import AMBER, GREY, TEAL, figure, finish, label, run

from convexboost import ConvexBoostRegressor
from convexboost.datasets import load_bike_sharing
from convexboost.losses import CVaR

LEARNER = "stump"
LEVEL = 0.9
MODELS = {
    "absolute error": ("absolute", GREY),
    "squared error": ("half_squared", AMBER),
    f"CVaR {LEVEL:g} of the absolute error": (CVaR("absolute", LEVEL), TEAL),
}


def main(out: Path, small: bool = False) -> dict[str, float]:
    """Fit the three, draw the quantiles of their held-out errors, return the tails."""
    X, X_test, y, y_test = load_bike_sharing().split()
    if small:
        X, y = X[::10], y[::10]
    errors = {
        name: np.sort(
            np.abs(
                ConvexBoostRegressor(loss, LEARNER, n_rounds=50 if small else 500, early_stopping=False)
                .fit(X, y)
                .predict(X_test)
                - y_test
            )
        )
        for name, (loss, _) in MODELS.items()
    }
    first = int(LEVEL * len(y_test))
    tails = {name: float(e[first:].mean()) for name, e in errors.items()}

    fig, (left, right) = figure(2, gridspec_kw={"width_ratios": [1.25, 1]})
    share = (np.arange(len(y_test)) + 0.5) / len(y_test)
    for name, e in errors.items():
        left.plot(share, e, color=MODELS[name][1], lw=1.8)
    left.axvspan(LEVEL, 1, color=TEAL, alpha=0.08, lw=0)
    label(left, LEVEL - 0.01, errors["absolute error"][-1], "the worst tenth", TEAL, ha="right", va="top")
    left.set(xlabel="share of the held-out rows, best first", ylabel="absolute error (bicycles)", xlim=(0, 1))

    places = np.arange(len(MODELS))[::-1]
    means = {name: float(e.mean()) for name, e in errors.items()}
    for place, name in zip(places, MODELS, strict=True):
        colour = MODELS[name][1]
        right.plot([means[name], tails[name]], [place, place], color=colour, lw=1.2, alpha=0.5)
        right.plot(means[name], place, "o", color=colour, mfc="white", ms=7)
        right.plot(tails[name], place, "o", color=colour, ms=7)
        label(right, means[name], place + 0.12, f"{means[name]:.0f}", colour, ha="center")
        label(right, tails[name], place + 0.12, f"{tails[name]:.0f}", colour, ha="center")
        label(right, (means[name] + tails[name]) / 2, place - 0.24, name, colour, ha="center")
    right.set(xlabel="mean error: of all rows ○, of the worst tenth ●", yticks=[], ylim=(-0.5, 2.5))
    right.spines["left"].set_visible(False)
    right.grid(visible=False, axis="y")

    ours, (other, best) = list(tails.values())[-1], min(list(tails.items())[:-1], key=lambda item: item[1])
    numbers = {f"{name}, worst tenth": tail for name, tail in tails.items()}
    numbers |= {f"{name}, all rows": mean for name, mean in means.items()}
    verdict = "is smaller" if ours < best else "is NOT smaller"
    return finish(
        fig,
        out,
        f"The worst tenth of the held-out errors {verdict} with CVaR: {ours:.0f} bicycles on average, "
        f"against {best:.0f} with the {other}",
        numbers,
    )


if __name__ == "__main__":
    run(main, "cvar")
