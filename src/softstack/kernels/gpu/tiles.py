"""What the parallel scans of stacks and queues share: tiles of TILE indices, and the search for the next one
that matters."""

import triton
import triton.language as tl

from softstack.kernels.gpu.heights import BIG, NOTHING

SPAN: tl.constexpr = tl.constexpr(128)  # tiles that are looked at together


@triton.jit
def vectors(V, i, count, m, k, REAL: tl.constexpr):
    """Rows i of V, columns k, and zeros outside."""
    at = V + i.to(tl.int64)[:, None] * m + k[None, :]
    return tl.load(at, mask=(i < count)[:, None] & (k < m)[None, :], other=0).to(REAL)


@triton.jit
def incoming(gr, t, n, live, m, k, REAL: tl.constexpr):
    """The gradients of what times t read, and zeros where they read nothing."""
    at = gr + (t - n).to(tl.int64)[:, None] * m + k[None, :]
    return tl.load(at, mask=live[:, None] & (k < m)[None, :], other=0).to(REAL)


@triton.jit
def chosen(V, index, m, k, REAL: tl.constexpr):
    """Rows `index` of V, columns k, and zeros where it is -1."""
    at = V + index.to(tl.int64)[:, None] * m + k[None, :]
    return tl.load(at, mask=(index >= 0)[:, None] & (k < m)[None, :], other=0).to(REAL)


@triton.jit
def product(a, b, total, PRECISION: tl.constexpr):
    """total + a b, in the precision of `total`."""
    real: tl.constexpr = total.dtype
    return tl.dot(a.to(real), b, total, input_precision=PRECISION, out_dtype=real)


@triton.jit
def previous(floors, tile, height, EQUAL: tl.constexpr):
    """The last tile before this one whose floor is below `height`, or at it if EQUAL; -1 if there is none."""
    hit = tl.full((), -1, tl.int32)
    while (tile > 0) & (hit < 0) & (height > NOTHING):
        at = tile - SPAN + tl.arange(0, SPAN)
        floor = tl.load(floors + at, mask=at >= 0, other=BIG)
        enough = floor < height
        if EQUAL:
            enough = floor <= height
        hit = tl.max(tl.where(enough, at, -1), 0)
        tile -= SPAN
    return hit


@triton.jit
def following(floors, tile, height, tiles, EQUAL: tl.constexpr):
    """The first tile from this one on whose floor is so; `tiles` if there is none."""
    hit = tiles
    while (tile < tiles) & (hit == tiles) & (height > NOTHING):
        at = tile + tl.arange(0, SPAN)
        floor = tl.load(floors + at, mask=at < tiles, other=BIG)
        enough = floor < height
        if EQUAL:
            enough = floor <= height
        hit = tl.min(tl.where(enough, at, tiles), 0)
        tile += SPAN
    return hit


@triton.jit
def lay(v, V0, V, bad, b, i, N, T, m, M: tl.constexpr, REAL: tl.constexpr):
    """Rows i of sequence b's V: what was there before the first step, then what is pushed. And bad (m): the
    first index at which a number of a vector is not one."""
    n = N - T
    old, new = (i < n)[:, None], ((i >= n) & (i < N))[:, None]
    for column in range(0, m, M):
        k = column + tl.arange(0, M)
        there = (k < m)[None, :]
        x = tl.load(V0 + (b * n + i)[:, None] * m + k[None, :], mask=old & there, other=0)
        pushed = tl.load(v + (b * T + i - n)[:, None] * m + k[None, :], mask=new & there, other=0)
        x = tl.where(new, pushed, x)
        tl.store(V + (b * N + i)[:, None] * m + k[None, :], x, mask=(i < N)[:, None] & there)
        x = x.to(REAL)
        wrong = (x - x) != 0
        if tl.max(wrong.to(tl.int32)) > 0:
            first = tl.min(tl.where(wrong, i[:, None], N), 0)
            tl.atomic_min(bad + b * m + k, first, mask=(first < N) & (k < m))


@triton.jit
def numbers(v):
    """Without what is not one: `put` shows that."""
    return tl.where((v - v) == 0, v, 0)


@triton.jit
def put(r, total, bad, b, t, N, T, m, k):
    """What times t of sequence b read: not a number from index bad (m) on."""
    first = tl.load(bad + b * m + k, mask=k < m, other=N)
    total = tl.where(t[:, None] >= first[None, :], float("nan"), total)
    at = r + (b * T + t - (N - T))[:, None] * m + k[None, :]
    mask = (t >= N - T)[:, None] & (t < N)[:, None] & (k < m)[None, :]
    tl.store(at, total.to(r.dtype.element_ty), mask=mask)


@triton.jit
def add(gV, given, to_V, b, i, N, m, k, GIVEN: tl.constexpr):
    """Rows i of sequence b's gV: to_V, and if GIVEN what V itself was given."""
    at = (b * N + i)[:, None] * m + k[None, :]
    mask = (i < N)[:, None] & (k < m)[None, :]
    if GIVEN:
        to_V += tl.load(given + at, mask=mask, other=0).to(to_V.dtype)
    tl.store(gV + at, to_V.to(gV.dtype.element_ty), mask=mask)
