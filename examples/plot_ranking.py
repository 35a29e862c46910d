"""
Ranking search results
======================

``ConvexBoostRanker`` learns the order of the rows within each query.  Its loss, the
pairwise hinge, bounds the number of pairs in the wrong order.
"""

# %%
# Queries
# -------
# Each query has 20 documents with grades 0, 1 and 2.  Queries differ in how good their
# documents are overall, which says nothing about the order.  If the folder
# ``CONVEXBOOST_DATA`` holds the MQ2008 collection, that is used instead.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from convexboost import ConvexBoostRanker, ConvexBoostRegressor
from convexboost.datasets import load_mq2008
from convexboost.metrics import disagreement, ndcg

plt.style.use(
    ["seaborn-v0_8-whitegrid", "seaborn-v0_8-notebook", "tableau-colorblind10"]
)

if (Path(os.environ.get("CONVEXBOOST_DATA", "")) / "mq2008").is_dir():
    name, data = "MQ2008", load_mq2008()
    train, validation, test = (
        (data.X[rows], data.y[rows], data.qid[rows]) for rows in data.folds[0]
    )
else:
    name, rng = "made-up queries", np.random.default_rng(0)
    qid = np.repeat(np.arange(300), 20)
    X = rng.normal(size=(len(qid), 10))
    worth = X[:, 0] + np.sin(2 * X[:, 1]) + 0.7 * rng.normal(size=len(qid))
    y = np.digitize(worth + 1.5 * rng.normal(size=300)[qid], [0.5, 1.5])
    train, validation, test = (
        (X[rows], y[rows], qid[rows])
        for rows in (qid % 5 < 3, qid % 5 == 3, qid % 5 == 4)
    )
print(
    f"{name}: {len(np.unique(train[2]))} training queries, {len(train[1])} "
    f"rows, {train[0].shape[1]} features"
)

# %%
# A ranker, and a regression of the grades
# ----------------------------------------
# Validation queries choose the number of rounds of both.  The regression has to explain
# why some queries have better documents; the ranker compares documents of the same
# query only.

ranker = ConvexBoostRanker(random_state=0)
ranker.fit(*train, X_val=validation[0], y_val=validation[1], qid_val=validation[2])
regression = ConvexBoostRegressor(random_state=0)
regression.fit(*train[:2], X_val=validation[0], y_val=validation[1])
X_test, y_test, qid_test = test
wrong, top = {}, {}
for kind, model in (("ranker", ranker), ("regression of the grades", regression)):
    scores = model.predict(X_test)
    wrong[kind], top[kind] = (
        100 * disagreement(y_test, scores, qid_test),
        ndcg(y_test, scores, qid_test),
    )
    print(
        f"{kind}: {wrong[kind]:.1f} % of the pairs in the wrong order, "
        f"NDCG@10 {top[kind]:.3f}"
    )

# %%
# Test queries, round by round.  A random order has half of the pairs wrong.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
for kind, model, colour in (
    ("ranker", ranker, "C0"),
    ("regression of the grades", regression, "C1"),
):
    staged = [
        (disagreement(y_test, s, qid_test), ndcg(y_test, s, qid_test))
        for s in model.staged_predict(X_test)
    ]
    pairs, gains = np.array(staged).T
    rounds = np.arange(1, len(pairs) + 1)
    left.plot(rounds, 100 * pairs, color=colour, lw=2.4, label=kind)
    right.plot(rounds, gains, color=colour, lw=2.4, label=kind)
    left.plot(rounds[-1], wrong[kind], "o", color=colour, ms=9)
    right.plot(rounds[-1], top[kind], "o", color=colour, ms=9)
left.set(xlabel="round", ylabel="test pairs in the wrong order (%)", xscale="log")
right.set(xlabel="round", ylabel="NDCG@10 on test queries", xscale="log")
left.legend()
fig.suptitle(
    f"Pairs in the wrong order ({name}): ranker {wrong['ranker']:.1f} %, "
    f"regression {wrong['regression of the grades']:.1f} %",
    weight="bold",
)
plt.show()
