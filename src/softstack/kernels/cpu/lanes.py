"""Small matrix products over LANES sequences at once, for compiled code: `affine`, and back, `add_back` and
`add_outer`.

A row of numbers, one for each of LANES sequences, is one vector; a sequence's own number is a lane of it. The
loops are written in LLVM's terms, with vectors and their running sums in registers: LLVM cannot find these by
itself, as it cannot know that the arrays do not overlap. Nothing here checks a bound.
"""

from collections.abc import Callable
from functools import partial
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
            step = ir.Constant(count.type, size)
            stop = self.builder.sub(count, self.builder.srem(count, step))
            with cgutils.for_range_slice(self.builder, start, stop, step, intp=count.type) as (index, _):
                yield index, size
            start = stop

    def numbered(self, start: Any, size: int) -> list[Any]:
        """start, start + 1, ..."""
        return [self.plus(start, ir.Constant(start.type, step)) for step in range(size)]

    def rooms(self, size: int) -> list[Any]:
        """For running sums, which LLVM keeps in registers."""
        return [cgutils.alloca_once(self.builder, self.vector) for _ in range(size)]

    def add_products(
        self, totals: list[Any], weights: Any, lines: list[Any], across: Any, x: Any, count: Any
    ) -> None:
        """totals[i] += sum over j of weights[lines[i] + j across] x[j], for rows x[j]."""
        with cgutils.for_range(self.builder, count, intp=count.type) as loop:
            numbers = self.load(x, self.times(loop.index, LANES))
            for total, line in zip(totals, lines, strict=True):
                at = self.plus(line, self.times(loop.index, across))
                weight = self.spread(self.builder.load(self.builder.gep(weights, [at])))
                self.builder.store(self.multiply_add(weight, numbers, self.builder.load(total)), total)


class Argument:
    """An array that an intrinsic is given: a pointer to its numbers, and its sizes."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.data, self.shape = array.data, cgutils.unpack_tuple(builder, array.shape, kind.ndim)


def called(write: Callable[..., None], context: Any, builder: Any, real: Any, *arguments: Any) -> Any:
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
    return context.get_dummy_value()


@intrinsic
def affine(typingctx: Any, y: Any, b: Any, W: Any, x: Any, r: Any, Wh: Any, h: Any) -> Any:
    """y[i] = b[i] + sum over j of W[i, j] [x; r][j] + sum over j of Wh[i, j] h[j], for rows of LANES numbers:
    y (n, LANES), b (n,), W (n, k + m), x (k, LANES), r (m, LANES), Wh (n, H), h (H, LANES). Without x and r,
    W is not looked at."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        y, b, W, x, r, Wh, h = map(partial(Argument, context, builder), signature.args, args)
        sizes = (y.shape[0], x.shape[0], r.shape[0], h.shape[0], W.shape[1], Wh.shape[1])
        pointers = (array.data for array in (y, b, W, x, r, Wh, h))
        return called(write_affine, context, builder, signature.args[0].dtype, *pointers, *sizes)

    return types.void(y, b, W, x, r, Wh, h), codegen


def write_affine(
    emit: Emit, y: Any, b: Any, W: Any, x: Any, r: Any, Wh: Any, h: Any,
    n: Any, k: Any, m: Any, H: Any, across: Any, across_h: Any,
) -> None:  # fmt: skip
    builder, one = emit.builder, ir.Constant(n.type, 1)
    for start, size in emit.tiles(n, TALL):
        totals, numbers = emit.rooms(size), emit.numbered(start, size)
        for total, i in zip(totals, numbers, strict=True):
            builder.store(emit.spread(builder.load(builder.gep(b, [i]))), total)
        lines = [emit.times(i, across) for i in numbers]
        emit.add_products(totals, W, lines, one, x, k)
        emit.add_products(totals, W, [emit.plus(line, k) for line in lines], one, r, m)
        emit.add_products(totals, Wh, [emit.times(i, across_h) for i in numbers], one, h, H)
        for total, i in zip(totals, numbers, strict=True):
            emit.store(builder.load(total), y, emit.times(i, LANES))


@intrinsic
def add_back(typingctx: Any, y: Any, W: Any, first: Any, x: Any) -> Any:
    """y[i] += sum over j of W[j, first + i] x[j]: from the gradient x (n, LANES) of what the map W made, that
    of what it saw, y (_, LANES), which are its columns from `first` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        y, W, x = (Argument(context, builder, kinds[k], args[k]) for k in (0, 1, 3))
        sizes = (y.shape[0], x.shape[0], W.shape[1])
        return called(
            write_add_back, context, builder, kinds[0].dtype, y.data, W.data, args[2], x.data, *sizes
        )

    return types.void(y, W, types.intp, x), codegen


def write_add_back(emit: Emit, y: Any, W: Any, first: Any, x: Any, n: Any, count: Any, across: Any) -> None:
    for start, size in emit.tiles(n, TALL):
        totals, numbers = emit.rooms(size), emit.numbered(start, size)
        for total, i in zip(totals, numbers, strict=True):
            emit.builder.store(emit.load(y, emit.times(i, LANES)), total)
        emit.add_products(totals, W, [emit.plus(first, i) for i in numbers], across, x, count)
        for total, i in zip(totals, numbers, strict=True):
            emit.store(emit.builder.load(total), y, emit.times(i, LANES))


@intrinsic
def add_outer(typingctx: Any, W: Any, first: Any, y: Any, x: Any) -> Any:
    """W[i, first + j] += sum over steps, blocks and lanes of y[t, block, i] x[t, block, j]: the gradient of a
    map W from those of what it made, y (T, blocks, as many rows or more, LANES), and what it saw, x (T or
    more, blocks, _, LANES)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        W, y, x = (Argument(context, builder, kinds[k], args[k]) for k in (0, 2, 3))
        steps = builder.mul(y.shape[0], y.shape[1])
        sizes = (W.shape[0], W.shape[1], y.shape[2], x.shape[2], steps)
        return called(
            write_add_outer, context, builder, kinds[0].dtype, W.data, args[1], y.data, x.data, *sizes
        )

    return types.void(W, types.intp, y, x), codegen


def write_add_outer(
    emit: Emit,
    W: Any,
    first: Any,
    y: Any,
    x: Any,
    rows: Any,
    across: Any,
    y_rows: Any,
    columns: Any,
    steps: Any,
) -> None:
    builder = emit.builder
    for i, height in emit.tiles(rows, SQUARE):
        for j, width in emit.tiles(columns, SQUARE):
            totals = [emit.rooms(width) for _ in range(height)]
            for total in (total for line in totals for total in line):
                builder.store(ir.Constant(emit.vector, [0.0] * LANES), total)
            with cgutils.for_range(builder, steps, intp=steps.type) as loop:
                ys, xs = (
                    [
                        emit.load(array, emit.times(emit.plus(emit.times(loop.index, count), row), LANES))
                        for row in emit.numbered(start, size)
                    ]
                    for array, count, start, size in ((y, y_rows, i, height), (x, columns, j, width))
                )
                for a in range(height):
                    for b in range(width):
                        new = emit.multiply_add(ys[a], xs[b], builder.load(totals[a][b]))
                        builder.store(new, totals[a][b])
            for a, line in enumerate(emit.numbered(i, height)):
                for b, column in enumerate(emit.numbered(j, width)):
                    place = builder.gep(W, [emit.plus(first, emit.times(line, across), column)])
                    total = builder.fadd(builder.load(place), emit.sum(builder.load(totals[a][b])))
                    builder.store(total, place)
