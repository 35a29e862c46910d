"""How kernels are compiled: at the first call, without the GIL, and kept on disk.

Numba's own time grows with the code that it reads, not with the loops: about 0.3 ms for a line of LLVM code.
What makes much code: tuples of many arrays that are handed on to other functions, slices, fields of arrays of
records, `array.view`, the assignment of one slice to another (both bring text formatting for their errors),
`np.empty`, `np.arange`, a helper with `inline="always"` that is called twice.  A function is optimised again
with each of its callers, so deep calls cost.  A constant as an argument compiles a function for itself.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from numba import njit, version_info
from numba.core.caching import IndexDataCacheFile
from numba.core.event import Event, Listener, register

#: What a user reads who waits for a first fit.
NOTICE = "convexboost: compiling kernels for the first fit on this machine (about 10 s, once)"

#: No kernel is called from C, and none divides by zero: without the code for both they compile faster.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

#: Newer versions of Numba, which were not tried, compile and load kernels in their own way: more slowly.
HAS_SHORTCUTS = version_info.short < (0, 69)


class _Signatures(IndexDataCacheFile):
    """The signatures that are on disk.

    Numba reads them before it checks their date, and stops with an error where an older version of a file had
    a named tuple that is gone.  Here such signatures are out of date, like any others.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError):
            return {}


@cache
def _stamp() -> tuple[float, int]:
    """Return the date and size of all files that kernels import: Numba looks at their own file only."""
    package = Path(__file__).parents[1]
    found = [path.stat() for folder in ("core", "kernels") for path in (package / folder).rglob("*.py")]
    return max((one.st_mtime for one in found), default=0.0), sum(one.st_size for one in found)


def kernel(function: Any = None, allocates: bool = True, is_part: bool = False, **options: Any) -> Any:
    """Compile a function; further options are those of `numba.njit`.

    One that makes no arrays need not count references to them: without the code for it, it compiles faster.
    """
    if function is None:
        return partial(kernel, allocates=allocates, is_part=is_part, **options)
    if HAS_SHORTCUTS:
        from convexboost.core import shortcuts

        options["pipeline_class"] = shortcuts.PartCompiler if is_part else shortcuts.KernelCompiler
    compiled = njit(**(OPTIONS | {"_nrt": allocates} | options))(function)
    with suppress(AttributeError):  # NUMBA_DISABLE_JIT=1: nothing is compiled
        file = compiled._cache._cache_file
        file.__class__, file._source_stamp = _Signatures, (file._source_stamp, _stamp())
        if HAS_SHORTCUTS:
            compiled._cache.__class__ = shortcuts.KernelsOnDisk
    return compiled


#: For a function that only kernels call: it is compiled with them, and can neither be called from Python nor
#: be on disk by itself.
part = partial(kernel, allocates=False, is_part=True, cache=False, no_cpython_wrapper=True)


class _Notice(Listener):
    """Says on a terminal, once in a process, that kernels of this package are being compiled.

    Kernels that are on disk are loaded without such an event.
    """

    was_given = False

    def on_start(self, event: Event) -> None:
        # The listener hears of other people's functions too, which may have no module.
        module = getattr(event.data["dispatcher"].py_func, "__module__", None) or ""
        ours = module.startswith("convexboost.")
        if ours and not self.was_given and sys.stderr is not None and sys.stderr.isatty():
            self.was_given = True
            print(NOTICE, file=sys.stderr, flush=True)

    def on_end(self, event: Event) -> None:
        pass


register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
