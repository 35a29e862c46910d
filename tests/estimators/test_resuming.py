"""Runs that go on: `warm_start`, `checkpoint`, processes that are killed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

import convexboost
from convexboost import ConvexBoostClassifier, ConvexBoostRanker, ConvexBoostRegressor, ModelFormatError
from convexboost.estimators import _resuming
from convexboost.learners import Tree

rng = np.random.default_rng(0)
N = 150
X = rng.normal(size=(N, 4))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * rng.normal(size=N)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
QUERIES = np.arange(N) // 5
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(e=pd.Categorical(np.array(["x", "y", "z"])[CLASSES]))

#: An estimator, and what it is fitted to.
CASES = {
    "trees in folds": (ConvexBoostClassifier(n_rounds=12), (X, CLASSES)),
    "one run of trees": (ConvexBoostRegressor("absolute", early_stopping=False, n_rounds=12), (X, Y)),
    "rows held out": (ConvexBoostRegressor(early_stopping=True, n_rounds=12), (X, Y)),
    "categories": (ConvexBoostRegressor(n_rounds=12), (FRAME, Y)),
    "stumps": (ConvexBoostClassifier("multiclass_hinge", "stump", n_rounds=12), (X, CLASSES)),
    "repeated": (ConvexBoostRegressor("huber", "stump", "repeated", n_rounds=12), (X, Y)),
    "naive": (ConvexBoostRegressor("huber", "stump", "naive", n_rounds=12), (X, Y)),
    "additive": (ConvexBoostRegressor("quantile:0.9", "additive", n_rounds=12), (X, Y)),
    "network": (ConvexBoostRegressor(learner="network", n_rounds=12), (X, Y)),
    "certificate": (ConvexBoostRegressor("huber", "stump", l2=0.1, certificate=True, n_rounds=12), (X, Y)),
    "dual averaging": (ConvexBoostRegressor("huber", algorithm="dual_averaging", n_rounds=12), (X, Y)),
    "ranker": (ConvexBoostRanker(n_rounds=12), (X, CLASSES, QUERIES)),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def made(case, **settings):
    return clone(case[0]).set_params(n_jobs=1, **settings)


def same(a, b, rows):
    """Compare two models to the bit: predictions, history (less the seconds), what was chosen."""
    np.testing.assert_array_equal(
        a.model_.predict(a._check_inputs(rows)), b.model_.predict(b._check_inputs(rows))
    )
    for name in a.history_:
        if name != "seconds":
            np.testing.assert_array_equal(a.history_[name], b.history_[name], err_msg=name)
    np.testing.assert_array_equal(a.chosen_, b.chosen_)
    assert (a.n_rounds_, a.best_round_, a.stop_reason_) == (b.n_rounds_, b.best_round_, b.stop_reason_)
    assert str(a.certificate_) == str(b.certificate_)


# -- warm start --------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
def test_warm_start_is_as_if_at_once(case):
    model = made(case, n_rounds=5, warm_start=True, random_state=3).fit(*case[1])
    model.set_params(n_rounds=12).fit(*case[1])
    same(model, made(case, random_state=3).fit(*case[1]), case[1][0])


@pytest.mark.one_in(3)
def test_warm_start_without_a_seed(case):
    model = made(case, n_rounds=5, warm_start=True).fit(*case[1])
    seed = model._run.seed
    model.set_params(n_rounds=12).fit(*case[1])
    same(model, made(case, random_state=seed).fit(*case[1]), case[1][0])


def test_warm_start_in_another_order_of_rows():
    """A run knows its rows, not where they are."""
    case, order = CASES["trees in folds"], rng.permutation(N)
    model = made(case, n_rounds=5, warm_start=True, random_state=3).fit(*case[1])
    model.set_params(n_rounds=12).fit(X[order], CLASSES[order])
    same(model, made(case, random_state=3).fit(*case[1]), X)


def test_warm_start_through_a_pickle():
    case = CASES["trees in folds"]
    model = made(case, n_rounds=5, warm_start=True, random_state=3).fit(*case[1])
    model = pickle.loads(pickle.dumps(model)).set_params(n_rounds=12).fit(*case[1])
    same(model, made(case, random_state=3).fit(*case[1]), X)


def test_a_scikit_learn_learner_goes_on_too():
    learner = DecisionTreeRegressor(max_depth=2, random_state=0)
    model = ConvexBoostRegressor(learner=learner, n_rounds=3, warm_start=True, random_state=0).fit(X, Y)
    model.set_params(n_rounds=6).fit(X, Y)
    at_once = ConvexBoostRegressor(learner=learner, n_rounds=6, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), at_once.predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"l2": 0.5}, "`l2` was 0 and now is 0.5"),
        ({"loss": "absolute"}, "`loss` was 'huber' and now is 'absolute'"),
        ({"random_state": 4}, "the seed of `random_state` was 3 and now is 4"),
        ({"early_stopping": False}, "`early_stopping` was 'auto' and now is False"),
    ],
)
def test_other_settings(change, message, tmp_path):
    model = ConvexBoostRegressor("huber", n_rounds=3, random_state=3, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match=f"`warm_start` goes on with the run of the last fit, but {message}"):
        model.set_params(**change).fit(X, Y)
    path = tmp_path / "run"
    model = ConvexBoostRegressor("huber", n_rounds=3, random_state=3, checkpoint=path).fit(X, Y)
    with pytest.raises(ValueError, match=f"holds another run: {message}"):
        model.set_params(**change).fit(X, Y)


@pytest.mark.parametrize(
    "rows",
    [
        {"X": X[1:], "y": Y[1:]},
        {"X": X, "y": Y + 1.0},
        {"X": X, "y": Y, "sample_weight": np.arange(1.0, N + 1.0)},
        {"X": X, "y": Y, "offset": X[:, 0]},
        {"X": X, "y": Y, "X_val": X[:40], "y_val": Y[:40]},
        {"X": X, "y": np.column_stack([Y, Y])},
    ],
)
def test_other_rows(rows, tmp_path):
    model = ConvexBoostRegressor("huber", n_rounds=3, warm_start=True, checkpoint=tmp_path / "run").fit(X, Y)
    before = model.predict(X)
    for settings in ({}, {"warm_start": False}):
        with pytest.raises(ValueError, match="the data changed"):
            model.set_params(**settings).fit(**rows)
        np.testing.assert_array_equal(model.predict(X), before)


V = np.abs(X[:, 2]) + 0.5
COUNTS = pd.DataFrame({"a": CLASSES.astype(float), "b": X[:, 0]})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"X": X, "y": Y, "sample_weight": V}, {"X": X, "y": Y, "offset": V}),
        ({"X": X, "y": np.column_stack([Y, V])}, {"X": X, "y": Y, "sample_weight": V}),
        ({"X": X, "y": Y, "sample_weight": V}, {"X": X, "y": np.column_stack([Y, V])}),
        ({"X": COUNTS, "y": Y}, {"X": COUNTS.assign(a=pd.Categorical(COUNTS["a"])), "y": Y}),
        ({"X": COUNTS, "y": Y}, {"X": COUNTS.rename(columns={"a": "b", "b": "a"}), "y": Y}),
    ],
)
def test_the_same_numbers_as_something_else(first, second):
    model = ConvexBoostRegressor("huber", n_rounds=2, warm_start=True).fit(**first)
    with pytest.raises(ValueError, match=r"the (data|columns) changed"):
        model.fit(**second)


class Pin:
    """A loss of a user whose parameter is hidden."""

    def __init__(self, q):
        self._q = q

    def evaluate(self, F, y):
        over = F - y
        return np.maximum((1 - self._q) * over, -self._q * over).sum(axis=1), np.where(
            over > 0, 1 - self._q, -self._q
        )


def _with(q):
    return lambda F, y: (np.abs(F - q * y).sum(axis=1), np.sign(F - q * y))


class Calls:
    """A loss of a user that calls a function."""

    def __init__(self, function):
        self.evaluate = function


@pytest.mark.parametrize(("first", "second"), [(Pin(0.9), Pin(0.1)), (Calls(_with(1.0)), Calls(_with(0.5)))])
def test_other_losses_of_a_user(first, second):
    model = ConvexBoostRegressor(first, n_rounds=2, warm_start=True).fit(X, Y)
    model.set_params(n_rounds=3).fit(X, Y)
    with pytest.raises(ValueError, match="`loss` was"):
        model.set_params(loss=second).fit(X, Y)


def test_a_run_that_was_cut_shorter_goes_on(tmp_path):
    """Random numbers are those of the round it goes on from, not of the end of the file."""
    settings = {"learner": Tree(subsample=0.5), "random_state": 0, "early_stopping": False}
    ConvexBoostRegressor(n_rounds=10, checkpoint=tmp_path / "run", **settings).fit(X, Y)
    model = ConvexBoostRegressor(n_rounds=5, checkpoint=tmp_path / "run", warm_start=True, **settings).fit(
        X, Y
    )
    model.set_params(n_rounds=20, checkpoint=None).fit(X, Y)
    same(model, ConvexBoostRegressor(n_rounds=20, **settings).fit(X, Y), X)


def test_a_random_state_that_is_an_object():
    settings = {"learner": Tree(subsample=0.5), "early_stopping": False}
    model = ConvexBoostRegressor(
        n_rounds=3, warm_start=True, random_state=np.random.RandomState(0), **settings
    )
    model.fit(X, Y).set_params(n_rounds=6).fit(X, Y)
    seed = model._run.seed
    same(model, ConvexBoostRegressor(n_rounds=6, random_state=seed, **settings).fit(X, Y), X)


def test_without_warm_start_nothing_is_kept():
    model = ConvexBoostRegressor(n_rounds=3, random_state=0).fit(X, Y)
    assert "_run" not in vars(model)
    model.set_params(n_rounds=4).fit(X[:100], Y[:100])


# -- checkpoints -------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
def test_a_checkpoint_goes_on(case, tmp_path):
    path = tmp_path / "run.checkpoint"
    first = made(case, n_rounds=5, checkpoint=path, checkpoint_every=2).fit(*case[1])
    seed = _resuming.Checkpoint(path).seed
    second = made(case, checkpoint=path).fit(*case[1])
    same(second, made(case, random_state=seed).fit(*case[1]), case[1][0])
    same(first, made(case, random_state=seed, n_rounds=5).fit(*case[1]), case[1][0])
    again = made(case, checkpoint=str(path)).fit(*case[1])  # finished already
    same(again, second, case[1][0])


def test_written_every_few_rounds(tmp_path, monkeypatch):
    written = []
    write = _resuming.Checkpoint.write
    monkeypatch.setattr(
        _resuming.Checkpoint,
        "write",
        lambda self, run: (written.append(run.journal.n_rounds), write(self, run)),
    )
    settings = {"early_stopping": False, "checkpoint": tmp_path / "run", "checkpoint_every": 4}
    ConvexBoostRegressor(n_rounds=10, **settings).fit(X, Y)
    assert written == [0, 4, 8, 10]
    ConvexBoostRegressor(n_rounds=16, **settings).fit(X, Y)
    assert written == [0, 4, 8, 10, 14, 16]


def test_an_interrupt_leaves_a_checkpoint(tmp_path):
    path = tmp_path / "run"

    def interrupt(record):
        if record.round == 7:
            raise KeyboardInterrupt

    model = ConvexBoostRegressor(n_rounds=12, random_state=1, checkpoint=path, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt, match="keeps the model of 7 rounds"):
        model.fit(X, Y)
    told = []
    model.set_params(callbacks=[lambda record: told.append(record.round)]).fit(X, Y)
    assert told == list(range(13))
    same(model, ConvexBoostRegressor(n_rounds=12, random_state=1).fit(X, Y), X)


def test_an_error_in_a_callback_leaves_a_checkpoint(tmp_path):
    def broken(record):
        if record.round == 7:
            raise RuntimeError("broken")

    model = ConvexBoostRegressor(n_rounds=12, random_state=1, checkpoint=tmp_path / "run", callbacks=[broken])
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(X, Y)
    assert len(_resuming.Checkpoint(tmp_path / "run")._content.arrays["seconds"]) == 7


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`checkpoint`=.* lies in a folder that does not exist"):
        ConvexBoostRegressor(checkpoint=tmp_path / "no_folder" / "run").fit(X, Y)


def test_a_learner_that_cannot_be_written(tmp_path):
    learner = DecisionTreeRegressor(max_depth=2)
    with pytest.raises(ValueError, match=r"`checkpoint` cannot hold the weak learners that .*DecisionTree"):
        ConvexBoostRegressor(learner=learner, checkpoint=tmp_path / "run").fit(X, Y)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [b"", b"something else", os.urandom(300)])
def test_not_a_checkpoint(content, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=r"run.* cannot be loaded"):
        ConvexBoostRegressor(checkpoint=path).fit(X, Y)
    assert path.read_bytes() == content


def test_a_model_is_no_checkpoint_and_vice_versa(tmp_path):
    model = ConvexBoostRegressor(n_rounds=3, checkpoint=tmp_path / "run").fit(X, Y)
    model.save(tmp_path / "model")
    with pytest.raises(ModelFormatError, match="not a convexboost checkpoint"):
        model.set_params(checkpoint=tmp_path / "model").fit(X, Y)
    with pytest.raises(ModelFormatError, match="not a convexboost model"):
        convexboost.load(tmp_path / "run")


def test_a_full_disk_does_not_end_training(tmp_path, monkeypatch):
    model = ConvexBoostRegressor(n_rounds=8, random_state=0, checkpoint=tmp_path / "run", checkpoint_every=2)
    write = _resuming.Checkpoint.write

    tried = []

    def full(self, run):
        tried.append(run.journal.n_rounds)
        if run.journal.n_rounds > 2:
            raise OSError(28, "No space left on device")
        write(self, run)

    monkeypatch.setattr(_resuming.Checkpoint, "write", full)
    with pytest.warns(UserWarning, match=r"`checkpoint` was not written: .*No space left"):
        model.fit(X, Y)
    monkeypatch.undo()
    assert model.n_rounds_ == 8
    assert tried == [0, 2, 4, 6, 8]
    assert len(_resuming.Checkpoint(tmp_path / "run")._content.arrays["seconds"]) == 2


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("checkpoint", 3, "a path or None"),
        ("checkpoint_every", 0, "a positive integer"),
        ("checkpoint_every", 1.5, "a positive integer"),
        ("warm_start", "yes", "True or False"),
    ],
)
def test_parameters(name, value, wanted):
    with pytest.raises(ValueError, match=f"`{name}` must be {wanted}, got {value!r}"):
        ConvexBoostRegressor(**{name: value}).fit(X, Y)


# -- processes ---------------------------------------------------------------------------------------------

#: Says that it has begun, and trains for long; the arguments are the case and the file.
CHILD = """
import sys
from tests.estimators.test_resuming import CASES, made, patient

name, path = sys.argv[1:]
case = CASES[name]
begun = lambda record: record.round == 0 and print("begun", flush=True)
settings = {"n_rounds": 100_000, "checkpoint": path, "checkpoint_every": 3, "random_state": 5}
made(case, callbacks=[begun], **patient(case), **settings).fit(*case[1])
"""


def patient(case):
    """Return what keeps early stopping from ending a long run."""
    return {} if case[0].early_stopping is False else {"n_iter_no_change": 100_000}


def start(name, path):
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, name, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert process.stdout.readline() == "begun\n"
    return process


def killed_and_resumed(name, path, rng, meanwhile=lambda: None):
    """Kill a process somewhere in its rounds or in a write; go on for a few rounds more."""
    case = CASES[name]
    with start(name, path) as process:
        meanwhile()
        time.sleep(float(rng.random()))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "the fit ended before it was killed"
    rounds = len(_resuming.Checkpoint(path)._content.arrays["seconds"])
    settings = {"n_rounds": rounds + 4, "random_state": 5, **patient(case)}
    model = made(case, checkpoint=path, **settings).fit(*case[1])
    same(model, made(case, **settings).fit(*case[1]), case[1][0])
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.name}.lock"}
    return rounds


def test_killed(tmp_path):
    """Two processes on one checkpoint: the second is refused, until the first is dead and holds no lock."""

    def another():
        case = CASES["trees in folds"]
        with pytest.raises(BlockingIOError, match=r"`checkpoint`='.*run' is in use by another fit"):
            made(case, n_rounds=3, checkpoint=tmp_path / "run", random_state=5).fit(*case[1])

    assert killed_and_resumed("trees in folds", tmp_path / "run", np.random.default_rng(0), another) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_killed_at_random_moments(seed, tmp_path):
    names = ["trees in folds", "one run of trees", "stumps", "repeated", "naive", "rows held out", "ranker"]
    killed_and_resumed(names[seed % len(names)], tmp_path / "run", np.random.default_rng(seed))


def test_files_of_others_are_left_alone(tmp_path):
    mine, other = tmp_path / f".run.{'0' * 16}.tmp", tmp_path / f".run.cbm.{'0' * 16}.tmp"
    mine.touch()
    other.touch()
    ConvexBoostRegressor(n_rounds=2, checkpoint=tmp_path / "run").fit(X, Y)
    assert (mine.exists(), other.exists()) == (False, True)


@pytest.mark.slow  # `test_killed` does the same on its way
def test_two_processes_on_one_checkpoint(tmp_path):
    path = tmp_path / "run"
    with start("trees in folds", path) as process:
        case = CASES["trees in folds"]
        with pytest.raises(BlockingIOError, match=r"`checkpoint`='.*run' is in use by another fit"):
            made(case, n_rounds=3, checkpoint=path, random_state=5).fit(*case[1])
        process.kill()
    # a dead one holds no lock
    model = made(case, n_rounds=3, checkpoint=path, random_state=5, **patient(case)).fit(*case[1])
    assert model.n_rounds_ == 3
