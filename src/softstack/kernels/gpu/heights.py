"""Where a stack's items lie on a line of heights, and a queue's on a line of places: docs/parallel.md.

Index i or t runs over N = n + T: the n items that are there before the first step, then the steps. Geometry
is float64, on a grid so fine that it does not show and so coarse that sums of strengths are exact, up to a
height of 2^15 for float32 and 2^9 for float64: what is a tie in the equations is one here, in whatever order
a scan adds.

One program here is one sequence, and it goes block by block. What goes tile by tile, for all times at once,
is in `tiles.py`, `stack.py` and `queue.py`.

What all of them share is a sequence's `geometry` (`layout.geometry_size`): four lines with a number for each
index, then three rows with a number for each tile. A stack's are L, H, `top` and `sill`, and `floors` and
`reaches`; a queue's where items begin and end, and its front, and `starts`, `fronts` and `stops`.
"""

import triton
import triton.language as tl

BIG: tl.constexpr = tl.constexpr(1e300)  # higher than everything: where a sequence is over
NOTHING: tl.constexpr = tl.constexpr(-1e300)


@triton.jit
def line(geometry, b, N, K: tl.constexpr):
    """The K-th line of sequence b."""
    even = N + N % 2
    return geometry + b * (4 * even + 6 * ((N + 31) // 32)) + K * even


@triton.jit
def of_tiles(geometry, b, N, K: tl.constexpr):
    """The K-th row of its tiles."""
    return line(geometry, b, N, 4) + K * 2 * ((N + 31) // 32)


@triton.jit
def end_of(lengths, b, N, T, RAGGED: tl.constexpr):
    """The index at which sequence b is over."""
    stop = N
    if RAGGED:
        stop = N - T + tl.minimum(T, tl.load(lengths + b)).to(tl.int32)
    return stop


@triton.jit
def climb(a, b, later_a, later_b):
    """Of the maps x -> max(a, x + b), one after the other: heights never fall below 0."""
    return tl.maximum(later_a, a + later_b), b + later_b


@triton.jit
def lower(a, b):
    return tl.minimum(a, b)


@triton.jit
def strength(s0, d, i, n, stop, GRID: tl.constexpr):
    """What is pushed with index i, on the grid; 0 outside."""
    before = tl.load(s0 + i, mask=(i >= 0) & (i < n), other=0).to(tl.float64)
    x = before + tl.load(d + i - n, mask=(i >= n) & (i < stop), other=0).to(tl.float64)
    return on_grid(x, GRID)


@triton.jit
def on_grid(x, GRID: tl.constexpr):
    """Rounded to a multiple of GRID: adding 1.5 * 2^52 grids leaves no digit for less. What is not a number
    counts as 0."""
    x = tl.where(x - x == 0, x, 0)
    shift: tl.constexpr = 1.5 * 4503599627370496.0 * GRID
    return (x + shift) - shift


@triton.jit
def last_of(x, BLOCK: tl.constexpr):
    return tl.sum(tl.where(tl.arange(0, BLOCK) == BLOCK - 1, x, 0), 0)


@triton.jit(do_not_specialize=["N", "T"])
def heights_kernel(
    u, d, s0, lengths, geometry, s, bad, N, T, m,
    LIFO: tl.constexpr, RAGGED: tl.constexpr, CHECKED: tl.constexpr, GRID: tl.constexpr, BLOCK: tl.constexpr,
    M: tl.constexpr,
):  # fmt: skip
    """A stack's L and H, or where a queue's items begin and end and its front after each pop; s: the
    strengths at the end; and bad (m): the first index at which a strength is not a number. If CHECKED, no
    strength may be so, or negative."""
    b = tl.program_id(0).to(tl.int64)
    n = N - T
    u, d, s0, s = u + b * T, d + b * T, s0 + b * n, s + b * N
    low, high, front = line(geometry, b, N, 0), line(geometry, b, N, 1), line(geometry, b, N, 2)
    stop = end_of(lengths, b, N, T, RAGGED)
    level = tl.full((), 0, tl.float64)
    total = tl.full((), 0, tl.float64)
    reached = tl.full((), 0, tl.float64)
    first_bad = N
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < N
        live = i < stop
        pushed = strength(s0, d, i, n, stop, GRID)
        pops = tl.load(u + i - n, mask=(i >= n) & live, other=0).to(tl.float64)
        push = tl.load(s0 + i, mask=i < n, other=0) + tl.load(d + i - n, mask=(i >= n) & live, other=0)
        wrong = ((push - push) != 0) | (((pops - pops) != 0) & (i > 0))
        if CHECKED:
            fine = (pops >= 0) & (pops < float("inf")) & (push >= 0) & (push < float("inf"))
            tl.device_assert(fine, "a strength is negative or not finite")
        first_bad = tl.minimum(first_bad, tl.min(tl.where(wrong, i, N), 0))
        pops = on_grid(pops, GRID)
        step = strength(s0, d, i - 1, n, stop, GRID) - pops
        a, climbed = tl.associative_scan((tl.zeros_like(step), step), 0, climb)
        L = tl.maximum(a, level + climbed)
        level = last_of(L, BLOCK)
        if LIFO:
            tl.store(low + i, tl.where(live, L, BIG), mask=inside)
            tl.store(high + i, tl.where(live, L + pushed, BIG), mask=inside)
        else:
            end = total + tl.cumsum(pushed, 0)
            begin = end - pushed
            total = last_of(end, BLOCK)
            place = begin - L
            reached = tl.maximum(reached, tl.max(tl.where(live, place, 0), 0))
            tl.store(low + i, begin, mask=inside)
            tl.store(high + i, end, mask=inside)
            tl.store(front + i, tl.where(live, place, BIG), mask=inside)
    tl.debug_barrier()
    fault = tl.where(first_bad < stop, float("nan"), 0.0)
    above = tl.full((), BIG, tl.float64)
    for back in range(0, N, BLOCK):
        start = (N - 1) // BLOCK * BLOCK - back
        i = start + tl.arange(0, BLOCK)
        inside = i < N
        begin = tl.load(low + i, mask=inside, other=BIG)
        end = tl.load(high + i, mask=inside, other=BIG)
        held = tl.load(s0 + i, mask=i < n, other=0).to(tl.float64)
        held += tl.load(d + i - n, mask=(i >= n) & (i < stop), other=0).to(tl.float64)
        if LIFO:
            later = tl.load(low + i + 1, mask=i + 1 < N, other=BIG)
            later = tl.minimum(tl.associative_scan(later, 0, lower, reverse=True), above)
            above = tl.min(later, 0)
            holds = tl.where(later < end, later - begin, held)
        else:
            holds = tl.where(begin < reached, end - reached, held)
        holds = tl.maximum(holds, 0) + fault
        tl.store(s + i, tl.where(i < stop, holds, fault).to(s.dtype.element_ty), mask=inside)
    k = tl.arange(0, M)
    for column in range(0, m, M):
        tl.store(bad + b * m + column + k, tl.zeros_like(k) + first_bad, mask=column + k < m)


@triton.jit
def resolve(
    low, below, follows, opened, direct, parts, E, gates, pointers, N, start, stop, chunks,
    LIFO: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """E_c = direct_c + gate_c E_{follows_c} of one sequence and one block, of which all later ones are done.
    By doubling: after k rounds E has 2^k terms of its path.

    A stack's gate is shut where the step that follows emptied the cell below c and took no part of another;
    a queue's where the next step emptied the cell `below`, which is its front. `parts` are added up.
    """
    c = start + tl.arange(0, BLOCK)
    inside = c < stop
    e = tl.load(direct + c, mask=inside, other=0)
    for chunk in range(chunks):
        e += tl.load(parts + chunk * N + c, mask=inside, other=0)
    pointer = tl.load(follows + c, mask=inside, other=N)
    open_then = tl.load(opened + pointer, mask=pointer < stop, other=0)
    under = tl.load(below + c, mask=inside, other=-1)
    if LIFO:
        floor = tl.load(low + under, mask=under >= 0, other=-1)
        same = tl.load(low + pointer, mask=pointer < stop, other=-2) > floor
    else:
        same = tl.load(below + pointer, mask=pointer < stop, other=-2) == under
    gate = tl.where(pointer < stop, tl.where(same, 1, open_then), 0)
    outside = pointer >= start + BLOCK
    e += gate * tl.load(E + pointer, mask=outside & (gate > 0), other=0)
    gate = tl.where(outside, 0, gate)
    going = tl.max(gate, 0) > 0
    while going:
        tl.store(E + c, e, mask=inside)
        tl.store(gates + c, gate, mask=inside)
        tl.store(pointers + c, pointer, mask=inside)
        tl.debug_barrier()
        more = gate > 0
        e += tl.load(E + pointer, mask=more, other=0)
        gate = tl.load(gates + pointer, mask=more, other=0)
        pointer = tl.load(pointers + pointer, mask=more, other=0)
        tl.debug_barrier()
        going = tl.max(gate, 0) > 0
    tl.store(E + c, e, mask=c < N)
    tl.debug_barrier()
