"""
Curves that may only rise
=========================

A higher dose must not lower the predicted effect, whatever noise the data have.
``monotone_constraints`` keeps a column monotone in every tree.
"""

# %%
# A rising curve, few rows, much noise
# ------------------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from convexboost import ConvexBoostRegressor
from convexboost.learners import Tree

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)


def truth(X):
    """Return an effect that rises with the dose and depends on the weight."""
    return 4 / (1 + np.exp(-3 * (X["dose"] - 2))) + 0.5 * np.cos(X["weight"])


def patients(n_rows, seed):
    """Return doses and weights, and noisy effects."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"dose": rng.uniform(0, 4, n_rows), "weight": rng.uniform(0, 6, n_rows)}
    )
    return X, truth(X) + 1.5 * rng.normal(size=n_rows)


X, y = patients(400, seed=0)
X_new, _ = patients(5000, seed=1)

# %%
# With and without
# ----------------
# 1 is rising, −1 is falling; other columns are free.

models = {
    "free": ConvexBoostRegressor(random_state=0).fit(X, y),
    "monotone_constraints={'dose': 1}": ConvexBoostRegressor(
        learner=Tree(monotone_constraints={"dose": 1}), random_state=0
    ).fit(X, y),
}

# %%
# What would another dose do?
# ---------------------------
# For each of 200 new patients, the predicted effect of every dose.  A curve is wrong if
# it falls anywhere by 0.1 or more.

doses = np.linspace(0, 4, 81)
curves, wrong = {}, {}
for name, model in models.items():
    what_if = pd.DataFrame(
        {
            "dose": np.tile(doses, 200),
            "weight": np.repeat(X_new["weight"][:200].to_numpy(), 81),
        }
    )
    curves[name] = model.predict(what_if).reshape(200, 81)
    wrong[name] = int(
        (np.maximum.accumulate(curves[name], axis=1) - curves[name] >= 0.1)
        .any(axis=1)
        .sum()
    )
    distance = np.sqrt(np.mean((model.predict(X_new) - truth(X_new)) ** 2))
    print(
        f"{name}: {wrong[name]} of 200 curves fall; distance from the truth "
        f"{distance:.3f} on new rows"
    )

# %%
# The constraint is a promise: nobody is told that more helps less.  It is no cure for
# noise, as the distances show; with other rows it gains a little or loses a little.

fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained", sharey=True)
for ax, (name, found), colour in zip(axes, curves.items(), ("C1", "C0"), strict=True):
    ax.plot(doses, found[:60].T, color=colour, lw=0.8, alpha=0.6)
    ax.set(xlabel="dose", title=f"{name}\n{wrong[name]} of 200 curves fall somewhere")
axes[0].set_ylabel("predicted effect")
free, constrained = wrong.values()
fig.suptitle(
    f"Where a higher dose predicts less: {free} of 200 patients, with the "
    f"constraint {constrained}",
    weight="bold",
)
plt.show()
