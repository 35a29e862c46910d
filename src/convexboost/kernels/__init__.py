"""Compiled kernels: module-level functions of arrays and scalars, cached on disk, never compiled at import.

Every kernel is serial and releases the GIL; `parallel` runs coarse work on several threads.  Sums over rows
are integer (fixed point), so the same bits come out for any number of threads or partition of the rows.
"""
