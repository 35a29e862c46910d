"""Compiled kernels: module-level functions of arrays, scalars and named tuples of these.

Every kernel is serial and releases the GIL; `parallel` runs coarse work on several threads.  Sums over rows
are integer (fixed point), so the result has the same bits for any number of threads or partition of the rows.

Kernels (`core.compiling.kernel`) are compiled at the first call, never at import, and cached on disk.  They
are compiled again when a file of `core` or `kernels` has changed.

Three tricks recur.  With one output, arrays are vectors: Numba removes the branch for matrices before it
compiles it, and there is no loop over outputs.  Likewise an argument that is None removes the branch that
would use it.  Indices are unsigned, so that no code is generated for negative ones.
"""
