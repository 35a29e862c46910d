"""Runs that go on: after the last fit (`warm_start`), or from a file in another process (`checkpoint`).

A run is settings, a fingerprint of the rows, the seed and a `Journal`: what the weak learners found.  Scores
and Δ come back by going through the rounds again, so nothing in it depends on how the rows are spread.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import filelock
import numpy as np

import convexboost
from convexboost import persistence
from convexboost.boosting.member import Found, Problem
from convexboost.boosting.training import Journal, Record, Training
from convexboost.core.atomic import temporary_name
from convexboost.core.hypotheses import Direction
from convexboost.core.model import Kinds, terms_from_plain, terms_to_plain
from convexboost.core.plain import Plain
from convexboost.estimators._input import Data, Rows
from convexboost.kernels.hashing import signature

#: What the file of a checkpoint calls itself.
FORMAT = "convexboost checkpoint"
#: Parameters that may change when a run goes on.
FREE = (
    *("n_rounds", "n_iter_no_change", "callbacks", "verbose", "n_jobs"),
    *("warm_start", "checkpoint", "checkpoint_every", "random_state"),
)

Settings = Mapping[str, Any]
ROWS = "the data"


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
            return f"{name} changed" if name == ROWS else f"{name} was {old} and now is {new}"
    return ""


def settings_of(parameters: Mapping[str, Any], data: Data) -> dict[str, Any]:
    """Return what must not change when a run goes on; of the rows, numbers that tell them from others."""
    found = {f"`{name}`": described(value) for name, value in parameters.items() if name not in FREE}
    rows = [_fingerprint(data.whole)]
    if data.held_out is not None:
        rows.append(_fingerprint(data.held_out))
    return {
        **found,
        "the seed of `random_state`": data.seed,
        ROWS: rows,
        "the version of convexboost": convexboost.__version__,
    }


def described(value: Any) -> str:
    """Return a parameter in words that are the same in every process."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"<{value.dtype} array {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()[:16]}>"
    if isinstance(value, np.ndarray):
        return described(value.tolist())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{described(k)}: {described(v)}' for k, v in value.items())}}}"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return repr(int(value))
    if isinstance(value, np.generic):
        return repr(value.item())
    if value is None or isinstance(value, str | int | float | bool):
        return repr(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    own = vars(value) if hasattr(value, "__dict__") else {}
    inside = (f"{k}={described(v)}" for k, v in own.items() if not k.startswith("_"))
    return f"{type(value).__name__}({', '.join(inside)})"


def _fingerprint(rows: Rows) -> str:
    """Return a number for rows with all that belongs to them; their order does not matter."""
    parts = [np.reshape(rows.y, (len(rows.y), -1)).astype(float)]
    parts += [] if rows.weight is None else [rows.weight[:, None]]
    parts += [] if rows.offset is None else [rows.offset]
    parts += [] if rows.groups is None else [rows.groups.numbers[:, None].astype(float)]
    return f"{len(rows.y)} rows {signature(rows.X, np.hstack(parts)):016x}"


class Checkpoint:
    """A file that holds a run; at most one fit uses it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content: Plain | None = None
        for left_over in path.parent.glob(temporary_name(path.name, "*")):  # of processes that were killed
            left_over.unlink(missing_ok=True)
        if path.exists():
            description, arrays = persistence.read(path, FORMAT)
            self._content = Plain(description, arrays)

    @classmethod
    @contextmanager
    def opened(cls, path: Any) -> Iterator[Self | None]:
        """Open the file of `checkpoint`, if there is one, and keep others away from it."""
        if path is None:
            yield None
            return
        path = Path(os.fspath(path))
        if not path.parent.is_dir():
            raise FileNotFoundError(f"`checkpoint`={str(path)!r} lies in a folder that does not exist")
        lock = filelock.FileLock(f"{path}.lock", timeout=0)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise RuntimeError(f"`checkpoint`={str(path)!r} is in use by another fit") from None
        except OSError as error:
            raise OSError(f"`checkpoint`={str(path)!r} cannot be written: {error}") from error
        try:
            yield cls(path)
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
        self.every, self._saved = every, training.n_known_rounds
        if self._saved == 0:
            self._write()  # what cannot be written is said before there is work to lose

    def __call__(self, record: Record) -> None:
        """Save the run every few rounds."""
        if record.round - self._saved >= self.every:
            self.save()

    def save(self) -> None:
        """Save all finished rounds; a disk that is full must not end training."""
        if self.training.n_rounds <= self._saved:
            return
        try:
            self._write()
        except OSError as error:
            warnings.warn(f"`checkpoint` was not written: {error}", UserWarning, stacklevel=2)

    def _write(self) -> None:
        journal = self.training.journal
        self.file.write(Run(self.settings, self.seed, journal))
        self._saved = journal.n_rounds


# --- a journal as plain data -------------------------------------------------------------------------------


def _member_to_plain(found: Sequence[Found]) -> Plain:
    directions = [h for entry in found for h in entry.directions]
    return Plain.of(
        {"random": found[-1].random if found else None},
        {
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
    rounds = [Found(tuple(directions[part])) for part in plain.slices("ends", n_rounds, len(directions))]
    if rounds:
        rounds[-1] = rounds[-1]._replace(random=plain.value("random", dict))
    return rounds
