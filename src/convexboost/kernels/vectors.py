"""Vector instructions that the compiler does not use by itself, because arrays might overlap."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

#: Numbers of 32 bits that are added at once, and where a row has at most four of them.
WORDS, FEW_WORDS = 8, 4


def _compiled(generator: Any, plain: Any) -> Any:
    """Return the intrinsic, or plain Python where nothing is compiled."""
    return plain if getattr(config, "DISABLE_JIT", 0) else intrinsic(generator)


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

    return _compiled(add, add_plainly)


def _place(context: Any, builder: Any, array: Any, value: Any, pair: Any) -> Any:
    """Return the address of two numbers of 32 bits, as one of 64."""
    data = context.make_array(array)(context, builder, value).data
    return builder.gep(builder.bitcast(data, ir.IntType(64).as_pointer()), [pair])


def _read(typing: Any, values: Any, i: Any) -> Any:
    """Return values.flat[2 i : 2 i + 2] as one number of 64 bits: contiguous int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], *arguments), align=4)

    return types.int64(values, i), generate


def _add(typing: Any, out: Any, i: Any, pair: Any) -> Any:
    """out.flat[2 i : 2 i + 2] += pair, as one number of 64 bits: contiguous int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = _place(context, builder, signature.args[0], *arguments[:2])
        builder.store(builder.add(builder.load(to, align=4), arguments[2]), to, align=4)
        return context.get_dummy_value()

    return types.void(out, i, types.int64), generate


def _read_plainly(values: Any, i: int) -> Any:
    return values.reshape(-1).view(np.int64)[int(i)]


def _add_plainly(out: Any, i: int, pair: Any) -> None:
    out.reshape(-1).view(np.int64)[int(i)] += pair


def _lowest(typing: Any, word: Any) -> Any:
    """Return the number of the lowest bit that is set; the word must not be 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _lowest_plainly(word: Any) -> int:
    return (int(word) & -int(word)).bit_length() - 1


add_words, add_few_words = _adder(WORDS), _adder(FEW_WORDS)
read_pair, add_pair = _compiled(_read, _read_plainly), _compiled(_add, _add_plainly)
lowest_bit = _compiled(_lowest, _lowest_plainly)
