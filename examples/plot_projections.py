"""
Three ways to use a weak learner
================================

For a loss with kinks, fitting the subgradient once per round is not enough: what the
weak learner misses may be what matters.  Repeated and residual projections (Grubb and
Bagnell, 2011) converge to the best model, ordinary boosting need not.
"""

# %%
# One loss, one weak learner, three algorithms
# --------------------------------------------
# The absolute error on the diabetes data, boosted with stumps.  All three get the same
# number of stumps:
#
# - ``"naive"`` fits one stump to the subgradient in each round, as in ordinary gradient
#   boosting;
# - ``"repeated"`` fits t stumps in round t, each to what the last one left over;
# - ``"residual"``, the default, fits one stump per round to the subgradient plus all
#   that is left over so far.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from convexboost import ConvexBoostRegressor
from convexboost.learners import Stump

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

X, y = load_diabetes(return_X_y=True)
N_STUMPS = 4000
models = {}
for algorithm in ("naive", "repeated", "residual"):
    models[algorithm] = ConvexBoostRegressor(
        "absolute",
        Stump(max_bins=32),
        algorithm,
        n_rounds=N_STUMPS,
        max_weak_learners=N_STUMPS,
        early_stopping=False,
    ).fit(X, y)
    print(
        f"{algorithm:>9}: {models[algorithm].history_['objective'].min():.2f} "
        f"after {N_STUMPS} stumps"
    )

# %%
# The best possible
# -----------------
# The absolute error of a sum of stumps is piecewise linear, so a linear program finds
# its minimum.

certificate = models["residual"].certify(X, y, exact=True)
print(certificate)
optimum = models["residual"].history_["objective"].min() - certificate.gap()
above = {
    name: model.history_["objective"].min() - optimum for name, model in models.items()
}

# %%
# The distance from the optimum, on logarithmic scales: a straight line down is
# convergence.

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for (algorithm, model), colour in zip(models.items(), ("C1", "C3", "C0"), strict=True):
    best = np.minimum.accumulate(model.history_["objective"])
    ax.loglog(
        model.history_["weak_learners"],
        best - optimum,
        color=colour,
        lw=2.4,
        label=algorithm,
    )
ax.set(
    xlabel="stumps trained",
    ylabel="mean absolute error above the optimum",
    xlim=(10, N_STUMPS),
)
ax.legend(title="algorithm", title_fontsize=10)
ax.set_title(
    f"After {N_STUMPS} stumps: naive boosting {above['naive']:.1f} above the optimum,\n"
    f"repeated projections {above['repeated']:.1f}, residual projections "
    f"{above['residual']:.1f}",
    loc="left",
    weight="bold",
)
plt.show()
