"""The results of fits, kept in a folder by what was asked: a program can be stopped and taken up again.

A spec is a dictionary with all that the result of a fit depends on, beside the version of the library.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import common
from accuracy_models import Library
from common import note

#: What in the package no fit depends on.
APART = ("cli", "displays", "experiments", "inspection", "planning", "datasets")

Spec = dict[str, Any]


class Runs:
    """The results in the folder `arguments.runs`; those that are missing are made by `run`.

    With `arguments.jobs` above 0 a fit has a process of its own: `program --child spec` prints its result.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        run: Callable[[Spec], dict[str, Any]],
        program: Path,
        libraries: Mapping[str, Library],
    ) -> None:
        self.folder, self.arguments = arguments.runs, arguments
        self.run, self.program, self.libraries = run, program, libraries
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock, self.seconds, self.planned = threading.Lock(), {}, {}  # type: ignore[var-annotated]
        self.began = time.monotonic()

    def path(self, spec: Spec) -> Path:
        """Return the file of a result: its name says all that the result depends on."""
        library = self.libraries[spec["library"]]
        asked, of = library.objectives[spec["objective"]], version(library.package)
        text = json.dumps({**spec, "asked": asked, "version": of}, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def find(self, spec: Spec) -> dict[str, Any] | None:
        """Return a result if it is there."""
        path = self.path(spec)
        return json.loads(path.read_text()) if path.exists() else None

    def make(self, spec: Spec, apart: bool | None = None, timeout: float | None = None) -> dict[str, Any]:
        """Return a result, made if it is not there: `apart` in a process of its own (if there are jobs)."""
        known = self.find(spec)
        if known is None or ("failed" in known and self.arguments.retry):
            apart = self.arguments.jobs > 0 if apart is None else apart
            known = self._process(spec, timeout or self.arguments.timeout) if apart else self.run(spec)
            part = self.path(spec).with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
            part.write_text(json.dumps({"spec": spec, **known}))
            part.replace(self.path(spec))
            self._tell(spec, known)
        return known

    def _process(self, spec: Spec, timeout: float) -> dict[str, Any]:
        one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "NUMBA", "OPENBLAS", "MKL")}
        command = [sys.executable, str(self.program), "--child", json.dumps(spec)]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **one},
                capture_output=True,
                text=True,
                check=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"not done in {timeout:g} s", "seconds": timeout}
        except subprocess.CalledProcessError as error:
            last = error.stderr.strip().splitlines()[-1:] or [f"exit status {error.returncode}"]
            return {"failed": last[0], "seconds": 0.0}
        return json.loads(done.stdout.strip().splitlines()[-1])

    def _tell(self, spec: Spec, found: dict[str, Any]) -> None:
        """Say what was done, and how long the rest will take if fits of a library are like those so far."""
        with self.lock:
            name = spec["library"]
            self.seconds.setdefault(name, []).append(found["seconds"])
            self.planned[name] = max(self.planned.get(name, 1) - 1, 0)
            known = [s for seconds in self.seconds.values() for s in seconds]
            left = sum(
                count * float(np.mean(self.seconds.get(key, known))) for key, count in self.planned.items()
            )
        fold = "" if spec.get("fold") is None else f" fold {spec['fold'] + 1}"
        what = found.get("failed") or f"{found['seconds']:.1f} s"
        left /= 60 * max(self.arguments.jobs, 1)
        note(
            f"{(time.monotonic() - self.began) / 60:.1f} min: {name}, {spec['set']}{fold}, "
            f"{spec['objective']}{', trial' * spec['trial']}: {what} (about {left:.0f} min left)"
        )


@functools.cache
def version(package: str) -> str:
    """Return the version of a library; of ours, a checksum of the source."""
    if package != "convexboost":
        return common._version(package)
    found = importlib.util.find_spec("convexboost")
    assert found is not None
    assert found.origin is not None
    folder, total = Path(found.origin).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(folder).parts[0].removesuffix(".py") not in APART:
            total.update(path.read_bytes())
    return total.hexdigest()[:12]
