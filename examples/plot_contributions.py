"""
Why this prediction?
====================

Every score is split up exactly by features: Shapley values, for trees too.  One row
shows why it got its score, all rows together show what matters.
"""

# %%
# Breast cancer
# -------------
# The score is the log-odds that a tumour is benign.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from convexboost import ContributionDisplay, ConvexBoostClassifier

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
model = ConvexBoostClassifier(random_state=0).fit(X, y)
print(f"{100 * model.score(X_new, y_new):.1f} % of new rows right")

# %%
# Contributions add up
# --------------------
# One column per feature, and the mean score last.

contributions = model.predict_contributions(X_new)
score = model.decision_function(X_new)
print(
    "largest difference between sum and score:",
    f"{np.abs(contributions.sum(axis=1) - score).max():.1e}",
)
doubtful = int(np.argmin(np.abs(score)))
chance = model.predict_proba(X_new.iloc[[doubtful]])[0, 1]
kind = "benign" if y_new.iloc[doubtful] else "malignant"
print(
    f"the most doubtful row: probability {chance:.2f} of being benign; in "
    f"truth it is {kind}"
)

# %%
# Left: each dot is a new row; its place is the contribution, its colour the value of
# the feature.  Right: the most doubtful row, from the mean at the bottom to its score
# on top.

rng = np.random.default_rng(0)
order = np.argsort(np.abs(contributions[:, :-1]).mean(axis=0))[::-1][:8]
fig, (left, right) = plt.subplots(
    1, 2, figsize=(12, 4.8), layout="constrained", width_ratios=[1.2, 1]
)
for place, feature in enumerate(order[::-1]):
    ranks = X_new.iloc[:, feature].rank(pct=True)
    # Dots that would cover each other are moved apart.
    amount = contributions[:, feature]
    crowd = np.histogram(amount, 40)
    density = (
        crowd[0][np.clip(np.searchsorted(crowd[1], amount) - 1, 0, 39)] / crowd[0].max()
    )
    height = place + 0.38 * density * rng.uniform(-1, 1, len(amount))
    dots = left.scatter(amount, height, c=ranks, cmap="cividis", s=11)
left.axvline(0, color="0.4", lw=0.8)
left.set_yticks(range(8), X.columns[order[::-1]])
left.set(xlabel="contribution to the log-odds of benign", title="all new rows")
bar = fig.colorbar(dots, ax=left, ticks=[0.05, 0.95], aspect=40, pad=0.01)
bar.ax.set_yticklabels(["low", "high"])
bar.outline.set_visible(False)
ContributionDisplay.from_estimator(model, X_new, row=doubtful, max_features=7, ax=right)
right.set(title="the most doubtful row", xlabel="log-odds of benign")
for ax in (left, right):
    ax.grid(visible=False, axis="y")
fig.suptitle(
    f"“{X.columns[order[0]]}” moves predictions most; every score is the sum "
    "of its contributions",
    weight="bold",
)
plt.show()
