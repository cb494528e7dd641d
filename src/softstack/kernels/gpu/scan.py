"""stack_scan and queue_scan on the GPU, without a loop over time: docs/parallel.md derives it.

`heights.py` goes through each sequence block by block, with scalars alone: where its items lie, and at the
end of the backward pass what follows from what. All that touches vectors goes tile by tile, for all times at
once: `stack.py` and `queue.py`. Nothing depends on the order in which programs run.
"""

from functools import cache
from typing import NamedTuple

import torch
import triton

from softstack.kernels.gpu import chains, heights, queue, stack
from softstack.kernels.gpu.launching import INTERPRETED, cdiv, launch, launch_of_kind, power_of_2

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


def real(V):
    """What is computed in: halves are float32."""
    return torch.float64 if V.dtype == torch.float64 else torch.float32


NAMES = {torch.float32: triton.language.float32, torch.float64: triton.language.float64}


def forward(v, V0, steps, lifo, r, s, log, checked):
    (geometry,) = log
    V, u, d, s0, lengths = steps
    (B, N, m), T = V.shape, u.shape[1]
    if not (B and T):
        V.copy_(V0)
        s.copy_(s0)
        return
    dtype = real(V)
    cut, kernels = tiling(dtype, m), stack if lifo else queue
    count = cdiv(N, cut.TILE)
    sizes = N, T, m, count
    bad = u.new_empty(B, m, dtype=torch.int32)
    ragged, ends = given(lengths, u)
    # the assertions of `checked` are left out of kernels that are not debugged, and no others are wanted
    debugged = dict(debug=True, sanitize_overflow=False) if checked and not INTERPRETED else {}
    with torch.cuda.device_of(r):
        launch(heights.heights_kernel, (B,),
            (u, d, s0, ends, geometry, s, bad), (N, T, m), LIFO=lifo, RAGGED=ragged, CHECKED=checked,
            GRID=GRIDS[dtype], M=128, **block_of(N), **debugged,
        )  # fmt: skip
        launch(kernels.tiles_kernel, (B * count,),
            (v, V0, V, geometry, bad), sizes, TILE=cut.TILE, M=cut.M, REAL=NAMES[dtype], num_warps=4
        )  # fmt: skip
        launch(kernels.reads_kernel, (B * count, cdiv(m, cut.M)),
            (V, geometry, r, bad), sizes, TILE=cut.TILE, M=cut.M, REAL=NAMES[dtype],
            PRECISION=PRECISIONS[dtype], num_warps=cut.num_warps,
        )  # fmt: skip


def given(x, otherwise):
    """Whether there is such a tensor, and what stands for it in a launch."""
    return x is not None, otherwise if x is None else x


def backward(steps, lifo, log, gr, gV, gs):
    """The gradients of V, u, d and s0, from those of r and, where there are any, of the final V and s."""
    (geometry,) = log
    V, u, d, s0, lengths = steps
    (B, N, m), T = V.shape, u.shape[1]
    to_V, to_u, to_d, to_s = (torch.empty_like(x) for x in (V, u, d, s0))
    if not (B and T):
        return [
            to_V.zero_() if gV is None else to_V.copy_(gV), to_u, to_d,
            to_s.zero_() if gs is None else to_s.copy_(gs),
        ]  # fmt: skip
    dtype = real(V)
    cut, name = tiling(dtype, m), NAMES[dtype]
    count, chunks = cdiv(N, cut.TILE), cdiv(m, cut.M)
    size = (4 + chunks) * N
    (given_V, gV), (given_s, gs), (ragged, ends) = given(gV, V), given(gs, u), given(lengths, u)
    links = u.new_empty(B, (5 if lifo else 6) * N, dtype=torch.int32)
    shares = u.new_empty(B, size, dtype=torch.float64)
    sizes = N, T, m, count, size
    of_links = dict(GIVEN_S=given_s, TILE=cut.TILE, M=min(32, cut.M), REAL=name, num_warps=cut.num_warps)
    of_items = dict(
        GIVEN_V=given_V, TILE=cut.TILE, M=cut.M, REAL=name, PRECISION=PRECISIONS[dtype],
        num_warps=4 if cut.M >= 64 else cut.num_warps,  # it has two products
    )  # fmt: skip
    tiled, grid = (B * count,), (B * count, chunks)
    with torch.cuda.device_of(V):
        if lifo:
            launch(stack.links_kernel, tiled, (V, u, gr, gs, geometry, links, shares), sizes, **of_links)
            launch(stack.items_kernel, grid, (V, gr, gV, geometry, links, shares, to_V), sizes, **of_items)
        else:
            of_links = dict(RAGGED=ragged, **of_links)
            tensors = V, u, gr, gs, ends, geometry, links, shares
            launch(queue.links_kernel, tiled, tensors, sizes, **of_links)
            launch(queue.items_kernel, grid, (V, gr, gV, geometry, shares, to_V), sizes, **of_items)
        kernels = stack if lifo else queue
        launch(kernels.strengths_kernel, (B,),
            (s0, ends, geometry, links, shares, gs, to_u, to_d, to_s), (N, T, size, chunks),
            GIVEN_S=given_s, RAGGED=ragged, **block_of(N),
        )  # fmt: skip
    return [to_V, to_u, to_d, to_s]


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
