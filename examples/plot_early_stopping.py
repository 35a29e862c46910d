"""
When to stop
============

By default five members train side by side, each without a fifth of the rows, and these
rows decide when to stop. No row is lost to validation, and there is no number of rounds
to choose.
"""

# %%
# The default fit
# ---------------
# ``eval_set`` only watches: its curve is computed after training and has no influence
# on the model.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from convexboost import ConvexBoostRegressor

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, y = load_diabetes(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
stopped = ConvexBoostRegressor(random_state=0).fit(
    X, y, eval_set={"new": (X_new, y_new)}
)
print(f"{stopped.n_members_} members; {stopped.stop_reason_}")
print(f"best round: {stopped.best_round_}")

# %%
# Training on
# -----------
# The same model without early stopping, as other libraries train by default: one run on
# all rows, 150 rounds.

all_rounds = ConvexBoostRegressor(n_rounds=150, early_stopping=False, random_state=0)
all_rounds.fit(X, y, eval_set={"new": (X_new, y_new)})


def error(half_squared):
    """Return the root mean squared error that belongs to a mean of ½ (f − y)²."""
    return np.sqrt(2 * np.asarray(half_squared))


new_stopped = error(stopped.evals_result_["new"]["loss"])
new_all = error(all_rounds.evals_result_["new"]["loss"])
at_stop, at_end = new_stopped[stopped.best_round_], new_all[-1]
print(
    f"error on new rows: {at_stop:.1f} where it stopped, "
    f"{new_stopped.min():.1f} in its best round"
)
print(f"error on new rows after {len(new_all) - 1} rounds: {at_end:.1f}")

# %%
# The folds (dashed) say when to stop; the training error would never have told.  They
# may miss the best round on new rows by a few, at little cost.  The five members have
# another gain: their mean is better than a single run in every round from the turn on.

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(
    error(all_rounds.history_["objective"]),
    color="C2",
    label="training rows, no early stopping",
)
ax.plot(new_all, color="C1", lw=2.5, label="new rows, no early stopping")
ax.plot(
    error(stopped.history_["validation"]),
    "--",
    color="C0",
    label="rows held out by the folds (default)",
)
ax.plot(new_stopped, color="C0", lw=2.5, label="new rows (default)")
ax.plot(stopped.best_round_, at_stop, "o", color="C0", ms=10)
ax.annotate(
    f"stops by itself:\nround {stopped.best_round_}",
    (stopped.best_round_, at_stop),
    (stopped.best_round_ + 6, at_stop - 13),
    color="C0",
    arrowprops={"arrowstyle": "-", "color": "C0"},
)
ax.set(xlabel="round", ylabel="root mean squared error", xlim=(0, len(new_all) - 1))
ax.legend(loc="center right")
ax.set_title(
    f"Error on new rows: {at_stop:.1f} where it stops, {at_end:.1f} after "
    f"{len(new_all) - 1} rounds",
    loc="left",
    weight="bold",
)
plt.show()
