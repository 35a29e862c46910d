import numpy as np
import pytest

from convexboost.kernels.additive import average_projections
from convexboost.kernels.binning import BLOCK, add_codes
from tests import reference
from tests.kernels.conftest import Binned

#: Features with one, few and many bins, and the missing one.
WIDTHS = (2, 5, 9, 3)
WHOLE = {
    "smooth": (False,) * 4,
    "categorical": (False, True, False, True),
    "first_categorical": (True, False, False, False),
    "rough": (True,) * 4,
}


def binned(seed, n_outputs=2, widths=WIDTHS, missing=True, empty=()):
    sample = Binned.random(seed, widths=widths, n_outputs=n_outputs)
    sample.G += 1.0  # a constant to share out
    for j, width in enumerate(widths):
        if not missing:
            sample.codes[j] = np.minimum(sample.codes[j], width - 2)
    for j, b in empty:
        sample.codes[j][sample.codes[j] == b] = b - 1 if b > 0 else b + 1
    return sample


def averaged(sample, V, whole):
    table = reference.histogram(sample.codes, sample.offsets, V, sample.weight)
    mass = reference.histogram(sample.codes, sample.offsets, np.ones((len(V), 1)), sample.weight)[:, 0]
    out = np.full(table.shape, np.nan)
    average_projections(table, mass, sample.offsets, np.array(whole), out)
    return table, out


def twin(sample, V, whole):
    return reference.average_projections(sample.codes, sample.offsets, V, sample.weight, whole)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("missing", [True, False])
def test_mean_of_the_projections_on_all_stumps(whole, missing, n_outputs):
    for seed in range(3):
        sample = binned(seed, n_outputs, missing=missing)
        _, out = averaged(sample, sample.G, whole)
        np.testing.assert_allclose(out, twin(sample, sample.G, whole), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("empty", [[(1, 0)], [(2, 4), (2, 3)], [(2, 7)], [(1, 3), (2, 0)], [(3, 1)]], ids=str)
@pytest.mark.parametrize("missing", [True, False])
def test_bins_without_rows_offer_no_cut(whole, empty, missing):
    sample = binned(5, empty=empty, missing=missing)
    for j, b in empty:
        assert b not in sample.codes[j]
    _, out = averaged(sample, sample.G, whole)
    np.testing.assert_allclose(out, twin(sample, sample.G, whole), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("whole", [(False, False), (True, True), (False, True)])
def test_feature_that_is_always_missing(whole):
    sample = binned(1, widths=(4, 6))
    sample.codes[0][:] = 3
    _, out = averaged(sample, sample.G, whole)
    np.testing.assert_allclose(out, twin(sample, sample.G, whole), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_weights_need_not_sum_to_one(whole):
    sample = binned(3)
    expected = twin(sample, sample.G, whole)
    sample.weight = 0.25 * sample.weight
    np.testing.assert_allclose(averaged(sample, sample.G, whole)[1], expected, rtol=1e-11, atol=1e-12)


def rows(sample, out):
    """The sum of the functions, row by row."""
    tables = np.split(out, sample.offsets[1:-1])
    return reference.add_codes(np.zeros_like(sample.G), sample.codes, range(len(tables)), tables)


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_the_constant_is_there_once(whole):
    """A constant is projected to itself; any vector to a sum with its mean."""
    sample = binned(2)
    constant = np.tile([3.0, -2.0], (len(sample.G), 1))
    np.testing.assert_allclose(rows(sample, averaged(sample, constant, whole)[1]), constant, rtol=1e-12)
    mean = sample.weight @ rows(sample, averaged(sample, sample.G, whole)[1])
    np.testing.assert_allclose(mean, sample.weight @ sample.G, rtol=1e-11)


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_symmetric_and_positive_on_histograms(whole):
    """As conjugate gradients need: ⟨A b, c⟩ = ⟨b, A c⟩, and ⟨b, A b⟩ ≥ ‖Σ stumps‖² / n_features."""
    sample = binned(4, n_outputs=1)
    n = len(sample.G)
    pairs = [averaged(sample, row[:, None], whole) for row in np.eye(n)]
    b, A = (np.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
    M = b.T @ A
    np.testing.assert_allclose(M, M.T, atol=1e-14)
    eigenvalues = np.linalg.eigvalsh(M)
    assert eigenvalues[0] > -1e-13
    assert (eigenvalues > 1e-9).sum() == np.linalg.matrix_rank(
        b, tol=1e-9
    )  # definite on all additive functions


def test_stumps_are_smoother_than_bins():
    """One feature in order, equal bins: the mean of all stumps is monotone where the bins need not be."""
    codes = np.arange(8, dtype=np.uint8)[None, :]
    sample = Binned(codes, np.array([0, 9]), np.full(8, 1 / 8), np.array([0, 2, 1, 3, 5, 4, 7, 6.0])[:, None])
    _, rough = averaged(sample, sample.G, [True])
    np.testing.assert_allclose(rough[:8], sample.G)
    _, smooth = averaged(sample, sample.G, [False])
    assert (np.diff(smooth[:8, 0]) > 0).all()


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(
    "start_stop", [(0, 300), (10, 290), (BLOCK - 1, BLOCK + 1), (BLOCK, 2 * BLOCK), (7, 7)]
)
def test_codes_are_looked_up_and_added(start_stop, n_outputs):
    """Some features, in any order, one of them twice; only the rows asked for change."""
    rng, (start, stop) = np.random.default_rng(0), start_stop
    sample = Binned.random(3, n=2 * BLOCK, widths=WIDTHS, n_outputs=n_outputs)
    features = np.array([2, 0, 3, 2])
    tables = [rng.normal(size=(WIDTHS[j], n_outputs)) for j in features]
    F = sample.G.copy()
    ends = np.cumsum([0, *map(len, tables)])
    add_codes(F, sample.codes, features, np.concatenate(tables), ends, start, stop)
    expected = sample.G.copy()
    expected[start:stop] = reference.add_codes(
        sample.G[start:stop], sample.codes[:, start:stop], features, tables
    )
    np.testing.assert_array_equal(F, expected)
