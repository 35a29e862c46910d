"""
Can I trust the probabilities?
==============================

Among rows with a predicted probability of 80 %, eight in ten should be positive.  A
model that trains for too long becomes too sure of itself; the default stops before.
"""

# %%
# Classes that cannot be known for sure
# -------------------------------------
# The true probabilities are known here, and they lie anywhere between 0 and 1.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from convexboost import ConvexBoostClassifier

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, score = make_friedman1(12_000, random_state=0)
truth = expit((score - 14) / 2)
y = (np.random.default_rng(0).uniform(size=len(truth)) < truth).astype(int)
X, X_new, y, y_new, _, truth_new = train_test_split(
    X, y, truth, train_size=2000, random_state=0
)

# %%
# Three models
# ------------
# The default stops by itself and averages five members.  Another one trains for 500
# rounds.  The third is scikit-learn's with its defaults: 100 rounds, no early stopping
# for so few rows.

models = {
    "default": ConvexBoostClassifier(random_state=0),
    "500 rounds": ConvexBoostClassifier(
        n_rounds=500, early_stopping=False, random_state=0
    ),
    "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
}
probability, off, curve = {}, {}, {}
for name, model in models.items():
    predicted = probability[name] = model.fit(X, y).predict_proba(X_new)[:, 1]
    observed, mean = curve[name] = calibration_curve(y_new, predicted, n_bins=10)
    counts = np.histogram(predicted, 10, (0, 1))[0]
    off[name] = (
        100 * np.sum(np.abs(observed - mean) * counts[counts > 0]) / counts.sum()
    )
    print(
        f"{name}: accuracy {100 * model.score(X_new, y_new):.1f} %, "
        f"log-loss {log_loss(y_new, predicted):.3f}, "
        f"off by {off[name]:.1f} points on average, "
        f"mean distance from the truth {np.abs(predicted - truth_new).mean():.3f}"
    )

# %%
# The accuracy hardly differs; the probabilities do.  On the diagonal they are what they
# say; flatter is too sure, and steeper too careful, as the default is a little.  Where
# a check on your own data finds that they are off, scikit-learn's
# ``CalibratedClassifierCV`` takes these models, too.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
left.plot([0, 100], [0, 100], color="0.4", lw=1, ls=":")
for (name, (observed, mean)), colour in zip(
    curve.items(), ("C0", "C1", "C3"), strict=True
):
    left.plot(
        100 * mean,
        100 * observed,
        "o-",
        color=colour,
        ms=6,
        label=f"{name}: {off[name]:.1f} points off",
    )
    right.hist(
        100 * probability[name],
        20,
        range=(0, 100),
        color=colour,
        histtype="step",
        lw=2.2,
        label=name,
    )
left.set(
    xlabel="predicted probability (%)",
    ylabel="share of positive new rows (%)",
    xlim=(0, 100),
    ylim=(0, 100),
)
left.legend(loc="upper left")
right.hist(
    100 * truth_new,
    20,
    range=(0, 100),
    color="C2",
    alpha=0.5,
    label="true probabilities",
    zorder=0,
)
right.set(xlabel="predicted probability (%)", ylabel="new rows", xlim=(0, 100))
right.legend(loc="upper center")
fig.suptitle(
    f"Probabilities are off by {off['default']:.1f} points on average by default, "
    f"by {off['500 rounds']:.1f} after 500 rounds",
    weight="bold",
)
plt.show()
