"""Kernels compiled and loaded in less time than Numba takes.

This reaches into Numba, and was tried with 0.61, 0.64 and 0.68 (`compiling.HAS_SHORTCUTS`).  Without it
kernels give the same results.
"""

from __future__ import annotations

from typing import Any

from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys

#: Numba's passes for what kernels do without: closures, expressions of whole arrays, loops over mixed tuples.
UNUSED = {
    *("inline_closure_likes", "make_function_op_code_to_jit_function", "inline_inlinables"),
    *("inline_overloads", "nopython_rewrites", "literal_unroll", "LiteralPropagation", "find_literally"),
    *("with_lifting", "dump_parfor_diagnostics"),
}


class KernelsOnDisk(FunctionCache):
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


class KernelCompiler(Compiler):
    """Numba's compiler, less the passes for what kernels do without."""

    def define_pipelines(self) -> list[Any]:
        pipelines: list[Any] = super().define_pipelines()  # type: ignore[no-untyped-call]
        for pipeline in pipelines:
            pipeline.passes = [one for one in pipeline.passes if one[0].name() not in UNUSED]
            pipeline.finalize()
        return pipelines


class PartCompiler(KernelCompiler):
    """The same, for code that only kernels call."""

    def __init__(self, typing: Any, target: Any, library: Any, *args: Any) -> None:
        library = _PartOfKernels(target.codegen(), "part")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, library, *args)  # type: ignore[no-untyped-call]
