"""A model becomes plain arrays and JSON, and the copy predicts the same bits; wrong data are refused."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from convexboost.core.hypotheses import Direction, Move
from convexboost.core.model import AdditiveModel
from convexboost.core.space import FunctionSpace
from convexboost.learners.tree import Tree
from tests.contracts.conftest import LEARNERS, WRAPPED, learner
from tests.contracts.test_learners import KINDS, model, problem

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

NAMED = [name for name in LEARNERS if name not in WRAPPED]


def trained(name, kind="mixed", n_rounds=6):
    inputs, Y, weight, _ = problem(kind)
    space = FunctionSpace.of(len(Y), weight)
    return model(name, inputs.X, Y, space, inputs.categorical, n_rounds), inputs


def written(given):
    """Through JSON, and arrays that nobody may write to, as a file that is mapped into memory gives them."""
    description, arrays = given.to_plain()
    text = json.dumps(description, allow_nan=False)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False
    return json.loads(text), arrays


def check_copy(given, made_by, inputs):
    copy = AdditiveModel.from_plain(*written(given), made_by)
    assert (copy.ends, copy.multipliers) == (given.ends, given.multipliers)
    np.testing.assert_array_equal(copy.start, given.start)
    for X in (inputs.X, inputs.new):
        np.testing.assert_array_equal(copy.predict(X), given.predict(X))
        staged = list(copy.staged_predict(X))
        assert len(staged) == given.n_rounds
        for ours, theirs in zip(staged, given.staged_predict(X), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for (weight, h), (weight_, h_) in zip(given.terms, copy.terms, strict=True):
        assert (type(h), weight, h.key()) == (type(h_), weight_, h_.key())
    return copy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMED)
def test_copy_predicts_the_same_bits(name, kind):
    given, inputs = trained(name, kind)
    copy = check_copy(given, learner(name), inputs)
    check_copy(copy, learner(name), inputs)
    check_copy(given.average(), learner(name), inputs)
    check_copy(given.truncate(0), learner(name), inputs)


@pytest.mark.parametrize("name", NAMED)
def test_shrunken_models_and_directions_of_several_terms(name):
    given, inputs = trained(name)
    both = Direction(given.terms[0:1] + given.terms[1:2], math.nan)
    given.append(Move(both, 0.5, shrink=0.7))
    given.append(Move(Direction((), 0.0), 0.0, shrink=0.9))
    check_copy(given, learner(name), inputs)


@pytest.mark.parametrize("name", NAMED)
def test_number_of_arrays_does_not_grow_with_the_rounds(name):
    few, many = (set(trained(name, n_rounds=n)[0].to_plain()[1]) for n in (1, 6))
    assert few == many


def test_constraints_are_kept():
    rng = np.random.default_rng(0)
    X, space = rng.normal(size=(50, 3)), FunctionSpace.of(50)
    tree = Tree(monotone_constraints=[1, 0, -1], min_samples_leaf=2)
    hypotheses = tree.bind(X, space)
    hypothesis, _ = hypotheses.grow(rng.normal(size=(50, 1)), 1.0, rng)
    given = AdditiveModel(np.zeros(1), hypotheses.mapper)
    given.append(Move(Direction(((1.0, hypothesis),), 1.0), 1.0))
    copy = AdditiveModel.from_plain(*written(given), tree)
    np.testing.assert_array_equal(copy.terms[0][1].monotone, [-1, 0, 1])


@pytest.mark.parametrize("name", WRAPPED)
def test_models_of_scikit_learn_are_refused(name):
    given, _ = trained(name)
    with pytest.raises(ValueError, match=r"scikit-learn .* skops"):
        given.to_plain()


# --- nonsense ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED)
def test_missing_or_misshapen_arrays_are_named(name):
    given, _ = trained(name)
    description, arrays = written(given)
    for missing, array in arrays.items():
        rest = {key: other for key, other in arrays.items() if key != missing}
        with pytest.raises(ValueError, match=f"array `{missing}` is missing"):
            AdditiveModel.from_plain(description, rest, learner(name))
        other = np.float32 if array.dtype != np.float32 else np.float64
        for wrong in (array.astype(other), array[None], array.ravel()[:0].reshape((0,) * array.ndim)):
            if wrong.dtype == array.dtype and wrong.shape == array.shape:
                continue
            with pytest.raises(ValueError, match=r"array `|`X`"):
                AdditiveModel.from_plain(description, rest | {missing: wrong}, learner(name))
        with pytest.raises(ValueError, match=f"array `{missing}` must have dtype"):
            AdditiveModel.from_plain(description, rest | {missing: array.astype(other)}, learner(name))


@pytest.mark.parametrize("name", NAMED)
def test_indices_out_of_range_are_refused(name):
    """Else a kernel would read memory that is not its own."""
    description, arrays = written(trained(name)[0])
    whole = [key for key, array in arrays.items() if array.dtype.kind in "iu" and not key.endswith("masks")]
    assert whole
    for key in whole:
        limits = np.iinfo(arrays[key].dtype)
        for value in {limits.max, limits.min} - {0}:
            if arrays[key].size == 0:
                continue
            wrong = arrays | {key: np.full_like(arrays[key], value)}
            with pytest.raises(ValueError, match=r"array `.*` must h"):
                AdditiveModel.from_plain(description, wrong, learner(name))


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("seed", range(3))
def test_random_damage_is_refused_or_harmless(name, seed):
    """One entry is changed: the model is refused, or it still predicts something of the right shape."""
    rng = np.random.default_rng(seed)
    given, inputs = trained(name)
    description, arrays = written(given)
    for key, array in arrays.items():
        if array.size == 0 or array.dtype.kind == "f":
            continue
        for _ in range(5):
            damaged = array.copy()
            place, limit = rng.integers(array.size), 2 if array.dtype == bool else 300
            damaged.flat[place] = np.array(rng.integers(-limit, limit)).astype(array.dtype)
            try:
                copy = AdditiveModel.from_plain(description, arrays | {key: damaged}, learner(name))
            except ValueError:
                continue
            assert copy.predict(inputs.new).shape == (40, 2)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(name, value):
    """Except for cuts and categories: X may be infinite, and a missing category is NaN to networks."""
    description, arrays = written(trained(name)[0])
    for key, array in arrays.items():
        if array.size == 0 or array.dtype.kind != "f":
            continue
        if key in ("mapper.cuts", "mapper.categories") and (math.isinf(value) or name == "network"):
            continue
        damaged = array.copy()
        damaged.flat[-1] = value
        with pytest.raises(ValueError, match=f"array `{key}` must hold"):
            AdditiveModel.from_plain(description, arrays | {key: damaged}, learner(name))


def test_networks_without_units_are_refused():
    description, arrays = written(trained("network")[0])
    ends = arrays["terms.network.unit_ends"].copy()
    ends[0] = 0
    with pytest.raises(
        ValueError, match=r"array `terms.network.unit_ends` must hold at least one unit for each"
    ):
        AdditiveModel.from_plain(description, arrays | {"terms.network.unit_ends": ends}, learner("network"))


def test_reserved_kinds_are_refused():
    given, _ = trained("stump")
    reserved = type("Odd", (type(given.terms[0][1]),), {"kind": "kinds"})
    message = "`kind` of Odd must not be 'kinds'"
    given.terms[:] = [(1.0, object.__new__(reserved))]
    with pytest.raises(ValueError, match=message):
        given.to_plain()


@pytest.mark.parametrize("kind", ["description", "arrays", "cls", "mapper", "version"])
def test_other_kinds_are_fine(kind):
    given, inputs = trained("stump")
    function = type(given.terms[0][1])
    renamed = type("Odd", (function,), {"kind": kind})
    given.terms[:] = [(w, renamed(**vars(h))) for w, h in given.terms]
    made_by = SimpleNamespace(mapper_type=type(given.mapper), hypothesis_types=(renamed,))
    check_copy(given, made_by, inputs)


def test_kinds_that_two_classes_share_are_refused():
    given, _ = trained("stump")
    function = type(given.terms[0][1])
    again = type("Again", (function,), {})
    message = f"`kind` must differ between classes; {function.__name__} and Again both have 'bin_function'"
    made_by = SimpleNamespace(mapper_type=type(given.mapper), hypothesis_types=(function, again))
    with pytest.raises(ValueError, match=message):
        AdditiveModel.from_plain(*written(given), made_by)
    given.terms.append((1.0, object.__new__(again)))
    with pytest.raises(ValueError, match=message):
        given.to_plain()


@pytest.mark.parametrize("arrays", [None, 3, []])
def test_arrays_that_are_none(arrays):
    description, _ = written(trained("stump")[0])
    with pytest.raises(ValueError, match=r"array `start` is missing"):
        AdditiveModel.from_plain(description, arrays, learner("stump"))


def test_cycles_in_a_tree_are_refused():
    description, arrays = written(trained("tree")[0])
    child = arrays["terms.tree.child"].copy()
    split = np.flatnonzero(arrays["terms.tree.feature"] >= 0)[0]
    child[split] = split
    with pytest.raises(ValueError, match=r"array `terms.tree.child` must hold later nodes"):
        AdditiveModel.from_plain(description, arrays | {"terms.tree.child": child}, Tree())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, r"`version` of a model must be 4, got 1"),
        ({"version": "1"}, r"`version` must be of type int, got '1'"),
        ({"version": None}, r"`version` must be of type int, got None"),
        ({"terms": {"kinds": ["stump"]}}, r"Tree\(\) makes no hypotheses of kind 'stump'"),
        ({"terms": {"kinds": [3]}}, r"Tree\(\) makes no hypotheses of kind 3"),
        ({"terms": {"kinds": ["tree", "tree"]}}, r"`kinds` must all be different"),
        ({"terms": {"kinds": []}}, r"array `terms.kind_of_term` must hold"),
        ({"mapper": 3}, r"`mapper` must be of type dict, got 3"),
    ],
    ids=str,
)
def test_wrong_descriptions(change, message):
    description, arrays = written(trained("tree")[0])
    with pytest.raises(ValueError, match=message):
        AdditiveModel.from_plain(description | change, arrays, Tree())


@pytest.mark.parametrize("description", [{}, None, [], 3])
def test_descriptions_that_are_none(description):
    with pytest.raises(ValueError, match=r"`version` is missing in the description"):
        AdditiveModel.from_plain(description, {}, Tree())


@pytest.mark.parametrize("name", NAMED)
def test_other_columns_are_refused(name):
    """Below the estimators nobody else looks at the shape of X."""
    given, inputs = trained(name)
    for X in (inputs.X[:, :-1], np.column_stack([inputs.X, inputs.X])):
        with pytest.raises(ValueError, match=rf"`X` must have {inputs.X.shape[1]} columns, got"):
            given.predict(X)
