"""Compiled kernels: module-level functions of arrays, scalars and named tuples of these.

Every kernel is serial and releases the GIL; `parallel` runs coarse work on several threads.  Sums over rows
are integer (fixed point), so the result has the same bits for any number of threads or partition of the rows.

Kernels (`compiling.kernel`) are compiled at the first call, never at import, and cached on disk.  Numba
compiles a kernel again when its own file has changed, but not when a file that it imports has.  So a kernel
and the functions and tuples that it uses lie in one file, except for `hashing`, `vectors` and the constants
of `core`: delete the `__pycache__` folders after a change to those.

Two tricks recur.  The number of outputs `K` is passed as the literal 1 where it is 1, so that the compiler
removes the loop over outputs.  Indices are unsigned, so that no code is generated for negative ones.
"""
