"""Small matrix products over LANES sequences at once, for compiled code: `add_map` and `add_outer`.

A row of numbers, one for each of LANES sequences, is one vector; a sequence's own number is a lane of it. The
loops are written in LLVM's terms, with vectors and their running sums in registers: LLVM cannot find these by
itself, as it cannot know that the arrays do not overlap. Nothing here checks a bound.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
TILE = 4  # rows, or rows by columns, whose sums are kept in registers together


class _Emit:
    """LLVM instructions on vectors of LANES numbers of a one-dimensional array's type."""

    def __init__(self, context: Any, builder: Any, array_type: Any) -> None:
        self.context, self.builder = context, builder
        self.real = context.get_value_type(array_type.dtype)
        self.vector = ir.VectorType(self.real, LANES)
        self.align = array_type.dtype.bitwidth // 8

    def data(self, array_type: Any, array: Any) -> Any:
        return self.context.make_array(array_type)(self.context, self.builder, array).data

    def at(self, data: Any, index: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(data, [index]), self.vector.as_pointer())

    def load(self, data: Any, index: Any) -> Any:
        numbers = self.builder.load(self.at(data, index))
        numbers.align = self.align
        return numbers

    def store(self, numbers: Any, data: Any, index: Any) -> None:
        self.builder.store(numbers, self.at(data, index)).align = self.align

    def spread(self, number: Any) -> Any:
        undefined = ir.Constant(self.vector, ir.Undefined)
        single = self.builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        return self.builder.shuffle_vector(single, undefined, zeros)

    def multiply_add(self, a: Any, b: Any, total: Any) -> Any:
        """a b + total, rounded once."""
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.v{LANES}f{8 * self.align}"
        fma = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(fma, [a, b, total])

    def sum(self, numbers: Any) -> Any:
        """All lanes, added in a fixed order: halves, quarters, and so on."""
        width = LANES
        while width > 1:
            width //= 2
            first, second = (
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(start, start + width)))
                for start in (0, width)
            )
            undefined = ir.Constant(numbers.type, ir.Undefined)
            low = self.builder.shuffle_vector(numbers, undefined, first)
            numbers = self.builder.fadd(low, self.builder.shuffle_vector(numbers, undefined, second))
        return self.builder.extract_element(numbers, ir.Constant(ir.IntType(32), 0))

    def plus(self, *terms: Any) -> Any:
        total = terms[0]
        for term in terms[1:]:
            total = self.builder.add(total, term)
        return total

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.mul(a, b if isinstance(b, ir.Value) else ir.Constant(a.type, b))

    def tiles(self, count: Any) -> Any:
        """(start, size) of tiles that cover range(count): loops over whole ones, then over single ones."""
        whole = self.builder.mul(
            self.builder.sdiv(count, ir.Constant(count.type, TILE)), ir.Constant(count.type, TILE)
        )
        for size, start, stop in ((TILE, ir.Constant(count.type, 0), whole), (1, whole, count)):
            with cgutils.for_range_slice(
                self.builder, start, stop, ir.Constant(count.type, size), intp=count.type
            ) as (index, _):
                yield index, size


@intrinsic
def add_map(
    typingctx: Any,
    y: Any,
    iy: Any,
    W: Any,
    iw: Any,
    down: Any,
    across: Any,
    rows: Any,
    columns: Any,
    x: Any,
    ix: Any,
) -> Any:
    """y[i] += sum over j of W[i, j] x[j], for rows of LANES numbers: y[i] begins at y[iy + i LANES], x[j] at
    x[ix + j LANES], and W[i, j] is W[iw + i down + j across]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, y)
        to, weights, source = (
            emit.data(kind, arg) for kind, arg in ((y, args[0]), (W, args[2]), (x, args[8]))
        )
        _, iy, _, iw, down, across, rows, columns, _, ix = args
        for i, size in emit.tiles(rows):
            places = [
                emit.plus(iy, emit.times(emit.plus(i, ir.Constant(i.type, a)), LANES)) for a in range(size)
            ]
            lines = [
                emit.plus(iw, emit.times(emit.plus(i, ir.Constant(i.type, a)), down)) for a in range(size)
            ]
            totals = [cgutils.alloca_once(builder, emit.vector) for _ in range(size)]
            for total, place in zip(totals, places, strict=True):
                builder.store(emit.load(to, place), total)
            with cgutils.for_range(builder, columns, intp=columns.type) as loop:
                numbers = emit.load(source, emit.plus(ix, emit.times(loop.index, LANES)))
                for total, line in zip(totals, lines, strict=True):
                    weight = builder.load(
                        builder.gep(weights, [emit.plus(line, emit.times(loop.index, across))])
                    )
                    builder.store(emit.multiply_add(emit.spread(weight), numbers, builder.load(total)), total)
            for total, place in zip(totals, places, strict=True):
                emit.store(builder.load(total), to, place)
        return context.get_dummy_value()

    whole = types.intp
    return types.void(y, whole, W, whole, whole, whole, whole, whole, x, whole), codegen


@intrinsic
def add_outer(
    typingctx: Any, W: Any, iw: Any, down: Any, rows: Any, columns: Any,
    y: Any, iy: Any, y_step: Any, x: Any, ix: Any, x_step: Any, steps: Any,
) -> Any:  # fmt: skip
    """W[i, j] += sum over steps t and lanes of y[t, i] x[t, j]: y[t, i] begins at y[iy + t y_step + i LANES],
    x[t, j] at x[ix + t x_step + j LANES], and W[i, j] is W[iw + i down + j]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, W)
        to, left, right = (emit.data(kind, arg) for kind, arg in ((W, args[0]), (y, args[5]), (x, args[8])))
        _, iw, down, rows, columns, _, iy, y_step, _, ix, x_step, steps = args
        for i, height in emit.tiles(rows):
            for j, width in emit.tiles(columns):
                ones = [ir.Constant(i.type, a) for a in range(TILE)]
                totals = [
                    [cgutils.alloca_once(builder, emit.vector) for _ in range(width)] for _ in range(height)
                ]
                for total in (one for line in totals for one in line):
                    builder.store(ir.Constant(emit.vector, [0.0] * LANES), total)
                with cgutils.for_range(builder, steps, intp=steps.type) as loop:
                    from_y = emit.plus(iy, emit.times(loop.index, y_step))
                    from_x = emit.plus(ix, emit.times(loop.index, x_step))
                    xs = [
                        emit.load(right, emit.plus(from_x, emit.times(emit.plus(j, ones[b]), LANES)))
                        for b in range(width)
                    ]
                    for a in range(height):
                        one = emit.load(left, emit.plus(from_y, emit.times(emit.plus(i, ones[a]), LANES)))
                        for b in range(width):
                            new = emit.multiply_add(one, xs[b], builder.load(totals[a][b]))
                            builder.store(new, totals[a][b])
                for a in range(height):
                    line = emit.plus(iw, emit.times(emit.plus(i, ones[a]), down), j)
                    for b in range(width):
                        place = builder.gep(to, [emit.plus(line, ones[b])])
                        total = builder.fadd(builder.load(place), emit.sum(builder.load(totals[a][b])))
                        builder.store(total, place)
        return context.get_dummy_value()

    whole = types.intp
    arguments = (W, whole, whole, whole, whole, y, whole, whole, x, whole, whole, whole)
    return types.void(*arguments), codegen
