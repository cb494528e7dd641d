"""A stack for all times at once, tile by tile: docs/parallel.md.

Item i ends at time t at min(H_i, L_τ for i < τ <= t). For items of one tile and times of a later one this is
min(top_i, floors of the tiles between, sill_t): `top` is where an item ends when its tile does, `sill` the
lowest L of its tile so far, `floor` the lowest of a whole tile. A tile whose floor is not below what still
matters is skipped, whatever lies in it.
"""

import triton
import triton.language as tl

from softstack.kernels.gpu.heights import BIG, NOTHING, end_of, line, lower, of_tiles, resolve
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
    """`top` and `sill`, `floors`, and `reaches`: the lowest height that a tile pops or reads. And V."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    low, high = line(geometry, b, N, 0), line(geometry, b, N, 1)
    top, sill = line(geometry, b, N, 2), line(geometry, b, N, 3)
    t = tile * TILE + tl.arange(0, TILE)
    lay(v, V0, V, bad, b, t, N, T, m, M, REAL)
    inside = t < N
    L = tl.load(low + t, mask=inside, other=BIG)
    H = tl.load(high + t, mask=inside, other=BIG)
    later = tl.load(low + t + 1, mask=(t + 1 < N) & (t + 1 < (tile + 1) * TILE), other=BIG)
    later = tl.associative_scan(later, 0, lower, reverse=True)
    tl.store(top + t, tl.minimum(H, later), mask=inside)
    tl.store(sill + t, tl.associative_scan(L, 0, lower), mask=inside)
    floor = tl.min(L, 0)
    tl.store(of_tiles(geometry, b, N, 0) + tile, floor)
    bottom = tl.where(t >= N - T, H - 1, BIG)
    tl.store(of_tiles(geometry, b, N, 1) + tile, tl.minimum(floor, tl.min(bottom, 0)))


@triton.jit
def own_tops(L, H, t, TILE: tl.constexpr, ITEMS_FIRST: tl.constexpr):
    """(times, items) of one tile, or (items, times): where items end, for times that are not before them."""
    if ITEMS_FIRST:
        pops = tl.where(t[None, :] > t[:, None], L[None, :], BIG)
        return tl.minimum(H[:, None], tl.associative_scan(pops, 1, lower))
    else:
        pops = tl.where(t[:, None] > t[None, :], L[:, None], BIG)
        return tl.minimum(H[None, :], tl.associative_scan(pops, 0, lower))


@triton.jit(do_not_specialize=["N", "T", "tiles"])
def reads_kernel(
    V, geometry, r, bad, N, T, m, tiles,
    TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What the times of a tile read."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    n = N - T
    V, floors = V + b * N * m, of_tiles(geometry, b, N, 0)
    low, high = line(geometry, b, N, 0), line(geometry, b, N, 1)
    top, sill = line(geometry, b, N, 2), line(geometry, b, N, 3)
    k = tl.program_id(1) * M + tl.arange(0, M)
    t = tile * TILE + tl.arange(0, TILE)
    L = tl.load(low + t, mask=t < N, other=BIG)
    H = tl.load(high + t, mask=t < N, other=BIG)
    live = (t >= n) & (L < BIG)
    bottom = tl.where(live, H - 1, BIG)
    v = numbers(vectors(V, t, N, m, k, REAL))
    ends = own_tops(L, H, t, TILE, False)
    w = tl.maximum(ends - tl.maximum(L[None, :], bottom[:, None]), 0)
    w = tl.where(t[:, None] >= t[None, :], w, 0)
    total = product(w, v, tl.zeros((TILE, M), REAL), PRECISION)
    end = tl.load(sill + t, mask=t < N, other=BIG)
    tile = previous(floors, tile, tl.max(tl.where(end > bottom, end, NOTHING), 0), False)
    while tile >= 0:
        i = tile * TILE + tl.arange(0, TILE)
        L = tl.load(low + i)
        v = numbers(vectors(V, i, N, m, k, REAL))
        w = tl.minimum(tl.load(top + i)[None, :], end[:, None]) - tl.maximum(L[None, :], bottom[:, None])
        total = product(tl.maximum(w, 0), v, total, PRECISION)
        end = tl.minimum(end, tl.load(floors + tile))
        tile = previous(floors, tile, tl.max(tl.where(end > bottom, end, NOTHING), 0), False)
    put(r, total, bad, b, t, N, T, m, k)


@triton.jit
def asked(L, bottom, there, under, level, last):
    """The highest height at which something is still looked for, NOTHING if nothing is."""
    height = tl.where(there & (((under < 0) & (L > 0)) | (level < 0)), L, NOTHING)
    window = tl.where((last < 0) & (bottom >= 0), bottom, NOTHING)
    return tl.max(tl.maximum(height, window), 0)


@triton.jit(do_not_specialize=["N", "T", "tiles", "size"])
def links_kernel(
    V, u, gr, gs, geometry, links, shares, N, T, m, tiles, size,
    GIVEN_S: tl.constexpr, TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """For each index: the item right below it, the step that pops as far, whether its pop took a part of a
    cell, and of its read what goes through the last cell and what to its own.

    `direct` begins with the final strength's gradient of the cell below, if that is still cut at this height.
    """
    b = (tl.program_id(0) // tiles).to(tl.int64)
    own_tile = tl.program_id(0) % tiles
    n = N - T
    V, gr, gs, u = V + b * N * m, gr + b * T * m, gs + b * N, u + b * T
    low, high, floors = line(geometry, b, N, 0), line(geometry, b, N, 1), of_tiles(geometry, b, N, 0)
    below, follows, opened = links + b * 5 * N, links + b * 5 * N + N, links + b * 5 * N + 2 * N
    through, own, direct = shares + b * size, shares + b * size + N, shares + b * size + 2 * N
    t = own_tile * TILE + tl.arange(0, TILE)
    L = tl.load(low + t, mask=t < N, other=BIG)
    there = (t < N) & (L < BIG)
    live = there & (t >= n)
    bottom = tl.where(live, tl.load(high + t, mask=t < N, other=BIG) - 1, -1)
    earlier = t[None, :] < t[:, None]
    items = tl.where(there, t, -1)[None, :]
    under = tl.max(tl.where(earlier & (L[None, :] < L[:, None]), items, -1), 1)
    level = tl.max(tl.where(earlier & (L[None, :] <= L[:, None]), items, -1), 1)
    last = tl.max(tl.where((t[None, :] <= t[:, None]) & (L[None, :] <= bottom[:, None]), items, -1), 1)
    later = (t[None, :] > t[:, None]) & (L[None, :] <= L[:, None]) & there[None, :]
    next_pop = tl.min(tl.where(later, t[None, :], N), 1)
    # what no index of the tile itself answers is asked of the others, the nearest first
    tile = previous(floors, own_tile, asked(L, bottom, there, under, level, last), True)
    while tile >= 0:
        i = tile * TILE + tl.arange(0, TILE)
        lows = tl.load(low + i)[None, :]
        items = i[None, :]
        under = tl.where(under < 0, tl.max(tl.where(lows < L[:, None], items, -1), 1), under)
        level = tl.where(level < 0, tl.max(tl.where(lows <= L[:, None], items, -1), 1), level)
        last = tl.where(last < 0, tl.max(tl.where(lows <= bottom[:, None], items, -1), 1), last)
        tile = previous(floors, tile, asked(L, bottom, there, under, level, last), True)
    tile = following(
        floors, own_tile + 1, tl.max(tl.where(there & (next_pop == N), L, NOTHING), 0), tiles, True
    )
    while tile < tiles:
        i = tile * TILE + tl.arange(0, TILE)
        lows = tl.load(low + i, mask=i < N, other=BIG)[None, :]
        pops = tl.min(tl.where((lows <= L[:, None]) & (lows < BIG), i[None, :], N), 1)
        next_pop = tl.where(next_pop == N, pops, next_pop)
        height = tl.max(tl.where(there & (next_pop == N), L, NOTHING), 0)
        tile = following(floors, tile + 1, height, tiles, True)
    tie = tl.load(low + level, mask=there & (level >= 0), other=-1) == L
    pops = tl.load(u + t - n, mask=live, other=0)
    partly = live & (L > 0) & (pops > 0) & (tie == 0)
    tl.store(below + t, under, mask=t < N)
    tl.store(follows + t, next_pop, mask=t < N)
    tl.store(opened + t, partly.to(tl.int32), mask=t < N)
    kept = tl.zeros((TILE,), tl.float64)
    if GIVEN_S:
        kept += tl.load(gs + under, mask=there & (next_pop == N) & (under >= 0), other=0)
    tl.store(direct + t, kept, mask=t < N)
    along = tl.zeros((TILE,), REAL)
    to_last = tl.zeros((TILE,), REAL)
    for column in range(0, m, M):
        k = column + tl.arange(0, M)
        g = incoming(gr, t, n, live, m, k, REAL)
        along += tl.sum(g * vectors(V, t, N, m, k, REAL), 1)
        to_last += tl.sum(g * chosen(V, last, m, k, REAL), 1)
    # halved where the window ends between two cells
    halved = tl.load(low + last, mask=live & (last >= 0), other=-1) == bottom
    to_last = tl.where(halved, to_last / 2, to_last)
    tl.store(through + t, to_last, mask=t < N)
    tl.store(own + t, tl.where(live & (bottom <= L), along - to_last, 0), mask=t < N)


@triton.jit(do_not_specialize=["N", "T", "tiles", "size"])
def items_kernel(
    V, gr, given, geometry, links, shares, gV, N, T, m, tiles, size,
    GIVEN_V: tl.constexpr, TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """gV of the items of a tile, and what the reads of whole cells give to the cell below each of them, while
    it is cut at this height: `parts`, of these columns."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    chunk = tl.program_id(1)
    n = N - T
    V, gr = V + b * N * m, gr + b * T * m
    low, high = line(geometry, b, N, 0), line(geometry, b, N, 1)
    top, sill = line(geometry, b, N, 2), line(geometry, b, N, 3)
    floors, reaches = of_tiles(geometry, b, N, 0), of_tiles(geometry, b, N, 1)
    below, through, parts = links + b * 5 * N, shares + b * size, shares + b * size + (4 + chunk) * N
    k = chunk * M + tl.arange(0, M)
    i = tile * TILE + tl.arange(0, TILE)
    L = tl.load(low + i, mask=i < N, other=BIG)
    H = tl.load(high + i, mask=i < N, other=BIG)
    there = L < BIG
    under = tl.load(below + i, mask=i < N, other=-1)
    under = tl.where(there, under, -1)
    floor = tl.load(low + under, mask=under >= 0, other=-1)
    live = there & (i >= n)
    bottom = tl.where(live, H - 1, BIG)
    g = incoming(gr, i, n, live, m, k, REAL)
    reads = tl.load(through + i, mask=i < N, other=0)
    ends = own_tops(L, H, i, TILE, True)
    since = i[None, :] >= i[:, None]
    w = tl.where(since, tl.maximum(ends - tl.maximum(L[:, None], bottom[None, :]), 0), 0)
    cut = (ends > L[:, None]) | (i[None, :] == i[:, None])
    whole = tl.where(since & cut & (floor[:, None] >= bottom[None, :]), 1.0, 0.0).to(REAL)
    to_V = product(w, g, tl.zeros((TILE, M), REAL), PRECISION)
    seen = product(whole, g, tl.zeros((TILE, M), REAL), PRECISION)
    lost = tl.sum(tl.where(whole > 0, reads[None, :], 0), 1)
    end = tl.load(top + i, mask=i < N, other=BIG)
    tile = following(reaches, tile + 1, tl.max(tl.where(there & (end > L), end, NOTHING), 0), tiles, False)
    while tile < tiles:
        t = tile * TILE + tl.arange(0, TILE)
        H = tl.load(high + t, mask=t < N, other=BIG)
        live = (t >= n) & (t < N) & (H < BIG)
        bottom = tl.where(live, H - 1, BIG)
        g = incoming(gr, t, n, live, m, k, REAL)
        reads = tl.load(through + t, mask=t < N, other=0)
        ends = tl.minimum(end[:, None], tl.load(sill + t, mask=t < N, other=BIG)[None, :])
        w = tl.maximum(ends - tl.maximum(L[:, None], bottom[None, :]), 0)
        whole = tl.where((ends > L[:, None]) & (floor[:, None] >= bottom[None, :]), 1.0, 0.0).to(REAL)
        to_V = product(w, g, to_V, PRECISION)
        seen = product(whole, g, seen, PRECISION)
        lost += tl.sum(tl.where(whole > 0, reads[None, :], 0), 1)
        end = tl.minimum(end, tl.load(floors + tile))
        height = tl.max(tl.where(there & (end > L), end, NOTHING), 0)
        tile = following(reaches, tile + 1, height, tiles, False)
    add(gV, given, to_V, b, i, N, m, k, GIVEN_V)
    to_below = tl.sum(chosen(V, under, m, k, REAL) * seen, 1) - tl.where(chunk == 0, lost, 0)
    tl.store(parts + i, tl.where(under >= 0, to_below, 0), mask=i < N)


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
    low, s0, gs0 = line(geometry, b, N, 0), s0 + b * n, gs0 + b * n
    gs, gu, gd = gs + b * N, gu + b * T, gd + b * T
    below, follows, opened = links + b * 5 * N, links + b * 5 * N + N, links + b * 5 * N + 2 * N
    own, direct, E = shares + b * size + N, shares + b * size + 2 * N, shares + b * size + 3 * N
    for back in range(0, N, BLOCK):
        start = (N - 1) // BLOCK * BLOCK - back
        resolve(
            low, below, follows, opened, direct, E + N, E, opened + N, opened + 2 * N, N, start, stop, chunks,
            True, BLOCK,
        )  # fmt: skip
        i = start + tl.arange(0, BLOCK)
        inside = i < stop
        popped = i + 1 < stop
        L = tl.load(low + i, mask=inside, other=0)
        stays = tl.load(low + i + 1, mask=popped, other=0) > L
        passes = stays | (tl.load(opened + i + 1, mask=popped, other=0) > 0)
        to_d = tl.load(own + i, mask=inside, other=0)
        to_d += tl.load(E + i + 1, mask=popped & passes, other=0)
        if GIVEN_S:
            to_d += tl.load(gs + i, mask=inside & (popped == 0), other=0)
        to_u = -tl.load(E + i, mask=inside & (tl.load(opened + i, mask=inside, other=0) > 0), other=0)
        real: tl.constexpr = gd.dtype.element_ty
        tl.store(gd + i - n, to_d.to(real), mask=(i >= n) & (i < N))
        tl.store(gu + i - n, to_u.to(real), mask=(i >= n) & (i < N))
        # cells that came in empty have a slope only where the first pop passed over them
        there = stop > n
        under = tl.load(below + n, mask=there, other=0)
        taken = tl.load(opened + n, mask=there, other=0) > 0
        empty = tl.where(taken & (i > under), tl.load(E + n, mask=there, other=0), 0)
        filled = tl.load(s0 + i, mask=i < n, other=0) > 0
        to_s = tl.where(filled, to_d, empty)
        if stop == n:
            to_s = tl.zeros_like(to_s)
            if GIVEN_S:
                to_s += tl.load(gs + i, mask=i < n, other=0)
        tl.store(gs0 + i, to_s.to(real), mask=i < n)
