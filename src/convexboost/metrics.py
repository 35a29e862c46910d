"""How good a ranking is: the share of pairs in the wrong order, and the discounted gain of the top.

No model depends on these numbers: they are sums of floats, whose last digits depend on the order of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from convexboost.core.space import Array
from convexboost.kernels.ranking import Pairs

__all__ = ["disagreement", "ndcg"]

TIES = ("wrong", "half")
MAX_GRADE = 1000  #: 2^1024 is no float
NO_PAIRS = "`y` must hold two different grades in some query, but in every query all tie"


def disagreement(y: Any, scores: Any, qid: Any, sample_weight: Any = None, *, ties: str = "wrong") -> float:
    """Return the share of the pairs (i, j) of a query with grade_i > grade_j in which f_i ≤ f_j.

    Parameters
    ----------
    y, scores, qid : arrays of shape (n_samples,)
        Grades, predicted scores, and the query of each row.
    sample_weight : array, optional
        A pair counts as much as the product of the weights of its rows.
    ties : {"wrong", "half"}, default="wrong"
        What a pair with f_i = f_j counts.

    """
    if ties not in TIES:
        raise ValueError(f"`ties` must be one of {', '.join(TIES)}, got {ties!r}")
    y, f, queries = _rows(y, scores, qid)
    weight = _check_sample_weight(sample_weight, f, dtype=np.float64, ensure_non_negative=True)
    used = weight > 0
    y, f, queries, weight = y[used], f[used], queries[used], weight[used]
    pairs = Pairs.of(y, queries, weight) if len(y) else None
    if pairs is None or pairs.n_queries == 0:
        raise ValueError(NO_PAIRS)

    def mass(limit: Array) -> float:
        return float(weight @ pairs.count(f, limit)[0])

    wrong = mass(np.nextafter(f, -np.inf))  # f_j > this for every f_j ≥ f_i
    if ties == "half":
        wrong = (wrong + mass(f)) / 2.0
    return wrong / mass(np.full(len(f), -np.inf))


def ndcg(y: Any, scores: Any, qid: Any, k: int | None = 10) -> float:
    """Return the mean NDCG@k over the queries in which there is something to order: two different grades.

    Gain 2^grade − 1, discount log2(rank + 1); rows with tied scores share their places, as in
    `sklearn.metrics.ndcg_score`.  Grades lie between 0 and 1000; k=None takes all rows.
    """
    if k is not None and not (isinstance(k, int | np.integer) and not isinstance(k, bool) and k >= 1):
        raise ValueError(f"`k` must be a positive integer or None, got {k!r}")
    y, f, queries = _rows(y, scores, qid)
    if y.min() < 0.0 or y.max() > MAX_GRADE:
        bad = y.min() if y.min() < 0.0 else y.max()
        raise ValueError(f"`y` must lie between 0 and {MAX_GRADE} (NDCG gains 2^y − 1), got {bad:g}")
    gain, n_queries = np.exp2(y) - 1.0, int(queries.max()) + 1
    low, high = np.full(n_queries, np.inf), np.zeros(n_queries)
    np.minimum.at(low, queries, y)
    np.maximum.at(high, queries, y)
    if not (low < high).any():
        raise ValueError(NO_PAIRS)
    found = _discounted_gain(gain, f, queries, k)
    ideal = _discounted_gain(gain, y, queries, k)
    return float((found[low < high] / ideal[low < high]).mean())


def _rows(y: Any, scores: Any, qid: Any) -> tuple[Array, Array, NDArray[np.int64]]:
    """Check the arrays; the queries become 0, 1, … ."""
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    scores = check_array(scores, ensure_2d=False, dtype=np.float64, input_name="scores")
    labels = np.asarray(qid)
    for name, values in (("y", y), ("scores", scores), ("qid", labels)):
        if values.ndim != 1:
            raise ValueError(f"`{name}` must have 1 dimension, got shape {values.shape}")
    check_consistent_length(y, scores, labels)
    return y, scores, np.unique(labels, return_inverse=True)[1]


def _discounted_gain(gain: Array, f: Array, queries: NDArray[np.int64], k: int | None) -> NDArray[Any]:
    """Σ gain / log2(rank + 1) over the k rows with the highest f, query by query."""
    order = np.lexsort((-f, queries))
    query, f = queries[order], f[order]
    begins = np.append(True, query[1:] != query[:-1])
    place = np.arange(len(f)) - np.flatnonzero(begins)[query]  # every number from 0 on occurs in `query`
    discount = 1.0 / np.log2(place + 2.0)
    if k is not None:
        discount[place >= k] = 0.0
    tied = np.cumsum(begins | np.append(True, f[1:] != f[:-1])) - 1
    shared = np.bincount(tied, discount) / np.bincount(tied)
    return np.bincount(query, gain[order] * shared[tied])
