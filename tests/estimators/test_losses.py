"""Each loss in the estimators, on real data; compared with scikit-learn's metrics and with sibling losses."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

from convexboost import ConvexBoostClassifier, ConvexBoostRegressor
from convexboost.learners import Tree
from convexboost.losses import CVaR, Ridge, maximum
from convexboost.losses.epsilon_insensitive import EpsilonInsensitive
from convexboost.losses.hinge import Hinge
from convexboost.losses.huber import Huber
from convexboost.losses.logistic import Logistic
from convexboost.losses.multiclass_hinge import MulticlassHinge
from convexboost.losses.quantiles import Quantiles
from convexboost.losses.softmax import Softmax

BINARY = {
    "logistic": "softmax",
    "exponential": "softmax",
    "hinge": "multiclass_hinge",
    "squared_hinge": "multiclass_hinge",
}
PROBABILITIES = ("logistic", "exponential")


class TwoOutputs(Softmax):
    """Softmax that has an output per class for two classes, too: what it makes of two is for itself alone."""


TWO_OUTPUTS = {"logistic": TwoOutputs(), "hinge": "multiclass_hinge"}
REGRESSION = [Huber(30.0), EpsilonInsensitive(10.0), "poisson", "quantiles"]


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


# -- two classes -----------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("algorithm", ["naive", "residual"])
@pytest.mark.parametrize("loss", BINARY)
def test_learns_two_classes(loss, algorithm, cancer):
    X, y = cancer
    model = ConvexBoostClassifier(loss, algorithm=algorithm, n_rounds=60).fit(X[::2], y[::2])
    objectives = model.history_["objective"]
    assert model.model_.start.shape == (1,)
    assert objectives.min() < 0.3 * objectives[0]
    assert model.score(X[1::2], y[1::2]) > 0.85 > y.mean() + 0.2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", BINARY)
@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-1, 1), (False, True), ("malignant", "benign"), (2.0, 1.0)]
)
def test_labels_of_any_kind(loss, low, high, cancer):
    X, numbers = cancer
    first, second = sorted([low, high])
    y = np.where(numbers == 1, second, first)
    model, plain = (
        ConvexBoostClassifier(loss, n_rounds=5, random_state=0).fit(X, labels) for labels in (y, numbers)
    )
    assert model.classes_.tolist() == [first, second]
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(model.predict(X) == second, plain.predict(X) == 1)
    assert model.predict(X).dtype == y.dtype


@pytest.mark.parametrize("loss", BINARY)
def test_swapped_classes_swap_the_sign(loss, cancer):
    X, y = cancer
    model = ConvexBoostClassifier(loss, n_rounds=5, early_stopping=False, random_state=0)
    a, b = (clone(model).fit(X, labels) for labels in (y, 1 - y))
    np.testing.assert_allclose(a.decision_function(X), -b.decision_function(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", BINARY)
def test_decision_function_and_stages_agree_with_predict(loss, cancer):
    X, y = cancer
    model = ConvexBoostClassifier(loss, n_rounds=5, output="last").fit(X, y)
    decision = model.decision_function(X)
    assert decision.shape == (len(X),)
    np.testing.assert_array_equal(model.predict(X), decision > 0)
    *_, staged = model.staged_decision_function(X)
    np.testing.assert_allclose(staged, decision, rtol=1e-9, atol=1e-12)
    *_, staged = model.staged_predict(X)
    np.testing.assert_array_equal(staged, model.predict(X))


@pytest.mark.parametrize("loss", PROBABILITIES)
def test_probabilities(loss, cancer):
    X, y = cancer
    model = ConvexBoostClassifier(loss, n_rounds=60, early_stopping=False, output="last").fit(X, y)
    P = model.predict_proba(X)
    assert P.shape == (len(X), 2)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(P[:, 1] > 0.5, model.predict(X) == 1)
    assert metrics.log_loss(y, P) < 0.4 * metrics.log_loss(y, np.full(len(y), y.mean()))
    *_, staged = model.staged_predict_proba(X)
    np.testing.assert_allclose(staged, P, rtol=1e-9, atol=1e-12)


def test_hinges_have_no_probabilities():
    for loss in BINARY:
        assert hasattr(ConvexBoostClassifier(loss), "predict_proba") == (loss in PROBABILITIES)


def test_objective_is_the_metric(cancer):
    X, y = cancer
    model = ConvexBoostClassifier("logistic", n_rounds=10, output="last", early_stopping=False).fit(X, y)
    log_loss = metrics.log_loss(y, model.predict_proba(X))
    assert model.history_["objective"][-1] == pytest.approx(log_loss, rel=1e-9)
    model = ConvexBoostClassifier("hinge", n_rounds=10, output="last", early_stopping=False).fit(X, y)
    hinge = metrics.hinge_loss(y, model.decision_function(X))
    assert model.history_["objective"][-1] == pytest.approx(hinge, rel=1e-9)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("algorithm", ["naive", "residual"])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_two_classes_as_one_score_or_two(loss, algorithm, cancer):
    """Softmax and the multiclass hinge see only f₁ − f₀; `auto` does not depend on the unit of the scores."""
    X, y = cancer
    one, two = (
        ConvexBoostClassifier(given, "stump", algorithm, n_rounds=5).fit(X, y)
        for given in (loss, TWO_OUTPUTS[loss])
    )
    assert (len(one.model_.start), len(two.model_.start)) == (1, 2)
    np.testing.assert_allclose(one.history_["objective"], two.history_["objective"], rtol=1e-6)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"learning_rate": 0.5}, {"class_weight": "balanced"}], ids=str)
def test_softmax_of_two_classes_is_the_same_model_with_one_output(options, cancer):
    """Trees, leaf values, probabilities: a rate means the same as with an output per class."""
    X, y = cancer
    one, two = (
        ConvexBoostClassifier(
            loss, Tree(max_leaves=15), n_rounds=10, early_stopping=False, random_state=0, **options
        ).fit(X, y)
        for loss in ("softmax", TwoOutputs())
    )
    assert (len(one.model_.start), len(two.model_.start)) == (1, 2)
    np.testing.assert_allclose(one.history_["objective"], two.history_["objective"], rtol=1e-12)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-9)


def outputs_of(loss, y, learner="tree"):
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    model = ConvexBoostClassifier(loss, learner, n_rounds=2, early_stopping=False).fit(X, y)
    assert hasattr(model, "predict_proba") == model.loss_.has_link
    if model.loss_.has_link:
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
        assert model.predict_proba(X).shape == (len(y), len(np.unique(y)))
    return len(model.model_.start)


def test_softmax_has_one_output_for_two_classes():
    two, three = np.arange(40) % 2, np.arange(40) % 3
    for loss in ("softmax", Softmax(), 2 * Softmax(), Softmax() + Ridge(0.1), CVaR("softmax", 0.5)):
        assert (outputs_of(loss, two), outputs_of(loss, three)) == (1, 3)
    assert ConvexBoostClassifier(n_rounds=2).fit(np.eye(40), two).loss_ == Logistic()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", ["softmax", "logistic", "poisson", "absolute", "half_squared"])
def test_a_multiple_makes_the_model_of_its_loss(loss):
    """Leaf values come from the same formulas, so one round is the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [0.0] if loss == "logistic" else [-0.5, 0.5])
    kind = ConvexBoostClassifier if loss in ("softmax", "logistic") else ConvexBoostRegressor
    one = kind(loss, n_rounds=5, early_stopping=False, random_state=0).fit(X, y)
    scaled = kind(4.0 * one.loss_, n_rounds=5, early_stopping=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(scaled.model_.predict(X), one.model_.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "loss",
    [
        Softmax().affine(2.0),
        Softmax() + MulticlassHinge(),
        2 * (Softmax() + MulticlassHinge()),
        maximum(Softmax(), MulticlassHinge()),
    ],
    ids=str,
)
def test_softmax_among_others_keeps_an_output_per_class(loss):
    assert outputs_of(loss, np.arange(40) % 2) == 2


def test_learner_that_needs_an_output_per_class():
    assert outputs_of("softmax", np.arange(40) % 2, "class_stump") == 2


def test_offset_of_two_classes_is_their_log_odds(cancer):
    X, y = cancer
    options = {"n_rounds": 3, "early_stopping": False, "random_state": 0, "output": "last"}
    start = ConvexBoostClassifier(**options).fit(X, y).model_.start
    model = ConvexBoostClassifier(**options).fit(X, y, offset=np.full(len(y), start[0]))
    whole = ConvexBoostClassifier(**options).fit(X, y).decision_function(X)
    np.testing.assert_allclose(start + model.decision_function(X), whole, rtol=1e-9)


@pytest.mark.parametrize("loss", BINARY)
def test_three_classes_need_another_loss(loss):
    X, y = load_iris(return_X_y=True)
    message = f"`loss` '{loss}' is for two classes, but `y` has 3: use '{BINARY[loss]}'"
    with pytest.raises(ValueError, match=message):
        ConvexBoostClassifier(loss).fit(X, y)
    assert not get_tags(ConvexBoostClassifier(loss)).classifier_tags.multi_class
    assert get_tags(ConvexBoostClassifier(BINARY[loss])).classifier_tags.multi_class
    ConvexBoostClassifier(loss, n_rounds=2).fit(X, y, sample_weight=y < 2)  # two have weight


def test_loss_objects_name_themselves():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"`loss` Hinge\(\) is for two classes, but `y` has 3"):
        ConvexBoostClassifier(Hinge()).fit(X, y)
    with pytest.raises(ValueError, match="is for two classes, but `y` has 3: use 'softmax'"):
        ConvexBoostClassifier(Hinge() + 0.5 * Logistic()).fit(X, y)


def test_regressor_refuses_losses_of_classes(diabetes):
    with pytest.raises(ValueError, match=r"`loss` must be a regression loss \(.*poisson.*\), got 'hinge'"):
        ConvexBoostRegressor("hinge").fit(*diabetes)


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("algorithm", ["naive", "residual"])
@pytest.mark.parametrize("loss", REGRESSION, ids=str)
def test_learns_numbers(loss, algorithm, diabetes):
    X, y = diabetes
    model = ConvexBoostRegressor(loss, algorithm=algorithm, n_rounds=60).fit(X, y)
    objectives = model.history_["objective"]
    assert objectives.min() < 0.65 * objectives[0]
    assert model.score(X, y) > 0.3


def test_poisson_predicts_means(diabetes):
    X, y = diabetes
    model = ConvexBoostRegressor("poisson", n_rounds=100, output="last", early_stopping=False).fit(X, y)
    predicted = model.predict(X)
    assert predicted.shape == y.shape
    assert predicted.min() > 0
    assert predicted.mean() == pytest.approx(y.mean(), rel=0.05)
    assert np.exp(model.model_.start) == pytest.approx(y.mean())
    deviance = metrics.mean_poisson_deviance(y, predicted)
    assert model.history_["objective"][-1] == pytest.approx(deviance / 2, rel=1e-9)
    *_, staged = model.staged_predict(X)
    np.testing.assert_allclose(staged, predicted, rtol=1e-9)


def test_poisson_of_counts():
    """Where the mean is known: exp of a step function."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 2))
    mean = np.exp(np.where(X[:, 0] > 0.5, 1.0, -1.0))
    model = ConvexBoostRegressor("poisson", "stump", "naive", n_rounds=50, early_stopping=False)
    model.fit(X, rng.poisson(mean))
    for half in (mean < 1, mean > 1):
        assert np.median(model.predict(X[half]) / mean[half]) == pytest.approx(1.0, abs=0.1)


def test_poisson_refuses_negative_targets(diabetes):
    X, y = diabetes
    with pytest.raises(ValueError, match=r"`y` must not be negative, got -3 in row 2"):
        ConvexBoostRegressor("poisson").fit(X[:3], [1.0, 0.0, -3.0])
    with pytest.raises(ValueError, match=r"`y` must not be all 0"):
        ConvexBoostRegressor("poisson").fit(X, np.zeros(len(y)))
    assert get_tags(ConvexBoostRegressor("poisson")).target_tags.positive_only
    assert not get_tags(ConvexBoostRegressor()).target_tags.positive_only


def test_poisson_validates_on_zeros(diabetes):
    X, y = diabetes
    model = ConvexBoostRegressor("poisson", n_rounds=3).fit(X, y, X_val=X[:5], y_val=np.zeros(5))
    assert np.isfinite(model.history_["validation"]).all()


# -- several quantiles -----------------------------------------------------------------------------


def test_quantiles_do_not_cross_and_cover(diabetes):
    X, y = diabetes
    model = ConvexBoostRegressor("quantiles", n_rounds=60).fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]  # new rows: those of the fit are covered better
    Q = model.predict(X)
    assert Q.shape == (len(y), 3)
    assert (np.diff(Q, axis=1) >= 0).all()
    np.testing.assert_allclose((y[:, None] <= Q).mean(axis=0), [0.1, 0.5, 0.9], atol=0.06)
    for F in model.staged_predict(X):
        assert F.shape == (len(y), 3)
        assert (np.diff(F, axis=1) >= 0).all()


def test_one_of_several_quantiles_is_that_quantile(diabetes):
    X, y = diabetes
    models = [
        ConvexBoostRegressor(loss, n_rounds=10, random_state=0).fit(X, y)
        for loss in (Quantiles((0.8,)), "quantile:0.8")
    ]
    several, one = (model.predict(X) for model in models)
    assert several.shape == one.shape == y.shape
    np.testing.assert_allclose(several, one, rtol=1e-12)
    assert models[0].score(X, y) == models[1].score(X, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_score_of_quantiles(weighted, diabetes):
    """1 − Σ pinball losses of the scores / those of the best constants."""
    X, y = diabetes
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    levels = (0.2, 0.5, 0.7)
    model = ConvexBoostRegressor(Quantiles(levels), n_rounds=20).fit(X, y)
    scores = model.model_.predict(X)
    repeated = np.repeat(y, weight) if weighted else y

    def total(F):
        return sum(
            metrics.mean_pinball_loss(y, F[:, k], alpha=q, sample_weight=weight) for k, q in enumerate(levels)
        )

    best = np.tile(np.quantile(repeated, levels, method="inverted_cdf"), (len(y), 1))
    score = model.score(X, y, sample_weight=weight)
    assert score == pytest.approx(1 - total(scores) / total(best), rel=1e-9)
    assert total(model.predict(X)) <= total(scores)


def test_score_of_constant_targets(diabetes):
    X, y = diabetes
    model = ConvexBoostRegressor("quantiles", n_rounds=3).fit(X, y)
    assert model.score(X[:5], np.ones(5)) == 0.0
    model = ConvexBoostRegressor("quantiles", n_rounds=3).fit(X, np.ones(len(y)))
    assert model.score(X[:5], np.ones(5)) == 1.0


def test_quantiles_bad_input(diabetes):
    X, y = diabetes
    with pytest.raises(ValueError, match="`y` must have one column for the loss 'quantiles', got 2"):
        ConvexBoostRegressor("quantiles").fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"`quantiles` must be increasing numbers in \(0, 1\), got 0.5"):
        ConvexBoostRegressor("quantiles:0.5").fit(X, y)
    model = ConvexBoostRegressor("quantiles", n_rounds=2).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, y[:-1])
    with pytest.raises(ValueError, match="`offset` must have 3 columns, got 1"):
        model.fit(X, y, offset=np.zeros(len(y)))
    assert not get_tags(ConvexBoostRegressor("quantiles")).target_tags.multi_output
    assert get_tags(ConvexBoostRegressor()).target_tags.multi_output


def test_quantiles_in_cross_validation(diabetes):
    X, y = diabetes
    model = ConvexBoostRegressor(Quantiles([0.25, 0.75]), algorithm="naive", n_rounds=30)
    assert clone(model).loss == model.loss
    assert (cross_val_score(model, X, y, cv=3) > 0.1).all()


# -- all of them -----------------------------------------------------------------------------------


def estimator(loss, **parameters):
    cls = ConvexBoostClassifier if loss in BINARY else ConvexBoostRegressor
    return cls(loss, random_state=0, **parameters)


@pytest.fixture
def problem(request, cancer, diabetes):
    return cancer if request.getfixturevalue("loss") in BINARY else diabetes


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", [*BINARY, *REGRESSION], ids=str)
def test_weight_two_is_the_row_twice(loss, problem):
    X, y = problem
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    # Bins are quantiles of the rows; few whole numbers have the same ones either way.
    X = np.round(3 * (X - X.mean(axis=0)) / X.std(axis=0)).clip(-6, 6)
    weighted = estimator(loss, n_rounds=10).fit(X, y, sample_weight=counts)
    repeated = estimator(loss, n_rounds=10).fit(X[rows], y[rows])
    a, b = (model.model_.predict(X) for model in (weighted, repeated))
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", [*BINARY, *REGRESSION], ids=str)
def test_early_stopping(loss, problem):
    X, y = problem
    model = estimator(loss, n_rounds=400, early_stopping=True, n_iter_no_change=5).fit(X, y)
    validation = model.history_["validation"]
    assert model.n_rounds_ < 400
    assert model.best_round_ == validation.argmin()
    assert validation.min() < validation[0]
    again = estimator(loss, n_rounds=10).fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    assert np.isfinite(again.history_["validation"]).all()


@pytest.mark.parametrize("loss", ["hinge", EpsilonInsensitive(10.0), "quantiles"], ids=str)
def test_exact_certificate_of_piecewise_linear_losses(loss, problem):
    """The linear program finds an optimum that no model is below."""
    X, y = problem[0][:60, :2], problem[1][:60]
    model = estimator(loss, learner="stump:6", n_rounds=150, early_stopping=False).fit(X, y)
    certificate = model.certify(X, y, exact=True)
    gap, objective = certificate.gap(), model.history_["objective"].min()
    assert -1e-9 <= gap < 0.2 * objective


@pytest.mark.one_in(2)
@pytest.mark.parametrize("loss", [*BINARY, *REGRESSION], ids=str)
def test_certificate_with_ridge(loss, problem):
    """A bound below the objective, and close, with the prox or without."""
    X, y = problem[0][:80, :3], problem[1][:80]
    model = estimator(loss, learner="stump:8", n_rounds=100, l2=0.1, early_stopping=False).fit(X, y)
    gap = model.certify(X, y).gap()
    assert -1e-9 <= gap < 0.1 * model.history_["objective"][0]
