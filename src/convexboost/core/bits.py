"""In compiled code: the bits of floats, and arrays on the stack.

`array.view` and `np.empty` would do, but Numba needs long to compile them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic


def _reinterpreter(given: Any, wanted: Any, plain: Any) -> Any:
    """Return a compiled function that reads the 64 bits of one type as the other."""

    def reinterpret(typing: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

        return wanted(given), generate

    return plain if getattr(config, "DISABLE_JIT", 0) else intrinsic(reinterpret)


bits_of = _reinterpreter(types.float64, types.int64, lambda number: np.float64(number).view(np.int64))
number_of = _reinterpreter(types.int64, types.float64, lambda bits: np.int64(bits).view(np.float64))


def _local(dtype: Any, *sizes: Any) -> Any:
    """Return the type of an array on the stack and its generator; the sizes are constants."""
    array, shape = types.Array(dtype.dtype, len(sizes), "C"), [size.literal_value for size in sizes]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import populate_array  # what is compiled already does not need it

        word, made = context.get_data_type(array.dtype), context.make_array(array)(context, builder)
        itemsize = context.get_abi_sizeof(word)
        strides = [itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape))]
        data = cgutils.alloca_once(builder, word, math.prod(shape))  # type: ignore[no-untyped-call]
        populate_array(  # type: ignore[no-untyped-call]
            made,
            data=builder.bitcast(data, made.data.type),
            shape=[context.get_constant(types.intp, size) for size in shape],
            strides=[context.get_constant(types.intp, stride) for stride in strides],
            itemsize=context.get_constant(types.intp, itemsize),
            meminfo=None,
        )
        return made._getvalue()

    return array, generate


def _local_array(typing: Any, size: Any, dtype: Any) -> Any:
    """Return an array on the stack, not initialised, which must not be returned."""
    array, generate = _local(dtype, size)
    return array(size, dtype), generate


def _local_table(typing: Any, n_rows: Any, n_columns: Any, dtype: Any) -> Any:
    """Return the same with two dimensions."""
    array, generate = _local(dtype, n_rows, n_columns)
    return array(n_rows, n_columns, dtype), generate


def _plain_table(n_rows: int, n_columns: int, dtype: Any) -> Any:
    return np.empty((n_rows, n_columns), dtype)


if getattr(config, "DISABLE_JIT", 0):
    local_array, local_table = np.empty, _plain_table
else:
    local_array, local_table = (
        intrinsic(prefer_literal=True)(function) for function in (_local_array, _local_table)
    )
