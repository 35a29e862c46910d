"""A few numbers at a time: what the compiler does not find by itself, since arrays might overlap."""

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

#: Numbers of 32 bits that are added at once.
WORDS = 8


def _add_words(typing: Any, out: Any, i: Any, values: Any, j: Any) -> Any:
    """out.flat[i : i + WORDS] += values.flat[j : j + WORDS], for contiguous arrays of int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.VectorType(ir.IntType(32), WORDS).as_pointer()

        def place(array: int, index: int) -> Any:
            data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
            return builder.bitcast(builder.gep(data, [arguments[index]]), word)

        to = place(0, 1)
        a, b = builder.load(to, align=4), builder.load(place(2, 3), align=4)
        builder.store(builder.add(a, b), to, align=4)
        return context.get_dummy_value()

    return types.void(out, i, values, j), generate


def _add_plainly(out: Any, i: int, values: Any, j: int) -> None:
    i, j = int(i), int(j)
    out.reshape(-1)[i : i + WORDS] += values.reshape(-1)[j : j + WORDS]


add_words: Any = _add_plainly if getattr(config, "DISABLE_JIT", 0) else intrinsic(_add_words)
