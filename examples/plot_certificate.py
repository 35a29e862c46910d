"""
How far from the optimum?
=========================

A training curve that is flat may be done or stuck.  A certificate tells: it is a proven
lower bound on the objective of every model of this kind, so the gap to it is how much
more training can gain at most.
"""

# %%
# Training with a certificate
# ---------------------------
# The absolute error has kinks, so gradients do not vanish at the optimum and cannot
# tell when to stop.  The bound needs a strongly convex objective, hence a small ``l2``,
# and it is tightest for stumps.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from convexboost import ConvexBoostRegressor
from convexboost.learners import Stump

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, y = load_diabetes(return_X_y=True)
model = ConvexBoostRegressor(
    "absolute", Stump(max_bins=32), l2=0.02, n_rounds=2000, certificate=True
).fit(X, y)
print(model.certificate_)

# %%
# Enough is enough
# ----------------
# ``stop_when_gap_below`` ends training as soon as no more than that can be gained.

objective = np.minimum.accumulate(model.history_["objective"])
bound = model.history_["lower_bound"]
share = 100 * model.certificate_.gap() / objective[-1]
enough = ConvexBoostRegressor(
    "absolute",
    Stump(max_bins=32),
    l2=0.02,
    n_rounds=2000,
    stop_when_gap_below=0.05 * float(objective[-1]),
).fit(X, y)
print(f"stopped after {enough.n_rounds_} rounds: {enough.stop_reason_}")

# %%
# Any fitted model can be certified afterwards, too, with a better bound that takes
# longer:

print(model.certify(X, y))

# %%
# The shaded strip is all that is left to gain.

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
rounds = model.history_["round"]
ax.plot(rounds, objective, color="C0", lw=2.2, label="training objective, best so far")
ax.plot(rounds, bound, color="C1", lw=2.2, label="certified: no model gets below")
ax.fill_between(
    rounds,
    bound,
    objective,
    color="C2",
    alpha=0.35,
    lw=0,
    label="what can still be gained",
)
ax.plot(enough.n_rounds_, objective[enough.n_rounds_], "o", color="C0", ms=9)
ax.annotate(
    f"at most 5 % left:\nround {enough.n_rounds_}",
    (enough.n_rounds_, objective[enough.n_rounds_]),
    (0, -70),
    textcoords="offset points",
    ha="center",
    color="C0",
)
ax.set(
    xscale="log",
    xlim=(20, rounds[-1]),
    ylim=(45, 65),
    xlabel="round",
    ylabel="mean absolute error + penalty",
)
ax.legend(loc="upper right")
ax.set_title(
    f"After {rounds[-1]} rounds no model of this kind can be better by more "
    f"than {share:.1f} %",
    loc="left",
    weight="bold",
)
plt.show()
