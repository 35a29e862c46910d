"""
Your own loss in five lines
===========================

A shop orders goods: what is missing costs ever more, what is left over costs a fixed
price each.  A loss is a value and a subgradient, so a model can be trained on that cost
itself, kink included.
"""

# %%
# The cost
# --------
# ``F`` holds the scores, one column per output, and ``y`` the targets.  ``evaluate``
# returns a loss for each row and the subgradient.  There are no second derivatives, and
# at the kink any slope between the two will do.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from convexboost import ConvexBoostRegressor, check_loss

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)


class Shortage:
    """Half the square of what is missing, and half of what is left over."""

    def evaluate(self, F, y):
        missing, left_over = np.maximum(y - F, 0), np.maximum(F - y, 0)
        cost = 0.5 * missing**2 + 0.5 * left_over
        return cost.sum(axis=1), np.where(left_over > 0, 0.5, -missing)


# %%
# ``check_loss`` tries the loss out before you train with it: is it convex, does the
# gradient fit the value? The data are scikit-learn's Friedman problem, with demand that
# is sometimes much higher, for some goods more than for others.

X, y = make_friedman1(4000, random_state=0)
y += np.random.default_rng(0).exponential(10 * X[:, 5])
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
print(check_loss(Shortage(), y))

# %%
# Three models, one of which knows the cost
# -----------------------------------------
# All three have default settings.  Two are trained on the usual losses and know nothing
# of the cost.  Adding a safety margin to all predictions is the usual remedy, so the
# best one for the squared error takes part, too.

LOSSES = {
    "absolute error": "absolute",
    "squared error": "half_squared",
    "the cost itself": Shortage(),
}
cost_of = {}
for name, loss in LOSSES.items():
    model = ConvexBoostRegressor(loss, random_state=0).fit(X, y)
    cost_of[name] = (
        Shortage().evaluate(model.predict(X_new)[:, None], y_new[:, None])[0].mean()
    )
    if loss == "half_squared":
        shifts = np.linspace(-3, 3, 121)
        on_training = [
            Shortage().evaluate(model.predict(X)[:, None] + shift, y[:, None])[0].mean()
            for shift in shifts
        ]
        shift = shifts[np.argmin(on_training)]
        shifted = (
            Shortage()
            .evaluate(model.predict(X_new)[:, None] + shift, y_new[:, None])[0]
            .mean()
        )
cost_of["squared error\nplus a margin"] = shifted
for name, cost in cost_of.items():
    print(f"{' '.join(name.split())}: {cost:.3f} per row")

# %%
# With PyTorch the value alone is enough, and the gradient is found automatically::
#
#     class Shortage:
#         def value(self, F, y):
#             return (0.5 * (y - F).relu() ** 2 + 0.5 * (F - y).relu()).sum(dim=1)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
error = np.linspace(-4, 6, 401)
left.plot(error, np.abs(error), color="C2", label="absolute error")
left.plot(error, 0.5 * error**2, color="C1", label="squared error")
left.plot(
    error,
    Shortage().evaluate(error[:, None], np.zeros((401, 1)))[0],
    color="C0",
    lw=3,
    label="the cost",
)
left.set(
    xlabel="← missing   ordered − wanted   left over →",
    ylabel="loss of a row",
    ylim=(0, 8),
    xlim=(-4, 6),
)
left.legend(loc="upper center")

names = [
    "absolute error",
    "squared error",
    "squared error\nplus a margin",
    "the cost itself",
]
bars = right.barh(
    names[::-1], [cost_of[name] for name in names[::-1]], color=["C0", "C8", "C1", "C2"]
)
right.bar_label(bars, fmt=" %.2f")
right.set(xlabel="mean cost on new rows", xlim=(0, 1.15 * max(cost_of.values())))
right.grid(visible=False, axis="y")


def saved(name):
    """Return how many per cent cheaper the model is that was trained on the cost."""
    return 100 * (1 - cost_of["the cost itself"] / cost_of[name])


fig.suptitle(
    f"Trained on the cost itself, a model pays {saved('squared error'):.0f} % less "
    f"than on\nsquared errors, and {saved(names[2]):.0f} % less than with a margin",
    weight="bold",
)
plt.show()
