"""
Pipelines and searches
======================

The estimators are scikit-learn estimators: they work in pipelines, cross-validation and
searches, and the parameters of the weak learner are found as ``learner__...``.  Here a
search asks which leaves and which learning rate to take.
"""

# %%
# What to search
# --------------
# Early stopping finds the number of rounds by itself, so it is not searched.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, RepeatedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from convexboost import ConvexBoostRegressor

plt.style.use(["seaborn-v0_8-white", "seaborn-v0_8-notebook", "tableau-colorblind10"])

X, y = load_diabetes(return_X_y=True, as_frame=True)
pipeline = make_pipeline(
    StandardScaler(), ConvexBoostRegressor("half_squared", "tree", random_state=0)
)
LEAVES, RATES = (2, 4, 8, 31), (0.03, 0.1, 0.3)
folds = RepeatedKFold(n_splits=5, n_repeats=1, random_state=0)
search = GridSearchCV(
    pipeline,
    {
        "convexboostregressor__learner__max_leaves": LEAVES,
        "convexboostregressor__learning_rate": RATES,
    },
    cv=folds,
    scoring="neg_root_mean_squared_error",
).fit(X, y)
for name, value in search.best_params_.items():
    print(f"{name.removeprefix('convexboostregressor__')} = {value}")

# %%
# Is it worth it?
# ---------------
# The differences between neighbours in the grid are smaller than those between folds:
# with few rows a search picks luck, too.

default = -cross_val_score(pipeline, X, y, cv=folds, scoring=search.scoring)
best = -search.best_score_
spread = search.cv_results_["std_test_score"][search.best_index_]
print(
    f"error in cross-validation: default {default.mean():.2f}, best of the "
    f"grid {best:.2f}"
)
print(f"standard deviation between folds: {spread:.2f}")

# %%

errors = -search.cv_results_["mean_test_score"].reshape(len(LEAVES), len(RATES))
fig, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
image = ax.imshow(errors, cmap="cividis_r", aspect="auto")
for (row, column), error in np.ndenumerate(errors):
    dark = error > errors.min() + 0.55 * np.ptp(errors)
    ax.text(
        column,
        row,
        f"{error:.1f}",
        ha="center",
        va="center",
        color="white" if dark else "black",
        fontsize=12,
    )
place = np.unravel_index(errors.argmin(), errors.shape)
ax.plot(place[1], place[0], "s", ms=50, mfc="none", mec="C1", mew=3)
ax.set_xticks(range(len(RATES)), RATES)
ax.set_yticks(range(len(LEAVES)), LEAVES)
ax.set(xlabel="learning_rate", ylabel="learner__max_leaves")
fig.colorbar(image, label="root mean squared error in cross-validation")
ax.set_title(
    f"Best of the grid {best:.1f}, default {default.mean():.1f}, folds differ "
    f"by {spread:.1f}",
    loc="left",
    weight="bold",
)
plt.show()
