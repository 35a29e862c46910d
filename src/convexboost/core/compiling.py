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

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.event import Event, Listener, register
from numba.core.runtime.nrt import rtsys

#: What a user reads who waits for a first fit.
NOTICE = "convexboost: compiling kernels for the first fit on this machine (about 10 s, once)"

#: No kernel is called from C, and none divides by zero: without the code for both they compile faster.
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}

#: Numba's passes for what kernels do without: closures, expressions of whole arrays, loops over mixed tuples.
UNUSED = {
    *("inline_closure_likes", "make_function_op_code_to_jit_function", "inline_inlinables"),
    *("inline_overloads", "nopython_rewrites", "literal_unroll", "LiteralPropagation", "find_literally"),
    *("with_lifting", "dump_parfor_diagnostics"),
}


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


class _Kernels(FunctionCache):
    """The kernels that are on disk.

    Numba prepares its compiler before it loads one, with all functions that it knows: a third of the seconds
    of a first fit, and 30 MiB.  What is compiled already needs at most its runtime, where arrays are made.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with self._guard_against_spurious_io_errors():
            key = self._index_key(sig, target_context.codegen())  # type: ignore[no-untyped-call]
            found = self._cache_file.load(key) if self._enabled else None  # type: ignore[no-untyped-call]
            if found is None:
                return None
            (_, _, (machine_code, _)), *_ = found
            if b"NRT_" in machine_code:  # a symbol of the runtime
                rtsys.initialize(target_context)
            return self._impl.rebuild(target_context, found)


@cache
def _stamp() -> tuple[float, int]:
    """Return the date and size of all files that kernels import: Numba looks at their own file only."""
    package = Path(__file__).parents[1]
    found = [path.stat() for folder in ("core", "kernels") for path in (package / folder).rglob("*.py")]
    return max((one.st_mtime for one in found), default=0.0), sum(one.st_size for one in found)


def kernel(function: Any = None, allocates: bool = True, **options: Any) -> Any:
    """Compile a function; further options are those of `numba.njit`.

    One that makes no arrays need not count references to them: without the code for it, it compiles faster.
    """
    if function is None:
        return partial(kernel, allocates=allocates, **options)
    compiled = njit(**(OPTIONS | {"_nrt": allocates, "pipeline_class": _Compiler} | options))(function)
    with suppress(AttributeError):  # NUMBA_DISABLE_JIT=1: nothing is compiled
        file = compiled._cache._cache_file
        file.__class__, file._source_stamp = _Signatures, (file._source_stamp, _stamp())
        compiled._cache.__class__ = _Kernels
    return compiled


class _PartOfKernels(JITCodeLibrary):
    """Code that is linked into that of its callers, and becomes machine code there only.

    Numba would optimise a function and translate it by itself first, with all that it calls, and so once for
    each level of calls.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0  # as for any function without a wrapper for Python

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: what Numba calls so lies in machine code."""


class _Compiler(Compiler):
    """Numba's compiler, less the passes for what kernels do without."""

    def define_pipelines(self) -> list[Any]:
        pipelines: list[Any] = super().define_pipelines()  # type: ignore[no-untyped-call]
        for pipeline in pipelines:
            pipeline.passes = [one for one in pipeline.passes if one[0].name() not in UNUSED]
            pipeline.finalize()
        return pipelines


class _PartCompiler(_Compiler):
    def __init__(self, typing: Any, target: Any, library: Any, *args: Any) -> None:
        library = _PartOfKernels(target.codegen(), "part")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, library, *args)  # type: ignore[no-untyped-call]


#: For a function that only kernels call: it is compiled with them, and can neither be called from Python nor
#: be on disk by itself.
part = partial(kernel, allocates=False, cache=False, no_cpython_wrapper=True, pipeline_class=_PartCompiler)


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
