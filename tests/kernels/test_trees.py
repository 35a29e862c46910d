"""Kernels of the trees against plain loops; whole trees are in tests/learners/test_tree.py."""

import numba
import numpy as np
import pytest

from convexboost.kernels.descent import Branches, add_trees, descend
from convexboost.kernels.target import Curvature, Update, quantise, update_target
from convexboost.kernels.trees.data import (
    BEGIN,
    CHILD,
    CHUNK,
    END,
    FEATURE,
    LARGEST,
    SLOT,
    SPLIT,
    Features,
    Nodes,
    Room,
    Rows,
    Rules,
    cells,
    n_columns,
    n_slots,
)
from convexboost.kernels.trees.growth import divide, grow, partition, read_tree
from convexboost.kernels.trees.histograms import COPIED, NARROW, add_part
from convexboost.kernels.trees.splits import Place, find_split
from convexboost.kernels.vectors import FEW_WORDS, WORDS
from tests import reference

SHIFT = np.uint64(8)
FLAT = Curvature(np.empty(0))
RULES = Rules(
    max_leaves=6, max_depth=50, min_weight=0.5, min_gain=0.0, l2=0.0, category_l2=0.0, tie=0.0, seed=None
)


def features_of(codes, n_bins, categorical=None, monotone=None, shift=SHIFT):
    """All features of codes that are (n_rows, n_features)."""
    n = len(n_bins)
    return Features(
        codes,
        np.ascontiguousarray(codes.T),
        np.arange(n),
        np.asarray(n_bins),
        np.array(categorical) if categorical is not None and np.any(categorical) else None,
        np.zeros(n, np.int64) if monotone is None else np.asarray(monotone),
        shift,
    )


def rows_in(V, order):
    return Rows(cells(V), order, np.empty_like(order))


def all_rows(V):
    return rows_in(V, np.arange(len(V), dtype=np.int32))


@numba.njit
def find(features, rows, room, rules, place, mask):
    """Call the part of a kernel, which cannot be called from Python."""
    return find_split(features, rows, room, rules, place, features.categorical, rules.seed, room.used, mask)


def split(hist, features, V, rules, number=0, order=None):
    """The best split of a node of rows V: from a histogram or, where `rules` say so, from the rows."""
    order = np.arange(len(V), dtype=np.int32) if order is None else order
    rows, mask, place = rows_in(V, order), np.zeros(4, np.uint64), Place(number, 0, len(V), 0)
    has_tables = rules.seed is None or features.categorical is not None
    width = {2: 1, 4: 2}.get(V.shape[1], V.shape[1] - 1)
    room = Room.of(0, 0, width, max(len(V), 1), has_tables)._replace(hists=cells(hist)[None])
    room.total[:] = V.sum(axis=0)
    room.values[: V.shape[1], : len(V)] = V[order].T
    for _ in range(2):  # the second time in a room that was used
        gain, feature = find(features, rows, room, rules, place, mask)
    return gain, feature, mask


@pytest.fixture(autouse=True)
def wrap_around():
    """Whole numbers overflow on purpose in `draw`; NumPy warns of it where nothing is compiled."""
    with np.errstate(over="ignore"):
        yield


def rows_of(binned, n_outputs=None):
    """The codes row by row, and whole numbers for the targets."""
    G = binned.G if n_outputs is None else np.resize(binned.G, (len(binned.G), n_outputs))
    V = np.zeros((len(G), n_columns(G.shape[1])), np.int32)
    whole = np.random.default_rng(1).integers(1, 4, len(G)).astype(np.int32)
    quantise(G, whole, np.empty(0), 1000.0, FLAT, V)
    return np.ascontiguousarray(binned.codes.T), V


def spread(table, offsets):
    """A histogram with 256 rows for each feature."""
    out = np.zeros(((len(offsets) - 1) << 8, table.shape[1]), np.int32)
    for j in range(len(offsets) - 1):
        out[j << 8 : (j << 8) + offsets[j + 1] - offsets[j]] = table[offsets[j] : offsets[j + 1]]
    return out


def histogram(codes, offsets, V, rows):
    return spread(
        reference.histogram(codes.T[:, rows], offsets, V[rows].astype(float), np.ones(len(rows))), offsets
    )


def bits(mask, n):
    return {b for b in range(n) if int(mask[b // 64]) >> (b % 64) & 1}


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 4, 7, 8, 26])
def test_width(n_outputs):
    """Buffers for the weight and all outputs; whole groups of words but for few outputs."""
    assert n_columns(n_outputs) > n_outputs
    assert n_columns(n_outputs) in (2, FEW_WORDS, *range(WORDS, 99, WORDS))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_updated_target(n_outputs):
    rng = np.random.default_rng(0)
    n = 50
    D, G = rng.normal(size=(2, n, n_outputs))
    leaf, table = rng.integers(0, 4, n).astype(np.int32), rng.normal(size=(4, n_outputs))
    expected = 0.7 * (D - table[leaf]) - 2.0 * G
    for start, stop in ((0, 20), (20, n)):
        update_target(D, Update(0.7, leaf, table, -2.0, G), start, stop)
    np.testing.assert_allclose(D, expected, rtol=1e-12, atol=1e-14)


def test_whole_numbers():
    """Weights that count rows multiply what was rounded; others are rounded with the target."""
    D = np.array([[0.26, -1.0], [0.26, 3.14159]])
    V = np.zeros((2, 8), np.int32)
    quantise(D, np.array([1, 3], np.int32), np.empty(0), 10.0, FLAT, V)
    assert V.tolist() == [[1, 3, -10, *[0] * 5], [3, 9, 93, *[0] * 5]]
    quantise(D[1:], np.array([3], np.int32), np.array([0.3]), 100.0, FLAT, V[1:])
    assert V.tolist() == [[1, 3, -10, *[0] * 5], [3, 8, 94, *[0] * 5]]


def test_whole_numbers_of_curvatures():
    """A row of weight 3 is three rows of its curvature; targets do not feel it."""
    D, V = np.full((4, 1), 0.5), np.zeros((4, 2), np.int32)
    curvature = Curvature(np.array([0.26, 0.26, 1e-9, 50.0]), 100.0, 10.0, 400.0)
    quantise(D, np.array([1, 3, 2, 1], np.int32), np.empty(0), 10.0, curvature, V)
    assert V.tolist() == [[26, 5], [78, 15], [20, 10], [400, 5]]
    counts, weight = np.array([1000, 3000, 1, 1], np.int32), np.array([0.1, 0.3, 0.1, 0.1])
    quantise(D, counts, weight, 100.0, curvature._replace(factor=0.1, least=0.01, most=0.4), V)
    assert V.tolist() == [[26, 5], [78, 15], [1, 5], [1, 5]]


@pytest.mark.parametrize("times", [1, NARROW, COPIED])
@pytest.mark.parametrize("n_outputs", [1, 2, 5, 9])
def test_histogram_of_some_rows(binned, n_outputs, times):
    codes, V = rows_of(binned, n_outputs)
    codes = np.ascontiguousarray(np.tile(codes, (1, times)))
    order = np.random.default_rng(0).permutation(len(V)).astype(np.int32)
    out = np.zeros((3 * times << 8, V.shape[1]), np.int32)
    for begin, end in ((5, 20), (20, 30)):
        features = features_of(codes, np.tile(np.diff(binned.offsets), times))
        add_part(features, rows_in(V, order), begin, end, cells(out))
    expected = histogram(codes[:, :3], binned.offsets, V, order[5:30])
    np.testing.assert_array_equal(out, np.tile(expected, (times, 1)))


@pytest.mark.parametrize("n_outputs", [1, None])
@pytest.mark.parametrize("categorical", [(False, False, False), (False, True, True)])
@pytest.mark.parametrize("seed", [None, 12345])
@pytest.mark.parametrize("few", [0, 10**6])
def test_split(binned, categorical, seed, n_outputs, few):
    codes, V = rows_of(binned, n_outputs)
    rows = np.arange(len(V))
    rules = {"max_depth": 9, "least": 0.05 * V[:, 0].sum(), "l2": 2.5, "category_l2": 1.5, "random": seed}
    monotone = np.array([0, 0, 1])
    node = {"rows": rows, "depth": 0, "way": 3}
    real = V.astype(float)
    expected = reference.tree_split(node, codes, binned.offsets, categorical, monotone, real, rules)
    limits = RULES._replace(min_weight=rules["least"], l2=2.5, category_l2=1.5, few=few)
    gain, feature, mask = split(
        histogram(codes, binned.offsets, V, rows)[: None if few == 0 else 0],
        features_of(codes, np.diff(binned.offsets), categorical, monotone),
        V,
        limits._replace(seed=seed),
        3,
    )
    assert (gain, feature) == (pytest.approx(expected[0], rel=1e-9), expected[1])
    assert bits(mask, 256) == set(expected[2])


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_one_output_is_a_vector_of_one(sign, missing):
    """Weight and target in one number of 64 bits are what they are apart, up to the largest sums."""
    n_bins, n = np.array([255, 7]), 300
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, n_bins if missing else n_bins - 1, (n, 2)).astype(np.uint8)
        targets = rng.normal(size=n)
        whole = np.trunc(targets * LARGEST / np.abs(targets).sum())
        wide = np.zeros((n, 8), np.int32)
        wide[:, 0], wide[:, 1] = rng.integers(1, 4, n), whole
        found = []
        for V in (np.ascontiguousarray(wide[:, :2]), wide):
            hist = np.zeros((2 << 8, V.shape[1]), np.int32)
            features = features_of(codes, n_bins, monotone=np.full(2, sign))
            add_part(features, all_rows(V), 0, n, cells(hist))
            gain, feature, mask = split(hist, features, V, RULES._replace(min_weight=5.0, l2=1.5))
            found.append((gain, feature, bits(mask, 256)))
        assert found[0] == (pytest.approx(found[1][0], rel=1e-9), *found[1][1:])
        assert sign != 0 or found[0][0] > 0.0


def test_rounding_does_not_order_categories():
    """Categories 1 and 2 have the same mean but for rounding: this must not decide which comes first."""
    for noise in (-1, 0, 1):
        table = np.array([[1, -(2**30)], [1, noise], [1, 0], [1, 2**30], [0, 0]], np.int32)
        features = features_of(np.arange(4, dtype=np.uint8)[:, None], [5], [True], shift=np.uint64(3))
        for few in (0, 4):
            rules = RULES._replace(min_weight=1.2, few=few)
            assert bits(split(table, features, table[:4], rules)[2], 5) == {1, 3}


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.95])
@pytest.mark.parametrize("is_random", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 2, 6])
def test_few_rows_need_no_histogram(n_outputs, is_random, missing):
    """The same gain, feature and mask, bit by bit; more features than are copied at once."""
    rng, n_features = np.random.default_rng(0), CHUNK + 9
    n_bins = rng.integers(2, 257, n_features)
    categorical, monotone = rng.random(n_features) < 0.3, rng.integers(-1, 2, n_features)
    for n in (1, 2, 7, 40, 300):
        codes = rng.integers(0, n_bins - 1, (n, n_features)).astype(np.uint8)
        codes[:, ::5] = codes[0, ::5]  # one bin only
        codes = np.where(rng.random(codes.shape) < missing, n_bins - 1, codes).astype(np.uint8)
        V = np.zeros((n, n_columns(n_outputs)), np.int32)
        V[:, 0], V[:, 1 : n_outputs + 1] = rng.integers(1, 4, n), rng.integers(-1000, 1000, (n, n_outputs))
        features = features_of(codes, n_bins, categorical, monotone * ~categorical)
        hist = np.zeros((n_features << 8, V.shape[1]), np.int32)
        add_part(features, all_rows(V), 0, n, cells(hist))
        rules = RULES._replace(seed=5 if is_random else None, l2=0.5, category_l2=2.0)
        expected = split(hist, features, V, rules)
        found = split(hist[:0], features, V, rules._replace(few=n), order=rng.permutation(n).astype(np.int32))
        assert found[:2] == expected[:2]
        np.testing.assert_array_equal(found[2], expected[2])
        assert n < 40 or expected[0] > 0.0


def test_partition_is_stable():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 200, (50, 2)).astype(np.uint8)
    left = set(rng.permutation(200)[:90].tolist())
    mask = np.zeros(4, np.uint64)
    for b in left:
        mask[b // 64] |= np.uint64(1 << (b % 64))
    order, spare = rng.permutation(50).astype(np.int32), np.empty(50, np.int32)
    inside = order[10:40].copy()
    rows = Rows(np.empty(50, np.int64), order, spare)
    count = partition(np.ascontiguousarray(codes[:, 1]), rows, 10, 40, mask)
    lefts, rights = ([n for n in inside if (codes[n, 1] in left) == side] for side in (True, False))
    assert count == len(lefts)
    assert order[10 : 10 + count].tolist() == lefts
    assert spare[10 : 40 - count].tolist() == rights


@pytest.mark.parametrize("n_outputs", [1, None])
def test_growing_in_one_go_or_with_pauses(binned, n_outputs):
    """A node left to the caller becomes what it would have become; rows end in their leaves."""
    codes, V = rows_of(binned, n_outputs)
    n, max_leaves = len(V), 6
    numbers = np.array([3, 1, 5])
    columns = np.zeros((7, n), np.uint8)  # among others that are not to be used
    columns[numbers] = codes.T
    features = features_of(codes, np.diff(binned.offsets))._replace(columns=columns, numbers=numbers)
    rules = RULES._replace(max_leaves=max_leaves, min_weight=0.02 * V[:, 0].sum())
    found = []
    for max_rows, few in ((np.inf, 0), (0.0, 0), (np.inf, 20)):
        rows, tree = all_rows(V), Nodes.root(n, max_leaves)
        nodes, masks = tree.numbers, tree.masks
        room = Room.of(n_slots(n, max_leaves, few), 3 << 8, n_outputs or binned.G.shape[1], few)
        room.hists[:] = 7
        n_nodes, new, pauses = 1, 0, 0
        while new >= 0:
            if max_rows == 0.0:
                some = rows.order[nodes[new, BEGIN] : nodes[new, END]]
                room.hists[nodes[new, SLOT]] = cells(histogram(codes, binned.offsets, V, some))
            rules = rules._replace(max_rows=max_rows, few=few)
            n_nodes, large = grow(features, rows, tree, room, rules, n_nodes, new)
            new = -1
            if large >= 0:
                begin, end = nodes[large, BEGIN], nodes[large, END]
                feature = numbers[nodes[large, SPLIT]]
                middle = begin + partition(columns[feature], rows, begin, end, masks[large])
                rows.order[middle:end] = rows.spare[begin : begin + end - middle]
                new = divide(nodes, large, n_nodes, middle, feature, few, middle - begin <= end - middle)
                n_nodes += 2
            pauses += 1
        assert nodes[:, SLOT].max() < len(room.hists) - 1
        nodes[:, SLOT] = 0  # where histograms were kept does not matter
        found.append((nodes[:n_nodes], masks[:n_nodes], rows.order))
        assert pauses == (1 if max_rows > 0 else max_leaves)
    for same in zip(*found, strict=True):
        for other in same[1:]:
            np.testing.assert_array_equal(other, same[0])

    nodes, masks, order = found[0]
    codes = np.ascontiguousarray(columns.T)
    is_leaf, n_nodes = nodes[:, FEATURE] < 0, len(nodes)
    n_leaves = is_leaf.sum()
    leaf_of_node = (np.cumsum(is_leaf) - 1).astype(np.int32)
    parts = [order[nodes[node, BEGIN] : nodes[node, END]] for node in np.flatnonzero(is_leaf)]
    assert sorted(np.concatenate(parts)) == list(range(n))
    leaf, again = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for number, part in enumerate(parts):
        leaf[part] = number
    feature, child = nodes[:, [FEATURE, CHILD]].T.astype(np.int32)
    rows, ends = np.arange(n, dtype=np.int32), np.empty((len(feature), 2), np.int64)
    descend(columns, Branches(feature, child, masks, leaf_of_node), rows, np.empty_like(rows), ends, again)
    np.testing.assert_array_equal(leaf, again)
    for i in range(n):
        node = 0
        while feature[node] >= 0:
            node = child[node] + (codes[i, feature[node]] not in bits(masks[node], 256))
        assert leaf_of_node[node] == leaf[i]

    # The same tree twice, one after the other.
    values = np.random.default_rng(0).normal(size=(2 * n_leaves, 2))
    F = np.zeros((n, 2))
    both = Branches(
        np.tile(feature, 2),
        np.concatenate([child, child + n_nodes]),
        np.vstack([masks, masks]),
        np.concatenate([leaf_of_node, leaf_of_node + n_leaves]),
    )
    add_trees(F, codes, np.array([0, n_nodes]), both, values, 3, n)
    expected = values[leaf] + values[leaf + n_leaves]
    expected[:3] = 0.0
    np.testing.assert_array_equal(F, expected)


def test_a_grown_tree_as_arrays():
    nodes = Nodes.root(6, 3).numbers
    nodes[:, FEATURE], nodes[:, CHILD] = [4, 2, -1, -1, -1], [1, 3, -1, -1, -1]
    nodes[:, BEGIN], nodes[:, END] = [0, 0, 4, 0, 1], [6, 4, 6, 1, 4]
    order = np.array([5, 0, 2, 4, 1, 3], np.int32)
    feature, child, leaf_of_node = (np.empty(5, np.int32) for _ in range(3))
    leaf = np.empty(6, np.int32)
    assert read_tree(nodes, order, feature, child, leaf_of_node, leaf) == 3
    np.testing.assert_array_equal(feature, nodes[:, FEATURE])
    np.testing.assert_array_equal(child, nodes[:, CHILD])
    np.testing.assert_array_equal(leaf_of_node, [-1, -1, 0, 1, 2])
    np.testing.assert_array_equal(leaf, [2, 0, 2, 0, 2, 1])
