"""Working arrays for compiled code, which makes none of its own."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from softstack.kernels.cpu.layout import LANES, SEGMENT, paths
from softstack.kernels.kinds import GRU, LINEAR, LSTM
from softstack.kernels.tuples import Options, Sizes


class ForwardRoom(NamedTuple):
    pre: Any  # (G, LANES) what a controller squashes
    out: Any  # (A, LANES) what its heads squash
    shares: Any  # (N, LANES) how much of each cell is read
    cells: Any  # (2 D, LANES) of a stack by depths before a step and after it, D = N (m + 1); or the
    # strengths of a deque, D = N
    middle: Any  # (D, LANES) those of a multipop stack between its pops and its push
    item: Any  # (k,)
    row: Any  # (m,)
    heads: Any  # (2, LANES) the first cells of the memory and of the input buffer, in each sequence
    tops: Any  # (2, LANES) their strengths
    faults: Any  # (2, LANES) and what was not a number
    keep: Any  # (1, LANES) of a disturbance
    noise: Any  # (H, LANES)
    h_in: Any  # (H, LANES) the state that a step starts from
    c_in: Any  # (H, LANES)


class BackwardRoom(NamedTuple):
    h: Any  # (H, LANES) gradients of the state and of what a step sees
    c: Any  # (H, LANES)
    r: Any  # (R, LANES)
    s: Any  # (N, LANES)
    V: Any  # (N m, LANES)
    x: Any  # (k, LANES)
    cells: Any  # (2 D, LANES) of a stack by depths after a step and before it
    segment: Any  # (SEGMENT D, LANES) that stack itself, or a deque's strengths, before as many steps
    middle: Any  # (D, LANES) and within a step
    after: Any  # (D, LANES) a deque's strengths after it
    h_kept: Any  # of sequences that have ended
    c_kept: Any
    r_kept: Any
    through: Any  # (N, LANES)
    left: Any  # (N, LANES)
    keep: Any  # (1, LANES) of a disturbance
    noise: Any  # (H, LANES)
    c_in: Any  # (H, LANES) the state that a step starts from
    item: Any  # (k,)
    row: Any  # (m,)
    outs: Any  # (T, blocks, A, LANES) of all steps of a model: what the weights' gradients are made of
    pres: Any  # (T, blocks, G, LANES)
    recs: Any  # (T, blocks, H, LANES) for the GRU
    h_in: Any  # (T, blocks, H, LANES) the states that steps start from, where they are disturbed


def for_forward(options: Options, sizes: Sizes, real: Any) -> ForwardRoom:
    by_rows, by_depths, ends, pops = memory_rows(options, sizes)
    H = sizes.H if options.disturbed else 0
    of_memory = (by_rows + ends, 2 * (by_depths + ends), pops, 2, 2)
    counts = (sizes.G, sizes.A, *of_memory, 1, H, H, H if options.core == LSTM else 0)
    pre, out, shares, cells, middle, tops, faults, *disturbed = rows(counts, real)
    item, row = np.empty(sizes.k, real), np.empty(sizes.m, real)
    heads = np.empty((2, LANES), np.int64)
    return ForwardRoom(pre, out, shares, cells, middle, item, row, heads, tops, faults, *disturbed)


def for_backward(options: Options, sizes: Sizes, real: Any) -> BackwardRoom:
    B, T, k, m, H, _, G, _, _, A, R = sizes
    linear, (by_rows, by_depths, ends, pops) = options.core == LINEAR, memory_rows(options, sizes)
    cells, noted = by_rows + ends, min(T, SEGMENT) * (by_depths + ends)
    steps = (T, -(-B // LANES))
    disturbed = H if options.disturbed else 0
    counts = (A, 0 if linear else G, H if options.core == GRU else 0, disturbed)
    of_steps = [math.prod(steps) * count for count in counts]
    of_state = (H, H, R, cells, cells * m, k, 2 * by_depths, noted, pops + ends, ends)
    small = (*of_state, H, H, R, cells, cells, 1, disturbed, disturbed)
    arrays = rows((*small, *of_steps), real)
    large = zip(arrays[len(small) :], counts, strict=True)
    outs, pres, recs, h_in = (z.reshape(*steps, n, LANES) for z, n in large)
    item, row = np.empty(k, real), np.empty(m, real)
    pres = outs if linear else pres
    return BackwardRoom._make([*arrays[: len(small)], item, row, outs, pres, recs, h_in])


def memory_rows(options: Options, sizes: Sizes) -> tuple[int, int, int, int]:
    """How many rows each kind of memory needs, 0 for all but the network's own: one worked by rows, one whose
    cells stand for depths, a deque, and a multipop stack, whose cells stand for depths too."""
    N, path, D = sizes.N, paths(options, sizes.N), sizes.N * (sizes.m + 1)
    return N if path.rows else 0, D if path.depths else 0, N if path.ends else 0, D if path.pops else 0


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
