"""
Counts and exposure
===================

Claims of insurance contracts are counts, and a contract of three months has fewer than
one of a year.  The Poisson loss with the logarithm of the exposure in its ``offset``
models the yearly rate.
"""

# %%
# Contracts
# ---------
# Made-up contracts with a known yearly rate: high for young drivers with strong cars,
# and different by region.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import mean_poisson_deviance

from convexboost import ConvexBoostRegressor

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

rng = np.random.default_rng(0)
n_rows = 60_000
X = pd.DataFrame(
    {"age": rng.uniform(18, 80, n_rows), "power": rng.uniform(40, 200, n_rows)}
)
X["region"] = pd.Categorical(rng.choice(["north", "south", "east", "west"], n_rows))
true_rate = (
    0.15
    * np.exp(
        1.2 * (X["age"] < 26)
        + 0.8 * (X["age"] < 30) * (X["power"] > 120)
        + 0.5 * (X["region"] == "south")
    ).to_numpy()
)
exposure = np.exp(rng.uniform(np.log(0.02), 0.0, n_rows))
claims = rng.poisson(true_rate * exposure)
train, new = np.arange(n_rows) < n_rows // 2, np.arange(n_rows) >= n_rows // 2
print(
    f"{claims.sum()} claims; {100 * np.mean(claims == 0):.0f} % of the "
    "contracts have none"
)

# %%
# A model of the yearly rate
# --------------------------
# The offset is the score to start from: the logarithm of the claims to expect at the
# mean rate.  The model learns a factor on top of it, and that is what ``predict``
# returns.  For comparison, a model with the squared error of claims per year: a
# contract of a week with one claim looks like a disaster to it.

mean_rate = claims[train].sum() / exposure[train].sum()
poisson = ConvexBoostRegressor("poisson", random_state=0)
poisson.fit(X[train], claims[train], offset=np.log(mean_rate * exposure[train]))
squared = ConvexBoostRegressor(random_state=0).fit(X[train], (claims / exposure)[train])
rates = {
    "the mean rate for all": np.full(new.sum(), mean_rate),
    "squared error of claims per year": squared.predict(X[new]),
    "Poisson loss with offset": mean_rate * poisson.predict(X[new]),
}
for name, rate in rates.items():
    deviance = mean_poisson_deviance(claims[new], rate * exposure[new])
    distance = np.abs(rate - true_rate[new]).mean()
    print(f"{name}: deviance {deviance:.4f} on new contracts,", end=" ")
    print(f"mean distance from the true rate {distance:.3f}")

# %%
# New contracts in ten groups, from the lowest to the highest predicted rate: are there
# as many claims as predicted?

rate = rates["Poisson loss with offset"]
group = np.argsort(np.argsort(rate)) * 10 // len(rate)
years = np.bincount(group, exposure[new])
predicted = np.bincount(group, rate * exposure[new]) / years
observed = np.bincount(group, claims[new]) / years
error = 2 * np.sqrt(np.bincount(group, claims[new])) / years
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
tenth = np.arange(1, 11)
ax.bar(tenth, observed, color="C2", width=0.7, label="observed, ± 2 standard errors")
ax.errorbar(tenth, observed, error, fmt="none", color="C3", lw=1.2)
ax.plot(tenth, predicted, "o-", color="C0", ms=9, label="predicted by the model")
ax.axhline(mean_rate, color="C1", ls="--", label="the mean rate for all")
ax.set(
    xlabel="new contracts, tenth by predicted rate",
    ylabel="claims per year",
    xticks=tenth,
)
ax.grid(visible=False, axis="x")
ax.legend(loc="upper left")
ax.set_title(
    f"The tenth with the highest predictions ({predicted[-1]:.2f} claims per year)\n"
    f"has {observed[-1]:.2f} claims per year; the mean is {mean_rate:.2f}",
    loc="left",
    weight="bold",
)
plt.show()
