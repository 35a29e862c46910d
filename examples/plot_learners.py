"""
Which weak learner?
===================

The weak learner decides what shapes a model can have: sums of curves, boxes, or smooth
bumps.  The loss and all other settings are the same in every picture.
"""

# %%
# A problem with an interaction
# -----------------------------
# Two classes on a plane, with noise.  The border is a spiral, so neither column says
# much by itself.

import matplotlib.pyplot as plt
import numpy as np

from convexboost import ConvexBoostClassifier

plt.style.use(["seaborn-v0_8-white", "seaborn-v0_8-notebook", "tableau-colorblind10"])


def spiral(n_rows, seed):
    """Return points, and whether they lie on an arm of a spiral; 5 % are wrong."""
    rng = np.random.default_rng(seed)
    radius, angle = (
        3 * np.sqrt(rng.uniform(size=n_rows)),
        rng.uniform(0, 2 * np.pi, n_rows),
    )
    y = np.sin(2 * angle + 2 * radius) > 0
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X, np.where(rng.uniform(size=n_rows) < 0.05, ~y, y).astype(int)


X, y = spiral(1500, seed=0)
X_new, y_new = spiral(5000, seed=1)

# %%
# Four learners
# -------------
# - ``"stump"`` adds one split of one column per round, and ``"additive"`` a function of
#   every column at once: both are sums of curves, which people can read, and blind to
#   interactions.
# - ``"tree"``, the default, makes boxes.
# - ``"network"`` has one small hidden layer, for smooth borders.
#
# Any scikit-learn regressor can be a weak learner, too:
# ``learner=ExtraTreeRegressor(max_leaf_nodes=31)``.

LEARNERS = {
    "stump": "stump",
    "additive": "additive",
    "tree (default)": "tree",
    "network": "network",
}
side = np.linspace(-3, 3, 121)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
fitted, accuracy = {}, {}
for name, learner in LEARNERS.items():
    fitted[name] = ConvexBoostClassifier(
        "logistic", learner, n_rounds=300, random_state=0
    ).fit(X, y)
    accuracy[name] = 100 * fitted[name].score(X_new, y_new)
    print(
        f"{name:>18}: {accuracy[name]:.1f} % of new rows right, "
        f"{fitted[name].best_round_} rounds"
    )

# %%
# The colour is the predicted probability.  Noise alone keeps every model below 95 %.

fig, axes = plt.subplots(1, 4, figsize=(10, 3.3), layout="constrained")
for ax, (name, model) in zip(axes, fitted.items(), strict=True):
    probability = model.predict_proba(grid)[:, 1].reshape(121, 121)
    ax.imshow(
        probability,
        extent=(-3, 3, -3, 3),
        origin="lower",
        cmap="RdBu",
        vmin=0,
        vmax=1,
        alpha=0.6,
    )
    ax.scatter(
        *X[::3].T, c=y[::3], cmap="RdBu", s=8, edgecolors="white", linewidths=0.3
    )
    ax.set(xticks=[], yticks=[], title=f"{name}\n{accuracy[name]:.1f} % right")
fig.suptitle(
    f"Sums of curves cannot draw a spiral ({accuracy['additive']:.0f} % right); "
    f"trees and networks can ({accuracy['tree (default)']:.0f} % and "
    f"{accuracy['network']:.0f} %)",
    weight="bold",
)
plt.show()
