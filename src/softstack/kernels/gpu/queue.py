"""A queue for all times at once, tile by tile: docs/parallel.md.

Item i lies at [begin_i, end_i] and stays there; the front moves on. A read at time t sees
[front_t, front_t + 1], so that a tile of times sees the items of a few tiles that lie side by side.
"""

import triton
import triton.language as tl

from softstack.kernels.gpu.heights import BIG, NOTHING, end_of, line, of_tiles, resolve
from softstack.kernels.gpu.tiles import (
    add,
    chosen,
    following,
    incoming,
    lay,
    numbers,
    previous,
    product,
    put,
    vectors,
)


@triton.jit(do_not_specialize=["N", "T", "tiles"])
def tiles_kernel(
    v, V0, V, geometry, bad, N, T, m, tiles, TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr
):  # fmt: skip
    """Of each tile: where its items begin, its first front, and as a negative number the last one. And V."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    t = tile * TILE + tl.arange(0, TILE)
    lay(v, V0, V, bad, b, t, N, T, m, M, REAL)
    place = tl.load(line(geometry, b, N, 2) + t, mask=(t < N) & (t >= N - T), other=BIG)
    tl.store(of_tiles(geometry, b, N, 0) + tile, tl.load(line(geometry, b, N, 0) + tile * TILE))
    tl.store(of_tiles(geometry, b, N, 1) + tile, tl.min(place, 0))
    last = tl.max(tl.where(place < BIG, place, -BIG), 0)
    tl.store(of_tiles(geometry, b, N, 2) + tile, -last)


@triton.jit(do_not_specialize=["N", "T", "tiles"])
def reads_kernel(
    V, geometry, r, bad, N, T, m, tiles,
    TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What the times of a tile read."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    n = N - T
    V, starts = V + b * N * m, of_tiles(geometry, b, N, 0)
    begin, end, front = line(geometry, b, N, 0), line(geometry, b, N, 1), line(geometry, b, N, 2)
    k = tl.program_id(1) * M + tl.arange(0, M)
    t = tile * TILE + tl.arange(0, TILE)
    place = tl.load(front + t, mask=(t >= n) & (t < N), other=BIG)
    nearest = tl.min(place, 0)
    furthest = tl.max(tl.where(place < BIG, place + 1, NOTHING), 0)
    total = tl.zeros((TILE, M), REAL)
    tile = previous(starts, tile + 1, furthest, False)
    going = tile >= 0
    while going:
        i = tile * TILE + tl.arange(0, TILE)
        begins = tl.load(begin + i, mask=i < N, other=BIG)
        ends = tl.load(end + i, mask=i < N, other=BIG)
        v = numbers(vectors(V, i, N, m, k, REAL))
        w = tl.minimum(ends[None, :], place[:, None] + 1) - tl.maximum(begins[None, :], place[:, None])
        w = tl.where((i[None, :] <= t[:, None]) & (i < N)[None, :], tl.maximum(w, 0), 0)
        total = product(w, v, total, PRECISION)
        going = (tile > 0) & (tl.min(begins, 0) > nearest)
        tile -= 1
    put(r, total, bad, b, t, N, T, m, k)


@triton.jit
def beyond(x, bound, start, stop, EQUAL: tl.constexpr):
    """The first index in [start, stop) at which x, which only grows, is above `bound`, or at it if EQUAL."""
    going = tl.max((start < stop).to(tl.int32), 0) > 0
    while going:
        middle = (start + stop) // 2
        value = tl.load(x + middle, mask=start < stop, other=0)
        enough = value > bound
        if EQUAL:
            enough = value >= bound
        more = start < stop
        start = tl.where(more & (enough == 0), middle + 1, start)
        stop = tl.where(more & enough, middle, stop)
        going = tl.max((start < stop).to(tl.int32), 0) > 0
    return start


@triton.jit(do_not_specialize=["N", "T", "tiles", "size"])
def links_kernel(
    V, u, gr, gs, lengths, geometry, links, shares, N, T, m, tiles, size,
    GIVEN_S: tl.constexpr, RAGGED: tl.constexpr, TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """For each index: the item in front after its pop, the step that empties it, whether its pop took a part
    of a cell, and of its read what goes through the last cell, what to its own and, as `direct`, to the
    front."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    n = N - T
    V, gr, gs, u = V + b * N * m, gr + b * T * m, gs + b * N, u + b * T
    begin, end, front = line(geometry, b, N, 0), line(geometry, b, N, 1), line(geometry, b, N, 2)
    heads, follows, opened = links + b * 6 * N, links + b * 6 * N + N, links + b * 6 * N + 2 * N
    emptied = links + b * 6 * N + 5 * N
    through, own, direct = shares + b * size, shares + b * size + N, shares + b * size + 2 * N
    stop = end_of(lengths, b, N, T, RAGGED)
    t = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
    there = t < stop
    live = there & (t >= n)
    place = tl.load(front + t, mask=live, other=0)
    begins = tl.load(begin + t, mask=there, other=0)
    ends = tl.load(end + t, mask=there, other=0)
    zero = tl.zeros_like(t)
    head = beyond(end, place, zero, tl.where(live, t, 0), False)  # t itself where nothing is left
    gone = beyond(front, ends, tl.where(there, tl.maximum(t + 1, n), 0), tl.where(there, stop, 0), True)
    last = beyond(end, place + 1, zero, tl.where(live, t + 1, 0), True)
    last = tl.where(live & (last <= t), last, -1)
    left = live & (head < t)
    pops = tl.load(u + t - n, mask=live, other=0)
    partly = left & (pops > 0) & (place > tl.load(begin + head, mask=left, other=0))
    tl.store(heads + t, tl.where(live, head, -1), mask=t < N)
    tl.store(emptied + t, tl.where(there & (gone < stop), gone, N), mask=t < N)
    tl.store(opened + t, partly.to(tl.int32), mask=t < N)
    tl.store(follows + t, t + 1, mask=t < N)
    along = tl.zeros((TILE,), REAL)
    to_last = tl.zeros((TILE,), REAL)
    to_head = tl.zeros((TILE,), REAL)
    for column in range(0, m, M):
        k = column + tl.arange(0, M)
        g = incoming(gr, t, n, live, m, k, REAL)
        along += tl.sum(g * vectors(V, t, N, m, k, REAL), 1)
        to_last += tl.sum(g * chosen(V, last, m, k, REAL), 1)
        to_head += tl.sum(g * chosen(V, tl.where(left, head, -1), m, k, REAL), 1)
    reach = place + 1
    halved = tl.load(end + last, mask=last >= 0, other=-1) == reach  # the window ends between two cells
    to_last = tl.where(halved, to_last / 2, to_last)
    to_own = tl.where(ends <= reach, along - to_last, 0)
    to_own = tl.where(ends > begins, to_own, tl.where(begins < reach, along, along / 2))
    whole = left & (tl.load(end + head, mask=left, other=BIG) <= reach)
    to_head = tl.where(whole, to_head - to_last, 0).to(tl.float64)
    if GIVEN_S:
        to_head += tl.load(gs + head, mask=left & (t == stop - 1), other=0)
    tl.store(through + t, to_last, mask=t < N)
    tl.store(own + t, tl.where(live, to_own, 0), mask=t < N)
    tl.store(direct + t, to_head, mask=t < N)


@triton.jit(do_not_specialize=["N", "T", "tiles", "size"])
def items_kernel(
    V, gr, given, geometry, shares, gV, N, T, m, tiles, size,
    GIVEN_V: tl.constexpr, TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """gV of the items of a tile, and what later reads of them as whole cells give to them: `parts`."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    chunk = tl.program_id(1)
    n = N - T
    V, gr = V + b * N * m, gr + b * T * m
    begin, end, front = line(geometry, b, N, 0), line(geometry, b, N, 1), line(geometry, b, N, 2)
    fronts, stops = of_tiles(geometry, b, N, 1), of_tiles(geometry, b, N, 2)
    through, parts = shares + b * size, shares + b * size + (4 + chunk) * N
    k = chunk * M + tl.arange(0, M)
    i = tile * TILE + tl.arange(0, TILE)
    begins = tl.load(begin + i, mask=i < N, other=BIG)
    ends = tl.load(end + i, mask=i < N, other=-BIG)
    to_V = tl.zeros((TILE, M), REAL)
    seen = tl.zeros((TILE, M), REAL)
    lost = tl.zeros((TILE,), tl.float64)
    start = tl.min(begins, 0)
    stop = tl.max(ends, 0)
    # the first tile whose last front is beyond start - 1
    tile = following(stops, tile, 1 - start, tiles, False)
    while (tile < tiles) & (tl.load(fronts + tile, mask=tile < tiles, other=BIG) < stop):
        t = tile * TILE + tl.arange(0, TILE)
        place = tl.load(front + t, mask=(t >= n) & (t < N), other=BIG)[None, :]
        live = (t >= n) & (t < N)
        g = incoming(gr, t, n, live, m, k, REAL)
        reads = tl.load(through + t, mask=t < N, other=0)
        w = tl.minimum(ends[:, None], place + 1) - tl.maximum(begins[:, None], place)
        w = tl.where(t[None, :] >= i[:, None], tl.maximum(w, 0), 0)
        whole = (place < ends[:, None]) & (ends[:, None] <= place + 1) & (t[None, :] > i[:, None])
        whole = tl.where(whole & (ends > begins)[:, None], 1.0, 0.0).to(REAL)
        to_V = product(w, g, to_V, PRECISION)
        seen = product(whole, g, seen, PRECISION)
        lost += tl.sum(tl.where(whole > 0, reads[None, :], 0), 1)
        tile += 1
    add(gV, given, to_V, b, i, N, m, k, GIVEN_V)
    to_own = tl.sum(vectors(V, i, N, m, k, REAL) * seen, 1) - tl.where(chunk == 0, lost, 0)
    tl.store(parts + i, to_own, mask=i < N)


@triton.jit(do_not_specialize=["N", "T", "size", "chunks"])
def strengths_kernel(
    s0, lengths, geometry, links, shares, gs, gu, gd, gs0, N, T, size, chunks,
    GIVEN_S: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of u, d and the strengths before the first step: one program is one sequence, and goes
    from the last block to the first."""
    b = tl.program_id(0).to(tl.int64)
    n = N - T
    stop = end_of(lengths, b, N, T, RAGGED)
    begin, end = line(geometry, b, N, 0), line(geometry, b, N, 1)
    gs, gu, gd, gs0 = gs + b * N, gu + b * T, gd + b * T, gs0 + b * n
    heads, follows, opened = links + b * 6 * N, links + b * 6 * N + N, links + b * 6 * N + 2 * N
    emptied = links + b * 6 * N + 5 * N
    own, direct, E = shares + b * size + N, shares + b * size + 2 * N, shares + b * size + 3 * N
    for back in range(0, N, BLOCK):
        start = (N - 1) // BLOCK * BLOCK - back
        resolve(
            begin, heads, follows, opened, direct, E + N, E, opened + N, opened + 2 * N, N, start, stop, 0,
            False, BLOCK,
        )  # fmt: skip
        i = start + tl.arange(0, BLOCK)
        inside = i < stop
        filled = tl.load(end + i, mask=inside, other=0) > tl.load(begin + i, mask=inside, other=0)
        to_d = tl.load(own + i, mask=inside, other=0)
        for chunk in range(chunks):
            to_d += tl.load(E + (1 + chunk) * N + i, mask=filled, other=0)
        gone = tl.load(emptied + i, mask=inside, other=N)
        taken = filled & (gone < stop) & (tl.load(opened + gone, mask=gone < stop, other=0) > 0)
        to_d += tl.load(E + gone, mask=taken, other=0)
        if GIVEN_S:
            to_d += tl.load(gs + i, mask=inside & (gone >= stop) & (filled | (i == stop - 1)), other=0)
        to_u = -tl.load(E + i, mask=inside & (tl.load(opened + i, mask=inside, other=0) > 0), other=0)
        real: tl.constexpr = gd.dtype.element_ty
        tl.store(gd + i - n, to_d.to(real), mask=(i >= n) & (i < N))
        tl.store(gu + i - n, to_u.to(real), mask=(i >= n) & (i < N))
        # cells that came in empty have a slope only where the first pop passed over them
        there = stop > n
        head = tl.load(heads + n, mask=there, other=0)
        taken = tl.load(opened + n, mask=there, other=0) > 0
        empty = tl.where(taken & (i < head), tl.load(E + n, mask=there, other=0), 0)
        to_s = tl.where(filled, to_d, empty)
        if stop == n:
            to_s = tl.zeros_like(to_s)
            if GIVEN_S:
                to_s += tl.load(gs + i, mask=i < n, other=0)
        tl.store(gs0 + i, to_s.to(real), mask=i < n)
