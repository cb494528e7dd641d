"""stack_scan and queue_scan on the GPU, without a loop over time: docs/parallel.md derives it.

`heights.py` goes through each sequence block by block, with scalars alone: where its items lie, and at the
end of the backward pass what follows from what. All that touches vectors goes tile by tile, for all times at
once: `stack.py` and `queue.py`. Nothing depends on the order in which programs run.
"""

from functools import cache, lru_cache
from typing import NamedTuple

import torch
import triton

from softstack.kernels.gpu import chains, heights, queue, stack
from softstack.kernels.gpu.launching import (
    INTERPRETED,
    MANY,
    Launch,
    Launches,
    cdiv,
    launch_of_kind,
    power_of_2,
)

GRIDS = {torch.float32: 2.0**-38, torch.float64: 2.0**-44}  # of strengths, see heights.py
PRECISIONS = {torch.float32: "tf32x3", torch.float64: "ieee"}


class Cut(NamedTuple):
    """How the work is cut up."""

    TILE: int  # indices in a tile
    M: int  # columns that a program takes, at most
    num_warps: int  # at most: one for 2 KB of a tile


CUTS = {torch.float32: Cut(16, 256, 4), torch.float64: Cut(32, 32, 4)}
INTERPRETED_CUT = Cut(16, 16, 4)  # so small that short sequences have several tiles


def tiling(dtype, m):
    return narrowed(INTERPRETED_CUT if INTERPRETED else CUTS[dtype], dtype, m)


@cache
def narrowed(cut, dtype, m):
    M = min(cut.M, max(16, power_of_2(m)))
    return cut._replace(M=M, num_warps=min(cut.num_warps, max(1, cut.TILE * M * dtype.itemsize // 2048)))


@cache
def block_of(N):
    """How many indices a program of heights.py takes at once, and with how many warps."""
    if INTERPRETED:
        return dict(BLOCK=32, num_warps=1)
    BLOCK = min(1024 if N <= 8192 else 4096, max(128, power_of_2(N)))
    return dict(BLOCK=BLOCK, num_warps=min(8, BLOCK // 128))


def real(dtype):
    """What is computed in: halves are float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


NAMES = {torch.float32: triton.language.float32, torch.float64: triton.language.float64}


def forward(v, V0, steps, lifo, r, s, log, checked):
    (geometry,) = log
    V, u, d, s0, lengths = steps
    (B, N, m), T = V.shape, u.shape[1]
    if not (B and T):
        if V0 is not None and not T:
            V.copy_(V0)
            s.copy_(s0)
        return
    bad = u.new_empty(B, m, dtype=torch.int32)
    cut = tiling(real(V.dtype), m)
    launches = forward_launches(cut, B, N, T, m, V.dtype, u.dtype, lifo, lengths is not None, checked)
    with torch.cuda.device_of(r):
        launches(
            dict(v=v, V0=either(V0, v), V=V, u=u, d=d, s0=either(s0, u), lengths=either(lengths, u),
                 geometry=geometry, bad=bad, r=r, s=s)
        )  # fmt: skip


def either(x, otherwise):
    """A tensor, or what stands for it in a launch where there is none."""
    return otherwise if x is None else x


@lru_cache(MANY)
def forward_launches(cut, B, N, T, m, V_dtype, u_dtype, lifo, ragged, checked):
    """The kernels of a forward pass. `u_dtype` is only a part of the cache's key."""
    dtype, kernels = real(V_dtype), stack if lifo else queue
    count = cdiv(N, cut.TILE)
    sizes = N, T, m, count
    tiles = dict(TILE=cut.TILE, M=cut.M, REAL=NAMES[dtype])
    # the assertions of `checked` are left out of kernels that are not debugged, and no others are wanted
    debugged = dict(debug=True, sanitize_overflow=False) if checked and not INTERPRETED else {}
    return Launches(
        Launch(
            heights.heights_kernel, (B,), ("u", "d", "s0", "lengths", "geometry", "s", "bad"), (N, T, m),
            dict(LIFO=lifo, RAGGED=ragged, CHECKED=checked, GRID=GRIDS[dtype], M=128, **block_of(N),
                 **debugged),
        ),
        Launch(
            kernels.tiles_kernel, (B * count,), ("v", "V0", "V", "geometry", "bad"), sizes,
            dict(**tiles, num_warps=4),
        ),
        Launch(
            kernels.reads_kernel, (B * count, cdiv(m, cut.M)), ("V", "geometry", "r", "bad"), sizes,
            dict(**tiles, PRECISION=PRECISIONS[dtype], num_warps=cut.num_warps),
        ),
    )  # fmt: skip


def backward(steps, lifo, log, gr, gV, gs):
    """The gradients of V, u, d and s0, from those of r and, where there are any, of the final V and s. None
    for that of s0 where there was no state."""
    (geometry,) = log
    V, u, d, s0, lengths = steps
    (B, N, m), T = V.shape, u.shape[1]
    to_V, to_u, to_d = (torch.empty_like(x) for x in (V, u, d))
    to_s = None if s0 is None else torch.empty_like(s0)
    if not (B and T):
        for to_x, g in ((to_V, gV), (to_s, gs)):
            if to_x is not None:
                to_x.zero_() if g is None else to_x.copy_(g)
        return [to_V, to_u, to_d, to_s]
    cut = tiling(real(V.dtype), m)
    links = u.new_empty(B, (5 if lifo else 6) * N, dtype=torch.int32)
    shares = u.new_empty(B, (4 + cdiv(m, cut.M)) * N, dtype=torch.float64)
    launches = backward_launches(
        cut, B, N, T, m, V.dtype, u.dtype, lifo, lengths is not None, gV is not None, gs is not None
    )
    with torch.cuda.device_of(V):
        launches(
            dict(V=V, u=u, s0=either(s0, u), lengths=either(lengths, u), geometry=geometry, links=links,
                 shares=shares, gr=gr, gV=either(gV, V), gs=either(gs, u), to_V=to_V, to_u=to_u, to_d=to_d,
                 to_s=either(to_s, u))
        )  # fmt: skip
    return [to_V, to_u, to_d, to_s]


@lru_cache(MANY)
def backward_launches(cut, B, N, T, m, V_dtype, u_dtype, lifo, ragged, has_gV, has_gs):
    """The kernels of a backward pass, where the final V and s have gradients or not."""
    dtype = real(V_dtype)
    name = NAMES[dtype]
    count, chunks = cdiv(N, cut.TILE), cdiv(m, cut.M)
    size = (4 + chunks) * N
    sizes = N, T, m, count, size
    of_links = dict(GIVEN_S=has_gs, TILE=cut.TILE, M=min(32, cut.M), REAL=name, num_warps=cut.num_warps)
    of_items = dict(
        GIVEN_V=has_gV, TILE=cut.TILE, M=cut.M, REAL=name, PRECISION=PRECISIONS[dtype],
        num_warps=4 if cut.M >= 64 else cut.num_warps,  # it has two products
    )  # fmt: skip
    if lifo:
        kernels, ends, below = stack, (), ("links",)
    else:
        kernels, ends, below = queue, ("lengths",), ()
        of_links = dict(RAGGED=ragged, **of_links)
    return Launches(
        Launch(
            kernels.links_kernel, (B * count,), ("V", "u", "gr", "gs", *ends, "geometry", "links", "shares"),
            sizes, of_links,
        ),
        Launch(
            kernels.items_kernel, (B * count, chunks),
            ("V", "gr", "gV", "geometry", *below, "shares", "to_V"), sizes, of_items,
        ),
        Launch(
            kernels.strengths_kernel, (B,),
            ("s0", "lengths", "geometry", "links", "shares", "gs", "to_u", "to_d", "to_s"),
            (N, T, size, chunks), dict(GIVEN_S=has_gs, RAGGED=ragged, **block_of(N)),
        ),
    )  # fmt: skip


def step(V, link, level, head, strength, slot, u, d, lifo, fault, r):
    B, C, m = V.shape
    if B:
        M = power_of_2(m)
        with torch.cuda.device_of(r):
            launch_of_kind(chains.step_kernel, (B,),
                (V, link, level, head, strength, u, d, fault, r), (slot, C, m), LIFO=lifo, M=M,
                num_warps=min(8, max(1, M // 128)),
            )  # fmt: skip


def settle(s, gs, lengths, T):
    """An empty cell of s (..., N) has slope 0, unless its sequence's last step pushed it. Where a sequence
    had no step, nothing is dropped."""
    n, N = s.shape[-1] - T, s.shape[-1]
    last = (n - 1 + lengths.clamp(max=T)).unsqueeze(-1)
    dead = ~(s > 0) & (torch.arange(N, device=s.device) != last)
    gs.masked_fill_(dead & (lengths > 0).unsqueeze(-1), 0)
