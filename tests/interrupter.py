"""Ctrl-C at any line of the library."""

from __future__ import annotations

import sys
from pathlib import Path

import convexboost

ROOT = str(Path(convexboost.__file__).parent)
#: Functions that repair what an interruption has left behind: only a second one could hit them.
REPAIRS = {"_drop_unfinished", "unchanged_on_error"}


class Interrupter:
    """Raises at the k-th line of the library that is run, in this thread."""

    def __init__(self, at, error=KeyboardInterrupt):
        self.at, self.error, self.count = at, error, 0

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.call)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def call(self, frame, event, argument):
        return self.line if frame.f_code.co_filename.startswith(ROOT) else None

    def line(self, frame, event, argument):
        if event == "line" and frame.f_code.co_name not in REPAIRS:
            self.count += 1
            if self.count == self.at:
                raise self.error
        return self.line
