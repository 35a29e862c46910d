"""
Gross errors in the targets
===========================

A few wrong targets pull a fit by squared error away from the rest.  The absolute, Huber
and epsilon-insensitive losses limit what a single row can do.
"""

# %%
# A curve with wrong measurements
# -------------------------------
# A share of the targets is too high by a lot, as with a stuck sensor or a wrong unit.

import matplotlib.pyplot as plt
import numpy as np

from convexboost import ConvexBoostRegressor
from convexboost.losses import EpsilonInsensitive, Huber

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)


def measure(share_wrong, seed=0, n_rows=600):
    """Return places, noisy values of a wave with gross errors, and the wave."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 6, n_rows))
    truth = np.sin(x) + 0.3 * x
    y = truth + 0.2 * rng.normal(size=n_rows)
    wrong = rng.uniform(size=n_rows) < share_wrong
    y[wrong] += rng.uniform(2, 6, wrong.sum())
    return x, y, truth


# %%
# Four losses
# -----------
# Everything else is equal: curves of one column, default settings.  ``Huber(0.3)`` is
# quadratic up to an error of 0.3; ``EpsilonInsensitive(0.3)`` ignores errors up to 0.3.

LOSSES = {
    "squared": ("half_squared", "C1"),
    "Huber": (Huber(0.3), "C4"),
    "epsilon-insensitive": (EpsilonInsensitive(0.3), "C3"),
    "absolute": ("absolute", "C0"),
}
SHARES = (0.0, 0.1, 0.2, 0.3)
distance = {name: [] for name in LOSSES}
curves = {}
for share in SHARES:
    x, y, truth = measure(share)
    for name, (loss, _) in LOSSES.items():
        fitted = ConvexBoostRegressor(loss, learner="additive", random_state=0).fit(
            x[:, None], y
        )
        curve = fitted.predict(x[:, None])
        distance[name].append(np.abs(curve - truth).mean())
        if share == 0.2:
            curves[name] = (x, y, truth, curve)
for name, distances in distance.items():
    print(f"{name:>20}: mean distance from the truth", *(f"{d:.3f}" for d in distances))

# %%
# Without wrong targets the squared error is as good as any.  With every fifth target
# wrong, the others stay near the curve and it does not.  With 30 % wrong, all of them
# begin to give way.

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 4), layout="constrained", width_ratios=[1.4, 1]
)
x, y, truth, _ = curves["absolute"]
left.plot(x, y, ".", color="C2", ms=4, label="targets, 20 % wrong")
left.plot(x, truth, color="0.1", lw=1.2, label="truth")
for name in ("squared", "absolute"):
    left.plot(x, curves[name][3], color=LOSSES[name][1], lw=2.2, label=f"{name} error")
left.set(xlabel="x", ylabel="y")
left.legend(loc="upper left")
for name, (_, colour) in LOSSES.items():
    right.plot(
        [100 * share for share in SHARES],
        distance[name],
        "o-",
        color=colour,
        label=name,
    )
right.set(
    xlabel="wrong targets (%)", ylabel="mean distance from the truth", ylim=(0, None)
)
right.legend(title="loss")
times = distance["squared"][2] / distance["absolute"][2]
fig.suptitle(
    f"With 20 % wrong targets the squared error is {times:.0f} times as far "
    "off as the absolute error",
    weight="bold",
)
plt.show()
