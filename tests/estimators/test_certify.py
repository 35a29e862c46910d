"""`certify` of the estimators."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.learners._stumps import MAX_SPAN_BINS
from convexboost.learners.stump import Stump

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * RNG.standard_t(2, size=80)
LABELS = np.array(["b", "a", "c"])[np.digitize(Y, np.quantile(Y, [0.4, 0.7]))]
WEIGHT = RNG.uniform(0.5, 2.0, 80) * (RNG.random(80) > 0.1)


def regressor(**options):
    return ConvexBoostRegressor(
        "absolute", **{"learner": "stump", "n_rounds": 40, "early_stopping": False, **options}
    )


def classifier(**options):
    return ConvexBoostClassifier(
        "multiclass_hinge", **{"learner": "stump", "n_rounds": 40, "early_stopping": False, **options}
    )


def best_absolute(model, X, y, weight):
    """min Σ p |start + f − y| over all functions f of the model's bins, by an independent program."""
    inputs = model.model_.mapper.prepare(X)
    codes = [inputs.column(j) for j in range(X.shape[1])]
    Z = np.column_stack([column == b for column in codes for b in np.unique(column)]).astype(float)
    p, n = weight / weight.sum(), len(y)
    A = np.block([[Z, -np.eye(n)], [-Z, -np.eye(n)]])
    rest = y - model.model_.start[0]
    cost = np.concatenate([np.zeros(Z.shape[1]), p])
    return linprog(cost, A_ub=A, b_ub=np.concatenate([rest, -rest]), bounds=(None, None)).fun


@pytest.mark.parametrize("learner", ["stump:8", "sign_stump:8", "additive:8"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_exact_optimum(learner, weight):
    model = regressor(learner=learner).fit(X, Y, weight)
    found = model.certify(X, Y, weight, exact=True)
    expected = best_absolute(model, X, Y, np.ones(80) if weight is None else weight)
    assert found.best().name == "exact"
    assert found.best().value == pytest.approx(expected, abs=1e-7)
    assert found.objective == pytest.approx(model.history_["objective"].min(), abs=1e-12)
    assert found.gap() == pytest.approx(found.objective - expected, abs=1e-7)
    assert "linear program" in str(found)
    assert "vacuous" not in str(found)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (regressor(l2=0.1), Y),
        (
            ConvexBoostRegressor("half_squared", "stump", n_rounds=40, l2=0.1, early_stopping=False),
            np.column_stack([Y, -Y]),
        ),
        (classifier(l2=0.1), LABELS),
        (classifier(l2=0.1, learner="class_stump"), LABELS),
        (ConvexBoostClassifier("softmax", "stump", n_rounds=40, l2=0.1, early_stopping=False), LABELS),
    ],
)
@pytest.mark.parametrize("form", ["dense", "sparse", "missing", "frame"])
def test_polish_certifies_every_kind_of_input(model, y, form):
    inputs = {
        "dense": X,
        "sparse": sp.csr_array(np.where(X > 0, X, 0.0)),
        "missing": np.where(np.abs(X) > 1.5, np.nan, X),
        "frame": pd.DataFrame(X, columns=list("abc")).assign(
            d=pd.Categorical(LABELS if y.dtype.kind == "f" else np.where(Y > 0, "u", "v"))
        ),
    }[form]
    model.fit(inputs, y, WEIGHT)
    found = model.certify(inputs, y, WEIGHT, polish=300)
    assert found.objective == pytest.approx(model.history_["objective"].min(), abs=1e-9)
    assert found.ridge().value <= min(found.objective, found.met) + 1e-9
    assert found.met - found.ridge().value <= 0.05 * found.met
    assert found.gap() <= found.objective - found.ridge().value + 1e-12


def test_without_l2_the_default_radius_is_the_distance_of_the_model():
    model = classifier().fit(X, LABELS)
    found = model.certify(X, LABELS)
    assert found.radius == found.distance > 0.0
    assert found.ball(found.radius).value <= found.objective + 1e-12
    assert "C1" in str(found)
    wide = model.certify(X, LABELS, radius=1e6, weight=5.0, polish=10)
    assert wide.radius == 1e6
    assert "C1 is vacuous for 1e+06" in str(wide)
    assert wide.atoms(5.0) is not None


def test_an_offset():
    offset = RNG.normal(size=80)
    model = regressor(learner="stump:8").fit(X, Y, offset=offset)
    found = model.certify(X, Y, offset=offset, exact=True)
    assert found.objective == pytest.approx(model.history_["objective"].min(), abs=1e-12)
    assert found.best().value == pytest.approx(best_absolute(model, X, Y - offset, np.ones(80)), abs=1e-7)


def test_the_bins_are_those_of_the_model():
    model = regressor(early_stopping=True, learner="stump:8", random_state=0).fit(X, Y)
    found = model.certify(X, Y, exact=True)  # more rows than it was fitted to
    assert found.best().value == pytest.approx(best_absolute(model, X, Y, np.ones(80)), abs=1e-7)
    assert found.objective == pytest.approx(np.mean(np.abs(model.predict(X) - Y)))


def test_certify_changes_nothing():
    model = classifier().fit(X, LABELS)
    before = dict(vars(model))
    model.certify(X[:50], LABELS[:50], polish=5)
    assert vars(model) == before


def test_any_learner_is_certified_against_every_function():
    model = regressor(learner=DecisionTreeRegressor(max_depth=2), l2=0.1).fit(X, Y)
    found = model.certify(X, Y)
    assert not found.knows_span
    assert found.ridge().value <= found.objective
    assert "every function" in str(found)
    with pytest.raises(ValueError, match="`exact` needs a learner whose span is known"):
        regressor(learner=DecisionTreeRegressor(max_depth=2)).fit(X, Y).certify(X, Y, exact=True)


def test_what_the_default_learner_cannot_certify_names_the_way_out():
    model = ConvexBoostClassifier("multiclass_hinge", l2=0.001, certificate=True, n_rounds=10).fit(X, LABELS)
    assert "learner='stump'" in str(model.certificate_)
    assert "learner='stump'" not in str(classifier(l2=1e-6, certificate=True).fit(X, LABELS).certificate_)
    with pytest.raises(ValueError, match=r"`exact` needs .* learner='stump'"):
        ConvexBoostRegressor("absolute", n_rounds=10).fit(X, Y).certify(X, Y, exact=True)


def test_too_many_bins():
    wide = RNG.normal(size=(80, MAX_SPAN_BINS // 80 + 1))
    found = regressor(l2=0.1).fit(wide, Y).certify(wide, Y)
    assert found.ridge() is None
    assert "too many bins" in str(found)


def test_a_model_that_never_moved():
    model = regressor().fit(np.ones((80, 1)), Y)
    found = model.certify(np.ones((80, 1)), Y)
    assert found.distance == 0.0
    assert found.objective == pytest.approx(np.mean(np.abs(Y - np.sort(Y)[39])))


def test_bad_input():
    model = classifier()
    with pytest.raises(NotFittedError):
        model.certify(X, LABELS)
    model.fit(X, LABELS)
    for name in ("radius", "weight", "time_limit"):
        with pytest.raises(ValueError, match=f"`{name}` must be positive, got -1"):
            model.certify(X, LABELS, **{name: -1})
    with pytest.raises(ValueError, match="`polish` must not be negative, got -1"):
        model.certify(X, LABELS, polish=-1)
    with pytest.raises(ValueError, match="`certify` needs `y`"):
        model.certify(X, None)
    with pytest.raises(ValueError, match=r"`y` holds a class that the model does not know: .*'d'"):
        model.certify(X, np.where(LABELS == "a", "d", LABELS))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.certify(X, LABELS[1:])
    with pytest.raises(ValueError, match="features"):
        model.certify(X[:, :2], LABELS)
    with pytest.raises(ValueError, match="more than `max_nonzeros`=100"):
        model.certify(X, LABELS, exact=True, max_nonzeros=100)
    with pytest.raises(ValueError, match="`offset` must have 3 columns, got 1"):
        model.certify(X, LABELS, offset=np.zeros(80))
    with pytest.raises(ValueError, match="`exact` needs a piecewise linear loss"):
        ConvexBoostClassifier(learner="stump", n_rounds=3).fit(X, LABELS).certify(X, LABELS, exact=True)
    with pytest.raises(ValueError, match=r"`exact` needs `l2`=0, got 0\.5"):
        regressor(l2=0.5).fit(X, Y).certify(X, Y, exact=True)
    with pytest.raises(ValueError, match="`y` must have 1 outputs like the model, got 2"):
        regressor().fit(X, Y).certify(X, np.column_stack([Y, Y]))


def test_an_object_as_learner():
    model = regressor(learner=Stump(max_bins=4), l2=0.2).fit(X, Y)
    assert model.certify(X, Y).gap() >= 0.0
