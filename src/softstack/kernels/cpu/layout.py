"""Where a network's numbers lie on the tape of `cpu/rnn.py`.

This is plain Python, which `cpu/tape.py` compiles: PyTorch asks for sizes while it traces, with symbols for
numbers and with functions of `math` replaced by its own, and numba must not be imported then.
"""

from typing import NamedTuple

from softstack.kernels.kinds import DEQUE, LSTM, MULTIPOP, NONE, SUPERPOSITION
from softstack.kernels.tuples import Options, Sizes

LANES = 16  # sequences that are computed at once
SEGMENT = 32  # steps from one note of a memory to the next, by depths and of a deque
SHORT = 128  # slots of a memory that is worked by rows; beyond about 190 chains are faster, whatever m
KEPT = (0, 0, 4, 5)  # rows kept per hidden unit and step, by core: the GRU's reset, update, g and rec; the
# LSTM's i, f, g, o and tanh(c)


class Places(NamedTuple):
    """Where on a model's tape its parts begin. What has rows of LANES numbers, one for each of as many
    sequences, lies as (steps, blocks, rows, LANES)."""

    x: int  # T steps, k rows
    h: int  # T + 1 steps, H rows
    c: int  # the same, for the LSTM
    r: int  # T + 1 steps, R rows
    acts: int  # T steps, A rows
    gates: int  # T steps, KEPT[core] H rows
    level: int  # (B, N) of a chain; of a memory that is worked by rows, V (blocks, N, m, LANES); of one whose
    # cells stand for depths, those before every SEGMENTth step (blocks, T // SEGMENT + 1, N, m + 1, LANES)
    top: int  # (B, T + 1); or its strengths before and after each step (blocks, rows, LANES), of a deque
    # before every SEGMENTth (blocks, T // SEGMENT + 1, N, LANES)
    level_in: int  # (B, n_in) of the input buffer's chain
    top_in: int  # (B, T + 1)
    end: int


def places(options: Options, sizes: Sizes, chained: bool) -> Places:
    """`chained`: whether the memory is worked as a chain of cells, or by rows."""
    core, memory, buffered = options.core, options.memory, options.buffered
    B, T, k, m, H, _, _, N, n_in, A, R = sizes
    lanes = -(-B // LANES) * LANES
    h = T * lanes * k
    c = h + (T + 1) * lanes * H
    r = c + ((T + 1) * lanes * H if core == LSTM else 0)
    acts = r + (T + 1) * lanes * R
    gates = acts + T * lanes * A
    level = gates + T * lanes * KEPT[core] * H
    if memory == NONE:
        top, level_in = level, level
    elif memory == DEQUE:
        top = level + lanes * N * m
        level_in = top + (T // SEGMENT + 1) * lanes * N
    elif memory in (SUPERPOSITION, MULTIPOP):
        top = level + (T // SEGMENT + 1) * lanes * N * (m + 1)
        level_in = top
    elif chained:
        top = level + B * N
        level_in = top + B * (T + 1)
    else:
        top = level + lanes * N * m
        level_in = top + lanes * ((T + 1) * (N - T) + (T + 1) * T // 2)  # cells after 0, 1, ... T steps
    top_in = level_in + (B * n_in if buffered else 0)
    end = top_in + (B * (T + 1) if buffered else 0)
    return Places(0, h, c, r, acts, gates, level, top, level_in, top_in, end)


def tape_length(at: Places) -> int:
    """In whole rows, so that the next model's tape begins with one."""
    return -(-at.end // LANES) * LANES


def links(options: Options, sizes: Sizes) -> int:
    """How many cells are noted of a model's chains: link (B, N) and first (B, T + 1) of its memory, then link
    (B, n_in) and first (B, T + 1) of its input buffer."""
    B, T, N, n_in = sizes.B, sizes.T, sizes.N, sizes.n_in
    return B * (N + T + 1) + (B * (n_in + T + 1) if options.buffered else 0)


class Paths(NamedTuple):
    """Which branches of `cpu/rnn.py` a network needs: True, or None for one that numba leaves out."""

    rows: bool | None  # a stack or a queue that is short
    chained: bool | None  # and one that is long
    depths: bool | None  # a stack whose cells stand for depths,
    mixed: bool | None  # a superposition stack,
    pops: bool | None  # or a multipop stack
    ends: bool | None  # a deque
    buffered: bool | None


def paths(options: Options, N: int) -> Paths:
    """With N slots."""
    memory = options.memory
    return Paths(
        rows=(memory < NONE and N <= SHORT) or None,
        chained=(memory < NONE and N > SHORT) or None,
        depths=memory in (SUPERPOSITION, MULTIPOP) or None,
        mixed=memory == SUPERPOSITION or None,
        pops=memory == MULTIPOP or None,
        ends=memory == DEQUE or None,
        buffered=options.buffered or None,
    )
