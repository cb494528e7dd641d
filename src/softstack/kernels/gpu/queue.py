"""A queue for all times at once, tile by tile: docs/parallel.md.

Item i lies at [begin_i, end_i] and stays there; the front moves on. A read at time t sees
[front_t, front_t + 1], so that a tile of times sees the items of a few tiles that lie side by side.
"""

import triton
import triton.language as tl

from softstack.kernels.gpu.heights import BIG, NOTHING
from softstack.kernels.gpu.tiles import chosen, following, incoming, previous, product, vectors


@triton.jit(do_not_specialize=["N", "T", "tiles"])
def tiles_kernel(begin, end, front, starts, fronts, stops, N, T, tiles, TILE: tl.constexpr):
    """Of each tile: where its items begin, its first front, and as a negative number the last one."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    t = tile * TILE + tl.arange(0, TILE)
    place = tl.load(front + b * N + t, mask=(t < N) & (t >= N - T), other=BIG)
    tl.store(starts + tl.program_id(0), tl.load(begin + b * N + tile * TILE))
    tl.store(fronts + tl.program_id(0), tl.min(place, 0))
    last = tl.max(tl.where(place < BIG, place, -BIG), 0)
    tl.store(stops + tl.program_id(0), -last)


@triton.jit(do_not_specialize=["N", "T", "tiles"])
def reads_kernel(
    V, begin, end, front, starts, r, bad, N, T, m, tiles,
    TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """What the times of a tile read. bad (m): the first index at which a number of a vector is not one."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    n = N - T
    V, r, starts = V + b * N * m, r + b * T * m, starts + b * tiles
    begin, end, front = begin + b * N, end + b * N, front + b * N
    k = tl.program_id(1) * M + tl.arange(0, M)
    t = tile * TILE + tl.arange(0, TILE)
    place = tl.load(front + t, mask=(t >= n) & (t < N), other=BIG)
    v = vectors(V, t, N, m, k, REAL)
    wrong = (v - v) != 0
    if tl.max(wrong.to(tl.int32)) > 0:
        first = tl.min(tl.where(wrong, t[:, None], N), 0)
        tl.atomic_min(bad + b * m + k, first, mask=(first < N) & (k < m))
    nearest = tl.min(place, 0)
    furthest = tl.max(tl.where(place < BIG, place + 1, NOTHING), 0)
    total = tl.zeros((TILE, M), REAL)
    tile = previous(starts, tile + 1, furthest, False)
    going = tile >= 0
    while going:
        i = tile * TILE + tl.arange(0, TILE)
        begins = tl.load(begin + i, mask=i < N, other=BIG)
        ends = tl.load(end + i, mask=i < N, other=BIG)
        v = vectors(V, i, N, m, k, REAL)
        v = tl.where((v - v) == 0, v, 0)
        w = tl.minimum(ends[None, :], place[:, None] + 1) - tl.maximum(begins[None, :], place[:, None])
        w = tl.where((i[None, :] <= t[:, None]) & (i < N)[None, :], tl.maximum(w, 0), 0)
        total = product(w, v, total, PRECISION)
        going = (tile > 0) & (tl.min(begins, 0) > nearest)
        tile -= 1
    at = r + (t - n).to(tl.int64)[:, None] * m + k[None, :]
    mask = (t >= n)[:, None] & (t < N)[:, None] & (k < m)[None, :]
    tl.store(at, total.to(r.dtype.element_ty), mask=mask)


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


@triton.jit(do_not_specialize=["N", "T", "tiles"])
def links_kernel(
    V, u, d, gr, gs, lengths, begin, end, front, heads, emptied, opened, through, own, direct, follows,
    N, T, m, tiles, TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """For each index: the item in front after its pop, the step that empties it, whether its pop took a part
    of a cell, and of its read what goes through the last cell, what to its own and, as `direct`, to the
    front."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    n = N - T
    V, gr = V + b * N * m, gr + b * T * m
    begin, end, front = begin + b * N, end + b * N, front + b * N
    gs, u, d, at = gs + b * N, u + b * T, d + b * T, b * N
    stop = n + tl.minimum(T, tl.load(lengths + b)).to(tl.int32)
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
    tl.store(heads + at + t, tl.where(live, head, -1), mask=t < N)
    tl.store(emptied + at + t, tl.where(there & (gone < stop), gone, N), mask=t < N)
    tl.store(opened + at + t, partly.to(tl.int32), mask=t < N)
    tl.store(follows + at + t, t + 1, mask=t < N)
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
    to_head += tl.load(gs + head, mask=left & (t == stop - 1), other=0)
    tl.store(through + at + t, to_last, mask=t < N)
    tl.store(own + at + t, tl.where(live, to_own, 0), mask=t < N)
    tl.store(direct + at + t, to_head, mask=t < N)


@triton.jit(do_not_specialize=["N", "T", "B", "tiles"])
def items_kernel(
    V, gr, begin, end, front, fronts, stops, through, gV, parts, N, T, B, m, tiles,
    TILE: tl.constexpr, M: tl.constexpr, REAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """gV of the items of a tile, and what later reads of them as whole cells give to them: `parts`."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    chunk = tl.program_id(1)
    n = N - T
    V, gV, gr = V + b * N * m, gV + b * N * m, gr + b * T * m
    begin, end, front = begin + b * N, end + b * N, front + b * N
    fronts, stops, through = fronts + b * tiles, stops + b * tiles, through + b * N
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
    at = gV + i.to(tl.int64)[:, None] * m + k[None, :]
    mask = (i < N)[:, None] & (k < m)[None, :]
    tl.store(at, (tl.load(at, mask=mask, other=0).to(REAL) + to_V).to(gV.dtype.element_ty), mask=mask)
    to_own = tl.sum(vectors(V, i, N, m, k, REAL) * seen, 1) - tl.where(chunk == 0, lost, 0)
    tl.store(parts + (chunk * B + b) * N + i, to_own, mask=i < N)


@triton.jit(do_not_specialize=["N", "T", "B", "blocks", "chunks"])
def finish_kernel(
    s0, lengths, begin, end, heads, emptied, opened, own, parts, E, gs, gu, gd, gs0, N, T, B, blocks, chunks,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of u, d and the strengths before the first step."""
    b = (tl.program_id(0) // blocks).to(tl.int64)
    n = N - T
    stop = n + tl.minimum(T, tl.load(lengths + b)).to(tl.int32)
    i = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    at = b * N + i
    inside = i < stop
    filled = tl.load(end + at, mask=inside, other=0) > tl.load(begin + at, mask=inside, other=0)
    to_d = tl.load(own + at, mask=inside, other=0).to(tl.float64)
    for chunk in range(chunks):
        to_d += tl.load(parts + (chunk * B + b) * N + i, mask=filled, other=0)
    gone = tl.load(emptied + at, mask=inside, other=N)
    taken = filled & (gone < stop) & (tl.load(opened + b * N + gone, mask=gone < stop, other=0) > 0)
    to_d += tl.load(E + b * N + gone, mask=taken, other=0)
    kept = inside & (gone >= stop) & (filled | (i == stop - 1))
    to_d += tl.load(gs + at, mask=kept, other=0)
    to_u = -tl.load(E + at, mask=inside & (tl.load(opened + at, mask=inside, other=0) > 0), other=0)
    real: tl.constexpr = gd.dtype.element_ty
    tl.store(gd + b * T + i - n, to_d.to(real), mask=(i >= n) & (i < N))
    tl.store(gu + b * T + i - n, to_u.to(real), mask=(i >= n) & (i < N))
    # cells that came in empty have a slope only where the first pop passed over them
    first = b * N + n
    there = stop > n
    head = tl.load(heads + first, mask=there, other=0)
    taken = tl.load(opened + first, mask=there, other=0) > 0
    empty = tl.where(taken & (i < head), tl.load(E + first, mask=there, other=0), 0)
    to_s = tl.where(filled, to_d, empty)
    if stop == n:
        to_s = tl.load(gs + at, mask=i < n, other=0).to(tl.float64)
    tl.store(gs0 + at, to_s.to(real), mask=i < n)
