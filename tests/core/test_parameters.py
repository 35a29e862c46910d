"""Parameters: scikit-learn reads and sets them, and the repr can be pasted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from convexboost.core.parameters import Parameters
from convexboost.learners._learner import Learner
from convexboost.learners.regressor import Regressor
from convexboost.learners.tree import Tree
from convexboost.registry import everything

LEARNERS = everything("convexboost.learners")


@dataclass(frozen=True)
class Inner(Parameters):
    width: float = 1.0

    def __post_init__(self) -> None:
        if not self.width > 0:
            raise ValueError(f"`width` must be positive, got {self.width!r}")

    @cached_property
    def area(self) -> float:
        return self.width**2


@dataclass(frozen=True)
class Outer(Parameters):
    part: Any
    size: int = 3
    values: Any = field(default_factory=list)


@dataclass(frozen=True)
class Named(Parameters):
    size: int = 3

    def __repr__(self) -> str:
        return "its own"


@dataclass(frozen=True)
class Renamed(Named):
    other: int = 1


def test_get_params_as_scikit_learn_does():
    inner = Inner(2.0)
    outer = Outer(inner)
    assert outer.get_params(deep=False) == {"part": inner, "size": 3, "values": []}
    assert outer.get_params() == {"part": inner, "size": 3, "values": [], "part__width": 2.0}
    assert outer.get_params()["part"] is inner
    assert Outer(Inner).get_params() == {"part": Inner, "size": 3, "values": []}  # a class has no parameters


def test_set_params_checks_and_forgets_what_was_computed():
    inner = Inner(2.0)
    assert inner.area == 4.0
    assert inner.set_params(width=3.0) is inner
    assert (inner.width, inner.area) == (3.0, 9.0)


def test_set_params_sets_all_or_nothing():
    inner = Inner()
    outer = Outer(inner)
    for wrong, message in (
        ({"size": 5, "part__width": -1.0}, r"`width` must be positive, got -1.0"),
        ({"size": 5, "depth": 1}, r"`depth` is not a parameter of Outer, which has: part, size, values"),
        ({"size": 5, "part__depth": 1}, r"`depth` is not a parameter of Inner, which has: width"),
        ({"size": 5, "values__depth": 1}, r"`values` is \[\], which has no parameter `depth`"),
    ):
        with pytest.raises(ValueError, match=message):
            outer.set_params(**wrong)
        assert outer == Outer(Inner())
    assert outer.part is inner


def test_set_params_of_a_new_part():
    outer = Outer(None).set_params(part=Inner(), part__width=4.0)
    assert outer == Outer(Inner(4.0))


def test_set_params_leaves_a_shared_part_alone():
    shared = Inner()
    first, second = Outer(shared), Outer(shared)
    first.set_params(part__width=2.0)
    assert (first.part.width, second.part.width) == (2.0, 1.0)


def test_clone():
    outer = Outer(Ridge(alpha=2.0))
    copied = clone(outer)
    assert copied is not outer
    assert copied.part is not outer.part
    assert copied.part.alpha == 2.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Inner(), "Inner()"),
        (Inner(np.float64(2.0)), "Inner(width=2.0)"),
        (Inner(math.inf), "Inner(width=float('inf'))"),
        (Inner(True), "Inner(width=True)"),  # 1 and True are equal, but not the same
        (Outer(Inner(2.0), 4), "Outer(part=Inner(width=2.0), size=4)"),
        (Outer(None, values=np.array([1.0, 2.0])), "Outer(part=None, values=[1.0, 2.0])"),
        (Outer((1,), values=[np.int64(3), {"a": (1, 2)}]), "Outer(part=(1,), values=[3, {'a': (1, 2)}])"),
        (Outer(Ridge(alpha=2.0)), "Outer(part=Ridge(alpha=2.0))"),
        (Named(4), "its own"),
        (Renamed(4), "its own"),
    ],
    ids=str,
)
def test_repr_shows_what_is_not_default(value, text):
    assert repr(value) == text


def test_long_arrays_are_described():
    assert repr(Outer(np.zeros(1000))) == "Outer(part=<float64 array, shape (1000,)>)"


TREES = [
    Tree(7, monotone_constraints={"a": 1, 2: -1}),
    Tree(min_samples_leaf=np.int64(3), splits="best"),
    Tree(monotone_constraints=(0, 1), subsample=0.5),
]


@pytest.mark.parametrize("learner", [*(cls() for cls in LEARNERS.values()), *TREES], ids=repr)
def test_repr_of_a_learner_can_be_pasted(learner):
    names = {cls.__name__: cls for cls in LEARNERS.values()}
    assert eval(repr(learner), names) == learner
    assert clone(learner) == learner


@pytest.mark.parametrize("cls", LEARNERS.values())
def test_parameters_of_learners_are_documented_with_their_defaults(cls):
    assert issubclass(cls, Learner)
    for parameter in fields(cls):
        assert f"    {parameter.name} : " in cls.__doc__
        default = parameter.default
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        line = next(row for row in cls.__doc__.splitlines() if row.startswith(f"    {parameter.name} : "))
        assert line.endswith(f"default={shown}")


def test_repr_of_a_wrapped_estimator():
    learner = Regressor(DecisionTreeRegressor(max_depth=2))
    assert repr(learner) == "Regressor(estimator=DecisionTreeRegressor(max_depth=2))"
    assert learner.get_params()["estimator__max_depth"] == 2
    learner.set_params(estimator__max_depth=5)
    assert learner.estimator.max_depth == 5


def test_a_wrong_parameter_of_a_tree_changes_nothing():
    tree = Tree()
    with pytest.raises(ValueError, match=r"`max_leaves` of a tree must be .*'auto', got 1"):
        tree.set_params(max_depth=3, max_leaves=1)
    assert tree == Tree()
    assert tree.set_params(max_depth=3) == Tree(max_depth=3)


# --- classes that are not dataclasses ----------------------------------------------------------------------


class Bare(Parameters):
    pass


class Plain(Parameters):
    def __init__(self, width: float = 1.0, *more: Any, part: Any = None, **rest: Any) -> None:
        self.width, self.part = width, part


class Hidden(Parameters):
    def __init__(self, width: float) -> None:
        self._width = width


def test_parameters_of_any_class():
    assert (Bare().get_params(), repr(Bare())) == ({}, "Bare()")
    assert Plain(2.0).get_params() == {"width": 2.0, "part": None}
    assert repr(Plain(part=Plain(2.0))) == "Plain(part=Plain(width=2.0))"
    plain = Plain(part=Plain()).set_params(width=3.0, part__width=4.0)
    assert (plain.width, plain.part.width) == (3.0, 4.0)
    copied = clone(plain)
    assert copied.part is not plain.part
    assert copied.get_params()["part__width"] == 4.0


def test_a_class_that_keeps_its_arguments_elsewhere():
    hidden = Hidden(2.0)
    assert (hidden.get_params(), repr(hidden)) == ({}, "Hidden()")
    assert clone(hidden)._width == 2.0
    with pytest.raises(ValueError, match=r"`width` is not a parameter of Hidden, which has: none"):
        hidden.set_params(width=1.0)
