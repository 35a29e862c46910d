"""How kernels are compiled: at the first call, without the GIL, and kept on disk."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from numba import njit
from numba.core.caching import IndexDataCacheFile


class _Signatures(IndexDataCacheFile):
    """The signatures that are on disk.

    Numba reads them before it checks their date, and stops with an error where an older version of a file had
    a named tuple that is gone.  Here such signatures are out of date, like any others.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function; further options are those of `numba.njit`."""
    if function is None:
        return partial(kernel, **options)
    compiled = njit(cache=True, nogil=True, **options)(function)
    with suppress(AttributeError):  # NUMBA_DISABLE_JIT=1: nothing is compiled
        compiled._cache._cache_file.__class__ = _Signatures
    return compiled
