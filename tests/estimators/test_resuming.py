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


def test_warm_start_is_as_if_at_once(case):
    model = made(case, n_rounds=5, warm_start=True, random_state=3).fit(*case[1])
    model.set_params(n_rounds=12).fit(*case[1])
    same(model, made(case, random_state=3).fit(*case[1]), case[1][0])


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
    ],
)
def test_other_rows(rows, tmp_path):
    model = ConvexBoostRegressor("huber", n_rounds=3, warm_start=True, checkpoint=tmp_path / "run").fit(X, Y)
    before = model.predict(X)
    for settings in ({}, {"warm_start": False}):
        with pytest.raises(ValueError, match="the data changed"):
            model.set_params(**settings).fit(**rows)
        np.testing.assert_array_equal(model.predict(X), before)


def test_without_warm_start_nothing_is_kept():
    model = ConvexBoostRegressor(n_rounds=3, random_state=0).fit(X, Y)
    assert "_run" not in vars(model)
    model.set_params(n_rounds=4).fit(X[:100], Y[:100])


# -- checkpoints -------------------------------------------------------------------------------------------


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

    def full(self, run):
        if run.journal.n_rounds > 2:
            raise OSError(28, "No space left on device")
        write(self, run)

    monkeypatch.setattr(_resuming.Checkpoint, "write", full)
    with pytest.warns(UserWarning, match=r"`checkpoint` was not written: .*No space left"):
        model.fit(X, Y)
    monkeypatch.undo()
    assert model.n_rounds_ == 8
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

#: Trains slowly and says when a round is done; the arguments are the case, the file and the rounds.
CHILD = """
import sys, time
from tests.estimators.test_resuming import CASES, made

name, path, rounds = sys.argv[1:]
case = CASES[name]

def tell(record):
    print(record.round, flush=True)
    time.sleep(0.02)

settings = {"n_rounds": int(rounds), "checkpoint": path, "checkpoint_every": 3, "random_state": 5}
made(case, callbacks=[tell], **settings).fit(*case[1])
"""


def start(name, path, rounds=12):
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, name, str(path), str(rounds)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def kill_in_training(name, path, after, delay=0.0):
    """Start a fit, and kill it after so many rounds and seconds; it must have been training then."""
    with start(name, path) as process:
        for line in process.stdout:
            if int(line) >= after:
                break
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.stdout.read()
        assert process.wait() == -signal.SIGKILL, "the fit ended before it was killed"


def killed_and_resumed(name, path, rng):
    after = int(rng.integers(0, 11))
    kill_in_training(name, path, after, float(rng.random() * 0.02))
    kept = _resuming.Checkpoint(path)._content
    rounds = len(kept.arrays["seconds"])
    assert after - 3 < rounds <= 12
    case = CASES[name]
    model = made(case, checkpoint=path, random_state=5).fit(*case[1])
    same(model, made(case, random_state=5).fit(*case[1]), case[1][0])
    assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.name}.lock"}


def test_killed(tmp_path):
    killed_and_resumed("trees in folds", tmp_path / "run", np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_killed_at_random_moments(seed, tmp_path):
    names = ["trees in folds", "one run of trees", "stumps", "repeated", "naive", "rows held out", "ranker"]
    killed_and_resumed(names[seed % len(names)], tmp_path / "run", np.random.default_rng(seed))


def test_two_processes_on_one_checkpoint(tmp_path):
    path = tmp_path / "run"
    with start("trees in folds", path, 1000) as process:
        assert process.stdout.readline() == "0\n"
        case = CASES["trees in folds"]
        with pytest.raises(RuntimeError, match=r"`checkpoint`='.*run' is in use by another fit"):
            made(case, n_rounds=3, checkpoint=path, random_state=5).fit(*case[1])
        process.kill()
    model = made(case, n_rounds=3, checkpoint=path, random_state=5).fit(*case[1])  # a dead one holds no lock
    assert model.n_rounds_ == 3
