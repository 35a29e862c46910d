"""Classification that looks after its worst group: busy hours of bicycle rentals, on every kind of day.

    python examples/plot_worst_group.py

Is an hour busier than the median?  `WorstGroup("logistic")` minimises the mean loss of the group that fares
worst, for groups given to `fit`; the other model minimises the mean over all hours.  Both are sums of 500
stumps, too simple to be right everywhere: they must choose where to be wrong.  Trees, the default learner,
need not choose: they err less than half as often with either loss, and the worst group gains in none of the
groupings.  Change LEARNER to see it.

Look at the rightmost dots of each panel, the group with the most errors on rows that no model has seen.  All
three groupings that were tried are shown.  The promise is about the training loss: for other rows, and for
errors instead of the loss, it may fail, as it does for the weather.
"""

from pathlib import Path

import numpy as np
from style import GREY, INK, TEAL, figure, finish, label, run

from convexboost import ConvexBoostClassifier
from convexboost.datasets import load_bike_sharing
from convexboost.losses import WorstGroup

LEARNER = "stump"
GROUPINGS = {
    "workingday": {0: "day off", 1: "working day"},
    "season": {1: "winter", 2: "spring", 3: "summer", 4: "autumn"},
    "weathersit": {1: "clear", 2: "mist", 3: "light rain", 4: "heavy rain"},
}


def main(out: Path, small: bool = False) -> dict[str, float]:
    """Fit both models for every grouping, draw the errors of each group, return those of the worst."""
    data = load_bike_sharing()
    X, X_test, y, y_test = data.split()
    if small:
        X, y = X[::10], y[::10]
    busy, busy_test = y > np.median(y), y_test > np.median(y)
    n_rounds = 50 if small else 500
    options = {"learner": LEARNER, "n_rounds": n_rounds, "early_stopping": False}
    wrong = ConvexBoostClassifier("logistic", **options).fit(X, busy).predict(X_test) != busy_test

    fig, axes = figure(3, height=3.4, sharex=True)
    numbers, falls = {"errors (%) of all rows, trained on the mean": float(100 * wrong.mean())}, 0
    for ax, (column, names) in zip(axes, GROUPINGS.items(), strict=True):
        group, group_test = (A[:, data.feature_names.index(column)] for A in (X, X_test))
        model = ConvexBoostClassifier(WorstGroup("logistic"), **options).fit(X, busy, groups=group)
        robust = model.predict(X_test) != busy_test
        worst = np.zeros(2)
        for place, (g, name) in enumerate(names.items()):
            held = group_test == g
            text = f"{name}, {np.sum(group == g):,} training rows" + ("" if held.any() else ", none held out")
            label(ax, 0.0, 0.22 - place, text, INK, xycoords=("axes fraction", "data"))
            if not held.any():
                continue
            plain, ours = errors = [100 * w[held].mean() for w in (wrong, robust)]
            worst = np.maximum(worst, errors)
            ax.plot(errors, [-place, -place], color=GREY, lw=1.2, alpha=0.6)
            ax.plot(plain, -place, "o", color=GREY, ms=7)
            ax.plot(ours, -place, "o", color=TEAL, ms=7)
        falls += worst[1] < worst[0]
        ax.set_title(
            f"groups: {column}\nworst group {worst[0]:.1f} → {worst[1]:.1f} %", fontsize=9, loc="left"
        )
        ax.set(xlabel="held-out errors (%)", yticks=[], ylim=(-3.5, 0.6))
        ax.spines["left"].set_visible(False)
        ax.grid(visible=False, axis="y")
        numbers[f"worst {column}, trained on the mean"] = float(worst[0])
        numbers[f"worst {column}, trained on the worst"] = float(worst[1])
        numbers[f"all rows, trained on the worst {column}"] = float(100 * robust.mean())
    label(axes[0], 0.0, 0.16, "● trained on the mean of all rows", GREY, xycoords="axes fraction")
    label(axes[0], 0.0, 0.05, "● trained on the worst group", TEAL, xycoords="axes fraction")
    numbers["groupings that gain"] = float(falls)
    return finish(
        fig,
        out,
        f"WorstGroup lowers the held-out errors of the worst group in {falls} of {len(GROUPINGS)} groupings",
        numbers,
    )


if __name__ == "__main__":
    run(main, "worst_group")
