"""
Many outputs at once: completing digits
=======================================

Given the upper half of a handwritten digit, predict the 32 pixels below.  One model has
all outputs, and its trees choose splits that help all of them.
"""

# %%
# Half a digit
# ------------
# The targets are a matrix, a column for each pixel.  Nothing else changes.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor

from convexboost import ConvexBoostRegressor

plt.style.use(["seaborn-v0_8-white", "seaborn-v0_8-notebook", "tableau-colorblind10"])

digits = load_digits()
upper, lower = digits.data[:, :32], digits.data[:, 32:]
X, X_new, Y, Y_new, _, label = train_test_split(
    upper, lower, digits.target, test_size=0.3, random_state=0
)

# %%
# Four ways to complete them
# --------------------------

models = {
    "ridge": RidgeCV(np.logspace(-2, 4, 13)),
    "5 nearest neighbours": KNeighborsRegressor(5),
    "extra trees": ExtraTreesRegressor(300, random_state=0),
    "convexboost": ConvexBoostRegressor(random_state=0),
}
completed, error = {}, {}
for name, model in models.items():
    completed[name] = model.fit(X, Y).predict(X_new)
    error[name] = np.sqrt(np.mean((completed[name] - Y_new) ** 2))
    print(
        f"{name:>20}: root mean squared error {error[name]:.2f} (pixels go "
        "from 0 to 16)"
    )
boosted = models["convexboost"]
print(
    f"convexboost: {boosted.best_round_} rounds, {boosted.n_members_} trees "
    f"of {Y.shape[1]} outputs in each"
)

# %%
# The first new row of each digit.  The half above the line is given.

rows = [np.flatnonzero(label == digit)[0] for digit in range(10)]
fig, axes = plt.subplots(5, 10, figsize=(9.5, 5.6), layout="constrained")
for line, (name, pixels) in zip(
    axes, {"truth": Y_new, **completed}.items(), strict=True
):
    for ax, row in zip(line, rows, strict=True):
        ax.imshow(
            np.concatenate([X_new[row], pixels[row]]).reshape(8, 8),
            cmap="Greys",
            vmin=0,
            vmax=16,
        )
        if name != "truth":
            ax.axhline(3.5, color="C1", lw=1.5)
        ax.set(xticks=[], yticks=[])
    text = name.replace(" nearest ", " nearest\n") + (
        f"\nerror {error[name]:.2f}" if name in error else ""
    )
    line[0].set_ylabel(text, rotation=0, ha="right", va="center")
fig.suptitle(
    f"One model completes all {Y.shape[1]} pixels: error "
    f"{error['convexboost']:.2f}, as with "
    f"extra trees ({error['extra trees']:.2f}); ridge {error['ridge']:.2f}",
    weight="bold",
)
plt.show()
