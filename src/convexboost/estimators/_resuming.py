"""Runs that go on: after the last fit (`warm_start`), or from a file in another process (`checkpoint`).

A run is settings, a fingerprint of the rows, the seed and a `Journal`: what the weak learners found.  Scores
and Δ come back by going through the rounds again, so nothing in it depends on how the rows are spread.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Self

import filelock
import numpy as np
from sklearn.utils import check_random_state

import convexboost
from convexboost import persistence
from convexboost.boosting.member import Found, Problem
from convexboost.boosting.training import Journal, Record, Training
from convexboost.core.atomic import temporary_name
from convexboost.core.communicator import ALONE, Communicator, distinct
from convexboost.core.hypotheses import Direction
from convexboost.core.model import Kinds, terms_from_plain, terms_to_plain
from convexboost.core.plain import Plain
from convexboost.core.space import as_columns
from convexboost.estimators._frames import Columns, naming
from convexboost.estimators._input import Data, Rows

#: How long rank 0 of several processes waits for the file of a checkpoint.
LOCK_SECONDS = 30.0
#: What the file of a checkpoint calls itself.
FORMAT = "convexboost checkpoint"
#: Parameters that may change when a run goes on.
FREE = (
    *("n_rounds", "n_iter_no_change", "callbacks", "verbose", "n_jobs"),
    *("warm_start", "checkpoint", "checkpoint_every", "random_state"),
)

Settings = Mapping[str, Any]
ROWS, COLUMNS = "the data", "the columns"


class Run(NamedTuple):
    """A run that can go on."""

    settings: Settings  #: what must stay as it is, in words
    seed: int
    journal: Journal

    def check(self, settings: Settings) -> None:
        """Refuse to go on with other settings or other rows."""
        changed = _change(self.settings, settings)
        if changed:
            raise ValueError(
                f"`warm_start` goes on with the run of the last fit, but {changed}: fit a clone instead"
            )


def _change(before: Settings, now: Settings) -> str:
    """Say what is not as it was; "" where nothing changed."""
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old != new:
            return f"{name} changed" if name in (ROWS, COLUMNS) else f"{name} was {old} and now is {new}"
    return ""


def settings_of(parameters: Mapping[str, Any], data: Data, columns: Columns, seed: int) -> dict[str, Any]:
    """Return what must not change when a run goes on; of the data, numbers that tell them from others."""
    found = {f"`{name}`": described(value) for name, value in parameters.items() if name not in FREE}
    parts = [data.whole, *([] if data.held_out is None else [data.held_out])]
    return {
        **found,
        "the seed of `random_state`": seed,
        COLUMNS: _digest(described([columns.names, columns.kinds, columns.categorical, columns.encoders])),
        ROWS: [f"{data.n_classes} classes", *map(_fingerprint, parts)],
        "the version of convexboost": convexboost.__version__,
    }


def described(value: Any, depth: int = 6) -> str:
    """Return a parameter in words that are the same in every process; of code, what it does."""

    def inside(part: Any) -> str:
        return described(part, depth - 1)

    if value is None or isinstance(value, str | bool | int):
        return repr(value)
    if isinstance(value, float | np.floating):
        return repr(int(value) if float(value).is_integer() else float(value))
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"<{value.dtype} array {value.shape} {_digest(value.tobytes())}>"
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, list | tuple | set | np.ndarray):
        return f"[{', '.join(map(inside, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{inside(k)}: {inside(v)}' for k, v in value.items())}}}"
    if isinstance(value, functools.partial):
        return f"partial({inside(value.func)}, {inside(value.args)}, {inside(value.keywords)})"
    if isinstance(value, types.FunctionType):
        code = value.__code__
        constants = [one for one in code.co_consts if not isinstance(one, types.CodeType)]
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        text = inside([constants, cells, value.__defaults__, code.co_names])
        return f"{value.__qualname__} {_digest(code.co_code + text.encode())}"
    if hasattr(value, "__qualname__"):  # a class, or a function of another library
        return str(value.__qualname__)
    own = vars(value) if hasattr(value, "__dict__") else {}
    fields = (f"{name}={inside(part)}" for name, part in own.items())
    return f"{type(value).__qualname__}({', '.join(fields)})"


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


def _fingerprint(rows: Rows) -> str:
    """Return a text for rows with all that belongs to them; their order does not matter."""
    parts = {"targets": as_columns(rows.y).astype(float)}
    if rows.weight is not None:
        parts["weights"] = rows.weight[:, None]
    if rows.offset is not None:
        parts["offsets"] = rows.offset
    if rows.groups is not None:
        parts["groups"] = distinct(rows.groups.labels, rows.communicator)[1][:, None].astype(float)
    widths = ", ".join(f"{part.shape[1]} {name}" for name, part in parts.items())
    content = rows.signature(np.hstack(list(parts.values())))
    n_rows = int(rows.communicator.add(np.array([rows.X.shape[0]]))[0])
    return f"{n_rows} rows of {rows.X.shape[1]} columns, {widths}: {content:016x}"


class GoingOn:
    """What a fit goes on with, and where it is kept: the estimator's last run, a file, or nothing."""

    def __init__(self, before: Run | None, file: Checkpoint | None, keeps: bool) -> None:
        self.before, self.file, self.is_asked = before, file, keeps or file is not None
        self.settings: Settings = {}
        self._seed = 0

    def seed(self, random_state: Any, communicator: Communicator = ALONE) -> Any:
        """Return where random numbers start: as in the run to go on with, unless a number is given."""
        if not self.is_asked and communicator.size == 1:
            return random_state
        if isinstance(random_state, Integral):
            self._seed = int(random_state)
        elif self.before is not None:
            self._seed = self.before.seed
        elif self.file is not None and self.file.seed is not None:
            self._seed = self.file.seed
        else:
            with naming("random_state"):
                self._seed = int(check_random_state(random_state).randint(2**31))
        self._seed = communicator.broadcast(self._seed)
        return self._seed

    def check(self, parameters: Mapping[str, Any], data: Data, columns: Columns, learner: Kinds) -> None:
        """Refuse to go on with other settings or other data."""
        if not self.is_asked:
            return
        self.settings = settings_of(parameters, data, columns, self._seed)
        if self.before is not None:
            self.before.check(self.settings)
        if self.file is not None:
            self.file.check(self.settings, learner)

    def journal(self, learner: Kinds, problems: Sequence[Problem]) -> Journal | None:
        """Return the longest run that is known."""
        found = [] if self.before is None else [self.before.journal]
        if self.file is not None and (written := self.file.journal(learner, problems)) is not None:
            found.append(written)
        return max(found, key=lambda journal: journal.n_rounds, default=None)

    def run(self, training: Training, every: int) -> None:
        """Train, and keep the run in the file, whatever happens."""
        if self.file is None:
            training.run()
            return
        saver = Saver(self.file, training, self.settings, self._seed, every)
        training.callbacks = [saver, *training.callbacks]  # a round that others hear of has been saved
        try:
            training.run()
        finally:
            saver.save()

    def kept(self, training: Training) -> Run:
        """Return the run, for the next fit."""
        return Run(self.settings, self._seed, training.journal)


class Checkpoint:
    """A file that holds a run; at most one fit uses it at a time.

    Where rows are spread over processes, rank 0 reads and writes it, and tells the others what it holds.
    """

    def __init__(self, path: Path, communicator: Communicator = ALONE) -> None:
        self.path, self.communicator = path, communicator
        self._content = communicator.broadcast(self._read() if communicator.rank == 0 else None)

    def _read(self) -> Plain | None:
        path = self.path
        pattern = re.escape(temporary_name(path.name, "TOKEN")).replace("TOKEN", "[0-9a-f]{16}")
        for left_over in path.parent.iterdir():  # by processes that were killed
            if re.fullmatch(pattern, left_over.name):
                left_over.unlink(missing_ok=True)
        return Plain(*persistence.read(path, FORMAT)) if path.exists() else None

    @classmethod
    @contextmanager
    def opened(cls, path: Any, communicator: Communicator = ALONE) -> Iterator[Self | None]:
        """Open the file of `checkpoint`, if there is one, and keep others away from it."""
        if path is None:
            yield None
            return
        path = Path(os.fspath(path))
        if communicator.rank > 0:
            yield cls(path, communicator)
            return
        if not path.parent.is_dir():
            raise FileNotFoundError(f"`checkpoint`={str(path)!r} lies in a folder that does not exist")
        # On a cluster, a worker that is being killed may still hold it.
        lock = filelock.FileLock(f"{path}.lock", timeout=0 if communicator is ALONE else LOCK_SECONDS)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise BlockingIOError(f"`checkpoint`={str(path)!r} is in use by another fit") from None
        except OSError as error:
            raise OSError(f"`checkpoint`={str(path)!r} cannot be written: {error}") from error
        try:
            yield cls(path, communicator)
        finally:
            lock.release()

    @property
    def seed(self) -> int | None:
        """Return the seed of the run, None where there is none yet."""
        if self._content is None:
            return None
        with persistence.naming_the_file(self.path):
            return int(self._content.value("seed", int))

    def check(self, settings: Settings, learner: Kinds) -> None:
        """Refuse the file of another run, and a learner whose hypotheses cannot be written."""
        if not learner.hypothesis_types:
            raise ValueError(f"`checkpoint` cannot hold the weak learners that {learner!r} makes")
        if self._content is None:
            return
        with persistence.naming_the_file(self.path):
            before = self._content.value("settings", dict)
        changed = _change(before, settings)
        if changed:
            raise ValueError(
                f"`checkpoint`={str(self.path)!r} holds another run: {changed}.  Name another file, or "
                "remove this one"
            )

    def journal(self, learner: Kinds, problems: Sequence[Problem]) -> Journal | None:
        """Return what the run has found so far, None where there is none yet."""
        if self._content is None:
            return None
        with persistence.naming_the_file(self.path):
            return _read_journal(self._content, learner, problems)

    def write(self, run: Run) -> None:
        """Replace the file."""
        if self.communicator.rank > 0:
            return
        parts = {f"member_{i}": _member_to_plain(found) for i, found in enumerate(run.journal.members)}
        plain = Plain.of(
            {"settings": dict(run.settings), "seed": run.seed, "n_members": len(parts)},
            {"seconds": np.array(run.journal.seconds, float)},
            **parts,
        )
        persistence.write(self.path, plain.description, plain.arrays, FORMAT)


class Saver:
    """A callback that keeps the run of a training in a file."""

    def __init__(
        self, file: Checkpoint, training: Training, settings: Settings, seed: int, every: int
    ) -> None:
        self.file, self.training, self.settings, self.seed = file, training, settings, seed
        self.every = every
        self._tried = training.n_known_rounds  #: the round of the last write, done or failed
        if self._tried == 0:
            self._write()  # what cannot be written is said before there is work to lose

    def __call__(self, record: Record) -> None:
        """Save the run every few rounds."""
        if record.round - self._tried >= self.every:
            self.save()

    def save(self) -> None:
        """Save all finished rounds; a disk that is full must not end training."""
        if self.training.n_rounds <= self._tried:
            return
        self._tried = self.training.n_rounds
        try:
            self._write()
        except OSError as error:
            warnings.warn(f"`checkpoint` was not written: {error}", UserWarning, stacklevel=2)

    def _write(self) -> None:
        self.file.write(Run(self.settings, self.seed, self.training.journal))


# --- a journal as plain data -------------------------------------------------------------------------------


def _member_to_plain(found: Sequence[Found]) -> Plain:
    directions = [h for entry in found for h in entry.directions]
    return Plain.of(
        {},
        {
            "random": np.array([_words(entry.random) for entry in found], np.uint64).reshape(-1, WORDS),
            "ends": np.cumsum([len(entry.directions) for entry in found], dtype=np.int64),
            "term_ends": np.cumsum([len(h.terms) for h in directions], dtype=np.int64),
            "lengths": np.array([(h.norm, h.edge, h.intrinsic_edge) for h in directions]).reshape(-1, 3),
        },
        terms=terms_to_plain([term for h in directions for term in h.terms]),
    )


def _read_journal(plain: Plain, learner: Kinds, problems: Sequence[Problem]) -> Journal:
    seconds = plain.array("seconds", float, None)
    if plain.value("n_members", int) != len(problems):
        raise ValueError(f"`n_members` must be {len(problems)}, got {plain.value('n_members', int)}")
    members = [
        _member_from_plain(plain.part(f"member_{i}"), len(seconds), learner, problem)
        for i, problem in enumerate(problems)
    ]
    return Journal(members, seconds.tolist())


def _member_from_plain(plain: Plain, n_rounds: int, learner: Kinds, problem: Problem) -> list[Found]:
    n_outputs = problem.objective.n_outputs
    terms = terms_from_plain(plain.part("terms"), learner, problem.hypotheses.mapper, n_outputs)
    lengths = plain.array("lengths", float, None, 3, finite=False)
    parts = plain.slices("term_ends", len(lengths), len(terms))
    directions = [
        Direction(tuple(terms[part]), *map(float, row)) for part, row in zip(parts, lengths, strict=True)
    ]
    states = plain.array("random", np.uint64, n_rounds, WORDS).tolist()
    rounds = plain.slices("ends", n_rounds, len(directions))
    return [Found(tuple(directions[part]), _state(words)) for part, words in zip(rounds, states, strict=True)]


#: Numbers of 64 bits in the state of NumPy's default random numbers, PCG64.
WORDS = 6


def _words(state: Any) -> list[int]:
    """Return the state of PCG64 as numbers of 64 bits."""
    inner = state["state"]
    halves = [half for value in (inner["state"], inner["inc"]) for half in divmod(value, 2**64)]
    return [*halves, state["has_uint32"], state["uinteger"]]


def _state(words: Sequence[int]) -> dict[str, Any]:
    """Return the state that `_words` wrote."""
    high, low, more, less, has, rest = words
    inner = {"state": high * 2**64 + low, "inc": more * 2**64 + less}
    return {"bit_generator": "PCG64", "state": inner, "has_uint32": has, "uinteger": rest}
