"""stack_scan and queue_scan on the GPU, without a loop over time: docs/parallel.md derives it.

`heights.py` goes through each sequence block by block, with scalars alone: where its items lie, and at the
end of the backward pass what follows from what. All that touches vectors goes tile by tile, for all times at
once: `stack.py` and `queue.py`. Nothing depends on the order in which programs run.
"""

from typing import NamedTuple

import torch
import triton

from softstack.kernels.gpu import chains, heights, queue, stack, tiles
from softstack.kernels.gpu.launching import INTERPRETED, cdiv, launch, power_of_2

GRIDS = {torch.float32: 2.0**-38, torch.float64: 2.0**-44}  # of strengths, see heights.py
PRECISIONS = {torch.float32: "tf32x3", torch.float64: "ieee"}


class Cut(NamedTuple):
    """How the work is cut up."""

    TILE: int  # indices in a tile
    M: int  # columns that a program takes, at most
    num_warps: int


CUTS = {torch.float32: Cut(32, 64, 4), torch.float64: Cut(32, 32, 4)}
INTERPRETED_CUT = Cut(16, 16, 4)  # so small that short sequences have several tiles


def tiling(dtype, m):
    cut = INTERPRETED_CUT if INTERPRETED else CUTS[dtype]
    return cut._replace(M=min(cut.M, max(16, power_of_2(m))))


def block_of(N):
    """How many indices a program of heights.py takes at once, and with how many warps."""
    if INTERPRETED:
        return dict(BLOCK=32, num_warps=1)
    BLOCK = min(1024 if N <= 8192 else 4096, max(128, power_of_2(N)))
    return dict(BLOCK=BLOCK, num_warps=min(8, BLOCK // 128))


class StackGeometry(NamedTuple):
    """Where everything lies, see stack.py: B N numbers, one for each index, or one for each tile."""

    low: torch.Tensor
    high: torch.Tensor
    top: torch.Tensor
    sill: torch.Tensor
    floors: torch.Tensor
    reaches: torch.Tensor


class QueueGeometry(NamedTuple):
    """The same, see queue.py."""

    begin: torch.Tensor
    end: torch.Tensor
    front: torch.Tensor
    starts: torch.Tensor
    fronts: torch.Tensor
    stops: torch.Tensor


def room(like, count, dtype, size):
    """So many tensors in one piece of memory, each of at least `size` numbers and beginning at a multiple of
    128 bytes: Triton compiles again for what is not aligned."""
    return like.new_empty(count, cdiv(size, 32) * 32, dtype=dtype).unbind(0)


def real(V):
    """What is computed in: halves are float32."""
    return torch.float64 if V.dtype == torch.float64 else torch.float32


def geometry(steps, lifo, cut, s, bad, final):
    """Out, if `final`: s, the strengths at the end, and bad (B, m), where something is first not a number."""
    (B, N, m), T = steps.V.shape, steps.u.shape[1]
    count = cdiv(N, cut.TILE)
    low, high, third, fourth = room(steps.u, 4, torch.float64, B * N)
    of_tiles = room(steps.u, 3, torch.float64, B * count)
    launch(heights.heights_kernel, (B,),
        steps.u, steps.d, steps.s0, steps.lengths, low, high, third, s, bad, N, T, m,
        LIFO=lifo, FINAL=final, GRID=GRIDS[real(steps.V)], M=128, **block_of(N),
    )  # fmt: skip
    lines = StackGeometry(low, high, third, fourth, *of_tiles[:2])
    if not lifo:
        lines = QueueGeometry(low, high, third, *of_tiles)
    kernel = stack.tiles_kernel if lifo else queue.tiles_kernel
    launch(kernel, (B * count,), *lines, N, T, count, TILE=cut.TILE, num_warps=1)
    return lines, count


def names_of(dtype):
    return {torch.float32: triton.language.float32, torch.float64: triton.language.float64}[dtype]


def forward(steps, lifo, r, s, log):
    """The log stays empty: the backward pass makes the geometry again, to keep less."""
    (B, N, m), T = steps.V.shape, steps.u.shape[1]
    if not (B and T):
        s.copy_(steps.s0)
        return
    dtype = real(steps.V)
    cut = tiling(dtype, m)
    bad = steps.lengths.new_empty(B, m, dtype=torch.int32)
    options = dict(TILE=cut.TILE, M=cut.M, num_warps=cut.num_warps)
    of_reads = dict(REAL=names_of(dtype), PRECISION=PRECISIONS[dtype], **options)
    with torch.cuda.device_of(r):
        lines, count = geometry(steps, lifo, cut, s, bad, True)
        grid, sizes = (B * count, cdiv(m, cut.M)), (N, T, m, count)
        if lifo:
            launch(stack.reads_kernel, grid, steps.V, *lines[:5], r, bad, *sizes, **of_reads)
        else:
            launch(queue.reads_kernel, grid, steps.V, *lines[:4], r, bad, *sizes, **of_reads)
        launch(tiles.spread_kernel, grid, r, bad, *sizes, **options)


def backward(steps, lifo, s, log, gr, gs, gV, gu, gd):
    if steps.u.numel():
        cut = tiling(real(steps.V), steps.V.shape[2])
        with torch.cuda.device_of(gV):
            lines, count = geometry(steps, lifo, cut, s, steps.lengths, False)
            run = stack_backward if lifo else queue_backward
            run(steps, lines, count, cut, gr, gs, gV, gu, gd)


def options_of(V, cut):
    """Of the kernels that make links, of those that multiply, and of those that go by blocks."""
    dtype = real(V)
    links = dict(TILE=cut.TILE, M=min(32, cut.M), REAL=names_of(dtype), num_warps=cut.num_warps)
    return links, dict(links, M=cut.M, PRECISION=PRECISIONS[dtype]), block_of(V.shape[1])


def stack_backward(steps, lines, count, cut, gr, gs, gV, gu, gd):
    V, u, _, s0, lengths = steps
    low, high, top, sill, floors, reaches = lines
    (B, N, m), T = V.shape, u.shape[1]
    of_links, of_items, of_blocks = options_of(V, cut)
    chunks, blocks = cdiv(m, cut.M), cdiv(N, of_blocks["BLOCK"])
    below, follows, opened, gates, pointers = room(u, 5, torch.int32, B * N)
    through, own, direct, E = room(u, 4, torch.float64, B * N)
    parts = u.new_empty(chunks * B * N, dtype=torch.float64)
    launch(stack.links_kernel, (B * count,),
        V, u, gr, gs, low, high, floors, below, follows, opened, through, own, direct, N, T, m, count,
        **of_links,
    )  # fmt: skip
    launch(stack.items_kernel, (B * count, chunks),
        V, gr, low, high, top, sill, floors, reaches, below, through, gV, parts, N, T, B, m, count,
        **of_items,
    )  # fmt: skip
    launch(heights.resolve_kernel, (B,),
        low, below, follows, opened, direct, parts, E, gates, pointers, N, T, B, lengths, chunks,
        LIFO=True, **of_blocks,
    )  # fmt: skip
    launch(stack.finish_kernel, (B * blocks,),
        s0, lengths, low, below, opened, own, E, gs.clone(), gu, gd, gs, N, T, blocks, **of_blocks
    )


def queue_backward(steps, lines, count, cut, gr, gs, gV, gu, gd):
    V, u, d, s0, lengths = steps
    begin, end, front, _, fronts, stops = lines
    (B, N, m), T = V.shape, u.shape[1]
    of_links, of_items, of_blocks = options_of(V, cut)
    chunks, blocks = cdiv(m, cut.M), cdiv(N, of_blocks["BLOCK"])
    heads, follows, emptied, opened, gates, pointers = room(u, 6, torch.int32, B * N)
    through, own, direct, E = room(u, 4, torch.float64, B * N)
    parts = u.new_empty(chunks * B * N, dtype=torch.float64)
    launch(queue.links_kernel, (B * count,),
        V, u, d, gr, gs, lengths, begin, end, front, heads, emptied, opened, through, own, direct, follows,
        N, T, m, count, **of_links,
    )  # fmt: skip
    launch(queue.items_kernel, (B * count, chunks),
        V, gr, begin, end, front, fronts, stops, through, gV, parts, N, T, B, m, count, **of_items
    )
    launch(heights.resolve_kernel, (B,),
        begin, heads, follows, opened, direct, parts, E, gates, pointers, N, T, B, lengths, 0,
        LIFO=False, **of_blocks,
    )  # fmt: skip
    launch(queue.finish_kernel, (B * blocks,),
        s0, lengths, begin, end, heads, emptied, opened, own, parts, E, gs.clone(), gu, gd, gs,
        N, T, B, blocks, chunks, **of_blocks,
    )  # fmt: skip


def step(V, link, level, head, strength, slot, u, d, lifo, r):
    B, C, m = V.shape
    if B:
        M = power_of_2(m)
        with torch.cuda.device_of(r):
            launch(chains.step_kernel, (B,),
                V, link, level, head, strength, slot, u, d, r, C, m, LIFO=lifo, M=M,
                num_warps=min(8, max(1, M // 128)),
            )  # fmt: skip


def settle(s, gs, lengths, T):
    """An empty cell of s (..., N) has slope 0, unless its sequence's last step pushed it. Where a sequence
    had no step, nothing is dropped."""
    n, N = s.shape[-1] - T, s.shape[-1]
    last = (n - 1 + lengths.clamp(max=T)).unsqueeze(-1)
    dead = ~(s > 0) & (torch.arange(N, device=s.device) != last)
    gs.masked_fill_(dead & (lengths > 0).unsqueeze(-1), 0)
