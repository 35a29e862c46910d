"""
Learning what terrain costs from paths
======================================

Someone shows paths through a landscape; maximum margin planning finds costs for which
these paths are cheapest.  The loss compares whole paths, so a planner is called in
every round.
"""

# %%
# A landscape
# -----------
# Meadow, woods and water, made from smoothed noise.  The features of a cell are its
# type and how far it is to the others.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from convexboost.planning import (
    MaxMarginPlanner,
    Monotone,
    demonstrate,
    draw_paths,
    map_from_types,
)

plt.style.use(["seaborn-v0_8-white", "seaborn-v0_8-notebook", "tableau-colorblind10"])


def landscape(seed, size=36):
    """Return a map with the types ground (.), trees (T) and water (W)."""
    rng = np.random.default_rng(seed)
    wet, wooded = (gaussian_filter(rng.normal(size=(size, size)), 3) for _ in range(2))
    types = np.zeros((size, size), int)
    types[wooded > np.quantile(wooded, 0.6)] = 1
    types[wet > np.quantile(wet, 0.75)] = 2
    return map_from_types(types, (".", "T", "W"))


def hidden_cost(map):
    """Return what the guide has in mind: no water, and along the woods."""
    ground = 1.0 + 9.0 * map.layer("is W") + 3.0 * map.layer("is T")
    return ground + np.minimum(map.layer("to T"), 6.0)


# %%
# Demonstrations, and learning
# ----------------------------
# The learner sees features and paths, never the costs.  Paths go from left to right,
# one cell in each column; among these the planner finds the cheapest for any costs, as
# the theory asks.  One landscape is kept for the test.

planner = Monotone()
rng = np.random.default_rng(0)
maps = [landscape(seed) for seed in range(7)]
shown = []
for map in maps:
    ends = [((int(a), 0), (int(b), 35)) for a, b in rng.integers(36, size=(10, 2))]
    shown.append(demonstrate(map, hidden_cost, ends, planner, noise=0.1, rng=rng))
model = MaxMarginPlanner(planner, n_rounds=60, softness=3.0, random_state=0).fit(
    maps[:6], shown[:6]
)

# %%
# On the new landscape
# --------------------
# Agreement is the share of the demonstrated cells that the planned path visits.  Before
# learning, all cells cost the same.

new = maps[6]


def excess(paths):
    """Return by how many per cent the hidden costs of paths are above the best."""
    costs = hidden_cost(new)
    spent = sum(costs[tuple(path.cells.T)].sum() for path in paths)
    best = sum(planner.plan(costs, path.start, path.goal).cost for path in paths)
    return 100 * (spent / best - 1)


before = [planner.plan(np.ones(new.shape), path.start, path.goal) for path in shown[6]]
(after,) = model.imitate([new], [shown[6]])
print(
    f"agreement with the demonstrations: {100 * model.score([new], [shown[6]]):.0f} %"
)
print(
    f"hidden cost above the cheapest: {excess(before):.0f} % before learning, "
    f"{excess(after):.0f} % after"
)

# %%
# Left: the guide's path on the new landscape, and ours before and after learning.
# Right: the learned costs.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 5.2), layout="constrained")
gain = [excess([b]) - excess([a]) for b, a in zip(before, after, strict=True)]
pick = int(np.argsort(gain)[len(gain) // 2])  # neither the best nor the worst
draw_paths(new, shown[6][pick], before[pick], after[pick], ax=left)
left.set_title("a landscape not seen in training")
image = right.imshow(model.costs(new), cmap="cividis")
right.set(xticks=[], yticks=[], title="learned costs")
fig.colorbar(image, ax=right, shrink=0.8)
fig.suptitle(
    f"On new ground paths cost {excess(after):.0f} % more than the best; "
    f"before learning, {excess(before):.0f} %",
    weight="bold",
)
plt.show()
