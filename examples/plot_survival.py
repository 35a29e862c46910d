"""
Survival analysis with your own loss
====================================

Cox's partial likelihood compares each failure with all that were still at risk, so rows
are not independent. It is convex, and that is all it takes: a method with value and
derivatives makes a survival model.
"""

# %%
# Machines that fail, and some that are still running
# ---------------------------------------------------
# The risk grows where load and temperature are high together.  More than a quarter of
# the machines had not failed when the study ended: all we know is that they lived
# longer than that.  Their times are given as negative numbers.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from convexboost import ConvexBoostRegressor, check_loss

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)


def machines(n_rows, seed):
    """Return features, and times that are negative where the machine had not failed."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, 5))
    load, heat, age = X[:, 0], X[:, 1], X[:, 2]
    risk = 3.0 * (load > 0.5) * (heat > 0.5) + 2.0 * np.abs(age - 0.5)
    failure = rng.exponential(np.exp(1.5 - risk))
    end = rng.uniform(0.5, 6.0, n_rows)
    return X, np.where(failure <= end, failure, -end)


X, y = machines(1500, seed=0)
X_new, y_new = machines(1500, seed=1)
print(f"still running: {100 * np.mean(y < 0):.0f} %")

# %%
# Cox's loss
# ----------
# ``total`` returns the loss of all rows as one number, and its partial derivatives.
# The sums are sums of logarithms: ``check_loss`` tries large scores, too, and would
# find that ``np.exp`` overflows.


class Cox:
    """The negative partial log-likelihood, Breslow's form, per unit of weight."""

    n_outputs = 1

    def total(self, F, y, weight):
        f, time, failed = F[:, 0], np.abs(y[:, 0]), y[:, 0] > 0
        up = np.argsort(time, kind="stable")
        down = up[::-1]
        # At risk are all rows with a time at least as long; equal times share a sum.
        last = len(f) - 1 - np.searchsorted(time[up], time, side="left")
        at_risk = np.logaddexp.accumulate((f + np.log(weight))[down])[last]
        # A row was at risk at all failures up to its own time.
        share = np.where(failed, np.log(weight) - at_risk, -np.inf)
        so_far = np.logaddexp.accumulate(share[up])[
            np.searchsorted(time[up], time, side="right") - 1
        ]
        partials = weight * (np.exp(f + so_far) - failed)
        return np.sum(weight * failed * (at_risk - f)), partials[:, None]


print(check_loss(Cox(), y))

# %%
# Two models with this loss
# -------------------------
# Trees, and the classical linear Cox model: the same loss with a linear weak learner.
# Concordance is the share of pairs in which the machine with the higher predicted risk
# fails first.


def concordance(y, risk):
    """Return the share of comparable pairs in the right order."""
    time, failed = np.abs(y), y > 0
    first = failed[:, None] & (time[:, None] < time[None, :])
    return np.mean((risk[:, None] > risk[None, :])[first])


models = {
    "linear Cox model": ConvexBoostRegressor(Cox(), LinearRegression(), random_state=0),
    "boosted trees": ConvexBoostRegressor(Cox(), random_state=0),
}
found = {}
for name, model in models.items():
    found[name] = concordance(y_new, model.fit(X, y).predict(X_new))
    print(f"{name}: concordance {found[name]:.3f} on new machines")

# %%
# Kaplan-Meier curves of new machines, by predicted risk.  Good predictions pull the
# curves apart.


def kaplan_meier(y):
    """Return times of failures and the share that survives them."""
    times = np.unique(y[y > 0])
    at_risk = (np.abs(y)[None, :] >= times[:, None]).sum(axis=1)
    failures = (y[None, :] == times[:, None]).sum(axis=1)
    return np.append(0, times), np.append(1, np.cumprod(1 - failures / at_risk))


fig, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    risk = model.predict(X_new)
    third = np.digitize(risk, np.quantile(risk, (1 / 3, 2 / 3)))
    for k, (text, colour) in enumerate(
        (("lowest third", "C0"), ("middle third", "C2"), ("highest third", "C1"))
    ):
        times, share = kaplan_meier(y_new[third == k])
        ax.step(times, 100 * share, where="post", color=colour, lw=2.4, label=text)
    ax.set(
        xlabel="time",
        xlim=(0, 5),
        ylim=(0, 100),
        title=f"{name}: concordance {found[name]:.2f}",
    )
axes[0].set_ylabel("still running (%)")
axes[1].legend(title="predicted risk", title_fontsize=10, loc="upper right")
fig.suptitle(
    "A survival model from a dozen lines of loss: concordance "
    f"{found['boosted trees']:.2f}, "
    f"linear {found['linear Cox model']:.2f}",
    weight="bold",
)
plt.show()
