"""exp, sigmoid and tanh in a form that LLVM vectorises.

A range reduction, a polynomial, and the exponent's bits. The math library's are calls, one number at a time:
here they would take more than everything else together. exp is within two units in the last place.
"""

from math import factorial
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

LOG2E = 1.4426950408889634
TAYLOR = tuple(1 / factorial(n) for n in range(14))


@intrinsic
def _power32(typingctx: Any, n: Any) -> Any:
    """2 to the n, for a whole number n of a float32's exponents."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.shl(
            builder.add(args[0], ir.Constant(ir.IntType(32), 127)), ir.Constant(ir.IntType(32), 23)
        )
        return builder.bitcast(bits, ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def _power64(typingctx: Any, n: Any) -> Any:
    """2 to the n, for a whole number n of a float64's exponents."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.shl(
            builder.add(args[0], ir.Constant(ir.IntType(64), 1023)), ir.Constant(ir.IntType(64), 52)
        )
        return builder.bitcast(bits, ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once. Said outright: left to the compiler, the same source can round in other ways."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return a(a, a, a), codegen


def exp(x: float) -> float:
    raise NotImplementedError("compiled code only")


@overload(exp, jit_options={"error_model": "numpy"})
def _exp(x: Any) -> Any:
    """e to the x = 2^n e^f with n whole and |f| <= ln 2 / 2; ln 2 is subtracted in two parts."""
    import numpy as np

    real: Any
    whole: Any
    if x is types.float32:
        real, whole, power, most, terms = np.float32, np.int32, _power32, 87.0, 8
        parts = (0.693359375, -2.12194440e-4)
    elif x is types.float64:
        real, whole, power, most, terms = np.float64, np.int64, _power64, 708.0, len(TAYLOR)
        parts = (0.6931471803691238, 1.9082149292705877e-10)
    else:
        return None
    most, log2e, high, low = (real(number) for number in (most, LOG2E, *parts))
    coefficients = tuple(real(number) for number in TAYLOR[:terms])
    last = len(coefficients) - 1
    half = real(0.5)

    def implementation(x: Any) -> Any:
        x = min(max(x, -most), most)
        n = np.floor(fma(x, log2e, half))
        f = fma(-n, low, fma(-n, high, x))
        total = coefficients[last]
        for k in range(last - 1, -1, -1):
            total = fma(total, f, coefficients[k])
        return total * power(whole(n))

    return implementation


@njit(nogil=True, error_model="numpy")
def sigmoid(x):
    one = type(x)(1)
    return one / (one + exp(-x))


@njit(nogil=True, error_model="numpy")
def tanh(x):
    one = type(x)(1)
    return (one + one) / (one + exp(-(x + x))) - one
