"""What compiled code works in beside what it takes and gives: it makes no arrays of its own."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from softstack.kernels.cpu.layout import LANES, paths
from softstack.kernels.kinds import GRU, LINEAR
from softstack.kernels.tuples import Options, Sizes


class ForwardRoom(NamedTuple):
    pre: Any  # (G, LANES) what a controller squashes
    out: Any  # (A, LANES) what its heads squash
    seen: Any  # (N, LANES) how much of each cell is read
    item: Any  # (k,)
    row: Any  # (m,)
    heads: Any  # (2, LANES) the first cells of the memory and of the input buffer, in each sequence
    held: Any  # (2, LANES) their strengths
    faults: Any  # (2, LANES) and what was not a number


class BackwardRoom(NamedTuple):
    h: Any  # (H, LANES) gradients of the state and of what a step sees
    c: Any  # (H, LANES)
    r: Any  # (m, LANES)
    s: Any  # (N, LANES)
    V: Any  # (N m, LANES)
    x: Any  # (k, LANES)
    h_kept: Any  # of sequences that have ended
    c_kept: Any
    r_kept: Any
    through: Any  # (N, LANES)
    left: Any  # (N, LANES)
    item: Any  # (k,)
    row: Any  # (m,)
    outs: Any  # (T, blocks, A, LANES) of all steps of a model: what the weights' gradients are made of
    pres: Any  # (T, blocks, G, LANES)
    recs: Any  # (T, blocks, H, LANES) for the GRU


def for_forward(options: Options, sizes: Sizes, real: Any) -> ForwardRoom:
    cells = sizes.N if paths(options, sizes.N)[0] else 0
    pre, out, seen, held, faults = rows((sizes.G, actions(options, sizes), cells, 2, 2), real)
    item, row = np.empty(sizes.k, real), np.empty(sizes.m, real)
    return ForwardRoom(pre, out, seen, item, row, np.empty((2, LANES), np.int64), held, faults)


def for_backward(options: Options, sizes: Sizes, real: Any) -> BackwardRoom:
    B, T, k, m, H, _, G, N, _ = sizes
    cells, linear = N if paths(options, N)[0] else 0, options.core == LINEAR
    steps = (T, -(-B // LANES))
    counts = (actions(options, sizes), 0 if linear else G, H if options.core == GRU else 0)
    of_steps = [math.prod(steps) * count for count in counts]
    *small, outs, pres, recs = rows((H, H, m, cells, cells * m, k, H, H, m, cells, cells, *of_steps), real)
    outs, pres, recs = (z.reshape(*steps, n, LANES) for z, n in zip((outs, pres, recs), counts, strict=True))
    item, row = np.empty(k, real), np.empty(m, real)
    return BackwardRoom._make([*small, item, row, outs, outs if linear else pres, recs])


def rows(counts: Sequence[int], real: Any) -> list[Any]:
    """Arrays (count, LANES). They begin at multiples of 64 bytes: a row that lies in two lines of the cache
    takes longer."""
    numbers = np.empty(sum(counts) * LANES + 64 // real.itemsize, real)
    begin = -numbers.__array_interface__["data"][0] % 64 // real.itemsize
    arrays = []
    for count in counts:
        end = begin + count * LANES
        arrays.append(numbers[begin:end].reshape(count, LANES))
        begin = end
    return arrays


def actions(options: Options, sizes: Sizes) -> int:
    return (4 if options.buffered else 2) + sizes.m + sizes.K
