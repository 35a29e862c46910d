"""Callbacks for `callbacks=[...]` of an estimator, `boost` and `Training`.

- `TimeBudget` and `EarlyStopping` stop training.
- `ProgressBar` and `ProgressLines` show how far it is.

A callback is any callable.  It gets the `Record` of every round, and of the start; a true return value stops
training, and a text says why (`stop_reason_`).  All here begin anew with every run.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from importlib.util import find_spec

from convexboost.boosting.training import Record
from convexboost.core.numbers import is_number, is_positive, is_whole
from convexboost.core.parameters import Parameters

__all__ = ["EarlyStopping", "ProgressBar", "ProgressLines", "TimeBudget"]

#: Seconds between two pictures of a bar: it must not cost more than the training.
PAUSE = 0.1
#: Pictures whose rounds tell how fast training is.
RECENT = 30
BAR = 12  #: characters; the whole line fits on a terminal of 80
MONITORS = {"objective": "objective", "validation": "validation loss", "score": "validation score"}


@dataclass
class TimeBudget(Parameters):
    """Stop after this many seconds of training, at the end of a round.

    The seconds are those of `history_`: they begin once the data are read and binned, and a run that is
    resumed goes on counting.
    """

    seconds: float

    def __post_init__(self) -> None:
        if not is_positive(self.seconds):
            raise ValueError(f"`seconds` must be positive, got {self.seconds!r}")

    def __call__(self, record: Record) -> str:
        """Return why to stop, "" to go on."""
        if record.seconds < self.seconds:
            return ""
        return f"the time budget of {self.seconds:g} s is used up after {record.round} rounds"


@dataclass
class EarlyStopping(Parameters):
    """Stop when nothing has improved for a number of rounds.

    `n_iter_no_change` of the estimators does so too.  Here an improvement can be asked to be worth it, and
    the objective can be watched where rows validate.

    Parameters
    ----------
    patience : int
        Stop after this many rounds without an improvement.
    min_delta : float, default=0
        What counts as an improvement: a change by more than this.
    monitor : {"auto", "objective", "validation", "score"}, default="auto"
        What to watch, by its name in `history_`.  "auto": the score of the rows that validate where there is
        one, else their loss, else the objective.

    """

    patience: int
    min_delta: float = 0.0
    monitor: str = "auto"
    _best: float = field(default=math.inf, init=False, repr=False)
    _best_round: int = field(default=0, init=False, repr=False)
    _last_round: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        if not is_whole(self.patience, 1):
            raise ValueError(f"`patience` must be a positive integer, got {self.patience!r}")
        if not (is_number(self.min_delta) and self.min_delta >= 0):
            raise ValueError(f"`min_delta` must not be negative, got {self.min_delta!r}")
        if self.monitor != "auto" and self.monitor not in MONITORS:
            raise ValueError(f"`monitor` must be one of auto, {', '.join(MONITORS)}, got {self.monitor!r}")

    def __call__(self, record: Record) -> str:
        """Return why to stop, "" to go on."""
        if record.round <= self._last_round:  # another run
            self._best, self._best_round = math.inf, record.round
        self._last_round = record.round
        name = self._watched(record)
        value = float(getattr(record, name))
        if math.isnan(value):
            raise ValueError(f"`monitor`={self.monitor!r} cannot be watched: no rows validate")
        value = -value if name == "score" else value
        if value < self._best - self.min_delta or math.isinf(self._best):
            self._best, self._best_round = value, record.round
        if record.round - self._best_round < self.patience:
            return ""
        enough = f" by more than {self.min_delta:g}" if self.min_delta else ""
        return f"the {MONITORS[name]} has not improved{enough} for {self.patience} rounds"

    def _watched(self, record: Record) -> str:
        if self.monitor != "auto":
            return self.monitor
        if not math.isnan(record.score):
            return "score"
        return "objective" if math.isnan(record.validation) else "validation"


@dataclass
class ProgressLines(Parameters):
    """Print a line on standard error every `every` rounds.  So does `verbose=2`, after every round."""

    every: int = 1

    def __post_init__(self) -> None:
        if not is_whole(self.every, 1):
            raise ValueError(f"`every` must be a positive integer, got {self.every!r}")

    def __call__(self, record: Record) -> None:
        """Print a line."""
        if record.round % self.every == 0:
            values = "  ".join(_values(record, 6))
            print(f"round {record.round:5d}  {values}  {record.seconds:.2f} s", file=sys.stderr)


@dataclass
class ProgressBar(Parameters):
    """Show a bar on the terminal: rounds, objective, validation, and the time left.  So does `verbose=1`.

    Where standard error is no terminal, or rich is not installed, about twenty lines are printed instead.

    Parameters
    ----------
    n_rounds : int or None, default=None
        The largest number of rounds; the time left is that to this round.  None: not known.
    max_weak_learners : int or None, default=None
        The largest number of weak learners, where there is a limit.
    n_members : int, default=1
        The number of models that are trained side by side.

    """

    n_rounds: int | None = None
    max_weak_learners: int | None = None
    n_members: int = 1
    _shown: deque[tuple[float, float]] = field(default_factory=deque, init=False, repr=False)
    _pending: Record | None = field(default=None, init=False, repr=False)
    _drawn_at: float = field(default=-math.inf, init=False, repr=False)
    _is_drawn: bool = field(default=False, init=False, repr=False)
    _last_round: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("n_rounds", "max_weak_learners", "n_members"):
            value = getattr(self, name)
            if not (is_whole(value, 1) or (value is None and name != "n_members")):
                raise ValueError(f"`{name}` must be a positive integer, got {value!r}")

    def __call__(self, record: Record) -> None:
        """Draw the bar, if the last picture is old enough, or print a line."""
        if not _has_terminal():
            ProgressLines(max((self.n_rounds or 0) // 20, 1))(record)
            return
        if record.round <= self._last_round:  # another run
            self._shown.clear()
            self._is_drawn, self._drawn_at = False, -math.inf
        self._last_round, self._pending = record.round, record
        if record.round == self.n_rounds or time.monotonic() >= self._drawn_at + PAUSE:
            self.finish()

    def finish(self) -> None:
        """Draw the last round, if it has not been drawn."""
        record, self._pending = self._pending, None
        if record is None:
            return
        self._drawn_at = time.monotonic()
        self._shown.append((self._done(record), record.seconds))
        if len(self._shown) > RECENT:
            self._shown.popleft()
        self._draw(record)

    def _draw(self, record: Record) -> None:
        """Draw on a line of its own, over the last picture: whatever is printed next begins a new line."""
        from rich.console import Console
        from rich.control import Control
        from rich.segment import ControlType
        from rich.text import Text

        console = Console(stderr=True, highlight=False)
        rounds = f"{record.round}/{self.n_rounds}" if self.n_rounds else f"round {record.round}"
        words = [rounds, *_values(record, 4), self._time(record)]
        if self.n_members > 1:
            words.append(f"{self.n_members} folds")
        line = Text()
        if self._has_end:
            filled = round(BAR * self._done(record))
            line.append("━" * filled, "cyan").append("━" * (BAR - filled), "bright_black").append(" ")
        line.append("  ".join(words))
        line.truncate(console.width - 1, overflow="ellipsis")
        if self._is_drawn:
            console.control(Control((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)))
        console.print(line, soft_wrap=True)
        self._is_drawn = True

    @property
    def _has_end(self) -> bool:
        return self.n_rounds is not None or self.max_weak_learners is not None

    def _done(self, record: Record) -> float:
        """Return the share of the rounds, or of the weak learners, that are done."""
        rounds = 0.0 if self.n_rounds is None else record.round / self.n_rounds
        learners = 0.0 if self.max_weak_learners is None else record.weak_learners / self.max_weak_learners
        return min(max(rounds, learners), 1.0)

    def _time(self, record: Record) -> str:
        """Return the time left at most, as fast as the last rounds were; the time taken where all is done."""
        (first, began), (last, now) = self._shown[0], self._shown[-1]
        if not self._has_end or last >= 1.0 or last <= first:
            return _clock(record.seconds)
        return f"{_clock((1.0 - last) * (now - began) / (last - first))} left"


def _has_terminal() -> bool:
    """Return whether a bar can be drawn; the bars of several processes would overwrite one another."""
    is_alone = multiprocessing.parent_process() is None
    return is_alone and sys.stderr is not None and sys.stderr.isatty() and find_spec("rich") is not None


def _values(record: Record, digits: int) -> list[str]:
    values = ((name, getattr(record, name)) for name in ("objective", "validation", "score"))
    return [f"{name} {value:.{digits}g}" for name, value in values if not math.isnan(value)]


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
