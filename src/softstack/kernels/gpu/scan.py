"""stack_scan and queue_scan on the GPU, without a loop over time: docs/parallel.md derives it.

`heights.py` goes through each sequence block by block, with scalars alone: where its items lie, and at the
end of the backward pass what follows from what. All that touches vectors goes tile by tile, for all times at
once: `stack.py` and `queue.py`. Nothing depends on the order in which programs run.
"""

import math
import os
from typing import NamedTuple

import torch
import triton

from softstack.kernels.gpu import chains, heights, queue, stack, tiles

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
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
    return cut._replace(M=min(cut.M, max(16, triton.next_power_of_2(m))))


def block_of(N):
    """How many indices a program of heights.py takes at once, and with how many warps."""
    if INTERPRETED:
        return dict(BLOCK=32, num_warps=1)
    BLOCK = min(1024 if N <= 8192 else 4096, max(128, triton.next_power_of_2(N)))
    return dict(BLOCK=BLOCK, num_warps=min(8, BLOCK // 128))


class Geometry(NamedTuple):
    """Where everything lies: (B, N) for each index, (B, tiles) for each tile. See stack.py and queue.py."""

    low: torch.Tensor
    high: torch.Tensor
    third: torch.Tensor  # a stack's `top`, a queue's `front`
    fourth: torch.Tensor  # a stack's `sill`
    of_tiles: list[torch.Tensor]  # three of (B, tiles)


def room(like, count, dtype, *shape):
    """So many tensors of a shape in one piece of memory, each beginning at a multiple of 128 bytes: Triton
    compiles again for what is not aligned."""
    size = math.prod(shape)
    memory = like.new_empty(count, triton.cdiv(size, 32) * 32, dtype=dtype)
    return [memory[k, :size].view(shape) for k in range(count)]


def real(V):
    """What is computed in: halves are float32."""
    return torch.float64 if V.dtype == torch.float64 else torch.float32


def geometry(steps, lifo, cut, s, bad, final):
    """Out, if `final`: s, the strengths at the end, and bad (B, m), where something is first not a number."""
    (B, N, m), T = steps.V.shape, steps.u.shape[1]
    count = triton.cdiv(N, cut.TILE)
    low, high, third, fourth = room(steps.u, 4, torch.float64, B, N)
    of_tiles = room(steps.u, 3, torch.float64, B, count)
    heights.heights_kernel[(B,)](
        steps.u, steps.d, steps.s0, steps.lengths, low, high, third, s, bad, N, T, m,
        LIFO=lifo, FINAL=final, GRID=GRIDS[real(steps.V)], M=128, **block_of(N),
    )  # fmt: skip
    grid = (B * count,)
    if lifo:
        stack.tiles_kernel[grid](
            low, high, third, fourth, of_tiles[0], of_tiles[1], N, T, count, TILE=cut.TILE, num_warps=1
        )
    else:
        queue.tiles_kernel[grid](low, high, third, *of_tiles, N, T, count, TILE=cut.TILE, num_warps=1)
    return Geometry(low, high, third, fourth, of_tiles)


def names_of(dtype):
    return {torch.float32: triton.language.float32, torch.float64: triton.language.float64}[dtype]


def forward(steps, lifo, r, s, log):
    """The log stays empty: the backward pass makes the geometry again, which costs less than keeping it."""
    (B, N, m), T = steps.V.shape, steps.u.shape[1]
    if not (B and T):
        s.copy_(steps.s0)
        return
    dtype = real(steps.V)
    cut = tiling(dtype, m)
    bad = steps.lengths.new_empty(B, m, dtype=torch.int32)
    with torch.cuda.device_of(r):
        low, high, third, fourth, of_tiles = geometry(steps, lifo, cut, s, bad, True)
        count = of_tiles[0].shape[1]
        grid = (B * count, triton.cdiv(m, cut.M))
        options = dict(
            TILE=cut.TILE, M=cut.M, REAL=names_of(dtype), PRECISION=PRECISIONS[dtype], num_warps=cut.num_warps
        )
        if lifo:
            stack.reads_kernel[grid](
                steps.V, low, high, third, fourth, of_tiles[0], r, bad, N, T, m, count, **options
            )
        else:
            queue.reads_kernel[grid](
                steps.V, low, high, third, of_tiles[0], r, bad, N, T, m, count, **options
            )
        tiles.spread_kernel[grid](r, bad, N, T, m, count, TILE=cut.TILE, M=cut.M, num_warps=cut.num_warps)


def backward(steps, lifo, s, log, gr, gs, gV, gu, gd):
    V, u, d, s0, lengths = steps
    (B, N, m), T = V.shape, u.shape[1]
    if not (B and T):
        return
    dtype, of_blocks = real(V), block_of(N)
    cut = tiling(dtype, m)
    chunks, blocks = triton.cdiv(m, cut.M), triton.cdiv(N, of_blocks["BLOCK"])
    with torch.cuda.device_of(gV):
        low, high, third, fourth, of_tiles = geometry(steps, lifo, cut, s, lengths, False)
        count = of_tiles[0].shape[1]
        neighbours, follows, opened, gates, pointers, emptied = room(u, 6, torch.int32, B, N)
        through, own, direct, E = room(u, 4, torch.float64, B, N)
        parts = u.new_empty(chunks, B, N, dtype=torch.float64)
        grid, name = (B * count,), names_of(dtype)
        of_links = dict(TILE=cut.TILE, M=min(32, cut.M), REAL=name, num_warps=cut.num_warps)
        of_items = dict(
            TILE=cut.TILE, M=cut.M, REAL=name, PRECISION=PRECISIONS[dtype], num_warps=cut.num_warps
        )
        if lifo:
            stack.links_kernel[grid](
                V, u, gr, gs, low, high, of_tiles[0], neighbours, follows, opened, through, own, direct,
                N, T, m, count, **of_links,
            )  # fmt: skip
            stack.items_kernel[(*grid, chunks)](
                V, gr, low, high, third, fourth, of_tiles[0], of_tiles[1], neighbours, through, gV, parts,
                N, T, B, m, count, **of_items,
            )  # fmt: skip
            heights.resolve_kernel[(B,)](
                low, neighbours, follows, opened, direct, parts, E, gates, pointers, N, T, B, lengths, chunks,
                LIFO=True, **of_blocks,
            )  # fmt: skip
            stack.finish_kernel[(B * blocks,)](
                s0,
                lengths,
                low,
                neighbours,
                opened,
                own,
                E,
                gs.clone(),
                gu,
                gd,
                gs,
                N,
                T,
                blocks,
                **of_blocks,
            )
            return
        queue.links_kernel[grid](
            V, u, d, gr, gs, lengths, low, high, third, neighbours, emptied, opened, through, own, direct,
            follows, N, T, m, count, **of_links,
        )  # fmt: skip
        queue.items_kernel[(*grid, chunks)](
            V,
            gr,
            low,
            high,
            third,
            of_tiles[1],
            of_tiles[2],
            through,
            gV,
            parts,
            N,
            T,
            B,
            m,
            count,
            **of_items,
        )
        heights.resolve_kernel[(B,)](
            low, neighbours, follows, opened, direct, parts, E, gates, pointers, N, T, B, lengths, 0,
            LIFO=False, **of_blocks,
        )  # fmt: skip
        queue.finish_kernel[(B * blocks,)](
            s0, lengths, low, high, neighbours, emptied, opened, own, parts, E, gs.clone(), gu, gd, gs,
            N, T, B, blocks, chunks, **of_blocks,
        )  # fmt: skip


def step(V, link, level, head, strength, slot, u, d, lifo, r):
    B, C, m = V.shape
    if B:
        M = triton.next_power_of_2(m)
        with torch.cuda.device_of(r):
            chains.step_kernel[(B,)](
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
