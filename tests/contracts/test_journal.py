"""The rounds of an earlier run are gone through again without training, to the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from convexboost.boosting.training import Journal
from convexboost.core.protocols import Target
from tests.contracts.test_interruption import CASES, NEW, everything, same, training

SHORT, LONG = 4, 15


def ran(name, n_rounds, earlier=None):
    run = training(name, n_rounds, earlier=earlier)
    run.run()
    return run


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_more_rounds_are_as_if_trained_at_once(name):
    at_once = ran(name, LONG)
    first = ran(name, SHORT)
    second = ran(name, LONG, first.journal)
    assert second.stop == at_once.stop
    same(everything(second), everything(at_once))
    np.testing.assert_array_equal(second.result().model.predict(NEW), at_once.result().model.predict(NEW))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_known_rounds_need_no_weak_learner(name, monkeypatch):
    first = ran(name, SHORT)
    state, journal = everything(first), first.journal
    with monkeypatch.context() as patch:
        for cls in _targets():
            for method in ("project", "project_to_refit", "pursue", "projections"):
                if method in vars(cls):
                    patch.setattr(cls, method, _refuse)
        with pytest.raises(AssertionError, match="was trained"):
            ran(name, 1)
        again = ran(name, SHORT, journal)
        fewer = ran(name, SHORT - 1, journal)
    same(everything(again), state)
    same(everything(fewer), everything(ran(name, SHORT - 1)))


def _refuse(*arguments, **settings):
    raise AssertionError("a weak learner was trained")


def _targets():
    classes = [Target]
    for cls in classes:
        classes += cls.__subclasses__()
    return classes


def test_seconds_go_on():
    first = ran("tree", SHORT)
    journal = Journal(first.journal.members, [100.0, 200.0, 300.0, 400.0])
    seconds = [record.seconds for record in ran("tree", SHORT + 1, journal).records]
    np.testing.assert_allclose(seconds[1:5], journal.seconds, atol=0.1)
    assert 400.0 < seconds[5] < 410.0


def test_callbacks_hear_of_known_rounds():
    heard = []
    journal = ran("tree", SHORT).journal
    run = training("tree", SHORT + 2, earlier=journal)
    run.callbacks = [lambda record: heard.append(record.round)]
    run.run()
    assert heard == list(range(SHORT + 3))


def test_a_callback_may_say_why():
    run = training("tree", LONG)
    run.callbacks = [lambda record: "time is up" if record.round == 2 else ""]
    run.run()
    assert run.stop == ("callback", "time is up")
    assert run.model.n_rounds == 2


def test_number_of_problems():
    journal = ran("tree", 1).journal
    with pytest.raises(ValueError, match="`earlier` must be of 1 problems, got 2"):
        training("tree", earlier=Journal([*journal.members, []], journal.seconds))
    assert math.isfinite(journal.seconds[0])
