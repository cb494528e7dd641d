"""What compiled code works in beside what it takes and gives: it makes no arrays of its own."""

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

    def rows(count: int) -> Any:
        return np.empty((count, LANES), real)

    return ForwardRoom(
        rows(sizes.G), rows(actions(options, sizes)), rows(cells), np.empty(sizes.k, real),
        np.empty(sizes.m, real), np.empty((2, LANES), np.int64), rows(2), rows(2),
    )  # fmt: skip


def for_backward(options: Options, sizes: Sizes, real: Any) -> BackwardRoom:
    B, T, k, m, H, _, G, N, _ = sizes
    cells = N if paths(options, N)[0] else 0
    counts = (H, H, m, cells, cells * m, k, H, H, m, cells, cells)

    def steps(count: int) -> Any:
        return np.empty((T, -(-B // LANES), count, LANES), real)

    outs = steps(actions(options, sizes))
    pres = outs if options.core == LINEAR else steps(G)
    rows = [np.empty((count, LANES), real) for count in counts]
    recs = steps(H if options.core == GRU else 0)
    return BackwardRoom._make([*rows, np.empty(k, real), np.empty(m, real), outs, pres, recs])


def actions(options: Options, sizes: Sizes) -> int:
    return (4 if options.buffered else 2) + sizes.m + sizes.K
