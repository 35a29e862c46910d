"""The ranking metrics against loops over pairs and against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score, roc_auc_score

from convexboost.metrics import disagreement, ndcg
from tests import reference

N = 60


def problem(seed):
    rng = np.random.default_rng(seed)
    queries = np.append(rng.integers(0, 5, N - 1), 77)  # a query of one row
    scores = rng.normal(size=N) if seed % 2 else rng.integers(0, 4, N).astype(float)
    return rng.integers(0, 2 + seed % 4, N), scores, queries, rng.uniform(0.1, 3.0, N)


@pytest.mark.parametrize("seed", range(8))
def test_disagreement_is_that_of_all_pairs(seed):
    y, f, queries, weight = problem(seed)
    for w in (None, weight):
        for ties, tie in (("wrong", 1.0), ("half", 0.5)):
            expected = reference.disagreement(y, f, queries, w, tie)
            assert disagreement(y, f, queries, w, ties=ties) == pytest.approx(expected, rel=1e-12)
    names = np.array([f"query {q}" for q in queries])
    assert disagreement(y, f, names) == disagreement(y, f, queries)


def test_disagreement_extremes():
    y = np.array([0.0, 1.0, 2.0, 0.0])
    assert disagreement(y, y, np.zeros(4)) == 0.0
    assert disagreement(y, -y, np.zeros(4)) == 1.0
    assert disagreement(y, np.zeros(4), np.zeros(4)) == 1.0
    assert disagreement(y, np.zeros(4), np.zeros(4), ties="half") == 0.5
    assert disagreement(y, [0, 1, 5, 9], np.zeros(4), [1, 1, 1, 0]) == 0.0  # the last row does not count


@pytest.mark.parametrize("seed", range(4))
def test_with_two_grades_in_one_query_it_is_one_minus_the_area_under_the_curve(seed):
    _, f, _, weight = problem(seed)
    y = np.arange(N) % 2
    expected = 1.0 - roc_auc_score(y, f, sample_weight=weight)
    assert disagreement(y, f, np.zeros(N), weight, ties="half") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 3, 10, None])
@pytest.mark.parametrize("seed", range(8))
def test_ndcg_is_the_mean_of_scikit_learns(seed, k):
    y, f, queries, _ = problem(seed)
    rows = [queries == q for q in np.unique(queries)]
    one = [ndcg_score([2.0 ** y[r] - 1], [f[r]], k=k) for r in rows if len(np.unique(y[r])) > 1]
    assert 1 < len(one) < len(rows)
    assert ndcg(y, f, queries, k) == pytest.approx(np.mean(one), rel=1e-12)


def test_ndcg_takes_ten_by_default():
    y, f, queries, _ = problem(1)
    assert ndcg(y, f, queries) == ndcg(y, f, queries, 10) != ndcg(y, f, queries, 3)
    assert ndcg(y, y, queries) == pytest.approx(1.0, rel=1e-15)


def test_bad_input():
    y, f, queries, weight = problem(0)
    with pytest.raises(ValueError, match="`ties` must be one of wrong, half, got 'right'"):
        disagreement(y, f, queries, ties="right")
    for k in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match=f"`k` must be a positive integer or None, got {k}"):
            ndcg(y, f, queries, k)
    with pytest.raises(ValueError, match=r"`y` must lie between 0 and 1000 .*, got -1"):
        ndcg(y - 1, f, queries)
    with pytest.raises(ValueError, match=r"`y` must lie between 0 and 1000 .*, got 2000"):
        ndcg(y * 2000, f, queries)
    for metric in (disagreement, ndcg):
        with pytest.raises(ValueError, match="in every query all tie"):
            metric(np.ones(N), f, queries)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            metric(y, f[1:], queries)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            metric(y, f, queries[1:])
        with pytest.raises(ValueError, match="Input scores contains NaN"):
            metric(y, np.where(f > 0, np.nan, f), queries)
        with pytest.raises(ValueError, match=r"`scores` must have 1 dimension, got shape \(60, 2\)"):
            metric(y, np.column_stack([f, f]), queries)
    with pytest.raises(ValueError, match=r"non-zero|all tie"):
        disagreement(y, f, queries, np.zeros(N))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        disagreement(y, f, queries, -weight)
