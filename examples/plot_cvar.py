"""
When the worst errors are what counts
=====================================

``CVaR("absolute", 0.9)`` minimises the mean of the largest tenth of the errors.  It
helps a simple model, which has to choose where to be wrong; it does not help a model
that can be right everywhere.
"""

# %%
# A model that people can read
# ----------------------------
# Bicycle rentals: on working days there are two rush hours, on days off one long
# afternoon.  The model is a sum of two curves, one of the hour and one of the kind of
# day, so it cannot say that rush hours belong to working days only.

import matplotlib.pyplot as plt
import numpy as np

from convexboost import ConvexBoostRegressor
from convexboost.losses import CVaR

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)


def rentals(n_rows, seed):
    """Return hours and kinds of days, and how many bicycles are rented."""
    rng = np.random.default_rng(seed)
    hour, working = rng.uniform(0, 24, n_rows), rng.uniform(size=n_rows) < 5 / 7

    def peak(center, width):
        return np.exp(-0.5 * ((hour - center) / width) ** 2)

    on_working_days = 300 * peak(8, 1) + 350 * peak(17.5, 1.5) + 80 * peak(13, 3)
    mean = 20 + np.where(working, on_working_days, 220 * peak(14, 3.5))
    return np.column_stack([hour, working]), mean + 15 * rng.normal(size=n_rows)


X, y = rentals(3000, seed=0)
X_new, y_new = rentals(3000, seed=1)

# %%
# Three losses, two learners
# --------------------------
# The worst tenth is measured on new rows.

LOSSES = {
    "absolute error": ("absolute", "C2"),
    "squared error": ("half_squared", "C1"),
    "CVaR": (CVaR("absolute", 0.9), "C0"),
}
errors, models = {}, {}
for learner in ("additive", "tree"):
    for name, (loss, _) in LOSSES.items():
        model = models[learner, name] = ConvexBoostRegressor(
            loss, learner, random_state=0
        ).fit(X, y)
        errors[learner, name] = np.sort(np.abs(model.predict(X_new) - y_new))
tail = {key: sizes[int(0.9 * len(sizes)) :].mean() for key, sizes in errors.items()}
for (learner, name), sizes in errors.items():
    print(
        f"{learner:>8}, {name:>14}: mean error {sizes.mean():5.1f}, worst "
        f"tenth {tail[learner, name]:5.1f}"
    )

# %%
# CVaR gives up some precision everywhere to avoid the disasters on days off.  What is
# best depends on what errors cost. Trees need not choose: all their errors are small,
# and CVaR, which learns from a tenth of the rows at a time, has no advantage left.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.3), layout="constrained")
hour = np.linspace(0, 24, 289)
day_off = np.column_stack([hour, np.zeros_like(hour)])
free = X_new[:, 1] == 0
left.plot(X_new[free, 0], y_new[free], ".", color="C3", ms=4, alpha=0.6)
share = 100 * (np.arange(len(y_new)) + 0.5) / len(y_new)
for name, (_, colour) in LOSSES.items():
    left.plot(hour, models["additive", name].predict(day_off), color=colour, lw=2.5)
    right.plot(share, errors["additive", name], color=colour, lw=2.5, label=name)
left.set(
    xlabel="hour",
    ylabel="bicycles",
    xlim=(0, 24),
    xticks=range(0, 25, 6),
    title="days off: new rows and three models",
)
right.axvspan(90, 100, color="C2", alpha=0.25, lw=0)
right.set(
    xlabel="new rows, smallest error first (%)",
    ylabel="absolute error",
    xlim=(0, 100),
    ylim=(0, None),
)
right.set_title("all days; shaded: the worst tenth")
right.legend(loc="upper left", title="trained on", title_fontsize=10)
squared, cvar = tail["additive", "squared error"], tail["additive", "CVaR"]
fig.suptitle(
    f"Mean of the worst tenth of the errors: {cvar:.0f} trained on CVaR, "
    f"{squared:.0f} on the squared error",
    weight="bold",
)
plt.show()
