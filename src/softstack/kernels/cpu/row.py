"""A row, one number for each of LANES sequences, as a type of compiled code: a vector register.

Arithmetic is on all of it at once. `if_less` is the only choice there is: every lane computes both.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

from softstack.kernels.cpu.lanes import Emit
from softstack.kernels.cpu.layout import LANES


class Row(types.Type):
    def __init__(self, real: Any) -> None:
        self.real = real
        super().__init__(name=f"Row({real})")


@register_model(Row)
class RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, row: Any) -> None:
        super().__init__(manager, row, ir.VectorType(manager.lookup(row.real).get_value_type(), LANES))


@intrinsic
def load(typingctx: Any, x: Any, index: Any) -> Any:
    """Of the rows that an array (..., LANES) is made of, the one with this number; no bound is checked."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, x.dtype)
        return emit.load(emit.data(x, args[0]), emit.times(args[1], LANES))

    return Row(x.dtype)(x, types.intp), codegen


@intrinsic
def store(typingctx: Any, x: Any, index: Any, row: Any) -> Any:
    """Write a row to that place."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, x.dtype)
        emit.store(args[2], emit.data(x, args[0]), emit.times(args[1], LANES))
        return context.get_dummy_value()

    return types.void(x, types.intp, row), codegen


@intrinsic
def full(typingctx: Any, x: Any, number: Any) -> Any:
    """A row of the same number everywhere, of the type of x, an array or another row."""
    real = x.real if isinstance(x, Row) else x.dtype

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return Emit(context, builder, real).spread(args[1])

    return Row(real)(x, real), codegen


@intrinsic
def total(typingctx: Any, row: Any) -> Any:
    """The sum of a row's numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return Emit(context, builder, row.real).sum(args[0])

    return row.real(row), codegen


@intrinsic
def if_less(typingctx: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """`then` where a < b, and where a or b is not a number; `otherwise` elsewhere."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_unordered("<", args[0], args[1]), args[2], args[3])

    return a(a, a, a, a), codegen


@intrinsic
def times_plus(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return Emit(context, builder, a.real).multiply_add(*args)

    return a(a, a, a), codegen


def _arithmetic(which: Any, instruction: str, count: int) -> None:
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == count and isinstance(args[0], Row) and args[0] == args[-1]:
                return signature(args[0], *args)
            return None

    infer_global(which)(Template)

    @lower_builtin(which, *(Row,) * count)
    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args)


_arithmetic(operator.add, "fadd", 2)
_arithmetic(operator.sub, "fsub", 2)
_arithmetic(operator.mul, "fmul", 2)
_arithmetic(operator.truediv, "fdiv", 2)
_arithmetic(operator.neg, "fneg", 1)
