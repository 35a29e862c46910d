import numpy as np
import pytest

from convexboost.kernels.stumps import CLASS, LEFT, MISSING, RIGHT, SIGN, VECTOR, Bins, best_split, dot
from tests import reference
from tests.kernels.conftest import Binned

KINDS = {"vector": VECTOR, "class": CLASS, "sign": SIGN}
OUTPUTS = {"vector": (1, 3), "class": (2, 3), "sign": (1, 3)}


def tables(binned):
    table = reference.histogram(binned.codes, binned.offsets, binned.G, binned.weight)
    mass = reference.histogram(binned.codes, binned.offsets, np.ones((len(binned.G), 1)), binned.weight)
    return table, mass[:, 0]


def found(table, mass, offsets, categorical, kind):
    leaves = np.zeros(256, np.uint8)
    j, score = best_split(table, Bins(mass, np.asarray(offsets), np.asarray(categorical), kind), leaves)
    return j, score, leaves[: offsets[j + 1] - offsets[j]]


@pytest.mark.parametrize(("kind", "n_outputs"), [(kind, k) for kind, ks in OUTPUTS.items() for k in ks])
@pytest.mark.parametrize("categorical", [(False,) * 3, (False, True, True)], ids=["numeric", "categorical"])
@pytest.mark.parametrize("missing", [True, False])
def test_same_stump_as_brute_force(kind, n_outputs, categorical, missing):
    for seed in range(6):
        binned = Binned.random(seed, widths=(3, 4, 8), n_outputs=n_outputs)
        if not missing:
            binned.codes = np.minimum(binned.codes, np.array([[1], [2], [6]], np.uint8))
        table, mass = tables(binned)
        j, score, leaves = found(table, mass, binned.offsets, categorical, KINDS[kind])
        twin_j, twin_score, twin_leaves = reference.best_split(
            table, mass, binned.offsets, categorical, KINDS[kind]
        )
        assert j == twin_j
        assert score == pytest.approx(twin_score, rel=1e-12)
        np.testing.assert_array_equal(leaves, twin_leaves)


@pytest.mark.parametrize("kind", ["vector", "sign"])
def test_sorted_prefixes_hold_the_best_subset_for_one_output(kind):
    for seed in range(10):
        binned = Binned.random(seed, widths=(7,), n_outputs=1)
        table, mass = tables(binned)
        _, score, _ = found(table, mass, binned.offsets, [True], KINDS[kind])
        exhaustive = max(
            reference.leaf_values(
                KINDS[kind], reference.over_leaves(table, leaves), reference.over_leaves(mass, leaves)
            )[0]
            for leaves in reference.all_subsets(mass)
        )
        assert score == pytest.approx(exhaustive, rel=1e-12)


def test_one_category_against_the_rest_is_offered():
    """Category 5 stands alone in output 1, but output 0 decides the order and puts it in the middle."""
    mass = np.append(np.full(11, 1 / 11), 0.0)
    table = np.column_stack([np.append(np.arange(-5.0, 6.0), 0.0), np.zeros(12)]) / 11
    table[5, 1] = np.sqrt(109) / 11
    _, score, leaves = found(table, mass, np.array([0, 12]), [True], VECTOR)
    assert score == pytest.approx(109 / 11)
    assert leaves.tolist() == [RIGHT] * 5 + [LEFT] + [RIGHT] * 5 + [MISSING]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_first_feature_wins_ties(kind):
    binned = Binned.random(1, widths=(6,), n_outputs=2)
    table, mass = tables(binned)
    twice, masses = np.vstack([table, table * (1 + 1e-13)]), np.concatenate([mass, mass])
    j, _, _ = found(twice, masses, np.array([0, 6, 12]), [False, False], kind)
    assert j == 0
    twice[6:] *= 1 + 1e-6
    assert found(twice, masses, np.array([0, 6, 12]), [False, False], kind)[0] == 1


@pytest.mark.parametrize("noise", [-1e-17, 0.0, 1e-17])
def test_rounding_does_not_order_categories(noise):
    """Categories 1 and 2 have the same mean in output 0: their order must not hang on its last bit."""
    mass = np.array([0.25, 0.25, 0.25, 0.25, 0.0])
    table = np.array([[-1.0, 0.5], [noise, 0.5], [0.0, -0.5], [1.0, -0.5], [0.0, 0.0]]) / 4
    _, score, leaves = found(table, mass, np.array([0, 5]), [True], VECTOR)
    assert score == pytest.approx(0.5)
    assert leaves.tolist() == [LEFT, LEFT, RIGHT, RIGHT, MISSING]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_nothing_to_find(kind):
    mass = np.array([0.5, 0.5, 0.0])
    assert found(np.zeros((3, 2)), mass, np.array([0, 3]), [False], kind)[0] == -1


@pytest.mark.parametrize("kind", ["vector", "sign"])
def test_present_against_missing(kind):
    table, mass = np.array([[1.0], [-1.0]]), np.array([0.5, 0.5])
    j, score, leaves = found(table, mass, np.array([0, 2]), [False], KINDS[kind])
    assert (j, score) == (0, pytest.approx(4.0))
    assert leaves.tolist() == [LEFT, MISSING]


def test_feature_without_values_is_skipped():
    table, mass = np.array([[0.0], [1.0], [0.6], [0.4], [0.0]]), np.array([0.0, 1.0, 0.5, 0.5, 0.0])
    j, _, leaves = found(table, mass, np.array([0, 2, 5]), [False, False], VECTOR)
    assert j == 1
    assert leaves.tolist() == [LEFT, RIGHT, MISSING]


def test_dot():
    A, B = np.random.default_rng(2).normal(size=(2, 37, 3))
    np.testing.assert_allclose(dot(A, B), np.sum(A * B), rtol=1e-13)
