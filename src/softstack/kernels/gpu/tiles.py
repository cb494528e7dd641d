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


@triton.jit(do_not_specialize=["N", "T", "tiles"])
def spread_kernel(r, bad, N, T, m, tiles, TILE: tl.constexpr, M: tl.constexpr):
    """What is not a number shows in every read from index bad (m) on."""
    b = (tl.program_id(0) // tiles).to(tl.int64)
    t = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE) - (N - T)
    k = tl.program_id(1) * M + tl.arange(0, M)
    first = tl.load(bad + b * m + k, mask=k < m, other=N) - (N - T)
    if tl.min(first, 0) < T:
        wrong = (t >= 0)[:, None] & (t < T)[:, None] & (t[:, None] >= first[None, :]) & (k < m)[None, :]
        nothing = tl.full((TILE, M), float("nan"), tl.float32).to(r.dtype.element_ty)
        tl.store(r + b * T * m + t.to(tl.int64)[:, None] * m + k[None, :], nothing, mask=wrong)
