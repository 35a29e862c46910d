"""
No group left behind
====================

``WorstGroup(loss)`` minimises the mean loss of the group that fares worst, instead of
the mean over all rows. It is for models that may not, or cannot, use the group as an
input.
"""

# %%
# Two kinds of patients, one model
# --------------------------------
# One patient in ten responds differently to the dose.  The model does not see the kind
# of a patient, so it cannot be right for both; the mean over all rows cares about the
# many.

import matplotlib.pyplot as plt
import numpy as np

from convexboost import ConvexBoostRegressor
from convexboost.losses import WorstGroup

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)


def patients(n_rows, seed):
    """Return doses, responses, and the kind of each patient."""
    rng = np.random.default_rng(seed)
    dose, kind = (
        rng.uniform(0, 4, n_rows),
        np.where(rng.uniform(size=n_rows) < 0.1, "few", "many"),
    )
    slope = np.where(kind == "few", 0.2, 1.0)
    return (
        dose,
        slope * dose + 0.5 * np.sin(2 * dose) + 0.3 * rng.normal(size=n_rows),
        kind,
    )


x, y, kind = patients(2000, seed=0)
x_new, y_new, kind_new = patients(4000, seed=1)

# %%
# Two losses
# ----------
# The groups are given to ``fit`` for training only; predictions do not need them.  The
# learner ``"additive"`` draws one smooth curve for each column.

models = {
    "mean over all rows": ConvexBoostRegressor(
        "half_squared", "additive", random_state=0
    ),
    "worst group": ConvexBoostRegressor(
        WorstGroup("half_squared"), "additive", random_state=0
    ),
}
error = {}
for name, model in models.items():
    model.fit(x[:, None], y, groups=kind if name == "worst group" else None)
    wrong = (model.predict(x_new[:, None]) - y_new) ** 2
    error[name] = {
        "many": np.sqrt(wrong[kind_new == "many"].mean()),
        "few": np.sqrt(wrong[kind_new == "few"].mean()),
    }
    error[name]["all"] = np.sqrt(wrong.mean())
    print(
        f"{name}: error on new rows:",
        ", ".join(f"{group} {size:.2f}" for group, size in error[name].items()),
    )

# %%
# When the model may see the group
# --------------------------------
# If the kind may be an input, use it as one: then nobody has to pay.

both = np.column_stack([x, kind == "few"])
informed = ConvexBoostRegressor(random_state=0).fit(both, y)
wrong = (informed.predict(np.column_stack([x_new, kind_new == "few"])) - y_new) ** 2
for group in ("many", "few"):
    print(
        f"with the kind as input, {group}: "
        f"{np.sqrt(wrong[kind_new == group].mean()):.2f}"
    )

# %%
# The worst group gains, and the others pay for it.

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 4.2), layout="constrained", width_ratios=[1.4, 1]
)
for group, colour in (("many", "C2"), ("few", "C3")):
    left.plot(
        x_new[kind_new == group][:500],
        y_new[kind_new == group][:500],
        ".",
        color=colour,
        ms=4,
        label=f"the {group}",
    )
grid = np.linspace(0, 4, 401)
for (name, model), colour in zip(models.items(), ("C1", "C0"), strict=True):
    left.plot(
        grid,
        model.predict(grid[:, None]),
        color=colour,
        lw=2.8,
        label=f"trained on the {name}",
    )
left.set(xlabel="dose", ylabel="response")
left.legend(loc="upper left")
place = np.arange(2)
for shift, (name, colour) in zip(
    (-0.2, 0.2), zip(models, ("C1", "C0"), strict=True), strict=True
):
    bars = right.bar(
        place + shift, [error[name]["many"], error[name]["few"]], 0.38, color=colour
    )
    right.bar_label(bars, fmt="%.2f", padding=2)
right.set_xticks(place, ["the many", "the few"])
right.set(ylabel="root mean squared error on new rows")
right.grid(visible=False, axis="x")
before, after = (max(error[name]["many"], error[name]["few"]) for name in models)
fig.suptitle(
    f"The error of the worst group falls from {before:.2f} to {after:.2f}",
    weight="bold",
)
plt.show()
