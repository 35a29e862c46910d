"""
A model that can be read
========================

With the learner ``"additive"`` a model is a sum of one curve per feature, and nothing
else.  The curves below are the model itself, not an approximation, and here they cost
no accuracy.
"""

# %%
# Diabetes after a year
# ---------------------
# The target is how far the disease has progressed a year after the measurements, in the
# units of a clinical score.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score

from convexboost import ConvexBoostRegressor

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
for learner in ("tree", "additive"):
    r2 = cross_val_score(
        ConvexBoostRegressor(learner=learner, random_state=0), X, y, cv=5
    )
    print(f"{learner:>8}: R² {r2.mean():.3f} in cross-validation")

# %%
# The curves
# ----------
# ``shape_functions`` returns them as data: cuts, and the value between two cuts.  A
# prediction is the base value plus one value from each curve.

model = ConvexBoostRegressor(learner="additive", random_state=0).fit(X, y)
curves = {curve.feature: curve for curve in model.shape_functions()}
patient = X.iloc[[0]]
parts = {
    name: curve.values[np.searchsorted(curve.cuts, patient[name].item()), 0]
    for name, curve in curves.items()
}
base = model.predict_contributions(patient)[0, -1]
print(
    f"base {base:.1f} + curves {sum(parts.values()):+.1f} = prediction "
    f"{model.predict(patient)[0]:.1f}"
)

# %%
# The six most important features, and where the patients are (ticks).

importance = dict(zip(X.columns, model.feature_importances_, strict=True))
order = sorted(importance, key=importance.get, reverse=True)[:6]
names = {
    "bmi": "body mass index",
    "bp": "blood pressure",
    "s5": "log triglycerides (s5)",
    "s6": "blood sugar (s6)",
}
names |= {
    "s1": "cholesterol (s1)",
    "s2": "LDL (s2)",
    "s3": "HDL (s3)",
    "s4": "cholesterol / HDL (s4)",
    "age": "age",
}
fig, axes = plt.subplots(2, 3, figsize=(9.5, 5.2), layout="constrained", sharey=True)
for ax, name in zip(axes.flat, order, strict=True):
    curve = curves[name]
    edges = np.concatenate([[X[name].min()], curve.cuts, [X[name].max()]])
    ax.stairs(curve.values[:, 0], edges, baseline=None, color="C0", lw=2.4)
    ax.axhline(0, color="0.4", lw=0.8)
    ax.plot(
        X[name],
        np.full(len(X), 0.02),
        "|",
        color="C3",
        ms=7,
        alpha=0.3,
        transform=ax.get_xaxis_transform(),
        mew=0.7,
    )
    ax.set(xlabel=names.get(name, name))
    if name == "sex":
        ax.set_xticks([1, 2])
for ax in axes[:, 0]:
    ax.set_ylabel("adds to the score")
share = 100 * sum(importance[name] for name in order[:2])
fig.suptitle(
    f"The whole model is curves like these; the first two have {share:.0f} % "
    "of the importance",
    weight="bold",
)
plt.show()
