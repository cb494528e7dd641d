"""exp of a number or of a row of them (`cpu/row.py`), in LLVM's terms, and sigmoid and tanh of a row.

The math library's are calls, one number at a time: here they would take more than everything else together.
"""

from math import factorial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.polynomial import Chebyshev, Polynomial

from softstack.kernels.cpu.compiling import inlined
from softstack.kernels.cpu.layout import LANES
from softstack.kernels.cpu.row import Row, full

LOG2E = 1.4426950408889634
TAYLOR = [1 / factorial(n) for n in range(14)]
# as good for float32 as eight terms of that: a polynomial through Chebyshev's points
FITTED = Chebyshev.interpolate(np.exp, 5, [-0.5 / LOG2E, 0.5 / LOG2E]).convert(kind=Polynomial).coef.tolist()

# ln 2 in two parts, the largest |x|, the bits of a number and of its fraction, and a polynomial
FORMATS = {
    types.float32: ((0.693359375, -2.12194440e-4), 87.0, 32, 23, FITTED),
    types.float64: ((0.6931471803691238, 1.9082149292705877e-10), 708.0, 64, 52, TAYLOR),
}


@intrinsic
def exp(typingctx: Any, x: Any) -> Any:
    """e to the x = 2^n e^f with n whole and |f| <= ln 2 / 2; within two units in the last place."""
    row = isinstance(x, Row)
    (high, low), most, size, fraction, coefficients = FORMATS[x.real if row else x]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (power,) = args
        kind = power.type
        whole = ir.VectorType(ir.IntType(size), LANES) if row else ir.IntType(size)
        name = f"llvm.fma.{f'v{LANES}' if row else ''}f{size}"
        fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)

        def number(value: float, kind: Any = kind) -> Any:
            return ir.Constant(kind, [value] * LANES if row else value)

        def times_plus(a: Any, b: Any, c: Any) -> Any:
            return builder.call(fma, [a, b, c])

        for compare, bound in (("<", number(-most)), (">", number(most))):  # not a number stays what it is
            power = builder.select(builder.fcmp_ordered(compare, power, bound), bound, power)
        rounder = number(1.5 * 2.0**fraction)  # has no bits after the point: what is added to it is rounded
        rounded = times_plus(power, number(LOG2E), rounder)
        n = builder.fsub(rounded, rounder)
        f = times_plus(n, number(-low), times_plus(n, number(-high), power))
        total = number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = times_plus(total, f, number(coefficient))
        # n is in the last bits of `rounded`; added to the exponent's bits it multiplies by 2^n
        exponent = builder.shl(builder.bitcast(rounded, whole), number(fraction, whole))
        return builder.bitcast(builder.add(builder.bitcast(total, whole), exponent), kind)

    return x(x), codegen


@inlined
def sigmoid(x):
    """The sigmoid of a row."""
    one = full(x, 1.0)
    return one / (one + exp(-x))


@inlined
def tanh(x):
    """The tanh of a row."""
    one, two = full(x, 1.0), full(x, 2.0)
    return two / (one + exp(-(x + x))) - one
