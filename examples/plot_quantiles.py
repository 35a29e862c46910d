"""
Prediction intervals from one model
===================================

``loss="quantiles"`` trains all quantiles together, in one model, and they never cross.
Here the true quantiles are known, and new rows show how many of them the bands hold.
"""

# %%
# Noise that grows
# ----------------
# One input, and noise that is skewed and grows to the right: a single standard error
# would be wrong everywhere. Because the data are made up, the true quantile at any
# place is known.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import gamma

from convexboost import ConvexBoostRegressor
from convexboost.learners import Tree
from convexboost.losses import Quantiles

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)


def true_quantile(x, level):
    """Return a wave plus the quantile of gamma noise."""
    return np.sin(2 * x) + (0.15 + 0.25 * x) * (gamma.ppf(level, 2.0) - 2.0)


rng = np.random.default_rng(0)
x, x_new = np.sort(rng.uniform(0, 4, (2, 3000)))
y, y_new = (
    true_quantile(x, rng.uniform(size=3000)),
    true_quantile(x_new, rng.uniform(size=3000)),
)

# %%
# Five quantiles, one fit
# -----------------------
# The model has an output for each level.  Trees with at least 100 rows in a leaf suit
# outer quantiles, which few rows decide.  Early stopping is on by default, so there is
# no number of rounds to choose.

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
model = ConvexBoostRegressor(
    Quantiles(LEVELS), Tree(max_leaves=8, min_samples_leaf=100), random_state=0
)
model.fit(x[:, None], y)
predicted = model.predict(x_new[:, None])

# %%
# Do the bands keep their promise?
# --------------------------------
# A band from the 5 % to the 95 % quantile should hold 90 % of new rows, overall and in
# each part of the range.


def share_inside(low, high, rows=slice(None)):
    """Return how many per cent of the new rows lie between two of the quantiles."""
    inside = (predicted[rows, low] <= y_new[rows]) & (
        y_new[rows] <= predicted[rows, high]
    )
    return 100 * inside.mean()


print(
    "new rows inside, overall:",
    f"{share_inside(0, 4):.1f} % and {share_inside(1, 3):.1f} %",
)
for start in range(4):
    rows = (x_new >= start) & (x_new < start + 1)
    print(
        f"  {start} <= x < {start + 1}: {share_inside(0, 4, rows):.1f} % and "
        f"{share_inside(1, 3, rows):.1f} %"
    )
crossed = (np.diff(predicted, axis=1) < 0).any(axis=1)
print(f"rows in which quantiles cross: {crossed.sum()}")

# %%
# The bands follow the noise; the dashed lines are the truth.

grid = np.linspace(0, 4, 401)
curves = model.predict(grid[:, None]).T
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(x_new[::3], y_new[::3], ".", color="C3", ms=3, alpha=0.4, label="new rows")
ax.fill_between(
    grid, curves[0], curves[4], color="C0", alpha=0.18, lw=0, label="5 % to 95 %"
)
ax.fill_between(
    grid, curves[1], curves[3], color="C0", alpha=0.35, lw=0, label="25 % to 75 %"
)
ax.plot(grid, curves[2], color="C0", lw=2, label="median")
for level in LEVELS:
    line = ax.plot(grid, true_quantile(grid, level), "--", color="0.1", lw=0.9)
line[0].set_label("true quantiles")
ax.set(xlabel="x", ylabel="y", xlim=(0, 4), ylim=np.quantile(y_new, (0, 0.998)))
ax.legend(loc="upper left", ncols=2)
ax.set_title(
    f"The 90 % band holds {share_inside(0, 4):.0f} % of new rows,\n"
    f"the 50 % band {share_inside(1, 3):.0f} %; quantiles cross in "
    f"{crossed.sum()} of {len(crossed)} rows",
    loc="left",
    weight="bold",
)
plt.show()
