"""
One tree for all classes
========================

With ten classes most libraries grow ten trees per round.  A tree with vector leaves
holds ten scores in every leaf, so one tree per round is enough, and the model is
smaller.
"""

# %%
# Handwritten digits
# ------------------
# Both models minimise the log-loss with trees of at most 31 leaves of at least 20 rows,
# and a learning rate of 0.1.  Neither stops early, and both run on one thread.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from convexboost import ConvexBoostClassifier
from convexboost.learners import Tree

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, X_new, y, y_new = train_test_split(
    *load_digits(return_X_y=True), test_size=0.5, random_state=0
)

vector = ConvexBoostClassifier(
    "softmax",
    Tree(max_leaves=31, min_samples_leaf=20),
    learning_rate=0.1,
    n_rounds=100,
    early_stopping=False,
    random_state=0,
    n_jobs=1,
)
single = HistGradientBoostingClassifier(
    max_leaf_nodes=31, learning_rate=0.1, max_iter=40, early_stopping=False
)

# %%
# Test errors, round by round
# ---------------------------
# ``staged_predict`` gives the predictions after every round.

errors, trees = {}, {}
for name, model, per_round in (
    ("one tree for all classes", vector, 1),
    ("one tree per class", single, 10),
):
    start = time.process_time()
    with threadpool_limits(1):
        model.fit(X, y)
    seconds = time.process_time() - start
    errors[name] = np.array(
        [100 * np.mean(labels != y_new) for labels in model.staged_predict(X_new)]
    )
    trees[name] = per_round * np.arange(1, len(errors[name]) + 1)
    wrong = errors[name][-1]
    print(
        f"{name}: {trees[name][-1]} trees, {wrong:.2f} % errors on new rows, "
        f"{seconds:.1f} s of CPU time"
    )

# %%
# How many trees does it take?
# ----------------------------
# A leaf holds ten numbers in the first model and one in the second, so compare these,
# too.

goal = 1.1 * max(curve.min() for curve in errors.values())
needed = {name: trees[name][np.argmax(errors[name] <= goal)] for name in errors}
for name, n_outputs in zip(needed, (10, 1), strict=True):
    print(f"{name}: at most {goal:.2f} % wrong from tree {needed[name]} on;", end=" ")
    print(f"up to {31 * n_outputs * needed[name]:,} numbers in their leaves")

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for name, colour in zip(errors, ("C0", "C1"), strict=True):
    ax.plot(trees[name], errors[name], color=colour, lw=2.2, label=name)
    ax.plot(
        needed[name], errors[name][trees[name] == needed[name]], "o", color=colour, ms=9
    )
    ax.annotate(
        f"{needed[name]} trees",
        (needed[name], goal),
        (0, -22),
        textcoords="offset points",
        ha="center",
        color=colour,
    )
ax.axhline(goal, color="0.4", lw=1, ls=":")
ax.set(
    xscale="log",
    xlabel="trees in the model",
    ylabel="wrong digits on new rows (%)",
    ylim=(0, 30),
)
ax.set_xticks([1, 10, 100, 400], ["1", "10", "100", "400"])
ax.legend(title="in every round", title_fontsize=10)
first, second = needed.values()
ax.set_title(
    f"{goal:.1f} % errors take {first} trees with vector leaves and {second} "
    "trees of one class",
    loc="left",
    weight="bold",
)
plt.show()
