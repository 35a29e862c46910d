"""What a loss declares is what its methods do, and what it prints can be pasted."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

import convexboost.losses
from convexboost import ConvexBoostRegressor
from convexboost.core.space import FunctionSpace
from convexboost.losses import (
    Absolute,
    Constants,
    CVaR,
    HalfSquared,
    Hinge,
    Huber,
    Laplacian,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Quantiles,
    Ridge,
    RowLoss,
    Softmax,
    Structured,
    TotalVariation,
    WorstGroup,
    as_loss,
    maximum,
)
from convexboost.registry import available, everything

pytestmark = pytest.mark.one_in(2)  # the others: make test-slow

N = 24
EDGES = [(0, 1), (1, 2), (2, 3)]


class Mine:
    """A user's loss with nothing but row losses and subgradients."""

    def evaluate(self, F, y):
        return np.abs(F - y).sum(axis=1), np.sign(F - y)

    def __repr__(self):
        return "Mine()"

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return 0


class MineWithAll(Mine):
    """All that a user can declare."""

    thread_safe = False

    def prox(self, F, y, size):
        return F - (F - y).clip(-size, size)

    def start(self, y, weight):
        return np.median(y, axis=0)

    def link(self, F):
        return 2 * F

    def __repr__(self):
        return "MineWithAll()"


class MyTotal:
    """A user's loss of all rows."""

    def total(self, F, y, weight):
        return float(np.sum(weight[:, None] * np.abs(F - y))), weight[:, None] * np.sign(F - y)

    __repr__, __eq__, __hash__ = (lambda self: "MyTotal()"), Mine.__eq__, Mine.__hash__


ALONE = [cls() for cls in available("convexboost.losses").values()]
MADE = [
    Quantile(0.9),
    Quantiles((0.3,)),
    Huber(0.3),
    as_loss(Mine()),
    as_loss(MineWithAll()),
    2 * Absolute(),
    Absolute() + Ridge(0.1),
    2 * (Absolute() + HalfSquared() + Ridge(0.1)),
    1 / 3 * HalfSquared(),
    2 * Softmax(),
    Absolute() + HalfSquared(),
    as_loss(MineWithAll()) + HalfSquared(),
    maximum(Absolute(), 0.1 * HalfSquared()),
    (2 * Absolute()).affine(2, 1),
    Logistic().affine(-1),
]
COUPLED = [
    as_loss(MyTotal()),
    CVaR("absolute", 0.5),
    CVaR(MineWithAll()),
    WorstGroup("softmax", smooth=0.3),
    Absolute() + TotalVariation(EDGES, 0.5),
    Poisson() + 2 * Laplacian(EDGES, 0.5, [1.0, 2.0, 1.0]) + Ridge(0.1),
    Structured(lambda F, y, label: (y, 0.0)),
]
ROW_LOSSES = [loss for loss in (*ALONE, *MADE) if isinstance(loss, RowLoss)]
LOSSES = [*ALONE, *MADE, *COUPLED]


def name_of(loss):
    """The repr without addresses, which differ between the processes that run the tests."""
    return re.sub(r" at 0x\w+", "", repr(loss))


#: How each optional method is called.
METHODS = {
    "best_constant": lambda loss, F, y, space: loss.best_constant(y, F.shape[1], space),
    "best_shifts": lambda loss, F, y, space: loss.best_shifts(F, y, space, np.arange(N) % 3, 3),
    "curvatures": lambda loss, F, y, space: loss.curvatures(y, loss.evaluate(F, y)[1]),
    "prox": lambda loss, F, y, space: loss.prox(F, y, 0.5),
    "support": lambda loss, F, y, space: loss.support(loss.evaluate(F, y)[1], F, y)[0],
    "pieces": lambda loss, F, y, space: loss.pieces(y, F.shape[1], space).linear,
    "link": lambda loss, F, y, space: loss.link(F),
}
#: Of what shape the answer is.
SHAPES = {"best_constant": lambda F: F.shape[1:], "best_shifts": lambda F: (3, F.shape[1])}


def bound(loss):
    rng = np.random.default_rng(0)
    has_classes = loss.task in ("binary", "classification")
    y = np.arange(N) % (2 if loss.task == "binary" else 3) if has_classes else rng.normal(size=(N, 1))
    y = np.round(np.abs(y)) if loss.positive_only else y
    n_classes = int(y.max()) + 1 if has_classes else None
    groups = np.arange(N) % 4 if loss.takes_groups else None
    return loss.bind(y, FunctionSpace.of(N), n_classes, groups)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ROW_LOSSES, ids=name_of)
def test_a_row_loss_has_what_it_declares(loss, method):
    """A method that is declared answers; one that is not declared has no answer."""
    objective = bound(loss)
    F = np.random.default_rng(1).normal(size=(N, objective.n_outputs))
    ask = METHODS[method]
    if not getattr(loss, f"has_{method}"):
        with pytest.raises(NotImplementedError):
            ask(loss, F, objective.y, objective.space)
        return
    found = ask(loss, F, objective.y, objective.space)
    if method == "link":
        assert found.ndim == 2
        assert len(found) == N
    else:
        assert found.shape == SHAPES.get(method, np.shape)(F)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_an_objective_has_what_it_declares(loss):
    objective = bound(loss)
    F = np.random.default_rng(1).normal(size=(N, objective.n_outputs))
    methods = {
        "prox": lambda: objective.prox(F, 0.5),
        "support": lambda: objective.support(F, F)[0],
        "pieces": lambda: objective.pieces().linear,
    }
    for name, ask in methods.items():
        if getattr(objective, f"has_{name}"):
            assert ask().shape == F.shape
        else:
            with pytest.raises(NotImplementedError):
                ask()
    assert loss.couples_rows == (objective.by_rows is None)
    assert loss.is_custom == objective.is_custom == ("Mi" in repr(loss) or "My" in repr(loss))
    assert objective.has_classes == (loss.task in ("binary", "classification"))
    if loss.has_link:
        assert len(loss.link(F)) == N


def test_a_method_that_is_not_declared_is_refused():
    """It would never be called."""
    with pytest.raises(TypeError, match="Silent has a method `prox`: declare `has_prox = True`"):
        type("Silent", (Softmax,), {"prox": lambda self, F, y, size: F})


@pytest.mark.parametrize("method", METHODS)
def test_a_declaration_without_a_method_is_refused(method):
    """When the class is made, not in the middle of a fit or in `predict`."""
    with pytest.raises(TypeError, match=f"Empty declares `has_{method} = True`: it needs a method"):
        type("Empty", (RowLoss,), {f"has_{method}": True})
    with pytest.raises(TypeError, match="Empty declares `has_link = True`: it needs a method `link`"):
        type("Empty", (Loss,), {"has_link": True})


BUILT_IN = [cls for cls in everything("convexboost.losses").values() if issubclass(cls, RowLoss)]


@pytest.mark.parametrize("cls", BUILT_IN)
def test_a_subclass_with_its_own_evaluate_has_no_formulas_of_its_parent(cls):
    """It is another function: a kernel, a start or a prox of the parent would train another model."""

    class Other(cls):
        def evaluate(self, F, y):
            losses, G = super().evaluate(F, y)
            return 3.0 * losses, 3.0 * G

    other, parent = Other(), cls()
    assert not any(getattr(other, f"has_{method}") for method in METHODS)
    assert other.constants(1) == Constants()
    assert other.formula() == "Other(f, y)"
    objective = bound(other)
    y, space = objective.y, objective.space
    F = np.random.default_rng(1).normal(size=(N, objective.n_outputs))
    losses, G = parent.evaluate(F, y)
    np.testing.assert_array_equal(other.value(F, y), 3.0 * losses)
    value, gradient = other.advance(F, y, space, None, None, 1)
    assert value == pytest.approx(3.0 * space.mean(losses))
    np.testing.assert_array_equal(gradient.values, 3.0 * G)
    for ask in METHODS.values():
        with pytest.raises(NotImplementedError):
            ask(other, F, y, space)


def test_a_subclass_keeps_what_it_defines_or_declares_itself():
    class Half(Absolute):
        has_best_constant = True  # the same
        name = "half"

        def evaluate(self, F, y):
            losses, G = super().evaluate(F, y)
            return 0.5 * losses, 0.5 * G

        def prox(self, F, y, size):
            return super().prox(F, y, 0.5 * size)

    class Same(Half):
        pass

    for loss in (Half(), Same()):
        assert (loss.has_best_constant, loss.has_prox, loss.has_best_shifts) == (True, True, False)
        assert loss.name == "half"
        np.testing.assert_array_equal(loss.prox(np.ones((1, 1)), np.zeros((1, 1)), 1.0), [[0.5]])


def test_a_subclass_with_its_own_function_of_the_margin_has_no_formulas_of_its_parent():
    class Steep(Hinge):
        def of_margin(self, margin):
            losses, slope = super().of_margin(margin)
            return 2.0 * losses, 2.0 * slope

    assert not any(getattr(Steep, f"has_{method}") for method in METHODS)
    assert Steep().constants(1) == Constants()


def test_an_expectile_by_subclassing_is_the_same_model_as_a_plain_object():
    def evaluate(self, F, y):
        residual = F - y
        weight = np.where(residual > 0.0, 0.1, 0.9)
        return 0.5 * (weight * residual**2).sum(axis=1), weight * residual

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + rng.normal(size=80)
    parts = [type("Expectile", bases, {"evaluate": evaluate})() for bases in ((HalfSquared,), ())]
    a, b = (ConvexBoostRegressor(loss, n_rounds=20).fit(X, y).predict(X) for loss in parts)
    np.testing.assert_array_equal(a, b)


def test_declared_by_the_parts():
    assert (2 * Poisson()).positive_only
    assert (Quantiles() + 2 * Quantiles()).one_target
    assert CVaR("absolute").reweights
    assert (CVaR("absolute") + Absolute()).reweights
    assert not Absolute().reweights
    assert (Absolute() + 2 * TotalVariation(EDGES)).takes_groups
    assert not (Absolute() + 2 * TotalVariation(EDGES)).needs_groups
    assert (WorstGroup("absolute") + Absolute()).needs_groups
    assert Structured(lambda F, y, label: (y, 0.0)).affine(-1).whole_groups
    assert not (as_loss(MineWithAll()) + HalfSquared()).thread_safe
    assert (2 * Softmax() + Ridge(0.1)).has_link
    assert CVaR("softmax").has_link
    assert not (Softmax() + Softmax()).has_link  # which of the two?
    assert not TotalVariation(EDGES).has_targets
    assert not (2 * TotalVariation(EDGES) + Ridge(1.0)).has_targets


@pytest.mark.parametrize("loss", LOSSES, ids=name_of)
def test_repr_can_be_pasted(loss):
    if "Structured" in repr(loss):
        pytest.skip("made of a function")
    names = {cls.__name__: cls for cls in everything("convexboost.losses").values()}
    mine = {f.__name__: f for f in (Mine, MineWithAll, MyTotal, as_loss, maximum, Ridge)}
    again = eval(repr(loss), names | mine)
    assert again == loss
    assert hash(again) == hash(loss)
    assert str(again) == str(loss) != repr(loss)


def test_parameters_of_losses():
    """As scikit-learn reads and sets them, also through an estimator."""
    assert Quantile(0.9).get_params() == {"quantile": 0.9}
    assert Quantile().set_params(quantile=0.2) == Quantile(0.2)
    with pytest.raises(ValueError, match=r"`quantile` must lie in \(0, 1\), got 2"):
        Quantile().set_params(quantile=2)
    assert CVaR("absolute").set_params(loss="quantile", loss__quantile=0.3) == CVaR(Quantile(0.3))
    with pytest.raises(ValueError, match=r"`level` must lie in \[0, 1\), got 5"):
        CVaR("absolute").set_params(loss="quantile", level=5)
    model = ConvexBoostRegressor(CVaR(Quantile(0.3), 0.5)).set_params(
        loss__loss__quantile=0.7, loss__level=0.1
    )
    assert model.loss == CVaR(Quantile(0.7), 0.1)
    for loss in LOSSES:
        if not loss.is_custom:
            assert repr(clone(loss)) == repr(loss)
            assert clone(ConvexBoostRegressor(loss)).loss is not loss


@pytest.mark.parametrize("wrong", ["a", None, [0.5], 0, 1.5, np.nan])
def test_a_quantile_is_a_number_between_0_and_1(wrong):
    with pytest.raises(ValueError, match=re.escape(f"`quantile` must lie in (0, 1), got {wrong!r}")):
        Quantile(wrong)


def test_losses_by_name():
    """Everything that takes a loss takes its name."""
    assert maximum("logistic", "hinge") == maximum(Logistic(), Hinge())
    assert as_loss("quantile:0.9") == Quantile(0.9)
    with pytest.raises(ValueError, match=r"`loss` must be one of .*, got 'absolut'; did you mean 'absolute'"):
        maximum("absolut", "hinge")


@pytest.mark.parametrize("cls", everything("convexboost.losses").values())
def test_every_parameter_is_documented_with_type_and_default(cls):
    text = inspect.getdoc(cls)
    for name, parameter in inspect.signature(cls).parameters.items():
        found = re.search(rf"^{name} : (.+)\n    \S", text, re.MULTILINE)
        assert found, f"`{name}` of {cls.__name__}"
        if parameter.default is parameter.empty:
            assert "default" not in found[1]
        else:
            value = parameter.default
            value = f'"{value}"' if isinstance(value, str) else value
            default = "optional" if value is None else f"default={value}"
            assert found[1].endswith(default)


def test_every_loss_of_the_folder_is_here():
    here = {type(loss) for loss in (*LOSSES, TotalVariation(EDGES), Laplacian(EDGES))}
    assert set(everything("convexboost.losses").values()) <= here
    assert convexboost.losses.Absolute is Absolute
