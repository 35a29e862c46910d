"""
What is wrong with this fit?
============================

``diagnose`` reads a finished run and says in sentences what is wrong and what to do
about it.  Three fits with mistakes, and one without.
"""

# %%
# Four fits of the same data
# --------------------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from convexboost import ConvexBoostRegressor

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, y = load_diabetes(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
one_run = {"n_rounds": 300, "early_stopping": False}
fits = {
    "naive, constant steps": ConvexBoostRegressor(
        "absolute", "stump", "naive", step="constant:30", **one_run
    ),
    "steps too small": ConvexBoostRegressor(
        "absolute", "stump", "naive", step="constant:0.05", **one_run
    ),
    "no early stopping": ConvexBoostRegressor("absolute", output="last", **one_run),
    "default": ConvexBoostRegressor("absolute", random_state=0),
}

# %%
# The findings
# ------------
# Rows that were not trained on let ``diagnose`` check for overfitting, too.

found = {}
for name, model in fits.items():
    found[name] = model.fit(X, y, eval_set={"new": (X_new, y_new)}).diagnose(
        X_new, y_new
    )
    print(f"=== {name} ===\n{found[name]}\n")

# %%
# The same in pictures: the objective in training and the error on new rows.

fig, axes = plt.subplots(1, 4, figsize=(11, 3.7), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, fits.items(), strict=True):
    ax.plot(model.history_["objective"], color="C2", lw=2, label="training rows")
    ax.plot(model.evals_result_["new"]["loss"], color="C0", lw=2, label="new rows")
    warnings = (
        ", ".join(rule.replace("_", " ") for rule in sorted(found[name].rules))
        or "no warning"
    )
    ax.set(xlabel="round", ylim=(0, 80))
    ax.set_title(
        f"{name}\n“{warnings}”", fontsize=11, color="C5" if found[name].rules else "C0"
    )
axes[0].set_ylabel("mean absolute error")
axes[0].legend()
named = sum(bool(report.rules) for report in found.values())
fig.suptitle(
    f"diagnose() has warnings for {named} of these {len(fits)} fits", weight="bold"
)
plt.show()
