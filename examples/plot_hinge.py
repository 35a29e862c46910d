"""
Softmax or multiclass hinge
===========================

Softmax models probabilities; the multiclass hinge only asks that the right class wins
by a margin.  Rows that are beyond the margin have no influence any more, which leaves a
few rows that decide.
"""

# %%
# Two measurements of iris flowers
# --------------------------------
# Two of the three species overlap, so no border is right for all rows.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from convexboost import ConvexBoostClassifier

plt.style.use(["seaborn-v0_8-white", "seaborn-v0_8-notebook", "tableau-colorblind10"])

iris = load_iris()
X, y = iris.data[:, 2:], iris.target

# %%
# Two losses, the same learner
# ----------------------------
# Small networks give smooth borders.  Accuracy is measured on rows that were not
# trained on, in three folds.

models = {
    "softmax": ConvexBoostClassifier("softmax", "network", random_state=0),
    "multiclass hinge": ConvexBoostClassifier(
        "multiclass_hinge", "network", random_state=0
    ),
}
accuracy = {
    name: 100 * cross_val_score(model, X, y, cv=3).mean()
    for name, model in models.items()
}
for name, value in accuracy.items():
    print(f"{name}: {value:.1f} % right in cross-validation")

# %%
# The margin of a row is the score of its class minus the best score of another class.
# The hinge is zero, with slope zero, from margin one on.

models = {name: model.fit(X, y) for name, model in models.items()}


def margin(model):
    """Return by how much the right class wins, row by row."""
    scores = model.decision_function(X)
    right = np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
    np.put_along_axis(scores, y[:, None], -np.inf, axis=1)
    return right - scores.max(axis=1)


matters = {name: margin(model) < 1 for name, model in models.items()}
for name, rows in matters.items():
    print(f"{name}: {rows.sum()} of {len(y)} rows have a margin below one")
print(
    "can give probabilities:",
    {name: hasattr(model, "predict_proba") for name, model in models.items()},
)

# %%
# Left: the darker, the surer.  Right: large dots are the only rows that pull at the
# border.

colours = ["C0", "C1", "C3"]
left_low, left_high = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
grid_x, grid_y = np.meshgrid(
    np.linspace(left_low[0], left_high[0], 301),
    np.linspace(left_low[1], left_high[1], 201),
)
grid = np.column_stack([grid_x.ravel(), grid_y.ravel()])
fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    regions = np.searchsorted(model.classes_, model.predict(grid)).reshape(grid_x.shape)
    sure = (
        model.predict_proba(grid).max(axis=1)
        if name == "softmax"
        else np.full(len(grid), 0.75)
    )
    strength = 0.6 * np.clip((sure - 0.34) / 0.66, 0, 1).reshape(grid_x.shape)
    extent = (left_low[0], left_high[0], left_low[1], left_high[1])
    ax.imshow(
        regions,
        extent=extent,
        origin="lower",
        aspect="auto",
        cmap=ListedColormap(colours),
        alpha=strength,
        vmin=0,
        vmax=2,
    )
    for k, species in enumerate(iris.target_names):
        size = np.where(matters[name], 55, 12) if name != "softmax" else 25
        size = np.broadcast_to(size, y.shape)
        ax.scatter(
            *X[y == k].T,
            s=size[y == k],
            color=colours[k],
            edgecolors="white",
            lw=0.8,
            label=species,
        )
    ax.set(
        xlabel=iris.feature_names[2],
        title=f"{name}: {accuracy[name]:.1f} % right in cross-validation",
    )
axes[0].set(ylabel=iris.feature_names[3])
axes[0].legend(loc="upper left")
fig.suptitle(
    "Softmax gives probabilities; the hinge listens to "
    f"{matters['multiclass hinge'].sum()} of {len(y)} rows",
    weight="bold",
)
plt.show()
