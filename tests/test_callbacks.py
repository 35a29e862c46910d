"""Callbacks: when they stop, what they show on a terminal and what elsewhere."""

import os
import pickle
import pty
import re
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone

from convexboost import ConvexBoostRegressor, callbacks
from convexboost.boosting.training import Record
from convexboost.callbacks import EarlyStopping, ProgressBar, ProgressLines, TimeBudget
from convexboost.estimators._validation import N_FOLDS

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
Y = X[:, 0] + rng.normal(size=200)
NAN = float("nan")


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """A terminal is told of kernels that are being compiled, which is not what these tests look at."""
    ConvexBoostRegressor(n_rounds=2).fit(X, Y).predict(X)


def record(t, objective=1.0, validation=NAN, score=NAN, seconds=0.0, weak_learners=None):
    learners = t if weak_learners is None else weak_learners
    return Record(t, objective, validation, score, NAN, NAN, 1.0, learners, t, seconds)


class Terminal:
    """Standard error is a terminal in the meantime; `text` is what it got."""

    def __init__(self, monkeypatch, columns=80):
        self.master, slave = pty.openpty()
        self.file, self.pieces = os.fdopen(slave, "w"), []
        monkeypatch.setattr(sys, "stderr", self.file)
        for name, value in (("TERM", "xterm-256color"), ("COLUMNS", str(columns)), ("LINES", "40")):
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("NO_COLOR", raising=False)
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        while True:
            try:
                piece = os.read(self.master, 4096)
            except OSError:  # the other end is closed
                return
            self.pieces.append(piece)

    @property
    def text(self):
        self.file.close()
        self.thread.join()
        os.close(self.master)
        return b"".join(self.pieces).decode()

    @property
    def screen(self):
        """What a person sees in the end."""
        lines, row = [""], 0
        for piece in re.split(r"(\x1b\[[0-9;]*[A-Za-z]|\r\n)", self.text):
            if piece == "\r\n":
                row += 1
                lines += [""] * (row == len(lines))
            elif piece == "\x1b[1A":
                row -= 1
            elif piece == "\x1b[2K":
                lines[row] = ""
            elif not piece.startswith("\x1b"):
                lines[row] += piece
        return [line for line in lines if line]


# --- stopping ----------------------------------------------------------------------------------------------


def test_time_budget():
    budget = TimeBudget(2.5)
    assert not budget(record(3, seconds=2.4))
    assert budget(record(4, seconds=2.6)) == "the time budget of 2.5 s is used up after 4 rounds"
    assert not budget(record(0))  # another run


def test_time_budget_ends_a_fit():
    model = ConvexBoostRegressor(n_rounds=10**6, early_stopping=False, callbacks=[TimeBudget(0.3)])
    model.fit(X, Y)
    assert model.stop_kind_ == "callback"
    assert model.stop_reason_ == f"the time budget of 0.3 s is used up after {model.n_rounds_} rounds"
    seconds = model.history_["seconds"]
    assert seconds[-1] >= 0.3 > seconds[-2]


def values(callback, **columns):
    """The rounds after which a callback wants to stop, and its words."""
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    said = [callback(record(t, **dict(zip(names, row, strict=True)))) for t, row in enumerate(rows)]
    return [t for t, words in enumerate(said) if words], next(filter(None, said), None)


def test_early_stopping():
    stops, words = values(EarlyStopping(2), objective=[5.0, 4.0, 3.0, 3.0, 3.5, 2.0])
    assert stops == [4]
    assert words == "the objective has not improved for 2 rounds"


def test_early_stopping_watches_what_validates():
    falling = [5.0, 4.0, 3.0, 2.0]
    assert values(EarlyStopping(2), objective=falling, validation=[1.0, 2.0, 2.0, 2.0])[0] == [2, 3]
    stops, words = values(EarlyStopping(1), validation=falling, score=[0.1, 0.3, 0.2, 0.4])
    assert (stops, words) == ([2], "the validation score has not improved for 1 rounds")
    watched = EarlyStopping(1, monitor="validation")
    assert values(watched, validation=falling, score=[0.1, 0.3, 0.2, 0.4])[0] == []


def test_a_small_change_is_no_improvement():
    stops, words = values(EarlyStopping(2, min_delta=0.1), objective=[1.0, 0.95, 0.92, 0.5, 0.4, 0.39])
    assert stops == [2]
    assert "by more than 0.1" in words
    # Many small changes add up to one: the yardstick is the last improvement.
    assert values(EarlyStopping(3, min_delta=0.1), objective=[1.0, 0.95, 0.89, 0.85, 0.78])[0] == []


def test_a_callback_begins_anew_with_every_run():
    stopping = EarlyStopping(2)
    assert values(stopping, objective=[1.0, 1.0, 1.0])[0] == [2]
    assert values(stopping, objective=[9.0, 9.0, 9.0])[0] == [2]
    model = ConvexBoostRegressor(n_rounds=50, callbacks=[EarlyStopping(3, min_delta=1e9)])
    assert [model.fit(X, Y).n_rounds_ for _ in range(2)] == [3, 3]
    assert clone(model).fit(X, Y).n_rounds_ == 3


def test_rows_must_validate_where_they_are_watched():
    model = ConvexBoostRegressor(early_stopping=False, callbacks=[EarlyStopping(3, monitor="validation")])
    with pytest.raises(ValueError, match="`monitor`='validation' cannot be watched: no rows validate"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TimeBudget(0), "`seconds` must be positive, got 0"),
        (lambda: TimeBudget("1"), "`seconds` must be positive, got '1'"),
        (lambda: EarlyStopping(0), "`patience` must be a positive integer, got 0"),
        (lambda: EarlyStopping(2.5), "`patience` must be a positive integer, got 2.5"),
        (lambda: EarlyStopping(1, -1), "`min_delta` must not be negative, got -1"),
        (lambda: EarlyStopping(1, monitor="loss"), "`monitor` must be one of auto, objective, validation, "),
        (lambda: ProgressLines(0), "`every` must be a positive integer, got 0"),
        (lambda: ProgressBar(0), "`n_rounds` must be a positive integer, got 0"),
        (lambda: ProgressBar(5, n_members=None), "`n_members` must be a positive integer, got None"),
    ],
)
def test_wrong_parameters(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


# --- showing -----------------------------------------------------------------------------------------------


def test_a_bar_on_a_terminal(monkeypatch):
    terminal = Terminal(monkeypatch)
    model = ConvexBoostRegressor(n_rounds=300, verbose=1).fit(X, Y)
    (line,) = terminal.screen
    history = model.history_
    assert re.match(rf"━+ {model.n_rounds_}/300  objective {history['objective'][-1]:.4g}", line)
    assert f"  validation {history['validation'][-1]:.4g}  " in line
    assert line.endswith(f"  {N_FOLDS} folds")


def test_the_time_left(monkeypatch):
    terminal = Terminal(monkeypatch)
    monkeypatch.setattr(callbacks, "PAUSE", 0.0)
    bar = ProgressBar(100)
    for t in range(51):
        bar(record(t, seconds=60.0 + 2.0 * t))
    lines = [line for line in re.split(r"\r\n", terminal.text) if "left" in line]
    assert lines[-1].endswith("50/100  objective 1  1:40 left")
    assert lines[-1].count("━") == callbacks.BAR


def test_the_budget_of_weak_learners_counts(monkeypatch):
    terminal = Terminal(monkeypatch)
    monkeypatch.setattr(callbacks, "PAUSE", 0.0)
    bar = ProgressBar(1000, max_weak_learners=20)
    for t in range(11):
        bar(record(t, seconds=1.0 * t))
    assert terminal.screen[-1].endswith("10 s left")


def test_a_narrow_terminal(monkeypatch):
    terminal = Terminal(monkeypatch, columns=40)
    ConvexBoostRegressor(n_rounds=30, verbose=1).fit(X, Y)
    (line,) = terminal.screen
    assert len(line) < 40


def test_what_follows_a_bar_is_kept(monkeypatch):
    """The second fit shows a bar of its own, however soon it begins."""
    terminal = Terminal(monkeypatch)
    monkeypatch.setattr(callbacks, "PAUSE", 60.0)
    model = ConvexBoostRegressor(n_rounds=30, callbacks=[ProgressBar()]).fit(X, Y)
    print("next", file=sys.stderr)
    model.fit(X, Y)
    lines = terminal.screen
    assert [line.split()[0] for line in lines] == ["round", "next", "round"]
    assert "━" not in "".join(lines)  # the number of rounds is not known


def test_without_rich_there_are_lines(monkeypatch):
    terminal = Terminal(monkeypatch)
    monkeypatch.setattr(callbacks, "find_spec", lambda name: None)
    ConvexBoostRegressor(n_rounds=40, early_stopping=False, verbose=1).fit(X, Y)
    assert [int(line.split()[1]) for line in terminal.screen] == list(range(0, 41, 2))


def test_nothing_is_shown_unless_asked_for(monkeypatch):
    terminal = Terminal(monkeypatch)
    ConvexBoostRegressor(n_rounds=40).fit(X, Y)
    assert terminal.text == ""


def test_lines_in_a_pipe(capfd):
    ConvexBoostRegressor(n_rounds=40, verbose=1).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "\x1b" not in err
    assert all(re.match(r"round +\d+  objective .*  validation .* s$", line) for line in err.splitlines())


def test_a_model_with_callbacks_can_be_saved(monkeypatch):
    terminal = Terminal(monkeypatch)
    model = ConvexBoostRegressor(n_rounds=5, callbacks=[ProgressBar(5), EarlyStopping(3), TimeBudget(9)])
    again = pickle.loads(pickle.dumps(model.fit(X, Y)))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert terminal.screen


def test_reprs_can_be_pasted():
    for callback in (TimeBudget(2.0), EarlyStopping(3, monitor="score"), ProgressBar(5), ProgressLines(2)):
        assert eval(repr(callback)) == callback
