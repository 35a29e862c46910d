"""
Neighbours know something
=========================

Measurements at neighbouring places should not differ much, except where something
changes.  A graph term added to the loss says so: ``TotalVariation`` keeps jumps,
``Laplacian`` rounds them off.
"""

# %%
# A line of sensors
# -----------------
# Two measurements at each of 150 places, some of them grossly wrong; a third one is
# kept to choose the strength.

import matplotlib.pyplot as plt
import numpy as np

from convexboost import ConvexBoostRegressor
from convexboost.losses import Absolute, Laplacian, TotalVariation

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

rng = np.random.default_rng(0)
place = np.arange(150)
part = 5 * place // 150
truth = np.array([0.0, 2.0, 2.0, -1.0, 1.0])[part] + (part == 2) * (place - 60) / 30
measured = truth + 0.5 * rng.standard_t(2, size=(3, 150))
x, y = np.tile(place, 2), measured[:2].ravel()

# %%
# The loss is a sum
# -----------------
# ``edges`` are pairs of places, and ``groups`` says at which place each row was
# measured.  There is no early stopping here: rows that are neighbours cannot be parted
# into folds.

edges = np.column_stack([place[:-1], place[1:]])
TERMS = {"no term": None, "Laplacian": Laplacian, "total variation": TotalVariation}
curves, distance, chosen = {}, {}, {}
for name, term in TERMS.items():
    candidates = []
    for strength in (0.3, 1.0, 3.0, 10.0) if term else (0.0,):
        loss = Absolute() + term(edges, strength) if term else Absolute()
        model = ConvexBoostRegressor(
            loss, "additive", n_rounds=500, early_stopping=False
        )
        curve = model.fit(x[:, None], y, groups=x if term else None).predict(
            place[:, None]
        )
        candidates.append((np.abs(curve - measured[2]).mean(), strength, curve))
    _, chosen[name], curves[name] = min(candidates, key=lambda candidate: candidate[0])
    distance[name] = np.abs(curves[name] - truth).mean()
    print(
        f"{name}: strength {chosen[name]:g}, mean distance from the truth "
        f"{distance[name]:.3f}"
    )

# %%
# The truth (thin line) is used to measure distances only.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained", sharey=True)
for ax, (name, curve), colour in zip(
    axes, curves.items(), ("C3", "C1", "C0"), strict=True
):
    ax.plot(x, y, ".", color="C2", ms=4)
    ax.plot(place, truth, color="0.1", lw=1)
    ax.step(place, curve, color=colour, lw=2.4, where="mid")
    ax.set(
        xlabel="place",
        xlim=(0, 149),
        ylim=(-4.5, 5.5),
        title=f"{name}\nmean distance {distance[name]:.2f}",
    )
axes[0].set_ylabel("measured")
fig.suptitle(
    f"Mean distance from the truth {distance['no term']:.2f} without neighbours, "
    f"{distance['total variation']:.2f} with total variation, which keeps jumps",
    weight="bold",
)
plt.show()
