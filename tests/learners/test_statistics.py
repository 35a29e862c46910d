"""Statistics of categorical columns with many levels."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from convexboost import ConvexBoostRegressor
from convexboost.boosting.training import boost
from convexboost.core.hypotheses import Direction
from convexboost.core.plain import Plain
from convexboost.core.space import FunctionSpace
from convexboost.kernels.hashing import fingerprints, scramble
from convexboost.learners import Additive, Stump, Tree
from convexboost.learners._statistics import (
    MOST_DIRECTIONS,
    MOST_LEVELS,
    N_PARTS,
    PRIOR_ROWS,
    level_statistics,
)
from convexboost.learners._tree_function import RowMapper
from convexboost.losses import HalfSquared, Softmax


def table(n=400, n_levels=40, seed=0, missing=0.0):
    """Return X with a categorical column 0 and two numbers, and targets that depend on all but the last."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, n_levels, n)
    X = np.column_stack([level.astype(float), rng.normal(size=(n, 2))])
    y = rng.normal(size=n_levels)[level] + X[:, 1] + 0.1 * rng.normal(size=n)
    X[rng.random(n) < missing, 0] = np.nan
    return X, y


def bound(X, y, weight=None, categorical=(0,), mapper=None, loss=None, **parameters):
    """Bind loss and tree, with the gradient at the start as targets."""
    space = FunctionSpace.of(len(y), weight)
    objective = (loss or HalfSquared()).bind(y, space)
    targets = objective.scores(None, objective.start()).gradient().values
    hypotheses = Tree(**parameters).bind(X, space, list(categorical), mapper=mapper, targets=targets)
    return objective, hypotheses


def parts_of(X):
    return (scramble(fingerprints(X)) % np.uint64(N_PARTS)).astype(int)


def r_squared(model, X, y):
    return 1.0 - np.mean((model.predict(X)[:, 0] - y) ** 2) / y.var()


@pytest.mark.parametrize("n_numbers", [0, 2], ids=["alone", "with numbers"])
@pytest.mark.parametrize(("n_levels", "least"), [(255, 0.98), (300, 0.97), (500, 0.96), (1000, 0.92)])
def test_no_level_is_lost(n_levels, least, n_numbers):
    rng = np.random.default_rng(n_levels)
    level = rng.integers(0, n_levels, 20_000)
    X = np.column_stack([level.astype(float), rng.normal(size=(len(level), n_numbers))])
    y = rng.normal(size=n_levels)[level] + X[:, 1:].sum(axis=1) + 0.1 * rng.normal(size=len(level))
    is_test = np.arange(len(y)) >= 15_000
    objective, hypotheses = bound(X[~is_test], y[~is_test])
    model = boost(objective, hypotheses, n_rounds=100, step="refit:0.1").model
    assert r_squared(model, X[is_test], y[is_test]) > least


def test_a_training_row_gets_the_mean_of_the_other_parts():
    X, y = table(missing=0.1)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    space = FunctionSpace.of(len(y), weight)
    (found,), (codes,) = level_statistics(X, [0], y[:, None], space, 255)
    part, g = parts_of(X), y - np.average(y, weights=weight)
    for n in range(len(y)):
        if np.isnan(X[n, 0]):
            assert codes[n] == found.n_bins
            continue
        others = (X[:, 0] == X[n, 0]) & (part != part[n])
        mean = (weight * g)[others].sum() / (weight[others].sum() + PRIOR_ROWS)
        below, above = np.searchsorted(found.cuts, [mean - 1e-9, mean + 1e-9])
        assert below <= codes[n] <= above
    for level, value in zip(found.levels, found.values, strict=True):
        own = X[:, 0] == level
        assert value == pytest.approx((weight * g)[own].sum() / (weight[own].sum() + PRIOR_ROWS))


def test_missing_values_have_their_bin_and_new_levels_the_mean_of_all_rows():
    X, y = table(missing=0.1)
    _, hypotheses = bound(X, y)
    (statistic,) = hypotheses.mapper.statistics
    codes = statistic.encode(np.array([np.nan, 1e6, -1.0, 0.5]))
    of_mean = np.searchsorted(statistic.cuts, 0.0)
    assert codes.tolist() == [statistic.n_bins, of_mean, of_mean, of_mean]
    assert 0 < of_mean < statistic.n_bins


def test_a_level_in_one_part_only_looks_like_a_new_level():
    X, y = table()
    X[0, 0], y[0] = 1e6, 100.0  # a level of one row with a large target
    _, hypotheses = bound(X, y)
    (statistic,) = hypotheses.mapper.statistics
    assert hypotheses.inputs.codes[0, 3] == statistic.encode(np.array([1e7]))[0]


def test_few_levels_stay_categories():
    X, y = table(n_levels=MOST_LEVELS)
    assert bound(X, y)[1].mapper.statistics == ()
    X, y = table(n_levels=MOST_LEVELS + 1)
    hypotheses = bound(X, y)[1]
    assert [s.source for s in hypotheses.mapper.statistics] == [0]
    assert hypotheses.usable.tolist() == [1, 2, 3]
    assert hypotheses.mapper.sources.tolist() == [0, 1, 2, 0]


def test_more_levels_than_bins_are_not_merged():
    X, y = table(n_levels=8)
    assert len(bound(X, y, max_bins=8)[1].mapper.statistics) == 0
    assert len(bound(X, y, max_bins=7)[1].mapper.statistics) == 1


def test_sparse_and_dense_inputs_agree():
    X, y = table()
    dense, sparse = bound(X, y)[1], bound(sp.csr_array(X), y)[1]
    np.testing.assert_array_equal(dense.inputs.codes, sparse.inputs.codes)
    new = X[::-1].copy()
    new[0, 0] = 1e6
    prepared = dense.mapper.prepare(new).codes
    np.testing.assert_array_equal(prepared, sparse.mapper.prepare(sp.csc_array(new)).codes)


def test_neither_the_order_of_rows_nor_copies_matter():
    X, y = table(missing=0.05)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    _, weighted = bound(X, y, weight)
    copies = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    _, copied = bound(X[copies], y[copies])
    for one, other in zip(weighted.mapper.statistics, copied.mapper.statistics, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.cuts, other.cuts)
    np.testing.assert_array_equal(weighted.inputs.codes[copies], copied.inputs.codes)


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_several_outputs_have_a_few_statistics(n_classes):
    rng = np.random.default_rng(0)
    n_levels, n = 30, 3000
    level = rng.integers(0, n_levels, n)
    chances = rng.dirichlet(np.full(n_classes, 0.3), n_levels)
    y = np.array([rng.choice(n_classes, p=chances[one]) for one in level])
    X = np.column_stack([level.astype(float), rng.normal(size=n)])
    objective, hypotheses = bound(X, y, loss=Softmax())
    assert len(hypotheses.mapper.statistics) == min(n_classes - 1, MOST_DIRECTIONS)
    model = boost(objective, hypotheses, n_rounds=30, step="refit:0.1").model
    scores = model.predict(X)
    chosen = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    best = np.mean(chances.argmax(axis=1)[level] == y)
    assert np.mean(chosen == y) > best - 0.05


@pytest.mark.parametrize("n_numbers", [0, 3], ids=["alone", "with numbers"])
def test_a_random_column_with_rare_levels_tells_nothing_of_the_target(n_numbers):
    """The validation loss neither falls, as it would if targets leaked, nor rises much."""
    rng = np.random.default_rng(0)
    n = 4000
    X = np.column_stack([rng.integers(0, n // 4, n).astype(float), rng.normal(size=(n, n_numbers))])
    y = rng.normal(size=n)
    train = np.arange(n) < n // 2  # n/2 rows, n/4 levels
    objective, hypotheses = bound(X[train], y[train])
    (statistic,) = hypotheses.mapper.statistics
    codes = hypotheses.inputs.codes[:, -1].astype(float)
    if statistic.n_bins > 1:
        assert abs(np.corrcoef(codes, y[train])[0, 1]) < 3.0 / np.sqrt(train.sum())
    unseen = HalfSquared().bind(y[~train], FunctionSpace.of(n - n // 2))
    validation = unseen.scores(hypotheses.mapper.prepare(X[~train]), objective.start())
    result = boost(
        objective, hypotheses, n_rounds=30, step="refit:0.05", validation=validation, output="last"
    )
    curve = result.history["validation"]
    assert curve.min() > 0.995 * curve[0]
    assert curve[:11].max() < 1.02 * curve[0]


def test_members_share_a_mapper_and_split_their_own_statistics():
    X, y = table(n=600)
    shared = Tree().bind(X, FunctionSpace.of(len(y)), [0]).mapper
    fold = np.arange(len(y)) % 2
    first, second = fold == 0, fold == 1
    _, one = bound(X[first], y[first], mapper=shared)
    objective, other = bound(X[second], y[second], mapper=one.mapper)
    assert shared.statistics == ()
    assert one.mapper.statistics == other.mapper.statistics[:1]
    assert one.usable.tolist() == [1, 2, 3]
    assert other.usable.tolist() == [1, 2, 4]
    assert len(other.inputs.codes[0]) == other.mapper.n_columns == 5
    target = one.zero(1)
    target.values = y[first, None].copy()
    direction = target.project(np.random.default_rng(0))
    scores = []
    for mapper in (one.mapper, other.mapper):
        F = np.zeros((len(y), 1))
        Direction(direction.terms, direction.norm).add_to(F, mapper.prepare(X))
        scores.append(F)
    np.testing.assert_array_equal(*scores)
    model = boost(objective, other, n_rounds=3, step="refit:0.1").model
    used = {j for _, tree in model.terms for j in tree.feature.tolist()} - {-1}
    assert 4 in used
    assert used <= {1, 2, 4}


def test_monotone_constraints_are_those_of_given_columns():
    X, y = table()
    objective, hypotheses = bound(X, y, monotone_constraints={1: 1})
    model = boost(objective, hypotheses, n_rounds=20, step="refit:0.1").model
    low, high = X.copy(), X.copy()
    high[:, 1] += 1.0
    assert (model.predict(high) >= model.predict(low) - 1e-12).all()
    again = type(model).from_plain(*model.to_plain(), Tree())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_plain_arrays_carry_the_statistics():
    X, y = table(missing=0.1)
    mapper = bound(X, y)[1].mapper
    again = RowMapper.from_plain(mapper.to_plain())
    new = np.vstack([X, [[1e6, 0.0, 0.0]]])
    np.testing.assert_array_equal(again.prepare(new).codes, mapper.prepare(new).codes)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("statistic_sources", lambda a: a + 7, "0 to 2"),
        ("statistic_sources", lambda a: a + 1, "numbers of categorical columns"),
        ("levels", lambda a: a[::-1], "sorted numbers"),
        ("levels", lambda a: np.append(a[:-1], np.nan), "sorted numbers"),
        ("levels", lambda a: a[:-1], "shape"),
        ("level_values", lambda a: np.full_like(a, np.nan), "finite numbers"),
        ("level_ends", lambda a: a + 1, "ends of parts"),
        ("statistic_cuts", lambda a: a[::-1], "sorted numbers"),
        ("statistic_cut_ends", lambda a: a * 0, "ends of parts"),
    ],
)
def test_wrong_plain_arrays_are_refused(name, change, message):
    X, y = table()
    plain = bound(X, y)[1].mapper.to_plain()
    arrays = {**plain.arrays, name: change(plain.arrays[name])}
    with pytest.raises(ValueError, match=message):
        RowMapper.from_plain(Plain(plain.description, arrays))


@pytest.mark.parametrize("learner", [Stump(), Additive(), Tree()], ids=repr)
def test_levels_are_never_merged_silently(learner):
    X, y = table(n=2000, n_levels=300)
    X[:300, 0] = np.arange(300)
    space = FunctionSpace.of(len(y))
    with pytest.warns(UserWarning, match="column 0 has 300 levels: the 254 heaviest have a bin each"):
        learner.bind(X, space, [0]).zero(1)


@pytest.mark.parametrize(
    "options",
    [{"learner": "stump"}, {"learner": "additive"}, {"certificate": True}, {"learner": "tree"}],
    ids=str,
)
def test_merged_levels_are_told_once_in_a_fit(options):
    X, y = table(n=2000, n_levels=300)
    X[:300, 0] = np.arange(300)
    model = ConvexBoostRegressor(categorical_features=[0], n_rounds=3, n_jobs=1, **options)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X, y)
    told = [str(warning.message) for warning in found if "share one" in str(warning.message)]
    assert len(told) == (0 if options == {"learner": "tree"} else 1)


def test_a_model_is_certified_on_the_statistics_of_new_rows():
    X, y = table()
    mapper = bound(X, y)[1].mapper
    hypotheses = Tree().bind(X, FunctionSpace.of(len(y)), mapper=mapper)
    np.testing.assert_array_equal(hypotheses.inputs.codes, mapper.prepare(X).codes)
    assert hypotheses.usable.tolist() == [0, 1, 2, 3]


def test_rows_of_a_group_are_in_one_part():
    """Their gradients add up to 0: in different parts they would tell each other's targets."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(200), 10)
    X = np.column_stack([groups % 100, rng.normal(size=2000)]).astype(float)
    G = rng.normal(size=(2000, 1))
    G -= np.repeat(G.reshape(200, 10).mean(axis=1), 10)[:, None]
    H = Tree().bind(X, FunctionSpace.of(2000), [0], targets=G, groups=groups)
    codes = np.asarray(H.inputs.columns[-1], float)
    assert abs(np.corrcoef(codes, G[:, 0])[0, 1]) < 0.1


def test_large_targets_of_several_outputs():
    rng = np.random.default_rng(0)
    X, G = np.column_stack([np.arange(400) % 20, rng.normal(size=400)]), 1e200 * rng.normal(size=(400, 3))
    statistics = Tree().bind(X, FunctionSpace.of(400), [0], targets=G).mapper.statistics
    assert len(statistics) == 3
