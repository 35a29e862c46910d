"""The bits of floats, in compiled code.

`array.view` would do, but Numba needs seconds to compile it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, types
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
