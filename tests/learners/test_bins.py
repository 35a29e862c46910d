import numpy as np
import pytest
import scipy.sparse as sp

from convexboost.core.gradients import Gradient
from convexboost.core.space import FunctionSpace
from convexboost.kernels.histogram import fixed_point_factor
from convexboost.learners import _bins
from convexboost.learners._bins import MAX_BINS, BinMapper, Column, bin_sample
from tests import reference


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_every_distinct_value_has_its_bin(rng):
    values = np.append(rng.choice(rng.normal(size=20), 100), [np.nan, 0.0, -0.0])
    column = Column.numeric(values, np.ones(len(values)), 255)
    codes = column.encode(values)
    np.testing.assert_array_equal(codes, reference.encode(column, values))
    present = ~np.isnan(values)
    order = np.searchsorted(np.unique(values[present]), values[present])
    np.testing.assert_array_equal(codes[present], order)
    assert (codes[~present] == column.n_bins).all()


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1.0, 2.0)),
        (5e-324, 1e-323),
        (-5e-324, 0.0),
        (1.7e308, 1.79e308),
        (-1.7e308, 1.7e308),
        (-np.inf, 0.0),
        (0.0, np.inf),
    ],
)
def test_neighbours_are_separated(low, high):
    column = Column.numeric(np.array([low, high]), np.ones(2), 255)
    assert column.encode(np.array([low, high])).tolist() == [0, 1]


def test_both_infinities_are_separated():
    column = Column.numeric(np.array([-np.inf, np.inf]), np.ones(2), 255)
    assert column.encode(np.array([-np.inf, np.inf])).tolist() == [0, 1]


def test_cuts_lie_halfway():
    column = Column.numeric(np.array([4.0, 1.0, 2.0, 1.0]), np.ones(4), 255)
    np.testing.assert_array_equal(column.cuts, [1.5, 3.0])
    assert column.encode(np.array([-9.0, 1.4, 1.6, 3.0, 3.1, 9.0, np.nan])).tolist() == [0, 0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("max_bins", [2, 3, 10, 255])
def test_bins_hold_equal_shares_of_the_weight(rng, max_bins):
    values, weight = rng.normal(size=2000), rng.uniform(0.5, 1.5, 2000)
    column = Column.numeric(values, weight, max_bins)
    assert column.n_bins == max_bins
    mass = np.bincount(column.encode(values), weight)
    assert np.abs(mass / weight.sum() - 1 / max_bins).max() <= 2 * weight.max() / weight.sum()


def test_heavy_values_take_several_shares(rng):
    """One value with nearly all the weight: fewer bins, none of them empty."""
    values = np.append(np.zeros(1000), np.arange(1.0, 40.0))
    column = Column.numeric(values, np.ones(len(values)), 10)
    codes = column.encode(values)
    assert 2 <= column.n_bins <= 10
    assert set(codes) == set(range(column.n_bins))


def test_quantile_bins_of_repeated_rows(rng):
    """Shares such as 3/10 are reached exactly, and rounding must not say otherwise."""
    for _ in range(50):
        values, counts = rng.permutation(np.arange(60.0)), rng.integers(1, 4, 60)
        counts[0] += -counts.sum() % 10
        weighted = Column.numeric(values, counts / counts.sum(), 10)
        repeated = np.repeat(values, counts)
        twice = Column.numeric(repeated, np.full(len(repeated), 1 / len(repeated)), 10)
        np.testing.assert_array_equal(weighted.cuts, twice.cuts)


@pytest.fixture
def sampled(monkeypatch, rng):
    """Return rows and whole weights of which only some choose the bins, and what their cuts are."""
    monkeypatch.setattr(_bins, "MAX_QUANTILE_ROWS", 300)
    X, weight = rng.normal(size=(1000, 3)).round(2), rng.integers(1, 4, 1000)
    X[::7, 0], X[::11, 1] = np.nan, -0.0
    return X, weight, cuts_of(X, weight)


def cuts_of(X, weight):
    mapper = BinMapper.fit(X, FunctionSpace.of(len(X), weight), 20, np.zeros(X.shape[1], bool))
    return np.concatenate([column.cuts for column in mapper.columns])


def test_sampled_rows_do_not_depend_on_their_order(sampled, rng):
    X, weight, cuts = sampled
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(cuts_of(X[order], weight[order]), cuts)


def test_sampled_rows_do_not_depend_on_copies(sampled):
    X, weight, cuts = sampled
    np.testing.assert_array_equal(cuts_of(np.repeat(X, weight, axis=0), np.ones(weight.sum())), cuts)


def test_few_distinct_rows_are_all_used(monkeypatch, rng):
    X = rng.normal(size=(100, 2)).repeat(5, axis=0)
    cuts = cuts_of(X, np.ones(500))
    monkeypatch.setattr(_bins, "MAX_QUANTILE_ROWS", 100)
    np.testing.assert_array_equal(cuts_of(X, np.ones(500)), cuts)


def test_sampled_rows_cut_near_the_quantiles(monkeypatch, rng):
    """The share below a cut is off by a few standard errors at most."""
    monkeypatch.setattr(_bins, "MAX_QUANTILE_ROWS", 2000)
    values = rng.normal(size=20_000)
    cuts = cuts_of(values[:, None], np.ones(len(values)))
    shares = np.searchsorted(np.sort(values), cuts) / len(values)
    error = np.abs(shares - np.arange(1, 20) / 20).max()
    assert 0.0 < error < 4 * 0.5 / np.sqrt(2000)


def test_categories(rng):
    values = np.append(rng.integers(-3, 4, 50).astype(float), np.nan)
    column = Column.categorical(values, np.ones(51), 255)
    codes = column.encode(values)
    np.testing.assert_array_equal(codes, reference.encode(column, values))
    assert len(set(codes[:-1])) == len(set(values[:-1])) == column.n_bins
    unknown = column.encode(np.array([-99.0, 99.0, 0.5, np.nan, np.inf, -np.inf]))
    assert (unknown == column.n_bins).all()


def test_rare_categories_share_a_bin(rng):
    values = np.repeat(np.arange(300.0), np.arange(300, 0, -1))
    column = Column.categorical(rng.permutation(values), np.ones(len(values)), MAX_BINS)
    assert column.n_bins == MAX_BINS
    codes = column.encode(np.arange(300.0))
    assert codes[: MAX_BINS - 1].tolist() == list(range(MAX_BINS - 1))
    assert (codes[MAX_BINS - 1 :] == MAX_BINS - 1).all()
    assert column.encode(np.array([300.0])).tolist() == [MAX_BINS]


def test_heaviest_categories_by_weight_lowest_first_on_ties():
    """0.1 + 0.2 is a tie with 0.3, whatever the last bit says."""
    values, weight = np.array([5.0, 5.0, 6.0, 7.0, 8.0, 8.0]), np.array([0.1, 0.1, 0.3, 0.2, 0.1, 0.2])
    column = Column.categorical(values, weight, 3)
    codes = dict(zip(column.categories.tolist(), column.category_codes.tolist(), strict=True))
    assert codes == {6.0: 0, 8.0: 1, 5.0: 2, 7.0: 2}


@pytest.mark.parametrize("make", [Column.numeric, Column.categorical])
def test_empty_column(make):
    column = make(np.full(4, np.nan), np.ones(4), 255)
    assert column.n_bins == 1
    np.testing.assert_array_equal(column.encode(np.array([np.nan])), [1])


def inputs(rng):
    X = np.where(rng.random((50, 4)) < 0.6, 0.0, np.round(rng.normal(size=(50, 4)), 1))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
@pytest.mark.parametrize("max_bins", [4, 255])
def test_sample_and_new_inputs_agree(rng, form, max_bins):
    X, space = inputs(rng), FunctionSpace.of(50)
    sample = bin_sample(form(X), space, max_bins, [3], 1)
    new = sample.mapper.prepare(form(X))
    assert len(sample) == len(new) == 50
    for j in range(4):
        codes = reference.encode(sample.mapper.columns[j], X[:, j])
        np.testing.assert_array_equal(sample.column(j), codes)
        np.testing.assert_array_equal(new.column(j), codes)


@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_sums_over_rows(rng, form):
    X, space, G = inputs(rng), FunctionSpace.of(50, rng.uniform(1, 2, 50)), rng.normal(size=(50, 3))
    sample = bin_sample(form(X), space, 255, None, 1)
    codes, offsets = [sample.column(j) for j in range(4)], sample.mapper.offsets
    twin = reference.histogram(codes, offsets, G, space.weight)
    np.testing.assert_allclose(sample.histogram(Gradient(G, space)), twin, atol=1e-14)
    mass = reference.histogram(codes, offsets, np.ones((50, 1)), space.weight)[:, 0]
    np.testing.assert_allclose(sample.mass, mass, atol=1e-14)
    width = sample.mapper.columns[2].n_bins + 1
    shared = reference.shared_mass(codes, offsets, codes[2], space.weight, width)
    np.testing.assert_allclose(sample.shared_mass(sample.column(2), width), shared, atol=1e-14)


@pytest.mark.parametrize("unit", [1e-150, 1e-5, 1e5, 1e150])
def test_histogram_has_no_unit(rng, unit):
    """Relative precision does not depend on how large the gradient is."""
    X, space, G = inputs(rng), FunctionSpace.of(50), rng.normal(size=(50, 2))
    sample = bin_sample(X, space, 255, None, 1)
    small, large = sample.histogram(Gradient(G, space)), sample.histogram(Gradient(G * unit, space))
    np.testing.assert_allclose(large, small * unit, rtol=1e-12, atol=1e-16 * unit)


def test_rows_in_parts_add_up_to_the_same_bits(rng):
    """Fixed point: two halves with the factor of the whole, added as integers."""
    X, G, space = inputs(rng), rng.normal(size=(50, 2)), FunctionSpace.of(50, rng.uniform(1, 2, 50))
    whole = bin_sample(X, space, 255, None, 1)
    factor = fixed_point_factor(float(np.abs(G).max()))
    total = np.zeros((whole.mapper.offsets[-1], 2), np.int64)
    for half in (slice(0, 17), slice(17, 50)):
        part = type(whole)(whole.mapper, FunctionSpace(space.weight[half]), 1, X[half])
        part._add_rows(np.arange(4), G[half], factor, total)
    np.testing.assert_array_equal(total / factor, whole.histogram(Gradient(G, space)))


def test_integer_and_boolean_inputs(rng):
    X = rng.integers(0, 3, (30, 2))
    space = FunctionSpace.of(30)
    for form in (X, sp.csc_array(X), X.astype(bool), sp.csc_array(X.astype(bool)), X.tolist()):
        array = np.asarray(form if not sp.issparse(form) else form.toarray(), float)
        sample = bin_sample(form if not isinstance(form, list) else np.array(form), space, 255, None, 1)
        for j in range(2):
            np.testing.assert_array_equal(
                sample.column(j), reference.encode(sample.mapper.columns[j], array[:, j])
            )
            np.testing.assert_array_equal(sample.mapper.prepare(form).column(j), sample.column(j))


def test_mapper_knows_its_offsets(rng):
    mapper = BinMapper.fit(inputs(rng), FunctionSpace.of(50), 5, np.array([False, True, False, True]))
    widths = [column.n_bins + 1 for column in mapper.columns]
    assert mapper.offsets.tolist() == [0, *np.cumsum(widths)]
