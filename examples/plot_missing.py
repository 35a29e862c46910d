"""
Missing values without imputation
=================================

Trees send missing values to the side where they fit best, split by split.  When it
means something that a value is missing, the model can use that, while filling in the
mean hides it.
"""

# %%
# Values that go missing
# ----------------------
# The diabetes data, with holes in the three most important columns: first at random,
# then where the value is high, as when a lab result beyond the range of the instrument
# is not recorded.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from convexboost import ConvexBoostRegressor

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, y = load_diabetes(return_X_y=True)
IMPORTANT = [2, 3, 8]  # body mass index, blood pressure, triglycerides


def holes(share, where):
    """Return X with a share of the values of three columns missing."""
    rng = np.random.default_rng(0)
    holed = X.copy()
    for column in IMPORTANT:
        values = X[:, column]
        missing = (
            rng.uniform(size=len(X)) < share
            if where == "at random"
            else values > np.quantile(values, 1 - share)
        )
        holed[missing, column] = np.nan
    return holed


# %%
# Two ways to deal with them
# --------------------------
# The model takes NaN as it is.  The pipeline fills in the mean of the column first.

ways = {
    "missing values as they are": ConvexBoostRegressor(random_state=0),
    "mean filled in": make_pipeline(
        SimpleImputer(), ConvexBoostRegressor(random_state=0)
    ),
}
SHARES = (0.0, 0.15, 0.3, 0.45)
folds = RepeatedKFold(n_splits=5, n_repeats=1, random_state=0)
r2 = {}
for where in ("at random", "where values are high"):
    for name, model in ways.items():
        r2[where, name] = [
            cross_val_score(model, holes(share, where), y, cv=folds).mean()
            for share in SHARES
        ]
        print(f"{where}, {name}: R²", *(f"{value:.3f}" for value in r2[where, name]))

# %%
# At random, it makes little difference.  Where values are missing because they are
# high, that they are missing says something, and the model keeps it.  (A tree can find
# rows with exactly the mean, too, but that takes two splits.)

fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained", sharey=True)
for ax, where in zip(axes, ("at random", "where values are high"), strict=True):
    for (name, marker), colour in zip(
        {"missing values as they are": "o", "mean filled in": "s"}.items(),
        ("C0", "C1"),
        strict=True,
    ):
        ax.plot(
            [100 * share for share in SHARES],
            r2[where, name],
            marker=marker,
            ms=8,
            color=colour,
            lw=2.4,
            label=name,
        )
    ax.set(
        xlabel="missing in three columns (%)",
        title=f"missing {where}",
        ylim=(0.3, 0.5),
        xticks=[0, 15, 30, 45],
    )
axes[0].set_ylabel("R² in cross-validation")
axes[0].legend(loc="lower left")
kept, filled = (np.array(r2["where values are high", name]) for name in ways)
fig.suptitle(
    "Where values are missing because they are high, "
    f"filling in the mean costs up to {(kept - filled).max():.2f} of R²",
    weight="bold",
)
plt.show()
