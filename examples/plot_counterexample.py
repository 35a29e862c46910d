"""
Where ordinary boosting fails
=============================

Two points, one weak learner for each, and the loss 5 \\|f₁\\| + \\|f₂\\|: ordinary
gradient boosting never touches the second point.  Grubb and Bagnell (2011) keep what a
projection leaves over, and reach the optimum.
"""

# %%
# The problem
# -----------
# Ordinary boosting projects the subgradient on the weak learner that fits it best.
# Here that is always the first one, because its slope is five times as steep, on either
# side of the kink.  The step sizes do not matter.

import matplotlib.pyplot as plt
import numpy as np

from convexboost import FunctionSpace, boost
from convexboost.learners import FiniteSet
from convexboost.losses import as_loss

plt.style.use(["seaborn-v0_8-white", "seaborn-v0_8-notebook", "tableau-colorblind10"])

SLOPES = np.array([5.0, 1.0])


class Slopes:
    """The loss a \\|f\\|, where the target of a row is its slope a."""

    def evaluate(self, F, y):
        return (y * np.abs(F)).sum(axis=1), np.where(F >= 0, y, -y)


# %%
# Below the estimators there is a small interface for experiments: a loss bound to
# targets, a set of hypotheses, and ``boost``.

space = FunctionSpace.of(2)
weak_learners = FiniteSet(np.eye(2)[:, :, None], space)
paths, objective = {}, {}
for algorithm in ("naive", "repeated", "residual"):
    result = boost(
        as_loss(Slopes()).bind(SLOPES[:, None], space),
        weak_learners,
        algorithm=algorithm,
        step="inverse_sqrt:0.3",
        n_rounds=300,
        output="last",
        start=np.array([1.0]),
    )
    rows = np.arange(2)
    paths[algorithm] = np.array([np.ones((2, 1)), *result.path.staged_predict(rows)])[
        :, :, 0
    ]
    objective[algorithm] = np.abs(paths[algorithm]) @ SLOPES
    end = np.round(paths[algorithm][-1], 3)
    print(
        f"{algorithm:>9}: ends at f = {end}, lowest loss "
        f"{objective[algorithm].min():.3f}"
    )

# %%
# All three start at (1, 1); the optimum is at (0, 0).

fig, axes = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained", sharey=True)
grid = np.linspace(-1.7, 1.7, 201)
levels = np.abs(grid)[None, :] * SLOPES[0] + np.abs(grid)[:, None] * SLOPES[1]
for ax, (algorithm, path) in zip(axes, paths.items(), strict=True):
    ax.contour(
        grid, grid, levels, levels=np.linspace(0.25, 8, 12), colors="C2", linewidths=0.7
    )
    ax.plot(*path.T, ".-", color="C1" if algorithm == "naive" else "C0", lw=1, ms=5)
    ax.plot(1, 1, "o", color="0.1", ms=8)
    ax.plot(0, 0, "*", color="0.1", ms=14)
    ax.set(xlabel="f₁", xlim=(-1.7, 1.7), ylim=(-0.5, 1.4))
    ax.set_title(f"{algorithm}\nlowest loss {objective[algorithm].min():.2f}")
axes[0].set_ylabel("f₂")
stuck = objective["naive"].min()
reached = max(objective["repeated"].min(), objective["residual"].min())
fig.suptitle(
    f"Naive boosting never gets below a loss of {stuck:.1f}; the other two "
    f"get to {reached:.2f} or less",
    weight="bold",
)
plt.show()
