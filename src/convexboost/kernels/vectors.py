"""Vector instructions that the compiler does not use by itself, because arrays might overlap."""

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

#: Numbers of 32 bits that are added at once, and where a row has at most four of them.
WORDS, FEW_WORDS = 8, 4


def _adder(words: int) -> Any:
    """Return a function for out.flat[i : i + words] += values.flat[j : j + words], contiguous int32."""

    def add(typing: Any, out: Any, i: Any, values: Any, j: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.VectorType(ir.IntType(32), words).as_pointer()

            def place(array: int, index: int) -> Any:
                data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
                return builder.bitcast(builder.gep(data, [arguments[index]]), word)

            to = place(0, 1)
            a, b = builder.load(to, align=4), builder.load(place(2, 3), align=4)
            builder.store(builder.add(a, b), to, align=4)
            return context.get_dummy_value()

        return types.void(out, i, values, j), generate

    def add_plainly(out: Any, i: int, values: Any, j: int) -> None:
        i, j = int(i), int(j)
        out.reshape(-1)[i : i + words] += values.reshape(-1)[j : j + words]

    return add_plainly if getattr(config, "DISABLE_JIT", 0) else intrinsic(add)


add_words, add_few_words = _adder(WORDS), _adder(FEW_WORDS)


def _lowest(typing: Any, word: Any) -> Any:
    """Return the number of the lowest bit that is set; the word must not be 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _lowest_plainly(word: Any) -> int:
    return (int(word) & -int(word)).bit_length() - 1


lowest_bit = _lowest_plainly if getattr(config, "DISABLE_JIT", 0) else intrinsic(_lowest)
