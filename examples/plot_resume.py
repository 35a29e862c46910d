"""
Stop, look, train on
====================

With ``warm_start`` a second ``fit`` goes on where the first one ended, and
``checkpoint`` does the same across crashes and processes.  The model is the same, bit
for bit, as if training had never stopped.
"""

# %%
# Not sure how many rounds?  Start with few
# -----------------------------------------

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from convexboost import ConvexBoostClassifier, load

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, X_new, y, y_new = train_test_split(
    *load_digits(return_X_y=True), test_size=0.5, random_state=0
)
settings = {"early_stopping": False, "random_state": 0}
model = ConvexBoostClassifier(warm_start=True, **settings)
pieces = []
for n_rounds in (20, 60, 150):
    model.set_params(n_rounds=n_rounds).fit(X, y)
    errors = [100 * np.mean(labels != y_new) for labels in model.staged_predict(X_new)]
    pieces.append(errors)
    print(f"{n_rounds} rounds: {errors[-1]:.2f} % of new digits wrong")

# %%
# The same bits
# -------------
# One run of 150 rounds gives the same model, and so does a run that was killed: here a
# callback stops it in round 70, and the same program, run again, goes on from the file.

at_once = ConvexBoostClassifier(n_rounds=150, **settings).fit(X, y)
with tempfile.TemporaryDirectory() as folder:
    kept = {
        "checkpoint": Path(folder) / "run.checkpoint",
        "checkpoint_every": 25,
        "n_rounds": 150,
        **settings,
    }

    def power_cut(record):
        """Fail in round 70."""
        if record.round == 70:
            raise RuntimeError("power cut")

    try:
        ConvexBoostClassifier(**kept, callbacks=[power_cut]).fit(X, y)
    except RuntimeError as error:
        print(f"{error}; the file has {kept['checkpoint'].stat().st_size // 1024} kB")
    resumed = ConvexBoostClassifier(**kept).fit(X, y)
    resumed.save(Path(folder) / "model.cvxb")
    loaded = load(Path(folder) / "model.cvxb")
scores = at_once.decision_function(X_new)
same = {
    "three fits with warm_start": model,
    "killed and resumed": resumed,
    "saved and loaded": loaded,
}
same = {
    name: bool(np.array_equal(scores, other.decision_function(X_new)))
    for name, other in same.items()
}
print(same)

# %%

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
whole = [100 * np.mean(labels != y_new) for labels in at_once.staged_predict(X_new)]
ax.plot(
    np.arange(1, 151), whole, color="C2", lw=8, alpha=0.7, label="150 rounds at once"
)
first = 0
for number, (errors, colour) in enumerate(
    zip(pieces, ("C1", "C3", "C0"), strict=True), 1
):
    rounds = np.arange(first + 1, len(errors) + 1)
    ax.plot(
        rounds,
        errors[first:],
        color=colour,
        lw=2.4,
        label=f"fit {number}: to round {len(errors)}",
    )
    ax.plot(rounds[-1], errors[-1], "o", color=colour, ms=8)
    first = len(errors)
ax.set(xlabel="round", ylabel="new digits wrong (%)", xlim=(0, 155), ylim=(0, 20))
ax.legend()
ax.set_title(
    f"{sum(same.values())} of {len(same)} ways to stop and go on give the "
    "same model, bit for bit",
    loc="left",
    weight="bold",
)
plt.show()
