"""Small matrix products over LANES sequences at once, for compiled code: `add_map` and `add_outer`.

A row of numbers, one for each of LANES sequences, is one vector; a sequence's own number is a lane of it. The
loops are written in LLVM's terms, with vectors and their running sums in registers: LLVM cannot find these by
itself, as it cannot know that the arrays do not overlap. Nothing here checks a bound.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from softstack.kernels.cpu.layout import LANES

TALL = (8, 4, 2, 1)  # rows whose sums are kept in registers together
SQUARE = (4, 2, 1)  # the same for rows by columns


class Emit:
    """LLVM instructions on vectors of LANES numbers, float32 or float64."""

    def __init__(self, context: Any, builder: Any, real: Any) -> None:
        self.context, self.builder = context, builder
        self.vector = ir.VectorType(context.get_value_type(real), LANES)
        self.align = real.bitwidth // 8

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

    def tiles(self, count: Any, sizes: tuple[int, ...]) -> Any:
        """(start, size) of tiles that cover range(count), in a loop for each size, the largest first."""
        start = ir.Constant(count.type, 0)
        for size in sizes:
            each = ir.Constant(count.type, size)
            stop = self.builder.sub(count, self.builder.srem(count, each))
            with cgutils.for_range_slice(self.builder, start, stop, each, intp=count.type) as (index, _):
                yield index, size
            start = stop

    def places(self, start: Any, size: int, first: Any, apart: Any) -> list[Any]:
        """Where rows start, start + 1, ... begin, of rows that begin at `first` and lie `apart`."""
        lines = [self.plus(start, ir.Constant(start.type, a)) for a in range(size)]
        return [self.plus(first, self.times(line, apart)) for line in lines]

    def add_products(self, totals: list[Any], weights: Any, lines: list[Any], across: Any, x: Any, ix: Any,
                     columns: Any) -> None:  # fmt: skip
        """totals[i] += sum over j of weights[lines[i] + j across] x[j], for rows x[j]."""
        with cgutils.for_range(self.builder, columns, intp=columns.type) as loop:
            numbers = self.load(x, self.plus(ix, self.times(loop.index, LANES)))
            for total, line in zip(totals, lines, strict=True):
                at = self.plus(line, self.times(loop.index, across))
                weight = self.spread(self.builder.load(self.builder.gep(weights, [at])))
                self.builder.store(self.multiply_add(weight, numbers, self.builder.load(total)), total)


def called(write: Callable[..., None], context: Any, builder: Any, real: Any, arguments: list[Any]) -> None:
    """Call what `write` writes, a function of its own in each module: written out at every call, these loops
    would be most of what LLVM compiles."""
    name = f"{write.__name__}.{real}"
    function = builder.module.globals.get(name)
    if function is None:
        kinds = [argument.type for argument in arguments]
        function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), kinds), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        function.attributes.add("nounwind")
        inside = ir.IRBuilder(function.append_basic_block())
        write(Emit(context, inside, real), *function.args)
        inside.ret_void()
    builder.call(function, arguments)


def pointers(context: Any, builder: Any, kinds: Any, args: Any) -> list[Any]:
    """The arguments of an intrinsic, with a pointer to its numbers for every array."""
    return [
        context.make_array(kind)(context, builder, arg).data if isinstance(kind, types.Array) else arg
        for kind, arg in zip(kinds, args, strict=True)
    ]


def write_add_map(
    emit: Emit, y: Any, iy: Any, W: Any, iw: Any, down: Any, across: Any, rows: Any, columns: Any, x: Any,
    ix: Any,
) -> None:  # fmt: skip
    for i, size in emit.tiles(rows, TALL):
        places, lines = emit.places(i, size, iy, LANES), emit.places(i, size, iw, down)
        totals = [cgutils.alloca_once(emit.builder, emit.vector) for _ in range(size)]
        for total, place in zip(totals, places, strict=True):
            emit.builder.store(emit.load(y, place), total)
        emit.add_products(totals, W, lines, across, x, ix, columns)
        for total, place in zip(totals, places, strict=True):
            emit.store(emit.builder.load(total), y, place)


@intrinsic
def add_map(
    typingctx: Any, y: Any, iy: Any, W: Any, iw: Any, down: Any, across: Any, rows: Any, columns: Any, x: Any,
    ix: Any,
) -> Any:  # fmt: skip
    """y[i] += sum over j of W[i, j] x[j], for rows of LANES numbers: y[i] begins at y[iy + i LANES], x[j] at
    x[ix + j LANES], and W[i, j] is W[iw + i down + j across]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        called(write_add_map, context, builder, y.dtype, pointers(context, builder, signature.args, args))
        return context.get_dummy_value()

    whole = types.intp
    return types.void(y, whole, W, whole, whole, whole, whole, whole, x, whole), codegen


def write_affine(
    emit: Emit, y: Any, rows: Any, b: Any, W: Any, x: Any, ix: Any, k: Any, r: Any, ir_: Any, m: Any,
    Wh: Any, h: Any, ih: Any, H: Any,
) -> None:  # fmt: skip
    builder = emit.builder
    zero, one = ir.Constant(rows.type, 0), ir.Constant(rows.type, 1)
    for i, size in emit.tiles(rows, TALL):
        totals = [cgutils.alloca_once(builder, emit.vector) for _ in range(size)]
        for total, place in zip(totals, emit.places(i, size, zero, one), strict=True):
            builder.store(emit.spread(builder.load(builder.gep(b, [place]))), total)
        emit.add_products(totals, W, emit.places(i, size, zero, emit.plus(k, m)), one, x, ix, k)
        emit.add_products(totals, W, emit.places(i, size, k, emit.plus(k, m)), one, r, ir_, m)
        emit.add_products(totals, Wh, emit.places(i, size, zero, H), one, h, ih, H)
        for total, place in zip(totals, emit.places(i, size, zero, LANES), strict=True):
            emit.store(builder.load(total), y, place)


@intrinsic
def affine(
    typingctx: Any, y: Any, rows: Any, b: Any, W: Any, x: Any, ix: Any, k: Any, r: Any, ir_: Any, m: Any,
    Wh: Any, h: Any, ih: Any, H: Any,
) -> Any:  # fmt: skip
    """y[i] = b[i] + sum over j of W[i, j] [x; r][j] + sum over j of Wh[i, j] h[j], for rows of LANES numbers.
    Of x, r and h there are k, m and H, and they begin at ix, ir_ and ih."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        called(write_affine, context, builder, y.dtype, pointers(context, builder, signature.args, args))
        return context.get_dummy_value()

    whole = types.intp
    arguments = (y, whole, b, W, x, whole, whole, r, whole, whole, Wh, h, whole, whole)
    return types.void(*arguments), codegen


def write_add_outer(
    emit: Emit, W: Any, iw: Any, down: Any, rows: Any, columns: Any, y: Any, iy: Any, y_step: Any, x: Any,
    ix: Any, x_step: Any, steps: Any,
) -> None:  # fmt: skip
    builder = emit.builder
    for i, height in emit.tiles(rows, SQUARE):
        for j, width in emit.tiles(columns, SQUARE):
            ones = [ir.Constant(i.type, a) for a in range(max(SQUARE))]
            totals = [
                [cgutils.alloca_once(builder, emit.vector) for _ in range(width)] for _ in range(height)
            ]
            for total in (one for line in totals for one in line):
                builder.store(ir.Constant(emit.vector, [0.0] * LANES), total)
            with cgutils.for_range(builder, steps, intp=steps.type) as loop:
                from_y = emit.plus(iy, emit.times(loop.index, y_step))
                from_x = emit.plus(ix, emit.times(loop.index, x_step))
                xs = [
                    emit.load(x, emit.plus(from_x, emit.times(emit.plus(j, ones[b]), LANES)))
                    for b in range(width)
                ]
                for a in range(height):
                    one = emit.load(y, emit.plus(from_y, emit.times(emit.plus(i, ones[a]), LANES)))
                    for b in range(width):
                        new = emit.multiply_add(one, xs[b], builder.load(totals[a][b]))
                        builder.store(new, totals[a][b])
            for a in range(height):
                line = emit.plus(iw, emit.times(emit.plus(i, ones[a]), down), j)
                for b in range(width):
                    place = builder.gep(W, [emit.plus(line, ones[b])])
                    total = builder.fadd(builder.load(place), emit.sum(builder.load(totals[a][b])))
                    builder.store(total, place)


@intrinsic
def add_outer(
    typingctx: Any, W: Any, iw: Any, down: Any, rows: Any, columns: Any,
    y: Any, iy: Any, y_step: Any, x: Any, ix: Any, x_step: Any, steps: Any,
) -> Any:  # fmt: skip
    """W[i, j] += sum over steps t and lanes of y[t, i] x[t, j]: y[t, i] begins at y[iy + t y_step + i LANES],
    x[t, j] at x[ix + t x_step + j LANES], and W[i, j] is W[iw + i down + j]."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        called(write_add_outer, context, builder, W.dtype, pointers(context, builder, signature.args, args))
        return context.get_dummy_value()

    whole = types.intp
    arguments = (W, whole, whole, whole, whole, y, whole, whole, x, whole, whole, whole)
    return types.void(*arguments), codegen
