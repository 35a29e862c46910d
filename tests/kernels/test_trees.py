"""Kernels of the trees against plain loops; whole trees are in tests/learners/test_tree.py."""

import numpy as np
import pytest

from convexboost.kernels.trees import (
    BEGIN,
    CHILD,
    END,
    FEATURE,
    _draw,
    add_histogram,
    add_trees,
    descend,
    find_split,
    grow,
    in_units,
    leaf_of_rows,
    leaf_sums,
    partition,
)
from tests import reference


@pytest.fixture(autouse=True)
def wrap_around():
    """Whole numbers overflow on purpose in `_draw`; NumPy says so where nothing is compiled."""
    with np.errstate(over="ignore"):
        yield


def rows_of(binned):
    V = np.column_stack([binned.weight, binned.weight[:, None] * binned.G])
    in_units(V)
    return np.ascontiguousarray(binned.codes.T), V


def bits(mask, n):
    return {b for b in range(n) if int(mask[b // 64]) >> (b % 64) & 1}


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_sums_in_units_are_exact(scale):
    rng = np.random.default_rng(0)
    V = rng.standard_t(1.2, size=(500, 3)) * scale
    kept = V.copy()
    in_units(V)
    np.testing.assert_allclose(V, kept, rtol=0, atol=np.abs(kept).sum(axis=0).max() * 2.0**-51)
    for _ in range(5):
        order = rng.permutation(500)
        cut = rng.integers(500)
        parts = [np.add.reduce(V[order[:cut]]), np.add.reduce(V[order[cut:]])]
        np.testing.assert_array_equal(parts[0] + parts[1], V.sum(axis=0))
        np.testing.assert_array_equal(V.sum(axis=0) - parts[0], parts[1])
    for nothing in (np.zeros((3, 2)), np.empty((0, 2))):
        in_units(nothing)
        assert not nothing.any()


def test_histogram_of_some_rows_and_features(binned):
    codes, V = rows_of(binned)
    order = np.random.default_rng(0).permutation(len(V))
    out = np.zeros((binned.offsets[-1], V.shape[1]))
    features = np.array([0, 2])
    add_histogram(codes, binned.offsets, V, order, 5, 30, features, 0, 1, out)
    add_histogram(codes, binned.offsets, V, order, 5, 30, features, 1, 2, out)
    chosen = order[5:30]
    expected = reference.histogram(binned.codes[:, chosen], binned.offsets, V[chosen], np.ones(25))
    expected[binned.offsets[1] : binned.offsets[2]] = 0.0
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("categorical", [(False, False, False), (False, True, True)])
@pytest.mark.parametrize("seed", [None, 12345])
def test_split(binned, categorical, seed):
    codes, V = rows_of(binned)
    hist = reference.histogram(binned.codes, binned.offsets, V, np.ones(len(V)))
    rules = {"max_depth": 9, "least": 0.05, "l2": 0.01, "random": seed}
    monotone = np.array([0, 0, 1])
    node = {"rows": np.arange(len(V)), "depth": 0, "number": 3}
    expected = reference.tree_split(node, codes, binned.offsets, categorical, monotone, V, rules)
    mask = np.zeros(4, np.uint64)
    gain, feature = find_split(
        hist,
        binned.offsets,
        np.array(categorical),
        monotone,
        np.arange(3),
        V.sum(axis=0),
        np.array([0.05, 0.01, 0.0 if seed is None else 1.0]),
        0 if seed is None else seed,
        3,
        mask,
    )
    assert (gain, feature) == (pytest.approx(expected[0], rel=1e-9), expected[1])
    assert bits(mask, 256) == set(expected[2])


def test_rounding_does_not_order_categories():
    """Categories 1 and 2 have the same mean: which one comes first must not hang on its last bit."""
    for noise in (-1e-16, 0.0, 1e-16):
        table = np.array([[1, -9.0], [1, noise], [1, 0.0], [1, 9.0], [0, 0]]) / 4
        mask = np.zeros(4, np.uint64)
        find_split(
            table,
            np.array([0, 5]),
            np.array([True]),
            np.array([0]),
            np.array([0]),
            table.sum(axis=0),
            np.array([0.3, 0.0, 0.0]),
            0,
            0,
            mask,
        )
        assert bits(mask, 5) == {1, 3}


def test_draws_are_numbers_below_one():
    found = np.array([[_draw(seed, a, b) for a in range(20)] for seed in (0, 2**62) for b in range(20)])
    assert ((found >= 0) & (found < 1)).all()
    assert len(np.unique(found)) == found.size
    assert 0.4 < found.mean() < 0.6


def test_partition_is_stable():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 200, (50, 2)).astype(np.uint8)
    left = set(rng.permutation(200)[:90].tolist())
    mask = np.zeros(4, np.uint64)
    for b in left:
        mask[b // 64] |= np.uint64(1 << (b % 64))
    order = rng.permutation(50)
    kept = order.copy()
    middle = partition(codes, order, np.empty(50, np.int64), 10, 40, 1, mask)
    inside = kept[10:40]
    expected = [n for n in inside if codes[n, 1] in left] + [n for n in inside if codes[n, 1] not in left]
    np.testing.assert_array_equal(order, [*kept[:10], *expected, *kept[40:]])
    assert middle == 10 + sum(codes[n, 1] in left for n in inside)


def test_growing_in_one_go_or_with_pauses(binned):
    """A histogram left to the caller is the one that would have been made; rows end in their leaves."""
    codes, V = rows_of(binned)
    n, width, max_leaves = len(V), V.shape[1], 6
    features = np.arange(3)
    found = []
    for threshold in (np.inf, 0.0):
        order, spare = np.arange(n), np.empty(n, np.int64)
        hists = np.zeros((max_leaves, binned.offsets[-1], width))
        nodes = np.full((2 * max_leaves - 1, 6), -1, np.int64)
        nodes[0, :4] = 0, n, 0, 0
        totals, gains = np.zeros((len(nodes), width)), np.zeros(len(nodes))
        splits, masks = np.full(len(nodes), -1, np.int64), np.zeros((len(nodes), 4), np.uint64)
        n_nodes, waiting, pauses = 1, 0, 0
        while waiting >= 0:
            begin, end, slot = nodes[waiting, :3]
            add_histogram(codes, binned.offsets, V, order, begin, end, features, 0, 3, hists[slot])
            n_nodes, waiting = grow(
                codes,
                binned.offsets,
                np.zeros(3, bool),
                np.zeros(3, np.int64),
                features,
                V,
                order,
                spare,
                hists,
                nodes,
                totals,
                gains,
                splits,
                masks,
                np.array([0.02, 0.0, 0.0]),
                np.array([max_leaves, 50.0, 0.0]),
                0,
                n_nodes,
                waiting,
                threshold,
            )
            pauses += 1
        found.append((nodes[:n_nodes].copy(), masks[:n_nodes].copy(), order.copy()))
        assert pauses == (1 if threshold > 0 else max_leaves - 1)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)

    nodes, masks, order = found[0]
    is_leaf = nodes[:, FEATURE] < 0
    leaf_of_node = (np.cumsum(is_leaf) - 1).astype(np.int32)
    assert sorted(np.concatenate([order[a:b] for a, b in nodes[is_leaf][:, [BEGIN, END]]])) == list(range(n))
    leaf, again = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    leaf_of_rows(order, nodes, leaf_of_node, len(nodes), leaf)
    feature, child = nodes[:, FEATURE].astype(np.int32), nodes[:, CHILD].astype(np.int32)
    descend(codes, feature, child, masks, leaf_of_node, 0, n, again)
    np.testing.assert_array_equal(leaf, again)
    for i in range(n):
        node = 0
        while feature[node] >= 0:
            node = child[node] + (codes[i, feature[node]] not in bits(masks[node], 256))
        assert leaf_of_node[node] == leaf[i]

    sums = np.zeros((is_leaf.sum(), width))
    leaf_sums(leaf, V, sums)
    np.testing.assert_array_equal(sums, [V[leaf == c].sum(axis=0) for c in range(is_leaf.sum())])
    # The same tree twice, one after the other.
    values = np.random.default_rng(0).normal(size=(2 * is_leaf.sum(), 2))
    F = np.zeros((n, 2))
    add_trees(
        F,
        codes,
        np.array([0, len(nodes)]),
        np.tile(feature, 2),
        np.concatenate([child, child + len(nodes)]),
        np.vstack([masks, masks]),
        np.concatenate([leaf_of_node, leaf_of_node + is_leaf.sum()]),
        values,
        3,
        n,
    )
    expected = values[leaf] + values[leaf + is_leaf.sum()]
    expected[:3] = 0.0
    np.testing.assert_array_equal(F, expected)
