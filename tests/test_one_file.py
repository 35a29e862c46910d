"""A learner is one file, and so is a loss: the two in this file work everywhere without an edit elsewhere."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from convexboost import AdditiveModel, ConvexBoostRegressor, check_loss
from convexboost.estimators._validation import N_FOLDS
from convexboost.learners import Defaults, DenseHypothesis, DenseSet, Learner, Mapper, Plain, categorical_mask
from convexboost.losses import KINK, Constants, RowLoss
from tests.contracts import conftest, test_learners, test_losses, test_plain

# --- a learner ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Centres(Mapper):
    """X minus a centre of each column; a missing value is at the centre, and a sparse X becomes dense."""

    centre: Any

    @classmethod
    def learn(cls, X, weight):
        X = _dense(X)
        known = ~np.isnan(X)
        mass = np.maximum((weight[:, None] * known).sum(axis=0), 1e-300)
        return cls((weight[:, None] * np.where(known, X, 0.0)).sum(axis=0) / mass)

    def prepare(self, X):
        X = _dense(X)
        if X.shape[1] != len(self.centre):
            raise ValueError(f"`X` must have {len(self.centre)} columns, got shape {X.shape}")
        return Centred(np.nan_to_num(X - self.centre))

    def to_plain(self):
        return Plain({"note": "the centre of each column"}, {"centre": self.centre})

    @classmethod
    def from_plain(cls, plain):
        plain.value("note", str)
        return cls(plain.array("centre", float, None))


@dataclass
class Centred:
    """Prepared inputs."""

    X: Any

    n_threads: ClassVar[int] = 1

    def __len__(self):
        return len(self.X)

    def evaluate(self, h):
        return h.evaluate(self.X)


@dataclass(frozen=True, eq=False)
class Line(DenseHypothesis):
    """h(x) = slope · x_j + intercept."""

    column: int
    slope: Any
    intercept: Any

    kind = "line"

    def key(self):
        return self.column

    def evaluate(self, X):
        return X[:, [self.column]] * self.slope + self.intercept

    @classmethod
    def to_plain(cls, hypotheses):
        arrays = {
            "column": np.array([h.column for h in hypotheses], np.int64),
            "slope": np.stack([h.slope for h in hypotheses]),
            "intercept": np.stack([h.intercept for h in hypotheses]),
        }
        return Plain({}, arrays)

    @classmethod
    def from_plain(cls, plain, count, mapper, n_outputs):
        column = plain.indices("column", np.int64, count, below=len(mapper.centre))
        slope, intercept = (plain.array(name, float, count, n_outputs) for name in ("slope", "intercept"))
        return [cls(int(j), a, b) for j, a, b in zip(column, slope, intercept, strict=True)]


class LineSet(DenseSet):
    """Least squares on one column."""

    def __init__(self, learner, mapper, X, space):
        super().__init__(None, space)
        self.learner, self.mapper, self.inputs = learner, mapper, mapper.prepare(X)

    def fit(self, values, rng):
        X, p = self.inputs.X, self.space.weight
        squares = np.einsum("n,nj,nj->j", p, X, X)
        slopes = np.einsum("n,nj,nk->jk", p, X, values) / (squares + self.learner.ridge + 1e-12)[:, None]
        best = int(np.argmax((slopes**2).sum(axis=1) * squares))
        return Line(best, slopes[best], p @ values)


@dataclass(frozen=True)
class Lines(Learner):
    """Lines in one column.

    Parameters
    ----------
    ridge : float, default=0.0
        Penalty on the slope.

    """

    ridge: float = 0.0

    auto = Defaults(decay=0.5)
    allows_missing = allows_sparse = True
    mapper_type = Centres
    hypothesis_types = (Line,)

    def __post_init__(self):
        if not self.ridge >= 0:
            raise ValueError(f"`ridge` must not be negative, got {self.ridge!r}")

    def bind(self, X, space, categorical=None, n_threads=1, *, mapper=None, names=None, groups=None):
        categorical_mask(categorical, X.shape[1])
        return LineSet(self, mapper or Centres.learn(X, space.weight), X, space)


def _dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X, float)


# --- a loss ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScaledAbsolute(RowLoss):
    """l(f, y) = scale Σ_k |f_k − y_k|; the subgradient is 0 at the kink."""

    scale: float = 2.0

    name: ClassVar[str] = "scaled_absolute"
    task: ClassVar[str] = "regression"
    has_prox = has_support = True

    def __post_init__(self):
        if not self.scale > 0:
            raise ValueError(f"`scale` must be positive, got {self.scale!r}")

    def evaluate(self, F, y):
        apart = np.abs(F - y) > KINK * np.maximum(np.abs(F), np.abs(y))  # rounding is no residual
        return self.scale * np.abs(F - y).sum(axis=1), self.scale * np.sign(F - y) * apart

    def constants(self, n_outputs):
        return Constants(lipschitz=self.scale * math.sqrt(n_outputs), minimum=0.0)

    def prox(self, F, y, size):
        return F - (F - y).clip(-self.scale * size, self.scale * size)

    def support(self, U, F, y):
        U = U.clip(-self.scale, self.scale)
        return U, np.einsum("nk,nk->n", U, F - y)


# --- the contracts -----------------------------------------------------------------------------------------

#: Contracts about what these two do not promise: exact sums over rows and bins; pieces, links, curvatures, …
NOT_PROMISED = {
    "test_order_of_rows_does_not_change_a_bit",
    "test_sparse_and_dense_inputs_give_the_same_bits",
    "test_models_of_scikit_learn_are_refused",
    "test_curvatures_are_second_derivatives",
    "test_pieces_add_up_to_the_loss",
    "test_smoothness",
    "test_smoothness_is_reached",
    "test_strong_convexity_is_reached",
    "test_link",
    "test_what_the_best_constant_stands_for",
}


def contracts(module, first):
    """The tests of a module whose argument `first` says what they are about, with all other arguments."""
    found = []
    for name, test in vars(module).items():
        arguments = getattr(test, "__code__", None) and test.__code__.co_varnames[: test.__code__.co_argcount]
        if name.startswith("test_") and name not in NOT_PROMISED and arguments and first in arguments:
            marks = [mark.args for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
            others = [(names, values) for names, values in marks if first not in names]
            for chosen in itertools.product(*(values for _, values in others)):
                options = {names: value for (names, _), value in zip(others, chosen, strict=True)}
                if not any(hasattr(value, "marks") for value in chosen):  # more seeds, in make test-slow
                    found.append(pytest.param(test, options, id=f"{name}-{options}" if options else name))
    return found


@pytest.fixture
def own(monkeypatch):
    """The two, under names by which the contracts find them."""
    monkeypatch.setitem(conftest.WRAPPED, "lines", Lines())
    monkeypatch.setitem(conftest.BY_LABEL, "scaled_absolute", ScaledAbsolute())
    monkeypatch.setitem(test_losses.HOMOGENEOUS, "scaled_absolute", 1)


@pytest.mark.parametrize("kind", test_learners.KINDS)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("contract", "options"), contracts(test_learners, "bound"))
def test_hypothesis_set(own, contract, options, n_outputs, kind):
    rng = np.random.default_rng(7)
    inputs = conftest.data(kind, rng)
    space = conftest.space_of(rng, inputs.X.shape[0], "weighted")
    H = Lines().bind(inputs.X, space, categorical=inputs.categorical)
    contract(test_learners.Bound(H, space, n_outputs, inputs, rng), **options)


@pytest.mark.parametrize(
    ("contract", "options"), [*contracts(test_learners, "name"), *contracts(test_plain, "name")]
)
def test_learner(own, contract, options, monkeypatch):
    wants = {"monkeypatch": monkeypatch} if "monkeypatch" in contract.__code__.co_varnames else {}
    contract(name="lines", **options, **wants)


@pytest.mark.parametrize("weights", ["uniform", "weighted"])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("contract", "options"), contracts(test_losses, "problem"))
def test_objective(own, contract, options, n_outputs, weights):
    contract(test_losses.make("scaled_absolute", n_outputs, weights), **options)


@pytest.mark.parametrize(("contract", "options"), contracts(test_losses, "label"))
def test_loss(own, contract, options):
    wants = {"n_outputs": 3} if "n_outputs" in contract.__code__.co_varnames else {}
    contract(label="scaled_absolute", **options, **wants)


# --- the estimators ----------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = np.where(RNG.random((200, 5)) < 0.4, 0.0, RNG.normal(size=(200, 5)))
Y = 3.0 * X[:, 0] - X[:, 3] + 0.3 * RNG.standard_t(3, 200)
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)


def regressor(**options):
    return ConvexBoostRegressor(ScaledAbsolute(), Lines(), random_state=0, **options)


def test_check_loss():
    check_loss(ScaledAbsolute(), Y[:, None])


def test_missing_values_and_sparse_inputs():
    model = regressor(n_rounds=30).fit(HOLES, Y)
    assert model.score(HOLES, Y) > 0.7
    sparse = regressor(n_rounds=30).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.predict(X), regressor(n_rounds=30).fit(X, Y).predict(sp.csc_array(X)))


def test_what_a_learner_does_not_allow_is_refused():
    class Narrow(Lines):
        allows_missing = allows_sparse = False

    model = ConvexBoostRegressor(ScaledAbsolute(), Narrow())
    with pytest.raises(ValueError, match="NaN"):
        model.fit(HOLES, Y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.fit(sp.csr_array(X), Y)


def test_early_stopping_finds_the_rounds():
    model = regressor(n_rounds=60).fit(X, Y)
    assert model.early_stopping == "auto"
    assert model.n_members_ == N_FOLDS
    assert 0 < model.n_rounds_ <= 60


def test_certificate():
    model = regressor(n_rounds=40, certificate=True, l2=0.1).fit(X, Y)
    assert 0.0 <= model.certificate_.gap() < math.inf
    assert 0.0 <= model.certify(X, Y, polish=20, time_limit=2.0).gap() < math.inf


def test_diagnosis():
    model = regressor(n_rounds=40, early_stopping=False).fit(X, Y)
    assert set(model.chosen_) <= set(range(5))
    assert str(model.diagnose())
    assert "learner='tree'" in str(model.diagnose(X, Y, trials=True))


def test_grid_search_and_clone():
    grid = {"learner__ridge": [0.0, 100.0], "loss__scale": [1.0, 2.0]}
    search = GridSearchCV(regressor(n_rounds=20, early_stopping=False), grid, cv=2).fit(X, Y)
    assert search.best_params_["learner__ridge"] == 0.0
    copied = clone(search.best_estimator_)
    assert copied.learner == search.best_estimator_.learner
    assert copied.learner is not search.best_estimator_.learner
    with pytest.raises(ValueError, match=r"`ridge` must not be negative, got -1"):
        copied.set_params(learner__ridge=-1)


def test_reprs_can_be_pasted():
    for given in (Lines(), Lines(2.0), ScaledAbsolute(), ScaledAbsolute(0.5)):
        assert eval(repr(given)) == given
    assert repr(Lines(2.0)) == "Lines(ridge=2.0)"
    assert repr(Lines()) == "Lines()"


def test_plain_arrays():
    model = regressor(n_rounds=20).fit(HOLES, Y)
    description, arrays = model.model_.to_plain()
    assert description["mapper"] == {"note": "the centre of each column"}
    copied = AdditiveModel.from_plain(json.loads(json.dumps(description)), arrays, Lines())
    np.testing.assert_array_equal(copied.predict(HOLES), model.model_.predict(HOLES))
