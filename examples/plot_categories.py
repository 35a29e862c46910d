"""
Categories with many levels
===========================

Columns such as shops, postcodes or products have hundreds of levels with few rows each.
They become a statistic of the target in which no row sees its own, so there is nothing
to encode by hand.
"""

# %%
# One hundred shops
# -----------------
# The target depends on the shop, which has only a handful of rows, and on two numbers.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from convexboost import ConvexBoostRegressor

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)


def sales(n_rows, n_shops, seed):
    """Return shops and two numbers, and what was sold."""
    rng, shops = np.random.default_rng(seed), np.random.default_rng(99)
    effect = shops.normal(size=n_shops)
    shop = rng.integers(n_shops, size=n_rows)
    X = pd.DataFrame(
        {"price": rng.uniform(size=n_rows), "week": rng.uniform(size=n_rows)}
    )
    X["shop"] = pd.Categorical(
        [f"shop {k}" for k in shop], categories=[f"shop {k}" for k in range(n_shops)]
    )
    return X, effect[shop] - 2 * X["price"] + np.sin(6 * X["week"]) + 0.5 * rng.normal(
        size=n_rows
    )


# %%
# Three ways to give them
# -----------------------
# The second and third are what one does where a library cannot take categories.

one_hot = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["shop"]), remainder="passthrough"
)
numbers = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
ordinal = make_column_transformer((numbers, ["shop"]), remainder="passthrough")
ways = {
    "convexboost, as it is": ConvexBoostRegressor(random_state=0),
    "convexboost, one-hot": make_pipeline(
        one_hot, ConvexBoostRegressor(random_state=0)
    ),
    "convexboost, numbered": make_pipeline(
        ordinal, ConvexBoostRegressor(random_state=0)
    ),
}
ROWS_PER_SHOP = (3, 10, 30)
N_SHOPS = 100
r2 = {name: [] for name in ways}
for rows in ROWS_PER_SHOP:
    X, y = sales(rows * N_SHOPS, N_SHOPS, seed=0)
    X_new, y_new = sales(3000, N_SHOPS, seed=1)
    for name, model in ways.items():
        r2[name].append(model.fit(X, y).score(X_new, y_new))
for name, values in r2.items():
    print(f"{name:>22}: R² on new rows", *(f"{value:.3f}" for value in values))

# %%
# Levels that were not in training get the mean of all rows:

X_odd = X_new[:1].assign(shop=pd.Categorical(["a new shop"]))
print(
    "prediction for a shop never seen: "
    f"{ways['convexboost, as it is'].predict(X_odd)[0]:.2f}"
)

# %%
# A column of ones and zeros for each shop cannot be split where a shop has fewer rows
# than a leaf needs, which is ten.  With many rows per shop all three ways are as good.

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
place = np.arange(len(ROWS_PER_SHOP))
for k, (name, colour) in enumerate(zip(ways, ("C0", "C1", "C2"), strict=True)):
    bars = ax.bar(
        place + 0.27 * (k - 1),
        r2[name],
        0.25,
        color=colour,
        label=name.removeprefix("convexboost, "),
    )
    ax.bar_label(bars, fmt="%.2f", padding=2)
ax.set_xticks(place, [f"{rows} rows per shop" for rows in ROWS_PER_SHOP])
ax.set(ylabel="R² on new rows", ylim=(0, 1))
ax.grid(visible=False, axis="x")
ax.legend(loc="upper left", title="shops are given", title_fontsize=10)
ax.set_title(
    f"{N_SHOPS} shops, {ROWS_PER_SHOP[1]} rows each: R² "
    f"{r2['convexboost, as it is'][1]:.2f} as they are, "
    f"{r2['convexboost, one-hot'][1]:.2f} one-hot",
    loc="left",
    weight="bold",
)
plt.show()
