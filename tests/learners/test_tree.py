"""Histogram trees: the same trees as a slow grower and as scikit-learn; limits, constraints, subsamples."""

import itertools
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeRegressor

from convexboost.boosting.training import boost
from convexboost.core.gradients import Gradient
from convexboost.core.space import FunctionSpace
from convexboost.learners import _growth, _monotone, _tree_function
from convexboost.learners._monotone import means, nearest_monotone
from convexboost.learners._tree_function import TreeFunction
from convexboost.learners.tree import Tree
from convexboost.losses.absolute import Absolute
from convexboost.losses.half_squared import HalfSquared
from tests import reference

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow


def mixed(rng, n):
    """Numbers with missing values, few numbers, categories with missing ones, a constant, nothing."""
    X = np.column_stack(
        [
            rng.normal(size=n),
            np.round(rng.normal(size=n)),
            rng.integers(0, 6, n),
            rng.normal(size=n),
            np.full(n, 3.0),
            np.full(n, np.nan),
            rng.integers(0, 3, n),
        ]
    )
    X[rng.random(n) < 0.25, 0] = np.nan
    X[rng.random(n) < 0.25, 2] = np.nan
    return X, [2, 6]


def bound(learner, X, weight=None, categorical=None, **options):
    return learner.bind(X, FunctionSpace.of(len(X), weight), categorical, **options)


def project(H, V, seed=0, curvature=None):
    delta = H.zero(V.shape[1])
    delta.add(Gradient(V, H.space))
    return delta.project_to_refit(np.random.default_rng(seed), curvature)


def grown(H, V, seed=0, curvature=None):
    ((_, tree),) = project(H, V, seed, curvature).terms
    return tree


def slow(H, V, seed=None, curvature=1.0):
    """The slow tree for the same problem; `curvature` is relative to its mean."""
    learner, weight = H.learner, H.space.weight
    rules = {
        "max_leaves": learner.max_leaves,
        "max_depth": math.inf if learner.max_depth is None else learner.max_depth,
        "least": (1 - 1e-9) * learner.min_samples_leaf / H.n_rows,
        "l2": learner.reg_lambda / H.n_rows,
        "category_l2": learner.cat_smooth / H.n_rows,
        "min_gain": max(learner.min_split_gain, 1e-13 * H.space.norm(V) ** 2),
        "random": seed,
    }
    rows = np.column_stack([weight * np.clip(curvature, 0.1, 4.0), weight[:, None] * V])
    return reference.tree(
        H.inputs.codes, H.mapper.bins.offsets, H.categorical, H.monotone, rows, rules
    ), rules


SETTINGS = {
    "plain": {},
    "l2": {"reg_lambda": 7.5, "max_leaves": 6},
    "sets": {"cat_smooth": 0.0, "min_samples_leaf": 3},
    "smooth": {"cat_smooth": 3.5, "min_samples_leaf": 1},
    "weight": {"min_samples_leaf": 12.5},
    "one": {"min_samples_leaf": 1},
    "none": {"min_samples_leaf": 0},
    "depth": {"max_depth": 2, "min_samples_leaf": 2},
    "gain": {"min_split_gain": 0.02, "min_samples_leaf": 1},
    "bins": {"max_bins": 4, "min_samples_leaf": 3},
    "monotone": {"monotone_constraints": {0: 1, 3: -1}, "min_samples_leaf": 3},
    "random": {"splits": "random", "min_samples_leaf": 3},
    "random-all": {"splits": "random", "monotone_constraints": {0: -1}, "reg_lambda": 1.0, "max_depth": 4},
}


@pytest.mark.parametrize("is_curved", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_same_tree_as_the_slow_grower(settings, n_outputs, is_curved):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, categorical = mixed(rng, 70)
        weight = rng.uniform(0.5, 2.0, 70) if seed else None
        curvature, relative = None, 1.0
        if is_curved:
            curvature = rng.integers(0, 512, 70) ** 2 / 2.0**14
            mean = curvature.mean() if weight is None else np.average(curvature, weights=weight)
            relative = curvature / mean
        H = bound(Tree(**{"splits": "best", "max_leaves": 9, **settings}), X, weight, categorical)
        V = rng.normal(size=(70, n_outputs)) + np.nan_to_num(X[:, :1]) - np.isnan(X[:, 2:3])
        tree = grown(H, V, seed, curvature)
        drawn = settings.get("splits") == "random"
        cuts = int(np.random.default_rng(seed).integers(2**63)) if drawn else None
        root, rules = slow(H, V, cuts, relative)
        # Leaf by leaf, at any codes, also those not met in training.
        codes = np.column_stack([rng.integers(0, b, 300) for b in np.diff(H.mapper.bins.offsets)]).astype(
            np.uint8
        )
        codes = np.vstack([H.inputs.codes, codes])
        leaves = _tree_function.RowCodes.of(np.ascontiguousarray(codes.T), 1).leaves(tree)
        slow_leaves = [reference.tree_leaf(root, row) for row in codes]
        numbers = {id(leaf): i for i, leaf in enumerate({id(x): x for x in slow_leaves}.values())}
        pairs = set(zip(leaves.tolist(), [numbers[id(x)] for x in slow_leaves], strict=True))
        assert len(pairs) == len(numbers) == len(set(leaves.tolist()))
        if "monotone_constraints" in settings:
            continue  # the values: below
        for leaf, rows in zip(leaves, [x["rows"] for x in slow_leaves], strict=True):
            p = H.space.weight[rows]
            np.testing.assert_allclose(tree.values[leaf], p @ V[rows] / (p.sum() + rules["l2"]), rtol=1e-9)


def test_splits_gain_what_newton_steps_bring():
    """Of two cuts, the one whose leaves have the larger Σg²/Σh, not the one with the larger Σg²/n."""
    x = np.repeat([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [60, 20, 20], axis=0)
    V = np.repeat([[0.0], [2.0], [2.1]], [60, 20, 20], axis=0)
    H = bound(Tree(max_leaves=2, min_samples_leaf=2, splits="best"), x)
    assert grown(H, V).feature[0] == 0
    sure_rows_at_the_end = np.repeat([1.0, 1.0, 0.2], [60, 20, 20])
    assert grown(H, V, curvature=sure_rows_at_the_end).feature[0] == 1
    np.testing.assert_array_equal(
        grown(H, V, curvature=np.full(100, 7.0)).values, grown(H, V).values, err_msg="equal curvatures"
    )


@pytest.mark.parametrize("weight", [None, "whole", "any"])
def test_a_curved_row_is_its_copies(weight):
    """Whatever the curvature: a row of weight 2 is the row twice, and the order of rows does not matter."""
    rng = np.random.default_rng(5)
    X, V, curvature = rng.normal(size=(90, 3)), rng.normal(size=(90, 1)), rng.exponential(size=90)
    weights = {None: np.ones(90), "whole": rng.integers(1, 4, 90), "any": rng.uniform(0.5, 2.0, 90)}[weight]
    rows = rng.permutation(np.repeat(np.arange(90), np.where(np.arange(90) < 40, 2, 1)))
    parts = weights[rows]
    once = weights * np.where(np.arange(90) < 40, 2.0, 1.0)
    trees = []
    for x, v, c, w in ((X, V, curvature, once), (X[rows], V[rows], curvature[rows], parts)):
        H = bound(Tree(splits="best", min_samples_leaf=5), x, w)
        tree = grown(H, v, curvature=c)
        trees.append(tree.values[H.mapper.prepare(X).leaves(tree)])
    np.testing.assert_allclose(trees[0], trees[1], rtol=1e-9, atol=1e-12)


def test_curvatures_of_nearly_all_rows_may_vanish():
    """Light rows still count a little, and a heavy one is no leaf of its own."""
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(400, 2)), rng.normal(size=(400, 1))
    H = bound(Tree(splits="best"), X)
    curvature = np.where(np.arange(400) < 3, 1.0, 1e-300)
    tree = grown(H, V, curvature=curvature)
    count = np.bincount(H.inputs.leaves(tree))
    assert len(count) > 2
    assert count.min() >= 3
    assert len(grown(H, V, curvature=np.zeros(400)).values) == len(grown(H, V).values)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_same_tree_as_scikit_learn(n_outputs):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 5))  # no more rows than bins: every cut is there
    V = np.sin(2 * X[:, :1]) * X[:, 1:2] + rng.normal(size=(200, n_outputs))
    H = bound(Tree(max_leaves=20, min_samples_leaf=5, splits="best"), X)
    F = np.zeros((200, n_outputs))
    project(H, V).add_to(F, H.inputs)
    other = DecisionTreeRegressor(max_leaf_nodes=20, min_samples_leaf=5, random_state=0).fit(X, V)
    np.testing.assert_allclose(F, other.predict(X).reshape(200, -1), rtol=1e-9, atol=1e-12)


def test_a_missing_value_goes_where_it_fits():
    """To the left, to the right, or to a side of its own."""
    x = np.repeat([0.0, 1.0, np.nan], 20)[:, None]
    for targets, same in (([0.0, 1.0, 0.0], 0), ([0.0, 1.0, 1.0], 1), ([1.0, 1.0, 0.0], None)):
        V = np.repeat(targets, 20)[:, None]
        H = bound(Tree(max_leaves=2), x)
        tree = grown(H, V)
        inputs = H.mapper.prepare(np.array([[0.0], [1.0], [np.nan]]))
        low, high, missing = inputs.leaves(tree)
        assert (missing == low, missing == high) == (same == 0, same == 1)


@pytest.mark.parametrize("many", [0.0, 1.0])
def test_missing_values_not_met_go_with_the_many(many):
    x = np.where(np.arange(90) < 30, 1.0 - many, many)[:, None]
    H = bound(Tree(max_leaves=2), x)
    tree = grown(H, x * 2.0)
    leaves = H.mapper.prepare(np.array([[many], [np.nan], [1.0 - many]])).leaves(tree)
    assert leaves[0] == leaves[1] != leaves[2]


def test_categories_not_met():
    """Unknown ones are missing ones; in a node without those they go with the many."""
    x = np.repeat([0.0, 1.0, 2.0], [40, 20, 20])[:, None]
    V = np.repeat([1.0, 1.0, 5.0], [40, 20, 20])[:, None]
    H = bound(Tree(max_leaves=2), x, categorical=[0])
    leaves = H.mapper.prepare(np.array([[0.0], [1.0], [2.0], [77.0], [np.nan]])).leaves(grown(H, V))
    assert leaves[0] == leaves[1] == leaves[3] == leaves[4] != leaves[2]
    x = np.vstack([x, np.full((20, 1), np.nan)])
    V = np.vstack([V, np.full((20, 1), 5.0)])
    H = bound(Tree(max_leaves=2), x, categorical=[0])
    leaves = H.mapper.prepare(np.array([[0.0], [2.0], [77.0], [np.nan]])).leaves(grown(H, V))
    assert leaves[0] != leaves[1] == leaves[2] == leaves[3]


@pytest.mark.parametrize("reg_lambda", [0.0, 5.0])
@pytest.mark.parametrize("seed", range(20))
def test_best_subset_of_categories_for_one_output(seed, reg_lambda):
    """Missing values are a category, too."""
    rng = np.random.default_rng(seed)
    x, n = rng.integers(0, 7, 100).astype(float), 100
    x[rng.random(n) < 0.1] = np.nan
    kind = np.nan_to_num(x, nan=7.0).astype(int)
    V, w = rng.normal(size=8)[kind] + rng.normal(size=n), rng.integers(1, 4, n)
    learner = Tree(max_leaves=2, min_samples_leaf=1, reg_lambda=reg_lambda, cat_smooth=0.0)
    H = bound(learner, x[:, None], w, categorical=[0])
    mass, sums = np.bincount(kind, w, 8), np.bincount(kind, w * V, 8)

    def score(subset):
        return sums[subset].sum() ** 2 / (mass[subset].sum() + reg_lambda)

    def score_of_cut(left):
        left = np.asarray(left)
        return score(left) + score(np.setdiff1d(np.arange(8), left))

    cuts = (cut for size in range(1, 8) for cut in itertools.combinations(range(8), size))
    tree, _ = H.grow(V[:, None], H.space.norm(V[:, None]), rng)
    found = np.unique(kind[H.inputs.leaves(tree) == 0])
    assert score_of_cut(found) == pytest.approx(max(map(score_of_cut, cuts)), rel=1e-9)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_threads_do_not_change_a_bit(n_outputs, monkeypatch):
    """With enough rows that the histograms are shared out, and the first ones left to the threads."""
    monkeypatch.setattr("convexboost.kernels.parallel.MIN_OPERATIONS", 1000)
    monkeypatch.setattr(_growth, "THREADED", 2000)
    rng = np.random.default_rng(0)
    X, categorical = mixed(rng, 3000)
    V, weight = rng.normal(size=(3000, n_outputs)) + np.nan_to_num(X[:, :1]), rng.uniform(0.1, 3, 3000)
    found = []
    for n_threads in (1, 2, 3):
        H = bound(Tree(subsample=0.7, colsample_bytree=0.8), X, weight, categorical, n_threads=n_threads)
        found.append(grown(H, V))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].masks, other.masks)
        np.testing.assert_array_equal(found[0].feature, other.feature)
        np.testing.assert_array_equal(found[0].values, other.values)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_copies_of_a_row_are_drawn_together(n_outputs):
    """So that weight 2 is the row twice; rows with the same inputs and other targets are drawn apart."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(50, 2)), 40, axis=0)
    V = np.repeat(rng.normal(size=(1000, n_outputs)), 2, axis=0)
    H = bound(Tree(subsample=0.6), X)
    drawn = np.zeros(2000, bool)
    drawn[H._draw_rows(V, 1.0, np.random.default_rng(0))] = True
    np.testing.assert_array_equal(drawn[::2], drawn[1::2])
    assert 0.5 < drawn.mean() < 0.7
    of_an_input = drawn[::2].reshape(50, 20)
    assert (of_an_input.any(axis=1) & ~of_an_input.all(axis=1)).mean() > 0.9
    order = rng.permutation(2000)
    again = bound(Tree(subsample=0.6), X[order])._draw_rows(V[order], 1.0, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(order[again]), np.flatnonzero(drawn))
    other = H._draw_rows(V, 1.0, np.random.default_rng(1))
    assert 0.3 < drawn[other].mean() * 0.6 < 0.42


def test_order_of_rows_does_not_change_a_bit():
    """Many rows of very uneven size: sums in units have no order."""
    rng = np.random.default_rng(1)
    X, categorical = mixed(rng, 2000)
    V, weight = rng.standard_t(1.5, size=(2000, 2)) + np.nan_to_num(X[:, :1]), rng.lognormal(0, 2, 2000)
    order = rng.permutation(2000)
    space = FunctionSpace.of(2000, weight)
    mapper = None
    found = []
    for rows in (np.arange(2000), order):
        H = Tree(splits="best").bind(
            X[rows], FunctionSpace(space.weight[rows], space.total), categorical, mapper=mapper
        )
        mapper = H.mapper  # the weights up to a bin are added up in the order of the rows
        found.append(grown(H, V[rows]))
    np.testing.assert_array_equal(found[0].masks, found[1].masks)
    np.testing.assert_array_equal(found[0].values, found[1].values)


def test_nothing_to_split_on():
    """Fewer rows than a leaf needs, or a constant target: the mean, and training that ends."""
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    h = project(bound(Tree(), X), V)
    ((weight, tree),) = h.terms
    np.testing.assert_allclose(weight * tree.values, [V.mean(axis=0)], rtol=1e-9)
    space = FunctionSpace.of(8)
    result = boost(HalfSquared().bind(V, space), bound(Tree(), X), step="refit", n_rounds=50)
    assert result.stop.message.startswith("converged")
    np.testing.assert_allclose(result.model.predict(X), np.tile(V.mean(axis=0), (8, 1)), rtol=1e-9)
    constant = np.full((100, 1), 0.1)
    tree = grown(bound(Tree(min_samples_leaf=1), rng.normal(size=(100, 3))), constant)
    assert len(tree.values) == 1


@pytest.mark.parametrize("n", [1, 2])
def test_few_rows(n):
    X, V = np.arange(float(n))[:, None], np.arange(float(n))[:, None] + 1.0
    h = project(bound(Tree(min_samples_leaf=1), X), V)
    assert h.norm == pytest.approx(FunctionSpace.of(n).norm(V))


def test_rows_of_no_weight_to_speak_of():
    """Weights below rounding take no part, and do no harm."""
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(60, 2)), rng.normal(size=(60, 1)) * 1e10
    weight = np.where(np.arange(60) < 30, 1.0, 1e-30)
    for share in (1.0, 0.5):
        h = project(bound(Tree(min_samples_leaf=0, subsample=share), X, weight), V)
        ((_, tree),) = h.terms
        assert np.isfinite(tree.values).all()
        assert np.abs(tree.values).max() <= np.abs(V[:30]).max() * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e5, 1e140])
def test_units_do_not_matter(scale):
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    H = bound(Tree(splits="best"), X)
    a, b = grown(H, V), grown(H, V * scale)
    np.testing.assert_array_equal(a.masks, b.masks)
    np.testing.assert_allclose(a.values * scale, b.values, rtol=1e-9)


def test_sparse_inputs_are_written_out():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 4)) < 0.6, 0.0, rng.normal(size=(50, 4)))
    V = rng.normal(size=(50, 1))
    dense = bound(Tree(), X)
    for form in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix):
        H = Tree().bind(form(X), FunctionSpace.of(50))
        np.testing.assert_array_equal(H.inputs.codes, dense.inputs.codes)
        np.testing.assert_array_equal(grown(H, V).values, grown(dense, V).values)
        np.testing.assert_array_equal(dense.mapper.prepare(form(X)).codes, dense.inputs.codes)


def test_histograms_that_do_not_fit():
    """Refused before any work, with what can be done about it.  Nodes of few rows have no histograms."""
    X = np.random.default_rng(0).normal(size=(3000, 200))
    bound(Tree(max_leaves=300), X[:30]).zero(2000)
    H = bound(Tree(max_leaves=300), X)
    H.zero(20)
    with pytest.raises(
        ValueError, match=r"`max_leaves`=300, 200 columns.*2000 outputs take \d+ GiB.*'stump'"
    ):
        H.zero(2000)


# --- subsamples --------------------------------------------------------------------------------------------


def rows_used(H, V, seed=0):
    """The rows that a tree is grown on: those in its nodes."""
    return H._draw_rows(V, 1.0, np.random.default_rng(seed))


def test_share_of_rows_and_columns():
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(2000, 10)), rng.normal(size=(2000, 1))
    H = bound(Tree(subsample=0.3, colsample_bytree=0.2, max_leaves=200, min_samples_leaf=1), X)
    drawn = [rows_used(H, V, seed) for seed in range(5)]
    assert len({tuple(rows) for rows in drawn}) == 5
    assert all(500 < len(rows) < 700 for rows in drawn)
    for seed in range(5):
        h = project(H, V, seed)
        tree = h.terms[0][1]
        assert len(set(tree.feature[tree.feature >= 0].tolist())) == 2
        # The values are those of all rows, so the projection is one of all of Δ.
        leaf = H.inputs.leaves(tree)
        for number in np.unique(leaf)[:20]:
            assert tree.values[number, 0] == pytest.approx(V[leaf == number].mean(), rel=1e-6, abs=1e-9)
    one = bound(Tree(subsample=1e-9), X)
    assert len(rows_used(one, V)) == 2000  # rather all than none


def test_share_of_whole_groups():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 2)), rng.integers(0, 40, 400)
    H = bound(Tree(subsample=0.5), X, groups=groups)
    rows = rows_used(H, np.zeros((400, 1)))
    assert 0 < len(rows) < 400
    assert not set(groups[rows]) & set(np.delete(groups, rows))


# --- constraints -------------------------------------------------------------------------------------------


def constraints(tree):
    """Pairs of leaves (low, high)."""
    below = _monotone._leaves_below(tree)
    pairs = []
    for node in np.flatnonzero(tree.feature >= 0):
        sign = tree.monotone[tree.feature[node]]
        left, right = below[tree.child[node]], below[tree.child[node] + 1]
        if sign:
            pairs += itertools.product(*((left, right) if sign > 0 else (right, left)))
    return pairs


@pytest.mark.parametrize("seed", range(8))
def test_nearest_monotone_values_are_a_projection(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    H = bound(Tree(max_leaves=8, splits="random", monotone_constraints=[1, -1, 0]), X)
    tree = grown(H, rng.normal(size=(200, 2)), seed)
    values, mass = rng.normal(size=(len(tree.values), 2)), rng.uniform(0.1, 2.0, len(tree.values))
    found = nearest_monotone(tree, values, means(values, mass))
    pairs = constraints(tree)
    for low, high in pairs:
        assert (found[low] <= found[high]).all()
    for k in range(2):
        expected = reference.nearest_monotone(pairs, values[:, k], mass)
        np.testing.assert_allclose(found[:, k], expected, atol=1e-5)
        # A projection on a cone that holds the constants.
        assert mass @ (found[:, k] * (values - found)[:, k]) == pytest.approx(0.0, abs=1e-9)
        assert mass @ (values - found)[:, k] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_array_equal(nearest_monotone(tree, found, means(found, mass)), found)


def test_an_output_that_does_not_move_does_not_forbid_a_split():
    """Its means are equal on both sides, but for the rounding of targets to whole numbers."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n, n_outputs, sign = int(rng.integers(6, 60)), int(rng.choice([2, 3, 4])), rng.choice([-1, 0, 1])
        X = rng.integers(0, 5, (n, 2)).astype(float)
        whole, w = rng.integers(-2, 3, (n, n_outputs)), rng.integers(1, 4, n)
        H = bound(Tree(max_leaves=6, min_samples_leaf=1, monotone_constraints=[1, sign]), X, w)
        V = whole / 7.0
        if not V.any():
            continue
        tree, _ = H.grow(V, H.space.norm(V), rng)
        if len(tree.values) == 6:
            continue
        leaf = H.inputs.leaves(tree)
        for rows in (np.flatnonzero(leaf == number) for number in range(len(tree.values))):
            for j, cut in itertools.product(range(2), range(4)):
                left, right = rows[X[rows, j] <= cut], rows[X[rows, j] > cut]
                (a, A), (b, B) = ((w[side].sum(), w[side] @ whole[side]) for side in (left, right))
                rises = a * B - b * A  # whole numbers
                allowed = len(left) and len(right) and (H.monotone[j] * rises >= 0).all()
                assert not (allowed and rises.any()), f"seed {seed}: it stops although a split is allowed"


def test_constrained_projection_keeps_its_sign():
    """Cutting both sides where they meet would turn this one round: ⟨Δ, h⟩ < 0."""
    x = np.repeat([[0, 0], [0, 1], [1, 0]], [100, 90, 50_000], axis=0).astype(float)
    V = np.repeat([100.0, -100.0, 0.1], [100, 90, 50_000])[:, None]
    h = project(bound(Tree(monotone_constraints=[1, 0]), x), V)
    ((weight, tree),) = h.terms
    assert weight == pytest.approx(1.0)
    assert h.norm > 0.0
    assert len(tree.values) > 1


@pytest.mark.parametrize("reg_lambda", [0.0, 20.0])
def test_projection_is_exact_for_inexact_leaves(reg_lambda):
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(300, 3)), rng.normal(size=(300, 2))
    weight = rng.uniform(0.2, 3.0, 300)
    H = bound(Tree(reg_lambda=reg_lambda, subsample=0.5, monotone_constraints=[1, 0, -1]), X, weight)
    h = project(H, V)
    values = np.zeros_like(V)
    h.add_to(values, H.inputs)
    assert h.terms[0][0] > 0.0
    assert H.space.inner(values, V - values) == pytest.approx(0.0, abs=1e-12)
    assert H.space.norm(values) == pytest.approx(h.norm)


@pytest.mark.parametrize(
    ("monotone", "message"),
    [
        ([1, 2, 0], "`monotone_constraints` of a tree must be"),
        ([0.5, 0, 0], "`monotone_constraints` of a tree must be"),
        ("up", "`monotone_constraints` of a tree must be"),
        (1, "`monotone_constraints` of a tree must be"),
        ({0: "up"}, "`monotone_constraints` of a tree must be"),
        ([1, 0], "must have 3 entries, got 2"),
        ({3: 1}, "between 0 and 2, got 3"),
        ({-1: 1}, "between 0 and 2, got -1"),
        ({"age": 1}, "'age'"),
        ({2: 1}, "column 2, which is categorical"),
        ([0, 0, -1], "column 2, which is categorical"),
    ],
)
def test_bad_constraints(monotone, message):
    X = np.random.default_rng(0).integers(0, 3, (20, 3)).astype(float)
    with pytest.raises(ValueError, match=message):
        bound(Tree(monotone_constraints=monotone), X, categorical=[2])


def test_constraints_in_every_form():
    X = np.zeros((4, 3))
    for monotone in ([1, 0, -1], (1, 0, -1), np.array([1, 0, -1]), {0: 1, 2: -1}, {np.int64(0): 1, 2: -1}):
        assert bound(Tree(monotone_constraints=monotone), X).monotone.tolist() == [-1, 0, 1]
    space, names = FunctionSpace.of(len(X)), np.array(["a", "b", "c"], object)
    named = Tree(monotone_constraints={"a": 1, 2: -1}).bind(X, space, names=names)
    assert named.monotone.tolist() == [-1, 0, 1]
    with pytest.raises(ValueError, match="names column 'z', which `X` does not have"):
        Tree(monotone_constraints={"z": 1}).bind(X, space, names=names)
    with pytest.raises(ValueError, match="names column 'a'"):
        Tree(monotone_constraints={"a": 1}).bind(X, space)
    assert bound(Tree(monotone_constraints=[0, 0, 1]), X, categorical=[0]).monotone.tolist() == [0, 0, -1]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("max_leaves", 1),
        ("max_leaves", 2.5),
        ("max_depth", 0),
        ("min_samples_leaf", -1),
        ("reg_lambda", math.inf),
        ("min_split_gain", math.nan),
        ("subsample", 0),
        ("colsample_bytree", 1.5),
        ("splits", "good"),
        ("max_bins", 256),
    ],
)
def test_bad_parameters(parameter, value):
    with pytest.raises(ValueError, match=f"`{parameter}` of a tree must be .*got {value!r}"):
        Tree(**{parameter: value})


def test_trees_survive_pickling():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    space = FunctionSpace.of(100)
    result = boost(Absolute().bind(y, space), bound(Tree(), X), step="refit", n_rounds=5)
    model = pickle.loads(pickle.dumps(result.model))
    assert isinstance(model.terms[0][1], TreeFunction)
    np.testing.assert_array_equal(model.predict(X), result.model.predict(X))


def test_bins_without_rows():
    """`mapper` returns that of `bind`."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[:, 1] = np.arange(50) % 4
    space = FunctionSpace.of(50)
    found, expected = Tree().mapper(X, space, [1]), Tree().bind(X, space, [1]).mapper
    np.testing.assert_array_equal(found.encode(X, 1).codes, expected.encode(X, 1).codes)
    assert found.n_bins.tolist() == expected.n_bins.tolist()


def test_seeds_of_trees():
    """They are those of `rng.integers`, drawn faster."""
    a, b = np.random.default_rng(3), np.random.default_rng(3)
    trees = Tree(splits="random").bind(np.zeros((5, 1)), FunctionSpace.of(5))
    assert [trees._draw_seed(a) for _ in range(50)] == [int(b.integers(2**63)) for _ in range(50)]
